// SPDX-License-Identifier: GPL-2.0-only
/*
 * polycache dump: what the metadata says, for people or as XML in the style of
 * cache_dump.
 *
 * The XML is for exchange with cache_restore, whose format knows whole blocks only: a
 * block that is cached in part is an element of another name, which cache_restore
 * refuses, since taken for a whole one it would serve what was never filled.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "polycache.h"
#include "polycache-image.h"

struct dump {
	struct pc_image image;
	struct pc_super sb;
	bool raw;
	bool whole_only;	/* leave out what is cached in part and clean */
	u64 nr_left_out;
	u64 nr_partial_dirty;
};

static void print_uuid(const u8 *uuid)
{
	for (int i = 0; i < PC_UUID_SIZE; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* All of the block that the origin has may be read from the cache. */
static bool is_whole(const struct dump *d, const struct pc_entry *e)
{
	u64 begin = e->oblock * d->sb.block_sectors;
	u64 sectors = d->sb.block_sectors;
	u32 n;

	if (begin + sectors > d->sb.origin_sectors)
		sectors = d->sb.origin_sectors - begin;
	n = (sectors + d->sb.subblock_sectors - 1) / d->sb.subblock_sectors;
	return e->valid == ~0ULL >> (64 - n);
}

/* --- for people --------------------------------------------------------------------- */

static void print_super(const struct dump *d)
{
	static const char *const counters[PC_NR_COUNTERS] = {
		"read_hits", "read_misses", "write_hits", "write_misses", "demotions",
		"promotions",
	};
	const struct pc_super *sb = &d->sb;

	printf("uuid ");
	print_uuid(sb->uuid);
	printf("\nsequence %llu\nflags%s%s%s%s\n", sb->sequence,
	       sb->flags & PC_SUPER_CLEAN ? " clean" : "",
	       sb->flags & PC_SUPER_NEEDS_CHECK ? " needs_check" : "",
	       sb->flags & PC_SUPER_EMPTY ? " empty" : "", sb->flags ? "" : " -");
	printf("block_sectors %u\nsubblock_sectors %u\norigin_sectors %llu\nnr_cblocks %u\n",
	       sb->block_sectors, sb->subblock_sectors, sb->origin_sectors, sb->nr_cblocks);
	printf("journal_start %llu\njournal_blocks %u\njournal_max_records %u\n",
	       sb->journal_start, sb->journal_blocks, sb->max_records);
	printf("table_start %llu\ntable_blocks %u\ntail_sequence %llu\ntail_transaction %llu\n",
	       sb->table_start, sb->table_blocks, sb->tail_sequence, sb->tail_transaction);
	printf("hints_of %s\nhints_version %u\n", sb->policy_name[0] ? sb->policy_name : "-",
	       sb->policy_version);
	for (int i = 0; i < PC_NR_COUNTERS; i++)
		printf("%s %llu\n", counters[i], sb->counters[i]);
}

static int print_entry(void *context, u32 cblock, const struct pc_entry *e)
{
	printf("cache_block %u origin_block %llu valid 0x%llx dirty 0x%llx hint %u%s%s\n", cblock,
	       e->oblock, e->valid, e->dirty, e->hint,
	       e->flags & PC_ENTRY_INTENT_CACHE ? " intent_cache" : "",
	       e->flags & PC_ENTRY_INTENT_ORIGIN ? " intent_origin" : "");
	return 0;
}

static int print_raw_entry(void *context, u32 cblock, struct pc_entry *e)
{
	return e->flags & PC_ENTRY_MAPPED ? print_entry(context, cblock, e) : 0;
}

static int dump_raw(struct dump *d, char why[PC_META_ERR_SIZE])
{
	struct pc_raw raw;
	int err = pc_raw_open(&raw, &d->image, &d->sb, why);

	if (!err)
		err = pc_raw_read(&raw, print_raw_entry, d, why);
	pc_raw_close(&raw);
	return err;
}

static int dump_text(struct dump *d, bool super_only, char why[PC_META_ERR_SIZE])
{
	print_super(d);
	if (super_only)
		return 0;
	if (d->raw)
		return dump_raw(d, why);
	return pc_image_load(&d->image, &d->sb, print_entry, d, why);
}

/* --- XML ---------------------------------------------------------------------------- */

static int count_partial(void *context, u32 cblock, const struct pc_entry *e)
{
	struct dump *d = context;

	if (!is_whole(d, e) && e->dirty)
		d->nr_partial_dirty++;
	return 0;
}

static int print_mapping(void *context, u32 cblock, const struct pc_entry *e)
{
	struct dump *d = context;
	bool whole = is_whole(d, e);

	if (!whole && d->whole_only) {
		d->nr_left_out++;
		return 0;
	}
	printf("    <%s cache_block=\"%u\" origin_block=\"%llu\" dirty=\"%s\" valid_mask=\"0x%llx\" dirty_mask=\"0x%llx\"/>\n",
	       whole ? "mapping" : "partial_mapping", cblock, e->oblock,
	       e->dirty ? "true" : "false", e->valid, e->dirty);
	return 0;
}

/* Four bytes, little-endian as cache_dump has them, in base64. */
static int print_hint(void *context, u32 cblock, const struct pc_entry *e)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const struct dump *d = context;
	u32 h = e->hint;
	u32 high = (h & 0xff) << 16 | (h & 0xff00) | (h >> 16 & 0xff);
	u32 low = h >> 24;

	if (d->whole_only && !is_whole(d, e))
		return 0;
	printf("    <hint cache_block=\"%u\" data=\"%c%c%c%c%c%c==\"/>\n", cblock,
	       digits[high >> 18], digits[high >> 12 & 63], digits[high >> 6 & 63],
	       digits[high & 63], digits[low >> 2], digits[(low & 3) << 4]);
	return 0;
}

/* Read once before anything is printed: half a file is worse than none. */
static int dump_xml(struct dump *d, char why[PC_META_ERR_SIZE])
{
	const struct pc_super *sb = &d->sb;
	int err = pc_image_load(&d->image, sb, count_partial, d, why);

	if (!err && d->whole_only && d->nr_partial_dirty) {
		snprintf(why, PC_META_ERR_SIZE,
			 "%llu blocks are dirty and cached in part, which --whole-only cannot express: write them back first (polycache flush)",
			 d->nr_partial_dirty);
		err = -EINVAL;
	}
	if (err)
		return err;
	printf("<superblock uuid=\"");
	print_uuid(sb->uuid);
	printf("\" block_size=\"%u\" nr_cache_blocks=\"%u\" policy=\"%s\" hint_width=\"4\"",
	       sb->block_sectors, sb->nr_cblocks, sb->policy_name[0] ? sb->policy_name : "default");
	printf(" policy_version=\"%u\" subblock_size=\"%u\" origin_sectors=\"%llu\">\n",
	       sb->policy_version, sb->subblock_sectors, sb->origin_sectors);
	printf("  <mappings>\n");
	err = pc_image_load(&d->image, sb, print_mapping, d, why);
	printf("  </mappings>\n  <hints>\n");
	if (!err && sb->policy_name[0])
		err = pc_image_load(&d->image, sb, print_hint, d, why);
	printf("  </hints>\n</superblock>\n");
	return err;
}

/* --- the command -------------------------------------------------------------------- */

static int run(const struct pc_call *call)
{
	struct dump d = {
		.raw = pc_given(call, 'r'),
		.whole_only = pc_given(call, 'w'),
	};
	bool xml = pc_given(call, 'x'), super_only = pc_given(call, 's');
	const char *path = call->words[0];
	char why[PC_META_ERR_SIZE];
	int err;

	if (xml && (d.raw || super_only))
		return pc_fail_usage("--xml and --%s: must be one of them",
				     d.raw ? "raw" : "superblock");
	if (d.whole_only && !xml)
		return pc_fail_usage("--whole-only: must be given with --xml");
	if (pc_image_open(&d.image, path, pc_given(call, 'u'), why))
		return pc_fail("%s: %s", path, why);
	err = pc_image_super(&d.image, &d.sb, why);
	if (!err)
		err = xml ? dump_xml(&d, why) : dump_text(&d, super_only, why);
	pc_image_close(&d.image);
	if (err)
		return pc_fail("%s: %s", path, why);
	if (d.nr_left_out)
		pc_warn("%s: left out %llu clean blocks that are cached in part", path,
			d.nr_left_out);
	return PC_EXIT_OK;
}

static const struct pc_option options[] = {
	{ 'x', "xml", NULL, "XML as cache_dump writes it, masks as further attributes" },
	{ 'w', "whole-only", NULL, "with --xml: leave out clean blocks that are cached in part" },
	{ 'r', "raw", NULL, "entries as they are on disk, intents not yet resolved" },
	{ 's', "superblock", NULL, "the superblock only" },
	{ 'u', "in-use", NULL, "read a device that is in use, too; what it says may be torn" },
	{ 0 },
};

const struct pc_command pc_command_dump = {
	.name = "dump",
	.args = "META",
	.summary = "Print what a metadata device or an image of one holds",
	.text = "Without options: the superblock, then a line for each mapped block, as a start\n"
		"would find them. A block that is cached in part is a <partial_mapping> in XML,\n"
		"which cache_restore refuses; --whole-only makes a file that it takes.\n",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.run = run,
};
