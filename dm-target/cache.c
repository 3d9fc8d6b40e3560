// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The steps of cache.h that mapper and engines share.
 *
 * Owns the lists of bios that wait: on a pending object (shard lock), for the pool
 * (deferred lock), and ready to be retried by map.c's worker (deferred lock). A
 * woken bio always starts again at the lookup, so a wake-up that was not needed
 * costs time, never data.
 */
#include <linux/blk_types.h>

#include "broken.h"
#include "cache.h"
#include "pages.h"

u64 pc_stat_sum(struct pc_cache *pc, enum pc_stat s)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(pc->stats, cpu)->n[s];
	return sum;
}

struct pc_block *pc_lock_cblock(struct pc_cache *pc, u32 cblock, spinlock_t **lock,
				unsigned long *flags)
{
	struct pc_block *blk = &pc->blocks.table[cblock];
	u32 low = READ_ONCE(blk->oblock_low);
	pc_oblock_t o = pc_oblock((u64)READ_ONCE(blk->oblock_high) << 32 | low);

	/* o may be torn or old; under its lock the index tells whether it is right */
	*lock = pc_shard_lock(pc, o);
	spin_lock_irqsave(*lock, *flags);
	if (pc_blocks_find(&pc->blocks, o) == blk)
		return blk;
	spin_unlock_irqrestore(*lock, *flags);
	return NULL;
}

struct pc_pending *pc_get_pending(struct pc_cache *pc, struct pc_block *blk)
{
	struct pc_pending *p = pc_pending_of(&pc->pendings, blk);
	bool low;

	if (p)
		return p;
	spin_lock(&pc->pool_lock);
	p = pc_pending_alloc(&pc->pendings, &pc->blocks, blk);
	low = pc->pendings.nr_free < pc->pendings.nr / 3;
	spin_unlock(&pc->pool_lock);
	if (!p)
		pc_count(pc, PC_STAT_NO_PENDING);
	if (low)
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
	return p;
}

void pc_put_pending(struct pc_cache *pc, struct pc_pending *p)
{
	if (!pc_pending_is_done(&pc->blocks, p))
		return;
	spin_lock(&pc->pool_lock);
	pc_pending_free(&pc->pendings, &pc->blocks, p);
	spin_unlock(&pc->pool_lock);
	pc_wake_pool(pc);
}

static struct bio_list *waiters(struct pc_pending *p)
{
	BUILD_BUG_ON(sizeof(struct bio_list) != 2 * sizeof(void *));
	BUILD_BUG_ON(offsetof(struct pc_pending, waiters_tail) !=
		     offsetof(struct pc_pending, waiters_head) + sizeof(void *));
	return (struct bio_list *)&p->waiters_head;
}

void pc_wait_pending(struct pc_cache *pc, struct pc_pending *p, struct bio *bio)
{
	atomic_inc(&pc->nr_waiting);
	bio_list_add(waiters(p), bio);
}

bool pc_may_wait_record(struct pc_cache *pc, struct bio *bio)
{
	struct pc_bio *pb = pc_bio(bio);
	u16 failures = READ_ONCE(pc->flush_failures);

	if (pb->waits_record)
		return (u16)(failures - pb->flush_failures) < 2;
	pb->waits_record = true;
	pb->flush_failures = failures;
	return true;
}

static void retry(struct pc_cache *pc, struct bio_list *list)
{
	unsigned long flags;

	spin_lock_irqsave(&pc->deferred_lock, flags);
	bio_list_merge(&pc->deferred, list);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	queue_work(pc->wq, &pc->deferred_work);
}

void pc_wake_pending(struct pc_cache *pc, struct pc_pending *p)
{
	if (p->discarding)
		wake_up(&pc->discard_wait);
	if (bio_list_empty(waiters(p)))
		return;
	atomic_sub(bio_list_size(waiters(p)), &pc->nr_waiting);
	retry(pc, waiters(p));
	bio_list_init(waiters(p));
}

void pc_defer_bio(struct pc_cache *pc, struct bio *bio)
{
	struct bio_list list;

	bio_list_init(&list);
	bio_list_add(&list, bio);
	retry(pc, &list);
}

void pc_wait_pool(struct pc_cache *pc, struct bio *bio)
{
	unsigned long flags;

	pc_count(pc, PC_STAT_WAIT_POOL);
	spin_lock_irqsave(&pc->deferred_lock, flags);
	bio_list_add(&pc->pool_waiters, bio);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
}

void pc_wait_pages(struct pc_cache *pc, struct bio *bio)
{
	unsigned long flags;

	pc_count(pc, PC_STAT_WAIT_POOL);
	spin_lock_irqsave(&pc->deferred_lock, flags);
	bio_list_add(&pc->pool_waiters, bio);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	/*
	 * What came back before it was on the list woke nobody; what is in use will.
	 * Pairs with pc_wake_pool().
	 */
	smp_mb();
	if (!pc_pages_any_used(pc->pages))
		pc_wake_pool(pc);
}

void pc_wake_pool(struct pc_cache *pc)
{
	unsigned long flags;

	/* what is free now before the look at the list; pairs with pc_wait_pages() */
	smp_mb();
	if (bio_list_empty(&pc->pool_waiters))
		return;
	spin_lock_irqsave(&pc->deferred_lock, flags);
	bio_list_merge(&pc->deferred, &pc->pool_waiters);
	bio_list_init(&pc->pool_waiters);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	queue_work(pc->wq, &pc->deferred_work);
}

void pc_update_dirty(struct pc_cache *pc, struct pc_block *blk)
{
	struct pc_pending *p = pc_pending_of(&pc->pendings, blk);
	u32 c = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
	bool is_dirty = blk->dirty;

	if (is_dirty && !test_bit(c, pc->dirty_map))
		set_bit(c, pc->dirty_map);
	else if (!is_dirty && test_bit(c, pc->dirty_map))
		clear_bit(c, pc->dirty_map);

	/* a clean that is not durable counts as dirty (rule 24) */
	if (p)
		is_dirty |= p->uncleaned || p->disk.dirty ||
			    ((p->flags & PC_PENDING_COMPOSED) && p->next.dirty);
	if (is_dirty && !(blk->flags & PC_BLOCK_DIRTY)) {
		blk->flags |= PC_BLOCK_DIRTY;
		atomic_inc(&pc->nr_dirty);
	} else if (!is_dirty && (blk->flags & PC_BLOCK_DIRTY)) {
		blk->flags &= ~PC_BLOCK_DIRTY;
		atomic_dec(&pc->nr_dirty);
	}
}

void pc_update_must(struct pc_cache *pc, struct pc_pending *p, u64 old)
{
	if (!old && p->must)
		atomic_inc(&pc->nr_must);
	else if (old && !p->must)
		atomic_dec(&pc->nr_must);
}

void pc_add_must(struct pc_cache *pc, struct pc_pending *p, u64 mask)
{
	u64 old = p->must;

	p->must |= mask;
	pc_update_must(pc, p, old);
}

static atomic_t *origin_counter(struct pc_cache *pc, pc_oblock_t o, u32 sub)
{
	u32 h = pc_blocks_hash(o) + sub * 0x9e3779b9u;

	return &pc->origin_writes[h & (PC_NR_ORIGIN_WRITES - 1)];
}

u64 pc_origin_writes(struct pc_cache *pc, pc_oblock_t o, u64 mask)
{
	u64 busy = 0, left = PC_BREAK_RULE6 ? 0 : mask;

	while (left) {
		u32 sub = __ffs64(left);

		left &= left - 1;
		if (atomic_read(origin_counter(pc, o, sub)))
			busy |= 1ULL << sub;
	}
	return busy;
}

void pc_origin_write_starts(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last)
{
	for (; first <= last; first++)
		atomic_inc(origin_counter(pc, o, first));
}

void pc_origin_write_ends(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last)
{
	for (; first <= last; first++)
		atomic_dec(origin_counter(pc, o, first));
}

void pc_background_get(struct pc_cache *pc)
{
	atomic_inc(&pc->nr_background);
}

void pc_background_put(struct pc_cache *pc)
{
	unsigned long flags;

	if (atomic_add_unless(&pc->nr_background, -1, 1))
		return;
	/* whoever sees zero may free pc, but not before it has had this lock */
	spin_lock_irqsave(&pc->background_wait.lock, flags);
	if (atomic_dec_and_test(&pc->nr_background))
		wake_up_all_locked(&pc->background_wait);
	spin_unlock_irqrestore(&pc->background_wait.lock, flags);
}

void pc_background_wait(struct pc_cache *pc)
{
	wait_event(pc->background_wait, !atomic_read(&pc->nr_background));
	spin_lock_irq(&pc->background_wait.lock);
	spin_unlock_irq(&pc->background_wait.lock);
}

void pc_drop(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p, u64 mask)
{
	u64 old = p ? p->must : 0;

	pc_pending_drop(blk, p, mask);
	if (p)
		pc_update_must(pc, p, old);
	pc_update_dirty(pc, blk);
	pc_commit_schedule(&pc->commit);
}

void pc_end_bio(struct bio *bio, blk_status_t status)
{
	/* it may have completed once already: the throttlers must not see it twice */
	bio_clear_flag(bio, BIO_QOS_THROTTLED);
	bio_clear_flag(bio, BIO_QOS_MERGED);
	pc_bio(bio)->kind = PC_BIO_DONE;
	bio->bi_status = status;
	bio_endio(bio);
}
