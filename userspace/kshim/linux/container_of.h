/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: from a member to its struct. */
#ifndef KSHIM_LINUX_CONTAINER_OF_H
#define KSHIM_LINUX_CONTAINER_OF_H

#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif
