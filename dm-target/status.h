/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The status line, the table line and the result of the message `stats`.
 */
#ifndef PC_STATUS_H
#define PC_STATUS_H

#include "cache.h"

/* dm's status. Never does I/O; may sleep. */
void pc_status(struct pc_cache *pc, status_type_t type, char *result, unsigned int maxlen);
/* "key value" lines, for the message `stats`. */
void pc_status_stats(struct pc_cache *pc, char *result, unsigned int maxlen);
void pc_status_reset(struct pc_cache *pc);
/* The lifetime counters as they are now. */
void pc_status_counters(struct pc_cache *pc, u64 counters[PC_NR_COUNTERS]);

#endif
