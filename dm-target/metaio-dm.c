// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Synchronous metadata I/O (metaio.h) on a block device.
 *
 * Callers' buffers may come from vmalloc, so data goes through bounce pages of this
 * file, got at creation: no I/O allocates memory. One thread at a time, as metaio.h
 * says; the on-stack bios carry up to 256 KiB.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "compat.h"
#include "metaio-dm.h"

#define NR_PAGES 64u
#define BLOCKS_PER_PAGE (PAGE_SIZE / PC_META_BLOCK_SIZE)
#define MAX_BLOCKS (NR_PAGES * BLOCKS_PER_PAGE)

struct metaio_dm {
	struct pc_metaio io;
	struct block_device *bdev;
	struct page *pages[NR_PAGES];
	struct bio_vec vecs[NR_PAGES];
};

static void copy(struct metaio_dm *m, u32 blocks, void *data, bool to_data)
{
	size_t left = (size_t)blocks * PC_META_BLOCK_SIZE;
	unsigned int i;

	for (i = 0; left; i++) {
		size_t n = min_t(size_t, left, PAGE_SIZE);

		if (to_data)
			memcpy(data, page_address(m->pages[i]), n);
		else
			memcpy(page_address(m->pages[i]), data, n);
		data += n;
		left -= n;
	}
}

static int transfer(struct metaio_dm *m, blk_opf_t opf, u64 block, u32 blocks)
{
	size_t left = (size_t)blocks * PC_META_BLOCK_SIZE;
	struct bio bio;
	unsigned int i;
	int err;

	bio_init(&bio, m->bdev, m->vecs, NR_PAGES, opf | REQ_SYNC | REQ_META);
	bio.bi_iter.bi_sector = block * PC_META_BLOCK_SECTORS;
	for (i = 0; left; i++) {
		size_t n = min_t(size_t, left, PAGE_SIZE);

		__bio_add_page(&bio, m->pages[i], n, 0);
		left -= n;
	}
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return err;
}

static bool is_inside(struct pc_metaio *io, u64 block, u32 count)
{
	return block <= io->nr_blocks && count <= io->nr_blocks - block;
}

static int metaio_read(struct pc_metaio *io, u64 block, u32 count, void *data)
{
	struct metaio_dm *m = container_of(io, struct metaio_dm, io);

	if (!is_inside(io, block, count))
		return -EIO;
	while (count) {
		u32 n = min_t(u32, count, MAX_BLOCKS);
		int err = transfer(m, REQ_OP_READ, block, n);

		if (err)
			return err;
		copy(m, n, data, true);
		data += (size_t)n * PC_META_BLOCK_SIZE;
		block += n;
		count -= n;
	}
	return 0;
}

static int metaio_write(struct pc_metaio *io, u64 block, u32 count, const void *data,
			unsigned int flags)
{
	struct metaio_dm *m = container_of(io, struct metaio_dm, io);
	blk_opf_t opf = REQ_OP_WRITE;

	if (!is_inside(io, block, count))
		return -EIO;
	if (flags & PC_META_PREFLUSH)
		opf |= REQ_PREFLUSH;
	if (flags & PC_META_FUA)
		opf |= REQ_FUA;
	while (count) {
		u32 n = min_t(u32, count, MAX_BLOCKS);
		int err;

		copy(m, n, (void *)data, false);
		err = transfer(m, opf, block, n);
		if (err)
			return err;
		opf &= ~REQ_PREFLUSH;
		data += (size_t)n * PC_META_BLOCK_SIZE;
		block += n;
		count -= n;
	}
	return 0;
}

static int metaio_flush(struct pc_metaio *io)
{
	struct metaio_dm *m = container_of(io, struct metaio_dm, io);
	struct bio bio;
	int err;

	bio_init(&bio, m->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | REQ_SYNC);
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return err;
}

static const struct pc_metaio_ops metaio_dm_ops = {
	.read = metaio_read,
	.write = metaio_write,
	.flush = metaio_flush,
};

struct pc_metaio *pc_metaio_create(struct block_device *bdev)
{
	struct metaio_dm *m = kzalloc(sizeof(*m), GFP_KERNEL);
	unsigned int i;

	if (!m)
		return NULL;
	m->io.ops = &metaio_dm_ops;
	m->io.nr_blocks = bdev_nr_sectors(bdev) / PC_META_BLOCK_SECTORS;
	m->bdev = bdev;
	for (i = 0; i < NR_PAGES; i++) {
		m->pages[i] = alloc_page(GFP_KERNEL);
		if (!m->pages[i]) {
			pc_metaio_destroy(&m->io);
			return NULL;
		}
	}
	return &m->io;
}

void pc_metaio_destroy(struct pc_metaio *io)
{
	struct metaio_dm *m;
	unsigned int i;

	if (!io)
		return;
	m = container_of(io, struct metaio_dm, io);
	for (i = 0; i < NR_PAGES && m->pages[i]; i++)
		__free_page(m->pages[i]);
	kfree(m);
}
