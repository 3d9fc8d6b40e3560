/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: find, count and set bits; nothing here is atomic. */
#ifndef KSHIM_LINUX_BITOPS_H
#define KSHIM_LINUX_BITOPS_H

#include <stdbool.h>
#include <linux/types.h>
#include <linux/bits.h>

#define BITS_TO_LONGS(n) (((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)

static inline unsigned int hweight8(u8 w) { return __builtin_popcount(w); }
static inline unsigned int hweight16(u16 w) { return __builtin_popcount(w); }
static inline unsigned int hweight32(u32 w) { return __builtin_popcount(w); }
static inline unsigned int hweight64(u64 w) { return __builtin_popcountll(w); }
static inline unsigned int hweight_long(unsigned long w) { return __builtin_popcountl(w); }

/* undefined for 0, as in the kernel */
static inline unsigned long __ffs(unsigned long w) { return __builtin_ctzl(w); }
static inline unsigned long __ffs64(u64 w) { return __builtin_ctzll(w); }
static inline unsigned long __fls(unsigned long w) { return 63 - __builtin_clzl(w); }
static inline unsigned long ffz(unsigned long w) { return __builtin_ctzl(~w); }
/* position of the last set bit from 1; 0 for 0 */
static inline int fls(unsigned int w) { return w ? 32 - __builtin_clz(w) : 0; }
static inline int fls64(u64 w) { return w ? 64 - __builtin_clzll(w) : 0; }

static inline void __set_bit(unsigned long n, unsigned long *map)
{
	map[BIT_WORD(n)] |= BIT_MASK(n);
}

static inline void __clear_bit(unsigned long n, unsigned long *map)
{
	map[BIT_WORD(n)] &= ~BIT_MASK(n);
}

static inline bool test_bit(unsigned long n, const unsigned long *map)
{
	return map[BIT_WORD(n)] & BIT_MASK(n);
}

static inline bool __test_and_set_bit(unsigned long n, unsigned long *map)
{
	bool old = test_bit(n, map);

	__set_bit(n, map);
	return old;
}

static inline bool __test_and_clear_bit(unsigned long n, unsigned long *map)
{
	bool old = test_bit(n, map);

	__clear_bit(n, map);
	return old;
}

#define set_bit __set_bit
#define clear_bit __clear_bit

static inline unsigned long pc_shim_find(const unsigned long *map, unsigned long size,
					 unsigned long from, unsigned long invert)
{
	while (from < size) {
		unsigned long w = (map[BIT_WORD(from)] ^ invert) >> (from % BITS_PER_LONG);

		if (w) {
			from += __ffs(w);
			return from < size ? from : size;
		}
		from = (BIT_WORD(from) + 1) * BITS_PER_LONG;
	}
	return size;
}

#define find_next_bit(map, size, from) pc_shim_find(map, size, from, 0)
#define find_next_zero_bit(map, size, from) pc_shim_find(map, size, from, ~0UL)
#define find_first_bit(map, size) find_next_bit(map, size, 0)
#define find_first_zero_bit(map, size) find_next_zero_bit(map, size, 0)
#define for_each_set_bit(n, map, size) \
	for ((n) = find_first_bit(map, size); (n) < (size); (n) = find_next_bit(map, size, (n) + 1))

#endif
