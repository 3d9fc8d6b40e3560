// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device-mapper's ioctls (dm.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dm.h"

#define BUFFER 16384

/* libdevmapper's flags for udev, in the upper half of the event number: no rule but
 * the one that ends at once, no link, nobody opens the device
 */
#define UDEV_FLAGS 0x3fu

struct request {
	struct dm_ioctl head;
	char data[BUFFER];
};

static int control = -1;

int dm_open(void)
{
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	return control < 0 ? -errno : 0;
}

static int call(struct request *r, const char *name, unsigned int cmd, unsigned int flags)
{
	r->head.version[0] = DM_VERSION_MAJOR;
	r->head.data_size = sizeof(*r);
	r->head.data_start = offsetof(struct request, data);
	r->head.flags = flags;
	r->head.event_nr = UDEV_FLAGS << 16;
	snprintf(r->head.name, sizeof(r->head.name), "%s", name);
	return ioctl(control, cmd, r) ? -errno : 0;
}

static int command(const char *name, unsigned int cmd, unsigned int flags)
{
	struct request r;

	memset(&r.head, 0, sizeof(r.head));
	return call(&r, name, cmd, flags);
}

void dm_node(const char *name, char *path, size_t size)
{
	snprintf(path, size, "node-%s", name);
}

static int load(const char *name, uint64_t sectors, const char *target, const char *params)
{
	struct dm_target_spec *spec;
	struct request r;

	memset(&r, 0, sizeof(r.head) + sizeof(*spec));
	spec = (struct dm_target_spec *)r.data;
	spec->length = sectors;
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", target);
	snprintf(r.data + sizeof(*spec), BUFFER - sizeof(*spec), "%s", params);
	r.head.target_count = 1;
	return call(&r, name, DM_TABLE_LOAD, 0);
}

int dm_create(const char *name, uint64_t sectors, const char *target, const char *params)
{
	struct request r;
	char path[128];
	int err;

	memset(&r.head, 0, sizeof(r.head));
	err = call(&r, name, DM_DEV_CREATE, 0);
	if (err)
		return err;
	dm_node(name, path, sizeof(path));
	unlink(path);
	if (mknod(path, S_IFBLK | 0600, makedev(major(r.head.dev), minor(r.head.dev))))
		err = -errno;
	if (!err)
		err = load(name, sectors, target, params);
	if (!err)
		err = dm_resume(name);
	if (err)
		dm_remove(name);
	return err;
}

int dm_reload(const char *name, uint64_t sectors, const char *target, const char *params)
{
	int err = load(name, sectors, target, params);

	if (!err)
		err = dm_suspend(name);
	if (!err)
		err = dm_resume(name);
	return err;
}

int dm_suspend(const char *name)
{
	return command(name, DM_DEV_SUSPEND, DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG);
}

int dm_resume(const char *name)
{
	return command(name, DM_DEV_SUSPEND, 0);
}

/* Somebody who only looks (udev) may hold it for a moment. */
int dm_remove(const char *name)
{
	char path[128];
	int i, err = 0;

	for (i = 0; i < 200; i++) {
		err = command(name, DM_DEV_REMOVE, 0);
		if (err != -EBUSY)
			break;
		usleep(5000);
	}
	dm_node(name, path, sizeof(path));
	if (!err)
		unlink(path);
	return err;
}

int dm_status(const char *name, char *out, size_t size)
{
	struct request r;
	int err;

	memset(&r.head, 0, sizeof(r.head));
	err = call(&r, name, DM_TABLE_STATUS, DM_NOFLUSH_FLAG);
	if (err)
		return err;
	snprintf(out, size, "%s", (char *)&r + r.head.data_start + sizeof(struct dm_target_spec));
	return 0;
}

int dm_message(const char *name, const char *message, char *out, size_t size)
{
	struct dm_target_msg *msg;
	struct request r;
	int err;

	memset(&r, 0, sizeof(r.head) + sizeof(*msg));
	msg = (struct dm_target_msg *)r.data;
	snprintf(msg->message, BUFFER - sizeof(*msg), "%s", message);
	err = call(&r, name, DM_TARGET_MSG, 0);
	if (err)
		return err;
	if (out) {
		*out = 0;
		if (r.head.flags & DM_DATA_OUT_FLAG)
			snprintf(out, size, "%s", (char *)&r + r.head.data_start);
	}
	return 0;
}
