// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Reads (read.h).
 *
 * Takes the longest run of sub-blocks that share the decision of the first. A miss
 * claims, under the shard lock, all sub-blocks around it that the window and their
 * state allow, then asks the neighbouring blocks one by one, each under its own
 * lock, and hands one contiguous range of the origin to the fill.
 */
#include "broken.h"
#include "cache.h"
#include "fill.h"
#include "read.h"
#include "reclaim.h"

/*
 * Neighbours: the fill goes on into the next (step 1) or previous (step -1) blocks
 * while it touches their edge, they are wanted, and the window lasts.
 */
static bool extend(struct pc_cache *pc, struct pc_fill_part *part, u64 oblock, int step,
		   u64 win_start, u64 win_end, u32 *budget)
{
	pc_oblock_t o = pc_oblock(oblock);
	spinlock_t *lock = pc_shard_lock(pc, o);
	u64 base = oblock * pc->block_sectors;
	u32 first, last;
	struct pc_block *blk;
	unsigned long flags;
	bool ok = false;
	u64 mask;

	u32 room = *budget >> pc->blocks.sub_shift;

	if (!room || base >= win_end || base + pc->block_sectors <= win_start ||
	    oblock >= pc->blocks.nr_oblocks)
		return false;
	first = win_start > base ? (win_start - base) >> pc->blocks.sub_shift : 0;
	last = min_t(u64, win_end - base, pc->block_sectors) - 1;
	last >>= pc->blocks.sub_shift;

	spin_lock_irqsave(lock, flags);
	blk = pc_blocks_find(&pc->blocks, o);
	if (!blk) {
		/* nobody asked: only from plenty */
		if (READ_ONCE(pc->blocks.nr_free) <= pc->free_target / 2 + 1 ||
		    pc_host_miss(pc->policy, o, PC_READ, PC_MISS_PREFETCH) != PC_ADMIT)
			goto out;
		blk = pc_lookup_insert(pc, o, false);
		if (!blk)
			goto out;
	}
	mask = pc_fill_allowed(pc, blk, pc_mask(first, last));
	if (step > 0) {
		if (!(mask & 1))
			goto out;
		first = 0;
		last = min(pc_lookup_run(0, last, mask), room - 1);
	} else {
		u32 edge = pc->blocks.nr_subs - 1;

		if (last != edge || !(mask & (1ULL << edge)))
			goto out;
		while (edge > first && last - edge + 1 < room && (mask & (1ULL << (edge - 1))))
			edge--;
		first = edge;
	}
	ok = pc_fill_claim(pc, blk, first, last);
	if (ok) {
		part->cblock = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
		part->oblock = oblock;
		part->first = first;
		part->last = last;
		*budget -= (last - first + 1) << pc->blocks.sub_shift;
	}
out:
	spin_unlock_irqrestore(lock, flags);
	return ok;
}

static bool is_edge(struct pc_cache *pc, const struct pc_fill_part *part)
{
	return part->last == pc->blocks.nr_subs - 1;
}

/*
 * Starts the fill of a claimed run, widened over its neighbours, and gives it the
 * reader. False: no memory; the reader goes on as a plain miss.
 */
static bool start_fill(struct pc_cache *pc, const struct pc_fill_part *own, struct bio *reader,
		       u64 win_start, u64 win_end)
{
	struct pc_fill_part parts[PC_FILL_MAX_PARTS];
	u32 own_sectors = (own->last - own->first + 1) << pc->blocks.sub_shift;
	u32 budget = PC_MAX_COPY_SECTORS - min(own_sectors, PC_MAX_COPY_SECTORS);
	unsigned int nr = 0, back = 0, i;

	/* the reader lies in the first piece: all of it fits in one */
	if (!own->first) {
		/* backwards, collected in reverse */
		while (back < PC_FILL_MAX_PARTS / 2 && own->oblock > back &&
		       extend(pc, &parts[back], own->oblock - back - 1, -1, win_start, win_end,
			      &budget)) {
			back++;
			if (parts[back - 1].first)
				break;
		}
		for (i = 0; i < back / 2; i++)
			swap(parts[i], parts[back - 1 - i]);
	}
	nr = back;
	parts[nr++] = *own;
	while (nr < PC_FILL_MAX_PARTS && is_edge(pc, &parts[nr - 1]) &&
	       extend(pc, &parts[nr], parts[nr - 1].oblock + 1, 1, win_start, win_end, &budget))
		nr++;
	return pc_fill_start(pc, parts, nr, reader);
}

/* The window of the fill around sectors [start, end): aligned, at most 1 MiB. */
static void window(struct pc_cache *pc, u64 start, u64 end, u64 *win_start, u64 *win_end)
{
	u32 w = PC_BREAK_RULE19 ? pc->blocks.sub_sectors :
				  max(pc_fill_window(pc), pc->blocks.sub_sectors);

	*win_start = start - (start & (w - 1));
	*win_end = min_t(u64, *win_start + w, pc->blocks.origin_sectors);
	*win_end = max(*win_end, end);
	/* the reader's own request comes first */
	if (*win_end - *win_start > PC_MAX_COPY_SECTORS && w <= PC_MAX_COPY_SECTORS) {
		*win_start = start & ~(u64)(pc->blocks.sub_sectors - 1);
		*win_end = end;
	}
}

/* Under the shard lock: the run of fillable sub-blocks around first..last in the window. */
static bool claim_around(struct pc_cache *pc, struct pc_block *blk, u64 base, u32 first, u32 last,
			 u64 win_start, u64 win_end, struct pc_fill_part *part)
{
	u32 low = win_start > base ? (win_start - base) >> pc->blocks.sub_shift : 0;
	u32 high = (min_t(u64, win_end - base, pc->block_sectors) - 1) >> pc->blocks.sub_shift;
	u64 mask;

	low = min(low, first);
	high = max(high, last);
	mask = pc_fill_allowed(pc, blk, pc_mask(low, high));
	if (pc_mask(first, last) & ~mask)
		return false;
	while (first > low && (mask & (1ULL << (first - 1))))
		first--;
	last = pc_lookup_run(last, high, mask);
	if (!pc_fill_claim(pc, blk, first, last))
		return false;
	part->cblock = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
	part->oblock = pc_from_oblock(pc_blocks_oblock(blk));
	part->first = first;
	part->last = last;
	return true;
}

static bool may_fill(struct pc_lookup *l)
{
	struct pc_bio *pb = l->pb;

	return !pb->sequential && !pb->idle_class &&
	       l->mode != PC_MODE_PASSTHROUGH && !READ_ONCE(l->pc->stop_background);
}

/* Under the shard lock, which it releases: a read of sub-blocks that are not valid. */
static int read_miss(struct pc_lookup *l, struct pc_block *blk, bool may_populate)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	u64 base = pc_blocks_sector(&pc->blocks, l->oblock);
	u64 start = pb->iter.bi_sector, win_start, win_end;
	bool filling = false, pass = false;
	struct pc_fill_part part;

	if (may_populate && may_fill(l)) {
		/* to the policy it is a hit: the block is there, if not all of it */
		if (blk)
			pass = pc_host_hit(pc->policy, pc_blocks_index(&pc->blocks, blk),
					   l->oblock, PC_READ);
		if (!blk && !pb->seen) {
			pb->seen = true;
			if (pc_host_miss(pc->policy, l->oblock, PC_READ, 0) == PC_ADMIT)
				blk = pc_lookup_insert(pc, l->oblock, false);
		}
		if (blk) {
			window(pc, start, start + bio_sectors(l->bio), &win_start, &win_end);
			filling = claim_around(pc, blk, base, l->span.first, l->span.last,
					       win_start, win_end, &part);
		}
	}
	pc_lookup_count(l, false, !filling);
	spin_unlock_irqrestore(l->lock, l->flags);
	if (pass)
		pc_host_pass_hits(pc->policy);
	if (filling) {
		u32 sectors = (part.last - part.first + 1) << pc->blocks.sub_shift;
		/* larger than a piece: in the background, the reader goes on alone */
		bool serve = sectors <= PC_MAX_COPY_SECTORS;

		WRITE_ONCE(pc->last_user_origin, jiffies);
		if (start_fill(pc, &part, serve ? l->bio : NULL, win_start, win_end) && serve)
			return DM_MAPIO_SUBMITTED;
	}
	pb->kind = PC_BIO_ORIGIN_READ;
	pb->start_ns = ktime_get_ns();
	return pc_lookup_to_origin(l);
}

/* Under the shard lock, which it releases. */
static int map_locked(struct pc_lookup *l, struct pc_block *blk)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	struct pc_pending *p;
	u64 first_bit = 1ULL << l->span.first;
	u64 valid, busy;
	bool pass;
	u32 last;

	if (!blk)
		return read_miss(l, NULL, true);
	if (blk->flags & PC_BLOCK_DEMOTING)
		return read_miss(l, NULL, false);
	p = pc_pending_of(&pc->pendings, blk);
	/* passthrough reads the origin; nothing is dirty there, or the cache has it */
	valid = l->mode == PC_MODE_PASSTHROUGH ? blk->dirty : blk->valid;
	busy = p && !PC_BREAK_RULE2 ? p->busy & ~blk->valid : 0;
	if (busy & first_bit) {
		pc_lookup_wait(l, p);
		spin_unlock_irqrestore(l->lock, l->flags);
		return DM_MAPIO_SUBMITTED;
	}
	last = pc_lookup_run(l->span.first, l->span.last, valid & first_bit ? valid : ~(valid | busy));
	if (last != l->span.last && !PC_BREAK_RULE1)
		pc_lookup_cut(l, last);
	if (!(valid & first_bit))
		return read_miss(l, blk, true);
	if (blk->holds >= PC_MAX_IN_FLIGHT) {
		pc_lookup_cut(l, l->span.first);
		spin_unlock_irqrestore(l->lock, l->flags);
		pc_defer_bio(pc, l->bio);
		return DM_MAPIO_SUBMITTED;
	}
	blk->holds++;
	pb->kind = PC_BIO_CACHE_READ;
	pb->cblock = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
	pb->mask = pc_span_mask(&l->span);
	pc_lookup_count(l, true, false);
	pc_lookup_note_hit(pc, blk);
	if (blk->flags & PC_BLOCK_SAMPLED)
		pc_fill_note_hit(pc, blk, pb->mask);
	pass = pc_host_hit(pc->policy, pc_cblock(pb->cblock), l->oblock, PC_READ);
	spin_unlock_irqrestore(l->lock, l->flags);
	if (pass)
		pc_host_pass_hits(pc->policy);
	return pc_lookup_to_cache(l, pb->cblock);
}

int pc_read_map(struct pc_lookup *l)
{
	spin_lock_irqsave(l->lock, l->flags);
	return map_locked(l, pc_blocks_find_hashed(&l->pc->blocks, l->oblock, l->hash));
}

/*
 * The sub-blocks that a partial write found uncached (rule 4): a fill without a
 * reader, from the worker.
 */
static void fill_after(struct pc_cache *pc, const struct pc_after_fill *a)
{
	pc_oblock_t o = pc_oblock(a->oblock);
	spinlock_t *lock = pc_shard_lock(pc, o);
	struct pc_fill_part part;
	struct pc_block *blk;
	unsigned long flags;
	bool ok = false;

	spin_lock_irqsave(lock, flags);
	blk = pc_blocks_find(&pc->blocks, o);
	if (!blk && pc_host_miss(pc->policy, o, PC_WRITE, 0) == PC_ADMIT)
		blk = pc_lookup_insert(pc, o, false);
	if (blk && !(pc_mask(a->first, a->last) & ~pc_fill_allowed(pc, blk,
								  pc_mask(a->first, a->last)))) {
		part.cblock = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
		part.oblock = a->oblock;
		part.first = a->first;
		part.last = a->last;
		ok = pc_fill_claim(pc, blk, a->first, a->last);
	}
	spin_unlock_irqrestore(lock, flags);
	if (ok)
		pc_fill_start(pc, &part, 1, NULL);
}

static void after_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, after_work);
	struct pc_after_fill a;

	for (;;) {
		spin_lock_irq(&pc->after_lock);
		if (pc->after_tail == pc->after_head || READ_ONCE(pc->stop_background)) {
			pc->after_tail = pc->after_head;
			spin_unlock_irq(&pc->after_lock);
			break;
		}
		a = pc->after[pc->after_tail++ % ARRAY_SIZE(pc->after)];
		spin_unlock_irq(&pc->after_lock);
		fill_after(pc, &a);
	}
}

void pc_read_fill_later(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last)
{
	unsigned long flags;

	pc_count(pc, PC_STAT_PARTIAL_WRITE);
	spin_lock_irqsave(&pc->after_lock, flags);
	if (pc->after_head - pc->after_tail < ARRAY_SIZE(pc->after)) {
		struct pc_after_fill *a = &pc->after[pc->after_head++ % ARRAY_SIZE(pc->after)];

		a->oblock = pc_from_oblock(o);
		a->first = first;
		a->last = last;
	}
	spin_unlock_irqrestore(&pc->after_lock, flags);
	queue_work(pc->wq, &pc->after_work);
}

void pc_read_init(struct pc_cache *pc)
{
	spin_lock_init(&pc->after_lock);
	INIT_WORK(&pc->after_work, after_work);
}

void pc_read_note_latency(struct pc_cache *pc, struct pc_bio *pb)
{
	if (pb->start_ns)
		pc_fill_note_latency(pc, ktime_get_ns() - pb->start_ns,
				     pb->iter.bi_size >> SECTOR_SHIFT);
}
