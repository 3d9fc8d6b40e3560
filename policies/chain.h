/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Cache blocks that a policy has in lists: nodes in an array, linked by their 32-bit
 * numbers, whatever else is in them.
 *
 * Sorting, for loaded(): a radix sort by one byte of the key a pass, which keeps the order
 * of equals; a byte that is the same in all keys needs no pass. Linear in the list; 2 KiB
 * of scratch, that of the caller.
 *
 * Looking ahead, for victims(): along a list each node names the next, and whoever follows
 * it waits for memory at each step, if the list is larger than the CPU's caches. So a node
 * also remembers one that came a few behind it, to be fetched when its own turn comes. It
 * may have gone elsewhere since; then it is fetched in vain.
 *
 * Included by policy files only; allocates nothing.
 */
#ifndef PC_CHAIN_H
#define PC_CHAIN_H

#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/prefetch.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define NONE 0xffffffffu

struct chain_buckets {
	u32 first[256];
	u32 last[256];
};

/* What the block is sorted by. policy: what chain_sort() was given. */
typedef u32 (*chain_key_fn)(const void *policy, u32 i);

/* A node begins with the number of the one before it, then of the one behind it. */
static inline u32 *chain_prev(void *nodes, size_t size, u32 i)
{
	return nodes + i * size;
}

static inline u32 *chain_next(void *nodes, size_t size, u32 i)
{
	return chain_prev(nodes, size, i) + 1;
}

/* Distributes the chain by one byte of the keys, and collects it again. */
static inline u32 chain_sort_pass(struct chain_buckets *buckets, void *nodes, size_t size,
				  u32 first, u32 end, unsigned int shift, chain_key_fn key,
				  const void *policy)
{
	u32 i, next, *tail = &first;
	unsigned int b;

	for (b = 0; b < ARRAY_SIZE(buckets->first); b++)
		buckets->first[b] = NONE;

	for (i = first; i != end; i = next) {
		b = key(policy, i) >> shift & 0xff;
		next = *chain_next(nodes, size, i);
		if (buckets->first[b] == NONE)
			buckets->first[b] = i;
		else
			*chain_next(nodes, size, buckets->last[b]) = i;
		buckets->last[b] = i;
	}

	for (b = 0; b < ARRAY_SIZE(buckets->first); b++) {
		if (buckets->first[b] == NONE)
			continue;
		*tail = buckets->first[b];
		tail = chain_next(nodes, size, buckets->last[b]);
	}
	*tail = end;
	return first;
}

static inline void chain_sort_nodes(struct chain_buckets *buckets, void *nodes, size_t size,
				    u32 start, u32 end, chain_key_fn key, const void *policy)
{
	u32 i, prev, first = *chain_next(nodes, size, start), all = U32_MAX, any = 0;
	unsigned int shift;

	for (i = first; i != end; i = *chain_next(nodes, size, i)) {
		all &= key(policy, i);
		any |= key(policy, i);
	}
	for (shift = 0; shift < 32; shift += 8)
		if ((all ^ any) >> shift & 0xff)
			first = chain_sort_pass(buckets, nodes, size, first, end, shift, key,
						policy);

	*chain_next(nodes, size, start) = first;
	for (prev = start, i = first; i != end; prev = i, i = *chain_next(nodes, size, i))
		*chain_prev(nodes, size, i) = prev;
	*chain_prev(nodes, size, end) = prev;
}

/* Sorts what lies between the nodes start and end, which stay; lowest key first. */
#define chain_sort(buckets, nodes, start, end, key, policy) do {			\
	BUILD_BUG_ON(offsetof(typeof(*(nodes)), prev) != 0);				\
	BUILD_BUG_ON(offsetof(typeof(*(nodes)), next) != sizeof(u32));			\
	chain_sort_nodes(buckets, nodes, sizeof(*(nodes)), start, end, key, policy);	\
} while (0)

#define CHAIN_AHEAD 8u

/* The last nodes that were put to the end of a list. */
struct chain_recent {
	u32 nodes[CHAIN_AHEAD];
	u32 at;
};

/* Block i was put to the end of the list: the node that is to remember it. */
static inline u32 chain_note_last(struct chain_recent *r, u32 i)
{
	u32 *slot = r->nodes + r->at++ % CHAIN_AHEAD, before = *slot;

	*slot = i;
	return before;
}

#endif
