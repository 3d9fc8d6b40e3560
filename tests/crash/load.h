/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load: threads that write, read, flush and discard until they are stopped or
 * the device fails, and record it all.
 */
#ifndef CRASH_LOAD_H
#define CRASH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Percent of operations; what is left are writes. */
struct load_mix {
	unsigned int reads;
	unsigned int flushes;
	unsigned int discards;
	unsigned int dsync;	/* percent of writes */
	unsigned int scribble;	/* percent of writes: their buffer changes in flight */
	uint32_t hot_start;	/* most of it goes here, sectors */
	uint32_t hot_sectors;
	uint32_t max_sectors;	/* of one operation */
	bool aligned;		/* whole 4 KiB only */
};

struct load_counts {
	atomic_ulong writes, reads, flushes, discards;
	atomic_ulong bad;	/* sectors read wrong */
};

/* xorshift: state is not 0 */
uint64_t load_random(uint64_t *state);
static inline uint32_t load_below(uint64_t *state, uint32_t n)
{
	return (load_random(state) >> 16) % n;
}

/* Opens the node. 0 or -errno. */
int load_start(const char *path, uint32_t sectors, const struct load_mix *mix,
	       unsigned int nr_threads, uint64_t seed, struct load_counts *counts);
/* Waits for all threads and closes. expected: errors are (power was cut). -EIO otherwise. */
int load_stop(bool expected);

/* All of it becomes zero. 0 or -errno. */
int load_zero(const char *path, uint32_t sectors);
/* Contents of a device, O_DIRECT, in pieces. 0 or -errno. */
int load_read_all(const char *path, uint32_t sectors, void *buf);

#endif
