// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy lru: exact least-recently-used order, admission on first touch.
 *
 * One list over all cache blocks, coldest first, linked by 32-bit indices. What
 * must keep its place while blocks move around it (the victims' round, walks, the
 * load point) is a marker: a node of its own in the same list, so that a hit costs
 * one unlink and one append and nothing else.
 *
 * Each block carries a stamp that grows along the list; it is the hint, so the order
 * survives a restart. Before the 32 bits run out, a sweep from the cold end gives
 * small stamps anew, a few blocks an access; the order holds at every step.
 *
 * promote_after N admits a block on its Nth miss. Misses are remembered, 8 bytes
 * each, for at most as many blocks as the cache has (rounded down to a power of two,
 * at least 64), in sets of 8 with LRU order inside a set. Streams and prefetches
 * are not counted. Memory: 12 bytes a block for the list, at most 8 for the misses.
 *
 * Context and locking: policy.h.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "chain.h"
#include "policy.h"

#define MAX_CBLOCKS (1u << 30)

#define NR_WALKS 4u
#define GHOST_WAYS 8u
#define GHOST_MIN_SETS 8u
#define GHOST_OBLOCK_BITS 48
#define PROMOTE_AFTER_MAX 1000u

/* a test overrides this to see the stamps wrap */
#ifndef PC_LRU_RENUMBER_AT
#define PC_LRU_RENUMBER_AT 0xc0000000u
#endif
/* must be over 1, so that a sweep overtakes the accesses that drive it */
#define RENUMBER_STEP 4

struct node {
	u32 prev;
	u32 next;	/* NONE: not in the list */
	u32 stamp;	/* blocks only */
};

/* Nodes behind those of the cache blocks, counted from nr_cblocks. */
enum marker {
	HEAD,		/* next: coldest, prev: hottest */
	LOAD,		/* load() without a hint puts blocks before it */
	VICTIM,		/* what lies before it was offered in this round */
	SWEEP,		/* what lies before it has its new stamp */
	WALK,
	NR_MARKERS = WALK + NR_WALKS,
};

struct lru {
	struct pc_policy policy;
	u32 nr_cblocks;
	u32 held;		/* blocks in the list */
	u32 loaded;		/* stamps up to nr_cblocks are for loaded blocks */
	u32 stamp;		/* last one given to a block that was used */
	u32 sweep_stamp;

	/* the victims' round */
	u32 offered;
	u32 refused;		/* offered and not removed */
	u32 removed;		/* since the round began */

	u32 walk_id[NR_WALKS];	/* which walk owns the marker */
	u32 last_walk_id;

	u32 promote_after;
	u32 ghost_sets;		/* a power of two */
	u64 *ghosts;		/* count << 48 | oblock, hottest first in its set; 0: none */

	struct node *nodes;
	struct chain_buckets buckets;	/* scratch of loaded() */
};

static struct lru *to_lru(struct pc_policy *p)
{
	return container_of(p, struct lru, policy);
}

/* The list */

static u32 marker(const struct lru *lru, unsigned int m)
{
	return lru->nr_cblocks + m;
}

static bool is_marker(const struct lru *lru, u32 i)
{
	return i >= lru->nr_cblocks;
}

static bool is_linked(const struct lru *lru, u32 i)
{
	return lru->nodes[i].next != NONE;
}

static void link_before(struct lru *lru, u32 i, u32 next)
{
	u32 prev = lru->nodes[next].prev;

	lru->nodes[i].prev = prev;
	lru->nodes[i].next = next;
	lru->nodes[prev].next = i;
	lru->nodes[next].prev = i;
}

static void detach(struct lru *lru, u32 i)
{
	struct node *n = lru->nodes + i;

	lru->nodes[n->prev].next = n->next;
	lru->nodes[n->next].prev = n->prev;
	n->next = NONE;
}

static void detach_marker(struct lru *lru, unsigned int m)
{
	if (is_linked(lru, marker(lru, m)))
		detach(lru, marker(lru, m));
}

/* To the cold end. */
static void reset_marker(struct lru *lru, unsigned int m)
{
	detach_marker(lru, m);
	link_before(lru, marker(lru, m), lru->nodes[marker(lru, HEAD)].next);
}

/* The block after node i, or the head. */
static u32 block_after(const struct lru *lru, u32 i)
{
	do
		i = lru->nodes[i].next;
	while (is_marker(lru, i) && i != marker(lru, HEAD));
	return i;
}

/* The block that the marker has come to, or NONE; the marker goes behind it. */
static u32 advance_marker(struct lru *lru, unsigned int m)
{
	u32 me = marker(lru, m);
	u32 block = block_after(lru, me);

	if (block == marker(lru, HEAD))
		return NONE;
	detach(lru, me);
	link_before(lru, me, lru->nodes[block].next);
	return block;
}

/* Stamps */

static void sweep(struct lru *lru)
{
	unsigned int i;

	if (!is_linked(lru, marker(lru, SWEEP))) {
		reset_marker(lru, SWEEP);
		lru->sweep_stamp = 0;
	}

	for (i = 0; i < RENUMBER_STEP; i++) {
		u32 block = advance_marker(lru, SWEEP);

		if (block == NONE) {
			detach_marker(lru, SWEEP);
			lru->stamp = max(lru->sweep_stamp, lru->nr_cblocks);
			return;
		}
		/* never above its old stamp: those before it were distinct, from 1 on */
		lru->nodes[block].stamp = ++lru->sweep_stamp;
	}
}

/* A block that is not in the list becomes the hottest. */
static void append(struct lru *lru, u32 i)
{
	if (unlikely(lru->stamp >= PC_LRU_RENUMBER_AT))
		sweep(lru);
	lru->nodes[i].stamp = ++lru->stamp;
	link_before(lru, i, marker(lru, HEAD));
}

/* Ghosts: blocks that missed and are not cached */

static u64 *ghost_set(struct lru *lru, pc_oblock_t o)
{
	u32 set = hash_64(pc_from_oblock(o), 32) & (lru->ghost_sets - 1);

	return lru->ghosts + (size_t)set * GHOST_WAYS;
}

static unsigned int ghost_find(const u64 *set, pc_oblock_t o)
{
	unsigned int i;

	for (i = 0; i < GHOST_WAYS; i++)
		if (set[i] && (set[i] & PC_OBLOCK_MAX) == pc_from_oblock(o))
			break;
	return i;
}

/* Counts a miss of o and returns how many are known. */
static u32 ghost_count(struct lru *lru, pc_oblock_t o)
{
	u64 *set = ghost_set(lru, o);
	unsigned int i = ghost_find(set, o);
	u32 count = 0;

	if (i < GHOST_WAYS)
		count = set[i] >> GHOST_OBLOCK_BITS;
	else
		i = GHOST_WAYS - 1;
	if (count < PROMOTE_AFTER_MAX)
		count++;
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = (u64)count << GHOST_OBLOCK_BITS | pc_from_oblock(o);
	return count;
}

static void ghost_forget(struct lru *lru, pc_oblock_t o)
{
	u64 *set = ghost_set(lru, o);
	unsigned int i = ghost_find(set, o);

	if (i == GHOST_WAYS)
		return;
	memmove(set + i, set + i + 1, (GHOST_WAYS - 1 - i) * sizeof(*set));
	set[GHOST_WAYS - 1] = 0;
}

static size_t ghost_bytes(const struct lru *lru)
{
	return (size_t)lru->ghost_sets * GHOST_WAYS * sizeof(*lru->ghosts);
}

static size_t node_bytes(const struct lru *lru)
{
	return ((size_t)lru->nr_cblocks + NR_MARKERS) * sizeof(*lru->nodes);
}

/* Operations */

static void lru_destroy(struct pc_policy *p)
{
	struct lru *lru = to_lru(p);

	vfree(lru->ghosts);
	vfree(lru->nodes);
	kfree(lru);
}

static struct pc_policy *lru_create(const struct pc_policy_type *type,
				    const struct pc_policy_params *params)
{
	struct lru *lru;
	u32 i;

	/* a sweep needs a third as many stamps as there are blocks before it ends */
	if (!params->nr_cblocks || params->nr_cblocks > MAX_CBLOCKS)
		return NULL;

	lru = kzalloc(sizeof(*lru), GFP_KERNEL);
	if (!lru)
		return NULL;
	lru->policy.type = type;
	lru->nr_cblocks = params->nr_cblocks;
	lru->stamp = params->nr_cblocks;
	lru->promote_after = 1;
	lru->ghost_sets = max(GHOST_MIN_SETS,
			      (u32)rounddown_pow_of_two(params->nr_cblocks) / GHOST_WAYS);

	lru->ghosts = vzalloc(ghost_bytes(lru));
	lru->nodes = vzalloc(node_bytes(lru));
	if (!lru->ghosts || !lru->nodes) {
		lru_destroy(&lru->policy);
		return NULL;
	}

	for (i = 0; i < lru->nr_cblocks + NR_MARKERS; i++)
		lru->nodes[i].next = NONE;
	i = marker(lru, HEAD);
	lru->nodes[i].prev = i;
	lru->nodes[i].next = i;
	reset_marker(lru, LOAD);
	return &lru->policy;
}

static void lru_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
		     bool has_hint, u32 hint)
{
	struct lru *lru = to_lru(p);
	u32 i = pc_from_cblock(c);

	if (is_linked(lru, i))
		return;
	lru->held++;

	/* those without a hint are colder than all others, in the order of the calls */
	if (has_hint) {
		lru->nodes[i].stamp = hint;
		link_before(lru, i, marker(lru, HEAD));
		return;
	}
	if (lru->loaded < lru->nr_cblocks)
		lru->loaded++;
	lru->nodes[i].stamp = lru->loaded;
	link_before(lru, i, marker(lru, LOAD));
}

static u32 stamp_of(const void *lru, u32 i)
{
	return ((const struct lru *)lru)->nodes[i].stamp;
}

static void lru_loaded(struct pc_policy *p)
{
	struct lru *lru = to_lru(p);
	u32 head = marker(lru, HEAD), load = marker(lru, LOAD);
	u32 i, stamp = lru->loaded;
	unsigned int m;

	/* only blocks may follow the load point */
	for (m = LOAD + 1; m < NR_MARKERS; m++)
		detach_marker(lru, m);

	chain_sort(&lru->buckets, lru->nodes, load, head, stamp_of, lru);
	for (i = lru->nodes[load].next; i != head; i = lru->nodes[i].next)
		lru->nodes[i].stamp = ++stamp;
	lru->stamp = max(stamp, lru->nr_cblocks);
}

static void lru_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct lru *lru = to_lru(p);
	u32 i = pc_from_cblock(c);

	if (!is_linked(lru, i) || lru->nodes[i].next == marker(lru, HEAD))
		return;
	detach(lru, i);
	append(lru, i);
}

static enum pc_verdict lru_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				unsigned int flags)
{
	struct lru *lru = to_lru(p);

	if (lru->promote_after == 1)
		return PC_ADMIT;
	if (flags & (PC_MISS_SEQUENTIAL | PC_MISS_PREFETCH))
		return PC_BYPASS;
	return ghost_count(lru, o) >= lru->promote_after ? PC_ADMIT : PC_BYPASS;
}

static void lru_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct lru *lru = to_lru(p);
	u32 i = pc_from_cblock(c);

	if (is_linked(lru, i))
		return;
	lru->held++;
	append(lru, i);
	if (lru->promote_after != 1)
		ghost_forget(lru, o);
}

static void lru_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct lru *lru = to_lru(p);
	u32 i = pc_from_cblock(c);

	if (!is_linked(lru, i))
		return;
	detach(lru, i);
	lru->held--;
	lru->removed++;
	if (lru->refused)
		lru->refused--;
}

/*
 * After a removal the coldest come first again, but only once there was one for
 * every 16 blocks refused in this round: a cold end full of dirty blocks must not
 * be offered anew for each block that is demoted behind it. A round ends with as
 * many offers as there are blocks, so that it ends although hits lengthen it.
 */
static unsigned int lru_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct lru *lru = to_lru(p);
	unsigned int got = 0;

	if (!is_linked(lru, marker(lru, VICTIM)) ||
	    (lru->removed && lru->removed >= lru->refused / 16)) {
		reset_marker(lru, VICTIM);
		lru->offered = 0;
		lru->refused = 0;
		lru->removed = 0;
	}

	while (got < n) {
		u32 block = NONE;

		if (lru->offered < lru->held)
			block = advance_marker(lru, VICTIM);
		if (block == NONE) {
			detach_marker(lru, VICTIM);
			break;
		}
		out[got++] = pc_cblock(block);
		lru->offered++;
		lru->refused++;
	}
	return got;
}

static u32 lru_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct lru *lru = to_lru(p);
	u32 i = pc_from_cblock(c);

	return is_linked(lru, i) ? lru->nodes[i].stamp : 0;
}

/*
 * A walk in progress owns one of a few markers; the cursor says which one, and
 * that it is still this walk's. A walk too many ends the oldest.
 */
static unsigned int lru_walk(struct pc_policy *p, u64 *cursor, unsigned int n, pc_cblock_t *out)
{
	struct lru *lru = to_lru(p);
	unsigned int slot, got = 0;

	if (!*cursor) {
		if (!++lru->last_walk_id)
			lru->last_walk_id = 1;
		slot = lru->last_walk_id % NR_WALKS;
		lru->walk_id[slot] = lru->last_walk_id;
		reset_marker(lru, WALK + slot);
		*cursor = lru->last_walk_id;
	} else {
		slot = (u32)*cursor % NR_WALKS;
		if (lru->walk_id[slot] != *cursor || !is_linked(lru, marker(lru, WALK + slot)))
			return 0;
	}

	while (got < n) {
		u32 block = advance_marker(lru, WALK + slot);

		if (block == NONE)
			break;
		out[got++] = pc_cblock(block);
	}
	if (!got)
		detach_marker(lru, WALK + slot);
	return got;
}

static int lru_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	struct lru *lru = to_lru(p);
	unsigned int n;

	if (strcmp(key, "promote_after") != 0)
		return -EINVAL;
	if (kstrtouint(value, 10, &n) || !n || n > PROMOTE_AFTER_MAX) {
		*why = "a number of misses from 1 to 1000";
		return -ERANGE;
	}
	lru->promote_after = n;
	return 0;
}

static unsigned int lru_emit(struct pc_policy *p, char *buf, size_t len)
{
	snprintf(buf, len, "promote_after %u", to_lru(p)->promote_after);
	return 2;
}

static size_t lru_memory(struct pc_policy *p)
{
	struct lru *lru = to_lru(p);

	return sizeof(*lru) + ghost_bytes(lru) + node_bytes(lru);
}

static struct pc_policy_type lru_type = {
	.create = lru_create,
	.destroy = lru_destroy,
	.load = lru_load,
	.loaded = lru_loaded,
	.hit = lru_hit,
	.miss = lru_miss,
	.inserted = lru_inserted,
	.removed = lru_removed,
	.victims = lru_victims,
	.hint = lru_hint,
	.walk = lru_walk,
	.set = lru_set,
	.emit = lru_emit,
	.memory = lru_memory,
	.name = "lru",
	.api = PC_POLICY_API,
	.version = 1,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(lru_type, "device-mapper polycache: policy lru");
