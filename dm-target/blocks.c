// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] The block table of blocks.h: hash index, free list and geometry.
 *
 * Owns no lock and knows nothing of bios or of the disk. A bucket belongs to
 * exactly one shard, because the shard is the low bits of the bucket number. The
 * index is a table of 32-bit links: 40 bytes a block and 4 of buckets.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "blocks.h"

int pc_blocks_init(struct pc_blocks *b, u32 nr, u32 block_sectors, u32 sub_sectors,
		   u64 origin_sectors)
{
	u32 nr_buckets = max_t(u32, roundup_pow_of_two(nr), PC_NR_SHARDS);
	u32 tail, i;

	BUILD_BUG_ON(sizeof(struct pc_block) != 40);

	/* at most as many buckets as blocks: memory, not chain length, is short */
	if (nr_buckets > nr && nr_buckets > PC_NR_SHARDS)
		nr_buckets /= 2;
	memset(b, 0, sizeof(*b));
	b->nr = nr;
	b->block_sectors = block_sectors;
	b->block_shift = is_power_of_2(block_sectors) ? ilog2(block_sectors) : -1;
	b->sub_sectors = sub_sectors;
	b->sub_shift = ilog2(sub_sectors);
	b->nr_subs = DIV_ROUND_UP(block_sectors, sub_sectors);
	b->full_mask = pc_mask(0, b->nr_subs - 1);
	b->origin_sectors = origin_sectors;
	b->nr_oblocks = div_u64_rem(origin_sectors, block_sectors, &tail);
	b->last_mask = b->full_mask;
	if (tail) {
		b->nr_oblocks++;
		tail >>= b->sub_shift;
		b->last_mask = tail ? pc_mask(0, tail - 1) : 0;
	}

	b->bucket_mask = nr_buckets - 1;
	b->table = vzalloc(array_size(nr, sizeof(*b->table)));
	b->buckets = vmalloc(array_size(nr_buckets, sizeof(*b->buckets)));
	if (!b->table || !b->buckets) {
		pc_blocks_exit(b);
		return -ENOMEM;
	}
	memset(b->buckets, 0xff, array_size(nr_buckets, sizeof(*b->buckets)));
	for (i = 0; i < nr; i++)
		b->table[i].pending = PC_NONE;
	pc_blocks_rebuild_free(b);
	return 0;
}

void pc_blocks_exit(struct pc_blocks *b)
{
	vfree(b->table);
	vfree(b->buckets);
	b->table = NULL;
	b->buckets = NULL;
}

size_t pc_blocks_memory(const struct pc_blocks *b)
{
	return (size_t)b->nr * sizeof(*b->table) +
	       ((size_t)b->bucket_mask + 1) * sizeof(*b->buckets);
}

void pc_blocks_insert(struct pc_blocks *b, pc_cblock_t c, pc_oblock_t o)
{
	struct pc_block *blk = pc_blocks_get(b, c);
	u32 *bucket = &b->buckets[pc_blocks_hash(o) & b->bucket_mask];
	u64 n = pc_from_oblock(o);

	blk->oblock_low = (u32)n;
	blk->oblock_high = (u16)(n >> 32);
	blk->flags = PC_BLOCK_MAPPED;
	blk->valid = 0;
	blk->dirty = 0;
	blk->next = *bucket;
	*bucket = pc_from_cblock(c);
}

void pc_blocks_remove(struct pc_blocks *b, pc_cblock_t c)
{
	struct pc_block *blk = pc_blocks_get(b, c);
	u32 *link = &b->buckets[pc_blocks_hash(pc_blocks_oblock(blk)) & b->bucket_mask];

	while (*link != pc_from_cblock(c))
		link = &b->table[*link].next;
	*link = blk->next;
	blk->flags = 0;
	blk->valid = 0;
	blk->dirty = 0;
	blk->next = PC_NONE;
}

pc_cblock_t pc_blocks_alloc(struct pc_blocks *b)
{
	u32 i = b->free_head;

	if (i == PC_NONE)
		return PC_CBLOCK_NONE;
	b->free_head = b->table[i].next;
	b->nr_free--;
	return pc_cblock(i);
}

void pc_blocks_free(struct pc_blocks *b, pc_cblock_t c)
{
	pc_blocks_get(b, c)->next = b->free_head;
	b->free_head = pc_from_cblock(c);
	b->nr_free++;
}

u64 pc_blocks_sector(const struct pc_blocks *b, pc_oblock_t o)
{
	return pc_from_oblock(o) * b->block_sectors;
}

void pc_blocks_rebuild_free(struct pc_blocks *b)
{
	u32 i;

	b->free_head = PC_NONE;
	b->nr_free = 0;
	for (i = b->nr; i-- > 0; )
		if (!(b->table[i].flags & PC_BLOCK_MAPPED))
			pc_blocks_free(b, pc_cblock(i));
}

u64 pc_blocks_usable(const struct pc_blocks *b, pc_oblock_t o)
{
	return pc_from_oblock(o) + 1 == b->nr_oblocks ? b->last_mask : b->full_mask;
}

u32 pc_blocks_length(const struct pc_blocks *b, pc_oblock_t o)
{
	u64 left = b->origin_sectors - pc_blocks_sector(b, o);

	return min_t(u64, b->block_sectors, left);
}
