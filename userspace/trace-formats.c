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

#include "trace-words.h"

/* --- lists with blanks -------------------------------------------------------------- */

static bool want_fields(struct pc_parser *p, char *line, u64 *out, unsigned int nr,
			const char *const *names)
{
	char *fields[PC_MAX_FIELDS];
	unsigned int n = pc_split_blanks(line, fields);

	if (n != nr) {
		pc_entry_bad(p, "%u fields: must be %u", n, nr);
		return false;
	}
	for (unsigned int i = 0; i < nr; i++)
		if (!pc_want_number(p, names[i], fields[i], &out[i]))
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
	return pc_entry_finish(e, PC_OP_READ);
}

static enum pc_entry_kind parse_pages(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	u64 n[4];

	if (!want_fields(p, line, n, 4, lis_fields))
		return PC_ENTRY_BAD;
	if (__builtin_mul_overflow(n[0], (u64)PC_TRACE_PAGE_SECTORS, &e->sector))
		return pc_entry_bad(p, "page %llu is no place", n[0]);
	e->sectors = PC_TRACE_PAGE_SECTORS;
	return pc_entry_finish(e, PC_OP_READ);
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
		return pc_entry_bad(p, "type %llu: must be 0 (a write) or 1 (a read)", n[4]);
	snprintf(device, sizeof(device), "%llu", n[1]);
	if (!pc_find_space(p, device, &e->space))
		return PC_ENTRY_BAD;
	e->time_ns = n[0];
	e->sector = n[2];
	e->sectors = n[3];
	return pc_entry_finish(e, n[4] ? PC_OP_READ : PC_OP_WRITE);
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
	char *fields[PC_MAX_FIELDS];
	unsigned int n = pc_split_blanks(line, fields);
	enum pc_op op = PC_OP_OTHER;

	if (p->in_summary || !n)
		return PC_ENTRY_IGNORED;
	if (starts_summary(fields[0])) {
		p->in_summary = true;
		return PC_ENTRY_IGNORED;
	}
	if (!is_device(fields[0]))
		return pc_entry_bad(p, "device '%.40s': must be two numbers as in 8,16", fields[0]);
	if (n < 6)
		return pc_entry_bad(p, "%u fields: must be at least 6", n);
	if (strcmp(fields[5], p->action) != 0)
		return PC_ENTRY_IGNORED;
	if (n < 7)
		return pc_entry_bad(p, "nothing behind the action '%.40s'", fields[5]);
	/* a flush has no place; D is a discard, whatever follows */
	if (!strchr(fields[6], 'D') && strchr(fields[6], 'R'))
		op = PC_OP_READ;
	else if (!strchr(fields[6], 'D') && strchr(fields[6], 'W'))
		op = PC_OP_WRITE;
	if (op == PC_OP_OTHER || n < 10 || strcmp(fields[8], "+") != 0) {
		if (op == PC_OP_OTHER || strchr(fields[6], 'F'))
			return PC_ENTRY_IGNORED;
		return pc_entry_bad(p, "a read or write without 'sector + sectors'");
	}
	if (!pc_want_time(p, fields[3], 1000000000, &e->time_ns) ||
	    !pc_want_number(p, "sector", fields[7], &e->sector) ||
	    !pc_want_number(p, "number of sectors", fields[9], &e->sectors) ||
	    !pc_find_space(p, fields[0], &e->space))
		return PC_ENTRY_BAD;
	return pc_entry_finish(e, op);
}

/* --- fio iolog ---------------------------------------------------------------------- */

static enum pc_entry_kind iolog_header(struct pc_parser *p, const char *line)
{
	if (sscanf(line, "fio version %u iolog", &p->version) != 1)
		return pc_entry_bad(p, "the first line must be 'fio version 2 iolog' or 'fio version 3 iolog'");
	if (p->version != 2 && p->version != 3)
		return pc_entry_bad(p, "iolog version %u: must be 2 or 3", p->version);
	return PC_ENTRY_IGNORED;
}

/* What stands behind the time that version 3 has: file action [offset length] */
static enum pc_entry_kind iolog_action(struct pc_parser *p, char **fields, unsigned int n,
				       struct pc_trace_entry *e)
{
	static const char *const others[] = {
		"add", "open", "close", "trim", "sync", "datasync", "wait",
	};
	enum pc_op op = PC_OP_UNKNOWN;
	u64 offset, size;

	if (n < 2)
		return pc_entry_bad(p, "%u fields: must be a file and an action", n);
	if (!strcmp(fields[1], "read"))
		op = PC_OP_READ;
	else if (!strcmp(fields[1], "write"))
		op = PC_OP_WRITE;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(fields[1], others[i]))
			op = PC_OP_OTHER;
	if (op == PC_OP_UNKNOWN)
		return pc_entry_bad(p, "action '%.40s': must be read, write, add, open, close, trim, sync, datasync or wait",
			   fields[1]);
	if (op == PC_OP_OTHER) {
		/* microseconds since the last */
		if (!strcmp(fields[1], "wait") && n > 2 && pc_to_number(fields[2], &offset))
			p->clock_ns += offset * 1000;
		return PC_ENTRY_IGNORED;
	}
	if (n < 4)
		return pc_entry_bad(p, "a %s must have an offset and a length", fields[1]);
	if (!pc_want_number(p, "offset", fields[2], &offset) ||
	    !pc_want_number(p, "length", fields[3], &size) ||
	    !pc_find_space(p, fields[0], &e->space) || !pc_set_bytes(p, e, offset, size))
		return PC_ENTRY_BAD;
	return pc_entry_finish(e, op);
}

static enum pc_entry_kind parse_iolog(struct pc_parser *p, char *line, struct pc_trace_entry *e)
{
	char *fields[PC_MAX_FIELDS];
	unsigned int n;

	if (!p->version)
		return iolog_header(p, line);
	n = pc_split_blanks(line, fields);
	if (!n)
		return PC_ENTRY_IGNORED;
	if (p->version == 2) {
		e->time_ns = p->clock_ns;
		return iolog_action(p, fields, n, e);
	}
	if (!pc_want_time(p, fields[0], 1000000, &e->time_ns))
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
	enum pc_op op;

	memcpy(&r, line, sizeof(r));
	if (VSCSI_VERSION(r.version) != 1)
		return pc_entry_bad(p, "version %u: must be 1 (records of 32 bytes)",
			   VSCSI_VERSION(r.version));
	op = pc_op_of_scsi(le16_to_cpu(r.command) & 0xff);
	if (!pc_set_bytes(p, e, 0, le32_to_cpu(r.length)))
		return PC_ENTRY_BAD;
	e->sector = le64_to_cpu(r.sector);
	time_us = le64_to_cpu(r.time_us);
	if (time_us > U64_MAX / 1000)
		return pc_entry_bad(p, "time %llu us: must be below 2^64 ns", time_us);
	e->time_ns = time_us * 1000;
	return pc_entry_finish(e, op);
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
				 char *fields[PC_MAX_FIELDS])
{
	size_t n = 0;

	while (n < len && n < 1023 && head[n] != '\n' && head[n] != '\r') {
		if ((unsigned char)head[n] < ' ' && head[n] != '\t')
			return 0;
		n++;
	}
	memcpy(line, head, n);
	line[n] = 0;
	return commas ? pc_split_commas(line, fields) : pc_split_blanks(line, fields);
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
	char line[1024], *fields[PC_MAX_FIELDS];
	unsigned int n = first_fields(head, len, false, line, fields);

	for (unsigned int i = 0; i < n; i++)
		if (!pc_to_number(fields[i], last))
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
	char line[1024], *fields[PC_MAX_FIELDS];

	return first_fields(head, len, false, line, fields) >= 6 && is_device(fields[0]);
}

static bool is_msr(const char *name, const char *head, size_t len)
{
	char line[1024], *fields[PC_MAX_FIELDS];

	if (begins_with(head, len, "Timestamp,Hostname,DiskNumber,Type"))
		return true;
	return first_fields(head, len, true, line, fields) == 7 &&
	       (!strcasecmp(fields[3], "read") || !strcasecmp(fields[3], "write"));
}

static bool is_csv(const char *name, const char *head, size_t len)
{
	char line[1024], *fields[PC_MAX_FIELDS];

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
		pc_entry_bad(p, "format %s has no columns to choose: --columns is for csv, msr and cloudphysics",
		    f->name);
		return false;
	}
	if (action && f->parse != parse_blkparse) {
		pc_entry_bad(p, "format %s has no actions: --blkparse-action is for blkparse", f->name);
		return false;
	}
	return f->parse || pc_columns_set(p, columns ? : f->columns);
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
	return p->format->parse ? p->format->parse(p, line, e) : pc_columns_parse(p, line, e);
}
