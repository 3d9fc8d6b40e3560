/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Sequential detection: small tables of streams, matched by where their last
 * request ended, replaced least recently used first; and the memory of where
 * flushes came lately (DESIGN rule 17: write-ahead logs are no streams).
 *
 * A struct pc_streams is the table of some regions of the origin, so that requests
 * to different regions need no common lock: the caller keeps PC_NR_STREAM_TABLES of
 * them, each under a lock of its own, asks pc_stream_table which one knows a place,
 * and carries a stream over that grows out of its region. Reads and writes have
 * tables of their own. The caller holds the table's lock; time is a counter of
 * requests, kept inside.
 */
#ifndef PC_STREAM_H
#define PC_STREAM_H

#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/types.h>

#define PC_NR_STREAM_TABLES 32u
#define PC_NR_STREAMS 16
/* regions of 4 MiB (8192 sectors) */
#define PC_STREAM_REGION_SHIFT 13
/* a write this long or longer may be a stream even where flushes come (sectors) */
#define PC_STREAM_LOG_SECTORS 128u
/* flushes are remembered for so many writes */
#define PC_STREAM_LOG_WRITES 64u

/* Those of one direction, an array a field: next is all that most requests look at. */
struct pc_stream_slots {
	u64 next[PC_NR_STREAMS];	/* sector after the last request */
	u64 start[PC_NR_STREAMS];	/* sector */
	u64 used[PC_NR_STREAMS];	/* clock at the last request; 0: no stream */
	u64 flushed_at[PC_NR_STREAMS];	/* write clock when a flush followed a write; 0: none */
};

/* By direction, 0 reads, 1 writes. To lie at the start of a cache line. */
struct pc_streams {
	struct pc_stream_slots slots[2];
	u64 order[2];		/* slots, four bits each, latest lowest */
	u64 clock[2];		/* requests so far */
	u64 marked;		/* the write clock at the last flush */
};

void pc_stream_init(struct pc_streams *s);

/* The region of the streams whose last request ended where sector begins. */
static inline u64 pc_stream_region(u64 sector)
{
	return (sector ? sector - 1 : 0) >> PC_STREAM_REGION_SHIFT;
}

/* The number of the table that knows a region, below PC_NR_STREAM_TABLES. */
static inline unsigned int pc_stream_table(u64 region)
{
	return hash_64(region, ilog2(PC_NR_STREAM_TABLES));
}

/*
 * A request of so many sectors at sector, in the table of that sector. Returns the
 * length of the stream that it belongs to, itself included, in sectors: a lone request
 * returns its own length. Where the end of the request has another table, the stream
 * is to go there: pc_stream_last here, then pc_stream_enter there.
 */
u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors);

/* A stream on its way to another table. */
struct pc_stream {
	u64 start;		/* sector */
	u64 next;		/* sector after the last request */
	u64 flushed_ago;	/* in writes, plus one; 0: never, or too long ago to matter */
};

/* *moved is the stream that was noted last. */
void pc_stream_last(const struct pc_streams *s, bool write, struct pc_stream *moved);
void pc_stream_enter(struct pc_streams *s, bool write, const struct pc_stream *moved);

/* A FLUSH or FUA came: the streams written here lately are logs for some time. */
void pc_stream_flushed(struct pc_streams *s);

/*
 * True if nothing was written here since the last flush, so that pc_stream_flushed
 * would change nothing. May be asked without the lock.
 */
static inline bool pc_stream_is_marked(const struct pc_streams *s)
{
	return READ_ONCE(s->clock[1]) == READ_ONCE(s->marked);
}

/* True if a write of so many sectors ending a stream at sector belongs to a log. */
bool pc_stream_is_log(const struct pc_streams *s, u64 sector, u32 sectors);

#endif
