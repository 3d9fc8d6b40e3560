// SPDX-License-Identifier: GPL-2.0-only
/*
 * The read-only image (polycache-image.h): metaio-file.c below, written blocks in
 * memory above it. All checks are those of the metadata code.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/kernel.h>

#include "polycache-image.h"

static struct pc_image *of(struct pc_metaio *io)
{
	return container_of(io, struct pc_image, io);
}

static int image_read(struct pc_metaio *io, u64 block, u32 count, void *data)
{
	struct pc_image *img = of(io);
	int err = img->file.io.ops->read(&img->file.io, block, count, data);

	for (u32 i = 0; i < count && !err; i++)
		if (img->pages[block + i])
			memcpy(data + (size_t)i * PC_META_BLOCK_SIZE, img->pages[block + i],
			       PC_META_BLOCK_SIZE);
	return err;
}

static int image_write(struct pc_metaio *io, u64 block, u32 count, const void *data,
		       unsigned int flags)
{
	struct pc_image *img = of(io);

	if (block >= io->nr_blocks || count > io->nr_blocks - block)
		return -EIO;
	img->pages_end = max(img->pages_end, block + count);
	for (u32 i = 0; i < count; i++) {
		u8 **page = &img->pages[block + i];

		if (!*page)
			*page = malloc(PC_META_BLOCK_SIZE);
		if (!*page)
			return -ENOMEM;
		memcpy(*page, data + (size_t)i * PC_META_BLOCK_SIZE, PC_META_BLOCK_SIZE);
	}
	return 0;
}

static int image_flush(struct pc_metaio *io)
{
	return 0;
}

static const struct pc_metaio_ops ops = {
	.read = image_read,
	.write = image_write,
	.flush = image_flush,
};

/* A block device that somebody holds, such as an active cache. */
static bool is_in_use(const char *path)
{
	struct stat st;
	bool busy;
	int fd;

	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	busy = fd < 0 && errno == EBUSY;
	if (fd >= 0)
		close(fd);
	return busy;
}

int pc_image_open(struct pc_image *img, const char *path, bool in_use,
		  char why[PC_META_ERR_SIZE])
{
	struct stat st = { 0 };
	int err;

	memset(img, 0, sizeof(*img));
	img->file.fd = -1;
	img->path = path;
	if (!stat(path, &st) && !S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(why, PC_META_ERR_SIZE, "must be a block device or a file");
		return -1;
	}
	if (!in_use && is_in_use(path)) {
		snprintf(why, PC_META_ERR_SIZE,
			 "the device is in use, perhaps by an active cache; stop it first, or read it all the same with --in-use");
		return -1;
	}
	err = pc_metaio_open_file(&img->file, path, true);
	if (err) {
		img->file.fd = -1;
		snprintf(why, PC_META_ERR_SIZE, "cannot be opened: %s", strerror(-err));
		return -1;
	}
	/* what the kernel wrote past the page cache */
	if (S_ISBLK(st.st_mode))
		posix_fadvise(img->file.fd, 0, 0, POSIX_FADV_DONTNEED);
	img->io.ops = &ops;
	img->io.nr_blocks = img->file.io.nr_blocks;
	img->pages = calloc(img->io.nr_blocks + 1, sizeof(*img->pages));
	img->buf = malloc(PC_META_BLOCK_SIZE);
	if (!img->pages || !img->buf) {
		snprintf(why, PC_META_ERR_SIZE, "no memory for an image of %llu blocks",
			 img->io.nr_blocks);
		pc_image_close(img);
		return -1;
	}
	return 0;
}

void pc_image_revert(struct pc_image *img)
{
	for (u64 i = 0; i < img->pages_end; i++) {
		free(img->pages[i]);
		img->pages[i] = NULL;
	}
	img->pages_end = 0;
}

void pc_image_close(struct pc_image *img)
{
	if (img->pages)
		pc_image_revert(img);
	free(img->pages);
	free(img->buf);
	img->pages = NULL;
	img->buf = NULL;
	pc_metaio_close(&img->file);
}

int pc_image_super(struct pc_image *img, struct pc_super *sb, char why[PC_META_ERR_SIZE])
{
	enum pc_probe what;
	int err = pc_superblock_read(&img->io, img->buf, sb, &what, why);

	if (!err && what == PC_PROBE_BLANK) {
		snprintf(why, PC_META_ERR_SIZE,
			 "holds no metadata: its first 4096 bytes are zero, a start would format it");
		err = -ENODATA;
	}
	if (!err)
		return 0;
	if (what == PC_PROBE_DM_CACHE)
		snprintf(why, PC_META_ERR_SIZE,
			 "holds a dm-cache superblock; that is for cache_check and cache_dump");
	return -1;
}

int pc_image_super_copy(struct pc_image *img, int copy, struct pc_super *sb,
			char why[PC_META_ERR_SIZE])
{
	int err;

	/* the copy in place of the first, and no second one */
	err = img->io.ops->read(&img->io, copy, 1, img->buf);
	if (!err)
		err = img->io.ops->write(&img->io, 0, 1, img->buf, 0);
	if (err) {
		snprintf(why, PC_META_ERR_SIZE, "reading failed: %s", strerror(-err));
		return -1;
	}
	memset(img->buf, 0, PC_META_BLOCK_SIZE);
	err = img->io.ops->write(&img->io, 1, 1, img->buf, 0);
	if (!err)
		err = pc_image_super(img, sb, why);
	pc_image_revert(img);
	return err;
}

int pc_image_load(struct pc_image *img, const struct pc_super *sb, pc_load_fn fn,
		  void *context, char why[PC_META_ERR_SIZE])
{
	struct pc_metadata_params p = {
		.block_sectors = sb->block_sectors,
		.subblock_sectors = sb->subblock_sectors,
		.nr_cblocks = sb->nr_cblocks,
		.origin_sectors = sb->origin_sectors,
	};
	struct pc_metadata *md;
	int err;

	memcpy(p.uuid, sb->uuid, sizeof(p.uuid));
	md = pc_metadata_open(&img->io, &p, &err, why);
	if (!md)
		return err;
	err = pc_metadata_load(md, fn, context, why);
	pc_metadata_free(md);
	pc_image_revert(img);
	return err;
}

static int note_record(void *context, u64 transaction, const struct pc_record *r)
{
	struct pc_raw *raw = context;

	raw->nr_records++;
	/* a place behind the end, or too many places, are for the start to refuse */
	if (r->cblock < raw->table.nr_cblocks)
		pc_table_change(&raw->table, r->cblock, &r->entry, transaction);
	return 0;
}

int pc_raw_open(struct pc_raw *raw, struct pc_image *img, const struct pc_super *sb,
		char why[PC_META_ERR_SIZE])
{
	struct pc_journal *j = &raw->journal;
	struct pc_table *t = &raw->table;
	int err;

	memset(raw, 0, sizeof(*raw));
	why[0] = 0;
	raw->buf = malloc((size_t)PC_META_BATCH * PC_META_BLOCK_SIZE);
	j->io = t->io = &img->io;
	j->buf = t->buf = raw->buf;
	j->uuid_part = t->uuid_part = pc_superblock_uuid_part(sb);
	j->start = sb->journal_start;
	j->nr_blocks = sb->journal_blocks;
	j->tail = j->head = sb->tail_sequence;
	j->transaction = sb->tail_transaction;
	t->start = sb->table_start;
	t->nr_blocks = sb->table_blocks;
	t->nr_cblocks = sb->nr_cblocks;
	if (!raw->buf ||
	    pc_table_reserve(t, min(sb->max_records, sb->nr_cblocks), sb->table_blocks)) {
		snprintf(why, PC_META_ERR_SIZE, "no memory for a journal of %u blocks",
			 sb->journal_blocks);
		return -ENOMEM;
	}
	if (sb->flags & PC_SUPER_CLEAN)
		return 0;
	err = pc_journal_replay(j, note_record, raw, why);
	raw->nr_transactions = j->transaction - sb->tail_transaction;
	if (err && !why[0])
		snprintf(why, PC_META_ERR_SIZE, "reading the journal failed: %s", strerror(-err));
	return err;
}

int pc_raw_read(struct pc_raw *raw, pc_table_fn fn, void *context, char why[PC_META_ERR_SIZE])
{
	return pc_table_read(&raw->table, raw->journal.transaction - 1, fn, context, why);
}

int pc_raw_blank(struct pc_raw *raw, u32 table_block)
{
	return pc_table_format(&raw->table, table_block, 1, raw->journal.transaction - 1);
}

void pc_raw_close(struct pc_raw *raw)
{
	pc_table_free(&raw->table);
	free(raw->buf);
	raw->buf = NULL;
}
