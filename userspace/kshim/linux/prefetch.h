/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: memory that is asked for before it is needed. */
#ifndef KSHIM_LINUX_PREFETCH_H
#define KSHIM_LINUX_PREFETCH_H

#define prefetch(p)	__builtin_prefetch(p)
#define prefetchw(p)	__builtin_prefetch(p, 1)

#endif
