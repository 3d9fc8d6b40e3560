// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a pending object is done with, in cases that the random runs of test-pending.c
 * meet too seldom: an object that is never done keeps a stop from being a clean one.
 */
#include "pending.h"
#include "unit.h"

struct fixture {
	struct pc_blocks b;
	struct pc_pendings ps;
	struct pc_block *blk;
	struct pc_pending *p;
};

/* A block that the disk calls valid and dirty in sub-blocks 0 and 1, and so is it. */
static void setup(struct fixture *f)
{
	assert_int_equal(pc_blocks_init(&f->b, 4, 64, 8, 1024), 0);
	assert_int_equal(pc_pendings_init(&f->ps, 4), 0);
	pc_blocks_insert(&f->b, pc_cblock(1), pc_oblock(7));
	f->blk = pc_blocks_get(&f->b, pc_cblock(1));
	f->blk->valid = f->blk->dirty = 3;
	f->p = pc_pending_alloc(&f->ps, &f->b, f->blk);
	assert_non_null(f->p);
}

static void teardown(struct fixture *f)
{
	pc_pendings_exit(&f->ps);
	pc_blocks_exit(&f->b);
}

/* Writeback copied mask, which no write touched meanwhile. */
static void copied(struct fixture *f, u64 mask)
{
	f->blk->dirty &= ~mask;
	f->p->uncleaned |= mask;
}

static bool commit(struct fixture *f, bool cache_ok, bool origin_ok)
{
	if (!pc_pending_compose(&f->b, f->p, cache_ok, origin_ok, true))
		return false;
	pc_pending_committed(f->p);
	return true;
}

static void cleaned(void **state)
{
	struct fixture f;

	setup(&f);
	copied(&f, 3);
	pc_pending_gather(&f.b, f.p);
	commit(&f, true, false);
	assert_false(pc_pending_is_done(&f.b, f.p));
	assert_int_equal(f.p->disk.dirty, 3);
	pc_pending_gather(&f.b, f.p);
	assert_true(commit(&f, true, true));
	assert_true(pc_pending_is_done(&f.b, f.p));
	assert_int_equal(f.p->disk.dirty, 0);
	teardown(&f);
}

/* Between the copy and its commit a write makes a sub-block dirty again. */
static void written_again(void **state)
{
	struct fixture f;

	setup(&f);
	copied(&f, 3);
	pc_pending_write_starts(f.p, 1);
	f.blk->dirty |= 1;
	pc_pending_gather(&f.b, f.p);
	commit(&f, true, true);
	assert_int_equal(f.p->disk.dirty, 1);
	assert_true(pc_pending_is_done(&f.b, f.p));
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cleaned),
		cmocka_unit_test(written_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
