// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy cleaner: admits nothing; all that is dirty is to be written back.
 *
 * The flag PC_POLICY_CLEANER makes the core write back without pause; this policy
 * only keeps out of its way. Blocks stay mapped, so hits go on; none is offered as
 * a victim. Hints are kept as they were loaded, so that a cache that was stopped
 * under the cleaner still has them. Walks go by cache block.
 *
 * 4 bytes and one bit a block. Context and locking: policy.h.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "policy.h"

struct cleaner {
	struct pc_policy policy;
	u32 nr_cblocks;
	unsigned long *held;	/* bit a cblock */
	u32 *hints;
};

static struct cleaner *to_cleaner(struct pc_policy *p)
{
	return container_of(p, struct cleaner, policy);
}

static size_t held_bytes(const struct cleaner *cl)
{
	return BITS_TO_LONGS((unsigned long)cl->nr_cblocks) * sizeof(long);
}

static size_t hint_bytes(const struct cleaner *cl)
{
	return (size_t)cl->nr_cblocks * sizeof(*cl->hints);
}

static void cleaner_destroy(struct pc_policy *p)
{
	struct cleaner *cl = to_cleaner(p);

	vfree(cl->hints);
	vfree(cl->held);
	kfree(cl);
}

static struct pc_policy *cleaner_create(const struct pc_policy_type *type,
					const struct pc_policy_params *params)
{
	struct cleaner *cl;

	if (!params->nr_cblocks)
		return NULL;

	cl = kzalloc(sizeof(*cl), GFP_KERNEL);
	if (!cl)
		return NULL;
	cl->policy.type = type;
	cl->nr_cblocks = params->nr_cblocks;
	cl->held = vzalloc(held_bytes(cl));
	cl->hints = vzalloc(hint_bytes(cl));
	if (!cl->held || !cl->hints) {
		cleaner_destroy(&cl->policy);
		return NULL;
	}
	return &cl->policy;
}

static void cleaner_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
			 bool has_hint, u32 hint)
{
	struct cleaner *cl = to_cleaner(p);
	u32 i = pc_from_cblock(c);

	__set_bit(i, cl->held);
	cl->hints[i] = has_hint ? hint : 0;
}

static void cleaner_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
}

static enum pc_verdict cleaner_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				    unsigned int flags)
{
	return PC_BYPASS;
}

/* A fill that began before this policy came. */
static void cleaner_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	cleaner_load(p, c, o, false, false, 0);
}

static void cleaner_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	__clear_bit(pc_from_cblock(c), to_cleaner(p)->held);
}

static unsigned int cleaner_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	return 0;
}

static u32 cleaner_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct cleaner *cl = to_cleaner(p);
	u32 i = pc_from_cblock(c);

	return test_bit(i, cl->held) ? cl->hints[i] : 0;
}

static unsigned int cleaner_walk(struct pc_policy *p, u64 *cursor, unsigned int n,
				 pc_cblock_t *out)
{
	struct cleaner *cl = to_cleaner(p);
	unsigned int got = 0;

	while (got < n && *cursor < cl->nr_cblocks) {
		u32 i = find_next_bit(cl->held, cl->nr_cblocks, *cursor);

		if (i < cl->nr_cblocks)
			out[got++] = pc_cblock(i);
		*cursor = (u64)i + 1;
	}
	return got;
}

static size_t cleaner_memory(struct pc_policy *p)
{
	struct cleaner *cl = to_cleaner(p);

	return sizeof(*cl) + held_bytes(cl) + hint_bytes(cl);
}

static struct pc_policy_type cleaner_type = {
	.create = cleaner_create,
	.destroy = cleaner_destroy,
	.load = cleaner_load,
	.hit = cleaner_hit,
	.miss = cleaner_miss,
	.inserted = cleaner_inserted,
	.removed = cleaner_removed,
	.victims = cleaner_victims,
	.hint = cleaner_hint,
	.walk = cleaner_walk,
	.memory = cleaner_memory,
	.name = "cleaner",
	.api = PC_POLICY_API,
	.version = 1,
	.flags = PC_POLICY_CLEANER,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(cleaner_type, "device-mapper polycache: policy cleaner");
