// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] The start: from whatever the metadata device holds to a table that says all,
 * an empty journal, and the callers' picture of it.
 *
 * First everything is read and checked, with the committed records laid over the
 * table and each entry settled: intents resolved (DESIGN rule 9), what a smaller
 * origin or cache has lost dropped. Nothing is written until all of it has passed,
 * so a refused start leaves the evidence as it was, but for the flag NEEDS_CHECK.
 * Then what was settled is written, and the superblock last. Every step can be cut
 * short and done again: settling is idempotent, and the tail moves at the end.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "metadata-internal.h"

/* Finds origin blocks seen before: open addressing, at most 4/5 full. */
struct seen {
	u64 *slots;		/* origin block + 1; 0: free */
	u64 size;
};

struct start {
	struct pc_metadata *md;
	struct seen seen;
	bool dirty_table;	/* an entry or its sector is to be written */
	pc_load_fn fn;
	void *context;
	char *why;		/* PC_META_ERR_SIZE bytes */
};

static int init_seen(struct seen *seen, u32 nr_cblocks)
{
	seen->size = (u64)nr_cblocks + nr_cblocks / 4 + 1;
	seen->slots = vzalloc(array_size(seen->size, sizeof(*seen->slots)));
	return seen->slots ? 0 : -ENOMEM;
}

static bool was_seen(struct seen *seen, u64 oblock)
{
	u64 i = mul_u64_u32_shr(seen->size, hash_64(oblock, 32), 32);

	while (seen->slots[i]) {
		if (seen->slots[i] == oblock + 1)
			return true;
		if (++i == seen->size)
			i = 0;
	}
	seen->slots[i] = oblock + 1;
	return false;
}

__printf(2, 3)
static int damaged(struct start *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(s->why, PC_META_ERR_SIZE, fmt, args);
	va_end(args);
	return -EUCLEAN;
}

/* What no sound writer leaves behind, by the superblock's own sizes. */
static int check_entry(struct start *s, u32 cblock, const struct pc_entry *e)
{
	const struct pc_super *sb = &s->md->sb;

	if (!(e->flags & PC_ENTRY_MAPPED)) {
		if (e->flags || e->oblock || e->valid || e->dirty)
			return damaged(s, "cache block %u is not mapped but not empty", cblock);
		return 0;
	}
	if (cblock >= sb->nr_cblocks)
		return damaged(s, "cache block %u of %u is mapped", cblock, sb->nr_cblocks);
	if (e->flags & ~PC_ENTRY_FLAGS)
		return damaged(s, "cache block %u has unknown flags 0x%x", cblock, e->flags);
	if ((e->flags & PC_ENTRY_INTENTS) == PC_ENTRY_INTENTS)
		return damaged(s, "cache block %u has both intents", cblock);
	if (e->oblock >= pc_metadata_oblocks(sb->origin_sectors, sb->block_sectors))
		return damaged(s, "cache block %u maps origin block %llu, beyond the end",
			       cblock, e->oblock);
	if (e->valid & ~pc_metadata_covered(sb, sb->origin_sectors, e->oblock))
		return damaged(s, "cache block %u has valid sub-blocks beyond its end", cblock);
	if (e->dirty & ~e->valid)
		return damaged(s, "cache block %u has dirty sub-blocks that are not valid", cblock);
	return 0;
}

/* Every bit of an entry that was seen on disk must be settled the same way again. */
static void resolve_intent(struct pc_entry *e)
{
	if (e->flags & PC_ENTRY_INTENT_CACHE)
		e->dirty = e->valid;
	if (e->flags & PC_ENTRY_INTENT_ORIGIN)
		e->valid = e->dirty;
	e->flags &= ~PC_ENTRY_INTENTS;
}

/* -ENOSPC if dirty data lies beyond the new end of origin or cache. */
static int fit_sizes(struct start *s, u32 cblock, struct pc_entry *e)
{
	const struct pc_metadata *md = s->md;
	const struct pc_metadata_params *p = &md->params;
	u64 keep = ~0ULL;

	if (p->origin_sectors < md->sb.origin_sectors)
		keep = pc_metadata_covered(&md->sb, p->origin_sectors, e->oblock);
	if (e->dirty & ~keep) {
		scnprintf(s->why, PC_META_ERR_SIZE,
			  "origin has shrunk from %llu to %llu sectors, and origin block %llu is dirty in the cache",
			  md->sb.origin_sectors, p->origin_sectors, e->oblock);
		return -ENOSPC;
	}
	if (cblock >= p->nr_cblocks) {
		if (e->dirty) {
			scnprintf(s->why, PC_META_ERR_SIZE,
				  "cache has shrunk from %u to %u blocks, and cache block %u is dirty",
				  md->sb.nr_cblocks, p->nr_cblocks, cblock);
			return -ENOSPC;
		}
		keep = 0;
	}
	e->valid &= keep;
	return 0;
}

static bool is_same(const struct pc_entry *a, const struct pc_entry *b)
{
	return a->oblock == b->oblock && a->valid == b->valid && a->dirty == b->dirty &&
	       a->flags == b->flags;
}

static int settle(struct start *s, u32 cblock, struct pc_entry *e)
{
	struct pc_entry old = *e;
	int err;

	if (!(e->flags & PC_ENTRY_MAPPED))
		return 0;
	resolve_intent(e);
	err = fit_sizes(s, cblock, e);
	if (err)
		return err;
	/* a block that lost all it had is free; one beyond the end always is */
	if ((old.valid && !e->valid) || cblock >= s->md->params.nr_cblocks ||
	    e->oblock >= pc_metadata_oblocks(s->md->params.origin_sectors,
					     s->md->sb.block_sectors))
		memset(e, 0, sizeof(*e));
	if (!is_same(&old, e))
		s->dirty_table = true;
	return 0;
}

/* First pass: check, settle, show. */
static int visit(void *context, u32 cblock, struct pc_entry *e)
{
	struct start *s = context;
	int err;

	err = check_entry(s, cblock, e);
	if (err)
		return err;
	if ((e->flags & PC_ENTRY_MAPPED) && was_seen(&s->seen, e->oblock))
		return damaged(s, "origin block %llu is mapped twice, last by cache block %u",
			       e->oblock, cblock);
	err = settle(s, cblock, e);
	if (err || !(e->flags & PC_ENTRY_MAPPED))
		return err;
	err = s->fn ? s->fn(s->context, cblock, e) : 0;
	if (err) {
		scnprintf(s->why, PC_META_ERR_SIZE, "loading cache block %u failed: error %d",
			  cblock, err);
		return err < 0 ? err : -EINVAL;
	}
	return 0;
}

/* Second pass, where there is something to write. */
static int visit_again(void *context, u32 cblock, struct pc_entry *e)
{
	return settle(context, cblock, e);
}

static int note_record(void *context, u64 transaction, const struct pc_record *r)
{
	struct start *s = context;
	int err;

	if (r->cblock >= s->md->sb.nr_cblocks)
		return damaged(s, "journal names cache block %u of %u", r->cblock,
			       s->md->sb.nr_cblocks);
	s->dirty_table = true;
	err = pc_table_change(&s->md->table, r->cblock, &r->entry, transaction);
	if (err)
		return damaged(s, "journal holds records of more than %u cache blocks",
			       s->md->table.max_changes);
	return 0;
}

/* Room for all that this start and the time after it need. */
static int reserve(struct pc_metadata *md)
{
	u32 nr = max(md->sb.nr_cblocks, md->params.nr_cblocks);
	size_t bytes = BITS_TO_LONGS((size_t)nr) * sizeof(long);

	if (!md->intents || md->intent_bits < nr) {
		vfree(md->intents);
		md->intent_bits = 0;
		md->intents = vzalloc(bytes);
		if (!md->intents)
			return -ENOMEM;
		md->intent_bits = nr;
	}
	memset(md->intents, 0, BITS_TO_LONGS((size_t)md->intent_bits) * sizeof(long));
	md->nr_intents = 0;
	return pc_table_reserve(&md->table, min(md->sb.max_records, nr),
				pc_superblock_table_blocks(nr));
}

/* The last step of every start: the new sizes, not CLEAN, an empty journal. */
static int finish(struct pc_metadata *md)
{
	struct pc_super sb = md->sb;
	int err;

	err = pc_metadata_flush(md);
	if (err)
		return err;
	sb.flags = 0;
	sb.origin_sectors = md->params.origin_sectors;
	sb.nr_cblocks = md->params.nr_cblocks;
	sb.table_blocks = pc_superblock_table_blocks(sb.nr_cblocks);
	/*
	 * No block from before may ever carry an expected sequence: none lies J or
	 * more behind the tail, nor belongs to a transaction that does.
	 */
	sb.tail_sequence = md->sb.tail_sequence + 2 * (u64)sb.journal_blocks + 1;
	sb.tail_transaction = md->sb.tail_transaction + sb.journal_blocks + 1;
	err = pc_metadata_write_super(md, &sb);
	if (err)
		return err;
	pc_table_forget_changes(&md->table);
	pc_metadata_place(md);
	md->writable = true;
	return 0;
}

/* The flag EMPTY: whatever the table says, nothing of it counts. */
static int drop_all(struct pc_metadata *md)
{
	int err = pc_table_format(&md->table, 0,
				  pc_superblock_table_blocks(md->params.nr_cblocks),
				  pc_metadata_last(md));

	if (err) {
		md->failed = true;
		return err;
	}
	return finish(md);
}

static int write_settled(struct start *s, bool was_clean)
{
	struct pc_metadata *md = s->md;
	u32 blocks = pc_superblock_table_blocks(md->params.nr_cblocks);
	int err = 0;

	/* nobody may take a table that is being changed for a clean one */
	if (was_clean && (s->dirty_table || blocks > md->table.nr_blocks)) {
		struct pc_super sb = md->sb;

		sb.flags &= ~PC_SUPER_CLEAN;
		err = pc_metadata_write_super(md, &sb);
	}
	if (!err && s->dirty_table)
		err = pc_table_rewrite(&md->table, pc_metadata_last(md), visit_again, s, s->why);
	if (!err && blocks > md->table.nr_blocks)
		err = pc_table_format(&md->table, md->table.nr_blocks,
				      blocks - md->table.nr_blocks, pc_metadata_last(md));
	if (err)
		md->failed = true;
	return err;
}

static int read_and_settle(struct start *s)
{
	struct pc_metadata *md = s->md;
	bool was_clean = md->sb.flags & PC_SUPER_CLEAN;
	int err;

	if (!was_clean) {
		err = pc_journal_replay(&md->journal, note_record, s, s->why);
		if (err)
			return err;
	}
	err = init_seen(&s->seen, md->sb.nr_cblocks);
	if (err)
		return err;
	err = pc_table_read(&md->table, pc_metadata_last(md), visit, s, s->why);
	vfree(s->seen.slots);
	s->seen.slots = NULL;
	if (!err)
		err = write_settled(s, was_clean);
	if (!err)
		err = finish(md);
	return err;
}

int pc_metadata_load(struct pc_metadata *md, pc_load_fn fn, void *context,
		     char why[PC_META_ERR_SIZE])
{
	struct start s = { .md = md, .fn = fn, .context = context, .why = why };
	struct pc_super sb;
	enum pc_probe what;
	int err;

	why[0] = 0;
	if (md->failed || md->writable) {
		scnprintf(why, PC_META_ERR_SIZE, md->failed ? "metadata has failed"
							    : "metadata is in use");
		return md->failed ? -EROFS : -EBUSY;
	}
	err = pc_metadata_read_super(md, &sb, &what, why);
	if (!err && what != PC_PROBE_OURS) {
		scnprintf(why, PC_META_ERR_SIZE, "metadata device was wiped since it was opened");
		err = -EINVAL;
	}
	if (err)
		return err;
	md->sb = sb;
	pc_metadata_place(md);
	err = reserve(md);
	if (!err)
		err = sb.flags & PC_SUPER_EMPTY ? drop_all(md) : read_and_settle(&s);
	if (err == -EUCLEAN)
		pc_metadata_set_needs_check(md);
	if (err && !why[0])
		scnprintf(why, PC_META_ERR_SIZE, "starting the metadata failed: error %d", err);
	return err;
}
