/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Fills: one read of the origin serves the reader and populates the cache.
 *
 * A fill owns its sub-blocks from pc_fill_claim() (busy, under the shard lock) until
 * its cache write completed. It holds each of its blocks in flight.
 */
#ifndef PC_FILL_H
#define PC_FILL_H

#include "cache.h"

#define PC_FILL_MAX_PARTS 33u

/* A run of sub-blocks of one block. */
struct pc_fill_part {
	u32 cblock;
	u32 first, last;
	u64 oblock;
};

/* May sleep. */
int pc_fill_init(struct pc_cache *pc);
void pc_fill_exit(struct pc_cache *pc);

/*
 * Under the shard lock. Sub-blocks of mask, of this mapped block, that a fill may
 * populate now (rules 5 and 6).
 */
u64 pc_fill_allowed(struct pc_cache *pc, struct pc_block *blk, u64 mask);
/* Under the shard lock. Marks them busy. False: no pending object. */
bool pc_fill_claim(struct pc_cache *pc, struct pc_block *blk, u32 first, u32 last);

/*
 * Not under a lock; does not sleep. Starts a fill of claimed runs, adjacent on the
 * origin, in ascending order. reader may be NULL; it is a bio that lies inside and
 * is ended by the fill, or retried as a plain miss. False: no memory; the claims
 * are given back and the reader is still the caller's.
 */
bool pc_fill_start(struct pc_cache *pc, const struct pc_fill_part *parts, unsigned int nr,
		   struct bio *reader);

/* Sectors to fetch on a miss now. */
u32 pc_fill_window(struct pc_cache *pc);
/* An origin read of a few sectors took so long; the estimate of a seek. Any context. */
void pc_fill_note_latency(struct pc_cache *pc, u64 ns, u32 sectors);
/* Under the shard lock: a read hit on a block with PC_BLOCK_SAMPLED. */
void pc_fill_note_hit(struct pc_cache *pc, struct pc_block *blk, u64 mask);
u64 pc_fill_seek_ns(struct pc_cache *pc);

#endif
