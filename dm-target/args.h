/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Table line and messages as data: words in, a checked struct out, or a text
 * that names the argument, its value and what is allowed. No kernel calls, so that
 * it can be fuzzed; devices are only names here.
 */
#ifndef PC_ARGS_H
#define PC_ARGS_H

#include <linux/types.h>

#define PC_ERR_SIZE 200
#define PC_MAX_POLICY_ARGS 32	/* pairs */
#define PC_BLOCK_SECTORS_MIN 64u
#define PC_BLOCK_SECTORS_MAX 2097152u

enum pc_mode {
	PC_MODE_WRITEBACK,
	PC_MODE_WRITETHROUGH,
	PC_MODE_WRITEAROUND,
	PC_MODE_PASSTHROUGH,
	PC_NR_MODES,
};

/* Tunables of the core; each may be set by table and by message. */
struct pc_tunables {
	u64 migration_threshold;	/* sectors, as given */
	u32 bypass_sequential;		/* sectors; 0: never */
	u32 fill;			/* sectors; 0: adapt */
	u32 commit_ms;
	u32 writeback_target;		/* percent of blocks dirty */
	u32 writeback_limit;
	bool on_cache_loss_fail;
	bool on_cache_loss_set;		/* given explicitly (DESIGN rule 15) */
	u32 set;			/* bit PC_KEY_x: given, echo it in the status line */
};

/* The keys, in the order of the status line; pc_args_key_name() gives their text. */
enum pc_key {
	PC_KEY_MIGRATION_THRESHOLD,
	PC_KEY_BYPASS_SEQUENTIAL,
	PC_KEY_FILL,
	PC_KEY_COMMIT_MS,
	PC_KEY_WRITEBACK_TARGET,
	PC_KEY_WRITEBACK_LIMIT,
	PC_KEY_ON_CACHE_LOSS,
	PC_NR_KEYS,
};

struct pc_pair {
	const char *key;	/* point into argv */
	const char *value;
};

struct pc_args {
	const char *metadata_dev;
	const char *cache_dev;
	const char *origin_dev;
	u32 block_sectors;
	enum pc_mode mode;
	bool metadata2;
	bool discard_passdown;		/* default true */
	struct pc_tunables tunables;
	const char *policy;
	unsigned int nr_pairs;		/* what the core does not know: the policy's */
	struct pc_pair pairs[PC_MAX_POLICY_ARGS];
};

enum pc_message {
	PC_MSG_SET,		/* key value: core key already checked, or the policy's */
	PC_MSG_POLICY,
	PC_MSG_MODE,
	PC_MSG_FLUSH,
	PC_MSG_INVALIDATE,
	PC_MSG_STATS,
	PC_MSG_STATS_RESET,
};

struct pc_range {
	u32 begin;		/* cache blocks, [begin, end) */
	u32 end;
};

#define PC_MAX_RANGES 64

struct pc_message_args {
	enum pc_message what;
	struct pc_pair set;		/* PC_MSG_SET of a policy key */
	bool is_core_key;
	struct pc_tunables tunables;	/* PC_MSG_SET of a core key: the new values */
	enum pc_mode mode;
	const char *policy;
	unsigned int nr_pairs;
	struct pc_pair pairs[PC_MAX_POLICY_ARGS];
	unsigned int nr_ranges;
	struct pc_range ranges[PC_MAX_RANGES];
};

/* The defaults of DESIGN section 3. */
void pc_args_defaults(struct pc_tunables *t);

/*
 * Words of the table line after the target name. 0, or -EINVAL with err filled.
 * argv is not kept but the strings are pointed to.
 */
int pc_args_parse_table(struct pc_args *out, unsigned int argc, char **argv,
			char err[PC_ERR_SIZE]);

/*
 * Words of a message. in_force: the tunables as they are; policy: the name of the
 * policy at work (sequential_threshold belongs to mq, elsewhere it is an alias of
 * bypass_sequential); nr_cblocks bounds the ranges. 0, or -EINVAL with err filled.
 */
int pc_args_parse_message(struct pc_message_args *out, unsigned int argc, char **argv,
			  const struct pc_tunables *in_force, const char *policy,
			  u32 nr_cblocks, char err[PC_ERR_SIZE]);

/*
 * One core tunable by text. 0: set. -ENOENT: not a core key. -EINVAL: err says why.
 */
int pc_args_set_tunable(struct pc_tunables *t, const char *key, const char *value,
			const char *policy, char err[PC_ERR_SIZE]);

/* Value of a tunable as the status line shows it. Returns bytes written. */
int pc_args_format_tunable(const struct pc_tunables *t, enum pc_key key, char *buf, size_t len);
const char *pc_args_key_name(enum pc_key key);
const char *pc_args_mode_name(enum pc_mode mode);

/* Smallest power of two from 8 sectors on that gives at most 64 sub-blocks a block. */
u32 pc_args_subblock_sectors(u32 block_sectors);

#endif
