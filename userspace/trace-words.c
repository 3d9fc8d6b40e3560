// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words of traces (trace-words.h): fields, numbers, times, operations. Nothing here
 * knows a format; what is refused is put in words for whoever reads the message.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <linux/kernel.h>

#include "trace-words.h"

enum pc_entry_kind pc_entry_bad(struct pc_parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	return PC_ENTRY_BAD;
}

unsigned int pc_split_blanks(char *line, char *fields[PC_MAX_FIELDS])
{
	unsigned int n = 0;

	while (n < PC_MAX_FIELDS) {
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

unsigned int pc_split_commas(char *line, char *fields[PC_MAX_FIELDS])
{
	unsigned int n = 0;

	while (n < PC_MAX_FIELDS) {
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

bool pc_to_number(const char *word, u64 *out)
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

bool pc_want_number(struct pc_parser *p, const char *what, const char *word, u64 *out)
{
	if (pc_to_number(word, out))
		return true;
	pc_entry_bad(p, "%s '%.40s': must be a number from 0 to 18446744073709551615", what, word);
	return false;
}

bool pc_want_time(struct pc_parser *p, const char *word, u64 unit_ns, u64 *out)
{
	const char *at = word;
	u64 n = 0, part_ns = unit_ns;
	bool fits = isdigit((unsigned char)*word);

	for (; isdigit((unsigned char)*at); at++)
		fits &= !__builtin_mul_overflow(n, 10ull, &n) &&
			!__builtin_add_overflow(n, (u64)(*at - '0'), &n);
	fits &= !__builtin_mul_overflow(n, unit_ns, &n);
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++) {
			part_ns /= 10;
			fits &= !__builtin_add_overflow(n, (*at - '0') * part_ns, &n);
		}
	if (fits && !*at) {
		*out = n;
		return true;
	}
	pc_entry_bad(p, "time '%.40s': must be a number below 2^64 ns", word);
	return false;
}

bool pc_find_space(struct pc_parser *p, const char *name, u32 *out)
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
		pc_entry_bad(p, "device '%.40s': more than %u devices or files", name,
			     PC_TRACE_MAX_SPACES);
		return false;
	}
	p->spaces[p->nr_spaces] = strdup(name);
	if (!p->spaces[p->nr_spaces]) {
		pc_entry_bad(p, "out of memory");
		return false;
	}
	*out = p->nr_spaces++;
	return true;
}

bool pc_set_bytes(struct pc_parser *p, struct pc_trace_entry *e, u64 offset, u64 size)
{
	u64 end;

	if (__builtin_add_overflow(offset, size, &end) || end > U64_MAX - SECTOR_BYTES) {
		pc_entry_bad(p, "offset %llu and size %llu: the end must be below 2^64", offset, size);
		return false;
	}
	e->sector = offset / SECTOR_BYTES;
	e->sectors = size ? (end + SECTOR_BYTES - 1) / SECTOR_BYTES - e->sector : 0;
	return true;
}

/* --- operations --------------------------------------------------------------------- */

/* SCSI: READ and WRITE of 6, 10, 12 and 16 bytes, WRITE AND VERIFY */
enum pc_op pc_op_of_scsi(unsigned int code)
{
	switch (code) {
	case 0x08: case 0x28: case 0xa8: case 0x88:
		return PC_OP_READ;
	case 0x0a: case 0x2a: case 0xaa: case 0x8a: case 0x2e: case 0xae: case 0x8e:
		return PC_OP_WRITE;
	default:
		return PC_OP_OTHER;
	}
}

enum pc_op pc_op_find(const char *word)
{
	static const struct {
		const char *word;
		enum pc_op op;
	} words[] = {
		{ "r", PC_OP_READ }, { "read", PC_OP_READ }, { "w", PC_OP_WRITE }, { "write", PC_OP_WRITE },
		{ "d", PC_OP_OTHER }, { "discard", PC_OP_OTHER }, { "trim", PC_OP_OTHER },
		{ "unmap", PC_OP_OTHER }, { "f", PC_OP_OTHER }, { "flush", PC_OP_OTHER },
		{ "sync", PC_OP_OTHER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(word, words[i].word))
			return words[i].op;
	if (word[0] == '0' && (word[1] == 'x' || word[1] == 'X'))
		word += 2;
	if (isxdigit((unsigned char)word[0]) && isxdigit((unsigned char)word[1]) && !word[2])
		return pc_op_of_scsi(strtoul(word, NULL, 16));
	return PC_OP_UNKNOWN;
}

enum pc_entry_kind pc_entry_finish(struct pc_trace_entry *e, enum pc_op op)
{
	e->is_write = op == PC_OP_WRITE;
	return op == PC_OP_OTHER || !e->sectors ? PC_ENTRY_IGNORED : PC_ENTRY_REQUEST;
}
