// SPDX-License-Identifier: GPL-2.0-only
/*
 * Feeds status lines of a cache to libdevmapper's dm_get_status_cache() and compares
 * every field that comes back with the text.
 *
 *   dmsetup status DEVICE | status-parse [fail|error]
 *
 * Without an argument the device must be neither. Prints "key=value" for each field,
 * one a line; exit status 1 and "status-parse: ..." on stderr where a field differs or
 * libdevmapper logs a complaint. The text is taken apart here a second time, by
 * position alone.
 */
#include <inttypes.h>
#include <libdevmapper.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#define MAX_WORDS 256

static int failed;

__attribute__((format(printf, 1, 2))) static void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("status-parse: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	failed = 1;
}

__attribute__((format(printf, 5, 6))) static void
on_log(int level, const char *file, int line, int dm_errno_or_class, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	(void)file;
	(void)dm_errno_or_class;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if ((level & 7) <= LOG_WARNING)
		complain("libdevmapper, line %d: %s", line, text);
}

static void number(const char *name, uint64_t got, const char *word)
{
	char *end;
	uint64_t want = strtoull(word, &end, 10);

	if (!*word || (*end && *end != '/') || got != want)
		complain("%s: %" PRIu64 ", the text says %s", name, got, word);
	printf("%s=%" PRIu64 "\n", name, got);
}

static const char *after_slash(const char *word)
{
	const char *slash = strchr(word, '/');

	return slash ? slash + 1 : "";
}

static void flag(const char *name, unsigned int got, unsigned int want)
{
	if (got != want)
		complain("%s: %u, the text says %u", name, got, want);
	printf("%s=%u\n", name, got);
}

/* The words after a count that they are; returns the next position. */
static int words(const char *name, int argc, char **argv, char **word, int nr, int at)
{
	int i, n = at < nr ? atoi(word[at++]) : 0;

	if (argc != n)
		complain("#%s: %d, the text says %d", name, argc, n);
	printf("%s=", name);
	for (i = 0; i < argc && i < n; i++) {
		if (at + i >= nr || strcmp(argv[i], word[at + i]) != 0)
			complain("%s %d: %s, the text says %s", name, i, argv[i],
				 at + i < nr ? word[at + i] : "nothing");
		printf("%s%s", i ? " " : "", argv[i]);
	}
	puts("");
	return at + n;
}

static int features(uint64_t flags, char **word, int nr, int at)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} known[] = {
		{ "writeback", DM_CACHE_FEATURE_WRITEBACK },
		{ "writethrough", DM_CACHE_FEATURE_WRITETHROUGH },
		{ "passthrough", DM_CACHE_FEATURE_PASSTHROUGH },
		{ "metadata2", DM_CACHE_FEATURE_METADATA2 },
		{ "no_discard_passdown", DM_CACHE_FEATURE_NO_DISCARD_PASSDOWN },
	};
	int n = at < nr ? atoi(word[at++]) : 0, end = at + n;
	uint64_t want = 0;
	size_t k;

	printf("features=");
	for (; at < end && at < nr; at++) {
		for (k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (!strcmp(word[at], known[k].name))
				break;
		if (k == sizeof(known) / sizeof(*known)) {
			complain("feature %s is not one that libdevmapper knows", word[at]);
			continue;
		}
		want |= known[k].flag;
		printf("%s ", word[at]);
	}
	puts("");
	if (flags != want)
		complain("features: %#" PRIx64 ", the text says %#" PRIx64, flags, want);
	return end;
}

static void compare(const struct dm_status_cache *s, char **word, int nr)
{
	int at = 11;

	if (nr < 20) {
		complain("only %d words", nr);
		return;
	}
	number("metadata_block_size", s->metadata_block_size, word[0]);
	number("metadata_used", s->metadata_used_blocks, word[1]);
	number("metadata_total", s->metadata_total_blocks, after_slash(word[1]));
	number("block_size", s->block_size, word[2]);
	number("used", s->used_blocks, word[3]);
	number("total", s->total_blocks, after_slash(word[3]));
	number("read_hits", s->read_hits, word[4]);
	number("read_misses", s->read_misses, word[5]);
	number("write_hits", s->write_hits, word[6]);
	number("write_misses", s->write_misses, word[7]);
	number("demotions", s->demotions, word[8]);
	number("promotions", s->promotions, word[9]);
	number("dirty", s->dirty_blocks, word[10]);
	at = features(s->feature_flags, word, nr, at);
	at = words("core", s->core_argc, s->core_argv, word, nr, at);
	if (at >= nr || strcmp(s->policy_name, word[at]) != 0)
		complain("policy: %s, the text says %s", s->policy_name, at < nr ? word[at] : "-");
	printf("policy=%s\n", s->policy_name);
	at = words("args", s->policy_argc, s->policy_argv, word, nr, at + 1);
	if (at + 2 != nr) {
		complain("%d words, but the counts say %d", nr, at + 2);
		return;
	}
	if (strcmp(word[at], "ro") != 0 && strcmp(word[at], "rw") != 0)
		complain("%s: neither ro nor rw", word[at]);
	if (strcmp(word[at + 1], "-") != 0 && strcmp(word[at + 1], "needs_check") != 0)
		complain("%s: neither - nor needs_check", word[at + 1]);
	flag("read_only", s->read_only, !strcmp(word[at], "ro"));
	flag("needs_check", s->needs_check, !strcmp(word[at + 1], "needs_check"));
}

int main(int argc, char **argv)
{
	const char *state = argc > 1 ? argv[1] : "";
	struct dm_status_cache *s = NULL;
	static char line[8192], copy[8192];
	char *word[MAX_WORDS], *p, *rest;
	struct dm_pool *mem;
	int nr = 0, i;

	dm_log_with_errno_init(on_log);
	if (!fgets(line, sizeof(line), stdin)) {
		complain("no status line");
		return 1;
	}
	line[strcspn(line, "\n")] = 0;
	/* start, length and target are dmsetup's */
	p = line;
	for (i = 0; i < 3 && p; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p) {
		complain("not a status line: %s", line);
		return 1;
	}
	strcpy(copy, p);
	for (rest = copy; nr < MAX_WORDS && (word[nr] = strtok(rest, " ")); nr++)
		rest = NULL;

	mem = dm_pool_create("status", 1024);
	if (!mem || !dm_get_status_cache(mem, p, &s) || !s) {
		complain("dm_get_status_cache() refuses: %s", p);
		return 1;
	}
	flag("fail", s->fail, !strcmp(state, "fail"));
	flag("error", s->error, !strcmp(state, "error"));
	if (!*state)
		compare(s, word, nr);
	dm_pool_destroy(mem);
	return failed;
}
