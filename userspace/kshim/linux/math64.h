/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: 64-bit division, spelled as 32-bit kernels need it. */
#ifndef KSHIM_LINUX_MATH64_H
#define KSHIM_LINUX_MATH64_H

#include <linux/types.h>
#include <linux/math.h>

static inline u64 div_u64(u64 n, u32 d)
{
	return n / d;
}

static inline u64 div_u64_rem(u64 n, u32 d, u32 *rem)
{
	*rem = n % d;
	return n / d;
}

static inline u64 div64_u64(u64 n, u64 d)
{
	return n / d;
}

static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rem)
{
	*rem = n % d;
	return n / d;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return (unsigned __int128)a * mul >> shift;
}

static inline u64 mul_u64_u32_div(u64 a, u32 mul, u32 d)
{
	return (unsigned __int128)a * mul / d;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 d)
{
	return (unsigned __int128)a * b / d;
}

#define DIV64_U64_ROUND_UP(n, d) ({ u64 d__ = (d); div64_u64((n) + d__ - 1, d__); })
#define do_div(n, d) ({ u32 d__ = (d); u32 r__ = (n) % d__; (n) /= d__; r__; })

#endif
