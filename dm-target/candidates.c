// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The policies to choose from (candidates.h).
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "broken.h"
#include "candidates.h"
#include "registry.h"

/* the default comes first: it is at work until another has shown that it is better */
static const char *const names[] = { "default", "lru", "as3fifo", "s3fifo", "smq", "mq" };

int pc_candidates_find(const struct pc_candidates *c, const char *name)
{
	unsigned int i;

	for (i = 0; i < c->nr; i++)
		if (!strcmp(c->types[i]->name, name))
			return i;
	return -1;
}

static void collect(struct pc_candidates *c, bool may_load)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names) && c->nr < PC_AUTO_MAX_POLICIES; i++) {
		struct pc_policy_type *type;

		if (pc_candidates_find(c, pc_registry_resolve(names[i])) >= 0)
			continue;
		type = pc_registry_get(names[i], may_load);
		if (!IS_ERR(type))
			c->types[c->nr++] = type;
	}
}

void pc_candidates_put(struct pc_candidates *c)
{
	if (!c)
		return;
	if (c->shadows)
		pc_auto_destroy(c->shadows);
	while (c->nr)
		pc_registry_put((struct pc_policy_type *)c->types[--c->nr]);
	kfree(c);
}

struct pc_candidates *pc_candidates_make(const struct pc_policy_params *params, bool may_load,
					 char err[PC_ERR_SIZE], int *error)
{
	struct pc_candidates *c = kzalloc(sizeof(*c), GFP_KERNEL);

	*error = -ENOMEM;
	if (!c)
		goto no_memory;
	collect(c, may_load);
	if (c->nr < 2) {
		scnprintf(err, PC_ERR_SIZE, "policy auto: %u policies to choose from, must be two at least; loaded:",
			  c->nr);
		pc_registry_list(err, PC_ERR_SIZE);
		*error = -ENOENT;
		pc_candidates_put(c);
		return NULL;
	}
	if (PC_BREAK_POLICY_MEMORY)
		goto no_memory;
	c->shadows = pc_auto_create(params, c->types, c->nr);
	if (c->shadows)
		return c;
no_memory:
	scnprintf(err, PC_ERR_SIZE, "policy auto: no memory for %u cache blocks", params->nr_cblocks);
	pc_candidates_put(c);
	return NULL;
}

size_t pc_candidates_stats(const struct pc_candidates *c, char *buf, size_t size)
{
	const struct pc_auto_entry *e;
	unsigned int i;
	size_t len;

	len = scnprintf(buf, size, "auto_working %s\n", c->types[pc_auto_index(c->shadows)]->name);
	for (i = 0; i < c->nr; i++)
		len += scnprintf(buf + len, size - len, "auto_hits_%s %u\n", c->types[i]->name,
				 pc_auto_hits(c->shadows, i));
	for (i = 0; (e = pc_auto_log(c->shadows, i)); i++)
		len += scnprintf(buf + len, size - len, "auto_exchange_%u %llu:%s:%u:%s:%u\n", i,
				 (unsigned long long)e->accesses, c->types[e->from]->name,
				 e->from_hits, c->types[e->to]->name, e->to_hits);
	return len;
}
