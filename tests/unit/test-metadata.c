// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metadata against a naive model: format, commit, checkpoint, clean and unclean
 * starts, hints, sizes. Damage and failures are in test-metadata-damage.c, power
 * cuts in test-powercut.c.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "metadata-model.h"

/* Cache blocks, block and sub-block size, origin sectors, metadata blocks. */
struct geometry {
	u32 nr;
	u32 block, sub;
	u64 origin;
	u64 blocks;
};

static const struct geometry geometries[] = {
	{ 10, 64, 8, 64 * 40, 11 },		/* the least possible: a journal of 8 */
	{ 120, 128, 8, 128 * 500 + 17, 40 },
	{ 121, 768, 16, 768 * 300 + 100, 64 },	/* a second table block for one entry */
	{ 2500, 192, 8, 192 * 9000 + 9, 40 },	/* more blocks than records since the tail */
	{ 1000, 2097152, 32768, 2097152ull * 5000 - 1, 400 },
};

static void setup(const struct geometry *g, struct model *m, struct pc_metaio_file *f)
{
	model_init(m, g->nr, g->block, g->sub, g->origin);
	assert_int_equal(pc_metaio_open_memory(f, g->blocks, NULL), 0);
}

static void teardown(struct model *m, struct pc_metaio_file *f)
{
	pc_metaio_close(f);
	model_free(m);
}

static void test_metadata_format(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(geometries); i++) {
		struct pc_metaio_file f;
		struct pc_metadata *md;
		enum pc_probe what;
		struct model m;
		u64 used, total;

		setup(&geometries[i], &m, &f);
		assert_int_equal(pc_metadata_probe(&f.io, &what), 0);
		assert_int_equal(what, PC_PROBE_BLANK);
		md = model_open(&m, &f);
		assert_int_equal(pc_metadata_probe(&f.io, &what), 0);
		assert_int_equal(what, PC_PROBE_OURS);
		assert_true(pc_metadata_is_clean(md));
		assert_false(pc_metadata_needs_check(md));
		model_load(&m, md, false);
		assert_false(pc_metadata_is_clean(md));
		pc_metadata_usage(md, &used, &total);
		assert_int_equal(total, geometries[i].blocks);
		assert_true(used <= total);
		pc_metadata_free(md);
		model_check_device(&m, &f, false);
		teardown(&m, &f);
	}
}

static void test_metadata_clean_round_trip(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(geometries); i++) {
		struct unit_random r;
		struct pc_metaio_file f;
		struct pc_metadata *md;
		struct model m;
		const char *name;
		u64 counters[PC_NR_COUNTERS];
		u32 version;

		unit_random_init(&r, "clean", i);
		setup(&geometries[i], &m, &f);
		md = model_open(&m, &f);
		model_load(&m, md, false);
		assert_int_equal(model_commit(&m, &r, md, 2 * m.nr), 0);
		model_close(&m, md);
		assert_true(pc_metadata_is_clean(md));
		assert_int_equal(model_commit(&m, &r, md, 1), -EROFS);
		pc_metadata_free(md);

		/* the change that was refused must not be there */
		md = model_open(&m, &f);
		assert_true(pc_metadata_is_clean(md));
		pc_metadata_hints_of(md, &name, &version);
		assert_string_equal(name, "model");
		assert_int_equal(version, 3);
		pc_metadata_counters(md, counters);
		assert_int_equal(counters[PC_COUNT_READ_MISS], 22);
		assert_true(counters[PC_COUNT_PROMOTION] == 1ull << 40);
		pc_metadata_free(md);
		teardown(&m, &f);
	}
}

static void test_metadata_hints(void **state)
{
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct pc_record rec = { .cblock = 0 };
	struct pc_entry entries[120];
	char why[PC_META_ERR_SIZE];
	struct unit_random r;
	struct model m;
	u64 counters[PC_NR_COUNTERS] = { 0 };
	const char *name;
	u32 version, c, hint;

	unit_random_init(&r, "hints", 0);
	setup(&geometries[1], &m, &f);
	md = model_open(&m, &f);
	pc_metadata_hints_of(md, &name, &version);
	assert_string_equal(name, "");
	model_load(&m, md, false);
	assert_int_equal(model_commit(&m, &r, md, 300), 0);
	model_close(&m, md);
	/* an unclean start keeps hints; commits do; other data in the block does not */
	model_load(&m, md, true);
	for (c = 0; !(m.entries[c].flags & PC_ENTRY_MAPPED); c++)
		;
	hint = model_hint(&m, c);
	rec.cblock = c;
	rec.entry = m.entries[c];
	rec.entry.dirty = 0;
	rec.entry.hint = 12345;
	assert_int_equal(pc_metadata_commit(md, &rec, 1), 0);
	pc_metadata_free(md);
	md = model_open(&m, &f);
	assert_int_equal(model_load_raw(md, entries, m.nr, why), 0);
	assert_int_equal(entries[c].hint, hint);
	rec.entry.oblock = 0;
	while (m.used[rec.entry.oblock])
		rec.entry.oblock++;
	rec.entry.valid = 0;
	assert_int_equal(pc_metadata_commit(md, &rec, 1), 0);
	assert_int_equal(pc_metadata_checkpoint(md), 0);
	/* closed without hints: those on disk still belong to the old policy */
	assert_int_equal(pc_metadata_close_clean(md, "other", 9, NULL, NULL, counters), 0);
	pc_metadata_free(md);
	md = model_open(&m, &f);
	pc_metadata_hints_of(md, &name, &version);
	assert_string_equal(name, "model");
	assert_int_equal(model_load_raw(md, entries, m.nr, why), 0);
	assert_int_equal(entries[c].hint, 0);
	assert_int_equal(pc_metadata_close_clean(md, "a-name-that-is-too-long", 9, model_hint, &m,
						 counters), 0);
	pc_metadata_hints_of(md, &name, &version);
	assert_string_equal(name, "a-name-that-is-");
	pc_metadata_free(md);
	teardown(&m, &f);
}

/* Everything that may happen in a life, in random order, sizes and journal wraps. */
static void random_life(const struct geometry *g, u64 iteration)
{
	struct unit_random r;
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct model m;

	unit_random_init(&r, "life", iteration);
	setup(g, &m, &f);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	for (int step = 0; step < 120; step++) {
		unsigned long allocs = pc_shim_allocs;
		u32 n;

		switch (unit_random_below(&r, 12)) {
		case 0:
			assert_int_equal(pc_metadata_checkpoint(md), 0);
			assert_false(pc_metadata_checkpoint_due(md));
			assert_int_equal(pc_shim_allocs, allocs);
			break;
		case 1:	/* crash */
			pc_metadata_free(md);
			model_settle(&m);
			md = model_open(&m, &f);
			model_load(&m, md, false);
			break;
		case 2:	/* stop and start */
			model_close(&m, md);
			pc_metadata_free(md);
			md = model_open(&m, &f);
			model_load(&m, md, true);
			break;
		case 3:	/* suspend and resume */
			model_close(&m, md);
			assert_int_equal(pc_metadata_changed(md), 0);
			assert_int_equal(pc_metadata_reopen(md), 0);
			assert_false(pc_metadata_is_clean(md));
			assert_int_equal(pc_shim_allocs, allocs);
			break;
		case 4:
			n = unit_random_below(&r, 3 * m.nr);
			assert_int_equal(model_commit(&m, &r, md, n), 0);
			assert_int_equal(pc_shim_allocs, allocs);
			break;
		default:
			n = 1 + unit_random_below(&r, 130);
			assert_int_equal(model_commit(&m, &r, md, n), 0);
			assert_int_equal(pc_shim_allocs, allocs);
		}
	}
	pc_metadata_free(md);
	model_settle(&m);
	model_check_device(&m, &f, false);
	teardown(&m, &f);
}

static void test_metadata_random_life(void **state)
{
	for (u64 i = 0; i < 8; i++)
		for (size_t g = 0; g < ARRAY_SIZE(geometries); g++)
			random_life(&geometries[g], i * 100 + g);
}

static void test_metadata_commit_refuses_unsound(void **state)
{
	static const struct pc_record bad[] = {
		{ 120, { .flags = PC_ENTRY_MAPPED } },
		{ 0, { .flags = PC_ENTRY_MAPPED | PC_ENTRY_INTENTS, .valid = 1 } },
		{ 0, { .flags = PC_ENTRY_MAPPED, .valid = 1, .dirty = 3 } },
		{ 0, { .flags = PC_ENTRY_MAPPED, .oblock = 501 } },
		{ 0, { .flags = PC_ENTRY_MAPPED, .oblock = 500, .valid = 7 } },
		{ 0, { .flags = PC_ENTRY_MAPPED, .valid = 1 << 16 } },
		{ 0, { .flags = PC_ENTRY_MAPPED | 8 } },
	};
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct model m;
	u64 writes;

	setup(&geometries[1], &m, &f);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	writes = f.nr_writes;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(pc_metadata_commit(md, &bad[i], 1), -EINVAL);
	assert_int_equal(pc_metadata_commit(md, NULL, 0), 0);
	assert_int_equal(f.nr_writes, writes);
	assert_false(pc_metadata_failed(md));
	pc_metadata_free(md);
	model_check_device(&m, &f, false);
	teardown(&m, &f);
}

static void test_metadata_close_with_intents(void **state)
{
	struct pc_record rec = { 5, { .flags = PC_ENTRY_MAPPED | PC_ENTRY_INTENT_CACHE,
				      .oblock = 9, .valid = 3 } };
	u64 counters[PC_NR_COUNTERS] = { 0 };
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct model m;

	setup(&geometries[1], &m, &f);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	assert_int_equal(pc_metadata_commit(md, &rec, 1), 0);
	assert_int_equal(pc_metadata_checkpoint(md), 0);
	assert_int_equal(pc_metadata_close_clean(md, "", 0, NULL, NULL, counters), -EBUSY);
	assert_false(pc_metadata_is_clean(md));
	rec.entry.flags = PC_ENTRY_MAPPED;
	assert_int_equal(pc_metadata_commit(md, &rec, 1), 0);
	assert_int_equal(pc_metadata_close_clean(md, "", 0, NULL, NULL, counters), 0);
	pc_metadata_free(md);
	m.entries[5] = rec.entry;
	model_check_device(&m, &f, false);
	teardown(&m, &f);
}

static void test_metadata_changed(void **state)
{
	struct pc_metadata *one, *two;
	struct pc_metaio_file f;
	struct unit_random r;
	struct model m;

	unit_random_init(&r, "changed", 0);
	setup(&geometries[1], &m, &f);
	one = model_open(&m, &f);
	model_load(&m, one, false);
	model_close(&m, one);
	assert_int_equal(pc_metadata_changed(one), 0);
	two = model_open(&m, &f);
	assert_int_equal(pc_metadata_changed(one), 0);
	model_load(&m, two, false);
	assert_int_equal(model_commit(&m, &r, two, 50), 0);
	model_close(&m, two);
	assert_int_equal(pc_metadata_changed(one), 1);
	model_load(&m, one, true);
	pc_metadata_free(two);
	pc_metadata_free(one);
	teardown(&m, &f);
}

static void test_metadata_journal_jumps_after_unclean_start(void **state)
{
	/* a start without CLEAN must not let blocks of an unfinished commit count later */
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct unit_random r;
	struct model m;

	unit_random_init(&r, "jump", 0);
	setup(&geometries[3], &m, &f);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	for (int i = 0; i < 50; i++) {
		struct model before;

		model_copy(&before, &m);
		f.fail_write = 2;	/* the end block of a transaction of two */
		f.fail_late = false;
		assert_int_equal(model_commit(&m, &r, md, 113), -EIO);
		assert_true(pc_metadata_failed(md));
		f.fail_write = 0;
		pc_metadata_free(md);
		model_free(&m);
		m = before;
		model_settle(&m);
		md = model_open(&m, &f);
		model_load(&m, md, false);
		assert_int_equal(model_commit(&m, &r, md, 1 + i % 100), 0);
	}
	pc_metadata_free(md);
	model_settle(&m);
	model_check_device(&m, &f, false);
	teardown(&m, &f);
}

static void test_metadata_empty(void **state)
{
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct unit_random r;
	struct model m, blank;

	unit_random_init(&r, "empty", 0);
	setup(&geometries[3], &m, &f);
	model_copy(&blank, &m);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	assert_int_equal(model_commit(&m, &r, md, 3000), 0);
	assert_int_equal(pc_metadata_set_empty(md), 0);
	pc_metadata_free(md);
	model_check_device(&blank, &f, false);
	/* and it is gone: what is committed now stays */
	md = model_open(&blank, &f);
	model_load(&blank, md, false);
	assert_int_equal(model_commit(&blank, &r, md, 100), 0);
	pc_metadata_free(md);
	model_settle(&blank);
	model_check_device(&blank, &f, false);
	model_free(&blank);
	teardown(&m, &f);
}

static int refuse(void *context, u32 cblock, const struct pc_entry *e)
{
	return -ENOMEM;
}

static void test_metadata_load_fn_aborts(void **state)
{
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct unit_random r;
	struct model m;
	char why[PC_META_ERR_SIZE];
	u64 writes;

	unit_random_init(&r, "abort", 0);
	setup(&geometries[1], &m, &f);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	assert_int_equal(model_commit(&m, &r, md, 100), 0);
	pc_metadata_free(md);
	model_settle(&m);
	md = model_open(&m, &f);
	writes = f.nr_writes;
	assert_int_equal(pc_metadata_load(md, refuse, NULL, why), -ENOMEM);
	assert_int_equal(f.nr_writes, writes);
	model_load(&m, md, false);
	pc_metadata_free(md);
	teardown(&m, &f);
}

static void test_metadata_memory(void **state)
{
	const u32 nr = 1000000;
	unsigned long allocs;
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct unit_random r;
	struct model m;

	unit_random_init(&r, "memory", 0);
	model_init(&m, nr, 128, 8, 128ull * 3000000);
	/* what LVM would reserve */
	assert_int_equal(pc_metaio_open_memory(&f, (44ull * nr + (4 << 20)) / 4096, NULL), 0);
	md = model_open(&m, &f);
	model_load(&m, md, false);
	allocs = pc_shim_allocs;
	assert_in_range(pc_metadata_memory(md), 1, 8 << 20);
	assert_int_equal(model_commit(&m, &r, md, 200000), 0);
	assert_int_equal(pc_metadata_checkpoint(md), 0);
	assert_int_equal(model_commit(&m, &r, md, 1000), 0);
	model_close(&m, md);
	assert_int_equal(pc_shim_allocs, allocs);
	pc_metadata_free(md);
	model_check_device(&m, &f, true);
	teardown(&m, &f);
}

static void test_metadata_fits_lvm(void **state)
{
	static const u32 sizes[] = {
		1, 64, 119, 120, 1000, 100000, 1000000, 100000000, 1000000000,
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_true(pc_metadata_min_blocks(sizes[i]) <=
			    (44ull * sizes[i] + (4 << 20)) / 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metadata_format),
		cmocka_unit_test(test_metadata_clean_round_trip),
		cmocka_unit_test(test_metadata_hints),
		cmocka_unit_test(test_metadata_random_life),
		cmocka_unit_test(test_metadata_commit_refuses_unsound),
		cmocka_unit_test(test_metadata_close_with_intents),
		cmocka_unit_test(test_metadata_changed),
		cmocka_unit_test(test_metadata_journal_jumps_after_unclean_start),
		cmocka_unit_test(test_metadata_empty),
		cmocka_unit_test(test_metadata_load_fn_aborts),
		cmocka_unit_test(test_metadata_memory),
		cmocka_unit_test(test_metadata_fits_lvm),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
