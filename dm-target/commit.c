// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The group commit worker of commit.h.
 *
 * One delayed work on a workqueue of its own (DESIGN rule 20: nothing that a
 * commit waits for may wait for it on the same queue). Allocates nothing while it
 * runs. With nothing to commit there is no timer: every event that leaves memory
 * and disk different calls pc_commit_schedule(), and the full cycle that it asks for
 * comes at its time, whatever else is committed meanwhile.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "commit.h"

/* in wanted, besides PC_COMMIT_x: a full cycle is due at full_at */
#define TIMED		0x10ul
/* after a device flush that failed: who waits comes back at once, a dead device too */
#define RETRY_DELAY	(HZ / 10)

/* Composes and journals until nothing is left. Returns the first error. */
static int record(struct pc_commit *c, bool asked)
{
	int err = 0;
	size_t n;

	while (!err) {
		n = c->ops->compose(c->context, c->records, PC_COMMIT_BATCH, asked);
		if (!n)
			break;
		err = pc_metadata_commit(c->md, c->records, n);
		c->ops->committed(c->context, c->records, n, err);
		atomic64_inc(&c->nr_commits);
		atomic64_add(n, &c->nr_records);
	}
	return err;
}

static void finish_cycle(struct pc_commit *c)
{
	c->flushing = false;
	if (c->ops->finish(c->context, record(c, false)))
		WRITE_ONCE(c->not_before, jiffies + RETRY_DELAY);
	else
		WRITE_ONCE(c->not_before, jiffies);
	WRITE_ONCE(c->runs_done, c->runs_begun);
	wake_up_all(&c->wait);
	/* all are served: now, or the next one who waits would wait for it as well */
	if (!pc_metadata_failed(c->md) && pc_metadata_checkpoint_due(c->md))
		pc_metadata_checkpoint(c->md);
}

/* The timed full cycle that wanted holds: is it time? If not, it stays wanted. */
static bool is_due(struct pc_commit *c)
{
	long left = READ_ONCE(c->full_at) - jiffies;
	unsigned long old = READ_ONCE(c->wanted);

	if (left <= 0)
		return true;
	while (!try_cmpxchg(&c->wanted, &old, old | TIMED))
		;
	queue_delayed_work(c->wq, &c->work, left);
	return false;
}

static void run(struct pc_commit *c, unsigned long wanted)
{
	if (wanted & PC_COMMIT_FLUSHED)
		finish_cycle(c);
	/* nobody waits for a device flush who does not need one */
	c->ops->ask(c->context);
	c->ops->asked(c->context, record(c, true));
	if ((wanted & TIMED) && is_due(c))
		wanted |= PC_COMMIT_FULL;
	wanted &= PC_COMMIT_URGENT | PC_COMMIT_FULL;
	if (c->flushing) {
		c->later |= wanted;
		return;
	}
	wanted |= c->later;
	c->later = 0;
	if (!wanted)
		return;
	if (time_before(jiffies, READ_ONCE(c->not_before))) {
		/* asked for before it was known that the flushes fail */
		pc_commit_kick(c, wanted);
		return;
	}
	if (wanted & PC_COMMIT_FULL)
		c->runs_begun = atomic64_read(&c->runs_wanted);
	c->flushing = true;
	if (!c->ops->prepare(c->context, wanted & PC_COMMIT_FULL))
		finish_cycle(c);
}

static void commit_work(struct work_struct *work)
{
	struct pc_commit *c = container_of(to_delayed_work(work), struct pc_commit, work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&c->mutex);
	if (c->running)
		run(c, xchg(&c->wanted, 0));
	mutex_unlock(&c->mutex);
	memalloc_noio_restore(noio);
}

int pc_commit_init(struct pc_commit *c, const struct pc_commit_ops *ops, void *context,
		   const char *name)
{
	memset(c, 0, sizeof(*c));
	c->ops = ops;
	c->context = context;
	mutex_init(&c->mutex);
	init_waitqueue_head(&c->wait);
	INIT_DELAYED_WORK(&c->work, commit_work);
	c->records = kvmalloc_array(PC_COMMIT_BATCH, sizeof(*c->records), GFP_KERNEL);
	c->wq = alloc_ordered_workqueue("pc_commit/%s", WQ_MEM_RECLAIM | WQ_HIGHPRI, name);
	if (!c->records || !c->wq) {
		pc_commit_exit(c);
		return -ENOMEM;
	}
	return 0;
}

void pc_commit_exit(struct pc_commit *c)
{
	if (c->wq) {
		cancel_delayed_work_sync(&c->work);
		destroy_workqueue(c->wq);
	}
	kvfree(c->records);
	c->wq = NULL;
	c->records = NULL;
}

void pc_commit_start(struct pc_commit *c, struct pc_metadata *md)
{
	mutex_lock(&c->mutex);
	c->md = md;
	/* what was wanted before the stop is durable or lost, and has no timer */
	WRITE_ONCE(c->wanted, 0);
	WRITE_ONCE(c->not_before, jiffies);
	c->later = 0;
	c->running = true;
	mutex_unlock(&c->mutex);
}

void pc_commit_stop(struct pc_commit *c)
{
	for (;;) {
		mutex_lock(&c->mutex);
		/* a flush under way still kicks the worker */
		if (!c->flushing)
			break;
		mutex_unlock(&c->mutex);
		wait_event(c->wait, !READ_ONCE(c->flushing));
	}
	c->running = false;
	mutex_unlock(&c->mutex);
	wake_up_all(&c->wait);
	cancel_delayed_work_sync(&c->work);
}

void pc_commit_kick(struct pc_commit *c, unsigned long flags)
{
	unsigned long old = READ_ONCE(c->wanted);
	long left;

	while (!try_cmpxchg(&c->wanted, &old, old | flags))
		;
	/* a time, not a delay: kick after kick must not put it off */
	left = READ_ONCE(c->not_before) - jiffies;
	mod_delayed_work(c->wq, &c->work,
			 left > 0 && !(flags & PC_COMMIT_FLUSHED) ? left : 0);
}

/*
 * Runs at every completion that changes a block: mostly a read of a shared cache
 * line. Under the shard's lock, or after it: the cycle that clears TIMED takes that
 * lock afterwards, and finds the change.
 */
void pc_commit_schedule(struct pc_commit *c)
{
	unsigned long old = READ_ONCE(c->wanted), delay;

	do {
		if (old & TIMED)
			return;
	} while (!try_cmpxchg(&c->wanted, &old, old | TIMED));
	/* a cycle in between takes the old time, which is over: it runs early */
	delay = msecs_to_jiffies(READ_ONCE(c->interval_ms));
	WRITE_ONCE(c->full_at, jiffies + delay);
	queue_delayed_work(c->wq, &c->work, delay);
}

void pc_commit_run(struct pc_commit *c)
{
	u64 run = atomic64_inc_return(&c->runs_wanted);

	pc_commit_kick(c, PC_COMMIT_FULL);
	wait_event(c->wait, READ_ONCE(c->runs_done) >= run || !READ_ONCE(c->running));
}
