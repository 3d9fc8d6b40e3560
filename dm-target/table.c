// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Table sectors and the changes not yet written to them.
 *
 * A sector is written whole or not at all by any device, and carries a checksum and
 * its place, so a block of 8 sectors may be torn without harm: each sector is either
 * old or new, and the journal holds the records for both until the tail has moved
 * behind them. A sector says up to which transaction it reflects the journal; older
 * records do not apply to it.
 *
 * Everything moves in batches of PC_META_BATCH blocks through the caller's buffer.
 */
#include <linux/bitops.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "entry.h"
#include "ondisk.h"
#include "table.h"

/* A pass over the table. */
struct pass {
	u64 transaction;
	bool write;
	bool marked_only;
	pc_table_fn fn;
	void *context;
	char *why;		/* PC_META_ERR_SIZE bytes, or NULL */
	unsigned long modified[BITS_TO_LONGS(PC_META_BATCH)];
};

static size_t mark_bytes(u32 max_blocks)
{
	return BITS_TO_LONGS((size_t)max_blocks) * sizeof(long);
}

void pc_table_free(struct pc_table *t)
{
	vfree(t->changes);
	vfree(t->heads);
	vfree(t->marks);
	t->changes = NULL;
	t->heads = NULL;
	t->marks = NULL;
	t->nr_changes = 0;
	t->max_changes = 0;
	t->max_blocks = 0;
}

int pc_table_reserve(struct pc_table *t, u32 max_changes, u32 max_blocks)
{
	if (t->marks && max_changes <= t->max_changes && max_blocks <= t->max_blocks) {
		pc_table_forget_changes(t);
		return 0;
	}
	pc_table_free(t);
	t->hash_bits = max(ilog2(max_changes), 1);
	t->changes = vzalloc(array_size(max_changes, sizeof(*t->changes)));
	t->heads = vzalloc(sizeof(*t->heads) << t->hash_bits);
	t->marks = vzalloc(mark_bytes(max_blocks));
	if (!t->changes || !t->heads || !t->marks) {
		pc_table_free(t);
		return -ENOMEM;
	}
	t->max_changes = max_changes;
	t->max_blocks = max_blocks;
	return 0;
}

size_t pc_table_memory(const struct pc_table *t)
{
	return (size_t)t->max_changes * sizeof(*t->changes) +
	       (sizeof(*t->heads) << t->hash_bits) + mark_bytes(t->max_blocks);
}

bool pc_table_has_room(const struct pc_table *t, u32 n)
{
	return t->max_changes >= t->nr_cblocks || n <= t->max_changes - t->nr_changes;
}

static struct pc_change *find_change(const struct pc_table *t, u32 cblock)
{
	u32 i = t->heads[hash_32(cblock, t->hash_bits)];

	while (i && t->changes[i - 1].cblock != cblock)
		i = t->changes[i - 1].next;
	return i ? &t->changes[i - 1] : NULL;
}

int pc_table_change(struct pc_table *t, u32 cblock, const struct pc_entry *e, u64 transaction)
{
	struct pc_change *c = find_change(t, cblock);

	if (!c) {
		u32 *head = &t->heads[hash_32(cblock, t->hash_bits)];

		if (t->nr_changes == t->max_changes)
			return -ENOSPC;
		c = &t->changes[t->nr_changes++];
		c->cblock = cblock;
		c->next = *head;
		*head = t->nr_changes;
	}
	c->entry = *e;
	c->transaction = transaction;
	__set_bit(cblock / PC_TABLE_BLOCK_ENTRIES, t->marks);
	return 0;
}

void pc_table_forget_changes(struct pc_table *t)
{
	if (!t->nr_changes)
		return;
	memset(t->heads, 0, sizeof(*t->heads) << t->hash_bits);
	memset(t->marks, 0, mark_bytes(t->max_blocks));
	t->nr_changes = 0;
}

static u32 sector_crc(const struct pc_sector_disk *d)
{
	size_t from = offsetofend(struct pc_sector_disk, crc);

	return crc32c(PC_CRC_SEED, (const u8 *)d + from, sizeof(*d) - from);
}

static struct pc_sector_disk *buffer_sector(const struct pc_table *t, u32 n)
{
	return (struct pc_sector_disk *)(t->buf + (size_t)n * PC_TABLE_SECTOR_SIZE);
}

/* 0, or -EUCLEAN and, if wanted, why. */
static int check_sector(const struct pc_table *t, const struct pc_sector_disk *d, u64 index,
			const struct pass *p)
{
	const char *bad = NULL;

	if (le32_to_cpu(d->crc) != sector_crc(d))
		bad = "has a bad checksum";
	else if (le32_to_cpu(d->uuid_part) != t->uuid_part)
		bad = "belongs to other metadata";
	else if (le64_to_cpu(d->index) != index)
		bad = "lies in the wrong place";
	else if (le64_to_cpu(d->transaction) > p->transaction)
		bad = "reflects a transaction that the journal has lost";
	if (!bad)
		return 0;
	if (p->why)
		scnprintf(p->why, PC_META_ERR_SIZE,
			  "table sector %llu (cache blocks from %llu) %s",
			  index, index * PC_TABLE_ENTRIES, bad);
	return -EUCLEAN;
}

/* The committed entry of a block: what the sector holds, or a later change. */
static void current_entry(const struct pc_table *t, const struct pc_sector_disk *d, u32 slot,
			  u32 cblock, struct pc_entry *e)
{
	const struct pc_change *c = t->nr_changes ? find_change(t, cblock) : NULL;
	struct pc_entry old;

	pc_entry_decode(&old, &d->entries[slot]);
	if (!c || c->transaction <= le64_to_cpu(d->transaction)) {
		*e = old;
		return;
	}
	*e = c->entry;
	/* a hint is about the data, and goes when other data moves in */
	e->hint = (e->flags & old.flags & PC_ENTRY_MAPPED) && e->oblock == old.oblock ?
		  old.hint : 0;
}

/* Returns 1 if the sector was modified, 0 if not, or a negative errno. */
static int visit_sector(struct pc_table *t, struct pass *p, struct pc_sector_disk *d, u64 index)
{
	u64 first = index * PC_TABLE_ENTRIES;
	bool modified = false;
	u32 slot;
	int err;

	err = check_sector(t, d, index, p);
	if (err)
		return err;
	for (slot = 0; slot < PC_TABLE_ENTRIES; slot++) {
		struct pc_entry_disk encoded;
		struct pc_entry e;

		current_entry(t, d, slot, first + slot, &e);
		err = p->fn ? p->fn(p->context, first + slot, &e) : 0;
		if (err < 0)
			return err;
		if (!p->write)
			continue;
		pc_entry_encode(&encoded, &e);
		if (memcmp(&encoded, &d->entries[slot], sizeof(encoded))) {
			d->entries[slot] = encoded;
			modified = true;
		}
	}
	if (modified) {
		d->transaction = cpu_to_le64(p->transaction);
		d->crc = cpu_to_le32(sector_crc(d));
	}
	return modified;
}

/* Visits n blocks that lie in the buffer, the first being block `first` of the table. */
static int visit_blocks(struct pc_table *t, struct pass *p, u32 first, u32 n)
{
	u32 block, s;

	memset(p->modified, 0, sizeof(p->modified));
	for (block = 0; block < n; block++) {
		if (p->marked_only && !test_bit(first + block, t->marks))
			continue;
		for (s = 0; s < PC_TABLE_SECTORS; s++) {
			u32 sector = block * PC_TABLE_SECTORS + s;
			int r = visit_sector(t, p, buffer_sector(t, sector),
					     (u64)first * PC_TABLE_SECTORS + sector);

			if (r < 0)
				return r;
			if (r)
				__set_bit(block, p->modified);
		}
		cond_resched();
	}
	return 0;
}

static int write_modified(struct pc_table *t, const struct pass *p, u32 first, u32 n)
{
	u32 from = find_first_bit(p->modified, n);

	while (from < n) {
		u32 to = find_next_zero_bit(p->modified, n, from);
		int err = t->io->ops->write(t->io, t->start + first + from, to - from,
					    buffer_sector(t, from * PC_TABLE_SECTORS), 0);

		if (err)
			return err;
		from = find_next_bit(p->modified, n, to);
	}
	return 0;
}

/* Blocks to be read next at or behind *first: returns how many, 0 at the end. */
static u32 next_batch(const struct pc_table *t, const struct pass *p, u32 *first)
{
	u32 end, last, n;

	if (!p->marked_only)
		return *first < t->nr_blocks ? min(t->nr_blocks - *first, PC_META_BATCH) : 0;
	*first = find_next_bit(t->marks, t->nr_blocks, *first);
	if (*first >= t->nr_blocks)
		return 0;
	end = *first + min(t->nr_blocks - *first, PC_META_BATCH);
	last = *first;
	for (n = last + 1; n < end; n = last + 1) {
		n = find_next_bit(t->marks, end, n);
		/* reading a small gap is cheaper than another request */
		if (n >= end || n - last > 16)
			break;
		last = n;
	}
	return last + 1 - *first;
}

static int run_pass(struct pc_table *t, struct pass *p)
{
	u32 first = 0;
	u32 n;

	while ((n = next_batch(t, p, &first))) {
		int err = t->io->ops->read(t->io, t->start + first, n, t->buf);

		if (err) {
			if (p->why)
				scnprintf(p->why, PC_META_ERR_SIZE,
					  "reading the table failed: error %d", err);
			return err;
		}
		err = visit_blocks(t, p, first, n);
		if (!err && p->write)
			err = write_modified(t, p, first, n);
		if (err)
			return err;
		first += n;
		cond_resched();
	}
	return 0;
}

int pc_table_read(struct pc_table *t, u64 transaction, pc_table_fn fn, void *context,
		  char why[PC_META_ERR_SIZE])
{
	struct pass p = {
		.transaction = transaction,
		.fn = fn,
		.context = context,
		.why = why,
	};

	return run_pass(t, &p);
}

int pc_table_rewrite(struct pc_table *t, u64 transaction, pc_table_fn fn, void *context,
		     char why[PC_META_ERR_SIZE])
{
	struct pass p = {
		.transaction = transaction,
		.write = true,
		.fn = fn,
		.context = context,
		.why = why,
	};

	return run_pass(t, &p);
}

int pc_table_write_changes(struct pc_table *t, u64 transaction)
{
	struct pass p = {
		.transaction = transaction,
		.write = true,
		.marked_only = true,
	};

	return run_pass(t, &p);
}

int pc_table_format(struct pc_table *t, u32 first, u32 nr, u64 transaction)
{
	u32 done, n, s;

	for (done = 0; done < nr; done += n) {
		int err;

		n = min(nr - done, PC_META_BATCH);
		memset(t->buf, 0, (size_t)n * PC_META_BLOCK_SIZE);
		for (s = 0; s < n * PC_TABLE_SECTORS; s++) {
			struct pc_sector_disk *d = buffer_sector(t, s);

			d->uuid_part = cpu_to_le32(t->uuid_part);
			d->index = cpu_to_le64((u64)(first + done) * PC_TABLE_SECTORS + s);
			d->transaction = cpu_to_le64(transaction);
			d->crc = cpu_to_le32(sector_crc(d));
		}
		err = t->io->ops->write(t->io, t->start + first + done, n, t->buf, 0);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}
