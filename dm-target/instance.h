/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] The life of an instance between its tables: who may write a metadata device,
 * loading at the start, closing at the suspend (DESIGN rules 22 and 23).
 */
#ifndef PC_INSTANCE_H
#define PC_INSTANCE_H

#include "cache.h"

/* All may sleep. err has PC_ERR_SIZE bytes. */

/* What a constructor may say of the metadata device, reading only. */
int pc_instance_inspect(struct pc_cache *pc, char *err);
/* -EBUSY: another mapped device uses the metadata device. -EINVAL: dirty, for passthrough. */
int pc_instance_check(struct pc_cache *pc, char *err);
void pc_instance_add(struct pc_cache *pc);
/* Also of one that was never added. */
void pc_instance_remove(struct pc_cache *pc);

/* From preresume, in this order; errors are in the log. */
int pc_instance_become_writer(struct pc_cache *pc);
int pc_instance_start(struct pc_cache *pc);
/* From postsuspend: everything durable, no intents, CLEAN; or the reason in the log. */
void pc_instance_close(struct pc_cache *pc);
void pc_instance_cease_writer(struct pc_cache *pc);

#endif
