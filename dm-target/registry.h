/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] Policies by name. Every function may sleep. A policy module registers itself
 * (policy.h); the hosts (host.h) take from here.
 */
#ifndef PC_REGISTRY_H
#define PC_REGISTRY_H

#include <linux/types.h>

#include "policy.h"

/*
 * The type of that name, with a reference on its module; may_load: request the module
 * dm-polycache-NAME if there is none. ERR_PTR(-ENOENT): none.
 */
struct pc_policy_type *pc_registry_get(const char *name, bool may_load);
void pc_registry_put(struct pc_policy_type *type);

/* The name that "default" stands for, or name itself. */
const char *pc_registry_resolve(const char *name);

/* Appends the names of all registered policies to text, each after a blank. */
void pc_registry_list(char *text, size_t size);

#endif
