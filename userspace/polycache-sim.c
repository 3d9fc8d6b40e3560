// SPDX-License-Identifier: GPL-2.0-only
/*
 * polycache sim: policies x cache sizes over a trace. The trace is read once into
 * memory, then each pair is a run of the model (sim.c) over it. Here is what was asked
 * for and in which order it is done; polycache-sim-print.c and -plot.c show the results.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/kernel.h>
#include <linux/math64.h>

#include "polycache.h"
#include "polycache-sim.h"
#include "sim-auto.h"

#define DEFAULT_SIZES "1%,2%,5%,10%,20%,40%"
#define MAX_BLOCK_SECTORS 2097152u
/* how many requests are run between two looks at the clock */
#define SLICE 262144u
/* percents are kept with four digits behind the point */
#define PERCENT_UNIT 10000ull

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- progress, on a terminal only --------------------------------------------------- */

#define BAR 30

static struct {
	bool is_terminal;
	bool drawn;
	double last;
} bar;

static void draw_bar(const char *what, u64 done, u64 all)
{
	double share = all ? (double)done / all : 0, t = now();
	int filled;

	if (!bar.is_terminal || t - bar.last < 0.1)
		return;
	bar.last = t;
	bar.drawn = true;
	filled = share < 1 ? share * BAR : BAR;
	if (all)
		fprintf(stderr, "\r%-28.28s [%.*s%*s] %3.0f %%\033[K", what, filled,
			"##############################", BAR - filled, "", 100 * share);
	else
		fprintf(stderr, "\r%-28.28s %llu MiB\033[K", what, done >> 20);
	fflush(stderr);
}

static void clear_bar(void)
{
	if (bar.drawn)
		fprintf(stderr, "\r\033[K");
	bar.drawn = false;
}

static void show_reading(void *context, u64 done, u64 all)
{
	draw_bar("reading the trace", done, all);
}

/* --- what is asked for -------------------------------------------------------------- */

/* "64K" as bytes. */
static bool parse_size(const char *word, u64 *bytes)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(word, "0123456789");
	const char *unit = word + digits;
	unsigned int shift = 0;
	u64 n;

	if (!digits || digits > 19)
		return false;
	n = strtoull(word, NULL, 10);
	if (*unit) {
		char upper = *unit & ~0x20;

		if (!strchr(units, upper) || unit[1])
			return false;
		shift = 10 * (strchr(units, upper) - units + 1);
	}
	*bytes = n << shift;
	return *bytes >> shift == n;
}

/* "12.5%" in ten-thousandths of a percent. */
static bool parse_percent(const char *word, u64 *percent)
{
	size_t len = strlen(word), whole = strspn(word, "0123456789");
	u64 n, digit = PERCENT_UNIT;

	if (len < 2 || word[len - 1] != '%' || !whole || whole > 9)
		return false;
	n = strtoull(word, NULL, 10) * PERCENT_UNIT;
	if (word[whole] == '.')
		for (whole++; word[whole] >= '0' && word[whole] <= '9'; whole++) {
			digit /= 10;
			n += (word[whole] - '0') * digit;
		}
	*percent = n;
	return whole == len - 1 && n;
}

/* Blocks of a size, at least one. False: the error is out. */
static bool to_cblocks(const struct pc_trace *t, const char *word, u32 *out)
{
	u64 n;

	if (parse_percent(word, &n)) {
		n = mul_u64_u64_div_u64(t->nr_blocks, n, 100 * PERCENT_UNIT);
	} else if (parse_size(word, &n)) {
		n = (n >> 9) / t->block_sectors;
		if (!n) {
			pc_fail_usage("--size '%s': is less than a block of %u bytes", word,
				      t->block_sectors << 9);
			return false;
		}
	} else {
		pc_fail_usage("--size '%s': must be bytes as in 512M (K, M, G, T) or a share of the trace's blocks as in 10%%",
			      word);
		return false;
	}
	n = max(n, 1ull);
	if (n > 1u << 30) {
		pc_fail_usage("--size '%s': is %llu blocks, must be at most 2^30", word, n);
		return false;
	}
	*out = n;
	return true;
}

/* The words of a list with commas, which is cut up. False: the error is out. */
static bool take_sizes(struct pc_sim_report *r, char *list)
{
	char *word;

	while ((word = strsep(&list, ","))) {
		struct pc_sim_size *s = &r->sizes[r->nr_sizes];

		if (r->nr_sizes == PC_SIM_MAX_SIZES) {
			pc_fail_usage("--size: must be at most %d sizes", PC_SIM_MAX_SIZES);
			return false;
		}
		s->text = word;
		if (!to_cblocks(&r->trace, word, &s->nr_cblocks))
			return false;
		r->nr_sizes++;
	}
	return true;
}

static bool fail_policy(const char *name)
{
	char known[PC_SIM_MAX_POLICIES * (PC_POLICY_NAME_SIZE + 2)] = "";
	struct pc_policy_type *t = NULL;

	while ((t = pc_policy_next(t)))
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 *known ? ", " : "", t->name);
	snprintf(known + strlen(known), sizeof(known) - strlen(known), ", %s", pc_sim_auto.name);
	pc_fail_usage("unknown policy '%s': must be one of %s", name, known);
	return false;
}

static bool add_policy(struct pc_sim_report *r, const char *word)
{
	struct pc_sim_policy *p = &r->policies[r->nr_policies];
	char *tunables;

	if (r->nr_policies == PC_SIM_MAX_POLICIES) {
		pc_fail_usage("--policy: must be at most %d policies", PC_SIM_MAX_POLICIES);
		return false;
	}
	p->label = strdup(word);
	p->tunables = strdup(word);
	r->nr_policies++;
	if (!p->label || !p->tunables) {
		pc_fail("out of memory");
		return false;
	}
	tunables = strchr(p->tunables, ':');
	if (tunables)
		*tunables++ = 0;
	p->type = strcmp(p->tunables, pc_sim_auto.name) ? pc_policy_find(p->tunables) :
							  &pc_sim_auto;
	if (!p->type)
		return fail_policy(p->tunables);
	memmove(p->tunables, tunables ? : "", tunables ? strlen(tunables) + 1 : 1);
	return true;
}

static bool take_policies(struct pc_sim_report *r, const char *given)
{
	struct pc_policy_type *t = NULL;
	char *list = given ? strdup(given) : NULL, *rest = list, *word;
	bool good = !given || list;

	while (list && good && (word = strsep(&rest, ",")))
		good = add_policy(r, word);
	while (!given && good && (t = pc_policy_next(t)))
		if (!(t->flags & PC_POLICY_CLEANER))
			good = add_policy(r, t->name);
	if (!given && good)
		good = add_policy(r, pc_sim_auto.name);
	free(list);
	return good;
}

static bool take_mode(struct pc_sim_report *r, const char *word)
{
	for (enum pc_mode m = PC_MODE_WRITEBACK; m <= PC_MODE_WRITEAROUND; m++)
		if (!word || !strcmp(word, pc_args_mode_name(m))) {
			r->config.mode = m;
			return true;
		}
	pc_fail_usage("--mode '%s': must be writeback, writethrough or writearound", word);
	return false;
}

/* A size in whole sectors from 1 to max. False: the error is out. */
static bool take_sectors(const char *option, const char *word, u32 max, u32 *out)
{
	char most[PC_SIZE_TEXT];
	u64 bytes;

	if (!word)
		return true;
	if (!parse_size(word, &bytes) || bytes % 512 || !bytes || bytes >> 9 > max) {
		pc_fail_usage("%s '%s': must be a multiple of 512 bytes up to %s, as in 64K",
			      option, word, pc_size_text((u64)max << 9, most));
		return false;
	}
	*out = bytes >> 9;
	return true;
}

static bool take_trace_options(const struct pc_call *call, struct pc_trace_options *o)
{
	char known[256] = "";
	const char *name, *text;
	bool found = false;
	uint64_t limit = 0;

	o->format = call->values['f'];
	o->columns = call->values['c'];
	o->action = call->values['a'];
	o->skip_bad = pc_given(call, 'k');
	o->progress = show_reading;
	if (o->format && !strcmp(o->format, "auto"))
		o->format = NULL;
	if (o->columns && !o->format)
		o->format = "csv";
	for (unsigned int i = 0; (name = pc_trace_format(i, &text)); i++) {
		found |= !o->format || !strcmp(name, o->format);
		snprintf(known + strlen(known), sizeof(known) - strlen(known), ", %s", name);
	}
	if (!found) {
		pc_fail_usage("--format '%s': must be auto%s", o->format, known);
		return false;
	}
	if (!pc_option_number(call, 'l', 1, U64_MAX, &limit))
		return false;
	o->limit = limit;
	return take_sectors("--block-size", call->values['b'], MAX_BLOCK_SECTORS,
			    &o->block_sectors);
}

/* --- runs --------------------------------------------------------------------------- */

/* "key=value:key=value". False: the error is out. */
static bool set_tunables(struct pc_sim *sim, const struct pc_sim_policy *p)
{
	char *list = strdup(p->tunables), *rest = list, *word;
	bool good = list;

	while (good && *p->tunables && (word = strsep(&rest, ":"))) {
		char *value = strchr(word, '=');
		const char *why;
		int err;

		if (!value) {
			pc_fail_usage("policy '%s': '%s' must be KEY=VALUE", p->label, word);
			good = false;
			break;
		}
		*value++ = 0;
		err = pc_sim_set(sim, word, value, &why);
		good = !err;
		if (err == -ERANGE)
			pc_fail_usage("policy '%s': %s '%s': must be %s", p->label, word, value,
				      why ? : "another value");
		else if (err)
			pc_fail_usage("policy '%s': it has no tunable '%s'", p->label, word);
	}
	free(list);
	return good;
}

static void run_slices(struct pc_sim *sim, const struct pc_sim_report *r, const char *what,
		       u64 before, u64 all)
{
	for (size_t at = 0; at < r->trace.nr; at += SLICE) {
		pc_sim_run(sim, r->trace.requests + at, min_t(size_t, SLICE, r->trace.nr - at));
		draw_bar(what, before + at, all);
	}
}

/* False: the error is out, *status says which. */
static bool run_one(struct pc_sim_report *r, unsigned int size, unsigned int policy, int *status)
{
	const struct pc_sim_policy *p = &r->policies[policy];
	struct pc_sim_run *run = &r->runs[size][policy];
	struct pc_sim_config config = r->config;
	unsigned int nr = size * r->nr_policies + policy;
	struct pc_sim *sim;
	char what[80];
	double begin;

	config.type = p->type;
	config.nr_cblocks = r->sizes[size].nr_cblocks;
	sim = pc_sim_create(&config);
	if (!sim) {
		*status = pc_fail("policy %s with %u blocks: out of memory, or the policy refuses this size",
				  p->label, config.nr_cblocks);
		return false;
	}
	if (!set_tunables(sim, p)) {
		*status = PC_EXIT_USAGE;
		pc_sim_destroy(sim);
		return false;
	}
	snprintf(what, sizeof(what), "%s, %s", p->label, r->sizes[size].text);
	begin = now();
	run_slices(sim, r, what, (u64)nr * r->trace.nr,
		   (u64)r->nr_sizes * r->nr_policies * r->trace.nr);
	run->seconds = now() - begin;
	run->counts = pc_sim_result(sim);
	run->policy_memory = pc_sim_policy_memory(sim);
	pc_sim_tunables(sim, run->tunables);
	pc_sim_destroy(sim);
	return true;
}

static bool run_all(struct pc_sim_report *r, int *status)
{
	for (unsigned int s = 0; s < r->nr_sizes; s++)
		for (unsigned int p = 0; p < r->nr_policies; p++)
			if (!run_one(r, s, p, status))
				return false;
	clear_bar();
	return true;
}

/* --- the command -------------------------------------------------------------------- */

static int read_trace(struct pc_sim_report *r, const struct pc_trace_options *o)
{
	char err[PC_TRACE_ERR_SIZE];
	double begin = now();
	bool good = pc_trace_read(&r->trace, r->path, o, err);

	clear_bar();
	r->read_seconds = now() - begin;
	if (!good)
		return pc_fail("%s", err);
	r->config.block_sectors = r->trace.block_sectors;
	r->config.origin_sectors = r->trace.origin_sectors;
	r->config.has_time = r->trace.has_time;
	return PC_EXIT_OK;
}

static int simulate(const struct pc_call *call, struct pc_sim_report *r, char *sizes)
{
	struct pc_trace_options o = { 0 };
	const char *svg = call->values['g'];
	int status;

	/* all that can be refused is refused before the long part */
	if (!take_trace_options(call, &o) || !take_mode(r, call->values['m']) ||
	    !take_sectors("--bypass-sequential", call->values['q'], U32_MAX,
			  &r->config.bypass_sequential) ||
	    !take_policies(r, call->values['p']))
		return PC_EXIT_USAGE;
	if (svg && !pc_sim_can_plot())
		return PC_EXIT_FAILED;
	r->config.pool = pc_given(call, 'P');
	status = read_trace(r, &o);
	if (status)
		return status;
	if (!take_sizes(r, sizes))
		return PC_EXIT_USAGE;
	if (!run_all(r, &status))
		return status;
	if (pc_given(call, 'j'))
		pc_sim_print_json(r);
	else
		pc_sim_print_text(r, pc_given(call, 'v'));
	return svg && !pc_sim_plot(r, svg) ? PC_EXIT_FAILED : PC_EXIT_OK;
}

static int run(const struct pc_call *call)
{
	struct pc_sim_report *r = calloc(1, sizeof(*r));
	char *sizes = strdup(call->values['s'] ? : DEFAULT_SIZES);
	int status;

	if (!r || !sizes) {
		free(r);
		free(sizes);
		return pc_fail("out of memory");
	}
	bar.is_terminal = isatty(STDERR_FILENO);
	r->path = call->words[0];
	status = simulate(call, r, sizes);
	for (unsigned int i = 0; i < r->nr_policies; i++) {
		free(r->policies[i].label);
		free(r->policies[i].tunables);
	}
	pc_trace_free(&r->trace);
	free(sizes);
	free(r);
	return status;
}

static const struct pc_option options[] = {
	{ 'p', "policy", "LIST", "NAME[:KEY=VALUE]...[,NAME...] (default: all but cleaner)" },
	{ 's', "size", "LIST", "bytes as in 512M, or N% of the trace's blocks (default: "
	  DEFAULT_SIZES ")" },
	{ 'b', "block-size", "SIZE", "of the cache (default: 64K; format pages: 4K)" },
	{ 'm', "mode", "MODE", "writeback (default), writethrough or writearound" },
	{ 'q', "bypass-sequential", "SIZE", "longer streams bypass (default: never; kernel: 4M)" },
	{ 'P', "pool", NULL, "keep blocks free as the kernel does (default: evict on demand)" },
	{ 'f', "format", "FORMAT", "of the trace (default: auto, by name and first line)" },
	{ 'c', "columns", "LIST", "of a CSV: time[:UNIT], op, offset or sector, size or sectors, device, -" },
	{ 'a', "blkparse-action", "LETTER", "events to take (default: Q)" },
	{ 'k', "skip-bad", NULL, "count lines that make no sense and go on" },
	{ 'l', "limit", "N", "end after so many requests" },
	{ 'g', "svg", "FILE", "draw the hit ratio over the cache size, by gnuplot" },
	{ 'j', "json", NULL, "print all as JSON" },
	{ 'v', "verbose", NULL, "print speed, memory and tunables as well" },
	{ 0 },
};

const struct pc_command pc_command_sim = {
	.name = "sim",
	.args = "TRACE",
	.summary = "Try policies and cache sizes on a block trace",
	.text = "TRACE is a file, compressed or not (gzip, xz, zstd, bzip2, lz4), or - for the standard\n"
		"input. Policies and block table are the kernel's own. Formats: cloudphysics, msr,\n"
		"blkparse, iolog, vscsi, pages, lis, mqsim, csv.\n"
		"\n"
		"A request is cut at the bounds of blocks; each part is an access, and a hit if its\n"
		"block is in the cache. On a miss the policy is asked; a block that it admits is in the\n"
		"cache at once. A read fetches what its block lacks, the whole of it. A write takes the\n"
		"sub-blocks that it covers; one that it covers in part and that is not valid goes to the\n"
		"origin and is fetched. In writeback a dirty block is written to the origin when it is\n"
		"demoted, what is still dirty at the end is told apart. A victim is demoted when a block\n"
		"is needed; with --pool free blocks are kept, 1/64 of the cache, up to 16384. Not in the\n"
		"model: time, queues, background writeback, metadata (docs/sim.md).\n",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.run = run,
};
