// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Exchange of policies: the part without locks (swap.h).
 *
 * First the old policy's walk, coldest first, so that the new one starts with the
 * same order. It is cut off after as many blocks as the cache has: hits move blocks
 * ahead of the walk for as long as there is I/O. Then the bits are gone through once
 * for what the walk did not show; what is inserted meanwhile needs no look, since
 * the new policy is told of it at once.
 *
 * Context and locking: swap.h.
 */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

#include "swap.h"

#define WALK_BATCH 64u

void pc_swap_init(struct pc_swap *s, struct pc_policy *old, struct pc_policy *new,
		  u32 nr_cblocks, const unsigned long *held, unsigned long *loaded)
{
	memset(s, 0, sizeof(*s));
	s->old = old;
	s->new = new;
	s->nr_cblocks = nr_cblocks;
	s->held = held;
	s->loaded = loaded;
}

static void load(struct pc_swap *s, u32 i, pc_swap_lookup_fn lookup, void *ctx)
{
	pc_cblock_t c = pc_cblock(i);
	pc_oblock_t o;
	bool dirty;

	if (!test_bit(i, s->held) || test_bit(i, s->loaded) || !lookup(ctx, c, &o, &dirty))
		return;
	s->new->type->load(s->new, c, o, dirty, false, 0);
	__set_bit(i, s->loaded);
}

/* Returns how many blocks were looked at. */
static unsigned int walk(struct pc_swap *s, unsigned int n, pc_swap_lookup_fn lookup, void *ctx)
{
	pc_cblock_t batch[WALK_BATCH];
	unsigned int i, got;

	got = s->old->type->walk(s->old, &s->cursor, min(n, WALK_BATCH), batch);
	for (i = 0; i < got; i++)
		if (pc_from_cblock(batch[i]) < s->nr_cblocks)
			load(s, pc_from_cblock(batch[i]), lookup, ctx);

	/* no overflow: walked < nr_cblocks before */
	s->walked += min(got, s->nr_cblocks - s->walked);
	s->is_walked = !got || s->walked == s->nr_cblocks;
	return got;
}

/* The next word of bits. Returns the effort, in blocks. */
static unsigned int scan(struct pc_swap *s, pc_swap_lookup_fn lookup, void *ctx)
{
	unsigned long word = BIT_WORD(s->rest);
	unsigned long left = s->held[word] & ~s->loaded[word];
	unsigned int effort = 1;

	for (; left; left &= left - 1, effort++)
		load(s, s->rest + __ffs(left), lookup, ctx);
	s->rest += min_t(u32, BITS_PER_LONG, s->nr_cblocks - s->rest);
	return effort;
}

bool pc_swap_step(struct pc_swap *s, unsigned int n, pc_swap_lookup_fn lookup, void *ctx)
{
	unsigned int effort = 0;

	while (effort < n && !s->is_walked)
		effort += walk(s, n - effort, lookup, ctx);
	while (effort < n && s->is_walked && s->rest < s->nr_cblocks)
		effort += scan(s, lookup, ctx);
	return s->is_walked && s->rest == s->nr_cblocks;
}

void pc_swap_inserted(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o)
{
	s->new->type->inserted(s->new, c, o);
	__set_bit(pc_from_cblock(c), s->loaded);
}

void pc_swap_removed(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o)
{
	if (__test_and_clear_bit(pc_from_cblock(c), s->loaded))
		s->new->type->removed(s->new, c, o);
}

void pc_swap_hit(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	if (test_bit(pc_from_cblock(c), s->loaded))
		s->new->type->hit(s->new, c, o, dir);
}
