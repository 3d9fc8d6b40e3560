// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] The facade of the metadata at run time: open and format, commit, checkpoint,
 * close. The start (pc_metadata_load) is in recovery.c.
 *
 * Order of what is made durable, and why it is enough: a commit is durable with its
 * journal transaction. A checkpoint writes the table first, flushes, and only then
 * moves the tail in the superblock, so the journal holds every record until the
 * table does. CLEAN is set after all that and cleared before the first journal
 * write. Once anything failed, nothing but the flag NEEDS_CHECK is written.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "block-types.h"
#include "metadata-internal.h"

u64 pc_metadata_oblocks(u64 sectors, u32 block_sectors)
{
	u32 rest;
	u64 n = div_u64_rem(sectors, block_sectors, &rest);

	return n + !!rest;
}

u64 pc_metadata_covered(const struct pc_super *sb, u64 origin_sectors, u64 oblock)
{
	u32 rest;
	u64 whole = div_u64_rem(origin_sectors, sb->block_sectors, &rest);
	u32 n;

	if (oblock > whole || (oblock == whole && !rest))
		return 0;
	if (oblock < whole)
		n = DIV_ROUND_UP(sb->block_sectors, sb->subblock_sectors);
	else
		n = rest / sb->subblock_sectors;
	return n ? ~0ULL >> (64 - n) : 0;
}

int pc_metadata_flush(struct pc_metadata *md)
{
	int err = md->io->ops->flush(md->io);

	if (err)
		md->failed = true;
	return err;
}

int pc_metadata_write_super(struct pc_metadata *md, const struct pc_super *sb)
{
	struct pc_super new = *sb;
	int err;

	new.sequence = md->sb.sequence;
	err = pc_superblock_write(md->io, md->sb_buf, &new);
	/* a sequence that may be on disk is not used again */
	md->sb.sequence = new.sequence;
	if (err) {
		md->failed = true;
		return err;
	}
	md->sb = new;
	return 0;
}

void pc_metadata_place(struct pc_metadata *md)
{
	struct pc_journal *j = &md->journal;
	struct pc_table *t = &md->table;

	j->io = md->io;
	j->buf = md->buf;
	j->start = md->sb.journal_start;
	j->nr_blocks = md->sb.journal_blocks;
	j->uuid_part = pc_superblock_uuid_part(&md->sb);
	j->tail = md->sb.tail_sequence;
	j->head = md->sb.tail_sequence;
	j->transaction = md->sb.tail_transaction;

	t->io = md->io;
	t->buf = md->buf;
	t->start = md->sb.table_start;
	t->nr_blocks = md->sb.table_blocks;
	t->nr_cblocks = md->sb.nr_cblocks;
	t->uuid_part = pc_superblock_uuid_part(&md->sb);
}

/* A superblock that is sound in itself against what the table line says. */
static int compare_params(const struct pc_super *sb, const struct pc_metadata_params *params,
			  u64 nr_blocks, char why[PC_META_ERR_SIZE])
{
	u64 end = sb->table_start + pc_superblock_table_blocks(params->nr_cblocks);

	if (sb->block_sectors != params->block_sectors) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata was made for a block size of %u sectors, not %u",
			  sb->block_sectors, params->block_sectors);
		return -EINVAL;
	}
	if (sb->subblock_sectors != params->subblock_sectors) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata was made for sub-blocks of %u sectors, not %u",
			  sb->subblock_sectors, params->subblock_sectors);
		return -EINVAL;
	}
	if (end > nr_blocks) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata device has %llu blocks of 4096 bytes, growing the cache to %u blocks needs %llu",
			  nr_blocks, params->nr_cblocks, end);
		return -ENOSPC;
	}
	return 0;
}

int pc_metadata_read_super(struct pc_metadata *md, struct pc_super *sb, enum pc_probe *what,
			   char why[PC_META_ERR_SIZE])
{
	int err = pc_superblock_read(md->io, md->sb_buf, sb, what, why);

	if (err || *what != PC_PROBE_OURS)
		return err;
	return compare_params(sb, &md->params, md->io->nr_blocks, why);
}

/*
 * Block 0 comes last: until then the device stays blank, and a format that was cut
 * short starts again. What follows is stale but unreachable: of another uuid.
 */
static int format_device(struct pc_metadata *md, char why[PC_META_ERR_SIZE])
{
	struct pc_super *sb = &md->sb;
	int err;

	err = pc_superblock_layout(sb, &md->params, md->io->nr_blocks, why);
	if (err)
		return err;
	pc_metadata_place(md);

	memset(md->sb_buf, 0, PC_META_BLOCK_SIZE);
	err = md->io->ops->write(md->io, 1, 1, md->sb_buf, 0);
	if (!err)
		err = pc_journal_format(&md->journal);
	if (!err)
		err = pc_table_format(&md->table, 0, sb->table_blocks, 0);
	if (!err)
		err = pc_metadata_flush(md);
	if (!err)
		err = pc_superblock_write_copy(md->io, md->sb_buf, sb, 1, PC_META_FUA);
	if (!err)
		err = pc_superblock_write_copy(md->io, md->sb_buf, sb, 0,
					       PC_META_PREFLUSH | PC_META_FUA);
	if (err)
		scnprintf(why, PC_META_ERR_SIZE, "formatting the metadata device failed: error %d",
			  err);
	return err;
}

static int check_params(const struct pc_metadata_params *p, char why[PC_META_ERR_SIZE])
{
	if (!p->subblock_sectors || p->block_sectors < p->subblock_sectors ||
	    (p->block_sectors - 1) / p->subblock_sectors >= 64)
		scnprintf(why, PC_META_ERR_SIZE,
			  "block size of %u sectors in sub-blocks of %u is not possible",
			  p->block_sectors, p->subblock_sectors);
	else if (!p->nr_cblocks || p->nr_cblocks > U32_MAX - PC_TABLE_BLOCK_ENTRIES)
		scnprintf(why, PC_META_ERR_SIZE, "cache size of %u blocks is not possible",
			  p->nr_cblocks);
	else if (pc_metadata_oblocks(p->origin_sectors, p->block_sectors) > PC_OBLOCK_MAX)
		scnprintf(why, PC_META_ERR_SIZE, "origin of %llu sectors is too large",
			  p->origin_sectors);
	else
		return 0;
	return -EINVAL;
}

static int open_device(struct pc_metadata *md, char why[PC_META_ERR_SIZE])
{
	enum pc_probe what;
	int err;

	md->buf = vmalloc((size_t)PC_META_BATCH * PC_META_BLOCK_SIZE);
	md->sb_buf = kmalloc(PC_META_BLOCK_SIZE, GFP_KERNEL);
	if (!md->buf || !md->sb_buf) {
		scnprintf(why, PC_META_ERR_SIZE, "no memory for metadata buffers");
		return -ENOMEM;
	}
	err = pc_metadata_read_super(md, &md->sb, &what, why);
	if (err)
		return err;
	if (what == PC_PROBE_BLANK)
		return format_device(md, why);
	pc_metadata_place(md);
	return 0;
}

struct pc_metadata *pc_metadata_open(struct pc_metaio *io,
				     const struct pc_metadata_params *params,
				     int *err, char why[PC_META_ERR_SIZE])
{
	struct pc_metadata *md;

	why[0] = 0;
	*err = check_params(params, why);
	if (*err)
		return NULL;
	md = kzalloc(sizeof(*md), GFP_KERNEL);
	if (!md) {
		scnprintf(why, PC_META_ERR_SIZE, "no memory for metadata");
		*err = -ENOMEM;
		return NULL;
	}
	md->io = io;
	md->params = *params;
	*err = open_device(md, why);
	if (*err) {
		pc_metadata_free(md);
		return NULL;
	}
	return md;
}

void pc_metadata_free(struct pc_metadata *md)
{
	if (!md)
		return;
	pc_table_free(&md->table);
	vfree(md->intents);
	vfree(md->buf);
	kfree(md->sb_buf);
	kfree(md);
}

int pc_metadata_probe(struct pc_metaio *io, enum pc_probe *what)
{
	void *buf;
	int err;

	*what = PC_PROBE_UNKNOWN;
	buf = kmalloc(PC_META_BLOCK_SIZE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	err = pc_superblock_probe(io, buf, what);
	kfree(buf);
	return err;
}

static int may_write(const struct pc_metadata *md)
{
	return md->failed || !md->writable ? -EROFS : 0;
}

static bool is_sound(const struct pc_metadata *md, const struct pc_record *r)
{
	const struct pc_entry *e = &r->entry;

	if (r->cblock >= md->sb.nr_cblocks)
		return false;
	if (!(e->flags & PC_ENTRY_MAPPED))
		return true;
	return !(e->flags & ~PC_ENTRY_FLAGS) &&
	       (e->flags & PC_ENTRY_INTENTS) != PC_ENTRY_INTENTS &&
	       !(e->dirty & ~e->valid) &&
	       e->oblock < pc_metadata_oblocks(md->sb.origin_sectors, md->sb.block_sectors) &&
	       !(e->valid & ~pc_metadata_covered(&md->sb, md->sb.origin_sectors, e->oblock));
}

static void note_intent(struct pc_metadata *md, u32 cblock, bool has)
{
	if (has == test_bit(cblock, md->intents))
		return;
	if (has) {
		__set_bit(cblock, md->intents);
		md->nr_intents++;
	} else {
		__clear_bit(cblock, md->intents);
		md->nr_intents--;
	}
}

/* One transaction: journal, then memory. */
static int commit_one(struct pc_metadata *md, const struct pc_record *records, u32 n)
{
	static const struct pc_entry unmapped;
	u64 transaction = md->journal.transaction;
	u32 i;
	int err;

	err = pc_journal_append(&md->journal, records, n);
	if (err) {
		md->failed = true;
		return err;
	}
	for (i = 0; i < n; i++) {
		const struct pc_entry *e = &records[i].entry;

		if (!(e->flags & PC_ENTRY_MAPPED))
			e = &unmapped;
		/* there is room: pc_metadata_commit() has seen to that */
		err = pc_table_change(&md->table, records[i].cblock, e, transaction);
		if (WARN_ON_ONCE(err)) {
			md->failed = true;
			return err;
		}
		note_intent(md, records[i].cblock, e->flags & PC_ENTRY_INTENTS);
	}
	return 0;
}

bool pc_metadata_checkpoint_due(const struct pc_metadata *md)
{
	const struct pc_table *t = &md->table;

	return pc_journal_used(&md->journal) >= md->journal.nr_blocks / 2 ||
	       !pc_table_has_room(t, t->max_changes / 2);
}

int pc_metadata_commit(struct pc_metadata *md, const struct pc_record *records, size_t n)
{
	size_t i;
	u32 most;
	int err;

	err = may_write(md);
	if (err)
		return err;
	/* nothing unsound gets to the disk, whatever the caller's state */
	for (i = 0; i < n; i++)
		if (!is_sound(md, &records[i]))
			return -EINVAL;

	most = min(pc_journal_max_records(&md->journal), max(md->sb.max_records / 4, 1u));
	for (i = 0; i < n;) {
		u32 part = min_t(size_t, n - i, most);

		if (pc_metadata_checkpoint_due(md) || !pc_table_has_room(&md->table, part)) {
			err = pc_metadata_checkpoint(md);
			if (err)
				return err;
		}
		err = commit_one(md, records + i, part);
		if (err)
			return err;
		i += part;
	}
	return 0;
}

int pc_metadata_checkpoint(struct pc_metadata *md)
{
	struct pc_super sb;
	int err;

	err = may_write(md);
	if (err)
		return err;
	if (!pc_journal_used(&md->journal))
		return 0;
	/* calls are serial: all changes here are of transactions that have completed */
	err = pc_table_write_changes(&md->table, pc_metadata_last(md));
	if (err) {
		md->failed = true;
		return err;
	}
	err = pc_metadata_flush(md);
	if (err)
		return err;
	sb = md->sb;
	sb.tail_sequence = md->journal.head;
	sb.tail_transaction = md->journal.transaction;
	err = pc_metadata_write_super(md, &sb);
	if (err)
		return err;
	md->journal.tail = md->journal.head;
	pc_table_forget_changes(&md->table);
	return 0;
}

struct hints {
	pc_hint_fn fn;
	void *context;
};

static int set_hint(void *context, u32 cblock, struct pc_entry *e)
{
	const struct hints *h = context;

	if (e->flags & PC_ENTRY_MAPPED)
		e->hint = h->fn(h->context, cblock);
	return 0;
}

/*
 * While hints are being replaced, the table holds a mixture: it belongs to nobody
 * unless the new ones are of the same policy.
 */
static int write_hints(struct pc_metadata *md, const char *policy, u32 version,
		       pc_hint_fn fn, void *context)
{
	struct hints h = { .fn = fn, .context = context };
	int err;

	if (md->sb.policy_name[0] &&
	    (strcmp(md->sb.policy_name, policy) || md->sb.policy_version != version)) {
		struct pc_super sb = md->sb;

		memset(sb.policy_name, 0, sizeof(sb.policy_name));
		sb.policy_version = 0;
		err = pc_metadata_write_super(md, &sb);
		if (err)
			return err;
	}
	err = pc_table_rewrite(&md->table, pc_metadata_last(md), set_hint, &h, NULL);
	if (err)
		md->failed = true;
	return err;
}

int pc_metadata_close_clean(struct pc_metadata *md, const char *policy, u32 policy_version,
			    pc_hint_fn fn, void *context, const u64 counters[PC_NR_COUNTERS])
{
	struct pc_super sb;
	int err;

	err = may_write(md);
	if (err)
		return err;
	if (md->nr_intents)
		return -EBUSY;
	err = pc_metadata_checkpoint(md);
	if (!err && fn)
		err = write_hints(md, policy, policy_version, fn, context);
	if (!err)
		err = pc_metadata_flush(md);
	if (err)
		return err;

	sb = md->sb;
	sb.flags |= PC_SUPER_CLEAN;
	if (fn) {
		memset(sb.policy_name, 0, sizeof(sb.policy_name));
		strscpy(sb.policy_name, policy, sizeof(sb.policy_name));
		sb.policy_version = policy_version;
	}
	memcpy(sb.counters, counters, sizeof(sb.counters));
	err = pc_metadata_write_super(md, &sb);
	if (!err)
		md->writable = false;
	return err;
}

int pc_metadata_changed(struct pc_metadata *md)
{
	char why[PC_META_ERR_SIZE];
	struct pc_super sb;
	enum pc_probe what;
	int err;

	err = pc_superblock_read(md->io, md->sb_buf, &sb, &what, why);
	if (err)
		return err;
	if (what != PC_PROBE_OURS || memcmp(sb.uuid, md->sb.uuid, sizeof(sb.uuid)))
		return 1;
	/* what failed may have arrived or not, but never said CLEAN: that was somebody else */
	if (md->failed)
		return sb.sequence > md->sb.sequence || (sb.flags & PC_SUPER_CLEAN);
	return sb.sequence != md->sb.sequence;
}

int pc_metadata_reopen(struct pc_metadata *md)
{
	struct pc_super sb = md->sb;
	int err;

	if (md->failed || !md->intents)
		return -EROFS;
	if (md->writable)
		return 0;
	sb.flags &= ~PC_SUPER_CLEAN;
	err = pc_metadata_write_super(md, &sb);
	if (!err)
		md->writable = true;
	return err;
}

/* Also after a failure: there is nothing to lose, and it may get through. */
int pc_metadata_set_needs_check(struct pc_metadata *md)
{
	struct pc_super sb = md->sb;

	if (sb.flags & PC_SUPER_NEEDS_CHECK)
		return 0;
	/* status tells it even if the disk can not be told */
	md->sb.flags |= PC_SUPER_NEEDS_CHECK;
	sb.flags |= PC_SUPER_NEEDS_CHECK;
	return pc_metadata_write_super(md, &sb);
}

int pc_metadata_set_empty(struct pc_metadata *md)
{
	struct pc_super sb = md->sb;
	int err = may_write(md);

	if (err)
		return err;
	sb.flags |= PC_SUPER_EMPTY;
	return pc_metadata_write_super(md, &sb);
}

bool pc_metadata_is_clean(const struct pc_metadata *md)
{
	return !md->failed && (md->sb.flags & PC_SUPER_CLEAN);
}

bool pc_metadata_needs_check(const struct pc_metadata *md)
{
	return md->sb.flags & PC_SUPER_NEEDS_CHECK;
}

bool pc_metadata_failed(const struct pc_metadata *md)
{
	return md->failed;
}

void pc_metadata_counters(const struct pc_metadata *md, u64 counters[PC_NR_COUNTERS])
{
	memcpy(counters, md->sb.counters, sizeof(md->sb.counters));
}

void pc_metadata_hints_of(const struct pc_metadata *md, const char **name, u32 *version)
{
	*name = md->sb.policy_name;
	*version = md->sb.policy_version;
}

void pc_metadata_usage(const struct pc_metadata *md, u64 *used, u64 *total)
{
	*used = md->sb.table_start + md->sb.table_blocks;
	*total = md->io->nr_blocks;
}

size_t pc_metadata_memory(const struct pc_metadata *md)
{
	size_t buffers = (size_t)(PC_META_BATCH + 1) * PC_META_BLOCK_SIZE;
	size_t intents = BITS_TO_LONGS((size_t)md->intent_bits) * sizeof(long);

	return sizeof(*md) + buffers + intents + pc_table_memory(&md->table);
}
