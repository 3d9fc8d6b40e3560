/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] What the disk says of a block while it differs from memory, and how the two
 * are brought together (DESIGN section 6: the invariant and rules 9 to 14).
 *
 * A block has a pending object from the moment that its in-core state may differ
 * from its durable record until a commit made both equal. Objects come from a
 * bounded pool (pool lock); their fields belong to the shard of their block, and so
 * to that shard's lock. A block without one is on disk exactly as in memory.
 *
 * The life of a change:   gather -> device flushes -> compose -> journal -> done.
 * gather notes what has happened so far; whatever completed before it is durable
 * once flushes submitted after it have completed. compose makes the record from
 * what was gathered, never from memory alone.
 */
#ifndef PC_PENDING_H
#define PC_PENDING_H

#include <linux/types.h>

#include "blocks.h"

/* One member of the set "what the disk says". flags: PC_BLOCK_MAPPED, _INTENT_x. */
struct pc_disk {
	u64 valid;
	u64 dirty;
	u16 flags;
};

/* flags of struct pc_pending */
#define PC_PENDING_COMPOSED	0x01	/* next is in a commit: in flight, or failed */
#define PC_PENDING_G_UNMAP	0x02	/* gathered: demoted */
#define PC_PENDING_G_QUIET	0x04	/* gathered: no write or copy in flight */
#define PC_PENDING_CLEAR	0x08	/* the intent is wanted gone */
#define PC_PENDING_URGENT	0x10	/* somebody waits for the next record */
#define PC_PENDING_COPYING	0x20	/* writeback holds the block */

struct pc_pending {
	u32 cblock;		/* shard lock */
	u32 shard;		/* pool lock to change, with the shard's held */
	u32 next_free;		/* pool lock */
	u16 flags;
	u16 want;		/* PC_BLOCK_INTENT_x asked for, or 0 */

	u64 busy;		/* being populated, or a two-device write in flight */
	u64 frozen;		/* writeback's second try: user writes wait (rule 16) */
	u64 discarding;		/* a discard waits for its turn: user writes wait (rule 14) */
	u64 copying;		/* dirty sub-blocks that a copy took */
	u64 touched;		/* written since the copy took them; DEMOTING: valid before */
	u64 uncleaned;		/* copied to the origin, not known to be durable there */
	u64 must;		/* acknowledged data that only a new record makes findable */

	struct pc_disk disk;	/* durable */
	struct pc_disk next;	/* with PC_PENDING_COMPOSED */

	/* gathered; taken out again by what starts before composition */
	u64 g_dirty;		/* valid and dirty at gathering */
	u64 g_clean;		/* valid, clean, no write in flight */
	u64 g_drop;		/* valid on disk, not in memory */
	u64 durable;		/* written with FUA as a whole: needs no flush */

	void *waiters_head;	/* the caller's list of bios that wait */
	void *waiters_tail;
};

struct pc_pendings {
	struct pc_pending *pool;
	unsigned long *used;	/* a bit an object; pool lock to change */
	u32 nr;
	u32 nr_free;		/* pool lock */
	u32 free_head;		/* pool lock */
};

/* May sleep. 0 or -ENOMEM. */
int pc_pendings_init(struct pc_pendings *ps, u32 nr);
void pc_pendings_exit(struct pc_pendings *ps);
size_t pc_pendings_memory(const struct pc_pendings *ps);

/*
 * A write waits for the other kind of intent, which takes a moment with no write or
 * copy in flight: nothing new starts on the block meanwhile, or it might never come.
 */
static inline bool pc_pending_wants_change(const struct pc_pending *p)
{
	u16 has = p->disk.flags & PC_BLOCK_INTENTS;

	return has && p->want && p->want != has;
}

/* Under pool and shard lock. NULL when the pool is empty. blk has none yet. */
struct pc_pending *pc_pending_alloc(struct pc_pendings *ps, struct pc_blocks *b,
				    struct pc_block *blk);
/* Under pool and shard lock. The block takes over the durable intent flags. */
void pc_pending_free(struct pc_pendings *ps, struct pc_blocks *b, struct pc_pending *p);
/* Nothing left to wait for: memory and disk agree and nobody uses the object. */
bool pc_pending_is_done(const struct pc_blocks *b, const struct pc_pending *p);

static inline struct pc_pending *pc_pending_of(const struct pc_pendings *ps,
					       const struct pc_block *blk)
{
	return blk->pending == PC_NONE ? NULL : &ps->pool[blk->pending];
}

static inline u64 pc_pending_busy(const struct pc_pendings *ps, const struct pc_block *blk)
{
	return blk->pending == PC_NONE ? 0 : ps->pool[blk->pending].busy;
}

/*
 * Questions to every member of the set. p may be NULL (the disk agrees with blk).
 * any_valid: sub-blocks that some member calls valid. dropped: those of them that
 * memory does not: nothing may be populated there before a commit.
 */
u64 pc_disk_any_valid(const struct pc_block *blk, const struct pc_pending *p);
u64 pc_disk_dropped(const struct pc_block *blk, const struct pc_pending *p);
/* Sub-blocks that every member calls dirty, or valid under "cache wins". */
u64 pc_disk_cache_wins(const struct pc_block *blk, const struct pc_pending *p);
/*
 * Sub-blocks where a write may not change the cache copy alone / both copies / the
 * origin alone before a commit that makes every member agree.
 */
u64 pc_disk_denies_cache_write(const struct pc_block *blk, const struct pc_pending *p);
u64 pc_disk_denies_both_write(const struct pc_block *blk, const struct pc_pending *p);
u64 pc_disk_denies_origin_write(const struct pc_block *blk, const struct pc_pending *p);
/* Some member says dirty or "cache wins" somewhere. */
bool pc_disk_any_cache_wins(const struct pc_block *blk, const struct pc_pending *p);

/* Events; under the shard lock. p may be NULL where the disk agrees. */
/* A user write to sub-blocks begins: takes out what it invalidates. */
void pc_pending_write_starts(struct pc_pending *p, u64 mask);
/* In-core valid and dirty bits go (discard, error, writearound). */
void pc_pending_drop(struct pc_block *blk, struct pc_pending *p, u64 mask);
/*
 * A write to the cache alone completed: sub-blocks for whose data a new record is
 * needed before a FLUSH may be acknowledged.
 */
u64 pc_pending_needs_record(const struct pc_block *blk, const struct pc_pending *p, u64 mask);

void pc_pending_gather(const struct pc_blocks *b, struct pc_pending *p);
/*
 * cache_ok, origin_ok: all that had completed at gathering is durable there.
 * may_intend: a new intent fits under the cap; else want is forgotten. True: next differs from disk and
 * awaits its commit; what was gathered is used up either way.
 */
bool pc_pending_compose(const struct pc_blocks *b, struct pc_pending *p, bool cache_ok,
			bool origin_ok, bool may_intend);
/*
 * The same for what needs no flush: a new intent, a demotion or a drop of what the
 * disk calls clean, data written with FUA. Leaves alone what was gathered.
 */
bool pc_pending_compose_asked(const struct pc_blocks *b, struct pc_pending *p, bool may_intend);
/* The commit of next is durable. */
void pc_pending_committed(struct pc_pending *p);

#endif
