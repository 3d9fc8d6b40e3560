/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the polycache command share: how a subcommand describes itself
 * (polycache.c makes parsing, usage texts and errors from that, so they cannot
 * disagree), and how it reports. A subcommand is a function that returns one of the
 * exit statuses below.
 */
#ifndef POLYCACHE_H
#define POLYCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pc_exit {
	PC_EXIT_OK,
	PC_EXIT_FAILED,
	PC_EXIT_USAGE,
};

/* One option of a subcommand; a list ends with name NULL. */
struct pc_option {
	char key;		/* the short form, and the index of its value */
	const char *name;
	const char *arg;	/* what it takes, as the usage text shows it; NULL: nothing */
	const char *help;
};

struct pc_call;

struct pc_command {
	const char *name;
	const char *args;	/* as the usage text shows them */
	const char *summary;	/* a line */
	const char *text;	/* more for --help, or NULL */
	const struct pc_option *options;
	int min_words;
	int max_words;		/* -1: any number */
	int (*run)(const struct pc_call *call);
};

/* A subcommand as it was called. */
struct pc_call {
	const struct pc_command *command;
	const char *values[128];	/* by key: NULL not given, "" given without argument */
	int nr_words;
	char **words;
};

static inline bool pc_given(const struct pc_call *call, char key)
{
	return call->values[(unsigned char)key];
}

/* "polycache NAME: text" to stderr. Return PC_EXIT_FAILED and PC_EXIT_USAGE. */
__attribute__((format(printf, 1, 2))) int pc_fail(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) int pc_fail_usage(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void pc_warn(const char *fmt, ...);

/*
 * The argument of an option as a number of [min, max]; *out stays if it was not given.
 * False: the error is out.
 */
bool pc_option_number(const struct pc_call *call, char key, uint64_t min, uint64_t max,
		      uint64_t *out);

/* "64 KiB": exact where the unit divides it, else with a digit behind the point. */
#define PC_SIZE_TEXT 24
const char *pc_size_text(uint64_t bytes, char buf[PC_SIZE_TEXT]);

/*
 * Runs a program found in PATH and waits. Its exit status, 127 if it cannot be run.
 * quiet: its error texts go nowhere.
 */
int pc_run_program(const char *const argv[], bool quiet);

extern const struct pc_command pc_command_status;
extern const struct pc_command pc_command_mode;
extern const struct pc_command pc_command_policy;
extern const struct pc_command pc_command_set;
extern const struct pc_command pc_command_flush;
extern const struct pc_command pc_command_check;
extern const struct pc_command pc_command_dump;
extern const struct pc_command pc_command_sim;

#endif
