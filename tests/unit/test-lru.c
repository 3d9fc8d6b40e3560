// SPDX-License-Identifier: GPL-2.0-only
/*
 * lru and cleaner against naive models: the exact order in an array, misses in a
 * table without bounds. lru is compiled a second time into this program, with stamps
 * that run out after a few hundred accesses instead of three thousand million.
 */
#include <linux/errno.h>

#include "policies.h"
#include "unit.h"

#undef PC_POLICY_MODULE
#define PC_POLICY_MODULE(type, text) static struct pc_policy_type *const short_stamps = &(type)
#define PC_LRU_RENUMBER_AT 500u
#include "../../policies/lru.c"

#define NR 100u

struct model {
	u32 order[NR];		/* coldest first */
	u32 count;
};

static u32 model_find(const struct model *m, u32 i)
{
	u32 at;

	for (at = 0; at < m->count; at++)
		if (m->order[at] == i)
			break;
	return at;
}

static bool model_remove(struct model *m, u32 i)
{
	u32 at = model_find(m, i);

	if (at == m->count)
		return false;
	memmove(m->order + at, m->order + at + 1, (m->count - at - 1) * sizeof(u32));
	m->count--;
	return true;
}

static void model_append(struct model *m, u32 i)
{
	m->order[m->count++] = i;
}

static struct pc_policy *create(const struct pc_policy_type *type, u32 nr)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr, .nr_oblocks = 1 << 20, .block_sectors = 128,
	};
	struct pc_policy *p = type->create(type, &params);

	assert_non_null(p);
	return p;
}

static void check_order(struct pc_policy *p, const struct model *m)
{
	pc_cblock_t out[7];
	u32 at = 0, got;
	u64 cursor = 0;

	while ((got = p->type->walk(p, &cursor, ARRAY_SIZE(out), out)))
		for (u32 k = 0; k < got; k++, at++)
			assert_int_equal(pc_from_cblock(out[k]), m->order[at]);
	assert_int_equal(at, m->count);
}

/* Hints grow along the order, so a sort by them restores it. */
static void check_hints(struct pc_policy *p, const struct model *m)
{
	for (u32 k = 1; k < m->count; k++)
		assert_true(p->type->hint(p, pc_cblock(m->order[k - 1])) <
			    p->type->hint(p, pc_cblock(m->order[k])));
}

static struct pc_policy *reload(struct pc_policy *p, const struct model *m)
{
	struct pc_policy *again = create(p->type, NR);

	for (u32 i = 0; i < NR; i++)
		if (model_find(m, i) < m->count)
			p->type->load(again, pc_cblock(i), pc_oblock(i), false, true,
				      p->type->hint(p, pc_cblock(i)));
	p->type->loaded(again);
	check_order(again, m);
	check_hints(again, m);
	p->type->destroy(p);
	return again;
}

static void random_ops(const struct pc_policy_type *type, u64 iteration)
{
	struct pc_policy *p = create(type, NR);
	struct model m = { .count = 0 };
	struct unit_random r;

	unit_random_init(&r, "lru", iteration);
	for (int n = 0; n < 30000; n++) {
		u32 i = unit_random_below(&r, NR);
		bool held = model_find(&m, i) < m.count;

		switch (unit_random_below(&r, 8)) {
		case 0:
			if (held)
				break;
			type->inserted(p, pc_cblock(i), pc_oblock(n));
			model_append(&m, i);
			break;
		case 1:
			if (held)
				type->removed(p, pc_cblock(i), pc_oblock(0));
			model_remove(&m, i);
			break;
		default:
			type->hit(p, pc_cblock(i), pc_oblock(n), PC_READ);
			if (model_remove(&m, i))
				model_append(&m, i);
		}
		if (n % 16 == 0)
			check_order(p, &m);
		check_hints(p, &m);
		if (unit_random_one_in(&r, 3000))
			p = reload(p, &m);
	}
	type->destroy(p);
}

static void test_lru_order_and_hints(void **state)
{
	random_ops(pc_policy_find("lru"), 0);
}

static void test_lru_order_and_hints_with_short_stamps(void **state)
{
	random_ops(short_stamps, 1);
}

/* The stamps did run out in the test above, and were made small again. */
static void test_lru_stamps_stay_small(void **state)
{
	struct pc_policy *p = create(short_stamps, NR);
	u32 sweeps = 0, last = 0;

	for (u32 i = 0; i < NR; i++)
		short_stamps->inserted(p, pc_cblock(i), pc_oblock(i));
	for (u32 n = 0; n < 100000; n++) {
		short_stamps->hit(p, pc_cblock(n % NR), pc_oblock(n), PC_READ);
		assert_true(to_lru(p)->stamp < PC_LRU_RENUMBER_AT + NR);
		sweeps += to_lru(p)->stamp < last;
		last = to_lru(p)->stamp;
	}
	assert_true(sweeps > 100);
	short_stamps->destroy(p);
}

static void test_lru_victims_are_the_coldest(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct pc_policy *p = create(type, NR);
	struct model m = { .count = 0 };
	struct unit_random r;
	pc_cblock_t out[10];

	unit_random_init(&r, "victims", 0);
	for (int n = 0; n < 20000; n++) {
		u32 i = unit_random_below(&r, NR);

		if (model_remove(&m, i))
			type->hit(p, pc_cblock(i), pc_oblock(n), PC_WRITE);
		else
			type->inserted(p, pc_cblock(i), pc_oblock(n));
		model_append(&m, i);

		/* all that is offered is demoted: the next are the coldest again */
		if (m.count > NR / 2) {
			u32 want = 1 + unit_random_below(&r, 10);

			assert_int_equal(type->victims(p, want, out), want);
			for (u32 k = 0; k < want; k++) {
				assert_int_equal(pc_from_cblock(out[k]), m.order[0]);
				type->removed(p, out[k], pc_oblock(0));
				model_remove(&m, m.order[0]);
			}
		}
	}
	type->destroy(p);
}

/* Loaded without hints, as on an exchange, while some are inserted and hit already. */
static void test_lru_load_among_accesses(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct pc_policy *p = create(type, NR);
	struct model loaded = { .count = 0 }, used = { .count = 0 };
	struct unit_random r;

	unit_random_init(&r, "load", 0);
	for (u32 i = 0; i < NR; i++) {
		if (unit_random_one_in(&r, 4)) {
			type->inserted(p, pc_cblock(i), pc_oblock(i));
			model_append(&used, i);
		} else {
			type->load(p, pc_cblock(i), pc_oblock(i), false, false, 0);
			model_append(&loaded, i);
		}
		if (unit_random_one_in(&r, 4)) {
			u32 h = unit_random_below(&r, i + 1);

			type->hit(p, pc_cblock(h), pc_oblock(h), PC_READ);
			if (model_remove(&loaded, h) || model_remove(&used, h))
				model_append(&used, h);
		}
	}
	memcpy(loaded.order + loaded.count, used.order, used.count * sizeof(u32));
	loaded.count += used.count;
	check_order(p, &loaded);
	check_hints(p, &loaded);
	type->destroy(p);
}

/* Equal hints keep the order of the calls; those without a hint come before all. */
static void test_lru_load_equal_and_missing_hints(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct model m = { { 1, 4, 3, 5, 0, 2 }, 6 };
	struct pc_policy *p = create(type, NR);

	type->load(p, pc_cblock(0), pc_oblock(0), false, true, 0xffffffff);
	type->load(p, pc_cblock(1), pc_oblock(1), false, false, 0);
	type->load(p, pc_cblock(2), pc_oblock(2), false, true, 0xffffffff);
	type->load(p, pc_cblock(3), pc_oblock(3), false, true, 7);
	type->load(p, pc_cblock(4), pc_oblock(4), false, false, 99);
	type->load(p, pc_cblock(5), pc_oblock(5), false, true, 7);
	type->loaded(p);
	check_order(p, &m);
	check_hints(p, &m);
	type->destroy(p);
}

static void test_lru_promote_after(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct pc_policy *p = create(type, 4096);
	u32 misses[40] = { 0 };
	const char *why = NULL;
	struct unit_random r;

	assert_int_equal(type->miss(p, pc_oblock(5), PC_READ, 0), PC_ADMIT);
	assert_int_equal(type->set(p, "promote_after", "0", &why), -ERANGE);
	assert_int_equal(type->set(p, "promote_after", "1001", &why), -ERANGE);
	assert_int_equal(type->set(p, "promote_after", "3", &why), 0);

	unit_random_init(&r, "promote", 0);
	for (int n = 0; n < 10000; n++) {
		u32 o = unit_random_below(&r, 40);
		enum pc_verdict v;

		if (unit_random_one_in(&r, 5)) {
			/* never counted */
			assert_int_equal(type->miss(p, pc_oblock(o), PC_WRITE, PC_MISS_PREFETCH),
					 PC_BYPASS);
			assert_int_equal(type->miss(p, pc_oblock(o), PC_READ, PC_MISS_SEQUENTIAL),
					 PC_BYPASS);
		}
		v = type->miss(p, pc_oblock(o), PC_READ, 0);
		assert_int_equal(v, ++misses[o] >= 3 ? PC_ADMIT : PC_BYPASS);
		/* an admission may come to nothing; one that does not is forgotten */
		if (v == PC_ADMIT && unit_random_one_in(&r, 2)) {
			type->inserted(p, pc_cblock(o), pc_oblock(o));
			type->removed(p, pc_cblock(o), pc_oblock(o));
			misses[o] = 0;
		}
	}
	type->destroy(p);
}

static void test_lru_promote_after_is_bounded(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct pc_policy *p = create(type, 4096);
	size_t memory = type->memory(p);
	const char *why = NULL;
	u32 known = 0;

	assert_int_equal(type->set(p, "promote_after", "2", &why), 0);
	/* oblock 0 is as good as any */
	assert_int_equal(type->miss(p, pc_oblock(0), PC_READ, 0), PC_BYPASS);
	assert_int_equal(type->miss(p, pc_oblock(0), PC_READ, 0), PC_ADMIT);

	/* a working set of half the bound is remembered all but whole */
	for (u64 o = 0; o < 2048; o++)
		type->miss(p, pc_oblock(o * 7919), PC_READ, 0);
	for (u64 o = 0; o < 2048; o++)
		known += type->miss(p, pc_oblock(o * 7919), PC_READ, 0) == PC_ADMIT;
	assert_true(known > 2000);

	/* and a scan pushes it out */
	for (u64 o = 0; o < 100000; o++)
		type->miss(p, pc_oblock(1000000000 + o), PC_READ, 0);
	assert_int_equal(type->miss(p, pc_oblock(7919), PC_READ, 0), PC_BYPASS);
	assert_int_equal(type->memory(p), memory);
	type->destroy(p);
}

/* More walks at a time than there are markers: the oldest end, no harm is done. */
static void test_lru_many_walks(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("lru");
	struct pc_policy *p = create(type, NR);
	struct model m = { .count = 0 };
	u64 cursor[NR_WALKS + 2] = { 0 };
	pc_cblock_t out[1];

	for (u32 i = 0; i < NR; i++) {
		type->inserted(p, pc_cblock(i), pc_oblock(i));
		model_append(&m, i);
	}
	for (u32 w = 0; w < ARRAY_SIZE(cursor); w++)
		assert_int_equal(type->walk(p, &cursor[w], 1, out), 1);
	assert_int_equal(type->walk(p, &cursor[0], 1, out), 0);
	assert_int_equal(type->walk(p, &cursor[1], 1, out), 0);
	for (u32 w = 2; w < ARRAY_SIZE(cursor); w++) {
		assert_int_equal(type->walk(p, &cursor[w], 1, out), 1);
		assert_int_equal(pc_from_cblock(out[0]), m.order[1]);
	}
	check_order(p, &m);
	type->destroy(p);
}

static void test_cleaner_keeps_hints(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("cleaner");
	struct model m = { { 3, 70, 99 }, 3 };
	struct pc_policy *p = create(type, NR);

	type->load(p, pc_cblock(99), pc_oblock(1), true, true, 0xffffffff);
	type->load(p, pc_cblock(3), pc_oblock(2), false, true, 12345);
	type->load(p, pc_cblock(64), pc_oblock(3), false, false, 7);
	type->inserted(p, pc_cblock(70), pc_oblock(4));
	type->hit(p, pc_cblock(3), pc_oblock(2), PC_WRITE);
	assert_int_equal(type->hint(p, pc_cblock(99)), 0xffffffff);
	assert_int_equal(type->hint(p, pc_cblock(3)), 12345);
	assert_int_equal(type->hint(p, pc_cblock(64)), 0);
	assert_int_equal(type->hint(p, pc_cblock(70)), 0);
	type->removed(p, pc_cblock(64), pc_oblock(3));
	check_order(p, &m);
	type->removed(p, pc_cblock(3), pc_oblock(2));
	type->inserted(p, pc_cblock(3), pc_oblock(9));
	assert_int_equal(type->hint(p, pc_cblock(3)), 0);
	assert_int_equal(type->miss(p, pc_oblock(1), PC_READ, 0), PC_BYPASS);
	assert_true(type->flags & PC_POLICY_CLEANER);
	type->destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lru_order_and_hints),
		cmocka_unit_test(test_lru_order_and_hints_with_short_stamps),
		cmocka_unit_test(test_lru_stamps_stay_small),
		cmocka_unit_test(test_lru_victims_are_the_coldest),
		cmocka_unit_test(test_lru_load_among_accesses),
		cmocka_unit_test(test_lru_load_equal_and_missing_hints),
		cmocka_unit_test(test_lru_promote_after),
		cmocka_unit_test(test_lru_promote_after_is_bounded),
		cmocka_unit_test(test_lru_many_walks),
		cmocka_unit_test(test_cleaner_keeps_hints),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
