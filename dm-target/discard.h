/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Discards and invalidations (DESIGN rule 14).
 */
#ifndef PC_DISCARD_H
#define PC_DISCARD_H

#include "cache.h"

/* May sleep. */
int pc_discard_init(struct pc_cache *pc);
void pc_discard_exit(struct pc_cache *pc);

/* A DISCARD bio. Does not sleep; the bio is ended later. */
void pc_discard_bio(struct pc_cache *pc, struct bio *bio);
/* Its end on the origin, from end_io. Any context. */
void pc_discard_end(struct pc_cache *pc, struct bio *bio);

/*
 * The message invalidate_cblocks: [begin, end) lose their mappings, durably at
 * return. Only in passthrough mode, where nothing is dirty. May sleep; waits for
 * the metadata device, not for users' I/O. -EBUSY: a block was in use.
 */
int pc_discard_cblocks(struct pc_cache *pc, u32 begin, u32 end);

#endif
