// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of polycache sim against a naive one that keeps an array in LRU order and
 * a state for each sector, on random requests in all modes; counts by hand; and, where
 * PC_TRACES names the folder with the public traces, the reference counts on them.
 */
#include <linux/errno.h>

#include "sim.h"
#include "trace.h"
#include "unit.h"

/* --- the naive model, of lru -------------------------------------------------------- */

enum { MAX_CACHE = 2000, ORIGIN = 60000, MAX_SUBS = 64 };

struct naive {
	struct pc_sim_config config;
	struct pc_sim_counts counts;
	u32 sub;		/* sectors */
	u32 target;		/* blocks to keep free */
	u64 order[MAX_CACHE];	/* coldest first */
	u32 held;
	bool valid[ORIGIN];	/* by sector */
	bool dirty[ORIGIN];
};

static void naive_init(struct naive *n, const struct pc_sim_config *c)
{
	memset(n, 0, sizeof(*n));
	n->config = *c;
	/* 4 KiB, doubled until 64 do; smaller blocks have one */
	for (n->sub = 8; n->sub * MAX_SUBS < c->block_sectors; )
		n->sub *= 2;
	if (c->pool && c->nr_cblocks >= 1024)
		n->target = 64;
	else if (c->pool && c->nr_cblocks >= 64)
		n->target = c->nr_cblocks / 64;
}

static u32 naive_find(const struct naive *n, u64 block)
{
	u32 at;

	for (at = 0; at < n->held; at++)
		if (n->order[at] == block)
			break;
	return at;
}

static void naive_take_out(struct naive *n, u32 at)
{
	n->held--;
	memmove(n->order + at, n->order + at + 1, (n->held - at) * sizeof(*n->order));
}

static void naive_forget(struct naive *n, u32 at)
{
	u64 first = n->order[at] * n->config.block_sectors;

	for (u64 s = first; s < first + n->config.block_sectors; s++) {
		n->counts.writebacks += n->dirty[s];
		n->counts.origin_writes += n->dirty[s];
		n->dirty[s] = false;
		n->valid[s] = false;
	}
	naive_take_out(n, at);
}

static void naive_demote(struct naive *n)
{
	naive_forget(n, 0);
	n->counts.demotions++;
}

static bool naive_insert(struct naive *n, u64 block)
{
	u32 nr = n->config.nr_cblocks;

	if (n->held == nr) {
		if (n->config.pool) {
			n->counts.no_free++;
			naive_demote(n);
			return false;
		}
		naive_demote(n);
	}
	while (n->held + 1 + n->target > nr)
		naive_demote(n);
	n->order[n->held++] = block;
	n->counts.promotions++;
	return true;
}

static void naive_fetch(struct naive *n, u64 from, u64 to)
{
	for (u64 s = from; s < to; s++) {
		n->counts.origin_reads += !n->valid[s];
		n->counts.cache_writes += !n->valid[s];
		n->valid[s] = true;
	}
}

static void naive_read(struct naive *n, u64 block, u64 from, u64 to, bool hit)
{
	u64 first = block * n->config.block_sectors;
	bool all = true;

	for (u64 s = from; s < to; s++)
		all &= n->valid[s];
	if (all)
		return;
	n->counts.partial_hits += hit;
	naive_fetch(n, first, first + n->config.block_sectors);
}

static void naive_write(struct naive *n, u64 block, u64 from, u64 to)
{
	u64 first = block * n->config.block_sectors, end = first + n->config.block_sectors;

	for (u64 sub = first; sub < end; sub += n->sub) {
		u64 sub_end = min(sub + n->sub, end);
		u64 a = max(from, sub), b = min(to, sub_end);

		if (a >= b)
			continue;
		if (!n->valid[sub] && (a > sub || b < sub_end)) {
			n->counts.origin_writes += b - a;
			naive_fetch(n, sub, sub_end);
			continue;
		}
		n->counts.cache_writes += b - a;
		if (n->config.mode == PC_MODE_WRITETHROUGH)
			n->counts.origin_writes += b - a;
		for (u64 s = sub; s < sub_end; s++) {
			n->valid[s] = true;
			if (n->config.mode == PC_MODE_WRITEBACK)
				n->dirty[s] = true;
		}
	}
}

static void naive_access(struct naive *n, u64 block, u64 from, u64 to, bool is_write)
{
	bool around = is_write && n->config.mode == PC_MODE_WRITEAROUND;
	u32 at = naive_find(n, block);
	bool hit = at < n->held, cached = hit;

	n->counts.hits[is_write] += hit;
	n->counts.misses[is_write] += !hit;
	if (hit && around) {
		naive_forget(n, at);
		n->counts.invalidations++;
		cached = false;
	} else if (hit) {
		naive_take_out(n, at);
		n->order[n->held++] = block;
	} else if (!around) {
		cached = naive_insert(n, block);
	}
	if (!cached && is_write)
		n->counts.origin_writes += to - from;
	else if (!cached)
		n->counts.origin_reads += to - from;
	else if (is_write)
		naive_write(n, block, from, to);
	else
		naive_read(n, block, from, to, hit);
}

static void naive_request(struct naive *n, const struct pc_request *q)
{
	u64 b = n->config.block_sectors, sector = q->sector, end = sector + q->sectors;

	n->counts.requests++;
	while (sector < end) {
		u64 stop = min(end, (sector / b + 1) * b);

		naive_access(n, sector / b, sector, stop, q->is_write);
		sector = stop;
	}
}

static struct pc_sim_counts naive_result(const struct naive *n)
{
	struct pc_sim_counts counts = n->counts;

	for (u32 s = 0; s < ORIGIN; s++)
		counts.dirty += n->dirty[s];
	return counts;
}

/* --- model against model ------------------------------------------------------------ */

static void expect_counts(const struct pc_sim_counts *got, const struct pc_sim_counts *want)
{
	assert_int_equal(got->requests, want->requests);
	assert_int_equal(got->hits[PC_READ], want->hits[PC_READ]);
	assert_int_equal(got->hits[PC_WRITE], want->hits[PC_WRITE]);
	assert_int_equal(got->misses[PC_READ], want->misses[PC_READ]);
	assert_int_equal(got->misses[PC_WRITE], want->misses[PC_WRITE]);
	assert_int_equal(got->partial_hits, want->partial_hits);
	assert_int_equal(got->sequential, want->sequential);
	assert_int_equal(got->promotions, want->promotions);
	assert_int_equal(got->demotions, want->demotions);
	assert_int_equal(got->invalidations, want->invalidations);
	assert_int_equal(got->no_free, want->no_free);
	assert_int_equal(got->origin_reads, want->origin_reads);
	assert_int_equal(got->origin_writes, want->origin_writes);
	assert_int_equal(got->writebacks, want->writebacks);
	assert_int_equal(got->cache_writes, want->cache_writes);
	assert_int_equal(got->dirty, want->dirty);
}

static struct pc_sim *create(const struct pc_sim_config *c)
{
	struct pc_sim *sim = pc_sim_create(c);

	assert_non_null(sim);
	return sim;
}

static void random_request(struct unit_random *r, struct pc_request *q, u64 range)
{
	memset(q, 0, sizeof(*q));
	q->sectors = unit_random_one_in(r, 4) ? 1 + unit_random_below(r, 300) :
		     8 * (1 + unit_random_below(r, 16));
	/* half of them where a write begins that has no sub-block in part */
	q->sector = unit_random_below(r, range - q->sectors);
	if (unit_random_one_in(r, 2))
		q->sector &= ~7ull;
	q->is_write = unit_random_one_in(r, 2);
}

static struct pc_sim_counts compare(struct unit_random *r, const struct pc_sim_config *c,
				    unsigned int nr)
{
	static struct naive n;
	struct pc_sim *sim = create(c);
	u64 range = min_t(u64, ORIGIN / c->block_sectors, 3ull * c->nr_cblocks) * c->block_sectors;
	struct pc_sim_counts got, want;
	struct pc_request q;

	naive_init(&n, c);
	range = max(range, 600ull);
	for (unsigned int i = 0; i < nr; i++) {
		random_request(r, &q, range);
		naive_request(&n, &q);
		pc_sim_run(sim, &q, 1);
		if (i % 64 && i + 1 < nr)
			continue;
		got = pc_sim_result(sim);
		want = naive_result(&n);
		expect_counts(&got, &want);
	}
	pc_sim_destroy(sim);
	return want;
}

/* Blocks that are a power of two and not, with a short last sub-block, and tiny ones. */
static void test_random(void **state)
{
	static const u32 blocks[] = { 128, 8, 24, 1, 100, 700, 5 };
	u64 hits = 0, misses = 0;
	struct unit_random r;

	for (unsigned int round = 0; round < 7 * 3 * 2; round++) {
		u32 block = blocks[round % 7];
		struct pc_sim_config c = {
			.type = pc_policy_find("lru"),
			.block_sectors = block,
			.origin_sectors = ORIGIN / block * block,
			.mode = round / 7 % 3,
			.pool = round / 21,
		};
		struct pc_sim_counts counts;

		unit_random_init(&r, "random", round);
		c.nr_cblocks = 1 + unit_random_below(&r, 90);
		counts = compare(&r, &c, 2000);
		hits += counts.hits[PC_READ];
		misses += counts.misses[PC_READ];
	}
	/* this was about something: in sum, for one block may see no hit at all */
	assert_true(hits && misses);
}

/* Large enough for the larger pool. */
static void test_pool(void **state)
{
	struct pc_sim_config c = {
		.type = pc_policy_find("lru"), .block_sectors = 8, .origin_sectors = ORIGIN / 8 * 8,
		.pool = true, .nr_cblocks = 1500,
	};
	struct pc_sim_counts counts;
	struct unit_random r;

	unit_random_init(&r, "pool", 0);
	counts = compare(&r, &c, 4000);
	assert_true(counts.hits[PC_READ] && counts.misses[PC_READ]);
}

/* --- by hand ------------------------------------------------------------------------ */

static void run(struct pc_sim *sim, bool is_write, u64 sector, u32 sectors)
{
	struct pc_request q = { .sector = sector, .sectors = sectors, .is_write = is_write };

	pc_sim_run(sim, &q, 1);
}

static struct pc_sim_config config(const char *policy, u32 nr)
{
	return (struct pc_sim_config){
		.type = pc_policy_find(policy), .nr_cblocks = nr, .block_sectors = 128,
		.origin_sectors = 128 * 100000, .mode = PC_MODE_WRITEBACK,
	};
}

/*
 * Blocks 1 2 3 1 4 2 1 5 1 3, three in the cache: misses on 1 2 3, a hit on 1, miss on
 * 4 (for 2), miss on 2 (for 3), a hit on 1, miss on 5 (for 4), a hit on 1, miss on 3
 * (for 2).
 */
static void test_lru_by_hand(void **state)
{
	static const u64 blocks[] = { 1, 2, 3, 1, 4, 2, 1, 5, 1, 3 };
	struct pc_sim_config c = config("lru", 3);
	struct pc_sim *sim = create(&c);
	struct pc_sim_counts got;

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		run(sim, false, blocks[i] * 128, 8);
	got = pc_sim_result(sim);
	assert_int_equal(got.hits[PC_READ], 3);
	assert_int_equal(got.misses[PC_READ], 7);
	assert_int_equal(got.promotions, 7);
	assert_int_equal(got.demotions, 4);
	assert_int_equal(got.origin_reads, 7 * 128);
	assert_int_equal(got.cache_writes, 7 * 128);
	assert_int_equal(got.origin_writes, 0);
	pc_sim_destroy(sim);
}

static void test_writeback_by_hand(void **state)
{
	struct pc_sim_config c = config("lru", 1);
	struct pc_sim *sim = create(&c);
	struct pc_sim_counts got;

	/* covers sub-block 1, and a half of 2, which goes to the origin and comes back */
	run(sim, true, 8, 12);
	got = pc_sim_result(sim);
	assert_int_equal(got.dirty, 8);
	assert_int_equal(got.origin_writes, 4);
	assert_int_equal(got.origin_reads, 8);
	assert_int_equal(got.cache_writes, 8 + 8);
	/* now that it is valid, the cache takes it */
	run(sim, true, 16, 4);
	got = pc_sim_result(sim);
	assert_int_equal(got.dirty, 16);
	assert_int_equal(got.cache_writes, 8 + 8 + 4);
	/* the rest of the block is fetched by a read that wants some of it */
	run(sim, false, 0, 16);
	got = pc_sim_result(sim);
	assert_int_equal(got.partial_hits, 1);
	assert_int_equal(got.origin_reads, 8 + 112);
	/* another block takes its place */
	run(sim, false, 128, 8);
	got = pc_sim_result(sim);
	assert_int_equal(got.writebacks, 16);
	assert_int_equal(got.origin_writes, 4 + 16);
	assert_int_equal(got.dirty, 0);
	pc_sim_destroy(sim);
}

/* Who admits nothing is asked for everything, and everything goes to the origin. */
static void test_cleaner(void **state)
{
	struct pc_sim_config c = config("cleaner", 10);
	struct pc_sim *sim = create(&c);
	struct pc_sim_counts got;

	for (int i = 0; i < 5; i++) {
		run(sim, false, 0, 8);
		run(sim, true, 120, 16);
	}
	got = pc_sim_result(sim);
	assert_int_equal(got.misses[PC_READ], 5);
	assert_int_equal(got.misses[PC_WRITE], 10);
	assert_int_equal(got.origin_reads, 5 * 8);
	assert_int_equal(got.origin_writes, 5 * 16);
	assert_int_equal(got.promotions + got.cache_writes + got.no_free, 0);
	pc_sim_destroy(sim);
}

static void test_tunables(void **state)
{
	struct pc_sim_config c = config("lru", 10);
	struct pc_sim *sim = create(&c);
	char text[PC_POLICY_EMIT_SIZE];
	const char *why;

	assert_int_equal(pc_sim_set(sim, "promote_after", "2", &why), 0);
	assert_int_equal(pc_sim_set(sim, "promote_after", "x", &why), -ERANGE);
	assert_non_null(why);
	assert_int_equal(pc_sim_set(sim, "nothing", "1", &why), -EINVAL);
	pc_sim_tunables(sim, text);
	assert_string_equal(text, "promote_after 2");
	/* the second miss promotes, the third access is a hit */
	for (int i = 0; i < 3; i++)
		run(sim, false, 0, 8);
	assert_int_equal(pc_sim_result(sim).misses[PC_READ], 2);
	assert_int_equal(pc_sim_result(sim).hits[PC_READ], 1);
	assert_true(pc_sim_policy_memory(sim) > 0);
	pc_sim_destroy(sim);

	c.type = pc_policy_find("cleaner");
	sim = create(&c);
	assert_int_equal(pc_sim_set(sim, "promote_after", "2", &why), -EINVAL);
	pc_sim_tunables(sim, text);
	assert_string_equal(text, "");
	pc_sim_destroy(sim);
}

/* A read stream takes blocks until it is longer than the limit, and none after. */
static void test_read_stream(void **state)
{
	struct pc_sim_config c = config("lru", 100);
	struct pc_sim *sim;
	struct pc_sim_counts got;

	c.bypass_sequential = 1024;
	sim = create(&c);
	for (u64 s = 0; s < 4096; s += 64)
		run(sim, false, s, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.sequential, (4096 - 1024) / 64);
	assert_int_equal(got.promotions, 1024 / 128);
	assert_int_equal(got.origin_reads, 4096);
	/* what is in the cache serves a stream, too */
	for (u64 s = 0; s < 4096; s += 64)
		run(sim, false, s, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.hits[PC_READ], 8 + 16);
	assert_int_equal(got.promotions, 1024 / 128);
	pc_sim_destroy(sim);

	/* a limit that nothing reaches, and none */
	for (int i = 0; i < 2; i++) {
		c.bypass_sequential = i ? 0 : 4096;
		sim = create(&c);
		for (u64 s = 0; s < 4096; s += 64)
			run(sim, false, s, 64);
		got = pc_sim_result(sim);
		assert_int_equal(got.sequential, 0);
		assert_int_equal(got.promotions, 4096 / 128);
		pc_sim_destroy(sim);
	}
}

/* A write stream takes what was never used, then a tenth, and no block that was hit. */
static void test_write_stream(void **state)
{
	struct pc_sim_config c = config("lru", 100);
	struct pc_sim *sim;
	struct pc_sim_counts got;
	u64 at = 128 * 50000;

	c.bypass_sequential = 64;
	sim = create(&c);
	/* 100 lone blocks, each hit once, fill the cache */
	for (u64 i = 0; i < 200; i++)
		run(sim, false, i % 100 * 3 * 128, 8);
	for (u64 i = 0; i < 1000; i++)
		run(sim, true, at + i * 64, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.sequential, 999);
	/* the first block came in before it was known for a stream */
	assert_int_equal(got.promotions, 100 + 1 + 10);
	assert_int_equal(got.origin_writes, 1000 * 64 - 11 * 128);
	/* those are demoted, and it may take as many again */
	for (u64 i = 0; i < 100; i++)
		run(sim, false, (i * 3 + 1) * 128, 8);
	for (u64 i = 1000; i < 2000; i++)
		run(sim, true, at + i * 64, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.promotions, 100 + 1 + 10 + 100 + 10);
	pc_sim_destroy(sim);

	/* an empty cache is taken down to the pool, which is one block */
	c.pool = true;
	sim = create(&c);
	for (u64 i = 0; i < 1000; i++)
		run(sim, true, at + i * 64, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.promotions, 99);
	pc_sim_destroy(sim);
}

/* In a block that was hit a stream writes what is valid, and makes nothing valid. */
static void test_write_stream_through_hit_block(void **state)
{
	struct pc_sim_config c = config("lru", 100);
	struct pc_sim *sim;
	struct pc_sim_counts got;

	c.bypass_sequential = 64;
	sim = create(&c);
	run(sim, true, 1280, 8);
	run(sim, false, 1280, 8);
	run(sim, false, 1280, 8);
	for (u64 s = 1280 - 128; s < 1280 + 128; s += 64)
		run(sim, true, s, 64);
	got = pc_sim_result(sim);
	assert_int_equal(got.sequential, 3);
	/* a block before it, eight sectors of this one */
	assert_int_equal(got.dirty, 128 + 8);
	assert_int_equal(got.origin_writes, 120);
	/* a lone write that ends in the middle of a sub-block has it fetched, a stream's not */
	assert_int_equal(got.origin_reads, 0);
	run(sim, true, 1280 + 128, 12);
	got = pc_sim_result(sim);
	assert_int_equal(got.sequential, 4);
	assert_int_equal(got.origin_writes, 120 + 4);
	assert_int_equal(got.origin_reads, 0);
	pc_sim_destroy(sim);
}

/* --- ticks -------------------------------------------------------------------------- */

static unsigned int nr_ticks;

static void count_tick(struct pc_policy *p)
{
	nr_ticks++;
}

static void test_ticks(void **state)
{
	static const u32 seconds[] = { 0, 0, 1, 1, 5, 5, 4, 5, 100000 };
	struct pc_policy_type type = *pc_policy_find("lru");
	struct pc_sim_config c = config("lru", 10);
	struct pc_request q = { .sectors = 8 };
	struct pc_sim *sim;

	type.tick = count_tick;
	c.type = &type;
	c.has_time = true;
	sim = create(&c);
	nr_ticks = 0;
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		q.seconds = seconds[i];
		pc_sim_run(sim, &q, 1);
	}
	/* a gap makes at most 3600 */
	assert_int_equal(nr_ticks, 1 + 4 + 1 + 3600);
	pc_sim_destroy(sim);

	c.has_time = false;
	sim = create(&c);
	nr_ticks = 0;
	q.seconds = 0;
	for (int i = 0; i < 3500; i++)
		pc_sim_run(sim, &q, 1);
	assert_int_equal(nr_ticks, 3);
	pc_sim_destroy(sim);
}

/* --- the public traces -------------------------------------------------------------- */

static const struct {
	const char *file;
	u32 block_sectors;
	u64 accesses;
	u64 distinct;
	struct {
		unsigned int percent;
		u64 misses;
		u64 read_misses;	/* 0: not known */
	} lru[3];
} references[] = {
	{ "cloudPhysicsIO.csv.xz", 128, 177678, 19372,
	  { { 2, 78548, 35843 }, { 10, 71771, 31846 }, { 40, 42759, 14540 } } },
	{ "cloudPhysicsIO.vscsi.xz", 128, 177678, 19372,
	  { { 2, 78548, 35843 }, { 10, 71771, 31846 }, { 40, 42759, 14540 } } },
	/* known as ratios of four digits, see below */
	{ "cloudPhysicsIO.csv.xz", 8, 1141869, 269210, { { 2, 8938 }, { 10, 8741 }, { 40, 5997 } } },
	{ "OLTP.lis.xz", 8, 914145, 186880, { { 2, 4988 }, { 10, 3348 }, { 40, 2296 } } },
	{ "P3.lis.xz", 8, 611918, 102348, { { 2, 8762 }, { 10, 7350 }, { 40, 2625 } } },
	{ "P3.lis.xz", 128, 262024, 10490, { { 2, 4141 }, { 10, 3004 }, { 40, 735 } } },
};

static void check_reference(const struct pc_trace *t, size_t i, unsigned int k)
{
	struct pc_sim_config c = {
		.type = pc_policy_find("lru"),
		.nr_cblocks = references[i].distinct * references[i].lru[k].percent / 100,
		.block_sectors = t->block_sectors,
		.origin_sectors = t->origin_sectors,
		.has_time = t->has_time,
	};
	struct pc_sim *sim = create(&c);
	struct pc_sim_counts got;
	u64 misses;

	pc_sim_run(sim, t->requests, t->nr);
	got = pc_sim_result(sim);
	misses = got.misses[PC_READ] + got.misses[PC_WRITE];
	assert_int_equal(misses + got.hits[PC_READ] + got.hits[PC_WRITE], references[i].accesses);
	if (references[i].lru[k].read_misses) {
		assert_int_equal(misses, references[i].lru[k].misses);
		assert_int_equal(got.misses[PC_READ], references[i].lru[k].read_misses);
	} else {
		assert_int_equal((misses * 20000 / references[i].accesses + 1) / 2,
				 references[i].lru[k].misses);
	}
	pc_sim_destroy(sim);
}

static void test_references(void **state)
{
	const char *folder = getenv("PC_TRACES");
	char path[512], err[PC_TRACE_ERR_SIZE];

	if (!folder) {
		print_message("set PC_TRACES to the folder of the public traces to count on them\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(references); i++) {
		struct pc_trace_options o = { .block_sectors = references[i].block_sectors };
		struct pc_trace t;

		snprintf(path, sizeof(path), "%s/%s", folder, references[i].file);
		if (!pc_trace_read(&t, path, &o, err))
			fail_msg("%s", err);
		assert_int_equal(t.nr_accesses, references[i].accesses);
		assert_int_equal(t.nr_blocks, references[i].distinct);
		for (unsigned int k = 0; k < ARRAY_SIZE(references[i].lru); k++)
			check_reference(&t, i, k);
		pc_trace_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_lru_by_hand),
		cmocka_unit_test(test_writeback_by_hand),
		cmocka_unit_test(test_cleaner),
		cmocka_unit_test(test_tunables),
		cmocka_unit_test(test_read_stream),
		cmocka_unit_test(test_write_stream),
		cmocka_unit_test(test_write_stream_through_hit_block),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
