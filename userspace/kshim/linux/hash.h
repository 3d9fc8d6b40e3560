/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: multiplicative hashing, the high bits of the product. */
#ifndef KSHIM_LINUX_HASH_H
#define KSHIM_LINUX_HASH_H

#include <linux/types.h>

#define GOLDEN_RATIO_32 0x61C88647u
#define GOLDEN_RATIO_64 0x61C8864680B583EBull

static inline u32 hash_32(u32 val, unsigned int bits)
{
	return (val * GOLDEN_RATIO_32) >> (32 - bits);
}

static inline u32 hash_64(u64 val, unsigned int bits)
{
	return (val * GOLDEN_RATIO_64) >> (64 - bits);
}

#define hash_long(val, bits) hash_64(val, bits)

#endif
