// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exchange of policies with a cache that changes between the slices: each mapped
 * block ends exactly once in the new policy. The new policy is told of nothing that
 * the contract forbids (inserted and removed in turns), whatever the old one's walk
 * shows. The cache changes its mapping first and tells the policies later, as the
 * core does, which looks up mappings without its locks.
 */
#include <linux/bitops.h>

#include "policies.h"
#include "policy-cache.h"
#include "swap.h"
#include "unit.h"

#define NR 1000u

/* A policy that only checks what it is told, with a walk after the test's taste. */
struct strict {
	struct pc_policy policy;
	bool holds[NR];
	u64 oblock[NR];
	u32 count;
	struct unit_random r;
};

enum walk_kind {
	WALK_ALL,
	WALK_NOTHING,
	WALK_RANDOM_FOR_EVER,
	WALK_OUT_OF_RANGE,
};

static enum walk_kind walk_kind;

static struct strict *to_strict(struct pc_policy *p)
{
	return container_of(p, struct strict, policy);
}

static struct pc_policy *strict_create(const struct pc_policy_type *type,
				       const struct pc_policy_params *params)
{
	struct strict *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(params->nr_cblocks, NR);
	s->policy.type = type;
	unit_random_init(&s->r, "strict", 0);
	return &s->policy;
}

static void strict_destroy(struct pc_policy *p)
{
	free(to_strict(p));
}

static void strict_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct strict *s = to_strict(p);

	assert_true(pc_from_cblock(c) < NR);
	assert_false(s->holds[pc_from_cblock(c)]);
	s->holds[pc_from_cblock(c)] = true;
	s->oblock[pc_from_cblock(c)] = pc_from_oblock(o);
	s->count++;
}

static void strict_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
			bool has_hint, u32 hint)
{
	assert_false(has_hint);
	assert_int_equal(dirty, pc_from_oblock(o) % 2);
	strict_inserted(p, c, o);
}

static void strict_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct strict *s = to_strict(p);

	assert_true(s->holds[pc_from_cblock(c)]);
	s->holds[pc_from_cblock(c)] = false;
	s->count--;
}

static void strict_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	assert_true(to_strict(p)->holds[pc_from_cblock(c)]);
}

static enum pc_verdict strict_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				   unsigned int flags)
{
	fail();
	return PC_BYPASS;
}

static unsigned int strict_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	return 0;
}

static u32 strict_hint(struct pc_policy *p, pc_cblock_t c)
{
	return 0;
}

static unsigned int strict_walk(struct pc_policy *p, u64 *cursor, unsigned int n,
				pc_cblock_t *out)
{
	struct strict *s = to_strict(p);
	unsigned int got = 0;

	switch (walk_kind) {
	case WALK_ALL:
		for (; got < n && *cursor < NR; (*cursor)++)
			if (s->holds[*cursor])
				out[got++] = pc_cblock(*cursor);
		return got;
	case WALK_NOTHING:
		return 0;
	case WALK_RANDOM_FOR_EVER:
	case WALK_OUT_OF_RANGE:
		while (got < n)
			out[got++] = pc_cblock(unit_random_below(&s->r, walk_kind ==
								 WALK_OUT_OF_RANGE ? 2 * NR : NR));
		return got;
	}
	return 0;
}

static size_t strict_memory(struct pc_policy *p)
{
	return sizeof(struct strict);
}

static struct pc_policy_type strict_type = {
	.create = strict_create,
	.destroy = strict_destroy,
	.load = strict_load,
	.hit = strict_hit,
	.miss = strict_miss,
	.inserted = strict_inserted,
	.removed = strict_removed,
	.victims = strict_victims,
	.hint = strict_hint,
	.walk = strict_walk,
	.memory = strict_memory,
	.name = "strict",
	.api = PC_POLICY_API,
	.version = 1,
};

/* The cache and the host in front of it, without locks. */
struct cache {
	bool mapped[NR];		/* what a lookup sees */
	u64 oblock[NR];
	bool told[NR];			/* what the policies were told last */
	u64 told_oblock[NR];
	unsigned long held[BITS_TO_LONGS(NR)];
	unsigned long loaded[BITS_TO_LONGS(NR)];
	struct pc_policy *policy;
	struct pc_swap swap;
	bool swapping;
	u64 next_oblock;
	struct unit_random r;
};

static bool lookup(void *ctx, pc_cblock_t c, pc_oblock_t *o, bool *dirty)
{
	struct cache *cache = ctx;
	u32 i = pc_from_cblock(c);

	*o = pc_oblock(cache->oblock[i]);
	*dirty = cache->oblock[i] % 2;
	return cache->mapped[i];
}

/* The policies learn of what changed in cblock i, as pc_host_inserted/removed do. */
static void tell(struct cache *c, u32 i)
{
	if (c->told[i] && (!c->mapped[i] || c->told_oblock[i] != c->oblock[i])) {
		c->told[i] = false;
		if (__test_and_clear_bit(i, c->held)) {
			c->policy->type->removed(c->policy, pc_cblock(i),
						 pc_oblock(c->told_oblock[i]));
			if (c->swapping)
				pc_swap_removed(&c->swap, pc_cblock(i),
						pc_oblock(c->told_oblock[i]));
		}
	}
	if (!c->told[i] && c->mapped[i]) {
		c->told[i] = true;
		c->told_oblock[i] = c->oblock[i];
		if (!__test_and_set_bit(i, c->held)) {
			c->policy->type->inserted(c->policy, pc_cblock(i), pc_oblock(c->oblock[i]));
			if (c->swapping)
				pc_swap_inserted(&c->swap, pc_cblock(i), pc_oblock(c->oblock[i]));
		}
	}
}

static void change(struct cache *c)
{
	u32 i = unit_random_below(&c->r, NR);

	switch (unit_random_below(&c->r, 6)) {
	case 0:
		c->mapped[i] = false;
		break;
	case 1:
		/* a new tenant: the old one may not even have been reported as gone */
		c->mapped[i] = true;
		c->oblock[i] = c->next_oblock++;
		break;
	case 2:
		tell(c, i);
		break;
	default:
		if (!test_bit(i, c->held))
			break;
		c->policy->type->hit(c->policy, pc_cblock(i), pc_oblock(c->oblock[i]), PC_READ);
		if (c->swapping)
			pc_swap_hit(&c->swap, pc_cblock(i), pc_oblock(c->oblock[i]), PC_READ);
	}
}

static struct pc_policy *create(const struct pc_policy_type *type)
{
	struct pc_policy_params params = {
		.nr_cblocks = NR, .nr_oblocks = 1ull << 40, .block_sectors = 128,
	};
	struct pc_policy *p = type->create(type, &params);

	assert_non_null(p);
	return p;
}

static void cache_init(struct cache *c, const struct pc_policy_type *type, u64 iteration)
{
	memset(c, 0, sizeof(*c));
	unit_random_init(&c->r, "swap", iteration);
	c->policy = create(type);
	for (u32 i = 0; i < NR; i++) {
		c->mapped[i] = !unit_random_one_in(&c->r, 4);
		c->oblock[i] = c->next_oblock++;
		tell(c, i);
	}
}

/* Steps of n blocks with so many changes in between. Returns the number of steps. */
static unsigned int exchange(struct cache *c, const struct pc_policy_type *to, unsigned int n,
			 unsigned int changes)
{
	struct pc_policy *old = c->policy, *new = create(to);
	unsigned int steps = 1;

	memset(c->loaded, 0, sizeof(c->loaded));
	pc_swap_init(&c->swap, old, new, NR, c->held, c->loaded);
	c->swapping = true;
	while (!pc_swap_step(&c->swap, n, lookup, c)) {
		for (unsigned int k = 0; k < changes; k++)
			change(c);
		assert_true(++steps < 5 * NR);
	}
	c->swapping = false;
	c->policy = new;
	memcpy(c->held, c->loaded, sizeof(c->held));
	old->type->destroy(old);
	return steps;
}

/* All that is reported late is reported now: the policy holds what is mapped. */
static void check_cache(struct cache *c)
{
	bool seen[NR] = { false };
	pc_cblock_t out[64];
	u64 cursor = 0;
	u32 got;

	for (u32 i = 0; i < NR; i++)
		tell(c, i);
	walk_kind = WALK_ALL;
	while ((got = c->policy->type->walk(c->policy, &cursor, ARRAY_SIZE(out), out))) {
		for (u32 k = 0; k < got; k++) {
			u32 i = pc_from_cblock(out[k]);

			assert_false(seen[i]);
			seen[i] = true;
		}
	}
	for (u32 i = 0; i < NR; i++) {
		assert_int_equal(seen[i], c->mapped[i]);
		assert_int_equal(test_bit(i, c->held), c->mapped[i]);
	}
}

static void test_swap_every_pair(void **state)
{
	struct pc_policy_type *from = NULL, *to;
	struct cache c;
	u64 iteration = 0;

	while ((from = pc_policy_next(from))) {
		for (to = NULL; (to = pc_policy_next(to));) {
			for (int k = 0; k < 20; k++) {
				cache_init(&c, from, iteration++);
				exchange(&c, to, 1 + unit_random_below(&c.r, 200),
				     unit_random_below(&c.r, 300));
				check_cache(&c);
				c.policy->type->destroy(c.policy);
			}
		}
	}
}

/* The new policy's contract is kept whatever the old one's walk returns. */
static void test_swap_bad_walks(void **state)
{
	static const enum walk_kind kinds[] = {
		WALK_ALL, WALK_NOTHING, WALK_RANDOM_FOR_EVER, WALK_OUT_OF_RANGE,
	};
	struct cache c;

	for (int k = 0; k < 200; k++) {
		cache_init(&c, &strict_type, 1000 + k);
		walk_kind = kinds[k % ARRAY_SIZE(kinds)];
		exchange(&c, &strict_type, 1 + unit_random_below(&c.r, 100),
		     unit_random_below(&c.r, 100));
		check_cache(&c);
		c.policy->type->destroy(c.policy);
	}
}

/* Hits that keep moving blocks ahead of the walk do not keep it from ending. */
static void test_swap_ends_under_hits(void **state)
{
	const struct pc_policy_type *lru = pc_policy_find("lru");
	struct cache c;

	cache_init(&c, lru, 2000);
	assert_true(exchange(&c, &strict_type, 10, 5000) <= 2 * NR / 10 + NR);
	check_cache(&c);
	c.policy->type->destroy(c.policy);
}

/* Back and forth again and again on one cache. */
static void test_swap_chain(void **state)
{
	const struct pc_policy_type *types[] = {
		pc_policy_find("lru"), pc_policy_find("cleaner"), &strict_type,
	};
	struct cache c;

	cache_init(&c, types[0], 3000);
	for (int k = 0; k < 100; k++) {
		exchange(&c, types[unit_random_below(&c.r, 3)], 50, 50);
		for (int n = 0; n < 200; n++)
			change(&c);
		if (k % 10 == 0)
			check_cache(&c);
	}
	check_cache(&c);
	c.policy->type->destroy(c.policy);
}

/* Without changes lru hands its exact order on. */
static void test_swap_keeps_order(void **state)
{
	const struct pc_policy_type *lru = pc_policy_find("lru");
	static pc_cblock_t before[NR], after[NR];
	struct cache c;
	u64 cursor = 0;
	u32 count;

	cache_init(&c, lru, 4000);
	for (int n = 0; n < 5000; n++)
		change(&c);
	for (u32 i = 0; i < NR; i++)
		tell(&c, i);
	count = lru->walk(c.policy, &cursor, NR, before);
	exchange(&c, lru, 37, 0);
	cursor = 0;
	assert_int_equal(lru->walk(c.policy, &cursor, NR, after), count);
	assert_memory_equal(before, after, count * sizeof(before[0]));
	for (u32 k = 1; k < count; k++)
		assert_true(lru->hint(c.policy, after[k - 1]) < lru->hint(c.policy, after[k]));
	c.policy->type->destroy(c.policy);
}

/*
 * A steady load, of which the cache holds a part, hits after an exchange as before: what
 * is cached stays, and the new policy knows from the order what to give up first.
 */
static void steady_load(const struct pc_policy_type *from, const struct pc_policy_type *to)
{
	enum { BLOCKS = 20000, ORIGIN = 8 * BLOCKS };
	double ratio[2] = { 0 };
	struct policy_cache c;
	struct unit_random r;

	unit_random_init(&r, "steady", 0);
	policy_cache_init(&c, from, BLOCKS, ORIGIN);
	for (int n = 0; n < 6 * BLOCKS; n++) {
		/* the third power: half of the accesses go to an eighth of the blocks */
		u64 u = unit_random_below(&r, 1 << 16), o = u * u * u >> 32;
		bool is_hit = policy_cache_access(&c, (o * ORIGIN >> 16) * 7919 % ORIGIN, 0);

		if (n == 5 * BLOCKS)
			policy_cache_exchange(&c, to, ORIGIN);
		if (n >= 4 * BLOCKS)
			ratio[n >= 5 * BLOCKS] += 100.0 * is_hit / BLOCKS;
	}
	print_message("  %s to %s: %.2f %% hit, then %.2f %%\n", from->name, to->name, ratio[0],
		      ratio[1]);
	assert_true(ratio[0] > 50 && ratio[0] < 90);
	assert_true(ratio[1] > ratio[0] - 2);
	policy_cache_exit(&c);
}

static void test_swap_keeps_hit_ratio(void **state)
{
	struct pc_policy_type *from = NULL, *to = NULL;

	/* the cleaner admits nothing */
	while ((from = pc_policy_next(from)))
		while ((to = pc_policy_next(to)))
			if (strcmp(from->name, "cleaner") != 0 && strcmp(to->name, "cleaner") != 0)
				steady_load(from, to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_swap_every_pair),
		cmocka_unit_test(test_swap_bad_walks),
		cmocka_unit_test(test_swap_ends_under_hits),
		cmocka_unit_test(test_swap_chain),
		cmocka_unit_test(test_swap_keeps_order),
		cmocka_unit_test(test_swap_keeps_hit_ratio),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
