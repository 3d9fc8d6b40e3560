/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] What metadata.c (the facade at run time) and recovery.c (the start) share.
 * Nobody else includes this.
 *
 * All of it is owned by the thread that is in a call of metadata.h; there is no
 * lock (see there).
 */
#ifndef PC_METADATA_INTERNAL_H
#define PC_METADATA_INTERNAL_H

#include <linux/types.h>

#include "journal.h"
#include "metadata.h"
#include "superblock.h"
#include "table.h"

struct pc_metadata {
	struct pc_metaio *io;
	struct pc_metadata_params params;
	struct pc_super sb;	/* as it is on disk, both copies */
	struct pc_journal journal;
	struct pc_table table;
	u8 *buf;		/* PC_META_BATCH blocks, journal's and table's in turn */
	u8 *sb_buf;		/* one block */
	unsigned long *intents;	/* a bit a cache block: its entry on disk has an intent */
	u32 intent_bits;
	u32 nr_intents;		/* bits set in intents */
	bool writable;		/* loaded or reopened, and not closed since */
	bool failed;		/* a write or flush failed */
};

/* Reads the superblock and compares it with the params; *what as pc_superblock_read(). */
int pc_metadata_read_super(struct pc_metadata *md, struct pc_super *sb, enum pc_probe *what,
			   char why[PC_META_ERR_SIZE]);

/* Places journal and table where md->sb says they are. */
void pc_metadata_place(struct pc_metadata *md);

/* Replaces the superblock by *sb, durably; md->sb follows. Sets failed on error. */
int pc_metadata_write_super(struct pc_metadata *md, const struct pc_super *sb);

/* Flushes the device. Sets failed on error. */
int pc_metadata_flush(struct pc_metadata *md);

/* Number of the last transaction. */
static inline u64 pc_metadata_last(const struct pc_metadata *md)
{
	return md->journal.transaction - 1;
}

/* Origin blocks of a device of so many sectors, the last perhaps short. */
u64 pc_metadata_oblocks(u64 sectors, u32 block_sectors);

/*
 * Sub-blocks of oblock that an origin of so many sectors covers in full, as a mask:
 * those that may be valid.
 */
u64 pc_metadata_covered(const struct pc_super *sb, u64 origin_sectors, u64 oblock);

#endif
