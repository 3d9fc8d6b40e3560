/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Device flush rounds (DESIGN rule 13): every flush of a device, whoever wants
 * it, is a round; rounds of a device are serial and shared.
 *
 * `unflushed` is set when a write completes, before its bio ends. A round clears it
 * just before it submits the flush, and sets it again if that fails. Whoever comes
 * while a round is in flight waits for it and only then looks at `unflushed`.
 */
#ifndef PC_ROUND_H
#define PC_ROUND_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/* One who waits; embedded in what waits. Owner: the round until done() is called. */
struct pc_round_wait {
	struct list_head list;
	/* Any context, no lock held. err: of the flush, 0 also where none was needed. */
	void (*done)(struct pc_round_wait *w, int err);
	bool copies;
};

struct pc_round {
	struct block_device *bdev;
	struct workqueue_struct *wq;
	struct work_struct work;
	atomic_t unflushed;		/* a user's write or a fill completed since the flush */
	atomic_t unflushed_copy;	/* writeback's copy did */
	atomic64_t nr_flushes;

	spinlock_t lock;		/* interrupts off; all that follows */
	bool running;			/* a flush is in flight */
	bool gone;			/* the device is, see pc_round_gone() */
	bool had_user, had_copy;	/* what it covers */
	struct list_head now;		/* who waits for it */
	struct list_head next;		/* who looks after it */
	struct bio bio;			/* owner: the flush in flight */
};

/* The workqueue stays the caller's. */
void pc_round_init(struct pc_round *r, struct block_device *bdev, struct workqueue_struct *wq);

/*
 * Any context. done() is called once all that had completed before this call is
 * durable: users' writes, and with copies also writeback's; perhaps at once.
 */
void pc_round_wait(struct pc_round *r, struct pc_round_wait *w, bool copies);

/* gone: nothing on the device is needed any more, from now on all are told at once. */
void pc_round_gone(struct pc_round *r, bool gone);

/* After a round: no copy of writeback's completed since a flush that has ended. */
bool pc_round_has_no_copy(struct pc_round *r);

/* A write completed, before its bio ends; pairs with the exchange in the round. */
static inline void pc_round_note(struct pc_round *r)
{
	if (!atomic_read(&r->unflushed))
		atomic_set(&r->unflushed, 1);
	/* pairs with atomic_xchg() in round_work(): visible before the bio ends */
	smp_mb__after_atomic();
}

static inline void pc_round_note_copy(struct pc_round *r)
{
	atomic_set(&r->unflushed_copy, 1);
	/* as above */
	smp_mb__after_atomic();
}

#endif
