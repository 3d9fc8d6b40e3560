/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metadata device in userspace: a file (or block device), or an image in
 * memory. For tests it can record every write and flush, and make the n-th read,
 * write or flush fail.
 */
#ifndef PC_METAIO_FILE_H
#define PC_METAIO_FILE_H

#include <linux/types.h>

#include "metaio.h"

enum pc_metaio_event_type {
	PC_METAIO_WRITE,
	PC_METAIO_FLUSH,
};

/* In the order of submission; all are completed in that order too. */
struct pc_metaio_event {
	enum pc_metaio_event_type type;
	unsigned int flags;	/* of the write */
	u64 block;
	u32 count;
	u8 *data;		/* count blocks */
};

struct pc_metaio_file {
	struct pc_metaio io;
	int fd;			/* -1: in memory */
	u8 *image;		/* in memory: nr_blocks blocks */

	/* recording, if record is set */
	bool record;
	struct pc_metaio_event *events;
	size_t nr_events;
	size_t max_events;

	/* n > 0: the n-th from now on fails with -EIO, and so do all after it */
	long fail_read, fail_write, fail_flush;
	/* a write that fails does it after it has been carried out */
	bool fail_late;
	u64 nr_reads, nr_writes, nr_flushes;
};

/* 0 or a negative errno. Writable, unless read_only. */
int pc_metaio_open_file(struct pc_metaio_file *f, const char *path, bool read_only);
/* All zero, or a copy of what is given. */
int pc_metaio_open_memory(struct pc_metaio_file *f, u64 nr_blocks, const void *contents);
void pc_metaio_close(struct pc_metaio_file *f);

void pc_metaio_forget_events(struct pc_metaio_file *f);

#endif
