// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Flushes and the contents of commits (flush.h).
 *
 * Device flushes go in rounds, one at a time (round_lock): a round clears
 * `unflushed` just before it submits and sets it again if it fails. A FLUSH that
 * needs no record waits for a round of flush_work; one that does waits for a cycle
 * of the committer, whose prepare step makes the round. A FLUSH on a device where
 * nothing is unflushed and no round is under way ends at once.
 */
#include <linux/completion.h>

#include "cache.h"
#include "flush.h"
#include "intent.h"
#include "reclaim.h"

struct round {
	struct completion done;
	atomic_t left;
};

static void end_round_bio(struct bio *bio)
{
	struct round *r = bio->bi_private;

	if (atomic_dec_and_test(&r->left))
		complete(&r->done);
}

static void submit_flush(struct round *r, struct bio *bio, struct dm_dev *dev)
{
	bio_init(bio, dev->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | REQ_SYNC);
	bio->bi_private = r;
	bio->bi_end_io = end_round_bio;
	atomic_inc(&r->left);
	submit_bio_noacct(bio);
}

/*
 * Makes durable what had completed on the cache, and on the origin: copies_too,
 * whatever lies there; else only if users' writes do. Returns the first error.
 */
static int flush_round(struct pc_cache *pc, bool copies_too)
{
	bool cache, origin, copy;
	struct bio cache_bio, origin_bio;
	struct round r;
	int err = 0;

	mutex_lock(&pc->round_lock);
	spin_lock_irq(&pc->flush_lock);
	pc->round_running = true;
	cache = atomic_xchg(&pc->cache_state.unflushed, 0);
	origin = atomic_read(&pc->origin_state.unflushed) ||
		 (copies_too && atomic_read(&pc->origin_state.unflushed_copy));
	copy = origin && atomic_xchg(&pc->origin_state.unflushed_copy, 0);
	if (origin)
		atomic_set(&pc->origin_state.unflushed, 0);
	spin_unlock_irq(&pc->flush_lock);
	/* cleared before the flushes are submitted; pairs with pc_flush_note() */
	smp_mb();

	init_completion(&r.done);
	atomic_set(&r.left, 1);
	if (cache) {
		pc_count(pc, PC_STAT_CACHE_FLUSH);
		submit_flush(&r, &cache_bio, pc->cache_dev);
	}
	if (origin) {
		pc_count(pc, PC_STAT_ORIGIN_FLUSH);
		submit_flush(&r, &origin_bio, pc->origin_dev);
	}
	if (!atomic_dec_and_test(&r.left))
		wait_for_completion_io(&r.done);
	if (cache && cache_bio.bi_status) {
		err = blk_status_to_errno(cache_bio.bi_status);
		atomic_set(&pc->cache_state.unflushed, 1);
		DMERR_LIMIT("%s: flush of the cache device %s failed: error %d", pc->name,
			    pc->cache_dev->name, err);
	}
	if (origin && origin_bio.bi_status) {
		err = blk_status_to_errno(origin_bio.bi_status);
		atomic_set(&pc->origin_state.unflushed, 1);
		if (copy)
			atomic_set(&pc->origin_state.unflushed_copy, 1);
		DMERR_LIMIT("%s: flush of the origin device %s failed: error %d", pc->name,
			    pc->origin_dev->name, err);
	}
	if (cache)
		bio_uninit(&cache_bio);
	if (origin)
		bio_uninit(&origin_bio);
	spin_lock_irq(&pc->flush_lock);
	pc->round_running = false;
	spin_unlock_irq(&pc->flush_lock);
	mutex_unlock(&pc->round_lock);
	return err;
}

static void end_all(struct bio_list *list, int err)
{
	struct bio *bio;

	while ((bio = bio_list_pop(list)))
		pc_end_bio(bio, errno_to_blk_status(err));
}

static void run_flushes(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, flush_work);
	struct bio_list list;

	for (;;) {
		spin_lock_irq(&pc->flush_lock);
		list = pc->flushes;
		bio_list_init(&pc->flushes);
		spin_unlock_irq(&pc->flush_lock);
		if (bio_list_empty(&list))
			break;
		end_all(&list, flush_round(pc, false));
	}
}

void pc_flush_bio(struct pc_cache *pc, struct bio *bio)
{
	enum { NOTHING, ROUND, RECORD } todo = ROUND;
	unsigned long flags;

	pc_count(pc, PC_STAT_FLUSH);
	spin_lock_irqsave(&pc->stream_lock, flags);
	pc_stream_flushed(&pc->streams);
	spin_unlock_irqrestore(&pc->stream_lock, flags);

	spin_lock_irqsave(&pc->flush_lock, flags);
	if (atomic_read(&pc->nr_must)) {
		todo = RECORD;
		bio_list_add(&pc->record_flushes, bio);
	} else if (!pc->round_running && bio_list_empty(&pc->flushes) &&
		   !atomic_read(&pc->cache_state.unflushed) &&
		   !atomic_read(&pc->origin_state.unflushed)) {
		todo = NOTHING;
	} else {
		bio_list_add(&pc->flushes, bio);
	}
	spin_unlock_irqrestore(&pc->flush_lock, flags);
	if (todo == NOTHING)
		pc_end_bio(bio, BLK_STS_OK);
	else if (todo == ROUND)
		queue_work(pc->flush_wq, &pc->flush_work);
	else
		pc_commit_kick(&pc->commit, PC_COMMIT_URGENT);
}

void pc_flush_fua(struct pc_cache *pc, struct bio *bio, bool is_durable)
{
	unsigned long flags;

	spin_lock_irqsave(&pc->flush_lock, flags);
	bio_list_add(is_durable ? &pc->record_fuas : &pc->record_flushes, bio);
	spin_unlock_irqrestore(&pc->flush_lock, flags);
	pc_commit_kick(&pc->commit, PC_COMMIT_URGENT);
}

/* Locks the shard of a pending object that is in use, or returns NULL. */
static struct pc_pending *lock_pending(struct pc_cache *pc, u32 i, spinlock_t **lock,
				       unsigned long *flags)
{
	struct pc_pending *p = &pc->pendings.pool[i];
	u32 shard = READ_ONCE(p->shard);

	*lock = &pc->shards[shard].lock;
	spin_lock_irqsave(*lock, *flags);
	/* in use and of this shard: then it stays so while the lock is held */
	if (test_bit(i, pc->pendings.used) && p->shard == shard &&
	    pc->blocks.table[p->cblock].pending == i)
		return p;
	spin_unlock_irqrestore(*lock, *flags);
	return NULL;
}

static bool differs(struct pc_cache *pc, const struct pc_pending *p)
{
	const struct pc_block *blk = &pc->blocks.table[p->cblock];

	return (blk->flags & PC_BLOCK_DEMOTING) || p->want || p->must || p->uncleaned ||
	       (p->flags & PC_PENDING_CLEAR) || p->disk.valid != blk->valid ||
	       p->disk.dirty != blk->dirty ||
	       (p->disk.flags & PC_BLOCK_MAPPED) != (blk->flags & PC_BLOCK_MAPPED);
}

/* Returns whether there is anything to record. */
static bool gather(struct pc_cache *pc)
{
	bool any = false;
	u32 i;

	for_each_set_bit(i, pc->pendings.used, pc->pendings.nr) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_pending *p = lock_pending(pc, i, &lock, &flags);

		if (!p)
			continue;
		pc_pending_gather(&pc->blocks, p);
		any |= differs(pc, p);
		spin_unlock_irqrestore(lock, flags);
		cond_resched();
	}
	return any;
}

static void prepare(void *context, bool full)
{
	struct pc_cache *pc = context;
	bool any;

	spin_lock_irq(&pc->flush_lock);
	pc->cycle_flushes = pc->record_flushes;
	bio_list_init(&pc->record_flushes);
	pc->cycle_fuas = pc->record_fuas;
	bio_list_init(&pc->record_fuas);
	spin_unlock_irq(&pc->flush_lock);

	pc->cycle_full = full;
	pc->cycle_cache_ok = pc->cycle_origin_ok = false;
	pc->cycle_err = 0;
	pc->cycle_cursor = 0;
	any = gather(pc);
	if (!(full && any) && bio_list_empty(&pc->cycle_flushes))
		return;
	pc->cycle_err = flush_round(pc, full);
	if (pc->cycle_err)
		return;
	/* rounds are serial: what is not unflushed now is durable */
	pc->cycle_cache_ok = true;
	pc->cycle_origin_ok = full || !atomic_read(&pc->origin_state.unflushed_copy);
}

static void emit(struct pc_cache *pc, struct pc_pending *p, struct pc_record *r)
{
	const struct pc_block *blk = &pc->blocks.table[p->cblock];

	memset(r, 0, sizeof(*r));
	r->cblock = p->cblock;
	if (!(p->next.flags & PC_BLOCK_MAPPED))
		return;
	r->entry.oblock = pc_from_oblock(pc_blocks_oblock(blk));
	r->entry.valid = p->next.valid;
	r->entry.dirty = p->next.dirty;
	r->entry.flags = PC_ENTRY_MAPPED;
	if (p->next.flags & PC_BLOCK_INTENT_CACHE)
		r->entry.flags |= PC_ENTRY_INTENT_CACHE;
	if (p->next.flags & PC_BLOCK_INTENT_ORIGIN)
		r->entry.flags |= PC_ENTRY_INTENT_ORIGIN;
}

static bool compose_one(struct pc_cache *pc, struct pc_pending *p, struct pc_record *r)
{
	struct pc_block *blk = &pc->blocks.table[p->cblock];
	u16 before, after;

	/* nobody waits: it rides on a full one, not on somebody's fsync */
	if (!pc->cycle_full && !p->must && !p->want && !(p->flags & PC_PENDING_URGENT) &&
	    !(blk->flags & PC_BLOCK_DEMOTING))
		return false;
	p->flags &= ~PC_PENDING_URGENT;
	if (!pc_pending_compose(&pc->blocks, p, pc->cycle_cache_ok, pc->cycle_origin_ok,
				pc_intent_has_room(pc))) {
		/* nothing new, but what was copied may be durable now */
		pc_update_dirty(pc, blk);
		pc_wake_pending(pc, p);
		pc_put_pending(pc, p);
		return false;
	}
	before = p->disk.flags & PC_BLOCK_INTENTS;
	after = p->next.flags & PC_BLOCK_INTENTS;
	if (after)
		/* counted when asked for, so that the cap holds */
		pc_intent_changes(pc, p->cblock, before, after);
	emit(pc, p, r);
	return true;
}

static size_t compose(void *context, struct pc_record *records, size_t max)
{
	struct pc_cache *pc = context;
	size_t n = 0;
	u32 i;

	if (READ_ONCE(pc->failed))
		return 0;
	for (i = pc->cycle_cursor; n < max; i++) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_pending *p;

		i = find_next_bit(pc->pendings.used, pc->pendings.nr, i);
		if (i >= pc->pendings.nr)
			break;
		p = lock_pending(pc, i, &lock, &flags);
		if (!p)
			continue;
		if (compose_one(pc, p, &records[n]))
			n++;
		spin_unlock_irqrestore(lock, flags);
		cond_resched();
	}
	pc->cycle_cursor = i;
	return n;
}

static void committed_one(struct pc_cache *pc, u32 cblock)
{
	struct pc_block *blk;
	struct pc_pending *p;
	unsigned long flags;
	spinlock_t *lock;
	u16 before;
	u64 must;

	blk = pc_lock_cblock(pc, cblock, &lock, &flags);
	if (WARN_ON_ONCE(!blk || blk->pending == PC_NONE)) {
		if (blk)
			spin_unlock_irqrestore(lock, flags);
		return;
	}
	p = pc_pending_of(&pc->pendings, blk);
	before = p->disk.flags & PC_BLOCK_INTENTS;
	must = p->must;
	pc_pending_committed(p);
	pc_update_must(pc, p, must);
	if (!(p->disk.flags & PC_BLOCK_INTENTS))
		pc_intent_changes(pc, cblock, before, 0);
	pc_wake_pending(pc, p);
	if ((blk->flags & PC_BLOCK_DEMOTING) && !(p->disk.flags & PC_BLOCK_MAPPED)) {
		pc_reclaim_finish(pc, blk, p);
	} else {
		pc_update_dirty(pc, blk);
		pc_put_pending(pc, p);
	}
	spin_unlock_irqrestore(lock, flags);
}

/* Metadata failed: nothing will be recorded any more (rule 15). */
static void fail(struct pc_cache *pc, int err)
{
	u32 i;

	if (READ_ONCE(pc->failed))
		return;
	WRITE_ONCE(pc->failed, true);
	DMERR("%s: writing the metadata device %s failed: error %d; the cache is read-only, run `polycache check`",
	      pc->name, pc->metadata_dev->name, err);
	pc_metadata_set_needs_check(pc->md);
	for_each_set_bit(i, pc->pendings.used, pc->pendings.nr) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_pending *p = lock_pending(pc, i, &lock, &flags);

		if (!p)
			continue;
		if (pc->blocks.table[p->cblock].flags & PC_BLOCK_DEMOTING) {
			pc->blocks.table[p->cblock].flags &= ~PC_BLOCK_DEMOTING;
			atomic_dec(&pc->nr_demoting);
		}
		pc_wake_pending(pc, p);
		spin_unlock_irqrestore(lock, flags);
	}
	dm_table_event(pc->ti->table);
}

static void committed(void *context, const struct pc_record *records, size_t n, int err)
{
	struct pc_cache *pc = context;
	size_t i;

	if (err) {
		fail(pc, err);
		return;
	}
	for (i = 0; i < n; i++)
		committed_one(pc, records[i].cblock);
}

static void finish(void *context, int err)
{
	struct pc_cache *pc = context;
	bool failed = READ_ONCE(pc->failed);

	if (failed && !err && atomic_read(&pc->nr_must))
		err = -EIO;
	end_all(&pc->cycle_fuas, err);
	end_all(&pc->cycle_flushes, err ? err : pc->cycle_err);
	pc_wake_pool(pc);
	pc_reclaim_kick(pc);
	if (!failed && READ_ONCE(pc->pendings.nr_free) < pc->pendings.nr)
		pc_commit_schedule(&pc->commit);
}

const struct pc_commit_ops pc_flush_commit_ops = {
	.prepare = prepare,
	.compose = compose,
	.committed = committed,
	.finish = finish,
};

int pc_flush_init(struct pc_cache *pc)
{
	mutex_init(&pc->round_lock);
	spin_lock_init(&pc->flush_lock);
	bio_list_init(&pc->flushes);
	bio_list_init(&pc->record_flushes);
	bio_list_init(&pc->record_fuas);
	bio_list_init(&pc->cycle_flushes);
	bio_list_init(&pc->cycle_fuas);
	INIT_WORK(&pc->flush_work, run_flushes);
	pc->flush_wq = alloc_workqueue("pc_flush/%s", WQ_MEM_RECLAIM | WQ_HIGHPRI, 1, pc->name);
	return pc->flush_wq ? 0 : -ENOMEM;
}

void pc_flush_exit(struct pc_cache *pc)
{
	if (pc->flush_wq)
		destroy_workqueue(pc->flush_wq);
	pc->flush_wq = NULL;
}
