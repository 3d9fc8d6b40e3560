// SPDX-License-Identifier: GPL-2.0-only
/*
 * The record of what was asked and promised (record.h). One lock over all of it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record.h"

#define MAGIC 0x70637473u
#define WORDS (SECTOR / 8)
#define LOG_SIZE (1u << 17)
#define MAX_SHOWN 8

/* A written sector */
struct content {
	uint32_t magic;
	uint32_t sector;
	uint32_t number;
	uint32_t check;
	uint64_t filling[WORDS - 2];
};

struct sector {
	uint32_t last;		/* last number issued here */
	uint32_t discard;	/* of these, the last discard */
	uint32_t live;		/* contents below cannot be read any more */
	uint32_t floor;		/* nor after a power cut */
	uint32_t low;		/* lowest number in flight, where there is any */
	uint32_t in_flight;
	uint32_t base;		/* hash of the contents when last pinned */
	uint32_t base_number;	/* for messages */
	uint32_t origin_number;
};

/* For the reader of a failure: all operations since long ago, by number. */
struct logged {
	uint32_t number;
	uint32_t start, sectors;
	char what;
	uint64_t issued_us, acked_us;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sector *table;
static uint32_t nr_sectors;
static uint32_t counter;	/* last number given */
static uint32_t epoch;		/* last number before all was pinned */
static uint32_t nr_kept, nr_lost;
static struct logged *op_log;
static uint64_t flushed_us;	/* issue of the last acknowledged flush */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ (x >> 29);
}

static void make_content(struct content *c, uint32_t sector, uint32_t number)
{
	uint64_t x = mix((uint64_t)number << 32 | sector);
	int i;

	c->magic = MAGIC;
	c->sector = sector;
	c->number = number;
	c->check = x >> 32;
	for (i = 0; i < WORDS - 2; i++) {
		c->filling[i] = x;
		x = x * 5 + 0x632be59bd9b4e019ull;
	}
}

/* The number that these contents carry; 0 if they are not ours, or not whole. */
static uint32_t number_of(const void *data, uint32_t sector)
{
	const struct content *c = data;
	struct content right;

	if (c->magic != MAGIC || c->sector != sector || !c->number)
		return 0;
	make_content(&right, sector, c->number);
	return memcmp(c, &right, SECTOR) ? 0 : c->number;
}

static uint32_t hash_of(const void *data)
{
	const uint64_t *w = data;
	uint64_t h = 1;
	int i;

	for (i = 0; i < WORDS; i++)
		h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull + (h >> 31);
	return h ^ (h >> 32);
}

int record_init(uint32_t sectors)
{
	static const char zero[SECTOR] __attribute__((aligned(8)));
	uint32_t i;

	nr_sectors = sectors;
	table = calloc(sectors, sizeof(*table));
	op_log = calloc(LOG_SIZE, sizeof(*op_log));
	if (!table || !op_log)
		return -ENOMEM;
	for (i = 0; i < sectors; i++)
		table[i].base = hash_of(zero);
	return 0;
}

void record_free(void)
{
	free(table);
	free(op_log);
}

void record_issue(struct op *op, char what, uint32_t start, uint32_t sectors, void *buf)
{
	struct logged *l;
	uint32_t i;

	op->start = start;
	op->sectors = sectors;
	pthread_mutex_lock(&lock);
	op->number = ++counter;
	for (i = 0; i < sectors; i++) {
		struct sector *s = &table[start + i];

		if (!s->in_flight++)
			s->low = op->number;
		op->low[i] = s->low;
		s->last = op->number;
		if (what == 'd')
			s->discard = op->number;
	}
	l = &op_log[op->number % LOG_SIZE];
	l->number = op->number;
	l->start = start;
	l->sectors = sectors;
	l->what = what;
	l->issued_us = now_us();
	l->acked_us = 0;
	pthread_mutex_unlock(&lock);
	if (what != 'd')
		for (i = 0; i < sectors; i++)
			make_content((struct content *)((char *)buf + i * SECTOR), start + i,
				     op->number);
}

void record_ack(const struct op *op, bool durable)
{
	struct logged *l;
	uint32_t i;

	pthread_mutex_lock(&lock);
	l = &op_log[op->number % LOG_SIZE];
	l->acked_us = now_us();
	for (i = 0; i < op->sectors; i++) {
		struct sector *s = &table[op->start + i];

		s->in_flight--;
		if (l->what == 'd')
			continue;
		if (s->live < op->low[i])
			s->live = op->low[i];
		if (durable && s->floor < op->low[i])
			s->floor = op->low[i];
	}
	pthread_mutex_unlock(&lock);
}

struct snapshot {
	uint64_t us;
	uint32_t live[];
};

size_t record_snapshot_size(void)
{
	return sizeof(struct snapshot) + nr_sectors * sizeof(uint32_t);
}

void record_flush_issue(void *snapshot)
{
	struct snapshot *p = snapshot;
	uint32_t i;

	pthread_mutex_lock(&lock);
	p->us = now_us();
	for (i = 0; i < nr_sectors; i++)
		p->live[i] = table[i].live;
	pthread_mutex_unlock(&lock);
}

void record_flush_ack(const void *snapshot)
{
	const struct snapshot *p = snapshot;
	uint32_t i;

	pthread_mutex_lock(&lock);
	if (flushed_us < p->us)
		flushed_us = p->us;
	for (i = 0; i < nr_sectors; i++)
		if (table[i].floor < p->live[i])
			table[i].floor = p->live[i];
	pthread_mutex_unlock(&lock);
}

static uint32_t shown[MAX_SHOWN], nr_shown;

void record_note_origin(const void *buf)
{
	uint32_t i;

	for (i = 0; i < nr_sectors; i++)
		table[i].origin_number = number_of((const char *)buf + (size_t)i * SECTOR, i);
}

void record_explain_origin(const void *buf)
{
	uint32_t i;

	for (i = 0; i < nr_shown && i < MAX_SHOWN; i++)
		printf("# sector %u: the origin holds number %u, when pinned %u\n", shown[i],
		       number_of((const char *)buf + (size_t)shown[i] * SECTOR, shown[i]),
		       table[shown[i]].origin_number);
}

/* Is this right for a sector of which contents below low are impossible? */
static bool is_right(uint32_t sector, uint32_t low, const void *data)
{
	const struct sector *s = &table[sector];
	const struct logged *l;
	uint32_t number;

	if (s->discard > epoch && s->discard >= low)
		return true;
	if (low <= epoch && hash_of(data) == s->base)
		return true;
	number = number_of(data, sector);
	if (number <= epoch || number < low || number > s->last)
		return false;
	l = &op_log[number % LOG_SIZE];
	return l->number != number || (l->what != 'd' && sector >= l->start &&
				       sector - l->start < l->sectors);
}

/* All that is known of a sector that is not right. */
static void explain(uint32_t sector, uint32_t low, const void *data, const char *when)
{
	const struct sector *s = &table[sector];
	uint32_t number = number_of(data, sector), n;
	const struct content *c = data;
	int lines = 0;

	shown[nr_shown++ % MAX_SHOWN] = sector;
	printf("# %s: sector %u (4 KiB %u) holds ", when, sector, sector / 8);
	if (hash_of(data) == s->base)
		printf("its base%s", low > epoch ? ", too old" : "");
	else if (number)
		printf("number %u", number);
	else if (c->magic == MAGIC)
		printf("number %u of sector %u", c->number, c->sector);
	else
		printf("foreign data %016llx", *(unsigned long long *)data);
	printf("; not below %u, last issued %u, last discard %u, base %u before %u, last flush %llu us\n",
	       low, s->last, s->discard, s->base_number, epoch, (unsigned long long)flushed_us);
	for (n = counter; n && counter - n < LOG_SIZE && lines < 6; n--) {
		const struct logged *l = &op_log[n % LOG_SIZE];

		if (l->number != n || sector < l->start || sector - l->start >= l->sectors)
			continue;
		printf("#   number %u %c sectors %u+%u issued %llu acked %llu\n", n, l->what,
		       l->start, l->sectors, (unsigned long long)l->issued_us,
		       (unsigned long long)l->acked_us);
		lines++;
	}
}

void record_read_issue(uint32_t start, uint32_t sectors, uint32_t *low)
{
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < sectors; i++)
		low[i] = table[start + i].live;
	pthread_mutex_unlock(&lock);
}

/*
 * A sector that a write may have changed while it was read: half of each is no fault,
 * since a RAM disk copies bytes, not sectors. No other read sees such a half. The end
 * tells where the beginning is from before any write.
 */
static bool is_torn(uint32_t sector, uint32_t low, const void *data)
{
	const struct content *c = data;
	struct content written;
	uint32_t n;

	if (table[sector].last <= low || number_of(data, sector))
		return false;
	if (c->magic == MAGIC && c->sector == sector)
		return true;
	for (n = counter; n > low && counter - n < LOG_SIZE; n--) {
		const struct logged *l = &op_log[n % LOG_SIZE];

		if (l->number != n || l->what == 'd' || sector < l->start ||
		    sector - l->start >= l->sectors)
			continue;
		make_content(&written, sector, n);
		if (c->filling[WORDS - 3] == written.filling[WORDS - 3])
			return true;
	}
	return false;
}

int record_read_check(uint32_t start, uint32_t sectors, const uint32_t *low, const void *buf)
{
	uint32_t i;
	int bad = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < sectors; i++) {
		const char *data = (const char *)buf + i * SECTOR;

		if (is_right(start + i, low[i], data) || is_torn(start + i, low[i], data))
			continue;
		if (bad++ < MAX_SHOWN)
			explain(start + i, low[i], data, "while running");
		/* a buffer must not change once the read has ended */
		if (is_right(start + i, low[i], data))
			printf("# sector %u arrived after the read had ended\n", start + i);
	}
	pthread_mutex_unlock(&lock);
	return bad;
}

void record_cut(void)
{
	uint32_t i;

	for (i = 0; i < nr_sectors; i++) {
		table[i].live = table[i].floor;
		table[i].in_flight = 0;
	}
	nr_kept = nr_lost = 0;
}

void record_stop(void)
{
	uint32_t i;

	for (i = 0; i < nr_sectors; i++)
		table[i].floor = table[i].live;
	record_cut();
}

int record_check(uint32_t start, uint32_t sectors, const void *buf, const char *when)
{
	uint32_t i, last_bad = sectors;
	int bad = 0;

	for (i = 0; i < sectors; i++) {
		const char *data = (const char *)buf + i * SECTOR;
		const struct sector *s = &table[start + i];

		if (!is_right(start + i, s->floor, data)) {
			/* the first of each run */
			if (last_bad != i - 1 && nr_shown < MAX_SHOWN)
				explain(start + i, s->floor, data, when);
			last_bad = i;
			bad++;
		} else if (s->last > epoch) {
			if (number_of(data, start + i) == s->last)
				nr_kept++;
			else
				nr_lost++;
		}
	}
	return bad;
}

void record_pin(const void *buf)
{
	uint32_t i;

	epoch = counter;
	for (i = 0; i < nr_sectors; i++) {
		table[i].base = hash_of((const char *)buf + (size_t)i * SECTOR);
		table[i].base_number = number_of((const char *)buf + (size_t)i * SECTOR, i);
		table[i].live = table[i].floor = 0;
	}
}

void record_counts(uint32_t *kept, uint32_t *lost)
{
	*kept = nr_kept;
	*lost = nr_lost;
}
