// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy as3fifo: S3-FIFO with a small queue whose size adapts, as ARC's lists do.
 *
 * Sources: Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache
 * eviction", SOSP 2023 (small, main and ghost queue); Megiddo, Modha, "ARC", FAST 2003
 * (ghosts say which queue is too short); Johnson, Shasha, "2Q", VLDB 1994 (a second
 * access counts only when it is not correlated with the first).
 *
 * A new block enters the small queue. One that is hit there later than the period of
 * correlated references goes on to main when its turn comes, the others leave and are
 * remembered as ghosts. main is a FIFO queue with reinsertion: a block that was hit n
 * times (3 at most) goes round n times more. A block that comes back while it is a ghost
 * enters main. Had its queue been an eighth of the cache longer, that would have been a
 * hit: the small queue's target grows by one block for a ghost of its own, and shrinks
 * by one for a ghost of main. All constants are fractions of the cache; nothing is tuned
 * to a size. A hit moves nothing.
 *
 * A step of victims() looks at a bounded number of blocks.
 *
 * Ghosts are not listed: a word holds a fingerprint and when the block left, counted in
 * demotions from its queue; what left too long ago is no ghost. Memory: 16 bytes a block
 * for the lists, 8 for the ghosts (room for 2 a block, at most 1.25 live).
 *
 * Context and locking: policy.h.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>

#include "ghosts.h"
#include "policy.h"
#include "queues.h"

/* node.state: when the block entered its queue << STATE_BITS | what is below */
#define FREQ_MAX 3u
#define IN_MAIN (1u << 2)
#define STATE_BITS QUEUES_STATE_BITS
#define STAMP_MASK QUEUES_STAMP_MASK

/* as many hits pass for one entry into the small queue */
#define HITS_AN_ENTRY 8u

/* a hint: queue, how long ago the block did not enter it, hits; so coldest sorts first */
#define HINT_MAIN (1u << 30)
#define HINT_AGE_SHIFT 2

/* how many blocks one candidate may cost */
#define STEPS_MAX 64u

#define GHOST_MAIN (1u << 16)
#define GHOST_ASKED (1u << 15)
#define GHOST_TAG_SHIFT 17
#define GHOST_TIME_MASK (GHOST_ASKED - 1)
/* as many ticks make a ghost queue at most, and the clock 8 of those */
#define GHOST_TICKS 4096u

enum queue {
	SMALL,
	MAIN,
	NR_QUEUES,
};

struct as3fifo {
	struct pc_policy policy;
	u32 nr_cblocks;
	u32 demoted[NR_QUEUES];
	u32 hits;
	unsigned int tick_shift;

	u32 target;		/* of the small queue, in blocks */
	u32 target_min;
	u32 target_max;
	u32 fixed_percent;	/* 0: the target adapts */
	u32 correlated;		/* entries that make the period of correlated references */

	u32 ghost_age_max;	/* in ticks: a cache full of demotions */
	struct ghosts ghosts;

	struct queues queues;
};

static struct as3fifo *to_as3fifo(struct pc_policy *p)
{
	return container_of(p, struct as3fifo, policy);
}

/* The queues */

static enum queue queue_of(const struct as3fifo *a, u32 i)
{
	return a->queues.nodes[i].state & IN_MAIN ? MAIN : SMALL;
}

static u32 freq(const struct as3fifo *a, u32 i)
{
	return a->queues.nodes[i].state & FREQ_MAX;
}

static void enter(struct as3fifo *a, u32 i, enum queue q, u32 hits)
{
	queues_enter(&a->queues, i, q, hits | (q == MAIN ? IN_MAIN : 0));
}

/* A block that was hit enough goes on, or round again. */
static bool rescue(struct as3fifo *a, u32 i)
{
	enum queue q = queue_of(a, i);
	u32 hits = freq(a, i);

	if (!hits)
		return false;
	queues_leave(&a->queues, i, q);
	enter(a, i, MAIN, q == MAIN ? hits - 1 : 0);
	return true;
}

/* Ghosts */

/* never 0, so that a ghost is not either */
static u32 ghost_tag(u32 hash)
{
	return (hash & (U32_MAX >> GHOST_TAG_SHIFT)) ?: 1;
}

static enum queue ghost_queue(u32 ghost)
{
	return ghost & GHOST_MAIN ? MAIN : SMALL;
}

/* A block that left main is a ghost for a quarter of the time: its age counts fourfold. */
static u32 age_in_ticks(u32 ghost, u32 small_now, u32 main_now)
{
	return ghost & GHOST_MAIN ? ((main_now - ghost) & GHOST_TIME_MASK) << 2 :
		(small_now - ghost) & GHOST_TIME_MASK;
}

static u32 ghost_age(const struct as3fifo *a, u32 ghost)
{
	return age_in_ticks(ghost, a->demoted[SMALL] >> a->tick_shift,
			    a->demoted[MAIN] >> a->tick_shift);
}

static u32 *ghost_find(struct as3fifo *a, u32 hash)
{
	u32 *set = ghosts_set(&a->ghosts, hash), tag = ghost_tag(hash);
	u32 *late = ghosts_find_late(&a->ghosts, hash);
	unsigned int i;

	if (late && ghost_age(a, *late) <= a->ghost_age_max)
		return late;
	for (i = 0; i < GHOST_WAYS; i++)
		if (set[i] >> GHOST_TAG_SHIFT == tag &&
		    ghost_age(a, set[i]) <= a->ghost_age_max)
			return set + i;
	return NULL;
}

/* The way for a new ghost: one that is empty, else the oldest, which may be none by now. */
static u32 *ghost_room(struct as3fifo *a, u32 hash)
{
	u32 small_now = a->demoted[SMALL] >> a->tick_shift;
	u32 main_now = a->demoted[MAIN] >> a->tick_shift;
	u32 *set = ghosts_set(&a->ghosts, hash), oldest = 0;
	unsigned int i;

	/* without branches: they would be mispredicted, and hold up what follows */
	for (i = 0; i < GHOST_WAYS; i++) {
		u32 age = set[i] ? age_in_ticks(set[i], small_now, main_now) :
			4 * GHOST_TIME_MASK;

		oldest = max(oldest, age * GHOST_WAYS + i);
	}
	return set + oldest % GHOST_WAYS;
}

static void ghost_add(struct as3fifo *a, u32 hash, enum queue q)
{
	u32 now = ++a->demoted[q] >> a->tick_shift;
	u32 ghost = ghost_tag(hash) << GHOST_TAG_SHIFT | (q == MAIN ? GHOST_MAIN : 0) |
		(now & GHOST_TIME_MASK);

	ghosts_add_late(&a->ghosts, &hash, &ghost);
	if (ghost)
		*ghost_room(a, hash) = ghost;
}


/* A miss that a longer queue would have spared moves the target. */
static void adapt(struct as3fifo *a, u32 ghost)
{
	enum queue q = ghost_queue(ghost);
	u32 age = ghost_age(a, ghost) >> (q == MAIN ? 2 : 0);

	if (a->fixed_percent || age > max(a->nr_cblocks / 8, 1u) >> a->tick_shift)
		return;
	if (q == SMALL)
		a->target = min(a->target + 1, a->target_max);
	else
		a->target = max(a->target - 1, a->target_min);
}

/* Operations */

static void as3fifo_destroy(struct pc_policy *p)
{
	struct as3fifo *a = to_as3fifo(p);

	ghosts_destroy(&a->ghosts);
	queues_destroy(&a->queues);
	kfree(a);
}

static void set_sizes(struct as3fifo *a, u32 nr)
{
	a->nr_cblocks = nr;
	queues_init(&a->queues, nr, NR_QUEUES);
	a->target = max(nr / 8, 1u);
	a->target_min = max(nr / 64, 1u);
	a->target_max = max(nr - nr / 16, 1u);
	while (nr >> a->tick_shift > GHOST_TICKS)
		a->tick_shift++;
	a->ghost_age_max = nr >> a->tick_shift;
	a->correlated = nr / 32 >> a->queues.stamp_shift;
}

static struct pc_policy *as3fifo_create(const struct pc_policy_type *type,
					const struct pc_policy_params *params)
{
	struct as3fifo *a;

	if (!params->nr_cblocks || params->nr_cblocks > QUEUES_MAX_BLOCKS)
		return NULL;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return NULL;
	a->policy.type = type;
	set_sizes(a, params->nr_cblocks);
	if (!ghosts_create(&a->ghosts, params->nr_cblocks) || !queues_create(&a->queues, MAIN)) {
		as3fifo_destroy(&a->policy);
		return NULL;
	}
	return &a->policy;
}

/*
 * Those without a hint go to main, before all that were used since, in the order of the
 * calls: they earned their place under another policy. A hint gives queue, age and hits.
 */
static void as3fifo_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
			 bool has_hint, u32 hint)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 i = pc_from_cblock(c);

	if (is_linked(&a->queues, i))
		return;
	if (!has_hint)
		queues_load(&a->queues, i, MAIN, IN_MAIN);
	else if (hint & HINT_MAIN)
		queues_load_hinted(&a->queues, i, MAIN, hint >> HINT_AGE_SHIFT,
				   (hint & FREQ_MAX) | IN_MAIN);
	else
		queues_load_hinted(&a->queues, i, SMALL, hint >> HINT_AGE_SHIFT, hint & FREQ_MAX);
}

/* Sorts what follows a node by the stamps, and gives new ones. */
static void sort_after(struct as3fifo *a, u32 start, enum queue q)
{
	struct queue_node *nodes = a->queues.nodes;
	u32 i;

	queues_sort(&a->queues, start, q);
	for (i = nodes[start].next; i != queues_head(&a->queues, q); i = nodes[i].next) {
		a->queues.entered[q]++;
		queues_set_state(&a->queues, i, queues_now(&a->queues, q),
				 nodes[i].state & ((1u << STATE_BITS) - 1));
		queues_note_last(&a->queues, i, q);
	}
}

static void as3fifo_loaded(struct pc_policy *p)
{
	struct as3fifo *a = to_as3fifo(p);

	if (!a->queues.has_hints)
		return;
	queues_end_walks_and_round(&a->queues);
	sort_after(a, queues_head(&a->queues, SMALL), SMALL);
	sort_after(a, queues_load_point(&a->queues), MAIN);
	/* what the target had come to shows in the size */
	if (!a->fixed_percent)
		a->target = clamp(a->queues.size[SMALL], a->target_min, a->target_max);
}

static void as3fifo_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 i = pc_from_cblock(c);

	if (!is_linked(&a->queues, i))
		return;
	/* hits are time too, or the last to come in would stay uncounted while all hit */
	if (++a->hits % HITS_AN_ENTRY == 0)
		a->queues.entered[SMALL]++;
	if (freq(a, i) == FREQ_MAX)
		return;
	if (queue_of(a, i) == MAIN || queues_age(&a->queues, i, SMALL) >= a->correlated)
		a->queues.nodes[i].state++;
}

/* A ghost is proof of reuse only if somebody asked for it. */
static enum pc_verdict as3fifo_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				    unsigned int flags)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 *ghost;

	if (flags & PC_MISS_PREFETCH)
		return PC_ADMIT;
	ghost = ghost_find(a, hash_oblock(o));
	if (ghost)
		*ghost |= GHOST_ASKED;
	return PC_ADMIT;
}

static void as3fifo_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 i = pc_from_cblock(c), hash = hash_oblock(o), *ghost;
	enum queue q = SMALL;

	if (is_linked(&a->queues, i))
		return;
	ghost = ghost_find(a, hash);
	if (ghost && *ghost & GHOST_ASKED) {
		adapt(a, *ghost);
		q = MAIN;
	}
	if (ghost)
		*ghost = 0;
	a->queues.held++;
	enter(a, i, q, 0);
}

static void as3fifo_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 i = pc_from_cblock(c);
	enum queue q;

	if (!is_linked(&a->queues, i))
		return;
	q = queue_of(a, i);
	queues_leave(&a->queues, i, q);
	queues_note_removed(&a->queues);
	/* what was not offered did not leave for want of room */
	if (a->queues.nodes[i].state & QUEUES_OFFERED)
		ghost_add(a, hash_oblock(o), q);
}

/* From the queue that is too long, as if all offered were gone; NONE: both are empty. */
static u32 next_in_queue(struct as3fifo *a)
{
	u32 from_small = queues_coldest(&a->queues, SMALL);
	u32 from_main = queues_coldest(&a->queues, MAIN);

	if (from_main == NONE)
		return from_small;
	if (from_small == NONE || a->queues.size[SMALL] - a->queues.gone[SMALL] < a->target)
		return from_main;
	return from_small;
}

/* A block that was refused in another round, else one from a queue. */
static u32 next_candidate(struct as3fifo *a)
{
	u32 i = queues_refused(&a->queues);

	return i == NONE ? next_in_queue(a) : i;
}

static unsigned int as3fifo_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct as3fifo *a = to_as3fifo(p);
	unsigned int got = 0, steps = 0;

	queues_begin_round(&a->queues);
	while (got < n) {
		u32 i = NONE;

		if (!queues_all_offered(&a->queues))
			i = next_candidate(a);
		if (i == NONE) {
			queues_end_round(&a->queues);
			break;
		}
		queues_fetch_ahead(&a->queues, i);
		if (steps++ < STEPS_MAX && rescue(a, i))
			continue;
		queues_offer(&a->queues, i, queue_of(a, i));
		out[got++] = pc_cblock(i);
		steps = 0;
	}
	return got;
}

static u32 as3fifo_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct as3fifo *a = to_as3fifo(p);
	u32 i = pc_from_cblock(c);
	enum queue q;

	if (!is_linked(&a->queues, i))
		return 0;
	q = queue_of(a, i);
	return (q == MAIN ? HINT_MAIN : 0) |
		(STAMP_MASK - queues_age(&a->queues, i, q)) << HINT_AGE_SHIFT | freq(a, i);
}

static unsigned int as3fifo_walk(struct pc_policy *p, u64 *cursor, unsigned int n,
				 pc_cblock_t *out)
{
	return queues_walk(&to_as3fifo(p)->queues, cursor, n, out);
}

static int as3fifo_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	struct as3fifo *a = to_as3fifo(p);
	unsigned int n;

	if (strcmp(key, "small_percent") != 0)
		return -EINVAL;
	if (kstrtouint(value, 10, &n) || n > 90) {
		*why = "0 (the small queue adapts) or a percentage of the cache from 1 to 90";
		return -ERANGE;
	}
	a->fixed_percent = n;
	if (n)
		a->target = max(a->nr_cblocks / 100 * n + a->nr_cblocks % 100 * n / 100, 1u);
	else
		a->target = clamp(a->target, a->target_min, a->target_max);
	return 0;
}

static unsigned int as3fifo_emit(struct pc_policy *p, char *buf, size_t len)
{
	snprintf(buf, len, "small_percent %u", to_as3fifo(p)->fixed_percent);
	return 2;
}

static size_t as3fifo_memory(struct pc_policy *p)
{
	struct as3fifo *a = to_as3fifo(p);

	return sizeof(*a) + ghosts_bytes(&a->ghosts) + queues_bytes(&a->queues);
}

static struct pc_policy_type as3fifo_type = {
	.create = as3fifo_create,
	.destroy = as3fifo_destroy,
	.load = as3fifo_load,
	.loaded = as3fifo_loaded,
	.hit = as3fifo_hit,
	.miss = as3fifo_miss,
	.inserted = as3fifo_inserted,
	.removed = as3fifo_removed,
	.victims = as3fifo_victims,
	.hint = as3fifo_hint,
	.walk = as3fifo_walk,
	.set = as3fifo_set,
	.emit = as3fifo_emit,
	.memory = as3fifo_memory,
	.name = "as3fifo",
	.api = PC_POLICY_API,
	.version = 1,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(as3fifo_type, "device-mapper polycache: policy as3fifo");
