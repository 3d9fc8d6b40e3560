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
	unsigned int dir, i;

	BUILD_BUG_ON(PC_NR_STREAMS != 16);

	memset(s, 0, sizeof(*s));
	for (dir = 0; dir < 2; dir++) {
		for (i = 0; i < PC_NR_STREAMS; i++)
			s->slots[dir].next[i] = NOWHERE;
		s->order[dir] = 0x0123456789abcdefULL;
	}
	/* so that a stream may come in with a flush that lies some writes back */
	s->clock[1] = PC_STREAM_LOG_WRITES;
	s->marked = s->clock[1];
}

static unsigned int oldest_of(const struct pc_streams *s, bool write)
{
	return s->order[write] >> 60;
}

/* Slot i was used now. pc_stream_is_marked looks at the clock without the lock. */
static void use(struct pc_streams *s, bool write, unsigned int i)
{
	const u64 ones = 0x1111111111111111ULL;
	u64 order = s->order[write];
	/* i as a digit of order: the only zero here; the lowest is told exactly */
	u64 digits = order ^ i * ones;
	unsigned int shift = __ffs64((digits - ones) & ~digits & ones << 3) & ~3u;
	u64 latest = (1ULL << shift) - 1;

	s->order[write] = (order & ~latest << 4) | (order & latest) << 4 | i;
	WRITE_ONCE(s->clock[write], s->clock[write] + 1);
	s->slots[write].used[i] = s->clock[write];
}

u64 pc_stream_note(struct pc_streams *s, bool write, u64 sector, u32 sectors)
{
	struct pc_stream_slots *sl = &s->slots[write];
	unsigned int i, found = PC_NR_STREAMS;

	for (i = 0; i < PC_NR_STREAMS; i++) {
		u64 ahead = sl->next[i] - sector;

		if (likely(ahead > sectors))
			continue;
		/* or the rest of the last request, of which the front is under way */
		if ((!ahead || (ahead == sectors && sl->start[i] < sector)) &&
		    (found == PC_NR_STREAMS || sl->used[i] > sl->used[found]))
			found = i;
	}

	if (found == PC_NR_STREAMS) {
		found = oldest_of(s, write);
		sl->start[found] = sector;
		sl->flushed_at[found] = 0;
	}
	sl->next[found] = sector + sectors;
	use(s, write, found);
	return sector + sectors - sl->start[found];
}

/* True if at, a value of the write clock, is one of the last PC_STREAM_LOG_WRITES. */
static bool is_recent(const struct pc_streams *s, u64 at)
{
	return at && s->clock[1] - at < PC_STREAM_LOG_WRITES;
}

void pc_stream_last(const struct pc_streams *s, bool write, struct pc_stream *moved)
{
	const struct pc_stream_slots *sl = &s->slots[write];
	unsigned int i = s->order[write] & 15;

	moved->start = sl->start[i];
	moved->next = sl->next[i];
	moved->flushed_ago = is_recent(s, sl->flushed_at[i]) ?
			     s->clock[1] - sl->flushed_at[i] + 1 : 0;
}

/*
 * The slot of a stream that begins where moved ends, latest first: the request that
 * continues it was quicker, and that stream is this one. PC_NR_STREAMS: none.
 */
static unsigned int overtaken_by(const struct pc_streams *s, bool write,
				 const struct pc_stream *moved)
{
	const struct pc_stream_slots *sl = &s->slots[write];
	u64 order = s->order[write];
	unsigned int n, i;

	for (n = 0; n < PC_NR_STREAMS; n++, order >>= 4) {
		i = order & 15;
		if (sl->used[i] && sl->start[i] == moved->next)
			return i;
	}
	return PC_NR_STREAMS;
}

void pc_stream_enter(struct pc_streams *s, bool write, const struct pc_stream *moved)
{
	struct pc_stream_slots *sl = &s->slots[write];
	unsigned int i = overtaken_by(s, write, moved);

	if (i == PC_NR_STREAMS) {
		i = oldest_of(s, write);
		sl->next[i] = moved->next;
		sl->flushed_at[i] = 0;
		use(s, write, i);
	}
	sl->start[i] = moved->start;
	if (moved->flushed_ago)
		sl->flushed_at[i] = s->clock[1] - (moved->flushed_ago - 1);
}

void pc_stream_flushed(struct pc_streams *s)
{
	struct pc_stream_slots *sl = &s->slots[1];
	unsigned int i;

	for (i = 0; i < PC_NR_STREAMS; i++)
		if (is_recent(s, sl->used[i]))
			sl->flushed_at[i] = s->clock[1];
	WRITE_ONCE(s->marked, s->clock[1]);
}

bool pc_stream_is_log(const struct pc_streams *s, u64 sector, u32 sectors)
{
	const struct pc_stream_slots *sl = &s->slots[1];
	unsigned int i;

	if (sectors >= PC_STREAM_LOG_SECTORS)
		return false;

	for (i = 0; i < PC_NR_STREAMS; i++)
		if (sl->start[i] <= sector && sector <= sl->next[i] &&
		    is_recent(s, sl->flushed_at[i]))
			return true;
	return false;
}
