// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Fills (DESIGN rules 3, 5, 15, 18 and 19): origin -> own pages -> reader and
 * cache.
 *
 * The origin read ends in an interrupt: the reader is served there and then. The
 * cache write is submitted by a worker (fill_work) and ends in an interrupt too,
 * where the sub-blocks become valid. More than 1 MiB moves in pieces of 1 MiB under
 * one claim. The file also owns the size of the window (the tuner, its own lock).
 */
#include <linux/slab.h>

#include "broken.h"
#include "cache.h"
#include "fill.h"
#include "loss.h"
#include "pages.h"

#define MIN_FILLS 16
#define MIN_WINDOW 32u			/* sectors: 16 KiB */
#define SEEK_WINDOW 512u		/* where a seek costs over 2 ms: 256 KiB */
#define MAX_WINDOW 2048u
#define SEEK_NS (2 * NSEC_PER_MSEC)
#define NR_LATENCIES 8u
#define NR_SAMPLES 64u
#define SAMPLE_EVERY 8u			/* fills */
#define SAMPLES_PER_STEP 32u

struct pc_fill {
	struct list_head list;		/* deferred lock: fill_queue */
	struct pc_cache *pc;
	struct bio *reader;
	u64 end;			/* of the whole range on the origin, sectors */
	u64 pos;			/* the piece that the pages hold */
	u32 len;
	u64 started_ns;
	u64 asked, asked_end;		/* what the reader wanted, sectors */
	atomic_t left;			/* cache writes of the piece in flight */
	blk_status_t status;
	bool origin_failed;
	bool reading;			/* the next step of the worker is to read */
	unsigned int nr_parts;
	unsigned int nr_pages;
	struct pc_fill_part parts[PC_FILL_MAX_PARTS];
	struct page *pages[PC_MAX_COPY_SECTORS >> (PAGE_SHIFT - SECTOR_SHIFT)];
};

struct sample {
	u32 cblock;
	u64 fetched;
	u64 used;
};

struct pc_fill_tuner {
	spinlock_t lock;
	u32 window;			/* sectors; all under lock */
	u32 nr_latencies;
	u64 latencies[NR_LATENCIES];
	u64 seek_ns;			/* the median of them */
	u32 fills;
	u32 next;
	u32 folded;
	u32 fetched, used;
	struct sample samples[NR_SAMPLES];
};

u32 pc_fill_window(struct pc_cache *pc)
{
	u32 fixed = READ_ONCE(pc->tunables.fill);

	return fixed ? fixed : READ_ONCE(pc->tuner->window);
}

u64 pc_fill_seek_ns(struct pc_cache *pc)
{
	return READ_ONCE(pc->tuner->seek_ns);
}

void pc_fill_note_latency(struct pc_cache *pc, u64 ns, u32 sectors)
{
	struct pc_fill_tuner *t = pc->tuner;
	unsigned long flags;
	u32 i;

	if (sectors > 64 || READ_ONCE(t->nr_latencies) >= NR_LATENCIES)
		return;
	spin_lock_irqsave(&t->lock, flags);
	if (t->nr_latencies < NR_LATENCIES) {
		/* in order: a short seek or a queue does not count */
		for (i = t->nr_latencies++; i && t->latencies[i - 1] > ns; i--)
			t->latencies[i] = t->latencies[i - 1];
		t->latencies[i] = ns;
		t->seek_ns = t->latencies[t->nr_latencies / 2];
		if (t->nr_latencies == NR_LATENCIES && t->seek_ns > SEEK_NS)
			t->window = SEEK_WINDOW;
	}
	spin_unlock_irqrestore(&t->lock, flags);
}

/* Adds up a sample that makes room for a new one; every so many of them, a step. */
static void fold(struct pc_fill_tuner *t, const struct sample *s)
{
	t->fetched += hweight64(s->fetched);
	t->used += hweight64(s->used);
	if (++t->folded < SAMPLES_PER_STEP)
		return;
	if (t->used * 4 < t->fetched)
		t->window = max(t->window / 2, MIN_WINDOW);
	else if (t->used * 2 > t->fetched)
		t->window = min(t->window * 2, MAX_WINDOW);
	t->folded = t->fetched = t->used = 0;
}

/* Under the shard lock: the block's sample, or NULL if it made room for another's. */
static struct sample *sample_of(struct pc_cache *pc, struct pc_block *blk)
{
	struct sample *s = &pc->tuner->samples[blk->sample];

	if (!(blk->flags & PC_BLOCK_SAMPLED))
		return NULL;
	if (READ_ONCE(s->cblock) == pc_from_cblock(pc_blocks_index(&pc->blocks, blk)))
		return s;
	blk->flags &= ~PC_BLOCK_SAMPLED;
	return NULL;
}

static void note_fill(struct pc_cache *pc, struct pc_block *blk, u64 fetched, u64 used)
{
	struct pc_fill_tuner *t = pc->tuner;
	struct sample *s;

	if (READ_ONCE(pc->tunables.fill))
		return;
	spin_lock(&t->lock);
	if (++t->fills % SAMPLE_EVERY == 0) {
		s = sample_of(pc, blk);
		if (!s) {
			blk->sample = t->next++ % NR_SAMPLES;
			s = &t->samples[blk->sample];
			if (s->fetched)
				fold(t, s);
			WRITE_ONCE(s->cblock, pc_from_cblock(pc_blocks_index(&pc->blocks, blk)));
			WRITE_ONCE(s->fetched, 0);
			WRITE_ONCE(s->used, 0);
			blk->flags |= PC_BLOCK_SAMPLED;
		}
		WRITE_ONCE(s->fetched, s->fetched | fetched);
		WRITE_ONCE(s->used, s->used | (used & fetched));
	}
	spin_unlock(&t->lock);
}

void pc_fill_note_hit(struct pc_cache *pc, struct pc_block *blk, u64 mask)
{
	struct pc_fill_tuner *t = pc->tuner;
	struct sample *s = sample_of(pc, blk);

	/* mostly it was known before */
	if (!s || !(mask & READ_ONCE(s->fetched) & ~READ_ONCE(s->used)))
		return;
	spin_lock(&t->lock);
	/* another may have taken the place meanwhile */
	if (sample_of(pc, blk))
		WRITE_ONCE(s->used, s->used | (mask & s->fetched));
	spin_unlock(&t->lock);
}

u64 pc_fill_allowed(struct pc_cache *pc, struct pc_block *blk, u64 mask)
{
	struct pc_pending *p = pc_pending_of(&pc->pendings, blk);
	pc_oblock_t o = pc_blocks_oblock(blk);

	if (READ_ONCE(pc->failed) || READ_ONCE(pc->cache_gone) ||
	    (blk->flags & PC_BLOCK_DEMOTING))
		return 0;
	mask &= pc_blocks_usable(&pc->blocks, o) & ~blk->valid;
	if (p)
		mask &= ~(p->busy | p->frozen | p->discarding | pc_disk_dropped(blk, p));
	return mask & ~pc_origin_writes(pc, o, mask);
}

bool pc_fill_claim(struct pc_cache *pc, struct pc_block *blk, u32 first, u32 last)
{
	struct pc_pending *p = pc_get_pending(pc, blk);

	if (!p || blk->holds >= PC_MAX_IN_FLIGHT)
		return false;
	p->busy |= pc_mask(first, last);
	if (PC_BREAK_RULE3)
		blk->valid |= pc_mask(first, last);
	blk->holds++;
	return true;
}

/* Sectors of a part, relative to its block. */
static void part_range(struct pc_cache *pc, const struct pc_fill_part *part, u32 *from, u32 *to)
{
	*from = part->first << pc->blocks.sub_shift;
	*to = min((part->last + 1) << pc->blocks.sub_shift, pc->block_sectors);
}

static void finish_part(struct pc_cache *pc, const struct pc_fill_part *part, bool ok, u64 used)
{
	pc_oblock_t o = pc_oblock(part->oblock);
	u64 mask = pc_mask(part->first, part->last);
	struct pc_block *blk = &pc->blocks.table[part->cblock];
	spinlock_t *lock = pc_shard_lock(pc, o);
	struct pc_pending *p;
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	p = pc_pending_of(&pc->pendings, blk);
	p->busy &= ~mask;
	blk->holds--;
	if (ok) {
		blk->valid |= mask;
		note_fill(pc, blk, mask, used);
	}
	pc_commit_schedule(&pc->commit);
	pc_wake_pending(pc, p);
	pc_put_pending(pc, p);
	spin_unlock_irqrestore(lock, flags);
}

/* Sub-blocks of the part that the reader asked for. */
static u64 used_by(struct pc_cache *pc, const struct pc_fill_part *part, u64 start, u64 end)
{
	u64 base = part->oblock * pc->block_sectors;
	u32 from, to;

	part_range(pc, part, &from, &to);
	if (end <= base + from || start >= base + to)
		return 0;
	from = start > base + from ? start - base : from;
	to = min_t(u64, end - base, to);
	return pc_mask(from >> pc->blocks.sub_shift, (to - 1) >> pc->blocks.sub_shift);
}

static void finish(struct pc_fill *f, bool ok)
{
	struct pc_cache *pc = f->pc;
	unsigned int i;

	if (ok)
		/* before any bit becomes valid: rule 13 */
		pc_round_note(&pc->cache_round);
	else
		pc_count(pc, PC_STAT_FILL_ERROR);
	for (i = 0; i < f->nr_parts; i++)
		finish_part(pc, &f->parts[i], ok,
			    used_by(pc, &f->parts[i], f->asked, f->asked_end));
	pc_pages_put(pc->pages, f->nr_pages, f->pages);
	mempool_free(f, pc->fill_pool);
	pc_wake_pool(pc);
	pc_background_put(pc);
}

static void queue_step(struct pc_fill *f)
{
	struct pc_cache *pc = f->pc;
	unsigned long flags;

	spin_lock_irqsave(&pc->deferred_lock, flags);
	list_add_tail(&f->list, &pc->fill_queue);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	queue_work(pc->wq, &pc->fill_work);
}

static void end_read(struct bio *bio)
{
	struct pc_fill *f = bio->bi_private;
	struct pc_cache *pc = f->pc;
	struct bio *reader = f->reader;
	blk_status_t status = bio->bi_status;

	bio_put(bio);
	f->reader = NULL;
	if (status) {
		/*
		 * Who waits is retried for its own sectors alone. So is the reader, which
		 * may span sub-blocks that differ by then: the origin is right for all of
		 * it, as what came there or to the cache since was written under it.
		 */
		f->status = status;
		f->origin_failed = true;
		if (reader) {
			pc_bio(reader)->kind = PC_BIO_RETRY_ORIGIN;
			pc_defer_bio(pc, reader);
		}
	} else if (reader) {
		struct bvec_iter iter = pc_bio(reader)->iter;

		pc_fill_note_latency(pc, ktime_get_ns() - f->started_ns, f->len);
		pc_pages_to_bio(f->pages, iter.bi_sector - f->pos, reader, iter);
		pc_end_bio(reader, BLK_STS_OK);
	}
	f->reading = false;
	queue_step(f);
}

static bool read_piece(struct pc_fill *f, gfp_t gfp)
{
	struct pc_cache *pc = f->pc;
	struct bio *bio;

	f->len = min_t(u64, f->end - f->pos, PC_MAX_COPY_SECTORS);
	bio = bio_alloc_bioset(pc->origin_dev->bdev, f->nr_pages, REQ_OP_READ, gfp, &pc->bios);
	if (!bio)
		return false;
	bio->bi_iter.bi_sector = f->pos;
	bio->bi_private = f;
	bio->bi_end_io = end_read;
	pc_pages_add(bio, f->pages, 0, f->len);
	if (f->reader)
		/* starts dm's accounting of the reader as well */
		dm_submit_bio_remap(f->reader, bio);
	else
		submit_bio_noacct(bio);
	return true;
}

static void piece_written(struct pc_fill *f)
{
	if (!atomic_dec_and_test(&f->left))
		return;
	if (!f->status && f->pos + f->len < f->end) {
		f->pos += f->len;
		f->reading = true;
		queue_step(f);
	} else {
		finish(f, !f->status);
	}
}

static void end_write(struct bio *bio)
{
	struct pc_fill *f = bio->bi_private;

	if (bio->bi_status) {
		f->status = bio->bi_status;
		pc_count(f->pc, PC_STAT_CACHE_WRITE_ERROR);
	}
	pc_loss_note(f->pc, bio->bi_status);
	bio_put(bio);
	piece_written(f);
}

/* Worker: the piece that the pages hold goes to the cache. */
static void write_piece(struct pc_fill *f)
{
	struct pc_cache *pc = f->pc;
	unsigned int i;

	atomic_set(&f->left, 1);
	for (i = 0; i < f->nr_parts; i++) {
		struct pc_fill_part *part = &f->parts[i];
		u64 base = part->oblock * pc->block_sectors;
		u32 from, to;
		struct bio *bio;

		part_range(pc, part, &from, &to);
		if (base + to <= f->pos || base + from >= f->pos + f->len)
			continue;
		if (base + from < f->pos)
			from = f->pos - base;
		if (base + to > f->pos + f->len)
			to = f->pos + f->len - base;
		bio = bio_alloc_bioset(pc->cache_dev->bdev, pc_pages_for(to - from),
				       REQ_OP_WRITE, GFP_NOIO, &pc->bios);
		bio->bi_iter.bi_sector = pc_cache_sector(pc, part->cblock) + from;
		bio->bi_private = f;
		bio->bi_end_io = end_write;
		pc_pages_add(bio, f->pages, base + from - f->pos, to - from);
		atomic_inc(&f->left);
		submit_bio_noacct(bio);
	}
	piece_written(f);
}

static void fill_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, fill_work);
	struct pc_fill *f, *next;
	LIST_HEAD(todo);
	unsigned long flags;

	spin_lock_irqsave(&pc->deferred_lock, flags);
	list_splice_init(&pc->fill_queue, &todo);
	spin_unlock_irqrestore(&pc->deferred_lock, flags);
	list_for_each_entry_safe(f, next, &todo, list) {
		list_del(&f->list);
		if (f->origin_failed)
			finish(f, false);
		else if (f->reading)
			read_piece(f, GFP_NOIO);
		else
			write_piece(f);
	}
}

static void give_back(struct pc_cache *pc, const struct pc_fill_part *parts, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		finish_part(pc, &parts[i], false, 0);
}

bool pc_fill_start(struct pc_cache *pc, const struct pc_fill_part *parts, unsigned int nr,
		   struct bio *reader)
{
	u32 from, to, len;
	u64 sectors;
	struct pc_fill *f = mempool_alloc(pc->fill_pool, GFP_NOWAIT | __GFP_NOWARN);

	if (!f)
		goto no_memory;
	memset(f, 0, offsetof(struct pc_fill, parts));
	f->pc = pc;
	f->nr_parts = nr;
	memcpy(f->parts, parts, nr * sizeof(*parts));
	part_range(pc, &parts[0], &from, &to);
	f->pos = parts[0].oblock * pc->block_sectors + from;
	part_range(pc, &parts[nr - 1], &from, &to);
	f->end = parts[nr - 1].oblock * pc->block_sectors + to;
	sectors = f->end - f->pos;
	len = min_t(u64, sectors, PC_MAX_COPY_SECTORS);
	f->nr_pages = pc_pages_for(len);
	f->reader = reader;
	f->started_ns = ktime_get_ns();
	if (reader) {
		f->asked = pc_bio(reader)->iter.bi_sector;
		f->asked_end = f->asked + (pc_bio(reader)->iter.bi_size >> SECTOR_SHIFT);
	}
	if (!pc_pages_get(pc->pages, f->nr_pages, f->pages)) {
		pc_count(pc, PC_STAT_NO_PAGES);
		goto no_pages;
	}
	pc_background_get(pc);
	if (!read_piece(f, GFP_NOWAIT | __GFP_NOWARN)) {
		pc_pages_put(pc->pages, f->nr_pages, f->pages);
		pc_wake_pool(pc);
		pc_background_put(pc);
		goto no_pages;
	}
	pc_count(pc, PC_STAT_FILL);
	pc_count_add(pc, PC_STAT_FILL_SECTORS, sectors);
	return true;

no_pages:
	mempool_free(f, pc->fill_pool);
no_memory:
	give_back(pc, parts, nr);
	return false;
}

int pc_fill_init(struct pc_cache *pc)
{
	INIT_WORK(&pc->fill_work, fill_work);
	INIT_LIST_HEAD(&pc->fill_queue);
	pc->fill_pool = mempool_create_kmalloc_pool(MIN_FILLS, sizeof(struct pc_fill));
	pc->tuner = kzalloc(sizeof(*pc->tuner), GFP_KERNEL);
	if (!pc->fill_pool || !pc->tuner) {
		pc_fill_exit(pc);
		return -ENOMEM;
	}
	spin_lock_init(&pc->tuner->lock);
	pc->tuner->window = MIN_WINDOW;
	return 0;
}

void pc_fill_exit(struct pc_cache *pc)
{
	mempool_destroy(pc->fill_pool);
	kfree(pc->tuner);
	pc->fill_pool = NULL;
	pc->tuner = NULL;
}
