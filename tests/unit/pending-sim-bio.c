// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and their ends, as write.c and endio.c decide them.
 */
#include "pending-sim.h"

struct plan {
	u64 wait, cache, both, drop, origin, populate;
	u64 deny_cache, deny_both, deny_origin, failed;
};

static struct pc_span span_of(struct sim *s, const struct op *op)
{
	return pc_blocks_span(&s->b, op->first * WORLD_CELL_SECTORS, op->n * WORLD_CELL_SECTORS);
}

static u16 cells_of(const struct op *op)
{
	return ((1u << op->n) - 1) << op->first;
}

struct op *sim_new_op(struct sim *s)
{
	u32 i;

	for (i = 0; i < SIM_OPS; i++) {
		if (s->ops[i].state != OP_FREE)
			continue;
		memset(&s->ops[i], 0, sizeof(s->ops[i]));
		s->ops[i].state = OP_RUN;
		return &s->ops[i];
	}
	fail_msg("no free op");
	return NULL;
}

void sim_end_write(struct sim *s, struct op *op, bool ok)
{
	sim_log(s, "write %u of origin block %u cells %x: %s", op->version, op->oblock,
		cells_of(op), ok ? "ok" : "error");
	world_write_ended(&s->m, op->version, ok, ok && op->fua);
	s->nr_acked += ok;
	op->state = OP_FREE;
}

/* lookup.c: pc_lookup_cut() */
static void cut(struct sim *s, struct op *op, struct pc_span *span, u32 last)
{
	u32 end = 2 * (last + 1);
	struct op *rest;

	if (end >= op->first + op->n)
		return;
	rest = sim_new_op(s);
	rest->oblock = op->oblock;
	rest->fua = op->fua;
	rest->bypass = op->bypass;
	rest->first = end;
	rest->n = op->first + op->n - end;
	rest->version = world_new_version(&s->m, rest->oblock, cells_of(rest));
	op->n = end - op->first;
	/* the same write to the user, so of the same time */
	s->m.version[rest->version].submitted = s->m.version[op->version].submitted;
	s->m.version[op->version].cells = cells_of(op);
	*span = span_of(s, op);
}

/* lookup.c: pc_lookup_run() */
static u32 run_of(u32 first, u32 last, u64 mask)
{
	while (first < last && (mask & 1ull << (first + 1)))
		first++;
	return first;
}

static bool may_populate(struct sim *s, const struct op *op)
{
	return s->mode <= PC_MODE_WRITETHROUGH && !op->bypass && !s->failed;
}

/* write.c: make_plan() */
static void make_plan(struct sim *s, const struct op *op, const struct pc_span *sp,
		      struct pc_block *blk, struct pc_pending *p, struct plan *w)
{
	u64 span = pc_span_mask(sp), valid = blk->valid, clean = valid & ~blk->dirty;
	u64 dropped = pc_disk_dropped(blk, p), pop = 0;

	memset(w, 0, sizeof(*w));
	w->deny_cache = pc_disk_denies_cache_write(blk, p);
	w->deny_both = pc_disk_denies_both_write(blk, p);
	w->deny_origin = pc_disk_denies_origin_write(blk, p);
	if (p)
		w->wait = p->busy | p->frozen | p->discarding;
	w->wait |= dropped & w->deny_origin;
	if (may_populate(s, op)) {
		pop = pc_span_whole(sp) & pc_blocks_usable(&s->b, pc_oblock(op->oblock)) &
		      ~(valid | dropped | w->wait);
		pop &= ~sim_origin_writes(s, op->oblock, pop);
	}
	w->populate = pop;
	switch (s->mode) {
	case PC_MODE_WRITEBACK:
		w->cache = valid | pop;
		break;
	case PC_MODE_WRITETHROUGH:
		w->cache = valid & ~clean;
		w->both = clean | pop;
		break;
	default:
		w->cache = valid & ~clean;
		w->drop = clean;
		break;
	}
	w->origin = ~(valid | pop);
	if (s->failed)
		w->failed = pc_disk_any_valid(blk, p);
	w->cache &= span;
	w->both &= span;
	w->drop &= span;
	w->origin &= span;
}

/* write.c: write_origin() */
static void write_origin(struct sim *s, struct op *op, struct pc_span *span, u32 last)
{
	struct world_io *io;

	cut(s, op, span, last);
	op->mask = pc_span_mask(span);
	sim_count_origin(s, op->oblock, op->mask, 1);
	io = world_submit(&s->m, WORLD_ORIGIN, op->oblock, cells_of(op), false, op->fua,
			  op->version);
	io->kind = IO_ORIGIN_WRITE;
	io->owner = op;
	op->state = OP_IO;
	sim_log(s, "write %u to origin block %u cells %x", op->version, op->oblock, cells_of(op));
}

static void wait_pool(struct sim *s, struct op *op, struct pc_span *span)
{
	cut(s, op, span, span->first);
	op->state = OP_POOL;
	sim_kick(s, SIM_KICK_FULL);
}

/* write.c: wait_intent() */
static void wait_intent(struct sim *s, struct op *op, struct pc_span *span, struct pc_block *blk,
			u16 kind)
{
	cut(s, op, span, span->first);
	if (!sim_intent_wait(s, blk, kind, op))
		wait_pool(s, op, span);
}

/* write.c: pc_write_undurable_drops() */
u64 sim_undurable_drops(const struct pc_block *blk, const struct pc_pending *p, u64 mask)
{
	return p ? pc_disk_dropped(blk, p) & pc_disk_denies_origin_write(blk, p) & mask : 0;
}

/* write.c: wait_busy() */
static void wait_busy(struct sim *s, struct op *op, struct pc_span *span, struct pc_block *blk,
		      struct pc_pending *p)
{
	if (sim_undurable_drops(blk, p, 1ull << span->first) || pc_pending_wants_change(p)) {
		p->flags |= PC_PENDING_URGENT;
		sim_kick(s, SIM_KICK_FULL);
	}
	cut(s, op, span, span->first);
	sim_wait_pending(s, p, op);
}

/* write.c: write_starts() */
static void write_starts(struct sim *s, struct op *op, const struct pc_span *span,
			 struct pc_block *blk, struct pc_pending *p, const struct plan *w)
{
	op->cblock = pc_from_cblock(pc_blocks_index(&s->b, blk));
	op->mask = pc_span_mask(span);
	op->populate = op->mask & w->populate;
	op->parity = !!(blk->flags & PC_BLOCK_PARITY);
	blk->writes[op->parity]++;
	pc_pending_write_starts(p, op->mask);
}

static void submit(struct sim *s, struct op *op, enum world_device d, enum sim_io kind)
{
	struct world_io *io;

	io = world_submit(&s->m, d, d == WORLD_CACHE ? op->cblock : op->oblock, cells_of(op),
			  false, op->fua, op->version);
	io->kind = kind;
	io->owner = op;
	op->state = OP_IO;
}

/* write.c: write_cache() */
static void write_cache(struct sim *s, struct op *op, struct pc_span *span, struct pc_block *blk,
			struct pc_pending *p, const struct plan *w)
{
	u64 first_bit = 1ull << span->first;
	u32 last = run_of(span->first, span->last,
			  w->cache & ~w->wait & ~(w->deny_cache & ~w->populate));

	if (!p && (pc_mask(span->first, last) & ~blk->dirty)) {
		p = sim_get_pending(s, blk);
		if (!p && (w->populate & first_bit)) {
			write_origin(s, op, span, run_of(span->first, span->last, w->populate));
			return;
		}
		if (!p) {
			wait_pool(s, op, span);
			return;
		}
	}
	cut(s, op, span, last);
	write_starts(s, op, span, blk, p, w);
	if (p)
		p->busy |= op->populate;
	blk->dirty |= op->mask & ~op->populate;
	sim_update_dirty(s, blk);
	submit(s, op, WORLD_CACHE, IO_CACHE_WRITE);
	sim_log(s, "write %u to cache block %u cells %x populate %llx", op->version, op->cblock,
		cells_of(op), (unsigned long long)op->populate);
}

/* write.c: write_both() and submit_both() */
static void write_both(struct sim *s, struct op *op, struct pc_span *span, struct pc_block *blk,
		       struct pc_pending *p, const struct plan *w)
{
	cut(s, op, span, run_of(span->first, span->last,
				w->both & ~w->wait & ~(w->deny_both & ~w->populate)));
	write_starts(s, op, span, blk, p, w);
	p->busy |= op->mask;
	op->left = 2;
	submit(s, op, WORLD_CACHE, IO_BOTH_CACHE);
	submit(s, op, WORLD_ORIGIN, IO_BOTH_ORIGIN);
	sim_log(s, "write %u to both, block %u of %u cells %x", op->version, op->cblock, op->oblock,
		cells_of(op));
}

/* write.c: write_drop() */
static void write_drop(struct sim *s, struct op *op, struct pc_span *span, struct pc_block *blk,
		       const struct plan *w)
{
	u32 last = run_of(span->first, span->last, w->drop & ~w->wait & ~w->deny_origin);
	struct pc_pending *p = sim_get_pending(s, blk);

	if (!p) {
		wait_pool(s, op, span);
		return;
	}
	cut(s, op, span, last);
	pc_pending_write_starts(p, pc_span_mask(span));
	sim_drop(s, blk, p, pc_span_mask(span));
	write_origin(s, op, span, span->last);
}

/* write.c: admit() */
static struct pc_block *admit(struct sim *s, const struct op *op, const struct pc_span *span)
{
	u64 first_bit = 1ull << span->first;

	if (!may_populate(s, op) ||
	    !(pc_span_whole(span) & first_bit & pc_blocks_usable(&s->b, pc_oblock(op->oblock))) ||
	    sim_origin_writes(s, op->oblock, first_bit))
		return NULL;
	return sim_insert(s, op->oblock);
}

/* write.c: write_locked(), the part that needs pages for two devices */
static void write_with_pages(struct sim *s, struct op *op, struct pc_span *span,
			     struct pc_block *blk, const struct plan *w)
{
	struct pc_pending *p = sim_get_pending(s, blk);
	bool pages = !sim_one_in(s, 8);

	if (pages && p) {
		write_both(s, op, span, blk, p, w);
	} else if (w->populate & 1ull << span->first) {
		if (p)
			sim_put_pending(s, p);
		write_origin(s, op, span, run_of(span->first, span->last, w->populate));
	} else if (!p) {
		wait_pool(s, op, span);
	} else {
		/* pc_wait_pages(): they come back soon */
		cut(s, op, span, span->first);
		op->state = OP_RUN;
	}
}

/* write.c: denied() */
static u16 denied(const struct plan *w, u64 bit)
{
	if (w->cache & bit)
		return w->deny_cache & bit & ~w->populate ? PC_BLOCK_INTENT_CACHE : 0;
	if (w->drop & bit)
		return w->deny_origin & bit ? PC_BLOCK_INTENT_ORIGIN : 0;
	return w->deny_both & bit & ~w->populate ? PC_BLOCK_INTENT_ORIGIN : 0;
}

/* write.c: write_locked() */
static void write_locked(struct sim *s, struct op *op)
{
	struct pc_span span = span_of(s, op);
	struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(op->oblock));
	u64 bit = 1ull << span.first;
	struct pc_pending *p;
	struct plan w;

	if (!blk)
		blk = admit(s, op, &span);
	if (!blk) {
		write_origin(s, op, &span, span.last);
		return;
	}
	p = pc_pending_of(&s->ps, blk);
	if (blk->flags & PC_BLOCK_DEMOTING) {
		wait_busy(s, op, &span, blk, p);
		return;
	}
	make_plan(s, op, &span, blk, p, &w);
	if (w.failed & bit)
		sim_end_write(s, op, false);
	else if (w.wait & bit)
		wait_busy(s, op, &span, blk, p);
	else if (w.origin & bit)
		write_origin(s, op, &span, run_of(span.first, span.last, w.origin & ~w.wait));
	else if (denied(&w, bit))
		wait_intent(s, op, &span, blk, denied(&w, bit));
	else if (p && pc_pending_wants_change(p))
		wait_busy(s, op, &span, blk, p);
	else if (w.cache & bit)
		write_cache(s, op, &span, blk, p, &w);
	else if (w.drop & bit)
		write_drop(s, op, &span, blk, &w);
	else
		write_with_pages(s, op, &span, blk, &w);
}

/* endio.c: retry_origin() */
static void retry_origin(struct sim *s, struct op *op)
{
	submit(s, op, WORLD_ORIGIN, IO_ORIGIN_WRITE);
}

/* endio.c: try_ending() */
static void try_ending(struct sim *s, struct op *op)
{
	struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(op->oblock));
	struct pc_pending *p = blk ? pc_pending_of(&s->ps, blk) : NULL;

	if (sim_undurable_drops(blk, p, op->mask)) {
		if (!s->failed) {
			p->flags |= PC_PENDING_URGENT;
			sim_wait_pending(s, p, op);
			sim_kick(s, SIM_KICK_FULL);
			return;
		}
		op->ok = false;
	}
	sim_end_write(s, op, op->ok);
}

void sim_run_op(struct sim *s, struct op *op)
{
	if (op->is_flush)
		sim_flush_bio(s, op);
	else if (op->is_discard)
		op->state = OP_DISCARDING;
	else if (op->next == NEXT_RETRY_ORIGIN)
		retry_origin(s, op);
	else if (op->next == NEXT_ENDING)
		try_ending(s, op);
	else
		write_locked(s, op);
}

/* write.c: both_done() */
static void both_done(struct sim *s, struct op *op)
{
	struct pc_block *blk = &s->b.table[op->cblock];
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	bool bad = op->bad[0] || op->bad[1], wait = false;

	if (!op->fua || bad) {
		sim_note(s, WORLD_CACHE);
		sim_note(s, WORLD_ORIGIN);
	}
	p->busy &= ~op->mask;
	if (bad) {
		sim_drop(s, blk, p, op->mask);
		wait = sim_undurable_drops(blk, p, op->mask);
	} else {
		blk->valid |= op->mask;
	}
	blk->writes[op->parity]--;
	sim_schedule(s);
	sim_wake_pending(s, p);
	if (wait) {
		op->next = NEXT_ENDING;
		op->ok = !op->bad[1];
		p->flags |= PC_PENDING_URGENT;
		sim_wait_pending(s, p, op);
		sim_kick(s, SIM_KICK_FULL);
	}
	sim_put_pending(s, p);
	sim_wake_pool(s);
	if (!wait)
		sim_end_write(s, op, !op->bad[1]);
}

/* endio.c: end_cache_write(), of a write that succeeded. Returns whether it waits. */
static bool cache_written(struct sim *s, struct op *op, struct pc_block *blk, struct pc_pending *p)
{
	struct pc_span span = span_of(s, op);
	bool durable;
	u64 need, old;

	blk->valid |= op->populate;
	blk->dirty |= op->populate;
	need = pc_pending_needs_record(blk, p, op->mask);
	if (!need)
		return false;
	assert_non_null(p);
	old = p->must;
	p->must |= need;
	sim_update_must(s, p, old);
	if (!op->fua)
		return false;
	durable = !(op->mask & ~pc_span_whole(&span));
	if (durable)
		p->durable |= op->mask;
	/* flush.c: pc_flush_fua() */
	op->state = durable ? OP_RECORD_FUAS : OP_RECORD_FLUSHES;
	sim_kick(s, durable ? SIM_KICK_FUA : SIM_KICK_URGENT);
	return true;
}

/* endio.c: end_cache_write() */
static void end_cache_write(struct sim *s, struct op *op, bool ok)
{
	struct pc_block *blk = &s->b.table[op->cblock];
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	bool wait = false, to_origin = false;

	sim_note(s, WORLD_CACHE);
	if (op->populate)
		p->busy &= ~op->populate;
	if (ok) {
		wait = cache_written(s, op, blk, p);
	} else if (op->populate && op->populate == op->mask) {
		sim_count_origin(s, op->oblock, op->mask, 1);
		to_origin = true;
	}
	blk->writes[op->parity]--;
	sim_update_dirty(s, blk);
	if (p) {
		sim_schedule(s);
		sim_wake_pending(s, p);
		sim_put_pending(s, p);
	}
	if (to_origin) {
		op->next = NEXT_RETRY_ORIGIN;
		op->state = OP_RUN;
	} else if (!wait) {
		sim_end_write(s, op, ok);
	}
}

/* endio.c: leave_origin() */
static void leave_origin(struct sim *s, struct op *op, bool ok)
{
	if (!ok || !op->fua)
		sim_note(s, WORLD_ORIGIN);
	sim_count_origin(s, op->oblock, op->mask, -1);
	sim_end_write(s, op, ok);
}

void sim_end_write_io(struct sim *s, struct op *op, enum sim_io kind, bool ok)
{
	switch (kind) {
	case IO_CACHE_WRITE:
		end_cache_write(s, op, ok);
		break;
	case IO_ORIGIN_WRITE:
		leave_origin(s, op, ok);
		break;
	default:
		op->bad[kind == IO_BOTH_ORIGIN] = !ok;
		if (!--op->left)
			both_done(s, op);
		break;
	}
}

/* endio.c: end_cache_read(), of a read that failed */
void sim_read_error(struct sim *s, struct pc_block *blk, u64 mask)
{
	struct pc_pending *p;

	if (blk->dirty & mask)
		return;
	p = sim_get_pending(s, blk);
	if (!p)
		return;
	sim_log(s, "read error, block %u: drop %llx", p->cblock, (unsigned long long)mask);
	sim_drop(s, blk, p, mask & ~p->busy);
	sim_put_pending(s, p);
}
