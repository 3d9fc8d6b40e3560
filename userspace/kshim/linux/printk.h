/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: messages of the kernel, dropped here. */
#ifndef KSHIM_LINUX_PRINTK_H
#define KSHIM_LINUX_PRINTK_H

#include <stdio.h>

#define pc_shim_printk(fmt, ...)				\
	do {							\
		if (0)						\
			fprintf(stderr, fmt, ##__VA_ARGS__);	\
	} while (0)

#define pr_err(fmt, ...) pc_shim_printk(fmt, ##__VA_ARGS__)
#define pr_warn(fmt, ...) pc_shim_printk(fmt, ##__VA_ARGS__)
#define pr_info(fmt, ...) pc_shim_printk(fmt, ##__VA_ARGS__)
#define pr_debug(fmt, ...) pc_shim_printk(fmt, ##__VA_ARGS__)

#endif
