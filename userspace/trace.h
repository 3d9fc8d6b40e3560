/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A block trace in memory: what was read or written where, in the order of the file.
 * trace.c reads it, trace-formats.c knows the formats, trace-input.c gives the bytes.
 */
#ifndef PC_TRACE_H
#define PC_TRACE_H

#include <linux/types.h>

#define PC_TRACE_ERR_SIZE 512
/* address spaces (disks, files) that one trace may have */
#define PC_TRACE_MAX_SPACES 4096u

/* Sixteen bytes, since there may be a thousand million of them. */
struct pc_request {
	u64 sector : 63;
	u64 is_write : 1;
	u32 sectors;
	u32 seconds;		/* since the first request; 0 in traces without time */
};

struct pc_trace {
	struct pc_request *requests;
	size_t nr;
	size_t nr_writes;
	u64 nr_accesses;	/* to blocks, the requests split at their bounds */
	u64 nr_blocks;		/* distinct ones */
	u64 origin_sectors;	/* all address spaces, one behind the other; whole blocks */
	u32 block_sectors;
	u32 nr_spaces;
	bool has_time;
	const char *format;	/* the name */

	u64 nr_ignored;		/* entries that are neither a read nor a write of something */
	u64 nr_bad;		/* lines that were skipped */
};

struct pc_trace_options {
	const char *format;	/* NULL: found out */
	const char *columns;	/* of format csv; NULL: the usual ones */
	const char *action;	/* of format blkparse; NULL: Q */
	bool skip_bad;
	u64 limit;		/* requests to read; 0: all */
	u32 block_sectors;	/* 0: 128, or the page of a trace of pages */
	/* now and then: bytes of the file read so far, and its size, 0 if not known */
	void (*progress)(void *context, u64 done, u64 all);
	void *context;
};

/* False: err says why. The trace is to be freed in either case. */
bool pc_trace_read(struct pc_trace *t, const char *path, const struct pc_trace_options *o,
		   char err[PC_TRACE_ERR_SIZE]);
void pc_trace_free(struct pc_trace *t);

/* The formats, for texts: the name and what it is of number i, or NULL. */
const char *pc_trace_format(unsigned int i, const char **text);

#endif
