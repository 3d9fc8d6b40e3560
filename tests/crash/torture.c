// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power cuts of a cached device, many in one boot (tests/vm/060-powercut.sh).
 *
 *   torture KEY=VALUE...
 *
 * META, CACHE and ORIGIN are dm devices of simulated disks (tests/simdisk) in one
 * power domain, with volatile write caches. Each round makes the cached device over
 * them, runs a load with messages in between, cuts the power at a random moment,
 * removes the dead device, gives power back, makes the device again and checks:
 *
 *  - every sector is right (record.h): what was acknowledged before an acknowledged
 *    flush is there, nothing older comes back, nothing foreign;
 *  - not more blocks are dirty than before the cut, plus those with intents;
 *  - no time travel: what was read after the recovery is what is read ever after,
 *    also once all is written back and demoted, and from the raw origin then.
 *
 * The parameters of a round come from the seed and its number alone; the order in
 * which threads and the kernel do things does not. Exit status: 0, 1 the data or a
 * count is wrong, 2 the test could not run.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dm.h"
#include "load.h"
#include "record.h"

#define NAME "cut"
#define HANG_SECONDS 90

enum mode { WRITEBACK, WRITETHROUGH, WRITEAROUND, PASSTHROUGH, NR_MODES };
static const char *const mode_names[NR_MODES] = {
	"writeback", "writethrough", "writearound", "passthrough",
};

static struct {
	char meta[64], cache[64], origin[64];
	uint32_t origin_sectors, meta_sectors, cache_sectors;
	unsigned long cuts;
	unsigned long first;		/* number of the first round */
	unsigned long seed;
	unsigned int threads;
	unsigned int min_ms, max_ms;	/* of load in a round */
	int mode;			/* -1: any */
	unsigned int block;		/* sectors; 0: any */
	unsigned int discards;		/* percent */
	unsigned int messages;		/* 0: none */
	unsigned int demote;		/* every so many rounds, by chance */
	unsigned int life;		/* rounds before the metadata is made anew */
	unsigned int hot;		/* KiB of hot area; 0: any */
	unsigned int dsync, flushes;	/* percent */
	unsigned int scribble;		/* percent of writes */
	unsigned int stops;		/* percent of rounds that end without a cut */
	unsigned int commit_ms;		/* 0: any */
	unsigned int slow;		/* percent of rounds with slow disks */
	unsigned int verbose;
} opt = {
	.meta = "pmeta", .cache = "pcache", .origin = "porigin",
	.cuts = 200, .seed = 1, .threads = 6, .min_ms = 10, .max_ms = 150, .mode = -1,
	.discards = 2, .messages = 1, .demote = 6, .life = 20, .dsync = 8, .flushes = 6,
	.slow = 30, .stops = 8,
};

static uint64_t rnd;
static uint32_t len;			/* of the cached device, sectors */
static char *contents, *again;
static struct load_counts counts;
static unsigned int block;		/* of this life */
static enum mode mode;			/* of the table */
static const char *policy;
static char keys[256];			/* the last table's */
static unsigned long round_nr;
static unsigned long total_kept, total_lost, total_dirty, total_demoted, total_clean_stops;

static uint32_t below(uint32_t n)
{
	return load_below(&rnd, n);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Where the time goes */
static double spent_load, spent_cut, spent_verify, spent_demote, last_time;

static void spend(double *on)
{
	double now = seconds();

	*on += now - last_time;
	last_time = now;
}

static void say(const char *format, ...)
{
	va_list args;

	printf("# round %lu: ", round_nr);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static void explain_round(void)
{
	say("seed %lu, table: %s blocks of %u sectors, policy %s, %s", opt.seed,
	    mode_names[mode], block, policy, keys);
	printf("# again: torture seed=%lu first=%lu cuts=%lu\n", opt.seed, opt.first,
	       round_nr - opt.first + 1);
	fflush(stdout);
}

static void die(const char *what, int err)
{
	explain_round();
	say("%s: %s", what, strerror(-err));
	exit(2);
}

static void wrong(const char *what)
{
	explain_round();
	say("WRONG: %s", what);
	exit(1);
}

static void hung(int sig)
{
	static const char text[] = "# the test hangs\n";

	(void)sig;
	if (write(1, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static void sleep_us(unsigned long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static void must(int err, const char *what)
{
	if (err)
		die(what, err);
}

static void sim(const char *name, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	must(dm_message(name, text, NULL, 0), text);
}

/* --- the device ----------------------------------------------------------- */

static long stat_of(const char *key)
{
	char out[8192], *line, *save;
	size_t n = strlen(key);

	must(dm_message(NAME, "stats", out, sizeof(out)), "stats");
	for (line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, key, n) && line[n] == ' ')
			return atol(line + n + 1);
	die(key, -ENOENT);
	return 0;
}

static void pick_keys(void)
{
	static const unsigned int ms[] = { 5, 20, 100, 1000 };
	unsigned int commit = opt.commit_ms ? opt.commit_ms : ms[below(4)];

	snprintf(keys, sizeof(keys),
		 "commit_ms %u writeback_target %u writeback_limit %u bypass_sequential %u fill %u",
		 commit, below(2) ? 0 : 10, below(4) ? 90 : 30, below(2) ? 0 : 2048,
		 below(2) ? 0 : 8u << below(6));
}

static void table_of(char *out, size_t size, enum mode m)
{
	snprintf(out, size, "/dev/mapper/%s /dev/mapper/%s /dev/mapper/%s %u 1 %s %s 10 %s",
		 opt.meta, opt.cache, opt.origin, block, mode_names[m], policy, keys);
}

static int create(enum mode m)
{
	char params[512];

	table_of(params, sizeof(params), m);
	mode = m;
	return dm_create(NAME, len, "polycache", params);
}

static enum mode any_mode(void)
{
	unsigned int n = below(100);

	if (opt.mode >= 0)
		return opt.mode;
	return n < 50 ? WRITEBACK : n < 75 ? WRITETHROUGH : n < 88 ? WRITEAROUND : PASSTHROUGH;
}

/* Passthrough is refused while anything is dirty: then writethrough. */
static void start(void)
{
	enum mode m = any_mode();
	int err;

	policy = below(8) ? "lru" : "cleaner";
	pick_keys();
	err = create(m);
	if (opt.verbose)
		say("starts in %s: %d", mode_names[m], err);
	if (err == -EINVAL && m == PASSTHROUGH)
		err = create(WRITETHROUGH);
	if (err) {
		say("%s", strerror(-err));
		wrong("the device does not start");
	}
}

static void message(const char *format, ...)
{
	char text[128];
	va_list args;
	int err;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	err = dm_message(NAME, text, NULL, 0);
	if (opt.verbose)
		say("message %s: %d", text, err);
}

/* What an administrator may do while there is I/O. */
static void some_message(void)
{
	char params[512];
	uint32_t n;

	switch (below(8)) {
	case 0:
	case 1:
		message("mode %s", mode_names[below(3)]);
		break;
	case 2:
		message("policy %s", below(4) ? "lru" : "cleaner");
		break;
	case 3:
		message("flush");
		break;
	case 4:
		n = opt.cache_sectors / block;
		message("invalidate_cblocks %u-%u", n / 4, n / 2);
		break;
	case 5:
		message("writeback_target %u", below(2) ? 0 : 100);
		break;
	case 6:
		table_of(params, sizeof(params), below(2));
		must(dm_reload(NAME, len, "polycache", params), "reload");
		if (opt.verbose)
			say("reload %s", params);
		break;
	default:
		must(dm_suspend(NAME), "suspend");
		must(dm_resume(NAME), "resume");
		if (opt.verbose)
			say("suspended and resumed");
		break;
	}
}

/* --- the steps of a round --------------------------------------------------- */

static void read_all(const char *node, char *buf)
{
	int err = load_read_all(node, len, buf);

	if (err)
		say("%s: %s", node, strerror(-err));
	if (err)
		wrong("it cannot be read");
}

static void compare(const char *when)
{
	uint32_t i, n = 0;

	for (i = 0; i < len; i++) {
		const char *a = contents + (size_t)i * SECTOR, *b = again + (size_t)i * SECTOR;

		if (!memcmp(a, b, SECTOR))
			continue;
		if (n++ < 8)
			say("sector %u: %016llx %016llx before, %016llx %016llx %s", i,
			    ((unsigned long long *)a)[0], ((unsigned long long *)a)[1],
			    ((unsigned long long *)b)[0], ((unsigned long long *)b)[1], when);
	}
	if (n) {
		say("%u sectors differ", n);
		wrong("time travel");
	}
}

/* For the reader of a failure: where what is wrong came from. */
static void read_origin(char *buf)
{
	char raw[80];

	snprintf(raw, sizeof(raw), "/dev/mapper/%s", opt.origin);
	read_all(raw, buf);
}

static void verify(void)
{
	uint32_t kept, lost;
	char node[64];
	int bad;

	dm_node(NAME, node, sizeof(node));
	read_all(node, contents);
	bad = record_check(0, len, contents, "after the recovery");
	if (bad) {
		say("%d sectors are wrong", bad);
		read_origin(again);
		record_explain_origin(again);
		wrong("data after a power cut");
	}
	if (opt.verbose) {
		read_origin(again);
		record_note_origin(again);
	}
	record_counts(&kept, &lost);
	total_kept += kept;
	total_lost += lost;
	record_pin(contents);
}

static void wait_clean(void)
{
	double end = seconds() + 30;

	message("flush");
	while (stat_of("blocks_dirty")) {
		if (seconds() > end)
			wrong("blocks stay dirty for 30 s after `flush`");
		sleep_us(5000);
	}
}

/* Written back, demoted: the same data, from the device and from the raw origin. */
static void demote_all(void)
{
	char node[64];
	double end = seconds() + 30;

	dm_node(NAME, node, sizeof(node));
	if (below(2)) {
		read_all(node, again);
		compare("read again");
	}
	wait_clean();
	must(dm_remove(NAME), "remove");
	must(create(PASSTHROUGH), "passthrough of a clean cache");
	while (stat_of("blocks_resident")) {
		message("invalidate_cblocks 0-%u", opt.cache_sectors / block);
		if (seconds() > end)
			wrong("blocks stay for 30 s after invalidate_cblocks");
	}
	read_all(node, again);
	compare("demoted");
	must(dm_remove(NAME), "remove");
	read_origin(again);
	compare("on the raw origin");
	total_demoted++;
	start();
}

static void run_load(void)
{
	uint32_t hot = opt.hot ? opt.hot * 2 : 1024u << below(5);
	struct load_mix mix = {
		.reads = 20 + below(40),
		.flushes = below(3) ? opt.flushes : 0,
		.discards = below(2) ? opt.discards : 0,
		.dsync = below(3) ? opt.dsync : 0,
		.scribble = opt.scribble,
		.hot_sectors = hot < len ? hot : len,
		.max_sectors = below(3) ? MAX_IO_SECTORS : 64,
		.aligned = !below(3),
	};
	double end = seconds() + (opt.min_ms + below(opt.max_ms - opt.min_ms + 1)) / 1e3;
	char node[64];

	mix.hot_start = below(len - mix.hot_sectors + 1) & ~7u;
	dm_node(NAME, node, sizeof(node));
	must(load_start(node, len, &mix, 1 + below(opt.threads), rnd, &counts), "load");
	while (seconds() < end) {
		sleep_us(1000 * (1 + below(30)));
		if (opt.messages && !below(4))
			some_message();
	}
}

static void cut(void)
{
	long dirty, intents, cap;

	sim(opt.origin, "cut %lu", opt.seed * 1000003 + round_nr);
	load_stop(true);
	dirty = stat_of("blocks_dirty");
	intents = stat_of("intents");
	cap = stat_of("intents_max");
	must(dm_remove(NAME), "remove of a dead device");
	sim(opt.origin, "revive");
	record_cut();
	start();
	total_dirty += stat_of("blocks_dirty");
	if (stat_of("blocks_dirty") > dirty + intents) {
		say("%ld dirty, before the cut %ld and %ld intents", stat_of("blocks_dirty"),
		    dirty, intents);
		wrong("too many dirty blocks");
	}
	if (intents > cap) {
		say("%ld intents, at most %ld", intents, cap);
		wrong("too many intents");
	}
}

/*
 * No power cut: a clean stop loses nothing, flushed or not, and keeps each block and
 * what is dirty. Writeback, which begins again at once, is held up while that is seen;
 * what the pool of free blocks takes, which begins as well, is counted.
 */
static void clean_stop(void)
{
	long dirty, resident, demoted, now_dirty, now_resident;
	int err = load_stop(false);

	if (err)
		die("I/O", err);
	/* the background may go on until the device is suspended */
	must(dm_suspend(NAME), "suspend");
	dirty = stat_of("blocks_dirty");
	resident = stat_of("blocks_resident");
	must(dm_remove(NAME), "remove");
	record_stop();
	sim(opt.origin, "hold write");
	start();
	now_dirty = stat_of("blocks_dirty");
	do {
		demoted = stat_of("demotions");
		now_resident = stat_of("blocks_resident") + demoted;
	} while (stat_of("demotions") != demoted);
	sim(opt.origin, "release");
	if (now_dirty != dirty || now_resident != resident) {
		say("before: %ld dirty, %ld resident, then: %ld, %ld with %ld demoted", dirty,
		    resident, now_dirty, now_resident, demoted);
		wrong("other blocks after a clean stop");
	}
	total_dirty += dirty;
	total_clean_stops++;
}

static void set_disks(void)
{
	const char *const names[] = { opt.meta, opt.cache, opt.origin };
	bool slow = below(100) < opt.slow;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		sim(names[i], "set move %s", slow || !below(4) ? "random" : "early");
		sim(names[i], "set read_us %u", slow ? 50 + below(500) : 0);
		sim(names[i], "set write_us %u", slow ? 50 + below(2000) : 0);
		sim(names[i], "set flush_us %u", slow ? below(4000) : 0);
	}
}

/* All zero: the next start formats. */
static void wipe_metadata(void)
{
	char path[80], *zero = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "/dev/mapper/%s", opt.meta);
	f = fopen(path, "r+");
	if (!zero || !f || fwrite(zero, 4096, 1, f) != 1 || fflush(f) || fsync(fileno(f)))
		die("wiping the metadata", -EIO);
	fclose(f);
	free(zero);
}

/* Another block size and new metadata, over an origin that has all the data. */
static void new_life(bool first)
{
	static const unsigned int blocks[] = { 64, 128, 256, 768, 64, 192 };

	if (!first) {
		wait_clean();
		must(dm_remove(NAME), "remove");
	}
	wipe_metadata();
	block = opt.block ? opt.block : blocks[below(6)];
	start();
}

static void one_round(void)
{
	alarm(HANG_SECONDS);
	rnd = (opt.seed * 1000003 + round_nr) * 0x9e3779b97f4a7c15ull | 1;
	load_random(&rnd);
	if (round_nr == opt.first || !(round_nr % opt.life))
		new_life(round_nr == opt.first);
	last_time = seconds();
	set_disks();
	run_load();
	spend(&spent_load);
	if (below(100) < opt.stops)
		clean_stop();
	else
		cut();
	spend(&spent_cut);
	if (atomic_load(&counts.bad))
		wrong("data read while running");
	if (opt.verbose)
		say("%s, blocks of %u, %s, %s", mode_names[mode], block, policy, keys);
	/* sometimes the power fails again before anybody looks */
	if (!below(8))
		return;
	verify();
	spend(&spent_verify);
	if (opt.demote && !below(opt.demote))
		demote_all();
	spend(&spent_demote);
}

/* --- start -------------------------------------------------------------------- */

static uint32_t sectors_of(const char *name)
{
	char path[80];
	FILE *f;
	long n;

	snprintf(path, sizeof(path), "/dev/mapper/%s", name);
	f = fopen(path, "r");
	if (!f || fseek(f, 0, SEEK_END))
		die(path, -errno);
	n = ftell(f) / SECTOR;
	fclose(f);
	return n;
}

static void set_option(const char *key, const char *value)
{
	const struct {
		const char *key;
		unsigned int *value;
	} numbers[] = {
		{ "threads", &opt.threads }, { "min_ms", &opt.min_ms },
		{ "max_ms", &opt.max_ms }, { "block", &opt.block },
		{ "discards", &opt.discards }, { "messages", &opt.messages },
		{ "demote", &opt.demote }, { "life", &opt.life }, { "hot", &opt.hot },
		{ "dsync", &opt.dsync }, { "flushes", &opt.flushes },
		{ "commit_ms", &opt.commit_ms }, { "slow", &opt.slow },
		{ "scribble", &opt.scribble }, { "stops", &opt.stops }, { "verbose", &opt.verbose },
	};
	unsigned int i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!strcmp(key, numbers[i].key)) {
			*numbers[i].value = strtoul(value, NULL, 10);
			return;
		}
	}
	for (i = 0; i < NR_MODES; i++)
		if (!strcmp(key, "mode") && !strcmp(value, mode_names[i]))
			opt.mode = i;
	if (!strcmp(key, "mode"))
		return;
	if (!strcmp(key, "cuts"))
		opt.cuts = strtoul(value, NULL, 10);
	else if (!strcmp(key, "first"))
		opt.first = strtoul(value, NULL, 10);
	else if (!strcmp(key, "seed"))
		opt.seed = strtoul(value, NULL, 10);
	else if (!strcmp(key, "meta"))
		snprintf(opt.meta, sizeof(opt.meta), "%s", value);
	else if (!strcmp(key, "cache"))
		snprintf(opt.cache, sizeof(opt.cache), "%s", value);
	else if (!strcmp(key, "origin"))
		snprintf(opt.origin, sizeof(opt.origin), "%s", value);
	else
		die(key, -EINVAL);
}

static void options(int argc, char **argv)
{
	char key[32], value[64];
	int i;

	for (i = 1; i < argc; i++) {
		if (sscanf(argv[i], "%31[^=]=%63s", key, value) != 2)
			die(argv[i], -EINVAL);
		set_option(key, value);
	}
	if (!opt.life || !opt.threads || opt.max_ms < opt.min_ms)
		die("options", -EINVAL);
}

int main(int argc, char **argv)
{
	char path[80];
	double began;

	policy = "lru";
	options(argc, argv);
	signal(SIGALRM, hung);
	must(dm_open(), "/dev/mapper/control");
	opt.origin_sectors = sectors_of(opt.origin);
	opt.cache_sectors = sectors_of(opt.cache);
	/* the last sub-block is one that the origin has in part only */
	len = opt.origin_sectors - 5;
	contents = aligned_alloc(4096, (size_t)opt.origin_sectors * SECTOR);
	again = aligned_alloc(4096, (size_t)opt.origin_sectors * SECTOR);
	if (!contents || !again || record_init(len))
		die("memory", -ENOMEM);
	/* an earlier run may have ended with the power off */
	sim(opt.origin, "revive");
	snprintf(path, sizeof(path), "/dev/mapper/%s", opt.origin);
	must(load_zero(path, opt.origin_sectors), path);
	began = seconds();
	for (round_nr = opt.first; round_nr < opt.first + opt.cuts; round_nr++)
		one_round();
	round_nr = opt.first + opt.cuts - 1;
	verify();
	demote_all();
	alarm(0);
	must(dm_remove(NAME), "remove");
	printf("cuts %lu seconds %.1f ms_per_cut %.0f writes %lu reads %lu flushes %lu discards %lu\n",
	       opt.cuts - total_clean_stops, seconds() - began,
	       (seconds() - began) * 1e3 / opt.cuts, atomic_load(&counts.writes),
	       atomic_load(&counts.reads), atomic_load(&counts.flushes),
	       atomic_load(&counts.discards));
	printf("seconds of load %.1f, cut and restart %.1f, verify %.1f, demote %.1f\n",
	       spent_load, spent_cut, spent_verify, spent_demote);
	printf("kept %lu lost %lu dirty_after %lu demoted %lu clean_stops %lu\n", total_kept,
	       total_lost, total_dirty, total_demoted, total_clean_stops);
	record_free();
	return 0;
}
