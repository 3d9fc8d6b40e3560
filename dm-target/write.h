/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Writes: to the cache, to both devices, or to the origin (DESIGN rules 4 to 7,
 * 9, 10, 15, 17, 18 and 25).
 */
#ifndef PC_WRITE_H
#define PC_WRITE_H

#include "lookup.h"

/* May sleep. */
int pc_write_init(struct pc_cache *pc);
void pc_write_exit(struct pc_cache *pc);

/* Decides; returns DM_MAPIO_x. Does not sleep. */
int pc_write_map(struct pc_lookup *l);

/*
 * Under the shard lock: sub-blocks that were dropped and that some record would
 * still give to a reader after a power cut. A write may not end before they are 0.
 */
u64 pc_write_undurable_drops(const struct pc_block *blk, const struct pc_pending *p, u64 mask);

/* Under the shard lock: a write to the cache has ended; copies may wait for it. */
void pc_write_leaves(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p,
		     unsigned int parity);

#endif
