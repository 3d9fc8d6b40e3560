/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The status line, taken apart (docs/admin-guide.md describes it). Words only, no
 * device.
 */
#ifndef POLYCACHE_STATE_H
#define POLYCACHE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"

#define PC_STATE_WORDS 80

struct pc_state {
	const char *broken;	/* "Fail" or "Error": there is nothing else */
	uint64_t metadata_block, metadata_used, metadata_total;
	uint64_t block, used, total;
	uint64_t read_hits, read_misses, write_hits, write_misses;
	uint64_t demotions, promotions, dirty;
	unsigned int nr_features, nr_core, nr_policy;
	const char *features[PC_STATE_WORDS];
	struct pc_pair core[PC_STATE_WORDS], args[PC_STATE_WORDS];
	const char *policy;
	bool read_only, needs_check;
	char *words;		/* what the texts point into */
};

/* 0, or -1 with err, which names the field. pc_state_free() follows in each case. */
int pc_state_parse(struct pc_state *s, const char *line, char err[PC_ERR_SIZE]);
void pc_state_free(struct pc_state *s);

/* The mode as the status line has it: writearound shows as writethrough. */
const char *pc_state_mode(const struct pc_state *s);

/* The core's tunables, as far as the line tells: for checking a message before it is sent. */
void pc_state_tunables(const struct pc_state *s, struct pc_tunables *t);

#endif
