/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: CRC-32C (Castagnoli), neither inverted before nor after. */
#ifndef KSHIM_LINUX_CRC32C_H
#define KSHIM_LINUX_CRC32C_H

#include <linux/types.h>

u32 crc32c(u32 crc, const void *data, unsigned int len);

#endif
