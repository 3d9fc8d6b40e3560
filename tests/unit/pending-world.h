/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two devices with volatile write caches, what users wrote and may rely on, and one
 * durable record for each cache block: the world in which pending.c has to keep its
 * promise (DESIGN section 6).
 *
 * Contents are versions: a number for each write, that names the origin block and
 * the cells it was made for. A cell is half a sub-block, so that partial and torn
 * writes show. A cell of a device holds every version that a power cut might leave
 * there; the last of them is what a read returns.
 */
#ifndef PC_PENDING_WORLD_H
#define PC_PENDING_WORLD_H

#include "pending.h"
#include "unit.h"

#define WORLD_OBLOCKS 4u
#define WORLD_CBLOCKS 3u
#define WORLD_SUBS 4u
#define WORLD_CELLS (2 * WORLD_SUBS)	/* of a block */
#define WORLD_CELL_SECTORS 4u
#define WORLD_BLOCK_SECTORS (WORLD_CELLS * WORLD_CELL_SECTORS)
#define WORLD_MAX_ENTRIES 48u
#define WORLD_MAX_IOS 48u
#define WORLD_MAX_VERSIONS 4096u
#define WORLD_GARBAGE 0u		/* what nobody may ever read */

enum world_device { WORLD_CACHE, WORLD_ORIGIN, WORLD_NR_DEVICES };

struct world_entry {
	u16 version;
	u16 io;			/* that wrote it */
	bool done;		/* it has completed */
	bool seen;		/* ... before the flush in flight was submitted */
};

struct world_cell {
	u8 n;			/* the first is durable, unless a later one survives */
	struct world_entry e[WORLD_MAX_ENTRIES];
};

struct world_version {
	u8 oblock;
	u16 cells;
	u32 submitted;
	u32 ended;		/* ~0: not yet */
};

/* One request to a device, applied cell by cell between submission and end. */
struct world_io {
	bool used, is_read, fua;
	u8 device, block;
	u16 id;
	u16 cells, todo;
	u16 version[WORLD_CELLS];	/* written, or read */
	u8 kind;			/* of the owner */
	void *owner;
};

/* What users may rely on, for a cell of the origin. */
struct world_promise {
	u32 live;		/* a version that ended before this was overwritten ... */
	u32 durable;		/* ... and that is durable */
	u32 discarded;		/* what began before this is not promised */
};

/* What a FLUSH promises: noted when it arrives, kept when it succeeds. */
struct world_snapshot {
	struct world_promise cell[WORLD_OBLOCKS][WORLD_CELLS];
};

struct world_record {
	struct pc_disk disk;
	u8 oblock;
};

struct world {
	struct unit_random *r;
	u32 now;
	u16 nr_versions, next_io;
	struct world_version version[WORLD_MAX_VERSIONS];
	struct world_cell cell[WORLD_NR_DEVICES][WORLD_OBLOCKS][WORLD_CELLS];
	struct world_promise promise[WORLD_OBLOCKS][WORLD_CELLS];
	struct world_io io[WORLD_MAX_IOS];
	struct world_record record[WORLD_CBLOCKS];	/* durable */
	struct world_record next[WORLD_CBLOCKS];	/* in the commit in flight, or failed */
	bool has_next[WORLD_CBLOCKS];
};

void world_init(struct world *m, struct unit_random *r);

u16 world_new_version(struct world *m, u8 oblock, u16 cells);
/* A user's write has ended. is_ok: it counts from now on; is_durable: for ever. */
void world_write_ended(struct world *m, u16 version, bool is_ok, bool is_durable);
/* Nothing is promised of these cells any more. */
void world_discarded(struct world *m, u8 oblock, u16 cells);
void world_flush_begins(struct world *m, struct world_snapshot *s);
void world_flush_succeeded(struct world *m, const struct world_snapshot *s);

/* Requests. version: one for all cells; or set io->version[] after. */
struct world_io *world_submit(struct world *m, enum world_device d, u8 block, u16 cells,
			      bool is_read, bool fua, u16 version);
/* Some of its cells; returns whether all are done now. */
bool world_apply(struct world *m, struct world_io *io);
/* Its end; *io is free for others after. */
void world_end(struct world *m, struct world_io *io, bool is_ok);
void world_flush_submit(struct world *m, enum world_device d);
void world_flush_end(struct world *m, enum world_device d, bool is_ok);
/* Versions kept anywhere in a cell: time for a flush, if there are many. */
bool world_is_crowded(const struct world *m);
/* What a read returns now. */
u16 world_read(const struct world *m, enum world_device d, u8 block, u32 cell);
/* May a reader see it? */
bool world_is_live(const struct world *m, u16 version, u8 oblock, u32 cell);

/* The invariant for every member of the set. NULL, or what is wrong. */
const char *world_check(struct world *m);
/* The origin alone must do, as it is and after a cut (rule 24). */
const char *world_check_origin_alone(struct world *m);
/*
 * A power cut, and the start after it: records are settled as rule 9 says, all that is
 * not to be read again becomes garbage, what can be read is promised for ever.
 */
const char *world_cut(struct world *m);

#endif
