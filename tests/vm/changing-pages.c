// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes with O_DIRECT from a buffer that another thread changes all the time:
 *
 *   changing-pages DEVICE BYTES SECONDS SEED
 *
 * Requests of 4 KiB to 64 KiB at any 4 KiB boundary of the first BYTES. What is
 * written is undefined, but it must be the same wherever the device keeps it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536

static int stop;

static void *change(void *buffer)
{
	uint64_t *word = buffer;
	uint64_t n = 1;
	size_t i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (i = 0; i < BUFFER / sizeof(*word); i += 8)
			__atomic_store_n(&word[i], n++, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long writes = 0;
	unsigned int seed;
	pthread_t thread;
	time_t end;
	long bytes;
	void *buffer;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: changing-pages DEVICE BYTES SECONDS SEED\n");
		return 2;
	}
	bytes = atol(argv[2]);
	end = time(NULL) + atol(argv[3]);
	seed = atol(argv[4]);
	fd = open(argv[1], O_WRONLY | O_DIRECT);
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || buffer == MAP_FAILED || pthread_create(&thread, NULL, change, buffer)) {
		perror(argv[1]);
		return 1;
	}
	while (time(NULL) < end) {
		long n = (rand_r(&seed) % 16 + 1) * 4096L;
		long at = rand_r(&seed) % ((bytes - n) / 4096 + 1) * 4096L;

		if (pwrite(fd, buffer, n, at) != n) {
			fprintf(stderr, "%s: write of %ld at %ld: %s\n", argv[1], n, at,
				strerror(errno));
			return 1;
		}
		writes++;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%lu\n", writes);
	return close(fd) ? 1 : 0;
}
