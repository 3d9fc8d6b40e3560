/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] All that differs between kernel versions, and nothing else. Source is
 * written for the newest supported kernel (6.12); this file makes older ones, down
 * to 6.1, look like it.
 */
#ifndef PC_COMPAT_H
#define PC_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "dm-polycache needs Linux 6.1 or later"
#endif

#endif
