/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A metadata device or file that is only read: what the metadata code writes goes to
 * memory, and can be forgotten. So the very code that starts a cache tells what a
 * start would find, and nothing is changed by asking.
 */
#ifndef POLYCACHE_IMAGE_H
#define POLYCACHE_IMAGE_H

#include <linux/types.h>

#include "journal.h"
#include "metadata.h"
#include "metaio-file.h"
#include "superblock.h"
#include "table.h"

struct pc_image {
	struct pc_metaio io;
	struct pc_metaio_file file;
	u8 **pages;		/* blocks written, by number */
	u64 pages_end;		/* behind the last one */
	u8 *buf;		/* one block */
	const char *path;
};

/*
 * 0, or -1 with why. A device in use is refused unless in_use: its contents change
 * while they are read.
 */
int pc_image_open(struct pc_image *img, const char *path, bool in_use,
		  char why[PC_META_ERR_SIZE]);
void pc_image_close(struct pc_image *img);

/* Forgets what was written. */
void pc_image_revert(struct pc_image *img);

/* The superblock that counts. 0, or -1 with why; blank is an error here. */
int pc_image_super(struct pc_image *img, struct pc_super *sb, char why[PC_META_ERR_SIZE]);
/* Copy 0 or 1 alone. */
int pc_image_super_copy(struct pc_image *img, int copy, struct pc_super *sb,
			char why[PC_META_ERR_SIZE]);

/*
 * A start with the sizes of *sb: fn sees what it finds, settled. 0 or a negative errno
 * and why. What it wrote is forgotten.
 */
int pc_image_load(struct pc_image *img, const struct pc_super *sb, pc_load_fn fn,
		  void *context, char why[PC_META_ERR_SIZE]);

/* Journal and table as they are on disk. */
struct pc_raw {
	struct pc_journal journal;
	struct pc_table table;
	u8 *buf;
	u64 nr_transactions;	/* complete, to be replayed */
	u64 nr_records;
};

/*
 * Reads the journal and lays it over the table. 0 or a negative errno and why; in each
 * case pc_raw_close() follows.
 */
int pc_raw_open(struct pc_raw *raw, struct pc_image *img, const struct pc_super *sb,
		char why[PC_META_ERR_SIZE]);
/* Shows every entry. 0, a negative errno and why, or what fn returned if negative. */
int pc_raw_read(struct pc_raw *raw, pc_table_fn fn, void *context, char why[PC_META_ERR_SIZE]);
/* Writes "not mapped" over one table block, in memory, to get past damage. */
int pc_raw_blank(struct pc_raw *raw, u32 table_block);
void pc_raw_close(struct pc_raw *raw);

#endif
