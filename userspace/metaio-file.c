// SPDX-License-Identifier: GPL-2.0-only
/*
 * metaio.h on a file or on memory. A write is carried out at once; what a power cut
 * could make of it is for the reader of the record to say. In a file, PREFLUSH and
 * FUA are fdatasync() before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/kernel.h>

#include "metaio-file.h"

static struct pc_metaio_file *of(struct pc_metaio *io)
{
	return container_of(io, struct pc_metaio_file, io);
}

static bool fails(long *countdown)
{
	if (*countdown > 1)
		--*countdown;
	else if (*countdown == 1)
		return true;
	return false;
}

static int note(struct pc_metaio_file *f, enum pc_metaio_event_type type, u64 block, u32 count,
		const void *data, unsigned int flags)
{
	size_t bytes = (size_t)count * PC_META_BLOCK_SIZE;
	struct pc_metaio_event *e;

	if (!f->record)
		return 0;
	if (f->nr_events == f->max_events) {
		size_t max = f->max_events ? f->max_events * 2 : 256;

		e = realloc(f->events, max * sizeof(*e));
		if (!e)
			return -ENOMEM;
		f->events = e;
		f->max_events = max;
	}
	e = &f->events[f->nr_events];
	*e = (struct pc_metaio_event){
		.type = type, .flags = flags, .block = block, .count = count,
	};
	if (bytes) {
		e->data = malloc(bytes);
		if (!e->data)
			return -ENOMEM;
		memcpy(e->data, data, bytes);
	}
	f->nr_events++;
	return 0;
}

static bool is_inside(const struct pc_metaio *io, u64 block, u32 count)
{
	return count && block < io->nr_blocks && count <= io->nr_blocks - block;
}

static int sync_file(struct pc_metaio_file *f)
{
	return f->fd >= 0 && fdatasync(f->fd) ? -errno : 0;
}

static int metaio_read(struct pc_metaio *io, u64 block, u32 count, void *data)
{
	struct pc_metaio_file *f = of(io);
	size_t bytes = (size_t)count * PC_META_BLOCK_SIZE;
	off_t at = block * PC_META_BLOCK_SIZE;
	ssize_t n;

	if (!is_inside(io, block, count))
		return -EIO;
	f->nr_reads++;
	if (fails(&f->fail_read))
		return -EIO;
	if (f->image) {
		memcpy(data, f->image + at, bytes);
		return 0;
	}
	for (; bytes; bytes -= n, at += n, data += n) {
		n = pread(f->fd, data, bytes, at);
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
	}
	return 0;
}

static int write_out(struct pc_metaio_file *f, off_t at, const void *data, size_t bytes)
{
	ssize_t n;

	if (f->image) {
		memcpy(f->image + at, data, bytes);
		return 0;
	}
	for (; bytes; bytes -= n, at += n, data += n) {
		n = pwrite(f->fd, data, bytes, at);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static int metaio_write(struct pc_metaio *io, u64 block, u32 count, const void *data,
			unsigned int flags)
{
	struct pc_metaio_file *f = of(io);
	bool failing;
	int err;

	if (!is_inside(io, block, count))
		return -EIO;
	f->nr_writes++;
	failing = fails(&f->fail_write);
	if (failing && !f->fail_late)
		return -EIO;
	err = note(f, PC_METAIO_WRITE, block, count, data, flags);
	if (!err && (flags & PC_META_PREFLUSH))
		err = sync_file(f);
	if (!err)
		err = write_out(f, block * PC_META_BLOCK_SIZE, data,
				(size_t)count * PC_META_BLOCK_SIZE);
	if (!err && (flags & PC_META_FUA))
		err = sync_file(f);
	return failing ? -EIO : err;
}

static int metaio_flush(struct pc_metaio *io)
{
	struct pc_metaio_file *f = of(io);
	int err;

	f->nr_flushes++;
	if (fails(&f->fail_flush))
		return -EIO;
	err = note(f, PC_METAIO_FLUSH, 0, 0, NULL, 0);
	return err ? err : sync_file(f);
}

static const struct pc_metaio_ops ops = {
	.read = metaio_read,
	.write = metaio_write,
	.flush = metaio_flush,
};

int pc_metaio_open_file(struct pc_metaio_file *f, const char *path, bool read_only)
{
	off_t end;

	memset(f, 0, sizeof(*f));
	f->fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	end = lseek(f->fd, 0, SEEK_END);
	if (end < 0) {
		int err = -errno;

		close(f->fd);
		return err;
	}
	f->io.ops = &ops;
	f->io.nr_blocks = end / PC_META_BLOCK_SIZE;
	return 0;
}

int pc_metaio_open_memory(struct pc_metaio_file *f, u64 nr_blocks, const void *contents)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->io.ops = &ops;
	f->io.nr_blocks = nr_blocks;
	f->image = calloc(nr_blocks ? nr_blocks : 1, PC_META_BLOCK_SIZE);
	if (!f->image)
		return -ENOMEM;
	if (contents)
		memcpy(f->image, contents, nr_blocks * PC_META_BLOCK_SIZE);
	return 0;
}

void pc_metaio_forget_events(struct pc_metaio_file *f)
{
	for (size_t i = 0; i < f->nr_events; i++)
		free(f->events[i].data);
	free(f->events);
	f->events = NULL;
	f->nr_events = 0;
	f->max_events = 0;
}

void pc_metaio_close(struct pc_metaio_file *f)
{
	pc_metaio_forget_events(f);
	free(f->image);
	if (f->fd >= 0)
		close(f->fd);
	f->image = NULL;
	f->fd = -1;
}
