// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz entry point: a table line. Whatever the words, the answer is either arguments
 * within their bounds or a printable text.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/types.h>

#include "args.h"
#include "fuzz-words.h"

static void check_tunables(const struct pc_tunables *t)
{
	BUG_ON(t->writeback_target > t->writeback_limit || t->writeback_limit > 100);
	BUG_ON(!t->commit_ms || t->commit_ms > 60000);
	BUG_ON(t->fill && (t->fill < 8 || t->fill > 2048 || !is_power_of_2(t->fill)));
	BUG_ON(t->on_cache_loss_fail && !t->on_cache_loss_set);
}

static void check_args(const struct pc_args *a)
{
	BUG_ON(!a->metadata_dev || !a->cache_dev || !a->origin_dev || !a->policy);
	BUG_ON(a->block_sectors < PC_BLOCK_SECTORS_MIN ||
	       a->block_sectors > PC_BLOCK_SECTORS_MAX ||
	       a->block_sectors % PC_BLOCK_SECTORS_MIN);
	BUG_ON(a->mode >= PC_NR_MODES);
	BUG_ON(!*a->policy || strlen(a->policy) > 15);
	BUG_ON(a->nr_pairs > PC_MAX_POLICY_ARGS);
	for (unsigned int i = 0; i < a->nr_pairs; i++)
		BUG_ON(!a->pairs[i].key || !a->pairs[i].value);
	check_tunables(&a->tunables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[PC_ERR_SIZE];
	struct fuzz_words w;
	struct pc_args a;
	int r;

	fuzz_words_split(&w, data, size);
	memset(err, 0xff, sizeof(err));
	r = pc_args_parse_table(&a, w.count, w.words, err);
	fuzz_words_check_result(r, err);
	if (!r)
		check_args(&a);
	fuzz_words_free(&w);
	return 0;
}
