// SPDX-License-Identifier: GPL-2.0-only
/*
 * The polycache command without a kernel: check and dump on images that the metadata
 * code made, sound ones and damaged ones, and what is said about wrong calls. The
 * program is the sanitized build that lies beside this test.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <linux/crc32c.h>
#include <asm/byteorder.h>

#include "metadata-model.h"
#include "ondisk.h"

enum { NR = 600, BLOCK = 128, BLOCKS = 2 + 20 + 5 + 53 };

struct fixture {
	struct unit_random r;
	struct model m;
	struct pc_metaio_file f;
	char path[64];
};

static char output[1 << 20];

/* Runs polycache with these words through the shell; output and errors in `output`. */
static int run(const char *words)
{
	char self[256], command[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t len;
	FILE *p;

	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "'%s/polycache-san' %s 2>&1", self, words);
	p = popen(command, "r");
	assert_non_null(p);
	len = fread(output, 1, sizeof(output) - 1, p);
	output[len] = 0;
	n = pclose(p);
	assert_true(WIFEXITED(n));
	return WEXITSTATUS(n);
}

static void expect(const char *text)
{
	if (!strstr(output, text))
		fail_msg("lacks \"%s\":\n%s", text, output);
	if (strstr(output, "Sanitizer") || strstr(output, "runtime error"))
		fail_msg("%s", output);
}

static void expect_run(const char *words, int status, const char *text)
{
	int got = run(words);

	if (got != status)
		fail_msg("polycache %s: exit status %d, expected %d:\n%s", words, got, status,
			 output);
	expect(text);
}

/* A device with a life behind it: clean, or as a crash left it (journal not empty). */
static void make(struct fixture *x, bool clean)
{
	struct pc_metadata *md;

	unit_random_init(&x->r, "command", clean);
	model_init(&x->m, NR, BLOCK, 8, BLOCK * 1000 + 50);
	assert_int_equal(pc_metaio_open_memory(&x->f, BLOCKS, NULL), 0);
	md = model_open(&x->m, &x->f);
	model_load(&x->m, md, false);
	assert_int_equal(model_commit(&x->m, &x->r, md, 900), 0);
	assert_int_equal(pc_metadata_checkpoint(md), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(model_commit(&x->m, &x->r, md, 30), 0);
	if (clean)
		model_close(&x->m, md);
	pc_metadata_free(md);
	model_settle(&x->m);
	strcpy(x->path, "/tmp/polycache-test-XXXXXX");
	close(mkstemp(x->path));
}

static void done(struct fixture *x)
{
	unlink(x->path);
	pc_metaio_close(&x->f);
	model_free(&x->m);
}

static void save(struct fixture *x)
{
	FILE *f = fopen(x->path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(x->f.image, PC_META_BLOCK_SIZE, BLOCKS, f), BLOCKS);
	assert_int_equal(fclose(f), 0);
}

/* Runs on the image as it is; the file must be the same afterwards. */
static void expect_image(struct fixture *x, const char *words, int status, const char *text)
{
	size_t bytes = (size_t)BLOCKS * PC_META_BLOCK_SIZE;
	u8 *after = malloc(bytes);
	char command[256];
	FILE *f;

	save(x);
	snprintf(command, sizeof(command), "%s %s", words, x->path);
	expect_run(command, status, text);
	f = fopen(x->path, "r");
	assert_int_equal(fread(after, 1, bytes, f), bytes);
	fclose(f);
	assert_memory_equal(after, x->f.image, bytes);
	free(after);
}

static u8 *block(struct fixture *x, u64 n)
{
	return x->f.image + n * PC_META_BLOCK_SIZE;
}

static struct pc_super_disk *super(struct fixture *x, int copy)
{
	return (struct pc_super_disk *)block(x, copy);
}

static struct pc_sector_disk *sector(struct fixture *x, u32 n)
{
	return (struct pc_sector_disk *)block(x, le64_to_cpu(super(x, 0)->table_start)) + n;
}

static void seal_sector(struct pc_sector_disk *d)
{
	d->crc = cpu_to_le32(crc32c(PC_CRC_SEED, (u8 *)d + 4, sizeof(*d) - 4));
}

/* A slot of the table that is mapped; its sector in *n. */
static struct pc_entry_disk *mapped(struct fixture *x, u32 *n)
{
	for (u32 c = 0; c < NR; c++) {
		struct pc_entry_disk *e = &sector(x, c / 15)->entries[c % 15];

		*n = c / 15;
		if (le64_to_cpu(e->oblock_flags) & PC_ENTRY_MAPPED)
			return e;
	}
	fail_msg("nothing is mapped");
	return NULL;
}

static void test_command_check_sound(void **state)
{
	struct fixture x;

	make(&x, true);
	expect_image(&x, "check", 0, "state: closed cleanly\n");
	expect("superblock: both copies are good");
	expect("hints: of policy");
	expect("\ngood\n");
	expect_image(&x, "check -q", 0, "");
	assert_string_equal(output, "");
	done(&x);

	make(&x, false);
	expect_image(&x, "check", 0, "not closed cleanly");
	expect("4 transactions with 120 records to be replayed");
	expect("\ngood\n");
	super(&x, 0)->counters[0] ^= 1;
	expect_image(&x, "check", 0, "superblock copy A: ");
	expect("one copy of two is good");
	done(&x);
}

/* Of several damaged places each is named, and nothing is printed with -q. */
static void test_command_check_damaged(void **state)
{
	struct pc_entry_disk *e;
	struct fixture x;
	u32 n;

	make(&x, true);
	sector(&x, 9)->entries[0].dirty ^= 1;
	sector(&x, 30)->crc ^= 1;
	expect_image(&x, "check", 1, "table sector 9 (cache blocks from 135) has a bad checksum");
	expect("table sector 30 (cache blocks from 450) has a bad checksum");
	expect("bad: a start would be refused");
	expect_image(&x, "check --quiet", 1, "");
	assert_string_equal(output, "");
	expect_image(&x, "dump", 1, "has a bad checksum");
	expect_image(&x, "dump --xml", 1, "has a bad checksum");
	if (strstr(output, "<"))
		fail_msg("XML of damaged metadata:\n%s", output);
	done(&x);

	make(&x, true);
	e = mapped(&x, &n);
	e->oblock_flags |= cpu_to_le64(0x8000);
	seal_sector(sector(&x, n));
	expect_image(&x, "check", 1, "has unknown flags 0x8");
	done(&x);

	make(&x, true);
	memset(block(&x, 0), 0x11, 2 * PC_META_BLOCK_SIZE);
	expect_image(&x, "check", 1, "unknown contents");
	memset(block(&x, 0), 0, PC_META_BLOCK_SIZE);
	expect_image(&x, "check", 1, "holds no metadata: its first 4096 bytes are zero");
	memcpy(block(&x, 0) + 32, &(__le64){ cpu_to_le64(06142003) }, 8);
	expect_image(&x, "check", 1, "holds a dm-cache superblock");
	done(&x);

	/* the second of four transactions is gone */
	make(&x, false);
	n = le64_to_cpu(super(&x, 0)->tail_sequence) + 1;
	memset(block(&x, 2 + n % le32_to_cpu(super(&x, 0)->journal_blocks)), 0x22,
	       PC_META_BLOCK_SIZE);
	expect_image(&x, "check", 1, "journal is damaged");
	done(&x);
}

/* Random bytes anywhere: an answer, never a crash, never a hang. */
static void test_command_check_random_damage(void **state)
{
	for (int i = 0; i < 25; i++) {
		struct fixture x;
		int status;
		char command[128];

		make(&x, i & 1);
		for (int k = 0; k < 1 + i % 4; k++)
			x.f.image[unit_random_below(&x.r, (u64)BLOCKS * PC_META_BLOCK_SIZE)] ^=
				1 << unit_random_below(&x.r, 8);
		save(&x);
		for (int k = 0; k < 4; k++) {
			static const char *const words[] = { "check", "dump -x", "dump -r", "dump" };

			snprintf(command, sizeof(command), "%s %s", words[k], x.path);
			status = run(command);
			assert_in_range(status, 0, 1);
			expect("");
		}
		done(&x);
	}
}

/* The dump says what a start finds, entry by entry. */
static void test_command_dump(void **state)
{
	struct fixture x;
	char command[128];

	for (int clean = 0; clean < 2; clean++) {
		const char *at = output;
		u32 n = 0;

		make(&x, clean);
		expect_image(&x, "dump", 0, "nr_cblocks 600\n");
		for (u32 c = 0; c < NR; c++) {
			const struct pc_entry *e = &x.m.entries[c];
			char line[128];

			if (!(e->flags & PC_ENTRY_MAPPED))
				continue;
			snprintf(line, sizeof(line),
				 "\ncache_block %u origin_block %llu valid 0x%llx dirty 0x%llx hint ",
				 c, e->oblock, e->valid, e->dirty);
			at = strstr(at, line);
			if (!at)
				fail_msg("lacks %s", line);
			n++;
		}
		assert_true(n > 10);
		for (at = output; (at = strstr(at, "\ncache_block ")); at++)
			n--;
		assert_int_equal(n, 0);
		done(&x);
	}
	make(&x, false);
	expect_image(&x, "dump --raw", 0, " intent_");
	expect_image(&x, "dump --superblock", 0, "origin_sectors 128050\n");
	assert_null(strstr(output, "cache_block "));
	/* a full disk is not a complete dump */
	snprintf(command, sizeof(command), "dump %s >/dev/full", x.path);
	expect_run(command, 1, "");
	done(&x);
}

/* A block in part must never be taken for a whole one. */
static void test_command_dump_xml(void **state)
{
	struct pc_entry_disk *e;
	struct fixture x;
	char line[200];
	u32 whole = 0, n;

	make(&x, true);
	for (u32 c = 0; c < NR; c++) {
		struct pc_entry_disk *d = &sector(&x, c / 15)->entries[c % 15];

		d->dirty = 0;
		seal_sector(sector(&x, c / 15));
	}
	e = mapped(&x, &n);
	e->valid = cpu_to_le64(0xffff);
	e->hint = cpu_to_le32(0x04030201);
	seal_sector(sector(&x, n));
	expect_image(&x, "dump --xml", 0, "<superblock uuid=\"");
	expect("block_size=\"128\" nr_cache_blocks=\"600\"");
	expect("data=\"AQIDBA==\"");
	expect("</superblock>\n");
	for (u32 c = 0; c < NR; c++) {
		e = &sector(&x, c / 15)->entries[c % 15];
		if (!(le64_to_cpu(e->oblock_flags) & PC_ENTRY_MAPPED))
			continue;
		whole += le64_to_cpu(e->valid) == 0xffff;
		snprintf(line, sizeof(line), "    <%s cache_block=\"%u\" origin_block=\"%llu\" ",
			 le64_to_cpu(e->valid) == 0xffff ? "mapping" : "partial_mapping", c,
			 (unsigned long long)le64_to_cpu(e->oblock_flags) >> 16);
		expect(line);
	}
	assert_true(whole >= 1);
	expect_image(&x, "dump --xml --whole-only", 0, "clean blocks that are cached in part");
	assert_null(strstr(output, "partial_mapping"));
	e = NULL;
	for (u32 c = 0; c < NR && !e; c++) {
		e = &sector(&x, c / 15)->entries[c % 15];
		n = c / 15;
		if (!e->valid || le64_to_cpu(e->valid) == 0xffff)
			e = NULL;
	}
	assert_non_null(e);
	e->dirty = e->valid;
	seal_sector(sector(&x, n));
	expect_image(&x, "dump --xml --whole-only", 1, "1 blocks are dirty and cached in part");
	done(&x);
}

static void test_command_wrong_calls(void **state)
{
	expect_run("", 2, "usage: polycache COMMAND");
	expect_run("--help", 0, "usage: polycache COMMAND");
	expect_run("help check", 0, "usage: polycache check [OPTION]... META");
	expect_run("flush --help", 0, "--timeout SECONDS");
	expect_run("--version", 0, "polycache " PC_VERSION);
	expect_run("frob", 2, "unknown command 'frob'");
	expect_run("--frob", 2, "unknown option '--frob'");
	expect_run("check", 2, "must be: polycache check META");
	expect_run("check a b", 2, "one argument too many: 'b'");
	expect_run("check --frob a", 2, "unknown option '--frob'");
	expect_run("check -Z a", 2, "unknown option '-Z'");
	expect_run("check --quiet=1 a", 2, "--quiet takes no argument");
	expect_run("flush --timeout", 2, "--timeout lacks its argument");
	expect_run("flush x --timeout 5x", 2, "--timeout '5x': must be a number from 1");
	expect_run("flush x -n -t 5", 2, "must be one of them");
	expect_run("set c fill", 2, "must be: polycache set DEV KEY VALUE");
	expect_run("set c fill 8 commit_ms", 2, "commit_ms: its value is missing");
	expect_run("dump -x -r a", 2, "--xml and --raw");
	expect_run("dump -w a", 2, "--whole-only: must be given with --xml");
	expect_run("check /nonexistent", 1, "/nonexistent: cannot be opened: No such file");
	expect_run("check /dev/null", 1, "must be a block device or a file");
	expect_run("check -q /nonexistent", 1, "");
	assert_string_equal(output, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_check_sound),
		cmocka_unit_test(test_command_check_damaged),
		cmocka_unit_test(test_command_check_random_damage),
		cmocka_unit_test(test_command_dump),
		cmocka_unit_test(test_command_dump_xml),
		cmocka_unit_test(test_command_wrong_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
