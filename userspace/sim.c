// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of a cache (sim.h). A request is cut at the bounds of blocks, lowest first;
 * each part is an access, and a hit if its block is in the cache, whatever is valid in
 * it. Sub-blocks matter for the sectors that are moved only: a read fetches all of its
 * block that is not valid yet, a write takes the sub-blocks that it covers.
 *
 * Everything happens at once and in order: a block that is admitted is there for the
 * next access, a victim is gone. No clock but that of the trace, for tick().
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "blocks.h"
#include "sim.h"
#include "stream.h"

/* victims asked for at once, as in reclaim.c */
#define BATCH 64u
/* a gap in the trace, or a wrong unit of time, must not hold the model up */
#define MAX_TICKS 3600u
/* requests that make a second where the trace does not tell time */
#define REQUESTS_PER_TICK 1000u

struct pc_sim {
	struct pc_sim_config config;
	struct pc_sim_counts counts;
	struct pc_policy *policy;
	struct pc_blocks blocks;
	u32 free_target;
	u32 nr_stream;		/* blocks that streams took */
	u32 seconds;		/* of the last request */
	struct pc_streams *streams;
};

/* One part of a request. */
struct access {
	struct pc_blocks *blocks;
	pc_oblock_t oblock;
	u32 offset;
	u32 sectors;
	struct pc_span span;
	enum pc_dir dir;
	bool sequential;
};

/* --- sectors ------------------------------------------------------------------------ */

static u64 mask_sectors(const struct pc_blocks *b, u64 mask)
{
	u64 sectors = (u64)hweight64(mask) << b->sub_shift;

	/* the last sub-block of a block may be short */
	if (mask >> (b->nr_subs - 1) & 1)
		sectors -= b->sub_sectors - pc_blocks_sub_length(b, b->nr_subs - 1);
	return sectors;
}

/* Those of the access that lie in these sub-blocks. */
static u64 access_sectors(const struct access *a, u64 mask)
{
	const struct pc_blocks *b = a->blocks;
	u32 end = a->offset + a->sectors;
	u64 sectors;

	mask &= pc_span_mask(&a->span);
	sectors = mask_sectors(b, mask);
	if (mask >> a->span.first & 1)
		sectors -= a->offset - (a->span.first << b->sub_shift);
	if (mask >> a->span.last & 1)
		sectors -= (a->span.last << b->sub_shift) +
			   pc_blocks_sub_length(b, a->span.last) - end;
	return sectors;
}

/* --- room --------------------------------------------------------------------------- */

static void forget(struct pc_sim *sim, struct pc_block *blk)
{
	pc_cblock_t c = pc_blocks_index(&sim->blocks, blk);

	if (blk->dirty) {
		u64 sectors = mask_sectors(&sim->blocks, blk->dirty);

		sim->counts.origin_writes += sectors;
		sim->counts.writebacks += sectors;
	}
	if (blk->flags & PC_BLOCK_STREAM)
		sim->nr_stream--;
	sim->config.type->removed(sim->policy, c, pc_blocks_oblock(blk));
	pc_blocks_remove(&sim->blocks, c);
	pc_blocks_free(&sim->blocks, c);
}

/* Returns how many were demoted. */
static u32 demote(struct pc_sim *sim, u32 n)
{
	pc_cblock_t victims[BATCH];
	u32 i;

	n = sim->config.type->victims(sim->policy, min(n, BATCH), victims);
	for (i = 0; i < n; i++)
		forget(sim, pc_blocks_get(&sim->blocks, victims[i]));
	sim->counts.demotions += n;
	return n;
}

static void refill_pool(struct pc_sim *sim)
{
	while (sim->blocks.nr_free < sim->free_target &&
	       demote(sim, sim->free_target - sim->blocks.nr_free))
		;
}

/*
 * Without a pool a victim makes room. With one, the pool is refilled behind each block
 * taken; a cache too small for a pool lets the miss pass and has a block for the next.
 */
static pc_cblock_t alloc(struct pc_sim *sim)
{
	pc_cblock_t c;

	if (!sim->blocks.nr_free && !sim->config.pool)
		demote(sim, 1);
	c = pc_blocks_alloc(&sim->blocks);
	if (c == PC_CBLOCK_NONE) {
		sim->counts.no_free++;
		if (sim->config.pool)
			demote(sim, 1);
	}
	refill_pool(sim);
	return c;
}

static struct pc_block *insert(struct pc_sim *sim, const struct access *a)
{
	pc_cblock_t c = alloc(sim);
	struct pc_block *blk;

	if (c == PC_CBLOCK_NONE)
		return NULL;
	pc_blocks_insert(&sim->blocks, c, a->oblock);
	blk = pc_blocks_get(&sim->blocks, c);
	if (a->sequential) {
		blk->flags |= PC_BLOCK_STREAM;
		sim->nr_stream++;
	}
	sim->config.type->inserted(sim->policy, c, a->oblock);
	sim->counts.promotions++;
	return blk;
}

/* Something of the block that was valid already is used. */
static void note_use(struct pc_sim *sim, const struct access *a, struct pc_block *blk)
{
	if (!(blk->valid & pc_span_mask(&a->span)))
		return;
	if (blk->flags & PC_BLOCK_STREAM)
		sim->nr_stream--;
	blk->flags = (blk->flags & ~PC_BLOCK_STREAM) | PC_BLOCK_HIT;
}

/* May a stream's write take a block? As rule 17 says, of a full cache a tenth. */
static bool stream_may_take(const struct pc_sim *sim)
{
	if (sim->blocks.nr_free > sim->free_target)
		return true;
	return sim->nr_stream < sim->blocks.nr / 10 &&
	       (!sim->config.pool || sim->blocks.nr_free > sim->free_target / 2);
}

/* The block of a miss that the policy wants, or NULL. */
static struct pc_block *admit(struct pc_sim *sim, const struct access *a)
{
	if (a->dir == PC_READ && a->sequential)
		return NULL;
	if (a->dir == PC_WRITE && sim->config.mode == PC_MODE_WRITEAROUND)
		return NULL;
	if (a->dir == PC_WRITE && a->sequential && !stream_may_take(sim))
		return NULL;
	if (sim->config.type->miss(sim->policy, a->oblock, a->dir,
				   a->sequential ? PC_MISS_SEQUENTIAL : 0) != PC_ADMIT)
		return NULL;
	return insert(sim, a);
}

/* --- reads and writes --------------------------------------------------------------- */

/* Into the cache; whoever reads it now is served on the way. */
static void fill(struct pc_sim *sim, struct pc_block *blk, u64 mask)
{
	u64 sectors = mask_sectors(&sim->blocks, mask);

	blk->valid |= mask;
	sim->counts.origin_reads += sectors;
	sim->counts.cache_writes += sectors;
}

static void read_block(struct pc_sim *sim, const struct access *a, struct pc_block *blk,
		       bool is_hit)
{
	u64 missing = sim->blocks.full_mask & ~blk->valid;

	note_use(sim, a, blk);
	if (!(missing & pc_span_mask(&a->span)))
		return;
	sim->counts.partial_hits += is_hit;
	if (a->sequential)
		sim->counts.origin_reads += access_sectors(a, missing);
	else
		fill(sim, blk, missing);
}

/* What the write covers in part and is not valid goes to the origin, and is fetched. */
static void write_block(struct pc_sim *sim, const struct access *a, struct pc_block *blk)
{
	u64 span = pc_span_mask(&a->span), takes = blk->valid & span, to_cache;
	bool to_both = sim->config.mode == PC_MODE_WRITETHROUGH;

	if (!a->sequential || !(blk->flags & PC_BLOCK_HIT))
		takes |= pc_span_whole(&a->span);
	note_use(sim, a, blk);
	to_cache = access_sectors(a, takes);
	sim->counts.cache_writes += to_cache;
	sim->counts.origin_writes += to_both ? a->sectors : a->sectors - to_cache;
	blk->valid |= takes;
	if (!to_both)
		blk->dirty |= takes;
	if (span & ~takes && !a->sequential)
		fill(sim, blk, span & ~takes);
}

static void count(struct pc_sim *sim, const struct access *a, bool is_hit)
{
	if (is_hit)
		sim->counts.hits[a->dir]++;
	else
		sim->counts.misses[a->dir]++;
}

static void do_access(struct pc_sim *sim, const struct access *a)
{
	struct pc_block *blk = pc_blocks_find(&sim->blocks, a->oblock);
	bool is_hit = blk;

	count(sim, a, is_hit);
	if (is_hit && a->dir == PC_WRITE && sim->config.mode == PC_MODE_WRITEAROUND) {
		forget(sim, blk);
		sim->counts.invalidations++;
		blk = NULL;
	} else if (is_hit) {
		sim->config.type->hit(sim->policy, pc_blocks_index(&sim->blocks, blk), a->oblock,
				      a->dir);
	} else {
		blk = admit(sim, a);
	}
	if (blk && a->dir == PC_READ)
		read_block(sim, a, blk, is_hit);
	else if (blk)
		write_block(sim, a, blk);
	else if (a->dir == PC_READ)
		sim->counts.origin_reads += a->sectors;
	else
		sim->counts.origin_writes += a->sectors;
}

/* --- requests ----------------------------------------------------------------------- */

/* As the kernel asks its tables of streams; the trace has no flushes that tell of logs. */
static bool is_sequential(struct pc_sim *sim, const struct pc_request *q)
{
	u64 sector = q->sector, end = sector + q->sectors;
	struct pc_streams *here = sim->streams + pc_stream_table(pc_stream_region(sector));
	struct pc_streams *next = sim->streams + pc_stream_table(pc_stream_region(end));
	u64 length = pc_stream_note(here, q->is_write, sector, q->sectors);
	struct pc_stream moved;

	if (next != here) {
		pc_stream_last(here, q->is_write, &moved);
		pc_stream_enter(next, q->is_write, &moved);
	}
	return length > sim->config.bypass_sequential;
}

static void tick(struct pc_sim *sim, const struct pc_request *q)
{
	u32 n = 0;

	if (q->seconds > sim->seconds)
		n = min(q->seconds - sim->seconds, MAX_TICKS);
	else if (!sim->config.has_time && sim->counts.requests % REQUESTS_PER_TICK == 0)
		n = 1;
	sim->seconds = q->seconds;
	while (n--)
		sim->config.type->tick(sim->policy);
}

static void do_request(struct pc_sim *sim, const struct pc_request *q)
{
	struct access a = { .blocks = &sim->blocks, .dir = q->is_write ? PC_WRITE : PC_READ };
	u64 sector = q->sector;
	u32 left = q->sectors;

	sim->counts.requests++;
	if (sim->config.type->tick)
		tick(sim, q);
	if (sim->config.bypass_sequential) {
		a.sequential = is_sequential(sim, q);
		sim->counts.sequential += a.sequential;
	}
	while (left) {
		a.oblock = pc_blocks_of_sector(&sim->blocks, sector, &a.offset);
		a.sectors = min(left, sim->blocks.block_sectors - a.offset);
		a.span = pc_blocks_span(&sim->blocks, a.offset, a.sectors);
		do_access(sim, &a);
		sector += a.sectors;
		left -= a.sectors;
	}
}

void pc_sim_run(struct pc_sim *sim, const struct pc_request *requests, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		do_request(sim, &requests[i]);
}

/* --- the whole ---------------------------------------------------------------------- */

void pc_sim_destroy(struct pc_sim *sim)
{
	if (sim->policy)
		sim->config.type->destroy(sim->policy);
	pc_blocks_exit(&sim->blocks);
	kfree(sim->streams);
	kfree(sim);
}

static bool init(struct pc_sim *sim)
{
	const struct pc_sim_config *c = &sim->config;
	struct pc_policy_params params = {
		.nr_cblocks = c->nr_cblocks,
		.block_sectors = c->block_sectors,
		.seed = c->seed,
	};
	/* as in the kernel, but for blocks smaller than it allows */
	u32 sub = min_t(u32, pc_args_subblock_sectors(c->block_sectors),
			roundup_pow_of_two(c->block_sectors));

	if (pc_blocks_init(&sim->blocks, c->nr_cblocks, c->block_sectors, sub,
			   c->origin_sectors))
		return false;
	params.nr_oblocks = sim->blocks.nr_oblocks;
	sim->streams = kcalloc(PC_NR_STREAM_TABLES, sizeof(*sim->streams), GFP_KERNEL);
	if (!sim->streams)
		return false;
	for (u32 i = 0; i < PC_NR_STREAM_TABLES; i++)
		pc_stream_init(sim->streams + i);
	sim->policy = c->type->create(c->type, &params);
	return sim->policy;
}

struct pc_sim *pc_sim_create(const struct pc_sim_config *config)
{
	struct pc_sim *sim = kzalloc(sizeof(*sim), GFP_KERNEL);
	u32 nr = config->nr_cblocks;

	if (!sim)
		return NULL;
	sim->config = *config;
	/* as pc_reclaim_init */
	if (config->pool && nr >= 64)
		sim->free_target = max(min(nr / 64, 16384u), nr >= 1024 ? 64u : 0u);
	if (init(sim))
		return sim;
	pc_sim_destroy(sim);
	return NULL;
}

int pc_sim_set(struct pc_sim *sim, const char *key, const char *value, const char **why)
{
	*why = NULL;
	return sim->config.type->set ? sim->config.type->set(sim->policy, key, value, why) : -EINVAL;
}

void pc_sim_tunables(struct pc_sim *sim, char text[PC_POLICY_EMIT_SIZE])
{
	text[0] = 0;
	if (sim->config.type->emit)
		sim->config.type->emit(sim->policy, text, PC_POLICY_EMIT_SIZE);
}

struct pc_sim_counts pc_sim_result(const struct pc_sim *sim)
{
	struct pc_sim_counts counts = sim->counts;

	for (u32 i = 0; i < sim->blocks.nr; i++)
		counts.dirty += mask_sectors(&sim->blocks, sim->blocks.table[i].dirty);
	return counts;
}

size_t pc_sim_policy_memory(const struct pc_sim *sim)
{
	return sim->config.type->memory(sim->policy);
}
