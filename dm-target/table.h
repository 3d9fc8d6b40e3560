/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The table: an entry for each cache block, in self-checking sectors, and the
 * changes to it that are committed but not yet written (the records since the
 * journal's tail, one for each cache block).
 *
 * Knows sectors and entries, not what entries mean. The memory for changes is
 * taken once; a change or a write allocates nothing.
 */
#ifndef PC_TABLE_H
#define PC_TABLE_H

#include <linux/types.h>

#include "journal.h"
#include "metadata.h"

struct pc_change {
	struct pc_entry entry;
	u64 transaction;
	u32 cblock;
	u32 next;		/* in the hash chain, index + 1; 0: end */
};

struct pc_table {
	struct pc_metaio *io;
	u8 *buf;		/* PC_META_BATCH blocks, the caller's */
	u64 start;		/* metadata block */
	u32 nr_blocks;
	u32 nr_cblocks;
	u32 uuid_part;

	struct pc_change *changes;
	u32 *heads;		/* hash heads, index + 1; 0: empty */
	unsigned long *marks;	/* a bit a table block: it has changes */
	u32 nr_changes;
	u32 max_changes;
	u32 hash_bits;
	u32 max_blocks;		/* bits in marks */
};

/* Makes room for changes and marks, at least this much; keeps none. -ENOMEM. */
int pc_table_reserve(struct pc_table *t, u32 max_changes, u32 max_blocks);
void pc_table_free(struct pc_table *t);
size_t pc_table_memory(const struct pc_table *t);

/* Room for n more changes, of different cache blocks or not. */
bool pc_table_has_room(const struct pc_table *t, u32 n);

/* Notes a committed entry; a later one of the same block replaces it. -ENOSPC. */
int pc_table_change(struct pc_table *t, u32 cblock, const struct pc_entry *e, u64 transaction);
void pc_table_forget_changes(struct pc_table *t);

/*
 * Shows every entry of the table, changes applied, in order. fn may alter the entry;
 * that is written back only by pc_table_rewrite(). Positive results are taken as 0.
 */
typedef int (*pc_table_fn)(void *context, u32 cblock, struct pc_entry *e);

/*
 * Reads the whole table. transaction: the last one known; a sector that reflects a
 * later one is damage. 0, -EUCLEAN and why, an error of reading, or fn's.
 */
int pc_table_read(struct pc_table *t, u64 transaction, pc_table_fn fn, void *context,
		  char why[PC_META_ERR_SIZE]);

/*
 * Reads the whole table and writes the sectors in which an entry differs from what
 * they hold, as reflecting transaction. Not flushed; changes are kept. fn may be NULL.
 */
int pc_table_rewrite(struct pc_table *t, u64 transaction, pc_table_fn fn, void *context,
		     char why[PC_META_ERR_SIZE]);

/* The same for the blocks with changes only, and without a visitor. */
int pc_table_write_changes(struct pc_table *t, u64 transaction);

/* Writes "unmapped" entries over nr blocks of the table from first on. Not flushed. */
int pc_table_format(struct pc_table *t, u32 first, u32 nr, u64 transaction);

#endif
