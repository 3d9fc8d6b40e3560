// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Loss of the cache device (loss.h).
 *
 * Sixteen errors in a row with nothing dirty, in memory or on disk: the flag EMPTY
 * goes into both superblocks, durably; from then on the origin alone serves, and a
 * later start drops every mapping. While something is dirty, or where EMPTY cannot
 * be written, nothing changes: errors stay errors, and no data is lost silently.
 */
#include "cache.h"
#include "loss.h"

#define ERRORS_IN_A_ROW 16

static void loss_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, loss_work);
	int err;

	if (READ_ONCE(pc->cache_gone) || READ_ONCE(pc->failed) ||
	    pc->tunables.on_cache_loss_fail || pc->mode == PC_MODE_WRITEBACK)
		return;
	/* dirty blocks, cleans that are not durable, and intents all say: not yet */
	if (atomic_read(&pc->nr_dirty) || atomic_read(&pc->nr_must))
		return;
	mutex_lock(&pc->commit.mutex);
	err = pc_metadata_set_empty(pc->md);
	mutex_unlock(&pc->commit.mutex);
	if (err) {
		DMERR("%s: the cache device %s is gone and that cannot be recorded on %s: error %d",
		      pc->name, pc->cache_dev->name, pc->metadata_dev->name, err);
		return;
	}
	WRITE_ONCE(pc->cache_gone, true);
	DMERR("%s: the cache device %s is gone (%d errors in a row); nothing was dirty, the origin %s serves alone",
	      pc->name, pc->cache_dev->name, ERRORS_IN_A_ROW, pc->origin_dev->name);
	pc_wake_pool(pc);
	dm_table_event(pc->ti->table);
}

void pc_loss_note(struct pc_cache *pc, bool failed)
{
	if (!failed) {
		if (unlikely(atomic_read(&pc->cache_errors)))
			atomic_set(&pc->cache_errors, 0);
		return;
	}
	if (atomic_inc_return(&pc->cache_errors) % ERRORS_IN_A_ROW == 0)
		queue_work(pc->wq, &pc->loss_work);
}

void pc_loss_init(struct pc_cache *pc)
{
	INIT_WORK(&pc->loss_work, loss_work);
}
