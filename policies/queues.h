/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Queues of cache blocks for policies that have several, linked by 32-bit numbers, and
 * the rounds of victims() over them.
 *
 * A node for each cache block, and behind them the markers: first the heads, that of the
 * candidates and those of the queues, in the order of a walk, then one for each walk in
 * progress, the load point and the victims' place. A marker keeps its place while blocks
 * move around it. A block's state starts, from bit QUEUES_STATE_BITS on, with a stamp
 * that grows along its queue; below is QUEUES_OFFERED, and the bits below that are the
 * policy's. 16 bytes a block. Stamps count entries, those of queue 0 apart from those of
 * all others.
 *
 * Candidates for demotion move to a list of their own, so that a round of victims()
 * starts with those that were refused. Functions that are given a block's queue need it
 * from the policy, which alone knows it from the state.
 *
 * Included by policy files only; allocates in queues_create(), else as policy.h says.
 */
#ifndef PC_QUEUES_H
#define PC_QUEUES_H

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "block-types.h"
#include "chain.h"

#define QUEUES_MAX_BLOCKS (1u << 30)
#define QUEUES_WALKS 4u
#define QUEUES_STATE_BITS 4
#define QUEUES_STAMP_MASK (U32_MAX >> QUEUES_STATE_BITS)
/* in the state: is among the candidates */
#define QUEUES_OFFERED (1u << (QUEUES_STATE_BITS - 1))
#define QUEUES_MAX 4u

struct queue_node {
	u32 prev;
	u32 next;	/* NONE: in no queue */
	u32 ahead;	/* a block that entered some entries later */
	u32 state;
};

struct queues {
	u32 nr_blocks;
	u32 nr_heads;
	u32 nr_nodes;
	unsigned int stamp_shift;
	u32 entered[2];			/* counts what entered queue 0, the others; from nr_blocks on */

	u32 held;
	u32 size[QUEUES_MAX];		/* blocks, those among the candidates included */
	u32 loaded;			/* without a hint; stamps up to nr_blocks are for these */
	bool has_hints;

	/* the victims' round */
	u32 gone[QUEUES_MAX];		/* of size, offered in this round and not removed yet */
	u32 offered;
	u32 refused;			/* offered and not removed */
	u32 removed;			/* since the round began */

	u32 walk_id[QUEUES_WALKS];	/* which walk owns the marker */
	u32 last_walk_id;
	struct queue_node *nodes;
	struct chain_recent recent[QUEUES_MAX];
	struct chain_buckets buckets;	/* scratch of queues_sort() */
};

/* Markers; queue n's head: next is the coldest, prev the hottest. */
static inline u32 queues_candidates(const struct queues *q)
{
	return q->nr_blocks;
}

static inline u32 queues_head(const struct queues *q, unsigned int n)
{
	return q->nr_blocks + 1 + n;
}

static inline u32 queues_walk_marker(const struct queues *q, unsigned int slot)
{
	return q->nr_blocks + q->nr_heads + slot;
}

/* Before it load() puts blocks without a hint. */
static inline u32 queues_load_point(const struct queues *q)
{
	return queues_walk_marker(q, QUEUES_WALKS);
}

/* Among the candidates: what lies before it was offered in this round. */
static inline u32 queues_victim_place(const struct queues *q)
{
	return queues_load_point(q) + 1;
}

static inline bool is_head(const struct queues *q, u32 i)
{
	return i >= q->nr_blocks && i < q->nr_blocks + q->nr_heads;
}

static inline bool is_walk(const struct queues *q, u32 i)
{
	return i >= queues_walk_marker(q, 0) && i < queues_walk_marker(q, QUEUES_WALKS);
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

/* The numbers alone: for what depends on them. */
static inline void queues_init(struct queues *q, u32 nr_blocks, u32 nr_queues)
{
	q->nr_blocks = nr_blocks;
	q->nr_heads = 1 + nr_queues;
	q->nr_nodes = queues_victim_place(q) + 1;
	q->entered[0] = nr_blocks;
	q->entered[1] = nr_blocks;
	/* a block may stay for 16 times as many entries as there are blocks, at least */
	while (nr_blocks >> q->stamp_shift > QUEUES_STAMP_MASK >> 4 &&
	       q->stamp_shift < QUEUES_STATE_BITS)
		q->stamp_shift++;
}

/* After queues_init(). load_into: that queue has the load point. False: out of memory. */
static inline bool queues_create(struct queues *q, unsigned int load_into)
{
	u32 i;

	q->nodes = vzalloc(queues_bytes(q));
	if (!q->nodes)
		return false;
	for (i = 0; i < q->nr_nodes; i++)
		q->nodes[i].next = NONE;
	for (i = queues_candidates(q); is_head(q, i); i++) {
		q->nodes[i].prev = i;
		q->nodes[i].next = i;
	}
	put_marker(q, queues_load_point(q), queues_head(q, load_into));
	return true;
}

static inline void queues_destroy(struct queues *q)
{
	vfree(q->nodes);
}

/* Stamps and sizes */

/* The stamp of what enters queue n now. */
static inline u32 queues_now(const struct queues *q, unsigned int n)
{
	return q->entered[n > 0] >> q->stamp_shift;
}

/* When a block of queue n entered it, counted back from now, in units of the stamps. */
static inline u32 queues_age(const struct queues *q, u32 i, unsigned int n)
{
	return (queues_now(q, n) - (q->nodes[i].state >> QUEUES_STATE_BITS)) & QUEUES_STAMP_MASK;
}

static inline void queues_set_state(struct queues *q, u32 i, u32 stamp, u32 bits)
{
	q->nodes[i].state = stamp << QUEUES_STATE_BITS | bits;
}

/* Blocks are noted in the order in which they follow each other in queue n. */
static inline void queues_note_last(struct queues *q, u32 i, unsigned int n)
{
	q->nodes[chain_note_last(&q->recent[n], i)].ahead = i;
}

/* A block that is in no list becomes the hottest of queue n. bits: the policy's. */
static inline void queues_enter(struct queues *q, u32 i, unsigned int n, u32 bits)
{
	q->entered[n > 0]++;
	queues_set_state(q, i, queues_now(q, n), bits);
	link_before(q, i, queues_head(q, n));
	q->size[n]++;
	queues_note_last(q, i, n);
}

static inline void queues_leave(struct queues *q, u32 i, unsigned int n)
{
	detach(q, i);
	q->size[n]--;
	if (q->nodes[i].state & QUEUES_OFFERED && q->gone[n])
		q->gone[n]--;
}

/* The block is removed: after it left. */
static inline void queues_note_removed(struct queues *q)
{
	q->held--;
	q->removed++;
	if (q->refused)
		q->refused--;
}

/* Loading: into queue n by a hint, to be sorted by the stamp; or before the load point. */
static inline void queues_load_hinted(struct queues *q, u32 i, unsigned int n, u32 stamp, u32 bits)
{
	q->has_hints = true;
	q->held++;
	q->size[n]++;
	queues_set_state(q, i, stamp & QUEUES_STAMP_MASK, bits);
	link_before(q, i, queues_head(q, n));
}

static inline void queues_load(struct queues *q, u32 i, unsigned int n, u32 bits)
{
	q->held++;
	q->size[n]++;
	if (q->loaded < q->nr_blocks)
		q->loaded++;
	queues_set_state(q, i, q->loaded >> q->stamp_shift, bits);
	link_before(q, i, queues_load_point(q));
	queues_note_last(q, i, n);
}

/* Before a sort: only blocks may follow the load point. */
static inline void queues_end_walks_and_round(struct queues *q)
{
	u32 m;

	for (m = queues_walk_marker(q, 0); m < q->nr_nodes; m++)
		if (m != queues_load_point(q))
			detach_marker(q, m);
}

static inline u32 queues_stamp_of(const void *q, u32 i)
{
	return ((const struct queues *)q)->nodes[i].state >> QUEUES_STATE_BITS;
}

/* Sorts what follows node start, of queue n, by the stamps. Only blocks may be there. */
static inline void queues_sort(struct queues *q, u32 start, unsigned int n)
{
	chain_sort(&q->buckets, q->nodes, start, queues_head(q, n), queues_stamp_of, q);
}

/* Victims */

/*
 * After a removal those refused come first again, but only once there was one for every
 * 16 of them: dirty blocks must not be offered anew for each block that is demoted
 * behind them. A round ends with as many offers as there are blocks.
 */
static inline void queues_begin_round(struct queues *q)
{
	if (is_linked(q, queues_victim_place(q)) && (!q->removed || q->removed < q->refused / 16))
		return;
	put_marker(q, queues_victim_place(q), queues_candidates(q));
	memset(q->gone, 0, sizeof(q->gone));
	q->offered = 0;
	q->refused = 0;
	q->removed = 0;
}

static inline bool queues_all_offered(const struct queues *q)
{
	return q->offered >= q->held;
}

static inline void queues_end_round(struct queues *q)
{
	detach_marker(q, queues_victim_place(q));
}

/* The next block that was refused in another round, or NONE. */
static inline u32 queues_refused(const struct queues *q)
{
	u32 i = block_after(q, queues_victim_place(q));

	return is_head(q, i) ? NONE : i;
}

/* The coldest block of queue n that is no candidate yet, or NONE. */
static inline u32 queues_coldest(const struct queues *q, unsigned int n)
{
	u32 i = block_after(q, queues_head(q, n));

	return is_head(q, i) ? NONE : i;
}

/* The coldest blocks are taken one after the other: what has to be there soon. */
static inline void queues_fetch_ahead(const struct queues *q, u32 i)
{
	prefetchw(q->nodes + q->nodes[i].ahead);
}

/* Moves the candidate, of queue n, behind those that were offered in this round. */
static inline void queues_offer(struct queues *q, u32 i, unsigned int n)
{
	detach(q, i);
	link_before(q, i, queues_victim_place(q));
	q->nodes[i].state |= QUEUES_OFFERED;
	q->gone[n]++;
	q->offered++;
	q->refused++;
}

/* Walks */

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
		marker = queues_walk_marker(q, slot);
		put_marker(q, marker, queues_candidates(q));
	} else {
		slot = (u32)*cursor % QUEUES_WALKS;
		marker = queues_walk_marker(q, slot);
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
