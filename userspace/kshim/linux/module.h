/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: a module's init runs before main(), its exit after. */
#ifndef KSHIM_LINUX_MODULE_H
#define KSHIM_LINUX_MODULE_H

#include <stdlib.h>
#include <linux/types.h>
#include <linux/compiler.h>
#include <linux/kernel.h>

struct module;

#define THIS_MODULE ((struct module *)NULL)
#define PC_SHIM_NOTHING(text) _Static_assert(sizeof(text) > 0, "")
#define MODULE_AUTHOR(text) PC_SHIM_NOTHING(text)
#define MODULE_DESCRIPTION(text) PC_SHIM_NOTHING(text)
#define MODULE_LICENSE(text) PC_SHIM_NOTHING(text)
#define MODULE_VERSION(text) PC_SHIM_NOTHING(text)
#define MODULE_ALIAS(text) PC_SHIM_NOTHING(text)
#define EXPORT_SYMBOL_GPL(symbol) _Static_assert(sizeof(&(symbol)) > 0, "")

#define module_init(fn)						\
	static void __attribute__((constructor(200))) fn##_ctor(void)	\
	{							\
		if (fn())					\
			abort();				\
	}							\
	_Static_assert(sizeof(&(fn)) > 0, "")
#define module_exit(fn)						\
	static void __attribute__((destructor(200))) fn##_dtor(void)	\
	{							\
		fn();						\
	}							\
	_Static_assert(sizeof(&(fn)) > 0, "")

#endif
