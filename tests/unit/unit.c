// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeds and random numbers of the unit tests. splitmix64: every state is as good
 * as any other, so a seed may simply be added to.
 */
#include <time.h>

#include "unit.h"

u64 unit_seed(void)
{
	static bool known;
	static u64 seed;

	if (!known) {
		const char *env = getenv("PC_SEED");

		if (env && *env) {
			seed = strtoull(env, NULL, 0);
		} else {
			struct timespec now;

			clock_gettime(CLOCK_REALTIME, &now);
			seed = (now.tv_sec * 1000 + now.tv_nsec / 1000000) % 1000000007;
		}
		known = true;
		printf("seed: PC_SEED=%llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	return seed;
}

void unit_random_init(struct unit_random *r, const char *salt, u64 iteration)
{
	r->state = unit_seed() * 0x9e3779b97f4a7c15ull + iteration;
	for (; *salt; salt++)
		r->state = r->state * 31 + (u8)*salt;
	unit_random(r);
}

u64 unit_random(struct unit_random *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u64 unit_random_below(struct unit_random *r, u64 n)
{
	return unit_random(r) % n;
}

bool unit_random_one_in(struct unit_random *r, u64 n)
{
	return unit_random_below(r, n) == 0;
}
