// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The steps of lookup.h. Nothing here sleeps; what changes a block says that it
 * runs under the shard lock.
 */
#include "cache.h"
#include "lookup.h"
#include "reclaim.h"

/* The part of the bio in front of sector at (of its block) is kept; cuts the rest. */
void pc_lookup_cut(struct pc_lookup *l, u32 last_sub)
{
	struct pc_cache *pc = l->pc;
	u32 end = min((last_sub + 1) << pc->blocks.sub_shift, pc->block_sectors);
	u32 sectors = end - l->offset;

	if (sectors >= bio_sectors(l->bio))
		return;
	if (WARN_ON_ONCE(!l->in_map))
		return;
	dm_accept_partial_bio(l->bio, sectors);
	l->pb->iter.bi_size = sectors << SECTOR_SHIFT;
	l->span = pc_blocks_span(&pc->blocks, l->offset, sectors);
}

int pc_lookup_to_cache(struct pc_lookup *l, u32 cblock)
{
	bio_set_dev(l->bio, l->pc->cache_dev->bdev);
	l->bio->bi_iter.bi_sector = pc_cache_sector(l->pc, cblock) + l->offset;
	return DM_MAPIO_REMAPPED;
}

int pc_lookup_to_origin(struct pc_lookup *l)
{
	WRITE_ONCE(l->pc->last_user_origin, jiffies);
	bio_set_dev(l->bio, l->pc->origin_dev->bdev);
	l->bio->bi_iter.bi_sector = l->pb->iter.bi_sector;
	return DM_MAPIO_REMAPPED;
}

int pc_lookup_wait(struct pc_lookup *l, struct pc_pending *p)
{
	pc_lookup_cut(l, l->span.first);
	pc_count(l->pc, PC_STAT_WAIT_BUSY);
	pc_wait_pending(l->pc, p, l->bio);
	return DM_MAPIO_SUBMITTED;
}

struct pc_block *pc_lookup_insert(struct pc_cache *pc, pc_oblock_t o, bool is_stream)
{
	struct pc_block *blk;
	struct pc_pending *p;
	pc_cblock_t c;

	if (READ_ONCE(pc->failed) || READ_ONCE(pc->cache_gone) ||
	    !READ_ONCE(pc->pendings.nr_free))
		return NULL;
	c = pc_reclaim_alloc(pc);
	if (c == PC_CBLOCK_NONE)
		return NULL;
	pc_blocks_insert(&pc->blocks, c, o);
	blk = pc_blocks_get(&pc->blocks, c);
	p = pc_get_pending(pc, blk);
	if (!p) {
		pc_blocks_remove(&pc->blocks, c);
		pc_reclaim_free(pc, c);
		return NULL;
	}
	memset(&p->disk, 0, sizeof(p->disk));
	if (is_stream) {
		blk->flags |= PC_BLOCK_STREAM;
		atomic_inc(&pc->nr_stream);
	}
	atomic_inc(&pc->nr_resident);
	pc_count(pc, PC_STAT_PROMOTION);
	pc_host_inserted(pc->policy, c, o);
	pc_commit_schedule(&pc->commit);
	return blk;
}
