// SPDX-License-Identifier: GPL-2.0-only
/*
 * Origin and cache of other sizes than at the last start: what is kept, what is
 * dropped, and that dirty data beyond the new end is never given up.
 */
#include <linux/errno.h>

#include "metadata-model.h"

enum { BLOCK = 64, SUB = 8, BLOCKS = 60 };

struct fixture {
	struct unit_random r;
	struct model m;
	struct pc_metaio_file f;
};

static void make(struct fixture *x, u64 iteration, u32 nr, u64 origin)
{
	unit_random_init(&x->r, "resize", iteration);
	model_init(&x->m, nr, BLOCK, SUB, origin);
	assert_int_equal(pc_metaio_open_memory(&x->f, BLOCKS, NULL), 0);
	model_check_device(&x->m, &x->f, false);
}

static void done(struct fixture *x)
{
	pc_metaio_close(&x->f);
	model_free(&x->m);
}

/* Commits entries as they are, after a start; clean: and closes. */
static void put(struct fixture *x, const struct pc_record *records, u32 n, bool clean)
{
	struct pc_metadata *md = model_open(&x->m, &x->f);

	model_load(&x->m, md, false);
	assert_int_equal(pc_metadata_commit(md, records, n), 0);
	for (u32 i = 0; i < n; i++) {
		x->m.entries[records[i].cblock] = records[i].entry;
		x->m.used[records[i].entry.oblock] = true;
	}
	if (clean)
		model_close(&x->m, md);
	pc_metadata_free(md);
}

static void expect_refused(struct fixture *x, u32 nr, u64 origin, int want, const char *text)
{
	struct pc_metadata_params p = x->m.params;
	struct pc_entry entries[1000];
	char why[PC_META_ERR_SIZE];
	u64 writes = x->f.nr_writes;
	struct pc_metadata *md;
	int err;

	p.nr_cblocks = nr;
	p.origin_sectors = origin;
	md = pc_metadata_open(&x->f.io, &p, &err, why);
	if (md)
		err = model_load_raw(md, entries, nr, why);
	assert_int_equal(err, want);
	if (!strstr(why, text))
		fail_msg("\"%s\" lacks \"%s\"", why, text);
	assert_int_equal(x->f.nr_writes, writes);
	pc_metadata_free(md);
}

static void test_resize_refuses_to_lose_dirty(void **state)
{
	static const struct pc_record records[] = {
		{ 3, { .flags = PC_ENTRY_MAPPED, .oblock = 98, .valid = 0xff } },
		{ 7, { .flags = PC_ENTRY_MAPPED, .oblock = 99, .valid = 0xff, .dirty = 0x10 } },
		{ 150, { .flags = PC_ENTRY_MAPPED, .oblock = 1, .valid = 1, .dirty = 1 } },
		{ 180, { .flags = PC_ENTRY_MAPPED, .oblock = 2, .valid = 1 } },
	};

	for (int clean = 0; clean < 2; clean++) {
		struct fixture x;

		make(&x, clean, 200, BLOCK * 100);
		put(&x, records, ARRAY_SIZE(records), clean);
		expect_refused(&x, 150, BLOCK * 100, -ENOSPC,
			       "cache has shrunk from 200 to 150 blocks, and cache block 150 is dirty");
		expect_refused(&x, 200, BLOCK * 99, -ENOSPC,
			       "origin has shrunk from 6400 to 6336 sectors, and origin block 99 is dirty");
		expect_refused(&x, 200, BLOCK * 99 + 39, -ENOSPC, "origin block 99 is dirty");
		/* still as it was */
		model_check_device(&x.m, &x.f, clean);
		/* sub-block 4 just fits, 5 does not */
		assert_true(model_resize(&x.m, 151, BLOCK * 99 + 40));
		assert_true(x.m.entries[7].valid == 0x1f);
		model_check_device(&x.m, &x.f, clean);
		/* a grown origin does not bring back what was dropped */
		assert_true(model_resize(&x.m, 200, BLOCK * 100));
		model_check_device(&x.m, &x.f, clean);
		done(&x);
	}
}

static void test_resize_counts_intents_as_dirty(void **state)
{
	static const struct pc_record records[] = {
		{ 190, { .flags = PC_ENTRY_MAPPED | PC_ENTRY_INTENT_CACHE,
			 .oblock = 5, .valid = 3 } },
		{ 195, { .flags = PC_ENTRY_MAPPED | PC_ENTRY_INTENT_ORIGIN,
			 .oblock = 6, .valid = 3 } },
	};
	struct fixture x;

	make(&x, 7, 200, BLOCK * 100);
	put(&x, records, ARRAY_SIZE(records), false);
	expect_refused(&x, 190, BLOCK * 100, -ENOSPC, "cache block 190 is dirty");
	model_settle(&x.m);
	assert_true(model_resize(&x.m, 191, BLOCK * 100));
	model_check_device(&x.m, &x.f, false);
	done(&x);
}

static void test_resize_metadata_too_small(void **state)
{
	struct fixture x;

	make(&x, 8, 200, BLOCK * 100);
	/* journal of 15: the table starts at block 17 */
	expect_refused(&x, 43 * 120 + 1, BLOCK * 100, -ENOSPC,
		       "has 60 blocks of 4096 bytes, growing the cache to 5161 blocks needs 61");
	assert_true(model_resize(&x.m, 43 * 120, BLOCK * 100));
	model_check_device(&x.m, &x.f, false);
	done(&x);
}

static void test_resize_random(void **state)
{
	for (u64 i = 0; i < 150; i++) {
		struct fixture x;
		struct pc_metadata *md;

		make(&x, 100 + i, 1 + unit_random_below(&(struct unit_random){ i }, 999),
		     BLOCK * 3000);
		for (int step = 0; step < 6; step++) {
			u32 n, nr = 1 + unit_random_below(&x.r, 999);
			u64 origin = BLOCK * 2000ull + unit_random_below(&x.r, BLOCK * 2000);
			bool clean = unit_random_one_in(&x.r, 2);

			md = model_open(&x.m, &x.f);
			model_load(&x.m, md, false);
			n = unit_random_below(&x.r, 500);
			assert_int_equal(model_commit(&x.m, &x.r, md, n), 0);
			if (clean)
				model_close(&x.m, md);
			pc_metadata_free(md);
			model_settle(&x.m);
			/* clean most of what would not let it shrink */
			if (unit_random_one_in(&x.r, 2)) {
				md = model_open(&x.m, &x.f);
				model_load(&x.m, md, false);
				for (u32 c = 0; c < x.m.nr; c++) {
					struct pc_record r = { c, x.m.entries[c] };

					r.entry.dirty = 0;
					x.m.entries[c] = r.entry;
					assert_int_equal(pc_metadata_commit(md, &r, 1), 0);
				}
				pc_metadata_free(md);
			}
			if (!model_resize(&x.m, nr, origin)) {
				expect_refused(&x, nr, origin, -ENOSPC, "is dirty");
				model_check_device(&x.m, &x.f, false);
				continue;
			}
			model_check_device(&x.m, &x.f, false);
		}
		done(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resize_refuses_to_lose_dirty),
		cmocka_unit_test(test_resize_counts_intents_as_dirty),
		cmocka_unit_test(test_resize_metadata_too_small),
		cmocka_unit_test(test_resize_random),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
