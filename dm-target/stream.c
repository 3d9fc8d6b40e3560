// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Sequential detection (stream.h).
 *
 * A request continues the stream whose last request ended where it begins, as in
 * bcache's recent-I/O list; if several end there, the one used last. Else it starts
 * a stream of its own in the slot least recently used. The table is small: a scan
 * of 32 entries is cheaper than any index.
 *
 * Logs: a flush marks every stream written within the last PC_STREAM_LOG_WRITES
 * writes, since it is not known whose flush it was; the mark holds for as many
 * writes and covers the whole range of the stream, so that a log that wraps round
 * is known at once. To take a stream for a log only means to cache it.
 *
 * The caller holds the lock.
 */
#include <linux/string.h>
#include <linux/types.h>

#include "stream.h"

void pc_stream_init(struct pc_streams *s)
{
	memset(s, 0, sizeof(*s));
}

u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors)
{
	struct pc_stream *table = s->table[write];
	struct pc_stream *found = NULL, *oldest = table;
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		struct pc_stream *st = table + i;

		if (st->used && st->next == sector && (!found || st->used > found->used))
			found = st;
		if (st->used < oldest->used)
			oldest = st;
	}

	if (!found) {
		found = oldest;
		found->start = sector;
		found->flushed_at = 0;
	}
	found->next = sector + sectors;
	found->used = ++s->clock[write];
	return found->next - found->start;
}

/* True if at, a value of the write counter, is one of the last PC_STREAM_LOG_WRITES. */
static bool is_recent(const struct pc_streams *s, u64 at)
{
	return at && s->clock[1] - at < PC_STREAM_LOG_WRITES;
}

void pc_stream_flushed(struct pc_streams *s)
{
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		struct pc_stream *st = &s->table[1][i];

		if (is_recent(s, st->used))
			st->flushed_at = s->clock[1];
	}
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
