// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Sequential detection (stream.h).
 *
 * A request continues the stream whose last request ended where it begins, as in
 * bcache's recent-I/O list; if several end there, the one used last. What is left of a
 * request that was cut comes by again, and belongs to the same stream. Else it starts
 * a stream of its own in the slot least recently used. The table is small: a scan
 * of 16 entries is cheaper than any index.
 *
 * A stream is kept where its last sector lies, since the request that continues it
 * asks with its first. One that leaves its region is copied to the next; what stays
 * behind can no longer grow, and tells that the range was a log's until it is replaced.
 *
 * Logs: a flush marks every stream written within the last PC_STREAM_LOG_WRITES
 * writes, since it is not known whose flush it was; the mark holds for as many
 * writes and covers the whole range of the stream, so that a log that wraps round
 * is known at once. To take a stream for a log only means to cache it.
 *
 * The caller holds the lock.
 */
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/types.h>

#include "stream.h"

void pc_stream_init(struct pc_streams *s)
{
	memset(s, 0, sizeof(*s));
	/* so that a stream may come in with a flush that lies some writes back */
	s->clock[1] = PC_STREAM_LOG_WRITES;
	s->marked = s->clock[1];
}

unsigned int pc_stream_table(u64 sector)
{
	u64 region = (sector ? sector - 1 : 0) >> PC_STREAM_REGION_SHIFT;

	return hash_64(region, ilog2(PC_NR_STREAM_TABLES));
}

/* pc_stream_is_marked looks at it without the lock */
static u64 next_time(struct pc_streams *s, bool write)
{
	WRITE_ONCE(s->clock[write], s->clock[write] + 1);
	return s->clock[write];
}

static struct pc_stream *oldest_of(struct pc_stream *table)
{
	struct pc_stream *oldest = table;
	unsigned int i;

	for (i = 1; i < PC_NR_STREAMS; i++)
		if (table[i].used < oldest->used)
			oldest = table + i;
	return oldest;
}

u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors)
{
	struct pc_stream *table = s->table[write];
	struct pc_stream *found = NULL;
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		struct pc_stream *st = table + i;

		/* or the rest of the last request, of which the front is under way */
		if (st->used && (st->next == sector ||
				 (st->next == sector + sectors && st->start < sector)) &&
		    (!found || st->used > found->used))
			found = st;
	}

	if (!found) {
		found = oldest_of(table);
		found->start = sector;
		found->flushed_at = 0;
	}
	found->next = sector + sectors;
	found->used = next_time(s, write);
	return found->next - found->start;
}

/* True if at, a value of the write counter, is one of the last PC_STREAM_LOG_WRITES. */
static bool is_recent(const struct pc_streams *s, u64 at)
{
	return at && s->clock[1] - at < PC_STREAM_LOG_WRITES;
}

void pc_stream_last(const struct pc_streams *s, bool write, struct pc_stream *moved)
{
	const struct pc_stream *st = s->table[write];

	while (st->used != s->clock[write])
		st++;
	*moved = *st;
	/* 0: never; else how many writes ago, and one */
	moved->flushed_at = is_recent(s, st->flushed_at) ? s->clock[1] - st->flushed_at + 1 : 0;
}

void pc_stream_enter(struct pc_streams *s, bool write, const struct pc_stream *moved)
{
	struct pc_stream *st = s->table[write], *end = st + PC_NR_STREAMS;

	/* the request that continues it was quicker: the stream that it began is this one */
	while (st < end && !(st->used && st->start == moved->next))
		st++;
	if (st < end) {
		st->start = moved->start;
	} else {
		st = oldest_of(s->table[write]);
		*st = *moved;
		st->used = next_time(s, write);
	}
	if (moved->flushed_at)
		st->flushed_at = s->clock[1] - (moved->flushed_at - 1);
}

void pc_stream_flushed(struct pc_streams *s)
{
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		struct pc_stream *st = &s->table[1][i];

		if (is_recent(s, st->used))
			st->flushed_at = s->clock[1];
	}
	WRITE_ONCE(s->marked, s->clock[1]);
}

bool pc_stream_is_log(const struct pc_streams *s, u64 sector, u32 sectors)
{
	unsigned int i;

	if (sectors >= PC_STREAM_LOG_SECTORS)
		return false;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		const struct pc_stream *st = &s->table[1][i];

		if (st->start <= sector && sector <= st->next && is_recent(s, st->flushed_at))
			return true;
	}
	return false;
}
