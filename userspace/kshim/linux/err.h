/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: errno values in pointers. */
#ifndef KSHIM_LINUX_ERR_H
#define KSHIM_LINUX_ERR_H

#include <errno.h>
#include <stdbool.h>
#include <linux/compiler.h>

#define MAX_ERRNO 4095

static inline bool IS_ERR(const void *p)
{
	return (unsigned long)p >= (unsigned long)-MAX_ERRNO;
}

static inline bool IS_ERR_OR_NULL(const void *p)
{
	return !p || IS_ERR(p);
}

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *p)
{
	return (long)p;
}

#endif
