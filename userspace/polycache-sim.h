/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Results of polycache sim, between the command and what draws or prints them.
 */
#ifndef POLYCACHE_SIM_H
#define POLYCACHE_SIM_H

#include <stdbool.h>

#include "sim.h"
#include "trace.h"

#define PC_SIM_MAX_POLICIES 32
#define PC_SIM_MAX_SIZES 64

struct pc_sim_policy {
	const struct pc_policy_type *type;
	char *label;		/* as it was asked for */
	char *tunables;		/* "key=value:key=value", or "" */
};

struct pc_sim_size {
	const char *text;	/* as it was asked for */
	u32 nr_cblocks;
};

/* One policy at one size. */
struct pc_sim_run {
	struct pc_sim_counts counts;
	size_t policy_memory;
	double seconds;
	char tunables[PC_POLICY_EMIT_SIZE];
};

struct pc_sim_report {
	const char *path;
	struct pc_trace trace;
	struct pc_sim_config config;	/* what all runs share */
	struct pc_sim_policy policies[PC_SIM_MAX_POLICIES];
	unsigned int nr_policies;
	struct pc_sim_size sizes[PC_SIM_MAX_SIZES];
	unsigned int nr_sizes;
	double read_seconds;
	/* [size][policy] */
	struct pc_sim_run runs[PC_SIM_MAX_SIZES][PC_SIM_MAX_POLICIES];
};

static inline u64 pc_sim_hits(const struct pc_sim_counts *c)
{
	return c->hits[PC_READ] + c->hits[PC_WRITE];
}

static inline u64 pc_sim_misses(const struct pc_sim_counts *c)
{
	return c->misses[PC_READ] + c->misses[PC_WRITE];
}

/* polycache-sim-print.c */
void pc_sim_print_text(const struct pc_sim_report *r, bool verbose);
void pc_sim_print_json(const struct pc_sim_report *r);

/* polycache-sim-plot.c: false after an error, which is out. */
bool pc_sim_can_plot(void);
bool pc_sim_plot(const struct pc_sim_report *r, const char *path);

#endif
