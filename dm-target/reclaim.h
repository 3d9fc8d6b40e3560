/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Demotion: keeps the pool of free blocks filled (DESIGN rule 8).
 */
#ifndef PC_RECLAIM_H
#define PC_RECLAIM_H

#include "cache.h"

void pc_reclaim_init(struct pc_cache *pc);

/* Any context. Looks whether the pool wants filling; cheap if not. */
void pc_reclaim_kick(struct pc_cache *pc);
/* Any context: a free block, or PC_CBLOCK_NONE and the reclaimer is asked for one. */
pc_cblock_t pc_reclaim_alloc(struct pc_cache *pc);
void pc_reclaim_free(struct pc_cache *pc, pc_cblock_t c);

/*
 * Under the shard lock. Starts the demotion of a clean, idle block. False: it is in
 * use, dirty, or there is no pending object. with_flush: also blocks whose removal
 * needs a flush of the origin first.
 */
bool pc_reclaim_demote(struct pc_cache *pc, struct pc_block *blk, bool with_flush);
/* Under the shard lock, from the committer: its removal is durable. */
void pc_reclaim_finish(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p);

#endif
