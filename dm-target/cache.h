/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] One cached device: what the engines and the mapper share, and the small steps
 * that they have in common (pending objects, waiting and waking, dirty counts).
 *
 * Lock order: shard lock -> pool lock or free lock or deferred lock or the policy
 * lock (leaves). All spinlocks are taken with interrupts off, because bios
 * complete in interrupts. Nothing under a spinlock sleeps or submits I/O.
 */
#ifndef PC_CACHE_H
#define PC_CACHE_H

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/kfifo.h>
#include <linux/mempool.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "args.h"
#include "blocks.h"
#include "pending.h"
#include "commit.h"
#include "host.h"
#include "round.h"
#include "stream.h"

#define DM_MSG_PREFIX "polycache"

#define PC_NR_ORIGIN_WRITES 4096u	/* hashed counters of rule 6 */
#define PC_MAX_COPY_SECTORS 2048u	/* one piece of a fill, copy or two-device write */
#define PC_IDLE_MS 100u			/* the origin counts as idle after this (section 3) */

struct pc_shard {
	spinlock_t lock;
} ____cacheline_aligned_in_smp;

/* Counters of `stats`; the first six are also the status line's and durable. */
enum pc_stat {
	PC_STAT_READ_HIT, PC_STAT_READ_MISS, PC_STAT_WRITE_HIT, PC_STAT_WRITE_MISS,
	PC_STAT_DEMOTION, PC_STAT_PROMOTION,
	PC_STAT_READ_BYPASS, PC_STAT_WRITE_BYPASS, PC_STAT_SEQUENTIAL, PC_STAT_IDLE_CLASS,
	PC_STAT_FLUSH, PC_STAT_FUA, PC_STAT_DISCARD,
	PC_STAT_FILL, PC_STAT_FILL_SECTORS, PC_STAT_FILL_ERROR,
	PC_STAT_POPULATE, PC_STAT_PARTIAL_WRITE,
	PC_STAT_WRITEBACK, PC_STAT_WRITEBACK_SECTORS, PC_STAT_WRITEBACK_ERROR,
	PC_STAT_TOUCHED,
	PC_STAT_WAIT_BUSY, PC_STAT_WAIT_COMMIT, PC_STAT_WAIT_POOL,
	PC_STAT_NO_FREE, PC_STAT_NO_PENDING, PC_STAT_NO_PAGES,
	PC_STAT_CACHE_READ_ERROR, PC_STAT_CACHE_WRITE_ERROR, PC_STAT_ORIGIN_ERROR,
	PC_STAT_DROPPED,
	PC_NR_STATS,
};

struct pc_stats {
	u64 n[PC_NR_STATS];
};

/* A range that a partial write left uncached: filled in the background. */
struct pc_after_fill {
	u64 oblock;
	u32 first;
	u32 last;
};

/* A cycle of the committer, waiting for a device's round. */
struct pc_cycle_wait {
	struct pc_round_wait wait;
	struct pc_cache *pc;
	int err;
};

/* A FLUSH bio, waiting for a device's round. */
struct pc_bio_wait {
	struct pc_round_wait wait;
	struct pc_cache *pc;
	struct bio *bio;
};

struct pc_cache {
	struct dm_target *ti;
	struct dm_dev *metadata_dev;
	struct dm_dev *cache_dev;
	struct dm_dev *origin_dev;
	char name[32];			/* for workqueues and messages */
	u32 block_sectors;
	bool metadata2;			/* as given, echoed */
	bool discard_passdown;		/* as given */
	bool origin_discards;		/* io_hints: the origin supports them */

	enum pc_mode mode;		/* READ_ONCE: per bio at lookup */
	enum pc_mode table_mode;	/* what the table said */
	struct pc_tunables tunables;	/* message lock to write, READ_ONCE to read */
	struct mutex message_lock;

	/* durable half */
	struct pc_metaio *metaio;
	struct pc_metadata *md;		/* md_lock to change */
	spinlock_t md_lock;
	struct pc_commit commit;
	bool failed;			/* metadata failed: READ_ONCE; until it is loaded anew */
	bool loaded;			/* preresume, postsuspend */
	bool use_hints;			/* of the load under way: the hints are this policy's */
	bool running;			/* from resume to postsuspend: READ_ONCE */
	struct list_head instances;	/* target.c's list of all, its lock */
	bool is_writer;			/* the same lock: may write the metadata now */

	/* in-core half */
	struct pc_blocks blocks;
	spinlock_t free_lock;
	u32 free_target;		/* size of the free pool */
	atomic_t free_demand;		/* somebody found the pool empty */
	struct pc_shard shards[PC_NR_SHARDS];
	struct pc_pendings pendings;
	spinlock_t pool_lock;
	atomic_t *origin_writes;	/* hashed: rule 6 */
	struct pc_policy_host *policy;

	atomic_t nr_dirty;		/* blocks with PC_BLOCK_DIRTY */
	atomic_t nr_resident;
	atomic_t nr_demoting;
	atomic_t nr_stream;		/* blocks with PC_BLOCK_STREAM */
	atomic_t nr_must;		/* pending objects with must bits */
	atomic_t nr_waiting;		/* bios on pending objects and pool_waiters */
	unsigned long *dirty_map;	/* a bit a block with dirty sub-blocks; atomic bit ops */

	/* intents (rule 9), intent.c */
	unsigned long *intent_map;	/* a bit a block that has one on disk; atomic bit ops */
	atomic_t nr_intents;
	u32 max_intents;
	struct delayed_work intent_work;

	/* flushes, flush.c */
	struct pc_round cache_round, origin_round;
	struct workqueue_struct *flush_wq;
	spinlock_t flush_lock;
	struct bio_list record_flushes;	/* flush lock: FLUSH and FUA that need records */
	struct bio_list record_fuas;	/* flush lock: their data is durable already */
	/* owner of the following: the committer */
	struct bio_list cycle_flushes;	/* waiting for the cycle under way */
	struct bio_list cycle_fuas;
	struct pc_cycle_wait cycle_waits[2];	/* for the cache's round, the origin's */
	atomic_t cycle_left;
	bool cycle_full, cycle_flushed, cycle_cache_ok, cycle_origin_ok;
	u32 cycle_cursor, asked_cursor;
	u16 flush_failures;		/* READ_ONCE: cycles whose device flushes failed */

	/* bios that wait or must be handled in a worker */
	spinlock_t deferred_lock;
	struct bio_list deferred;	/* retried from the lookup on */
	struct bio_list pool_waiters;	/* no pending object or no pages */
	struct work_struct deferred_work;
	struct workqueue_struct *wq;

	/* fills */
	mempool_t *fill_pool;
	mempool_t *both_pool;
	mempool_t *copy_pool;
	struct bio_set bios;
	struct pc_pages *pages;
	atomic_t nr_background;		/* fills, copies, discards in flight */
	wait_queue_head_t background_wait;
	bool stop_background;		/* presuspend: start nothing unasked */
	spinlock_t after_lock;
	struct pc_after_fill after[64];	/* after lock: ring of partial writes' fills */
	u32 after_head, after_tail;
	struct work_struct after_work;
	struct pc_fill_tuner *tuner;
	struct bio_list discards;	/* deferred lock */
	struct work_struct discard_work;
	struct workqueue_struct *discard_wq;	/* its work waits for bios and commits */
	wait_queue_head_t discard_wait;
	struct list_head fill_queue;	/* deferred lock: fills with data to write */
	struct work_struct fill_work;

	/* writeback and reclaim */
	struct pc_writeback *writeback;
	struct work_struct reclaim_work;
	bool reclaim_stuck;		/* nothing clean to demote: writeback must help */
	unsigned long reclaim_retry;	/* jiffies; READ_ONCE: no search before, if stuck */
	unsigned long last_user_origin;	/* jiffies of the last user I/O to the origin */
	bool cleaner;			/* the policy wants all blocks clean */
	bool want_passthrough;		/* once everything is clean on disk (rule 25) */
	struct delayed_work tick_work;	/* every second: policy, mode changes under way */
	bool flush_wanted;		/* message `flush` */

	struct pc_stream_shard *streams;	/* PC_NR_STREAM_TABLES of them, map.c */

	atomic_t cache_errors;		/* in a row, loss.c */
	struct work_struct loss_work;
	bool cache_losing;		/* READ_ONCE under the shard lock: no new dirty data */
	bool cache_gone;		/* EMPTY is durable: the origin alone serves */

	struct pc_stats __percpu *stats;
	u64 base_counters[PC_NR_COUNTERS];	/* lifetime, from the superblock */
};

/* What end_io does with a bio. */
enum pc_bio_kind {
	PC_BIO_NONE,		/* nothing to do */
	PC_BIO_CACHE_READ,
	PC_BIO_CACHE_WRITE,
	PC_BIO_ORIGIN_READ,
	PC_BIO_ORIGIN_WRITE,
	PC_BIO_ENDING,		/* waits for the drop to be durable, then ends with status */
	PC_BIO_RETRY_ORIGIN,	/* a failed cache read or populating write, a failed fill's reader */
	PC_BIO_FLUSH_WAIT,	/* FUA: waits for a record */
	PC_BIO_DISCARD,		/* on its way to the origin */
	PC_BIO_DONE,
};

/* Per-bio data; owner: whoever has the bio. */
struct pc_bio {
	union {
		struct {		/* reads, writes, discards */
			struct bvec_iter iter;	/* as mapped, sector relative to the target */
			blk_opf_t opf;
			u64 mask;	/* sub-blocks written, or to be dropped */
			u64 populate;	/* those of mask that were not valid */
			u64 start_ns;	/* origin reads: for the seek estimate */
			struct pc_cache *pc;	/* for ends of clones */
		};
		struct {		/* FLUSH */
			struct pc_bio_wait flush_waits[2];
			atomic_t flush_left;
			int flush_err;
		};
	};
	u32 cblock;
	u8 kind;
	u8 parity;
	u8 first, last;		/* counted sub-blocks of an origin write */
	bool counted : 1;	/* hit or miss was counted */
	bool seen : 1;		/* the policy was asked whether it admits the block */
	bool sequential : 1;
	bool idle_class : 1;
	bool origin_counted : 1;
	bool fill_after : 1;	/* a partial write: fill afterwards */
	bool waits_record : 1;	/* since flush_failures of pc were these */
	u16 flush_failures;
	blk_status_t status;
};

/*
 * What our own bios take over of a user's flags. Not: what belongs to its bio set
 * (REQ_ALLOC_CACHE), to its poller, or to a submitter that would rather not wait.
 */
#define PC_CLONE_OPF (REQ_OP_MASK | REQ_SYNC | REQ_META | REQ_PRIO | REQ_FUA | REQ_IDLE | \
		      REQ_BACKGROUND)

static inline struct pc_bio *pc_bio(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct pc_bio));
}

static inline void pc_count(struct pc_cache *pc, enum pc_stat s)
{
	this_cpu_inc(pc->stats->n[s]);
}

static inline void pc_count_add(struct pc_cache *pc, enum pc_stat s, u64 n)
{
	this_cpu_add(pc->stats->n[s], n);
}

static inline spinlock_t *pc_shard_lock(struct pc_cache *pc, pc_oblock_t o)
{
	return &pc->shards[pc_blocks_shard(o)].lock;
}

static inline sector_t pc_cache_sector(struct pc_cache *pc, u32 cblock)
{
	return (sector_t)cblock * pc->block_sectors;
}

/* Total of a counter since the module's instance started (stats_reset aside). */
u64 pc_stat_sum(struct pc_cache *pc, enum pc_stat s);

/*
 * Locks the shard of a mapped cache block found by its number, as scans do. Returns
 * NULL, with nothing locked, if it is not mapped.
 */
struct pc_block *pc_lock_cblock(struct pc_cache *pc, u32 cblock, spinlock_t **lock,
				unsigned long *flags);

/* Under the shard lock. The block's pending object, made if need be; NULL: pool empty. */
struct pc_pending *pc_get_pending(struct pc_cache *pc, struct pc_block *blk);
/* Under the shard lock. Frees the object if nothing needs it any more. */
void pc_put_pending(struct pc_cache *pc, struct pc_pending *p);

/* Under the shard lock. The bio is retried after the next event of the block. */
void pc_wait_pending(struct pc_cache *pc, struct pc_pending *p, struct bio *bio);

/*
 * Asked before a write waits for a record. False: device flushes that records wait for
 * failed twice since it began to, so that the record may never come, and the write is to
 * get EIO (rule 15). Twice, because the first may have begun before the write's change
 * was there to be recorded; a record that needs no flush of the failed device has come
 * by then.
 */
bool pc_may_wait_record(struct pc_cache *pc, struct bio *bio);
void pc_wake_pending(struct pc_cache *pc, struct pc_pending *p);
/*
 * Any context, no lock: waits until a pending object / pages come back; all of these
 * are tried again together. pc_defer_bio: is tried again at once, in the worker.
 */
void pc_wait_pool(struct pc_cache *pc, struct bio *bio);
void pc_wait_pages(struct pc_cache *pc, struct bio *bio);
void pc_wake_pool(struct pc_cache *pc);
void pc_defer_bio(struct pc_cache *pc, struct bio *bio);

/* Under the shard lock: after blk->dirty or the pending object changed. */
void pc_update_dirty(struct pc_cache *pc, struct pc_block *blk);
/* Under the shard lock. must bits are added or have gone. */
void pc_add_must(struct pc_cache *pc, struct pc_pending *p, u64 mask);
void pc_update_must(struct pc_cache *pc, struct pc_pending *p, u64 old);

/* Rule 6. mask: sub-blocks of o with a user's write to the origin in flight. */
u64 pc_origin_writes(struct pc_cache *pc, pc_oblock_t o, u64 mask);
void pc_origin_write_starts(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last);
void pc_origin_write_ends(struct pc_cache *pc, pc_oblock_t o, u32 first, u32 last);

/* Background work that suspend waits for. */
void pc_background_get(struct pc_cache *pc);
void pc_background_put(struct pc_cache *pc);
/* May sleep. None is in flight, and the last one has left pc_background_put(). */
void pc_background_wait(struct pc_cache *pc);

/* Under shard lock: drop sub-blocks for good. p is there if any was valid on disk. */
void pc_drop(struct pc_cache *pc, struct pc_block *blk, struct pc_pending *p, u64 mask);

/* Ends a bio that dm gave us and that we may have submitted before. Any context. */
void pc_end_bio(struct bio *bio, blk_status_t status);

static inline bool pc_is_cleaning(struct pc_cache *pc)
{
	return READ_ONCE(pc->cleaner) || READ_ONCE(pc->flush_wanted) ||
	       READ_ONCE(pc->mode) != PC_MODE_WRITEBACK;
}

/* The user is at the origin: background work keeps small. */
static inline bool pc_origin_is_idle(struct pc_cache *pc)
{
	return time_after(jiffies, READ_ONCE(pc->last_user_origin) +
				   msecs_to_jiffies(PC_IDLE_MS));
}

#endif
