/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] A table entry between memory and disk. Decoding keeps every bit, sound or
 * not; what is sound is for the reader to say (recovery.c).
 */
#ifndef PC_ENTRY_H
#define PC_ENTRY_H

#include <asm/byteorder.h>

#include "metadata.h"
#include "ondisk.h"

static inline void pc_entry_encode(struct pc_entry_disk *d, const struct pc_entry *e)
{
	d->oblock_flags = cpu_to_le64(e->oblock << PC_ENTRY_FLAG_BITS | e->flags);
	d->valid = cpu_to_le64(e->valid);
	d->dirty = cpu_to_le64(e->dirty);
	d->hint = cpu_to_le32(e->hint);
	d->spare = 0;
}

static inline void pc_entry_decode(struct pc_entry *e, const struct pc_entry_disk *d)
{
	u64 oblock_flags = le64_to_cpu(d->oblock_flags);

	e->oblock = oblock_flags >> PC_ENTRY_FLAG_BITS;
	e->flags = oblock_flags & ((1u << PC_ENTRY_FLAG_BITS) - 1);
	e->valid = le64_to_cpu(d->valid);
	e->dirty = le64_to_cpu(d->dirty);
	e->hint = le32_to_cpu(d->hint);
}

#endif
