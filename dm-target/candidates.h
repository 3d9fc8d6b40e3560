/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The policies among which the policy name auto chooses: all that are there of those
 * that come with polycache, each held by a reference, and their shadows (auto.h).
 *
 * make, put and switch may sleep; the others are called under the policy lock.
 */
#ifndef PC_CANDIDATES_H
#define PC_CANDIDATES_H

#include <linux/types.h>

#include "args.h"
#include "auto.h"
#include "policy.h"

struct pc_candidates {
	struct pc_auto *shadows;
	const struct pc_policy_type *types[PC_AUTO_MAX_POLICIES];
	unsigned int nr;
};

/* may_load: their modules are requested. NULL: err says why, *error is -ENOENT or -ENOMEM. */
struct pc_candidates *pc_candidates_make(const struct pc_policy_params *params, bool may_load,
					 char err[PC_ERR_SIZE], int *error);
void pc_candidates_put(struct pc_candidates *c);

/* The number of the policy of that name, or -1. */
int pc_candidates_find(const struct pc_candidates *c, const char *name);

/* Lines "name value" for stats into buf; returns their length. */
size_t pc_candidates_stats(const struct pc_candidates *c, char *buf, size_t size);

#endif
