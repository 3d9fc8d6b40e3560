// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a policy costs (make -f userspace/userspace.mk policy-cost): for each policy
 * that is linked in, ns for a hit and for a miss with an eviction, and bytes a block,
 * beside a policy that does nothing and a bare list move, all in one run.
 *
 *   policy-cost [BLOCKS [RUNS]]      default: 4194304 blocks, the best of 3 runs
 *
 * The bare move takes a random node out of a list linked by 32-bit indices and puts it
 * at the end. It is measured over nodes of 16 bytes and over nodes of as many bytes as
 * the policy has a block, and the ratio is to the faster of the two. Accesses are
 * random. Cblocks are filled in a random order, and each run has gone through as many
 * hits and misses as there are blocks before the clock starts.
 *
 * A policy is called as the target calls it: hits come in batches, with expect() for
 * those that follow (host.c). Victims are asked for 64 at a time (reclaim.c) and removed
 * when the next have been asked for, for that takes a commit; a block is inserted right
 * after its miss. Each fourth miss is one of a block that was evicted before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <linux/bitops.h>

#include "policies.h"

#define BATCH 64u
#define HITS_AHEAD 8u
#define LAG 1u

static u32 nr = 1 << 22;
static u64 sink;		/* keeps the compiler from leaving work out */

static u64 random_state = 1;

static u32 random_below(u32 n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 32) * n >> 32;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *zalloc_or_die(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "policy-cost: no memory for %zu times %zu bytes\n", n, size);
		exit(1);
	}
	return p;
}

static u32 *random_order(void)
{
	u32 *order = zalloc_or_die(nr, sizeof(*order));

	for (u32 i = 0; i < nr; i++) {
		u32 k = random_below(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	return order;
}

/* The bare list: node nr is its head; the stride is in words of 32 bits. */

static u32 *prev_of(u32 *nodes, u32 stride, u32 i)
{
	return nodes + (size_t)i * stride;
}

static u32 *next_of(u32 *nodes, u32 stride, u32 i)
{
	return nodes + (size_t)i * stride + 1;
}

static void link_last(u32 *nodes, u32 stride, u32 i)
{
	u32 last = *prev_of(nodes, stride, nr);

	*prev_of(nodes, stride, i) = last;
	*next_of(nodes, stride, i) = nr;
	*next_of(nodes, stride, last) = i;
	*prev_of(nodes, stride, nr) = i;
}

static void move_randomly(u32 *nodes, u32 stride)
{
	for (u32 n = 0; n < nr; n++) {
		u32 i = random_below(nr);
		u32 prev = *prev_of(nodes, stride, i), next = *next_of(nodes, stride, i);

		*next_of(nodes, stride, prev) = next;
		*prev_of(nodes, stride, next) = prev;
		link_last(nodes, stride, i);
	}
}

static double bare_move(u32 bytes)
{
	u32 stride = bytes / sizeof(u32);
	u32 *nodes = zalloc_or_die((size_t)nr + 1, bytes), *order = random_order();
	double start, end;

	*prev_of(nodes, stride, nr) = nr;
	*next_of(nodes, stride, nr) = nr;
	for (u32 i = 0; i < nr; i++)
		link_last(nodes, stride, order[i]);
	move_randomly(nodes, stride);
	start = now_ns();
	move_randomly(nodes, stride);
	end = now_ns();
	sink += nodes[random_below(nr)];
	free(order);
	free(nodes);
	return (end - start) / nr;
}

/* A policy that does nothing: what the calls and this program cost. */

struct empty {
	struct pc_policy policy;
	u32 next;
};

static struct pc_policy *empty_create(const struct pc_policy_type *type,
				      const struct pc_policy_params *params)
{
	struct empty *e = zalloc_or_die(1, sizeof(*e));

	e->policy.type = type;
	return &e->policy;
}

static void empty_destroy(struct pc_policy *p)
{
	free(p);
}

static void empty_hit(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
}

static enum pc_verdict empty_miss(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				  unsigned int flags)
{
	return PC_ADMIT;
}

static void empty_inserted(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
}

static void empty_removed(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o)
{
}

static unsigned int empty_victims(struct pc_policy *p, unsigned int n, pc_cblock_t *out)
{
	struct empty *e = container_of(p, struct empty, policy);

	unsigned int i;

	for (i = 0; i < n; i++)
		out[i] = pc_cblock(e->next++ % nr);
	return n;
}

static size_t empty_memory(struct pc_policy *p)
{
	return sizeof(struct empty);
}

static const struct pc_policy_type empty_type = {
	.name = "(empty)",
	.create = empty_create,
	.destroy = empty_destroy,
	.hit = empty_hit,
	.miss = empty_miss,
	.inserted = empty_inserted,
	.removed = empty_removed,
	.victims = empty_victims,
	.memory = empty_memory,
};

/* The k-th oblock that comes new: all differ, in no order. */
static pc_oblock_t new_oblock(u64 k)
{
	return pc_oblock(k * 0x9e3779b97f4a7c15ull & PC_OBLOCK_MAX);
}

static void hit_batch(struct pc_policy *p)
{
	u32 blocks[BATCH];
	unsigned int i, ahead = 0;

	for (i = 0; i < BATCH; i++)
		blocks[i] = random_below(nr);
	for (i = 0; i < BATCH; i++) {
		for (; p->type->expect && ahead < BATCH && ahead <= i + HITS_AHEAD; ahead++)
			p->type->expect(p, pc_cblock(blocks[ahead]));
		p->type->hit(p, pc_cblock(blocks[i]), new_oblock(i), PC_READ);
	}
}

static void hit_randomly(struct pc_policy *p, u32 hits)
{
	for (; hits; hits -= BATCH)
		hit_batch(p);
}

struct batch {
	pc_cblock_t c[BATCH];
};

/* What the core knows of the cache. */
struct cache {
	u64 missed;			/* counts misses */
	pc_oblock_t *oblocks;		/* that are cached */
	struct batch demoting[LAG];	/* not removed yet */
	unsigned long *is_demoting;	/* a bit each */
	u32 demoted;			/* counts batches */
};

/*
 * Adds a batch to those that are being demoted; blocks that are already may be offered
 * again, and are refused. Returns ns, or 0 for a policy that gives nothing up.
 */
static double demote_batch(struct pc_policy *p, struct cache *cache)
{
	struct batch *batch = &cache->demoting[cache->demoted++ % LAG];
	pc_cblock_t offered[BATCH];
	unsigned int got = 0, n, i;
	double start, ns = 0;

	while (got < BATCH) {
		start = now_ns();
		n = p->type->victims(p, BATCH - got, offered);
		ns += now_ns() - start;
		if (!n)
			return 0;
		for (i = 0; i < n; i++) {
			u32 c = pc_from_cblock(offered[i]);

			if (__test_and_set_bit(c, cache->is_demoting))
				continue;
			batch->c[got++] = offered[i];
		}
	}
	return ns;
}

/* Returns ns, or 0 as above. What the core does is not timed. */
static double miss_batch(struct pc_policy *p, struct cache *cache)
{
	pc_oblock_t demoted[BATCH], missed[BATCH];
	struct batch batch;
	double start, ns;
	unsigned int i;

	while (cache->demoted < LAG)
		if (!demote_batch(p, cache))
			return 0;
	batch = cache->demoting[cache->demoted % LAG];
	ns = demote_batch(p, cache);
	if (!ns)
		return 0;

	for (i = 0; i < BATCH; i++) {
		u32 c = pc_from_cblock(batch.c[i]);
		u64 n = ++cache->missed;

		__clear_bit(c, cache->is_demoting);
		demoted[i] = cache->oblocks[c];
		missed[i] = new_oblock(n % 4 || n < 3ull * nr / 2 ? n : n - 3ull * nr / 2);
		cache->oblocks[c] = missed[i];
	}

	start = now_ns();
	for (i = 0; i < BATCH; i++)
		p->type->removed(p, batch.c[i], demoted[i]);
	for (i = 0; i < BATCH; i++) {
		sink += p->type->miss(p, missed[i], PC_READ, 0);
		p->type->inserted(p, batch.c[i], missed[i]);
	}
	return ns + now_ns() - start;
}

/* Returns ns for all, or 0 as above. */
static double miss_randomly(struct pc_policy *p, struct cache *cache, u32 misses)
{
	double ns = 0;

	for (; misses; misses -= BATCH) {
		double batch = miss_batch(p, cache);

		if (!batch)
			return 0;
		ns += batch;
	}
	return ns;
}

struct cost {
	double hit;
	double miss;		/* 0: gives nothing up */
	double bytes;
};

static struct cost measure(const struct pc_policy_type *type)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr, .nr_oblocks = PC_OBLOCK_MAX, .block_sectors = 128, .seed = 1,
	};
	struct pc_policy *p = type->create(type, &params);
	struct cache cache = {
		.missed = nr, .oblocks = zalloc_or_die(nr, sizeof(pc_oblock_t)),
		.is_demoting = zalloc_or_die(BITS_TO_LONGS((unsigned long)nr), sizeof(long)),
	};
	u32 *order = random_order();
	struct cost cost = { 0 };
	bool evicts = true;
	double start;

	if (!p) {
		fprintf(stderr, "policy-cost: no memory for policy %s of %u blocks\n", type->name,
			nr);
		exit(1);
	}
	for (u32 i = 0; i < nr; i++) {
		cache.oblocks[order[i]] = new_oblock(i);
		type->inserted(p, pc_cblock(order[i]), new_oblock(i));
	}
	free(order);
	for (u32 n = 0; n < nr && evicts; n += 1024) {
		hit_randomly(p, 1024);
		evicts = miss_randomly(p, &cache, 1024);
	}

	start = now_ns();
	hit_randomly(p, nr);
	cost.hit = (now_ns() - start) / nr;
	cost.miss = miss_randomly(p, &cache, nr) / nr;
	cost.bytes = (double)type->memory(p) / nr;
	type->destroy(p);
	free(cache.oblocks);
	free(cache.is_demoting);
	return cost;
}

static double least(double a, double b)
{
	return a && (a < b || !b) ? a : b;
}

static void report(const struct pc_policy_type *type, unsigned int runs)
{
	struct cost best = { 0 };
	double bare = 0;

	/* the two alternate, so that what else runs here disturbs both alike */
	while (runs--) {
		struct cost cost = measure(type);
		u32 bytes = ((u32)cost.bytes + 3) / 4 * 4;

		best.hit = least(cost.hit, best.hit);
		best.miss = least(cost.miss, best.miss);
		best.bytes = cost.bytes;
		bare = least(bare_move(16), bare);
		if (bytes >= 8)
			bare = least(bare_move(bytes), bare);
	}
	printf("%-10s %8.1f %8.1f %8.1f %8.2f", type->name, best.bytes, bare, best.hit,
	       best.hit / bare);
	if (best.miss)
		printf(" %8.1f %8.2f\n", best.miss, best.miss / bare);
	else
		printf(" %8s %8s\n", "-", "-");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct pc_policy_type *type = NULL;
	unsigned int runs = 3;

	if (argc > 3 || (argc > 1 && kstrtouint(argv[1], 10, &nr)) || nr < 1024 ||
	    nr % 1024 || nr > 1u << 28 || (argc > 2 && kstrtouint(argv[2], 10, &runs)) || !runs) {
		fprintf(stderr, "policy-cost: [BLOCKS [RUNS]]: a multiple of 1024 up to 268435456, "
			"and 1 or more; not '%s'\n", argc > 1 ? argv[argc - 1] : "");
		return 2;
	}
	printf("%u blocks, random accesses, best of %u runs; bare: one list move\n", nr, runs);
	printf("%-10s %8s %8s %8s %8s %8s %8s\n", "policy", "B/block", "bare ns", "hit ns",
	       "/ bare", "miss ns", "/ bare");
	report(&empty_type, runs);
	while ((type = pc_policy_next((struct pc_policy_type *)type)))
		report(type, runs);
	return sink == 1;
}
