// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results of polycache sim as tables, one for each cache size, or as JSON. Names in the
 * JSON are stable and documented in docs/sim.md.
 */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "polycache.h"
#include "polycache-sim.h"

static double ratio(u64 part, u64 all)
{
	return all ? (double)part / all : 0;
}

/* --- text --------------------------------------------------------------------------- */

static void print_trace(const struct pc_sim_report *r, bool verbose)
{
	const struct pc_trace *t = &r->trace;
	char block[PC_SIZE_TEXT], foot[PC_SIZE_TEXT];

	printf("%s: %s, %zu requests (%zu reads, %zu writes)", r->path, t->format, t->nr,
	       t->nr - t->nr_writes, t->nr_writes);
	if (t->has_time)
		printf(" in %u s", t->requests[t->nr - 1].seconds);
	printf("\n%llu accesses to %llu distinct blocks of %s, %s; mode %s%s\n", t->nr_accesses,
	       t->nr_blocks, pc_size_text((u64)t->block_sectors << 9, block),
	       pc_size_text((t->nr_blocks * t->block_sectors) << 9, foot),
	       pc_args_mode_name(r->config.mode), r->config.pool ? ", with a pool" : "");
	if (t->nr_spaces > 1)
		printf("%u devices or files, each an address space of its own\n", t->nr_spaces);
	if (t->nr_bad)
		printf("bad lines skipped: %llu\n", t->nr_bad);
	if (verbose && t->nr_ignored)
		printf("entries that ask for no reading or writing: %llu\n", t->nr_ignored);
	if (verbose)
		printf("read in %.2f s\n", r->read_seconds);
}

/* "12.34", or "-" where there is nothing to divide */
static const char *percent(u64 part, u64 all, char buf[16])
{
	snprintf(buf, 16, all ? "%.2f" : "-", 100 * ratio(part, all));
	return buf;
}

static double mib(u64 sectors)
{
	return sectors / 2048.0;
}

/* Columns that the names of the policies take. */
static int label_width(const struct pc_sim_report *r)
{
	size_t width = 12;

	for (unsigned int p = 0; p < r->nr_policies; p++)
		width = strlen(r->policies[p].label) > width ? strlen(r->policies[p].label) : width;
	return width;
}

static void print_run(const struct pc_sim_policy *p, const struct pc_sim_counts *c, int width)
{
	char reads[16], writes[16], total[16];
	u64 hits = pc_sim_hits(c), misses = pc_sim_misses(c);

	printf("%-*s %10llu %7s %7s %7s %10llu %10llu %10llu %10llu %10.1f %10.1f %10.1f %9.1f\n",
	       width, p->label, hits + misses,
	       percent(c->hits[PC_READ], c->hits[PC_READ] + c->misses[PC_READ], reads),
	       percent(c->hits[PC_WRITE], c->hits[PC_WRITE] + c->misses[PC_WRITE], writes),
	       percent(hits, hits + misses, total), misses, c->misses[PC_READ], c->promotions,
	       c->demotions, mib(c->origin_reads), mib(c->origin_writes), mib(c->cache_writes),
	       mib(c->dirty));
}

static void print_details(const struct pc_sim_run *run)
{
	const struct pc_sim_counts *c = &run->counts;

	printf("    %.2f million requests/s, policy memory %zu bytes, %llu partial read hits, %llu sequential requests, %llu blocks invalidated, %llu times none free%s%s\n",
	       run->seconds ? c->requests / run->seconds / 1e6 : 0, run->policy_memory,
	       c->partial_hits, c->sequential, c->invalidations, c->no_free,
	       run->tunables[0] ? "; " : "", run->tunables);
}

void pc_sim_print_text(const struct pc_sim_report *r, bool verbose)
{
	char size[PC_SIZE_TEXT];
	int width = label_width(r);

	print_trace(r, verbose);
	for (unsigned int s = 0; s < r->nr_sizes; s++) {
		u32 nr = r->sizes[s].nr_cblocks;

		printf("\ncache of %s: %u blocks, %s\n", r->sizes[s].text, nr,
		       pc_size_text(((u64)nr * r->trace.block_sectors) << 9, size));
		printf("%-*s %10s %7s %7s %7s %10s %10s %10s %10s %10s %10s %10s %9s\n", width, "", "",
		       "read", "write", "all", "", "read", "promo-", "demo-", "origin", "origin",
		       "cache", "dirty at");
		printf("%-*s %10s %7s %7s %7s %10s %10s %10s %10s %10s %10s %10s %9s\n", width, "policy",
		       "accesses", "hits %", "hits %", "hits %", "misses", "misses", "tions",
		       "tions", "reads MiB", "writes MiB", "writes MiB", "end MiB");
		for (unsigned int p = 0; p < r->nr_policies; p++) {
			print_run(&r->policies[p], &r->runs[s][p].counts, width);
			if (verbose)
				print_details(&r->runs[s][p]);
		}
	}
}

/* --- JSON --------------------------------------------------------------------------- */

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	add(o, key, json_object_new_string(text));
}

static void add_number(struct json_object *o, const char *key, u64 n)
{
	add(o, key, json_object_new_uint64(n));
}

static void add_real(struct json_object *o, const char *key, double value, const char *format)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	add(o, key, json_object_new_double_s(value, text));
}

static void add_ratio(struct json_object *o, const char *key, u64 hits, u64 misses)
{
	if (hits + misses)
		add_real(o, key, ratio(hits, hits + misses), "%.6f");
	else
		add(o, key, NULL);
}

static struct json_object *trace_to_json(const struct pc_sim_report *r)
{
	struct json_object *o = json_object_new_object();
	const struct pc_trace *t = &r->trace;

	add_text(o, "path", r->path);
	add_text(o, "format", t->format);
	add_number(o, "requests", t->nr);
	add_number(o, "reads", t->nr - t->nr_writes);
	add_number(o, "writes", t->nr_writes);
	add_number(o, "ignored", t->nr_ignored);
	add_number(o, "bad", t->nr_bad);
	add_number(o, "address_spaces", t->nr_spaces);
	add_number(o, "accesses", t->nr_accesses);
	add_number(o, "distinct_blocks", t->nr_blocks);
	add_number(o, "block_sectors", t->block_sectors);
	add_number(o, "origin_sectors", t->origin_sectors);
	if (t->has_time)
		add_number(o, "seconds", t->requests[t->nr - 1].seconds);
	else
		add(o, "seconds", NULL);
	add_real(o, "read_in_seconds", r->read_seconds, "%.3f");
	return o;
}

static void add_counts(struct json_object *o, const struct pc_sim_counts *c)
{
	u64 hits = pc_sim_hits(c), misses = pc_sim_misses(c);

	add_number(o, "accesses", hits + misses);
	add_number(o, "read_hits", c->hits[PC_READ]);
	add_number(o, "write_hits", c->hits[PC_WRITE]);
	add_number(o, "misses", misses);
	add_number(o, "read_misses", c->misses[PC_READ]);
	add_number(o, "write_misses", c->misses[PC_WRITE]);
	add_ratio(o, "read_hit_ratio", c->hits[PC_READ], c->misses[PC_READ]);
	add_ratio(o, "write_hit_ratio", c->hits[PC_WRITE], c->misses[PC_WRITE]);
	add_ratio(o, "hit_ratio", hits, misses);
	add_number(o, "partial_read_hits", c->partial_hits);
	add_number(o, "sequential_requests", c->sequential);
	add_number(o, "promotions", c->promotions);
	add_number(o, "demotions", c->demotions);
	add_number(o, "invalidations", c->invalidations);
	add_number(o, "no_free", c->no_free);
	add_number(o, "origin_read_sectors", c->origin_reads);
	add_number(o, "origin_write_sectors", c->origin_writes);
	add_number(o, "writeback_sectors", c->writebacks);
	add_number(o, "cache_write_sectors", c->cache_writes);
	add_number(o, "dirty_sectors_at_end", c->dirty);
}

static struct json_object *run_to_json(const struct pc_sim_report *r, unsigned int s,
				       unsigned int p)
{
	const struct pc_sim_run *run = &r->runs[s][p];
	struct json_object *o = json_object_new_object();

	add_text(o, "policy", r->policies[p].type->name);
	add_text(o, "label", r->policies[p].label);
	add_text(o, "tunables", run->tunables);
	add_text(o, "size", r->sizes[s].text);
	add_number(o, "cache_blocks", r->sizes[s].nr_cblocks);
	add_number(o, "cache_sectors", (u64)r->sizes[s].nr_cblocks * r->trace.block_sectors);
	add_counts(o, &run->counts);
	add_number(o, "policy_memory_bytes", run->policy_memory);
	add_real(o, "run_seconds", run->seconds, "%.6f");
	add_real(o, "requests_per_second",
		 run->seconds ? run->counts.requests / run->seconds : 0, "%.0f");
	return o;
}

void pc_sim_print_json(const struct pc_sim_report *r)
{
	struct json_object *o = json_object_new_object(), *runs = json_object_new_array();

	add(o, "trace", trace_to_json(r));
	add_text(o, "mode", pc_args_mode_name(r->config.mode));
	add_number(o, "bypass_sequential_sectors", r->config.bypass_sequential);
	add(o, "pool", json_object_new_boolean(r->config.pool));
	for (unsigned int s = 0; s < r->nr_sizes; s++)
		for (unsigned int p = 0; p < r->nr_policies; p++)
			json_object_array_add(runs, run_to_json(r, s, p));
	add(o, "runs", runs);
	printf("%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						      JSON_C_TO_STRING_SPACED |
						      JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}
