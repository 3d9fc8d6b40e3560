/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between trace.c and trace-formats.c: one entry of a trace -> what it asks for.
 */
#ifndef PC_TRACE_FORMATS_H
#define PC_TRACE_FORMATS_H

#include "trace.h"

/* of a page, where a trace tells page numbers and not how large a page is */
#define PC_TRACE_PAGE_SECTORS 8u
/* of a binary record, at most */
#define PC_TRACE_MAX_RECORD 64u

#define PC_TRACE_MAX_COLUMNS 16

enum pc_column {
	PC_COLUMN_SKIP,
	PC_COLUMN_TIME,
	PC_COLUMN_OP,
	PC_COLUMN_OFFSET,	/* bytes */
	PC_COLUMN_SECTOR,
	PC_COLUMN_SIZE,		/* bytes */
	PC_COLUMN_SECTORS,
	PC_COLUMN_DEVICE,
};

enum pc_entry_kind {
	PC_ENTRY_REQUEST,
	PC_ENTRY_IGNORED,
	PC_ENTRY_BAD,
};

/* One entry of a trace, as read. */
struct pc_trace_entry {
	u64 sector;
	u64 sectors;
	u64 time_ns;
	u32 space;		/* number of the address space, from 0 */
	bool is_write;
};

/* What the parser of a format keeps from entry to entry. */
struct pc_parser {
	const struct pc_trace_format *format;
	const char *action;		/* blkparse */
	enum pc_column columns[PC_TRACE_MAX_COLUMNS];
	unsigned int nr_columns;
	u64 column_time_ns;		/* unit of the column */
	bool in_summary;		/* of blkparse, up to the end of the file */
	unsigned int version;		/* of iolog */
	u64 clock_ns;			/* of iolog 2, which tells pauses */
	u64 entry_number;		/* from 1: of the line or record */

	/* names of address spaces in the order in which they came */
	char **spaces;
	u32 nr_spaces;

	char why[200];			/* what is wrong with a bad entry */
};

struct pc_trace_format {
	const char *name;
	const char *text;
	/* NULL: columns. Else line is a text line, or a record. */
	enum pc_entry_kind (*parse)(struct pc_parser *p, char *line, struct pc_trace_entry *e);
	/* True if a file of that name that begins so is of this format. */
	bool (*looks_like)(const char *name, const char *head, size_t len);
	const char *columns;	/* the default */
	size_t record_size;	/* 0: text */
	bool has_time;
	u32 block_sectors;	/* the usual block size of a simulation; 0: 128 */
};

/* NULL: no such format. */
const struct pc_trace_format *pc_trace_format_find(const char *name);
/* name: of the file, head: its first bytes. NULL: unknown. */
const struct pc_trace_format *pc_trace_format_guess(const char *path, const char *head,
						    size_t len);

/* columns: NULL for those of the format. False: p->why. */
bool pc_parser_init(struct pc_parser *p, const struct pc_trace_format *f, const char *columns,
		    const char *action);
void pc_parser_exit(struct pc_parser *p);
enum pc_entry_kind pc_parser_parse(struct pc_parser *p, char *line, struct pc_trace_entry *e);

/* trace-columns.c: the list of columns, and a line by it. False: p->why. */
bool pc_columns_set(struct pc_parser *p, const char *list);
enum pc_entry_kind pc_columns_parse(struct pc_parser *p, char *line, struct pc_trace_entry *e);

#endif
