/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: arrays of bits. */
#ifndef KSHIM_LINUX_BITMAP_H
#define KSHIM_LINUX_BITMAP_H

#include <string.h>
#include <linux/bitops.h>
#include <linux/slab.h>

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, BITS_TO_LONGS(bits) * sizeof(long));
}

static inline unsigned int bitmap_weight(const unsigned long *map, unsigned int bits)
{
	unsigned int n, weight = 0;

	for_each_set_bit(n, map, bits)
		weight++;
	return weight;
}

static inline bool bitmap_empty(const unsigned long *map, unsigned int bits)
{
	return find_first_bit(map, bits) == bits;
}

#define bitmap_zalloc(bits, gfp) \
	((unsigned long *)kcalloc(BITS_TO_LONGS(bits), sizeof(long), gfp))
#define bitmap_free(map) kfree(map)

#endif
