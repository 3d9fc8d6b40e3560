/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Messages (DESIGN section 5, rule 21).
 */
#ifndef PC_MESSAGE_H
#define PC_MESSAGE_H

#include "cache.h"

/*
 * dm's message: 0, 1 with a result, or a negative errno after an error in the log.
 * Holds dm's io_barrier: starts work, and waits for no user's I/O.
 */
int pc_message(struct pc_cache *pc, unsigned int argc, char **argv, char *result,
	       unsigned int maxlen);
/* After the policy or the mode changed. */
void pc_message_apply(struct pc_cache *pc);

void pc_message_init(struct pc_cache *pc);

#endif
