/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One block with a pending object, for the tests of single steps of pending.c.
 */
#ifndef PC_TEST_PENDING_FIXTURE_H
#define PC_TEST_PENDING_FIXTURE_H

#include "pending.h"
#include "unit.h"

struct fixture {
	struct pc_blocks b;
	struct pc_pendings ps;
	struct pc_block *blk;
	struct pc_pending *p;
};

/* A block that is on disk as in memory. */
static inline void setup(struct fixture *f, u64 valid, u64 dirty, u16 intent)
{
	assert_int_equal(pc_blocks_init(&f->b, 4, 64, 8, 1024), 0);
	assert_int_equal(pc_pendings_init(&f->ps, 4), 0);
	pc_blocks_insert(&f->b, pc_cblock(1), pc_oblock(7));
	f->blk = pc_blocks_get(&f->b, pc_cblock(1));
	f->blk->valid = valid;
	f->blk->dirty = dirty;
	f->blk->flags |= intent;
	f->p = pc_pending_alloc(&f->ps, &f->b, f->blk);
	assert_non_null(f->p);
}

static inline void teardown(struct fixture *f)
{
	pc_pendings_exit(&f->ps);
	pc_blocks_exit(&f->b);
}

/* Writeback copied mask, which no write touched meanwhile. */
static inline void copied(struct fixture *f, u64 mask)
{
	f->blk->dirty &= ~mask;
	f->p->uncleaned |= mask;
}

#endif
