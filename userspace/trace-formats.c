// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats of traces: one table, and a parser for each row that makes an entry of a
 * line or of a record. Tables with commas have a common parser, led by a list of
 * columns. A parser says in words what is wrong with what it refuses; it knows nothing
 * of files, and places no trust in what it reads.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asm/byteorder.h>
#include <linux/kernel.h>

#include "trace-formats.h"

#define MAX_FIELDS 24
#define SECTOR_SIZE 512u

__attribute__((format(printf, 2, 3)))
static enum pc_entry_kind bad(struct pc_parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	return PC_ENTRY_BAD;
}

/* --- words -------------------------------------------------------------------------- */

/* The fields between blanks, zero-terminated. Returns how many, at most MAX_FIELDS. */
static unsigned int split_blanks(char *line, char *fields[MAX_FIELDS])
{
	unsigned int n = 0;

	while (n < MAX_FIELDS) {
		while (*line == ' ' || *line == '\t')
			line++;
		if (!*line)
			break;
		fields[n++] = line;
		while (*line && *line != ' ' && *line != '\t')
			line++;
		if (*line)
			*line++ = 0;
	}
	return n;
}

/* Those between commas, blanks around them cut off. */
static unsigned int split_commas(char *line, char *fields[MAX_FIELDS])
{
	unsigned int n = 0;

	while (n < MAX_FIELDS) {
		char *end = line + strcspn(line, ",");
		bool more = *end;
		char *last = end;

		while (*line == ' ' || *line == '\t')
			line++;
		while (last > line && (last[-1] == ' ' || last[-1] == '\t'))
			last--;
		*last = 0;
		fields[n++] = line;
		if (!more)
			break;
		line = end + 1;
	}
	return n;
}

static bool to_number(const char *word, u64 *out)
{
	u64 n = 0;

	if (!*word)
		return false;
	for (; *word; word++) {
		if (*word < '0' || *word > '9' ||
		    __builtin_mul_overflow(n, 10ull, &n) ||
		    __builtin_add_overflow(n, (u64)(*word - '0'), &n))
			return false;
	}
	*out = n;
	return true;
}

static bool want_number(struct pc_parser *p, const char *what, const char *word, u64 *out)
{
	if (to_number(word, out))
		return true;
	bad(p, "%s '%.40s': must be a number from 0 to 18446744073709551615", what, word);
	return false;
}

/* "12.5" of a unit of so many nanoseconds; what is below one is cut off. */
static bool want_time(struct pc_parser *p, const char *word, u64 unit_ns, u64 *out)
{
	u64 n = 0, part_ns = unit_ns;
	size_t digits = strspn(word, "0123456789");
	char whole[24];

	if (digits && digits < sizeof(whole)) {
		memcpy(whole, word, digits);
		whole[digits] = 0;
		if (to_number(whole, &n) && !__builtin_mul_overflow(n, unit_ns, &n)) {
			word += digits;
			if (*word == '.')
				for (word++; isdigit((unsigned char)*word); word++) {
					part_ns /= 10;
					n += (*word - '0') * part_ns;
				}
			*out = n;
			if (!*word)
				return true;
		}
	}
	bad(p, "time '%.40s': must be a number", word);
	return false;
}

/* Number of the address space of this name; a new one is added. */
static bool find_space(struct pc_parser *p, const char *name, u32 *out)
{
	/* entries of a device tend to follow each other, and there are few devices */
	for (u32 i = 0; i < p->nr_spaces; i++)
		if (!strcmp(p->spaces[i], name)) {
			*out = i;
			return true;
		}
	if (!p->spaces)
		p->spaces = calloc(PC_TRACE_MAX_SPACES, sizeof(*p->spaces));
	if (!p->spaces || p->nr_spaces == PC_TRACE_MAX_SPACES) {
		bad(p, "device '%.40s': more than %u devices or files", name, PC_TRACE_MAX_SPACES);
		return false;
	}
	p->spaces[p->nr_spaces] = strdup(name);
	if (!p->spaces[p->nr_spaces]) {
		bad(p, "out of memory");
		return false;
	}
	*out = p->nr_spaces++;
	return true;
}

/* Whole sectors around a range of bytes. False: it reaches beyond the last. */
static bool set_bytes(struct pc_parser *p, struct pc_trace_entry *e, u64 offset, u64 size)
{
	u64 end;

	if (__builtin_add_overflow(offset, size, &end) || end > U64_MAX - SECTOR_SIZE) {
		bad(p, "offset %llu and size %llu: the end must be below 2^64", offset, size);
		return false;
	}
	e->sector = offset / SECTOR_SIZE;
	e->sectors = size ? (end + SECTOR_SIZE - 1) / SECTOR_SIZE - e->sector : 0;
	return true;
}

/* --- operations --------------------------------------------------------------------- */

enum op { OP_READ, OP_WRITE, OP_OTHER, OP_UNKNOWN };

/* SCSI: READ and WRITE of 6, 10, 12 and 16 bytes, WRITE AND VERIFY */
static enum op scsi_op(unsigned int code)
{
	switch (code) {
	case 0x08: case 0x28: case 0xa8: case 0x88:
		return OP_READ;
	case 0x0a: case 0x2a: case 0xaa: case 0x8a: case 0x2e: case 0xae: case 0x8e:
		return OP_WRITE;
	default:
		return OP_OTHER;
	}
}

static enum op find_op(const char *word)
{
	static const struct {
		const char *word;
		enum op op;
	} words[] = {
		{ "r", OP_READ }, { "read", OP_READ }, { "w", OP_WRITE }, { "write", OP_WRITE },
		{ "d", OP_OTHER }, { "discard", OP_OTHER }, { "trim", OP_OTHER },
		{ "unmap", OP_OTHER }, { "f", OP_OTHER }, { "flush", OP_OTHER },
		{ "sync", OP_OTHER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(word, words[i].word))
			return words[i].op;
	if (word[0] == '0' && (word[1] == 'x' || word[1] == 'X'))
		word += 2;
	if (isxdigit((unsigned char)word[0]) && isxdigit((unsigned char)word[1]) && !word[2])
		return scsi_op(strtoul(word, NULL, 16));
	return OP_UNKNOWN;
}

static enum pc_entry_kind finish(struct pc_trace_entry *e, enum op op)
{
	e->is_write = op == OP_WRITE;
	return op == OP_OTHER || !e->sectors ? PC_ENTRY_IGNORED : PC_ENTRY_REQUEST;
}

/* --- tables with commas ------------------------------------------------------------- */

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
	bad(p, "unit of time '%.40s': must be s, ms, us, 100ns or ns", unit);
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
		bad(p, "column '%.40s': must be time, op, offset, sector, size, sectors, device or -",
		    word);
		return false;
	}
	if (p->nr_columns == PC_TRACE_MAX_COLUMNS) {
		bad(p, "too many columns: must be at most %u", PC_TRACE_MAX_COLUMNS);
		return false;
	}
	if (column_names[i].column && has_column(p, column_names[i].column)) {
		bad(p, "column '%s' is named twice", word);
		return false;
	}
	if (unit && column_names[i].column != PC_COLUMN_TIME) {
		bad(p, "column '%s:%.40s': only time has a unit", word, unit);
		return false;
	}
	p->columns[p->nr_columns++] = column_names[i].column;
	return !unit || set_time_unit(p, unit);
}

static bool set_columns(struct pc_parser *p, const char *list)
{
	char copy[256], *fields[MAX_FIELDS];
	unsigned int n;

	p->column_time_ns = 1000000000;
	snprintf(copy, sizeof(copy), "%s", list);
	n = split_commas(copy, fields);
	for (unsigned int i = 0; i < n; i++)
		if (!add_column(p, fields[i]))
			return false;
	if (has_column(p, PC_COLUMN_OFFSET) == has_column(p, PC_COLUMN_SECTOR) ||
	    has_column(p, PC_COLUMN_SIZE) == has_column(p, PC_COLUMN_SECTORS) ||
	    !has_column(p, PC_COLUMN_OP)) {
		bad(p, "columns '%.100s': must have op, one of offset and sector, one of size and sectors",
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
	enum op op;
};

static bool take_column(struct pc_parser *p, enum pc_column column, const char *word,
			struct row *r, struct pc_trace_entry *e)
{
	switch (column) {
	case PC_COLUMN_SKIP:
		return true;
	case PC_COLUMN_TIME:
		return want_time(p, word, p->column_time_ns, &e->time_ns);
	case PC_COLUMN_OP:
		r->op = find_op(word);
		if (r->op == OP_UNKNOWN)
			bad(p, "op '%.40s': must be r, read, 28, w, write or 2a", word);
		return r->op != OP_UNKNOWN;
	case PC_COLUMN_OFFSET:
		return want_number(p, "offset", word, &r->offset);
	case PC_COLUMN_SECTOR:
		return want_number(p, "sector", word, &r->sector);
	case PC_COLUMN_SIZE:
		return want_number(p, "size", word, &r->size);
	case PC_COLUMN_SECTORS:
		return want_number(p, "number of sectors", word, &r->sectors);
	case PC_COLUMN_DEVICE:
		return find_space(p, word, &e->space);
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

static enum pc_entry_kind parse_columns(struct pc_parser *p, char *line,
					struct pc_trace_entry *e)
{
	struct row r = { 0 };
	char *fields[MAX_FIELDS];
	unsigned int n = split_commas(line, fields);
	u64 bytes;

	if (p->entry_number == 1 && is_header(p, fields, n))
		return PC_ENTRY_IGNORED;
	if (n < p->nr_columns)
		return bad(p, "%u columns: must be at least %u", n, p->nr_columns);
	for (unsigned int i = 0; i < p->nr_columns; i++)
		if (!take_column(p, p->columns[i], fields[i], &r, e))
			return PC_ENTRY_BAD;

	/* a line has one of each pair, the other is 0 */
	if (__builtin_mul_overflow(r.sectors, (u64)SECTOR_SIZE, &bytes))
		return bad(p, "%llu sectors are no request: must be below 2^55", r.sectors);
	if (!set_bytes(p, e, r.offset, r.size + bytes))
		return PC_ENTRY_BAD;
	e->sector += r.sector;
	return finish(e, r.op);
}

/* --- lists with blanks -------------------------------------------------------------- */

static bool want_fields(struct pc_parser *p, char *line, u64 *out, unsigned int nr,
			const char *const *names)
{
	char *fields[MAX_FIELDS];
	unsigned int n = split_blanks(line, fields);

	if (n != nr) {
		bad(p, "%u fields: must be %u", n, nr);
		return false;
	}
	for (unsigned int i = 0; i < nr; i++)
		if (!want_number(p, names[i], fields[i], &out[i]))
			return false;
	return true;
}

static const char *const lis_fields[] = {
	"first block", "number of blocks", "third field", "request number",
};

static enum pc_entry_kind parse_lis(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	u64 n[4];

	if (!want_fields(p, line, n, 4, lis_fields))
		return PC_ENTRY_BAD;
	e->sector = n[0];
	e->sectors = n[1];
	return finish(e, OP_READ);
}

static enum pc_entry_kind parse_pages(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	u64 n[4];

	if (!want_fields(p, line, n, 4, lis_fields))
		return PC_ENTRY_BAD;
	if (__builtin_mul_overflow(n[0], (u64)PC_TRACE_PAGE_SECTORS, &e->sector))
		return bad(p, "page %llu is no place", n[0]);
	e->sectors = PC_TRACE_PAGE_SECTORS;
	return finish(e, OP_READ);
}

static enum pc_entry_kind parse_mqsim(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	static const char *const names[] = {
		"time", "device", "first sector", "number of sectors", "type",
	};
	char device[24];
	u64 n[5];

	if (!want_fields(p, line, n, 5, names))
		return PC_ENTRY_BAD;
	if (n[4] > 1)
		return bad(p, "type %llu: must be 0 (a write) or 1 (a read)", n[4]);
	snprintf(device, sizeof(device), "%llu", n[1]);
	if (!find_space(p, device, &e->space))
		return PC_ENTRY_BAD;
	e->time_ns = n[0];
	e->sector = n[2];
	e->sectors = n[3];
	return finish(e, n[4] ? OP_READ : OP_WRITE);
}

/* --- blkparse ----------------------------------------------------------------------- */

/* "8,16" */
static bool is_device(const char *word)
{
	size_t major = strspn(word, "0123456789"), minor;

	if (!major || word[major] != ',')
		return false;
	minor = strspn(word + major + 1, "0123456789");
	return minor && !word[major + 1 + minor];
}

static bool starts_summary(const char *word)
{
	return !strncmp(word, "CPU", 3) || !strcmp(word, "Total") || !strcmp(word, "Input") ||
	       !strcmp(word, "Throughput") || !strcmp(word, "Events");
}

/* device cpu sequence time pid action rwbs sector + sectors [process] */
static enum pc_entry_kind parse_blkparse(struct pc_parser *p, char *line,
					 struct pc_trace_entry *e)
{
	char *fields[MAX_FIELDS];
	unsigned int n = split_blanks(line, fields);
	enum op op = OP_OTHER;

	if (p->in_summary || !n)
		return PC_ENTRY_IGNORED;
	if (starts_summary(fields[0])) {
		p->in_summary = true;
		return PC_ENTRY_IGNORED;
	}
	if (!is_device(fields[0]))
		return bad(p, "device '%.40s': must be two numbers as in 8,16", fields[0]);
	if (n < 6)
		return bad(p, "%u fields: must be at least 6", n);
	if (strcmp(fields[5], p->action) != 0)
		return PC_ENTRY_IGNORED;
	if (n < 7)
		return bad(p, "nothing behind the action '%.40s'", fields[5]);
	/* a flush has no place; D is a discard, whatever follows */
	if (!strchr(fields[6], 'D') && strchr(fields[6], 'R'))
		op = OP_READ;
	else if (!strchr(fields[6], 'D') && strchr(fields[6], 'W'))
		op = OP_WRITE;
	if (op == OP_OTHER || n < 10 || strcmp(fields[8], "+") != 0) {
		if (op == OP_OTHER || strchr(fields[6], 'F'))
			return PC_ENTRY_IGNORED;
		return bad(p, "a read or write without 'sector + sectors'");
	}
	if (!want_time(p, fields[3], 1000000000, &e->time_ns) ||
	    !want_number(p, "sector", fields[7], &e->sector) ||
	    !want_number(p, "number of sectors", fields[9], &e->sectors) ||
	    !find_space(p, fields[0], &e->space))
		return PC_ENTRY_BAD;
	return finish(e, op);
}

/* --- fio iolog ---------------------------------------------------------------------- */

static enum pc_entry_kind iolog_header(struct pc_parser *p, const char *line)
{
	if (sscanf(line, "fio version %u iolog", &p->version) != 1)
		return bad(p, "the first line must be 'fio version 2 iolog' or 'fio version 3 iolog'");
	if (p->version != 2 && p->version != 3)
		return bad(p, "iolog version %u: must be 2 or 3", p->version);
	return PC_ENTRY_IGNORED;
}

/* What stands behind the time that version 3 has: file action [offset length] */
static enum pc_entry_kind iolog_action(struct pc_parser *p, char **fields, unsigned int n,
				       struct pc_trace_entry *e)
{
	static const char *const others[] = {
		"add", "open", "close", "trim", "sync", "datasync", "wait",
	};
	enum op op = OP_UNKNOWN;
	u64 offset, size;

	if (n < 2)
		return bad(p, "%u fields: must be a file and an action", n);
	if (!strcmp(fields[1], "read"))
		op = OP_READ;
	else if (!strcmp(fields[1], "write"))
		op = OP_WRITE;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(fields[1], others[i]))
			op = OP_OTHER;
	if (op == OP_UNKNOWN)
		return bad(p, "action '%.40s': must be read, write, add, open, close, trim, sync, datasync or wait",
			   fields[1]);
	if (op == OP_OTHER) {
		/* microseconds since the last */
		if (!strcmp(fields[1], "wait") && n > 2 && to_number(fields[2], &offset))
			p->clock_ns += offset * 1000;
		return PC_ENTRY_IGNORED;
	}
	if (n < 4)
		return bad(p, "a %s must have an offset and a length", fields[1]);
	if (!want_number(p, "offset", fields[2], &offset) ||
	    !want_number(p, "length", fields[3], &size) ||
	    !find_space(p, fields[0], &e->space) || !set_bytes(p, e, offset, size))
		return PC_ENTRY_BAD;
	return finish(e, op);
}

static enum pc_entry_kind parse_iolog(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	char *fields[MAX_FIELDS];
	unsigned int n;

	if (!p->version)
		return iolog_header(p, line);
	n = split_blanks(line, fields);
	if (!n)
		return PC_ENTRY_IGNORED;
	if (p->version == 2) {
		e->time_ns = p->clock_ns;
		return iolog_action(p, fields, n, e);
	}
	if (!want_time(p, fields[0], 1000000, &e->time_ns))
		return PC_ENTRY_BAD;
	return iolog_action(p, fields + 1, n - 1, e);
}

/* --- vscsi -------------------------------------------------------------------------- */

struct vscsi_record {
	__le32 number;
	__le32 length;		/* bytes */
	__le32 nr_segments;
	__le16 command;
	__le16 version;
	__le64 sector;
	__le64 time_us;
} __packed;

#define VSCSI_VERSION(v) (le16_to_cpu(v) >> 8)

static enum pc_entry_kind parse_vscsi(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	struct vscsi_record r;
	u64 time_us;
	enum op op;

	memcpy(&r, line, sizeof(r));
	if (VSCSI_VERSION(r.version) != 1)
		return bad(p, "version %u: must be 1 (records of 32 bytes)",
			   VSCSI_VERSION(r.version));
	op = scsi_op(le16_to_cpu(r.command) & 0xff);
	if (!set_bytes(p, e, 0, le32_to_cpu(r.length)))
		return PC_ENTRY_BAD;
	e->sector = le64_to_cpu(r.sector);
	time_us = le64_to_cpu(r.time_us);
	if (time_us > U64_MAX / 1000)
		return bad(p, "time %llu us: must be below 2^64 ns", time_us);
	e->time_ns = time_us * 1000;
	return finish(e, op);
}

/* --- which one it is ---------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && !strcasecmp(name + n - m, end);
}

static bool begins_with(const char *head, size_t len, const char *text)
{
	return len >= strlen(text) && !memcmp(head, text, strlen(text));
}

/* The first line, as fields that the caller may look at; 0 if it is no text. */
static unsigned int first_fields(const char *head, size_t len, bool commas, char line[1024],
				 char *fields[MAX_FIELDS])
{
	size_t n = 0;

	while (n < len && n < 1023 && head[n] != '\n' && head[n] != '\r') {
		if ((unsigned char)head[n] < ' ' && head[n] != '\t')
			return 0;
		n++;
	}
	memcpy(line, head, n);
	line[n] = 0;
	return commas ? split_commas(line, fields) : split_blanks(line, fields);
}

static bool is_vscsi(const char *name, const char *head, size_t len)
{
	return ends_with(name, ".vscsi");
}

static bool is_cloudphysics(const char *name, const char *head, size_t len)
{
	return begins_with(head, len, "version,time,op,size,lbn");
}

static bool is_iolog(const char *name, const char *head, size_t len)
{
	return begins_with(head, len, "fio version ");
}

static bool is_pages(const char *name, const char *head, size_t len)
{
	return ends_with(name, ".lis") && !strncasecmp(name, "OLTP", 4);
}

static bool has_numbers(const char *head, size_t len, unsigned int nr, u64 *last)
{
	char line[1024], *fields[MAX_FIELDS];
	unsigned int n = first_fields(head, len, false, line, fields);

	for (unsigned int i = 0; i < n; i++)
		if (!to_number(fields[i], last))
			return false;
	return n == nr;
}

static bool is_lis(const char *name, const char *head, size_t len)
{
	u64 last;

	return ends_with(name, ".lis") && has_numbers(head, len, 4, &last);
}

static bool is_mqsim(const char *name, const char *head, size_t len)
{
	u64 last;

	return has_numbers(head, len, 5, &last) && last <= 1;
}

static bool is_blkparse(const char *name, const char *head, size_t len)
{
	char line[1024], *fields[MAX_FIELDS];

	return first_fields(head, len, false, line, fields) >= 6 && is_device(fields[0]);
}

static bool is_msr(const char *name, const char *head, size_t len)
{
	char line[1024], *fields[MAX_FIELDS];

	if (begins_with(head, len, "Timestamp,Hostname,DiskNumber,Type"))
		return true;
	return first_fields(head, len, true, line, fields) == 7 &&
	       (!strcasecmp(fields[3], "read") || !strcasecmp(fields[3], "write"));
}

static bool is_csv(const char *name, const char *head, size_t len)
{
	char line[1024], *fields[MAX_FIELDS];

	return first_fields(head, len, true, line, fields) == 4;
}

/* In the order in which they are tried on a file of unknown format. */
static const struct pc_trace_format formats[] = {
	{
		.name = "cloudphysics",
		.text = "CSV with the header version,time,op,size,lbn",
		.columns = "-,time,op,size,sector",
		.looks_like = is_cloudphysics,
	},
	{
		.name = "msr",
		.text = "MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
		.columns = "time:100ns,-,device,op,offset,size",
		.looks_like = is_msr,
	},
	{
		.name = "blkparse",
		.text = "text output of blkparse, as it is by default",
		.parse = parse_blkparse,
		.looks_like = is_blkparse,
		.has_time = true,
	},
	{
		.name = "iolog",
		.text = "fio's log of I/O, versions 2 and 3",
		.parse = parse_iolog,
		.looks_like = is_iolog,
		.has_time = true,
	},
	{
		.name = "vscsi",
		.text = "binary, records of 32 bytes as VMware's vscsiStats has them",
		.parse = parse_vscsi,
		.looks_like = is_vscsi,
		.record_size = sizeof(struct vscsi_record),
		.has_time = true,
	},
	{
		.name = "pages",
		.text = "'page - - -', reads of a page of 4 KiB (OLTP.lis)",
		.parse = parse_pages,
		.looks_like = is_pages,
		.block_sectors = PC_TRACE_PAGE_SECTORS,
	},
	{
		.name = "lis",
		.text = "'start count - -', reads of sectors (P3.lis and the like)",
		.parse = parse_lis,
		.looks_like = is_lis,
	},
	{
		.name = "mqsim",
		.text = "'ns device sector sectors type', type 0 writes, 1 reads",
		.parse = parse_mqsim,
		.looks_like = is_mqsim,
		.has_time = true,
	},
	{
		.name = "csv",
		.text = "any other CSV, with --columns",
		.columns = "time,op,offset,size",
		.looks_like = is_csv,
	},
};

const char *pc_trace_format(unsigned int i, const char **text)
{
	if (i >= ARRAY_SIZE(formats))
		return NULL;
	*text = formats[i].text;
	return formats[i].name;
}

const struct pc_trace_format *pc_trace_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct pc_trace_format *pc_trace_format_guess(const char *path, const char *head,
						    size_t len)
{
	static const char *const packed[] = { ".gz", ".xz", ".zst", ".bz2", ".lz4" };
	const char *slash = strrchr(path, '/');
	char name[256];

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path);
	for (size_t i = 0; i < ARRAY_SIZE(packed); i++)
		if (ends_with(name, packed[i])) {
			name[strlen(name) - strlen(packed[i])] = 0;
			break;
		}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].looks_like(name, head, len))
			return &formats[i];
	return NULL;
}

/* --- the door ----------------------------------------------------------------------- */

bool pc_parser_init(struct pc_parser *p, const struct pc_trace_format *f, const char *columns,
		    const char *action)
{
	memset(p, 0, sizeof(*p));
	p->format = f;
	p->action = action ? : "Q";
	if (columns && f->parse) {
		bad(p, "format %s has no columns to choose: --columns is for csv, msr and cloudphysics",
		    f->name);
		return false;
	}
	if (action && f->parse != parse_blkparse) {
		bad(p, "format %s has no actions: --blkparse-action is for blkparse", f->name);
		return false;
	}
	return f->parse || set_columns(p, columns ? : f->columns);
}

void pc_parser_exit(struct pc_parser *p)
{
	for (u32 i = 0; i < p->nr_spaces; i++)
		free(p->spaces[i]);
	free(p->spaces);
	memset(p, 0, sizeof(*p));
}

enum pc_entry_kind pc_parser_parse(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	return p->format->parse ? p->format->parse(p, line, e) : parse_columns(p, line, e);
}
