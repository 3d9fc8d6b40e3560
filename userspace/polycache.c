// SPDX-License-Identifier: GPL-2.0-only
/*
 * The polycache command: finds the subcommand, parses its options by its own
 * description, prints usage texts. What a subcommand does is in polycache-NAME.c.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kernel.h>

#include "polycache.h"

static const struct pc_command *const commands[] = {
	&pc_command_status,
	&pc_command_mode,
	&pc_command_policy,
	&pc_command_set,
	&pc_command_flush,
	&pc_command_check,
	&pc_command_dump,
	&pc_command_sim,
};

#define MAX_OPTIONS 16

static const char *running;	/* the subcommand, for texts */

static void say(const char *fmt, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "polycache%s%s: ", running ? " " : "", running ? running : "");
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

int pc_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	return PC_EXIT_FAILED;
}

void pc_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

int pc_fail_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	fprintf(stderr, "see: polycache%s%s --help\n", running ? " " : "",
		running ? running : "");
	return PC_EXIT_USAGE;
}

bool pc_option_number(const struct pc_call *call, char key, uint64_t min, uint64_t max,
		      uint64_t *out)
{
	const char *value = call->values[(unsigned char)key];
	const struct pc_option *o = call->command->options;
	unsigned long long n;
	char *end;

	if (!value)
		return true;
	while (o->key != key)
		o++;
	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end || errno || n < min || n > max) {
		pc_fail_usage("--%s '%s': must be a number from %llu to %llu", o->name, value,
			      (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*out = n;
	return true;
}

const char *pc_size_text(uint64_t bytes, char buf[PC_SIZE_TEXT])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = bytes;
	int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, PC_SIZE_TEXT, value == (uint64_t)value ? "%.0f %s" : "%.1f %s", value,
		 units[unit]);
	return buf;
}

int pc_run_program(const char *const argv[], bool quiet)
{
	int status, null;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return 127;
	if (!pid) {
		/* the control device of device-mapper is not for others */
		for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
			close(fd);
		null = quiet ? open("/dev/null", O_WRONLY) : -1;
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

static void print_commands(FILE *out)
{
	fprintf(out, "usage: polycache COMMAND [OPTION]... [ARGUMENT]...\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		char left[60];

		snprintf(left, sizeof(left), "%s %s", commands[i]->name, commands[i]->args);
		fprintf(out, "  %-36s %s\n", left, commands[i]->summary);
	}
	fprintf(out, "\n  polycache COMMAND --help           more about a command\n"
		     "  polycache --version\n\n"
		     "DEV is a device-mapper name or a path of a device, META a metadata device\n"
		     "or an image of one. Exit status: 0 done, 1 failed, 2 called wrongly.\n");
}

static void print_help(const struct pc_command *c)
{
	printf("usage: polycache %s [OPTION]... %s\n\n%s.\n", c->name, c->args, c->summary);
	if (c->text)
		printf("\n%s", c->text);
	printf("\n");
	for (const struct pc_option *o = c->options; o->name; o++) {
		char left[60];

		snprintf(left, sizeof(left), "-%c, --%s%s%s", o->key, o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
		printf("  %-29s %s\n", left, o->help);
	}
	printf("  %-29s %s\n", "-h, --help", "print this text");
}

/* getopt's two views of a subcommand's options. */
static void describe(const struct pc_command *c, struct option *longs, char *shorts)
{
	size_t n = 0;

	/* words may follow options, but a negative or dashed value is no option */
	*shorts++ = ':';
	for (const struct pc_option *o = c->options; o->name && n < MAX_OPTIONS; o++, n++) {
		longs[n] = (struct option){
			o->name, o->arg ? required_argument : no_argument, NULL, o->key,
		};
		*shorts++ = o->key;
		if (o->arg)
			*shorts++ = ':';
	}
	longs[n++] = (struct option){ "help", no_argument, NULL, 'h' };
	*shorts++ = 'h';
	*shorts = 0;
	longs[n] = (struct option){ 0 };
}

/* The option that getopt refused, as it was written. */
static int refuse_option(const struct pc_command *c, int key, char **argv)
{
	char letter[3] = { '-', optopt, 0 };
	const char *word = argv[optind - 1];
	const struct pc_option *o = c->options;

	while (o->name && o->key != optopt)
		o++;
	if (key == ':')
		return pc_fail_usage("option --%s lacks its argument: must be --%s %s", o->name,
				     o->name, o->arg);
	if (optopt && o->name)
		return pc_fail_usage("option %s: --%s takes no argument", word, o->name);
	return pc_fail_usage("unknown option '%s'", optopt ? letter : word);
}

static int run(const struct pc_command *c, int argc, char **argv)
{
	struct option longs[MAX_OPTIONS + 2];
	struct pc_call call = { .command = c };
	char shorts[2 * MAX_OPTIONS + 4];
	int key;

	running = c->name;
	describe(c, longs, shorts);
	opterr = 0;
	while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (key == 'h') {
			print_help(c);
			return PC_EXIT_OK;
		}
		if (key == '?' || key == ':')
			return refuse_option(c, key, argv);
		call.values[key] = optarg ? optarg : "";
	}
	call.nr_words = argc - optind;
	call.words = argv + optind;
	if (call.nr_words < c->min_words)
		return pc_fail_usage("%s: must be: polycache %s %s",
				     call.nr_words ? "argument missing" : "arguments missing",
				     c->name, c->args);
	if (c->max_words >= 0 && call.nr_words > c->max_words)
		return pc_fail_usage("one argument too many: '%s'; must be: polycache %s %s",
				     call.words[c->max_words], c->name, c->args);
	return c->run(&call);
}

static const struct pc_command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int help(int argc, char **argv)
{
	const struct pc_command *c = argc > 2 ? find(argv[2]) : NULL;

	if (argc > 2 && !c)
		return pc_fail_usage("unknown command '%s'", argv[2]);
	if (c)
		print_help(c);
	else
		print_commands(stdout);
	return PC_EXIT_OK;
}

static int dispatch(int argc, char **argv)
{
	const struct pc_command *c;

	if (argc < 2) {
		print_commands(stderr);
		return PC_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(argc, argv);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("polycache %s\n", PC_VERSION);
		return PC_EXIT_OK;
	}
	c = find(argv[1]);
	if (c)
		return run(c, argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return pc_fail_usage("unknown option '%s': a command comes first", argv[1]);
	return pc_fail_usage("unknown command '%s'", argv[1]);
}

int main(int argc, char **argv)
{
	int status = dispatch(argc, argv);

	/* a full disk must not pass for a complete dump */
	if (fflush(stdout) || ferror(stdout)) {
		if (errno != EPIPE)
			pc_fail("writing the output failed: %s", strerror(errno));
		return PC_EXIT_FAILED;
	}
	return status;
}
