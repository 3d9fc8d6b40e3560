// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Policy smq: stochastic multi-queue, after dm-cache's documentation; own design.
 *
 * Cached blocks are in four levels of LRU queues, each with a share of the cache. A hit
 * moves a block up a level; a level that is over its share, and what those above leave
 * of theirs, drops its coldest block to the level below. Demotion takes the coldest of
 * level 0, or of those above while level 0 is short of its share. Hits right after a
 * block came in are not counted: they are one access in pieces (the correlated
 * references of 2Q).
 *
 * The hotspot queue counts misses by areas of four blocks. It is a table of sets, each
 * a random sample of the areas; an area's level is its rank in the set, so all levels
 * have the same share and nothing is linked. A new area enters in the middle and drops
 * the lowest one; a miss exchanges it with its upper neighbour. A block that is known to
 * have missed before, in an area at or above the threshold, is promoted: it enters
 * level 1. All others enter level 0, which a scan cannot leave.
 *
 * Two things adapt. Each period compares the cache's hit ratio with that of the hotspot
 * queue, taken over misses: the threshold falls while the cache does worse, and rises
 * while it does better. And a block that missed before, in an area that lost one within
 * the last thirty-second part of a cache full of demotions, would have been a hit if its
 * part of the cache were longer: level 0's share grows by a block for a loss of level 0,
 * and shrinks by four for one of the levels above, which are the more valuable.
 *
 * A new working set does not wait for those above to sink: while sixteen times as many
 * blocks are promoted as are hit above level 0, the levels there are idle. Then what is
 * promoted takes the place of the block above level 0 that waits longest for a hit, the
 * wait counted four times in level 1, three times in level 2 and twice in level 3.
 *
 * Memory: 16 bytes a block for the levels, 8 for one area of the hotspot queue.
 *
 * Context and locking: policy.h.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "policy.h"
#include "queues.h"

#define NR_LEVELS 4u

/* node.state: when the block entered its level << STATE_BITS | QUEUES_OFFERED | level */
#define LEVEL_MASK (NR_LEVELS - 1)
#define STATE_BITS QUEUES_STATE_BITS
#define STAMP_MASK QUEUES_STAMP_MASK

/* blocks that level 0 gives back for a loss above it */
#define SHRINK 4u

/* blocks promoted that a hit above level 0 outweighs */
#define HIT_WEIGHT 16u

/* as many hits pass for one entry into level 0 */
#define HITS_AN_ENTRY 8u

/* a hint: level, and how long ago the block did not enter it; so coldest sorts first */
#define HINT_LEVEL_SHIFT 30
#define HINT_STAMP_MASK (STAMP_MASK << 2 & (BIT(HINT_LEVEL_SHIFT) - 1))

/* the hotspot queue */
#define AREA_SHIFT 2
#define AREA_BLOCKS (1u << AREA_SHIFT)
#define HOT_WAYS 8u
#define HOT_ENTRY (HOT_WAYS / 2 - 1)
#define THRESHOLD_MAX (HOT_WAYS / 2)
#define WINDOW_TICKS 4096u

/* An area of the hotspot queue. All zero: none. */
struct area {
	u32 hash;
	u16 demoted_at;		/* in ticks of the part of the cache that lost a block */
	u8 flags;
	u8 missed;		/* a bit a block, and four above for those promoted */
};

/* area.flags */
#define AREA_USED 1u
#define AREA_LOST 2u		/* demoted_at is valid */
#define AREA_LOST_UPPER 4u	/* from a level above 0 */

struct smq {
	struct pc_policy policy;
	u32 nr_cblocks;
	u32 demoted[2];		/* from level 0, and from those above */
	u32 all_hits;
	u32 idle;		/* blocks promoted, less what hits above level 0 take back */
	u32 idle_max;		/* above a quarter of it, the levels above 0 are idle */
	unsigned int tick_shift;

	u32 share;		/* of level 0, in blocks; the others divide the rest */
	u32 share_min;
	u32 share_max;
	u32 correlated;		/* entries into level 0 that make the period */
	u32 window;		/* ticks */

	/* statistics of a period */
	u32 period;		/* accesses */
	u32 hits;
	u32 misses;
	u32 hot_hits;		/* misses of blocks that the hotspot queue knew */
	unsigned int threshold;	/* lowest level of an area whose blocks are promoted */

	unsigned int use_hotspot;
	unsigned int use_adapt;

	u32 nr_sets;
	struct area *areas;	/* coldest first in each set */

	struct queues queues;
};

static struct smq *to_smq(struct pc_policy *p)
{
	return container_of(p, struct smq, policy);
}

/* The levels */

static unsigned int level_of(const struct smq *smq, u32 i)
{
	return smq->queues.nodes[i].state & LEVEL_MASK;
}

/* Levels above 0 have one time, so waits compare. */
static u32 age(const struct smq *smq, u32 i)
{
	return queues_age(&smq->queues, i, level_of(smq, i));
}

static void enter(struct smq *smq, u32 i, unsigned int level)
{
	queues_enter(&smq->queues, i, level, level);
}

static void leave(struct smq *smq, u32 i)
{
	queues_leave(&smq->queues, i, level_of(smq, i));
}

/* Whether a level and those above hold more than they may: one may use another's share. */
static bool is_over_share(const struct smq *smq, unsigned int level)
{
	u32 share = (smq->nr_cblocks - smq->share) / (NR_LEVELS - 1) * (NR_LEVELS - level);
	u32 size = 0;

	for (; level < NR_LEVELS; level++)
		size += smq->queues.size[level];
	return size > share;
}

static bool is_upper_idle(const struct smq *smq)
{
	return smq->idle > smq->idle_max / 4;
}

/*
 * The level above 0 that has to give up a block, or 0 if all are empty: the lowest that
 * has one, or while they are idle, the one whose coldest block waits longest for a hit.
 */
static unsigned int level_to_give(const struct smq *smq)
{
	unsigned int level, found = 0;
	u64 longest = 0;

	for (level = 1; level < NR_LEVELS; level++) {
		u32 i = queues_coldest(&smq->queues, level);
		u64 wait;

		if (i == NONE)
			continue;
		if (!is_upper_idle(smq))
			return level;
		wait = (u64)age(smq, i) * (NR_LEVELS + 1 - level);
		if (!found || wait > longest) {
			longest = wait;
			found = level;
		}
	}
	return found;
}

/*
 * The coldest block of a level becomes the hottest of the one below. A walk that would
 * have come to it next goes with it; one past it has passed the level below, too.
 */
static void drop(struct smq *smq, u32 i, unsigned int level)
{
	u32 before = smq->queues.nodes[i].prev;

	queues_fetch_ahead(&smq->queues, i);
	leave(smq, i);
	enter(smq, i, level - 1);
	while (!is_head(&smq->queues, before)) {
		u32 m = before;

		before = smq->queues.nodes[m].prev;
		if (!is_walk(&smq->queues, m))
			continue;
		detach(&smq->queues, m);
		link_before(&smq->queues, m, i);
	}
}

/*
 * After a block entered a level: what is over the share goes down, a block a level. If a
 * level above 1 has to give, level 0 stays short, and so the next victim comes from there.
 */
static void redistribute(struct smq *smq, unsigned int level)
{
	for (; level && is_over_share(smq, level); level--) {
		u32 coldest = queues_coldest(&smq->queues, level);

		if (coldest == NONE || (level == 1 && level_to_give(smq) != 1))
			return;
		drop(smq, coldest, level);
	}
}

/* The hotspot queue */

static u32 hash_area(pc_oblock_t o)
{
	return hash_64(pc_from_oblock(o) >> AREA_SHIFT, 32);
}

/* of the block in its area */
static u8 missed_bit(pc_oblock_t o)
{
	return 1u << (pc_from_oblock(o) & (AREA_BLOCKS - 1));
}

static u8 promoted_bit(pc_oblock_t o)
{
	return missed_bit(o) << AREA_BLOCKS;
}

static struct area *area_set(struct smq *smq, u32 hash)
{
	return smq->areas + ((u64)hash * smq->nr_sets >> 32) * HOT_WAYS;
}

/* The rank in the set, or HOT_WAYS. */
static unsigned int area_find(const struct area *set, u32 hash)
{
	unsigned int i;

	for (i = 0; i < HOT_WAYS; i++)
		if (set[i].hash == hash && set[i].flags & AREA_USED)
			break;
	return i;
}

static void area_add(struct area *set, u32 hash, u8 missed)
{
	memmove(set, set + 1, HOT_ENTRY * sizeof(*set));
	set[HOT_ENTRY] = (struct area){ .hash = hash, .flags = AREA_USED, .missed = missed };
}

static void area_up(struct area *set, unsigned int rank)
{
	if (rank + 1 < HOT_WAYS)
		swap(set[rank], set[rank + 1]);
}

/* A miss that a larger share would have spared moves the share. */
static void adapt_share(struct smq *smq, const struct area *area)
{
	bool upper = area->flags & AREA_LOST_UPPER;
	u16 now = smq->demoted[upper] >> smq->tick_shift;

	if (!(area->flags & AREA_LOST) || (u16)(now - area->demoted_at) > smq->window)
		return;
	if (!upper)
		smq->share = min(smq->share + 1, smq->share_max);
	else
		smq->share = max(smq->share, smq->share_min + SHRINK) - SHRINK;
}

/* Laxer while the cache does worse than the hotspot queue would, else stricter. */
static void adapt_threshold(struct smq *smq)
{
	u32 accesses = smq->hits + smq->misses;

	if (accesses < smq->period)
		return;
	if ((u64)smq->hits * smq->misses < (u64)smq->hot_hits * accesses) {
		if (smq->threshold)
			smq->threshold--;
	} else if (smq->threshold < THRESHOLD_MAX) {
		smq->threshold++;
	}
	smq->hits = 0;
	smq->misses = 0;
	smq->hot_hits = 0;
}

/* Counts a miss, and decides whether the block is to be promoted. */
static void hotspot_miss(struct smq *smq, pc_oblock_t o)
{
	u32 hash = hash_area(o);
	struct area *set = area_set(smq, hash);
	unsigned int rank = area_find(set, hash);
	struct area *area = set + rank;

	if (rank == HOT_WAYS) {
		area_add(set, hash, missed_bit(o));
		return;
	}
	if (area->missed & missed_bit(o)) {
		smq->hot_hits++;
		/* asked again before it was cached: the share has moved already */
		if (smq->use_adapt && !(area->missed & promoted_bit(o)))
			adapt_share(smq, area);
		if (rank >= smq->threshold)
			area->missed |= promoted_bit(o);
	}
	area->missed |= missed_bit(o);
	area_up(set, rank);
}

/* Whether the block was to be promoted; that is used up. */
static bool hotspot_promotes(struct smq *smq, pc_oblock_t o)
{
	u32 hash = hash_area(o);
	struct area *set = area_set(smq, hash);
	unsigned int rank = area_find(set, hash);

	if (rank == HOT_WAYS || !(set[rank].missed & promoted_bit(o)))
		return false;
	set[rank].missed &= ~promoted_bit(o);
	return true;
}

static void hotspot_lost(struct smq *smq, u32 hash, bool upper)
{
	struct area *set = area_set(smq, hash);
	unsigned int rank = area_find(set, hash);
	u32 now = ++smq->demoted[upper] >> smq->tick_shift;

	if (rank == HOT_WAYS)
		return;
	set[rank].demoted_at = now;
	set[rank].flags = AREA_USED | AREA_LOST | (upper ? AREA_LOST_UPPER : 0);
}

static size_t area_bytes(const struct smq *smq)
{
	return (size_t)smq->nr_sets * HOT_WAYS * sizeof(*smq->areas);
}

/* Operations */

static void smq_destroy(struct pc_policy *p)
{
	struct smq *smq = to_smq(p);

	vfree(smq->areas);
	queues_destroy(&smq->queues);
	kfree(smq);
}

static void set_sizes(struct smq *smq, u32 nr)
{
	smq->nr_cblocks = nr;
	queues_init(&smq->queues, nr, NR_LEVELS);
	smq->idle_max = max(nr / 16, 1u);
	smq->share = max(nr / 8, 1u);
	smq->share_min = max(nr / 64, 1u);
	smq->share_max = max(nr / 2, 1u);
	smq->period = max(nr / 4, 64u);
	smq->nr_sets = DIV_ROUND_UP(nr, HOT_WAYS);
	while (nr / 32 >> smq->tick_shift > WINDOW_TICKS)
		smq->tick_shift++;
	smq->window = nr / 32 >> smq->tick_shift;
	smq->correlated = nr / 32 >> smq->queues.stamp_shift;
	smq->use_hotspot = 1;
	smq->use_adapt = 1;
}

static struct pc_policy *smq_create(const struct pc_policy_type *type,
				    const struct pc_policy_params *params)
{
	struct smq *smq;

	if (!params->nr_cblocks || params->nr_cblocks > QUEUES_MAX_BLOCKS)
		return NULL;

	smq = kzalloc(sizeof(*smq), GFP_KERNEL);
	if (!smq)
		return NULL;
	smq->policy.type = type;
	set_sizes(smq, params->nr_cblocks);
	smq->areas = vzalloc(area_bytes(smq));
	if (!smq->areas || !queues_create(&smq->queues, 1)) {
		smq_destroy(&smq->policy);
		return NULL;
	}
	return &smq->policy;
}

/*
 * Those without a hint go to level 1, before all that were used since, in the order of
 * the calls: they earned their place under another policy. A hint gives level and age.
 */
static void smq_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
		     bool has_hint, u32 hint)
{
	struct smq *smq = to_smq(p);
	u32 i = pc_from_cblock(c), level = hint >> HINT_LEVEL_SHIFT;

	if (is_linked(&smq->queues, i))
		return;
	if (has_hint)
		queues_load_hinted(&smq->queues, i, level, (hint & HINT_STAMP_MASK) >> 2, level);
	else
		queues_load(&smq->queues, i, 1, 1);
}

/* Sorts what follows a node by the stamps of hints, of which the last possible is now. */
static void sort_after(struct smq *smq, u32 start, unsigned int level)
{
	struct queue_node *nodes = smq->queues.nodes;
	u32 i;

	queues_sort(&smq->queues, start, level);
	for (i = nodes[start].next; i != queues_head(&smq->queues, level); i = nodes[i].next) {
		nodes[i].state += (queues_now(&smq->queues, level) + 1) << STATE_BITS;
		queues_note_last(&smq->queues, i, level);
	}
}

static void smq_loaded(struct pc_policy *p)
{
	struct smq *smq = to_smq(p);
	unsigned int level;

	if (!smq->queues.has_hints)
		return;
	queues_end_walks_and_round(&smq->queues);
	for (level = 0; level < NR_LEVELS; level++)
		sort_after(smq, level == 1 ? queues_load_point(&smq->queues) :
					     queues_head(&smq->queues, level), level);
	/* what the share had come to shows in the size */
	if (smq->use_adapt)
		smq->share = clamp(smq->queues.size[0], smq->share_min, smq->share_max);
}

static void smq_expect(struct pc_policy *p, pc_cblock_t c)
{
	prefetchw(to_smq(p)->queues.nodes + pc_from_cblock(c));
}

static void smq_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct smq *smq = to_smq(p);
	u32 i = pc_from_cblock(c);
	unsigned int level;

	if (!is_linked(&smq->queues, i))
		return;
	smq->hits++;
	/* hits are time too, or the last to come in would stay uncounted while all hit */
	if (++smq->all_hits % HITS_AN_ENTRY == 0)
		smq->queues.entered[0]++;
	level = level_of(smq, i);
	if (!level && age(smq, i) < smq->correlated)
		return;
	if (level)
		smq->idle -= min(smq->idle, HIT_WEIGHT);
	leave(smq, i);
	if (level == NR_LEVELS - 1) {
		enter(smq, i, level);
		return;
	}
	enter(smq, i, level + 1);
	redistribute(smq, level + 1);
}

static enum pc_verdict smq_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				unsigned int flags)
{
	struct smq *smq = to_smq(p);

	/* a neighbour that nobody asked for is no sign of heat */
	if (flags & PC_MISS_PREFETCH)
		return PC_ADMIT;
	smq->misses++;
	if (smq->use_hotspot)
		hotspot_miss(smq, o);
	if (smq->use_adapt)
		adapt_threshold(smq);
	return PC_ADMIT;
}

static void smq_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct smq *smq = to_smq(p);
	u32 i = pc_from_cblock(c);
	unsigned int level;

	if (is_linked(&smq->queues, i))
		return;
	level = smq->use_hotspot && hotspot_promotes(smq, o);
	if (level)
		smq->idle = min(smq->idle + 1, smq->idle_max);
	smq->queues.held++;
	enter(smq, i, level);
	redistribute(smq, level);
}

static void smq_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct smq *smq = to_smq(p);
	u32 i = pc_from_cblock(c);

	if (!is_linked(&smq->queues, i))
		return;
	leave(smq, i);
	queues_note_removed(&smq->queues);
	/* what was not offered did not leave for want of room */
	if (smq->queues.nodes[i].state & QUEUES_OFFERED)
		hotspot_lost(smq, hash_area(o), level_of(smq, i));
}

/* The coldest that is not offered yet, or NONE; level 0 only while it has its share. */
static u32 next_in_levels(struct smq *smq)
{
	u32 lowest = queues_coldest(&smq->queues, 0);

	if (lowest != NONE && smq->queues.size[0] - smq->queues.gone[0] >= smq->share)
		return lowest;
	/* with nothing above level 0, this is level 0 again */
	return queues_coldest(&smq->queues, level_to_give(smq));
}

/* A block that was refused in another round, else one from the levels. */
static u32 next_candidate(struct smq *smq)
{
	u32 i = queues_refused(&smq->queues);

	return i == NONE ? next_in_levels(smq) : i;
}

static unsigned int smq_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct smq *smq = to_smq(p);
	unsigned int got = 0;

	queues_begin_round(&smq->queues);
	while (got < n) {
		u32 i = NONE;

		if (!queues_all_offered(&smq->queues))
			i = next_candidate(smq);
		if (i == NONE) {
			queues_end_round(&smq->queues);
			break;
		}
		queues_fetch_ahead(&smq->queues, i);
		queues_offer(&smq->queues, i, level_of(smq, i));
		out[got++] = pc_cblock(i);
	}
	return got;
}

static u32 smq_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct smq *smq = to_smq(p);
	u32 i = pc_from_cblock(c);

	if (!is_linked(&smq->queues, i))
		return 0;
	return level_of(smq, i) << HINT_LEVEL_SHIFT | (STAMP_MASK - age(smq, i)) << 2;
}

static unsigned int smq_walk(struct pc_policy *p, u64 *cursor, unsigned int n,
			     pc_cblock_t *out)
{
	return queues_walk(&to_smq(p)->queues, cursor, n, out);
}

static int smq_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	struct smq *smq = to_smq(p);
	unsigned int *tunable, n;

	if (strcmp(key, "hotspot") == 0)
		tunable = &smq->use_hotspot;
	else if (strcmp(key, "adapt") == 0)
		tunable = &smq->use_adapt;
	else
		return -EINVAL;
	if (kstrtouint(value, 10, &n) || n > 1) {
		*why = "0 (off) or 1 (on)";
		return -ERANGE;
	}
	*tunable = n;
	return 0;
}

static unsigned int smq_emit(struct pc_policy *p, char *buf, size_t len)
{
	struct smq *smq = to_smq(p);

	snprintf(buf, len, "hotspot %u adapt %u", smq->use_hotspot, smq->use_adapt);
	return 4;
}

static size_t smq_memory(struct pc_policy *p)
{
	struct smq *smq = to_smq(p);

	return sizeof(*smq) + area_bytes(smq) + queues_bytes(&smq->queues);
}

static struct pc_policy_type smq_type = {
	.create = smq_create,
	.destroy = smq_destroy,
	.load = smq_load,
	.loaded = smq_loaded,
	.hit = smq_hit,
	.expect = smq_expect,
	.miss = smq_miss,
	.inserted = smq_inserted,
	.removed = smq_removed,
	.victims = smq_victims,
	.hint = smq_hint,
	.walk = smq_walk,
	.set = smq_set,
	.emit = smq_emit,
	.memory = smq_memory,
	.name = "smq",
	.api = PC_POLICY_API,
	.version = 1,
	.owner = THIS_MODULE,
};

PC_POLICY_MODULE(smq_type, "device-mapper polycache: policy smq");
