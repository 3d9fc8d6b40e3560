/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: rounding. */
#ifndef KSHIM_LINUX_MATH_H
#define KSHIM_LINUX_MATH_H

#define pc_shim_mask(x, y) ((__typeof__(x))((y) - 1))
#define round_up(x, y)	((((x) - 1) | pc_shim_mask(x, y)) + 1)
#define round_down(x, y) ((x) & ~pc_shim_mask(x, y))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d) DIV_ROUND_UP((unsigned long long)(n), (d))
#define DIV_ROUND_DOWN_ULL(n, d) ((unsigned long long)(n) / (d))
#define roundup(x, y) ({ __typeof__(y) y__ = (y); (((x) + (y__ - 1)) / y__) * y__; })
#define rounddown(x, y) ({ __typeof__(x) x__ = (x); x__ - (x__ % (y)); })

#endif
