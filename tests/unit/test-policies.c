// SPDX-License-Identifier: GPL-2.0-only
/*
 * The conformance suite that every registered policy passes: what policy.h promises
 * to the core, under random operations with a naive model of what is held. What is
 * special to a policy has a test of its own (test-lru.c and so on).
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "policies.h"
#include "unit.h"

#define MAX_CBLOCKS 4096u
#define NR_OBLOCKS (1ull << 40)

/* One policy, and what it must be holding. */
struct world {
	const struct pc_policy_type *type;
	struct pc_policy *p;
	u32 nr;
	u32 nr_held;
	bool held[MAX_CBLOCKS];
	u64 oblock[MAX_CBLOCKS];
	struct unit_random r;
};

static void world_init(struct world *w, const struct pc_policy_type *type, u32 nr, u64 iteration)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr,
		.nr_oblocks = NR_OBLOCKS,
		.block_sectors = 128,
		.seed = 42,
	};

	memset(w, 0, sizeof(*w));
	w->type = type;
	w->nr = nr;
	w->p = type->create(type, &params);
	assert_non_null(w->p);
	assert_ptr_equal(w->p->type, type);
	unit_random_init(&w->r, type->name, iteration);
}

static void world_exit(struct world *w)
{
	w->type->destroy(w->p);
}

static u32 random_cblock(struct world *w)
{
	return unit_random_below(&w->r, w->nr);
}

/* Small numbers, which repeat, and now and then the largest. */
static pc_oblock_t random_oblock(struct world *w)
{
	if (unit_random_one_in(&w->r, 50))
		return pc_oblock(NR_OBLOCKS - 1 - unit_random_below(&w->r, 2));
	return pc_oblock(unit_random_below(&w->r, 4 * w->nr));
}

static enum pc_dir random_dir(struct world *w)
{
	return unit_random_one_in(&w->r, 2) ? PC_READ : PC_WRITE;
}

static void insert(struct world *w, u32 i, bool by_load)
{
	pc_oblock_t o = random_oblock(w);

	assert_false(w->held[i]);
	if (by_load)
		w->type->load(w->p, pc_cblock(i), o, unit_random_one_in(&w->r, 2), false, 0);
	else
		w->type->inserted(w->p, pc_cblock(i), o);
	w->held[i] = true;
	w->oblock[i] = pc_from_oblock(o);
	w->nr_held++;
}

static void take_away(struct world *w, u32 i)
{
	assert_true(w->held[i]);
	w->type->removed(w->p, pc_cblock(i), pc_oblock(w->oblock[i]));
	w->held[i] = false;
	w->nr_held--;
}

static void fill_world(struct world *w, bool by_load)
{
	for (u32 i = 0; i < w->nr; i++)
		if (!w->held[i])
			insert(w, i, by_load);
}

/* All held blocks from the coldest; checks that each comes once. */
static u32 walk(struct world *w, pc_cblock_t *order, unsigned int batch)
{
	bool seen[MAX_CBLOCKS] = { false };
	u32 count = 0, got;
	u64 cursor = 0;

	while ((got = w->type->walk(w->p, &cursor, batch, order + count))) {
		assert_true(got <= batch);
		for (u32 k = count; k < count + got; k++) {
			u32 i = pc_from_cblock(order[k]);

			assert_true(i < w->nr);
			assert_true(w->held[i]);
			assert_false(seen[i]);
			seen[i] = true;
		}
		count += got;
		if (count == w->nr_held) {
			pc_cblock_t none;

			assert_int_equal(w->type->walk(w->p, &cursor, 1, &none), 0);
			break;
		}
	}
	assert_int_equal(count, w->nr_held);
	return count;
}

static void check_victims(struct world *w, unsigned int n)
{
	pc_cblock_t out[64];
	bool seen[MAX_CBLOCKS] = { false };
	unsigned int got = w->type->victims(w->p, n, out);

	assert_true(got <= n);
	if (w->type->flags & PC_POLICY_CLEANER)
		assert_int_equal(got, 0);
	for (unsigned int k = 0; k < got; k++) {
		u32 i = pc_from_cblock(out[k]);

		assert_true(i < w->nr && w->held[i]);
		assert_false(seen[i]);
		seen[i] = true;
	}
	/* the core demotes some of them */
	for (unsigned int k = 0; k < got; k++)
		if (unit_random_one_in(&w->r, 2))
			take_away(w, pc_from_cblock(out[k]));
}

/* One operation; returns something that two equal policies must agree on. */
static u64 step(struct world *w)
{
	u32 i = random_cblock(w);
	pc_oblock_t o = random_oblock(w);
	enum pc_dir dir = random_dir(w);

	switch (unit_random_below(&w->r, 16)) {
	case 0:
		if (!w->held[i])
			insert(w, i, false);
		break;
	case 1:
		if (w->held[i])
			take_away(w, i);
		break;
	case 2:
		check_victims(w, unit_random_below(&w->r, 64));
		break;
	case 3:
		return w->type->hint(w->p, pc_cblock(i));
	case 4:
		if (w->type->tick)
			w->type->tick(w->p);
		break;
	case 5: case 6: case 7: case 8: {
		unsigned int flags = unit_random_below(&w->r, 8) < 7 ? 0 :
			unit_random_below(&w->r, 4);
		enum pc_verdict v = w->type->miss(w->p, o, dir, flags);

		assert_true(v == PC_ADMIT || v == PC_BYPASS);
		if (w->type->flags & PC_POLICY_CLEANER)
			assert_int_equal(v, PC_BYPASS);
		return v;
	}
	default:
		/* on any cblock, held or not, with the right oblock or another */
		w->type->hit(w->p, pc_cblock(i),
			     unit_random_one_in(&w->r, 4) ? o : pc_oblock(w->oblock[i]), dir);
	}
	return 0;
}

static const u32 sizes[] = { 1, 2, 3, 63, 64, 65, 1000 };

static void conform_random(const struct pc_policy_type *type)
{
	static pc_cblock_t order[MAX_CBLOCKS];

	for (int s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct world w;

		world_init(&w, type, sizes[s], s);
		for (u32 i = 0; i < w.nr; i++)
			if (unit_random_one_in(&w.r, 2))
				insert(&w, i, true);
		if (type->loaded)
			type->loaded(w.p);
		for (int n = 0; n < 20000; n++) {
			step(&w);
			if (n % 100 == 0)
				walk(&w, order, 1 + unit_random_below(&w.r, 100));
		}
		world_exit(&w);
	}
}

/* Same seed, same calls: same answers. */
static void conform_determinism(const struct pc_policy_type *type)
{
	static pc_cblock_t order[2][MAX_CBLOCKS];
	struct world a, b;
	u32 count;

	world_init(&a, type, 300, 1);
	world_init(&b, type, 300, 1);
	for (int n = 0; n < 20000; n++)
		assert_true(step(&a) == step(&b));
	count = walk(&a, order[0], 64);
	assert_int_equal(walk(&b, order[1], 100), count);
	assert_memory_equal(order[0], order[1], count * sizeof(order[0][0]));
	world_exit(&a);
	world_exit(&b);
}

/* Hits on blocks that are not held change nothing. */
static void conform_stale_hits(const struct pc_policy_type *type)
{
	static pc_cblock_t order[2][MAX_CBLOCKS];
	struct world a, b;
	u32 count;

	world_init(&a, type, 300, 2);
	world_init(&b, type, 300, 2);
	for (int n = 0; n < 5000; n++) {
		step(&a);
		step(&b);
		for (u32 i = 0; i < b.nr; i += 1 + n % 7)
			if (!b.held[i])
				type->hit(b.p, pc_cblock(i), pc_oblock(n), PC_READ);
	}
	count = walk(&a, order[0], 64);
	walk(&b, order[1], 64);
	assert_memory_equal(order[0], order[1], count * sizeof(order[0][0]));
	world_exit(&a);
	world_exit(&b);
}

/* Asked again without a removal: others, until all were offered once, then anew. */
static void conform_victims(const struct pc_policy_type *type)
{
	static pc_cblock_t out[MAX_CBLOCKS];
	const unsigned int batches[] = { 1, 7, 64, 100, 333, 5000 };

	for (int b = 0; b < ARRAY_SIZE(batches); b++) {
		unsigned int n = min(batches[b], MAX_CBLOCKS);
		struct world w;

		world_init(&w, type, 333, b);
		fill_world(&w, b % 2);
		for (int i = 0; i < 100; i++)
			type->hit(w.p, pc_cblock(random_cblock(&w)), pc_oblock(i), PC_READ);
		for (int round = 0; round < 3; round++) {
			bool seen[MAX_CBLOCKS] = { false };
			unsigned int got, count = 0;

			do {
				got = type->victims(w.p, n, out);
				for (unsigned int k = 0; k < got; k++) {
					assert_false(seen[pc_from_cblock(out[k])]);
					seen[pc_from_cblock(out[k])] = true;
				}
				count += got;
			} while (got == n);
			assert_int_equal(count, type->flags & PC_POLICY_CLEANER ? 0 : w.nr_held);
		}
		world_exit(&w);
	}
}

/* What is removed during a round is not offered, whatever comes and goes. */
static void conform_victims_drain(const struct pc_policy_type *type)
{
	pc_cblock_t out[16];
	unsigned int got, rounds = 0;
	struct world w;

	if (type->flags & PC_POLICY_CLEANER)
		return;
	world_init(&w, type, 1000, 7);
	fill_world(&w, false);
	/* a third of what is offered can be demoted: all is demoted in the end */
	while (w.nr_held) {
		got = type->victims(w.p, 16, out);
		for (unsigned int k = 0; k < got; k++)
			if (w.held[pc_from_cblock(out[k])] && unit_random_one_in(&w.r, 3))
				take_away(&w, pc_from_cblock(out[k]));
		assert_true(++rounds < 10000);
	}
	world_exit(&w);
}

/*
 * The cold half can never be demoted. Getting at the rest must not cost a look at
 * that half for each block.
 */
static void conform_victims_stuck_cold_end(const struct pc_policy_type *type)
{
	pc_cblock_t out[16];
	unsigned int offers = 0;
	struct world w;

	if (type->flags & PC_POLICY_CLEANER)
		return;
	world_init(&w, type, MAX_CBLOCKS, 8);
	fill_world(&w, false);
	while (w.nr_held > MAX_CBLOCKS / 2) {
		unsigned int got = type->victims(w.p, 16, out);

		for (unsigned int k = 0; k < got; k++)
			if (pc_from_cblock(out[k]) >= MAX_CBLOCKS / 2)
				take_away(&w, pc_from_cblock(out[k]));
		offers += got;
		assert_true(offers < 64 * MAX_CBLOCKS);
	}
	world_exit(&w);
}

/* A walk in slices while others move: those that stay are seen, exactly once. */
static void conform_walk_in_slices(const struct pc_policy_type *type)
{
	pc_cblock_t out[16];

	for (int s = 0; s < 50; s++) {
		bool moved[MAX_CBLOCKS] = { false };
		u32 seen[MAX_CBLOCKS] = { 0 };
		struct world w;
		u64 cursor = 0;
		unsigned int got, slices = 0;

		world_init(&w, type, 500, s);
		fill_world(&w, true);
		for (int n = 0; n < 1000; n++)
			type->hit(w.p, pc_cblock(random_cblock(&w)), pc_oblock(n), PC_READ);

		while ((got = type->walk(w.p, &cursor, 1 + unit_random_below(&w.r, 16), out))) {
			for (unsigned int k = 0; k < got; k++)
				seen[pc_from_cblock(out[k])]++;
			for (int n = unit_random_below(&w.r, 6); n > 0; n--) {
				u32 i = random_cblock(&w);

				/* rather what was just returned: the cursor stands there */
				if (unit_random_one_in(&w.r, 2))
					i = pc_from_cblock(out[got - 1]);
				moved[i] = true;
				if (!w.held[i])
					insert(&w, i, false);
				else if (unit_random_one_in(&w.r, 2))
					take_away(&w, i);
				else
					type->hit(w.p, pc_cblock(i), pc_oblock(w.oblock[i]),
						  PC_READ);
			}
			if (++slices > 2000)
				break;
		}
		for (u32 i = 0; i < w.nr; i++)
			if (!moved[i])
				assert_int_equal(seen[i], 1);
		world_exit(&w);
	}
}

/* Hints of one instance, given to another in the order of cblocks: nothing is lost. */
static void conform_hints(const struct pc_policy_type *type)
{
	static pc_cblock_t order[MAX_CBLOCKS];
	struct world a, b;

	world_init(&a, type, 1000, 9);
	for (int n = 0; n < 20000; n++)
		step(&a);
	world_init(&b, type, 1000, 9);
	for (u32 i = 0; i < a.nr; i++) {
		if (!a.held[i])
			continue;
		type->load(b.p, pc_cblock(i), pc_oblock(a.oblock[i]), false, true,
			   type->hint(a.p, pc_cblock(i)));
		b.held[i] = true;
		b.nr_held++;
	}
	if (type->loaded)
		type->loaded(b.p);
	walk(&b, order, 64);
	for (int n = 0; n < 1000; n++)
		step(&b);
	walk(&b, order, 64);
	world_exit(&a);
	world_exit(&b);
}

/* Hints come from a disk: any value must do. */
static void conform_wild_hints(const struct pc_policy_type *type)
{
	static const u32 wild[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };
	static pc_cblock_t order[MAX_CBLOCKS];
	struct world w;

	world_init(&w, type, 600, 10);
	for (u32 i = 0; i < w.nr; i++) {
		u32 hint = unit_random_one_in(&w.r, 2) ? unit_random(&w.r) :
			wild[unit_random_below(&w.r, ARRAY_SIZE(wild))];

		type->load(w.p, pc_cblock(i), pc_oblock(i), false, !unit_random_one_in(&w.r, 9),
			   hint);
		w.held[i] = true;
		w.nr_held++;
	}
	if (type->loaded)
		type->loaded(w.p);
	walk(&w, order, 64);
	for (int n = 0; n < 5000; n++)
		step(&w);
	walk(&w, order, 64);
	world_exit(&w);
}

/* A cache that demotes only when it is full, over oblocks from a small range. */
struct ondemand {
	struct world w;
	u32 where[64 * 1024];	/* cblock + 1 of an oblock; 0: not cached */
};

/* Returns whether it was a hit. */
static bool access_block(struct ondemand *d, u64 o)
{
	const struct pc_policy_type *type = d->w.type;
	pc_cblock_t victim;
	u32 i;

	assert_true(o < ARRAY_SIZE(d->where));
	if (d->where[o]) {
		type->hit(d->w.p, pc_cblock(d->where[o] - 1), pc_oblock(o), PC_READ);
		return true;
	}
	if (type->miss(d->w.p, pc_oblock(o), PC_READ, 0) != PC_ADMIT)
		return false;
	if (d->w.nr_held < d->w.nr) {
		i = d->w.nr_held++;
	} else {
		assert_int_equal(type->victims(d->w.p, 1, &victim), 1);
		i = pc_from_cblock(victim);
		type->removed(d->w.p, victim, pc_oblock(d->w.oblock[i]));
		d->where[d->w.oblock[i]] = 0;
	}
	d->w.oblock[i] = o;
	d->where[o] = i + 1;
	type->inserted(d->w.p, pc_cblock(i), pc_oblock(o));
	return false;
}

/* Each of n oblocks from o on once, in an order that is never that of the numbers. */
static u32 access_all(struct ondemand *d, u64 o, u32 n)
{
	static u32 order[MAX_CBLOCKS];
	u32 hits = 0;

	for (u32 i = 0; i < n; i++) {
		u32 k = unit_random_below(&d->w.r, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (u32 i = 0; i < n; i++)
		hits += access_block(d, o + order[i]);
	return hits;
}

static const u32 behaviour_sizes[] = { 100, 1000, MAX_CBLOCKS };

/* Blocks in use survive ten times the cache in blocks that are read once. */
static void conform_scan(const struct pc_policy_type *type)
{
	static struct ondemand d;

	/* lru keeps what came last, by its very nature */
	if (type->flags & PC_POLICY_CLEANER || !strcmp(type->name, "lru"))
		return;
	for (int s = 0; s < ARRAY_SIZE(behaviour_sizes); s++) {
		u32 nr = behaviour_sizes[s], hot = nr / 2;

		memset(&d, 0, sizeof(d));
		world_init(&d.w, type, nr, s);
		for (int pass = 0; pass < 5; pass++)
			access_all(&d, 0, hot);
		for (u64 o = 0; o < 10 * nr; o++)
			assert_false(access_block(&d, hot + o));
		assert_true(access_all(&d, 0, hot) >= hot * 9 / 10);
		world_exit(&d.w);
	}
}

/* A cache full of blocks that were in use lets others in that are in use now. */
static void conform_new_working_set(const struct pc_policy_type *type)
{
	static struct ondemand d;

	if (type->flags & PC_POLICY_CLEANER)
		return;
	for (int s = 0; s < ARRAY_SIZE(behaviour_sizes); s++) {
		u32 nr = behaviour_sizes[s];

		for (u32 set = nr / 20; set <= nr / 4 * 3; set += nr / 10) {
			memset(&d, 0, sizeof(d));
			world_init(&d.w, type, nr, s);
			for (int pass = 0; pass < 5; pass++)
				access_all(&d, 0, nr);
			access_all(&d, nr, set);
			access_all(&d, nr, set);
			/* of a small set chance has its share, with hashed ghosts */
			assert_true(access_all(&d, nr, set) >= set * (nr < 1000 ? 8 : 9) / 10);
			world_exit(&d.w);
		}
	}
}

static void conform_memory(const struct pc_policy_type *type)
{
	struct pc_policy_params params = {
		.nr_cblocks = 1 << 20, .nr_oblocks = NR_OBLOCKS, .block_sectors = 128,
	};

	for (int k = 0; k < 2; k++, params.nr_cblocks = 1000003) {
		size_t before = pc_shim_alloc_bytes;
		struct pc_policy *p = type->create(type, &params);

		assert_non_null(p);
		assert_int_equal(type->memory(p), pc_shim_alloc_bytes - before);
		assert_true(type->memory(p) <= 24ull * params.nr_cblocks + 65536);
		type->destroy(p);
	}
}

static void conform_allocation_failure(const struct pc_policy_type *type)
{
	struct pc_policy_params params = {
		.nr_cblocks = 1000, .nr_oblocks = NR_OBLOCKS, .block_sectors = 128,
	};
	struct pc_policy *p;
	long n = 0;

	do {
		pc_shim_alloc_countdown = ++n;
		p = type->create(type, &params);
		assert_true(n < 100);
	} while (!p);
	assert_true(n > 1);
	pc_shim_alloc_countdown = 0;
	type->destroy(p);
}

static void conform_tunables(const struct pc_policy_type *type)
{
	char before[PC_POLICY_EMIT_SIZE] = "", after[PC_POLICY_EMIT_SIZE] = "";
	const char *why = NULL;
	unsigned int words = 0, found = 0;
	char *rest, *key, *value;
	struct world w;

	world_init(&w, type, 100, 0);
	if (type->set)
		assert_int_equal(type->set(w.p, "no_such_key", "1", &why), -EINVAL);
	if (!type->emit)
		goto out;

	words = type->emit(w.p, before, sizeof(before));
	assert_true(words % 2 == 0);
	assert_true(strlen(before) < PC_POLICY_EMIT_SIZE);
	strcpy(after, before);
	rest = after;
	while ((key = strsep(&rest, " "))) {
		value = strsep(&rest, " ");
		assert_non_null(value);
		assert_true(*key && *value);
		/* libdevmapper looks for " ro" behind the policy's name */
		assert_true(strncmp(key, "ro", 2) != 0);
		assert_int_equal(type->set(w.p, key, value, &why), 0);
		found += 2;

		why = NULL;
		assert_int_equal(type->set(w.p, key, "bogus", &why), -ERANGE);
		assert_non_null(why);
		why = NULL;
		assert_int_equal(type->set(w.p, key, "-1", &why), -ERANGE);
		assert_non_null(why);
	}
	assert_int_equal(found, words);
	assert_int_equal(type->emit(w.p, after, sizeof(after)), words);
	assert_string_equal(after, before);
out:
	world_exit(&w);
}

static void conform_type(const struct pc_policy_type *type)
{
	assert_int_equal(type->api, PC_POLICY_API);
	assert_true(type->version > 0);
	assert_true(strlen(type->name) < PC_POLICY_NAME_SIZE);
	assert_string_not_equal(type->name, "default");
	assert_ptr_equal(pc_policy_find(type->name), type);
}

typedef void (*conform_fn)(const struct pc_policy_type *type);

static void each_policy(conform_fn fn)
{
	struct pc_policy_type *type = NULL;
	unsigned int count = 0;

	while ((type = pc_policy_next(type))) {
		print_message("  %s\n", type->name);
		fn(type);
		count++;
	}
	assert_true(count >= 2);
}

#define CONFORM(name)					\
	static void test_policies_##name(void **state)	\
	{						\
		each_policy(conform_##name);		\
	}

CONFORM(type)
CONFORM(random)
CONFORM(determinism)
CONFORM(stale_hits)
CONFORM(victims)
CONFORM(victims_drain)
CONFORM(victims_stuck_cold_end)
CONFORM(walk_in_slices)
CONFORM(hints)
CONFORM(wild_hints)
CONFORM(scan)
CONFORM(new_working_set)
CONFORM(memory)
CONFORM(allocation_failure)
CONFORM(tunables)

/* The registry refuses what it could not run. */
static void test_policies_register_refuses(void **state)
{
	const struct pc_policy_type *lru = pc_policy_find("lru");
	struct pc_policy_type t = *lru;

	assert_int_equal(pc_policy_register(&t), -EEXIST);
	t.name = "lru2";
	t.api = PC_POLICY_API + 1;
	assert_int_equal(pc_policy_register(&t), -EINVAL);
	t.api = PC_POLICY_API;
	t.walk = NULL;
	assert_int_equal(pc_policy_register(&t), -EINVAL);
	t.walk = lru->walk;
	t.name = "a-name-much-too-long";
	assert_int_equal(pc_policy_register(&t), -EINVAL);
	t.name = "lru2";
	assert_int_equal(pc_policy_register(&t), 0);
	pc_policy_unregister(&t);
	assert_null(pc_policy_find("lru2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies_type),
		cmocka_unit_test(test_policies_random),
		cmocka_unit_test(test_policies_determinism),
		cmocka_unit_test(test_policies_stale_hits),
		cmocka_unit_test(test_policies_victims),
		cmocka_unit_test(test_policies_victims_drain),
		cmocka_unit_test(test_policies_victims_stuck_cold_end),
		cmocka_unit_test(test_policies_walk_in_slices),
		cmocka_unit_test(test_policies_hints),
		cmocka_unit_test(test_policies_wild_hints),
		cmocka_unit_test(test_policies_scan),
		cmocka_unit_test(test_policies_new_working_set),
		cmocka_unit_test(test_policies_memory),
		cmocka_unit_test(test_policies_allocation_failure),
		cmocka_unit_test(test_policies_tunables),
		cmocka_unit_test(test_policies_register_refuses),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
