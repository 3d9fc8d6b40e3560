// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdevmapper, and the kernel log for the reasons of refused messages: a message ends
 * with an errno only, the text that says what was wrong goes to the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libdevmapper.h>

#include "polycache-device.h"

/* libdevmapper's numbering, as syslog's; flags are above it */
#define DM_LOG_LEVEL 7
#define DM_LOG_ERROR 3

static char dm_error[PC_DEVICE_ERR_SIZE / 2];	/* the first one of a task: the cause */

static void dm_log(int level, const char *file, int line, int dm_errno_or_class,
		   const char *fmt, ...)
{
	va_list args;

	if ((level & DM_LOG_LEVEL) > DM_LOG_ERROR || dm_error[0])
		return;
	va_start(args, fmt);
	vsnprintf(dm_error, sizeof(dm_error), fmt, args);
	va_end(args);
}

static int explain(char err[PC_DEVICE_ERR_SIZE], const char *what, const char *name)
{
	snprintf(err, PC_DEVICE_ERR_SIZE, "%s: %s: %s%s", name, what,
		 dm_error[0] ? dm_error : "device-mapper refused",
		 geteuid() ? " (must be run as root)" : "");
	return -1;
}

static struct dm_task *new_task(int type, const char *name)
{
	struct dm_task *t;

	dm_log_with_errno_init(dm_log);
	dm_error[0] = 0;
	t = dm_task_create(type);
	if (!t)
		return NULL;
	if ((!name || dm_task_set_name(t, name)) && dm_task_no_open_count(t))
		return t;
	dm_task_destroy(t);
	return NULL;
}

/* Who has the target name `cache`: dm-cache, or we under lvm=1. Never both. */
static bool is_cache_ours(void)
{
	return !access("/sys/module/dm_polycache", F_OK) && access("/sys/module/dm_cache", F_OK);
}

static bool is_ours(const char *target)
{
	return !strcmp(target, "polycache") || (!strcmp(target, "cache") && is_cache_ours());
}

/* The first target of ours. 1: there is none, its type is that of the first one. */
static int take_target(struct pc_device *dev, struct dm_task *t)
{
	char *type, *params, first[sizeof(dev->target)] = "none";
	uint64_t start, length;
	void *next = NULL;

	do {
		next = dm_get_next_target(t, next, &start, &length, &type, &params);
		if (!type)
			continue;
		if (is_ours(type)) {
			snprintf(dev->target, sizeof(dev->target), "%s", type);
			dev->start = start;
			dev->length = length;
			dev->line = strdup(params ? params : "");
			return dev->line ? 0 : -1;
		}
		if (!strcmp(first, "none"))
			snprintf(first, sizeof(first), "%s", type);
	} while (next);
	snprintf(dev->target, sizeof(dev->target), "%s", first);
	return 1;
}

/* 0; 1: exists, and is no cache of ours; -1: err. */
static int read_device(struct pc_device *dev, const char *name, char err[PC_DEVICE_ERR_SIZE])
{
	struct dm_task *t = new_task(DM_DEVICE_STATUS, name);
	struct dm_info info;
	int r = -1;

	memset(dev, 0, sizeof(*dev));
	if (!t)
		return explain(err, "no such device", name);
	/* a status is no reason to wait for the device */
	if (!dm_task_no_flush(t) || !dm_task_run(t) || !dm_task_get_info(t, &info)) {
		explain(err, "reading the status failed", name);
	} else if (!info.exists) {
		snprintf(err, PC_DEVICE_ERR_SIZE,
			 "%s: no such device: must be a device-mapper name or a path of one (dmsetup ls)",
			 name);
	} else {
		snprintf(dev->name, sizeof(dev->name), "%s", dm_task_get_name(t));
		snprintf(dev->uuid, sizeof(dev->uuid), "%s", dm_task_get_uuid(t));
		snprintf(dev->number, sizeof(dev->number), "%u:%u", info.major, info.minor);
		dev->suspended = info.suspended;
		r = take_target(dev, t);
		if (r < 0)
			snprintf(err, PC_DEVICE_ERR_SIZE, "%s: no memory", name);
	}
	dm_task_destroy(t);
	return r;
}

int pc_device_read(struct pc_device *dev, const char *name, char err[PC_DEVICE_ERR_SIZE])
{
	int r = read_device(dev, name, err);

	if (r <= 0)
		return r;
	snprintf(err, PC_DEVICE_ERR_SIZE, "%s: its target is %s%s, must be polycache", name,
		 dev->target, strcmp(dev->target, "cache") ? "" : " (the kernel's own dm-cache)");
	return -1;
}

void pc_device_free(struct pc_device *dev)
{
	free(dev->line);
	dev->line = NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A device that goes away meanwhile is none. */
static int collect(struct dm_names *n, char ***names, int *nr)
{
	char err[PC_DEVICE_ERR_SIZE];

	for (;; n = (void *)n + n->next) {
		struct pc_device dev;
		char **more;

		if (n->dev && !read_device(&dev, n->name, err)) {
			pc_device_free(&dev);
			more = realloc(*names, (*nr + 1) * sizeof(*more));
			if (!more)
				return -1;
			*names = more;
			more[*nr] = strdup(n->name);
			if (!more[*nr])
				return -1;
			++*nr;
		}
		if (!n->next)
			return 0;
	}
}

char **pc_device_list(int *nr, char err[PC_DEVICE_ERR_SIZE])
{
	struct dm_task *t = new_task(DM_DEVICE_LIST, NULL);
	struct dm_names *list;
	char **names = calloc(1, sizeof(*names));

	*nr = 0;
	if (!t || !dm_task_run(t)) {
		snprintf(err, PC_DEVICE_ERR_SIZE, "listing the devices failed: %s%s",
			 dm_error[0] ? dm_error : "device-mapper refused",
			 geteuid() ? " (must be run as root)" : "");
		free(names);
		names = NULL;
	} else {
		list = dm_task_get_names(t);
		if (names && list && list->dev && collect(list, &names, nr)) {
			snprintf(err, PC_DEVICE_ERR_SIZE, "listing the devices failed: no memory");
			pc_device_list_free(names, *nr);
			names = NULL;
		}
	}
	if (t)
		dm_task_destroy(t);
	if (names)
		qsort(names, *nr, sizeof(*names), by_name);
	return names;
}

void pc_device_list_free(char **names, int nr)
{
	for (int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
}

/* The kernel log from here on; -1 where it cannot be read. */
static int open_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* The last line since open_log() that our target wrote of this device. */
static bool read_reason(int fd, const char *number, char *reason, size_t len)
{
	char record[8192], prefix[256];
	bool is_found = false;
	ssize_t n;

	snprintf(prefix, sizeof(prefix), "polycache: %s: ", number);
	while (fd >= 0 && ((n = read(fd, record, sizeof(record) - 1)) > 0 ||
			   (n < 0 && errno == EPIPE))) {
		char *text;

		if (n < 0)
			continue;
		record[n] = 0;
		text = strchr(record, ';');
		text = text ? strstr(text, prefix) : NULL;
		if (!text)
			continue;
		text += strlen(prefix);
		text[strcspn(text, "\n")] = 0;
		snprintf(reason, len, "%s", text);
		is_found = true;
	}
	return is_found;
}

static char *join(int nr, char **words)
{
	size_t len = 1;
	char *text;

	for (int i = 0; i < nr; i++)
		len += strlen(words[i]) + 1;
	text = calloc(1, len);
	for (int i = 0; text && i < nr; i++) {
		strcat(text, i ? " " : "");
		strcat(text, words[i]);
	}
	return text;
}

int pc_device_message(const struct pc_device *dev, int nr, char **words, char **answer,
		      char err[PC_DEVICE_ERR_SIZE])
{
	struct dm_task *t = new_task(DM_DEVICE_TARGET_MSG, dev->name);
	char reason[PC_DEVICE_ERR_SIZE - 200];
	char *text = join(nr, words);
	const char *response;
	int log = open_log();
	int r = -1;

	if (!t || !text || !dm_task_set_sector(t, dev->start) || !dm_task_set_message(t, text)) {
		snprintf(err, PC_DEVICE_ERR_SIZE, "%s: no memory for a message", dev->name);
	} else if (!dm_task_run(t)) {
		if (read_reason(log, dev->number, reason, sizeof(reason)))
			snprintf(err, PC_DEVICE_ERR_SIZE, "%s: %s", dev->name, reason);
		else
			snprintf(err, PC_DEVICE_ERR_SIZE, "%s: message '%.100s' was refused: %s",
				 dev->name, text, strerror(dm_task_get_errno(t)));
	} else {
		response = dm_task_get_message_response(t);
		r = 0;
		if (answer) {
			*answer = strdup(response ? response : "");
			r = *answer ? 0 : -1;
		}
	}
	if (log >= 0)
		close(log);
	free(text);
	if (t)
		dm_task_destroy(t);
	return r;
}

bool pc_device_lvm_name(const struct pc_device *dev, char *buf, size_t len)
{
	char *vg, *lv, *layer, name[sizeof(dev->name)];

	if (strncmp(dev->uuid, "LVM-", 4))
		return false;
	snprintf(name, sizeof(name), "%s", dev->name);
	vg = name;
	/* in place: no pool is needed */
	if (!dm_split_lvm_name(NULL, NULL, &vg, &lv, &layer))
		return false;
	snprintf(buf, len, "%s/%s", vg, lv);
	return true;
}
