/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: assertions at compile time. */
#ifndef KSHIM_LINUX_BUILD_BUG_H
#define KSHIM_LINUX_BUILD_BUG_H

#include <assert.h>

#define BUILD_BUG_ON(cond) _Static_assert(!(cond), "BUILD_BUG_ON: " #cond)
#define BUILD_BUG_ON_NOT_POWER_OF_2(n) BUILD_BUG_ON((n) == 0 || ((n) & ((n) - 1)))
#undef static_assert
#define static_assert(expr, ...) pc_shim_assert(expr, ##__VA_ARGS__, #expr)
#define pc_shim_assert(expr, msg, ...) _Static_assert(expr, msg)

#endif
