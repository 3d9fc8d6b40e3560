// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz entry point: lines of a trace, in a format that the first byte chooses. Whatever
 * the bytes, each line is a request, nothing of interest, or bad for a reason.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/bug.h>
#include <linux/types.h>

#include "trace-formats.h"

static void parse(struct pc_parser *p, char *line)
{
	struct pc_trace_entry e = { 0 };
	enum pc_entry_kind kind;

	p->entry_number++;
	memset(p->why, 0, sizeof(p->why));
	kind = pc_parser_parse(p, line, &e);
	BUG_ON(kind != PC_ENTRY_REQUEST && kind != PC_ENTRY_IGNORED && kind != PC_ENTRY_BAD);
	BUG_ON(kind == PC_ENTRY_BAD && !p->why[0]);
	BUG_ON(kind == PC_ENTRY_REQUEST && (!e.sectors || (e.space && e.space >= p->nr_spaces)));
}

static void parse_lines(struct pc_parser *p, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		parse(p, line);
}

static void parse_records(struct pc_parser *p, char *data, size_t size)
{
	size_t step = p->format->record_size;

	for (; size >= step; size -= step, data += step)
		parse(p, data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pc_trace_format *f;
	const char *name, *text;
	struct pc_parser p;
	char *copy;

	if (!size)
		return 0;
	pc_trace_format_guess("x.trace", (const char *)data + 1, size - 1);
	pc_trace_format_guess("x.lis.gz", (const char *)data + 1, size - 1);
	name = pc_trace_format(data[0] % 16, &text);
	f = name ? pc_trace_format_find(name) : NULL;
	copy = malloc(size);
	if (!f || !copy) {
		free(copy);
		return 0;
	}
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = 0;
	BUG_ON(!pc_parser_init(&p, f, NULL, NULL));
	if (f->record_size)
		parse_records(&p, copy, size - 1);
	else
		parse_lines(&p, copy);
	pc_parser_exit(&p);
	free(copy);
	return 0;
}
