// SPDX-License-Identifier: GPL-2.0-only
/*
 * s3fifo against a naive model: three arrays, coldest first, ghosts by their oblock
 * and without any hash. Compared are the order of both queues, hits, and each victim.
 * s3fifo is compiled a second time into this program, with stamps of 10 bits.
 */
#include <linux/errno.h>

#include "policies.h"
#include "unit.h"

#undef PC_POLICY_MODULE
#define PC_POLICY_MODULE(type, text) static struct pc_policy_type *const short_stamps = &(type)
#define PC_S3FIFO_STAMP_BITS 10
#include "../../policies/s3fifo.c"

#define NR 100u
#define NR_OBLOCKS 250u
/* so few that a set of the table never overflows */
#define GHOST_PERCENT 30u
/* so large that main is often over its share */
#define SMALL_PERCENT 65u
#define MAIN_SHARE (NR - NR * SMALL_PERCENT / 100)
#define HINT_HITS(hint) ((hint) >> 28 & 3)
#define HINT_IS_MAIN(hint) ((hint) >> 30 == 2)

struct entry {
	u32 c;
	u64 o;
	u32 hits;
	bool is_offered;
};

struct fifo {
	struct entry e[NR];
	u32 len;
	u32 offered;
};

struct model {
	struct fifo small;
	struct fifo main;
	u64 ghosts[NR];
	u32 nr_ghosts;
	u32 removed;
	bool in_round;
};

static u32 fifo_find(const struct fifo *f, u32 c)
{
	u32 at;

	for (at = 0; at < f->len; at++)
		if (f->e[at].c == c)
			break;
	return at;
}

static struct entry fifo_take(struct fifo *f, u32 at)
{
	struct entry e = f->e[at];

	assert_true(at < f->len);
	memmove(f->e + at, f->e + at + 1, (--f->len - at) * sizeof(e));
	return e;
}

static void fifo_put(struct fifo *f, struct entry e, u32 hits)
{
	e.hits = hits;
	f->e[f->len++] = e;
}

static struct fifo *model_queue(struct model *m, u32 c)
{
	if (fifo_find(&m->small, c) < m->small.len)
		return &m->small;
	return fifo_find(&m->main, c) < m->main.len ? &m->main : NULL;
}

static bool model_take_ghost(struct model *m, u64 o)
{
	for (u32 k = 0; k < m->nr_ghosts; k++) {
		if (m->ghosts[k] != o)
			continue;
		memmove(m->ghosts + k, m->ghosts + k + 1, (--m->nr_ghosts - k) * sizeof(u64));
		return true;
	}
	return false;
}

static void model_add_ghost(struct model *m, u64 o)
{
	model_take_ghost(m, o);
	m->ghosts[m->nr_ghosts++] = o;
	if (m->nr_ghosts > NR * GHOST_PERCENT / 100)
		model_take_ghost(m, m->ghosts[0]);
}

static void model_insert(struct model *m, u32 c, u64 o)
{
	struct entry e = { .c = c, .o = o };

	fifo_put(model_take_ghost(m, o) ? &m->main : &m->small, e, 0);
}

/* Returns its oblock. */
static u64 model_remove(struct model *m, u32 c)
{
	struct fifo *f = model_queue(m, c);
	struct entry e = fifo_take(f, fifo_find(f, c));

	if (f == &m->small)
		model_add_ghost(m, e.o);
	m->removed++;
	if (f->offered)
		f->offered--;
	return e.o;
}

/* Those offered are always the first of a queue. */
static u32 fifo_hand(const struct fifo *f)
{
	u32 at = 0;

	while (at < f->len && f->e[at].is_offered)
		at++;
	return at;
}

static struct fifo *model_pick(struct model *m)
{
	if (fifo_hand(&m->main) == m->main.len)
		return &m->small;
	if (fifo_hand(&m->small) == m->small.len)
		return &m->main;
	return m->main.len > MAIN_SHARE + m->main.offered ? &m->main : &m->small;
}

/* The cblock, or NR. */
static u32 model_victim(struct model *m)
{
	struct fifo *f = model_pick(m);

	for (;;) {
		u32 at = fifo_hand(f);
		struct entry e;

		if (at == f->len) {
			f = model_pick(m);
			at = fifo_hand(f);
			if (at == f->len)
				return NR;
		}
		if (f == &m->small ? f->e[at].hits >= 2 : f->e[at].hits >= 1) {
			e = fifo_take(f, at);
			fifo_put(&m->main, e, f == &m->small ? 0 : e.hits - 1);
			continue;
		}
		f->e[at].is_offered = true;
		f->offered++;
		return f->e[at].c;
	}
}

static void model_start_round(struct model *m)
{
	for (u32 k = 0; k < m->small.len; k++)
		m->small.e[k].is_offered = false;
	for (u32 k = 0; k < m->main.len; k++)
		m->main.e[k].is_offered = false;
	m->small.offered = 0;
	m->main.offered = 0;
	m->removed = 0;
	m->in_round = true;
}

static struct pc_policy *create_type(const struct pc_policy_type *type, u32 nr)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr, .nr_oblocks = 1 << 20, .block_sectors = 128,
	};
	struct pc_policy *p = type->create(type, &params);

	assert_non_null(p);
	return p;
}

static struct pc_policy *create(u32 nr)
{
	return create_type(pc_policy_find("s3fifo"), nr);
}

static void set_number(struct pc_policy *p, const char *key, u32 n)
{
	const char *why;
	char value[12];

	snprintf(value, sizeof(value), "%u", n);
	assert_int_equal(p->type->set(p, key, value, &why), 0);
}

static struct pc_policy *create_few_ghosts(void)
{
	struct pc_policy *p = create(NR);

	set_number(p, "ghost_share", GHOST_PERCENT);
	set_number(p, "small_share", SMALL_PERCENT);
	return p;
}

static void check_fifo(struct pc_policy *p, const struct fifo *f, bool is_main,
		       const pc_cblock_t *order)
{
	u32 last_rank = 0;

	for (u32 k = 0; k < f->len; k++) {
		u32 hint = p->type->hint(p, order[k]);

		assert_int_equal(pc_from_cblock(order[k]), f->e[k].c);
		assert_int_equal(HINT_HITS(hint), f->e[k].hits);
		assert_int_equal(HINT_IS_MAIN(hint), is_main);
		hint &= (1u << 28) - 1;
		assert_true(hint > last_rank);
		last_rank = hint;
	}
}

static void check(struct pc_policy *p, const struct model *m)
{
	pc_cblock_t order[NR + 1];
	u32 count = 0, got;
	u64 cursor = 0;

	while ((got = p->type->walk(p, &cursor, 7, order + count)))
		count += got;
	assert_int_equal(count, m->small.len + m->main.len);
	check_fifo(p, &m->small, false, order);
	check_fifo(p, &m->main, true, order + m->small.len);
}

static struct pc_policy *reload(struct pc_policy *p, struct model *m)
{
	struct pc_policy *again = create_few_ghosts();

	for (u32 c = 0; c < NR; c++) {
		struct fifo *f = model_queue(m, c);

		if (f)
			p->type->load(again, pc_cblock(c), pc_oblock(f->e[fifo_find(f, c)].o),
				      false, true, p->type->hint(p, pc_cblock(c)));
	}
	p->type->loaded(again);
	p->type->destroy(p);
	m->nr_ghosts = 0;
	m->in_round = false;
	check(again, m);
	return again;
}

/* Some of the victims are demoted, seldom all. */
static void check_victims(struct pc_policy *p, struct model *m, struct unit_random *r)
{
	pc_cblock_t out[20];
	u32 n = unit_random_below(r, ARRAY_SIZE(out) + 1);
	u32 got = p->type->victims(p, n, out);
	bool takes_all = unit_random_one_in(r, 2);

	if (!m->in_round ||
	    (m->removed && m->removed >= (m->small.offered + m->main.offered) / 16))
		model_start_round(m);
	for (u32 k = 0; k < got; k++)
		assert_int_equal(pc_from_cblock(out[k]), model_victim(m));
	if (got < n) {
		assert_int_equal(model_victim(m), NR);
		m->in_round = false;
	}
	for (u32 k = 0; k < got; k++) {
		if (!takes_all && unit_random_one_in(r, 3))
			continue;
		p->type->removed(p, out[k],
				 pc_oblock(model_remove(m, pc_from_cblock(out[k]))));
	}
}

/* An oblock that is not cached, rather one of the small numbers. */
static u64 random_uncached(const struct model *m, struct unit_random *r)
{
	for (;;) {
		u64 o = unit_random_below(r, 1 + unit_random_below(r, NR_OBLOCKS));
		bool found = false;

		for (u32 k = 0; k < m->small.len; k++)
			found |= m->small.e[k].o == o;
		for (u32 k = 0; k < m->main.len; k++)
			found |= m->main.e[k].o == o;
		if (!found)
			return o;
	}
}

static void test_s3fifo_against_model(void **state)
{
	struct pc_policy *p = create_few_ghosts();
	struct model m = { .removed = 0 };
	struct unit_random r;
	u32 to_main = 0;

	unit_random_init(&r, "s3fifo", 0);
	for (int n = 0; n < 60000; n++) {
		u32 c = unit_random_below(&r, NR);
		struct fifo *f = model_queue(&m, c);
		u32 action = unit_random_below(&r, 16);

		if (action == 0) {
			check_victims(p, &m, &r);
		} else if (action == 1 && f && unit_random_one_in(&r, 4)) {
			p->type->removed(p, pc_cblock(c), pc_oblock(model_remove(&m, c)));
		} else if (action < 8 && !f) {
			u64 o = random_uncached(&m, &r);

			assert_int_equal(p->type->miss(p, pc_oblock(o), PC_READ, 0), PC_ADMIT);
			p->type->inserted(p, pc_cblock(c), pc_oblock(o));
			model_insert(&m, c, o);
			to_main += model_queue(&m, c) == &m.main;
		} else if (action >= 8) {
			p->type->hit(p, pc_cblock(c), pc_oblock(n), PC_READ);
			if (f && f->e[fifo_find(f, c)].hits < 3)
				f->e[fifo_find(f, c)].hits++;
		}
		if (n % 8 == 0)
			check(p, &m);
		if (unit_random_one_in(&r, 5000))
			p = reload(p, &m);
	}
	/* ghosts were met, and often */
	assert_true(to_main > 500);
	p->type->destroy(p);
}

/* Inserts and removes; the block was then in small, unless its ghost was known. */
static bool pass_through(struct pc_policy *p, u64 o)
{
	bool was_ghost;

	p->type->inserted(p, pc_cblock(0), pc_oblock(o));
	was_ghost = HINT_IS_MAIN(p->type->hint(p, pc_cblock(0)));
	p->type->removed(p, pc_cblock(0), pc_oblock(o));
	return was_ghost;
}

/* As many are remembered as ghost_share says, the youngest, and each once. */
static void test_s3fifo_ghosts_are_bounded(void **state)
{
	static const u32 sizes[] = { 16, 100, 1000, 10007, 100000 };

	for (int s = 0; s < ARRAY_SIZE(sizes); s++) {
		u32 nr = sizes[s], capacity = nr * 9 / 10, known = 0, young = 0;
		struct pc_policy *p = create(nr);
		size_t memory = p->type->memory(p);

		for (u64 o = 0; o < 20 * nr; o++)
			assert_false(pass_through(p, o));
		for (u64 o = 20 * nr - 1; o >= 18 * nr; o--) {
			p->type->inserted(p, pc_cblock(1), pc_oblock(o));
			if (HINT_IS_MAIN(p->type->hint(p, pc_cblock(1)))) {
				known++;
				young += o >= 20 * nr - capacity;
				p->type->removed(p, pc_cblock(1), pc_oblock(o));
				continue;
			}
			/* expired, or lost to a full set; now it is the youngest itself */
			p->type->removed(p, pc_cblock(1), pc_oblock(o));
			if (o < 20 * nr - capacity)
				break;
		}
		print_message("  %u blocks: %u ghosts, %u of the youngest %u\n", nr, known, young,
			      capacity);
		assert_true(known <= capacity);
		assert_true(young >= capacity * 95 / 100);
		assert_int_equal(p->type->memory(p), memory);
		p->type->destroy(p);
	}
}

/* A ghost that expired is not taken for one of an epoch that has its number again. */
static void test_s3fifo_ghosts_over_many_epochs(void **state)
{
	struct pc_policy *p = create(16);

	/* each number of an epoch comes many times; a stale one would be known again */
	for (u64 o = 0; o < 200000; o++)
		assert_false(pass_through(p, o % 1009));
	p->type->destroy(p);
}

/* Blocks refused for ever, while stamps wrap: ranks never shrink along a queue. */
static void test_s3fifo_short_stamps(void **state)
{
	struct pc_policy *p = create_type(short_stamps, NR);
	struct s3fifo *s = to_s3fifo(p);
	pc_cblock_t out[32];
	u32 next = NR, oblock[NR];

	for (u32 i = 0; i < NR; i++) {
		oblock[i] = i;
		short_stamps->inserted(p, pc_cblock(i), pc_oblock(i));
	}
	for (int n = 0; n < 5000; n++) {
		u32 got = short_stamps->victims(p, ARRAY_SIZE(out), out);

		for (u32 k = 0; k < got; k++) {
			u32 c = pc_from_cblock(out[k]);

			if (c % 10 == 0)
				continue;
			short_stamps->removed(p, out[k], pc_oblock(oblock[c]));
			oblock[c] = next++;
			short_stamps->inserted(p, out[k], pc_oblock(oblock[c]));
			if (next % 3 == 0)
				short_stamps->hit(p, pc_cblock(next % NR), pc_oblock(0), PC_READ);
		}
		for (enum queue q = 0; q < NR_QUEUES; q++)
			for (u32 i = coldest(s, q); s->nodes[i].next != head(s, q) &&
			     i != head(s, q); i = s->nodes[i].next)
				assert_true(age_of(s, i) >= age_of(s, s->nodes[i].next));
	}
	assert_true(next > 10 * STAMP_MASK);
	short_stamps->destroy(p);
}

static void test_s3fifo_one_call_is_bounded(void **state)
{
	u32 nr = 1 << 16;
	struct pc_policy *p = create(nr);
	pc_cblock_t out;

	for (u32 i = 0; i < nr; i++) {
		p->type->load(p, pc_cblock(i), pc_oblock(i), false, false, 0);
		for (int k = 0; k < 3; k++)
			p->type->hit(p, pc_cblock(i), pc_oblock(i), PC_READ);
	}
	/* all have hits: after a while the coldest that is left goes nevertheless */
	assert_int_equal(p->type->victims(p, 1, &out), 1);
	assert_int_equal(pc_from_cblock(out), 1024);
	p->type->destroy(p);
}

static void test_s3fifo_tunables(void **state)
{
	struct pc_policy *p = create(NR);
	char buf[PC_POLICY_EMIT_SIZE];
	const char *why;
	pc_cblock_t out;

	assert_int_equal(p->type->set(p, "small_share", "91", &why), -ERANGE);
	assert_int_equal(p->type->set(p, "ghost_share", "0", &why), -ERANGE);
	assert_int_equal(p->type->set(p, "promote_hits", "4", &why), -ERANGE);
	assert_int_equal(p->type->set(p, "small_share", "50", &why), 0);
	assert_int_equal(p->type->set(p, "promote_hits", "1", &why), 0);
	assert_int_equal(p->type->emit(p, buf, sizeof(buf)), 6);
	assert_string_equal(buf, "small_share 50 ghost_share 90 promote_hits 1");

	/* with one hit, the first in small is now passed over */
	p->type->inserted(p, pc_cblock(3), pc_oblock(3));
	p->type->inserted(p, pc_cblock(4), pc_oblock(4));
	p->type->hit(p, pc_cblock(3), pc_oblock(3), PC_READ);
	assert_int_equal(p->type->victims(p, 1, &out), 1);
	assert_int_equal(pc_from_cblock(out), 4);
	assert_true(HINT_IS_MAIN(p->type->hint(p, pc_cblock(3))));
	p->type->destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_s3fifo_against_model),
		cmocka_unit_test(test_s3fifo_ghosts_are_bounded),
		cmocka_unit_test(test_s3fifo_ghosts_over_many_epochs),
		cmocka_unit_test(test_s3fifo_short_stamps),
		cmocka_unit_test(test_s3fifo_one_call_is_bounded),
		cmocka_unit_test(test_s3fifo_tunables),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
