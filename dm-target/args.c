// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Table line and messages: words in, a checked struct out (args.h).
 *
 * Pure functions over the caller's words: no lock, no allocation, no device; any
 * thread may call them at any time. What needs the world (do the devices exist, is
 * the policy there, are blocks dirty) is left to the target.
 *
 * Every refusal names the argument, the value given and what is allowed. Words
 * come from root but may hold any byte: they are cut and made printable before they
 * go into a text. Words of the core are matched without regard to case, as
 * dm-cache does; numbers are plain decimal digits.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/types.h>

#include "args.h"

#define POLICY_NAME_MAX 15
#define COMMIT_MS_MAX 60000u
#define FILL_MIN_SECTORS 8u
#define FILL_MAX_SECTORS 2048u
#define MAX_FEATURES 3u

#define MODE_LIST "writeback, writethrough, writearound or passthrough"
#define MESSAGE_LIST "policy, mode, flush, invalidate_cblocks, stats, stats_reset or <key> <value>"

struct key_info {
	const char *name;
	u64 max;
	const char *allowed;
};

static const struct key_info keys[PC_NR_KEYS] = {
	[PC_KEY_MIGRATION_THRESHOLD] = {
		"migration_threshold", U64_MAX, "a number of sectors" },
	[PC_KEY_BYPASS_SEQUENTIAL] = {
		"bypass_sequential", U32_MAX, "0 to 4294967295 sectors (0: never)" },
	[PC_KEY_FILL] = {
		"fill", FILL_MAX_SECTORS, "0 (adapt) or a power of two from 8 to 2048 sectors" },
	[PC_KEY_COMMIT_MS] = {
		"commit_ms", COMMIT_MS_MAX, "1 to 60000 milliseconds" },
	[PC_KEY_WRITEBACK_TARGET] = {
		"writeback_target", 100, "0 to 100 percent, and at most writeback_limit" },
	[PC_KEY_WRITEBACK_LIMIT] = {
		"writeback_limit", 100, "0 to 100 percent, and at least writeback_target" },
	[PC_KEY_ON_CACHE_LOSS] = {
		"on_cache_loss", 0, "continue or fail" },
};

static const char *const mode_names[PC_NR_MODES] = {
	[PC_MODE_WRITEBACK] = "writeback",
	[PC_MODE_WRITETHROUGH] = "writethrough",
	[PC_MODE_WRITEAROUND] = "writearound",
	[PC_MODE_PASSTHROUGH] = "passthrough",
};

/* Fills err and returns -EINVAL. Words are given as %.32s: the text always fits. */
static __printf(2, 3) int refuse(char err[PC_ERR_SIZE], const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	vsnprintf(err, PC_ERR_SIZE, fmt, ap);
	va_end(ap);

	for (p = err; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
	return -EINVAL;
}

static bool same(const char *a, const char *b)
{
	return !strcasecmp(a, b);
}

/* Decimal digits up to end, nothing else; at most max. */
static bool parse_digits(const char *s, const char *end, u64 max, u64 *out)
{
	u64 n = 0;

	if (s == end)
		return false;
	for (; s != end; s++) {
		unsigned int digit = (unsigned int)(unsigned char)*s - '0';

		if (digit > 9 || n > U64_MAX / 10 || n * 10 > U64_MAX - digit)
			return false;
		n = n * 10 + digit;
	}
	if (n > max)
		return false;
	*out = n;
	return true;
}

static bool parse_number(const char *s, u64 max, u64 *out)
{
	return parse_digits(s, s + strlen(s), max, out);
}

void pc_args_defaults(struct pc_tunables *t)
{
	memset(t, 0, sizeof(*t));
	t->migration_threshold = 2048;
	t->bypass_sequential = 8192;
	t->fill = 0;
	t->commit_ms = 1000;
	t->writeback_target = 10;
	t->writeback_limit = 70;
}

const char *pc_args_key_name(enum pc_key key)
{
	return keys[key].name;
}

const char *pc_args_mode_name(enum pc_mode mode)
{
	return mode_names[mode];
}

u32 pc_args_subblock_sectors(u32 block_sectors)
{
	u32 sectors = 8;

	while (sectors < block_sectors && (block_sectors - 1) / sectors + 1 > 64)
		sectors *= 2;
	return sectors;
}

int pc_args_format_tunable(const struct pc_tunables *t, enum pc_key key, char *buf, size_t len)
{
	u64 n = 0;
	int written;

	if (!len)
		return 0;

	switch (key) {
	case PC_KEY_MIGRATION_THRESHOLD:
		n = t->migration_threshold;
		break;
	case PC_KEY_BYPASS_SEQUENTIAL:
		n = t->bypass_sequential;
		break;
	case PC_KEY_FILL:
		n = t->fill;
		break;
	case PC_KEY_COMMIT_MS:
		n = t->commit_ms;
		break;
	case PC_KEY_WRITEBACK_TARGET:
		n = t->writeback_target;
		break;
	case PC_KEY_WRITEBACK_LIMIT:
		n = t->writeback_limit;
		break;
	case PC_KEY_ON_CACHE_LOSS:
	case PC_NR_KEYS:
		break;
	}

	if (key == PC_KEY_ON_CACHE_LOSS)
		written = snprintf(buf, len, "%s", t->on_cache_loss_fail ? "fail" : "continue");
	else
		written = snprintf(buf, len, "%llu", (unsigned long long)n);
	return written < (int)len ? written : (int)len - 1;
}

/* PC_NR_KEYS: not one of the core's. */
static enum pc_key find_key(const char *key, const char *policy)
{
	unsigned int k;

	if (same(key, "sequential_threshold") && strcmp(policy, "mq") != 0)
		return PC_KEY_BYPASS_SEQUENTIAL;
	for (k = 0; k < PC_NR_KEYS; k++)
		if (same(key, keys[k].name))
			return k;
	return PC_NR_KEYS;
}

static bool number_allowed(enum pc_key key, u64 n)
{
	if (key == PC_KEY_FILL)
		return !n || (n >= FILL_MIN_SECTORS && is_power_of_2(n));
	if (key == PC_KEY_COMMIT_MS)
		return n != 0;
	return true;
}

static int check_writeback(const struct pc_tunables *t, char err[PC_ERR_SIZE])
{
	if (t->writeback_target <= t->writeback_limit)
		return 0;
	if (t->set & (1u << PC_KEY_WRITEBACK_TARGET))
		return refuse(err,
			      "writeback_target %u: must be at most writeback_limit, which is %u",
			      t->writeback_target, t->writeback_limit);
	return refuse(err, "writeback_limit %u: must be at least writeback_target, which is %u",
		      t->writeback_limit, t->writeback_target);
}

/* Sets one key; whether target and limit agree is for the caller to check. */
static int set_key(struct pc_tunables *t, enum pc_key key, const char *value,
		   char err[PC_ERR_SIZE])
{
	u64 n = 0;
	bool fail = same(value, "fail");
	bool allowed;

	if (key == PC_KEY_ON_CACHE_LOSS)
		allowed = fail || same(value, "continue");
	else
		allowed = parse_number(value, keys[key].max, &n) && number_allowed(key, n);
	if (!allowed)
		return refuse(err, "%s %.32s: must be %s", keys[key].name, value,
			      keys[key].allowed);

	switch (key) {
	case PC_KEY_MIGRATION_THRESHOLD:
		t->migration_threshold = n;
		break;
	case PC_KEY_BYPASS_SEQUENTIAL:
		t->bypass_sequential = n;
		break;
	case PC_KEY_FILL:
		t->fill = n;
		break;
	case PC_KEY_COMMIT_MS:
		t->commit_ms = n;
		break;
	case PC_KEY_WRITEBACK_TARGET:
		t->writeback_target = n;
		break;
	case PC_KEY_WRITEBACK_LIMIT:
		t->writeback_limit = n;
		break;
	case PC_KEY_ON_CACHE_LOSS:
		t->on_cache_loss_fail = fail;
		t->on_cache_loss_set = true;
		break;
	case PC_NR_KEYS:
		break;
	}
	t->set |= 1u << key;
	return 0;
}

int pc_args_set_tunable(struct pc_tunables *t, const char *key, const char *value,
			const char *policy, char err[PC_ERR_SIZE])
{
	struct pc_tunables new = *t;
	enum pc_key k = find_key(key, policy);
	int r;

	if (k == PC_NR_KEYS)
		return -ENOENT;

	/* of two that disagree, blame the one that is being set */
	if (k == PC_KEY_WRITEBACK_LIMIT)
		new.set &= ~(1u << PC_KEY_WRITEBACK_TARGET);
	r = set_key(&new, k, value, err);
	if (!r)
		r = check_writeback(&new, err);
	if (r)
		return r;
	new.set |= t->set;
	*t = new;
	return 0;
}

static int parse_mode(const char *word, enum pc_mode *mode)
{
	unsigned int m;

	for (m = 0; m < PC_NR_MODES; m++) {
		if (same(word, mode_names[m])) {
			*mode = m;
			return 0;
		}
	}
	return -EINVAL;
}

static int check_policy_name(const char *name, char err[PC_ERR_SIZE])
{
	size_t i, len = strlen(name);
	bool ok = len && len <= POLICY_NAME_MAX;

	for (i = 0; ok && i < len; i++)
		ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
		     name[i] == '_' || name[i] == '-';
	if (!ok)
		return refuse(err, "policy %.32s: must be 1 to 15 characters of a-z, 0-9, _ and -",
			      name);
	return 0;
}

/* The words not yet taken. */
struct words {
	unsigned int argc;
	char **argv;
};

static char *next_word(struct words *w)
{
	if (!w->argc)
		return NULL;
	w->argc--;
	return *w->argv++;
}

static int parse_block_size(struct pc_args *out, struct words *w, char err[PC_ERR_SIZE])
{
	const char *word = next_word(w);
	u64 n;

	if (!word)
		return refuse(err,
			      "block size missing: must be a multiple of %u sectors from %u to %u",
			      PC_BLOCK_SECTORS_MIN, PC_BLOCK_SECTORS_MIN, PC_BLOCK_SECTORS_MAX);
	if (!parse_number(word, PC_BLOCK_SECTORS_MAX, &n) || !n || n % PC_BLOCK_SECTORS_MIN)
		return refuse(err,
			      "block size %.32s: must be a multiple of %u sectors from %u to %u",
			      word, PC_BLOCK_SECTORS_MIN, PC_BLOCK_SECTORS_MIN,
			      PC_BLOCK_SECTORS_MAX);
	out->block_sectors = n;
	return 0;
}

/* A count of words and, so that the error is a clear one, that so many follow. */
static int parse_count(struct words *w, const char *what, unsigned int max, const char *allowed,
		       unsigned int *count, char err[PC_ERR_SIZE])
{
	const char *word = next_word(w);
	u64 n;

	if (!word)
		return refuse(err, "%s missing: must be %s", what, allowed);
	if (!parse_number(word, max, &n))
		return refuse(err, "%s %.32s: must be %s", what, word, allowed);
	if (n > w->argc)
		return refuse(err, "%s %llu: only %u words follow, must be %s", what,
			      (unsigned long long)n, w->argc, allowed);
	*count = n;
	return 0;
}

static int parse_features(struct pc_args *out, struct words *w, char err[PC_ERR_SIZE])
{
	bool mode_given = false;
	unsigned int count;
	enum pc_mode mode;
	int r;

	r = parse_count(w, "#feature args", MAX_FEATURES, "0 to 3", &count, err);
	if (r)
		return r;

	while (count--) {
		const char *word = next_word(w);

		if (!parse_mode(word, &mode)) {
			if (mode_given)
				return refuse(err,
					      "feature %.32s: the mode was given before as %s, must be one of "
					      MODE_LIST, word, mode_names[out->mode]);
			out->mode = mode;
			mode_given = true;
		} else if (same(word, "metadata2")) {
			if (out->metadata2)
				return refuse(err,
					      "feature metadata2: given twice, must be given once or not at all");
			out->metadata2 = true;
		} else if (same(word, "no_discard_passdown")) {
			if (!out->discard_passdown)
				return refuse(err,
					      "feature no_discard_passdown: given twice, must be given once or not at all");
			out->discard_passdown = false;
		} else {
			return refuse(err, "feature %.32s: must be " MODE_LIST
				      ", or metadata2 or no_discard_passdown", word);
		}
	}
	return 0;
}

static int parse_policy(struct pc_args *out, struct words *w, char err[PC_ERR_SIZE])
{
	const char *key, *value;
	unsigned int count;
	enum pc_key k;
	int r;

	out->policy = next_word(w);
	if (!out->policy)
		return refuse(err,
			      "policy missing: must be a policy's name or default, then #policy args");
	r = check_policy_name(out->policy, err);
	if (r)
		return r;

	r = parse_count(w, "#policy args", 2 * PC_MAX_POLICY_ARGS,
			"an even number from 0 to 64 (keys and values)", &count, err);
	if (r)
		return r;
	if (count % 2)
		return refuse(err,
			      "#policy args %u: must be an even number from 0 to 64 (keys and values)",
			      count);

	for (; count; count -= 2) {
		key = next_word(w);
		value = next_word(w);
		k = find_key(key, out->policy);
		if (k == PC_NR_KEYS) {
			out->pairs[out->nr_pairs].key = key;
			out->pairs[out->nr_pairs++].value = value;
			continue;
		}
		r = set_key(&out->tunables, k, value, err);
		if (r)
			return r;
	}
	return check_writeback(&out->tunables, err);
}

int pc_args_parse_table(struct pc_args *out, unsigned int argc, char **argv,
			char err[PC_ERR_SIZE])
{
	struct words w = { argc, argv };
	int r;

	memset(out, 0, sizeof(*out));
	out->mode = PC_MODE_WRITEBACK;
	out->discard_passdown = true;
	pc_args_defaults(&out->tunables);
	err[0] = '\0';

	out->metadata_dev = next_word(&w);
	if (!out->metadata_dev)
		return refuse(err, "metadata device missing: must be a path or major:minor");
	out->cache_dev = next_word(&w);
	if (!out->cache_dev)
		return refuse(err, "cache device missing: must be a path or major:minor");
	out->origin_dev = next_word(&w);
	if (!out->origin_dev)
		return refuse(err, "origin device missing: must be a path or major:minor");

	r = parse_block_size(out, &w, err);
	if (!r)
		r = parse_features(out, &w, err);
	if (!r)
		r = parse_policy(out, &w, err);
	if (r)
		return r;

	if (w.argc)
		return refuse(err,
			      "%.32s: %u words too many, must end after the #policy args keys and values",
			      *w.argv, w.argc);
	return 0;
}

static int message_policy(struct pc_message_args *out, struct words *w, char err[PC_ERR_SIZE])
{
	int r;

	out->what = PC_MSG_POLICY;
	out->policy = next_word(w);
	if (!out->policy)
		return refuse(err,
			      "policy: name missing, must be policy <name> [<key> <value>]...");
	r = check_policy_name(out->policy, err);
	if (r)
		return r;
	if (w->argc % 2)
		return refuse(err,
			      "policy %s: %u words follow, must be an even number (keys and values)",
			      out->policy, w->argc);
	if (w->argc / 2 > PC_MAX_POLICY_ARGS)
		return refuse(err, "policy %s: %u keys and values follow, must be at most %u",
			      out->policy, w->argc / 2, PC_MAX_POLICY_ARGS);

	while (w->argc) {
		struct pc_pair *pair = &out->pairs[out->nr_pairs++];

		pair->key = next_word(w);
		pair->value = next_word(w);
		if (find_key(pair->key, out->policy) != PC_NR_KEYS)
			return refuse(err,
				      "policy %s: %.32s must be a key of the policy; a key of the core is set by its own message",
				      out->policy, pair->key);
	}
	return 0;
}

static int message_mode(struct pc_message_args *out, struct words *w, char err[PC_ERR_SIZE])
{
	const char *word = next_word(w);

	out->what = PC_MSG_MODE;
	if (!word)
		return refuse(err, "mode: name missing, must be " MODE_LIST);
	if (parse_mode(word, &out->mode))
		return refuse(err, "mode %.32s: must be " MODE_LIST, word);
	if (w->argc)
		return refuse(err, "mode %s %.32s: %u words too many, must be one name", word,
			      *w->argv, w->argc);
	return 0;
}

static int parse_range(struct pc_range *range, const char *word, u32 nr_cblocks,
		       char err[PC_ERR_SIZE])
{
	const char *dash = strchr(word, '-');
	u64 begin, end = 0;
	bool ok;

	if (dash)
		ok = parse_digits(word, dash, U32_MAX, &begin) &&
		     parse_number(dash + 1, U32_MAX, &end);
	else
		ok = parse_number(word, U32_MAX - 1, &begin);
	if (ok && !dash)
		end = begin + 1;
	if (!ok || begin >= end || end > nr_cblocks)
		return refuse(err,
			      "invalidate_cblocks %.32s: must be <n> or <begin>-<end>, begin below end, within 0-%u (end exclusive)",
			      word, nr_cblocks);
	range->begin = begin;
	range->end = end;
	return 0;
}

static int message_invalidate(struct pc_message_args *out, struct words *w, u32 nr_cblocks,
			      char err[PC_ERR_SIZE])
{
	int r;

	out->what = PC_MSG_INVALIDATE;
	if (!w->argc || w->argc > PC_MAX_RANGES)
		return refuse(err,
			      "invalidate_cblocks: %u ranges given, must be 1 to %u, each <n> or <begin>-<end>",
			      w->argc, PC_MAX_RANGES);
	while (w->argc) {
		r = parse_range(&out->ranges[out->nr_ranges], next_word(w), nr_cblocks, err);
		if (r)
			return r;
		out->nr_ranges++;
	}
	return 0;
}

static int message_alone(struct pc_message_args *out, enum pc_message what, const char *word,
			 struct words *w, char err[PC_ERR_SIZE])
{
	out->what = what;
	if (w->argc)
		return refuse(err, "%s %.32s: %u words too many, %s must stand alone", word,
			      *w->argv, w->argc, word);
	return 0;
}

static int message_set(struct pc_message_args *out, const char *key, struct words *w,
		       const char *policy, char err[PC_ERR_SIZE])
{
	enum pc_key k = find_key(key, policy);
	const char *value = next_word(w);

	out->what = PC_MSG_SET;
	if (!value || w->argc) {
		if (k != PC_NR_KEYS)
			return refuse(err, "%s: %s, must be %s", keys[k].name,
				      value ? "more than one value" : "value missing",
				      keys[k].allowed);
		return refuse(err, "message %.32s: must be " MESSAGE_LIST, key);
	}

	out->is_core_key = k != PC_NR_KEYS;
	if (out->is_core_key)
		return pc_args_set_tunable(&out->tunables, key, value, policy, err);
	out->set.key = key;
	out->set.value = value;
	return 0;
}

int pc_args_parse_message(struct pc_message_args *out, unsigned int argc, char **argv,
			  const struct pc_tunables *in_force, const char *policy,
			  u32 nr_cblocks, char err[PC_ERR_SIZE])
{
	struct words w = { argc, argv };
	const char *word = next_word(&w);

	memset(out, 0, sizeof(*out));
	out->tunables = *in_force;
	err[0] = '\0';

	if (!word)
		return refuse(err, "message empty: must be " MESSAGE_LIST);
	if (same(word, "policy"))
		return message_policy(out, &w, err);
	if (same(word, "mode"))
		return message_mode(out, &w, err);
	if (same(word, "flush"))
		return message_alone(out, PC_MSG_FLUSH, "flush", &w, err);
	if (same(word, "invalidate_cblocks"))
		return message_invalidate(out, &w, nr_cblocks, err);
	if (same(word, "stats"))
		return message_alone(out, PC_MSG_STATS, "stats", &w, err);
	if (same(word, "stats_reset"))
		return message_alone(out, PC_MSG_STATS_RESET, "stats_reset", &w, err);
	return message_set(out, word, &w, policy, err);
}
