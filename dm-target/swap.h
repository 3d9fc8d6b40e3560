/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Exchange of one policy instance for another while blocks come and go: the
 * part without locks (DESIGN section 9). host.c runs it.
 *
 * All functions are called under the policy lock; between two steps the lock may be
 * dropped, and inserted, removed and hit may come in any number. Which blocks the
 * old policy holds is known exactly, as a bit a cblock, and so is which of them the
 * new one holds; a block that the old policy's walk misses because it moved is found
 * by these bits at the end. So every block is loaded once, whatever the walk does.
 */
#ifndef PC_SWAP_H
#define PC_SWAP_H

#include <linux/types.h>

#include "policy.h"

/*
 * What the core maps to a cblock now. False: nothing. Called under the policy lock:
 * must take no lock, and may be late, as long as inserted or removed follows.
 */
typedef bool (*pc_swap_lookup_fn)(void *ctx, pc_cblock_t c, pc_oblock_t *o, bool *dirty);

struct pc_swap {
	struct pc_policy *old;
	struct pc_policy *new;
	const unsigned long *held;	/* by the old policy; the caller keeps it up to date */
	unsigned long *loaded;		/* by the new one; in the end what the new one holds */
	u32 nr_cblocks;
	u64 cursor;			/* of the old policy's walk */
	u32 walked;
	bool is_walked;
	u32 rest;			/* next cblock to look at after the walk */
};

/* loaded: as many bits as held, all zero. */
void pc_swap_init(struct pc_swap *s, struct pc_policy *old, struct pc_policy *new,
		  u32 nr_cblocks, const unsigned long *held, unsigned long *loaded);

/* Goes on by about n blocks. True: nothing is left to load, new can take over now. */
bool pc_swap_step(struct pc_swap *s, unsigned int n, pc_swap_lookup_fn lookup, void *ctx);

/* What the old policy was told in the meantime, for the new one. */
void pc_swap_inserted(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o);
void pc_swap_removed(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o);
void pc_swap_hit(struct pc_swap *s, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir);

#endif
