// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command's parser of the status line: what the target writes is taken apart to the
 * last word, anything else is refused by the name of the field.
 */
#include "unit.h"

#include "polycache-state.h"

#define LINE "8 83/4096 128 77/1024 1 2 3 4 5 6 7 2 metadata2 writethrough " \
	     "4 migration_threshold 2048 writeback_limit 60 lru 2 promote_after 1 rw -"

static void expect_refused(const char *line, const char *text)
{
	char err[PC_ERR_SIZE] = "";
	struct pc_state s;

	if (!pc_state_parse(&s, line, err))
		fail_msg("accepted: %s", line);
	if (!strstr(err, text))
		fail_msg("\"%s\" lacks \"%s\"", err, text);
	pc_state_free(&s);
}

static void test_status_line_sound(void **state)
{
	char err[PC_ERR_SIZE];
	struct pc_tunables t;
	struct pc_state s;

	assert_int_equal(pc_state_parse(&s, LINE, err), 0);
	assert_null(s.broken);
	assert_int_equal(s.metadata_block, 8);
	assert_int_equal(s.metadata_used, 83);
	assert_int_equal(s.metadata_total, 4096);
	assert_int_equal(s.block, 128);
	assert_int_equal(s.used, 77);
	assert_int_equal(s.total, 1024);
	assert_int_equal(s.read_hits, 1);
	assert_int_equal(s.read_misses, 2);
	assert_int_equal(s.write_hits, 3);
	assert_int_equal(s.write_misses, 4);
	assert_int_equal(s.demotions, 5);
	assert_int_equal(s.promotions, 6);
	assert_int_equal(s.dirty, 7);
	assert_int_equal(s.nr_features, 2);
	assert_string_equal(pc_state_mode(&s), "writethrough");
	assert_int_equal(s.nr_core, 2);
	assert_string_equal(s.core[1].key, "writeback_limit");
	assert_string_equal(s.core[1].value, "60");
	assert_string_equal(s.policy, "lru");
	assert_int_equal(s.nr_policy, 1);
	assert_string_equal(s.args[0].key, "promote_after");
	assert_false(s.read_only);
	assert_false(s.needs_check);
	pc_state_tunables(&s, &t);
	assert_int_equal(t.writeback_limit, 60);
	assert_int_equal(t.migration_threshold, 2048);
	pc_state_free(&s);

	assert_int_equal(pc_state_parse(&s, "8 1/2 64 0/1 0 0 0 0 0 0 0 1 writeback 0 smq 0 ro "
					    "needs_check ", err), 0);
	assert_true(s.read_only);
	assert_true(s.needs_check);
	pc_state_free(&s);
	assert_int_equal(pc_state_parse(&s, "Fail", err), 0);
	assert_string_equal(s.broken, "Fail");
	pc_state_free(&s);
}

static void test_status_line_refused(void **state)
{
	expect_refused("", "empty");
	expect_refused("x 1/2", "metadata block size: 'x', must be a number");
	expect_refused("8 12", "metadata blocks: '12', must be used/total");
	expect_refused("8 1/-2 64", "metadata blocks: '-2'");
	expect_refused("8 1/2 64 0/1 0 0 0 0 0 0 18446744073709551616", "dirty");
	expect_refused("8 1/2 64 0/1 0 0 0 0 0 0 0 4000000000 a", "features");
	expect_refused("8 1/2 64 0/1 0 0 0 0 0 0 0 0 3 a b c lru", "core args");
	expect_refused("8 1/2 64 0/1 0 0 0 0 0 0 0 0 0 lru 2 a", "policy args");
}

/* Cut anywhere: refused, unless the rest is whole again. */
static void test_status_line_cut(void **state)
{
	for (size_t n = 0; n < strlen(LINE) - 2; n++) {
		char *line = strndup(LINE, n);	/* so that a read behind the end is seen */

		expect_refused(line, "status line");
		free(line);
	}
}

static void test_status_line_random(void **state)
{
	static const char *const words[] = {
		"0", "1", "2", "160", "161", "99999999999999999999", "-1", "a", "a/b", "1/2", "/",
		"rw", "ro", "-", "lru", "writeback", "fill", "writeback_target", "",
	};
	struct unit_random r;

	unit_random_init(&r, "status-line", 0);
	for (int i = 0; i < 20000; i++) {
		char line[400] = "8 1/2 64 0/1 0 0 0 0 0 0 0 ", err[PC_ERR_SIZE];
		struct pc_tunables t;
		struct pc_state s;

		if (unit_random_one_in(&r, 4))
			line[0] = 0;
		for (int n = unit_random_below(&r, 16); n; n--) {
			strcat(line, words[unit_random_below(&r, ARRAY_SIZE(words))]);
			strcat(line, " ");
		}
		if (!pc_state_parse(&s, line, err) && !s.broken) {
			assert_non_null(pc_state_mode(&s));
			pc_state_tunables(&s, &t);
		}
		pc_state_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_line_sound),
		cmocka_unit_test(test_status_line_refused),
		cmocka_unit_test(test_status_line_cut),
		cmocka_unit_test(test_status_line_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
