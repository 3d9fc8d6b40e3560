/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: allocation, with a countdown that makes the n-th one fail. */
#ifndef KSHIM_LINUX_SLAB_H
#define KSHIM_LINUX_SLAB_H

#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/overflow.h>

#define GFP_KERNEL	0x1u
#define GFP_NOIO	0x2u
#define GFP_NOWAIT	0x4u
#define GFP_ATOMIC	0x8u
#define __GFP_ZERO	0x100u
#define __GFP_NOWARN	0x200u
#define __GFP_NORETRY	0x400u

/* n > 0: the n-th allocation from now on fails, once. 0: none does. */
extern long pc_shim_alloc_countdown;
/* number and bytes of all allocations so far, for tests to take differences of */
extern unsigned long pc_shim_allocs;
extern size_t pc_shim_alloc_bytes;

void *pc_shim_alloc(size_t n, size_t size, bool zero);
void pc_shim_free(const void *p);

#define kmalloc(size, gfp)		pc_shim_alloc(1, size, (gfp) & __GFP_ZERO)
#define kzalloc(size, gfp)		((void)(gfp), pc_shim_alloc(1, size, true))
#define kcalloc(n, size, gfp)		((void)(gfp), pc_shim_alloc(n, size, true))
#define kmalloc_array(n, size, gfp)	((void)(gfp), pc_shim_alloc(n, size, false))
#define kvmalloc(size, gfp)		kmalloc(size, gfp)
#define kvzalloc(size, gfp)		kzalloc(size, gfp)
#define kvcalloc(n, size, gfp)		kcalloc(n, size, gfp)
#define kvmalloc_array(n, size, gfp)	kmalloc_array(n, size, gfp)
#define kfree(p)			pc_shim_free(p)
#define kvfree(p)			pc_shim_free(p)

char *kstrdup(const char *s, gfp_t gfp);
void *kmemdup(const void *p, size_t size, gfp_t gfp);

#endif
