/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of a cache: a policy and a block table, the same code as in the kernel, with
 * requests instead of bios and counters instead of devices. What it leaves out is listed
 * in docs/sim.md.
 */
#ifndef PC_SIM_H
#define PC_SIM_H

#include <linux/types.h>

#include "args.h"
#include "policies.h"
#include "trace.h"

struct pc_sim_config {
	const struct pc_policy_type *type;
	u32 nr_cblocks;
	u32 block_sectors;
	u64 origin_sectors;
	enum pc_mode mode;		/* not passthrough */
	u32 bypass_sequential;		/* sectors, as the tunable; 0: never */
	bool pool;			/* keep free blocks as the kernel does */
	bool has_time;			/* the requests tell seconds, else they are counted */
	u32 seed;
};

/* Sectors where nothing else is said. */
struct pc_sim_counts {
	u64 requests;
	u64 hits[2];		/* accesses by enum pc_dir: the block was in the cache */
	u64 misses[2];
	u64 partial_hits;	/* those of the read hits that had to fetch something */
	u64 sequential;		/* requests that belong to a stream which bypasses */
	u64 promotions;		/* blocks */
	u64 demotions;		/* blocks, the policy's victims */
	u64 invalidations;	/* blocks that a write of writearound took away */
	u64 no_free;		/* admitted, but no block was free and none to be had */
	u64 origin_reads;
	u64 origin_writes;
	u64 cache_writes;
	u64 writebacks;		/* those of origin_writes that demotions made */
	u64 dirty;		/* left at the end, in no other count */
};

struct pc_sim;

/* NULL: out of memory, or the policy refuses this size. */
struct pc_sim *pc_sim_create(const struct pc_sim_config *config);
void pc_sim_destroy(struct pc_sim *sim);

/* A tunable of the policy: what its set() says, -EINVAL also if it has none. */
int pc_sim_set(struct pc_sim *sim, const char *key, const char *value, const char **why);
/* The tunables as they are, "" if there are none. */
void pc_sim_tunables(struct pc_sim *sim, char text[PC_POLICY_EMIT_SIZE]);

/* nr requests; more may follow. They lie within the origin. */
void pc_sim_run(struct pc_sim *sim, const struct pc_request *requests, size_t nr);

struct pc_sim_counts pc_sim_result(const struct pc_sim *sim);
/* Bytes of the policy alone. */
size_t pc_sim_policy_memory(const struct pc_sim *sim);

#endif
