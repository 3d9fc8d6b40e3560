// SPDX-License-Identifier: GPL-2.0-only
/*
 * Table lines and messages: what is accepted and what it means; what is refused, and
 * that each refusal names the argument, the value and what is allowed.
 */
#include <linux/errno.h>

#include "args.h"
#include "unit.h"

#define MAX_WORDS 256

struct line {
	char *words[MAX_WORDS];
	unsigned int count;
};

/* Words are copied one by one, so that ASan sees a read beyond a word. */
static void split(struct line *l, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;

	l->count = 0;
	while ((word = strtok_r(rest, " ", &rest))) {
		assert_true(l->count < MAX_WORDS);
		l->words[l->count++] = strdup(word);
	}
	free(copy);
}

static void forget(struct line *l)
{
	while (l->count)
		free(l->words[--l->count]);
}

static void check_text(const char *err)
{
	assert_true(strlen(err) > 0);
	assert_true(strlen(err) < PC_ERR_SIZE - 1);
	for (const char *p = err; *p; p++)
		assert_true(*p >= 0x20 && *p < 0x7f);
}

#define HEAD "253:1 /dev/fast /dev/slow 128 "

static void expect_table(struct line *l, const char *text, struct pc_args *a)
{
	char err[PC_ERR_SIZE];

	split(l, text);
	if (pc_args_parse_table(a, l->count, l->words, err))
		fail_msg("%s: %s", text, err);
	assert_string_equal(err, "");
}

static void test_args_table_plain(void **state)
{
	struct pc_args a;
	struct line l;

	expect_table(&l, HEAD "0 default 0", &a);
	assert_string_equal(a.metadata_dev, "253:1");
	assert_string_equal(a.cache_dev, "/dev/fast");
	assert_string_equal(a.origin_dev, "/dev/slow");
	assert_int_equal(a.block_sectors, 128);
	assert_int_equal(a.mode, PC_MODE_WRITEBACK);
	assert_false(a.metadata2);
	assert_true(a.discard_passdown);
	assert_string_equal(a.policy, "default");
	assert_int_equal(a.nr_pairs, 0);
	assert_int_equal(a.tunables.set, 0);
	assert_int_equal(a.tunables.migration_threshold, 2048);
	assert_int_equal(a.tunables.bypass_sequential, 8192);
	assert_int_equal(a.tunables.fill, 0);
	assert_int_equal(a.tunables.commit_ms, 1000);
	assert_int_equal(a.tunables.writeback_target, 10);
	assert_int_equal(a.tunables.writeback_limit, 70);
	assert_false(a.tunables.on_cache_loss_fail);
	assert_false(a.tunables.on_cache_loss_set);
	forget(&l);
}

static void test_args_table_full(void **state)
{
	struct pc_args a;
	struct line l;

	expect_table(&l, "m c o 2097152 3 metadata2 WriteThrough no_discard_passdown smq-2_x 20 "
		     "migration_threshold 18446744073709551615 promote_after 3 fill 2048 "
		     "sequential_threshold 0 commit_ms 60000 writeback_target 100 "
		     "writeback_limit 100 on_cache_loss fail x y z 1", &a);
	assert_int_equal(a.block_sectors, 2097152);
	assert_int_equal(a.mode, PC_MODE_WRITETHROUGH);
	assert_true(a.metadata2);
	assert_false(a.discard_passdown);
	assert_string_equal(a.policy, "smq-2_x");
	assert_int_equal(a.nr_pairs, 3);
	assert_string_equal(a.pairs[0].key, "promote_after");
	assert_string_equal(a.pairs[0].value, "3");
	assert_string_equal(a.pairs[2].key, "z");
	assert_true(a.tunables.migration_threshold == U64_MAX);
	assert_int_equal(a.tunables.bypass_sequential, 0);
	assert_int_equal(a.tunables.fill, 2048);
	assert_int_equal(a.tunables.commit_ms, 60000);
	assert_int_equal(a.tunables.writeback_target, 100);
	assert_int_equal(a.tunables.writeback_limit, 100);
	assert_true(a.tunables.on_cache_loss_fail);
	assert_true(a.tunables.on_cache_loss_set);
	assert_int_equal(a.tunables.set, (1u << PC_NR_KEYS) - 1);
	forget(&l);
}

static void test_args_table_order_and_repeats(void **state)
{
	struct pc_args a;
	struct line l;

	/* target and limit are compared at the end, whatever their order; the last wins */
	expect_table(&l, HEAD "1 writeback lru 4 writeback_limit 5 writeback_target 3", &a);
	assert_int_equal(a.tunables.writeback_limit, 5);
	forget(&l);
	expect_table(&l, HEAD "1 writearound lru 4 writeback_target 90 writeback_limit 95", &a);
	assert_int_equal(a.mode, PC_MODE_WRITEAROUND);
	forget(&l);
	expect_table(&l, HEAD "1 passthrough lru 4 fill 8 fill 16", &a);
	assert_int_equal(a.mode, PC_MODE_PASSTHROUGH);
	assert_int_equal(a.tunables.fill, 16);
	forget(&l);
}

static void test_args_table_mq_keeps_its_key(void **state)
{
	struct pc_args a;
	struct line l;

	expect_table(&l, HEAD "1 writeback mq 4 sequential_threshold 512 bypass_sequential 64", &a);
	assert_int_equal(a.tunables.bypass_sequential, 64);
	assert_int_equal(a.nr_pairs, 1);
	assert_string_equal(a.pairs[0].key, "sequential_threshold");
	forget(&l);
}

static void test_args_table_most_pairs(void **state)
{
	char text[2048] = HEAD "0 lru 64";
	struct pc_args a;
	struct line l;

	for (int i = 0; i < PC_MAX_POLICY_ARGS; i++)
		sprintf(text + strlen(text), " k%d v%d", i, i);
	expect_table(&l, text, &a);
	assert_int_equal(a.nr_pairs, PC_MAX_POLICY_ARGS);
	assert_string_equal(a.pairs[PC_MAX_POLICY_ARGS - 1].value, "v31");
	forget(&l);
}

struct refusal {
	const char *text;
	const char *names;	/* argument and value */
	const char *allowed;
};

#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct refusal bad_tables[] = {
	{ "", "metadata device", "path" },
	{ "m", "cache device", "path" },
	{ "m c", "origin device", "path" },
	{ "m c o", "block size missing", "multiple of 64 sectors from 64 to 2097152" },
	{ "m c o 100 0 lru 0", "block size 100",
	  "must be a multiple of 64 sectors from 64 to 2097152" },
	{ "m c o 0 0 lru 0", "block size 0", "64 to 2097152" },
	{ "m c o 32 0 lru 0", "block size 32", "64 to 2097152" },
	{ "m c o 2097216 0 lru 0", "block size 2097216", "64 to 2097152" },
	{ "m c o 18446744073709551680 0 lru 0", "block size 18446744073709551680", "64 to" },
	{ "m c o +64 0 lru 0", "block size +64", "64 to 2097152" },
	{ "m c o 0x40 0 lru 0", "block size 0x40", "64 to 2097152" },
	{ "m c o -64 0 lru 0", "block size -64", "64 to 2097152" },
	{ HEAD, "#feature args missing", "0 to 3" },
	{ HEAD "x lru 0", "#feature args x", "0 to 3" },
	{ HEAD "4 a b c d lru 0", "#feature args 4", "0 to 3" },
	{ HEAD "3 writeback", "#feature args 3", "only 1 words follow" },
	{ HEAD "1 writeonce lru 0", "feature writeonce", "writeback, writethrough, writearound" },
	{ HEAD "1 " LONG " lru 0", "feature aaaa", "metadata2" },
	{ HEAD "2 writeback writethrough lru 0", "feature writethrough", "before as writeback" },
	{ HEAD "2 writeback writeback lru 0", "feature writeback", "before as writeback" },
	{ HEAD "2 metadata2 metadata2 lru 0", "feature metadata2", "once" },
	{ HEAD "2 no_discard_passdown no_discard_passdown lru 0", "feature no_discard_passdown",
	  "once" },
	{ HEAD "1 writeback", "policy missing", "name" },
	{ HEAD "0 LRU 0", "policy LRU", "a-z, 0-9, _ and -" },
	{ HEAD "0 0123456789abcdef 0", "policy 0123456789abcdef", "1 to 15" },
	{ HEAD "0 ../x 0", "policy ../x", "a-z" },
	{ HEAD "0 l\x01\xff 0", "policy l??", "a-z" },
	{ HEAD "0 lru", "#policy args missing", "even number from 0 to 64" },
	{ HEAD "0 lru z", "#policy args z", "even number from 0 to 64" },
	{ HEAD "0 lru 1 fill", "#policy args 1", "even number from 0 to 64" },
	{ HEAD "0 lru 2 fill", "#policy args 2", "only 1 words follow" },
	{ HEAD "0 lru 66", "#policy args 66", "even number from 0 to 64" },
	{ HEAD "0 lru 0 fill 8", "fill", "2 words too many" },
	{ HEAD "0 lru 2 fill 7", "fill 7", "power of two from 8 to 2048" },
	{ HEAD "0 lru 2 fill 4", "fill 4", "power of two from 8 to 2048" },
	{ HEAD "0 lru 2 fill 12", "fill 12", "power of two from 8 to 2048" },
	{ HEAD "0 lru 2 fill 4096", "fill 4096", "power of two from 8 to 2048" },
	{ HEAD "0 lru 2 migration_threshold many", "migration_threshold many", "number" },
	{ HEAD "0 lru 2 migration_threshold 18446744073709551616", "18446744073709551616", "number" },
	{ HEAD "0 lru 2 bypass_sequential 4294967296", "bypass_sequential 4294967296",
	  "0 to 4294967295" },
	{ HEAD "0 lru 2 sequential_threshold -1", "bypass_sequential -1", "0 to 4294967295" },
	{ HEAD "0 lru 2 commit_ms 0", "commit_ms 0", "1 to 60000" },
	{ HEAD "0 lru 2 commit_ms 60001", "commit_ms 60001", "1 to 60000" },
	{ HEAD "0 lru 2 writeback_target 101", "writeback_target 101", "0 to 100" },
	{ HEAD "0 lru 2 writeback_target 71", "writeback_target 71", "writeback_limit, which is 70" },
	{ HEAD "0 lru 2 writeback_limit 9", "writeback_limit 9", "writeback_target, which is 10" },
	{ HEAD "0 lru 2 on_cache_loss panic", "on_cache_loss panic", "continue or fail" },
};

static void test_args_table_refused(void **state)
{
	for (int i = 0; i < ARRAY_SIZE(bad_tables); i++) {
		const struct refusal *bad = bad_tables + i;
		char err[PC_ERR_SIZE];
		struct pc_args a;
		struct line l;

		split(&l, bad->text);
		if (!pc_args_parse_table(&a, l.count, l.words, err))
			fail_msg("accepted: %s", bad->text);
		check_text(err);
		if (!strstr(err, bad->names) || !strstr(err, bad->allowed))
			fail_msg("%s: says only: %s", bad->text, err);
		forget(&l);
	}
}

static int message(struct line *l, const char *text, const struct pc_tunables *t,
		   const char *policy, struct pc_message_args *m, char err[PC_ERR_SIZE])
{
	split(l, text);
	return pc_args_parse_message(m, l->count, l->words, t, policy, 1000, err);
}

static void expect_message(struct line *l, const char *text, enum pc_message what,
			   struct pc_message_args *m)
{
	struct pc_tunables t;
	char err[PC_ERR_SIZE];

	pc_args_defaults(&t);
	if (message(l, text, &t, "lru", m, err))
		fail_msg("%s: %s", text, err);
	assert_string_equal(err, "");
	assert_int_equal(m->what, what);
}

static void test_args_message_good(void **state)
{
	struct pc_message_args m;
	struct line l;

	expect_message(&l, "flush", PC_MSG_FLUSH, &m);
	forget(&l);
	expect_message(&l, "stats", PC_MSG_STATS, &m);
	forget(&l);
	expect_message(&l, "stats_reset", PC_MSG_STATS_RESET, &m);
	forget(&l);
	expect_message(&l, "mode writearound", PC_MSG_MODE, &m);
	assert_int_equal(m.mode, PC_MODE_WRITEAROUND);
	forget(&l);
	expect_message(&l, "policy cleaner", PC_MSG_POLICY, &m);
	assert_string_equal(m.policy, "cleaner");
	assert_int_equal(m.nr_pairs, 0);
	forget(&l);
	expect_message(&l, "policy lru promote_after 2", PC_MSG_POLICY, &m);
	assert_int_equal(m.nr_pairs, 1);
	assert_string_equal(m.pairs[0].value, "2");
	forget(&l);
	expect_message(&l, "promote_after 2", PC_MSG_SET, &m);
	assert_false(m.is_core_key);
	assert_string_equal(m.set.key, "promote_after");
	assert_string_equal(m.set.value, "2");
	forget(&l);
	expect_message(&l, "sequential_threshold 64", PC_MSG_SET, &m);
	assert_true(m.is_core_key);
	assert_int_equal(m.tunables.bypass_sequential, 64);
	assert_int_equal(m.tunables.set, 1u << PC_KEY_BYPASS_SEQUENTIAL);
	assert_int_equal(m.tunables.commit_ms, 1000);
	forget(&l);
	expect_message(&l, "INVALIDATE_CBLOCKS 0 999 5-6 0-1000", PC_MSG_INVALIDATE, &m);
	assert_int_equal(m.nr_ranges, 4);
	assert_int_equal(m.ranges[1].begin, 999);
	assert_int_equal(m.ranges[1].end, 1000);
	assert_int_equal(m.ranges[2].begin, 5);
	assert_int_equal(m.ranges[2].end, 6);
	assert_int_equal(m.ranges[3].end, 1000);
	forget(&l);
}

static void test_args_message_under_mq(void **state)
{
	struct pc_message_args m;
	struct pc_tunables t;
	char err[PC_ERR_SIZE];
	struct line l;

	pc_args_defaults(&t);
	assert_int_equal(message(&l, "sequential_threshold 64", &t, "mq", &m, err), 0);
	assert_false(m.is_core_key);
	forget(&l);
}

static const struct refusal bad_messages[] = {
	{ "", "message empty", "policy, mode, flush, invalidate_cblocks" },
	{ "hello", "message hello", "policy, mode, flush, invalidate_cblocks" },
	{ "a b c", "message a", "<key> <value>" },
	{ "policy", "policy: name missing", "policy <name>" },
	{ "policy Lru", "policy Lru", "a-z" },
	{ "policy lru promote_after", "policy lru: 1 words", "even number" },
	{ "policy lru fill 8", "policy lru: fill", "key of the policy" },
	{ "mode", "mode: name missing", "writethrough" },
	{ "mode fast", "mode fast", "writeback, writethrough, writearound or passthrough" },
	{ "mode writeback now", "mode writeback now", "one name" },
	{ "flush all", "flush all", "alone" },
	{ "stats 1 2 3", "stats 1", "alone" },
	{ "stats_reset x", "stats_reset x", "alone" },
	{ "invalidate_cblocks", "invalidate_cblocks: 0 ranges", "1 to 64" },
	{ "invalidate_cblocks 1000", "invalidate_cblocks 1000", "within 0-1000" },
	{ "invalidate_cblocks 7-7", "invalidate_cblocks 7-7", "begin below end" },
	{ "invalidate_cblocks 8-7", "invalidate_cblocks 8-7", "begin below end" },
	{ "invalidate_cblocks 999-1001", "invalidate_cblocks 999-1001", "within 0-1000" },
	{ "invalidate_cblocks 1 2 -3", "invalidate_cblocks -3", "<n> or <begin>-<end>" },
	{ "invalidate_cblocks 3-", "invalidate_cblocks 3-", "<n> or <begin>-<end>" },
	{ "invalidate_cblocks 1-2-3", "invalidate_cblocks 1-2-3", "<n> or <begin>-<end>" },
	{ "invalidate_cblocks 4294967296", "invalidate_cblocks 4294967296", "within 0-1000" },
	{ "fill", "fill: value missing", "power of two from 8 to 2048" },
	{ "fill 8 16", "fill: more than one value", "power of two from 8 to 2048" },
	{ "fill 9", "fill 9", "power of two from 8 to 2048" },
	{ "writeback_target 80", "writeback_target 80", "writeback_limit, which is 70" },
	{ "writeback_limit 5", "writeback_limit 5", "writeback_target, which is 10" },
	{ "on_cache_loss stop", "on_cache_loss stop", "continue or fail" },
};

static void test_args_message_refused(void **state)
{
	for (int i = 0; i < ARRAY_SIZE(bad_messages); i++) {
		const struct refusal *bad = bad_messages + i;
		struct pc_message_args m;
		struct pc_tunables t;
		char err[PC_ERR_SIZE];
		struct line l;

		pc_args_defaults(&t);
		/* set or not, the one named is the one that the message wants to change */
		t.set = 1u << PC_KEY_WRITEBACK_TARGET | 1u << PC_KEY_WRITEBACK_LIMIT;
		if (!message(&l, bad->text, &t, "lru", &m, err))
			fail_msg("accepted: %s", bad->text);
		check_text(err);
		if (!strstr(err, bad->names) || !strstr(err, bad->allowed))
			fail_msg("%s: says only: %s", bad->text, err);
		forget(&l);
	}
}

static void test_args_message_too_many(void **state)
{
	char text[2048] = "invalidate_cblocks", pairs[2048] = "policy lru";
	struct pc_message_args m;
	struct pc_tunables t;
	char err[PC_ERR_SIZE];
	struct line l;

	pc_args_defaults(&t);
	for (int i = 0; i < PC_MAX_RANGES; i++)
		strcat(text, " 1");
	assert_int_equal(message(&l, text, &t, "lru", &m, err), 0);
	assert_int_equal(m.nr_ranges, PC_MAX_RANGES);
	forget(&l);
	assert_int_equal(message(&l, strcat(text, " 1"), &t, "lru", &m, err), -EINVAL);
	assert_non_null(strstr(err, "65 ranges"));
	forget(&l);

	for (int i = 0; i < PC_MAX_POLICY_ARGS; i++)
		strcat(pairs, " k v");
	assert_int_equal(message(&l, pairs, &t, "lru", &m, err), 0);
	assert_int_equal(m.nr_pairs, PC_MAX_POLICY_ARGS);
	forget(&l);
	assert_int_equal(message(&l, strcat(pairs, " k v"), &t, "lru", &m, err), -EINVAL);
	assert_non_null(strstr(err, "at most 32"));
	forget(&l);
}

static void test_args_set_tunable(void **state)
{
	struct pc_tunables t, before;
	char err[PC_ERR_SIZE], text[32];

	pc_args_defaults(&t);
	assert_int_equal(pc_args_set_tunable(&t, "promote_after", "1", "lru", err), -ENOENT);
	assert_int_equal(pc_args_set_tunable(&t, "sequential_threshold", "1", "mq", err), -ENOENT);
	assert_int_equal(pc_args_set_tunable(&t, "fill", "64", "lru", err), 0);
	assert_int_equal(t.fill, 64);

	before = t;
	assert_int_equal(pc_args_set_tunable(&t, "writeback_target", "99", "lru", err), -EINVAL);
	assert_memory_equal(&t, &before, sizeof(t));

	assert_int_equal(pc_args_set_tunable(&t, "writeback_limit", "99", "lru", err), 0);
	assert_int_equal(pc_args_set_tunable(&t, "writeback_target", "99", "lru", err), 0);

	assert_int_equal(pc_args_format_tunable(&t, PC_KEY_FILL, text, sizeof(text)), 2);
	assert_string_equal(text, "64");
	assert_int_equal(pc_args_format_tunable(&t, PC_KEY_ON_CACHE_LOSS, text, sizeof(text)), 8);
	assert_string_equal(text, "continue");
	assert_int_equal(pc_args_format_tunable(&t, PC_KEY_ON_CACHE_LOSS, text, 4), 3);
	assert_string_equal(text, "con");
	assert_int_equal(pc_args_format_tunable(&t, PC_KEY_FILL, text, 0), 0);
}

/* What the status line shows can be set again, for every key. */
static void test_args_format_round_trip(void **state)
{
	struct pc_tunables t, again;
	char err[PC_ERR_SIZE], text[32];

	pc_args_defaults(&t);
	for (enum pc_key k = 0; k < PC_NR_KEYS; k++) {
		assert_true(pc_args_format_tunable(&t, k, text, sizeof(text)) > 0);
		again = t;
		assert_int_equal(pc_args_set_tunable(&again, pc_args_key_name(k), text, "lru", err), 0);
		assert_int_equal(again.set, 1u << k);
		/* libdevmapper looks for " ro" behind the policy's name */
		assert_true(strncmp(pc_args_key_name(k), "ro", 2) != 0);
	}
}

static void test_args_names_and_sizes(void **state)
{
	assert_string_equal(pc_args_mode_name(PC_MODE_PASSTHROUGH), "passthrough");
	assert_int_equal(pc_args_subblock_sectors(64), 8);
	assert_int_equal(pc_args_subblock_sectors(128), 8);
	assert_int_equal(pc_args_subblock_sectors(512), 8);
	assert_int_equal(pc_args_subblock_sectors(576), 16);
	assert_int_equal(pc_args_subblock_sectors(2048), 32);
	assert_int_equal(pc_args_subblock_sectors(PC_BLOCK_SECTORS_MAX), 32768);
	for (u32 b = 64; b <= PC_BLOCK_SECTORS_MAX; b += 64) {
		u32 s = pc_args_subblock_sectors(b);

		assert_true((b + s - 1) / s <= 64);
		assert_true(s == 8 || (b + s / 2 - 1) / (s / 2) > 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_args_table_plain),
		cmocka_unit_test(test_args_table_full),
		cmocka_unit_test(test_args_table_order_and_repeats),
		cmocka_unit_test(test_args_table_mq_keeps_its_key),
		cmocka_unit_test(test_args_table_most_pairs),
		cmocka_unit_test(test_args_table_refused),
		cmocka_unit_test(test_args_message_good),
		cmocka_unit_test(test_args_message_under_mq),
		cmocka_unit_test(test_args_message_refused),
		cmocka_unit_test(test_args_message_too_many),
		cmocka_unit_test(test_args_set_tunable),
		cmocka_unit_test(test_args_format_round_trip),
		cmocka_unit_test(test_args_names_and_sizes),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
