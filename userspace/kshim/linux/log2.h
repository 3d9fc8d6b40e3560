/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: logarithms of whole numbers. */
#ifndef KSHIM_LINUX_LOG2_H
#define KSHIM_LINUX_LOG2_H

#include <stdbool.h>
#include <linux/bitops.h>

#define ilog2(n) (fls64(n) - 1)

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return n <= 1 ? 1 : 1UL << fls64(n - 1);
}

static inline unsigned long rounddown_pow_of_two(unsigned long n)
{
	return 1UL << ilog2(n);
}

#define order_base_2(n) ilog2(roundup_pow_of_two(n))

#endif
