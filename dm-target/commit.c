// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The group commit worker of commit.h.
 *
 * One delayed work on a workqueue of its own (DESIGN rule 20: nothing that a
 * commit waits for may wait for it on the same queue). Allocates nothing while it
 * runs. With nothing to commit there is no timer: every event that leaves memory
 * and disk different calls pc_commit_schedule().
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "commit.h"

static void run_cycle(struct pc_commit *c, bool full)
{
	unsigned int noio = memalloc_noio_save();
	int err = 0;
	size_t n;

	c->ops->prepare(c->context, full);
	while (!err) {
		n = c->ops->compose(c->context, c->records, PC_COMMIT_BATCH);
		if (!n)
			break;
		err = pc_metadata_commit(c->md, c->records, n);
		c->ops->committed(c->context, c->records, n, err);
		atomic64_inc(&c->nr_commits);
		atomic64_add(n, &c->nr_records);
	}
	c->ops->finish(c->context, err);
	memalloc_noio_restore(noio);
}

static void commit_work(struct work_struct *work)
{
	struct pc_commit *c = container_of(to_delayed_work(work), struct pc_commit, work);
	unsigned long wanted;

	mutex_lock(&c->mutex);
	if (c->running) {
		wanted = xchg(&c->wanted, 0);
		/* the timer alone asks for a full one */
		run_cycle(c, !wanted || (wanted & PC_COMMIT_FULL));
	}
	mutex_unlock(&c->mutex);
}

int pc_commit_init(struct pc_commit *c, const struct pc_commit_ops *ops, void *context,
		   const char *name)
{
	memset(c, 0, sizeof(*c));
	c->ops = ops;
	c->context = context;
	mutex_init(&c->mutex);
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
	c->running = true;
	mutex_unlock(&c->mutex);
}

void pc_commit_stop(struct pc_commit *c)
{
	mutex_lock(&c->mutex);
	c->running = false;
	mutex_unlock(&c->mutex);
	cancel_delayed_work_sync(&c->work);
}

void pc_commit_kick(struct pc_commit *c, unsigned long flags)
{
	unsigned long old = READ_ONCE(c->wanted);

	while (!try_cmpxchg(&c->wanted, &old, old | flags))
		;
	mod_delayed_work(c->wq, &c->work, 0);
}

void pc_commit_schedule(struct pc_commit *c)
{
	queue_delayed_work(c->wq, &c->work, msecs_to_jiffies(READ_ONCE(c->interval_ms)));
}

void pc_commit_run(struct pc_commit *c)
{
	mutex_lock(&c->mutex);
	if (c->running)
		run_cycle(c, true);
	mutex_unlock(&c->mutex);
}
