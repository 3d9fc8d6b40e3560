// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy auto for the model (sim-auto.h). The kernel looks every second whether another
 * policy should work and exchanges it in slices; here both happen at once, with the
 * access that made the difference.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "policies.h"
#include "sim-auto.h"
#include "swap.h"

struct sim_auto {
	struct pc_policy policy;
	struct pc_policy_params params;
	struct pc_auto *shadows;
	const struct pc_policy_type *types[PC_AUTO_MAX_POLICIES];
	struct pc_policy *working;
	unsigned long *held;		/* bit a cblock */
	unsigned long *loaded;		/* all zero but during an exchange */
	u64 *oblocks;			/* of held cblocks */
};

static struct sim_auto *to_auto(struct pc_policy *p)
{
	return container_of(p, struct sim_auto, policy);
}

/* The default comes first, as in candidates.c. */
static unsigned int collect(const struct pc_policy_type **types)
{
	struct pc_policy_type *t = NULL, *first = pc_policy_find(PC_POLICY_DEFAULT);
	unsigned int nr = 0;

	if (first)
		types[nr++] = first;
	while ((t = pc_policy_next(t)) && nr < PC_AUTO_MAX_POLICIES)
		if (t != first && !(t->flags & PC_POLICY_CLEANER))
			types[nr++] = t;
	return nr;
}

static void auto_destroy(struct pc_policy *p)
{
	struct sim_auto *a = to_auto(p);

	if (a->working)
		a->working->type->destroy(a->working);
	if (a->shadows)
		pc_auto_destroy(a->shadows);
	vfree(a->held);
	vfree(a->loaded);
	vfree(a->oblocks);
	kfree(a);
}

static struct pc_policy *auto_create(const struct pc_policy_type *type,
				     const struct pc_policy_params *params)
{
	struct sim_auto *a = kzalloc(sizeof(*a), GFP_KERNEL);
	size_t bits = BITS_TO_LONGS((unsigned long)params->nr_cblocks) * sizeof(long);

	if (!a)
		return NULL;
	a->policy.type = type;
	a->params = *params;
	a->shadows = pc_auto_create(params, a->types, collect(a->types));
	a->held = vzalloc(bits);
	a->loaded = vzalloc(bits);
	a->oblocks = vzalloc(params->nr_cblocks * sizeof(*a->oblocks));
	if (a->types[0])
		a->working = a->types[0]->create(a->types[0], params);
	if (a->shadows && a->held && a->loaded && a->oblocks && a->working)
		return &a->policy;
	auto_destroy(&a->policy);
	return NULL;
}

static bool lookup(void *ctx, pc_cblock_t c, pc_oblock_t *o, bool *dirty)
{
	struct sim_auto *a = ctx;

	*o = pc_oblock(a->oblocks[pc_from_cblock(c)]);
	*dirty = false;
	return true;
}

static void exchange(struct sim_auto *a, unsigned int to)
{
	struct pc_policy *new = a->types[to]->create(a->types[to], &a->params);
	struct pc_swap swap;

	if (!new) {
		pc_auto_working(a->shadows, pc_auto_index(a->shadows));
		return;
	}
	pc_swap_init(&swap, a->working, new, a->params.nr_cblocks, a->held, a->loaded);
	while (!pc_swap_step(&swap, a->params.nr_cblocks, lookup, a))
		;
	memset(a->loaded, 0, BITS_TO_LONGS((unsigned long)a->params.nr_cblocks) * sizeof(long));
	a->working->type->destroy(a->working);
	a->working = new;
	pc_auto_exchanged(a->shadows, to);
}

static void note_access(struct sim_auto *a, pc_oblock_t o, enum pc_dir dir)
{
	int to;

	pc_auto_access(a->shadows, o, dir);
	to = pc_auto_choice(a->shadows);
	if (to >= 0)
		exchange(a, to);
}

static void hold(struct sim_auto *a, pc_cblock_t c, pc_oblock_t o)
{
	__set_bit(pc_from_cblock(c), a->held);
	a->oblocks[pc_from_cblock(c)] = pc_from_oblock(o);
}

static void auto_load(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
		      bool has_hint, u32 hint)
{
	struct sim_auto *a = to_auto(p);

	hold(a, c, o);
	a->working->type->load(a->working, c, o, dirty, false, 0);
}

static void auto_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	struct sim_auto *a = to_auto(p);

	note_access(a, o, dir);
	a->working->type->hit(a->working, c, o, dir);
}

static enum pc_verdict auto_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				 unsigned int flags)
{
	struct sim_auto *a = to_auto(p);

	if (!flags)
		note_access(a, o, dir);
	return a->working->type->miss(a->working, o, dir, flags);
}

static void auto_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct sim_auto *a = to_auto(p);

	hold(a, c, o);
	a->working->type->inserted(a->working, c, o);
}

static void auto_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
	struct sim_auto *a = to_auto(p);

	__clear_bit(pc_from_cblock(c), a->held);
	a->working->type->removed(a->working, c, o);
}

static unsigned int auto_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct pc_policy *w = to_auto(p)->working;

	return w->type->victims(w, n, out);
}

static u32 auto_hint(struct pc_policy *p, pc_cblock_t c)
{
	struct pc_policy *w = to_auto(p)->working;

	return w->type->hint(w, c);
}

static unsigned int auto_walk(struct pc_policy *p, u64 *cursor, unsigned int n, pc_cblock_t *out)
{
	struct pc_policy *w = to_auto(p)->working;

	return w->type->walk(w, cursor, n, out);
}

static void auto_tick(struct pc_policy *p)
{
	struct pc_policy *w = to_auto(p)->working;

	if (w->type->tick)
		w->type->tick(w);
}

static int auto_set(struct pc_policy *p, const char *key, const char *value, const char **why)
{
	return pc_auto_set(to_auto(p)->shadows, key, value, why);
}

/* What happened, too: the simulator prints it behind a run. */
static unsigned int auto_emit(struct pc_policy *p, char *buf, size_t len)
{
	struct sim_auto *a = to_auto(p);
	unsigned int words = pc_auto_emit(a->shadows, buf, len);
	size_t used = strlen(buf);

	snprintf(buf + used, len - used, " working %s exchanges %llu", a->working->type->name,
		 (unsigned long long)pc_auto_exchanges(a->shadows));
	return words + 4;
}

static size_t auto_memory(struct pc_policy *p)
{
	struct sim_auto *a = to_auto(p);

	return a->working->type->memory(a->working) + pc_auto_memory(a->shadows);
}

const struct pc_auto *pc_sim_auto_shadows(struct pc_policy *p)
{
	return to_auto(p)->shadows;
}

const struct pc_policy_type *pc_sim_auto_type(struct pc_policy *p, unsigned int index)
{
	return to_auto(p)->types[index];
}

const struct pc_policy_type pc_sim_auto = {
	.create = auto_create,
	.destroy = auto_destroy,
	.load = auto_load,
	.hit = auto_hit,
	.miss = auto_miss,
	.inserted = auto_inserted,
	.removed = auto_removed,
	.victims = auto_victims,
	.hint = auto_hint,
	.walk = auto_walk,
	.tick = auto_tick,
	.set = auto_set,
	.emit = auto_emit,
	.memory = auto_memory,
	.name = PC_POLICY_AUTO,
	.api = PC_POLICY_API,
	.version = 1,
};
