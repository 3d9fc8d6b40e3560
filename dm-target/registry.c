// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Registry of policies (registry.h): a list under a mutex. A policy in use holds a
 * reference on its module.
 */
#include <linux/err.h>
#include <linux/kmod.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "registry.h"

static DEFINE_MUTEX(types_mutex);
static LIST_HEAD(types);	/* under types_mutex */

static struct pc_policy_type *find(const char *name)
{
	struct pc_policy_type *type;

	lockdep_assert_held(&types_mutex);
	list_for_each_entry(type, &types, list)
		if (!strcmp(type->name, name))
			return type;
	return NULL;
}

static bool is_complete(const struct pc_policy_type *t)
{
	return t->create && t->destroy && t->load && t->hit && t->miss && t->inserted &&
	       t->removed && t->victims && t->hint && t->walk && t->memory;
}

int pc_policy_register(struct pc_policy_type *type)
{
	int r = 0;

	if (type->api != PC_POLICY_API || !type->name || !*type->name ||
	    strlen(type->name) >= PC_POLICY_NAME_SIZE || !strcmp(type->name, "default") ||
	    !strcmp(type->name, PC_POLICY_AUTO) ||
	    !is_complete(type)) {
		pr_err("polycache: policy %.16s: made for another version, or incomplete\n",
		       type->name ? type->name : "?");
		return -EINVAL;
	}

	mutex_lock(&types_mutex);
	if (find(type->name))
		r = -EEXIST;
	else
		list_add_tail(&type->list, &types);
	mutex_unlock(&types_mutex);
	return r;
}
EXPORT_SYMBOL_GPL(pc_policy_register);

void pc_policy_unregister(struct pc_policy_type *type)
{
	mutex_lock(&types_mutex);
	list_del(&type->list);
	mutex_unlock(&types_mutex);
}
EXPORT_SYMBOL_GPL(pc_policy_unregister);

static struct pc_policy_type *get_registered(const char *name)
{
	struct pc_policy_type *type;

	mutex_lock(&types_mutex);
	type = find(name);
	if (type && !try_module_get(type->owner))
		type = NULL;
	mutex_unlock(&types_mutex);
	return type;
}

const char *pc_registry_resolve(const char *name)
{
	return strcmp(name, "default") ? name : PC_POLICY_DEFAULT;
}

struct pc_policy_type *pc_registry_get(const char *name, bool may_load)
{
	struct pc_policy_type *type;

	name = pc_registry_resolve(name);
	type = get_registered(name);
	if (!type && may_load) {
		/* what it returns says nothing that the second look does not say better */
		request_module("dm-polycache-%s", name);
		type = get_registered(name);
	}
	return type ?: ERR_PTR(-ENOENT);
}

void pc_registry_put(struct pc_policy_type *type)
{
	module_put(type->owner);
}

void pc_registry_list(char *text, size_t size)
{
	struct pc_policy_type *type;
	size_t len = strlen(text);

	mutex_lock(&types_mutex);
	list_for_each_entry(type, &types, list)
		len += scnprintf(text + len, size - len, " %s", type->name);
	mutex_unlock(&types_mutex);
}
