// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Writeback (writeback.h).
 *
 * One work item walks the dirty blocks in the order of the origin and starts
 * copies: runs of dirty sub-blocks of neighbouring blocks, up to 1 MiB. A copy takes
 * its dirty bits (they stay set), flips the block's parity, waits until the writes
 * counted under the old parity are done, reads the cache into own pages, writes the
 * origin, and clears the bits that no write touched since. Only sub-blocks that are
 * durably dirty are copied; for others a commit is asked for first.
 *
 * The steps of a copy run in the work item, its ends in interrupts. Owns the sorted
 * list of the sweep (work item only) and the lists of copies (its lock).
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "broken.h"
#include "cache.h"
#include "pages.h"
#include "reclaim.h"
#include "writeback.h"

#define MIN_COPIES 8
#define MAX_SEGS 64u
#define MAX_ITEMS 16384u
#define NR_REGIONS 1024u
#define BUSY_SECTORS 512u		/* one request of 256 KiB while users are at the origin */
#define IDLE_SECTORS 16384u		/* floor of what is in flight while they are not */
#define FLOOR_BLOCKS 8u
#define MAX_COPIES 8			/* a spindle's queue: flushes and misses wait behind it */
#define MAX_BACKOFF_MS 60000u

/* A run of sub-blocks of one block; runs of a block follow each other. */
struct seg {
	u64 oblock;
	u32 cblock;
	u8 first, last;
	u8 parity;		/* of the writes that must have ended */
};

struct pc_copy {
	struct list_head list;
	struct pc_cache *pc;
	unsigned int nr_segs;
	unsigned int nr_pages;
	u32 sectors;		/* of all runs */
	u32 pos, len;		/* the piece that the pages hold */
	atomic_t left;
	blk_status_t status;
	bool reading;
	struct seg segs[MAX_SEGS];
	struct page *pages[PC_MAX_COPY_SECTORS >> (PAGE_SHIFT - SECTOR_SHIFT)];
};

struct item {
	u64 oblock;
	u32 cblock;
};

struct pc_writeback {
	struct pc_cache *pc;
	struct delayed_work work;
	spinlock_t lock;
	struct list_head blocked;	/* lock: copies that wait for writes */
	struct list_head steps;		/* lock: copies that go on */
	atomic_t in_flight;		/* sectors */
	atomic_t nr_copies;
	struct item *items;		/* owner: the work item */
	u32 nr_items, next_item;
	u32 regions[NR_REGIONS];
	u32 cursor;			/* region to go on with */
	bool copied;			/* since the last commit was asked for */
	u32 passes;			/* complete ones since `flush` was asked for */
	unsigned int backoff_ms;	/* READ_ONCE: after an error */
	unsigned long retry_at;		/* jiffies */
};

static u32 seg_offset(struct pc_cache *pc, const struct seg *s)
{
	return (u32)s->first << pc->blocks.sub_shift;
}

static u32 seg_sectors(struct pc_cache *pc, const struct seg *s)
{
	u32 end = min(((u32)s->last + 1) << pc->blocks.sub_shift, pc->block_sectors);

	return end - seg_offset(pc, s);
}

static void finish_block(struct pc_copy *c, const struct seg *s, u64 taken)
{
	struct pc_cache *pc = c->pc;
	struct pc_block *blk = &pc->blocks.table[s->cblock];
	spinlock_t *lock = pc_shard_lock(pc, pc_oblock(s->oblock));
	struct pc_pending *p;
	unsigned long flags;
	u64 done;

	spin_lock_irqsave(lock, flags);
	p = pc_pending_of(&pc->pendings, blk);
	done = PC_BREAK_RULE11 ? taken : taken & ~p->touched;
	if (taken & p->touched) {
		blk->flags |= PC_BLOCK_RETOUCHED;
		pc_count(pc, PC_STAT_TOUCHED);
	} else {
		blk->flags &= ~PC_BLOCK_RETOUCHED;
	}
	p->copying = 0;
	p->frozen &= ~taken;
	if (!c->status) {
		blk->dirty &= ~done;
		p->uncleaned |= done;
	}
	blk->holds--;
	pc_update_dirty(pc, blk);
	pc_commit_schedule(&pc->commit);
	pc_wake_pending(pc, p);
	pc_put_pending(pc, p);
	spin_unlock_irqrestore(lock, flags);
}

static void finish_blocks(struct pc_copy *c)
{
	unsigned int i;
	u64 taken = 0;

	for (i = 0; i < c->nr_segs; i++) {
		const struct seg *s = &c->segs[i];

		taken |= pc_mask(s->first, s->last);
		if (i + 1 == c->nr_segs || c->segs[i + 1].cblock != s->cblock) {
			finish_block(c, s, taken);
			taken = 0;
		}
	}
}

static void finish(struct pc_copy *c)
{
	struct pc_cache *pc = c->pc;
	struct pc_writeback *w = pc->writeback;
	bool was_tried;

	/* before the dirty bits go: rule 13. What failed may have landed, too */
	if (c->nr_pages)
		pc_round_note_copy(&pc->origin_round);
	if (c->status == BLK_STS_RESOURCE && !c->nr_pages) {
		pc_count(pc, PC_STAT_NO_PAGES);
	} else if (c->status) {
		unsigned int ms = READ_ONCE(w->backoff_ms);

		pc_count(pc, PC_STAT_WRITEBACK_ERROR);
		/* once a try: several copies in flight fail together */
		if (!ms || time_after_eq(jiffies, READ_ONCE(w->retry_at))) {
			ms = ms ? min(2 * ms, MAX_BACKOFF_MS) : 1000;
			WRITE_ONCE(w->backoff_ms, ms);
			WRITE_ONCE(w->retry_at, jiffies + msecs_to_jiffies(ms));
		}
		DMERR_LIMIT("%s: writeback of %u sectors of block %llu failed: %d; they stay dirty, next try in %u ms",
			    pc->name, c->sectors, (unsigned long long)c->segs[0].oblock,
			    blk_status_to_errno(c->status), ms);
	} else {
		WRITE_ONCE(w->backoff_ms, 0);
		pc_count(pc, PC_STAT_WRITEBACK);
		pc_count_add(pc, PC_STAT_WRITEBACK_SECTORS, c->sectors);
	}
	finish_blocks(c);
	atomic_sub(c->sectors, &w->in_flight);
	atomic_dec(&w->nr_copies);
	was_tried = c->nr_pages;
	if (c->nr_pages)
		pc_pages_put(pc->pages, c->nr_pages, c->pages);
	mempool_free(c, pc->copy_pool);
	pc_wake_pool(pc);
	if (was_tried)
		pc_writeback_kick(pc);
	pc_background_put(pc);
}

static void queue_step(struct pc_copy *c)
{
	struct pc_writeback *w = c->pc->writeback;
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	list_add_tail(&c->list, &w->steps);
	spin_unlock_irqrestore(&w->lock, flags);
	pc_writeback_kick(c->pc);
}

static void piece_done(struct pc_copy *c)
{
	if (!atomic_dec_and_test(&c->left))
		return;
	if (c->status) {
		finish(c);
	} else if (c->reading) {
		c->reading = false;
		queue_step(c);
	} else if (c->pos + c->len < c->sectors) {
		c->pos += c->len;
		c->reading = true;
		queue_step(c);
	} else {
		finish(c);
	}
}

static void end_piece(struct bio *bio)
{
	struct pc_copy *c = bio->bi_private;

	if (bio->bi_status) {
		c->status = bio->bi_status;
		pc_count(c->pc, c->reading ? PC_STAT_CACHE_READ_ERROR : PC_STAT_ORIGIN_ERROR);
	}
	bio_put(bio);
	piece_done(c);
}

static struct bio *piece_bio(struct pc_copy *c, struct dm_dev *dev, enum req_op op, sector_t sector)
{
	struct bio *bio = bio_alloc_bioset(dev->bdev, c->nr_pages, op, GFP_NOIO,
					   &c->pc->bios);

	bio->bi_iter.bi_sector = sector;
	bio->bi_private = c;
	bio->bi_end_io = end_piece;
	return bio;
}

/*
 * The piece from pos on, run by run: from the cache, or to the origin, where runs
 * that are adjacent share a bio.
 */
static void submit_piece(struct pc_copy *c)
{
	struct pc_cache *pc = c->pc;
	struct bio *bio = NULL;
	sector_t next = 0;
	u32 at = 0;		/* sectors of the runs before this one */
	unsigned int i;

	c->len = min(c->sectors - c->pos, PC_MAX_COPY_SECTORS);
	atomic_set(&c->left, 1);
	for (i = 0; i < c->nr_segs; i++) {
		const struct seg *s = &c->segs[i];
		u32 n = seg_sectors(pc, s);
		u32 from = max(at, c->pos), to = min(at + n, c->pos + c->len);
		u32 in_block = seg_offset(pc, s) + (from - at);
		sector_t sector;

		at += n;
		if (from >= to)
			continue;
		if (c->reading)
			sector = pc_cache_sector(pc, s->cblock) + in_block;
		else
			sector = s->oblock * pc->block_sectors + in_block;
		if (bio && sector != next) {
			submit_bio_noacct(bio);
			bio = NULL;
		}
		if (!bio) {
			bio = piece_bio(c, c->reading ? pc->cache_dev : pc->origin_dev,
					c->reading ? REQ_OP_READ : REQ_OP_WRITE, sector);
			atomic_inc(&c->left);
		}
		pc_pages_add(bio, c->pages, from - c->pos, to - from);
		next = sector + (to - from);
	}
	if (bio)
		submit_bio_noacct(bio);
	piece_done(c);
}

/* Have all writes ended that were under way when the copy took its bits? */
static bool is_unblocked(struct pc_copy *c)
{
	unsigned int i;

	for (i = 0; i < c->nr_segs; i++) {
		const struct seg *s = &c->segs[i];
		/* pairs with the shard lock's release in end_io, through the kick */
		if (READ_ONCE(c->pc->blocks.table[s->cblock].writes[s->parity]))
			return false;
	}
	/*
	 * The count is read before the copy reads the cache; pairs with the release of
	 * the shard lock by the callers of pc_write_leaves().
	 */
	smp_mb();
	return true;
}

static void run_steps(struct pc_writeback *w)
{
	struct pc_copy *c, *next;
	LIST_HEAD(steps);
	LIST_HEAD(blocked);

	spin_lock_irq(&w->lock);
	list_splice_init(&w->steps, &steps);
	list_splice_init(&w->blocked, &blocked);
	spin_unlock_irq(&w->lock);
	list_for_each_entry_safe(c, next, &steps, list) {
		list_del(&c->list);
		submit_piece(c);
	}
	list_for_each_entry_safe(c, next, &blocked, list) {
		if (is_unblocked(c)) {
			list_del(&c->list);
			submit_piece(c);
		}
	}
	spin_lock_irq(&w->lock);
	list_splice(&blocked, &w->blocked);
	spin_unlock_irq(&w->lock);
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->oblock < y->oblock ? -1 : x->oblock > y->oblock;
}

static u64 racy_oblock(const struct pc_block *blk)
{
	return (u64)READ_ONCE(blk->oblock_high) << 32 | READ_ONCE(blk->oblock_low);
}

static u32 region_of(struct pc_cache *pc, u64 oblock)
{
	u64 per = DIV_ROUND_UP_ULL(pc->blocks.nr_oblocks, NR_REGIONS);

	return min_t(u64, div64_u64(oblock, per), NR_REGIONS - 1);
}

/*
 * The next dirty blocks in the order of the origin: as many whole regions as fit
 * into the list, from the cursor on. False: nothing is dirty.
 */
static bool collect(struct pc_writeback *w)
{
	struct pc_cache *pc = w->pc;
	u32 c, first, end, sum, nr = 0;

	memset(w->regions, 0, sizeof(w->regions));
	for_each_set_bit(c, pc->dirty_map, pc->blocks.nr)
		w->regions[region_of(pc, racy_oblock(&pc->blocks.table[c]))]++;
	first = w->cursor;
	while (first < NR_REGIONS && !w->regions[first])
		first++;
	if (first == NR_REGIONS) {
		/* round once: what is before the cursor */
		w->passes++;
		for (first = 0; first < NR_REGIONS && !w->regions[first]; first++)
			;
		if (first == NR_REGIONS)
			return false;
	}
	sum = w->regions[first];
	for (end = first + 1; end < NR_REGIONS && sum + w->regions[end] <= MAX_ITEMS; end++)
		sum += w->regions[end];
	for_each_set_bit(c, pc->dirty_map, pc->blocks.nr) {
		u64 o = racy_oblock(&pc->blocks.table[c]);
		u32 r = region_of(pc, o);

		if (r < first || r >= end)
			continue;
		w->items[nr].oblock = o;
		w->items[nr].cblock = c;
		if (++nr == MAX_ITEMS)
			break;
	}
	sort(w->items, nr, sizeof(*w->items), compare, NULL);
	w->nr_items = nr;
	w->next_item = 0;
	w->cursor = end;
	cond_resched();
	return nr;
}

/* Adds runs of mask to the copy, at most so many sectors. Returns the bits added. */
static u64 add_runs(struct pc_copy *c, struct pc_block *blk, u64 oblock, u64 mask, u32 max)
{
	struct pc_cache *pc = c->pc;
	u64 taken = 0;

	while (mask && c->nr_segs < MAX_SEGS) {
		struct seg *s = &c->segs[c->nr_segs];
		u32 first = __ffs64(mask), last = first, n;

		s->oblock = oblock;
		s->cblock = pc_from_cblock(pc_blocks_index(&pc->blocks, blk));
		s->parity = !!(blk->flags & PC_BLOCK_PARITY);
		s->first = s->last = first;
		n = seg_sectors(pc, s);
		/* one sub-block always fits: it may be larger than a piece */
		if (c->sectors && c->sectors + n > max)
			break;
		while (last + 1 < PC_MAX_SUBBLOCKS && (mask & (1ULL << (last + 1)))) {
			s->last = last + 1;
			if (c->sectors + seg_sectors(pc, s) > max) {
				s->last = last;
				break;
			}
			last++;
		}
		c->sectors += seg_sectors(pc, s);
		c->nr_segs++;
		taken |= pc_mask(first, last);
		mask &= ~pc_mask(first, last);
	}
	return taken;
}

enum take { TAKEN, SKIPPED, NEEDS_COMMIT, IS_FULL };

/* Takes dirty bits of a block into the copy. */
static enum take take(struct pc_copy *c, const struct item *it, u32 max)
{
	struct pc_cache *pc = c->pc;
	enum take result = SKIPPED;
	struct pc_block *blk;
	struct pc_pending *p;
	unsigned long flags;
	spinlock_t *lock;
	u64 mask;

	blk = pc_lock_cblock(pc, it->cblock, &lock, &flags);
	if (!blk)
		return SKIPPED;
	if (pc_from_oblock(pc_blocks_oblock(blk)) != it->oblock || !blk->dirty ||
	    blk->holds >= PC_MAX_IN_FLIGHT)
		goto out;
	/* what was copied holds its object until both devices are flushed: leave some */
	p = pc_pending_of(&pc->pendings, blk);
	if (!p && READ_ONCE(pc->pendings.nr_free) > pc->pendings.nr / 3)
		p = pc_get_pending(pc, blk);
	if (!p) {
		result = NEEDS_COMMIT;
		goto out;
	}
	/*
	 * Writes of the other parity are left over from a copy that was given back
	 * before they ended: this one would not wait for them.
	 */
	if (p->copying || p->discarding || blk->writes[!(blk->flags & PC_BLOCK_PARITY)] ||
	    pc_pending_wants_change(p)) {
		pc_put_pending(pc, p);
		goto out;
	}
	mask = blk->dirty & pc_disk_cache_wins(blk, p);
	if (!mask) {
		result = NEEDS_COMMIT;
		pc_put_pending(pc, p);
		goto out;
	}
	mask = add_runs(c, blk, it->oblock, mask, max);
	if (!mask) {
		result = IS_FULL;
		pc_put_pending(pc, p);
		goto out;
	}
	p->copying = mask;
	p->touched &= ~mask;
	p->flags &= ~PC_PENDING_G_QUIET;
	if ((blk->flags & PC_BLOCK_RETOUCHED) && pc_is_cleaning(pc) && !PC_BREAK_RULE16)
		p->frozen |= mask;
	blk->flags ^= PC_BLOCK_PARITY;
	blk->holds++;
	result = TAKEN;
out:
	spin_unlock_irqrestore(lock, flags);
	return result;
}

enum started { STARTED, NOTHING, NO_MEMORY };

/* Starts the next copy. No memory: copies in flight give some back, or time does. */
static enum started start_copy(struct pc_writeback *w, u32 max, bool *needs_commit)
{
	struct pc_cache *pc = w->pc;
	/* never sleeps for one: it may be copies that give them back, and they run here */
	struct pc_copy *c = mempool_alloc(pc->copy_pool, GFP_NOWAIT | __GFP_NOWARN);
	u32 from = w->next_item;
	u64 last_oblock = 0;

	if (!c)
		return NO_MEMORY;
	memset(c, 0, offsetof(struct pc_copy, segs));
	c->pc = pc;
	c->reading = true;
	while (w->next_item < w->nr_items) {
		const struct item *it = &w->items[w->next_item];
		enum take t;

		if (c->nr_segs && it->oblock != last_oblock + 1)
			break;
		t = take(c, it, max);
		if (t == IS_FULL)
			break;
		if (t == NEEDS_COMMIT)
			*needs_commit = true;
		w->next_item++;
		if (t == TAKEN)
			last_oblock = it->oblock;
		else if (c->nr_segs)
			break;
	}
	if (!c->nr_segs) {
		mempool_free(c, pc->copy_pool);
		return NOTHING;
	}
	pc_background_get(pc);
	atomic_add(c->sectors, &w->in_flight);
	atomic_inc(&w->nr_copies);
	c->nr_pages = pc_pages_for(min(c->sectors, PC_MAX_COPY_SECTORS));
	if (!pc_pages_get(pc->pages, c->nr_pages, c->pages)) {
		/* given back untouched */
		c->nr_pages = 0;
		c->status = BLK_STS_RESOURCE;
		finish(c);
		w->next_item = from;
		return NO_MEMORY;
	}
	w->copied = true;
	spin_lock_irq(&w->lock);
	list_add_tail(&c->list, &w->blocked);
	spin_unlock_irq(&w->lock);
	run_steps(w);
	return STARTED;
}

static bool is_over_target(struct pc_cache *pc)
{
	return (u64)atomic_read(&pc->nr_dirty) * 100 >
	       (u64)READ_ONCE(pc->tunables.writeback_target) * pc->blocks.nr;
}

static bool should_clean(struct pc_writeback *w)
{
	struct pc_cache *pc = w->pc;

	if (READ_ONCE(pc->stop_background) || READ_ONCE(pc->failed) || READ_ONCE(pc->cache_gone))
		return false;
	if (READ_ONCE(w->backoff_ms) && time_before(jiffies, READ_ONCE(w->retry_at)))
		return false;
	return pc_is_cleaning(pc) || READ_ONCE(pc->reclaim_stuck) || is_over_target(pc) ||
	       pc_origin_is_idle(pc);
}

/* Room for one more copy: its largest size in sectors, or 0. */
static u32 room(struct pc_writeback *w)
{
	struct pc_cache *pc = w->pc;
	u64 limit = max_t(u64, READ_ONCE(pc->tunables.migration_threshold),
			  FLOOR_BLOCKS * pc->block_sectors);

	if (!pc_origin_is_idle(pc))
		return atomic_read(&w->nr_copies) ? 0 : BUSY_SECTORS;
	limit = max_t(u64, limit, IDLE_SECTORS);
	if (atomic_read(&w->in_flight) >= limit || atomic_read(&w->nr_copies) >= MAX_COPIES)
		return 0;
	return PC_MAX_COPY_SECTORS;
}

static void sweep(struct pc_writeback *w)
{
	struct pc_cache *pc = w->pc;
	bool needs_commit = false;
	enum started s;
	u32 max;

	while (should_clean(w) && (max = room(w))) {
		if (w->next_item >= w->nr_items && !collect(w))
			break;
		s = start_copy(w, max, &needs_commit);
		if (s == NO_MEMORY)
			break;
		if (s == NOTHING && w->next_item >= w->nr_items)
			/* all of the list was tried: wait for the commit or the copies */
			break;
		cond_resched();
	}
	if (READ_ONCE(pc->flush_wanted) &&
	    (READ_ONCE(pc->failed) || READ_ONCE(pc->cache_gone) ||
	     (!atomic_read(&w->nr_copies) &&
	      (bitmap_empty(pc->dirty_map, pc->blocks.nr) ||
	       (w->passes > 1 && w->next_item >= w->nr_items)))))
		WRITE_ONCE(pc->flush_wanted, false);
	if (w->copied && !atomic_read(&w->nr_copies) && w->next_item >= w->nr_items) {
		/* clean is clean once it is durable */
		w->copied = false;
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
	} else if (needs_commit) {
		/* where nobody waits for it, the timed one is soon enough */
		if (pc_is_cleaning(pc) || READ_ONCE(pc->reclaim_stuck) || is_over_target(pc))
			pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
		else
			pc_commit_schedule(&pc->commit);
	}
}

static void writeback_work(struct work_struct *work)
{
	struct pc_writeback *w = container_of(to_delayed_work(work), struct pc_writeback, work);
	struct pc_cache *pc = w->pc;

	run_steps(w);
	sweep(w);
	pc_reclaim_kick(pc);
	if (!READ_ONCE(pc->stop_background) && !READ_ONCE(pc->failed) &&
	    !bitmap_empty(pc->dirty_map, pc->blocks.nr))
		queue_delayed_work(pc->wq, &w->work, msecs_to_jiffies(PC_IDLE_MS) / 2);
}

void pc_writeback_kick(struct pc_cache *pc)
{
	mod_delayed_work(pc->wq, &pc->writeback->work, 0);
}

/* Runs at each write's end: looks before it takes the cache line. */
void pc_writeback_schedule(struct pc_cache *pc)
{
	struct delayed_work *work = &pc->writeback->work;

	/* a bit of dirty_map before the look; the work clears "pending" before it reads */
	smp_mb();
	if (!delayed_work_pending(work))
		queue_delayed_work(pc->wq, work, msecs_to_jiffies(PC_IDLE_MS));
}

void pc_writeback_flush(struct pc_cache *pc)
{
	pc->writeback->passes = 0;
	WRITE_ONCE(pc->flush_wanted, true);
	pc_writeback_kick(pc);
}

void pc_writeback_stop(struct pc_cache *pc)
{
	cancel_delayed_work_sync(&pc->writeback->work);
}

size_t pc_writeback_memory(struct pc_cache *pc)
{
	return sizeof(*pc->writeback) + MAX_ITEMS * sizeof(struct item) +
	       BITS_TO_LONGS(pc->blocks.nr) * sizeof(long);
}

int pc_writeback_init(struct pc_cache *pc)
{
	struct pc_writeback *w = kzalloc(sizeof(*w), GFP_KERNEL);

	pc->writeback = w;
	if (!w)
		return -ENOMEM;
	w->pc = pc;
	spin_lock_init(&w->lock);
	INIT_LIST_HEAD(&w->blocked);
	INIT_LIST_HEAD(&w->steps);
	INIT_DELAYED_WORK(&w->work, writeback_work);
	w->items = vmalloc(array_size(MAX_ITEMS, sizeof(*w->items)));
	pc->copy_pool = mempool_create_kmalloc_pool(MIN_COPIES, sizeof(struct pc_copy));
	pc->dirty_map = vzalloc(BITS_TO_LONGS(pc->blocks.nr) * sizeof(long));
	if (!w->items || !pc->copy_pool || !pc->dirty_map) {
		pc_writeback_exit(pc);
		return -ENOMEM;
	}
	return 0;
}

void pc_writeback_exit(struct pc_cache *pc)
{
	mempool_destroy(pc->copy_pool);
	pc->copy_pool = NULL;
	vfree(pc->dirty_map);
	pc->dirty_map = NULL;
	if (pc->writeback)
		vfree(pc->writeback->items);
	kfree(pc->writeback);
	pc->writeback = NULL;
}
