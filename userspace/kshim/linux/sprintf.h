/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: formatted text; scnprintf returns what was stored. */
#ifndef KSHIM_LINUX_SPRINTF_H
#define KSHIM_LINUX_SPRINTF_H

#include <stdarg.h>
#include <stdio.h>
#include <linux/compiler.h>

int scnprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int vscnprintf(char *buf, size_t size, const char *fmt, va_list args) __printf(3, 0);

#endif
