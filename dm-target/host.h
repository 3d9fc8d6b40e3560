/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The host: what runs one policy for one device, with its lock, its per-CPU rings
 * of hits and its exchange for another one.
 *
 * Lock order: the caller's shard lock -> the policy lock, which is internal and taken
 * with interrupts off. Nothing here allocates but create, swap, follow and begin_with,
 * which use GFP_KERNEL: the caller sets memalloc_noio where that matters.
 */
#ifndef PC_HOST_H
#define PC_HOST_H

#include <linux/types.h>

#include "args.h"
#include "policy.h"
#include "swap.h"

struct pc_policy_host;

/*
 * May sleep. NULL: *error and err say why (-ENOENT: no such policy; -EINVAL: a
 * policy argument is wrong; -ENOMEM).
 */
struct pc_policy_host *pc_host_create(const struct pc_policy_params *params, const char *name,
				      const struct pc_pair *pairs, unsigned int nr_pairs,
				      bool may_load, char err[PC_ERR_SIZE], int *error);
/* May sleep. Nothing else may be running. */
void pc_host_destroy(struct pc_policy_host *host);

/*
 * Before anything is loaded: may hints of that policy and version be given to load()?
 * With auto, the policy at work becomes that one. May sleep.
 */
bool pc_host_begin_with(struct pc_policy_host *host, const char *name, u32 version);

/*
 * Starting: a load for each mapped block, any order, then pc_host_loaded, which may
 * take long, before the first I/O. May sleep.
 */
void pc_host_load(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o, bool dirty,
		  bool has_hint, u32 hint);
void pc_host_loaded(struct pc_policy_host *host);

/*
 * Interrupts off; a shard lock may be held. Waits for the policy only where the CPU's
 * ring is full. True, at times: the caller passes the hits on once it holds no lock.
 */
bool pc_host_hit(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir);
/* Any context, no lock. Does nothing while the policy is at work for another CPU. */
void pc_host_pass_hits(struct pc_policy_host *host);

/*
 * Any context, a shard lock may be held. PC_BYPASS while policies are exchanged. What
 * is inserted twice or removed twice without the other in between is ignored.
 */
enum pc_verdict pc_host_miss(struct pc_policy_host *host, pc_oblock_t o, enum pc_dir dir,
			     unsigned int flags);
void pc_host_inserted(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o);
void pc_host_removed(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o);

/* Process context, no shard lock: they empty all rings first. */
unsigned int pc_host_victims(struct pc_policy_host *host, unsigned int n, pc_cblock_t *out);
void pc_host_tick(struct pc_policy_host *host);
/* Before hints are read, so that all hits are in them. */
void pc_host_drain(struct pc_policy_host *host);

u32 pc_host_hint(struct pc_policy_host *host, pc_cblock_t c);

/* One key of the policy. -EINVAL, -EBUSY (an exchange is running): err says why. */
int pc_host_set(struct pc_policy_host *host, const char *key, const char *value,
		char err[PC_ERR_SIZE]);
/*
 * The name as configured, and "key value key value" into buf (PC_POLICY_EMIT_SIZE), which
 * belong together; returns the number of words.
 */
unsigned int pc_host_emit(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE], char *buf,
			  size_t len);

/*
 * The name as configured, and name and version of the policy at work: they differ with
 * auto. Any context. The name is copied: an exchange may free it.
 */
void pc_host_name(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE]);
u32 pc_host_working(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE]);
u32 pc_host_flags(struct pc_policy_host *host);
/* Bytes allocated by the policy, with auto also by the shadows. */
size_t pc_host_policy_memory(struct pc_policy_host *host);
/* Lines "name value" of auto into buf; returns their length. */
size_t pc_host_stats(struct pc_policy_host *host, char *buf, size_t size);

/*
 * Exchanges the policy while I/O runs; lookup is called with the policy lock held, see
 * swap.h. May sleep, but waits for no I/O. 0, or the old policy stays at work and err
 * says why: -ENOENT, -EINVAL, -ENOMEM, -EBUSY (another exchange is running).
 */
int pc_host_swap(struct pc_policy_host *host, const char *name, const struct pc_pair *pairs,
		 unsigned int nr_pairs, bool may_load, pc_swap_lookup_fn lookup, void *ctx,
		 char err[PC_ERR_SIZE]);

/*
 * Every second: with auto, exchanges the policy where another would hit more. May sleep,
 * but waits for no I/O. Returns 1 if it did, 0, or an error as pc_host_swap; text says
 * what was done or what was wrong.
 */
int pc_host_follow(struct pc_policy_host *host, pc_swap_lookup_fn lookup, void *ctx,
		   char text[PC_ERR_SIZE]);

#endif
