/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The in-core block table: which origin block each cache block maps, its masks
 * of sub-blocks, its in-flight counts, the sharded index, and the free list.
 *
 * A cache block belongs to the shard of the origin block that it maps; the caller
 * holds that shard's lock for everything said here, but for the free list, whose
 * lock is separate (alloc and free). A cache block on the free list belongs to
 * nobody: its removal from the index is durable. What the disk says of a block is
 * pending.h's, never looked at here.
 */
#ifndef PC_BLOCKS_H
#define PC_BLOCKS_H

#include <linux/types.h>
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "block-types.h"

#define PC_NONE 0xffffffffu
#define PC_NR_SHARDS 64u
#define PC_MAX_SUBBLOCKS 64u

/* flags of struct pc_block */
#define PC_BLOCK_MAPPED		0x0001
#define PC_BLOCK_DEMOTING	0x0002	/* in the index until its removal is durable */
#define PC_BLOCK_DIRTY		0x0004	/* counted in #dirty */
#define PC_BLOCK_PARITY		0x0008	/* which counter new writes use (rule 11) */
#define PC_BLOCK_HIT		0x0010	/* was hit since it was inserted */
#define PC_BLOCK_STREAM		0x0020	/* taken by a write stream and not hit since */
#define PC_BLOCK_SAMPLED	0x0040	/* fills of it are in the usefulness sample */
#define PC_BLOCK_INTENT_CACHE	0x0080	/* what the disk says when nothing is pending */
#define PC_BLOCK_INTENT_ORIGIN	0x0100
#define PC_BLOCK_WRITTEN	0x0200	/* written under its intent since the last sweep */
#define PC_BLOCK_RETOUCHED	0x0400	/* written during its last copy (rule 16) */
#define PC_BLOCK_INTENTS	(PC_BLOCK_INTENT_CACHE | PC_BLOCK_INTENT_ORIGIN)

/* In-flight counts stop here: a further bio is deferred (they are 16 bits wide). */
#define PC_MAX_IN_FLIGHT 0xff00u

struct pc_block {
	u64 valid;		/* shard lock; the cache copy may be read */
	u64 dirty;		/* shard lock; subset of valid: the origin is older */
	u32 oblock_low;		/* shard lock of the mapping; read racily by scans */
	u16 oblock_high;
	u16 flags;		/* shard lock */
	u32 next;		/* shard lock: hash chain; free lock: free list */
	u32 pending;		/* shard lock; index of the pending object or PC_NONE */
	u16 writes[2];		/* shard lock; user writes to the cache in flight, by parity */
	u16 holds;		/* shard lock; reads, fills and copies in flight */
	u16 sample;		/* shard lock; with PC_BLOCK_SAMPLED: which one (fill.c) */
};

/* Where a request lies in a block: sub-blocks first to last, both included. */
struct pc_span {
	u32 first, last;
	bool partial_first;	/* first is covered only in part */
	bool partial_last;	/* the same of last; equal if first == last */
};

struct pc_blocks {
	struct pc_block *table;
	u32 nr;
	u32 *buckets;
	u32 bucket_mask;

	/* geometry, constant; sectors */
	u32 block_sectors;
	u32 sub_sectors;
	u32 sub_shift;
	int block_shift;	/* log2 of block_sectors, or -1 */
	u32 nr_subs;
	u64 nr_oblocks;
	u64 origin_sectors;
	u64 full_mask;		/* all sub-blocks of a block */
	u64 last_mask;		/* those of the last block that the origin covers whole */

	/* free lock */
	u32 free_head;
	u32 nr_free;
};

/* May sleep. 0 or -ENOMEM. */
int pc_blocks_init(struct pc_blocks *b, u32 nr, u32 block_sectors, u32 sub_sectors,
		   u64 origin_sectors);
void pc_blocks_exit(struct pc_blocks *b);
size_t pc_blocks_memory(const struct pc_blocks *b);

/* A finaliser with good low bits (the 64-bit mix of MurmurHash3, A. Appleby). */
static inline u32 pc_blocks_hash(pc_oblock_t o)
{
	u64 h = pc_from_oblock(o);

	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 33;
	return (u32)h;
}

static inline u32 pc_blocks_shard_of_hash(u32 hash)
{
	return hash & (PC_NR_SHARDS - 1);
}

static inline u32 pc_blocks_shard(pc_oblock_t o)
{
	return pc_blocks_shard_of_hash(pc_blocks_hash(o));
}

static inline struct pc_block *pc_blocks_get(const struct pc_blocks *b, pc_cblock_t c)
{
	return &b->table[pc_from_cblock(c)];
}

static inline pc_cblock_t pc_blocks_index(const struct pc_blocks *b, const struct pc_block *blk)
{
	return pc_cblock(blk - b->table);
}

static inline pc_oblock_t pc_blocks_oblock(const struct pc_block *blk)
{
	return pc_oblock((u64)blk->oblock_high << 32 | blk->oblock_low);
}

/* NULL if the origin block is not mapped. hash: what pc_blocks_hash says of it. */
static inline struct pc_block *pc_blocks_find_hashed(const struct pc_blocks *b, pc_oblock_t o,
						     u32 hash)
{
	u64 n = pc_from_oblock(o);
	u32 i = b->buckets[hash & b->bucket_mask];

	while (i != PC_NONE) {
		struct pc_block *blk = &b->table[i];

		if (blk->oblock_low == (u32)n && blk->oblock_high == (u16)(n >> 32))
			return blk;
		i = blk->next;
	}
	return NULL;
}

static inline struct pc_block *pc_blocks_find(const struct pc_blocks *b, pc_oblock_t o)
{
	return pc_blocks_find_hashed(b, o, pc_blocks_hash(o));
}

/* The cache block is not on the free list and maps nothing. */
void pc_blocks_insert(struct pc_blocks *b, pc_cblock_t c, pc_oblock_t o);
/* Out of the index; flags and masks are reset. */
void pc_blocks_remove(struct pc_blocks *b, pc_cblock_t c);

/* Free list: under the free lock. PC_CBLOCK_NONE when empty. */
pc_cblock_t pc_blocks_alloc(struct pc_blocks *b);
void pc_blocks_free(struct pc_blocks *b, pc_cblock_t c);

/* All blocks that map nothing are on the list, lowest first; the old list is void. */
void pc_blocks_rebuild_free(struct pc_blocks *b);

/* Sector of the origin -> its block, and the offset in it. */
static inline pc_oblock_t pc_blocks_of_sector(const struct pc_blocks *b, u64 sector, u32 *offset)
{
	u64 o;

	if (b->block_shift >= 0) {
		*offset = sector & (b->block_sectors - 1);
		o = sector >> b->block_shift;
	} else {
		o = div_u64_rem(sector, b->block_sectors, offset);
	}
	return pc_oblock(o);
}

u64 pc_blocks_sector(const struct pc_blocks *b, pc_oblock_t o);
/* Sectors of sub-block s (the last of a block may be short). */
static inline u32 pc_blocks_sub_length(const struct pc_blocks *b, u32 s)
{
	return min_t(u32, b->sub_sectors, b->block_sectors - (s << b->sub_shift));
}

/* offset + sectors lies in one block. */
static inline struct pc_span pc_blocks_span(const struct pc_blocks *b, u32 offset, u32 sectors)
{
	u32 end = offset + sectors;
	struct pc_span s;

	s.first = offset >> b->sub_shift;
	s.last = (end - 1) >> b->sub_shift;
	s.partial_first = offset != s.first << b->sub_shift;
	s.partial_last = end != (s.last << b->sub_shift) + pc_blocks_sub_length(b, s.last);
	if (s.first == s.last)
		s.partial_first = s.partial_last = s.partial_first || s.partial_last;
	return s;
}

/* Sub-blocks that may ever be valid in this block (rule 3). */
u64 pc_blocks_usable(const struct pc_blocks *b, pc_oblock_t o);
/* Sectors of the block that the origin has. */
u32 pc_blocks_length(const struct pc_blocks *b, pc_oblock_t o);

static inline u64 pc_mask(u32 first, u32 last)
{
	return (~0ULL >> (63 - last)) & (~0ULL << first);
}

static inline u64 pc_span_mask(const struct pc_span *s)
{
	return pc_mask(s->first, s->last);
}

/* Sub-blocks of the span that it covers whole. */
static inline u64 pc_span_whole(const struct pc_span *s)
{
	u64 m = pc_span_mask(s);

	if (s->partial_first)
		m &= ~(1ULL << s->first);
	if (s->partial_last)
		m &= ~(1ULL << s->last);
	return m;
}

/* Nobody uses the cache copy: no reads, writes, fills or copies in flight. */
static inline bool pc_block_is_idle(const struct pc_block *blk)
{
	return !blk->holds && !blk->writes[0] && !blk->writes[1];
}

#endif
