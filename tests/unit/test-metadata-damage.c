// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metadata on devices that are damaged, foreign, too small or failing: what is
 * refused, by which words, what is served all the same, and what is left untouched.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/slab.h>
#include <asm/byteorder.h>

#include "metadata-model.h"
#include "ondisk.h"

enum { NR = 300, BLOCK = 128, BLOCKS = 2 + 12 + 3 + 31 };	/* a journal of 12 */

struct fixture {
	struct unit_random r;
	struct model m;
	struct pc_metaio_file f;
};

/* A device with a life behind it: clean, or as a crash left it (journal not empty). */
static void make(struct fixture *x, const char *salt, bool clean)
{
	struct pc_metadata *md;

	unit_random_init(&x->r, salt, 0);
	model_init(&x->m, NR, BLOCK, 8, BLOCK * 1000 + 50);
	assert_int_equal(pc_metaio_open_memory(&x->f, BLOCKS, NULL), 0);
	md = model_open(&x->m, &x->f);
	model_load(&x->m, md, false);
	assert_int_equal(model_commit(&x->m, &x->r, md, 500), 0);
	assert_int_equal(pc_metadata_checkpoint(md), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(model_commit(&x->m, &x->r, md, 20), 0);
	if (clean)
		model_close(&x->m, md);
	pc_metadata_free(md);
	model_settle(&x->m);
}

static void done(struct fixture *x)
{
	pc_metaio_close(&x->f);
	model_free(&x->m);
}

static struct pc_super_disk *super(struct fixture *x, int copy)
{
	return (struct pc_super_disk *)(x->f.image + copy * PC_META_BLOCK_SIZE);
}

static void seal_super(struct pc_super_disk *d)
{
	d->crc = cpu_to_le32(crc32c(PC_CRC_SEED, (u8 *)d + 12, sizeof(*d) - 12));
}

static struct pc_sector_disk *sector(struct fixture *x, u32 n)
{
	u64 start = le64_to_cpu(super(x, 0)->table_start);

	return (struct pc_sector_disk *)(x->f.image + start * PC_META_BLOCK_SIZE) + n;
}

static void seal_sector(struct pc_sector_disk *d)
{
	d->crc = cpu_to_le32(crc32c(PC_CRC_SEED, (u8 *)d + 4, sizeof(*d) - 4));
}

static void expect_open_error(struct fixture *x, int want, const char *text)
{
	struct pc_metaio_file before;
	char why[PC_META_ERR_SIZE];
	int err = 0;

	pc_metaio_open_memory(&before, x->f.io.nr_blocks, x->f.image);
	assert_null(pc_metadata_open(&x->f.io, &x->m.params, &err, why));
	assert_int_equal(err, want);
	if (!strstr(why, text))
		fail_msg("\"%s\" lacks \"%s\"", why, text);
	assert_memory_equal(before.image, x->f.image, x->f.io.nr_blocks * PC_META_BLOCK_SIZE);
	pc_metaio_close(&before);
}

/* The start is refused, marks needs_check, and touches nothing else. */
static void expect_damage(struct fixture *x, const char *text)
{
	struct pc_entry *entries = calloc(x->m.nr, sizeof(*entries));
	struct pc_metaio_file before;
	char why[PC_META_ERR_SIZE];
	struct pc_metadata *md;

	pc_metaio_open_memory(&before, BLOCKS, x->f.image);
	md = model_open(&x->m, &x->f);
	assert_int_equal(model_load_raw(md, entries, x->m.nr, why), -EUCLEAN);
	if (!strstr(why, text))
		fail_msg("\"%s\" lacks \"%s\"", why, text);
	assert_true(pc_metadata_needs_check(md));
	assert_int_equal(model_commit(&x->m, &x->r, md, 1), -EROFS);
	pc_metadata_free(md);
	md = model_open(&x->m, &x->f);
	assert_true(pc_metadata_needs_check(md));
	pc_metadata_free(md);
	assert_memory_equal(before.image + 2 * PC_META_BLOCK_SIZE,
			    x->f.image + 2 * PC_META_BLOCK_SIZE,
			    (BLOCKS - 2) * PC_META_BLOCK_SIZE);
	pc_metaio_close(&before);
	free(entries);
}

static void test_damage_superblock_copies(void **state)
{
	for (int i = 0; i < 60; i++) {
		struct fixture x;
		struct pc_metadata *md;
		enum pc_probe what;
		int copy = i % 2;
		u64 at;

		make(&x, "copies", i % 3);
		at = (u64)copy * 4096 + unit_random_below(&x.r, i < 50 ? 192 : 4096);
		if (i % 5 == 4)
			memset(x.f.image + copy * 4096, 0x5a, 4096);
		else
			x.f.image[at] ^= 1 << i % 8;
		assert_int_equal(pc_metadata_probe(&x.f.io, &what), 0);
		assert_int_equal(what, PC_PROBE_OURS);
		md = model_open(&x.m, &x.f);
		model_load(&x.m, md, false);
		pc_metadata_free(md);
		/* mended by the first update */
		assert_memory_equal(super(&x, 0), super(&x, 1), 4096);
		model_check_device(&x.m, &x.f, false);
		done(&x);
	}
}

static void test_damage_superblock_unreadable(void **state)
{
	struct fixture x;
	enum pc_probe what;

	make(&x, "unreadable", true);
	x.f.fail_read = 1;
	expect_open_error(&x, -EIO, "reading the superblock failed: error -5");
	assert_int_equal(pc_metadata_probe(&x.f.io, &what), -EIO);
	done(&x);
}

static void test_damage_foreign_contents(void **state)
{
	struct fixture x;
	enum pc_probe what;
	__le64 magic = cpu_to_le64(06142003);

	make(&x, "foreign", true);
	/* both copies gone */
	memset(x.f.image, 0x11, 2 * 4096);
	expect_open_error(&x, -EINVAL, "unknown contents");
	assert_int_equal(pc_metadata_probe(&x.f.io, &what), 0);
	assert_int_equal(what, PC_PROBE_UNKNOWN);
	/* dm-cache's: whatever lies in block 1 */
	memcpy(x.f.image + 4096, x.f.image + 2 * 4096, 4096);
	memcpy(x.f.image + 32, &magic, 8);
	expect_open_error(&x, -EINVAL, "dm-cache superblock");
	assert_int_equal(pc_metadata_probe(&x.f.io, &what), 0);
	assert_int_equal(what, PC_PROBE_DM_CACHE);
	done(&x);
	/* the same with a valid copy B: still refused */
	make(&x, "foreign", true);
	memset(x.f.image, 0, 4096);
	memcpy(x.f.image + 32, &magic, 8);
	expect_open_error(&x, -EINVAL, "dm-cache superblock");
	done(&x);
	/* block 0 zeroed: blank, whatever block 1 holds */
	make(&x, "foreign", true);
	memset(x.f.image, 0, 4096);
	assert_int_equal(pc_metadata_probe(&x.f.io, &what), 0);
	assert_int_equal(what, PC_PROBE_BLANK);
	x.m.params.uuid[0] ^= 0xff;
	memset(x.m.entries, 0, NR * sizeof(*x.m.entries));
	model_check_device(&x.m, &x.f, false);
	done(&x);
}

static void test_damage_two_uuids(void **state)
{
	struct fixture x;

	make(&x, "uuids", true);
	/* a newer copy B of another uuid does not count */
	super(&x, 1)->uuid[3] ^= 1;
	super(&x, 1)->sequence = cpu_to_le64(1000000);
	super(&x, 1)->nr_cblocks = cpu_to_le32(1);
	super(&x, 1)->table_blocks = cpu_to_le32(1);
	seal_super(super(&x, 1));
	model_check_device(&x.m, &x.f, true);
	done(&x);
	/* alone it would count, but the table is not its own */
	make(&x, "uuids", true);
	super(&x, 1)->uuid[3] ^= 1;
	seal_super(super(&x, 1));
	memset(super(&x, 0), 1, 100);
	/* the fixture reads the place of the table from copy A */
	memcpy(super(&x, 0), super(&x, 1), 4096);
	super(&x, 0)->crc = 0;
	expect_damage(&x, "belongs to other metadata");
	done(&x);
}

static void test_damage_mismatch(void **state)
{
	static const struct {
		size_t offset;
		u32 value;
		int err;
		const char *text;
	} wrong[] = {
		{ offsetof(struct pc_super_disk, version), 2, -EINVAL, "of version 2" },
		{ offsetof(struct pc_super_disk, incompat), 4, -EINVAL, "incompat 0x4" },
		{ offsetof(struct pc_super_disk, ro_compat), 1, -EINVAL, "ro_compat 0x1" },
		{ offsetof(struct pc_super_disk, flags), 0x80, -EUCLEAN, "flags" },
		{ offsetof(struct pc_super_disk, block_sectors), 0, -EUCLEAN, "block size" },
		{ offsetof(struct pc_super_disk, subblock_sectors), 0, -EUCLEAN, "block size" },
		{ offsetof(struct pc_super_disk, subblock_sectors), 1, -EUCLEAN, "block size" },
		{ offsetof(struct pc_super_disk, nr_cblocks), 0, -EUCLEAN, "cache size" },
		{ offsetof(struct pc_super_disk, nr_cblocks), 10000, -EUCLEAN, "cache size" },
		{ offsetof(struct pc_super_disk, nr_cblocks), ~0u, -EUCLEAN, "cache size" },
		{ offsetof(struct pc_super_disk, journal_blocks), 0, -EUCLEAN, "journal" },
		{ offsetof(struct pc_super_disk, journal_blocks), 9000, -EUCLEAN, "journal" },
		{ offsetof(struct pc_super_disk, journal_start), 1, -EUCLEAN, "journal" },
		{ offsetof(struct pc_super_disk, journal_max_records), 0, -EUCLEAN, "max_records" },
		{ offsetof(struct pc_super_disk, table_start), 3, -EUCLEAN, "table" },
		{ offsetof(struct pc_super_disk, table_start), 4000, -ENOSPC, "says 4003" },
		{ offsetof(struct pc_super_disk, tail_transaction), 0, -EUCLEAN, "sequence" },
	};
	struct fixture x;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		__le32 value = cpu_to_le32(wrong[i].value);

		make(&x, "mismatch", true);
		memcpy((u8 *)super(&x, 0) + wrong[i].offset, &value, 4);
		seal_super(super(&x, 0));
		expect_open_error(&x, wrong[i].err, wrong[i].text);
		done(&x);
	}

	make(&x, "mismatch", true);
	/* compat features: ignored, and kept */
	super(&x, 0)->compat = cpu_to_le32(0x40);
	super(&x, 0)->sequence = cpu_to_le64(1000);
	seal_super(super(&x, 0));
	model_check_device(&x.m, &x.f, true);
	assert_int_equal(le32_to_cpu(super(&x, 1)->compat), 0x40);

	x.m.params.block_sectors = 256;
	expect_open_error(&x, -EINVAL, "block size of 128 sectors, not 256");
	x.m.params.block_sectors = 128;
	x.m.params.subblock_sectors = 16;
	expect_open_error(&x, -EINVAL, "sub-blocks of 8 sectors, not 16");
	x.m.params.subblock_sectors = 8;
	x.m.params.nr_cblocks = 120 * 34 + 1;
	expect_open_error(&x, -ENOSPC, "has 48 blocks of 4096 bytes, "
			  "growing the cache to 4081 blocks needs 49");
	done(&x);
}

static void test_damage_impossible_params(void **state)
{
	struct fixture x;

	make(&x, "params", true);
	memset(x.f.image, 0, 4096);
	x.m.params.nr_cblocks = 120 * 60;
	expect_open_error(&x, -ENOSPC, "has 48 blocks of 4096 bytes, "
			  "a cache of 7200 blocks needs 70");
	x.m.params.nr_cblocks = 0;
	expect_open_error(&x, -EINVAL, "cache size of 0 blocks");
	x.m.params.nr_cblocks = 10;
	x.m.params.subblock_sectors = 1;
	expect_open_error(&x, -EINVAL, "block size of 128 sectors in sub-blocks of 1");
	x.m.params.subblock_sectors = 8;
	x.m.params.origin_sectors = ~0ull;
	x.m.params.block_sectors = 64;
	expect_open_error(&x, -EINVAL, "origin of 18446744073709551615 sectors");
	x.f.io.nr_blocks = 1;
	x.m.params.origin_sectors = 64;
	expect_open_error(&x, -ENOSPC, "smaller than 8192 bytes");
	x.f.io.nr_blocks = BLOCKS;
	done(&x);
}

static void test_damage_table_sector(void **state)
{
	for (int i = 0; i < 40; i++) {
		struct fixture x;
		u32 n;

		make(&x, "sector", i % 2);
		n = unit_random_below(&x.r, 24);
		((u8 *)sector(&x, n))[unit_random_below(&x.r, 512)] ^= 1 << i % 8;
		expect_damage(&x, "bad checksum");
		done(&x);
	}
}

static void test_damage_sector_misplaced(void **state)
{
	struct fixture x;

	make(&x, "misplaced", true);
	memcpy(sector(&x, 5), sector(&x, 6), 512);
	expect_damage(&x, "table sector 5 (cache blocks from 75) lies in the wrong place");
	done(&x);
	make(&x, "misplaced", true);
	sector(&x, 7)->transaction = cpu_to_le64(1000000);
	seal_sector(sector(&x, 7));
	expect_damage(&x, "reflects a transaction that the journal has lost");
	done(&x);
}

/* One entry that no sound writer leaves, in a sector that is whole. */
static void bad_entry(u64 oblock, u64 flags, u64 valid, u64 dirty, u32 cblock, const char *text)
{
	struct fixture x;
	struct pc_entry_disk *e;

	make(&x, "entry", true);
	e = &sector(&x, cblock / 15)->entries[cblock % 15];
	e->oblock_flags = cpu_to_le64(oblock << 16 | flags);
	e->valid = cpu_to_le64(valid);
	e->dirty = cpu_to_le64(dirty);
	seal_sector(sector(&x, cblock / 15));
	expect_damage(&x, text);
	done(&x);
}

static void test_damage_entries(void **state)
{
	bad_entry(7, 7, 1, 0, 0, "cache block 0 has both intents");
	bad_entry(7, 0x11, 1, 0, 20, "cache block 20 has unknown flags 0x11");
	bad_entry(7, 1, 1, 3, 299, "cache block 299 has dirty sub-blocks that are not valid");
	bad_entry(1001, 1, 1, 0, 3, "cache block 3 maps origin block 1001, beyond the end");
	bad_entry(1000, 1, 1 << 6, 0, 3, "cache block 3 has valid sub-blocks beyond its end");
	bad_entry(5, 1, 1 << 16, 0, 3, "cache block 3 has valid sub-blocks beyond its end");
	bad_entry(5, 0, 0, 0, 3, "cache block 3 is not mapped but not empty");
	bad_entry(0, 0, 1, 0, 3, "cache block 3 is not mapped but not empty");
	bad_entry(0, 2, 0, 0, 3, "cache block 3 is not mapped but not empty");
	bad_entry(5, 1, 1, 0, 300, "cache block 300 of 300 is mapped");
}

static void test_damage_mapped_twice(void **state)
{
	struct fixture x;
	u32 a, b;

	make(&x, "twice", true);
	for (a = 0; !(x.m.entries[a].flags & PC_ENTRY_MAPPED); a++)
		;
	for (b = NR - 1; !(x.m.entries[b].flags & PC_ENTRY_MAPPED); b--)
		;
	sector(&x, b / 15)->entries[b % 15] = sector(&x, a / 15)->entries[a % 15];
	seal_sector(sector(&x, b / 15));
	expect_damage(&x, "is mapped twice");
	done(&x);
}

/* The n-th journal block behind the tail. */
static struct pc_journal_disk *journal(struct fixture *x, u32 n)
{
	const struct pc_super_disk *d = super(x, 0);
	u64 sequence = le64_to_cpu(d->tail_sequence) + n;

	return (struct pc_journal_disk *)(x->f.image + 2 * 4096) +
	       sequence % le32_to_cpu(d->journal_blocks);
}

static void test_damage_journal(void **state)
{
	struct fixture x;

	/* any but the last transaction: its loss is seen by those behind it */
	for (int i = 0; i < 3; i++) {
		make(&x, "journal", false);
		((u8 *)journal(&x, i))[100] ^= 1;
		expect_damage(&x, "journal is damaged: transaction");
		done(&x);
	}
	/* a record that no sound writer leaves */
	make(&x, "journal", false);
	journal(&x, 1)->records[0].cblock = cpu_to_le32(NR);
	journal(&x, 1)->crc = cpu_to_le32(crc32c(PC_CRC_SEED, (u8 *)journal(&x, 1) + 4, 4092));
	expect_damage(&x, "journal names cache block 300 of 300");
	done(&x);
}

static void test_damage_journal_end_is_ignored(void **state)
{
	struct fixture x;
	struct pc_metadata *md;
	struct model before;
	struct pc_record r;

	make(&x, "end", false);
	md = model_open(&x.m, &x.f);
	model_load(&x.m, md, false);
	model_copy(&before, &x.m);
	model_change(&x.m, &x.r, &r);
	assert_int_equal(pc_metadata_commit(md, &r, 1), 0);
	pc_metadata_free(md);
	/* the last transaction can not be told from one that was cut off */
	((u8 *)journal(&x, 0))[4000] ^= 1;
	model_check_device(&before, &x.f, false);
	model_free(&before);
	done(&x);
}

static void test_damage_needs_check_is_cleared(void **state)
{
	struct fixture x;
	struct pc_metadata *md;

	make(&x, "cleared", true);
	md = model_open(&x.m, &x.f);
	model_load(&x.m, md, true);
	assert_int_equal(pc_metadata_set_needs_check(md), 0);
	assert_true(pc_metadata_needs_check(md));
	pc_metadata_free(md);
	md = model_open(&x.m, &x.f);
	assert_true(pc_metadata_needs_check(md));
	/* a start that passes has checked all there is */
	model_load(&x.m, md, true);
	assert_false(pc_metadata_needs_check(md));
	pc_metadata_free(md);
	done(&x);
}

/* Out of memory at each allocation of probe, open and load: refused, and no more. */
static void test_damage_no_memory(void **state)
{
	struct fixture x;
	struct pc_entry entries[NR];
	long n = 0;
	bool through = false;

	make(&x, "memory", false);
	while (!through) {
		char why[PC_META_ERR_SIZE];
		struct pc_metadata *md;
		enum pc_probe what;
		int err = 0;

		assert_true(++n < 50);
		pc_shim_alloc_countdown = n;
		err = pc_metadata_probe(&x.f.io, &what);
		md = err ? NULL : pc_metadata_open(&x.f.io, &x.m.params, &err, why);
		if (md)
			err = model_load_raw(md, entries, NR, why);
		through = pc_shim_alloc_countdown > 0;
		pc_shim_alloc_countdown = 0;
		assert_int_equal(err, through ? 0 : -ENOMEM);
		if (md && err) {
			/* the same object may try again */
			assert_false(pc_metadata_failed(md));
			model_load(&x.m, md, false);
			/* and leave the next turn something to do */
			assert_int_equal(model_commit(&x.m, &x.r, md, 10), 0);
			model_settle(&x.m);
		}
		pc_metadata_free(md);
	}
	assert_true(n > 5);
	done(&x);
}

struct life {
	struct model now, before;
	struct pc_metadata *md;
	int err;
};

/* Some of everything; stops at the first error. */
static void live(struct fixture *x, struct life *l)
{
	static const u64 counters[PC_NR_COUNTERS];
	struct pc_record records[NR];
	char why[PC_META_ERR_SIZE];

	l->md = pc_metadata_open(&x->f.io, &x->m.params, &l->err, why);
	if (!l->md)
		return;
	l->err = pc_metadata_load(l->md, NULL, NULL, why);
	for (int i = 0; i < 12 && !l->err; i++) {
		u32 n = 40;

		model_free(&l->before);
		model_copy(&l->before, &l->now);
		if (i == 11)
			n = model_clear_intents(&l->now, records);
		else
			for (u32 k = 0; k < n; k++)
				model_change(&l->now, &x->r, &records[k]);
		l->err = pc_metadata_commit(l->md, records, n);
	}
	if (!l->err)
		l->err = pc_metadata_close_clean(l->md, "x", 1, model_hint, &l->now, counters);
}

/*
 * A read, write or flush that fails, at each place in turn: the call says so, nothing
 * more is written, and the next start finds all that had been acknowledged.
 */
static void fail_at_each_place(const char *salt, bool is_read, bool is_flush, bool late)
{
	bool through = false;
	long n = 0;

	while (!through) {
		struct fixture x;
		struct life l = { 0 };
		struct pc_entry entries[NR];
		char why[PC_META_ERR_SIZE];
		struct pc_metadata *md;
		u64 writes;

		make(&x, salt, false);
		model_copy(&l.now, &x.m);
		model_copy(&l.before, &x.m);
		assert_true(++n < 200);
		*(is_read ? &x.f.fail_read : is_flush ? &x.f.fail_flush : &x.f.fail_write) = n;
		x.f.fail_late = late;
		live(&x, &l);
		through = !l.err;
		if (l.err && l.md) {
			assert_int_equal(l.err, -EIO);
			writes = x.f.nr_writes;
			if (pc_metadata_failed(l.md)) {
				struct pc_record r = { 0 };

				assert_int_equal(pc_metadata_commit(l.md, &r, 1), -EROFS);
				assert_int_equal(pc_metadata_checkpoint(l.md), -EROFS);
				assert_int_equal(pc_metadata_reopen(l.md), -EROFS);
				assert_int_equal(pc_metadata_set_empty(l.md), -EROFS);
				assert_false(pc_metadata_is_clean(l.md));
				assert_int_equal(x.f.nr_writes, writes);
			} else {
				assert_true(is_read);
			}
			pc_metadata_set_needs_check(l.md);
			assert_true(pc_metadata_needs_check(l.md));
		}
		pc_metadata_free(l.md);
		x.f.fail_read = 0;
		x.f.fail_write = 0;
		x.f.fail_flush = 0;
		model_settle(&l.now);
		model_settle(&l.before);
		md = model_open(&x.m, &x.f);
		assert_int_equal(model_load_raw(md, entries, NR, why), 0);
		assert_true(model_equal(&l.now, entries, NR) ||
			    model_equal(&l.before, entries, NR));
		pc_metadata_free(md);
		model_free(&l.now);
		model_free(&l.before);
		done(&x);
	}
	assert_true(n > 3);
}

static void test_damage_failing_device(void **state)
{
	fail_at_each_place("read", true, false, false);
	fail_at_each_place("write", false, false, false);
	fail_at_each_place("late write", false, false, true);
	fail_at_each_place("flush", false, true, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_superblock_copies),
		cmocka_unit_test(test_damage_superblock_unreadable),
		cmocka_unit_test(test_damage_foreign_contents),
		cmocka_unit_test(test_damage_two_uuids),
		cmocka_unit_test(test_damage_mismatch),
		cmocka_unit_test(test_damage_impossible_params),
		cmocka_unit_test(test_damage_table_sector),
		cmocka_unit_test(test_damage_sector_misplaced),
		cmocka_unit_test(test_damage_entries),
		cmocka_unit_test(test_damage_mapped_twice),
		cmocka_unit_test(test_damage_journal),
		cmocka_unit_test(test_damage_journal_end_is_ignored),
		cmocka_unit_test(test_damage_needs_check_is_cleared),
		cmocka_unit_test(test_damage_no_memory),
		cmocka_unit_test(test_damage_failing_device),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
