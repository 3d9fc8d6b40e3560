// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] FLUSH, FUA, and the contents of commits (flush.h).
 *
 * A FLUSH that needs no record waits for a round of each device where something of
 * users lies unflushed; one that does waits for a cycle of the committer, whose
 * prepare step gathers and then waits for such rounds itself. What a record needs is
 * decided from what was gathered before the rounds (pending.h). Commits of what needs
 * no flush go in between, and leave alone what was gathered.
 */
#include "broken.h"
#include "cache.h"
#include "flush.h"
#include "intent.h"
#include "reclaim.h"

static void end_all(struct bio_list *list, int err)
{
	struct bio *bio;

	while ((bio = bio_list_pop(list)))
		pc_end_bio(bio, errno_to_blk_status(err));
}

static void flush_bio_leave(struct bio *bio, int err)
{
	struct pc_bio *pb = pc_bio(bio);

	if (err)
		WRITE_ONCE(pb->flush_err, err);
	if (atomic_dec_and_test(&pb->flush_left))
		pc_end_bio(bio, errno_to_blk_status(READ_ONCE(pb->flush_err)));
}

static void report(struct pc_cache *pc, bool cache, int err)
{
	if (err)
		DMERR_LIMIT("%s: flush of the %s device %s failed: error %d", pc->name,
			    cache ? "cache" : "origin",
			    cache ? pc->cache_dev->name : pc->origin_dev->name, err);
}

static void flush_bio_done(struct pc_round_wait *w, int err)
{
	struct pc_bio_wait *bw = container_of(w, struct pc_bio_wait, wait);
	struct pc_cache *pc = bw->pc;

	report(pc, bw == &pc_bio(bw->bio)->flush_waits[0], err);
	flush_bio_leave(bw->bio, err);
}

static void wait_cache(struct pc_cache *pc, struct pc_round_wait *w, bool copies)
{
	if (PC_BREAK_NO_CACHE_FLUSH)
		w->done(w, 0);
	else
		pc_round_wait(&pc->cache_round, w, copies);
}

void pc_flush_bio(struct pc_cache *pc, struct bio *bio)
{
	struct pc_bio *pb = pc_bio(bio);
	unsigned long flags;
	bool record;
	int i;

	pc_count(pc, PC_STAT_FLUSH);
	spin_lock_irqsave(&pc->flush_lock, flags);
	record = !PC_BREAK_RULE13 && atomic_read(&pc->nr_must);
	if (record)
		bio_list_add(&pc->record_flushes, bio);
	spin_unlock_irqrestore(&pc->flush_lock, flags);
	if (record) {
		pc_commit_kick(&pc->commit, PC_COMMIT_URGENT);
		return;
	}
	pb->flush_err = 0;
	atomic_set(&pb->flush_left, 3);
	for (i = 0; i < 2; i++) {
		pb->flush_waits[i].pc = pc;
		pb->flush_waits[i].bio = bio;
		pb->flush_waits[i].wait.done = flush_bio_done;
	}
	/* a cache device that is gone has nothing that anybody needs */
	if (READ_ONCE(pc->cache_gone))
		flush_bio_leave(bio, 0);
	else
		wait_cache(pc, &pb->flush_waits[0].wait, false);
	pc_round_wait(&pc->origin_round, &pb->flush_waits[1].wait, false);
	flush_bio_leave(bio, 0);
}

void pc_flush_fua(struct pc_cache *pc, struct bio *bio, bool is_durable)
{
	unsigned long flags;

	spin_lock_irqsave(&pc->flush_lock, flags);
	bio_list_add(is_durable ? &pc->record_fuas : &pc->record_flushes, bio);
	spin_unlock_irqrestore(&pc->flush_lock, flags);
	pc_commit_kick(&pc->commit, is_durable ? PC_COMMIT_FUA : PC_COMMIT_URGENT);
}

/* Locks the shard of a pending object that is in use, or returns NULL. */
static struct pc_pending *lock_pending(struct pc_cache *pc, u32 i, spinlock_t **lock,
				       unsigned long *flags)
{
	struct pc_pending *p = &pc->pendings.pool[i];
	u32 shard = READ_ONCE(p->shard);

	*lock = &pc->shards[shard].lock;
	spin_lock_irqsave(*lock, *flags);
	/*
	 * In use, and of a block of this shard: then it stays so while the lock is held.
	 * The block's own word counts: an object that is just being allocated for
	 * another shard may show anything, but its block does not lie.
	 */
	if (test_bit(i, pc->pendings.used) && READ_ONCE(p->shard) == shard) {
		const struct pc_block *blk = &pc->blocks.table[READ_ONCE(p->cblock)];

		/* cblock before the block's word; pairs with the spinlocks of the change */
		smp_rmb();
		if (READ_ONCE(blk->pending) == i) {
			/* and that before its mapping; pairs likewise */
			smp_rmb();
			if (pc_blocks_shard(pc_blocks_oblock(blk)) == shard)
				return p;
		}
	}
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

static void cycle_done(struct pc_round_wait *w, int err)
{
	struct pc_cycle_wait *cw = container_of(w, struct pc_cycle_wait, wait);
	struct pc_cache *pc = cw->pc;

	cw->err = err;
	report(pc, cw == &pc->cycle_waits[0], err);
	if (atomic_dec_and_test(&pc->cycle_left))
		pc_commit_kick(&pc->commit, PC_COMMIT_FLUSHED);
}

static bool prepare(void *context, bool full)
{
	struct pc_cache *pc = context;
	bool any;
	int i;

	spin_lock_irq(&pc->flush_lock);
	pc->cycle_flushes = pc->record_flushes;
	bio_list_init(&pc->record_flushes);
	spin_unlock_irq(&pc->flush_lock);

	pc->cycle_full = full;
	pc->cycle_cursor = 0;
	any = gather(pc);
	/* a stop flushes both devices, whatever there is to record (rule 22) */
	pc->cycle_flushed = (full && (any || !READ_ONCE(pc->running))) ||
			    !bio_list_empty(&pc->cycle_flushes);
	for (i = 0; i < 2; i++) {
		pc->cycle_waits[i].pc = pc;
		pc->cycle_waits[i].err = 0;
		pc->cycle_waits[i].wait.done = cycle_done;
	}
	if (!pc->cycle_flushed)
		return false;
	atomic_set(&pc->cycle_left, 2);
	wait_cache(pc, &pc->cycle_waits[0].wait, full);
	pc_round_wait(&pc->origin_round, &pc->cycle_waits[1].wait, full);
	return true;
}

static int cycle_err(const struct pc_cache *pc)
{
	return pc->cycle_waits[0].err ? pc->cycle_waits[0].err : pc->cycle_waits[1].err;
}

/* Before the records are made: what had completed at gathering is durable where? */
static void judge_flushes(struct pc_cache *pc)
{
	pc->cycle_cache_ok = pc->cycle_flushed && !pc->cycle_waits[0].err;
	/* without copies in the round: only if no copy lies there unflushed */
	pc->cycle_origin_ok = pc->cycle_flushed && !pc->cycle_waits[1].err &&
			      (pc->cycle_full || pc_round_has_no_copy(&pc->origin_round));
	if (PC_BREAK_RULE12)
		pc->cycle_cache_ok = pc->cycle_origin_ok = true;
}

static void ask(void *context)
{
	struct pc_cache *pc = context;

	spin_lock_irq(&pc->flush_lock);
	pc->cycle_fuas = pc->record_fuas;
	bio_list_init(&pc->record_fuas);
	spin_unlock_irq(&pc->flush_lock);
	pc->asked_cursor = 0;
}

/* The block stays, as if it had not been chosen. */
static void undo_demotion(struct pc_cache *pc, struct pc_block *blk, const struct pc_pending *p)
{
	blk->flags &= ~PC_BLOCK_DEMOTING;
	blk->valid = p->touched;
	atomic_dec(&pc->nr_demoting);
}

/*
 * After metadata failed no record comes: demotions are undone, and who waits comes back
 * for its error. At the end of each cycle, because who looked at `failed` just before it
 * was set has begun to wait, and kicked the committer, after the last time.
 */
static void settle_failed(struct pc_cache *pc)
{
	u32 i;

	for_each_set_bit(i, pc->pendings.used, pc->pendings.nr) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_pending *p = lock_pending(pc, i, &lock, &flags);

		if (!p)
			continue;
		if (pc->blocks.table[p->cblock].flags & PC_BLOCK_DEMOTING)
			undo_demotion(pc, &pc->blocks.table[p->cblock], p);
		p->want = 0;
		pc_wake_pending(pc, p);
		spin_unlock_irqrestore(lock, flags);
	}
}

static void asked(void *context, int err)
{
	struct pc_cache *pc = context;

	if (READ_ONCE(pc->failed)) {
		if (atomic_read(&pc->nr_must))
			err = -EIO;
		settle_failed(pc);
	}
	end_all(&pc->cycle_fuas, err);
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

/* Counts a new intent now, so that the cap holds, and makes the record. */
static void compose_record(struct pc_cache *pc, struct pc_pending *p, struct pc_record *r)
{
	u16 after = p->next.flags & PC_BLOCK_INTENTS;

	if (after)
		pc_intent_changes(pc, p->cblock, p->disk.flags & PC_BLOCK_INTENTS, after);
	emit(pc, p, r);
}

/*
 * Nothing is to be recorded of a demoted block that the disk does not know, because
 * it never got data, or lost it before a commit: it is free at once.
 */
static void finish_unrecorded(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p)
{
	if (!(blk->flags & PC_BLOCK_DEMOTING) || (p->disk.flags & PC_BLOCK_MAPPED))
		return;
	pc_wake_pending(pc, p);
	pc_reclaim_finish(pc, blk, p);
}

static bool compose_one(struct pc_cache *pc, struct pc_pending *p, struct pc_record *r)
{
	struct pc_block *blk = &pc->blocks.table[p->cblock];
	bool unmap = p->flags & PC_PENDING_G_UNMAP;

	/* nobody waits: it rides on a full one, not on somebody's fsync */
	if (!pc->cycle_full && !p->must && !p->want && !(p->flags & PC_PENDING_URGENT) &&
	    !(blk->flags & PC_BLOCK_DEMOTING))
		return false;
	p->flags &= ~PC_PENDING_URGENT;
	if (!pc_pending_compose(&pc->blocks, p, pc->cycle_cache_ok, pc->cycle_origin_ok,
				pc_intent_has_room(pc))) {
		/* nothing new, but what was copied may be durable now */
		pc_update_dirty(pc, blk);
		/* who waits for it to be gone would wait for as long as flushes fail */
		if (unmap && (blk->flags & PC_BLOCK_DEMOTING) &&
		    (p->disk.flags & PC_BLOCK_MAPPED) && pc->cycle_waits[1].err)
			undo_demotion(pc, blk, p);
		/* all who wait for that are woken, and ask again */
		if (cycle_err(pc))
			p->want = 0;
		pc_wake_pending(pc, p);
		if (blk->flags & PC_BLOCK_DEMOTING)
			finish_unrecorded(pc, blk, p);
		else
			pc_put_pending(pc, p);
		return false;
	}
	compose_record(pc, p, r);
	return true;
}

/* The same for what needs no flush. Who waits for more is not woken: it would spin. */
static bool compose_asked(struct pc_cache *pc, struct pc_pending *p, struct pc_record *r)
{
	struct pc_block *blk = &pc->blocks.table[p->cblock];
	u16 want = p->want;

	if (!want && !p->durable && !(p->flags & PC_PENDING_URGENT) &&
	    !(blk->flags & PC_BLOCK_DEMOTING))
		return false;
	if (pc_pending_compose_asked(&pc->blocks, p, pc_intent_has_room(pc))) {
		compose_record(pc, p, r);
		return true;
	}
	if (want && !p->want)
		pc_wake_pending(pc, p);
	finish_unrecorded(pc, blk, p);
	return false;
}

static size_t compose(void *context, struct pc_record *records, size_t max, bool asked)
{
	struct pc_cache *pc = context;
	u32 *cursor = asked ? &pc->asked_cursor : &pc->cycle_cursor;
	size_t n = 0;
	u32 i;

	if (READ_ONCE(pc->failed))
		return 0;
	if (!asked && !*cursor)
		judge_flushes(pc);
	for (i = *cursor; n < max; i++) {
		unsigned long flags;
		spinlock_t *lock;
		struct pc_pending *p;

		i = find_next_bit(pc->pendings.used, pc->pendings.nr, i);
		if (i >= pc->pendings.nr)
			break;
		p = lock_pending(pc, i, &lock, &flags);
		if (!p)
			continue;
		if (asked ? compose_asked(pc, p, &records[n]) : compose_one(pc, p, &records[n]))
			n++;
		spin_unlock_irqrestore(lock, flags);
		cond_resched();
	}
	*cursor = i;
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
	if (READ_ONCE(pc->failed))
		return;
	WRITE_ONCE(pc->failed, true);
	DMERR("%s: writing the metadata device %s failed: error %d; the cache is read-only, run `polycache check`",
	      pc->name, pc->metadata_dev->name, err);
	pc_metadata_set_needs_check(pc->md);
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

static bool finish(void *context, int err)
{
	struct pc_cache *pc = context;
	bool failed = READ_ONCE(pc->failed);
	int flush_err = cycle_err(pc);

	if (failed && !err && atomic_read(&pc->nr_must))
		err = -EIO;
	if (failed)
		settle_failed(pc);
	end_all(&pc->cycle_flushes, err ? err : flush_err);
	/* after the last record that needed no flush which failed */
	if (flush_err)
		WRITE_ONCE(pc->flush_failures, pc->flush_failures + 1);
	pc_wake_pool(pc);
	pc_reclaim_kick(pc);
	if (!failed && READ_ONCE(pc->pendings.nr_free) < pc->pendings.nr)
		pc_commit_schedule(&pc->commit);
	return flush_err;
}

const struct pc_commit_ops pc_flush_commit_ops = {
	.ask = ask,
	.asked = asked,
	.prepare = prepare,
	.finish = finish,
	.compose = compose,
	.committed = committed,
};

int pc_flush_init(struct pc_cache *pc)
{
	spin_lock_init(&pc->flush_lock);
	bio_list_init(&pc->record_flushes);
	bio_list_init(&pc->record_fuas);
	bio_list_init(&pc->cycle_flushes);
	bio_list_init(&pc->cycle_fuas);
	pc->flush_wq = alloc_workqueue("pc_flush/%s", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0, pc->name);
	if (!pc->flush_wq)
		return -ENOMEM;
	pc_round_init(&pc->cache_round, pc->cache_dev->bdev, pc->flush_wq);
	pc_round_init(&pc->origin_round, pc->origin_dev->bdev, pc->flush_wq);
	return 0;
}

void pc_flush_exit(struct pc_cache *pc)
{
	if (pc->flush_wq)
		destroy_workqueue(pc->flush_wq);
	pc->flush_wq = NULL;
}
