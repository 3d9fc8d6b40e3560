/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parsers of traces have in common: a line as fields, a field as a number, a
 * time, an operation, an address space. A want_ function that returns false has put
 * into p->why what is wrong.
 */
#ifndef PC_TRACE_WORDS_H
#define PC_TRACE_WORDS_H

#include "trace-formats.h"

#define PC_MAX_FIELDS 24
#define SECTOR_BYTES 512u

enum pc_op {
	PC_OP_READ,
	PC_OP_WRITE,
	PC_OP_OTHER,		/* known, and of no interest */
	PC_OP_UNKNOWN,
};

/* Puts the text into p->why. Returns PC_ENTRY_BAD. */
__attribute__((format(printf, 2, 3)))
enum pc_entry_kind pc_entry_bad(struct pc_parser *p, const char *fmt, ...);
/* The verdict on an entry that is complete. */
enum pc_entry_kind pc_entry_finish(struct pc_trace_entry *e, enum pc_op op);

/* The fields between blanks, zero-terminated. Returns how many, at most PC_MAX_FIELDS. */
unsigned int pc_split_blanks(char *line, char *fields[PC_MAX_FIELDS]);
/* Those between commas, blanks around them cut off. */
unsigned int pc_split_commas(char *line, char *fields[PC_MAX_FIELDS]);

bool pc_to_number(const char *word, u64 *out);
bool pc_want_number(struct pc_parser *p, const char *what, const char *word, u64 *out);
/* "12.5" of a unit of so many nanoseconds; what is below one is cut off. */
bool pc_want_time(struct pc_parser *p, const char *word, u64 unit_ns, u64 *out);
/* Number of the address space of this name; a new one is added. */
bool pc_find_space(struct pc_parser *p, const char *name, u32 *out);
/* Whole sectors around a range of bytes. False: it reaches beyond the last. */
bool pc_set_bytes(struct pc_parser *p, struct pc_trace_entry *e, u64 offset, u64 size);

enum pc_op pc_op_of_scsi(unsigned int code);
/* r, read, 28 and so on */
enum pc_op pc_op_find(const char *word);

#endif
