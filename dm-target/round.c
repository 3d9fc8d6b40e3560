// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Device flush rounds (round.h).
 *
 * The flush is submitted from a work item, since who wants it may be in an
 * interrupt, and ends in an interrupt, where the waiters are told. The one bio is
 * embedded: a flush needs no memory.
 */
#include <linux/blkdev.h>

#include "compat.h"
#include "round.h"

static void tell(struct list_head *waiters, int err)
{
	struct pc_round_wait *w, *next;

	list_for_each_entry_safe(w, next, waiters, list) {
		list_del(&w->list);
		w->done(w, err);
	}
}

static void end_flush(struct bio *bio)
{
	struct pc_round *r = bio->bi_private;
	int err = blk_status_to_errno(bio->bi_status);
	unsigned long flags;
	LIST_HEAD(waiters);

	bio_uninit(bio);
	spin_lock_irqsave(&r->lock, flags);
	if (err) {
		if (r->had_user)
			atomic_set(&r->unflushed, 1);
		if (r->had_copy)
			atomic_set(&r->unflushed_copy, 1);
	}
	r->running = false;
	list_splice_init(&r->now, &waiters);
	if (!list_empty(&r->next))
		queue_work(r->wq, &r->work);
	spin_unlock_irqrestore(&r->lock, flags);
	tell(&waiters, err);
}

static void round_work(struct work_struct *work)
{
	struct pc_round *r = container_of(work, struct pc_round, work);
	struct pc_round_wait *w;
	bool copies = false, flush;
	LIST_HEAD(waiters);

	spin_lock_irq(&r->lock);
	if (r->running || list_empty(&r->next)) {
		spin_unlock_irq(&r->lock);
		return;
	}
	list_for_each_entry(w, &r->next, list)
		copies |= w->copies;
	/* cleared before the flush is submitted: what completes now is the next one's */
	r->had_user = atomic_xchg(&r->unflushed, 0);
	r->had_copy = (r->had_user || copies) && atomic_xchg(&r->unflushed_copy, 0);
	flush = r->had_user || r->had_copy;
	list_splice_init(&r->next, flush ? &r->now : &waiters);
	r->running = flush;
	spin_unlock_irq(&r->lock);
	if (!flush) {
		tell(&waiters, 0);
		return;
	}
	atomic64_inc(&r->nr_flushes);
	bio_init(&r->bio, r->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | REQ_SYNC);
	r->bio.bi_private = r;
	r->bio.bi_end_io = end_flush;
	submit_bio_noacct(&r->bio);
}

/* Under the lock. */
static bool is_clean(struct pc_round *r)
{
	return !(r->running && r->had_user) && list_empty(&r->next) &&
	       !atomic_read(&r->unflushed);
}

bool pc_round_has_no_copy(struct pc_round *r)
{
	unsigned long flags;
	bool none;

	spin_lock_irqsave(&r->lock, flags);
	none = !(r->running && r->had_copy) && !atomic_read(&r->unflushed_copy);
	spin_unlock_irqrestore(&r->lock, flags);
	return none;
}

void pc_round_wait(struct pc_round *r, struct pc_round_wait *w, bool copies)
{
	unsigned long flags;
	bool clean;

	w->copies = copies;
	spin_lock_irqsave(&r->lock, flags);
	clean = r->gone ||
		(is_clean(r) && !(copies && (r->running || atomic_read(&r->unflushed_copy))));
	if (!clean) {
		list_add_tail(&w->list, &r->next);
		if (!r->running)
			queue_work(r->wq, &r->work);
	}
	spin_unlock_irqrestore(&r->lock, flags);
	if (clean)
		w->done(w, 0);
}

void pc_round_gone(struct pc_round *r, bool gone)
{
	unsigned long flags;

	spin_lock_irqsave(&r->lock, flags);
	r->gone = gone;
	spin_unlock_irqrestore(&r->lock, flags);
}

void pc_round_init(struct pc_round *r, struct block_device *bdev, struct workqueue_struct *wq)
{
	r->bdev = bdev;
	r->wq = wq;
	r->gone = false;
	/*
	 * What others wrote there before, this device under another table or the origin
	 * without a cache, may lie there unflushed: the first FLUSH is theirs, too.
	 */
	atomic_set(&r->unflushed, 1);
	atomic_set(&r->unflushed_copy, 1);
	INIT_WORK(&r->work, round_work);
	spin_lock_init(&r->lock);
	INIT_LIST_HEAD(&r->now);
	INIT_LIST_HEAD(&r->next);
}
