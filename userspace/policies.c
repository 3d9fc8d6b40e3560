// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy registry of userspace: a plain list, in the order of registration.
 * It makes the same checks as the kernel's registry, so that a policy which the
 * kernel would refuse does not pass the unit tests.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "policies.h"

static LIST_HEAD(types);

static bool is_complete(const struct pc_policy_type *t)
{
	return t->create && t->destroy && t->load && t->hit && t->miss && t->inserted &&
	       t->removed && t->victims && t->hint && t->walk && t->memory;
}

int pc_policy_register(struct pc_policy_type *type)
{
	if (type->api != PC_POLICY_API || !type->name || !*type->name ||
	    strlen(type->name) >= PC_POLICY_NAME_SIZE || !is_complete(type))
		return -EINVAL;
	if (pc_policy_find(type->name))
		return -EEXIST;
	list_add_tail(&type->list, &types);
	return 0;
}

void pc_policy_unregister(struct pc_policy_type *type)
{
	list_del(&type->list);
}

struct pc_policy_type *pc_policy_find(const char *name)
{
	struct pc_policy_type *t;

	list_for_each_entry(t, &types, list)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

struct pc_policy_type *pc_policy_next(struct pc_policy_type *prev)
{
	struct list_head *next = prev ? prev->list.next : types.next;

	return next == &types ? NULL : list_entry(next, struct pc_policy_type, list);
}
