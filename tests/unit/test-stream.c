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

	/* 31 others between two requests of a stream leave it alone, 32 push it out */
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

struct model {
	u64 start[PC_NR_STREAMS], next[PC_NR_STREAMS];	/* latest first */
	unsigned int count;
};

static u64 model_note(struct model *m, u64 sector, u32 sectors)
{
	unsigned int i;
	u64 start = sector;

	for (i = 0; i < m->count; i++)
		if (m->next[i] == sector)
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
		cmocka_unit_test_setup(test_stream_directions_apart, setup),
		cmocka_unit_test_setup(test_stream_survives_random_reads, setup),
		cmocka_unit_test_setup(test_stream_log, setup),
		cmocka_unit_test_setup(test_stream_log_is_forgotten, setup),
		cmocka_unit_test_setup(test_stream_log_slot_reused, setup),
		cmocka_unit_test_setup(test_stream_flush_without_writes, setup),
		cmocka_unit_test_setup(test_stream_against_model, setup),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
