/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: offsetof and friends. */
#ifndef KSHIM_LINUX_STDDEF_H
#define KSHIM_LINUX_STDDEF_H

#include <stddef.h>
#include_next <linux/stddef.h>

#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define offsetofend(type, member) (offsetof(type, member) + sizeof_field(type, member))

#endif
