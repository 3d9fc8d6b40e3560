/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: large allocations. */
#ifndef KSHIM_LINUX_VMALLOC_H
#define KSHIM_LINUX_VMALLOC_H

#include <linux/slab.h>

#define vmalloc(size)		pc_shim_alloc(1, size, false)
#define vzalloc(size)		pc_shim_alloc(1, size, true)
#define vmalloc_array(n, size)	pc_shim_alloc(n, size, false)
#define vcalloc(n, size)	pc_shim_alloc(n, size, true)
#define vfree(p)		pc_shim_free(p)

#endif
