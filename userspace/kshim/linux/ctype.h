/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: classes of characters. */
#ifndef KSHIM_LINUX_CTYPE_H
#define KSHIM_LINUX_CTYPE_H

#include <ctype.h>

#endif
