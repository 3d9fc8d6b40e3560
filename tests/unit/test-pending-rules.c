// SPDX-License-Identifier: GPL-2.0-only
/*
 * Single steps of pending.c, in interleavings that the random runs of test-pending.c
 * meet too seldom: what is gathered, then changes, then is composed.
 */
#include "pending-fixture.h"

/* Rule 12: the flush went out before the copy ended, so the record says dirty. */
static void copy_after_gathering(void **state)
{
	struct fixture f;

	setup(&f, 3, 1, 0);
	pc_pending_gather(&f.b, f.p);
	copied(&f, 1);
	assert_false(pc_pending_compose(&f.b, f.p, true, true, true));
	assert_int_equal(f.p->disk.dirty, 1);
	assert_int_equal(f.p->uncleaned, 1);
	teardown(&f);
}

/* What took the place of dropped data has nothing of its durability. */
static void dropped_and_populated(void **state)
{
	struct fixture f;

	setup(&f, 2, 0, 0);
	f.blk->valid |= 1;
	f.blk->dirty |= 1;
	f.p->durable = 1;
	f.p->must = 1;
	pc_pending_gather(&f.b, f.p);
	pc_pending_drop(f.blk, f.p, 1);
	f.blk->valid |= 1;
	f.blk->dirty |= 1;
	assert_false(pc_pending_compose(&f.b, f.p, true, true, true));
	assert_int_equal(f.p->must, 0);
	teardown(&f);
}

/* Rule 24: the block counts as dirty until the origin was flushed, dropped or not. */
static void dropped_after_copy(void **state)
{
	struct fixture f;

	setup(&f, 3, 0, PC_BLOCK_INTENT_CACHE);
	f.blk->dirty = 1;
	pc_pending_write_starts(f.p, 1);
	copied(&f, 1);
	pc_pending_drop(f.blk, f.p, 1);
	assert_int_equal(f.p->uncleaned, 1);
	pc_pending_gather(&f.b, f.p);
	/* the data may be nowhere else yet: it stays what a cut would bring back */
	assert_false(pc_pending_compose(&f.b, f.p, true, false, true));
	assert_int_equal(f.p->uncleaned, 1);
	assert_int_equal(pc_disk_dropped(f.blk, f.p), 1);
	pc_pending_gather(&f.b, f.p);
	assert_true(pc_pending_compose(&f.b, f.p, true, true, true));
	assert_int_equal(f.p->next.valid, 2);
	assert_int_equal(f.p->uncleaned, 0);
	teardown(&f);
}

/* Only what was clean when it was gathered is covered by the flush. */
static void other_copy_after_gathering(void **state)
{
	struct fixture f;

	setup(&f, 3, 0, PC_BLOCK_INTENT_CACHE);
	f.blk->dirty = 3;
	copied(&f, 1);
	pc_pending_gather(&f.b, f.p);
	copied(&f, 2);
	pc_pending_compose(&f.b, f.p, true, true, true);
	assert_int_equal(f.p->uncleaned, 2);
	teardown(&f);
}

/* At the cap nobody holds an object only to wait for room. */
static void no_room(void **state)
{
	struct fixture f;

	setup(&f, 3, 0, 0);
	f.p->want = PC_BLOCK_INTENT_CACHE;
	assert_false(pc_pending_compose_asked(&f.b, f.p, false));
	assert_int_equal(f.p->want, 0);
	f.p->want = PC_BLOCK_INTENT_CACHE;
	pc_pending_gather(&f.b, f.p);
	assert_false(pc_pending_compose(&f.b, f.p, true, true, false));
	assert_true(pc_pending_is_done(&f.b, f.p));
	teardown(&f);
}

/* One kind takes the place of the other in one record, at the cap as well. */
static void change_of_kind(void **state)
{
	struct fixture f;

	setup(&f, 3, 0, PC_BLOCK_INTENT_CACHE);
	f.p->want = PC_BLOCK_INTENT_ORIGIN;
	assert_true(pc_pending_wants_change(f.p));
	assert_false(pc_pending_compose_asked(&f.b, f.p, false));
	pc_pending_gather(&f.b, f.p);
	assert_false(pc_pending_compose(&f.b, f.p, true, false, true));
	f.blk->writes[1] = 1;
	pc_pending_gather(&f.b, f.p);
	assert_false(pc_pending_compose(&f.b, f.p, true, true, false));
	f.blk->writes[1] = 0;
	pc_pending_gather(&f.b, f.p);
	pc_pending_write_starts(f.p, 2);
	assert_false(pc_pending_compose(&f.b, f.p, true, true, false));
	pc_pending_gather(&f.b, f.p);
	assert_true(pc_pending_compose(&f.b, f.p, true, true, false));
	assert_int_equal(f.p->next.flags, PC_BLOCK_MAPPED | PC_BLOCK_INTENT_ORIGIN);
	pc_pending_committed(f.p);
	assert_true(pc_pending_is_done(&f.b, f.p));
	teardown(&f);
}

/* Somebody waits: the object stays, whatever else is settled. */
static void waited_for(void **state)
{
	struct fixture f;

	setup(&f, 3, 0, 0);
	assert_true(pc_pending_is_done(&f.b, f.p));
	f.p->waiters_head = &f;
	assert_false(pc_pending_is_done(&f.b, f.p));
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy_after_gathering),
		cmocka_unit_test(dropped_and_populated),
		cmocka_unit_test(dropped_after_copy),
		cmocka_unit_test(other_copy_after_gathering),
		cmocka_unit_test(no_room),
		cmocka_unit_test(change_of_kind),
		cmocka_unit_test(waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
