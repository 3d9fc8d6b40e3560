/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: min, max, clamp; both sides of the same type. */
#ifndef KSHIM_LINUX_MINMAX_H
#define KSHIM_LINUX_MINMAX_H

#define pc_shim_cmp(a, b, op) ({		\
	__typeof__(a) a__ = (a);		\
	__typeof__(b) b__ = (b);		\
	(void)(&a__ == &b__);			\
	a__ op b__ ? a__ : b__; })

#undef min
#undef max
#define min(a, b) pc_shim_cmp(a, b, <)
#define max(a, b) pc_shim_cmp(a, b, >)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define clamp(v, lo, hi) min(max(v, lo), hi)
#define clamp_t(type, v, lo, hi) clamp((type)(v), (type)(lo), (type)(hi))

#define swap(a, b)				\
	do {					\
		__typeof__(a) t__ = (a);	\
		(a) = (b);			\
		(b) = t__;			\
	} while (0)

#endif
