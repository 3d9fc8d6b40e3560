/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The group commit worker: makes records durable, one commit at a time.
 *
 * Owns the open metadata from start-up to suspend and the only thread that writes
 * it meanwhile. What goes into a commit, and which device flushes come before it,
 * is decided by the layers above through the callbacks; the order "prepare,
 * compose, journal, committed, finish" is this file's, and that nothing of a commit
 * starts before the one before has completed.
 */
#ifndef PC_COMMIT_H
#define PC_COMMIT_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/mutex.h>

#include "metadata.h"

/* flags of pc_commit_kick() */
#define PC_COMMIT_URGENT 0x1ul	/* somebody waits: what is asked for, now */
#define PC_COMMIT_FULL	 0x2ul	/* flush both devices and record everything, now */

/* All are called from the worker: they may sleep, and must not allocate. */
struct pc_commit_ops {
	/* full: flush both devices, record all; else only what somebody waits for. */
	void (*prepare)(void *context, bool full);
	/* Up to max records; called until it returns 0. */
	size_t (*compose)(void *context, struct pc_record *records, size_t max);
	/* Their commit has completed; err not 0: metadata failed, for good. */
	void (*committed)(void *context, const struct pc_record *records, size_t n, int err);
	void (*finish)(void *context, int err);
};

struct pc_commit {
	const struct pc_commit_ops *ops;
	void *context;
	struct pc_metadata *md;		/* owner: the worker between start and stop */
	struct workqueue_struct *wq;
	struct delayed_work work;
	unsigned long wanted;		/* atomic: PC_COMMIT_x */
	unsigned int interval_ms;	/* READ_ONCE: of timed commits */
	bool running;			/* under mutex */
	struct mutex mutex;		/* one cycle at a time; start and stop */
	struct pc_record *records;
	atomic64_t nr_commits;
	atomic64_t nr_records;
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
