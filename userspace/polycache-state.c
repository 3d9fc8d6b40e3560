// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parser of the status line. Strict: a line that is not what we know is an error
 * that names the field, since numbers guessed from it would be believed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polycache-state.h"

struct reader {
	char *at;
	char *err;		/* PC_ERR_SIZE bytes */
	bool failed;
};

static void refuse(struct reader *r, const char *field, const char *word, const char *want)
{
	if (!r->failed)
		snprintf(r->err, PC_ERR_SIZE, "status line: %s: '%.40s', must be %s", field,
			 word ? word : "", want);
	r->failed = true;
}

static const char *next_word(struct reader *r, const char *field)
{
	char *word = strtok_r(NULL, " ", &r->at);

	if (!word)
		refuse(r, field, NULL, "there");
	return word ? word : "";
}

static uint64_t parse_number(struct reader *r, const char *field, const char *word)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || errno)
		refuse(r, field, word, "a number");
	return n;
}

static uint64_t number(struct reader *r, const char *field)
{
	return parse_number(r, field, next_word(r, field));
}

/* "used/total" */
static void fraction(struct reader *r, const char *field, uint64_t *used, uint64_t *total)
{
	char *word = (char *)next_word(r, field);
	char *slash = strchr(word, '/');

	if (!slash) {
		refuse(r, field, word, "used/total");
		return;
	}
	*slash = 0;
	*used = parse_number(r, field, word);
	*total = parse_number(r, field, slash + 1);
}

static unsigned int count(struct reader *r, const char *field, unsigned int step)
{
	uint64_t n = number(r, field);

	if (r->failed)
		return 0;
	if (n % step || n / step > PC_STATE_WORDS) {
		refuse(r, field, "", step == 2 ? "an even number up to 160" : "at most 80");
		return 0;
	}
	return n / step;
}

static unsigned int pairs(struct reader *r, const char *field, struct pc_pair *out)
{
	unsigned int n = count(r, field, 2);

	for (unsigned int i = 0; i < n; i++) {
		out[i].key = next_word(r, field);
		out[i].value = next_word(r, field);
	}
	return n;
}

static void parse_fields(struct pc_state *s, struct reader *r)
{
	fraction(r, "metadata blocks", &s->metadata_used, &s->metadata_total);
	s->block = number(r, "cache block size");
	fraction(r, "cache blocks", &s->used, &s->total);
	s->read_hits = number(r, "read hits");
	s->read_misses = number(r, "read misses");
	s->write_hits = number(r, "write hits");
	s->write_misses = number(r, "write misses");
	s->demotions = number(r, "demotions");
	s->promotions = number(r, "promotions");
	s->dirty = number(r, "dirty");
	s->nr_features = count(r, "features", 1);
	for (unsigned int i = 0; i < s->nr_features; i++)
		s->features[i] = next_word(r, "features");
	s->nr_core = pairs(r, "core args", s->core);
	s->policy = next_word(r, "policy");
	s->nr_policy = pairs(r, "policy args", s->args);
	s->read_only = !strcmp(next_word(r, "rw or ro"), "ro");
	s->needs_check = !strcmp(next_word(r, "needs_check"), "needs_check");
}

int pc_state_parse(struct pc_state *s, const char *line, char err[PC_ERR_SIZE])
{
	struct reader r = { .err = err };
	char *first;

	memset(s, 0, sizeof(*s));
	s->words = strdup(line);
	first = s->words ? strtok_r(s->words, " ", &r.at) : NULL;
	if (!first) {
		snprintf(err, PC_ERR_SIZE, "status line is empty");
		return -1;
	}
	if (!strcmp(first, "Fail") || !strcmp(first, "Error")) {
		s->broken = first;
		return 0;
	}
	s->metadata_block = parse_number(&r, "metadata block size", first);
	parse_fields(s, &r);
	return r.failed ? -1 : 0;
}

void pc_state_free(struct pc_state *s)
{
	free(s->words);
	s->words = NULL;
}

const char *pc_state_mode(const struct pc_state *s)
{
	for (unsigned int i = 0; i < s->nr_features; i++)
		for (int m = 0; m < PC_NR_MODES; m++)
			if (!strcmp(s->features[i], pc_args_mode_name(m)))
				return s->features[i];
	return "unknown";
}

void pc_state_tunables(const struct pc_state *s, struct pc_tunables *t)
{
	char err[PC_ERR_SIZE];

	pc_args_defaults(t);
	/* of what is not echoed, any value may be in force (module parameter defaults) */
	t->writeback_target = 0;
	t->writeback_limit = 100;
	for (unsigned int i = 0; i < s->nr_core; i++)
		pc_args_set_tunable(t, s->core[i].key, s->core[i].value, s->policy, err);
}
