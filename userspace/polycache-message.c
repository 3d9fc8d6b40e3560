// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subcommands that change a live device: mode, policy, set, flush. A message is
 * checked here by the kernel's own parser first, so that the reason of a refusal is
 * printed and not only logged; what depends on the device is refused by the kernel,
 * and its reason fetched from the log.
 *
 * What LVM owns changes its mode and policy through lvchange: LVM's metadata must agree
 * with the device.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "policies.h"
#include "polycache.h"
#include "polycache-device.h"
#include "polycache-state.h"

#define POLL_MS 200
#define BAR 40

/* The device and its state now. Error texts are out. */
static int look(struct pc_device *dev, struct pc_state *state, const char *name)
{
	char err[PC_DEVICE_ERR_SIZE], why[PC_ERR_SIZE];
	int status = PC_EXIT_OK;

	memset(state, 0, sizeof(*state));
	if (pc_device_read(dev, name, err))
		return pc_fail("%s", err);
	if (pc_state_parse(state, dev->line, why))
		status = pc_fail("%s: %s", dev->name, why);
	else if (state->broken)
		status = pc_fail("%s: its state is %s, nothing can be changed: the cache device must be back, and the device reloaded",
				 dev->name, state->broken);
	return status;
}

static void forget(struct pc_device *dev, struct pc_state *state)
{
	pc_device_free(dev);
	pc_state_free(state);
}

/* Of one word must not become two on the way, nor something else. */
static bool is_word(const char *word)
{
	if (!*word)
		return false;
	for (; *word; word++)
		if (*word <= ' ' || *word > '~' || *word == '\\')
			return false;
	return true;
}

static int check_message(const struct pc_device *dev, const struct pc_state *state, int nr,
			 char **words)
{
	static struct pc_message_args parsed;
	struct pc_tunables tunables;
	char why[PC_ERR_SIZE];

	for (int i = 0; i < nr; i++)
		if (!is_word(words[i]))
			return pc_fail("%s: '%s': must be printable characters without blanks and backslashes",
				       dev->name, words[i]);
	pc_state_tunables(state, &tunables);
	if (pc_args_parse_message(&parsed, nr, words, &tunables, state->policy, state->total, why))
		return pc_fail("%s: %s", dev->name, why);
	return PC_EXIT_OK;
}

static int send_message(const struct pc_device *dev, int nr, char **words)
{
	char err[PC_DEVICE_ERR_SIZE];

	if (pc_device_message(dev, nr, words, NULL, err))
		return pc_fail("%s", err);
	return PC_EXIT_OK;
}

/* --- waiting for the writeback ------------------------------------------------------ */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void draw(const struct pc_state *s, uint64_t most, double seconds)
{
	int done = most ? BAR * (most - s->dirty) / most : BAR;

	fprintf(stderr, "\r[%.*s%*s] %llu of %llu blocks left, %.0f s ", done,
		"========================================", BAR - done, "",
		(unsigned long long)s->dirty, (unsigned long long)most, seconds);
}

/* Until nothing is dirty. timeout in seconds, 0: none. */
static int wait_clean(const char *name, uint64_t timeout)
{
	struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	bool is_terminal = isatty(STDERR_FILENO), drawn = false;
	uint64_t most = 0, left = 1;
	double begin = now(), seconds = 0;
	int status = PC_EXIT_OK;

	while (left && !status) {
		struct pc_device dev;
		struct pc_state state;

		status = look(&dev, &state, name);
		if (!status) {
			left = state.dirty;
			most = left > most ? left : most;
			seconds = now() - begin;
			if (is_terminal && most)
				draw(&state, most, seconds);
			drawn |= is_terminal && most;
		}
		if (!status && left && state.read_only)
			status = pc_fail("%s: writing the metadata failed, %llu blocks stay dirty; see the kernel log",
					 name, (unsigned long long)left);
		else if (!status && left && dev.suspended)
			status = pc_fail("%s: is suspended, %llu blocks stay dirty: resume it first (dmsetup resume)",
					 name, (unsigned long long)left);
		else if (!status && left && timeout && seconds >= timeout)
			status = pc_fail("%s: after %llu s %llu blocks are still dirty; where writes go on in mode writeback, 'polycache mode %s writethrough' keeps them from adding to it",
					 name, (unsigned long long)timeout,
					 (unsigned long long)left, name);
		forget(&dev, &state);
		if (left && !status)
			nanosleep(&pause, NULL);
	}
	if (drawn)
		fputc('\n', stderr);
	if (!status)
		printf("%s: clean, %llu blocks written back in %.1f s\n", name,
		       (unsigned long long)most, seconds);
	return status;
}

static int flush(const struct pc_call *call)
{
	char *word = "flush";
	struct pc_device dev;
	struct pc_state state;
	uint64_t timeout = 0;
	int status;

	if (!pc_option_number(call, 't', 1, 1000000000, &timeout))
		return PC_EXIT_USAGE;
	if (timeout && pc_given(call, 'n'))
		return pc_fail_usage("--timeout and --no-wait: must be one of them");
	status = look(&dev, &state, call->words[0]);
	if (!status)
		status = send_message(&dev, 1, &word);
	if (!status && !pc_given(call, 'n'))
		status = wait_clean(dev.name, timeout);
	forget(&dev, &state);
	return status;
}

static const struct pc_option flush_options[] = {
	{ 'n', "no-wait", NULL, "do not wait, writing back goes on in the background" },
	{ 't', "timeout", "SECONDS", "give up waiting after so long, with exit status 1" },
	{ 0 },
};

const struct pc_command pc_command_flush = {
	.name = "flush",
	.args = "DEV",
	.summary = "Write everything dirty back to the origin; the cache stays warm",
	.text = "Waits until nothing is dirty and shows how far it is. Interrupting the command\n"
		"ends the waiting only.\n",
	.options = flush_options,
	.min_words = 1,
	.max_words = 1,
	.run = flush,
};

/* --- mode --------------------------------------------------------------------------- */

/* What the status line cannot say: the stats begin with the mode at work. */
static int read_mode(const struct pc_device *dev, char mode[24])
{
	char *word = "stats", *answer;
	char err[PC_DEVICE_ERR_SIZE];
	int status = PC_EXIT_OK;

	if (pc_device_message(dev, 1, &word, &answer, err))
		return pc_fail("%s", err);
	if (sscanf(answer, "mode %23s", mode) != 1)
		status = pc_fail("%s: stats begin with '%.40s', must be mode", dev->name, answer);
	free(answer);
	return status;
}

static int print_mode(const struct pc_device *dev)
{
	char mode[24];
	int status = read_mode(dev, mode);

	if (!status)
		printf("%s\n", mode);
	return status;
}

/* Having left writeback: until nothing is dirty, and passthrough has begun. */
static int wait_mode(const struct pc_device *dev, const char *mode)
{
	struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	char current[24] = "";
	int status;

	if (!strcasecmp(mode, "writeback"))
		return PC_EXIT_OK;
	status = wait_clean(dev->name, 0);
	while (!status && !strcasecmp(mode, "passthrough") && strcmp(current, "passthrough")) {
		status = read_mode(dev, current);
		/* somebody else wants another one, meanwhile */
		if (!status && strcmp(current, "passthrough") && strcmp(current, "writethrough"))
			status = pc_fail("%s: mode became %s, not %s", dev->name, current, mode);
		nanosleep(&pause, NULL);
	}
	return status;
}

static int lvm_mode(const char *lv, char *mode)
{
	const char *argv[6] = { "lvchange", "--yes", "--cachemode", mode, lv, NULL };
	int r;

	if (!strcasecmp(mode, "writearound"))
		return pc_fail("%s: LVM knows no mode writearound: must be writeback, writethrough or passthrough",
			       lv);
	r = pc_run_program(argv, false);
	return r ? pc_fail("%s: lvchange --cachemode %s failed with exit status %d", lv, mode, r) :
		   PC_EXIT_OK;
}

static int mode(const struct pc_call *call)
{
	struct pc_device dev;
	struct pc_state state;
	char lv[256];
	int status = look(&dev, &state, call->words[0]);

	if (!status && call->nr_words == 1) {
		status = print_mode(&dev);
	} else if (!status) {
		char *words[2] = { "mode", call->words[1] };

		status = check_message(&dev, &state, 2, words);
		if (!status && pc_device_lvm_name(&dev, lv, sizeof(lv)))
			status = lvm_mode(lv, call->words[1]);
		else if (!status)
			status = send_message(&dev, 2, words);
		if (!status && pc_given(call, 'w'))
			status = wait_mode(&dev, call->words[1]);
	}
	forget(&dev, &state);
	return status;
}

static const struct pc_option mode_options[] = {
	{ 'w', "wait", NULL, "wait until nothing is dirty and passthrough has begun" },
	{ 0 },
};

const struct pc_command pc_command_mode = {
	.name = "mode",
	.args = "DEV [MODE]",
	.summary = "Print the mode, or change it while I/O runs",
	.text = "MODE is writeback, writethrough, writearound or passthrough. Having left writeback,\n"
		"blocks are written back in the background; passthrough begins when that is done.\n"
		"A logical volume is changed by lvchange.\n",
	.options = mode_options,
	.min_words = 1,
	.max_words = 2,
	.run = mode,
};

/* --- policy ------------------------------------------------------------------------- */

struct names {
	char text[400];		/* "a, b" */
};

static void add_name(struct names *n, const char *name, int len)
{
	size_t used = strlen(n->text);
	char word[64];

	snprintf(word, sizeof(word), "%s%.*s", used ? ", " : "", len, name);
	if (!strstr(n->text, word) && used + strlen(word) < sizeof(n->text))
		strcpy(n->text + used, word);
}

/* Policies that are loaded, or have a module for this kernel. */
static void list_policies(struct names *n)
{
	char path[400], line[1000];
	struct utsname u;
	glob_t found;
	FILE *f;

	n->text[0] = 0;
	if (!glob("/sys/module/dm_polycache_*", 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_name(n, found.gl_pathv[i] + strlen("/sys/module/dm_polycache_"), 40);
		globfree(&found);
	}
	uname(&u);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", u.release);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *name;

		line[strcspn(line, ":")] = 0;
		name = strstr(line, "/dm-polycache-");
		if (!name)
			continue;
		name += strlen("/dm-polycache-");
		add_name(n, name, strcspn(name, "."));
	}
	if (f)
		fclose(f);
}

/* 0, or modprobe's exit status. */
static int load_module(const char *name)
{
	char module[64], path[100], *p;
	const char *argv[3] = { "modprobe", module, NULL };

	snprintf(module, sizeof(module), "dm-polycache-%s", name);
	snprintf(path, sizeof(path), "/sys/module/%s", module);
	for (p = path; *p; p++)
		if (*p == '-')
			*p = '_';
	return access(path, F_OK) ? pc_run_program(argv, true) : 0;
}

/* The kernel exchanges policies only with those that are loaded. */
static int load_policy(const char *name)
{
	struct pc_policy_type *t = NULL;
	struct names known;
	int r;

	/* auto chooses among those that are loaded: all that come with us and can be */
	if (!strcmp(name, PC_POLICY_AUTO)) {
		while ((t = pc_policy_next(t)))
			if (!(t->flags & PC_POLICY_CLEANER))
				load_module(t->name);
		return PC_EXIT_OK;
	}
	/* the kernel says whether it is there */
	if (!strcmp(name, "default")) {
		load_module(PC_POLICY_DEFAULT);
		return PC_EXIT_OK;
	}
	r = load_module(name);
	if (!r)
		return PC_EXIT_OK;
	list_policies(&known);
	return pc_fail("policy '%s': its module dm-polycache-%s cannot be loaded (modprobe: exit status %d); %s%s",
		       name, name, r,
		       known.text[0] ? "must be auto, default or one of: " :
				       "no policies are installed",
		       known.text);
}

static int lvm_policy(const char *lv, int nr, char **words)
{
	const char *argv[PC_MAX_POLICY_ARGS * 2 + 10] = {
		"lvchange", "--yes", "--cachepolicy", words[0],
	};
	static char settings[PC_MAX_POLICY_ARGS][200];
	int n = 4, r;

	for (int i = 1; i + 1 < nr; i += 2) {
		snprintf(settings[i / 2], sizeof(settings[0]), "%s=%s", words[i], words[i + 1]);
		argv[n++] = "--cachesettings";
		argv[n++] = settings[i / 2];
	}
	argv[n++] = lv;
	r = pc_run_program(argv, false);
	return r ? pc_fail("%s: lvchange --cachepolicy %s failed with exit status %d", lv,
			   words[0], r) : PC_EXIT_OK;
}

static int change_policy(const struct pc_device *dev, const struct pc_state *state, int nr,
			 char **words)
{
	char *message[PC_MAX_POLICY_ARGS * 2 + 2] = { "policy" };
	char lv[256];
	int status;

	if (nr > PC_MAX_POLICY_ARGS * 2 + 1)
		return pc_fail("%s: %d words follow the policy, must be at most %d", dev->name,
			       nr - 1, PC_MAX_POLICY_ARGS * 2);
	memcpy(message + 1, words, nr * sizeof(*words));
	status = check_message(dev, state, nr + 1, message);
	if (!status)
		status = load_policy(words[0]);
	if (status)
		return status;
	if (pc_device_lvm_name(dev, lv, sizeof(lv)))
		return lvm_policy(lv, nr, words);
	return send_message(dev, nr + 1, message);
}

static int policy(const struct pc_call *call)
{
	struct pc_device dev;
	struct pc_state state;
	int status = look(&dev, &state, call->words[0]);

	if (!status && call->nr_words == 1)
		printf("%s\n", state.policy);
	else if (!status)
		status = change_policy(&dev, &state, call->nr_words - 1, call->words + 1);
	forget(&dev, &state);
	return status;
}

static const struct pc_option no_options[] = {
	{ 0 },
};

const struct pc_command pc_command_policy = {
	.name = "policy",
	.args = "DEV [POLICY [KEY VALUE]...]",
	.summary = "Print the policy, or exchange it while I/O runs",
	.text = "The module dm-polycache-POLICY is loaded if it is not. KEY VALUE are tunables of the\n"
		"new policy; the cache stays warm. A logical volume is changed by lvchange.\n",
	.options = no_options,
	.min_words = 1,
	.max_words = -1,
	.run = policy,
};

/* --- set ---------------------------------------------------------------------------- */

static int set(const struct pc_call *call)
{
	struct pc_device dev;
	struct pc_state state;
	int status;

	if (call->nr_words % 2 == 0)
		return pc_fail_usage("%s: its value is missing; must be: polycache set %s",
				     call->words[call->nr_words - 1], call->command->args);
	status = look(&dev, &state, call->words[0]);
	/* each by itself, in the order given; the state follows what has been set */
	for (int i = 1; i < call->nr_words && !status; i += 2) {
		status = check_message(&dev, &state, 2, call->words + i);
		if (!status)
			status = send_message(&dev, 2, call->words + i);
		if (!status && i + 2 < call->nr_words) {
			forget(&dev, &state);
			status = look(&dev, &state, call->words[0]);
		}
	}
	forget(&dev, &state);
	return status;
}

const struct pc_command pc_command_set = {
	.name = "set",
	.args = "DEV KEY VALUE [KEY VALUE]...",
	.summary = "Set tunables of the core or of the policy while I/O runs",
	.text = "Core: migration_threshold, bypass_sequential, fill, commit_ms, writeback_target,\n"
		"writeback_limit, on_cache_loss; others go to the policy.\n",
	.options = no_options,
	.min_words = 3,
	.max_words = -1,
	.run = set,
};
