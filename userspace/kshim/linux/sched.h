/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: nothing to yield to. */
#ifndef KSHIM_LINUX_SCHED_H
#define KSHIM_LINUX_SCHED_H

#define cond_resched() do { } while (0)

#endif
