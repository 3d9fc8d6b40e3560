// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a pending object is done with, in cases that the random runs of test-pending.c
 * meet too seldom: an object that is never done keeps a stop from being a clean one.
 */
#include "pending-fixture.h"

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

	setup(&f, 3, 3, 0);
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

	setup(&f, 3, 3, 0);
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
