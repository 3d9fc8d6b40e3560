// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] What happens to one bio (map.h): the door from dm, and the worker that retries.
 *
 * The decision is made for the first sub-block, under the shard lock, and takes as
 * many of the following as share it; the rest comes back as a bio of its own
 * (dm_accept_partial_bio, only while in map()). What must wait is first cut to one
 * sub-block, so a retry from the worker decides for all of it. The dm bio is
 * submitted at most once; what goes elsewhere goes as a clone (endio.c, write.c).
 */
#include <linux/ioprio.h>
#include <linux/slab.h>

#include "broken.h"
#include "cache.h"
#include "discard.h"
#include "endio.h"
#include "flush.h"
#include "map.h"
#include "read.h"
#include "write.h"

static int map_lookup(struct pc_cache *pc, struct bio *bio, struct pc_bio *pb, bool in_map)
{
	/* field by field: to clear it first would cost more than all of this */
	struct pc_lookup l;

	l.pc = pc;
	l.bio = bio;
	l.pb = pb;
	l.in_map = in_map;
	l.is_write = op_is_write(pb->opf);
	l.mode = READ_ONCE(pc->mode);
	l.oblock = pc_blocks_of_sector(&pc->blocks, pb->iter.bi_sector, &l.offset);
	l.span = pc_blocks_span(&pc->blocks, l.offset, pb->iter.bi_size >> SECTOR_SHIFT);
	l.hash = pc_blocks_hash(l.oblock);
	l.lock = &pc->shards[pc_blocks_shard_of_hash(l.hash)].lock;
	if (READ_ONCE(pc->cache_gone)) {
		pb->kind = PC_BIO_NONE;
		if (l.is_write) {
			/* its end is noted, or a FLUSH would find nothing to flush */
			pb->kind = PC_BIO_ORIGIN_WRITE;
			pb->first = l.span.first;
			pb->last = l.span.last;
			pc_origin_write_starts(pc, l.oblock, pb->first, pb->last);
		}
		pc_lookup_count(&l, false, true);
		return pc_lookup_to_origin(&l);
	}
	return l.is_write ? pc_write_map(&l) : pc_read_map(&l);
}

struct pc_stream_shard {
	struct pc_streams streams;
	spinlock_t lock;
} ____cacheline_aligned_in_smp;

/* All that was written lately may be a log. */
static void note_flush(struct pc_cache *pc)
{
	struct pc_stream_shard *sh;
	unsigned long flags;

	for (sh = pc->streams; sh < pc->streams + PC_NR_STREAM_TABLES; sh++) {
		if (pc_stream_is_marked(&sh->streams))
			continue;
		spin_lock_irqsave(&sh->lock, flags);
		pc_stream_flushed(&sh->streams);
		spin_unlock_irqrestore(&sh->lock, flags);
	}
}

/* True if the bio belongs to a stream that is to bypass: one longer than limit sectors. */
static bool is_sequential(struct pc_cache *pc, struct bio *bio, u32 limit)
{
	bool is_write = op_is_write(bio->bi_opf), may_bypass;
	u64 sector = bio->bi_iter.bi_sector, end = bio_end_sector(bio);
	u64 region = pc_stream_region(sector), end_region = pc_stream_region(end);
	u32 sectors = bio_sectors(bio);
	struct pc_stream_shard *sh = pc->streams + pc_stream_table(region), *next = sh;
	struct pc_stream moved;
	unsigned long flags;

	if (unlikely(end_region != region))
		next = pc->streams + pc_stream_table(end_region);
	spin_lock_irqsave(&sh->lock, flags);
	may_bypass = pc_stream_note(&sh->streams, is_write, sector, sectors) > limit &&
		!(is_write && pc_stream_is_log(&sh->streams, end, sectors));
	if (next != sh)
		pc_stream_last(&sh->streams, is_write, &moved);
	spin_unlock_irqrestore(&sh->lock, flags);
	if (next != sh) {
		spin_lock_irqsave(&next->lock, flags);
		pc_stream_enter(&next->streams, is_write, &moved);
		spin_unlock_irqrestore(&next->lock, flags);
	}
	if (is_write && (bio->bi_opf & REQ_FUA)) {
		note_flush(pc);
		return false;
	}
	return may_bypass && !(bio->bi_opf & (REQ_META | REQ_PRIO));
}

/* Streams and idle-class I/O (rule 17); once a bio, in the submitter's context. */
static void classify(struct pc_cache *pc, struct bio *bio, struct pc_bio *pb)
{
	u32 limit = READ_ONCE(pc->tunables.bypass_sequential);
	int class = IOPRIO_PRIO_CLASS(bio->bi_ioprio);

	if (class == IOPRIO_CLASS_NONE)
		class = IOPRIO_PRIO_CLASS(get_current_ioprio());
	if (class == IOPRIO_CLASS_IDLE) {
		pb->idle_class = true;
		pc_count(pc, PC_STAT_IDLE_CLASS);
	}
	if (limit && is_sequential(pc, bio, limit) && !PC_BREAK_RULE17) {
		pb->sequential = true;
		pc_count(pc, PC_STAT_SEQUENTIAL);
	}
}

int pc_map_bio(struct pc_cache *pc, struct bio *bio)
{
	struct pc_bio *pb = pc_bio(bio);

	memset_startat(pb, 0, cblock);
	if (bio->bi_opf & REQ_PREFLUSH) {
		note_flush(pc);
		pc_flush_bio(pc, bio);
		return DM_MAPIO_SUBMITTED;
	}
	pb->iter = bio->bi_iter;
	pb->opf = bio->bi_opf;
	pb->mask = 0;
	pb->populate = 0;
	pb->start_ns = 0;
	switch (bio_op(bio)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		break;
	case REQ_OP_DISCARD:
		pc_discard_bio(pc, bio);
		return DM_MAPIO_SUBMITTED;
	default:
		return DM_MAPIO_KILL;
	}
	if (pb->opf & REQ_FUA)
		pc_count(pc, PC_STAT_FUA);
	classify(pc, bio, pb);
	return map_lookup(pc, bio, pb, true);
}

/* Bios that were woken: from the lookup on, in a worker. */
static void deferred_work(struct work_struct *work)
{
	struct pc_cache *pc = container_of(work, struct pc_cache, deferred_work);
	struct bio_list list;
	struct bio *bio;

	spin_lock_irq(&pc->deferred_lock);
	list = pc->deferred;
	bio_list_init(&pc->deferred);
	spin_unlock_irq(&pc->deferred_lock);
	while ((bio = bio_list_pop(&list))) {
		if (pc_endio_continue(pc, bio))
			continue;
		bio->bi_iter = pc_bio(bio)->iter;
		if (map_lookup(pc, bio, pc_bio(bio), false) == DM_MAPIO_REMAPPED)
			dm_submit_bio_remap(bio, NULL);
		cond_resched();
	}
}

int pc_map_init(struct pc_cache *pc)
{
	unsigned int i;

	spin_lock_init(&pc->deferred_lock);
	bio_list_init(&pc->deferred);
	bio_list_init(&pc->pool_waiters);
	INIT_WORK(&pc->deferred_work, deferred_work);
	pc_read_init(pc);
	pc->streams = kvcalloc(PC_NR_STREAM_TABLES, sizeof(*pc->streams), GFP_KERNEL);
	if (!pc->streams)
		return -ENOMEM;
	for (i = 0; i < PC_NR_STREAM_TABLES; i++) {
		spin_lock_init(&pc->streams[i].lock);
		pc_stream_init(&pc->streams[i].streams);
	}
	return pc_write_init(pc);
}

void pc_map_exit(struct pc_cache *pc)
{
	pc_write_exit(pc);
	kvfree(pc->streams);
	pc->streams = NULL;
}
