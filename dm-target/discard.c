// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Discards (discard.h), one after the other in a worker that may wait.
 *
 * Only whole sub-blocks are discarded, on the cache and on the origin alike. A
 * block's turn comes when no write, fill or copy is in flight on the sub-blocks;
 * meanwhile new writes to them wait (pending.discarding). Then the mask is dropped,
 * the drop is committed, the discard goes down, and is counted as a write to the
 * origin until it completes (rule 6).
 */
#include "broken.h"
#include "cache.h"
#include "discard.h"
#include "flush.h"
#include "reclaim.h"

/* The part of the bio that covers whole sub-blocks, in sectors. */
static void trim(struct pc_cache *pc, struct bio *bio, u64 *start, u64 *end)
{
	u32 sub = pc->blocks.sub_sectors, offset, in_sub;
	u64 first = bio->bi_iter.bi_sector, last = bio_end_sector(bio);
	u64 block;

	pc_blocks_of_sector(&pc->blocks, first, &offset);
	in_sub = offset & (sub - 1);
	block = first - offset;
	if (in_sub)
		first = min(first - in_sub + sub, block + pc->block_sectors);
	if (last < pc->blocks.origin_sectors) {
		pc_blocks_of_sector(&pc->blocks, last, &offset);
		last -= offset & (sub - 1);
	}
	*start = first;
	*end = max(first, last);
}

/* Sub-blocks of block o in [start, end), which are whole ones. */
static bool mask_of(struct pc_cache *pc, pc_oblock_t o, u64 start, u64 end, u32 *first, u32 *last)
{
	u64 base = pc_blocks_sector(&pc->blocks, o);
	u64 from = max(start, base);
	u64 to = min(end, base + pc_blocks_length(&pc->blocks, o));

	if (from >= to)
		return false;
	*first = (from - base) >> pc->blocks.sub_shift;
	*last = (to - base - 1) >> pc->blocks.sub_shift;
	return true;
}

static bool is_quiet(const struct pc_block *blk, const struct pc_pending *p, u64 mask)
{
	return !((p->busy | p->copying) & mask) && !blk->writes[0] && !blk->writes[1] &&
	       !(blk->flags & PC_BLOCK_DEMOTING);
}

static bool block_is_quiet(struct pc_cache *pc, pc_oblock_t o, u64 mask)
{
	spinlock_t *lock = pc_shard_lock(pc, o);
	struct pc_block *blk;
	bool quiet;

	spin_lock_irq(lock);
	blk = pc_blocks_find(&pc->blocks, o);
	quiet = !blk || blk->pending == PC_NONE ||
		is_quiet(blk, pc_pending_of(&pc->pendings, blk), mask);
	spin_unlock_irq(lock);
	return quiet;
}

/*
 * Drops sub-blocks of block o, if it is mapped, and keeps writes to them out until
 * release_block(). *dropped: a commit is needed. pass: the discard goes to the origin
 * and is counted from here on, because a block that is not mapped has nothing else
 * that keeps a fill or a populating write out (rule 6). False: metadata, or the
 * flushes that records wait for, have failed.
 */
static bool drop_block(struct pc_cache *pc, struct bio *bio, pc_oblock_t o, u32 first, u32 last,
		       bool pass, bool *dropped)
{
	spinlock_t *lock = pc_shard_lock(pc, o);
	u64 mask = pc_mask(first, last);
	struct pc_block *blk;
	struct pc_pending *p;
	bool ok = true;

	for (;;) {
		spin_lock_irq(lock);
		blk = pc_blocks_find(&pc->blocks, o);
		if (!blk)
			break;
		p = pc_get_pending(pc, blk);
		if (!p && (READ_ONCE(pc->failed) || !pc_may_wait_record(pc, bio))) {
			/* none comes back: what is not recorded stays so */
			ok = false;
			break;
		}
		if (p) {
			pc_bio(bio)->waits_record = false;
			if (is_quiet(blk, p, mask)) {
				p->discarding = mask;
				pc_wake_pending(pc, p);
				pc_drop(pc, blk, p, mask);
				p->flags |= PC_PENDING_URGENT;
				*dropped |= pc_disk_dropped(blk, p) & mask;
				break;
			}
			/* the counts are the block's: keep all new writes out */
			p->discarding = ~0ULL;
		}
		spin_unlock_irq(lock);
		if (!p)
			pc_commit_run(&pc->commit);
		/* the time-out is for wake-ups that other sub-blocks swallowed */
		wait_event_timeout(pc->discard_wait, block_is_quiet(pc, o, mask), HZ / 10);
	}
	if (pass)
		pc_origin_write_starts(pc, o, first, last);
	spin_unlock_irq(lock);
	return ok;
}

/* Lets writes in again. False: the drop is not durable. */
static bool release_block(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last)
{
	spinlock_t *lock = pc_shard_lock(pc, o);
	u64 mask = pc_mask(first, last);
	struct pc_block *blk;
	struct pc_pending *p;
	bool durable = true;

	spin_lock_irq(lock);
	blk = pc_blocks_find(&pc->blocks, o);
	p = blk ? pc_pending_of(&pc->pendings, blk) : NULL;
	if (p) {
		durable = !(pc_disk_dropped(blk, p) & mask);
		p->discarding &= ~mask;
		pc_wake_pending(pc, p);
		pc_put_pending(pc, p);
	}
	spin_unlock_irq(lock);
	return durable;
}

static void discard(struct pc_cache *pc, struct bio *bio)
{
	bool dropped = false, durable = true, pass;
	u64 start, end, o, o_end;
	u32 first, last, ignored;

	trim(pc, bio, &start, &end);
	if (start >= end || READ_ONCE(pc->failed)) {
		/* metadata failed: no drop would be durable, so nothing is dropped */
		pc_end_bio(bio, start >= end ? BLK_STS_OK : BLK_STS_IOERR);
		return;
	}
	pass = pc->discard_passdown && pc->origin_discards;
	o = pc_from_oblock(pc_blocks_of_sector(&pc->blocks, start, &ignored));
	o_end = pc_from_oblock(pc_blocks_of_sector(&pc->blocks, end - 1, &ignored)) + 1;
	for (; o < o_end; o++) {
		if (mask_of(pc, pc_oblock(o), start, end, &first, &last))
			durable &= drop_block(pc, bio, pc_oblock(o), first, last, pass,
					      &dropped);
		cond_resched();
	}
	if (dropped && !PC_BREAK_RULE14)
		pc_commit_run(&pc->commit);
	o = pc_from_oblock(pc_blocks_of_sector(&pc->blocks, start, &ignored));
	for (; o < o_end; o++)
		if (mask_of(pc, pc_oblock(o), start, end, &first, &last))
			durable &= release_block(pc, pc_oblock(o), first, last) || PC_BREAK_RULE14;

	bio->bi_iter.bi_sector = start;
	bio->bi_iter.bi_size = (end - start) << SECTOR_SHIFT;
	pc_bio(bio)->iter = bio->bi_iter;
	if (!pass || !durable) {
		if (pass)
			pc_discard_end(pc, bio);
		pc_end_bio(bio, durable ? BLK_STS_OK : BLK_STS_IOERR);
		return;
	}
	pc_bio(bio)->kind = PC_BIO_DISCARD;
	WRITE_ONCE(pc->last_user_origin, jiffies);
	bio_set_dev(bio, pc->origin_dev->bdev);
	dm_submit_bio_remap(bio, NULL);
}

void pc_discard_end(struct pc_cache *pc, struct bio *bio)
{
	struct bvec_iter *iter = &pc_bio(bio)->iter;
	u64 start = iter->bi_sector, end = start + (iter->bi_size >> SECTOR_SHIFT);
	u32 first, last, ignored;
	u64 o, o_end;

	pc_round_note(&pc->origin_round);
	o = pc_from_oblock(pc_blocks_of_sector(&pc->blocks, start, &ignored));
	o_end = pc_from_oblock(pc_blocks_of_sector(&pc->blocks, end - 1, &ignored)) + 1;
	for (; o < o_end; o++)
		if (mask_of(pc, pc_oblock(o), start, end, &first, &last))
			pc_origin_write_ends(pc, pc_oblock(o), first, last);
}

static void discard_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, discard_work);
	struct bio *bio;

	for (;;) {
		spin_lock_irq(&pc->deferred_lock);
		bio = bio_list_pop(&pc->discards);
		spin_unlock_irq(&pc->deferred_lock);
		if (!bio)
			break;
		discard(pc, bio);
	}
}

void pc_discard_bio(struct pc_cache *pc, struct bio *bio)
{
	unsigned long flags;

	pc_count(pc, PC_STAT_DISCARD);
	spin_lock_irqsave(&pc->deferred_lock, flags);
	bio_list_add(&pc->discards, bio);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	queue_work(pc->discard_wq, &pc->discard_work);
}

int pc_discard_cblocks(struct pc_cache *pc, u32 begin, u32 end)
{
	int err = 0;
	u32 c;

	for (c = begin; c < end; c++) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_block *blk = pc_lock_cblock(pc, c, &lock, &flags);

		if (!blk)
			continue;
		if (!(blk->flags & PC_BLOCK_DEMOTING) && !pc_reclaim_demote(pc, blk, true))
			err = -EBUSY;
		spin_unlock_irqrestore(lock, flags);
		cond_resched();
	}
	pc_commit_run(&pc->commit);
	return READ_ONCE(pc->failed) ? -EIO : err;
}

int pc_discard_init(struct pc_cache *pc)
{
	bio_list_init(&pc->discards);
	init_waitqueue_head(&pc->discard_wait);
	INIT_WORK(&pc->discard_work, discard_work);
	pc->discard_wq = alloc_ordered_workqueue("pc_discard/%s", WQ_MEM_RECLAIM, pc->name);
	return pc->discard_wq ? 0 : -ENOMEM;
}

void pc_discard_exit(struct pc_cache *pc)
{
	if (pc->discard_wq)
		destroy_workqueue(pc->discard_wq);
	pc->discard_wq = NULL;
}
