// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] The journal ring: encode and write transactions, find and read them again.
 *
 * A transaction is durable when its end block is: all blocks before it are written
 * and completed first, and the end block goes out with PREFLUSH and FUA. It also
 * carries a checksum over its predecessors' checksums, so a transaction is whole or
 * it is ignored. Transactions are serial: no block of the next is submitted before
 * the last one completed without error. Replay relies on that twice: it stops for
 * good at the first block that does not fit, and a block of a later transaction
 * behind that place proves that a completed one was lost.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "entry.h"
#include "broken.h"
#include "journal.h"
#include "ondisk.h"

/* Where replay is; a transaction counts once its end block fits. */
struct scan {
	u64 sequence;		/* expected */
	u64 transaction;	/* expected */
	u32 index;		/* expected, in the transaction */
	u32 crc;		/* over the crcs of this transaction's blocks so far */
	u64 good;		/* sequence behind the last complete transaction */
	bool stopped;
	bool lost;		/* a later transaction exists behind the stop */
};

u32 pc_journal_blocks_of(u32 n)
{
	return DIV_ROUND_UP(n, PC_JOURNAL_RECORDS);
}

u32 pc_journal_max_records(const struct pc_journal *j)
{
	return min(j->nr_blocks / 4, PC_META_BATCH) * PC_JOURNAL_RECORDS;
}

static u32 block_crc(const struct pc_journal_disk *d)
{
	size_t from = offsetofend(struct pc_journal_disk, crc);

	return crc32c(PC_CRC_SEED, (const u8 *)d + from, sizeof(*d) - from);
}

static u32 ring_index(const struct pc_journal *j, u64 sequence)
{
	u32 index;

	div_u64_rem(sequence, j->nr_blocks, &index);
	return index;
}

/* Blocks from sequence on that lie side by side, at most n. */
static u32 ring_run(const struct pc_journal *j, u64 sequence, u64 n)
{
	n = min_t(u64, n, j->nr_blocks - ring_index(j, sequence));
	return min_t(u64, n, PC_META_BATCH);
}

static struct pc_journal_disk *buffer_block(const struct pc_journal *j, u32 n)
{
	return (struct pc_journal_disk *)(j->buf + (size_t)n * PC_META_BLOCK_SIZE);
}

static int write_blocks(struct pc_journal *j, u64 sequence, u32 first, u32 n, unsigned int flags)
{
	while (n) {
		u32 run = ring_run(j, sequence, n);
		int err = j->io->ops->write(j->io, j->start + ring_index(j, sequence), run,
					    buffer_block(j, first), flags);

		if (err)
			return err;
		sequence += run;
		first += run;
		n -= run;
	}
	return 0;
}

static void encode_block(const struct pc_journal *j, u32 index, bool end, u32 transaction_crc,
			 const struct pc_record *records, u32 n)
{
	struct pc_journal_disk *d = buffer_block(j, index);
	u32 i;

	memset(d, 0, sizeof(*d));
	d->magic = cpu_to_le32(PC_JOURNAL_MAGIC);
	d->uuid_part = cpu_to_le32(j->uuid_part);
	d->flags = cpu_to_le32(end ? PC_JOURNAL_END : 0);
	d->sequence = cpu_to_le64(j->head + index);
	d->transaction = cpu_to_le64(j->transaction);
	d->nr_records = cpu_to_le32(n);
	d->index = cpu_to_le32(index);
	d->transaction_crc = cpu_to_le32(end ? transaction_crc : 0);
	for (i = 0; i < n; i++) {
		d->records[i].cblock = cpu_to_le32(records[i].cblock);
		/* of what is not mapped nothing is kept: the block is zero already */
		if (!(records[i].entry.flags & PC_ENTRY_MAPPED))
			continue;
		pc_entry_encode(&d->records[i].entry, &records[i].entry);
		d->records[i].entry.hint = 0;
	}
	d->crc = cpu_to_le32(block_crc(d));
}

int pc_journal_append(struct pc_journal *j, const struct pc_record *records, u32 n)
{
	u32 nr = pc_journal_blocks_of(n);
	u32 end_flags = PC_BREAK_SERIAL ? 0 : PC_META_PREFLUSH | PC_META_FUA;
	u32 crc = PC_CRC_SEED;
	u32 i;
	int err;

	for (i = 0; i < nr; i++) {
		u32 count = min(n - i * PC_JOURNAL_RECORDS, (u32)PC_JOURNAL_RECORDS);

		encode_block(j, i, i == nr - 1, crc, records + i * PC_JOURNAL_RECORDS, count);
		crc = crc32c(crc, &buffer_block(j, i)->crc, sizeof(__le32));
	}
	err = write_blocks(j, j->head, 0, nr - 1, 0);
	if (!err)
		err = write_blocks(j, j->head + nr - 1, nr - 1, 1, end_flags);
	if (err)
		return err;
	j->head += nr;
	j->transaction++;
	return 0;
}

/* A block that this journal has written at some time, whole. */
static bool is_block(const struct pc_journal *j, const struct pc_journal_disk *d)
{
	return le32_to_cpu(d->magic) == PC_JOURNAL_MAGIC &&
	       le32_to_cpu(d->uuid_part) == j->uuid_part &&
	       le32_to_cpu(d->crc) == block_crc(d);
}

static bool fits(const struct scan *s, const struct pc_journal_disk *d)
{
	u32 flags = le32_to_cpu(d->flags);
	u32 n = le32_to_cpu(d->nr_records);

	return le64_to_cpu(d->sequence) == s->sequence &&
	       le64_to_cpu(d->transaction) == s->transaction &&
	       le32_to_cpu(d->index) == s->index && n >= 1 && n <= PC_JOURNAL_RECORDS &&
	       !(flags & ~PC_JOURNAL_END) &&
	       (!(flags & PC_JOURNAL_END) || le32_to_cpu(d->transaction_crc) == s->crc);
}

static void scan_block(const struct pc_journal *j, struct scan *s,
		       const struct pc_journal_disk *d)
{
	bool whole = is_block(j, d);

	if (!s->stopped && whole && fits(s, d)) {
		s->sequence++;
		s->index++;
		s->crc = crc32c(s->crc, &d->crc, sizeof(__le32));
		if (le32_to_cpu(d->flags) & PC_JOURNAL_END) {
			s->good = s->sequence;
			s->transaction++;
			s->index = 0;
			s->crc = PC_CRC_SEED;
		}
		return;
	}
	s->stopped = true;
	/* blocks of an earlier lap or life have lower sequences */
	if (whole && le64_to_cpu(d->sequence) >= j->tail &&
	    le64_to_cpu(d->sequence) - j->tail < j->nr_blocks &&
	    le64_to_cpu(d->transaction) > s->transaction)
		s->lost = true;
}

static int give_records(const struct pc_journal_disk *d, pc_journal_fn fn, void *context)
{
	u32 n = min_t(u32, le32_to_cpu(d->nr_records), PC_JOURNAL_RECORDS);
	u32 i;

	for (i = 0; i < n; i++) {
		struct pc_record r = { .cblock = le32_to_cpu(d->records[i].cblock) };
		int err;

		pc_entry_decode(&r.entry, &d->records[i].entry);
		err = fn(context, le64_to_cpu(d->transaction), &r);
		if (err)
			return err;
	}
	return 0;
}

/* Reads n blocks from sequence on; each goes to the scan, or its records to fn. */
static int read_ring(struct pc_journal *j, u64 sequence, u64 n, struct scan *s,
		     pc_journal_fn fn, void *context)
{
	while (n) {
		u32 run = ring_run(j, sequence, n);
		int err = j->io->ops->read(j->io, j->start + ring_index(j, sequence), run, j->buf);
		u32 i;

		for (i = 0; i < run && !err; i++) {
			if (s)
				scan_block(j, s, buffer_block(j, i));
			else
				err = give_records(buffer_block(j, i), fn, context);
		}
		if (err)
			return err;
		sequence += run;
		n -= run;
		cond_resched();
	}
	return 0;
}

int pc_journal_replay(struct pc_journal *j, pc_journal_fn fn, void *context,
		      char why[PC_META_ERR_SIZE])
{
	struct scan s = {
		.sequence = j->tail,
		.transaction = j->transaction,
		.crc = PC_CRC_SEED,
		.good = j->tail,
	};
	int err;

	err = read_ring(j, j->tail, j->nr_blocks, &s, NULL, NULL);
	if (!err && s.lost) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "journal is damaged: transaction %llu was completed and can not be read",
			  s.transaction);
		return -EUCLEAN;
	}
	if (!err)
		err = read_ring(j, j->tail, s.good - j->tail, NULL, fn, context);
	if (err)
		return err;
	j->head = s.good;
	j->transaction = s.transaction;
	return 0;
}

int pc_journal_format(struct pc_journal *j)
{
	u32 at, run;
	int err;

	memset(j->buf, 0, (size_t)PC_META_BATCH * PC_META_BLOCK_SIZE);
	for (at = 0; at < j->nr_blocks; at += run) {
		run = min(j->nr_blocks - at, PC_META_BATCH);
		err = j->io->ops->write(j->io, j->start + at, run, j->buf, 0);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}
