// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz entry point: the words of a message. The first byte chooses the policy at
 * work and the size of the cache.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/types.h>

#include "args.h"
#include "fuzz-words.h"

static const char *const policies[] = { "lru", "mq", "cleaner", "s3fifo" };

static void check_message(const struct pc_message_args *m, u32 nr_cblocks)
{
	unsigned int i;

	switch (m->what) {
	case PC_MSG_SET:
		BUG_ON(!m->is_core_key && (!m->set.key || !m->set.value));
		BUG_ON(m->tunables.writeback_target > m->tunables.writeback_limit);
		BUG_ON(m->is_core_key && !m->tunables.set);
		break;
	case PC_MSG_POLICY:
		BUG_ON(!m->policy || !*m->policy || m->nr_pairs > PC_MAX_POLICY_ARGS);
		for (i = 0; i < m->nr_pairs; i++)
			BUG_ON(!m->pairs[i].key || !m->pairs[i].value);
		break;
	case PC_MSG_MODE:
		BUG_ON(m->mode >= PC_NR_MODES);
		break;
	case PC_MSG_INVALIDATE:
		BUG_ON(!m->nr_ranges || m->nr_ranges > PC_MAX_RANGES);
		for (i = 0; i < m->nr_ranges; i++)
			BUG_ON(m->ranges[i].begin >= m->ranges[i].end ||
			       m->ranges[i].end > nr_cblocks);
		break;
	case PC_MSG_FLUSH:
	case PC_MSG_STATS:
	case PC_MSG_STATS_RESET:
		break;
	default:
		BUG();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pc_message_args m;
	struct pc_tunables t;
	char err[PC_ERR_SIZE];
	struct fuzz_words w;
	u32 nr_cblocks;
	int r;

	if (!size)
		return 0;
	nr_cblocks = data[0] & 4 ? 0xfffffffeu : 1000;
	pc_args_defaults(&t);
	fuzz_words_split(&w, data + 1, size - 1);
	memset(err, 0xff, sizeof(err));
	r = pc_args_parse_message(&m, w.count, w.words, &t, policies[data[0] & 3], nr_cblocks, err);
	fuzz_words_check_result(r, err);
	if (!r)
		check_message(&m, nr_cblocks);
	fuzz_words_free(&w);
	return 0;
}
