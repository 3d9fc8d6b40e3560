/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] What happens to one bio: map and the worker that retries (DESIGN
 * rules 1 to 7, 15, 17, 18 and 25).
 */
#ifndef PC_MAP_H
#define PC_MAP_H

#include "cache.h"

/* May sleep. */
int pc_map_init(struct pc_cache *pc);
void pc_map_exit(struct pc_cache *pc);

/* dm's map. The bio's sector is relative to the target already. DM_MAPIO_x. */
int pc_map_bio(struct pc_cache *pc, struct bio *bio);

#endif
