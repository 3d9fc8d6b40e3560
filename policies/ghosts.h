/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Where policies keep ghosts, blocks that they remember after demotion: a word of 32
 * bits each, in sets of 8 that a hash of the oblock chooses. What a word says and which
 * word of a set is replaced is the policy's; 0 is none. 8 bytes a block of the cache, so
 * that half of the words of a set are in use where a policy has as many ghosts as blocks.
 *
 * A set is hardly ever in the CPU's cache, and a large cache's policy must not wait for
 * memory at each demotion. So a new ghost is late: for as long as it takes some more to
 * come, its word stays beside the table while its set is fetched.
 *
 * Included by policy files only; allocates in ghosts_create(), else as policy.h says.
 */
#ifndef PC_GHOSTS_H
#define PC_GHOSTS_H

#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/prefetch.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "block-types.h"

#define GHOST_WAYS 8u
#define GHOSTS_LATE 8u

struct ghosts {
	u32 *words;
	u32 nr_sets;
	u32 late_at;				/* of the oldest */
	u32 late_hashes[GHOSTS_LATE];
	u32 late_words[GHOSTS_LATE];
};

static inline u32 hash_oblock(pc_oblock_t o)
{
	return hash_64(pc_from_oblock(o), 32);
}

static inline size_t ghosts_bytes(const struct ghosts *g)
{
	return (size_t)g->nr_sets * GHOST_WAYS * sizeof(*g->words);
}

/* False: out of memory. */
static inline bool ghosts_create(struct ghosts *g, u32 nr_cblocks)
{
	g->nr_sets = DIV_ROUND_UP(nr_cblocks, GHOST_WAYS / 2);
	g->words = vzalloc(ghosts_bytes(g));
	return g->words;
}

static inline void ghosts_destroy(struct ghosts *g)
{
	vfree(g->words);
}

static inline u32 *ghosts_set(const struct ghosts *g, u32 hash)
{
	return g->words + ((u64)hash * g->nr_sets >> 32) * GHOST_WAYS;
}

/* The set of this hash is needed soon. A set of 32 bytes lies in one line of memory. */
static inline void ghosts_fetch(const struct ghosts *g, u32 hash)
{
	prefetchw(ghosts_set(g, hash));
}

/* The word of a late one, or NULL. Cleared, it never comes to its set. */
static inline u32 *ghosts_find_late(struct ghosts *g, u32 hash)
{
	unsigned int i;

	for (i = 0; i < GHOSTS_LATE; i++)
		if (g->late_hashes[i] == hash && g->late_words[i])
			return g->late_words + i;
	return NULL;
}

/* A new ghost. The word, not 0, and hash become those of one for its set, 0: none yet. */
static inline void ghosts_add_late(struct ghosts *g, u32 *hash, u32 *word)
{
	u32 at = g->late_at++ % GHOSTS_LATE;

	ghosts_fetch(g, *hash);
	swap(g->late_hashes[at], *hash);
	swap(g->late_words[at], *word);
}

#endif
