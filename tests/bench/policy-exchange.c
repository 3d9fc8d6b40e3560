// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an exchange of policies costs (make -f userspace/userspace.mk policy-cost): ms from
 * each policy to each other one, by the code that the target runs (swap.h).
 *
 *   policy-exchange [BLOCKS]         default: 1048576
 *
 * All cblocks are held, filled in a random order and hit in another one. A slice is as
 * many blocks as host.c moves under the policy lock at once; printed is also the longest
 * one, for which I/O may have to wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/bitops.h>

#include "policies.h"
#include "swap.h"

#define SLICE 256u

static u32 nr = 1 << 20;
static u32 *order;
static double longest;		/* slice, ms */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void *zalloc_or_die(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "policy-exchange: no memory for %zu times %zu bytes\n", n, size);
		exit(1);
	}
	return p;
}

static void shuffle(void)
{
	static u64 state = 1;

	for (u32 i = 0; i < nr; i++) {
		u32 k;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		k = (state >> 32) * (i + 1) >> 32;
		order[i] = order[k];
		order[k] = i;
	}
}

static bool lookup(void *ctx, pc_cblock_t c, pc_oblock_t *o, bool *dirty)
{
	*o = pc_oblock(pc_from_cblock(c) * 7ull);
	*dirty = pc_from_cblock(c) % 2;
	return true;
}

static struct pc_policy *create(const struct pc_policy_type *type)
{
	struct pc_policy_params params = {
		.nr_cblocks = nr, .nr_oblocks = 8ull * nr, .block_sectors = 128, .seed = 1,
	};
	struct pc_policy *p = type->create(type, &params);

	if (!p) {
		fprintf(stderr, "policy-exchange: no memory for policy %s of %u blocks\n",
			type->name, nr);
		exit(1);
	}
	return p;
}

static void fill(struct pc_policy *p)
{
	shuffle();
	for (u32 i = 0; i < nr; i++)
		p->type->inserted(p, pc_cblock(order[i]), pc_oblock(order[i] * 7ull));
	shuffle();
	for (u32 i = 0; i < nr; i++)
		p->type->hit(p, pc_cblock(order[i]), pc_oblock(order[i] * 7ull), PC_READ);
}

/* Returns ms, creation of the new policy included. */
static double exchange(struct pc_policy *old, const struct pc_policy_type *type)
{
	size_t words = BITS_TO_LONGS((unsigned long)nr);
	unsigned long *held = zalloc_or_die(words, sizeof(long));
	unsigned long *loaded;
	double start, slice, ms;
	struct pc_policy *new;
	struct pc_swap swap;
	bool done = false;

	for (u32 i = 0; i < nr; i++)
		__set_bit(i, held);
	start = now_ms();
	new = create(type);
	loaded = zalloc_or_die(words, sizeof(long));
	pc_swap_init(&swap, old, new, nr, held, loaded);
	while (!done) {
		slice = now_ms();
		done = pc_swap_step(&swap, SLICE, lookup, NULL);
		slice = now_ms() - slice;
		longest = slice > longest ? slice : longest;
	}
	ms = now_ms() - start;
	if (memcmp(held, loaded, words * sizeof(long)) != 0) {
		fprintf(stderr, "policy-exchange: %s to %s: blocks were lost\n", old->type->name,
			type->name);
		exit(1);
	}
	type->destroy(new);
	free(held);
	free(loaded);
	return ms;
}

int main(int argc, char **argv)
{
	struct pc_policy_type *from = NULL, *to = NULL;

	if (argc > 2 || (argc > 1 && kstrtouint(argv[1], 10, &nr)) || !nr || nr > 1u << 28) {
		fprintf(stderr, "policy-exchange: [BLOCKS]: from 1 to 268435456, not '%s'\n",
			argc > 1 ? argv[argc - 1] : "");
		return 2;
	}
	order = zalloc_or_die(nr, sizeof(*order));
	printf("\n%u blocks from one policy to another, in ms\n%-10s", nr, "from\\to");
	while ((to = pc_policy_next(to)))
		printf(" %8s", to->name);
	printf("\n");
	while ((from = pc_policy_next(from))) {
		struct pc_policy *old = create(from);

		fill(old);
		printf("%-10s", from->name);
		while ((to = pc_policy_next(to))) {
			printf(" %8.1f", exchange(old, to));
			fflush(stdout);
		}
		printf("\n");
		from->destroy(old);
	}
	printf("the longest slice of %u blocks: %.2f ms\n", SLICE, longest);
	free(order);
	return 0;
}
