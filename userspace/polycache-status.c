// SPDX-License-Identifier: GPL-2.0-only
/*
 * polycache status: the status line with its fields named, and the stats message, as
 * text or as JSON. Names in the JSON are stable and documented in docs/polycache.8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "polycache.h"
#include "polycache-device.h"
#include "polycache-state.h"

/* Everything that one device tells. */
struct report {
	struct pc_device dev;
	struct pc_state state;
	char *stats;		/* answer to the message, "" where there is none */
	char mode[24];		/* the one at work, also where the status line has no word for it */
};

static int read_report(struct report *r, const char *name)
{
	char err[PC_DEVICE_ERR_SIZE], why[PC_ERR_SIZE];
	char *word = "stats";

	memset(r, 0, sizeof(*r));
	if (pc_device_read(&r->dev, name, err))
		return pc_fail("%s", err);
	if (pc_state_parse(&r->state, r->dev.line, why))
		return pc_fail("%s: %s", r->dev.name, why);
	if (pc_device_message(&r->dev, 1, &word, &r->stats, err))
		return pc_fail("%s", err);
	snprintf(r->mode, sizeof(r->mode), "%s",
		 r->state.broken ? "unknown" : pc_state_mode(&r->state));
	if (!strcmp(r->mode, "writethrough"))
		sscanf(r->stats, "mode %23s", r->mode);
	return PC_EXIT_OK;
}

static void free_report(struct report *r)
{
	pc_device_free(&r->dev);
	pc_state_free(&r->state);
	free(r->stats);
}

static double ratio(uint64_t hits, uint64_t misses)
{
	return hits + misses ? (double)hits / (hits + misses) : 0;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * part / all : 0;
}

/* --- text --------------------------------------------------------------------------- */

static void print_hits(const char *what, uint64_t hits, uint64_t misses)
{
	printf("  %-12s %llu hits, %llu misses", what, (unsigned long long)hits,
	       (unsigned long long)misses);
	if (hits + misses)
		printf(", %.1f %% hits", 100 * ratio(hits, misses));
	printf("\n");
}

static void print_pairs(const char *what, const struct pc_pair *pairs, unsigned int n)
{
	if (n)
		printf("  %-12s", what);
	for (unsigned int i = 0; i < n; i++)
		printf("%s %s %s", i ? "," : "", pairs[i].key, pairs[i].value);
	if (n)
		printf("\n");
}

static void print_state(const struct report *r)
{
	const struct pc_state *s = &r->state;

	printf("  %-12s %s%s%s%s\n", "state", s->read_only ? "failed, metadata is read-only" : "good",
	       s->needs_check ? ", needs check" : "", r->dev.suspended ? ", suspended" : "",
	       strcmp(r->mode, pc_state_mode(s)) && !strcmp(pc_state_mode(s), "passthrough") ?
	       ", entering passthrough" : "");
}

static void print_text(const struct report *r, bool stats)
{
	const struct pc_state *s = &r->state;
	char size[PC_SIZE_TEXT];
	const char *line = r->stats;

	if (s->broken) {
		printf("%s: %s: %s\n", r->dev.name, s->broken, strcmp(s->broken, "Fail") ?
		       "the cache is out of order" :
		       "the cache device is gone, the origin alone serves");
	} else {
		printf("%s: %s, policy %s\n", r->dev.name, r->mode, s->policy);
		print_state(r);
		printf("  %-12s %llu of %llu of %s in use (%.1f %%), %llu dirty (%.1f %%)\n",
		       "blocks", (unsigned long long)s->used, (unsigned long long)s->total,
		       pc_size_text(s->block << 9, size), percent(s->used, s->total),
		       (unsigned long long)s->dirty, percent(s->dirty, s->total));
		printf("  %-12s %llu of %llu blocks of %s\n", "metadata",
		       (unsigned long long)s->metadata_used,
		       (unsigned long long)s->metadata_total,
		       pc_size_text(s->metadata_block << 9, size));
		print_hits("reads", s->read_hits, s->read_misses);
		print_hits("writes", s->write_hits, s->write_misses);
		printf("  %-12s %llu promotions, %llu demotions\n", "moves",
		       (unsigned long long)s->promotions, (unsigned long long)s->demotions);
		print_pairs("core args", s->core, s->nr_core);
		print_pairs("policy args", s->args, s->nr_policy);
	}
	while (stats && *line) {
		int len = strcspn(line, "\n");

		printf("  %-12s %.*s\n", line == r->stats ? "stats" : "", len, line);
		line += len + (line[len] != 0);
	}
}

/* --- JSON --------------------------------------------------------------------------- */

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void add_number(struct json_object *o, const char *key, uint64_t n)
{
	add(o, key, json_object_new_uint64(n));
}

static void add_ratio(struct json_object *o, const char *key, uint64_t hits, uint64_t misses)
{
	char text[16];

	snprintf(text, sizeof(text), "%.4f", ratio(hits, misses));
	add(o, key, hits + misses ? json_object_new_double_s(ratio(hits, misses), text) : NULL);
}

/* Numbers as numbers: a value that is not all digits stays a text. */
static void add_word(struct json_object *o, const char *key, const char *value)
{
	if (*value && strspn(value, "0123456789") == strlen(value))
		add_number(o, key, strtoull(value, NULL, 10));
	else
		add(o, key, json_object_new_string(value));
}

static void add_pairs(struct json_object *o, const char *key, const struct pc_pair *pairs,
		      unsigned int n)
{
	struct json_object *list = json_object_new_object();

	for (unsigned int i = 0; i < n; i++)
		add_word(list, pairs[i].key, pairs[i].value);
	add(o, key, list);
}

static void add_stats(struct json_object *o, const char *stats)
{
	struct json_object *list = json_object_new_object();
	char *copy = strdup(stats), *at = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &at) : NULL; line;
	     line = strtok_r(NULL, "\n", &at)) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value = 0;
		add_word(list, line, value + 1);
	}
	free(copy);
	add(o, "stats", list);
}

static void add_state(struct json_object *o, const struct pc_state *s)
{
	struct json_object *features = json_object_new_array();

	for (unsigned int i = 0; i < s->nr_features; i++)
		json_object_array_add(features, json_object_new_string(s->features[i]));
	add_number(o, "metadata_block_sectors", s->metadata_block);
	add_number(o, "metadata_blocks_used", s->metadata_used);
	add_number(o, "metadata_blocks_total", s->metadata_total);
	add_number(o, "block_sectors", s->block);
	add_number(o, "blocks_used", s->used);
	add_number(o, "blocks_total", s->total);
	add_number(o, "read_hits", s->read_hits);
	add_number(o, "read_misses", s->read_misses);
	add_ratio(o, "read_hit_ratio", s->read_hits, s->read_misses);
	add_number(o, "write_hits", s->write_hits);
	add_number(o, "write_misses", s->write_misses);
	add_ratio(o, "write_hit_ratio", s->write_hits, s->write_misses);
	add_number(o, "demotions", s->demotions);
	add_number(o, "promotions", s->promotions);
	add_number(o, "dirty", s->dirty);
	add(o, "features", features);
	add_pairs(o, "core_args", s->core, s->nr_core);
	add(o, "policy", json_object_new_string(s->policy));
	add_pairs(o, "policy_args", s->args, s->nr_policy);
	add(o, "metadata_writable", json_object_new_boolean(!s->read_only));
	add(o, "needs_check", json_object_new_boolean(s->needs_check));
}

static struct json_object *to_json(const struct report *r)
{
	struct json_object *o = json_object_new_object();

	add(o, "name", json_object_new_string(r->dev.name));
	add(o, "target", json_object_new_string(r->dev.target));
	add_number(o, "sectors", r->dev.length);
	add(o, "suspended", json_object_new_boolean(r->dev.suspended));
	add(o, "state", json_object_new_string(r->state.broken ? r->state.broken :
					       r->state.read_only ? "read-only" : "good"));
	add(o, "mode", json_object_new_string(r->mode));
	if (!r->state.broken)
		add_state(o, &r->state);
	add_stats(o, r->stats);
	return o;
}

/* --- the command -------------------------------------------------------------------- */

static int report_all(const struct pc_call *call, char **names, int nr)
{
	bool json = pc_given(call, 'j');
	struct json_object *list = json_object_new_array();
	int status = PC_EXIT_OK;

	for (int i = 0; i < nr; i++) {
		struct report r;

		if (read_report(&r, names[i]))
			status = PC_EXIT_FAILED;
		else if (json)
			json_object_array_add(list, to_json(&r));
		else
			print_text(&r, pc_given(call, 's'));
		free_report(&r);
	}
	if (json)
		printf("%s\n", json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_NOSLASHESCAPE));
	else if (!nr)
		printf("no polycache devices\n");
	json_object_put(list);
	return status;
}

static int run(const struct pc_call *call)
{
	char err[PC_DEVICE_ERR_SIZE];
	char **names;
	int nr, status;

	if (call->nr_words)
		return report_all(call, call->words, call->nr_words);
	names = pc_device_list(&nr, err);
	if (!names)
		return pc_fail("%s", err);
	status = report_all(call, names, nr);
	pc_device_list_free(names, nr);
	return status;
}

static const struct pc_option options[] = {
	{ 'j', "json", NULL, "a JSON array with an object for each device" },
	{ 's', "stats", NULL, "also all counters of the stats message (JSON has them always)" },
	{ 0 },
};

const struct pc_command pc_command_status = {
	.name = "status",
	.args = "[DEV]...",
	.summary = "Show state, use and hit ratios of the given devices, or of all",
	.options = options,
	.max_words = -1,
	.run = run,
};
