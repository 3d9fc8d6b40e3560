// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy s3fifo: three FIFO queues, small, main and ghost (Yang, Zhang, Qiu, Yue,
 * Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023).
 *
 * New blocks enter small, 10 % of the cache. A hit only counts, up to 3; nothing
 * moves. What reaches the cold end of small with promote_hits hits moves to main, the
 * rest is demoted and remembered as a ghost. What reaches the cold end of main is put
 * back with one hit less, or demoted if it had none. A block inserted while its ghost
 * is known goes straight to main. So a scan flows through small and leaves main alone.
 *
 * victims() moves the hands: it passes over what has hits, as said, and offers what has
 * none. An offered block stays where it is until removed(); the hands stand behind all
 * that this round has offered. One call moves at most MAX_MOVES blocks, so that a main
 * full of hits costs no long look under the lock; after that it takes them as they come.
 *
 * A ghost is 22 bits of a hash and 10 bits of age, in sets of 8. An epoch of age is
 * 1/64 of the ghosts; within it they expire in the order of their hashes. The hint is
 * queue, hits and rank, so order survives a restart; ghosts do not. Without a hint (a
 * swap) blocks go to main. 16 bytes a block, and 8 for ghosts.
 *
 * Context and locking: policy.h.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "chain.h"
#include "ghosts.h"
#include "policy.h"

#define MAX_CBLOCKS (1u << 30)
#define MAX_HITS 3u
#define MAX_MOVES 1024u
#define NR_WALKS 4u

/* a test overrides this to see the stamps wrap */
#ifndef PC_S3FIFO_STAMP_BITS
#define PC_S3FIFO_STAMP_BITS 28
#endif

/* struct node's state: stamp in the low bits, above it hits, above them the queue */
#define STAMP_BITS PC_S3FIFO_STAMP_BITS
#define STAMP_MASK ((1u << STAMP_BITS) - 1)
/* what grows older than this counts as just so old, so that ages do not wrap */
#define OLDEST (STAMP_MASK / 4 * 3)
#define HITS_SHIFT 28
#define QUEUE_SHIFT 30

#define EPOCH_BITS 10
#define NR_EPOCHS (1u << EPOCH_BITS)
#define EPOCH_MASK (NR_EPOCHS - 1)
/*
 * A slot must be swept before its epoch's number comes again: the age at which it may
 * still be alive and one sweep of the table together stay below NR_EPOCHS.
 */
#define LIVE_EPOCHS 511u
#define SWEEP_EPOCHS 256u

enum queue {
	SMALL,
	MAIN,
	NR_QUEUES,
};

struct node {
	u32 prev;
	u32 next;
	u32 ahead;	/* a block that came to its queue a little later */
	u32 state;	/* its queue's number + 1, 0: not held; hits; stamp */
};

/* A place in the queues that is kept while blocks come and go. */
enum place {
	HAND_SMALL,	/* what lies before a hand was offered in this round */
	HAND_MAIN,
	WALK,
	NR_PLACES = WALK + NR_WALKS,
};

struct ghost_queue {
	struct ghosts table;	/* fingerprint << EPOCH_BITS | epoch */
	u32 capacity;
	u32 count;		/* alive */
	u32 now;		/* epoch of the newest */
	u32 oldest;		/* epoch of the oldest that are alive */
	u32 cut;		/* of these, lower fingerprints are dead */
	u32 epoch_len;		/* ghosts that make an epoch */
	u32 in_epoch;		/* so far */
	u32 sweep_set;
	u32 sweep_debt;
	u32 alive[NR_EPOCHS];
};

struct s3fifo {
	struct pc_policy policy;
	u32 nr_cblocks;
	struct node *nodes;	/* behind those of blocks: a head for each queue */
	u32 len[NR_QUEUES];
	u32 stamp[NR_QUEUES];	/* the last one given; they grow along the queue */

	u32 place[NR_PLACES];	/* the node that comes next; a head: none */
	u32 nr_places;		/* those in use: without walks, or all */
	u32 walk_id[NR_WALKS];	/* which walk owns the place; 0: none */
	u32 last_walk_id;

	/* the victims' round */
	bool in_round;
	u32 offered[NR_QUEUES];	/* and not removed */
	u32 removed;		/* since the round began */

	u32 main_share;		/* blocks */
	u32 small_percent;
	u32 ghost_percent;
	u32 promote_hits;
	struct ghost_queue ghosts;

	struct chain_recent recent[NR_QUEUES];
	struct chain_buckets buckets;	/* scratch of loaded() */
};

static struct s3fifo *to_s3fifo(struct pc_policy *p)
{
	return container_of(p, struct s3fifo, policy);
}

/* State of a block */

static bool is_held(const struct s3fifo *s, u32 i)
{
	return s->nodes[i].state >> QUEUE_SHIFT;
}

static enum queue queue_of(const struct s3fifo *s, u32 i)
{
	return (s->nodes[i].state >> QUEUE_SHIFT) - 1;
}

static u32 hits_of(const struct s3fifo *s, u32 i)
{
	return s->nodes[i].state >> HITS_SHIFT & MAX_HITS;
}

static u32 stamp_of(const struct s3fifo *s, u32 i)
{
	return s->nodes[i].state & STAMP_MASK;
}

static void set_state(struct s3fifo *s, u32 i, enum queue q, u32 hits, u32 stamp)
{
	s->nodes[i].state = (q + 1) << QUEUE_SHIFT | hits << HITS_SHIFT | (stamp & STAMP_MASK);
}

static u32 age_of(const struct s3fifo *s, u32 i)
{
	return min((s->stamp[queue_of(s, i)] - stamp_of(s, i)) & STAMP_MASK, OLDEST);
}

/* Queues: from the cold end, head.next, to the hot end, head.prev */

static u32 head(const struct s3fifo *s, enum queue q)
{
	return s->nr_cblocks + q;
}

static u32 coldest(const struct s3fifo *s, enum queue q)
{
	return s->nodes[head(s, q)].next;
}

/*
 * Places that stood at from go on at to. Hardly ever one does; a conditional move here
 * would make each access wait for the memory of the one before.
 */
static void shift_places(struct s3fifo *s, u32 from, u32 to)
{
	unsigned int k;

	for (k = 0; k < s->nr_places; k++) {
		if (unlikely(s->place[k] == from)) {
			s->place[k] = to;
			barrier();
		}
	}
}

static void detach(struct s3fifo *s, u32 i)
{
	struct node *n = s->nodes + i;

	s->len[queue_of(s, i)]--;
	s->nodes[n->prev].next = n->next;
	s->nodes[n->next].prev = n->prev;
	shift_places(s, i, n->next);
	n->state = 0;
}

/* Blocks are noted in the order in which they follow each other in q. */
static void note_last(struct s3fifo *s, u32 i, enum queue q)
{
	s->nodes[chain_note_last(&s->recent[q], i)].ahead = i;
}

/* To the hot end of q. */
static void append(struct s3fifo *s, u32 i, enum queue q, u32 hits, u32 stamp)
{
	u32 h = head(s, q);
	u32 prev = s->nodes[h].prev;

	s->nodes[i].prev = prev;
	s->nodes[i].next = h;
	s->nodes[prev].next = i;
	s->nodes[h].prev = i;
	s->len[q]++;
	set_state(s, i, q, hits, stamp);
	note_last(s, i, q);
	/* who waits at the end sees what comes */
	shift_places(s, h, i);
}

static void move(struct s3fifo *s, u32 i, enum queue q, u32 hits)
{
	detach(s, i);
	append(s, i, q, hits, ++s->stamp[q]);
}

/* Ghosts */

/* The bits that do not choose the set; never 0, which is an empty slot's. */
static u32 fingerprint(u32 hash)
{
	return max(hash & (U32_MAX >> EPOCH_BITS), 1u);
}

static u32 ghost_age(const struct ghost_queue *g, u32 slot)
{
	return (g->now - slot) & EPOCH_MASK;
}

/* The oldest epoch dies by and by: those of low fingerprint first. */
static bool ghost_is_alive(const struct ghost_queue *g, u32 slot)
{
	u32 age = ghost_age(g, slot), oldest = (g->now - g->oldest) & EPOCH_MASK;

	return slot && (age < oldest || (age == oldest && slot >> EPOCH_BITS >= g->cut));
}

static void ghost_drop(struct ghost_queue *g, u32 *slot)
{
	u32 *alive = &g->alive[*slot & EPOCH_MASK];

	*slot = 0;
	/* of the oldest epoch it is an estimate */
	if (!*alive)
		return;
	--*alive;
	g->count--;
}

static bool ghost_take(struct ghost_queue *g, u32 hash)
{
	u32 *set = ghosts_set(&g->table, hash), *late = ghosts_find_late(&g->table, hash);
	u32 print = fingerprint(hash);
	unsigned int k;

	if (late && ghost_is_alive(g, *late)) {
		ghost_drop(g, late);
		return true;
	}
	for (k = 0; k < GHOST_WAYS; k++) {
		if (set[k] >> EPOCH_BITS == print && ghost_is_alive(g, set[k])) {
			ghost_drop(g, set + k);
			return true;
		}
	}
	return false;
}

/* A slot for a new ghost: an empty one, else the oldest, which is dead if any is. */
static u32 *ghost_slot(struct ghost_queue *g, u32 hash)
{
	u32 *set = ghosts_set(&g->table, hash);
	u32 k, age, best = 0, best_age = 0;

	for (k = 0; k < GHOST_WAYS; k++) {
		age = set[k] ? ghost_age(g, set[k]) : NR_EPOCHS;
		best = age > best_age ? k : best;
		best_age = max(age, best_age);
	}
	if (ghost_is_alive(g, set[best]))
		ghost_drop(g, set + best);
	return set + best;
}

static void ghost_expire_epoch(struct ghost_queue *g)
{
	g->count -= g->alive[g->oldest];
	g->alive[g->oldest] = 0;
	g->oldest = (g->oldest + 1) & EPOCH_MASK;
	g->cut = 0;
}

/* One ghost less. */
static void ghost_expire(struct ghost_queue *g)
{
	u32 *alive = &g->alive[g->oldest];

	if (*alive) {
		/* its share of the fingerprints that are left */
		g->cut += ((U32_MAX >> EPOCH_BITS) - g->cut) / *alive + 1;
		--*alive;
		g->count--;
	}
	if (!*alive && g->oldest != g->now)
		ghost_expire_epoch(g);
}

/* Whatever the length of an epoch, the whole table is swept in SWEEP_EPOCHS. */
static void ghost_sweep(struct ghost_queue *g)
{
	u32 pace = g->epoch_len * SWEEP_EPOCHS;

	for (g->sweep_debt += g->table.nr_sets; g->sweep_debt >= pace; g->sweep_debt -= pace) {
		u32 *set = g->table.words + (size_t)g->sweep_set * GHOST_WAYS;
		unsigned int k;

		for (k = 0; k < GHOST_WAYS; k++)
			if (!ghost_is_alive(g, set[k]))
				set[k] = 0;
		if (++g->sweep_set == g->table.nr_sets)
			g->sweep_set = 0;
	}
}

static void ghost_add(struct ghost_queue *g, u32 hash)
{
	u32 ghost = fingerprint(hash) << EPOCH_BITS | g->now;

	ghosts_add_late(&g->table, &hash, &ghost);
	if (ghost && ghost_is_alive(g, ghost))
		*ghost_slot(g, hash) = ghost;
	g->alive[g->now]++;
	g->count++;
	while (g->count > g->capacity)
		ghost_expire(g);

	ghost_sweep(g);
	if (++g->in_epoch < g->epoch_len)
		return;
	g->in_epoch = 0;
	g->now = (g->now + 1) & EPOCH_MASK;
	if (((g->now - g->oldest) & EPOCH_MASK) > LIVE_EPOCHS)
		ghost_expire_epoch(g);
}

static size_t node_bytes(const struct s3fifo *s)
{
	return ((size_t)s->nr_cblocks + NR_QUEUES) * sizeof(*s->nodes);
}

/* Never 0, and never more than there are blocks. */
static u32 share(const struct s3fifo *s, u32 percent)
{
	return max((u32)((u64)s->nr_cblocks * percent / 100), 1u);
}

static void apply_shares(struct s3fifo *s)
{
	s->main_share = s->nr_cblocks - share(s, s->small_percent);
	s->ghosts.capacity = share(s, s->ghost_percent);
	s->ghosts.epoch_len = max(s->ghosts.capacity / 64, 1u);
}

/* Operations */

static void s3fifo_destroy(struct pc_policy *p)
{
	struct s3fifo *s = to_s3fifo(p);

	ghosts_destroy(&s->ghosts.table);
	vfree(s->nodes);
	kfree(s);
}

static struct pc_policy *s3fifo_create(const struct pc_policy_type *type,
				       const struct pc_policy_params *params)
{
	struct s3fifo *s;
	enum queue q;

	if (!params->nr_cblocks || params->nr_cblocks > MAX_CBLOCKS)
		return NULL;

	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return NULL;
	s->policy.type = type;
	s->nr_cblocks = params->nr_cblocks;
	s->small_percent = 10;
	s->ghost_percent = 90;
	s->promote_hits = 2;
	apply_shares(s);

	s->nodes = vzalloc(node_bytes(s));
	if (!ghosts_create(&s->ghosts.table, params->nr_cblocks) || !s->nodes) {
		s3fifo_destroy(&s->policy);
		return NULL;
	}

	for (q = 0; q < NR_QUEUES; q++) {
		s->nodes[head(s, q)].prev = head(s, q);
		s->nodes[head(s, q)].next = head(s, q);
		s->place[HAND_SMALL + q] = head(s, q);
	}
	s->nr_places = WALK;
	return &s->policy;
}

static void s3fifo_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
			bool has_hint, u32 hint)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 i = pc_from_cblock(c);

	if (is_held(s, i))
		return;
	/* stamps count from 1, ranks of hints from far above: those without are colder */
	if (!has_hint)
		append(s, i, MAIN, 0, ++s->stamp[MAIN]);
	else
		append(s, i, hint >> QUEUE_SHIFT == SMALL + 1 ? SMALL : MAIN,
		       hint >> HITS_SHIFT & MAX_HITS, hint);
}

static u32 rank_of(const void *s, u32 i)
{
	return stamp_of(s, i);
}

static void sort_queue(struct s3fifo *s, enum queue q)
{
	u32 end = head(s, q), i;

	chain_sort(&s->buckets, s->nodes, end, end, rank_of, s);
	for (i = coldest(s, q); i != end; i = s->nodes[i].next) {
		set_state(s, i, q, hits_of(s, i), ++s->stamp[q]);
		note_last(s, i, q);
	}
}

static void s3fifo_loaded(struct pc_policy *p)
{
	struct s3fifo *s = to_s3fifo(p);
	unsigned int k;

	s->in_round = false;
	for (k = 0; k < NR_WALKS; k++)
		s->walk_id[k] = 0;
	sort_queue(s, SMALL);
	sort_queue(s, MAIN);
}

static void s3fifo_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 i = pc_from_cblock(c);

	if (is_held(s, i) && hits_of(s, i) < MAX_HITS)
		s->nodes[i].state += 1u << HITS_SHIFT;
}

static enum pc_verdict s3fifo_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				   unsigned int flags)
{
	/* inserted() will look for a ghost */
	ghosts_fetch(&to_s3fifo(p)->ghosts.table, hash_oblock(o));
	return PC_ADMIT;
}

static void s3fifo_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 i = pc_from_cblock(c);
	enum queue q;

	if (is_held(s, i))
		return;
	q = ghost_take(&s->ghosts, hash_oblock(o)) ? MAIN : SMALL;
	append(s, i, q, 0, ++s->stamp[q]);
}

static void s3fifo_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 i = pc_from_cblock(c);
	enum queue q;

	if (!is_held(s, i))
		return;
	q = queue_of(s, i);
	detach(s, i);
	if (q == SMALL)
		ghost_add(&s->ghosts, hash_oblock(o));
	s->removed++;
	if (s->offered[q])
		s->offered[q]--;
}

static void start_round(struct s3fifo *s)
{
	enum queue q;

	for (q = 0; q < NR_QUEUES; q++) {
		s->place[HAND_SMALL + q] = coldest(s, q);
		s->offered[q] = 0;
	}
	s->removed = 0;
	s->in_round = true;
}

static bool is_at_end(const struct s3fifo *s, enum queue q)
{
	return s->place[HAND_SMALL + q] == head(s, q);
}

/* The queue to demote from; it sees what was offered as gone. */
static enum queue pick_queue(const struct s3fifo *s)
{
	if (is_at_end(s, MAIN))
		return SMALL;
	if (is_at_end(s, SMALL))
		return MAIN;
	return s->len[MAIN] > s->main_share + s->offered[MAIN] ? MAIN : SMALL;
}

/* Whether the block's hits keep it in the cache; if so, it has moved to main's hot end. */
static bool spare(struct s3fifo *s, u32 i, enum queue q)
{
	u32 hits = hits_of(s, i);

	if (q == SMALL && hits >= s->promote_hits)
		move(s, i, MAIN, 0);
	else if (q == MAIN && hits)
		move(s, i, MAIN, hits - 1);
	else
		return false;
	return true;
}

/*
 * The next candidate of this round, or NONE. A search that has begun in small goes on
 * there, even if what it moves brings main over its share: so does the paper's.
 */
static u32 next_victim(struct s3fifo *s, u32 *moves)
{
	enum queue q = pick_queue(s);
	u32 i;

	for (;;) {
		if (is_at_end(s, q))
			q = pick_queue(s);
		if (is_at_end(s, q))
			return NONE;
		i = s->place[HAND_SMALL + q];
		prefetchw(s->nodes + s->nodes[i].ahead);
		if (!*moves || !spare(s, i, q))
			break;
		--*moves;
	}
	/* one that is refused for ever must not grow so old that its stamp wraps */
	if (age_of(s, i) == OLDEST)
		set_state(s, i, q, hits_of(s, i), s->stamp[q] - OLDEST);
	s->place[HAND_SMALL + q] = s->nodes[i].next;
	s->offered[q]++;
	return i;
}

/*
 * After a removal the coldest come first again, but only once there was one for every
 * 16 blocks refused in this round: a cold end full of dirty blocks must not be offered
 * anew for each block that is demoted behind it.
 */
static unsigned int s3fifo_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 moves = MAX_MOVES;
	unsigned int got;

	if (!s->in_round ||
	    (s->removed && s->removed >= (s->offered[SMALL] + s->offered[MAIN]) / 16))
		start_round(s);

	for (got = 0; got < n; got++) {
		u32 i = next_victim(s, &moves);

		if (i == NONE) {
			s->in_round = false;
			break;
		}
		out[got] = pc_cblock(i);
	}
	return got;
}

/* As the state, with a rank that grows along the queue in place of the stamp. */
static u32 s3fifo_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 i = pc_from_cblock(c);

	if (!is_held(s, i))
		return 0;
	return (s->nodes[i].state & ~STAMP_MASK) | (STAMP_MASK - age_of(s, i));
}

/*
 * A walk in progress owns one of a few places; the cursor says which one, and that it
 * is still this walk's. A walk too many ends the oldest. Small first, it is the colder.
 */
static unsigned int s3fifo_walk(struct pc_policy *p, u64 *cursor, unsigned int n,
				pc_cblock_t *out)
{
	struct s3fifo *s = to_s3fifo(p);
	unsigned int slot, got = 0;
	u32 *at;

	if (!*cursor) {
		if (!++s->last_walk_id)
			s->last_walk_id = 1;
		*cursor = s->last_walk_id;
		slot = s->last_walk_id % NR_WALKS;
		s->walk_id[slot] = s->last_walk_id;
		s->place[WALK + slot] = coldest(s, SMALL);
		s->nr_places = NR_PLACES;
	}
	slot = (u32)*cursor % NR_WALKS;
	if (s->walk_id[slot] != *cursor)
		return 0;

	at = &s->place[WALK + slot];
	while (got < n) {
		if (*at == head(s, SMALL))
			*at = coldest(s, MAIN);
		if (*at == head(s, MAIN))
			break;
		out[got++] = pc_cblock(*at);
		*at = s->nodes[*at].next;
	}
	if (!got) {
		s->walk_id[slot] = 0;
		s->nr_places = memchr_inv(s->walk_id, 0, sizeof(s->walk_id)) ? NR_PLACES : WALK;
	}
	return got;
}

struct tunable {
	const char *key;
	u32 max;		/* from 1 on */
	const char *why;
};

static const struct tunable tunables[] = {
	{ "small_share", 90, "a share of the cache from 1 to 90 percent" },
	{ "ghost_share", 100, "a share of the cache from 1 to 100 percent" },
	{ "promote_hits", MAX_HITS, "a number of hits from 1 to 3" },
};

static int s3fifo_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	struct s3fifo *s = to_s3fifo(p);
	u32 *const fields[] = { &s->small_percent, &s->ghost_percent, &s->promote_hits };
	unsigned int k, n;

	for (k = 0; k < ARRAY_SIZE(tunables); k++)
		if (!strcmp(key, tunables[k].key))
			break;
	if (k == ARRAY_SIZE(tunables))
		return -EINVAL;
	if (kstrtouint(value, 10, &n) || !n || n > tunables[k].max) {
		*why = tunables[k].why;
		return -ERANGE;
	}
	*fields[k] = n;
	apply_shares(s);
	return 0;
}

static unsigned int s3fifo_emit(struct pc_policy *p, char *buf, size_t len)
{
	const struct s3fifo *s = to_s3fifo(p);

	snprintf(buf, len, "small_share %u ghost_share %u promote_hits %u", s->small_percent,
		 s->ghost_percent, s->promote_hits);
	return 6;
}

static size_t s3fifo_memory(struct pc_policy *p)
{
	struct s3fifo *s = to_s3fifo(p);

	return sizeof(*s) + ghosts_bytes(&s->ghosts.table) + node_bytes(s);
}

static struct pc_policy_type s3fifo_type = {
	.create = s3fifo_create,
	.destroy = s3fifo_destroy,
	.load = s3fifo_load,
	.loaded = s3fifo_loaded,
	.hit = s3fifo_hit,
	.miss = s3fifo_miss,
	.inserted = s3fifo_inserted,
	.removed = s3fifo_removed,
	.victims = s3fifo_victims,
	.hint = s3fifo_hint,
	.walk = s3fifo_walk,
	.set = s3fifo_set,
	.emit = s3fifo_emit,
	.memory = s3fifo_memory,
	.name = "s3fifo",
	.api = PC_POLICY_API,
	.version = 1,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(s3fifo_type, "device-mapper polycache: policy s3fifo");
