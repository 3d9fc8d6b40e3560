// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Sequential detection (stream.h).
 *
 * A request continues the stream whose last request ended where it begins, as in
 * bcache's recent-I/O list; if several end there, the one used last. What is left of a
 * request that was cut comes by again, and belongs to the same stream. Else it starts
 * a stream of its own in the slot least recently used. The table is small: a scan of
 * 16 entries that lie in two cache lines is cheaper than any index, and their order of
 * use fits a word.
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
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/string.h>
#include <linux/types.h>

#include "stream.h"

/* where no request ends */
#define NOWHERE (~0ULL)

void pc_stream_init(struct pc_streams *s)
{
	struct pc_stream_list *l;
	unsigned int i;

	BUILD_BUG_ON(PC_NR_STREAMS != 16);

	memset(s, 0, sizeof(*s));
	for (l = s->list; l < s->list + 2; l++) {
		for (i = 0; i < PC_NR_STREAMS; i++)
			l->next[i] = NOWHERE;
		l->order = 0xfedcba9876543210ULL;
	}
	/* so that a stream may come in with a flush that lies some writes back */
	s->list[1].clock = PC_STREAM_LOG_WRITES;
	s->marked = s->list[1].clock;
}

static unsigned int oldest_of(const struct pc_stream_list *l)
{
	return l->order >> 60;
}

/* Slot i was used now. pc_stream_is_marked looks at the clock without the lock. */
static void use(struct pc_stream_list *l, unsigned int i)
{
	const u64 ones = 0x1111111111111111ULL;
	/* the digits that are not i are not zero; the lowest that is can be told exactly */
	u64 digits = l->order ^ i * ones;
	unsigned int shift = __ffs64((digits - ones) & ~digits & ones << 3) & ~3u;
	u64 latest = (1ULL << shift) - 1;

	l->order = (l->order & ~latest << 4) | (l->order & latest) << 4 | i;
	WRITE_ONCE(l->clock, l->clock + 1);
	l->used[i] = l->clock;
}

u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors)
{
	struct pc_stream_list *l = &s->list[write];
	unsigned int i, found = PC_NR_STREAMS;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		u64 ahead = l->next[i] - sector;

		if (likely(ahead > sectors))
			continue;
		/* or the rest of the last request, of which the front is under way */
		if ((!ahead || (ahead == sectors && l->start[i] < sector)) &&
		    (found == PC_NR_STREAMS || l->used[i] > l->used[found]))
			found = i;
	}

	if (found == PC_NR_STREAMS) {
		found = oldest_of(l);
		l->start[found] = sector;
		l->flushed_at[found] = 0;
	}
	l->next[found] = sector + sectors;
	use(l, found);
	return sector + sectors - l->start[found];
}

/* True if at, a value of the write counter, is one of the last PC_STREAM_LOG_WRITES. */
static bool is_recent(const struct pc_streams *s, u64 at)
{
	return at && s->list[1].clock - at < PC_STREAM_LOG_WRITES;
}

void pc_stream_last(const struct pc_streams *s, bool write, struct pc_stream *moved)
{
	const struct pc_stream_list *l = &s->list[write];
	unsigned int i = l->order & 15;

	moved->start = l->start[i];
	moved->next = l->next[i];
	moved->flushed_ago = is_recent(s, l->flushed_at[i]) ?
			     s->list[1].clock - l->flushed_at[i] + 1 : 0;
}

void pc_stream_enter(struct pc_streams *s, bool write, const struct pc_stream *moved)
{
	struct pc_stream_list *l = &s->list[write];
	unsigned int i = 0;

	/* the request that continues it was quicker: the stream that it began is this one */
	while (i < PC_NR_STREAMS && !(l->used[i] && l->start[i] == moved->next))
		i++;
	if (i == PC_NR_STREAMS) {
		i = oldest_of(l);
		l->next[i] = moved->next;
		l->flushed_at[i] = 0;
		use(l, i);
	}
	l->start[i] = moved->start;
	if (moved->flushed_ago)
		l->flushed_at[i] = s->list[1].clock - (moved->flushed_ago - 1);
}

void pc_stream_flushed(struct pc_streams *s)
{
	struct pc_stream_list *l = &s->list[1];
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++)
		if (is_recent(s, l->used[i]))
			l->flushed_at[i] = l->clock;
	WRITE_ONCE(s->marked, l->clock);
}

bool pc_stream_is_log(const struct pc_streams *s, u64 sector, u32 sectors)
{
	const struct pc_stream_list *l = &s->list[1];
	unsigned int i;

	if (sectors >= PC_STREAM_LOG_SECTORS)
		return false;

	for (i = 0; i < PC_NR_STREAMS; i++)
		if (l->start[i] <= sector && sector <= l->next[i] &&
		    is_recent(s, l->flushed_at[i]))
			return true;
	return false;
}
