// SPDX-License-Identifier: GPL-2.0-only
/*
 * polycache sim as a program: what it prints on a small trace, as table, JSON and
 * picture, and what it says about wrong calls. The model itself is test-sim.c's. The
 * program is the sanitized build that lies beside this test.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char output[1 << 20];
static char folder[64];
static char trace[128];

/* Runs "polycache sim WORDS" through the shell, with what stands before it. */
static int run(const char *before, const char *words)
{
	char self[256], command[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t len;
	FILE *p;

	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "cd %s && %s '%s/polycache-san' sim %s 2>&1", folder,
		 before, self, words);
	p = popen(command, "r");
	assert_non_null(p);
	len = fread(output, 1, sizeof(output) - 1, p);
	output[len] = 0;
	n = pclose(p);
	assert_true(WIFEXITED(n));
	if (strstr(output, "Sanitizer") || strstr(output, "runtime error"))
		fail_msg("%s", output);
	return WEXITSTATUS(n);
}

static void expect(const char *words, int status, const char *text)
{
	int got = run("", words);

	if (got != status || !strstr(output, text))
		fail_msg("sim %s: status %d, expected %d and \"%s\":\n%s", words, got, status,
			 text, output);
}

static void also(const char *text)
{
	if (!strstr(output, text))
		fail_msg("lacks \"%s\":\n%s", text, output);
}

/* Ten blocks, two rounds: a cache of all of them has half of the accesses as hits. */
static int write_trace(void **state)
{
	FILE *f;

	strcpy(folder, "/tmp/test-command-sim-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(trace, sizeof(trace), "%s/t.csv", folder);
	f = fopen(trace, "w");
	for (int i = 0; f && i < 20; i++)
		fprintf(f, "%d,%s,%d,4096\n", i, i < 10 ? "r" : "w", i % 10 * 65536);
	return f ? fclose(f) : 1;
}

static int remove_trace(void **state)
{
	unlink(trace);
	return rmdir(folder);
}

static void test_table(void **state)
{
	expect("t.csv -s 100% -p lru", 0, "t.csv: csv, 20 requests (10 reads, 10 writes) in 19 s\n");
	also("20 accesses to 10 distinct blocks of 64 KiB, 640 KiB; mode writeback\n");
	also("cache of 100%: 10 blocks, 640 KiB\n");
	also("\nlru                  20    0.00  100.00   50.00         10         10         10          0 ");
	/* a share is rounded down, but there is always a block */
	expect("t.csv -s 1%,19.9%,50%", 0, "cache of 1%: 1 blocks");
	also("cache of 19.9%: 1 blocks");
	also("cache of 50%: 5 blocks");
	expect("t.csv -s 320K -b 32K", 0, "cache of 320K: 10 blocks, 320 KiB\n");
	expect("t.csv -s 100% -m writethrough -P", 0, "; mode writethrough, with a pool\n");
	expect("t.csv -s 100% -v", 0, "million requests/s");
	expect("t.csv -l 10 -s 100%", 0, "t.csv: csv, 10 requests (10 reads, 0 writes)");
	/* all but the cleaner are tried */
	assert_null(strstr(output, "cleaner"));
	expect("t.csv -s 100% -p cleaner,lru:promote_after=2", 0, "\ncleaner ");
	also("\nlru:promote_after=2 ");
}

static void test_json(void **state)
{
	expect("t.csv -s 100% -p lru -j", 0, "\"distinct_blocks\": 10,");
	also("\"policy\": \"lru\",");
	also("\"read_hit_ratio\": 0.000000,");
	also("\"write_hit_ratio\": 1.000000,");
	also("\"hit_ratio\": 0.500000,");
	also("\"origin_read_sectors\": 1280,");
	also("\"dirty_sectors_at_end\": 80,");
	also("\"requests_per_second\": ");
}

static void test_picture(void **state)
{
	char text[4096] = "", path[80];
	FILE *f;

	expect("t.csv -s 10%,100% -p lru -g \"it's.svg\"", 0, "cache of 100%");
	snprintf(path, sizeof(path), "%s/it's.svg", folder);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	unlink(path);
	assert_non_null(strstr(text, "<svg"));
	/* before the trace is read */
	assert_int_equal(run("PATH=/nowhere", "none.csv -g x.svg"), 1);
	also("--svg needs gnuplot, which is not in PATH: install the package gnuplot-nox");
	expect("t.csv -s 10% -g none/x.svg", 1, "none/x.svg: gnuplot ended with status");
}

static void test_bad_lines(void **state)
{
	assert_int_equal(run("printf '0,r,0,512\\n1,q,0,512\\n' |", "- -f csv -s 100%"), 1);
	also("polycache sim: -:2: '1,q,0,512': op 'q': must be r, read, 28, w, write or 2a\n");
	assert_int_equal(run("printf '0,r,0,512\\n1,q,0,512\\n' |", "- -f csv -s 100% -k"), 0);
	also("bad lines skipped: 1\n");
}

static void test_wrong_calls(void **state)
{
	expect("", 2, "must be: polycache sim TRACE");
	expect("t.csv -s 0%", 2, "--size '0%': must be bytes as in 512M");
	expect("t.csv -s 1x", 2, "--size '1x': must be");
	expect("t.csv -s 18014398509481984K", 2, "--size '18014398509481984K': must be");
	expect("t.csv -s 1K", 2, "--size '1K': is less than a block of 65536 bytes");
	expect("t.csv -s 100T", 2, "--size '100T': is 1677721600 blocks, must be at most 2^30");
	expect("t.csv -p frob", 2, "unknown policy 'frob': must be one of ");
	expect("t.csv -p lru:x=1", 2, "policy 'lru:x=1': it has no tunable 'x'");
	expect("t.csv -p lru:promote_after=0", 2,
	       "promote_after '0': must be a number of misses from 1 to 1000");
	expect("t.csv -p lru:promote_after", 2, "'promote_after' must be KEY=VALUE");
	expect("t.csv -m passthrough", 2,
	       "--mode 'passthrough': must be writeback, writethrough or writearound");
	expect("t.csv -b 100", 2, "--block-size '100': must be a multiple of 512 bytes up to 1 GiB");
	expect("t.csv -q 1", 2, "--bypass-sequential '1': must be a multiple of 512 bytes");
	expect("t.csv -f frob", 2, "--format 'frob': must be auto, cloudphysics, msr, ");
	expect("t.csv -l 0", 2, "--limit '0': must be a number from 1");
	expect("t.csv -c op", 1, "must have op, one of offset and sector");
	expect("none.csv", 1, "none.csv: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_wrong_calls),
	};

	return cmocka_run_group_tests(tests, write_trace, remove_trace);
}
