/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cache devices as device-mapper shows them: finding them, their status line,
 * messages to them with the kernel's answer or reason. The only file that talks to
 * libdevmapper is polycache-device.c.
 */
#ifndef POLYCACHE_DEVICE_H
#define POLYCACHE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define PC_DEVICE_ERR_SIZE 1024

struct pc_device {
	char name[128];
	char uuid[130];
	char number[24];	/* 254:0, its name in the kernel log */
	char target[16];	/* polycache, or cache where that is ours */
	uint64_t start;		/* of the target, for messages */
	uint64_t length;	/* sectors */
	bool suspended;
	char *line;		/* status line; pc_device_free() */
};

/*
 * Reads the device of this name or path. 0, or -1 with err. The line is that of the
 * moment; call it again for a newer one, after pc_device_free().
 */
int pc_device_read(struct pc_device *dev, const char *name, char err[PC_DEVICE_ERR_SIZE]);
void pc_device_free(struct pc_device *dev);

/* Names of all cache devices of ours, sorted, count in *nr. NULL with err. */
char **pc_device_list(int *nr, char err[PC_DEVICE_ERR_SIZE]);
void pc_device_list_free(char **names, int nr);

/*
 * Sends a message of these words. 0, with *answer (to be freed) if answer is not NULL;
 * -1 with err, the kernel's own words where it said any.
 */
int pc_device_message(const struct pc_device *dev, int nr, char **words, char **answer,
		      char err[PC_DEVICE_ERR_SIZE]);

/* On a logical volume of LVM's: "VG/LV" in buf. */
bool pc_device_lvm_name(const struct pc_device *dev, char *buf, size_t len);

#endif
