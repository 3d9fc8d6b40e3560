/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The group commit worker: makes records durable, one commit at a time.
 *
 * Owns the open metadata from start-up to suspend and the only thread that writes
 * it meanwhile. What goes into a commit, and which device flushes come before it,
 * is decided by the layers above through the callbacks; the order "prepare, flush,
 * compose, journal, committed, finish" is this file's, and that nothing of a commit
 * starts before the one before has completed. While the flushes of a cycle are under
 * way, commits of what needs no flush (new intents, demotions) go on.
 */
#ifndef PC_COMMIT_H
#define PC_COMMIT_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "metadata.h"

/* flags of pc_commit_kick() */
#define PC_COMMIT_URGENT 0x1ul	/* somebody waits: what is asked for, now */
#define PC_COMMIT_FULL	 0x2ul	/* flush both devices and record everything, now */
#define PC_COMMIT_FLUSHED 0x4ul	/* the flushes that prepare() began have ended */
#define PC_COMMIT_FUA	 0x8ul	/* as URGENT, for what needs no flush */

/* All are called from the worker: they may sleep, and must not allocate. */
struct pc_commit_ops {
	/* What needs no flush: begins such a commit, and ends it. */
	void (*ask)(void *context);
	void (*asked)(void *context, int err);
	/*
	 * A cycle. full: record everything; else only what somebody waits for. True:
	 * device flushes are under way, PC_COMMIT_FLUSHED will be kicked.
	 */
	bool (*prepare)(void *context, bool full);
	/* err: of the journal. True: device flushes failed, retries are to take their time. */
	bool (*finish)(void *context, int err);
	/* Up to max records; called until it returns 0. */
	size_t (*compose)(void *context, struct pc_record *records, size_t max, bool asked);
	/* Their commit has completed; err not 0: metadata failed, for good. */
	void (*committed)(void *context, const struct pc_record *records, size_t n, int err);
};

struct pc_commit {
	const struct pc_commit_ops *ops;
	void *context;
	struct pc_metadata *md;		/* owner: the worker between start and stop */
	struct workqueue_struct *wq;
	struct delayed_work work;
	unsigned long wanted;		/* atomic: PC_COMMIT_x */
	unsigned int interval_ms;	/* READ_ONCE: of timed commits */
	unsigned long full_at;		/* READ_ONCE: jiffies when a timed one is due */
	unsigned long not_before;	/* READ_ONCE: jiffies; after flushes that failed */
	struct mutex mutex;		/* one commit at a time; start and stop */
	bool running;			/* mutex to change */
	bool flushing;			/* mutex: between prepare and compose */
	unsigned long later;		/* mutex: wanted, but a cycle is flushing */
	struct pc_record *records;
	atomic64_t nr_commits;
	atomic64_t nr_records;
	/* full cycles asked for, begun for, done for: who called pc_commit_run() */
	atomic64_t runs_wanted;
	u64 runs_begun;			/* mutex */
	u64 runs_done;			/* mutex to change */
	wait_queue_head_t wait;
};

#define PC_COMMIT_BATCH 2048	/* records a transaction */

/* May sleep. */
int pc_commit_init(struct pc_commit *c, const struct pc_commit_ops *ops, void *context,
		   const char *name);
void pc_commit_exit(struct pc_commit *c);

/* From preresume, before any bio. md stays the caller's. */
void pc_commit_start(struct pc_commit *c, struct pc_metadata *md);
/* From postsuspend, after the last bio: no cycle runs after it returns. */
void pc_commit_stop(struct pc_commit *c);

/* Any context. Now, or within interval_ms. */
void pc_commit_kick(struct pc_commit *c, unsigned long flags);
void pc_commit_schedule(struct pc_commit *c);

/* May sleep, not from the worker: a full cycle that starts after the call. */
void pc_commit_run(struct pc_commit *c);

#endif
