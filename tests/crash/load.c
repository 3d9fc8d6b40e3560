// SPDX-License-Identifier: GPL-2.0-only
/*
 * The load (load.h). Each thread does one operation at a time, with O_DIRECT; FUA is
 * asked for with RWF_DSYNC, which is a FUA write and then a flush.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "load.h"
#include "record.h"

#define MAX_THREADS 32

struct worker {
	pthread_t thread;
	uint64_t random;
	struct op op;
	uint32_t low[MAX_IO_SECTORS];
	char *buf;
	void *snapshot;
	atomic_bool scribbled;	/* a write whose buffer may change is in flight */
};

static struct worker workers[MAX_THREADS];
static pthread_t scribbler;
static unsigned int nr_workers;
static int device = -1;
static uint32_t device_sectors;
static struct load_mix mix;
static struct load_counts *counts;
static atomic_bool stop;
static atomic_int first_error;

uint64_t load_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull;
}

/* Where and how much: mostly a few KiB, mostly in the hot area. */
static void pick(struct worker *w, uint32_t *start, uint32_t *sectors)
{
	uint32_t how = load_below(&w->random, 100), n;
	uint32_t from = 0, len = device_sectors;

	if (how < 45)
		n = 8;
	else if (how < 65)
		n = 1 + load_below(&w->random, 16);
	else if (how < 92)
		n = 8 * (1 + load_below(&w->random, 16));
	else
		n = 1 + load_below(&w->random, MAX_IO_SECTORS);
	if (n > mix.max_sectors)
		n = mix.max_sectors;
	if (mix.aligned)
		n = (n + 7) & ~7u;
	if (load_below(&w->random, 100) < 85) {
		from = mix.hot_start;
		len = mix.hot_sectors;
	}
	if (n > len)
		n = len;
	*start = from + load_below(&w->random, len - n + 1);
	/* most requests are aligned, as those of file systems are */
	if (mix.aligned || load_below(&w->random, 100) < 75)
		*start &= ~7u;
	*sectors = n;
}

/* What it leaves is anybody's guess, but the same for ever: like a discard. */
static int do_scribbled_write(struct worker *w)
{
	uint32_t start, sectors;
	ssize_t n;

	pick(w, &start, &sectors);
	record_issue(&w->op, 'd', start, sectors, NULL);
	memset(w->buf, w->op.number, (size_t)sectors * SECTOR);
	atomic_store(&w->scribbled, true);
	n = pwrite(device, w->buf, (size_t)sectors * SECTOR, (off_t)start * SECTOR);
	atomic_store(&w->scribbled, false);
	if (n < 0)
		return -errno;
	record_ack(&w->op, false);
	atomic_fetch_add(&counts->writes, 1);
	return 0;
}

/* Changes the buffers of such writes, as a program with a mapping of the page may. */
static void *scribble(void *arg)
{
	unsigned int i, n = 0, at;

	(void)arg;
	while (!atomic_load(&stop)) {
		for (i = 0; i < nr_workers; i++) {
			volatile char *buf = workers[i].buf;

			if (!atomic_load(&workers[i].scribbled))
				continue;
			n++;
			for (at = 0; at < MAX_IO_SECTORS * SECTOR; at += SECTOR)
				buf[at] = n;
		}
		sched_yield();
	}
	return NULL;
}

static int do_write(struct worker *w)
{
	bool dsync = load_below(&w->random, 100) < mix.dsync;
	struct iovec iov = { .iov_base = w->buf };
	uint32_t start, sectors;
	ssize_t n;

	if (load_below(&w->random, 100) < mix.scribble)
		return do_scribbled_write(w);
	pick(w, &start, &sectors);
	iov.iov_len = (size_t)sectors * SECTOR;
	record_issue(&w->op, dsync ? 'f' : 'w', start, sectors, w->buf);
	n = pwritev2(device, &iov, 1, (off_t)start * SECTOR, dsync ? RWF_DSYNC : 0);
	if (n < 0)
		return -errno;
	if ((size_t)n != iov.iov_len)
		return -EIO;
	record_ack(&w->op, dsync);
	atomic_fetch_add(&counts->writes, 1);
	return 0;
}

static int do_read(struct worker *w)
{
	uint32_t start, sectors;
	ssize_t n;

	pick(w, &start, &sectors);
	record_read_issue(start, sectors, w->low);
	n = pread(device, w->buf, (size_t)sectors * SECTOR, (off_t)start * SECTOR);
	if (n < 0)
		return -errno;
	if ((size_t)n != (size_t)sectors * SECTOR)
		return -EIO;
	atomic_fetch_add(&counts->bad, record_read_check(start, sectors, w->low, w->buf));
	atomic_fetch_add(&counts->reads, 1);
	return 0;
}

static int do_flush(struct worker *w)
{
	record_flush_issue(w->snapshot);
	if (fdatasync(device))
		return -errno;
	record_flush_ack(w->snapshot);
	atomic_fetch_add(&counts->flushes, 1);
	return 0;
}

static int do_discard(struct worker *w)
{
	uint32_t start, sectors;
	uint64_t range[2];

	pick(w, &start, &sectors);
	record_issue(&w->op, 'd', start, sectors, NULL);
	range[0] = (uint64_t)start * SECTOR;
	range[1] = (uint64_t)sectors * SECTOR;
	if (ioctl(device, BLKDISCARD, range))
		return -errno;
	record_ack(&w->op, false);
	atomic_fetch_add(&counts->discards, 1);
	return 0;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	int err = 0, none = 0;

	while (!err && !atomic_load(&stop)) {
		uint32_t what = load_below(&w->random, 100);

		if (what < mix.reads)
			err = do_read(w);
		else if (what < mix.reads + mix.flushes)
			err = do_flush(w);
		else if (what < mix.reads + mix.flushes + mix.discards)
			err = do_discard(w);
		else
			err = do_write(w);
	}
	if (err)
		atomic_compare_exchange_strong(&first_error, &none, err);
	return NULL;
}

static int prepare(struct worker *w)
{
	if (w->buf)
		return 0;
	w->snapshot = malloc(record_snapshot_size());
	if (!w->snapshot || posix_memalign((void **)&w->buf, 4096, MAX_IO_SECTORS * SECTOR))
		return -ENOMEM;
	return 0;
}

int load_start(const char *path, uint32_t sectors, const struct load_mix *the_mix,
	       unsigned int nr_threads, uint64_t seed, struct load_counts *the_counts)
{
	unsigned int i;
	int err;

	mix = *the_mix;
	counts = the_counts;
	device_sectors = sectors;
	atomic_store(&stop, false);
	atomic_store(&first_error, 0);
	device = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (device < 0)
		return -errno;
	if (nr_threads > MAX_THREADS)
		nr_threads = MAX_THREADS;
	for (i = 0; i < nr_threads; i++) {
		struct worker *w = &workers[i];

		err = prepare(w);
		if (err)
			return err;
		w->random = (seed + i) * 0x9e3779b97f4a7c15ull | 1;
		load_random(&w->random);
		if (pthread_create(&w->thread, NULL, run, w))
			return -EAGAIN;
		nr_workers = i + 1;
	}
	if (mix.scribble && pthread_create(&scribbler, NULL, scribble, NULL))
		return -EAGAIN;
	return 0;
}

int load_stop(bool expected)
{
	unsigned int i;
	int err;

	atomic_store(&stop, true);
	if (mix.scribble)
		pthread_join(scribbler, NULL);
	for (i = 0; i < nr_workers; i++)
		pthread_join(workers[i].thread, NULL);
	nr_workers = 0;
	close(device);
	device = -1;
	err = atomic_load(&first_error);
	return expected ? 0 : err;
}

int load_zero(const char *path, uint32_t sectors)
{
	int fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC), err = 0;
	size_t left = (size_t)sectors * SECTOR, n;
	void *zero;

	if (fd < 0)
		return -errno;
	if (posix_memalign(&zero, 4096, MAX_IO_SECTORS * SECTOR))
		return -ENOMEM;
	memset(zero, 0, MAX_IO_SECTORS * SECTOR);
	for (; left && !err; left -= n) {
		n = left < MAX_IO_SECTORS * SECTOR ? left : MAX_IO_SECTORS * SECTOR;
		if (write(fd, zero, n) != (ssize_t)n)
			err = -EIO;
	}
	if (!err && fdatasync(fd))
		err = -errno;
	free(zero);
	close(fd);
	return err;
}

int load_read_all(const char *path, uint32_t sectors, void *buf)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	uint32_t at, n;
	ssize_t got;
	int err = 0;

	if (fd < 0)
		return -errno;
	for (at = 0; at < sectors && !err; at += n) {
		n = sectors - at < MAX_IO_SECTORS ? sectors - at : MAX_IO_SECTORS;
		got = pread(fd, (char *)buf + (size_t)at * SECTOR, (size_t)n * SECTOR,
			    (off_t)at * SECTOR);
		if (got != (ssize_t)n * SECTOR)
			err = got < 0 ? -errno : -EIO;
	}
	close(fd);
	return err;
}
