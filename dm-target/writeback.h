/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Writeback: dirty sub-blocks go to the origin in its order (DESIGN rules 11 and
 * 16), while writes go on.
 */
#ifndef PC_WRITEBACK_H
#define PC_WRITEBACK_H

#include "cache.h"

/* May sleep. */
int pc_writeback_init(struct pc_cache *pc);
void pc_writeback_exit(struct pc_cache *pc);

/*
 * Any context. There is something dirty, or a reason to clean it now, or the last
 * write that a copy waits for has completed.
 */
void pc_writeback_kick(struct pc_cache *pc);
/* Any context. A block became dirty: look when the origin may be idle. */
void pc_writeback_schedule(struct pc_cache *pc);
/* The message `flush`: everything that is dirty now is written back once. */
void pc_writeback_flush(struct pc_cache *pc);
size_t pc_writeback_memory(struct pc_cache *pc);
/* No work runs after it; only once background work has ended. May sleep. */
void pc_writeback_stop(struct pc_cache *pc);

#endif
