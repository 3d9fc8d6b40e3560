/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Which policy would hit most: small shadows of several policies, fed with a sample
 * of the accesses (policy name `auto`).
 *
 * A shadow is an instance of a policy with a table of its own and no data. Blocks are
 * sampled by a hash of their number, and the shadow is smaller than the cache in the same
 * ratio, so that its hit ratio is that of the policy at full size (Waldspurger, Park,
 * Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015).
 *
 * Owner: the policy host (registry.c), or the simulator. create and destroy may sleep;
 * the rest is called under the policy lock and does neither sleep nor allocate.
 */
#ifndef PC_AUTO_H
#define PC_AUTO_H

#include <linux/types.h>

#include "policy.h"

#define PC_AUTO_MAX_POLICIES 8u
#define PC_AUTO_LOG 8u

/* A decision; ratios are hits of the sampled accesses of late, in 1/1000. */
struct pc_auto_entry {
	u64 accesses;		/* so many had been, of the whole device */
	u8 from, to;
	u16 from_hits, to_hits;
};

struct pc_auto;

/* NULL: no memory. types: of the policies to try, nr of them; they must outlive it. */
struct pc_auto *pc_auto_create(const struct pc_policy_params *params,
			       const struct pc_policy_type *const *types, unsigned int nr);
void pc_auto_destroy(struct pc_auto *a);
size_t pc_auto_memory(const struct pc_auto *a);

/* The policy at work is this one, also where an exchange failed: the choice waits anew. */
void pc_auto_working(struct pc_auto *a, unsigned int index);
/* The policy chosen was put to work: goes into the log. */
void pc_auto_exchanged(struct pc_auto *a, unsigned int index);
unsigned int pc_auto_index(const struct pc_auto *a);

/* Every hit, and every miss that is no stream's and no prefetch. */
void pc_auto_access(struct pc_auto *a, pc_oblock_t o, enum pc_dir dir);

/* The policy that should be at work instead, or -1. Says so until it is told. */
int pc_auto_choice(const struct pc_auto *a);

/* Hits of late of that shadow, in 1/1000 of the sampled accesses; 0 before there are any. */
unsigned int pc_auto_hits(const struct pc_auto *a, unsigned int index);

/* The exchanges done, latest first: n from 0 on; NULL: no more. */
const struct pc_auto_entry *pc_auto_log(const struct pc_auto *a, unsigned int n);

u64 pc_auto_exchanges(const struct pc_auto *a);

/*
 * The one tunable, as set() and emit() of a policy: margin, what a policy must be better
 * by, in 1/1000 of the accesses.
 */
int pc_auto_set(struct pc_auto *a, const char *key, const char *value, const char **why);
unsigned int pc_auto_emit(const struct pc_auto *a, char *buf, size_t len);

#endif
