// SPDX-License-Identifier: GPL-2.0-only
/*
 * pending.c under everything that may happen to two devices: random writes, flushes,
 * fills, copies, discards, mode changes, demotions, errors, and power cuts at any
 * step, against the invariant of DESIGN section 6 and the promises to users.
 *
 * PC_SEED repeats a test, PC_RUN=n plays only run n of it and says what happens.
 */
#include "pending-sim.h"

#define RUNS 1500u
#define STEPS 400u
#define DRAIN 20000u

static u32 cells_of_origin(u8 oblock)
{
	return oblock + 1 == WORLD_OBLOCKS ? WORLD_CELLS - 3 : WORLD_CELLS;
}

static u32 nr_ops(struct sim *s)
{
	u32 i, n = 0;

	for (i = 0; i < SIM_OPS; i++)
		n += s->ops[i].state != OP_FREE;
	return n;
}

static u8 random_oblock(struct sim *s)
{
	return s->narrow ? 1 : unit_random_below(&s->r, WORLD_OBLOCKS);
}

static void new_write(struct sim *s)
{
	struct op *op = sim_new_op(s);
	u32 cells;

	op->oblock = random_oblock(s);
	cells = cells_of_origin(op->oblock);
	op->first = unit_random_below(&s->r, cells);
	op->n = 1 + unit_random_below(&s->r, cells - op->first);
	if (!sim_one_in(s, 3)) {
		op->first &= ~1u;
		op->n = (op->n + 1) & ~1u;
		if (op->first + op->n > cells)
			op->n = cells - op->first;
	}
	op->fua = sim_one_in(s, 6);
	op->bypass = s->bypasses && sim_one_in(s, 6);
	op->version = world_new_version(&s->m, op->oblock, ((1u << op->n) - 1) << op->first);
}

static void new_discard(struct sim *s)
{
	struct op *op = sim_new_op(s);

	op->is_discard = true;
	op->oblock = random_oblock(s);
	op->first = 2 * unit_random_below(&s->r, cells_of_origin(op->oblock) / 2);
	op->n = 2 * (1 + unit_random_below(&s->r, (cells_of_origin(op->oblock) - op->first) / 2));
}

/* What users, policies and timers may do at any time. */
static bool new_event(struct sim *s)
{
	u32 c = unit_random_below(&s->r, WORLD_CBLOCKS);
	struct pc_block *blk = pc_blocks_get(&s->b, pc_cblock(c));

	if (s->stop || nr_ops(s) > 12)
		return false;
	switch (unit_random_below(&s->r, 16)) {
	case 0 ... 5:
		if (!world_is_crowded(&s->m))
			new_write(s);
		return true;
	case 6 ... 7:
		sim_new_op(s)->is_flush = true;
		return true;
	case 8:
		if (sim_one_in(s, 4))
			new_discard(s);
		return true;
	case 9:
		if (sim_one_in(s, s->restless ? 1 : 20))
			s->mode = unit_random_below(&s->r, PC_NR_MODES);
		return true;
	case 10 ... 12:
		return !world_is_crowded(&s->m) &&
		       sim_start_fill(s, random_oblock(s),
				      1 + unit_random_below(&s->r, (1u << WORLD_SUBS) - 1));
	case 13:
		return (blk->flags & PC_BLOCK_MAPPED) && sim_demote(s, blk, sim_one_in(s, 2));
	case 14:
		if (s->errors && (blk->flags & PC_BLOCK_MAPPED) && sim_one_in(s, 4))
			sim_read_error(s, blk, blk->valid & unit_random(&s->r));
		return true;
	default:
		sim_intent_sweep(s);
		return true;
	}
}

static bool step_io(struct sim *s)
{
	struct world_io *io = &s->m.io[unit_random_below(&s->r, WORLD_MAX_IOS)], copy;
	u32 i;
	bool ok;

	for (i = 0; i < WORLD_MAX_IOS && !io->used; i++)
		io = &s->m.io[(io - s->m.io + 1) % WORLD_MAX_IOS];
	if (!io->used)
		return false;
	ok = !(s->errors && sim_one_in(s, 30));
	if (!world_apply(&s->m, io) && ok)
		return true;
	if (sim_one_in(s, 2) && ok)
		return true;
	copy = *io;
	world_end(&s->m, io, ok);
	switch (copy.kind) {
	case IO_FILL_READ:
	case IO_FILL_WRITE:
		sim_end_fill_io(s, copy.owner, &copy, ok);
		break;
	case IO_COPY_READ:
	case IO_COPY_WRITE:
		sim_end_copy_io(s, copy.owner, &copy, ok);
		break;
	case IO_DISCARD:
		sim_end_discard_io(s);
		break;
	default:
		sim_end_write_io(s, copy.owner, copy.kind, ok);
		break;
	}
	return true;
}

static bool step_op(struct sim *s)
{
	u32 first = unit_random_below(&s->r, SIM_OPS), i;

	for (i = 0; i < SIM_OPS; i++) {
		struct op *op = &s->ops[(first + i) % SIM_OPS];

		if (op->state != OP_RUN)
			continue;
		sim_run_op(s, op);
		return true;
	}
	return false;
}

static void step(struct sim *s)
{
	switch (unit_random_below(&s->r, 12)) {
	case 0 ... 1:
		new_event(s);
		break;
	case 2 ... 3:
		step_op(s);
		break;
	case 4 ... 6:
		step_io(s);
		break;
	case 7 ... 8:
		sim_step_commit(s);
		break;
	case 9:
		if (!s->slow || sim_one_in(s, 8))
			sim_step_round(s, unit_random_below(&s->r, WORLD_NR_DEVICES));
		break;
	case 10:
		if (!sim_step_copy(s, &s->copies[unit_random_below(&s->r, SIM_COPIES)]) &&
		    !world_is_crowded(&s->m))
			sim_start_copy(s, unit_random_below(&s->r, WORLD_CBLOCKS));
		break;
	default:
		sim_step_discard(s);
		break;
	}
}

/* What readers see now. */
static const char *check_live(struct sim *s)
{
	u32 o, cell;

	for (o = 0; o < WORLD_OBLOCKS; o++) {
		struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(o));
		u32 c = blk ? pc_from_cblock(pc_blocks_index(&s->b, blk)) : 0;

		for (cell = 0; cell < WORLD_CELLS; cell++) {
			u64 bit = 1ull << cell / 2;
			bool valid = blk && (blk->valid & bit);
			u64 busy = blk ? pc_pending_busy(&s->ps, blk) : 0;

			if (!world_is_live(&s->m, world_read(&s->m, valid ? WORLD_CACHE : WORLD_ORIGIN,
							     valid ? c : o, cell), o, cell))
				return valid ? "the cache serves old data" :
					       "the origin serves old data";
			if (valid && !((blk->dirty | busy) & bit) &&
			    world_read(&s->m, WORLD_CACHE, c, cell) !=
			    world_read(&s->m, WORLD_ORIGIN, o, cell))
				return "valid and clean, but cache and origin differ";
		}
	}
	return NULL;
}

static const char *check(struct sim *s)
{
	const char *bad = world_check(&s->m);

	if (!bad)
		bad = check_live(s);
	if (!bad && !s->nr_dirty)
		bad = world_check_origin_alone(&s->m);
	if (!bad && (s->nr_must < 0 || s->nr_dirty < 0 || s->nr_intents < 0))
		bad = "a counter fell below zero";
	return bad;
}

static bool is_drained(struct sim *s)
{
	u32 i;

	for (i = 0; i < SIM_COPIES; i++)
		if (s->copies[i].state != COPY_NONE)
			return false;
	for (i = 0; i < SIM_FILLS; i++)
		if (s->fills[i].used)
			return false;
	return !nr_ops(s) && s->commit.state == COMMIT_IDLE && !s->commit.flushing &&
	       s->discard.state == DISCARD_NONE && (s->failed || s->ps.nr_free == s->ps.nr);
}

/* For PC_RUN: what is left that should be gone. */
static void log_state(struct sim *s)
{
	u32 i;

	sim_log(s, "mode %u failed %d commit %u flushing %d wanted %x discard %u intents %d of %d",
		s->mode, s->failed, s->commit.state, s->commit.flushing, s->commit.wanted,
		s->discard.state, s->nr_intents, s->max_intents);
	for (i = 0; i < SIM_OPS; i++)
		if (s->ops[i].state != OP_FREE)
			sim_log(s, "op %u: state %u of %u cells %u+%u", i, s->ops[i].state,
				s->ops[i].oblock, s->ops[i].first, s->ops[i].n);
	for (i = 0; i < s->ps.nr; i++) {
		const struct pc_pending *p = &s->ps.pool[i];
		const struct pc_block *blk = &s->b.table[p->cblock];

		if (!test_bit(i, s->ps.used))
			continue;
		sim_log(s, "block %u: valid %llx dirty %llx flags %x writes %u %u, disk %llx %llx %x",
			p->cblock, (unsigned long long)blk->valid, (unsigned long long)blk->dirty,
			blk->flags, blk->writes[0], blk->writes[1],
			(unsigned long long)p->disk.valid, (unsigned long long)p->disk.dirty,
			p->disk.flags);
		sim_log(s, "  flags %x want %x busy %llx frozen %llx discarding %llx copying %llx uncleaned %llx must %llx",
			p->flags, p->want, (unsigned long long)p->busy,
			(unsigned long long)p->frozen, (unsigned long long)p->discarding,
			(unsigned long long)p->copying, (unsigned long long)p->uncleaned,
			(unsigned long long)p->must);
	}
}

/* Nothing new begins: everything that waits must get its turn. */
static const char *drain(struct sim *s)
{
	const char *bad = NULL;
	u32 i;
	int nr_dirty = 0;

	s->stop = true;
	for (i = 0; i < DRAIN && !bad && !is_drained(s); i++) {
		step(s);
		/* intents age */
		if (i % 1000 == 999)
			sim_intent_sweep(s);
		if (i % 16 == 0)
			bad = check(s);
	}
	if (!bad && !is_drained(s))
		bad = "something waits for ever";
	if (!bad && !s->failed && s->nr_must)
		bad = "records are missing with nothing pending";
	for (i = 0; i < WORLD_CBLOCKS; i++)
		nr_dirty += !!s->b.table[i].dirty;
	if (!bad && !s->failed && s->nr_dirty != nr_dirty)
		bad = "the number of dirty blocks is wrong";
	return bad;
}

/* After a clean stop, with what the devices hold in their caches, or after a power cut. */
static const char *restart(struct sim *s)
{
	bool is_clean = s->stop && !s->failed && !s->nr_intents;
	const char *bad = is_clean && sim_one_in(s, 2) ? NULL : world_cut(&s->m);

	if (bad)
		return bad;
	sim_log(s, "start");
	sim_load(s);
	return check(s);
}

static const char *play(struct sim *s)
{
	const char *bad = NULL;
	u32 cuts = 1 + unit_random_below(&s->r, 3), steps, i;

	while (cuts-- && !bad) {
		s->errors = sim_one_in(s, 2);
		s->slow = sim_one_in(s, 3);
		s->restless = sim_one_in(s, 2);
		s->bypasses = sim_one_in(s, 2);
		s->narrow = sim_one_in(s, 2);
		s->mode = unit_random_below(&s->r, PC_NR_MODES);
		if (sim_one_in(s, 2))
			s->mode = PC_MODE_WRITEBACK;
		steps = unit_random_below(&s->r, STEPS);
		for (i = 0; i < steps && !bad; i++) {
			step(s);
			bad = check(s);
		}
		if (!bad && sim_one_in(s, 3))
			bad = drain(s);
		if (!bad)
			bad = restart(s);
	}
	return bad;
}

static void random_runs(void **state)
{
	static struct sim s;
	const char *only = getenv("PC_RUN"), *bad;
	u64 first = only ? strtoull(only, NULL, 0) : 0, i;
	u64 acked = 0, flushed = 0, commits = 0;

	for (i = first; i < (only ? first + 1 : RUNS); i++) {
		sim_init(&s, i);
		s.verbose = only;
		bad = play(&s);
		acked += s.nr_acked;
		flushed += s.nr_flushed;
		commits += s.nr_commits;
		if (bad) {
			log_state(&s);
			fail_msg("run %llu: %s", (unsigned long long)i, bad);
		}
		sim_exit(&s);
	}
	printf("%llu runs: %llu writes, %llu flushes, %llu commits\n", (unsigned long long)i,
	       (unsigned long long)acked, (unsigned long long)flushed,
	       (unsigned long long)commits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_runs),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
