// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Messages (message.h), and what a mode change starts.
 *
 * message_lock serialises them. Runs under memalloc_noio, set by the caller, because
 * writes of the system may be waiting for this device.
 */
#include <linux/sched/mm.h>

#include "broken.h"
#include "cache.h"
#include "discard.h"
#include "flush.h"
#include "intent.h"
#include "message.h"
#include "status.h"
#include "writeback.h"

void pc_message_apply(struct pc_cache *pc)
{
	WRITE_ONCE(pc->cleaner, pc_host_flags(pc->policy) & PC_POLICY_CLEANER);
	pc->commit.interval_ms = pc->tunables.commit_ms;
	pc_writeback_kick(pc);
}

static int set_mode(struct pc_cache *pc, enum pc_mode mode)
{
	if (!strcmp(pc->ti->type->name, "cache") && mode == PC_MODE_WRITEBACK &&
	    pc->table_mode != PC_MODE_WRITEBACK) {
		DMERR("%s: mode writeback: refused by message for an LVM cache whose table says %s, since LVM would drop dirty blocks; use lvchange --cachemode writeback",
		      pc->name, pc_args_mode_name(pc->table_mode));
		return -EINVAL;
	}
	WRITE_ONCE(pc->want_passthrough, false);
	if (mode == PC_MODE_PASSTHROUGH && READ_ONCE(pc->mode) != PC_MODE_PASSTHROUGH) {
		/* through writethrough: tick_work goes on once all is clean on disk */
		mode = PC_MODE_WRITETHROUGH;
		WRITE_ONCE(pc->want_passthrough, true);
	}
	WRITE_ONCE(pc->mode, mode);
	pc_message_apply(pc);
	return 0;
}

/* The mapping of a cblock for the swap: no lock, may be late (swap.h). */
static bool lookup(void *context, pc_cblock_t c, pc_oblock_t *o, bool *dirty)
{
	struct pc_cache *pc = context;
	struct pc_block *blk = pc_blocks_get(&pc->blocks, c);

	if (!(READ_ONCE(blk->flags) & PC_BLOCK_MAPPED))
		return false;
	*o = pc_oblock((u64)READ_ONCE(blk->oblock_high) << 32 | READ_ONCE(blk->oblock_low));
	*dirty = READ_ONCE(blk->dirty);
	return true;
}

static int set_policy(struct pc_cache *pc, const struct pc_message_args *a)
{
	char err[PC_ERR_SIZE];
	int r;

	r = pc_host_swap(pc->policy, a->policy, a->pairs, a->nr_pairs, false, lookup, pc, err);
	if (r) {
		DMERR("%s: %s", pc->name, err);
		return r;
	}
	pc_message_apply(pc);
	return 0;
}

static int invalidate(struct pc_cache *pc, const struct pc_message_args *a)
{
	unsigned int i;
	int r = 0, e;

	if (READ_ONCE(pc->mode) != PC_MODE_PASSTHROUGH) {
		DMERR("%s: invalidate_cblocks: the mode is %s, allowed in passthrough only",
		      pc->name, pc_args_mode_name(READ_ONCE(pc->mode)));
		return -EPERM;
	}
	for (i = 0; i < a->nr_ranges; i++) {
		e = pc_discard_cblocks(pc, a->ranges[i].begin, a->ranges[i].end);
		r = r ? r : e;
	}
	return r;
}

static int set_key(struct pc_cache *pc, const struct pc_message_args *a)
{
	char err[PC_ERR_SIZE];
	int r;

	if (!a->is_core_key) {
		r = pc_host_set(pc->policy, a->set.key, a->set.value, err);
		if (r)
			DMERR("%s: %s", pc->name, err);
		return r;
	}
	pc->tunables = a->tunables;
	pc_message_apply(pc);
	return 0;
}

static int run(struct pc_cache *pc, const struct pc_message_args *a, char *result,
	       unsigned int maxlen)
{
	switch (a->what) {
	case PC_MSG_STATS:
		pc_status_stats(pc, result, maxlen);
		return 1;
	case PC_MSG_STATS_RESET:
		pc_status_reset(pc);
		return 0;
	default:
		break;
	}
	if (!READ_ONCE(pc->running) && !PC_BREAK_RULE21) {
		DMERR("%s: message refused while suspended; resume the device first", pc->name);
		return -EBUSY;
	}
	switch (a->what) {
	case PC_MSG_SET:
		return set_key(pc, a);
	case PC_MSG_POLICY:
		return set_policy(pc, a);
	case PC_MSG_MODE:
		return set_mode(pc, a->mode);
	case PC_MSG_FLUSH:
		pc_writeback_flush(pc);
		return 0;
	case PC_MSG_INVALIDATE:
		return invalidate(pc, a);
	default:
		return -EINVAL;
	}
}

int pc_message(struct pc_cache *pc, unsigned int argc, char **argv, char *result,
	       unsigned int maxlen)
{
	char err[PC_ERR_SIZE], policy[PC_POLICY_NAME_SIZE];
	struct pc_message_args *a;
	int r;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	mutex_lock(&pc->message_lock);
	pc_host_name(pc->policy, policy);
	r = pc_args_parse_message(a, argc, argv, &pc->tunables, policy, pc->blocks.nr, err);
	if (r)
		DMERR("%s: %s", pc->name, err);
	else
		r = run(pc, a, result, maxlen);
	mutex_unlock(&pc->message_lock);
	kfree(a);
	return r;
}

/* Passthrough begins once nothing on disk says that the cache is the newer one. */
static void try_passthrough(struct pc_cache *pc)
{
	if (!READ_ONCE(pc->want_passthrough))
		return;
	if (atomic_read(&pc->nr_dirty)) {
		pc_writeback_kick(pc);
		return;
	}
	if (pc_intent_any_cache_wins(pc)) {
		pc_intent_clear_all(pc);
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
		return;
	}
	mutex_lock(&pc->message_lock);
	if (READ_ONCE(pc->want_passthrough) && READ_ONCE(pc->mode) == PC_MODE_WRITETHROUGH) {
		WRITE_ONCE(pc->mode, PC_MODE_PASSTHROUGH);
		WRITE_ONCE(pc->want_passthrough, false);
	}
	mutex_unlock(&pc->message_lock);
	dm_table_event(pc->ti->table);
}

/* With policy auto: another one may be better by now. */
static void follow_auto(struct pc_cache *pc)
{
	char text[PC_ERR_SIZE];
	unsigned int noio;
	int r;

	/* a suspend waits for this work */
	if (READ_ONCE(pc->stop_background))
		return;
	noio = memalloc_noio_save();
	r = pc_host_follow(pc->policy, lookup, pc, text);
	memalloc_noio_restore(noio);
	if (r > 0) {
		DMINFO("%s: %s", pc->name, text);
		dm_table_event(pc->ti->table);
	} else if (r < 0) {
		DMERR_LIMIT("%s: %s", pc->name, text);
	}
}

/* Not on pc->wq: an exchange takes memory and time, and bios wait for works there. */
static void tick_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(to_delayed_work(work), struct pc_cache, tick_work);

	try_passthrough(pc);
	pc_host_tick(pc->policy);
	follow_auto(pc);
	queue_delayed_work(system_unbound_wq, &pc->tick_work, HZ);
}

void pc_message_init(struct pc_cache *pc)
{
	mutex_init(&pc->message_lock);
	INIT_DELAYED_WORK(&pc->tick_work, tick_work);
}
