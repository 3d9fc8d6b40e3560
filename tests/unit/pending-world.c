// SPDX-License-Identifier: GPL-2.0-only
/*
 * The world of pending-world.h: contents, promises, power cuts, and the invariant.
 *
 * Time is a counter of events. A version x may be found where y was promised if x had
 * not ended before y was submitted: else y is the newer one for certain.
 */
#include "pending-world.h"

void world_init(struct world *m, struct unit_random *r)
{
	u32 b, c;
	u16 v;

	memset(m, 0, sizeof(*m));
	m->r = r;
	m->now = 1;
	m->nr_versions = 1;
	for (b = 0; b < WORLD_OBLOCKS; b++) {
		v = world_new_version(m, b, (1u << WORLD_CELLS) - 1);
		m->version[v].ended = m->now;
		for (c = 0; c < WORLD_CELLS; c++) {
			m->cell[WORLD_ORIGIN][b][c].n = 1;
			m->cell[WORLD_ORIGIN][b][c].e[0].version = v;
			m->cell[WORLD_CACHE][b][c].n = 1;
		}
	}
}

u16 world_new_version(struct world *m, u8 oblock, u16 cells)
{
	struct world_version *v = &m->version[m->nr_versions];

	assert_true(m->nr_versions < WORLD_MAX_VERSIONS);
	v->oblock = oblock;
	v->cells = cells;
	v->submitted = m->now++;
	v->ended = ~0u;
	return m->nr_versions++;
}

void world_write_ended(struct world *m, u16 version, bool is_ok, bool is_durable)
{
	struct world_version *v = &m->version[version];
	u32 c;

	v->ended = m->now++;
	for (c = 0; c < WORLD_CELLS && is_ok; c++) {
		struct world_promise *p = &m->promise[v->oblock][c];

		if (!(v->cells & 1u << c) || v->submitted < p->discarded)
			continue;
		p->live = max(p->live, v->submitted);
		if (is_durable)
			p->durable = max(p->durable, v->submitted);
	}
}

void world_discarded(struct world *m, u8 oblock, u16 cells)
{
	u32 c;

	for (c = 0; c < WORLD_CELLS; c++) {
		struct world_promise *p = &m->promise[oblock][c];

		if (!(cells & 1u << c))
			continue;
		p->live = p->durable = 0;
		p->discarded = m->now++;
	}
}

void world_flush_begins(struct world *m, struct world_snapshot *s)
{
	memcpy(s->cell, m->promise, sizeof(s->cell));
}

void world_flush_succeeded(struct world *m, const struct world_snapshot *s)
{
	u32 b, c;

	for (b = 0; b < WORLD_OBLOCKS; b++) {
		for (c = 0; c < WORLD_CELLS; c++) {
			struct world_promise *p = &m->promise[b][c];

			if (p->discarded == s->cell[b][c].discarded)
				p->durable = max(p->durable, s->cell[b][c].live);
		}
	}
}

struct world_io *world_submit(struct world *m, enum world_device d, u8 block, u16 cells,
			      bool is_read, bool fua, u16 version)
{
	struct world_io *io = m->io;
	u32 c;

	while (io->used)
		io++;
	assert_true(io < m->io + WORLD_MAX_IOS && cells);
	memset(io, 0, sizeof(*io));
	io->used = true;
	io->is_read = is_read;
	io->fua = fua;
	io->device = d;
	io->block = block;
	io->id = ++m->next_io;
	io->cells = io->todo = cells;
	for (c = 0; c < WORLD_CELLS; c++)
		io->version[c] = version;
	return io;
}

static void apply_cell(struct world *m, struct world_io *io, u32 c)
{
	struct world_cell *cell = &m->cell[io->device][io->block][c];

	io->todo &= ~(1u << c);
	if (io->is_read) {
		io->version[c] = cell->e[cell->n - 1].version;
		return;
	}
	assert_true(cell->n < WORLD_MAX_ENTRIES);
	cell->e[cell->n++] = (struct world_entry){ .version = io->version[c], .io = io->id };
}

bool world_apply(struct world *m, struct world_io *io)
{
	u32 some = unit_random(m->r), c;

	if (unit_random_one_in(m->r, 2))
		some = ~0u;
	for (c = 0; c < WORLD_CELLS; c++)
		if (io->todo & some & 1u << c)
			apply_cell(m, io, c);
	return !io->todo;
}

/* From entry k on: what was before cannot be found any more. */
static void settle(struct world_cell *cell, u32 k)
{
	if (!k)
		return;
	cell->n -= k;
	memmove(cell->e, cell->e + k, cell->n * sizeof(*cell->e));
}

void world_end(struct world *m, struct world_io *io, bool is_ok)
{
	u32 c, k;

	io->used = false;
	/* what failed may have landed all the same: a flush covers it, FUA promises nothing */
	for (c = 0; c < WORLD_CELLS && !io->is_read; c++) {
		struct world_cell *cell = &m->cell[io->device][io->block][c];

		for (k = 0; k < cell->n; k++) {
			if (cell->e[k].io != io->id)
				continue;
			cell->e[k].done = true;
			if (io->fua && is_ok)
				settle(cell, k);
			break;
		}
	}
}

void world_flush_submit(struct world *m, enum world_device d)
{
	u32 b, c, k;

	for (b = 0; b < WORLD_OBLOCKS; b++)
		for (c = 0; c < WORLD_CELLS; c++)
			for (k = 0; k < m->cell[d][b][c].n; k++)
				m->cell[d][b][c].e[k].seen = m->cell[d][b][c].e[k].done;
}

void world_flush_end(struct world *m, enum world_device d, bool is_ok)
{
	u32 b, c, k, last;

	for (b = 0; b < WORLD_OBLOCKS; b++) {
		for (c = 0; c < WORLD_CELLS; c++) {
			struct world_cell *cell = &m->cell[d][b][c];

			for (k = 0, last = 0; k < cell->n; k++) {
				if (cell->e[k].seen)
					last = k;
				cell->e[k].seen = false;
			}
			if (is_ok)
				settle(cell, last);
		}
	}
}

bool world_is_crowded(const struct world *m)
{
	u32 d, b, c;

	for (d = 0; d < WORLD_NR_DEVICES; d++)
		for (b = 0; b < WORLD_OBLOCKS; b++)
			for (c = 0; c < WORLD_CELLS; c++)
				if (m->cell[d][b][c].n > WORLD_MAX_ENTRIES / 2)
					return true;
	return m->nr_versions > WORLD_MAX_VERSIONS - 256;
}

u16 world_read(const struct world *m, enum world_device d, u8 block, u32 cell)
{
	const struct world_cell *c = &m->cell[d][block][cell];

	return c->e[c->n - 1].version;
}

static bool is_of(const struct world *m, u16 version, u8 oblock, u32 cell)
{
	const struct world_version *v = &m->version[version];

	return version != WORLD_GARBAGE && v->oblock == oblock && (v->cells & 1u << cell);
}

bool world_is_live(const struct world *m, u16 version, u8 oblock, u32 cell)
{
	return is_of(m, version, oblock, cell) &&
	       m->version[version].ended >= m->promise[oblock][cell].live;
}

static bool is_durable(const struct world *m, u16 version, u8 oblock, u32 cell)
{
	return is_of(m, version, oblock, cell) &&
	       m->version[version].ended >= m->promise[oblock][cell].durable;
}

/*
 * Everything that a cut may leave in the cell is of the block and new enough. With
 * only not NULL: and it is one version, that one.
 */
static bool is_safe(const struct world *m, enum world_device d, u8 block, u32 cell, u8 oblock,
		    const u16 *only)
{
	const struct world_cell *c = &m->cell[d][block][cell];
	const struct world_io *io;
	u32 k;

	for (k = 0; k < c->n; k++)
		if (!is_durable(m, c->e[k].version, oblock, cell) ||
		    (only && c->e[k].version != *only))
			return false;
	for (io = m->io; io < m->io + WORLD_MAX_IOS; io++) {
		if (!io->used || io->is_read || io->device != d || io->block != block ||
		    !(io->todo & 1u << cell))
			continue;
		if (!is_durable(m, io->version[cell], oblock, cell) ||
		    (only && io->version[cell] != *only))
			return false;
	}
	return true;
}

/* Sub-blocks whose newest data a record places on the cache. */
static u64 wins(const struct pc_disk *d)
{
	return d->flags & PC_BLOCK_INTENT_CACHE ? d->valid : d->dirty;
}

static const char *check_cell(const struct world *m, u8 oblock, int cblock,
			      const struct pc_disk *d, u32 cell)
{
	u64 bit = 1ull << cell / 2;
	u16 only;

	if (cblock >= 0 && (wins(d) & bit))
		return is_safe(m, WORLD_CACHE, cblock, cell, oblock, NULL) ? NULL :
		       "dirty or cache-wins: newest data is not on the cache";
	if (cblock >= 0 && (d->valid & bit) && !(d->flags & PC_BLOCK_INTENT_ORIGIN)) {
		only = world_read(m, WORLD_ORIGIN, oblock, cell);
		return is_safe(m, WORLD_CACHE, cblock, cell, oblock, &only) &&
		       is_safe(m, WORLD_ORIGIN, oblock, cell, oblock, &only) ? NULL :
		       "clean: cache and origin are not durably the same";
	}
	return is_safe(m, WORLD_ORIGIN, oblock, cell, oblock, NULL) ? NULL :
	       "not valid or origin-wins: newest data is not on the origin";
}

static const char *check_records(const struct world *m, const struct world_record *records)
{
	const char *bad = NULL;
	u32 o, c, cell;

	for (o = 0; o < WORLD_OBLOCKS && !bad; o++) {
		int found = -1;

		for (c = 0; c < WORLD_CBLOCKS; c++) {
			if (!(records[c].disk.flags & PC_BLOCK_MAPPED) || records[c].oblock != o)
				continue;
			if (found >= 0)
				return "an origin block is mapped twice";
			found = c;
			if ((records[c].disk.flags & PC_BLOCK_INTENTS) == PC_BLOCK_INTENTS)
				return "both intents";
			if (records[c].disk.dirty & ~records[c].disk.valid)
				return "dirty but not valid";
		}
		for (cell = 0; cell < WORLD_CELLS && !bad; cell++)
			bad = check_cell(m, o, found, found < 0 ? NULL : &records[found].disk,
					 cell);
	}
	return bad;
}

static bool after_commit(const struct world *m, struct world_record *records)
{
	bool any = false;
	u32 c;

	for (c = 0; c < WORLD_CBLOCKS; c++) {
		any |= m->has_next[c];
		records[c] = m->has_next[c] ? m->next[c] : m->record[c];
	}
	return any;
}

const char *world_check(struct world *m)
{
	struct world_record records[WORLD_CBLOCKS];
	const char *bad = check_records(m, m->record);

	if (!bad && after_commit(m, records))
		bad = check_records(m, records);
	return bad;
}

const char *world_check_origin_alone(struct world *m)
{
	u32 o, cell;

	for (o = 0; o < WORLD_OBLOCKS; o++) {
		for (cell = 0; cell < WORLD_CELLS; cell++) {
			if (!is_safe(m, WORLD_ORIGIN, o, cell, o, NULL))
				return "nothing is dirty, but the origin would lack data after a cut";
			if (!world_is_live(m, world_read(m, WORLD_ORIGIN, o, cell), o, cell))
				return "nothing is dirty, but the origin lacks data";
		}
	}
	return NULL;
}

/* One of the versions that the cut may leave. */
static void cut_cell(struct world *m, enum world_device d, u8 block, u32 cell)
{
	struct world_cell *c = &m->cell[d][block][cell];
	u32 k = unit_random_below(m->r, c->n);

	if (unit_random_one_in(m->r, 3))
		k = unit_random_one_in(m->r, 2) ? c->n - 1 : 0;
	c->e[0] = (struct world_entry){ .version = c->e[k].version };
	c->n = 1;
}

static void cut_devices(struct world *m)
{
	struct world_io *io;
	u32 d, b, cell;

	for (io = m->io; io < m->io + WORLD_MAX_IOS; io++) {
		if (io->used && !io->is_read && unit_random_one_in(m->r, 2))
			world_apply(m, io);
		io->used = false;
	}
	for (d = 0; d < WORLD_NR_DEVICES; d++)
		for (b = 0; b < WORLD_OBLOCKS; b++)
			for (cell = 0; cell < WORLD_CELLS; cell++)
				cut_cell(m, d, b, cell);
}

/* recovery.c: resolve_intent() and settle(): an empty block is free */
static void recover(struct world_record *r)
{
	struct pc_disk *d = &r->disk;
	u64 old = d->valid;

	if (d->flags & PC_BLOCK_INTENT_CACHE)
		d->dirty = d->valid;
	if (d->flags & PC_BLOCK_INTENT_ORIGIN)
		d->valid = d->dirty;
	d->flags &= ~PC_BLOCK_INTENTS;
	if (old && !d->valid)
		memset(r, 0, sizeof(*r));
}

/*
 * Where a cell of the origin is read from now on gets a version of its own. What it
 * replaces on the origin becomes an older one: only a discard may bring it back.
 */
static void pin(struct world *m, u8 oblock, u32 cell, int cblock, bool on_cache, bool on_origin)
{
	struct world_promise *p = &m->promise[oblock][cell];
	u16 old = world_new_version(m, oblock, 1u << cell);
	u16 v = world_new_version(m, oblock, 1u << cell);

	m->version[old].ended = m->version[old].submitted;
	m->version[v].ended = m->version[v].submitted;
	p->live = p->durable = m->version[v].submitted;
	p->discarded = p->live;
	m->cell[WORLD_ORIGIN][oblock][cell].e[0].version = on_origin ? v : old;
	if (cblock >= 0 && on_cache)
		m->cell[WORLD_CACHE][cblock][cell].e[0].version = v;
}

static const char *pin_block(struct world *m, u8 o, int cblock)
{
	const struct pc_disk *d = cblock < 0 ? NULL : &m->record[cblock].disk;
	u32 cell;

	for (cell = 0; cell < WORLD_CELLS; cell++) {
		u64 bit = 1ull << cell / 2;
		bool on_cache = d && (d->valid & bit);
		bool on_origin = !d || !(d->dirty & bit);
		u16 v = on_cache ? world_read(m, WORLD_CACHE, cblock, cell) :
				   world_read(m, WORLD_ORIGIN, o, cell);

		if (!is_durable(m, v, o, cell))
			return "lost after the cut";
		if (on_cache && on_origin && v != world_read(m, WORLD_ORIGIN, o, cell))
			return "different on cache and origin after the cut";
		pin(m, o, cell, cblock, on_cache, on_origin);
		if (cblock >= 0 && !on_cache)
			m->cell[WORLD_CACHE][cblock][cell].e[0].version = WORLD_GARBAGE;
	}
	return NULL;
}

const char *world_cut(struct world *m)
{
	struct world_record after[WORLD_CBLOCKS];
	const char *bad = NULL;
	u32 o, c, cell;

	if (after_commit(m, after) && unit_random_one_in(m->r, 2))
		memcpy(m->record, after, sizeof(after));
	memset(m->has_next, 0, sizeof(m->has_next));
	cut_devices(m);
	for (c = 0; c < WORLD_CBLOCKS; c++)
		recover(&m->record[c]);
	for (c = 0; c < WORLD_CBLOCKS; c++)
		for (cell = 0; cell < WORLD_CELLS; cell++)
			if (!(m->record[c].disk.flags & PC_BLOCK_MAPPED))
				m->cell[WORLD_CACHE][c][cell].e[0].version = WORLD_GARBAGE;
	for (o = 0; o < WORLD_OBLOCKS && !bad; o++) {
		int found = -1;

		for (c = 0; c < WORLD_CBLOCKS; c++)
			if ((m->record[c].disk.flags & PC_BLOCK_MAPPED) && m->record[c].oblock == o)
				found = c;
		bad = pin_block(m, o, found);
	}
	return bad;
}
