// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block table against naive models: index and free list against two arrays that
 * are searched from end to end, geometry against sums over single sectors.
 */
#include "args.h"
#include "blocks.h"
#include "unit.h"

#define NR_OBLOCKS 300u

struct naive {
	bool is_free[512];
	bool is_mapped[512];
	u64 oblock[512];
	u32 nr_free;
};

static u32 naive_find(const struct naive *n, u32 nr, u64 o)
{
	u32 c;

	for (c = 0; c < nr; c++)
		if (n->is_mapped[c] && n->oblock[c] == o)
			return c;
	return PC_NONE;
}

static void check_find(const struct pc_blocks *b, const struct naive *n, u64 o)
{
	u32 c = naive_find(n, b->nr, o);
	struct pc_block *blk = pc_blocks_find(b, pc_oblock(o));

	if (c == PC_NONE) {
		assert_null(blk);
		return;
	}
	assert_ptr_equal(blk, pc_blocks_get(b, pc_cblock(c)));
	assert_true(blk->flags & PC_BLOCK_MAPPED);
	assert_int_equal(pc_from_oblock(pc_blocks_oblock(blk)), o);
	assert_int_equal(pc_from_cblock(pc_blocks_index(b, blk)), c);
}

/* Origin blocks that differ in the high half only are in the play, too. */
static u64 random_oblock(struct unit_random *r)
{
	u64 o = unit_random_below(r, NR_OBLOCKS);

	return unit_random_one_in(r, 4) ? o | (1 + unit_random_below(r, 0xfff0)) % 4 << 32 : o;
}

static void naive_alloc(struct pc_blocks *b, struct naive *n, struct unit_random *r)
{
	pc_cblock_t c = pc_blocks_alloc(b);
	struct pc_block *blk;
	u64 o;

	if (!n->nr_free) {
		assert_true(c == PC_CBLOCK_NONE);
		return;
	}
	assert_true(pc_from_cblock(c) < b->nr);
	assert_true(n->is_free[pc_from_cblock(c)]);
	n->is_free[pc_from_cblock(c)] = false;
	n->nr_free--;
	o = random_oblock(r);
	if (naive_find(n, b->nr, o) != PC_NONE) {
		pc_blocks_free(b, c);
		n->is_free[pc_from_cblock(c)] = true;
		n->nr_free++;
		return;
	}
	pc_blocks_insert(b, c, pc_oblock(o));
	n->is_mapped[pc_from_cblock(c)] = true;
	n->oblock[pc_from_cblock(c)] = o;
	blk = pc_blocks_get(b, c);
	assert_int_equal(blk->valid, 0);
	assert_int_equal(blk->dirty, 0);
	assert_int_equal(blk->pending, PC_NONE);
	assert_true(pc_block_is_idle(blk));
	blk->valid = unit_random(r);
	blk->dirty = blk->valid & unit_random(r);
	blk->flags |= PC_BLOCK_HIT;
}

static void naive_remove(struct pc_blocks *b, struct naive *n, struct unit_random *r)
{
	u32 c = unit_random_below(r, b->nr);

	if (!n->is_mapped[c])
		return;
	pc_blocks_remove(b, pc_cblock(c));
	pc_blocks_free(b, pc_cblock(c));
	n->is_mapped[c] = false;
	n->is_free[c] = true;
	n->nr_free++;
	assert_int_equal(b->table[c].flags, 0);
}

static void run_index(u64 iteration)
{
	static const u32 sizes[] = { 1, 2, 3, 63, 64, 65, 100, 128, 512 };
	struct unit_random r;
	struct pc_blocks b;
	struct naive n = { 0 };
	u32 nr, c;
	int i;

	unit_random_init(&r, "blocks", iteration);
	nr = sizes[iteration % ARRAY_SIZE(sizes)];
	assert_int_equal(pc_blocks_init(&b, nr, 128, 8, (u64)NR_OBLOCKS * 128), 0);
	assert_true(pc_blocks_memory(&b) >= nr * 40);
	memset(n.is_free, 1, nr);
	n.nr_free = nr;
	for (i = 0; i < 3000; i++) {
		u32 mostly = i / 500 % 2 ? 3 : 6;

		if (unit_random_below(&r, 9) < mostly)
			naive_alloc(&b, &n, &r);
		else
			naive_remove(&b, &n, &r);
		assert_int_equal(b.nr_free, n.nr_free);
		check_find(&b, &n, random_oblock(&r));
		if (unit_random_one_in(&r, 300)) {
			pc_blocks_rebuild_free(&b);
			assert_int_equal(b.nr_free, n.nr_free);
		}
	}
	for (c = 0; c < nr; c++)
		if (n.is_mapped[c])
			check_find(&b, &n, n.oblock[c]);
	/* the lowest come first after a rebuild, and each one once */
	pc_blocks_rebuild_free(&b);
	for (c = 0; c < nr; c++)
		if (n.is_free[c])
			assert_int_equal(pc_from_cblock(pc_blocks_alloc(&b)), c);
	assert_true(pc_blocks_alloc(&b) == PC_CBLOCK_NONE);
	pc_blocks_exit(&b);
}

static void index_against_model(void **state)
{
	u64 i;

	for (i = 0; i < 90; i++)
		run_index(i);
}

/* A bucket belongs to one shard, so that a chain needs one lock. */
static void bucket_has_one_shard(void **state)
{
	static const u32 sizes[] = { 1, 5, 64, 1000, 1024, 5000 };
	struct unit_random r;
	struct pc_blocks b;
	unsigned int s;
	int i;

	unit_random_init(&r, "shards", 0);
	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		assert_int_equal(pc_blocks_init(&b, sizes[s], 64, 8, 1 << 20), 0);
		assert_true(b.bucket_mask + 1 >= PC_NR_SHARDS);
		assert_true(is_power_of_2(b.bucket_mask + 1));
		for (i = 0; i < 1000; i++) {
			pc_oblock_t o = pc_oblock(unit_random(&r) & PC_OBLOCK_MAX);
			u32 bucket = pc_blocks_hash(o) & b.bucket_mask;

			assert_int_equal(bucket % PC_NR_SHARDS, pc_blocks_shard(o));
		}
		pc_blocks_exit(&b);
	}
}

struct geometry {
	struct pc_blocks b;
	u32 block, sub;
	u64 origin;
};

/* Sectors of sub-block s: as blocks cut the origin, and as the origin ends. */
static u32 sectors_of_sub(const struct geometry *g, u64 o, u32 s, bool on_origin)
{
	u32 n = 0, i;

	for (i = s * g->sub; i < (s + 1) * g->sub && i < g->block; i++)
		n += !on_origin || o * g->block + i < g->origin;
	return n;
}

static void check_span(const struct geometry *g, u32 offset, u32 sectors)
{
	struct pc_span s = pc_blocks_span(&g->b, offset, sectors);
	u64 touched = 0, whole = 0;
	u32 i, sub, covered;

	for (sub = 0; sub * g->sub < g->block; sub++) {
		covered = 0;
		for (i = sub * g->sub; i < (sub + 1) * g->sub && i < g->block; i++)
			covered += i >= offset && i < offset + sectors;
		if (covered)
			touched |= 1ull << sub;
		if (covered && covered == sectors_of_sub(g, 0, sub, false))
			whole |= 1ull << sub;
	}
	assert_true(pc_span_mask(&s) == touched);
	assert_true(pc_span_whole(&s) == whole);
	if (s.first == s.last)
		assert_int_equal(s.partial_first, s.partial_last);
}

static void check_block(const struct geometry *g, u64 o)
{
	u64 usable = 0;
	u32 sub, length = 0;

	for (sub = 0; sub * g->sub < g->block; sub++) {
		u32 have = sectors_of_sub(g, o, sub, true);

		length += have;
		if (have == sectors_of_sub(g, o, sub, false))
			usable |= 1ull << sub;
	}
	assert_true(pc_blocks_usable(&g->b, pc_oblock(o)) == usable);
	assert_int_equal(pc_blocks_length(&g->b, pc_oblock(o)), length);
	assert_true(pc_blocks_sector(&g->b, pc_oblock(o)) == o * g->block);
}

static void check_geometry(struct geometry *g, struct unit_random *r)
{
	u64 sector, nr = (g->origin + g->block - 1) / g->block;
	u32 offset, i;

	assert_int_equal(pc_blocks_init(&g->b, 4, g->block, g->sub, g->origin), 0);
	assert_int_equal(g->b.nr_subs, (g->block + g->sub - 1) / g->sub);
	assert_true(g->b.nr_subs <= PC_MAX_SUBBLOCKS);
	assert_int_equal(hweight64(g->b.full_mask), g->b.nr_subs);
	assert_true(g->b.nr_oblocks == nr);
	for (i = 0; i < 12; i++) {
		sector = i ? unit_random_below(r, g->origin) : g->origin - 1;
		assert_true(pc_from_oblock(pc_blocks_of_sector(&g->b, sector, &offset)) ==
			    sector / g->block);
		assert_int_equal(offset, sector % g->block);
		check_block(g, sector / g->block);
		offset = unit_random_below(r, g->block);
		check_span(g, offset, 1 + unit_random_below(r, g->block - offset));
		/* aligned ends are rare otherwise */
		offset &= ~(g->sub - 1);
		check_span(g, offset, g->block - offset);
		check_span(g, offset, min(g->sub, g->block - offset));
	}
	check_span(g, 0, g->block);
	pc_blocks_exit(&g->b);
}

static void geometry_against_sectors(void **state)
{
	static const u32 blocks[] = { 64, 128, 192, 576, 768, 1024, 2048, 4160, 8192 };
	struct unit_random r;
	struct geometry g;
	unsigned int i, k;

	unit_random_init(&r, "geometry", 0);
	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		u64 tails[] = { 0, 1, 7, 8, 9, 63, blocks[i] / 2, blocks[i] - 1, blocks[i] - 8 };

		g.block = blocks[i];
		g.sub = pc_args_subblock_sectors(g.block);
		assert_true(g.sub >= 8 && is_power_of_2(g.sub));
		assert_true(g.sub == 8 || (g.block - 1) / (g.sub / 2) >= 64);
		for (k = 0; k < ARRAY_SIZE(tails); k++) {
			g.origin = (1 + unit_random_below(&r, 5)) * g.block + tails[k];
			check_geometry(&g, &r);
		}
		/* smaller than a block */
		for (k = 1; k < ARRAY_SIZE(tails); k++) {
			g.origin = tails[k];
			check_geometry(&g, &r);
		}
	}
}

static void masks(void **state)
{
	u32 first, last, i;

	for (first = 0; first < 64; first++)
		for (last = first; last < 64; last++)
			for (i = 0; i < 64; i++)
				assert_int_equal(pc_mask(first, last) >> i & 1,
						 i >= first && i <= last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_against_model),
		cmocka_unit_test(bucket_has_one_shard),
		cmocka_unit_test(geometry_against_sectors),
		cmocka_unit_test(masks),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
