/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] How the metadata code reaches its device: read, write, flush, all
 * synchronous, in units of whole 4096-byte metadata blocks.
 *
 * Implementations: metaio-dm.c (a block device, in the kernel) and
 * userspace/metaio-file.c (a file, with a record of every write for the power-cut
 * test). Callers may sleep and hold no spinlock; one thread at a time.
 */
#ifndef PC_METAIO_H
#define PC_METAIO_H

#include <linux/types.h>

#define PC_META_BLOCK_SIZE 4096u	/* bytes */
#define PC_META_BLOCK_SECTORS 8u

/* flags of write() */
#define PC_META_PREFLUSH (1u << 0)	/* all completed writes durable before this one */
#define PC_META_FUA	 (1u << 1)	/* this one durable at return */

struct pc_metaio;

struct pc_metaio_ops {
	/* All return 0 or a negative errno. count blocks from block on. */
	int (*read)(struct pc_metaio *io, u64 block, u32 count, void *data);
	int (*write)(struct pc_metaio *io, u64 block, u32 count, const void *data,
		     unsigned int flags);
	int (*flush)(struct pc_metaio *io);
};

struct pc_metaio {
	const struct pc_metaio_ops *ops;
	u64 nr_blocks;		/* size of the device in metadata blocks */
};

#endif
