/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was asked of the device and what it promised, sector by sector, kept over
 * power cuts, and the judgement whether what it returns keeps the promise.
 *
 * Every write and discard has a number, and a written sector carries it. For each
 * sector the record knows the last number issued, below which number an acknowledged
 * write has made contents impossible (live: for a reader now; floor: after a power
 * cut too, because a flush was acknowledged since), and what it held when all was
 * last read after a recovery (base). Writes may overlap in flight: then either may
 * be the last.
 *
 * A sector is right if it holds its base and no floor is above it, or a write to it
 * that was issued since the base was taken and is not below the floor. One that was
 * discarded may hold anything, but from the next recovery on always the same.
 */
#ifndef CRASH_RECORD_H
#define CRASH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTOR 512
#define MAX_IO_SECTORS 512	/* 256 KiB */

struct op {
	uint32_t number;
	uint32_t start;
	uint32_t sectors;
	uint32_t low[MAX_IO_SECTORS];	/* lowest number in flight at its issue */
};

/* sectors: size of the device, which is all zero. 0 or -ENOMEM. */
int record_init(uint32_t sectors);
void record_free(void);

/* Thread-safe. A write fills buf; what: 'w', 'f' (FUA) or 'd' (discard, buf NULL). */
void record_issue(struct op *op, char what, uint32_t start, uint32_t sectors, void *buf);
/* durable: acknowledged with FUA. Not called for what failed: it stays in flight. */
void record_ack(const struct op *op, bool durable);
/* A flush: all acknowledged before its issue. snapshot: record_snapshot_size() bytes. */
size_t record_snapshot_size(void);
void record_flush_issue(void *snapshot);
void record_flush_ack(const void *snapshot);
/* A read while the device runs: live floors at its issue; 0 or the number of bad sectors. */
void record_read_issue(uint32_t start, uint32_t sectors, uint32_t *low);
int record_read_check(uint32_t start, uint32_t sectors, const uint32_t *low, const void *buf);

/* Alone, without threads. After a cut: what was not durable may be gone. */
void record_cut(void);
/* After a clean stop: all that was acknowledged must be there. */
void record_stop(void);
/* Checks what was read after a recovery; number of bad sectors, the first ones printed. */
int record_check(uint32_t start, uint32_t sectors, const void *buf, const char *when);
/* For messages: what the raw origin held when all was pinned, and what it holds now. */
void record_note_origin(const void *buf);
void record_explain_origin(const void *buf);
/* All of the device was read and checked: from now on it holds this. buf: all of it. */
void record_pin(const void *buf);
/* Sectors with a version newer than the base in the last check, and lost ones. */
void record_counts(uint32_t *kept, uint32_t *lost);

#endif
