// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps of pending-sim.h that the others share: pending objects, waiting,
 * counting, new mappings, demotion, intents.
 */
#include "pending-sim.h"

/* The last block is cut off within a sub-block: that one is never valid. */
#define ORIGIN_SECTORS (WORLD_OBLOCKS * WORLD_BLOCK_SECTORS - 3 * WORLD_CELL_SECTORS)

static void init_tables(struct sim *s)
{
	assert_int_equal(pc_blocks_init(&s->b, WORLD_CBLOCKS, WORLD_BLOCK_SECTORS,
					2 * WORLD_CELL_SECTORS, ORIGIN_SECTORS), 0);
	/* fewer objects than blocks: the pool runs dry */
	assert_int_equal(pc_pendings_init(&s->ps, sim_one_in(s, 4) ? 2 : WORLD_CBLOCKS), 0);
	/* of twice as many blocks there may be objects (rule 9) */
	s->max_intents = s->ps.nr == 2 ? 1 : 1 + unit_random_below(&s->r, WORLD_CBLOCKS);
}

void sim_init(struct sim *s, u64 iteration)
{
	memset(s, 0, sizeof(*s));
	unit_random_init(&s->r, "pending", iteration);
	world_init(&s->m, &s->r);
	init_tables(s);
}

void sim_exit(struct sim *s)
{
	pc_pendings_exit(&s->ps);
	pc_blocks_exit(&s->b);
}

void sim_load(struct sim *s)
{
	u32 c;

	sim_exit(s);
	init_tables(s);
	memset(s->origin_writes, 0, sizeof(s->origin_writes));
	memset(s->ops, 0, sizeof(s->ops));
	memset(s->fills, 0, sizeof(s->fills));
	memset(s->copies, 0, sizeof(s->copies));
	memset(&s->commit, 0, sizeof(s->commit));
	memset(s->round, 0, sizeof(s->round));
	memset(&s->discard, 0, sizeof(s->discard));
	s->failed = s->stop = false;
	/* round.c: pc_round_init() */
	for (c = 0; c < WORLD_NR_DEVICES; c++)
		s->round[c].unflushed = s->round[c].unflushed_copy = true;
	s->nr_must = s->nr_dirty = s->nr_intents = 0;
	for (c = 0; c < WORLD_CBLOCKS; c++) {
		const struct world_record *rec = &s->m.record[c];
		struct pc_block *blk = pc_blocks_get(&s->b, pc_cblock(c));

		if (!(rec->disk.flags & PC_BLOCK_MAPPED))
			continue;
		pc_blocks_insert(&s->b, pc_cblock(c), pc_oblock(rec->oblock));
		blk->valid = rec->disk.valid;
		blk->dirty = rec->disk.dirty;
		sim_update_dirty(s, blk);
	}
	pc_blocks_rebuild_free(&s->b);
}

/* cache.c: pc_get_pending() */
struct pc_pending *sim_get_pending(struct sim *s, struct pc_block *blk)
{
	struct pc_pending *p = pc_pending_of(&s->ps, blk);

	if (p)
		return p;
	p = pc_pending_alloc(&s->ps, &s->b, blk);
	if (!s->ps.nr_free)
		sim_kick(s, SIM_KICK_FULL);
	return p;
}

/* cache.c: pc_put_pending() */
void sim_put_pending(struct sim *s, struct pc_pending *p)
{
	if (!pc_pending_is_done(&s->b, p))
		return;
	pc_pending_free(&s->ps, &s->b, p);
	sim_wake_pool(s);
}

void sim_wait_pending(struct sim *s, struct pc_pending *p, struct op *op)
{
	op->state = OP_WAIT;
	op->pending = p - s->ps.pool;
	p->waiters_head = op;
}

void sim_wake_pending(struct sim *s, struct pc_pending *p)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state == OP_WAIT && s->ops[i].pending == p - s->ps.pool)
			s->ops[i].state = OP_RUN;
	p->waiters_head = NULL;
}

void sim_wake_pool(struct sim *s)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state == OP_POOL)
			s->ops[i].state = OP_RUN;
}

/* cache.c: pc_update_dirty() */
void sim_update_dirty(struct sim *s, struct pc_block *blk)
{
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	bool is_dirty = blk->dirty;

	if (p)
		is_dirty |= p->uncleaned || p->disk.dirty ||
			    ((p->flags & PC_PENDING_COMPOSED) && p->next.dirty);
	if (is_dirty && !(blk->flags & PC_BLOCK_DIRTY)) {
		blk->flags |= PC_BLOCK_DIRTY;
		s->nr_dirty++;
	} else if (!is_dirty && (blk->flags & PC_BLOCK_DIRTY)) {
		blk->flags &= ~PC_BLOCK_DIRTY;
		s->nr_dirty--;
	}
}

/* cache.c: pc_update_must() */
void sim_update_must(struct sim *s, struct pc_pending *p, u64 old)
{
	s->nr_must += !!p->must - !!old;
}

/* cache.c: pc_drop() */
void sim_drop(struct sim *s, struct pc_block *blk, struct pc_pending *p, u64 mask)
{
	u64 old = p ? p->must : 0;

	pc_pending_drop(blk, p, mask);
	if (p)
		sim_update_must(s, p, old);
	sim_update_dirty(s, blk);
	sim_schedule(s);
}

u64 sim_origin_writes(struct sim *s, u8 oblock, u64 mask)
{
	u64 busy = 0;
	u32 i;

	for (i = 0; i < WORLD_SUBS; i++)
		if (s->origin_writes[oblock][i])
			busy |= 1ull << i;
	return busy & mask;
}

void sim_count_origin(struct sim *s, u8 oblock, u64 mask, int by)
{
	u32 i;

	for (i = 0; i < WORLD_SUBS; i++)
		if (mask & 1ull << i)
			s->origin_writes[oblock][i] += by;
}

/* lookup.c: pc_lookup_insert() */
struct pc_block *sim_insert(struct sim *s, u8 oblock)
{
	struct pc_pending *p;
	struct pc_block *blk;
	pc_cblock_t c;

	if (s->failed || !s->ps.nr_free)
		return NULL;
	c = pc_blocks_alloc(&s->b);
	if (c == PC_CBLOCK_NONE)
		return NULL;
	pc_blocks_insert(&s->b, c, pc_oblock(oblock));
	blk = pc_blocks_get(&s->b, c);
	p = sim_get_pending(s, blk);
	assert_non_null(p);
	memset(&p->disk, 0, sizeof(p->disk));
	sim_log(s, "block %u maps origin block %u", pc_from_cblock(c), oblock);
	sim_schedule(s);
	return blk;
}

/* reclaim.c: pc_reclaim_demote() */
bool sim_demote(struct sim *s, struct pc_block *blk, bool with_flush)
{
	struct pc_pending *p = pc_pending_of(&s->ps, blk);

	if (s->failed || (blk->flags & PC_BLOCK_DEMOTING) || blk->dirty || !pc_block_is_idle(blk))
		return false;
	if (p && (p->busy || p->frozen || p->discarding || p->copying || p->uncleaned ||
		  p->must || p->want || p->waiters_head ||
		  (p->flags & PC_PENDING_COMPOSED)))
		return false;
	if (!with_flush && pc_disk_any_cache_wins(blk, p))
		return false;
	p = sim_get_pending(s, blk);
	if (!p)
		return false;
	blk->flags |= PC_BLOCK_DEMOTING;
	p->flags |= PC_PENDING_URGENT;
	p->flags &= ~PC_PENDING_CLEAR;
	blk->valid = 0;
	sim_log(s, "demote block %u%s", p->cblock, with_flush ? " with flush" : "");
	sim_kick(s, with_flush ? SIM_KICK_FULL : SIM_KICK_URGENT);
	return true;
}

/* reclaim.c: pc_reclaim_finish() */
void sim_reclaim_finish(struct sim *s, struct pc_block *blk, struct pc_pending *p)
{
	pc_cblock_t c = pc_blocks_index(&s->b, blk);

	sim_update_dirty(s, blk);
	pc_pending_free(&s->ps, &s->b, p);
	pc_blocks_remove(&s->b, c);
	pc_blocks_free(&s->b, c);
	sim_wake_pool(s);
}

/* intent.c: pc_intent_changes() */
void sim_intent_changes(struct sim *s, u16 before, u16 after)
{
	s->nr_intents += !!after - !!before;
}

/* intent.c: pc_intent_wait() */
bool sim_intent_wait(struct sim *s, struct pc_block *blk, u16 kind, struct op *op)
{
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	u32 how = SIM_KICK_URGENT;
	u16 has;

	has = (p ? p->disk.flags : blk->flags) & PC_BLOCK_INTENTS;
	if (!has && !sim_has_room(s)) {
		sim_intent_sweep(s);
		return false;
	}
	p = sim_get_pending(s, blk);
	if (!p)
		return false;
	p->want = kind;
	p->flags |= PC_PENDING_URGENT;
	if ((has && has != kind) || (kind == PC_BLOCK_INTENT_ORIGIN && p->disk.dirty))
		how |= SIM_KICK_FULL;
	if (!sim_has_room(s)) {
		how |= SIM_KICK_FULL;
		sim_intent_sweep(s);
	}
	sim_wait_pending(s, p, op);
	sim_kick(s, how);
	return true;
}

/* intent.c: sweep(), of any of them */
void sim_intent_sweep(struct sim *s)
{
	u32 c;

	for (c = 0; c < WORLD_CBLOCKS; c++) {
		struct pc_block *blk = pc_blocks_get(&s->b, pc_cblock(c));
		struct pc_pending *p = pc_pending_of(&s->ps, blk);

		if (!(blk->flags & PC_BLOCK_MAPPED) ||
		    !((p ? p->disk.flags : blk->flags) & PC_BLOCK_INTENTS) || sim_one_in(s, 3))
			continue;
		p = sim_get_pending(s, blk);
		if (p)
			p->flags |= PC_PENDING_CLEAR;
		sim_schedule(s);
	}
}
