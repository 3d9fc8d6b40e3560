/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A simulated disk: what its files share. See README.md for what a user sees.
 *
 * Life of a request: pcsim-target.c classifies the bio and counts it. If it
 * costs no time and needs no bookkeeping it goes straight to the backing
 * device. Otherwise it becomes a struct pcsim_req (in the bio's per-target
 * data) with up to two parts: time (pcsim-model.c: queue, servers, timer) and
 * data (pcsim-data.c: the transfer to or from the backing device, through the
 * undo log of pcsim-wcache.c where there is a volatile cache). Whoever drops
 * the last part finishes the bio; that may be the timer's interrupt.
 *
 * Locks: pcsim_mutex (control: messages, power domains, list of devices), then
 * pcsim.lock (a spinlock taken with interrupts off: queue, servers, undo log,
 * faults). Nothing sleeps or completes a bio under pcsim.lock.
 */
#ifndef PCSIM_H
#define PCSIM_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#define DM_MSG_PREFIX "pcsim"

#define PCSIM_BOUNCE_PAGES 16
#define PCSIM_MAX_FAULTS 32

enum pcsim_op { PCSIM_READ, PCSIM_WRITE, PCSIM_FLUSH, PCSIM_DISCARD, PCSIM_NR_OPS };

enum pcsim_move { PCSIM_MOVE_EARLY, PCSIM_MOVE_LATE, PCSIM_MOVE_RANDOM };

enum pcsim_discard { PCSIM_DISCARD_NONE, PCSIM_DISCARD_PASS, PCSIM_DISCARD_ZERO };

/* One value a key of the table line; all u32 so that one table parses them. */
struct pcsim_cfg {
	u32 servers;
	u32 read_us;
	u32 write_us;
	u32 flush_us;
	u32 discard_us;
	u32 seek_us_min;
	u32 seek_us_max;
	u32 rot_us;
	u32 bytes_per_us;
	u32 near_kb;
	u32 elevator;
	u32 move;
	u32 wcache;
	u32 wcache_kb;
	u32 ignore_flush;
	u32 discard;
	u32 lbs;
	u32 offset;
	u32 seed;
};

struct pcsim_stats {
	u64 ops[PCSIM_NR_OPS];
	u64 fua;
	u64 read_bytes;
	u64 write_bytes;
	u64 discard_bytes;
	u64 seeks;
	u64 seek_ns;
	u64 busy_ns;
	u64 active_ns;
	u64 errors;
};

/* Devices that lose power at the same instant. "dead" is written under
 * pcsim_mutex and read anywhere.
 */
struct pcsim_power {
	struct list_head link;
	struct list_head members;
	char name[32];
	bool dead;
};

struct pcsim_fault {
	struct list_head link;
	enum pcsim_op op;
	sector_t start;
	sector_t end;
	u64 left;			/* 0: for ever */
};

struct pcsim {
	struct dm_target *ti;
	struct dm_dev *dev;
	struct pcsim_cfg cfg;		/* single values change by message, READ_ONCE */
	const char *preset;
	struct pcsim_power *power;
	struct list_head member;	/* under pcsim_mutex */
	struct pcsim_stats __percpu *stats;
	bool backing_discards;

	atomic_t inflight;		/* requests (not bios remapped at once) */
	wait_queue_head_t idle_wait;	/* cut and kill wait for inflight == 0 */

	spinlock_t lock;
	/* pcsim-model.c, under lock */
	struct list_head queue;
	struct list_head held;
	struct rb_root_cached busy;	/* in service, by due time */
	unsigned int nr_busy;
	unsigned int held_mask;		/* also read without the lock */
	struct hrtimer timer;
	ktime_t armed;			/* KTIME_MAX: not armed */
	ktime_t link_free;
	ktime_t active_end;		/* the last due time so far */
	sector_t head;			/* end of the last transfer */
	sector_t run_start;		/* where the sequential run to head began */
	sector_t last_end;		/* same for requests that cost no time, no lock */
	u64 rnd;

	/* faults, under lock; nr_faults also read without it */
	struct list_head faults;
	unsigned int nr_faults;

	/* pcsim-data.c */
	struct workqueue_struct *wq;
	struct work_struct work;
	struct list_head work_list;	/* under lock */

	/* pcsim-wcache.c, under lock except where said */
	struct rb_root log;		/* versions by (unit, write) */
	struct list_head done;		/* versions of completed writes, oldest first */
	u64 epoch;			/* flushes seen */
	u64 log_bytes;
	u64 wseq;			/* owner: worker, and cut when drained */
	struct page *bounce[PCSIM_BOUNCE_PAGES];	/* same owner */
	struct bio_vec bvecs[PCSIM_BOUNCE_PAGES];	/* same owner */
	u64 cut_lost;			/* sectors, last cut; under pcsim_mutex */
	u64 cut_volatile;
};

struct pcsim_req {
	struct pcsim *sim;
	enum pcsim_op op;
	bool fua;
	bool late;			/* data moves when the time is over */
	blk_status_t status;
	atomic_t parts;
	sector_t sector;		/* of this target */
	unsigned int bytes;
	bio_end_io_t *end_io;
	void *private;
	ktime_t arrival;
	ktime_t due;
	struct list_head link;		/* time: queue, held or a local list */
	struct list_head work_link;	/* data: work_list */
	struct rb_node node;		/* busy */
	u64 epoch;			/* of a flush: covers writes completed before it */
	struct list_head versions;	/* undo log of this write, under sim->lock */
};

static inline bool pcsim_is_dead(const struct pcsim *sim)
{
	return READ_ONCE(sim->power->dead);
}

static inline struct bio *pcsim_req_bio(struct pcsim_req *req)
{
	return dm_bio_from_per_bio_data(req, sizeof(*req));
}

static inline struct block_device *pcsim_bdev(const struct pcsim *sim)
{
	return sim->dev->bdev;
}

/* A sector of the target on the backing device. */
static inline sector_t pcsim_backing_sector(const struct pcsim *sim, sector_t sector)
{
	return sector + sim->cfg.offset;
}

/* splitmix64's finaliser: decisions are a pure function of seed and place. */
static inline u64 pcsim_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* pcsim-target.c */
extern struct mutex pcsim_mutex;
int pcsim_config_set(struct pcsim_cfg *cfg, const char *key, const char *value, bool at_run_time);
void pcsim_stats_sum(struct pcsim *sim, struct pcsim_stats *sum);

/* pcsim-message.c */
int pcsim_message(struct dm_target *ti, unsigned int argc, char **argv, char *result,
		  unsigned int maxlen);
unsigned int pcsim_emit_stats(struct pcsim *sim, char *result, unsigned int maxlen, char sep);
bool pcsim_fault_hit(struct pcsim *sim, struct pcsim_req *req);
void pcsim_faults_clear(struct pcsim *sim);

/* pcsim-model.c; may be called from any context */
bool pcsim_model_is_timed(const struct pcsim *sim, enum pcsim_op op);
void pcsim_model_init(struct pcsim *sim);
void pcsim_model_exit(struct pcsim *sim);
void pcsim_model_add(struct pcsim_req *req);
void pcsim_model_hold(struct pcsim *sim, unsigned int mask);
void pcsim_model_release(struct pcsim *sim);
void pcsim_model_abort(struct pcsim *sim);

/* pcsim-data.c; put and queue from any context, the rest may sleep */
int pcsim_data_init(struct pcsim *sim);
void pcsim_data_exit(struct pcsim *sim);
bool pcsim_data_needs_worker(const struct pcsim *sim, enum pcsim_op op);
void pcsim_data_submit(struct pcsim_req *req);
void pcsim_data_queue(struct pcsim_req *req);
void pcsim_req_put(struct pcsim_req *req);
blk_status_t pcsim_data_rw(struct pcsim *sim, blk_opf_t opf, sector_t sector, unsigned int bytes,
			   unsigned int page_offset);

/* pcsim-wcache.c */
int pcsim_wcache_module_init(void);
void pcsim_wcache_module_exit(void);
void pcsim_wcache_init(struct pcsim *sim);
blk_status_t pcsim_wcache_log(struct pcsim_req *req);
void pcsim_wcache_flush_start(struct pcsim_req *req);
blk_status_t pcsim_wcache_finish(struct pcsim_req *req, blk_status_t status);
void pcsim_wcache_sync(struct pcsim *sim);
int pcsim_wcache_cut(struct pcsim *sim, u64 seed, const char *mode);
bool pcsim_wcache_mode_valid(const char *mode);

#endif
