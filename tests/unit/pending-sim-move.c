// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills, writeback copies and discards, as fill.c, writeback.c and discard.c do them.
 */
#include "pending-sim.h"

/* fill.c: pc_fill_allowed() */
static u64 fill_allowed(struct sim *s, struct pc_block *blk, u64 mask)
{
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	pc_oblock_t o = pc_blocks_oblock(blk);

	if (s->failed || (blk->flags & PC_BLOCK_DEMOTING))
		return 0;
	mask &= pc_blocks_usable(&s->b, o) & ~blk->valid;
	if (p)
		mask &= ~(p->busy | p->frozen | p->discarding | pc_disk_dropped(blk, p));
	return mask & ~sim_origin_writes(s, pc_from_oblock(o), mask);
}

/* read.c: read_miss(); fill.c: pc_fill_claim(). One run of sub-blocks. */
bool sim_start_fill(struct sim *s, u8 oblock, u64 mask)
{
	struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(oblock));
	struct sim_fill *f = s->fills;
	struct pc_pending *p;
	struct world_io *io;

	while (f < s->fills + SIM_FILLS && f->used)
		f++;
	if (f == s->fills + SIM_FILLS || s->mode == PC_MODE_PASSTHROUGH)
		return false;
	if (!blk)
		blk = sim_insert(s, oblock);
	if (!blk)
		return false;
	mask = fill_allowed(s, blk, mask);
	p = mask ? sim_get_pending(s, blk) : NULL;
	if (!p)
		return false;
	p->busy |= mask;
	blk->holds++;
	f->used = true;
	f->oblock = oblock;
	f->cblock = p->cblock;
	f->mask = mask;
	io = world_submit(&s->m, WORLD_ORIGIN, oblock, sim_cells(mask), true, false, 0);
	io->kind = IO_FILL_READ;
	io->owner = f;
	sim_log(s, "fill of %u into block %u: %llx", oblock, p->cblock, (unsigned long long)mask);
	return true;
}

/* fill.c: finish() and finish_part() */
static void finish_fill(struct sim *s, struct sim_fill *f, bool ok)
{
	struct pc_block *blk = &s->b.table[f->cblock];
	struct pc_pending *p = pc_pending_of(&s->ps, blk);

	if (ok)
		sim_note(s, WORLD_CACHE);
	p->busy &= ~f->mask;
	blk->holds--;
	if (ok)
		blk->valid |= f->mask;
	sim_schedule(s);
	sim_wake_pending(s, p);
	sim_put_pending(s, p);
	sim_wake_pool(s);
	f->used = false;
	sim_log(s, "fill into block %u: %llx %s", f->cblock, (unsigned long long)f->mask,
		ok ? "ok" : "error");
}

void sim_end_fill_io(struct sim *s, struct sim_fill *f, struct world_io *io, bool ok)
{
	struct world_io *write;

	if (io->kind == IO_FILL_WRITE || !ok) {
		finish_fill(s, f, ok);
		return;
	}
	write = world_submit(&s->m, WORLD_CACHE, f->cblock, io->cells, false, false, 0);
	memcpy(write->version, io->version, sizeof(io->version));
	write->kind = IO_FILL_WRITE;
	write->owner = f;
}

static bool is_cleaning(struct sim *s)
{
	return s->mode != PC_MODE_WRITEBACK;
}

/* writeback.c: take() and start_copy() */
bool sim_start_copy(struct sim *s, u32 cblock)
{
	struct pc_block *blk = pc_blocks_get(&s->b, pc_cblock(cblock));
	struct sim_copy *c = s->copies;
	struct pc_pending *p;
	u64 mask;

	while (c < s->copies + SIM_COPIES && c->state != COPY_NONE)
		c++;
	if (c == s->copies + SIM_COPIES || s->failed || !(blk->flags & PC_BLOCK_MAPPED) ||
	    !blk->dirty)
		return false;
	p = sim_get_pending(s, blk);
	if (!p)
		return false;
	mask = blk->dirty & pc_disk_cache_wins(blk, p);
	if (p->copying || p->discarding || pc_pending_wants_change(p) ||
	    blk->writes[!(blk->flags & PC_BLOCK_PARITY)] || !mask) {
		if (!mask)
			sim_kick(s, SIM_KICK_FULL);
		sim_put_pending(s, p);
		return false;
	}
	if (sim_one_in(s, 3)) {
		/* a run that does not fit */
		mask &= ~(1ull << unit_random_below(&s->r, WORLD_SUBS));
		if (!mask) {
			sim_put_pending(s, p);
			return false;
		}
	}
	p->copying = mask;
	p->touched &= ~mask;
	p->flags &= ~PC_PENDING_G_QUIET;
	if ((blk->flags & PC_BLOCK_RETOUCHED) && is_cleaning(s))
		p->frozen |= mask;
	c->parity = !!(blk->flags & PC_BLOCK_PARITY);
	blk->flags ^= PC_BLOCK_PARITY;
	blk->holds++;
	c->oblock = pc_from_oblock(pc_blocks_oblock(blk));
	c->cblock = cblock;
	c->taken = mask;
	c->state = sim_one_in(s, 8) ? COPY_NO_PAGES : COPY_BLOCKED;
	sim_log(s, "copy of block %u: %llx", cblock, (unsigned long long)mask);
	return true;
}

/* writeback.c: finish() and finish_block() */
static void finish_copy(struct sim *s, struct sim_copy *c, bool ok)
{
	struct pc_block *blk = &s->b.table[c->cblock];
	struct pc_pending *p = pc_pending_of(&s->ps, blk);
	u64 done = c->taken & ~p->touched;

	s->round[WORLD_ORIGIN].unflushed_copy = true;
	if (c->taken & p->touched)
		blk->flags |= PC_BLOCK_RETOUCHED;
	else
		blk->flags &= ~PC_BLOCK_RETOUCHED;
	p->copying = 0;
	p->frozen &= ~c->taken;
	if (ok) {
		blk->dirty &= ~done;
		p->uncleaned |= done;
	}
	blk->holds--;
	sim_update_dirty(s, blk);
	sim_schedule(s);
	sim_wake_pending(s, p);
	sim_put_pending(s, p);
	sim_wake_pool(s);
	c->state = COPY_NONE;
	sim_log(s, "copy of block %u: %s, clean %llx", c->cblock, ok ? "ok" : "error",
		(unsigned long long)done);
}

/* writeback.c: run_steps() */
bool sim_step_copy(struct sim *s, struct sim_copy *c)
{
	struct world_io *io;

	if (c->state == COPY_NO_PAGES) {
		finish_copy(s, c, false);
		return true;
	}
	if (c->state != COPY_BLOCKED || s->b.table[c->cblock].writes[c->parity])
		return false;
	io = world_submit(&s->m, WORLD_CACHE, c->cblock, sim_cells(c->taken), true, false, 0);
	io->kind = IO_COPY_READ;
	io->owner = c;
	c->state = COPY_IO;
	return true;
}

void sim_end_copy_io(struct sim *s, struct sim_copy *c, struct world_io *io, bool ok)
{
	struct world_io *write;

	if (io->kind == IO_COPY_WRITE || !ok) {
		finish_copy(s, c, ok);
		return;
	}
	write = world_submit(&s->m, WORLD_ORIGIN, c->oblock, io->cells, false, false, 0);
	memcpy(write->version, io->version, sizeof(io->version));
	write->kind = IO_COPY_WRITE;
	write->owner = c;
}

/* discard.c: is_quiet() */
static bool is_quiet(const struct pc_block *blk, const struct pc_pending *p, u64 mask)
{
	return !((p->busy | p->copying) & mask) && !blk->writes[0] && !blk->writes[1] &&
	       !(blk->flags & PC_BLOCK_DEMOTING);
}

static void discard_dropped(struct sim *s)
{
	struct sim_discard *d = &s->discard;

	/* no fill and no populating write from here to the end: rule 6 */
	if (d->pass)
		sim_count_origin(s, d->op->oblock, d->mask, 1);
	world_discarded(&s->m, d->op->oblock, sim_cells(d->mask));
	d->state = d->dropped ? DISCARD_COMMIT : DISCARD_RELEASE;
	if (d->dropped)
		d->run = sim_commit_run(s);
	sim_log(s, "discard of %u: %llx dropped", d->op->oblock, (unsigned long long)d->mask);
}

/* discard.c: drop_block(), once round */
static bool drop_block(struct sim *s)
{
	struct sim_discard *d = &s->discard;
	struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(d->op->oblock));
	struct pc_pending *p;

	if (!blk) {
		discard_dropped(s);
		return true;
	}
	p = sim_get_pending(s, blk);
	if (!p && s->failed) {
		d->op->state = OP_FREE;
		d->state = DISCARD_NONE;
		return true;
	}
	if (!p) {
		sim_kick(s, SIM_KICK_FULL);
		return false;
	}
	if (!is_quiet(blk, p, d->mask)) {
		p->discarding = ~0ull;
		return false;
	}
	p->discarding = d->mask;
	sim_wake_pending(s, p);
	sim_drop(s, blk, p, d->mask);
	p->flags |= PC_PENDING_URGENT;
	d->dropped = pc_disk_dropped(blk, p) & d->mask;
	discard_dropped(s);
	return true;
}

static void discard_end(struct sim *s, bool ok)
{
	struct sim_discard *d = &s->discard;

	if (d->pass) {
		sim_note(s, WORLD_ORIGIN);
		sim_count_origin(s, d->op->oblock, d->mask, -1);
	}
	d->op->state = OP_FREE;
	d->state = DISCARD_NONE;
	sim_log(s, "discard: %s", ok ? "ok" : "error");
}

/* discard.c: release_block() and the rest of discard() */
static void discard_release(struct sim *s)
{
	struct sim_discard *d = &s->discard;
	struct pc_block *blk = pc_blocks_find(&s->b, pc_oblock(d->op->oblock));
	struct pc_pending *p = blk ? pc_pending_of(&s->ps, blk) : NULL;
	struct world_io *io;
	bool durable = true;

	if (p) {
		durable = !(pc_disk_dropped(blk, p) & d->mask);
		p->discarding &= ~d->mask;
		sim_wake_pending(s, p);
		sim_put_pending(s, p);
	}
	if (!d->pass || !durable) {
		discard_end(s, durable);
		return;
	}
	d->op->version = world_new_version(&s->m, d->op->oblock, sim_cells(d->mask));
	io = world_submit(&s->m, WORLD_ORIGIN, d->op->oblock, sim_cells(d->mask), false, false,
			  d->op->version);
	io->kind = IO_DISCARD;
	d->state = DISCARD_IO;
}

void sim_end_discard_io(struct sim *s)
{
	s->m.version[s->discard.op->version].ended = s->m.now++;
	discard_end(s, true);
}

bool sim_step_discard(struct sim *s)
{
	struct sim_discard *d = &s->discard;
	struct pc_span span;
	u32 i;

	switch (d->state) {
	case DISCARD_NONE:
		for (i = 0; i < SIM_OPS && s->ops[i].state != OP_DISCARDING; i++)
			;
		if (i == SIM_OPS)
			return false;
		d->op = &s->ops[i];
		if (s->failed) {
			d->op->state = OP_FREE;
			return true;
		}
		span = pc_blocks_span(&s->b, d->op->first * WORLD_CELL_SECTORS,
				      d->op->n * WORLD_CELL_SECTORS);
		d->mask = pc_span_mask(&span);
		d->pass = sim_one_in(s, 2);
		d->dropped = false;
		d->state = DISCARD_DROP;
		return true;
	case DISCARD_DROP:
		return drop_block(s);
	case DISCARD_COMMIT:
		if (s->commit.runs_done < d->run)
			return false;
		d->state = DISCARD_RELEASE;
		return true;
	case DISCARD_RELEASE:
		discard_release(s);
		return true;
	default:
		return false;
	}
}
