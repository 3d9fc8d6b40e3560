// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O with exact counts, for tests that count requests: a program that starts
 * quickly, and issues nothing that it was not told to.
 *
 *   pc-io DEVICE read|write|mixed|fsync [KEY VALUE]...
 *
 *   bs BYTES     of a request (4096)
 *   count N      requests of each job (1)
 *   first N      first request's place, in requests (0)
 *   step N       from one to the next, in requests (1)
 *   random N     places are random within N requests from the first on
 *   seed N       of random (1)
 *   jobs N       threads that do the same (1); with random, each its own places
 *   spread N     with jobs: the next job begins so many requests later (0)
 *   seconds N    stop after that, whatever the count; count 0: only then
 *   fsync N      after every N requests (0: never)
 *   dsync 1      O_DSYNC: writes carry FUA
 *   byte N       what is written (0)
 *   check N      what is read must be this byte; 256: its place (below)
 *
 * byte 256 writes each 8-byte word as the number of its place on the device. Prints
 * nothing; the exit status is 1 after an error, with its text on stderr.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BY_PLACE 256
#define NOTHING 257

static const char *device, *op;

static struct option {
	const char *key;
	uint64_t value;
} options[] = {
	{ "bs", 4096 }, { "count", 1 }, { "first", 0 }, { "step", 1 }, { "random", 0 },
	{ "seed", 1 }, { "jobs", 1 }, { "spread", 0 }, { "seconds", 0 }, { "fsync", 0 },
	{ "dsync", 0 }, { "byte", 0 }, { "check", NOTHING },
};

static uint64_t opt(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!strcmp(options[i].key, key))
			return options[i].value;
	abort();
}

static void set(const char *key, const char *value)
{
	size_t i;
	char *end;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (strcmp(options[i].key, key) != 0)
			continue;
		options[i].value = strtoull(value, &end, 10);
		if (*value && !*end)
			return;
	}
	fprintf(stderr, "pc-io: %s %s: unknown\n", key, value);
	exit(2);
}

static void die(const char *what, uint64_t place)
{
	fprintf(stderr, "pc-io: %s: %s at byte %llu: %s\n", device, what,
		(unsigned long long)place, strerror(errno));
	exit(1);
}

static void fill(uint64_t *buf, size_t bs, uint64_t place, uint64_t byte)
{
	size_t i;

	if (byte != BY_PLACE) {
		memset(buf, (int)byte, bs);
		return;
	}
	for (i = 0; i < bs / sizeof(*buf); i++)
		buf[i] = place / sizeof(*buf) + i;
}

static void *job(void *arg)
{
	uint64_t nr = (uintptr_t)arg, bs = opt("bs"), count = opt("count"), n, at;
	uint64_t random = opt("random"), seed = opt("seed") + nr * 7919, check = opt("check");
	uint64_t first = opt("first") + nr * opt("spread"), every = opt("fsync");
	int fd = open(device, (!strcmp(op, "read") ? O_RDONLY : O_RDWR) | O_DIRECT | O_CLOEXEC |
			      (opt("dsync") ? O_DSYNC : 0));
	uint64_t *buf, *want;
	time_t end = time(NULL) + (time_t)opt("seconds");

	if (fd < 0)
		die("open", 0);
	if (posix_memalign((void **)&buf, 4096, bs) || posix_memalign((void **)&want, 4096, bs))
		die("memory", 0);
	for (n = 0; !count || n < count; n++) {
		int is_write = !strcmp(op, "write");

		if (opt("seconds") && time(NULL) >= end)
			break;
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		at = (first + (random ? (seed >> 33) % random : n * opt("step"))) * bs;
		if (!strcmp(op, "mixed"))
			is_write = seed >> 62 & 1;
		if (!strcmp(op, "fsync")) {
			if (fsync(fd))
				die("fsync", 0);
			continue;
		}
		if (is_write) {
			fill(buf, bs, at, opt("byte"));
			if (pwrite(fd, buf, bs, (off_t)at) != (ssize_t)bs)
				die("write", at);
		} else {
			if (pread(fd, buf, bs, (off_t)at) != (ssize_t)bs)
				die("read", at);
			if (check != NOTHING) {
				fill(want, bs, at, check);
				errno = EBADMSG;
				if (memcmp(buf, want, bs) != 0)
					die("wrong data", at);
			}
		}
		if (every && n % every == every - 1 && fsync(fd))
			die("fsync", at);
	}
	free(buf);
	free(want);
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	uintptr_t i;

	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: pc-io DEVICE read|write|mixed|fsync [KEY VALUE]...\n");
		return 2;
	}
	device = argv[1];
	op = argv[2];
	for (i = 3; i < (uintptr_t)argc; i += 2)
		set(argv[i], argv[i + 1]);
	if (opt("jobs") > 256)
		return 2;
	for (i = 0; i < opt("jobs"); i++)
		if (pthread_create(&threads[i], NULL, job, (void *)i))
			die("thread", 0);
	for (i = 0; i < opt("jobs"); i++)
		pthread_join(threads[i], NULL);
	return 0;
}
