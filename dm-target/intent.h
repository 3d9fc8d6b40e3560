/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Write intents as an activity log (DESIGN rule 9): how many there are, which
 * are old, and when they are asked to go. What an intent means is pending.h's.
 */
#ifndef PC_INTENT_H
#define PC_INTENT_H

#include "cache.h"

/* May sleep. */
int pc_intent_init(struct pc_cache *pc);
void pc_intent_exit(struct pc_cache *pc);

/* Under the shard lock; the committer. before and after: PC_BLOCK_INTENT_x or 0. */
void pc_intent_changes(struct pc_cache *pc, u32 cblock, u16 before, u16 after);
bool pc_intent_has_room(struct pc_cache *pc);

/* Under the shard lock: is this kind of intent to be had only after device flushes? */
bool pc_intent_needs_flush(struct pc_cache *pc, const struct pc_block *blk, u16 kind);

/*
 * Under the shard lock: a write needs this kind of intent, or an intent's end, to
 * be allowed. The bio waits for the commit. False: no pending object, or no room
 * under the cap; the bio is still the caller's.
 */
bool pc_intent_wait(struct pc_cache *pc, struct pc_block *blk, u16 kind, struct bio *bio);

/* May sleep. Asks for the oldest quarter to go / for all to go (suspend). */
void pc_intent_relieve(struct pc_cache *pc);
void pc_intent_clear_all(struct pc_cache *pc);
/* May sleep. True if a record on disk, or one in a commit, says "cache wins". */
bool pc_intent_any_cache_wins(struct pc_cache *pc);

#endif
