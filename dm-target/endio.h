/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The ends of bios: dm's end_io, and what a failed or waiting one does next
 * (DESIGN rules 3, 6, 13 and 15).
 */
#ifndef PC_ENDIO_H
#define PC_ENDIO_H

#include "cache.h"

/* dm's end_io; may run in an interrupt. DM_ENDIO_x. */
int pc_endio(struct pc_cache *pc, struct bio *bio, blk_status_t *error);

/* From the worker: a bio past its lookup goes on. False: it wants a new lookup. */
bool pc_endio_continue(struct pc_cache *pc, struct bio *bio);

#endif
