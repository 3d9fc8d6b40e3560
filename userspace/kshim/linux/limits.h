/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: the largest and smallest values of the integer types. */
#ifndef KSHIM_LINUX_LIMITS_H
#define KSHIM_LINUX_LIMITS_H

#include <limits.h>
#include_next <linux/limits.h>

#define U8_MAX	((__u8)~0U)
#define U16_MAX	((__u16)~0U)
#define U32_MAX	((__u32)~0U)
#define U64_MAX	((__u64)~0ULL)
#define S32_MAX	((__s32)(U32_MAX >> 1))
#define S64_MAX	((__s64)(U64_MAX >> 1))

#endif
