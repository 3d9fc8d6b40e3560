/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: errno values; the C library includes this file too. */
#ifndef KSHIM_LINUX_ERRNO_H
#define KSHIM_LINUX_ERRNO_H

#include <asm/errno.h>

#endif
