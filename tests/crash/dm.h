/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device-mapper's ioctls, as far as the power-cut test needs them: no libdevmapper,
 * no waiting for udev, and device nodes of our own in the working folder, so that a
 * device can be destroyed and made again in milliseconds.
 */
#ifndef CRASH_DM_H
#define CRASH_DM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return 0 or -errno. params: what follows "0 SECTORS TARGET" in a table. */
int dm_open(void);
int dm_create(const char *name, uint64_t sectors, const char *target, const char *params);
int dm_reload(const char *name, uint64_t sectors, const char *target, const char *params);
int dm_suspend(const char *name);
int dm_resume(const char *name);
int dm_remove(const char *name);
int dm_status(const char *name, char *out, size_t size);
/* out may be NULL. */
int dm_message(const char *name, const char *message, char *out, size_t size);
/* The node that dm_create() made. */
void dm_node(const char *name, char *path, size_t size);

#endif
