/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Sequential detection: a small table of streams, matched by where their last
 * request ended, replaced least recently used first; and the memory of where
 * flushes came lately (DESIGN rule 17: write-ahead logs are no streams).
 *
 * Reads and writes have tables of their own. The caller holds the lock; time is a
 * counter of requests, kept inside.
 */
#ifndef PC_STREAM_H
#define PC_STREAM_H

#include <linux/types.h>

#define PC_NR_STREAMS 32
/* a write this long or longer may be a stream even where flushes come (sectors) */
#define PC_STREAM_LOG_SECTORS 128u
/* flushes are remembered for so many writes */
#define PC_STREAM_LOG_WRITES 64u

struct pc_stream {
	u64 start;		/* sector */
	u64 next;		/* sector after the last request */
	u64 used;		/* request counter at last use */
	u64 flushed_at;		/* write counter when a flush followed a write of it; 0: never */
};

struct pc_streams {
	struct pc_stream table[2][PC_NR_STREAMS];	/* by direction: 0 read, 1 write */
	u64 clock[2];
};

void pc_stream_init(struct pc_streams *s);

/*
 * A request of so many sectors at sector. Returns the length of the stream that it
 * belongs to, itself included, in sectors: a lone request returns its own length.
 */
u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors);

/* A FLUSH or FUA came: the streams written lately are logs for some time. */
void pc_stream_flushed(struct pc_streams *s);

/* True if a write of so many sectors ending a stream at sector belongs to a log. */
bool pc_stream_is_log(const struct pc_streams *s, u64 sector, u32 sectors);

#endif
