// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading of traces: each format with lines made up for it, plain and compressed, what
 * is found out by name and first line, and what is said about lines that make no sense.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "trace.h"
#include "trace-input.h"
#include "unit.h"

static char folder[64];
static char path[128];
static char err[PC_TRACE_ERR_SIZE];

static void write_file(const char *name, const char *data, size_t len)
{
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static bool read_text(struct pc_trace *t, const char *name, const char *text,
		      const struct pc_trace_options *o)
{
	bool good;

	write_file(name, text, strlen(text));
	good = pc_trace_read(t, path, o, err);
	unlink(path);
	return good;
}

/* "r100+8 w5+1@3": read of 8 sectors at 100, write of one at 5 in the third second */
static void expect_requests(const struct pc_trace *t, const char *requests)
{
	char text[4096] = "";

	for (size_t i = 0; i < t->nr; i++) {
		const struct pc_request *q = &t->requests[i];
		size_t len = strlen(text);

		len += snprintf(text + len, sizeof(text) - len, "%s%c%llu+%u", i ? " " : "",
				q->is_write ? 'w' : 'r', (u64)q->sector, q->sectors);
		if (q->seconds)
			snprintf(text + len, sizeof(text) - len, "@%u", q->seconds);
	}
	assert_string_equal(text, requests);
}

static void expect_good(const char *name, const char *format, const char *columns,
			const char *text, const char *requests)
{
	/* what was asked for, and what is to be found out */
	for (int guess = !columns; guess >= 0; guess--) {
		struct pc_trace_options o = {
			.format = guess ? NULL : format, .columns = columns, .block_sectors = 1000,
		};
		struct pc_trace t;

		if (!read_text(&t, name, text, &o))
			fail_msg("%s", err);
		assert_string_equal(t.format, format);
		expect_requests(&t, requests);
		pc_trace_free(&t);
	}
}

/* The message, whose beginning is the path. */
static void expect_bad(const char *format, const char *text, const char *message)
{
	struct pc_trace_options o = { .format = format };
	struct pc_trace t;

	assert_false(read_text(&t, "bad", text, &o));
	assert_memory_equal(err, path, strlen(path));
	assert_string_equal(err + strlen(path), message);
	pc_trace_free(&t);
}

static void test_csv(void **state)
{
	expect_good("a.csv", "csv", NULL,
		    "time,op,offset,size\n0.5,r,0,512\n1.25,W,513,1024\n2.6,2a,1024,1\n"
		    "2.6,0x28,4096,512\n3,READ,8192,512\r\n4,write,512,512",
		    "r0+1 w1+3 w2+1@2 r8+1@2 r16+1@2 w1+1@3");
	expect_good("b.csv", "csv", "sectors,-,device,sector,op,time:ms",
		    "8,x,sda,16,r,1000\n1,x,sdb,16,w,2999\n1,x,sda,0,w,3000\n",
		    "r16+8 w1016+1@1 w0+1@2");
	/* neither flushes, nor discards, nor requests of no size */
	expect_good("c.csv", "csv", "op,offset,size",
		    "f,0,0\nd,0,512\n35,0,512\nr,0,0\nr,512,512\n", "r1+1");
}

static void test_cloudphysics(void **state)
{
	expect_good("x", "cloudphysics", NULL,
		    "version,time,op,size,lbn\n1,100,2a,512,7\n1,103,28,4096,8\n1,104,35,0,0\n",
		    "w7+1 r8+8@3");
}

static void test_msr(void **state)
{
	expect_good("x.csv", "msr", NULL,
		    "128166372003061629,hm,0,Read,8192,1024,100\n"
		    "128166372033061629,hm,1,Write,512,512,100\n"
		    "128166372033061630,hm,0,Write,0,512,100\n",
		    "r16+2 w1001+1@3 w0+1@3");
}

static void test_blkparse(void **state)
{
	static const char text[] =
		"  8,16   3        1     0.000000000   697  G   W 2048 + 8 [kworker]\n"
		"  8,16   3        2     0.000000001   697  Q   W 2048 + 8 [kworker/u8:0]\n"
		"  8,16   3        3     0.000000002   697  P   N [kworker]\n"
		"  8,0    3        4     1.500000000   697  Q  RM 16 + 8 [a b]\n"
		"  8,16   3        5     2.500000000   697  Q FWS [x]\n"
		"  8,16   3        6     2.600000000   697  Q  DS 100 + 800 [x]\n"
		"  8,16   3        7     2.700000000   697  Q FWFS 8 + 8 [x]\n"
		"  8,16   3        8     2.800000000     0  C   W 2048 + 8 [0]\n"
		"CPU3 (8,16):\n Reads Queued:           1,        4KiB\n\n"
		"Total (8,16):\n 8,16 of this no more is read\n";
	struct pc_trace_options o = { .action = "C" };
	struct pc_trace t;

	/* each device ends at a whole block of 1000 */
	expect_good("x.txt", "blkparse", NULL, text, "w2048+8 r3016+8@1 w8+8@2");
	assert_true(read_text(&t, "x", text, &o));
	expect_requests(&t, "w2048+8");
	pc_trace_free(&t);
}

static void test_iolog(void **state)
{
	expect_good("x.log", "iolog", NULL,
		    "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 4096 1024\n"
		    "/dev/a wait 2500000\n/dev/b read 0 512\n/dev/a trim 0 512\n"
		    "/dev/a sync 0 0\n/dev/a datasync 0 0\n/dev/a read 512 512\n/dev/a close\n",
		    "w8+2 r1000+1@2 r1+1@2");
	expect_good("y.log", "iolog", NULL,
		    "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n5 /dev/a write 4096 1024\n"
		    "3004 /dev/b read 0 512\n3005 /dev/a read 512 512\n9000 /dev/a close\n",
		    "w8+2 r1000+1@2 r1+1@3");
}

static void test_lis(void **state)
{
	expect_good("P1.lis", "lis", NULL, "100 8 0 0\n64 1 0 1\n7 0 0 2\n", "r100+8 r64+1");
	expect_good("OLTP.lis", "pages", NULL, "100 8 0 0\n64 1 0 1\n", "r800+8 r512+8");
}

static void test_mqsim(void **state)
{
	expect_good("x.trace", "mqsim", NULL,
		    "1000000000 0 16 8 1\n2000000000 3 16 8 0\n3500000000 0 8 1 0",
		    "r16+8 w1016+8@1 w8+1@2");
}

static void put(unsigned char *at, u64 value, unsigned int bytes)
{
	while (bytes--) {
		*at++ = value;
		value >>= 8;
	}
}

static void put_record(unsigned char *at, u16 command, u32 bytes, u64 sector, u64 us)
{
	memset(at, 0, 32);
	put(at + 4, bytes, 4);
	put(at + 12, command, 2);
	put(at + 14, 0x100, 2);
	put(at + 16, sector, 8);
	put(at + 24, us, 8);
}

static void test_vscsi(void **state)
{
	struct pc_trace_options o = { .block_sectors = 8 };
	unsigned char data[5 * 32];
	struct pc_trace t;

	put_record(data, 0x28, 4096, 1ull << 33, 1000000);
	put_record(data + 32, 0x35, 0, 0, 1000000);
	put_record(data + 64, 0x8a, 512, 7, 3999999);
	put_record(data + 96, 0x2a, 1, 10, 4000000);
	put_record(data + 128, 0x28, 512, 7, 2000000);
	write_file("x.vscsi.gz", (char *)data, sizeof(data));
	if (!pc_trace_read(&t, path, &o, err))
		fail_msg("%s", err);
	assert_string_equal(t.format, "vscsi");
	/* time never goes back */
	expect_requests(&t, "r8589934592+8 w7+1@2 w10+1@3 r7+1@3");
	assert_int_equal(t.nr_ignored, 1);
	assert_int_equal(t.nr_writes, 2);
	pc_trace_free(&t);

	data[2 * 32 + 15] = 2;
	write_file("x.vscsi", (char *)data, sizeof(data));
	assert_false(pc_trace_read(&t, path, &o, err));
	assert_string_equal(err + strlen(path),
			    ":3: record version 2: must be 1 (records of 32 bytes)");
	pc_trace_free(&t);

	write_file("x.vscsi", (char *)data, 40);
	assert_false(pc_trace_read(&t, path, &o, err));
	assert_string_equal(err + strlen(path), ": the last record has 8 bytes: must be 32");
	pc_trace_free(&t);
	unlink(path);
	snprintf(path, sizeof(path), "%s/x.vscsi.gz", folder);
	unlink(path);
}

static void test_bad_lines(void **state)
{
	expect_bad("csv", "0,r,0,512\n0,x,0,512\n",
		   ":2: '0,x,0,512': op 'x': must be r, read, 28, w, write or 2a");
	expect_bad("csv", "0,r,1k,512\n",
		   ":1: '0,r,1k,512': offset '1k': must be a number from 0 to 18446744073709551615");
	expect_bad("csv", "0,r,0\n", ":1: '0,r,0': 3 columns: must be at least 4");
	expect_bad("csv", "-1,r,0,1\n", ":1: '-1,r,0,1': time '-1': must be a number below 2^64 ns");
	expect_bad("csv", "18446744073.8,r,0,1\n",
		   ":1: '18446744073.8,r,0,1': time '18446744073.8': must be a number below 2^64 ns");
	expect_bad("csv", "0,r,18446744073709551615,1\n",
		   ":1: '0,r,18446744073709551615,1': offset 18446744073709551615 and size 1: the end must be below 2^64");
	expect_bad("csv", "0,r,0,4294967297\n",
		   ":1: '0,r,0,4294967297': 8388609 sectors are no request: must be at most 4 GiB");
	expect_bad("csv", "0,r,1152921504606846976,1\n",
		   ":1: '0,r,1152921504606846976,1': sector 2251799813685248 is no place: must be below 1 EiB");
	expect_bad("lis", "1 1 0\n", ":1: '1 1 0': 3 fields: must be 4");
	expect_bad("pages", "2305843009213693952 1 0 0\n",
		   ":1: '2305843009213693952 1 0 0': page 2305843009213693952 is no place");
	expect_bad("mqsim", "0 0 0 1 2\n",
		   ":1: '0 0 0 1 2': type 2: must be 0 (a write) or 1 (a read)");
	expect_bad("blkparse", "8,0 1 1 0.0 1 Q R 16 8 [x]\n",
		   ":1: '8,0 1 1 0.0 1 Q R 16 8 [x]': a read or write without 'sector + sectors'");
	expect_bad("blkparse", "sda 1 1 0.0 1 Q R 16 + 8 [x]\n",
		   ":1: 'sda 1 1 0.0 1 Q R 16 + 8 [x]': device 'sda': must be two numbers as in 8,16");
	expect_bad("iolog", "fio version 4 iolog\n",
		   ":1: 'fio version 4 iolog': iolog version 4: must be 2 or 3");
	expect_bad("iolog", "fio version 2 iolog\n/a erase 0 1\n",
		   ":2: '/a erase 0 1': action 'erase': must be read, write, add, open, close, trim, sync, datasync or wait");
	expect_bad("iolog", "fio version 2 iolog\n/a read 0\n",
		   ":2: '/a read 0': a read must have an offset and a length");
	/* what a terminal would take for a command is not sent to it */
	expect_bad("lis", "\033[2J 1 0\n", ":1: '?[2J 1 0': 3 fields: must be 4");
	expect_bad("lis", "", ": has no request: 0 lines were read, 0 of them bad");
}

static void test_long_line(void **state)
{
	size_t len = PC_INPUT_MAX_LINE + 10;
	struct pc_trace_options o = { .format = "lis" };
	char *text = malloc(len + 1);
	struct pc_trace t;

	assert_non_null(text);
	memset(text, '1', len);
	text[len] = 0;
	assert_false(read_text(&t, "x", text, &o));
	assert_string_equal(err + strlen(path), ": a line is longer than 65536 bytes: this is no text");
	pc_trace_free(&t);
	free(text);
}

static void test_unknown(void **state)
{
	expect_bad(NULL, "hello\nworld\n",
		   ": the format is not known by its name or its first line 'hello': --format must name it");
	snprintf(path, sizeof(path), "%s/none", folder);
	struct pc_trace_options o = { 0 };
	struct pc_trace t;

	assert_false(pc_trace_read(&t, path, &o, err));
	assert_string_equal(err + strlen(path), ": No such file or directory");
	pc_trace_free(&t);
}

static void test_columns(void **state)
{
	static const char *const wrong[][2] = {
		{ "op,offset", "columns 'op,offset': must have op, one of offset and sector, one of size and sectors" },
		{ "op,offset,sector,size", "columns 'op,offset,sector,size': must have op, one of offset and sector, one of size and sectors" },
		{ "op,place,size", "column 'place': must be time, op, offset, sector, size, sectors, device or -" },
		{ "op,op,offset,size", "column 'op' is named twice" },
		{ "time:h,op,offset,size", "unit of time 'h': must be s, ms, us, 100ns or ns" },
		{ "op,offset:k,size", "column 'offset:k': only time has a unit" },
	};
	struct pc_trace_options o = { .format = "csv" };
	struct pc_trace t;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		o.columns = wrong[i][0];
		assert_false(read_text(&t, "x", "0,0,0,0\n", &o));
		assert_string_equal(err, wrong[i][1]);
		pc_trace_free(&t);
	}
	o.format = "lis";
	assert_false(read_text(&t, "x", "1 1 0 0\n", &o));
	assert_string_equal(err, "format lis has no columns to choose: --columns is for csv, msr and cloudphysics");
	pc_trace_free(&t);
}

static void test_skip_bad_and_limit(void **state)
{
	static const char text[] = "1 1 0 0\nx\n2 1 0\n3 1 0 0\n4 1 0 0\n";
	struct pc_trace_options o = { .format = "lis", .skip_bad = true };
	struct pc_trace t;

	assert_true(read_text(&t, "x", text, &o));
	expect_requests(&t, "r1+1 r3+1 r4+1");
	assert_int_equal(t.nr_bad, 2);
	pc_trace_free(&t);
	o.limit = 2;
	assert_true(read_text(&t, "x", text, &o));
	expect_requests(&t, "r1+1 r3+1");
	pc_trace_free(&t);
}

static void test_footprint(void **state)
{
	/* the first touches blocks 0 and 1, the second 1, the third 1 to 3 */
	static const char text[] = "127 2 0 0\n255 1 0 0\n200 200 0 0\n";
	struct pc_trace_options o = { .format = "lis" };
	struct pc_trace t;

	assert_true(read_text(&t, "x", text, &o));
	assert_int_equal(t.block_sectors, 128);
	assert_int_equal(t.nr_accesses, 6);
	assert_int_equal(t.nr_blocks, 4);
	assert_int_equal(t.origin_sectors, 512);
	pc_trace_free(&t);
	o.block_sectors = 200;
	assert_true(read_text(&t, "x", text, &o));
	assert_int_equal(t.nr_accesses, 3);
	assert_int_equal(t.nr_blocks, 2);
	pc_trace_free(&t);
	o.format = "pages";
	o.block_sectors = 0;
	assert_true(read_text(&t, "x", text, &o));
	assert_int_equal(t.block_sectors, 8);
	assert_int_equal(t.nr_blocks, 3);
	pc_trace_free(&t);
}

/* --- long and compressed ------------------------------------------------------------ */

enum { NR_LINES = 60000 };

/* Lines whose numbers tell where they stand; longer together than any buffer. */
static char *long_text(size_t *len)
{
	char *text = malloc(NR_LINES * 32);
	size_t at = 0;

	assert_non_null(text);
	for (unsigned int i = 0; i < NR_LINES; i++)
		at += sprintf(text + at, "%u %u 0 %u\n", i * 7, i % 9 + 1, i);
	*len = at;
	return text;
}

static void check_long(const struct pc_trace *t)
{
	assert_int_equal(t->nr, NR_LINES);
	for (unsigned int i = 0; i < NR_LINES; i++) {
		assert_int_equal(t->requests[i].sector, i * 7);
		assert_int_equal(t->requests[i].sectors, i % 9 + 1);
	}
}

/* How often progress was told. */
static void count_calls(void *context, u64 done, u64 all)
{
	unsigned int *calls = context;

	assert_true(done <= all);
	++*calls;
}

static void test_plain(void **state)
{
	unsigned int calls = 0;
	struct pc_trace_options o = { .progress = count_calls, .context = &calls };
	struct pc_trace t;
	size_t len, twice;
	char *text = long_text(&len);

	write_file("x.lis", text, len);
	assert_true(pc_trace_read(&t, path, &o, err));
	check_long(&t);
	pc_trace_free(&t);
	/* told every 65536 entries */
	text = realloc(text, 2 * len);
	assert_non_null(text);
	twice = 2 * len;
	memcpy(text + len, text, len);
	write_file("x.lis", text, twice);
	assert_true(pc_trace_read(&t, path, &o, err));
	assert_int_equal(t.nr, 2 * NR_LINES);
	assert_int_equal(calls, 1);
	pc_trace_free(&t);
	unlink(path);
	free(text);
}

static void write_compressed(int (*filter)(struct archive *), const char *name,
			     const char *text, size_t len)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(filter(a), ARCHIVE_OK);
	assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, text, len), len);
	archive_entry_free(e);
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static const struct {
	const char *name;
	int (*filter)(struct archive *a);
} compressors[] = {
	{ "x.lis.gz", archive_write_add_filter_gzip },
	{ "x.lis.xz", archive_write_add_filter_xz },
	{ "x.lis.zst", archive_write_add_filter_zstd },
	{ "x.lis.bz2", archive_write_add_filter_bzip2 },
	{ "x.lis.lz4", archive_write_add_filter_lz4 },
};

static void test_compressed(void **state)
{
	struct pc_trace_options o = { 0 };
	size_t len;
	char *text = long_text(&len);

	for (size_t i = 0; i < ARRAY_SIZE(compressors); i++) {
		struct stat st;
		struct pc_trace t;

		write_compressed(compressors[i].filter, compressors[i].name, text, len);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size < len);
		if (!pc_trace_read(&t, path, &o, err))
			fail_msg("%s: %s", compressors[i].name, err);
		check_long(&t);
		pc_trace_free(&t);

		/* cut in the middle */
		assert_int_equal(truncate(path, st.st_size / 2), 0);
		assert_false(pc_trace_read(&t, path, &o, err));
		assert_non_null(strstr(err, "cannot be decompressed: "));
		pc_trace_free(&t);
		unlink(path);
	}
	free(text);
}

/* A pipe, compressed, as it comes from another program. */
static void test_stdin(void **state)
{
	struct pc_trace_options o = { .format = "lis" };
	int saved = dup(STDIN_FILENO), fds[2];
	static const char text[] = "5 1 0 0\n6 1 0 1\n";
	struct pc_trace t;
	char packed[512];
	ssize_t len;
	int fd;

	write_compressed(archive_write_add_filter_gzip, "x.gz", text, sizeof(text) - 1);
	fd = open(path, O_RDONLY);
	len = read(fd, packed, sizeof(packed));
	assert_true(len > 0);
	close(fd);
	unlink(path);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], packed, len), len);
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	if (!pc_trace_read(&t, "-", &o, err))
		fail_msg("%s", err);
	expect_requests(&t, "r5+1 r6+1");
	pc_trace_free(&t);
	dup2(saved, STDIN_FILENO);
	close(saved);
}

/* Whatever the bytes are: an answer, and a reason where it is no. */
static void test_random_bytes(void **state)
{
	static const char letters[] = "0123456789,,,,\n\n\n    rwRWQ+[]:.-xaf\t\r";
	struct unit_random r;
	const char *text;

	for (u64 round = 0; round < 400; round++) {
		struct pc_trace_options o = { .skip_bad = round & 1, .limit = 50 };
		char data[2000];
		struct pc_trace t;
		size_t len;

		unit_random_init(&r, "bytes", round);
		len = unit_random_below(&r, sizeof(data));
		for (size_t i = 0; i < len; i++)
			data[i] = unit_random_one_in(&r, 50) ? unit_random(&r) :
				  letters[unit_random_below(&r, sizeof(letters) - 1)];
		write_file("x", data, len);
		for (unsigned int i = 0; (o.format = pc_trace_format(i, &text)); i++) {
			bool good = pc_trace_read(&t, path, &o, err);

			assert_int_equal(good, !err[0]);
			pc_trace_free(&t);
		}
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_cloudphysics),
		cmocka_unit_test(test_msr),
		cmocka_unit_test(test_blkparse),
		cmocka_unit_test(test_iolog),
		cmocka_unit_test(test_lis),
		cmocka_unit_test(test_mqsim),
		cmocka_unit_test(test_vscsi),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_skip_bad_and_limit),
		cmocka_unit_test(test_footprint),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_stdin),
		cmocka_unit_test(test_random_bytes),
	};
	int failed;

	strcpy(folder, "/tmp/test-trace-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
