// SPDX-License-Identifier: GPL-2.0-only
/* A cache in front of one policy: see policy-cache.h. */
#include <linux/bitmap.h>

#include "policy-cache.h"
#include "swap.h"
#include "unit.h"

#define NONE POLICY_CACHE_NONE

static struct pc_policy *create(const struct pc_policy_type *type, u32 nr, u32 nr_origin)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr, .nr_oblocks = nr_origin, .block_sectors = 128,
	};
	struct pc_policy *p = type->create(type, &params);

	assert_non_null(p);
	return p;
}

void policy_cache_init(struct policy_cache *c, const struct pc_policy_type *type, u32 nr,
		       u32 nr_origin)
{
	c->type = type;
	c->p = create(type, nr, nr_origin);
	c->nr = nr;
	c->used = 0;
	c->demoted = NONE;
	c->block = malloc(nr_origin * sizeof(u32));
	c->origin = malloc(nr * sizeof(u32));
	assert_true(c->block && c->origin);
	memset(c->block, 0xff, nr_origin * sizeof(u32));
	memset(c->origin, 0xff, nr * sizeof(u32));
}

void policy_cache_exit(struct policy_cache *c)
{
	c->type->destroy(c->p);
	free(c->block);
	free(c->origin);
}

static u32 room(struct policy_cache *c)
{
	pc_cblock_t victim;
	u32 i;

	if (c->used < c->nr)
		return c->used++;
	assert_int_equal(c->type->victims(c->p, 1, &victim), 1);
	i = pc_from_cblock(victim);
	c->demoted = c->origin[i];
	c->block[c->demoted] = NONE;
	c->type->removed(c->p, victim, pc_oblock(c->demoted));
	return i;
}

bool policy_cache_access(struct policy_cache *c, u32 o, unsigned int flags)
{
	u32 i = c->block[o];

	c->demoted = NONE;
	if (i != NONE) {
		c->type->hit(c->p, pc_cblock(i), pc_oblock(o), PC_READ);
		return true;
	}
	assert_int_equal(c->type->miss(c->p, pc_oblock(o), PC_READ, flags), PC_ADMIT);
	i = room(c);
	c->block[o] = i;
	c->origin[i] = o;
	c->type->inserted(c->p, pc_cblock(i), pc_oblock(o));
	return false;
}

u32 policy_cache_pass(struct policy_cache *c, u32 first, u32 count)
{
	u32 hits = 0;

	for (u32 o = first; o < first + count; o++)
		hits += policy_cache_access(c, o, 0);
	return hits;
}

static bool lookup(void *context, pc_cblock_t c, pc_oblock_t *o, bool *dirty)
{
	const struct policy_cache *cache = context;

	*o = pc_oblock(cache->origin[pc_from_cblock(c)]);
	*dirty = false;
	return true;
}

void policy_cache_exchange(struct policy_cache *c, const struct pc_policy_type *type,
			   u32 nr_origin)
{
	struct pc_policy *old = c->p;
	unsigned long *held = bitmap_zalloc(c->nr, GFP_KERNEL);
	unsigned long *loaded = bitmap_zalloc(c->nr, GFP_KERNEL);
	struct pc_swap swap;

	assert_true(held && loaded);
	for (u32 i = 0; i < c->used; i++)
		__set_bit(i, held);
	c->p = create(type, c->nr, nr_origin);
	c->type = type;
	pc_swap_init(&swap, old, c->p, c->nr, held, loaded);
	while (!pc_swap_step(&swap, 1000, lookup, c))
		;
	old->type->destroy(old);
	bitmap_free(held);
	bitmap_free(loaded);
}

struct pc_policy *policy_cache_restart(struct policy_cache *c, u32 nr_origin)
{
	struct pc_policy *again = create(c->type, c->nr, nr_origin);

	for (u32 i = 0; i < c->used; i++)
		c->type->load(again, pc_cblock(i), pc_oblock(c->origin[i]), false, true,
			      c->type->hint(c->p, pc_cblock(i)));
	if (c->type->loaded)
		c->type->loaded(again);
	return again;
}

u32 policy_cache_walk(struct pc_policy *p, pc_cblock_t *out)
{
	u32 got, count = 0;
	u64 cursor = 0;

	while ((got = p->type->walk(p, &cursor, 100, out + count)))
		count += got;
	return count;
}
