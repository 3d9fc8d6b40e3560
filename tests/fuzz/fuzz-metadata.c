// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzing the metadata with whole device images. The input is a small image whose
 * checksums are made good first, unless it asks otherwise, so that the fuzzer gets
 * to the checks behind them. Whatever it is, a start must end, with or without
 * success; and what a start accepts must be sound, survive commits and a crash, and
 * be found the same again.
 *
 * Input: a byte of flags, then edits of a device that was in use: place (2 bytes),
 * length (1 byte), the bytes.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "metadata.h"
#include "metaio-file.h"
#include "ondisk.h"

#define RAW	0x01	/* leave checksums as they are */
#define UNCLEAN	0x02	/* start from a device that crashed, with a journal */

enum { BLOCKS = 2 + 8 + 3, NR = 250, BLOCK = 64, SUB = 8, ORIGIN = BLOCK * 500 + 20 };

struct seen {
	struct pc_entry entries[NR];
	u32 next;
	u32 nr;			/* of a start that is expected to be the same: how many */
};

static const struct pc_metadata_params params = {
	.block_sectors = BLOCK,
	.subblock_sectors = SUB,
	.nr_cblocks = NR,
	.origin_sectors = ORIGIN,
	.uuid = "0123456789abcde",
};

static u64 covered(u64 oblock)
{
	u64 sectors = ORIGIN - oblock * BLOCK;

	if (sectors > BLOCK)
		sectors = BLOCK;
	return sectors / SUB ? ~0ull >> (64 - sectors / SUB) : 0;
}

static int see(void *context, u32 cblock, const struct pc_entry *e)
{
	struct seen *s = context;

	BUG_ON(cblock >= NR || cblock < s->next);
	BUG_ON(e->flags != PC_ENTRY_MAPPED);
	BUG_ON(e->oblock * BLOCK >= ORIGIN);
	BUG_ON(e->valid & ~covered(e->oblock));
	BUG_ON(e->dirty & ~e->valid);
	s->entries[cblock] = *e;
	s->next = cblock + 1;
	s->nr++;
	return 0;
}

static void check_twice(const struct seen *s)
{
	for (u32 a = 0; a < NR; a++)
		for (u32 b = a + 1; b < NR; b++)
			BUG_ON(s->entries[a].flags && s->entries[b].flags &&
			       s->entries[a].oblock == s->entries[b].oblock);
}

static struct pc_metadata *start(struct pc_metaio_file *f, struct seen *s)
{
	char why[PC_META_ERR_SIZE];
	struct pc_metadata *md;
	int err;

	memset(s, 0, sizeof(*s));
	md = pc_metadata_open(&f->io, &params, &err, why);
	if (!md) {
		BUG_ON(!err || !why[0]);
		return NULL;
	}
	err = pc_metadata_load(md, see, s, why);
	if (!err)
		return md;
	BUG_ON(!why[0]);
	BUG_ON(err == -EUCLEAN && !pc_metadata_needs_check(md));
	if (getenv("PC_FUZZ_WHY"))
		fprintf(stderr, "start refused: error %d: %s\n", err, why);
	pc_metadata_free(md);
	return NULL;
}

/* A device with some mappings; crashed or closed. */
static void make_base(u8 *image, bool crashed)
{
	static const u64 counters[PC_NR_COUNTERS];
	struct pc_record records[150];
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct seen s;

	BUG_ON(pc_metaio_open_memory(&f, BLOCKS, NULL));
	md = start(&f, &s);
	BUG_ON(!md);
	for (u32 i = 0; i < ARRAY_SIZE(records); i++) {
		records[i] = (struct pc_record){
			i * 5 % NR, { .oblock = i, .flags = PC_ENTRY_MAPPED },
		};
		records[i].entry.valid = covered(i) & (i * 0x35 | 1);
		records[i].entry.dirty = records[i].entry.valid & i;
		if (i % 7 == 0 && crashed)
			records[i].entry.flags |= i & 1 ? PC_ENTRY_INTENT_CACHE
							: PC_ENTRY_INTENT_ORIGIN;
	}
	/* i * 5 % NR repeats after 50: later records replace earlier ones */
	BUG_ON(pc_metadata_commit(md, records, 50));
	BUG_ON(crashed && pc_metadata_checkpoint(md));
	BUG_ON(pc_metadata_commit(md, records + 50, 100));
	if (!crashed)
		BUG_ON(pc_metadata_close_clean(md, "fuzz", 1, NULL, NULL, counters));
	pc_metadata_free(md);
	memcpy(image, f.image, BLOCKS * PC_META_BLOCK_SIZE);
	pc_metaio_close(&f);
}

static void seal(u8 *p, size_t at, size_t bytes)
{
	__le32 crc = cpu_to_le32(crc32c(PC_CRC_SEED, p + at + 4, bytes - at - 4));

	memcpy(p + at, &crc, sizeof(crc));
}

/* Good checksums everywhere; also over transactions, for blocks that name an end. */
static void seal_image(u8 *image)
{
	u32 crc = PC_CRC_SEED;

	for (u32 b = 0; b < 2; b++)
		seal(image + b * PC_META_BLOCK_SIZE, 8, PC_META_BLOCK_SIZE);
	for (u32 b = 2; b < 10; b++) {
		struct pc_journal_disk *d = (void *)(image + b * PC_META_BLOCK_SIZE);

		if (!d->index)
			crc = PC_CRC_SEED;
		if (le32_to_cpu(d->flags) & PC_JOURNAL_END)
			d->transaction_crc = cpu_to_le32(crc);
		seal((u8 *)d, 0, sizeof(*d));
		crc = crc32c(crc, &d->crc, 4);
	}
	for (u32 s = 0; s < 3 * PC_TABLE_SECTORS; s++)
		seal(image + 10 * PC_META_BLOCK_SIZE + s * PC_TABLE_SECTOR_SIZE, 0,
		     PC_TABLE_SECTOR_SIZE);
}

/* True if the journal was touched. */
static bool edit(u8 *image, const u8 *data, size_t size)
{
	bool touched = false;

	while (size > 3) {
		size_t at = (data[0] | data[1] << 8) % (BLOCKS * PC_META_BLOCK_SIZE);
		size_t n = min_t(size_t, min_t(size_t, data[2], size - 3),
				 BLOCKS * PC_META_BLOCK_SIZE - at);

		memcpy(image + at, data + 3, n);
		touched |= n && at < 10 * PC_META_BLOCK_SIZE && at + n > 2 * PC_META_BLOCK_SIZE;
		data += 3 + n;
		size -= 3 + n;
	}
	return touched;
}

/*
 * Commits with what was found, and a crash: found again, and sound. A forged journal
 * may hold blocks of the future, and be refused when these come true.
 */
static void live_on(struct pc_metaio_file *f, struct pc_metadata *md, struct seen *s, bool forged)
{
	struct seen again;
	struct pc_record r;
	u32 c;

	for (c = 0; c < NR; c += 9) {
		if (!s->entries[c].flags)
			continue;
		r.cblock = c;
		r.entry = s->entries[c];
		if (c & 1) {
			r.entry.dirty = r.entry.valid;
			s->entries[c].dirty = r.entry.dirty;
		} else {
			r.entry.flags = 0;
			memset(&s->entries[c], 0, sizeof(s->entries[c]));
			s->nr--;
		}
		BUG_ON(pc_metadata_commit(md, &r, 1));
	}
	pc_metadata_free(md);
	md = start(f, &again);
	BUG_ON(!md && !forged);
	if (!md)
		return;
	BUG_ON(again.nr != s->nr);
	for (c = 0; c < NR; c++)
		BUG_ON(again.entries[c].flags != s->entries[c].flags ||
		       again.entries[c].oblock != s->entries[c].oblock ||
		       again.entries[c].valid != s->entries[c].valid ||
		       again.entries[c].dirty != s->entries[c].dirty);
	pc_metadata_free(md);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 base[2][BLOCKS * PC_META_BLOCK_SIZE];
	struct pc_metaio_file f;
	struct pc_metadata *md;
	enum pc_probe what;
	struct seen s;
	bool forged;
	u8 flags;

	if (!base[0][0]) {
		make_base(base[0], false);
		make_base(base[1], true);
	}
	if (size < 1)
		return 0;
	flags = data[0];
	BUG_ON(pc_metaio_open_memory(&f, BLOCKS, base[!!(flags & UNCLEAN)]));
	forged = edit(f.image, data + 1, size - 1);
	if (!(flags & RAW))
		seal_image(f.image);
	BUG_ON(pc_metadata_probe(&f.io, &what));
	md = start(&f, &s);
	if (md) {
		check_twice(&s);
		live_on(&f, md, &s, forged);
	}
	pc_metaio_close(&f);
	return 0;
}
