/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] One bio under decision: where it lies, and the small steps that reads and
 * writes have in common.
 */
#ifndef PC_LOOKUP_H
#define PC_LOOKUP_H

#include "cache.h"

/* Owner: the context that maps the bio. */
struct pc_lookup {
	struct pc_cache *pc;
	struct bio *bio;
	struct pc_bio *pb;	/* the bio's */
	pc_oblock_t oblock;
	u32 hash;		/* of oblock */
	u32 offset;		/* of the bio in the block, sectors */
	struct pc_span span;
	enum pc_mode mode;	/* in force for this bio */
	bool in_map;		/* dm_accept_partial_bio is allowed */
	bool is_write;
	spinlock_t *lock;	/* the shard's, and the saved interrupt flags */
	unsigned long flags;
};

/* Last sub-block, at most last, of the run that starts at first, all in mask. */
static inline u32 pc_lookup_run(u32 first, u32 last, u64 mask)
{
	u64 others = ~(mask >> first);
	u32 n = others ? __ffs64(others) : 64;

	return min(first + n - 1, last);
}

/* Keeps the bio up to that sub-block; the rest comes back as a bio of its own. */
void pc_lookup_cut(struct pc_lookup *l, u32 last_sub);
/* Aims the dm bio; it may be submitted after. */
int pc_lookup_to_cache(struct pc_lookup *l, u32 cblock);
int pc_lookup_to_origin(struct pc_lookup *l);
/* Once a bio. */
static inline void pc_lookup_count(struct pc_lookup *l, bool hit, bool bypass)
{
	struct pc_bio *pb = l->pb;

	if (pb->counted)
		return;
	pb->counted = true;
	if (l->is_write)
		pc_count(l->pc, hit ? PC_STAT_WRITE_HIT : PC_STAT_WRITE_MISS);
	else
		pc_count(l->pc, hit ? PC_STAT_READ_HIT : PC_STAT_READ_MISS);
	if (bypass)
		pc_count(l->pc, l->is_write ? PC_STAT_WRITE_BYPASS : PC_STAT_READ_BYPASS);
}

/* The following under the shard lock. */
static inline void pc_lookup_note_hit(struct pc_cache *pc, struct pc_block *blk)
{
	if (blk->flags & PC_BLOCK_STREAM) {
		blk->flags &= ~PC_BLOCK_STREAM;
		atomic_dec(&pc->nr_stream);
	}
	blk->flags |= PC_BLOCK_HIT;
}

/* Cut to one sub-block, the bio waits for the next event of the block. */
int pc_lookup_wait(struct pc_lookup *l, struct pc_pending *p);
/* A new mapping with its pending object, or NULL: nothing free. o is not mapped. */
struct pc_block *pc_lookup_insert(struct pc_cache *pc, pc_oblock_t o, bool is_stream);

#endif
