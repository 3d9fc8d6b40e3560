// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results of polycache sim as a picture: a script for gnuplot with the data in it, and
 * gnuplot run over it. A curve for each policy, hit ratio over cache size.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "polycache.h"
#include "polycache-sim.h"

bool pc_sim_can_plot(void)
{
	const char *path = getenv("PATH") ? : "/usr/bin:/bin";
	char *list = strdup(path), *rest = list, *dir;
	bool found = false;
	char file[4096];

	while (list && !found && (dir = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/gnuplot", *dir ? dir : ".");
		found = !access(file, X_OK);
	}
	free(list);
	if (!found)
		pc_fail("--svg needs gnuplot, which is not in PATH: install the package gnuplot-nox, or use --json");
	return found;
}

/* In single quotes gnuplot takes everything as it is but the quote, which is doubled. */
static void print_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
	fputc('\'', f);
}

static void print_data(FILE *f, const struct pc_sim_report *r)
{
	for (unsigned int p = 0; p < r->nr_policies; p++) {
		fprintf(f, "$policy%u << EOD\n", p);
		for (unsigned int s = 0; s < r->nr_sizes; s++) {
			const struct pc_sim_counts *c = &r->runs[s][p].counts;
			u64 hits = pc_sim_hits(c), all = hits + pc_sim_misses(c);

			fprintf(f, "%.6f %.4f\n",
				(double)r->sizes[s].nr_cblocks * r->trace.block_sectors / 2048,
				all ? 100.0 * hits / all : 0);
		}
		fprintf(f, "EOD\n");
	}
}

static void print_script(FILE *f, const struct pc_sim_report *r, const char *path)
{
	const char *slash = strrchr(r->path, '/');
	char block[PC_SIZE_TEXT], title[512];

	snprintf(title, sizeof(title), "%s, blocks of %s, %s%s", slash ? slash + 1 : r->path,
		 pc_size_text((u64)r->trace.block_sectors << 9, block),
		 pc_args_mode_name(r->config.mode), r->config.pool ? ", pool" : "");
	print_data(f, r);
	fprintf(f, "set terminal svg size 900,560 background rgb 'white' noenhanced\nset output ");
	print_quoted(f, path);
	fprintf(f, "\nset title ");
	print_quoted(f, title);
	fprintf(f, "\nset xlabel 'cache size, MiB'\nset ylabel 'hit ratio, %%'\n"
		"set logscale x 2\nset format x '%%.4g'\nset yrange [0:100]\nset grid\n"
		"set key below\nplot ");
	for (unsigned int p = 0; p < r->nr_policies; p++) {
		fprintf(f, "%s$policy%u using 1:2 smooth unique with linespoints title ",
			p ? ", " : "", p);
		print_quoted(f, r->policies[p].label);
	}
	fprintf(f, "\n");
}

bool pc_sim_plot(const struct pc_sim_report *r, const char *path)
{
	const char *tmp = getenv("TMPDIR") ? : "/tmp";
	char script[4096];
	const char *const argv[] = { "gnuplot", script, NULL };
	FILE *f;
	int fd, status;

	snprintf(script, sizeof(script), "%s/polycache-sim-XXXXXX", tmp);
	fd = mkstemp(script);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		pc_fail("%s: %s: gnuplot's script cannot be written", script, strerror(errno));
		return false;
	}
	print_script(f, r, path);
	status = fclose(f) ? 1 : pc_run_program(argv, false);
	unlink(script);
	if (status)
		pc_fail("%s: gnuplot ended with status %d, the curves are not drawn", path, status);
	return !status;
}
