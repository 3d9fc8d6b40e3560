// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The reclaimer (reclaim.h): policy's victims -> demoting -> durable -> free.
 *
 * One work item, process context. Blocks on the free list are ready for any use:
 * the disk calls them unmapped. While the cache is not full yet the list is long
 * and nothing is demoted. Nobody waits here: an allocation that finds the list
 * empty bypasses and asks for more.
 */
#include "broken.h"
#include "cache.h"
#include "reclaim.h"

#define BATCH 64u
#define STUCK_MS 50u	/* after a search that found nothing */

static u32 nr_free(struct pc_cache *pc)
{
	return READ_ONCE(pc->blocks.nr_free);
}

/* Blocks that should be on the free list, those on their way included. */
static u32 wanted(struct pc_cache *pc)
{
	u32 want = pc->free_target;

	if (!want && atomic_read(&pc->free_demand))
		want = 1;
	return want;
}

static bool is_short(struct pc_cache *pc)
{
	return nr_free(pc) + atomic_read(&pc->nr_demoting) < wanted(pc);
}

void pc_reclaim_kick(struct pc_cache *pc)
{
	if (!is_short(pc) || READ_ONCE(pc->failed) || READ_ONCE(pc->stop_background))
		return;
	/* each miss comes by, and each commit that a fruitless search asked for */
	if (READ_ONCE(pc->reclaim_stuck) && time_before(jiffies, READ_ONCE(pc->reclaim_retry)))
		return;
	queue_work(pc->wq, &pc->reclaim_work);
}

pc_cblock_t pc_reclaim_alloc(struct pc_cache *pc)
{
	pc_cblock_t c;

	spin_lock(&pc->free_lock);
	c = pc_blocks_alloc(&pc->blocks);
	spin_unlock(&pc->free_lock);
	if (c == PC_CBLOCK_NONE) {
		pc_count(pc, PC_STAT_NO_FREE);
		atomic_set(&pc->free_demand, 1);
	}
	pc_reclaim_kick(pc);
	return c;
}

void pc_reclaim_free(struct pc_cache *pc, pc_cblock_t c)
{
	spin_lock(&pc->free_lock);
	pc_blocks_free(&pc->blocks, c);
	spin_unlock(&pc->free_lock);
	atomic_set(&pc->free_demand, 0);
}

bool pc_reclaim_demote(struct pc_cache *pc, struct pc_block *blk, bool with_flush)
{
	struct pc_pending *p = pc_pending_of(&pc->pendings, blk);

	if (READ_ONCE(pc->failed) || (blk->flags & PC_BLOCK_DEMOTING) || blk->dirty ||
	    !pc_block_is_idle(blk))
		return false;
	if (p && (p->busy || p->frozen || p->discarding || p->copying || p->uncleaned ||
		  p->must || p->want || p->waiters_head ||
		  (p->flags & PC_PENDING_COMPOSED)))
		return false;
	if (!with_flush && pc_disk_any_cache_wins(blk, p))
		return false;
	p = pc_get_pending(pc, blk);
	if (!p)
		return false;
	if (blk->flags & PC_BLOCK_STREAM)
		atomic_dec(&pc->nr_stream);
	blk->flags = (blk->flags & ~PC_BLOCK_STREAM) | PC_BLOCK_DEMOTING;
	p->flags |= PC_PENDING_URGENT;
	p->flags &= ~PC_PENDING_CLEAR;
	/* for the case that it is undone; nothing is written or copied meanwhile */
	p->touched = blk->valid;
	blk->valid = 0;
	atomic_inc(&pc->nr_demoting);
	if (PC_BREAK_RULE8)
		pc_reclaim_finish(pc, blk, p);
	return true;
}

void pc_reclaim_finish(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p)
{
	pc_cblock_t c = pc_blocks_index(&pc->blocks, blk);
	pc_oblock_t o = pc_blocks_oblock(blk);

	/* the caller woke the waiters */
	pc_update_dirty(pc, blk);
	spin_lock(&pc->pool_lock);
	pc_pending_free(&pc->pendings, &pc->blocks, p);
	spin_unlock(&pc->pool_lock);
	pc_blocks_remove(&pc->blocks, c);
	pc_host_removed(pc->policy, c, o);
	pc_reclaim_free(pc, c);
	atomic_dec(&pc->nr_demoting);
	atomic_dec(&pc->nr_resident);
	pc_count(pc, PC_STAT_DEMOTION);
}

/* Demotes what it can of a batch of victims. */
static u32 demote_batch(struct pc_cache *pc, u32 n, bool with_flush)
{
	pc_cblock_t victims[BATCH];
	u32 i, done = 0;

	n = pc_host_victims(pc->policy, min(n, BATCH), victims);
	for (i = 0; i < n; i++) {
		struct pc_block *blk;
		unsigned long flags;
		spinlock_t *lock;

		blk = pc_lock_cblock(pc, pc_from_cblock(victims[i]), &lock, &flags);
		if (!blk)
			continue;
		done += pc_reclaim_demote(pc, blk, with_flush);
		spin_unlock_irqrestore(lock, flags);
	}
	return done;
}

static void reclaim_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, reclaim_work);
	bool any = false, flushed = false;
	u32 fruitless = 0;

	/*
	 * First what is clean on disk, then what is not: a victim refused now is
	 * offered again only after all others, so a bound ends the search.
	 */
	while (is_short(pc) && !READ_ONCE(pc->stop_background) && fruitless < 64) {
		u32 n = wanted(pc) - nr_free(pc) - atomic_read(&pc->nr_demoting);
		u32 done = demote_batch(pc, n, flushed);

		any |= done;
		fruitless = done ? 0 : fruitless + 1;
		if (fruitless == 16)
			flushed = true;
		cond_resched();
	}
	if (fruitless && !any) {
		/* all dirty or in use: writeback first, which comes back here */
		WRITE_ONCE(pc->reclaim_retry, jiffies + msecs_to_jiffies(STUCK_MS));
		WRITE_ONCE(pc->reclaim_stuck, true);
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
		return;
	}
	WRITE_ONCE(pc->reclaim_stuck, false);
	if (any)
		pc_commit_kick(&pc->commit,
			       flushed ? PC_COMMIT_FULL : PC_COMMIT_URGENT);
}

void pc_reclaim_init(struct pc_cache *pc)
{
	u32 nr = pc->blocks.nr;

	INIT_WORK(&pc->reclaim_work, reclaim_work);
	pc->free_target = nr < 64 ? 0 : min(nr / 64, 16384u);
	if (nr >= 1024)
		pc->free_target = max(pc->free_target, 64u);
}
