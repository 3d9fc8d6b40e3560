/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The cache device is gone: giving it up without losing data (DESIGN rule 15).
 */
#ifndef PC_LOSS_H
#define PC_LOSS_H

#include "cache.h"

void pc_loss_init(struct pc_cache *pc);

/* Any context: an I/O of the cache device failed, or one succeeded. */
void pc_loss_note(struct pc_cache *pc, bool failed);

#endif
