/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Reads: hit, wait or miss, and how far a miss fetches (DESIGN rules 2, 17, 19).
 */
#ifndef PC_READ_H
#define PC_READ_H

#include "lookup.h"

/* May sleep. */
void pc_read_init(struct pc_cache *pc);

/* Decides; returns DM_MAPIO_x. Does not sleep. */
int pc_read_map(struct pc_lookup *l);
/* Any context: fill these sub-blocks in the background (rule 4). */
void pc_read_fill_later(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last);

/* Any context: a plain read of the origin has ended. */
void pc_read_note_latency(struct pc_cache *pc, struct pc_bio *pb);

#endif
