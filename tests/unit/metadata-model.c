// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of the metadata and the steps that several tests share. Nothing here
 * is clever on purpose: every rule is written the long way, a bit at a time.
 */
#include <errno.h>

#include "metadata-model.h"

static u64 oblocks_of(const struct pc_metadata_params *p)
{
	return (p->origin_sectors + p->block_sectors - 1) / p->block_sectors;
}

static void set_params(struct model *m)
{
	m->nr = m->params.nr_cblocks;
	m->nr_oblocks = oblocks_of(&m->params);
}

void model_init(struct model *m, u32 nr_cblocks, u32 block_sectors, u32 subblock_sectors,
		u64 origin_sectors)
{
	memset(m, 0, sizeof(*m));
	m->params.nr_cblocks = nr_cblocks;
	m->params.block_sectors = block_sectors;
	m->params.subblock_sectors = subblock_sectors;
	m->params.origin_sectors = origin_sectors;
	for (int i = 0; i < PC_UUID_SIZE; i++)
		m->params.uuid[i] = i * 7 + 11;
	set_params(m);
	m->entries = calloc(m->nr, sizeof(*m->entries));
	m->used = calloc(m->nr_oblocks + 1, sizeof(*m->used));
	assert_non_null(m->entries);
	assert_non_null(m->used);
}

void model_free(struct model *m)
{
	free(m->entries);
	free(m->used);
	memset(m, 0, sizeof(*m));
}

void model_copy(struct model *to, const struct model *from)
{
	*to = *from;
	to->entries = malloc(from->nr * sizeof(*to->entries));
	to->used = malloc((from->nr_oblocks + 1) * sizeof(*to->used));
	assert_non_null(to->entries);
	assert_non_null(to->used);
	memcpy(to->entries, from->entries, from->nr * sizeof(*to->entries));
	memcpy(to->used, from->used, (from->nr_oblocks + 1) * sizeof(*to->used));
}

u64 model_covered(const struct pc_metadata_params *p, u64 oblock)
{
	u64 mask = 0;

	for (u32 i = 0; i < 64; i++) {
		u64 from = (u64)i * p->subblock_sectors;
		u64 to = from + p->subblock_sectors;

		if (from >= p->block_sectors)
			break;
		if (to > p->block_sectors)
			to = p->block_sectors;
		if (oblock * p->block_sectors + to <= p->origin_sectors)
			mask |= 1ull << i;
	}
	return mask;
}

static void drop(struct model *m, u32 cblock)
{
	struct pc_entry *e = &m->entries[cblock];

	if (e->flags & PC_ENTRY_MAPPED)
		m->used[e->oblock] = false;
	memset(e, 0, sizeof(*e));
}

static u64 random_mask(struct unit_random *r)
{
	switch (unit_random_below(r, 4)) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return unit_random(r) & unit_random(r) & unit_random(r);
	default:
		return unit_random(r);
	}
}

static void random_state(struct model *m, struct unit_random *r, struct pc_entry *e)
{
	static const u16 intents[] = { 0, PC_ENTRY_INTENT_CACHE, PC_ENTRY_INTENT_ORIGIN };

	e->valid = random_mask(r) & model_covered(&m->params, e->oblock);
	e->dirty = random_mask(r) & e->valid;
	e->flags = PC_ENTRY_MAPPED;
	if (unit_random_one_in(r, 2))
		e->flags |= intents[unit_random_below(r, 3)];
}

void model_change(struct model *m, struct unit_random *r, struct pc_record *record)
{
	u32 cblock = unit_random_below(r, m->nr);
	struct pc_entry *e = &m->entries[cblock];

	if (e->flags & PC_ENTRY_MAPPED) {
		if (unit_random_one_in(r, 4))
			drop(m, cblock);
		else
			random_state(m, r, e);
	} else {
		u64 oblock = unit_random_below(r, m->nr_oblocks);

		while (m->used[oblock])
			oblock = (oblock + 1) % m->nr_oblocks;
		m->used[oblock] = true;
		e->oblock = oblock;
		random_state(m, r, e);
	}
	record->cblock = cblock;
	record->entry = *e;
	/* ignored by contract */
	record->entry.hint = unit_random(r);
	if (!e->flags) {
		record->entry.oblock = unit_random(r);
		record->entry.valid = unit_random(r);
	}
}

u32 model_clear_intents(struct model *m, struct pc_record *records)
{
	u32 n = 0;

	for (u32 c = 0; c < m->nr; c++) {
		if (!(m->entries[c].flags & PC_ENTRY_INTENTS))
			continue;
		m->entries[c].flags &= ~PC_ENTRY_INTENTS;
		records[n].cblock = c;
		records[n++].entry = m->entries[c];
	}
	return n;
}

void model_settle(struct model *m)
{
	for (u32 c = 0; c < m->nr; c++) {
		struct pc_entry *e = &m->entries[c];
		u64 had = e->valid;

		if (!(e->flags & PC_ENTRY_MAPPED))
			continue;
		for (int i = 0; i < 64; i++) {
			u64 bit = 1ull << i;

			if (!(e->valid & bit))
				continue;
			if (e->flags & PC_ENTRY_INTENT_CACHE)
				e->dirty |= bit;
			if ((e->flags & PC_ENTRY_INTENT_ORIGIN) && !(e->dirty & bit))
				e->valid &= ~bit;
		}
		e->flags = PC_ENTRY_MAPPED;
		if (had && !e->valid)
			drop(m, c);
	}
}

bool model_resize(struct model *m, u32 nr_cblocks, u64 origin_sectors)
{
	struct pc_metadata_params p = m->params;
	struct model new;

	p.origin_sectors = origin_sectors;
	for (u32 c = 0; c < m->nr; c++) {
		struct pc_entry *e = &m->entries[c];

		if ((e->flags & PC_ENTRY_MAPPED) &&
		    (e->dirty & ~(c < nr_cblocks ? model_covered(&p, e->oblock) : 0)))
			return false;
	}
	model_init(&new, nr_cblocks, p.block_sectors, p.subblock_sectors, origin_sectors);
	for (u32 c = 0; c < m->nr && c < nr_cblocks; c++) {
		struct pc_entry e = m->entries[c];
		u64 had = e.valid;

		if (!(e.flags & PC_ENTRY_MAPPED) || e.oblock >= new.nr_oblocks)
			continue;
		e.valid &= model_covered(&p, e.oblock);
		if (had && !e.valid)
			continue;
		new.entries[c] = e;
		new.used[e.oblock] = true;
	}
	model_free(m);
	*m = new;
	return true;
}

u32 model_hint(void *context, u32 cblock)
{
	const struct model *m = context;

	return cblock * 2654435761u ^ (u32)m->entries[cblock].oblock;
}

struct pc_metadata *model_open(const struct model *m, struct pc_metaio_file *f)
{
	char why[PC_META_ERR_SIZE];
	int err = 1;
	struct pc_metadata *md = pc_metadata_open(&f->io, &m->params, &err, why);

	if (!md)
		fail_msg("open: error %d: %s", err, why);
	return md;
}

struct collect {
	struct pc_entry *entries;
	u32 nr;
	u32 next;
};

static int collect(void *context, u32 cblock, const struct pc_entry *e)
{
	struct collect *c = context;

	assert_true(cblock < c->nr);
	assert_true(cblock >= c->next);
	assert_int_equal(e->flags, PC_ENTRY_MAPPED);
	c->entries[cblock] = *e;
	c->next = cblock + 1;
	return 0;
}

int model_load_raw(struct pc_metadata *md, struct pc_entry *entries, u32 nr,
		   char why[PC_META_ERR_SIZE])
{
	struct collect c = { .entries = entries, .nr = nr };
	int err;

	memset(entries, 0, nr * sizeof(*entries));
	err = pc_metadata_load(md, collect, &c, why);
	assert_int_equal(!!err, !!why[0]);
	return err;
}

static bool entry_equal(const struct pc_entry *a, const struct pc_entry *b)
{
	return a->oblock == b->oblock && a->valid == b->valid && a->dirty == b->dirty &&
	       a->flags == b->flags;
}

bool model_equal(const struct model *m, const struct pc_entry *entries, u32 nr)
{
	if (nr != m->nr)
		return false;
	for (u32 c = 0; c < nr; c++)
		if (!entry_equal(&m->entries[c], &entries[c]))
			return false;
	return true;
}

void model_load(const struct model *m, struct pc_metadata *md, bool hints)
{
	struct pc_entry *entries = calloc(m->nr, sizeof(*entries));
	char why[PC_META_ERR_SIZE];
	int err = model_load_raw(md, entries, m->nr, why);

	if (err)
		fail_msg("load: error %d: %s", err, why);
	for (u32 c = 0; c < m->nr; c++) {
		const struct pc_entry *want = &m->entries[c], *got = &entries[c];

		if (!entry_equal(want, got))
			fail_msg("block %u: want %llu %llx/%llx %x, got %llu %llx/%llx %x",
				 c, want->oblock, want->valid, want->dirty, want->flags,
				 got->oblock, got->valid, got->dirty, got->flags);
		if (hints && (want->flags & PC_ENTRY_MAPPED))
			assert_int_equal(got->hint, model_hint((void *)m, c));
	}
	free(entries);
}

void model_check_device(const struct model *m, struct pc_metaio_file *f, bool hints)
{
	struct pc_metadata *md = model_open(m, f);

	model_load(m, md, hints);
	pc_metadata_free(md);
}

int model_commit(struct model *m, struct unit_random *r, struct pc_metadata *md, u32 n)
{
	struct pc_record *records = calloc(n, sizeof(*records));
	int err;

	for (u32 i = 0; i < n; i++)
		model_change(m, r, &records[i]);
	err = pc_metadata_commit(md, records, n);
	free(records);
	return err;
}

void model_close(struct model *m, struct pc_metadata *md)
{
	static const u64 counters[PC_NR_COUNTERS] = { 1, 22, 333, 4444, 55555, 1ull << 40 };
	struct pc_record *records = calloc(m->nr, sizeof(*records));
	u32 n = model_clear_intents(m, records);

	assert_int_equal(pc_metadata_commit(md, records, n), 0);
	assert_int_equal(pc_metadata_close_clean(md, "model", 3, model_hint, m, counters), 0);
	free(records);
}
