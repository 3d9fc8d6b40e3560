/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel files do around pending.c, one critical section a function, for
 * one device that a test drives: each function here names the one that it mirrors.
 * Locks need no mirror: a step of the simulator is what happens under one lock.
 */
#ifndef PC_PENDING_SIM_H
#define PC_PENDING_SIM_H

#include "args.h"
#include "pending-world.h"

#define SIM_OPS 48u
#define SIM_FILLS 2u
#define SIM_COPIES 2u
#define SIM_KICK_URGENT 1u
#define SIM_KICK_FULL 2u
#define SIM_KICK_FUA 4u

enum sim_io {
	IO_CACHE_WRITE, IO_ORIGIN_WRITE, IO_BOTH_CACHE, IO_BOTH_ORIGIN, IO_DISCARD,
	IO_FILL_READ, IO_FILL_WRITE, IO_COPY_READ, IO_COPY_WRITE,
};

enum op_state {
	OP_FREE,
	OP_RUN,			/* to be looked up, by the worker */
	OP_WAIT,		/* on a pending object */
	OP_POOL,		/* for a pending object, or for pages */
	OP_IO,
	OP_ROUND,		/* a FLUSH that needs no record */
	OP_RECORD_FLUSHES, OP_RECORD_FUAS, OP_CYCLE_FLUSHES, OP_CYCLE_FUAS,
	OP_DISCARDING,
};

enum op_next { NEXT_LOOKUP, NEXT_ENDING, NEXT_RETRY_ORIGIN };

/* On the lists of a device's round. */
enum round_wait { WAIT_NONE, WAIT_NEXT, WAIT_NOW };

/* A bio. */
struct op {
	enum op_state state;
	enum op_next next;
	bool is_flush, is_discard, fua, bypass;
	u8 oblock, first, n;	/* cells */
	u16 version;
	u32 pending;		/* OP_WAIT */
	u64 mask, populate;
	u8 cblock, parity, left;
	enum round_wait wait[WORLD_NR_DEVICES];
	bool bad[2];		/* of a two-device write, or a FLUSH: cache, origin */
	bool ok;		/* NEXT_ENDING */
	struct world_snapshot snapshot;
};

struct sim_fill {
	bool used;
	u8 oblock, cblock;
	u64 mask;
};

enum copy_state { COPY_NONE, COPY_NO_PAGES, COPY_BLOCKED, COPY_IO };

struct sim_copy {
	enum copy_state state;
	u8 oblock, cblock, parity;
	u64 taken;
};

enum commit_state {
	COMMIT_IDLE, COMMIT_GATHER, COMMIT_COMPOSE, COMMIT_JOURNAL, COMMIT_COMMITTED,
	COMMIT_FINISH,
};

struct sim_commit {
	enum commit_state state;
	u32 wanted, taken, later;
	bool timer, full, any, cache_ok, origin_ok;
	bool flushing;			/* between gather and compose */
	bool flushed;			/* it had rounds */
	bool asked;			/* this commit is of what needs no flush */
	bool bad[WORLD_NR_DEVICES];
	enum round_wait wait[WORLD_NR_DEVICES];
	u32 left;
	int err;
	u32 cursor, cycle_cursor, nr, done, batch;
	u32 records[WORLD_CBLOCKS];
	u32 runs_wanted, runs_begun, runs_done;
};

/* Of one device. */
struct sim_round {
	bool unflushed, unflushed_copy;
	bool running, had_user, had_copy;
};

enum discard_state { DISCARD_NONE, DISCARD_DROP, DISCARD_COMMIT, DISCARD_RELEASE, DISCARD_IO };

struct sim_discard {
	enum discard_state state;
	struct op *op;
	u64 mask;
	bool dropped, pass;
	u32 run;		/* of the committer that it waits for */
};

struct sim {
	struct world m;
	struct unit_random r;
	struct pc_blocks b;
	struct pc_pendings ps;
	enum pc_mode mode;
	bool failed, errors, stop, verbose;
	/* flavours of a run */
	bool slow;		/* much happens while a flush is in flight */
	bool restless;		/* modes change often */
	bool bypasses;		/* some writes pass the cache by */
	bool narrow;		/* all of it happens to one origin block */
	u8 origin_writes[WORLD_OBLOCKS][WORLD_SUBS];
	int nr_must, nr_dirty, nr_intents, max_intents;
	struct op ops[SIM_OPS];
	struct sim_fill fills[SIM_FILLS];
	struct sim_copy copies[SIM_COPIES];
	struct sim_commit commit;
	struct sim_round round[WORLD_NR_DEVICES];
	struct sim_discard discard;
	u32 nr_acked, nr_flushed, nr_commits;
};

#define sim_log(s, ...)					\
	do {						\
		if ((s)->verbose) {			\
			printf("%6u ", (s)->m.now);	\
			printf(__VA_ARGS__);		\
			printf("\n");			\
		}					\
	} while (0)

static inline u16 sim_cells(u64 subs)
{
	u16 cells = 0;
	u32 i;

	for (i = 0; i < WORLD_SUBS; i++)
		if (subs & 1ull << i)
			cells |= 3u << 2 * i;
	return cells;
}

static inline bool sim_one_in(struct sim *s, u32 n)
{
	return unit_random_one_in(&s->r, n);
}

/* pending-sim.c: cache.c, lookup.c, reclaim.c, intent.c */
void sim_init(struct sim *s, u64 iteration);
void sim_exit(struct sim *s);
/* Memory as the durable records say: after world_cut(), or after a clean stop. */
void sim_load(struct sim *s);
struct pc_pending *sim_get_pending(struct sim *s, struct pc_block *blk);
void sim_put_pending(struct sim *s, struct pc_pending *p);
void sim_wait_pending(struct sim *s, struct pc_pending *p, struct op *op);
void sim_wake_pending(struct sim *s, struct pc_pending *p);
void sim_wake_pool(struct sim *s);
void sim_update_dirty(struct sim *s, struct pc_block *blk);
void sim_update_must(struct sim *s, struct pc_pending *p, u64 old);
void sim_drop(struct sim *s, struct pc_block *blk, struct pc_pending *p, u64 mask);
u64 sim_origin_writes(struct sim *s, u8 oblock, u64 mask);
void sim_count_origin(struct sim *s, u8 oblock, u64 mask, int by);
struct pc_block *sim_insert(struct sim *s, u8 oblock);
bool sim_demote(struct sim *s, struct pc_block *blk, bool with_flush);
void sim_reclaim_finish(struct sim *s, struct pc_block *blk, struct pc_pending *p);
void sim_intent_changes(struct sim *s, u16 before, u16 after);
bool sim_intent_wait(struct sim *s, struct pc_block *blk, u16 kind, struct op *op);
void sim_intent_sweep(struct sim *s);
static inline bool sim_has_room(struct sim *s)
{
	return s->nr_intents < s->max_intents;
}

/* pending-sim-bio.c: write.c, endio.c and the entry of flush.c */
struct op *sim_new_op(struct sim *s);
void sim_run_op(struct sim *s, struct op *op);
void sim_end_write(struct sim *s, struct op *op, bool ok);
void sim_end_write_io(struct sim *s, struct op *op, enum sim_io kind, bool ok);
void sim_read_error(struct sim *s, struct pc_block *blk, u64 mask);
u64 sim_undurable_drops(const struct pc_block *blk, const struct pc_pending *p, u64 mask);

/* pending-sim-commit.c: flush.c, round.c and commit.c */
void sim_kick(struct sim *s, u32 how);
void sim_schedule(struct sim *s);
u32 sim_commit_run(struct sim *s);
void sim_note(struct sim *s, enum world_device d);
void sim_flush_bio(struct sim *s, struct op *op);
bool sim_step_commit(struct sim *s);
bool sim_step_round(struct sim *s, enum world_device d);

/* pending-sim-move.c: fill.c, writeback.c, discard.c */
bool sim_start_fill(struct sim *s, u8 oblock, u64 mask);
void sim_end_fill_io(struct sim *s, struct sim_fill *f, struct world_io *io, bool ok);
bool sim_start_copy(struct sim *s, u32 cblock);
bool sim_step_copy(struct sim *s, struct sim_copy *c);
void sim_end_copy_io(struct sim *s, struct sim_copy *c, struct world_io *io, bool ok);
bool sim_step_discard(struct sim *s);
void sim_end_discard_io(struct sim *s);

#endif
