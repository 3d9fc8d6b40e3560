// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Shadows of policies, and the choice among them (auto.h).
 *
 * Sampled accesses are counted in periods of several times the size of a shadow. At the
 * end of each, what was counted before is halved, so that the past fades. Hysteresis: a
 * policy is chosen when it is ahead of the one at work by the margin, and by more than
 * chance may make of so many accesses, in two periods one after the other, and some
 * periods after the last exchange, because the new policy has the blocks of the old one
 * at first, and what it remembers of others not at all.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "auto.h"
#include "blocks.h"

/* a shadow has so many times fewer blocks than the cache, for 1 % of its memory */
#define SCALE 512u
/* but not so few that chance decides, unless that were a larger part of the cache */
#define MIN_BLOCKS 512u
#define MIN_SCALE 8u

/* neighbours are sampled together: some policies learn of a block from those beside it */
#define AREA_SHIFT 2

#define PERIOD 4u		/* sampled accesses, in shadow blocks */
#define PERIODS_AHEAD 2u
#define PERIODS_APART 4u
#define MARGIN 10u		/* 1/1000 */
/* a lead whose square is below so many times the sampled accesses may be chance */
#define CHANCE 2u

struct shadow {
	struct pc_policy *policy;
	struct pc_blocks blocks;
	u64 hits;		/* of late */
	u32 period_hits;
};

struct pc_auto {
	unsigned int nr;
	unsigned int working;
	unsigned int margin;
	u32 sample_below;	/* hashes below are sampled */
	u32 period_length;
	u64 accesses;
	u64 sampled;		/* of late */
	u32 period_sampled;
	unsigned int periods;	/* since the last exchange */
	unsigned int ahead;	/* periods in a row in which candidate was */
	unsigned int candidate;
	u64 nr_exchanges;
	struct pc_auto_entry log[PC_AUTO_LOG];
	struct shadow shadows[PC_AUTO_MAX_POLICIES];
};

static u32 shadow_blocks(u32 nr_cblocks)
{
	u32 scaled = nr_cblocks / SCALE, least = min(MIN_BLOCKS, nr_cblocks / MIN_SCALE);

	return max3(scaled, least, 1u);
}

static bool init_shadow(struct shadow *s, const struct pc_policy_type *type,
			const struct pc_policy_params *params)
{
	u32 sectors = params->block_sectors;

	/* one sub-block: no data, so none is looked at */
	if (pc_blocks_init(&s->blocks, params->nr_cblocks, sectors, roundup_pow_of_two(sectors),
			   params->nr_oblocks * sectors))
		return false;
	s->policy = type->create(type, params);
	return s->policy;
}

struct pc_auto *pc_auto_create(const struct pc_policy_params *params,
			       const struct pc_policy_type *const *types, unsigned int nr)
{
	struct pc_auto *a = kzalloc(sizeof(*a), GFP_KERNEL);
	struct pc_policy_params small = *params;

	if (!a)
		return NULL;
	small.nr_cblocks = shadow_blocks(params->nr_cblocks);
	a->margin = MARGIN;
	a->period_length = PERIOD * max(small.nr_cblocks, 64u);
	a->sample_below = div_u64((u64)small.nr_cblocks << 32, params->nr_cblocks) - 1;
	for (; a->nr < min(nr, PC_AUTO_MAX_POLICIES); a->nr++) {
		if (init_shadow(&a->shadows[a->nr], types[a->nr], &small))
			continue;
		a->nr++;
		pc_auto_destroy(a);
		return NULL;
	}
	return a;
}

void pc_auto_destroy(struct pc_auto *a)
{
	unsigned int i;

	for (i = 0; i < a->nr; i++) {
		struct shadow *s = &a->shadows[i];

		if (s->policy)
			s->policy->type->destroy(s->policy);
		pc_blocks_exit(&s->blocks);
	}
	kfree(a);
}

size_t pc_auto_memory(const struct pc_auto *a)
{
	size_t bytes = sizeof(*a);
	unsigned int i;

	for (i = 0; i < a->nr; i++) {
		const struct shadow *s = &a->shadows[i];

		bytes += pc_blocks_memory(&s->blocks) + s->policy->type->memory(s->policy);
	}
	return bytes;
}

/* A block of the shadow that maps nothing, for which the policy may give one up. */
static pc_cblock_t make_room(struct shadow *s)
{
	pc_cblock_t c = pc_blocks_alloc(&s->blocks);

	if (c != PC_CBLOCK_NONE || s->policy->type->victims(s->policy, 1, &c) != 1)
		return c;
	s->policy->type->removed(s->policy, c,
				 pc_blocks_oblock(pc_blocks_get(&s->blocks, c)));
	pc_blocks_remove(&s->blocks, c);
	return c;
}

static void access(struct shadow *s, pc_oblock_t o, enum pc_dir dir)
{
	const struct pc_policy_type *type = s->policy->type;
	struct pc_block *blk = pc_blocks_find(&s->blocks, o);
	pc_cblock_t c;

	if (blk) {
		s->period_hits++;
		type->hit(s->policy, pc_blocks_index(&s->blocks, blk), o, dir);
		return;
	}
	if (type->miss(s->policy, o, dir, 0) != PC_ADMIT)
		return;
	c = make_room(s);
	if (c == PC_CBLOCK_NONE)
		return;
	pc_blocks_insert(&s->blocks, c, o);
	type->inserted(s->policy, c, o);
}

static unsigned int best(const struct pc_auto *a)
{
	unsigned int i, b = a->working;

	for (i = 0; i < a->nr; i++)
		if (a->shadows[i].hits > a->shadows[b].hits)
			b = i;
	return b;
}

static void end_period(struct pc_auto *a)
{
	unsigned int i, b;
	u64 lead;

	a->sampled = a->sampled / 2 + a->period_sampled;
	a->period_sampled = 0;
	for (i = 0; i < a->nr; i++) {
		struct shadow *s = &a->shadows[i];

		s->hits = s->hits / 2 + s->period_hits;
		s->period_hits = 0;
		if (s->policy->type->tick)
			s->policy->type->tick(s->policy);
	}
	a->periods++;

	b = best(a);
	lead = a->shadows[b].hits - a->shadows[a->working].hits;
	if (lead * 1000 < a->margin * a->sampled || lead * lead < CHANCE * a->sampled)
		b = a->working;
	a->ahead = b == a->candidate ? a->ahead + 1 : 1;
	a->candidate = b;
}

void pc_auto_access(struct pc_auto *a, pc_oblock_t o, enum pc_dir dir)
{
	u32 area = pc_blocks_hash(pc_oblock(pc_from_oblock(o) >> AREA_SHIFT));
	unsigned int i;

	a->accesses++;
	if (area > a->sample_below)
		return;
	for (i = 0; i < a->nr; i++)
		access(&a->shadows[i], o, dir);
	if (++a->period_sampled == a->period_length)
		end_period(a);
}

int pc_auto_choice(const struct pc_auto *a)
{
	if (a->candidate == a->working || a->ahead < PERIODS_AHEAD || a->periods < PERIODS_APART)
		return -1;
	return a->candidate;
}

unsigned int pc_auto_hits(const struct pc_auto *a, unsigned int index)
{
	return a->sampled ? div64_u64(a->shadows[index].hits * 1000, a->sampled) : 0;
}

void pc_auto_exchanged(struct pc_auto *a, unsigned int index)
{
	struct pc_auto_entry *e = &a->log[a->nr_exchanges++ % PC_AUTO_LOG];

	e->accesses = a->accesses;
	e->from = a->working;
	e->to = index;
	e->from_hits = pc_auto_hits(a, a->working);
	e->to_hits = pc_auto_hits(a, index);
	pc_auto_working(a, index);
}

void pc_auto_working(struct pc_auto *a, unsigned int index)
{
	a->working = index;
	a->candidate = index;
	a->ahead = 0;
	a->periods = 0;
}

unsigned int pc_auto_index(const struct pc_auto *a)
{
	return a->working;
}

const struct pc_auto_entry *pc_auto_log(const struct pc_auto *a, unsigned int n)
{
	if (n >= PC_AUTO_LOG || n >= a->nr_exchanges)
		return NULL;
	return &a->log[(a->nr_exchanges - 1 - n) % PC_AUTO_LOG];
}

u64 pc_auto_exchanges(const struct pc_auto *a)
{
	return a->nr_exchanges;
}

int pc_auto_set(struct pc_auto *a, const char *key, const char *value, const char **why)
{
	unsigned int margin;

	if (strcmp(key, "margin") != 0)
		return -EINVAL;
	if (kstrtouint(value, 10, &margin) || !margin || margin > 1000) {
		*why = "what a policy is to be better by, from 1 to 1000 thousandths of the accesses";
		return -ERANGE;
	}
	a->margin = margin;
	return 0;
}

unsigned int pc_auto_emit(const struct pc_auto *a, char *buf, size_t len)
{
	snprintf(buf, len, "margin %u", a->margin);
	return 2;
}
