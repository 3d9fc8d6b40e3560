// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flush rounds and the committer, as flush.c, round.c and commit.c do them. Every step
 * ends where the kernel lets go of a lock, so that anything may happen in between.
 */
#include <errno.h>

#include "pending-sim.h"

/* commit.c: pc_commit_kick() */
void sim_kick(struct sim *s, u32 how)
{
	s->commit.wanted |= how;
}

/* commit.c: pc_commit_schedule() */
void sim_schedule(struct sim *s)
{
	s->commit.timer = true;
}

/* commit.c: pc_commit_run(), up to the wait */
u32 sim_commit_run(struct sim *s)
{
	sim_kick(s, SIM_KICK_FULL);
	return ++s->commit.runs_wanted;
}

/* round.h: pc_round_note() */
void sim_note(struct sim *s, enum world_device d)
{
	s->round[d].unflushed = true;
}

static bool any_op(struct sim *s, enum op_state state)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state == state)
			return true;
	return false;
}

static void move_ops(struct sim *s, enum op_state from, enum op_state to)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state == from)
			s->ops[i].state = to;
}

static void end_flush(struct sim *s, struct op *op, bool ok)
{
	if (ok)
		world_flush_succeeded(&s->m, &op->snapshot);
	s->nr_flushed += ok;
	sim_log(s, "flush %u: %s", (u32)(op - s->ops), ok ? "ok" : "error");
	op->state = OP_FREE;
}

/* flush.c: end_all() */
static void end_all(struct sim *s, enum op_state state, bool ok)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++) {
		if (s->ops[i].state != state)
			continue;
		if (s->ops[i].is_flush)
			end_flush(s, &s->ops[i], ok);
		else
			sim_end_write(s, &s->ops[i], ok);
	}
}

/* flush.c: flush_bio_leave() */
static void flush_bio_leave(struct sim *s, struct op *op)
{
	if (!--op->left)
		end_flush(s, op, !op->bad[0] && !op->bad[1]);
}

/* Is anybody on this list of the device's round, and wants copies made durable? */
static bool any_waiter(struct sim *s, enum world_device d, enum round_wait list, bool copies)
{
	u32 i;

	if (s->commit.wait[d] == list && (!copies || s->commit.full))
		return true;
	for (i = 0; i < SIM_OPS && !copies; i++)
		if (s->ops[i].state == OP_ROUND && s->ops[i].wait[d] == list)
			return true;
	return false;
}

/* round.c: tell() */
static void tell(struct sim *s, enum world_device d, enum round_wait list, bool bad)
{
	u32 i;

	if (s->commit.wait[d] == list) {
		s->commit.wait[d] = WAIT_NONE;
		s->commit.bad[d] = bad;
		s->commit.left--;
	}
	for (i = 0; i < SIM_OPS; i++) {
		struct op *op = &s->ops[i];

		if (op->state != OP_ROUND || op->wait[d] != list)
			continue;
		op->wait[d] = WAIT_NONE;
		op->bad[d] = bad;
		flush_bio_leave(s, op);
	}
}

/* round.c: pc_round_wait(). Returns whether there is something to wait for. */
static bool must_wait(struct sim *s, enum world_device d, bool copies)
{
	struct sim_round *r = &s->round[d];

	return (r->running && r->had_user) || any_waiter(s, d, WAIT_NEXT, false) ||
	       r->unflushed || (copies && (r->running || r->unflushed_copy));
}

static void move_waiters(struct sim *s, enum world_device d)
{
	u32 i;

	if (s->commit.wait[d] == WAIT_NEXT)
		s->commit.wait[d] = WAIT_NOW;
	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state == OP_ROUND && s->ops[i].wait[d] == WAIT_NEXT)
			s->ops[i].wait[d] = WAIT_NOW;
}

/* round.c: round_work() and end_flush() */
bool sim_step_round(struct sim *s, enum world_device d)
{
	struct sim_round *r = &s->round[d];
	bool bad;

	if (r->running) {
		bad = s->errors && sim_one_in(s, 20);
		world_flush_end(&s->m, d, !bad);
		r->unflushed |= bad && r->had_user;
		r->unflushed_copy |= bad && r->had_copy;
		r->running = false;
		sim_log(s, "round of device %u ends: %s", d, bad ? "error" : "ok");
		tell(s, d, WAIT_NOW, bad);
		return true;
	}
	if (!any_waiter(s, d, WAIT_NEXT, false))
		return false;
	r->had_user = r->unflushed;
	r->had_copy = (r->unflushed || any_waiter(s, d, WAIT_NEXT, true)) && r->unflushed_copy;
	r->unflushed = false;
	if (r->had_copy)
		r->unflushed_copy = false;
	r->running = r->had_user || r->had_copy;
	if (!r->running) {
		tell(s, d, WAIT_NEXT, false);
		return true;
	}
	move_waiters(s, d);
	world_flush_submit(&s->m, d);
	sim_log(s, "round of device %u begins", d);
	return true;
}

/* flush.c: pc_flush_bio() */
void sim_flush_bio(struct sim *s, struct op *op)
{
	u32 d;

	world_flush_begins(&s->m, &op->snapshot);
	if (s->nr_must) {
		op->state = OP_RECORD_FLUSHES;
		sim_kick(s, SIM_KICK_URGENT);
		return;
	}
	op->left = 1 + WORLD_NR_DEVICES;
	for (d = 0; d < WORLD_NR_DEVICES; d++) {
		bool wait = must_wait(s, d, false);

		op->wait[d] = wait ? WAIT_NEXT : WAIT_NONE;
		if (!wait)
			flush_bio_leave(s, op);
	}
	op->state = OP_ROUND;
	flush_bio_leave(s, op);
}

/* flush.c: differs() */
static bool differs(struct sim *s, const struct pc_pending *p)
{
	const struct pc_block *blk = &s->b.table[p->cblock];

	return (blk->flags & PC_BLOCK_DEMOTING) || p->want || p->must || p->uncleaned ||
	       (p->flags & PC_PENDING_CLEAR) || p->disk.valid != blk->valid ||
	       p->disk.dirty != blk->dirty ||
	       (p->disk.flags & PC_BLOCK_MAPPED) != (blk->flags & PC_BLOCK_MAPPED);
}

/* commit.c: run(), and flush.c: ask() */
static bool run(struct sim *s)
{
	struct sim_commit *c = &s->commit;

	c->nr = 0;
	c->err = 0;
	c->batch = 1 + unit_random_below(&s->r, WORLD_CBLOCKS);
	if (c->flushing && !c->left) {
		c->flushing = c->asked = false;
		c->cursor = 0;
		c->state = COMMIT_COMPOSE;
		return true;
	}
	if (!c->wanted && !(c->later && !c->flushing) && !c->timer)
		return false;
	c->taken = c->wanted;
	c->wanted = 0;
	if (c->timer && sim_one_in(s, 4)) {
		c->taken |= SIM_KICK_FULL;
		c->timer = false;
	}
	move_ops(s, OP_RECORD_FUAS, OP_CYCLE_FUAS);
	c->asked = true;
	c->cursor = 0;
	c->state = COMMIT_COMPOSE;
	return true;
}

/* flush.c: prepare(), up to gather() */
static void prepare(struct sim *s)
{
	struct sim_commit *c = &s->commit;

	c->taken &= SIM_KICK_URGENT | SIM_KICK_FULL;
	c->state = COMMIT_IDLE;
	if (c->flushing) {
		c->later |= c->taken;
		return;
	}
	c->taken |= c->later;
	c->later = 0;
	if (!c->taken)
		return;
	c->full = c->taken & SIM_KICK_FULL;
	if (c->full)
		c->runs_begun = c->runs_wanted;
	move_ops(s, OP_RECORD_FLUSHES, OP_CYCLE_FLUSHES);
	c->any = false;
	c->cursor = 0;
	c->state = COMMIT_GATHER;
	sim_log(s, "cycle%s", c->full ? " full" : "");
}

/* flush.c: prepare(), after gather() */
static void begin_flush(struct sim *s)
{
	struct sim_commit *c = &s->commit;
	u32 d;

	c->flushed = (c->full && c->any) || any_op(s, OP_CYCLE_FLUSHES);
	c->bad[0] = c->bad[1] = false;
	c->left = 0;
	for (d = 0; d < WORLD_NR_DEVICES && c->flushed; d++) {
		if (!must_wait(s, d, c->full))
			continue;
		c->wait[d] = WAIT_NEXT;
		c->left++;
	}
	c->flushing = true;
	c->state = COMMIT_IDLE;
}

/* flush.c: gather(), one object */
static void step_gather(struct sim *s)
{
	struct sim_commit *c = &s->commit;
	u32 i = c->cursor++;

	if (i >= s->ps.nr) {
		begin_flush(s);
		return;
	}
	if (!test_bit(i, s->ps.used))
		return;
	pc_pending_gather(&s->b, &s->ps.pool[i]);
	c->any |= differs(s, &s->ps.pool[i]);
}

/* flush.c: judge_flushes() */
static void judge_flushes(struct sim *s)
{
	struct sim_round *r = &s->round[WORLD_ORIGIN];
	struct sim_commit *c = &s->commit;

	c->cache_ok = c->flushed && !c->bad[WORLD_CACHE];
	c->origin_ok = c->flushed && !c->bad[WORLD_ORIGIN] &&
		       (c->full || (!(r->running && r->had_copy) && !r->unflushed_copy));
}

/* flush.c: compose_record() */
static void compose_record(struct sim *s, struct pc_pending *p)
{
	struct world_record *rec = &s->m.next[p->cblock];
	u16 after = p->next.flags & PC_BLOCK_INTENTS;

	if (after)
		sim_intent_changes(s, p->disk.flags & PC_BLOCK_INTENTS, after);
	rec->disk = p->next;
	rec->oblock = pc_from_oblock(pc_blocks_oblock(&s->b.table[p->cblock]));
	s->m.has_next[p->cblock] = true;
	s->commit.records[s->commit.nr++] = p->cblock;
	sim_log(s, "composed block %u: valid %llx dirty %llx flags %x (disk %llx %llx %x)",
		p->cblock, (unsigned long long)p->next.valid, (unsigned long long)p->next.dirty,
		p->next.flags, (unsigned long long)p->disk.valid,
		(unsigned long long)p->disk.dirty, p->disk.flags);
}

/* flush.c: is_gone(): demoted before its mapping was recorded: no record is due */
static bool is_gone(struct sim *s, struct pc_pending *p)
{
	struct pc_block *blk = &s->b.table[p->cblock];

	if (!(blk->flags & PC_BLOCK_DEMOTING) || (p->disk.flags & PC_BLOCK_MAPPED))
		return false;
	sim_wake_pending(s, p);
	sim_reclaim_finish(s, blk, p);
	return true;
}

/* flush.c: compose_one() */
static void compose_one(struct sim *s, struct pc_pending *p)
{
	struct pc_block *blk = &s->b.table[p->cblock];
	struct sim_commit *c = &s->commit;

	if (!c->full && !p->must && !p->want && !(p->flags & PC_PENDING_URGENT) &&
	    !(blk->flags & PC_BLOCK_DEMOTING))
		return;
	if (is_gone(s, p))
		return;
	p->flags &= ~PC_PENDING_URGENT;
	if (pc_pending_compose(&s->b, p, c->cache_ok, c->origin_ok, sim_has_room(s))) {
		compose_record(s, p);
		return;
	}
	sim_update_dirty(s, blk);
	sim_wake_pending(s, p);
	sim_put_pending(s, p);
}

/* flush.c: compose_asked() */
static void compose_asked(struct sim *s, struct pc_pending *p)
{
	const struct pc_block *blk = &s->b.table[p->cblock];
	u16 want = p->want;

	if (!want && !p->durable && !(p->flags & PC_PENDING_URGENT) &&
	    !(blk->flags & PC_BLOCK_DEMOTING))
		return;
	if (is_gone(s, p))
		return;
	if (pc_pending_compose_asked(&s->b, p, sim_has_room(s)))
		compose_record(s, p);
	else if (want && !p->want)
		sim_wake_pending(s, p);
}

/* flush.c: compose(), one object */
static void step_compose(struct sim *s)
{
	struct sim_commit *c = &s->commit;

	if (!s->failed && !c->asked && !c->cursor)
		judge_flushes(s);
	if (!s->failed && c->cursor < s->ps.nr && c->nr < c->batch) {
		u32 i = c->cursor++;

		if (test_bit(i, s->ps.used)) {
			if (c->asked)
				compose_asked(s, &s->ps.pool[i]);
			else
				compose_one(s, &s->ps.pool[i]);
		}
		return;
	}
	c->done = 0;
	c->state = c->nr ? COMMIT_JOURNAL : COMMIT_FINISH;
}

/* flush.c: settle_failed(): again at the end of each cycle */
static void settle_failed(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->ps.nr; i++) {
		if (!test_bit(i, s->ps.used))
			continue;
		s->b.table[s->ps.pool[i].cblock].flags &= ~PC_BLOCK_DEMOTING;
		s->ps.pool[i].want = 0;
		sim_wake_pending(s, &s->ps.pool[i]);
	}
}

static void step_journal(struct sim *s)
{
	struct sim_commit *c = &s->commit;
	u32 i;

	if (s->errors && sim_one_in(s, 200)) {
		sim_log(s, "metadata failed");
		s->failed = true;
		c->err = -EIO;
		c->state = COMMIT_FINISH;
		return;
	}
	for (i = 0; i < c->nr; i++) {
		s->m.record[c->records[i]] = s->m.next[c->records[i]];
		if (!(s->m.record[c->records[i]].disk.flags & PC_BLOCK_MAPPED))
			s->m.record[c->records[i]].oblock = 0;
		s->m.has_next[c->records[i]] = false;
	}
	s->nr_commits++;
	c->state = COMMIT_COMMITTED;
}

/* flush.c: committed_one() */
static void committed_one(struct sim *s, u32 cblock)
{
	struct pc_block *blk = &s->b.table[cblock];
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	u16 before;
	u64 must;

	assert_non_null(p);
	before = p->disk.flags & PC_BLOCK_INTENTS;
	must = p->must;
	pc_pending_committed(p);
	sim_update_must(s, p, must);
	if (!(p->disk.flags & PC_BLOCK_INTENTS))
		sim_intent_changes(s, before, 0);
	sim_wake_pending(s, p);
	if ((blk->flags & PC_BLOCK_DEMOTING) && !(p->disk.flags & PC_BLOCK_MAPPED)) {
		sim_reclaim_finish(s, blk, p);
	} else {
		sim_update_dirty(s, blk);
		sim_put_pending(s, p);
	}
}

/* flush.c: asked() and finish(); commit.c: finish_cycle() */
static void step_finish(struct sim *s)
{
	struct sim_commit *c = &s->commit;

	if (s->failed) {
		if (s->nr_must)
			c->err = -EIO;
		settle_failed(s);
	}
	if (c->asked) {
		end_all(s, OP_CYCLE_FUAS, !c->err);
		prepare(s);
		return;
	}
	end_all(s, OP_CYCLE_FLUSHES, !c->err && !c->bad[0] && !c->bad[1]);
	sim_wake_pool(s);
	if (!s->failed && s->ps.nr_free < s->ps.nr)
		c->timer = true;
	c->runs_done = c->runs_begun;
	c->state = COMMIT_IDLE;
}

bool sim_step_commit(struct sim *s)
{
	struct sim_commit *c = &s->commit;

	switch (c->state) {
	case COMMIT_IDLE:
		return run(s);
	case COMMIT_GATHER:
		step_gather(s);
		return true;
	case COMMIT_COMPOSE:
		step_compose(s);
		return true;
	case COMMIT_JOURNAL:
		step_journal(s);
		return true;
	case COMMIT_COMMITTED:
		if (c->done < c->nr) {
			committed_one(s, c->records[c->done++]);
			return true;
		}
		c->nr = 0;
		c->state = COMMIT_COMPOSE;
		return true;
	case COMMIT_FINISH:
		step_finish(s);
		return true;
	}
	return false;
}
