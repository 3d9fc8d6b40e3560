// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sequential detection against a naive model (a list in order of last use), and the
 * cases that rule 17 is about: interleaved readers, scans, logs that wrap.
 */
#include "stream.h"
#include "unit.h"

static struct pc_streams s;

static int setup(void **state)
{
	memset(&s, 0xa5, sizeof(s));
	pc_stream_init(&s);
	return 0;
}

static void test_stream_lone_requests(void **state)
{
	assert_int_equal(pc_stream_note(&s, false, 0, 8), 8);
	assert_int_equal(pc_stream_note(&s, false, 1000, 16), 16);
	assert_int_equal(pc_stream_note(&s, false, 500, 8), 8);
	/* the same place again is no continuation */
	assert_int_equal(pc_stream_note(&s, false, 500, 8), 8);
}

static void test_stream_interleaved(void **state)
{
	for (u64 i = 0; i < 1000; i++)
		for (u64 reader = 0; reader < PC_NR_STREAMS; reader++)
			assert_int_equal(pc_stream_note(&s, false, (reader << 32) + i * 8, 8),
					 (i + 1) * 8);
}

/* A request is cut, and what is left of it comes by again. */
static void test_stream_cut_request(void **state)
{
	assert_int_equal(pc_stream_note(&s, false, 0, 2048), 2048);
	assert_int_equal(pc_stream_note(&s, false, 2000, 48), 2048);
	assert_int_equal(pc_stream_note(&s, false, 2040, 8), 2048);
	assert_int_equal(pc_stream_note(&s, false, 2048, 2048), 4096);
	/* the whole again is no rest */
	assert_int_equal(pc_stream_note(&s, true, 0, 2048), 2048);
	assert_int_equal(pc_stream_note(&s, true, 0, 2048), 2048);
}

static void test_stream_directions_apart(void **state)
{
	assert_int_equal(pc_stream_note(&s, false, 0, 8), 8);
	assert_int_equal(pc_stream_note(&s, true, 8, 8), 8);
	assert_int_equal(pc_stream_note(&s, false, 8, 8), 16);
	assert_int_equal(pc_stream_note(&s, true, 16, 8), 16);
}

static void test_stream_survives_random_reads(void **state)
{
	u64 next = 1ull << 40;

	/* 15 others between two requests of a stream leave it alone, 16 push it out */
	pc_stream_note(&s, false, next, 8);
	for (u64 i = 0; i < PC_NR_STREAMS - 1; i++)
		pc_stream_note(&s, false, i * 100, 8);
	assert_int_equal(pc_stream_note(&s, false, next + 8, 8), 16);
	for (u64 i = 0; i < PC_NR_STREAMS; i++)
		pc_stream_note(&s, false, i * 100, 8);
	assert_int_equal(pc_stream_note(&s, false, next + 16, 8), 8);
}

static void test_stream_log(void **state)
{
	pc_stream_note(&s, true, 1000, 8);
	assert_false(pc_stream_is_log(&s, 1000, 8));
	pc_stream_flushed(&s);
	/* asked before or after the write that continues it was noted */
	assert_true(pc_stream_is_log(&s, 1008, 8));
	pc_stream_note(&s, true, 1008, 8);
	assert_true(pc_stream_is_log(&s, 1008, 8));
	/* it wrapped round to its beginning */
	assert_true(pc_stream_is_log(&s, 1000, 8));
	/* but a large write is no log's, nor is one elsewhere */
	assert_false(pc_stream_is_log(&s, 1016, PC_STREAM_LOG_SECTORS));
	assert_true(pc_stream_is_log(&s, 1016, PC_STREAM_LOG_SECTORS - 1));
	assert_false(pc_stream_is_log(&s, 5000, 8));
}

static void test_stream_log_is_forgotten(void **state)
{
	pc_stream_note(&s, true, 1000, 8);
	pc_stream_flushed(&s);
	for (u64 i = 1; i < PC_STREAM_LOG_WRITES; i++) {
		pc_stream_note(&s, true, 1000 + i * 8, 8);
		assert_true(pc_stream_is_log(&s, 1000 + i * 8, 8));
	}
	pc_stream_note(&s, true, 1000 + PC_STREAM_LOG_WRITES * 8, 8);
	assert_false(pc_stream_is_log(&s, 1000 + PC_STREAM_LOG_WRITES * 8, 8));
	pc_stream_flushed(&s);
	assert_true(pc_stream_is_log(&s, 1000, 8));
}

/* A slot that is taken for another stream does not stay a log. */
static void test_stream_log_slot_reused(void **state)
{
	pc_stream_note(&s, true, 1000, 8);
	pc_stream_flushed(&s);
	for (u64 i = 1; i <= PC_NR_STREAMS; i++)
		pc_stream_note(&s, true, i * 1000000, 8);
	for (u64 i = 1; i <= PC_NR_STREAMS; i++)
		assert_false(pc_stream_is_log(&s, i * 1000000, 8));
}

static void test_stream_flush_without_writes(void **state)
{
	pc_stream_note(&s, false, 0, 8);
	pc_stream_flushed(&s);
	assert_false(pc_stream_is_log(&s, 0, 8));
}

/* --- over regions, each with a table of its own --------------------------------- */

#define REGION (1u << PC_STREAM_REGION_SHIFT)

static struct pc_streams tables[PC_NR_STREAM_TABLES];

static int setup_tables(void **state)
{
	for (unsigned int i = 0; i < PC_NR_STREAM_TABLES; i++)
		pc_stream_init(tables + i);
	return 0;
}

static struct pc_streams *table_of(u64 sector)
{
	unsigned int n = pc_stream_table(pc_stream_region(sector));

	assert_true(n < PC_NR_STREAM_TABLES);
	return tables + n;
}

/* as map.c does it */
static u64 note(bool write, u64 sector, u32 sectors)
{
	struct pc_streams *from = table_of(sector), *to = table_of(sector + sectors);
	u64 length = pc_stream_note(from, write, sector, sectors);
	struct pc_stream moved;

	if (from != to) {
		pc_stream_last(from, write, &moved);
		pc_stream_enter(to, write, &moved);
	}
	return length;
}

static bool is_log(u64 sector, u32 sectors)
{
	return pc_stream_is_log(table_of(sector), sector, sectors);
}

static void flushed(void)
{
	for (unsigned int i = 0; i < PC_NR_STREAM_TABLES; i++) {
		if (!pc_stream_is_marked(tables + i))
			pc_stream_flushed(tables + i);
		assert_true(pc_stream_is_marked(tables + i));
	}
}

/* Streams grow over the ends of their regions, met exactly and crossed. */
static void test_stream_over_regions(void **state)
{
	u64 ends[] = { 8, 24, 256, 1000, REGION, 3 * REGION - 8 };

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		u64 start = (u64)(i + 1) << 32, at = start;

		while (at < start + 64ull * REGION) {
			assert_int_equal(note(i & 1, at, ends[i]), at + ends[i] - start);
			at += ends[i];
		}
	}
}

/* The request after the end of a region is noted before the stream came over. */
static void test_stream_overtaken(void **state)
{
	u64 end = 4 * REGION;
	struct pc_stream moved;

	assert_int_equal(note(true, end - 24, 16), 16);
	flushed();
	pc_stream_note(table_of(end - 8), true, end - 8, 16);
	pc_stream_last(table_of(end - 8), true, &moved);
	assert_int_equal(note(true, end + 8, 8), 8);
	pc_stream_enter(table_of(end + 8), true, &moved);
	assert_int_equal(note(true, end + 16, 8), 48);
	assert_true(is_log(end + 16, 8));
}

/* Two requests at the same place overtook it: the later one's stream goes on. */
static void test_stream_overtaken_twice(void **state)
{
	struct pc_stream moved = { .start = 1000, .next = 1100 };

	pc_stream_note(&s, false, 1100, 8);
	pc_stream_note(&s, false, 1100, 8);
	pc_stream_enter(&s, false, &moved);
	assert_int_equal(pc_stream_note(&s, false, 1108, 8), 116);
}

/* Regions next to each other do not share a table, or a table would be a lock for all. */
static void test_stream_regions_spread(void **state)
{
	unsigned int count[PC_NR_STREAM_TABLES] = { 0 };

	for (u64 i = 0; i < 4096; i++)
		count[pc_stream_table(pc_stream_region(i * REGION + 1))]++;
	for (unsigned int i = 0; i < PC_NR_STREAM_TABLES; i++)
		assert_in_range(count[i], 64, 256);
}

/* A log stays one over the end of a region, and where it wraps to another. */
static void test_stream_log_over_regions(void **state)
{
	u64 start = 5ull * REGION - 80, at = start;

	note(true, at, 8);
	flushed();
	for (at += 8; at < start + 160; at += 8) {
		note(true, at, 8);
		assert_true(is_log(at, 8));
	}
	assert_ptr_not_equal(table_of(start), table_of(at));
	assert_true(is_log(start + 8, 8));
	/* without another flush it is none after as many writes as elsewhere */
	for (; at < start + 8 * PC_STREAM_LOG_WRITES; at += 8) {
		note(true, at, 8);
		assert_true(is_log(at, 8));
	}
	note(true, at, 8);
	/* the write that left the region counts in both: one earlier */
	assert_false(is_log(at, 8));
}

/* A flush is noted where something was written since the last one, and only there. */
static void test_stream_marks(void **state)
{
	assert_true(pc_stream_is_marked(tables));
	note(false, 0, 8);
	assert_true(pc_stream_is_marked(table_of(8)));
	note(true, 100, 8);
	assert_false(pc_stream_is_marked(table_of(108)));
	flushed();
	assert_true(is_log(108, 8));
}

struct model {
	u64 start[PC_NR_STREAMS], next[PC_NR_STREAMS];	/* latest first */
	unsigned int count;
};

static u64 model_note(struct model *m, u64 sector, u32 sectors)
{
	unsigned int i;
	u64 start = sector;

	for (i = 0; i < m->count; i++)
		if (m->next[i] == sector ||
		    (m->next[i] == sector + sectors && m->start[i] < sector))
			break;
	if (i < m->count)
		start = m->start[i];
	else if (m->count < PC_NR_STREAMS)
		m->count++;
	else
		i--;
	memmove(m->start + 1, m->start, i * sizeof(u64));
	memmove(m->next + 1, m->next, i * sizeof(u64));
	m->start[0] = start;
	m->next[0] = sector + sectors;
	return sector + sectors - start;
}

static void test_stream_against_model(void **state)
{
	static struct model m[2];
	struct unit_random r;

	unit_random_init(&r, "stream", 0);
	for (int i = 0; i < 200000; i++) {
		bool write = unit_random(&r) & 1;
		/* a small space, so that streams meet, split and end at the same place */
		u64 sector = unit_random_below(&r, 300) * 8;
		u32 sectors = (1 + unit_random_below(&r, 4)) * 8;

		if (m[write].count && !unit_random_one_in(&r, 3))
			sector = m[write].next[unit_random_below(&r, m[write].count)];
		if (unit_random_one_in(&r, 50))
			pc_stream_flushed(&s);
		assert_int_equal(pc_stream_note(&s, write, sector, sectors),
				 model_note(&m[write], sector, sectors));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_stream_lone_requests, setup),
		cmocka_unit_test_setup(test_stream_interleaved, setup),
		cmocka_unit_test_setup(test_stream_cut_request, setup),
		cmocka_unit_test_setup(test_stream_directions_apart, setup),
		cmocka_unit_test_setup(test_stream_survives_random_reads, setup),
		cmocka_unit_test_setup(test_stream_log, setup),
		cmocka_unit_test_setup(test_stream_log_is_forgotten, setup),
		cmocka_unit_test_setup(test_stream_log_slot_reused, setup),
		cmocka_unit_test_setup(test_stream_flush_without_writes, setup),
		cmocka_unit_test_setup(test_stream_over_regions, setup_tables),
		cmocka_unit_test_setup(test_stream_overtaken, setup_tables),
		cmocka_unit_test_setup(test_stream_overtaken_twice, setup),
		cmocka_unit_test_setup(test_stream_regions_spread, setup_tables),
		cmocka_unit_test_setup(test_stream_log_over_regions, setup_tables),
		cmocka_unit_test_setup(test_stream_marks, setup_tables),
		cmocka_unit_test_setup(test_stream_against_model, setup),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
