/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: what the kernel's catch-all header brings along. */
#ifndef KSHIM_LINUX_KERNEL_H
#define KSHIM_LINUX_KERNEL_H

#include <linux/types.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/sprintf.h>
#include <linux/stddef.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define might_sleep() do { } while (0)
#define upper_32_bits(n) ((u32)((n) >> 32))
#define lower_32_bits(n) ((u32)(n))

#endif
