// SPDX-License-Identifier: GPL-2.0-only
/*
 * smq: the levels against a naive model (arrays), the hotspot queue and what adapts step
 * by step, and what it promises: a scan does no harm, a new working set is in after two
 * passes, a restart changes nothing, and each of its two switches is worth something.
 */
#include <linux/errno.h>

#include "policies.h"
#include "policy-cache.h"
#include "unit.h"

/* compiled a second time, to look into it */
#undef PC_POLICY_MODULE
#define PC_POLICY_MODULE(type, text) static struct pc_policy_type *const inner = &(type)
#include "../../policies/smq.c"

#define NR 256u
#define NR_ORIGIN 1024u

static void set(struct policy_cache *c, const char *key, const char *value)
{
	const char *why = NULL;

	assert_int_equal(inner->set(c->p, key, value, &why), 0);
}

/* The levels; the hotspot queue says what it promotes, and nothing moves the shares. */

struct model {
	u32 level[NR_LEVELS][NR];	/* origin blocks, coldest first */
	u32 count[NR_LEVELS];
	u32 entries;			/* into level 0 */
	u32 hits;
	u32 upper_entries;		/* into those above */
	u32 entered[NR_ORIGIN];		/* entries at that time */
	u32 idle;
	u32 idle_drops;			/* demotions that idle levels decided */
	u32 demoted;
};

static bool model_find(const struct model *m, u32 o, u32 *level, u32 *at)
{
	for (*level = 0; *level < NR_LEVELS; ++*level)
		for (*at = 0; *at < m->count[*level]; ++*at)
			if (m->level[*level][*at] == o)
				return true;
	return false;
}

static u32 model_take(struct model *m, u32 level, u32 at)
{
	u32 o = m->level[level][at];

	m->count[level]--;
	memmove(m->level[level] + at, m->level[level] + at + 1,
		(m->count[level] - at) * sizeof(u32));
	return o;
}

/* Above level 0, which level's coldest goes next; 0: none. */
static u32 model_to_give(struct model *m)
{
	u32 found = 0, longest = 0;

	for (u32 level = 1; level < NR_LEVELS; level++) {
		u32 wait;

		if (!m->count[level])
			continue;
		if (m->idle <= NR / 64)
			return level;
		wait = (m->upper_entries - m->entered[m->level[level][0]]) * (5 - level);
		if (!found || wait > longest) {
			found = level;
			longest = wait;
		}
	}
	return found;
}

static void model_push(struct model *m, u32 level, u32 o)
{
	u32 size = 0;

	m->entered[o] = level ? ++m->upper_entries : ++m->entries;
	m->level[level][m->count[level]++] = o;
	for (u32 above = level; above < NR_LEVELS; above++)
		size += m->count[above];
	if (level && size > (NR - NR / 8) / 3 * (NR_LEVELS - level) &&
	    (level > 1 || model_to_give(m) == 1))
		model_push(m, level - 1, model_take(m, level, 0));
}

static bool model_access(struct model *m, u32 o, bool promoted)
{
	u32 level, at, total = 0;

	m->demoted = NONE;
	if (model_find(m, o, &level, &at)) {
		m->entries += ++m->hits % 8 == 0;
		if (level)
			m->idle -= min(m->idle, 16u);
		if (level || m->entries - m->entered[o] >= NR / 32)
			model_push(m, min(level + 1, 3u), model_take(m, level, at));
		return true;
	}
	for (level = 0; level < NR_LEVELS; level++)
		total += m->count[level];
	if (total == NR) {
		level = 0;
		if (m->count[0] < NR / 8)
			level = model_to_give(m);
		m->idle_drops += level > 1;
		m->demoted = model_take(m, level, 0);
	}
	if (promoted)
		m->idle = min(m->idle + 1, NR / 16);
	model_push(m, promoted, o);
	return false;
}

/* Threshold 0: what missed before is promoted. */
static bool will_promote(struct smq *smq, u32 o)
{
	u32 hash = hash_area(pc_oblock(o));
	struct area *set = area_set(smq, hash);
	unsigned int rank = area_find(set, hash);

	return smq->use_hotspot && rank < HOT_WAYS && set[rank].missed & missed_bit(pc_oblock(o));
}

/* Blocks that come back often, runs, and now and then all of another part of the origin. */
static u32 next_access(struct unit_random *r, u32 n, u32 *run)
{
	u32 range = 1 + unit_random_below(r, n / 3000 % 3 ? NR_ORIGIN : NR);
	u32 o = n / 3000 * 300 + unit_random_below(r, range);

	if (n / 5000 % 2 && unit_random_one_in(r, 2))
		o = ++*run;
	return o % NR_ORIGIN;
}

static void levels_are_the_model(const char *hotspot)
{
	struct model *m = calloc(1, sizeof(*m));
	struct unit_random r;
	struct policy_cache c;
	u32 hits = 0, run = 0;

	unit_random_init(&r, "smq", 0);
	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	set(&c, "hotspot", hotspot);
	set(&c, "adapt", "0");
	for (u32 n = 0; n < 60000; n++) {
		u32 o = next_access(&r, n, &run);
		bool promoted = will_promote(to_smq(c.p), o);
		bool hit = policy_cache_access(&c, o, 0);

		assert_int_equal(hit, model_access(m, o, promoted));
		assert_int_equal(c.demoted, m->demoted);
		hits += hit;
	}
	for (u32 level = 0; level < NR_LEVELS; level++)
		assert_int_equal(to_smq(c.p)->queues.size[level], m->count[level]);
	assert_true(hits > 10000 && hits < 59000);
	assert_true(*hotspot == '0' || m->idle_drops > 100);
	policy_cache_exit(&c);
	free(m);
}

static void test_smq_levels_are_the_model(void **state)
{
	levels_are_the_model("0");
	levels_are_the_model("1");
}

/* The hotspot queue */

static unsigned int rank_of(struct smq *smq, u32 o)
{
	u32 hash = hash_area(pc_oblock(o));

	return area_find(area_set(smq, hash), hash);
}

static void test_smq_hotspot_ranks(void **state)
{
	struct policy_cache c;
	struct smq *smq;

	/* one set */
	policy_cache_init(&c, inner, HOT_WAYS, NR_ORIGIN);
	smq = to_smq(c.p);
	assert_int_equal(smq->nr_sets, 1);
	for (u32 area = 0; area < 3; area++)
		inner->miss(c.p, pc_oblock(area * AREA_BLOCKS), PC_READ, 0);
	for (u32 area = 0; area < 3; area++)
		assert_int_equal(rank_of(smq, area * AREA_BLOCKS), HOT_ENTRY - 2 + area);

	/* another block of the area counts for it, and a prefetch does not */
	inner->miss(c.p, pc_oblock(1), PC_READ, 0);
	assert_int_equal(rank_of(smq, 0), HOT_ENTRY - 1);
	inner->miss(c.p, pc_oblock(2), PC_READ, PC_MISS_PREFETCH);
	assert_int_equal(rank_of(smq, 0), HOT_ENTRY - 1);
	for (u32 n = 0; n < 20; n++)
		inner->miss(c.p, pc_oblock(1), PC_READ, 0);
	assert_int_equal(rank_of(smq, 0), HOT_WAYS - 1);

	/* new ones push each other out, never what has risen */
	for (u32 area = 10; area < 40; area++)
		inner->miss(c.p, pc_oblock(area * AREA_BLOCKS), PC_READ, 0);
	assert_int_equal(rank_of(smq, 0), HOT_WAYS - 1);
	assert_int_equal(rank_of(smq, AREA_BLOCKS), HOT_WAYS);
	assert_int_equal(rank_of(smq, 39 * AREA_BLOCKS), HOT_ENTRY);
	policy_cache_exit(&c);
}

static unsigned int level_after_misses(u32 misses, u32 neighbour_misses, unsigned int threshold)
{
	struct policy_cache c;
	unsigned int level;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	to_smq(c.p)->threshold = threshold;
	while (neighbour_misses--)
		inner->miss(c.p, pc_oblock(1), PC_READ, 0);
	while (misses--)
		inner->miss(c.p, pc_oblock(0), PC_READ, 0);
	inner->inserted(c.p, pc_cblock(7), pc_oblock(0));
	level = level_of(to_smq(c.p), 7);
	policy_cache_exit(&c);
	return level;
}

/* A block that missed before, in an area of the threshold's level or above. */
static void test_smq_promotion(void **state)
{
	assert_int_equal(level_after_misses(1, 0, 0), 0);
	assert_int_equal(level_after_misses(2, 0, 0), 1);
	assert_int_equal(level_after_misses(1, 9, 0), 0);
	assert_int_equal(level_after_misses(2, 0, HOT_ENTRY), 1);
	assert_int_equal(level_after_misses(2, 0, HOT_ENTRY + 1), 0);
	assert_int_equal(level_after_misses(3, 0, HOT_ENTRY + 1), 1);
	assert_int_equal(level_after_misses(2, 1, HOT_ENTRY + 1), 1);
}

/* Laxer while the cache is worse than the hotspot queue, stricter while it is better. */
static void test_smq_threshold_adapts(void **state)
{
	struct policy_cache c;
	struct smq *smq;

	policy_cache_init(&c, inner, NR, 1 << 20);
	smq = to_smq(c.p);
	policy_cache_pass(&c, 0, 100);
	for (int pass = 0; pass < 20; pass++)
		policy_cache_pass(&c, 0, 100);
	policy_cache_pass(&c, 10000, 8 * 64);
	assert_true(smq->threshold > 0);
	/* all that misses is known, nothing hits: as when the working set changed */
	for (int n = 0; n < 1000; n++)
		inner->miss(c.p, pc_oblock(n % 200), PC_READ, 0);
	assert_int_equal(smq->threshold, 0);

	set(&c, "adapt", "0");
	policy_cache_pass(&c, 20000, 8 * 64);
	assert_int_equal(smq->threshold, 0);
	policy_cache_exit(&c);
}

/* Reused soon after it left level 0: that grows. Soon after it left another: it shrinks. */
static void test_smq_share_adapts(void **state)
{
	struct policy_cache c;
	struct smq *smq;
	u32 share;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	smq = to_smq(c.p);
	share = smq->share;
	policy_cache_pass(&c, 0, NR + 1);
	policy_cache_access(&c, 0, 0);
	assert_int_equal(smq->share, share + 1);

	/* level 1 holds block 0 alone: while level 0 is short, it is next */
	smq->share = NR;
	policy_cache_access(&c, NR_ORIGIN - 1, 0);
	assert_int_equal(c.demoted, 0);
	smq->share = share;
	policy_cache_access(&c, 0, 0);
	assert_int_equal(smq->share, share - SHRINK);
	policy_cache_exit(&c);
}

/* Promises */

/* A hot set of half the cache stays, although four times the cache is read once. */
static void test_smq_scan_resistance(void **state)
{
	struct policy_cache c;

	policy_cache_init(&c, inner, 4096, 40000);
	for (int pass = 0; pass < 4; pass++)
		policy_cache_pass(&c, 0, 2048);
	policy_cache_pass(&c, 2048, 4 * 4096);
	assert_true(policy_cache_pass(&c, 0, 2048) >= 2048 * 98 / 100);
	policy_cache_exit(&c);
}

/* The cache is full of blocks that were hit again and again; then all is new. */
static void test_smq_new_working_set(void **state)
{
	const u32 sizes[] = { 400, 2048, 3600 };

	for (int s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct policy_cache c;

		policy_cache_init(&c, inner, 4096, 20000);
		for (int pass = 0; pass < 6; pass++)
			policy_cache_pass(&c, 0, 4000);
		policy_cache_pass(&c, 10000, sizes[s]);
		policy_cache_pass(&c, 10000, sizes[s]);
		assert_true(policy_cache_pass(&c, 10000, sizes[s]) >= sizes[s] * 90 / 100);
		policy_cache_exit(&c);
	}
}

/* Blocks come back once, after a distance that level 0's first share does not span. */
static u32 hits_with(const char *key, const char *value)
{
	struct policy_cache c;
	struct unit_random r;
	u32 hits = 0;

	unit_random_init(&r, "switches", 0);
	policy_cache_init(&c, inner, 4096, 1 << 20);
	set(&c, key, value);
	for (u32 n = 3000; n < 150000; n++) {
		policy_cache_access(&c, n, 0);
		hits += policy_cache_access(&c, n - 100 - unit_random_below(&r, 2900), 0);
	}
	policy_cache_exit(&c);
	return hits;
}

static void test_smq_switches(void **state)
{
	u32 both = hits_with("adapt", "1");

	assert_true(both > hits_with("adapt", "0") + 5000);
	assert_true(both > hits_with("hotspot", "0") + 5000);
}

/* Level and order of each block, and level 0's share, come back with the hints. */
static void test_smq_restart(void **state)
{
	pc_cblock_t before[NR], after[NR];
	struct pc_policy *again;
	struct policy_cache c;
	struct unit_random r;

	unit_random_init(&r, "restart", 0);
	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	for (u32 n = 0; n < 7000; n++)
		policy_cache_access(&c, unit_random_below(&r, 1 + unit_random_below(&r, 1000)),
				    0);
	assert_int_equal(c.used, NR);

	again = policy_cache_restart(&c, NR_ORIGIN);
	assert_int_equal(policy_cache_walk(c.p, before), NR);
	assert_int_equal(policy_cache_walk(again, after), NR);
	assert_memory_equal(before, after, sizeof(before));
	for (u32 i = 0; i < NR; i++)
		assert_int_equal(level_of(to_smq(c.p), i), level_of(to_smq(again), i));
	assert_int_equal(to_smq(again)->share, max(to_smq(again)->queues.size[0], NR / 64));
	inner->destroy(again);
	policy_cache_exit(&c);
}

/* Exchanged for another policy: the order of the calls. */
static void test_smq_load_on_exchange(void **state)
{
	pc_cblock_t order[NR];
	struct policy_cache c;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	for (u32 i = 0; i < 100; i++)
		inner->load(c.p, pc_cblock(99 - i), pc_oblock(i), false, false, 0);
	assert_int_equal(policy_cache_walk(c.p, order), 100);
	for (u32 i = 0; i < 100; i++)
		assert_int_equal(pc_from_cblock(order[i]), 99 - i);
	policy_cache_exit(&c);
}

/* A hit takes a refused block out of the candidates. */
static void test_smq_refused_and_hit(void **state)
{
	pc_cblock_t out[NR], again[NR];
	struct policy_cache c;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	policy_cache_pass(&c, 0, NR);
	assert_int_equal(inner->victims(c.p, 10, out), 10);
	for (u32 k = 1; k < 10; k++)
		inner->hit(c.p, out[k], pc_oblock(0), PC_READ);
	inner->removed(c.p, out[0], pc_oblock(c.origin[pc_from_cblock(out[0])]));
	assert_int_equal(inner->victims(c.p, 10, again), 10);
	for (u32 k = 0; k < 10; k++)
		assert_true(pc_from_cblock(again[k]) >= 10);
	policy_cache_exit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smq_levels_are_the_model),
		cmocka_unit_test(test_smq_hotspot_ranks),
		cmocka_unit_test(test_smq_promotion),
		cmocka_unit_test(test_smq_threshold_adapts),
		cmocka_unit_test(test_smq_share_adapts),
		cmocka_unit_test(test_smq_scan_resistance),
		cmocka_unit_test(test_smq_new_working_set),
		cmocka_unit_test(test_smq_switches),
		cmocka_unit_test(test_smq_restart),
		cmocka_unit_test(test_smq_load_on_exchange),
		cmocka_unit_test(test_smq_refused_and_hit),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
