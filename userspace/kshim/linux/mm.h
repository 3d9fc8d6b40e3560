/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: where the kernel declares kvmalloc. */
#ifndef KSHIM_LINUX_MM_H
#define KSHIM_LINUX_MM_H

#include <linux/slab.h>

#endif
