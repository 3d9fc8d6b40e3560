// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The activity log of write intents: counts, ages and clearing (DESIGN rule 9).
 *
 * A bitmap says which blocks have an intent on disk. Age is one bit a block: a
 * write sets PC_BLOCK_WRITTEN, the sweep clears it, and a sweep that finds it clear
 * asks for the intent to go; so an intent lives one to two sweeps after the last
 * write. The committer does the rest, on flushes of both devices.
 */
#include <linux/vmalloc.h>

#include "broken.h"
#include "intent.h"

/* The variants of tests hurry. */
#ifndef PC_INTENT_SWEEP_MS
#define PC_INTENT_SWEEP_MS 20000
#endif
#ifndef PC_INTENTS_MIN
#define PC_INTENTS_MIN 1024u
#endif

bool pc_intent_has_room(struct pc_cache *pc)
{
	return atomic_read(&pc->nr_intents) < pc->max_intents;
}

void pc_intent_changes(struct pc_cache *pc, u32 cblock, u16 before, u16 after)
{
	if (!before == !after)
		return;
	if (after) {
		set_bit(cblock, pc->intent_map);
		if (atomic_inc_return(&pc->nr_intents) == 1)
			queue_delayed_work(pc->wq, &pc->intent_work, msecs_to_jiffies(PC_INTENT_SWEEP_MS));
	} else {
		clear_bit(cblock, pc->intent_map);
		atomic_dec(&pc->nr_intents);
	}
}

/* The intent on disk. */
static u16 intent_of(struct pc_cache *pc, const struct pc_block *blk)
{
	const struct pc_pending *p = pc_pending_of(&pc->pendings, blk);

	return (p ? p->disk.flags : blk->flags) & PC_BLOCK_INTENTS;
}

/* Another kind, or dirty on disk: only flushes of both devices settle it. */
bool pc_intent_needs_flush(struct pc_cache *pc, const struct pc_block *blk, u16 kind)
{
	const struct pc_pending *p = pc_pending_of(&pc->pendings, blk);
	u16 has = intent_of(pc, blk);
	u64 dirty = p ? p->disk.dirty : blk->dirty;

	return (has && has != kind) || (kind == PC_BLOCK_INTENT_ORIGIN && dirty);
}

bool pc_intent_wait(struct pc_cache *pc, struct pc_block *blk, u16 kind, struct bio *bio)
{
	unsigned long kick = PC_COMMIT_URGENT;
	struct pc_pending *p;

	/*
	 * An object that waited for room under the cap would not come back before the
	 * sweep has got one for a block that has an intent: the bio waits without.
	 */
	if (!intent_of(pc, blk) && !pc_intent_has_room(pc)) {
		mod_delayed_work(pc->wq, &pc->intent_work, 0);
		return false;
	}
	p = pc_get_pending(pc, blk);
	if (!p)
		return false;
	p->want = kind;
	p->flags |= PC_PENDING_URGENT;
	blk->flags |= PC_BLOCK_WRITTEN;
	if (pc_intent_needs_flush(pc, blk, kind))
		kick |= PC_COMMIT_FULL;
	if (!pc_intent_has_room(pc)) {
		kick |= PC_COMMIT_FULL;
		mod_delayed_work(pc->wq, &pc->intent_work, 0);
	}
	pc_count(pc, PC_STAT_WAIT_COMMIT);
	pc_wait_pending(pc, p, bio);
	pc_commit_kick(&pc->commit, kick);
	return true;
}

enum sweep {
	AGE,		/* those not written since the last sweep go; the others age */
	IDLE_ONLY,	/* those not written go, up to a quarter */
	ANY,		/* up to a quarter */
	ALL,
};

static u32 sweep(struct pc_cache *pc, enum sweep how)
{
	u32 limit = how == IDLE_ONLY || how == ANY ? DIV_ROUND_UP(pc->max_intents, 4) : U32_MAX;
	u32 c, asked = 0;

	for_each_set_bit(c, pc->intent_map, pc->blocks.nr) {
		struct pc_pending *p;
		struct pc_block *blk;
		unsigned long flags;
		spinlock_t *lock;

		if (asked == limit)
			break;
		blk = pc_lock_cblock(pc, c, &lock, &flags);
		if (!blk)
			continue;
		if (!intent_of(pc, blk)) {
			/* in a commit right now */
		} else if ((how == AGE || how == IDLE_ONLY) &&
			   ((blk->flags & PC_BLOCK_WRITTEN) || PC_BREAK_RULE24)) {
			if (how == AGE)
				blk->flags &= ~PC_BLOCK_WRITTEN;
		} else {
			p = pc_get_pending(pc, blk);
			if (p) {
				p->flags |= PC_PENDING_CLEAR;
				asked++;
			}
		}
		spin_unlock_irqrestore(lock, flags);
		cond_resched();
	}
	return asked;
}

void pc_intent_relieve(struct pc_cache *pc)
{
	if (!sweep(pc, IDLE_ONLY) && !sweep(pc, ANY))
		return;
	pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
}

void pc_intent_clear_all(struct pc_cache *pc)
{
	sweep(pc, ALL);
}

bool pc_intent_any_cache_wins(struct pc_cache *pc)
{
	bool any = false;
	u32 c;

	for_each_set_bit(c, pc->intent_map, pc->blocks.nr) {
		struct pc_block *blk;
		unsigned long flags;
		spinlock_t *lock;

		blk = pc_lock_cblock(pc, c, &lock, &flags);
		if (!blk)
			continue;
		any = pc_disk_any_cache_wins(blk, pc_pending_of(&pc->pendings, blk));
		spin_unlock_irqrestore(lock, flags);
		if (any)
			break;
		cond_resched();
	}
	return any;
}

static void intent_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(to_delayed_work(work), struct pc_cache, intent_work);

	if (!pc_intent_has_room(pc))
		pc_intent_relieve(pc);
	else if (sweep(pc, AGE))
		pc_commit_schedule(&pc->commit);
	if (atomic_read(&pc->nr_intents))
		queue_delayed_work(pc->wq, &pc->intent_work, msecs_to_jiffies(PC_INTENT_SWEEP_MS));
}

int pc_intent_init(struct pc_cache *pc)
{
	INIT_DELAYED_WORK(&pc->intent_work, intent_work);
	pc->max_intents = max(PC_INTENTS_MIN, pc->blocks.nr / 64);
	pc->intent_map = vzalloc(BITS_TO_LONGS(pc->blocks.nr) * sizeof(long));
	return pc->intent_map ? 0 : -ENOMEM;
}

void pc_intent_exit(struct pc_cache *pc)
{
	vfree(pc->intent_map);
	pc->intent_map = NULL;
}
