/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: text to number, the whole text or -EINVAL, -ERANGE. */
#ifndef KSHIM_LINUX_KSTRTOX_H
#define KSHIM_LINUX_KSTRTOX_H

#include <linux/types.h>

int pc_shim_strtou(const char *s, unsigned int base, u64 max, u64 *res);

#define PC_SHIM_KSTRTO(name, type)						\
	static inline int name(const char *s, unsigned int base, type *res)	\
	{									\
		u64 v;								\
		int r = pc_shim_strtou(s, base, (type)~(type)0, &v);		\
										\
		if (!r)								\
			*res = v;						\
		return r;							\
	}

PC_SHIM_KSTRTO(kstrtou8, u8)
PC_SHIM_KSTRTO(kstrtou16, u16)
PC_SHIM_KSTRTO(kstrtou32, u32)
PC_SHIM_KSTRTO(kstrtou64, u64)
PC_SHIM_KSTRTO(kstrtouint, unsigned int)
PC_SHIM_KSTRTO(kstrtoul, unsigned long)
PC_SHIM_KSTRTO(kstrtoull, unsigned long long)

#endif
