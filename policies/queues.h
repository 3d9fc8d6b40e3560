/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Queues of cache blocks for policies that have several, linked by 32-bit numbers.
 *
 * A node for each cache block, and behind them the markers: first the heads of the
 * queues, in the order of a walk, then one for each walk in progress, then what the
 * policy adds. A marker keeps its place while blocks move around it. A block's state
 * starts, from bit QUEUES_STATE_BITS on, with a stamp that grows along its queue; the
 * bits below are the policy's, as is key. 16 bytes a block.
 *
 * Included by policy files only; allocates in queues_create(), else as policy.h says.
 */
#ifndef PC_QUEUES_H
#define PC_QUEUES_H

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "block-types.h"
#include "chain.h"

#define QUEUES_MAX_BLOCKS (1u << 30)
#define QUEUES_WALKS 4u
#define QUEUES_STATE_BITS 4
#define QUEUES_STAMP_MASK (U32_MAX >> QUEUES_STATE_BITS)

struct queue_node {
	u32 prev;
	u32 next;	/* NONE: in no queue */
	u32 key;
	u32 state;
};

struct queues {
	u32 nr_blocks;
	u32 nr_heads;
	u32 nr_nodes;
	u32 walk_id[QUEUES_WALKS];	/* which walk owns the marker */
	u32 last_walk_id;
	struct queue_node *nodes;
	struct chain_buckets buckets;	/* scratch of queues_sort() */
};

static inline u32 queues_marker(const struct queues *q, u32 m)
{
	return q->nr_blocks + m;
}

static inline bool is_head(const struct queues *q, u32 i)
{
	return i >= q->nr_blocks && i < q->nr_blocks + q->nr_heads;
}

static inline bool is_walk(const struct queues *q, u32 i)
{
	u32 first = q->nr_blocks + q->nr_heads;

	return i >= first && i < first + QUEUES_WALKS;
}

static inline bool is_linked(const struct queues *q, u32 i)
{
	return q->nodes[i].next != NONE;
}

static inline void link_before(struct queues *q, u32 i, u32 next)
{
	u32 prev = q->nodes[next].prev;

	q->nodes[i].prev = prev;
	q->nodes[i].next = next;
	q->nodes[prev].next = i;
	q->nodes[next].prev = i;
}

static inline void detach(struct queues *q, u32 i)
{
	struct queue_node *n = q->nodes + i;

	q->nodes[n->prev].next = n->next;
	q->nodes[n->next].prev = n->prev;
	n->next = NONE;
}

static inline void detach_marker(struct queues *q, u32 marker)
{
	if (is_linked(q, marker))
		detach(q, marker);
}

/* To the cold end of a queue. */
static inline void put_marker(struct queues *q, u32 marker, u32 head)
{
	detach_marker(q, marker);
	link_before(q, marker, q->nodes[head].next);
}

/* The block after node i, or the head of the queue. */
static inline u32 block_after(const struct queues *q, u32 i)
{
	do
		i = q->nodes[i].next;
	while (i >= q->nr_blocks && !is_head(q, i));
	return i;
}

/* The block that the marker has come to, or the head; the marker goes behind a block. */
static inline u32 advance_marker(struct queues *q, u32 marker)
{
	u32 block = block_after(q, marker);

	if (is_head(q, block))
		return block;
	detach(q, marker);
	link_before(q, marker, q->nodes[block].next);
	return block;
}

static inline size_t queues_bytes(const struct queues *q)
{
	return (size_t)q->nr_nodes * sizeof(*q->nodes);
}

/* False: out of memory. Freed by vfree(q->nodes). */
static inline bool queues_create(struct queues *q, u32 nr_blocks, u32 nr_heads, u32 nr_markers)
{
	u32 i;

	q->nr_blocks = nr_blocks;
	q->nr_heads = nr_heads;
	q->nr_nodes = nr_blocks + nr_markers;
	q->nodes = vzalloc(queues_bytes(q));
	if (!q->nodes)
		return false;
	for (i = 0; i < q->nr_nodes; i++)
		q->nodes[i].next = NONE;
	for (i = queues_marker(q, 0); is_head(q, i); i++) {
		q->nodes[i].prev = i;
		q->nodes[i].next = i;
	}
	return true;
}

static inline u32 queues_stamp_of(const void *q, u32 i)
{
	return ((const struct queues *)q)->nodes[i].state >> QUEUES_STATE_BITS;
}

/* Sorts what follows node start by the stamps. Only blocks may be there. */
static inline void queues_sort(struct queues *q, u32 start, u32 head)
{
	chain_sort(&q->buckets, q->nodes, start, head, queues_stamp_of, q);
}

/* A walk that has come to the end of a queue goes on in the next. */
static inline u32 queues_walk_on(struct queues *q, u32 marker)
{
	u32 i = advance_marker(q, marker);

	while (is_head(q, i)) {
		if (!is_head(q, i + 1))
			return NONE;
		put_marker(q, marker, i + 1);
		i = advance_marker(q, marker);
	}
	return i;
}

/*
 * The operation walk. A walk in progress owns one of a few markers; the cursor says which
 * one, and that it is still this walk's. A walk too many ends the oldest.
 */
static inline unsigned int queues_walk(struct queues *q, u64 *cursor, unsigned int n,
				       pc_cblock_t *out)
{
	unsigned int slot, got = 0;
	u32 marker;

	if (!*cursor) {
		if (!++q->last_walk_id)
			q->last_walk_id = 1;
		*cursor = q->last_walk_id;
		slot = q->last_walk_id % QUEUES_WALKS;
		q->walk_id[slot] = q->last_walk_id;
		marker = queues_marker(q, q->nr_heads + slot);
		put_marker(q, marker, queues_marker(q, 0));
	} else {
		slot = (u32)*cursor % QUEUES_WALKS;
		marker = queues_marker(q, q->nr_heads + slot);
		if (q->walk_id[slot] != *cursor || !is_linked(q, marker))
			return 0;
	}

	while (got < n) {
		u32 block = queues_walk_on(q, marker);

		if (block == NONE)
			break;
		out[got++] = pc_cblock(block);
	}
	if (!got)
		detach_marker(q, marker);
	return got;
}

#endif
