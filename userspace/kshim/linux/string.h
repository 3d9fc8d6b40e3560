/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: text and memory. */
#ifndef KSHIM_LINUX_STRING_H
#define KSHIM_LINUX_STRING_H

#include <string.h>
#include <strings.h>
#include <linux/types.h>

/* Copies, always terminates; the length, or -E2BIG if it was cut. */
ssize_t strscpy(char *dst, const char *src, size_t size);
/* The first byte that differs from c, or NULL. */
void *memchr_inv(const void *p, int c, size_t len);
/* The place of text in the array, or -EINVAL. */
int match_string(const char *const *array, size_t n, const char *text);

#endif
