/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] FLUSH and FUA, device flush rounds, and what goes into a commit (DESIGN rules
 * 10, 12 and 13). The callbacks of the committer live here.
 */
#ifndef PC_FLUSH_H
#define PC_FLUSH_H

#include "cache.h"

extern const struct pc_commit_ops pc_flush_commit_ops;

/* May sleep. */
int pc_flush_init(struct pc_cache *pc);
void pc_flush_exit(struct pc_cache *pc);

/* An empty FLUSH bio. Does not sleep; the bio is ended later. */
void pc_flush_bio(struct pc_cache *pc, struct bio *bio);
/*
 * A FUA write whose data is on the cache but not findable after a power cut: ended
 * when its record is durable. is_durable: the write went down with FUA and covered
 * whole sub-blocks, noted in pending.durable by the caller. Any context.
 */
void pc_flush_fua(struct pc_cache *pc, struct bio *bio, bool is_durable);

#endif
