// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The ends of bios (endio.h).
 *
 * Errors are judged here, under the shard lock: a failed read of a clean sub-block
 * is repeated from the origin, a failed populating write goes to the origin, both as
 * our own clone from the worker, because the dm bio is submitted at most once.
 */
#include "broken.h"
#include "cache.h"
#include "discard.h"
#include "endio.h"
#include "flush.h"
#include "loss.h"
#include "read.h"
#include "write.h"
#include "writeback.h"

static struct pc_block *lock_block(struct pc_cache *pc, struct pc_bio *pb, spinlock_t **lock,
				   unsigned long *flags)
{
	/* the bio holds the block in flight: its mapping is stable */
	struct pc_block *blk = &pc->blocks.table[pb->cblock];

	*lock = pc_shard_lock(pc, pc_blocks_oblock(blk));
	spin_lock_irqsave(*lock, *flags);
	return blk;
}

static int end_cache_read(struct pc_cache *pc, struct bio *bio, blk_status_t *error)
{
	struct pc_bio *pb = pc_bio(bio);
	int r = DM_ENDIO_DONE;
	struct pc_block *blk;
	struct pc_pending *p;
	unsigned long flags;
	spinlock_t *lock;

	blk = lock_block(pc, pb, &lock, &flags);
	blk->holds--;
	if (unlikely(*error)) {
		pc_count(pc, PC_STAT_CACHE_READ_ERROR);
		pc_loss_note(pc, true);
		if (!(blk->dirty & pb->mask) && !PC_BREAK_RULE15) {
			p = pc_get_pending(pc, blk);
			if (p) {
				pc_count(pc, PC_STAT_DROPPED);
				pc_drop(pc, blk, p, pb->mask & ~p->busy);
				pc_put_pending(pc, p);
			}
			pb->kind = PC_BIO_RETRY_ORIGIN;
			r = DM_ENDIO_INCOMPLETE;
		}
	} else {
		pc_loss_note(pc, false);
	}
	spin_unlock_irqrestore(lock, flags);
	if (r == DM_ENDIO_INCOMPLETE)
		pc_defer_bio(pc, bio);
	return r;
}

static int end_cache_write(struct pc_cache *pc, struct bio *bio, blk_status_t *error)
{
	struct pc_bio *pb = pc_bio(bio);
	bool wait = false, durable = false, to_origin = false;
	u64 need = 0, stays_whole;
	struct pc_block *blk;
	struct pc_pending *p;
	unsigned long flags;
	spinlock_t *lock;
	struct pc_span s;
	u32 offset;

	/* what failed may have landed all the same, and be read and copied */
	if (*error || !(pb->opf & REQ_FUA))
		pc_round_note(&pc->cache_round);
	blk = lock_block(pc, pb, &lock, &flags);
	p = pc_pending_of(&pc->pendings, blk);
	if (pb->populate)
		p->busy &= ~pb->populate;
	if (likely(!*error)) {
		pc_loss_note(pc, false);
		blk->valid |= pb->populate;
		blk->dirty |= pb->populate;
		need = pc_pending_needs_record(blk, p, pb->mask);
		if (need)
			pc_add_must(pc, p, need);
		if (need && (pb->opf & REQ_FUA)) {
			pc_blocks_of_sector(&pc->blocks, pb->iter.bi_sector, &offset);
			s = pc_blocks_span(&pc->blocks, offset, pb->iter.bi_size >> SECTOR_SHIFT);
			stays_whole = pc_span_whole(&s);
			durable = !(pb->mask & ~stays_whole);
			if (durable)
				p->durable |= pb->mask;
			wait = true;
		}
	} else {
		pc_count(pc, PC_STAT_CACHE_WRITE_ERROR);
		pc_loss_note(pc, true);
		if (pb->populate && pb->populate == pb->mask) {
			/* counted in the section that clears busy: rule 6 */
			pb->first = __ffs64(pb->mask);
			pb->last = __fls(pb->mask);
			pb->origin_counted = true;
			pc_origin_write_starts(pc, pc_blocks_oblock(blk), pb->first, pb->last);
			to_origin = true;
		}
	}
	pc_write_leaves(pc, blk, p, pb->parity);
	pc_update_dirty(pc, blk);
	if (p) {
		pc_commit_schedule(&pc->commit);
		pc_wake_pending(pc, p);
		pc_put_pending(pc, p);
	}
	spin_unlock_irqrestore(lock, flags);
	pc_writeback_schedule(pc);
	if (to_origin) {
		pb->kind = PC_BIO_RETRY_ORIGIN;
		pc_defer_bio(pc, bio);
		return DM_ENDIO_INCOMPLETE;
	}
	if (wait) {
		pb->kind = PC_BIO_FLUSH_WAIT;
		pc_flush_fua(pc, bio, durable);
		return DM_ENDIO_INCOMPLETE;
	}
	return DM_ENDIO_DONE;
}

/* The counted part of a write to the origin is over. */
static void leave_origin(struct pc_cache *pc, struct pc_bio *pb, blk_status_t status)
{
	pc_oblock_t o;
	u32 offset;

	if (status)
		pc_count(pc, PC_STAT_ORIGIN_ERROR);
	/* what failed may have landed all the same, and be read by a fill */
	if (status || !(pb->opf & REQ_FUA))
		pc_round_note(&pc->origin_round);
	o = pc_blocks_of_sector(&pc->blocks, pb->iter.bi_sector, &offset);
	pc_origin_write_ends(pc, o, pb->first, pb->last);
	if (pb->fill_after && !status)
		pc_read_fill_later(pc, o, pb->first, pb->last);
}

int pc_endio(struct pc_cache *pc, struct bio *bio, blk_status_t *error)
{
	struct pc_bio *pb = pc_bio(bio);
	u8 kind = pb->kind;

	pb->kind = PC_BIO_DONE;
	switch (kind) {
	case PC_BIO_CACHE_READ:
		return end_cache_read(pc, bio, error);
	case PC_BIO_CACHE_WRITE:
		return end_cache_write(pc, bio, error);
	case PC_BIO_ORIGIN_WRITE:
		leave_origin(pc, pb, *error);
		break;
	case PC_BIO_DISCARD:
		pc_discard_end(pc, bio);
		break;
	case PC_BIO_ORIGIN_READ:
		if (*error)
			pc_count(pc, PC_STAT_ORIGIN_ERROR);
		else
			pc_read_note_latency(pc, pb);
		break;
	default:
		break;
	}
	return DM_ENDIO_DONE;
}

static void end_retry(struct bio *clone)
{
	struct bio *bio = clone->bi_private;
	struct pc_bio *pb = pc_bio(bio);
	struct pc_cache *pc = pb->pc;
	blk_status_t status = clone->bi_status;

	bio_put(clone);
	if (pb->origin_counted)
		leave_origin(pc, pb, status);
	else if (status)
		pc_count(pc, PC_STAT_ORIGIN_ERROR);
	pc_end_bio(bio, status);
}

/* The same request to the origin, as a clone: the dm bio was submitted already. */
static void retry_origin(struct pc_cache *pc, struct bio *bio)
{
	struct pc_bio *pb = pc_bio(bio);
	struct bio *clone;

	bio->bi_iter = pb->iter;
	bio->bi_status = BLK_STS_OK;
	clone = bio_alloc_clone(pc->origin_dev->bdev, bio, GFP_NOIO, &pc->bios);
	clone->bi_opf = pb->opf & PC_CLONE_OPF;
	clone->bi_private = bio;
	clone->bi_end_io = end_retry;
	pb->pc = pc;
	WRITE_ONCE(pc->last_user_origin, jiffies);
	submit_bio_noacct(clone);
}

/* Waits until the drop that it caused is durable (rule 15). */
static void try_ending(struct pc_cache *pc, struct bio *bio)
{
	struct pc_bio *pb = pc_bio(bio);
	bool wait = false, failed;
	struct pc_block *blk;
	struct pc_pending *p;
	unsigned long flags;
	spinlock_t *lock;
	pc_oblock_t o;
	u32 offset;

	o = pc_blocks_of_sector(&pc->blocks, pb->iter.bi_sector, &offset);
	lock = pc_shard_lock(pc, o);
	spin_lock_irqsave(lock, flags);
	/* under the lock: flush.c wakes those who saw false here */
	failed = READ_ONCE(pc->failed);
	blk = pc_blocks_find(&pc->blocks, o);
	p = blk ? pc_pending_of(&pc->pendings, blk) : NULL;
	if (p && pc_write_undurable_drops(blk, p, pb->mask)) {
		wait = !failed && pc_may_wait_record(pc, bio);
		if (!wait)
			pb->status = BLK_STS_IOERR;
	}
	if (wait) {
		p->flags |= PC_PENDING_URGENT;
		pc_wait_pending(pc, p, bio);
		pc_commit_kick(&pc->commit, PC_COMMIT_FULL);
	}
	spin_unlock_irqrestore(lock, flags);
	if (!wait)
		pc_end_bio(bio, pb->status);
}

bool pc_endio_continue(struct pc_cache *pc, struct bio *bio)
{
	switch (pc_bio(bio)->kind) {
	case PC_BIO_RETRY_ORIGIN:
		retry_origin(pc, bio);
		return true;
	case PC_BIO_ENDING:
		try_ending(pc, bio);
		return true;
	default:
		return false;
	}
}
