/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy registry of userspace: policies linked into a program register
 * themselves before main() (PC_POLICY_MODULE) and are found here by name. In the
 * kernel registry.c does this, with locks and module references.
 */
#ifndef PC_USER_POLICIES_H
#define PC_USER_POLICIES_H

#include "policy.h"

/* NULL: no such policy is linked in. */
struct pc_policy_type *pc_policy_find(const char *name);

/* All policies, for listings: NULL starts; returns NULL at the end. */
struct pc_policy_type *pc_policy_next(struct pc_policy_type *prev);

#endif
