// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Loss of the cache device (loss.h).
 *
 * Sixteen errors in a row with nothing dirty, in memory or on disk: the flag EMPTY
 * goes into both superblocks, durably; from then on the origin alone serves, and a
 * later start drops every mapping. While something is dirty, or where EMPTY cannot
 * be written, nothing changes: errors stay errors, and no data is lost silently.
 *
 * Before it looks, cache_losing keeps new dirty data out of the cache (write.c), and
 * what was on its way there has ended: so what is found clean stays clean.
 */
#include <linux/delay.h>

#include "cache.h"
#include "loss.h"

#define ERRORS_IN_A_ROW 16
#define QUIET_MS 10
#define QUIET_TRIES 100

/* No write to the cache is in flight, but for those of both devices that come anew. */
static bool is_quiet(struct pc_cache *pc)
{
	u32 c;

	for (c = 0; c < pc->blocks.nr; c++) {
		const struct pc_block *blk = &pc->blocks.table[c];

		if (READ_ONCE(blk->writes[0]) || READ_ONCE(blk->writes[1]))
			return false;
	}
	return true;
}

/* With cache_losing set: nothing is dirty, and nothing will be. */
static bool is_clean(struct pc_cache *pc)
{
	unsigned int i, tries = 0;

	/* who decided before has left the lock, and is counted in its block */
	for (i = 0; i < PC_NR_SHARDS; i++) {
		spin_lock_irq(&pc->shards[i].lock);
		spin_unlock_irq(&pc->shards[i].lock);
	}
	while (!is_quiet(pc)) {
		if (++tries == QUIET_TRIES)
			return false;
		msleep(QUIET_MS);
	}
	/* what the last completions counted is seen; pairs with their atomic counts */
	smp_mb();
	/* dirty blocks, cleans that are not durable, data without a record */
	return !atomic_read(&pc->nr_dirty) && !atomic_read(&pc->nr_must);
}

static void loss_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, loss_work);
	int err;

	if (READ_ONCE(pc->cache_gone) || READ_ONCE(pc->failed) ||
	    READ_ONCE(pc->tunables.on_cache_loss_fail) || atomic_read(&pc->nr_dirty))
		return;
	WRITE_ONCE(pc->cache_losing, true);
	if (!is_clean(pc)) {
		WRITE_ONCE(pc->cache_losing, false);
		return;
	}
	mutex_lock(&pc->commit.mutex);
	err = pc_metadata_set_empty(pc->md);
	mutex_unlock(&pc->commit.mutex);
	if (err) {
		DMERR("%s: the cache device %s is gone and that cannot be recorded on %s: error %d",
		      pc->name, pc->cache_dev->name, pc->metadata_dev->name, err);
		WRITE_ONCE(pc->cache_losing, false);
		return;
	}
	WRITE_ONCE(pc->cache_gone, true);
	pc_round_gone(&pc->cache_round, true);
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
