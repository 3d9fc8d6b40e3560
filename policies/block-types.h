/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Block numbers as distinct types, so that sparse finds a swapped argument.
 *
 * An origin block (oblock) counts the origin device in units of the block size,
 * 48 bits on disk; a cache block (cblock) counts the cache device, 32 bits.
 * Values never mix and are never computed with but through these helpers.
 */
#ifndef PC_BLOCK_TYPES_H
#define PC_BLOCK_TYPES_H

#include <linux/types.h>

typedef u64 __bitwise pc_oblock_t;
typedef u32 __bitwise pc_cblock_t;

#define PC_OBLOCK_MAX ((1ULL << 48) - 1)

static inline pc_oblock_t pc_oblock(u64 n)
{
	return (__force pc_oblock_t)n;
}

static inline u64 pc_from_oblock(pc_oblock_t o)
{
	return (__force u64)o;
}

static inline pc_cblock_t pc_cblock(u32 n)
{
	return (__force pc_cblock_t)n;
}

static inline u32 pc_from_cblock(pc_cblock_t c)
{
	return (__force u32)c;
}

/* "no block": never a valid index, a cache has at most 2^32 - 2 blocks */
#define PC_CBLOCK_NONE ((__force pc_cblock_t)0xffffffffu)

#endif
