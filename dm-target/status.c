// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] What users see (status.h): dm-cache's status line field for field, so that
 * libdevmapper reads it, the table line as it would be given now, and `stats`, whose
 * names are stable and documented in docs/admin-guide.md.
 */
#include "cache.h"
#include "fill.h"
#include "pages.h"
#include "status.h"
#include "writeback.h"

void pc_status_counters(struct pc_cache *pc, u64 counters[PC_NR_COUNTERS])
{
	int i;

	BUILD_BUG_ON((int)PC_STAT_READ_HIT != (int)PC_COUNT_READ_HIT);
	BUILD_BUG_ON((int)PC_STAT_PROMOTION != (int)PC_COUNT_PROMOTION);
	for (i = 0; i < PC_NR_COUNTERS; i++)
		counters[i] = pc->base_counters[i] + pc_stat_sum(pc, i);
}

/* Core keys: migration_threshold always, the others where they were given. */
static bool is_echoed(const struct pc_tunables *t, int key)
{
	return key == PC_KEY_MIGRATION_THRESHOLD || (t->set & (1u << key));
}

static unsigned int nr_core_words(const struct pc_tunables *t)
{
	unsigned int n = 0;
	int key;

	for (key = 0; key < PC_NR_KEYS; key++)
		n += is_echoed(t, key) ? 2 : 0;
	return n;
}

static unsigned int emit_core(const struct pc_tunables *t, char *result, unsigned int maxlen,
			      unsigned int sz)
{
	char value[32];
	int key;

	for (key = 0; key < PC_NR_KEYS; key++) {
		if (!is_echoed(t, key))
			continue;
		pc_args_format_tunable(t, key, value, sizeof(value));
		DMEMIT("%s %s ", pc_args_key_name(key), value);
	}
	return sz;
}

static unsigned int emit_features(struct pc_cache *pc, char *result, unsigned int maxlen,
				  unsigned int sz, bool for_status)
{
	enum pc_mode mode = READ_ONCE(pc->mode);

	/* the mode that was asked for, where it is still being entered */
	if (READ_ONCE(pc->want_passthrough))
		mode = PC_MODE_PASSTHROUGH;
	/* libdevmapper knows no writearound */
	if (for_status && mode == PC_MODE_WRITEAROUND)
		mode = PC_MODE_WRITETHROUGH;
	DMEMIT("%u ", 1 + pc->metadata2 + !pc->discard_passdown);
	if (pc->metadata2)
		DMEMIT("metadata2 ");
	DMEMIT("%s ", pc_args_mode_name(mode));
	if (!pc->discard_passdown)
		DMEMIT("no_discard_passdown ");
	return sz;
}

struct metadata_view {
	u64 used, total;
	size_t memory;
	bool needs_check;
};

/* All zero where none is open. Under its lock: a resume may open another one. */
static struct metadata_view view_metadata(struct pc_cache *pc)
{
	struct metadata_view v = {};

	spin_lock(&pc->md_lock);
	if (pc->md) {
		pc_metadata_usage(pc->md, &v.used, &v.total);
		v.memory = pc_metadata_memory(pc->md);
		v.needs_check = pc_metadata_needs_check(pc->md);
	}
	spin_unlock(&pc->md_lock);
	return v;
}

static void emit_status(struct pc_cache *pc, char *result, unsigned int maxlen)
{
	char words[PC_POLICY_EMIT_SIZE], name[PC_POLICY_NAME_SIZE];
	const struct pc_tunables *t = &pc->tunables;
	struct metadata_view md;
	u64 c[PC_NR_COUNTERS];
	unsigned int sz = 0, n, dirty, resident;

	if (READ_ONCE(pc->cache_gone)) {
		DMEMIT("Fail");
		return;
	}
	md = view_metadata(pc);
	pc_status_counters(pc, c);
	/* in this order, since blocks become resident and dirty while one looks */
	dirty = atomic_read_acquire(&pc->nr_dirty);
	resident = atomic_read(&pc->nr_resident);
	dirty = min(dirty, resident);
	DMEMIT("%u %llu/%llu %u %u/%u ", PC_META_BLOCK_SECTORS, (unsigned long long)md.used,
	       (unsigned long long)md.total, pc->block_sectors, resident,
	       pc->blocks.nr);
	DMEMIT("%llu %llu %llu %llu %llu %llu %u ",
	       (unsigned long long)c[PC_COUNT_READ_HIT], (unsigned long long)c[PC_COUNT_READ_MISS],
	       (unsigned long long)c[PC_COUNT_WRITE_HIT],
	       (unsigned long long)c[PC_COUNT_WRITE_MISS],
	       (unsigned long long)c[PC_COUNT_DEMOTION],
	       (unsigned long long)c[PC_COUNT_PROMOTION], dirty);
	sz = emit_features(pc, result, maxlen, sz, true);
	DMEMIT("%u ", nr_core_words(t));
	sz = emit_core(t, result, maxlen, sz);
	n = pc_host_emit(pc->policy, name, words, sizeof(words));
	DMEMIT("%s %u ", name, n);
	if (n)
		DMEMIT("%s ", words);
	DMEMIT("%s ", READ_ONCE(pc->failed) ? "ro" : "rw");
	DMEMIT("%s", READ_ONCE(pc->failed) || md.needs_check ? "needs_check" : "-");
}

static void emit_table(struct pc_cache *pc, char *result, unsigned int maxlen)
{
	char words[PC_POLICY_EMIT_SIZE], name[PC_POLICY_NAME_SIZE];
	unsigned int sz = 0, n;

	DMEMIT("%s %s %s %u ", pc->metadata_dev->name, pc->cache_dev->name, pc->origin_dev->name,
	       pc->block_sectors);
	sz = emit_features(pc, result, maxlen, sz, false);
	n = pc_host_emit(pc->policy, name, words, sizeof(words));
	DMEMIT("%s %u", name, nr_core_words(&pc->tunables) + n);
	DMEMIT(" ");
	sz = emit_core(&pc->tunables, result, maxlen, sz);
	if (n)
		DMEMIT("%s", words);
	else if (sz && sz < maxlen && result[sz - 1] == ' ')
		result[--sz] = 0;
}

void pc_status(struct pc_cache *pc, status_type_t type, char *result, unsigned int maxlen)
{
	switch (type) {
	case STATUSTYPE_INFO:
		emit_status(pc, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		emit_table(pc, result, maxlen);
		break;
	default:
		*result = 0;
		break;
	}
}

static const char *const stat_names[PC_NR_STATS] = {
	[PC_STAT_READ_HIT] = "read_hits",
	[PC_STAT_READ_MISS] = "read_misses",
	[PC_STAT_WRITE_HIT] = "write_hits",
	[PC_STAT_WRITE_MISS] = "write_misses",
	[PC_STAT_DEMOTION] = "demotions",
	[PC_STAT_PROMOTION] = "promotions",
	[PC_STAT_READ_BYPASS] = "read_bypasses",
	[PC_STAT_WRITE_BYPASS] = "write_bypasses",
	[PC_STAT_SEQUENTIAL] = "sequential",
	[PC_STAT_IDLE_CLASS] = "idle_class",
	[PC_STAT_FLUSH] = "flushes",
	[PC_STAT_FUA] = "fua_writes",
	[PC_STAT_DISCARD] = "discards",
	[PC_STAT_FILL] = "fills",
	[PC_STAT_FILL_SECTORS] = "fill_sectors",
	[PC_STAT_FILL_ERROR] = "fill_errors",
	[PC_STAT_POPULATE] = "write_allocations",
	[PC_STAT_PARTIAL_WRITE] = "partial_writes",
	[PC_STAT_WRITEBACK] = "writebacks",
	[PC_STAT_WRITEBACK_SECTORS] = "writeback_sectors",
	[PC_STAT_WRITEBACK_ERROR] = "writeback_errors",
	[PC_STAT_TOUCHED] = "writeback_touched",
	[PC_STAT_WAIT_BUSY] = "waits_busy",
	[PC_STAT_WAIT_COMMIT] = "waits_commit",
	[PC_STAT_WAIT_POOL] = "waits_pool",
	[PC_STAT_NO_FREE] = "no_free_block",
	[PC_STAT_NO_PENDING] = "no_pending_object",
	[PC_STAT_NO_PAGES] = "no_pages",
	[PC_STAT_CACHE_READ_ERROR] = "cache_read_errors",
	[PC_STAT_CACHE_WRITE_ERROR] = "cache_write_errors",
	[PC_STAT_ORIGIN_ERROR] = "origin_errors",
	[PC_STAT_DROPPED] = "dropped",
};

void pc_status_stats(struct pc_cache *pc, char *result, unsigned int maxlen)
{
	size_t core = pc_blocks_memory(&pc->blocks);
	size_t maps = 2 * BITS_TO_LONGS(pc->blocks.nr) * sizeof(long);
	unsigned int sz = 0;
	int i;

	DMEMIT("mode %s\n", pc_args_mode_name(READ_ONCE(pc->mode)));
	for (i = 0; i < PC_NR_STATS; i++)
		DMEMIT("%s %llu\n", stat_names[i], (unsigned long long)pc_stat_sum(pc, i));
	DMEMIT("blocks_total %u\nblocks_resident %u\nblocks_free %u\nblocks_dirty %u\nblocks_demoting %u\n",
	       pc->blocks.nr, atomic_read(&pc->nr_resident), READ_ONCE(pc->blocks.nr_free),
	       atomic_read(&pc->nr_dirty), atomic_read(&pc->nr_demoting));
	DMEMIT("blocks_stream %d\n", atomic_read(&pc->nr_stream));
	DMEMIT("free_target %u\n", pc->free_target);
	DMEMIT("intents %d\nintents_max %u\n", atomic_read(&pc->nr_intents), pc->max_intents);
	DMEMIT("pending %u\npending_max %u\n", pc->pendings.nr - READ_ONCE(pc->pendings.nr_free),
	       pc->pendings.nr);
	DMEMIT("pending_must %d\nwaiting %d\nbackground %d\n", atomic_read(&pc->nr_must),
	       atomic_read(&pc->nr_waiting), atomic_read(&pc->nr_background));
	DMEMIT("commits %lld\nrecords %lld\n",
	       (long long)atomic64_read(&pc->commit.nr_commits),
	       (long long)atomic64_read(&pc->commit.nr_records));
	DMEMIT("cache_flushes %lld\norigin_flushes %lld\n",
	       (long long)atomic64_read(&pc->cache_round.nr_flushes),
	       (long long)atomic64_read(&pc->origin_round.nr_flushes));
	DMEMIT("subblock_sectors %u\nfill_window %u\nseek_ns %llu\n", pc->blocks.sub_sectors,
	       pc_fill_window(pc), (unsigned long long)pc_fill_seek_ns(pc));
	DMEMIT("memory_core %zu\nmemory_pending %zu\nmemory_policy %zu\nmemory_metadata %zu\nmemory_pages %zu\nmemory_writeback %zu\n",
	       core + maps, pc_pendings_memory(&pc->pendings), pc_host_policy_memory(pc->policy),
	       view_metadata(pc).memory, pc_pages_memory(pc->pages),
	       pc_writeback_memory(pc));
	if (sz < maxlen)
		sz += pc_host_stats(pc->policy, result + sz, maxlen - sz);
}

void pc_status_reset(struct pc_cache *pc)
{
	int cpu;

	memset(pc->base_counters, 0, sizeof(pc->base_counters));
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(pc->stats, cpu), 0, sizeof(struct pc_stats));
}
