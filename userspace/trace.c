// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading of traces into memory (trace.h): the loop over the entries of a file, the
 * list, and what is known once all of it was read. While the file is read, the upper
 * bits of a request's sector hold the number of its address space; how large each is
 * shows at the end only, and then they are laid one behind the other.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/hash.h>
#include <linux/kernel.h>

#include "trace-formats.h"
#include "trace-input.h"

#define SPACE_SHIFT 51
#define SPACE_SECTORS (1ull << SPACE_SHIFT)
/* more than any request has: of a wrong unit, or a wrong column */
#define MAX_SECTORS (1u << 23)
/* what a block table can number */
#define MAX_BLOCKS (1ull << 48)
/* how often progress is told, in entries */
#define PROGRESS_ENTRIES 65536u

struct reader {
	const char *path;
	const struct pc_trace_options *o;
	struct pc_trace *t;
	struct pc_input in;
	struct pc_parser parser;
	size_t room;		/* for so many requests */
	u64 first_ns;
	u64 last_ns;
	char *err;
};

__attribute__((format(printf, 2, 3)))
static bool fail(struct reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->err, PC_TRACE_ERR_SIZE, fmt, args);
	va_end(args);
	return false;
}

/* The beginning of a line, fit for a terminal. */
static void quote(char *out, size_t size, const char *line)
{
	size_t i;

	for (i = 0; i < size - 4 && line[i]; i++)
		out[i] = line[i] >= ' ' && line[i] < 127 ? line[i] : '?';
	strcpy(out + i, line[i] ? "..." : "");
}

static bool fail_entry(struct reader *r, const char *text)
{
	char quoted[100];
	bool is_text = !r->parser.format->record_size;

	quote(quoted, sizeof(quoted), text);
	return fail(r, "%s:%llu: %s%s%s%s", r->path, r->parser.entry_number,
		    is_text ? "'" : "record ", is_text ? quoted : "", is_text ? "': " : "",
		    r->parser.why);
}

/* NULL: what is wrong is in p->why. */
static struct pc_request *add(struct reader *r)
{
	struct pc_trace *t = r->t;

	if (t->nr == r->room) {
		size_t room = r->room ? 2 * r->room : 4096;
		void *bigger = realloc(t->requests, room * sizeof(*t->requests));

		if (!bigger) {
			fail(r, "%s: out of memory after %zu requests; --limit reads fewer",
			     r->path, t->nr);
			return NULL;
		}
		t->requests = bigger;
		r->room = room;
	}
	return &t->requests[t->nr++];
}

/* Limits of what can be kept. False: p->why. */
static bool is_possible(struct pc_parser *p, const struct pc_trace_entry *e)
{
	if (e->sectors > MAX_SECTORS)
		snprintf(p->why, sizeof(p->why), "%llu sectors are no request: must be at most 4 GiB",
			 e->sectors);
	else if (e->sector >= SPACE_SECTORS - e->sectors)
		snprintf(p->why, sizeof(p->why), "sector %llu is no place: must be below 1 EiB",
			 e->sector);
	else
		return true;
	return false;
}

static bool take(struct reader *r, const struct pc_trace_entry *e)
{
	struct pc_request *q = add(r);

	if (!q)
		return false;
	if (r->t->nr == 1)
		r->first_ns = e->time_ns;
	/* entries are not sorted: where time goes back, it stands still */
	if (e->time_ns > r->last_ns)
		r->last_ns = e->time_ns;
	q->sector = (u64)e->space << SPACE_SHIFT | e->sector;
	q->is_write = e->is_write;
	q->sectors = e->sectors;
	q->seconds = 0;
	if (r->t->has_time && r->last_ns > r->first_ns)
		q->seconds = min_t(u64, (r->last_ns - r->first_ns) / 1000000000, U32_MAX);
	r->t->nr_writes += e->is_write;
	return true;
}

/* The next line or record; NULL at the end, or after an error. */
static char *next_entry(struct reader *r)
{
	size_t size = r->parser.format->record_size, got;
	char *at;

	r->parser.entry_number++;
	if (!size)
		return pc_input_line(&r->in);
	at = pc_input_record(&r->in, size, &got);
	if (!at && got && !r->in.error[0])
		snprintf(r->in.error, sizeof(r->in.error),
			 "the last record has %zu bytes: must be %zu", got, size);
	return at;
}

static bool read_entries(struct reader *r)
{
	const struct pc_trace_options *o = r->o;
	struct pc_trace *t = r->t;
	char text[200];
	char *line;

	while (!(o->limit && t->nr == o->limit) && (line = next_entry(r))) {
		struct pc_trace_entry e = { 0 };
		enum pc_entry_kind kind;

		if (!r->parser.format->record_size)
			snprintf(text, sizeof(text), "%s", line);
		kind = pc_parser_parse(&r->parser, line, &e);
		if (kind == PC_ENTRY_REQUEST && !is_possible(&r->parser, &e))
			kind = PC_ENTRY_BAD;
		if (kind == PC_ENTRY_REQUEST && !take(r, &e))
			return false;
		if (kind == PC_ENTRY_BAD && !o->skip_bad)
			return fail_entry(r, text);
		t->nr_ignored += kind == PC_ENTRY_IGNORED;
		t->nr_bad += kind == PC_ENTRY_BAD;
		if (o->progress && r->parser.entry_number % PROGRESS_ENTRIES == 0)
			o->progress(o->context, r->in.file_read, r->in.file_size);
	}
	if (r->in.error[0])
		return fail(r, "%s: %s", r->path, r->in.error);
	if (!t->nr)
		return fail(r, "%s: has no request: %llu lines were read, %llu of them bad",
			    r->path, r->parser.entry_number - 1, t->nr_bad);
	return true;
}

/* Lays the address spaces one behind the other, at whole blocks. */
static bool place_spaces(struct reader *r)
{
	struct pc_trace *t = r->t;
	u64 *base = calloc(t->nr_spaces + 1, sizeof(*base));
	u64 block = t->block_sectors, at = 0;

	if (!base)
		return fail(r, "%s: out of memory", r->path);
	for (size_t i = 0; i < t->nr; i++) {
		u32 space = t->requests[i].sector >> SPACE_SHIFT;
		u64 end = (t->requests[i].sector & (SPACE_SECTORS - 1)) + t->requests[i].sectors;

		base[space] = max(base[space], end);
	}
	for (u32 s = 0; s < t->nr_spaces; s++) {
		u64 size = (base[s] + block - 1) / block * block;

		base[s] = at;
		at += size;
	}
	t->origin_sectors = at;
	for (size_t i = 0; i < t->nr; i++)
		t->requests[i].sector = base[t->requests[i].sector >> SPACE_SHIFT] +
			(t->requests[i].sector & (SPACE_SECTORS - 1));
	free(base);
	if (at / block > MAX_BLOCKS)
		return fail(r, "%s: %llu blocks of %u sectors from the lowest to the highest: must be at most 2^48; larger blocks make fewer",
			    r->path, at / block, t->block_sectors);
	return true;
}

/* A set of block numbers, each plus 1; 0 is a free place. */
struct block_set {
	u64 *places;
	unsigned int bits;
	u64 count;
};

/* True if it is new. There must be a free place. */
static bool set_put(struct block_set *s, u64 value)
{
	u64 mask = (1ull << s->bits) - 1;
	u64 i = hash_64(value, s->bits);

	while (s->places[i] && s->places[i] != value)
		i = (i + 1) & mask;
	if (s->places[i])
		return false;
	s->places[i] = value;
	s->count++;
	return true;
}

static bool set_grow(struct block_set *s)
{
	struct block_set old = *s;

	s->bits = old.places ? old.bits + 1 : 12;
	s->count = 0;
	s->places = calloc(1ull << s->bits, sizeof(*s->places));
	if (!s->places) {
		*s = old;
		return false;
	}
	for (u64 i = 0; old.places && i < 1ull << old.bits; i++)
		if (old.places[i])
			set_put(s, old.places[i]);
	free(old.places);
	return true;
}

static bool count_blocks(struct reader *r)
{
	struct pc_trace *t = r->t;
	struct block_set set = { 0 };
	bool fits = set_grow(&set);

	for (size_t i = 0; fits && i < t->nr; i++) {
		const struct pc_request *q = &t->requests[i];
		u64 last = (q->sector + q->sectors - 1) / t->block_sectors;

		for (u64 b = q->sector / t->block_sectors; fits && b <= last; b++) {
			set_put(&set, b + 1);
			t->nr_accesses++;
			if (set.count > 1ull << (set.bits - 1))
				fits = set_grow(&set);
		}
	}
	t->nr_blocks = set.count;
	free(set.places);
	return fits || fail(r, "%s: out of memory after %llu distinct blocks", r->path,
			    t->nr_blocks);
}

static bool find_format(struct reader *r)
{
	const struct pc_trace_format *f;
	const char *head;
	char line[100];
	size_t len;

	if (r->o->format) {
		f = pc_trace_format_find(r->o->format);
		if (!f)
			return fail(r, "unknown format '%s'", r->o->format);
	} else {
		len = pc_input_peek(&r->in, 1024, &head);
		f = pc_trace_format_guess(r->path, head, len);
		snprintf(line, sizeof(line), "%.*s", (int)strnlen(head, len), head);
		line[strcspn(line, "\r\n")] = 0;
		quote(line, sizeof(line), line);
		if (!f)
			return fail(r, "%s: the format is not known by its name or its first line '%s': --format must name it",
				    r->path, line);
	}
	if (!pc_parser_init(&r->parser, f, r->o->columns, r->o->action))
		return fail(r, "%s", r->parser.why);
	r->t->format = f->name;
	r->t->has_time = f->has_time;
	for (unsigned int i = 0; i < r->parser.nr_columns; i++)
		r->t->has_time |= r->parser.columns[i] == PC_COLUMN_TIME;
	r->t->block_sectors = r->o->block_sectors ? : f->block_sectors ? : 128;
	return true;
}

static bool read_all(struct reader *r)
{
	if (!pc_input_open(&r->in, r->path))
		return fail(r, "%s: %s", r->path, r->in.error);
	if (!find_format(r) || !read_entries(r))
		return false;
	r->t->nr_spaces = max(r->parser.nr_spaces, 1u);
	return place_spaces(r) && count_blocks(r);
}

bool pc_trace_read(struct pc_trace *t, const char *path, const struct pc_trace_options *o,
		   char err[PC_TRACE_ERR_SIZE])
{
	struct reader r = { .path = path, .o = o, .t = t, .err = err };
	bool good;

	memset(t, 0, sizeof(*t));
	err[0] = 0;
	good = read_all(&r);
	pc_parser_exit(&r.parser);
	pc_input_close(&r.in);
	return good;
}

void pc_trace_free(struct pc_trace *t)
{
	free(t->requests);
	memset(t, 0, sizeof(*t));
}
