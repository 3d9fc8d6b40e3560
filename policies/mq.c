// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy mq: multi-queue (Zhou, Philbin, Li, "The Multi-Queue replacement algorithm
 * for second level buffer caches", USENIX ATC 2001).
 *
 * LRU queues, 8 unless told otherwise; a block is in queue log2(references). What was
 * not used for `lifetime` falls to the next lower queue. Victims are the coldest of the
 * lowest queue. 16 bytes a block; ghosts remember the references of about twice the
 * cache's blocks (the paper has four times; in 8 bytes a block there is no room for more).
 * Where we differ from the paper:
 *
 * - Time passes with hits and with misses of ghosts, not with blocks never seen: a scan,
 *   however long, makes no block old.
 * - A miss of a ghost in a full cache makes a block of the upper queues the next victim,
 *   the longest idle (in queue q, idle for t, it counts t / (q + 4)); so does any miss
 *   while these hold over 7/8 of the cache. Else new blocks would push each other out.
 * - lifetime 0 adapts it: 7/8 of the distances between uses of a block that was used
 *   before are below it (the paper looks for their peak). 1 to 16 times the cache's blocks.
 *
 * Keys of dm-cache's mq: read_promote_adjustment and write_promote_adjustment are the
 * misses that a read or write needs to be admitted (0 and 1: the first; at most 255
 * count). The three that the key "inert" names are kept and have no effect: streams and
 * discards are the core's.
 *
 * The hint is references, queue and rank: order survives a restart to within 1/16384 of
 * the cache, beyond 48 times its blocks not at all. Context and locking: policy.h.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "chain.h"
#include "ghosts.h"
#include "policy.h"

#define MAX_CBLOCKS (1u << 30)
#define NR_QUEUES 8u
#define NR_WALKS 4u

/* a test overrides this to see the stamps wrap */
#ifndef PC_MQ_STAMP_BITS
#define PC_MQ_STAMP_BITS 20
#endif

/* struct node's state: stamp in the low bits, above it queue + 1, above them references */
#define STAMP_BITS PC_MQ_STAMP_BITS
#define STAMP_MASK ((1u << STAMP_BITS) - 1)
#define QUEUE_SHIFT 20
#define QUEUE_MASK 0xfu
#define REFS_SHIFT 24
#define MAX_REFS 255u
/* what is older counts as just so old; refresh() sees to it before stamps wrap */
#define OLDEST (STAMP_MASK / 4 * 3)
/* a stamp counts time in units; to as many accesses as blocks go this many, or twice */
#define UNITS_PER_CACHE_BITS (STAMP_BITS - 6)
/* in blocks of the cache; half the range of stamps */
#define MAX_LIFETIME 16u
#define FINE_SHIFT 8
/* accesses between two looks for expired blocks, two distances, two new lifetimes */
#define EXPIRE_EVERY 4u
#define SAMPLE_EVERY 16u
#define LEARN_EVERY 128u

#define GHOST_REFS_BITS 8

struct node {
	u32 prev;
	u32 next;
	u32 ahead;	/* a block that came to its queue a little later */
	u32 state;	/* 0: not held */
};

/* A place in the queues that is kept while blocks come and go. */
enum place {
	LOAD,		/* load() without a hint puts blocks before it */
	VICTIM,		/* what lies before it was offered in this round */
	WALK,
	NR_PLACES = WALK + NR_WALKS,
};

enum tunable {
	LIFETIME,
	QUEUES,
	READ_PROMOTE,
	WRITE_PROMOTE,
	SEQUENTIAL,
	RANDOM,
	DISCARD_PROMOTE,
	NR_TUNABLES,
};

struct mq {
	struct pc_policy policy;
	u32 nr_cblocks;
	struct node *nodes;	/* behind those of blocks: a head for each queue */
	u32 upper;		/* blocks in all queues but the lowest */
	u32 held;
	u32 loaded;		/* without a hint */

	u64 time;		/* in re-references */
	u32 unit_shift;		/* log2 of the accesses in a unit of stamps */
	u32 lifetime;		/* in units */
	u32 refreshed;		/* cblock that refresh() has come to */
	u32 fine_lifetime;	/* in fractions of a unit */

	u32 place[NR_PLACES];	/* the node that comes next; a head: none in its queue */
	u32 nr_places;		/* those in use: without walks, or all */
	u64 walk_id[NR_WALKS];	/* which walk owns the place; 0: none */
	u64 last_walk_id;
	u32 walk_patience;	/* insertions for which a walk is left in peace */

	/* the victims' round */
	bool in_round;
	u32 offered;
	u32 refused;		/* offered and not removed */
	u32 removed;		/* since the round began */

	u32 tunables[NR_TUNABLES];
	struct ghosts ghosts;	/* fingerprint << 8 | references, newest first in its set */

	struct chain_recent recent[NR_QUEUES];
	struct chain_buckets buckets;	/* scratch of loaded() */
};

static struct mq *to_mq(struct pc_policy *p)
{
	return container_of(p, struct mq, policy);
}

/* State of a block */

static bool is_held(const struct mq *mq, u32 i)
{
	return mq->nodes[i].state;
}

static u32 refs_of(const struct mq *mq, u32 i)
{
	return mq->nodes[i].state >> REFS_SHIFT;
}

static u32 queue_of(const struct mq *mq, u32 i)
{
	return (mq->nodes[i].state >> QUEUE_SHIFT & QUEUE_MASK) - 1;
}

static u32 now(const struct mq *mq)
{
	return mq->time >> mq->unit_shift;
}

static u32 age_of(const struct mq *mq, u32 i)
{
	return min((now(mq) - mq->nodes[i].state) & STAMP_MASK, OLDEST);
}

static void set_state(struct mq *mq, u32 i, u32 q, u32 refs, u32 age)
{
	mq->nodes[i].state = refs << REFS_SHIFT | (q + 1) << QUEUE_SHIFT |
			     ((now(mq) - age) & STAMP_MASK);
}

/* Where a block with so many references belongs. */
static u32 queue_for(const struct mq *mq, u32 refs)
{
	return min((u32)ilog2(refs), mq->tunables[QUEUES] - 1);
}

/* Units since its last use: each queue that it fell was a lifetime. */
static u32 idle_time(const struct mq *mq, u32 i)
{
	u32 up = queue_for(mq, refs_of(mq, i)), q = queue_of(mq, i);

	return age_of(mq, i) + (max(up, q) - q) * mq->lifetime;
}

/* Queues: from the cold end, head.next, to the hot end, head.prev */

static u32 head(const struct mq *mq, u32 q)
{
	return mq->nr_cblocks + q;
}

static bool is_head(const struct mq *mq, u32 i)
{
	return i >= mq->nr_cblocks;
}

static u32 coldest(const struct mq *mq, u32 q)
{
	return mq->nodes[head(mq, q)].next;
}

/* Places at from go on at to. A conditional move would wait for the last hit's memory. */
static void shift_places(struct mq *mq, u32 from, u32 to)
{
	unsigned int k;

	for (k = 0; k < mq->nr_places; k++) {
		if (unlikely(mq->place[k] == from)) {
			mq->place[k] = to;
			barrier();
		}
	}
}

/* The caller sets the state, which says what queue next is in. */
static __always_inline void link_before(struct mq *mq, u32 i, u32 next)
{
	u32 prev = mq->nodes[next].prev;

	mq->nodes[i].prev = prev;
	mq->nodes[i].next = next;
	mq->nodes[prev].next = i;
	mq->nodes[next].prev = i;
}

static __always_inline void unlink_block(struct mq *mq, u32 i)
{
	struct node *n = mq->nodes + i;

	mq->upper -= queue_of(mq, i) > 0;
	mq->nodes[n->prev].next = n->next;
	mq->nodes[n->next].prev = n->prev;
}

static __always_inline void detach(struct mq *mq, u32 i)
{
	unlink_block(mq, i);
	shift_places(mq, i, mq->nodes[i].next);
	mq->nodes[i].state = 0;
}

/* Blocks are noted in the order in which they follow each other in q. */
static __always_inline void note_last(struct mq *mq, u32 i, u32 q)
{
	mq->nodes[chain_note_last(&mq->recent[q], i)].ahead = i;
}

/* To the hot end of q. */
static __always_inline void append(struct mq *mq, u32 i, u32 q, u32 refs, u32 age)
{
	link_before(mq, i, head(mq, q));
	set_state(mq, i, q, refs, age);
	note_last(mq, i, q);
	mq->upper += q > 0;
	/* who waits at the end sees what comes */
	shift_places(mq, head(mq, q), i);
}

/* To the cold end of the lowest queue, where it is offered next. */
static void make_coldest(struct mq *mq, u32 i)
{
	u32 refs = refs_of(mq, i), age = idle_time(mq, i);

	detach(mq, i);
	/* stamps grow along a queue */
	if (coldest(mq, 0) != head(mq, 0))
		age = max(age, age_of(mq, coldest(mq, 0)));
	link_before(mq, i, coldest(mq, 0));
	set_state(mq, i, 0, refs, min(age, OLDEST));
}

/* The place's next block, or NONE at the end of the highest queue. */
static u32 advance(struct mq *mq, enum place k)
{
	u32 i = mq->place[k];

	while (is_head(mq, i)) {
		if (i == head(mq, NR_QUEUES - 1))
			return NONE;
		i = coldest(mq, i - mq->nr_cblocks + 1);
	}
	prefetchw(mq->nodes + mq->nodes[i].ahead);
	mq->place[k] = mq->nodes[i].next;
	return i;
}

/* Time */

/* The coldest becomes the hottest of the next lower queue: nothing between, places stay. */
static void expire(struct mq *mq)
{
	u32 q;

	for (q = 1; q < NR_QUEUES; q++) {
		u32 i = coldest(mq, q);

		if (is_head(mq, i) || age_of(mq, i) <= mq->lifetime)
			continue;
		unlink_block(mq, i);
		append(mq, i, q - 1, refs_of(mq, i), 0);
	}
}

/* One block after the other, all before the oldest stamps wrap. */
static void refresh(struct mq *mq)
{
	u32 i = mq->refreshed;

	if (is_held(mq, i) && age_of(mq, i) == OLDEST)
		set_state(mq, i, queue_of(mq, i), refs_of(mq, i), OLDEST);
	mq->refreshed = i + 1 < mq->nr_cblocks ? i + 1 : 0;
}

static void pass_time(struct mq *mq)
{
	if (++mq->time % EXPIRE_EVERY)
		return;
	expire(mq);
	refresh(mq);
	/* seldom: expire() would wait for the memory of all hits before */
	if (!(mq->time % LEARN_EVERY))
		mq->lifetime = mq->fine_lifetime >> FINE_SHIFT;
}

static u32 cache_units(const struct mq *mq)
{
	return max(mq->nr_cblocks >> mq->unit_shift, 1u);
}

/*
 * A block that had been used again before is used again. Up by 7 steps for a distance
 * above the lifetime (it fell, or should have), down by one for another: it settles where
 * 7/8 are below. No branches, since one that nobody can foretell costs more than all of it.
 */
static void learn_distance(struct mq *mq, u32 i, u32 refs)
{
	u32 least = cache_units(mq) << FINE_SHIFT;
	u32 step = max(mq->fine_lifetime >> 10, 1u) * (refs > 1);
	bool is_longer = (queue_of(mq, i) < queue_for(mq, refs)) | (age_of(mq, i) > mq->lifetime);
	u32 fine = mq->fine_lifetime - step + step * 8 * is_longer;

	if (mq->tunables[LIFETIME])
		return;
	mq->fine_lifetime = clamp(fine, least, least * MAX_LIFETIME);
}

/* Ghosts: blocks that are not cached, and their references */

static unsigned int ghost_find(const u32 *set, u32 hash)
{
	unsigned int k, found = GHOST_WAYS;

	/* no entry is 0 but an empty one, for none has no references; no early end, no guess */
	for (k = 0; k < GHOST_WAYS; k++)
		if (((set[k] ^ hash << GHOST_REFS_BITS) <= MAX_REFS) & (set[k] != 0))
			found = k;
	return found;
}

/* Returns the references, 0: not known. */
static u32 ghost_take(struct mq *mq, u32 hash)
{
	u32 refs, *set = ghosts_set(&mq->ghosts, hash);
	u32 *late = ghosts_find_late(&mq->ghosts, hash);
	unsigned int k;

	if (late) {
		refs = *late & MAX_REFS;
		*late = 0;
		return refs;
	}
	k = ghost_find(set, hash);
	if (k == GHOST_WAYS)
		return 0;
	refs = set[k] & MAX_REFS;
	memmove(set + k, set + k + 1, (GHOST_WAYS - 1 - k) * sizeof(*set));
	set[GHOST_WAYS - 1] = 0;
	return refs;
}

static void ghost_add(struct mq *mq, u32 hash, u32 refs)
{
	u32 ghost = hash << GHOST_REFS_BITS | refs, *set;
	unsigned int k;

	ghosts_add_late(&mq->ghosts, &hash, &ghost);
	if (!ghost)
		return;
	set = ghosts_set(&mq->ghosts, hash);
	k = min(ghost_find(set, hash), GHOST_WAYS - 1);
	memmove(set + 1, set, k * sizeof(*set));
	set[0] = ghost;
}

static size_t node_bytes(const struct mq *mq)
{
	return ((size_t)mq->nr_cblocks + NR_QUEUES) * sizeof(*mq->nodes);
}

/* Operations */

static void mq_destroy(struct pc_policy *p)
{
	struct mq *mq = to_mq(p);

	ghosts_destroy(&mq->ghosts);
	vfree(mq->nodes);
	kfree(mq);
}

static const struct {
	const char *key;
	u32 initial;		/* of the last three: dm-cache's */
} tunables[NR_TUNABLES] = {
	[LIFETIME] = { "lifetime", 0 },
	[QUEUES] = { "queues", NR_QUEUES },
	[READ_PROMOTE] = { "read_promote_adjustment", 1 },
	[WRITE_PROMOTE] = { "write_promote_adjustment", 1 },
	[SEQUENTIAL] = { "sequential_threshold", 512 },
	[RANDOM] = { "random_threshold", 4 },
	[DISCARD_PROMOTE] = { "discard_promote_adjustment", 1 },
};

/* 0: it adapts, from what is the least on */
static void set_lifetime(struct mq *mq, u32 accesses)
{
	mq->lifetime = accesses ? max(accesses >> mq->unit_shift, 1u) : cache_units(mq);
	mq->fine_lifetime = mq->lifetime << FINE_SHIFT;
}

static struct pc_policy *mq_create(const struct pc_policy_type *type,
				   const struct pc_policy_params *params)
{
	struct mq *mq;
	u32 i;

	if (!params->nr_cblocks || params->nr_cblocks > MAX_CBLOCKS)
		return NULL;

	mq = kzalloc(sizeof(*mq), GFP_KERNEL);
	if (!mq)
		return NULL;
	mq->policy.type = type;
	mq->nr_cblocks = params->nr_cblocks;
	i = ilog2(mq->nr_cblocks);
	mq->unit_shift = i > UNITS_PER_CACHE_BITS ? i - UNITS_PER_CACHE_BITS : 0;
	set_lifetime(mq, 0);
	for (i = 0; i < NR_TUNABLES; i++)
		mq->tunables[i] = tunables[i].initial;

	mq->nodes = vzalloc(node_bytes(mq));
	if (!ghosts_create(&mq->ghosts, params->nr_cblocks) || !mq->nodes) {
		mq_destroy(&mq->policy);
		return NULL;
	}

	for (i = mq->nr_cblocks; i < mq->nr_cblocks + NR_QUEUES; i++) {
		mq->nodes[i].prev = i;
		mq->nodes[i].next = i;
	}
	for (i = 0; i < NR_PLACES; i++)
		mq->place[i] = NONE;
	mq->place[LOAD] = head(mq, 0);
	mq->nr_places = WALK;
	return &mq->policy;
}

static void mq_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
		    bool has_hint, u32 hint)
{
	struct mq *mq = to_mq(p);
	u32 i = pc_from_cblock(c), q = hint >> QUEUE_SHIFT & QUEUE_MASK;

	if (is_held(mq, i))
		return;
	mq->held++;
	if (has_hint) {
		append(mq, i, clamp(q, 1u, NR_QUEUES) - 1, max(hint >> REFS_SHIFT, 1u),
		       min(STAMP_MASK - (hint & STAMP_MASK), OLDEST));
		return;
	}
	/* colder than all that was used, in the order of the calls */
	link_before(mq, i, mq->place[LOAD]);
	set_state(mq, i, 0, 1, OLDEST - min(mq->loaded >> mq->unit_shift, OLDEST));
	note_last(mq, i, 0);
	if (mq->loaded < mq->nr_cblocks)
		mq->loaded++;
}

/* The longest unused first. */
static u32 rank_of(const void *mq, u32 i)
{
	return STAMP_MASK - age_of(mq, i);
}

static void mq_loaded(struct pc_policy *p)
{
	struct mq *mq = to_mq(p);
	unsigned int k;
	u32 i;

	for (k = 0; k < NR_QUEUES; k++) {
		chain_sort(&mq->buckets, mq->nodes, head(mq, k), head(mq, k), rank_of, mq);
		for (i = coldest(mq, k); !is_head(mq, i); i = mq->nodes[i].next)
			note_last(mq, i, k);
	}
	mq->in_round = false;
	for (k = 0; k < NR_WALKS; k++)
		mq->walk_id[k] = 0;
	mq->place[LOAD] = coldest(mq, 0);
}

static void mq_expect(struct pc_policy *p, pc_cblock_t c)
{
	prefetchw(to_mq(p)->nodes + pc_from_cblock(c));
}

static void mq_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct mq *mq = to_mq(p);
	u32 i = pc_from_cblock(c), refs, q;

	if (!is_held(mq, i))
		return;
	refs = refs_of(mq, i);
	if (!(mq->time % SAMPLE_EVERY))
		learn_distance(mq, i, refs);
	refs += refs < MAX_REFS;
	q = queue_for(mq, refs);
	if (unlikely(is_head(mq, mq->nodes[i].next)) && q == queue_of(mq, i)) {
		set_state(mq, i, q, refs, 0);
	} else {
		detach(mq, i);
		append(mq, i, q, refs, 0);
	}
	pass_time(mq);
}

static bool counts_misses(const struct mq *mq)
{
	return mq->tunables[READ_PROMOTE] > 1 || mq->tunables[WRITE_PROMOTE] > 1;
}

static enum pc_verdict mq_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
			       unsigned int flags)
{
	struct mq *mq = to_mq(p);
	u32 need = min(mq->tunables[dir == PC_WRITE ? WRITE_PROMOTE : READ_PROMOTE], MAX_REFS);
	u32 refs;

	if (!counts_misses(mq)) {
		/* inserted() will look for a ghost */
		ghosts_fetch(&mq->ghosts, hash_oblock(o));
		return PC_ADMIT;
	}
	if (need > 1 && flags & (PC_MISS_SEQUENTIAL | PC_MISS_PREFETCH))
		return PC_BYPASS;
	refs = min(ghost_take(mq, hash_oblock(o)) + 1, MAX_REFS);
	ghost_add(mq, hash_oblock(o), refs);
	return refs >= need ? PC_ADMIT : PC_BYPASS;
}

/* The longest idle of the upper queues; the higher its queue, the longer it may be. */
static void demote_longest_idle(struct mq *mq)
{
	u32 q, idle, longest = 0, best = NONE;

	for (q = 1; q < NR_QUEUES; q++) {
		u32 i = coldest(mq, q);

		if (is_head(mq, i))
			continue;
		idle = idle_time(mq, i) * 16 / (q + 4);
		if (best == NONE || idle > longest) {
			longest = idle;
			best = i;
		}
	}
	/* a walk could miss it */
	if (mq->walk_patience)
		mq->walk_patience--;
	else if (best != NONE)
		make_coldest(mq, best);
}

static void mq_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct mq *mq = to_mq(p);
	u32 i = pc_from_cblock(c), hash = hash_oblock(o), refs;

	if (is_held(mq, i))
		return;
	refs = ghost_take(mq, hash);
	if (refs)
		pass_time(mq);
	if ((refs && mq->held >= mq->nr_cblocks - mq->nr_cblocks / 16 - 1) ||
	    mq->upper > mq->nr_cblocks - mq->nr_cblocks / 8)
		demote_longest_idle(mq);

	/* a miss that was counted is among the references already */
	if (!refs || !counts_misses(mq))
		refs = min(refs + 1, MAX_REFS);
	mq->held++;
	append(mq, i, queue_for(mq, refs), refs, 0);
}

static void mq_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct mq *mq = to_mq(p);
	u32 i = pc_from_cblock(c);

	if (!is_held(mq, i))
		return;
	ghost_add(mq, hash_oblock(o), refs_of(mq, i));
	detach(mq, i);
	mq->held--;
	mq->removed++;
	if (mq->refused)
		mq->refused--;
}

/*
 * After a removal the coldest come first again, but only once there was one for every
 * 16 blocks refused in this round: a cold end full of dirty blocks must not be offered
 * anew for each block that is demoted behind it. A round ends with as many offers as
 * there are blocks, so that it ends although hits move them.
 */
static unsigned int mq_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct mq *mq = to_mq(p);
	unsigned int got;

	if (!mq->in_round || (mq->removed && mq->removed >= mq->refused / 16)) {
		mq->place[VICTIM] = coldest(mq, 0);
		mq->in_round = true;
		mq->offered = 0;
		mq->refused = 0;
		mq->removed = 0;
	}

	for (got = 0; got < n; got++) {
		u32 i = mq->offered < mq->held ? advance(mq, VICTIM) : NONE;

		if (i == NONE) {
			mq->in_round = false;
			break;
		}
		out[got] = pc_cblock(i);
		mq->offered++;
		mq->refused++;
	}
	return got;
}

/* As the state, with a rank that grows along the queue in place of the stamp. */
static u32 mq_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct mq *mq = to_mq(p);
	u32 i = pc_from_cblock(c);

	if (!is_held(mq, i))
		return 0;
	return (mq->nodes[i].state & ~STAMP_MASK) | (STAMP_MASK - age_of(mq, i));
}

/*
 * A walk in progress owns one of a few places; the cursor says which one, and that it
 * is still this walk's. A walk too many ends the oldest.
 */
static unsigned int mq_walk(struct pc_policy *p, u64 *cursor, unsigned int n, pc_cblock_t *out)
{
	struct mq *mq = to_mq(p);
	unsigned int slot, got;

	if (!*cursor) {
		*cursor = ++mq->last_walk_id;
		slot = *cursor % NR_WALKS;
		mq->walk_id[slot] = *cursor;
		mq->place[WALK + slot] = coldest(mq, 0);
		mq->nr_places = NR_PLACES;
	}
	slot = *cursor % NR_WALKS;
	if (mq->walk_id[slot] != *cursor)
		return 0;

	for (got = 0; got < n; got++) {
		u32 i = advance(mq, WALK + slot);

		if (i == NONE)
			break;
		out[got] = pc_cblock(i);
	}
	mq->walk_patience = got ? mq->nr_cblocks : 0;
	if (!got) {
		mq->walk_id[slot] = 0;
		mq->nr_places = memchr_inv(mq->walk_id, 0, sizeof(mq->walk_id)) ? NR_PLACES : WALK;
	}
	return got;
}

#define INERT_KEY "inert"
#define INERT "sequential_threshold,random_threshold,discard_promote_adjustment"

static int mq_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	struct mq *mq = to_mq(p);
	unsigned int k, n;

	if (!strcmp(key, INERT_KEY)) {
		*why = "only its own value, the keys without effect: " INERT;
		return strcmp(value, INERT) ? -ERANGE : 0;
	}
	for (k = 0; k < NR_TUNABLES; k++)
		if (!strcmp(key, tunables[k].key))
			break;
	if (k == NR_TUNABLES)
		return -EINVAL;
	*why = "a number from 0 to 4294967295";
	if (kstrtouint(value, 10, &n))
		return -ERANGE;
	if (k == QUEUES && (!n || n > NR_QUEUES)) {
		*why = "a number of queues from 1 to 8";
		return -ERANGE;
	}
	if (k == LIFETIME && n > (u64)mq->nr_cblocks * MAX_LIFETIME) {
		*why = "0 (adapt) or accesses, at most 16 times the blocks of the cache";
		return -ERANGE;
	}
	mq->tunables[k] = n;
	if (k == LIFETIME)
		set_lifetime(mq, n);
	return 0;
}

static unsigned int mq_emit(struct pc_policy *p, char *buf, size_t len)
{
	const struct mq *mq = to_mq(p);
	unsigned int k;
	size_t at = 0;

	for (k = 0; k < NR_TUNABLES; k++)
		at += scnprintf(buf + at, len - at, "%s %u ", tunables[k].key, mq->tunables[k]);
	scnprintf(buf + at, len - at, INERT_KEY " " INERT);
	return 2 * NR_TUNABLES + 2;
}

static size_t mq_memory(struct pc_policy *p)
{
	struct mq *mq = to_mq(p);

	return sizeof(*mq) + ghosts_bytes(&mq->ghosts) + node_bytes(mq);
}

static struct pc_policy_type mq_type = {
	.create = mq_create,
	.destroy = mq_destroy,
	.load = mq_load,
	.loaded = mq_loaded,
	.hit = mq_hit,
	.expect = mq_expect,
	.miss = mq_miss,
	.inserted = mq_inserted,
	.removed = mq_removed,
	.victims = mq_victims,
	.hint = mq_hint,
	.walk = mq_walk,
	.set = mq_set,
	.emit = mq_emit,
	.memory = mq_memory,
	.name = "mq",
	.api = PC_POLICY_API,
	.version = 1,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(mq_type, "device-mapper polycache: policy mq");
