// SPDX-License-Identifier: GPL-2.0-only
/*
 * as3fifo against a naive model (queues as arrays, ghosts as a table of all origin
 * blocks), and for what it promises: a scan does no harm, a new working set is in after
 * two passes, the small queue's target follows the accesses, a restart changes nothing.
 */
#include <linux/errno.h>

#include "policies.h"
#include "policy-cache.h"
#include "unit.h"

/* compiled a second time, to look into it */
#undef PC_POLICY_MODULE
#define PC_POLICY_MODULE(type, text) static struct pc_policy_type *const inner = &(type)
#include "../../policies/as3fifo.c"

#define NR 256u
/* so few that no set of ghosts overflows */
#define NR_ORIGIN (NR * 7 / 4)

/* The model */

struct model_ghost {
	bool is_ghost;
	bool main;
	u32 when;
};

struct model {
	u32 queue[2][NR];	/* origin blocks, oldest first; 1: main */
	u32 count[2];
	u32 where[NR_ORIGIN];	/* 0: nowhere, 1: small, 2: main */
	u32 hits[NR_ORIGIN];
	u32 entered[NR_ORIGIN];	/* how many had entered the small queue then */
	struct model_ghost ghost[NR_ORIGIN];
	u32 entries;
	u32 total_hits;
	u32 demoted[2];
	u32 target;
	u32 demoted_block;
};

static void model_push(struct model *m, int q, u32 o)
{
	m->queue[q][m->count[q]++] = o;
	m->where[o] = 1 + q;
	if (!q)
		m->entered[o] = ++m->entries;
}

static u32 model_pop(struct model *m, int q)
{
	u32 o = m->queue[q][0];

	memmove(m->queue[q], m->queue[q] + 1, --m->count[q] * sizeof(u32));
	m->where[o] = 0;
	return o;
}

static void model_demote(struct model *m)
{
	for (unsigned int step = 0;; step++) {
		int q = m->count[1] && (!m->count[0] || m->count[0] < m->target);
		u32 o = model_pop(m, q);

		if (!m->hits[o] || step >= STEPS_MAX) {
			m->ghost[o] = (struct model_ghost){ true, q, ++m->demoted[q] };
			m->demoted_block = o;
			return;
		}
		m->hits[o] = q ? m->hits[o] - 1 : 0;
		model_push(m, 1, o);
	}
}

/* Whether o is a ghost and goes to main; moves the target. */
static bool model_ghost(struct model *m, u32 o)
{
	struct model_ghost g = m->ghost[o];
	u32 age = m->demoted[g.main] - g.when;

	m->ghost[o].is_ghost = false;
	if (!g.is_ghost || age * (g.main ? 4 : 1) > NR)
		return false;
	if (age > NR / 8)
		return true;
	if (!g.main && m->target < NR - NR / 16)
		m->target++;
	if (g.main && m->target > NR / 64)
		m->target--;
	return true;
}

static bool model_access(struct model *m, u32 o)
{
	m->demoted_block = NONE;
	if (m->where[o]) {
		m->entries += ++m->total_hits % 8 == 0;
		if (m->hits[o] < 3 && (m->where[o] == 2 || m->entries - m->entered[o] >= NR / 32))
			m->hits[o]++;
		return true;
	}
	if (m->count[0] + m->count[1] == NR)
		model_demote(m);
	m->hits[o] = 0;
	model_push(m, model_ghost(m, o), o);
	return false;
}

/* Small numbers are hot; now and then a run, or all over. */
static u32 random_origin(struct unit_random *r, u32 n)
{
	static u32 run;

	switch (n / 5000 % 3) {
	case 0:
		return unit_random_below(r, 1 + unit_random_below(r, NR_ORIGIN));
	case 1:
		run = (run + 1) % NR_ORIGIN;
		return unit_random_one_in(r, 2) ? run : unit_random_below(r, NR / 2);
	default:
		return unit_random_below(r, NR_ORIGIN);
	}
}

static void test_as3fifo_is_the_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct unit_random r;
	struct policy_cache c;
	u32 hits = 0;

	unit_random_init(&r, "as3fifo", 0);
	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	m->target = NR / 8;
	for (u32 n = 0; n < 60000; n++) {
		u32 o = random_origin(&r, n);
		bool hit = policy_cache_access(&c, o, 0);

		assert_int_equal(hit, model_access(m, o));
		if (!hit)
			assert_int_equal(c.demoted, m->demoted_block);
		assert_int_equal(to_as3fifo(c.p)->target, m->target);
		hits += hit;
	}
	assert_true(hits > 10000 && hits < 59000);
	policy_cache_exit(&c);
	free(m);
}

/* A hot set of half the cache stays, although four times the cache is read once. */
static void test_as3fifo_scan_resistance(void **state)
{
	struct policy_cache c;

	policy_cache_init(&c, inner, 4096, 40000);
	for (int pass = 0; pass < 4; pass++)
		policy_cache_pass(&c, 0, 2048);
	policy_cache_pass(&c, 2048, 4 * 4096);
	assert_true(policy_cache_pass(&c, 0, 2048) >= 2048 * 98 / 100);
	policy_cache_exit(&c);
}

/* The cache is full of blocks with all the hits that count; then all is new. */
static void test_as3fifo_new_working_set(void **state)
{
	const u32 sizes[] = { 400, 2048, 3600 };

	for (int s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct policy_cache c;

		policy_cache_init(&c, inner, 4096, 20000);
		for (int pass = 0; pass < 6; pass++)
			policy_cache_pass(&c, 0, 4000);
		policy_cache_pass(&c, 10000, sizes[s]);
		policy_cache_pass(&c, 10000, sizes[s]);
		assert_true(policy_cache_pass(&c, 10000, sizes[s]) >= sizes[s] * 95 / 100);
		policy_cache_exit(&c);
	}
}

/* A loop a little longer than the small queue makes it grow, to where the loop fits. */
static void test_as3fifo_target_grows(void **state)
{
	struct unit_random r;
	struct policy_cache c;
	u32 before, next = 0;

	unit_random_init(&r, "grow", 0);
	policy_cache_init(&c, inner, 4096, 1 << 20);
	before = to_as3fifo(c.p)->target;
	/* each block is read again after about 800 others, and then never more */
	for (u32 n = 0; n < 60000; n++, next++) {
		policy_cache_access(&c, next, 0);
		if (next >= 800)
			policy_cache_access(&c, next - 800 + unit_random_below(&r, 10), 0);
	}
	assert_true(to_as3fifo(c.p)->target > before);
	policy_cache_exit(&c);
}

/* main is short of a few blocks, and what comes once needs no small queue. */
static void test_as3fifo_target_shrinks(void **state)
{
	struct unit_random r;
	struct policy_cache c;
	u32 next = 8192;

	unit_random_init(&r, "shrink", 0);
	policy_cache_init(&c, inner, 4096, 1 << 20);
	for (u32 n = 0; n < 200000; n++) {
		policy_cache_access(&c, unit_random_below(&r, 4200), 0);
		if (n % 2)
			policy_cache_access(&c, next++, 0);
	}
	assert_true(to_as3fifo(c.p)->target < 4096 / 8);
	policy_cache_exit(&c);
}

/* With the target held still it stays, and the adapting one does better on a loop. */
static u32 hits_with(const char *percent)
{
	struct unit_random r;
	const char *why;
	struct policy_cache c;
	u32 hits = 0;

	unit_random_init(&r, "percent", 0);
	policy_cache_init(&c, inner, 4096, 1 << 20);
	assert_int_equal(inner->set(c.p, "small_percent", percent, &why), 0);
	for (u32 n = 2000; n < 100000; n++) {
		policy_cache_access(&c, n, 0);
		hits += policy_cache_access(&c, n - 100 - unit_random_below(&r, 1900), 0);
	}
	if (*percent != '0')
		assert_int_equal(to_as3fifo(c.p)->target, 4096 / 20);
	policy_cache_exit(&c);
	return hits;
}

static void test_as3fifo_small_percent(void **state)
{
	const char *why = NULL;
	struct policy_cache c;

	assert_true(hits_with("0") > hits_with("5") + 5000);
	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	assert_int_equal(inner->set(c.p, "small_percent", "91", &why), -ERANGE);
	assert_non_null(why);
	policy_cache_exit(&c);
}

/*
 * Nobody asked for it: a ghost that is prefetched proves nothing. It does if somebody had
 * asked, and there had been no room. evicted: blocks, of which the ghost is the fourth.
 */
static void prefetch_ghost(u32 evicted, bool asked_before, unsigned int flags, enum queue want)
{
	struct as3fifo *a;
	struct policy_cache c;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	a = to_as3fifo(c.p);
	policy_cache_pass(&c, 0, NR + evicted);
	assert_int_equal(c.block[3], NONE);
	if (asked_before)
		for (u32 o = 3; o < 30; o++)
			inner->miss(c.p, pc_oblock(o == 3 ? 3 : NR_ORIGIN - o), PC_READ, 0);
	policy_cache_access(&c, 3, flags);
	assert_int_equal(queue_of(a, c.block[3]), want);
	assert_int_equal(a->target, NR / 8 + (want == MAIN));
	policy_cache_exit(&c);
}

static void test_as3fifo_prefetched_ghost(void **state)
{
	/* when the last have gone that were late in coming to their sets, and before */
	static const u32 evicted[] = { 8, 8 + GHOSTS_LATE };

	for (int k = 0; k < ARRAY_SIZE(evicted); k++) {
		prefetch_ghost(evicted[k], false, PC_MISS_PREFETCH, SMALL);
		prefetch_ghost(evicted[k], false, 0, MAIN);
		prefetch_ghost(evicted[k], true, PC_MISS_PREFETCH, MAIN);
	}
}

/* Hits soon after a block came in are one access in several pieces. */
static void test_as3fifo_correlated_hits(void **state)
{
	struct policy_cache c;

	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	policy_cache_access(&c, 0, 0);
	policy_cache_access(&c, 0, 0);
	policy_cache_pass(&c, 1, NR / 32 - 1);
	policy_cache_access(&c, 0, 0);
	assert_int_equal(freq(to_as3fifo(c.p), c.block[0]), 0);
	policy_cache_access(&c, NR / 32, 0);
	policy_cache_access(&c, 0, 0);
	assert_int_equal(freq(to_as3fifo(c.p), c.block[0]), 1);
	policy_cache_exit(&c);
}

/* Queue, order and hits of each block, and the target, come back with the hints. */
static void test_as3fifo_restart(void **state)
{
	pc_cblock_t before[NR], after[NR];
	struct pc_policy *again;
	struct unit_random r;
	struct policy_cache c;

	unit_random_init(&r, "restart", 0);
	policy_cache_init(&c, inner, NR, NR_ORIGIN);
	for (u32 n = 0; n < 7000; n++)
		policy_cache_access(&c, random_origin(&r, n), 0);
	assert_int_equal(c.used, NR);

	again = policy_cache_restart(&c, NR_ORIGIN);
	assert_int_equal(policy_cache_walk(c.p, before), NR);
	assert_int_equal(policy_cache_walk(again, after), NR);
	assert_memory_equal(before, after, sizeof(before));
	for (u32 i = 0; i < NR; i++) {
		assert_int_equal(queue_of(to_as3fifo(c.p), i), queue_of(to_as3fifo(again), i));
		assert_int_equal(freq(to_as3fifo(c.p), i), freq(to_as3fifo(again), i));
	}
	assert_int_equal(to_as3fifo(again)->target, max(to_as3fifo(again)->queues.size[SMALL], NR / 64));
	inner->destroy(again);
	policy_cache_exit(&c);
}

/* Exchanged for another policy: the order of the calls, before what was used since. */
static void test_as3fifo_load_on_exchange(void **state)
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

/* One that was hit after it was refused is not offered again before its time. */
static void test_as3fifo_refused_and_hit(void **state)
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
		cmocka_unit_test(test_as3fifo_is_the_model),
		cmocka_unit_test(test_as3fifo_scan_resistance),
		cmocka_unit_test(test_as3fifo_new_working_set),
		cmocka_unit_test(test_as3fifo_target_grows),
		cmocka_unit_test(test_as3fifo_target_shrinks),
		cmocka_unit_test(test_as3fifo_small_percent),
		cmocka_unit_test(test_as3fifo_prefetched_ghost),
		cmocka_unit_test(test_as3fifo_correlated_hits),
		cmocka_unit_test(test_as3fifo_restart),
		cmocka_unit_test(test_as3fifo_load_on_exchange),
		cmocka_unit_test(test_as3fifo_refused_and_hit),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
