// SPDX-License-Identifier: GPL-2.0-only
/*
 * The choice among policies: shadows that tell the hit ratio of the whole cache, phases
 * that favour one policy and then another, and hysteresis where none is better.
 */
#include <linux/kernel.h>

#include "auto.h"
#include "policies.h"
#include "sim.h"
#include "sim-auto.h"
#include "unit.h"

#define NR 16384u		/* cache blocks; shadows of 512 */
#define NR_OBLOCKS (1u << 24)

static const struct pc_policy_type *types[2];
enum { LRU, S3FIFO };

static int setup(void **state)
{
	types[LRU] = pc_policy_find("lru");
	types[S3FIFO] = pc_policy_find("s3fifo");
	assert_non_null(types[LRU]);
	assert_non_null(types[S3FIFO]);
	return 0;
}

static struct pc_auto *make(u32 nr_cblocks)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr_cblocks, .nr_oblocks = NR_OBLOCKS, .block_sectors = 128, .seed = 1,
	};

	return pc_auto_create(&params, types, 2);
}

/* One of three accesses goes to a hot part, the others come once: too much for lru. */
static u64 scan(u64 i)
{
	u64 hash = (i + 1) * 0x9e3779b97f4a7c15ULL;

	return i % 3 ? NR_OBLOCKS / 2 + i % (NR_OBLOCKS / 2) : (hash >> 40) % (NR / 10 * 6);
}

/* A new block, then one of which up to half the cache is younger: too old for small queues. */
static u64 drift(u64 i)
{
	u64 hash = (i + 1) * 0x9e3779b97f4a7c15ULL, age = NR / 5 + (hash >> 40) % (NR / 4);

	return (i & 1 ? i / 2 + NR - age : i / 2 + NR) % (NR_OBLOCKS / 2);
}

/* Accesses until the other policy is chosen, and exchanged for; fails after max. */
static u64 until_chosen(struct pc_auto *a, u64 (*next)(u64), int want, u64 max)
{
	for (u64 i = 0; i < max; i++) {
		int to;

		pc_auto_access(a, pc_oblock(next(i)), PC_READ);
		to = pc_auto_choice(a);
		if (to < 0)
			continue;
		assert_int_equal(to, want);
		pc_auto_exchanged(a, to);
		return i;
	}
	fail_msg("not chosen within %llu accesses", (unsigned long long)max);
	return max;
}

static void test_auto_follows_phases(void **state)
{
	struct pc_auto *a = make(NR);
	const struct pc_auto_entry *e;

	pc_auto_working(a, LRU);
	for (int round = 0; round < 3; round++) {
		until_chosen(a, scan, S3FIFO, 32 * NR);
		assert_int_equal(pc_auto_index(a), S3FIFO);
		until_chosen(a, drift, LRU, 32 * NR);
	}
	assert_int_equal(pc_auto_exchanges(a), 6);
	e = pc_auto_log(a, 0);
	assert_int_equal(e->from, S3FIFO);
	assert_int_equal(e->to, LRU);
	assert_true(e->to_hits >= e->from_hits + 10);
	assert_true(pc_auto_log(a, 1)->accesses < e->accesses);
	assert_non_null(pc_auto_log(a, 5));
	assert_null(pc_auto_log(a, 6));
	pc_auto_destroy(a);
}

/* Which is better by less than the margin stays out. */
static void test_auto_margin(void **state)
{
	struct pc_auto *a = make(NR);
	const char *why;

	pc_auto_working(a, LRU);
	assert_int_equal(pc_auto_set(a, "margin", "1000", &why), 0);
	for (u64 i = 0; i < 32 * NR; i++) {
		pc_auto_access(a, pc_oblock(scan(i)), PC_READ);
		assert_int_equal(pc_auto_choice(a), -1);
	}
	assert_true(pc_auto_hits(a, S3FIFO) > pc_auto_hits(a, LRU) + 50);
	pc_auto_destroy(a);
}

/* All that is accessed fits: both hit, and nothing is exchanged. */
static void test_auto_stays(void **state)
{
	struct pc_auto *a = make(NR);
	struct unit_random r;

	unit_random_init(&r, "auto", 0);
	pc_auto_working(a, LRU);
	for (u64 i = 0; i < 32 * NR; i++) {
		pc_auto_access(a, pc_oblock(unit_random_below(&r, NR / 2)), PC_WRITE);
		assert_int_equal(pc_auto_choice(a), -1);
	}
	assert_int_equal(pc_auto_exchanges(a), 0);
	assert_true(pc_auto_hits(a, LRU) > 950);
	pc_auto_destroy(a);
}

/* Shadows of a few hundred blocks against the model of the whole cache. */
static void test_auto_shadows_tell_the_truth(void **state)
{
	struct pc_auto *a = make(NR);
	u64 half_hits[2] = {};
	struct unit_random r;
	struct pc_sim *sims[2];

	for (int t = 0; t < 2; t++) {
		struct pc_sim_config config = {
			.type = types[t], .nr_cblocks = NR, .block_sectors = 128,
			.origin_sectors = 128ull * NR_OBLOCKS,
		};

		sims[t] = pc_sim_create(&config);
		assert_non_null(sims[t]);
	}
	unit_random_init(&r, "auto-truth", 0);
	for (u64 i = 0; i < 24 * NR; i++) {
		/* a hot half, a warm part, and much that never comes again */
		u64 o = i % 3 == 0 ? unit_random_below(&r, NR / 2) :
			i % 3 == 1 ? NR + unit_random_below(&r, NR) : 4 * NR + i;
		struct pc_request q = { .sector = 128 * o, .sectors = 8 };

		pc_auto_access(a, pc_oblock(o), PC_READ);
		for (int t = 0; t < 2; t++) {
			/* without the cold start */
			if (i == 12 * NR)
				half_hits[t] = pc_sim_result(sims[t]).hits[PC_READ];
			pc_sim_run(sims[t], &q, 1);
		}
	}
	for (int t = 0; t < 2; t++) {
		u64 hits = pc_sim_result(sims[t]).hits[PC_READ] - half_hits[t];
		unsigned int whole = hits * 1000 / (12 * NR);

		assert_in_range(pc_auto_hits(a, t) + 50, whole, whole + 100);
		pc_sim_destroy(sims[t]);
	}
	pc_auto_destroy(a);
}

/* What the policies of a phase hit in its second half, in 1/1000. */
static unsigned int run_phase(struct pc_sim *sim, u64 (*next)(u64), u64 n)
{
	struct pc_sim_counts before = {}, after;

	for (u64 i = 0; i < n; i++) {
		struct pc_request q = { .sector = 128 * next(i), .sectors = 8 };

		if (i == n / 2)
			before = pc_sim_result(sim);
		pc_sim_run(sim, &q, 1);
	}
	after = pc_sim_result(sim);
	return (after.hits[PC_READ] - before.hits[PC_READ]) * 1000 / (n - n / 2);
}

/* In each phase as good as the best of all policies, but for two in a hundred. */
static void test_auto_follows_the_best(void **state)
{
	u64 (*const phases[])(u64) = { scan, drift, scan, drift };
	unsigned int best[ARRAY_SIZE(phases)] = {}, of_auto[ARRAY_SIZE(phases)];
	const struct pc_policy_type *type = NULL;
	struct pc_policy_type *t = NULL;

	do {
		struct pc_sim_config config = {
			.nr_cblocks = NR, .block_sectors = 128,
			.origin_sectors = 128ull * NR_OBLOCKS,
		};
		struct pc_sim *sim;

		t = pc_policy_next(t);
		type = t ? t : &pc_sim_auto;
		config.type = type;
		sim = pc_sim_create(&config);
		assert_non_null(sim);
		for (unsigned int i = 0; i < ARRAY_SIZE(phases); i++) {
			unsigned int hits = run_phase(sim, phases[i], 128 * NR);

			of_auto[i] = hits;
			if (t)
				best[i] = max(best[i], hits);
		}
		pc_sim_destroy(sim);
	} while (t);
	for (unsigned int i = 0; i < ARRAY_SIZE(phases); i++)
		assert_true(of_auto[i] + 20 >= best[i]);
}

/* One hundredth of what the cache takes in core, and little where the cache is small. */
static void test_auto_memory(void **state)
{
	const u32 sizes[] = { 1, 2, 100, 4096, 1u << 20 };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct pc_auto *a = make(sizes[i]);
		size_t core = (size_t)sizes[i] * (44 + 20);

		assert_non_null(a);
		for (u64 o = 0; o < 1000; o++)
			pc_auto_access(a, pc_oblock(o), PC_READ);
		/* two policies here; a host has five */
		assert_true(pc_auto_memory(a) / 2 * 5 <= core / 100 + 320 * 1024);
		pc_auto_destroy(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto_follows_phases),
		cmocka_unit_test(test_auto_margin),
		cmocka_unit_test(test_auto_stays),
		cmocka_unit_test(test_auto_shadows_tell_the_truth),
		cmocka_unit_test(test_auto_follows_the_best),
		cmocka_unit_test(test_auto_memory),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
