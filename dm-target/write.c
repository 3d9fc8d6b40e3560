// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] Writes (write.h).
 *
 * struct plan says, as masks of sub-blocks, where each of them may go now: that is
 * the whole of the mode logic. The first sub-block decides and the run of equal ones
 * follows it. A two-device write goes to both from one private copy (struct
 * pc_both), under `busy`; pages and bios for it are got before the lock is taken, so
 * the decision is made again once they are there.
 */
#include <linux/slab.h>

#include "broken.h"
#include "cache.h"
#include "flush.h"
#include "intent.h"
#include "loss.h"
#include "pages.h"
#include "reclaim.h"
#include "write.h"
#include "writeback.h"

#define MIN_BOTH 8

struct pc_both {
	struct pc_cache *pc;
	struct bio *bio;		/* dm's */
	struct bio *clones[2];		/* to the cache, to the origin */
	atomic_t left;
	blk_status_t status[2];
	unsigned int nr_pages;
	struct page *pages[PC_MAX_COPY_SECTORS >> (PAGE_SHIFT - SECTOR_SHIFT)];
};

struct plan {
	u64 wait;	/* busy, frozen, or a commit must come first */
	u64 cache;	/* the cache alone */
	u64 both;	/* both devices */
	u64 drop;	/* the origin alone, valid goes */
	u64 origin;	/* the origin alone, not valid anyway */
	u64 populate;	/* those of cache or both that become valid by this write */
	u64 deny_cache, deny_both, deny_origin;	/* an intent is wanted first */
	u64 failed;	/* metadata failed: refused */
};

static bool is_over_limit(struct pc_cache *pc)
{
	return (u64)atomic_read(&pc->nr_dirty) * 100 >=
	       (u64)READ_ONCE(pc->tunables.writeback_limit) * pc->blocks.nr;
}

/* May this write take sub-blocks that are not valid? blk is NULL for a new block. */
static bool may_populate(struct pc_lookup *l, const struct pc_block *blk)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;

	if (l->mode > PC_MODE_WRITETHROUGH || pb->idle_class || READ_ONCE(pc->failed) ||
	    READ_ONCE(pc->cache_losing))
		return false;
	if (l->mode == PC_MODE_WRITEBACK && is_over_limit(pc))
		return false;
	if (!pb->sequential)
		return true;
	/* a stream: only blocks never used, or cold ones up to a tenth of the cache */
	if (blk)
		return !(blk->flags & PC_BLOCK_HIT);
	if (READ_ONCE(pc->blocks.nr_free) > pc->free_target)
		return true;
	return atomic_read(&pc->nr_stream) < pc->blocks.nr / 10 &&
	       READ_ONCE(pc->blocks.nr_free) > pc->free_target / 2;
}

static void make_plan(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p,
		      struct plan *w)
{
	struct pc_cache *pc = l->pc;
	u64 span = pc_span_mask(&l->span);
	u64 valid = blk->valid, clean = valid & ~blk->dirty;
	u64 dropped = pc_disk_dropped(blk, p), pop = 0;

	memset(w, 0, sizeof(*w));
	w->deny_cache = pc_disk_denies_cache_write(blk, p);
	w->deny_both = pc_disk_denies_both_write(blk, p);
	w->deny_origin = pc_disk_denies_origin_write(blk, p);
	if (p)
		w->wait = (PC_BREAK_RULE5 ? 0 : p->busy) | p->frozen | p->discarding;
	/* dropped, and a record says otherwise: its commit comes first */
	w->wait |= dropped & w->deny_origin;
	if (may_populate(l, blk)) {
		pop = pc_span_whole(&l->span) & pc_blocks_usable(&pc->blocks, l->oblock) &
		      ~(valid | dropped | w->wait);
		pop &= ~pc_origin_writes(pc, l->oblock, pop);
	}
	w->populate = pop;
	switch (l->mode) {
	case PC_MODE_WRITEBACK:
		w->cache = valid | pop;
		break;
	case PC_MODE_WRITETHROUGH:
		w->cache = valid & ~clean;
		w->both = clean | pop;
		break;
	default:
		w->cache = valid & ~clean;
		w->drop = PC_BREAK_RULE25 ? 0 : clean;
		break;
	}
	w->origin = ~(w->cache | w->both | w->drop);
	if (PC_BREAK_RULE7 && l->mode != PC_MODE_WRITEBACK)
		w->origin |= blk->dirty;
	if (READ_ONCE(pc->failed))
		w->failed = pc_disk_any_valid(blk, p);
	w->cache &= span;
	w->both &= span;
	w->drop &= span;
	w->origin &= span;
}

/* A write to the origin alone, counted from here on (rule 6). Releases the lock. */
static int write_origin(struct pc_lookup *l, u32 last)
{
	struct pc_bio *pb = l->pb;

	pc_lookup_cut(l, last);
	pc_origin_write_starts(l->pc, l->oblock, l->span.first, l->span.last);
	pb->kind = PC_BIO_ORIGIN_WRITE;
	pb->first = l->span.first;
	pb->last = l->span.last;
	spin_unlock_irqrestore(l->lock, l->flags);
	return pc_lookup_to_origin(l);
}

/*
 * Not valid and not to be populated by this write. A sub-block that the write covers
 * only in part goes alone, and is filled afterwards (rule 4). Releases the lock.
 */
static int write_not_valid(struct pc_lookup *l, u32 last)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	u64 usable = pc_blocks_usable(&pc->blocks, l->oblock);
	bool fill = l->mode <= PC_MODE_WRITETHROUGH && !pb->sequential && !pb->idle_class &&
		    !READ_ONCE(pc->failed) && !PC_BREAK_RULE4;

	pc_lookup_count(l, false, true);
	if (fill && l->span.partial_first) {
		last = l->span.first;
		pb->fill_after = usable & (1ULL << last);
	} else if (fill && l->span.partial_last && last == l->span.last && last > l->span.first) {
		last--;
	}
	return write_origin(l, last);
}

/* It cannot be written so that the rules hold. Releases the lock. */
static int fail(struct pc_lookup *l)
{
	spin_unlock_irqrestore(l->lock, l->flags);
	pc_end_bio(l->bio, BLK_STS_IOERR);
	return DM_MAPIO_SUBMITTED;
}

/* No pending object: in order, for the pool. Releases the lock. */
static int wait_pool(struct pc_lookup *l)
{
	if (!pc_may_wait_record(l->pc, l->bio))
		return fail(l);
	pc_lookup_cut(l, l->span.first);
	spin_unlock_irqrestore(l->lock, l->flags);
	pc_wait_pool(l->pc, l->bio);
	return DM_MAPIO_SUBMITTED;
}

/* The disk must say something else before this write. Releases the lock. */
static int wait_intent(struct pc_lookup *l, struct pc_block *blk, u16 kind)
{
	if (pc_intent_needs_flush(l->pc, blk, kind) && !pc_may_wait_record(l->pc, l->bio))
		return fail(l);
	pc_lookup_cut(l, l->span.first);
	if (!pc_intent_wait(l->pc, blk, kind, l->bio))
		return wait_pool(l);
	spin_unlock_irqrestore(l->lock, l->flags);
	return DM_MAPIO_SUBMITTED;
}

static int wait_busy(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p)
{
	struct pc_cache *pc = l->pc;

	if (pc_write_undurable_drops(blk, p, 1ULL << l->span.first) ||
	    pc_pending_wants_change(p)) {
		if (!pc_may_wait_record(pc, l->bio))
			return fail(l);
		p->flags |= PC_PENDING_URGENT;
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
	}
	pc_lookup_wait(l, p);
	spin_unlock_irqrestore(l->lock, l->flags);
	return DM_MAPIO_SUBMITTED;
}

/* The sub-blocks of mask are written to the cache now. */
static void write_starts(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p,
			 const struct plan *w)
{
	struct pc_bio *pb = l->pb;

	pb->cblock = pc_from_cblock(pc_blocks_index(&l->pc->blocks, blk));
	pb->mask = pc_span_mask(&l->span);
	pb->populate = pb->mask & w->populate;
	pb->parity = !!(blk->flags & PC_BLOCK_PARITY);
	pb->waits_record = false;
	blk->writes[pb->parity]++;
	blk->flags |= PC_BLOCK_WRITTEN;
	if (pb->mask & ~pb->populate)
		pc_lookup_note_hit(l->pc, blk);
	if (pb->populate)
		pc_count(l->pc, PC_STAT_POPULATE);
	pc_pending_write_starts(p, pb->mask);
	pc_lookup_count(l, !(w->populate & (1ULL << l->span.first)), false);
}

/* Releases the lock. */
static int write_cache(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p,
		       const struct plan *w)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	u64 first_bit = 1ULL << l->span.first, mask;
	bool pass;
	u32 last = pc_lookup_run(l->span.first, l->span.last,
				 w->cache & ~w->wait & ~(w->deny_cache & ~w->populate));

	mask = pc_mask(l->span.first, last);
	if (!p && (mask & ~blk->dirty)) {
		p = pc_get_pending(pc, blk);
		if (!p && (w->populate & first_bit))
			return write_not_valid(l, pc_lookup_run(l->span.first, l->span.last,
								w->populate));
		if (!p)
			return wait_pool(l);
	}
	pc_lookup_cut(l, last);
	write_starts(l, blk, p, w);
	if (p)
		p->busy |= pb->populate;
	/* rule 11: dirty from the submission on; a populating write at completion */
	blk->dirty |= pb->mask & ~pb->populate;
	pb->kind = PC_BIO_CACHE_WRITE;
	pc_update_dirty(pc, blk);
	/* one that was a miss to the policy, and admitted, is no hit as well */
	pass = !pb->seen &&
	       pc_host_hit(pc->policy, pc_cblock(pb->cblock), l->oblock, PC_WRITE);
	spin_unlock_irqrestore(l->lock, l->flags);
	if (pass)
		pc_host_pass_hits(pc->policy);
	return pc_lookup_to_cache(l, pb->cblock);
}

void pc_write_leaves(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p,
		     unsigned int parity)
{
	if (--blk->writes[parity] || !p)
		return;
	if (p->copying)
		pc_writeback_kick(pc);
	if (p->discarding)
		wake_up(&pc->discard_wait);
}

u64 pc_write_undurable_drops(const struct pc_block *blk, const struct pc_pending *p, u64 mask)
{
	return p ? pc_disk_dropped(blk, p) & pc_disk_denies_origin_write(blk, p) & mask : 0;
}

/* Both writes of a two-device write have ended. */
static void both_done(struct pc_both *b)
{
	struct pc_cache *pc = b->pc;
	struct bio *bio = b->bio;
	struct pc_bio *pb = pc_bio(bio);
	struct pc_block *blk = &pc->blocks.table[pb->cblock];
	blk_status_t cache_status = b->status[0], status = b->status[1];
	struct pc_pending *p;
	unsigned long flags;
	bool wait = false;
	spinlock_t *lock;

	pc_pages_put(pc->pages, b->nr_pages, b->pages);
	if (!(pb->opf & REQ_FUA) || b->status[0] || b->status[1]) {
		pc_round_note(&pc->cache_round);
		pc_round_note(&pc->origin_round);
	}
	mempool_free(b, pc->both_pool);
	pc_wake_pool(pc);
	pc_loss_note(pc, cache_status);

	lock = pc_shard_lock(pc, pc_blocks_oblock(blk));
	spin_lock_irqsave(lock, flags);
	p = pc_pending_of(&pc->pendings, blk);
	p->busy &= ~pb->mask;
	if (cache_status || status) {
		pc_count(pc, status ? PC_STAT_ORIGIN_ERROR : PC_STAT_CACHE_WRITE_ERROR);
		pc_count(pc, PC_STAT_DROPPED);
		pc_drop(pc, blk, p, pb->mask);
		wait = pc_write_undurable_drops(blk, p, pb->mask);
		if (wait && (READ_ONCE(pc->failed) || !pc_may_wait_record(pc, bio))) {
			/* it never will be durable */
			wait = false;
			status = BLK_STS_IOERR;
		}
	} else {
		blk->valid |= pb->mask;
	}
	pc_write_leaves(pc, blk, p, pb->parity);
	pc_commit_schedule(&pc->commit);
	pc_wake_pending(pc, p);
	if (wait) {
		pb->kind = PC_BIO_ENDING;
		pb->status = status;
		p->flags |= PC_PENDING_URGENT;
		pc_wait_pending(pc, p, bio);
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
	}
	pc_put_pending(pc, p);
	spin_unlock_irqrestore(lock, flags);
	/* a bio that waits may have ended by now, and pc with it */
	if (!wait)
		pc_end_bio(bio, status);
}

static void end_both(struct bio *clone)
{
	struct pc_both *b = clone->bi_private;

	b->status[clone == b->clones[1]] = clone->bi_status;
	bio_put(clone);
	if (atomic_dec_and_test(&b->left))
		both_done(b);
}

static void free_both(struct pc_cache *pc, struct pc_both *b)
{
	if (!b)
		return;
	if (b->clones[0])
		bio_put(b->clones[0]);
	if (b->clones[1])
		bio_put(b->clones[1]);
	if (b->nr_pages)
		pc_pages_put(pc->pages, b->nr_pages, b->pages);
	mempool_free(b, pc->both_pool);
	pc_wake_pool(pc);
}

/*
 * All that a two-device write of up to so many sectors needs, or NULL. With a gfp that
 * sleeps, as the worker has it, only pages can be missing: the rest comes back from
 * completions, which wait for no worker.
 */
static struct pc_both *alloc_both(struct pc_cache *pc, u32 sectors, gfp_t gfp)
{
	struct pc_both *b = mempool_alloc(pc->both_pool, gfp);
	struct dm_dev *devs[2] = { pc->cache_dev, pc->origin_dev };
	unsigned int n = pc_pages_for(sectors);
	int i;

	if (!b)
		return NULL;
	memset(b, 0, offsetof(struct pc_both, pages));
	b->pc = pc;
	if (!pc_pages_get(pc->pages, n, b->pages))
		goto no_memory;
	b->nr_pages = n;
	for (i = 0; i < 2; i++) {
		b->clones[i] = bio_alloc_bioset(devs[i]->bdev, n, REQ_OP_WRITE, gfp,
						&pc->bios);
		if (!b->clones[i])
			goto no_memory;
		b->clones[i]->bi_private = b;
		b->clones[i]->bi_end_io = end_both;
	}
	return b;

no_memory:
	pc_count(pc, PC_STAT_NO_PAGES);
	free_both(pc, b);
	return NULL;
}

static void submit_both(struct pc_lookup *l, struct pc_both *b)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	u32 sectors = bio_sectors(l->bio);
	int i;

	b->bio = l->bio;
	atomic_set(&b->left, 2);
	pc_pages_from_bio(b->pages, l->bio, l->bio->bi_iter);
	for (i = 0; i < 2; i++) {
		b->clones[i]->bi_opf = pb->opf & PC_CLONE_OPF;
		pc_pages_add(b->clones[i], b->pages, 0, sectors);
	}
	b->clones[0]->bi_iter.bi_sector = pc_cache_sector(pc, pb->cblock) + l->offset;
	b->clones[1]->bi_iter.bi_sector = pb->iter.bi_sector;
	WRITE_ONCE(pc->last_user_origin, jiffies);
	submit_bio_noacct(b->clones[0]);
	if (PC_BREAK_RULE18)
		pc_pages_from_bio(b->pages, l->bio, l->bio->bi_iter);
	/* the dm bio is accounted with the one that decides its result */
	dm_submit_bio_remap(l->bio, b->clones[1]);
}

/* Releases the lock; b becomes this write's. */
static int write_both(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p,
		      const struct plan *w, struct pc_both *b)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	bool pass;
	u32 last = pc_lookup_run(l->span.first, l->span.last,
				 w->both & ~w->wait & ~(w->deny_both & ~w->populate));

	pc_lookup_cut(l, last);
	write_starts(l, blk, p, w);
	p->busy |= pb->mask;
	pb->kind = PC_BIO_NONE;
	/* one that was a miss to the policy, and admitted, is no hit as well */
	pass = !pb->seen &&
	       pc_host_hit(pc->policy, pc_cblock(pb->cblock), l->oblock, PC_WRITE);
	spin_unlock_irqrestore(l->lock, l->flags);
	if (pass)
		pc_host_pass_hits(pc->policy);
	submit_both(l, b);
	return DM_MAPIO_SUBMITTED;
}

/* The origin alone, and the cache copy goes (rule 25). Releases the lock. */
static int write_drop(struct pc_lookup *l, struct pc_block *blk, struct pc_pending *p,
		      const struct plan *w)
{
	struct pc_cache *pc = l->pc;
	u32 last = pc_lookup_run(l->span.first, l->span.last,
				 w->drop & ~w->wait & ~w->deny_origin);

	p = pc_get_pending(pc, blk);
	if (!p)
		return wait_pool(l);
	pc_lookup_cut(l, last);
	pc_lookup_count(l, true, false);
	blk->flags |= PC_BLOCK_WRITTEN;
	pc_pending_write_starts(p, pc_span_mask(&l->span));
	pc_drop(pc, blk, p, pc_span_mask(&l->span));
	return write_origin(l, l->span.last);
}

/* A write to a block that is not mapped: its block, if one is to be had. */
static struct pc_block *admit(struct pc_lookup *l)
{
	struct pc_cache *pc = l->pc;
	struct pc_bio *pb = l->pb;
	u64 first_bit = 1ULL << l->span.first;

	if (pb->seen || !may_populate(l, NULL) ||
	    !(pc_span_whole(&l->span) & first_bit & pc_blocks_usable(&pc->blocks, l->oblock)) ||
	    pc_origin_writes(pc, l->oblock, first_bit))
		return NULL;
	pb->seen = true;
	if (pc_host_miss(pc->policy, l->oblock, PC_WRITE,
			 pb->sequential ? PC_MISS_SEQUENTIAL : 0) != PC_ADMIT)
		return NULL;
	return pc_lookup_insert(pc, l->oblock, pb->sequential);
}

/* The intent that must be durable before this write, or 0. */
static u16 denied(const struct plan *w, u64 bit)
{
	if (w->cache & bit)
		return w->deny_cache & bit & ~w->populate ? PC_BLOCK_INTENT_CACHE : 0;
	if (w->drop & bit)
		return w->deny_origin & bit ? PC_BLOCK_INTENT_ORIGIN : 0;
	return w->deny_both & bit & ~w->populate ? PC_BLOCK_INTENT_ORIGIN : 0;
}

enum { NEEDS_BOTH = -1 };

/* Under the shard lock, which it releases. NEEDS_BOTH: come back with b. */
static int write_locked(struct pc_lookup *l, struct pc_both **b, bool no_pages)
{
	struct pc_cache *pc = l->pc;
	struct pc_block *blk = pc_blocks_find_hashed(&pc->blocks, l->oblock, l->hash);
	u64 bit = 1ULL << l->span.first;
	struct pc_pending *p;
	struct plan w;
	u16 kind;

	if (READ_ONCE(pc->cache_losing) && l->mode == PC_MODE_WRITEBACK)
		l->mode = PC_MODE_WRITETHROUGH;
	if (!blk)
		blk = admit(l);
	if (!blk)
		return write_not_valid(l, l->span.last);
	p = pc_pending_of(&pc->pendings, blk);
	if (blk->flags & PC_BLOCK_DEMOTING)
		return wait_busy(l, blk, p);
	make_plan(l, blk, p, &w);
	if (w.failed & bit)
		return fail(l);
	if (w.wait & bit)
		return wait_busy(l, blk, p);
	if (w.origin & bit)
		return write_not_valid(l, pc_lookup_run(l->span.first, l->span.last,
							w.origin & ~w.wait));
	if (blk->writes[0] >= PC_MAX_IN_FLIGHT || blk->writes[1] >= PC_MAX_IN_FLIGHT) {
		pc_lookup_cut(l, l->span.first);
		spin_unlock_irqrestore(l->lock, l->flags);
		pc_defer_bio(pc, l->bio);
		return DM_MAPIO_SUBMITTED;
	}
	kind = denied(&w, bit);
	if (kind)
		return wait_intent(l, blk, kind);
	/* somebody else on this block waits for a change of kind */
	if (p && pc_pending_wants_change(p))
		return wait_busy(l, blk, p);
	if (w.cache & bit)
		return write_cache(l, blk, p, &w);
	if (w.drop & bit)
		return write_drop(l, blk, p, &w);
	if (!*b && !no_pages) {
		spin_unlock_irqrestore(l->lock, l->flags);
		return NEEDS_BOTH;
	}
	p = pc_get_pending(pc, blk);
	if (*b && p) {
		int r = write_both(l, blk, p, &w, *b);

		*b = NULL;
		return r;
	}
	if (w.populate & bit) {
		if (p)
			pc_put_pending(pc, p);
		return write_not_valid(l, pc_lookup_run(l->span.first, l->span.last, w.populate));
	}
	if (!p)
		return wait_pool(l);
	pc_lookup_cut(l, l->span.first);
	spin_unlock_irqrestore(l->lock, l->flags);
	pc_wait_pages(pc, l->bio);
	return DM_MAPIO_SUBMITTED;
}

int pc_write_map(struct pc_lookup *l)
{
	struct pc_both *b = NULL;
	int r;

	spin_lock_irqsave(l->lock, l->flags);
	r = write_locked(l, &b, false);
	if (r == NEEDS_BOTH) {
		/* max_io_len keeps a bio below PC_MAX_COPY_SECTORS */
		b = alloc_both(l->pc, bio_sectors(l->bio),
			       l->in_map ? GFP_NOWAIT | __GFP_NOWARN : GFP_NOIO);
		spin_lock_irqsave(l->lock, l->flags);
		r = write_locked(l, &b, !b);
		free_both(l->pc, b);
	}
	return r;
}

int pc_write_init(struct pc_cache *pc)
{
	pc->both_pool = mempool_create_kmalloc_pool(MIN_BOTH, sizeof(struct pc_both));
	return pc->both_pool ? 0 : -ENOMEM;
}

void pc_write_exit(struct pc_cache *pc)
{
	mempool_destroy(pc->both_pool);
	pc->both_pool = NULL;
}
