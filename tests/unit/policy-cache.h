/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cache in front of one policy, for the tests of single policies: what the core does,
 * one access after the other, with a demotion for each block that needs room.
 */
#ifndef PC_POLICY_CACHE_H
#define PC_POLICY_CACHE_H

#include "policies.h"

#define POLICY_CACHE_NONE 0xffffffffu

struct policy_cache {
	const struct pc_policy_type *type;
	struct pc_policy *p;
	u32 nr;
	u32 *block;		/* of each origin block, or NONE */
	u32 *origin;		/* of each block, or NONE */
	u32 used;
	u32 demoted;		/* origin block that the last miss demoted, or NONE */
};

void policy_cache_init(struct policy_cache *c, const struct pc_policy_type *type, u32 nr,
		       u32 nr_origin);
void policy_cache_exit(struct policy_cache *c);
/* Returns whether it was a hit. A miss must be admitted. flags: those of miss(). */
bool policy_cache_access(struct policy_cache *c, u32 o, unsigned int flags);
/* Accesses count blocks in order, and returns the hits. */
u32 policy_cache_pass(struct policy_cache *c, u32 first, u32 count);
/* Another policy takes over, while nothing else happens. */
void policy_cache_exchange(struct policy_cache *c, const struct pc_policy_type *type,
			   u32 nr_origin);
/* A second policy that was given the hints of the first, as after a restart. */
struct pc_policy *policy_cache_restart(struct policy_cache *c, u32 nr_origin);
/* All held blocks from the coldest. */
u32 policy_cache_walk(struct pc_policy *p, pc_cblock_t *out);

#endif
