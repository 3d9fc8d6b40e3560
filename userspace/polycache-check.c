// SPDX-License-Identifier: GPL-2.0-only
/*
 * polycache check: would a start accept this metadata, and what would it find?
 *
 * The answer is the start's own, on an image that keeps its writes in memory. Before
 * it, superblock copies, journal and table sectors are read one by one, since a start
 * stops at the first damage that it meets and the reader wants to know all of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "polycache.h"
#include "polycache-image.h"

#define MAX_BAD_BLOCKS 20

struct check {
	struct pc_image image;
	struct pc_super sb;
	bool quiet;
	unsigned int findings;
	u32 next_cblock;	/* of the pass over the table */
	u64 nr_intents;		/* on disk */
	u64 nr_mapped;		/* by the start */
	u64 nr_dirty;
	u64 nr_valid_subblocks;
	u64 nr_dirty_subblocks;
};

__attribute__((format(printf, 2, 3)))
static void found(struct check *c, const char *fmt, ...)
{
	char text[PC_META_ERR_SIZE + 64];
	va_list args;

	c->findings++;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!c->quiet)
		pc_fail("%s: %s", c->image.path, text);
}

__attribute__((format(printf, 2, 3)))
static void tell(const struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (!c->quiet)
		vprintf(fmt, args);
	va_end(args);
}

/* A damaged copy is no reason to refuse a start: the other one serves. */
static void check_copies(struct check *c)
{
	char why[PC_META_ERR_SIZE];
	struct pc_super copy[2];
	bool good[2];

	for (int i = 0; i < 2; i++) {
		good[i] = !pc_image_super_copy(&c->image, i, &copy[i], why);
		if (!good[i] && !c->quiet)
			pc_warn("%s: superblock copy %c: %s; the other copy serves, the next start mends it",
				c->image.path, 'A' + i, why);
	}
	if (good[0] && good[1] && memcmp(copy[0].uuid, copy[1].uuid, PC_UUID_SIZE)) {
		good[1] = false;
		if (!c->quiet)
			pc_warn("%s: superblock copy B is of an earlier life; copy A serves, the next start mends B",
				c->image.path);
	}
	tell(c, "superblock: %s, sequence %llu\n",
	     good[0] && good[1] ? "both copies are good" : "one copy of two is good",
	     c->sb.sequence);
}

static void tell_super(const struct check *c)
{
	const struct pc_super *sb = &c->sb;
	char block[PC_SIZE_TEXT], sub[PC_SIZE_TEXT], origin[PC_SIZE_TEXT];

	tell(c, "sizes: %u cache blocks of %s in sub-blocks of %s, origin %s\n", sb->nr_cblocks,
	     pc_size_text((u64)sb->block_sectors << 9, block),
	     pc_size_text((u64)sb->subblock_sectors << 9, sub),
	     pc_size_text(sb->origin_sectors << 9, origin));
	tell(c, "state: %s%s%s\n", sb->flags & PC_SUPER_CLEAN ? "closed cleanly" :
	     "not closed cleanly, or in use",
	     sb->flags & PC_SUPER_NEEDS_CHECK ? "; marked needs_check, a start that passes clears it" : "",
	     sb->flags & PC_SUPER_EMPTY ? "; marked empty, the next start drops every mapping" : "");
}

static int see_raw(void *context, u32 cblock, struct pc_entry *e)
{
	struct check *c = context;

	c->next_cblock = cblock + 1;
	if (e->flags & PC_ENTRY_INTENTS)
		c->nr_intents++;
	return 0;
}

/*
 * Each table block with a bad sector is named, and taken for empty from then on, in
 * memory, so that the rest can be read. False: no use in going on.
 */
static bool check_table(struct check *c, struct pc_raw *raw)
{
	char why[PC_META_ERR_SIZE];
	int bad, err;

	for (bad = 0; bad <= MAX_BAD_BLOCKS; bad++) {
		why[0] = 0;
		c->next_cblock = 0;
		c->nr_intents = 0;
		err = pc_raw_read(raw, see_raw, c, why);
		if (!err)
			return true;
		if (err != -EUCLEAN || bad == MAX_BAD_BLOCKS)
			break;
		found(c, "%s", why);
		if (pc_raw_blank(raw, c->next_cblock / PC_TABLE_BLOCK_ENTRIES))
			return false;
	}
	if (err == -EUCLEAN)
		found(c, "more table blocks are damaged than the %d named", MAX_BAD_BLOCKS);
	else
		found(c, "%s", why);
	return false;
}

static bool check_raw(struct check *c)
{
	char why[PC_META_ERR_SIZE];
	struct pc_raw raw;
	bool go_on;

	if (pc_raw_open(&raw, &c->image, &c->sb, why)) {
		found(c, "%s", why);
		pc_raw_close(&raw);
		return false;
	}
	if (c->sb.flags & PC_SUPER_CLEAN)
		tell(c, "journal: %u blocks, empty\n", c->sb.journal_blocks);
	else
		tell(c, "journal: %u blocks, %llu transactions with %llu records to be replayed\n",
		     c->sb.journal_blocks, raw.nr_transactions, raw.nr_records);
	/* what a start does not read cannot harm */
	go_on = c->sb.flags & PC_SUPER_EMPTY || check_table(c, &raw);
	pc_raw_close(&raw);
	return go_on;
}

static int see_settled(void *context, u32 cblock, const struct pc_entry *e)
{
	struct check *c = context;

	c->nr_mapped++;
	c->nr_dirty += !!e->dirty;
	c->nr_valid_subblocks += __builtin_popcountll(e->valid);
	c->nr_dirty_subblocks += __builtin_popcountll(e->dirty);
	return 0;
}

static void check_start(struct check *c)
{
	u64 sub = (u64)c->sb.subblock_sectors << 9;
	char valid[PC_SIZE_TEXT], dirty[PC_SIZE_TEXT];
	char why[PC_META_ERR_SIZE];

	if (pc_image_load(&c->image, &c->sb, see_settled, c, why)) {
		found(c, "%s", why);
		return;
	}
	if (c->findings)
		return;
	if (c->nr_intents)
		tell(c, "intents: %llu blocks were being written\n", c->nr_intents);
	tell(c, "table: %llu blocks mapped, about %s; %llu dirty, about %s\n", c->nr_mapped,
	     pc_size_text(c->nr_valid_subblocks * sub, valid), c->nr_dirty,
	     pc_size_text(c->nr_dirty_subblocks * sub, dirty));
	if (c->sb.policy_name[0])
		tell(c, "hints: of policy %s, version %u\n", c->sb.policy_name,
		     c->sb.policy_version);
}

static int check_metadata(struct check *c)
{
	char why[PC_META_ERR_SIZE];

	if (pc_image_super(&c->image, &c->sb, why)) {
		found(c, "%s", why);
		return PC_EXIT_FAILED;
	}
	tell_super(c);
	check_copies(c);
	if (check_raw(c))
		check_start(c);
	tell(c, c->findings ? "bad: a start would be refused\n" : "good\n");
	return c->findings ? PC_EXIT_FAILED : PC_EXIT_OK;
}

static int run(const struct pc_call *call)
{
	struct check c = { .quiet = pc_given(call, 'q') };
	char why[PC_META_ERR_SIZE];
	int status;

	if (pc_image_open(&c.image, call->words[0], pc_given(call, 'u'), why))
		return c.quiet ? PC_EXIT_FAILED : pc_fail("%s: %s", call->words[0], why);
	status = check_metadata(&c);
	pc_image_close(&c.image);
	return status;
}

static const struct pc_option options[] = {
	{ 'q', "quiet", NULL, "print nothing, the exit status tells" },
	{ 'u', "in-use", NULL, "read a device that is in use, too; wrong findings are possible" },
	{ 0 },
};

const struct pc_command pc_command_check = {
	.name = "check",
	.args = "META",
	.summary = "Check a metadata device or an image of one, writing nothing",
	.text = "Superblock, journal and table are read as a start would read them. Exit status 0:\n"
		"a start would accept them. 1: it would not; what is damaged is named.\n",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.run = run,
};
