/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The two superblock copies: what they say, which one counts, how they are
 * replaced, and how a new metadata device is laid out. Knows nothing of the
 * contents of journal and table. Buffers are the caller's.
 */
#ifndef PC_SUPERBLOCK_H
#define PC_SUPERBLOCK_H

#include <linux/types.h>

#include "metadata.h"
#include "ondisk.h"

/* A superblock in memory, as it is on disk or is to be next. */
struct pc_super {
	u32 flags;
	u32 compat;
	u8 uuid[PC_UUID_SIZE];
	u64 sequence;
	u32 block_sectors;
	u32 subblock_sectors;
	u64 origin_sectors;
	u32 nr_cblocks;
	u32 table_blocks;
	u64 journal_start;
	u32 journal_blocks;
	u32 max_records;
	u64 table_start;
	u64 tail_sequence;
	u64 tail_transaction;
	char policy_name[PC_DISK_POLICY_SIZE];	/* always ends with a zero */
	u32 policy_version;
	u64 counters[PC_NR_COUNTERS];
};

/* buf: one metadata block. Reads copy B only where block 0 does not decide. */
int pc_superblock_probe(struct pc_metaio *io, void *buf, enum pc_probe *what);

/*
 * Reads both copies into buf (one metadata block) and decodes the one that counts.
 * 0 and *what = PC_PROBE_OURS or PC_PROBE_BLANK; else a negative errno and why.
 */
int pc_superblock_read(struct pc_metaio *io, void *buf, struct pc_super *sb,
		       enum pc_probe *what, char why[PC_META_ERR_SIZE]);

/*
 * Advances the sequence and writes copy B, then copy A, each durable before the
 * next step. What the superblock relies on must be durable before the call.
 */
int pc_superblock_write(struct pc_metaio *io, void *buf, struct pc_super *sb);

/* The same in two halves, for formatting: copy is 1 (first) or 0. */
int pc_superblock_write_copy(struct pc_metaio *io, void *buf, const struct pc_super *sb,
			     u64 copy, unsigned int flags);

/* Places of a new metadata device. -ENOSPC or -EINVAL and why. */
int pc_superblock_layout(struct pc_super *sb, const struct pc_metadata_params *params,
			 u64 nr_blocks, char why[PC_META_ERR_SIZE]);

/* Table blocks that so many cache blocks need. */
u32 pc_superblock_table_blocks(u32 nr_cblocks);

/* What journal blocks and table sectors carry of the uuid. */
u32 pc_superblock_uuid_part(const struct pc_super *sb);

#endif
