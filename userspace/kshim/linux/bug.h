/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: a broken assumption ends the program, so that a test sees it. */
#ifndef KSHIM_LINUX_BUG_H
#define KSHIM_LINUX_BUG_H

#include <stdio.h>
#include <stdlib.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>

#define BUG()								\
	do {								\
		fprintf(stderr, "BUG at %s:%d\n", __FILE__, __LINE__);	\
		abort();						\
	} while (0)
#define BUG_ON(cond)							\
	do {								\
		if (unlikely(cond))					\
			BUG();						\
	} while (0)

static inline int pc_shim_warn(int cond, const char *text, const char *file, int line)
{
	if (unlikely(cond)) {
		fprintf(stderr, "WARN_ON(%s) at %s:%d\n", text, file, line);
		abort();
	}
	return cond;
}

#define WARN_ON(cond) pc_shim_warn(!!(cond), #cond, __FILE__, __LINE__)
#define WARN_ON_ONCE(cond) WARN_ON(cond)

#endif
