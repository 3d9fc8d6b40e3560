/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: little-endian on disk, whatever the machine is. */
#ifndef KSHIM_ASM_BYTEORDER_H
#define KSHIM_ASM_BYTEORDER_H

#include <endian.h>
#include <linux/types.h>

static inline __le16 cpu_to_le16(u16 v) { return (__force __le16)htole16(v); }
static inline __le32 cpu_to_le32(u32 v) { return (__force __le32)htole32(v); }
static inline __le64 cpu_to_le64(u64 v) { return (__force __le64)htole64(v); }
static inline u16 le16_to_cpu(__le16 v) { return le16toh((__force u16)v); }
static inline u32 le32_to_cpu(__le32 v) { return le32toh((__force u32)v); }
static inline u64 le64_to_cpu(__le64 v) { return le64toh((__force u64)v); }

#endif
