// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images of a power cut, from the record of a pc_metaio_file. Knows nothing of what
 * is written. Where two pending writes went to the same place, they are applied in
 * order, so the later one may be lost and the earlier one not.
 */
#include "powercut.h"

void powercut_init(struct powercut *p, const struct pc_metaio_file *f, const void *base,
		   u32 unit, struct powercut_lies lies)
{
	memset(p, 0, sizeof(*p));
	p->f = f;
	p->lies = lies;
	p->unit = unit;
	p->bytes = f->io.nr_blocks * PC_META_BLOCK_SIZE;
	p->medium = malloc(p->bytes);
	assert_non_null(p->medium);
	memcpy(p->medium, base, p->bytes);
}

void powercut_free(struct powercut *p)
{
	free(p->medium);
	free(p->pending);
}

static void apply(const struct powercut *p, u8 *image, const struct powercut_unit *u)
{
	memcpy(image + u->at * p->unit, u->data, p->unit);
}

static void settle_pending(struct powercut *p)
{
	for (size_t i = 0; i < p->nr_pending; i++)
		apply(p, p->medium, &p->pending[i]);
	p->nr_pending = 0;
}

static size_t units_of(const struct powercut *p, const struct pc_metaio_event *e)
{
	return (size_t)e->count * PC_META_BLOCK_SIZE / p->unit;
}

static struct powercut_unit unit_of(const struct powercut *p, const struct pc_metaio_event *e,
				    size_t i)
{
	return (struct powercut_unit){
		.at = e->block * (PC_META_BLOCK_SIZE / p->unit) + i,
		.data = e->data + i * p->unit,
	};
}

static void push(struct powercut *p, struct powercut_unit u)
{
	if (p->nr_pending == p->max_pending) {
		p->max_pending = p->max_pending ? 2 * p->max_pending : 64;
		p->pending = realloc(p->pending, p->max_pending * sizeof(*p->pending));
		assert_non_null(p->pending);
	}
	p->pending[p->nr_pending++] = u;
}

static void forget_overwritten(struct powercut *p, u64 at)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nr_pending; i++)
		if (p->pending[i].at != at)
			p->pending[n++] = p->pending[i];
	p->nr_pending = n;
}

static bool preflushes(const struct powercut *p, const struct pc_metaio_event *e)
{
	return (e->flags & PC_META_PREFLUSH) && !p->lies.no_preflush;
}

void powercut_advance(struct powercut *p)
{
	const struct pc_metaio_event *e = &p->f->events[p->next++];

	if (e->type == PC_METAIO_FLUSH) {
		if (!p->lies.no_flush)
			settle_pending(p);
		return;
	}
	if (preflushes(p, e))
		settle_pending(p);
	for (size_t i = 0; i < units_of(p, e); i++) {
		struct powercut_unit u = unit_of(p, e, i);

		if ((e->flags & PC_META_FUA) && !p->lies.no_fua) {
			forget_overwritten(p, u.at);
			apply(p, p->medium, &u);
		} else {
			push(p, u);
		}
	}
}

/* What may be lost: everything pending, and what is in flight unless it flushes first. */
struct choice {
	struct powercut_unit *units;
	size_t n;
	u8 *image;		/* to start from */
};

static struct choice choose_from(struct powercut *p, bool behind_preflush)
{
	const struct pc_metaio_event *e = p->next < p->f->nr_events ? &p->f->events[p->next] : NULL;
	bool is_write = e && e->type == PC_METAIO_WRITE;
	size_t in_flight = is_write ? units_of(p, e) : 0;
	struct choice c = { .image = malloc(p->bytes) };

	c.units = malloc((p->nr_pending + in_flight + 1) * sizeof(*c.units));
	assert_non_null(c.image);
	assert_non_null(c.units);
	memcpy(c.image, p->medium, p->bytes);
	for (size_t i = 0; i < p->nr_pending; i++) {
		if (behind_preflush)
			apply(p, c.image, &p->pending[i]);
		else
			c.units[c.n++] = p->pending[i];
	}
	if (is_write && (behind_preflush || !preflushes(p, e)))
		for (size_t i = 0; i < in_flight; i++)
			c.units[c.n++] = unit_of(p, e, i);
	return c;
}

static void choice_free(struct choice *c)
{
	free(c->units);
	free(c->image);
}

static bool is_preflush_in_flight(const struct powercut *p)
{
	return p->next < p->f->nr_events && p->f->events[p->next].type == PC_METAIO_WRITE &&
	       preflushes(p, &p->f->events[p->next]);
}

enum { PLANS = 18, FEW = 4 };

/* Is unit i of n kept under plan? For each plan, x is the same number for all i. */
static bool is_kept(unsigned int plan, size_t i, size_t n, u64 x, struct unit_random *r)
{
	switch (plan) {
	case 0:
		return false;
	case 1:
		return true;
	case 2 ... 5:	/* all but one */
		return i != x % n;
	case 6 ... 8:	/* one alone */
		return i == x % n;
	case 9 ... 10:	/* a head */
		return i < x % n;
	case 11 ... 12:	/* a tail */
		return i >= x % n;
	case 13:	/* all but the last */
		return i != n - 1;
	case 14:	/* the last alone */
		return i == n - 1;
	default:
		return unit_random_one_in(r, 2 + x % 2);
	}
}

static void images_of(struct powercut *p, struct unit_random *r, const struct choice *c,
		      powercut_fn fn, void *context)
{
	unsigned int plans = c->n <= FEW ? 1u << c->n : PLANS;
	u8 *image = malloc(p->bytes);

	assert_non_null(image);
	for (unsigned int plan = 0; plan < plans; plan++) {
		u64 x = unit_random(r);

		memcpy(image, c->image, p->bytes);
		for (size_t i = 0; i < c->n; i++)
			if (c->n <= FEW ? plan >> i & 1 : is_kept(plan, i, c->n, x, r))
				apply(p, image, &c->units[i]);
		fn(context, image);
	}
	free(image);
}

void powercut_images(struct powercut *p, struct unit_random *r, powercut_fn fn, void *context)
{
	for (int behind = 0; behind <= is_preflush_in_flight(p); behind++) {
		struct choice c = choose_from(p, behind);

		images_of(p, r, &c, fn, context);
		choice_free(&c);
	}
}

void powercut_random_image(struct powercut *p, struct unit_random *r, u8 *image)
{
	struct choice c = choose_from(p, is_preflush_in_flight(p) && unit_random_one_in(r, 2));
	unsigned int plan = unit_random_below(r, PLANS);
	u64 x = unit_random(r);

	memcpy(image, c.image, p->bytes);
	for (size_t i = 0; i < c.n; i++)
		if (is_kept(plan, i, c.n, x, r))
			apply(p, image, &c.units[i]);
	choice_free(&c);
}
