/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The journal: a ring of blocks to which transactions of records are appended,
 * and from which they are read again after a crash. Block sequence s lies at ring
 * index s % J, so a position is a sequence number and nothing else.
 *
 * Knows blocks and transactions, not what records mean and not where the tail is
 * kept: metadata.c moves the tail once the superblock names it.
 */
#ifndef PC_JOURNAL_H
#define PC_JOURNAL_H

#include <linux/types.h>

#include "metadata.h"

/* metadata blocks moved by one read or write at most, and the size of buffers */
#define PC_META_BATCH 256u

struct pc_journal {
	struct pc_metaio *io;
	u8 *buf;		/* PC_META_BATCH blocks, the caller's */
	u64 start;		/* metadata block */
	u32 nr_blocks;
	u32 uuid_part;
	u64 tail;		/* sequence of the first block in use */
	u64 head;		/* sequence of the next block to be written */
	u64 transaction;	/* number of the next transaction */
};

/* Blocks in use. */
static inline u64 pc_journal_used(const struct pc_journal *j)
{
	return j->head - j->tail;
}

/* Records that one transaction may have. */
u32 pc_journal_max_records(const struct pc_journal *j);

/* Blocks that a transaction of n records takes. */
u32 pc_journal_blocks_of(u32 n);

/*
 * Writes a transaction of 1 to pc_journal_max_records() records, for which there
 * must be room. 0: durable, head and transaction have advanced.
 */
int pc_journal_append(struct pc_journal *j, const struct pc_record *records, u32 n);

/*
 * Finds all complete transactions from tail and transaction on and gives their
 * records to fn in order; a non-zero return ends it. 0: head and transaction are
 * behind the last complete one. -EUCLEAN: a transaction that had been completed
 * can not be read (a later one exists).
 */
typedef int (*pc_journal_fn)(void *context, u64 transaction, const struct pc_record *record);
int pc_journal_replay(struct pc_journal *j, pc_journal_fn fn, void *context,
		      char why[PC_META_ERR_SIZE]);

/* Zeroes the ring, not flushed. */
int pc_journal_format(struct pc_journal *j);

#endif
