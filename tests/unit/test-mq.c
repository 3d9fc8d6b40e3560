// SPDX-License-Identifier: GPL-2.0-only
/*
 * mq against a naive model: an array a queue, coldest first, ghosts in a table by their
 * oblock, time in whole accesses. Compared are the order of all queues, references and
 * victims. mq is compiled a second time into this program, with stamps of 10 bits.
 */
#include <linux/errno.h>

#include "policies.h"
#include "unit.h"

#undef PC_POLICY_MODULE
#define PC_POLICY_MODULE(type, text) static struct pc_policy_type *const short_stamps = &(type)
#define PC_MQ_STAMP_BITS 10
#include "../../policies/mq.c"

#define NR 100u
/* so few that no set of the ghosts overflows: the hash spreads small numbers evenly */
#define OBLOCKS 150u
#define LIFETIME_SET 150
#define HINT_QUEUE(hint) (((hint) >> 20 & 15) - 1)
#define HINT_REFS(hint) ((hint) >> 24)
#define HINT_RANK(hint) ((hint) & ((1u << 20) - 1))

struct entry {
	u32 c;
	u64 o;
	u32 refs;
	s64 used;
};

struct model {
	struct entry e[NR_QUEUES][NR];
	u32 len[NR_QUEUES];
	u32 ghosts[OBLOCKS];	/* references */
	s64 time;
};

static u32 model_held(const struct model *m)
{
	u32 held = 0;

	for (u32 q = 0; q < NR_QUEUES; q++)
		held += m->len[q];
	return held;
}

static struct entry *model_find(struct model *m, u32 c, u32 *queue)
{
	for (*queue = 0; *queue < NR_QUEUES; ++*queue)
		for (u32 at = 0; at < m->len[*queue]; at++)
			if (m->e[*queue][at].c == c)
				return &m->e[*queue][at];
	return NULL;
}

static struct entry model_take(struct model *m, u32 q, u32 at)
{
	struct entry e = m->e[q][at];

	assert_true(at < m->len[q]);
	memmove(m->e[q] + at, m->e[q] + at + 1, (--m->len[q] - at) * sizeof(e));
	return e;
}

static void model_append(struct model *m, u32 q, struct entry e)
{
	e.used = m->time;
	m->e[q][m->len[q]++] = e;
}

static u32 model_level(u32 refs)
{
	u32 level = 0;

	while (refs >>= 1)
		level++;
	return min(level, NR_QUEUES - 1);
}

static s64 model_idle(const struct model *m, u32 q, u32 at)
{
	const struct entry *e = &m->e[q][at];
	u32 level = model_level(e->refs);

	return m->time - e->used + (level > q ? (level - q) * LIFETIME_SET : 0);
}

static void model_pass_time(struct model *m)
{
	if (++m->time % 4)
		return;
	for (u32 q = 1; q < NR_QUEUES; q++)
		if (m->len[q] && m->time - m->e[q][0].used > LIFETIME_SET)
			model_append(m, q - 1, model_take(m, q, 0));
}

static void model_hit(struct model *m, u32 c)
{
	u32 q;
	struct entry *found = model_find(m, c, &q);
	struct entry e;

	if (!found)
		return;
	e = model_take(m, q, found - m->e[q]);
	e.refs = min(e.refs + 1, 255u);
	model_append(m, model_level(e.refs), e);
	model_pass_time(m);
}

static void model_demote_longest_idle(struct model *m)
{
	u32 best = 0;
	s64 idle, longest = -1;
	struct entry e;

	for (u32 q = 1; q < NR_QUEUES; q++) {
		if (!m->len[q])
			continue;
		idle = model_idle(m, q, 0) * 16 / (q + 4);
		if (idle > longest) {
			longest = idle;
			best = q;
		}
	}
	if (!best)
		return;
	idle = model_idle(m, best, 0);
	e = model_take(m, best, 0);
	e.used = m->time - idle;
	if (m->len[0] && m->e[0][0].used < e.used)
		e.used = m->e[0][0].used;
	memmove(m->e[0] + 1, m->e[0], m->len[0]++ * sizeof(e));
	m->e[0][0] = e;
}

static void model_insert(struct model *m, u32 c, u64 o)
{
	struct entry e = { .c = c, .o = o, .refs = min(m->ghosts[o] + 1, 255u) };
	u32 held = model_held(m);

	if (m->ghosts[o])
		model_pass_time(m);
	if ((m->ghosts[o] && held >= NR - NR / 16 - 1) || held - m->len[0] > NR - NR / 8)
		model_demote_longest_idle(m);
	m->ghosts[o] = 0;
	model_append(m, model_level(e.refs), e);
}

/* Returns its oblock. */
static u64 model_remove(struct model *m, u32 c)
{
	u32 q;
	struct entry *found = model_find(m, c, &q);
	struct entry e = model_take(m, q, found - m->e[q]);

	m->ghosts[e.o] = e.refs;
	return e.o;
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

static void set_number(struct pc_policy *p, const char *key, u32 n)
{
	const char *why;
	char value[12];

	snprintf(value, sizeof(value), "%u", n);
	assert_int_equal(p->type->set(p, key, value, &why), 0);
}

static struct pc_policy *create_fixed(void)
{
	struct pc_policy *p = create(pc_policy_find("mq"), NR);

	set_number(p, "lifetime", LIFETIME_SET);
	return p;
}

static void check(struct pc_policy *p, const struct model *m)
{
	pc_cblock_t out[NR + 1];
	u32 count = 0, got, k = 0;
	u64 cursor = 0;

	while ((got = p->type->walk(p, &cursor, 7, out + count)))
		count += got;
	assert_int_equal(count, model_held(m));
	for (u32 q = 0; q < NR_QUEUES; q++) {
		for (u32 at = 0; at < m->len[q]; at++, k++) {
			const struct entry *e = &m->e[q][at];
			u32 hint = p->type->hint(p, out[k]);

			assert_int_equal(pc_from_cblock(out[k]), e->c);
			assert_int_equal(HINT_QUEUE(hint), q);
			assert_int_equal(HINT_REFS(hint), e->refs);
			assert_int_equal(HINT_RANK(hint), (1 << 20) - 1 - (m->time - e->used));
		}
	}
}

/* What is as old as another comes back in the order of cblocks; time starts anew. */
static struct pc_policy *reload(struct pc_policy *p, struct model *m)
{
	struct pc_policy *again = create_fixed();

	for (u32 q = 0; q < NR_QUEUES; q++) {
		for (u32 at = 0; at < m->len[q]; at++)
			m->e[q][at].used -= m->time;
		for (u32 n = 0; n < m->len[q]; n++)
			for (u32 at = 1; at < m->len[q]; at++) {
				struct entry *e = m->e[q] + at;

				if (e[-1].used > e->used ||
				    (e[-1].used == e->used && e[-1].c > e->c))
					swap(e[-1], *e);
			}
	}
	m->time = 0;
	memset(m->ghosts, 0, sizeof(m->ghosts));

	for (u32 c = 0; c < NR; c++) {
		u32 q;
		const struct entry *e = model_find(m, c, &q);

		if (e)
			p->type->load(again, pc_cblock(c), pc_oblock(e->o), false, true,
				      p->type->hint(p, pc_cblock(c)));
	}
	p->type->loaded(again);
	p->type->destroy(p);
	check(again, m);
	return again;
}

/* All that is offered is demoted: the next are the coldest again. */
static void check_victims(struct pc_policy *p, struct model *m, u32 n)
{
	pc_cblock_t out[8];
	u32 got = p->type->victims(p, n, out);

	assert_int_equal(got, min(n, model_held(m)));
	for (u32 k = 0; k < got; k++) {
		u32 q = 0;

		while (!m->len[q])
			q++;
		assert_int_equal(pc_from_cblock(out[k]), m->e[q][0].c);
		p->type->removed(p, out[k], pc_oblock(model_remove(m, m->e[q][0].c)));
	}
}

static u64 random_uncached(const struct model *m, struct unit_random *r)
{
	for (;;) {
		u64 o = unit_random_below(r, OBLOCKS);
		bool found = false;

		for (u32 q = 0; q < NR_QUEUES; q++)
			for (u32 at = 0; at < m->len[q]; at++)
				found |= m->e[q][at].o == o;
		if (!found)
			return o;
	}
}

static void test_mq_against_model(void **state)
{
	struct pc_policy *p = create_fixed();
	static struct model m;
	struct unit_random r;
	u32 from_ghosts = 0, full = 0;

	memset(&m, 0, sizeof(m));
	unit_random_init(&r, "mq", 0);
	for (int n = 0; n < 60000; n++) {
		/* rather the small numbers, so that some have many references */
		u32 c = unit_random_below(&r, 1 + unit_random_below(&r, NR)), q;
		u32 any = unit_random_below(&r, NR);
		u32 action = unit_random_below(&r, 16);

		if (!model_find(&m, any, &q)) {
			c = any;
		} else if (model_held(&m) < NR && action < 12) {
			/* keep it full rather than not */
			while (model_find(&m, any, &q))
				any = (any + 1) % NR;
			c = any;
		}
		if (!model_find(&m, c, &q)) {
			u64 o = random_uncached(&m, &r);

			from_ghosts += m.ghosts[o] != 0;
			p->type->inserted(p, pc_cblock(c), pc_oblock(o));
			model_insert(&m, c, o);
		} else if (action == 0 && unit_random_one_in(&r, 8)) {
			p->type->removed(p, pc_cblock(c), pc_oblock(model_remove(&m, c)));
		} else if (action == 1 || (model_held(&m) == NR && action < 8)) {
			full += model_held(&m) == NR;
			check_victims(p, &m, unit_random_below(&r, 4));
		} else {
			p->type->hit(p, pc_cblock(c), pc_oblock(n), PC_READ);
			model_hit(&m, c);
		}
		if (n % 8 == 0)
			check(p, &m);
		if (unit_random_one_in(&r, 5000))
			p = reload(p, &m);
	}
	print_message("  %u from ghosts, %u times full\n", from_ghosts, full);
	assert_true(from_ghosts > 1000 && full > 1000);
	p->type->destroy(p);
}

/* Stamps wrap many times over, blocks idle meanwhile: ranks never shrink in a queue. */
static void test_mq_short_stamps(void **state)
{
	struct pc_policy *p = create(short_stamps, NR);
	struct mq *mq = to_mq(p);
	struct unit_random r;

	unit_random_init(&r, "short", 0);
	for (u32 i = 0; i < NR; i++)
		short_stamps->inserted(p, pc_cblock(i), pc_oblock(i));
	for (u32 n = 0; n < 200000; n++) {
		/* a tenth is used no more, some seldom */
		u32 c = NR / 10 + unit_random_below(&r, 1 + unit_random_below(&r, NR * 9 / 10));

		short_stamps->hit(p, pc_cblock(c), pc_oblock(c), PC_READ);
		if (n % 16)
			continue;
		for (u32 q = 0; q < NR_QUEUES; q++)
			for (u32 i = coldest(mq, q); !is_head(mq, i); i = mq->nodes[i].next)
				if (!is_head(mq, mq->nodes[i].next))
					assert_true(age_of(mq, i) >=
						    age_of(mq, mq->nodes[i].next));
	}
	for (u32 i = 0; i < NR / 10; i++) {
		assert_int_equal(queue_of(mq, i), 0);
		assert_int_equal(age_of(mq, i), OLDEST);
	}
	short_stamps->destroy(p);
}

/* Reuse at long distances makes the lifetime long, at short ones short again. */
static void test_mq_lifetime_adapts(void **state)
{
	struct pc_policy *p = create(short_stamps, NR);
	struct mq *mq = to_mq(p);
	u32 units = cache_units(mq);

	for (u32 i = 0; i < NR; i++)
		short_stamps->inserted(p, pc_cblock(i), pc_oblock(i));
	assert_int_equal(mq->lifetime, units);
	/* each block in turn, and two hits of block 0 between: a third at 3 caches' distance */
	for (u32 n = 0; n < 40000; n++) {
		short_stamps->hit(p, pc_cblock(1 + n % (NR - 1)), pc_oblock(0), PC_READ);
		short_stamps->hit(p, pc_cblock(0), pc_oblock(0), PC_READ);
		short_stamps->hit(p, pc_cblock(0), pc_oblock(0), PC_READ);
	}
	assert_true(mq->lifetime >= 2 * units);
	for (int n = 0; n < 40000; n++)
		short_stamps->hit(p, pc_cblock(n % 5), pc_oblock(0), PC_READ);
	assert_int_equal(mq->lifetime, units);

	/* a value that was set stays */
	set_number(p, "lifetime", 5 * NR);
	for (int n = 0; n < 40000; n++)
		short_stamps->hit(p, pc_cblock(n % 5), pc_oblock(0), PC_READ);
	assert_int_equal(mq->lifetime, 5 * NR >> mq->unit_shift);
	short_stamps->destroy(p);
}

static void test_mq_promote_adjustments(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("mq");
	struct pc_policy *p = create(type, 1000);

	assert_int_equal(type->miss(p, pc_oblock(1), PC_READ, 0), PC_ADMIT);
	assert_int_equal(type->miss(p, pc_oblock(1), PC_WRITE, PC_MISS_SEQUENTIAL), PC_ADMIT);
	set_number(p, "read_promote_adjustment", 0);
	assert_int_equal(type->miss(p, pc_oblock(1), PC_READ, 0), PC_ADMIT);

	set_number(p, "read_promote_adjustment", 3);
	assert_int_equal(type->miss(p, pc_oblock(2), PC_WRITE, 0), PC_ADMIT);
	assert_int_equal(type->miss(p, pc_oblock(2), PC_READ, 0), PC_BYPASS);
	/* these do not count */
	assert_int_equal(type->miss(p, pc_oblock(2), PC_READ, PC_MISS_PREFETCH), PC_BYPASS);
	assert_int_equal(type->miss(p, pc_oblock(2), PC_READ, PC_MISS_SEQUENTIAL), PC_BYPASS);
	assert_int_equal(type->miss(p, pc_oblock(2), PC_READ, 0), PC_ADMIT);
	assert_int_equal(type->miss(p, pc_oblock(3), PC_READ, 0), PC_BYPASS);
	type->inserted(p, pc_cblock(0), pc_oblock(2));
	assert_int_equal(HINT_REFS(type->hint(p, pc_cblock(0))), 3);

	set_number(p, "read_promote_adjustment", 1);
	set_number(p, "write_promote_adjustment", 4000000000u);
	assert_int_equal(type->miss(p, pc_oblock(4), PC_READ, 0), PC_ADMIT);
	for (int n = 0; n < 253; n++)
		assert_int_equal(type->miss(p, pc_oblock(4), PC_WRITE, 0), PC_BYPASS);
	assert_int_equal(type->miss(p, pc_oblock(4), PC_WRITE, 0), PC_ADMIT);
	type->destroy(p);
}

/* How many of n oblocks from o on are remembered, with the references they had. */
static u32 count_ghosts(u64 o, u32 n)
{
	const struct pc_policy_type *type = pc_policy_find("mq");
	struct pc_policy *p = create(type, 10000);
	size_t memory = type->memory(p);
	u32 known = 0;

	for (u64 k = 0; k < 100000; k++) {
		type->inserted(p, pc_cblock(0), pc_oblock(k));
		assert_int_equal(HINT_REFS(type->hint(p, pc_cblock(0))), 1);
		for (int h = 0; h < 9; h++)
			type->hit(p, pc_cblock(0), pc_oblock(k), PC_READ);
		type->removed(p, pc_cblock(0), pc_oblock(k));
	}
	for (u32 k = 0; k < n; k++) {
		u32 refs;

		type->inserted(p, pc_cblock(k), pc_oblock(o + k));
		refs = HINT_REFS(type->hint(p, pc_cblock(k)));
		assert_true(refs == 1 || refs == 11);
		known += refs == 11;
	}
	assert_int_equal(type->memory(p), memory);
	type->destroy(p);
	print_message("  of %u ghosts, %llu to %llu blocks old, %u are known\n", n,
		      100000 - o - n, 100000 - o, known);
	return known;
}

/* References outlive a demotion, for about twice as many blocks as the cache has. */
static void test_mq_ghosts(void **state)
{
	assert_true(count_ghosts(90000, 10000) > 9900);
	assert_true(count_ghosts(82000, 8000) > 7000);
	assert_true(count_ghosts(70000, 8000) < 1000);
}

/* A table line written for dm-cache's mq is taken, and echoed. */
static void test_mq_tunables(void **state)
{
	static const char *const old_keys[] = {
		"sequential_threshold", "random_threshold", "discard_promote_adjustment",
		"read_promote_adjustment", "write_promote_adjustment",
	};
	struct pc_policy *p = create(pc_policy_find("mq"), NR);
	char buf[PC_POLICY_EMIT_SIZE], want[80];
	const char *why;

	for (u32 k = 0; k < ARRAY_SIZE(old_keys); k++) {
		set_number(p, old_keys[k], 4294967295u - k);
		assert_int_equal(p->type->set(p, old_keys[k], "4294967296", &why), -ERANGE);
		p->type->emit(p, buf, sizeof(buf));
		snprintf(want, sizeof(want), "%s %u", old_keys[k], 4294967295u - k);
		assert_non_null(strstr(buf, want));
	}
	assert_non_null(strstr(buf, "inert sequential_threshold,random_threshold,"
			       "discard_promote_adjustment"));
	assert_int_equal(p->type->set(p, "queues", "0", &why), -ERANGE);
	assert_int_equal(p->type->set(p, "queues", "9", &why), -ERANGE);
	assert_int_equal(p->type->set(p, "lifetime", "1601", &why), -ERANGE);
	set_number(p, "lifetime", 1600);

	/* with two queues nothing climbs higher than the second */
	set_number(p, "queues", 2);
	p->type->inserted(p, pc_cblock(5), pc_oblock(5));
	for (int k = 0; k < 20; k++)
		p->type->hit(p, pc_cblock(5), pc_oblock(5), PC_READ);
	assert_int_equal(HINT_QUEUE(p->type->hint(p, pc_cblock(5))), 1);
	p->type->destroy(p);
}

/* Loaded without hints, as on an exchange, among accesses: colder than what was used. */
static void test_mq_load_among_accesses(void **state)
{
	const struct pc_policy_type *type = pc_policy_find("mq");
	struct pc_policy *p = create(type, NR);
	pc_cblock_t order[NR];
	u64 cursor = 0;

	for (u32 i = 0; i < NR; i++) {
		if (i % 4 == 3)
			type->inserted(p, pc_cblock(i), pc_oblock(i));
		else
			type->load(p, pc_cblock(i), pc_oblock(i), false, false, 0);
	}
	assert_int_equal(type->walk(p, &cursor, NR, order), NR);
	for (u32 k = 0; k < NR; k++)
		assert_int_equal(pc_from_cblock(order[k]),
				 k < 75 ? k / 3 * 4 + k % 3 : (k - 75) * 4 + 3);
	for (u32 k = 1; k < NR; k++)
		assert_true(HINT_RANK(type->hint(p, order[k])) >=
			    HINT_RANK(type->hint(p, order[k - 1])));
	type->destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mq_against_model),
		cmocka_unit_test(test_mq_short_stamps),
		cmocka_unit_test(test_mq_lifetime_adapts),
		cmocka_unit_test(test_mq_promote_adjustments),
		cmocka_unit_test(test_mq_ghosts),
		cmocka_unit_test(test_mq_tunables),
		cmocka_unit_test(test_mq_load_among_accesses),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
