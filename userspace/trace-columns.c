// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traces that are tables with commas: a list of columns says what stands where, and
 * several formats are such a list and nothing else.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <linux/kernel.h>

#include "trace-words.h"

static const struct {
	const char *name;
	enum pc_column column;
} column_names[] = {
	{ "-", PC_COLUMN_SKIP },
	{ "time", PC_COLUMN_TIME },
	{ "op", PC_COLUMN_OP },
	{ "offset", PC_COLUMN_OFFSET },
	{ "sector", PC_COLUMN_SECTOR },
	{ "size", PC_COLUMN_SIZE },
	{ "sectors", PC_COLUMN_SECTORS },
	{ "device", PC_COLUMN_DEVICE },
};

static const struct {
	const char *name;
	u64 ns;
} time_units[] = {
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "100ns", 100 }, { "ns", 1 },
};

static bool set_time_unit(struct pc_parser *p, const char *unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(time_units); i++)
		if (!strcmp(unit, time_units[i].name)) {
			p->column_time_ns = time_units[i].ns;
			return true;
		}
	pc_entry_bad(p, "unit of time '%.40s': must be s, ms, us, 100ns or ns", unit);
	return false;
}

static bool has_column(const struct pc_parser *p, enum pc_column column)
{
	for (unsigned int i = 0; i < p->nr_columns; i++)
		if (p->columns[i] == column)
			return true;
	return false;
}

static bool add_column(struct pc_parser *p, char *word)
{
	char *unit = strchr(word, ':');
	size_t i;

	if (unit)
		*unit++ = 0;
	for (i = 0; i < ARRAY_SIZE(column_names); i++)
		if (!strcmp(word, column_names[i].name))
			break;
	if (i == ARRAY_SIZE(column_names)) {
		pc_entry_bad(p, "column '%.40s': must be time, op, offset, sector, size, sectors, device or -",
		    word);
		return false;
	}
	if (p->nr_columns == PC_TRACE_MAX_COLUMNS) {
		pc_entry_bad(p, "too many columns: must be at most %u", PC_TRACE_MAX_COLUMNS);
		return false;
	}
	if (column_names[i].column && has_column(p, column_names[i].column)) {
		pc_entry_bad(p, "column '%s' is named twice", word);
		return false;
	}
	if (unit && column_names[i].column != PC_COLUMN_TIME) {
		pc_entry_bad(p, "column '%s:%.40s': only time has a unit", word, unit);
		return false;
	}
	p->columns[p->nr_columns++] = column_names[i].column;
	return !unit || set_time_unit(p, unit);
}

bool pc_columns_set(struct pc_parser *p, const char *list)
{
	char copy[256], *fields[PC_MAX_FIELDS];
	unsigned int n;

	p->column_time_ns = 1000000000;
	snprintf(copy, sizeof(copy), "%s", list);
	n = pc_split_commas(copy, fields);
	for (unsigned int i = 0; i < n; i++)
		if (!add_column(p, fields[i]))
			return false;
	if (has_column(p, PC_COLUMN_OFFSET) == has_column(p, PC_COLUMN_SECTOR) ||
	    has_column(p, PC_COLUMN_SIZE) == has_column(p, PC_COLUMN_SECTORS) ||
	    !has_column(p, PC_COLUMN_OP)) {
		pc_entry_bad(p, "columns '%.100s': must have op, one of offset and sector, one of size and sectors",
		    list);
		return false;
	}
	return true;
}

/* What the columns of a line say. */
struct row {
	u64 sector;
	u64 offset;
	u64 size;
	u64 sectors;
	enum pc_op op;
};

static bool take_column(struct pc_parser *p, enum pc_column column, const char *word,
			struct row *r, struct pc_trace_entry *e)
{
	switch (column) {
	case PC_COLUMN_SKIP:
		return true;
	case PC_COLUMN_TIME:
		return pc_want_time(p, word, p->column_time_ns, &e->time_ns);
	case PC_COLUMN_OP:
		r->op = pc_op_find(word);
		if (r->op == PC_OP_UNKNOWN)
			pc_entry_bad(p, "op '%.40s': must be r, read, 28, w, write or 2a", word);
		return r->op != PC_OP_UNKNOWN;
	case PC_COLUMN_OFFSET:
		return pc_want_number(p, "offset", word, &r->offset);
	case PC_COLUMN_SECTOR:
		return pc_want_number(p, "sector", word, &r->sector);
	case PC_COLUMN_SIZE:
		return pc_want_number(p, "size", word, &r->size);
	case PC_COLUMN_SECTORS:
		return pc_want_number(p, "number of sectors", word, &r->sectors);
	case PC_COLUMN_DEVICE:
		return pc_find_space(p, word, &e->space);
	}
	return false;
}

/* The first line names the columns: where a number must be, it has a letter. */
static bool is_header(const struct pc_parser *p, char *const *fields, unsigned int n)
{
	for (unsigned int i = 0; i < n && i < p->nr_columns; i++)
		if (p->columns[i] >= PC_COLUMN_OFFSET && p->columns[i] <= PC_COLUMN_SECTORS)
			return isalpha((unsigned char)fields[i][0]) || fields[i][0] == '"';
	return false;
}

enum pc_entry_kind pc_columns_parse(struct pc_parser *p, char *line,
					struct pc_trace_entry *e)
{
	struct row r = { 0 };
	char *fields[PC_MAX_FIELDS];
	unsigned int n = pc_split_commas(line, fields);
	u64 bytes;

	if (p->entry_number == 1 && is_header(p, fields, n))
		return PC_ENTRY_IGNORED;
	if (n < p->nr_columns)
		return pc_entry_bad(p, "%u columns: must be at least %u", n, p->nr_columns);
	for (unsigned int i = 0; i < p->nr_columns; i++)
		if (!take_column(p, p->columns[i], fields[i], &r, e))
			return PC_ENTRY_BAD;

	/* a line has one of each pair, the other is 0 */
	if (__builtin_mul_overflow(r.sectors, (u64)SECTOR_BYTES, &bytes))
		return pc_entry_bad(p, "%llu sectors are no request: must be below 2^55", r.sectors);
	if (!pc_set_bytes(p, e, r.offset, r.size + bytes))
		return PC_ENTRY_BAD;
	e->sector += r.sector;
	return pc_entry_finish(e, r.op);
}
