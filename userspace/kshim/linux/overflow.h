/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: sizes that saturate, so that an allocation of them fails. */
#ifndef KSHIM_LINUX_OVERFLOW_H
#define KSHIM_LINUX_OVERFLOW_H

#include <stdint.h>
#include <linux/types.h>

#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)

static inline size_t size_mul(size_t a, size_t b)
{
	size_t n;

	return __builtin_mul_overflow(a, b, &n) ? SIZE_MAX : n;
}

static inline size_t size_add(size_t a, size_t b)
{
	size_t n;

	return __builtin_add_overflow(a, b, &n) ? SIZE_MAX : n;
}

#define array_size(n, size) size_mul(n, size)
#define struct_size(p, member, n) \
	size_add(sizeof(*(p)), size_mul(n, sizeof(*(p)->member)))

#endif
