// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The life of an instance (instance.h).
 *
 * dm lets several tables name one metadata device: while a table is reloaded, two
 * instances of one mapped device live side by side, and only the one between its
 * preresume and the end of its postsuspend may write. Owns the list of all instances
 * and its mutex. Formatting and loading happen in the start, never in a constructor.
 */
#include <linux/uuid.h>

#include "broken.h"
#include "cache.h"
#include "instance.h"
#include "intent.h"
#include "status.h"

/* All instances, so that one metadata device has one writer. */
static DEFINE_MUTEX(instances_lock);
static LIST_HEAD(instances);

static void metadata_params(struct pc_cache *pc, struct pc_metadata_params *params)
{
	memset(params, 0, sizeof(*params));
	params->block_sectors = pc->block_sectors;
	params->subblock_sectors = pc->blocks.sub_sectors;
	params->nr_cblocks = pc->blocks.nr;
	params->origin_sectors = pc->ti->len;
	generate_random_uuid(params->uuid);
}

/* What the constructor may say about the metadata device, reading only. */
int pc_instance_inspect(struct pc_cache *pc, char *err)
{
	u64 need = pc_metadata_min_blocks(pc->blocks.nr);
	struct pc_metadata_params params;
	char why[PC_META_ERR_SIZE];
	struct pc_metadata *md;
	enum pc_probe what;
	int r;

	r = pc_metadata_probe(pc->metaio, &what);
	if (r) {
		snprintf(err, PC_ERR_SIZE, "metadata device %s: cannot be read (error %d)",
			 pc->metadata_dev->name, r);
		return r;
	}
	switch (what) {
	case PC_PROBE_DM_CACHE:
		snprintf(err, PC_ERR_SIZE,
			 "metadata device %s: holds a dm-cache superblock; use `polycache import`, or zero its first 4 KiB",
			 pc->metadata_dev->name);
		return -EINVAL;
	case PC_PROBE_UNKNOWN:
		snprintf(err, PC_ERR_SIZE,
			 "metadata device %s: unknown contents; zero its first 4 KiB to have it formatted",
			 pc->metadata_dev->name);
		return -EINVAL;
	case PC_PROBE_BLANK:
		if (pc->metaio->nr_blocks >= need)
			return 0;
		snprintf(err, PC_ERR_SIZE,
			 "metadata device %s: %llu blocks of 4 KiB, a cache of %u blocks needs %llu",
			 pc->metadata_dev->name, (unsigned long long)pc->metaio->nr_blocks,
			 pc->blocks.nr, (unsigned long long)need);
		return -ENOSPC;
	case PC_PROBE_OURS:
		break;
	}
	metadata_params(pc, &params);
	md = pc_metadata_open(pc->metaio, &params, &r, why);
	if (!md) {
		snprintf(err, PC_ERR_SIZE, "metadata device %s: %s", pc->metadata_dev->name, why);
		return r;
	}
	pc_metadata_free(md);
	return 0;
}

/* Rule 23, for the constructor: another mapped device uses the metadata device. */
int pc_instance_check(struct pc_cache *pc, char *err)
{
	struct mapped_device *md = dm_table_get_md(pc->ti->table);
	struct pc_cache *other;
	int r = 0;

	mutex_lock(&instances_lock);
	list_for_each_entry(other, &instances, instances) {
		if (other == pc || other->metadata_dev->bdev != pc->metadata_dev->bdev ||
		    PC_BREAK_RULE23)
			continue;
		if (dm_table_get_md(other->ti->table) != md) {
			snprintf(err, PC_ERR_SIZE,
				 "metadata device %s: in use by %s; a metadata device serves one cached device",
				 pc->metadata_dev->name, other->name);
			r = -EBUSY;
		} else if (other->is_writer && pc->mode == PC_MODE_PASSTHROUGH &&
			   atomic_read(&other->nr_dirty)) {
			snprintf(err, PC_ERR_SIZE,
				 "passthrough: %d blocks are dirty; write them back first (message flush, or mode writethrough)",
				 atomic_read(&other->nr_dirty));
			r = -EINVAL;
		}
	}
	mutex_unlock(&instances_lock);
	return r;
}

void pc_instance_add(struct pc_cache *pc)
{
	mutex_lock(&instances_lock);
	list_add(&pc->instances, &instances);
	mutex_unlock(&instances_lock);
}

void pc_instance_remove(struct pc_cache *pc)
{
	if (list_empty(&pc->instances))
		return;
	mutex_lock(&instances_lock);
	list_del_init(&pc->instances);
	mutex_unlock(&instances_lock);
}

static int load_block(void *context, u32 cblock, const struct pc_entry *entry)
{
	struct pc_cache *pc = context;
	pc_cblock_t c = pc_cblock(cblock);
	struct pc_block *blk = pc_blocks_get(&pc->blocks, c);

	pc_blocks_insert(&pc->blocks, c, pc_oblock(entry->oblock));
	blk->valid = entry->valid;
	blk->dirty = entry->dirty;
	pc_update_dirty(pc, blk);
	atomic_inc(&pc->nr_resident);
	pc_host_load(pc->policy, c, pc_oblock(entry->oblock), entry->dirty, pc->use_hints,
		     entry->hint);
	return 0;
}

/*
 * Memory as before the first load: another instance has changed the metadata, or a
 * load ended half way. Nothing has changed where it fails.
 */
static int forget(struct pc_cache *pc)
{
	struct pc_pendings fresh;
	u32 c;
	int r;

	r = pc_pendings_init(&fresh, pc->pendings.nr);
	if (r)
		return r;
	for (c = 0; c < pc->blocks.nr; c++) {
		struct pc_block *blk = &pc->blocks.table[c];

		blk->pending = PC_NONE;
		if (!(blk->flags & PC_BLOCK_MAPPED))
			continue;
		pc_host_removed(pc->policy, pc_cblock(c), pc_blocks_oblock(blk));
		pc_blocks_remove(&pc->blocks, pc_cblock(c));
		clear_bit(c, pc->dirty_map);
		clear_bit(c, pc->intent_map);
	}
	atomic_set(&pc->nr_dirty, 0);
	atomic_set(&pc->nr_resident, 0);
	atomic_set(&pc->nr_demoting, 0);
	atomic_set(&pc->nr_stream, 0);
	atomic_set(&pc->nr_must, 0);
	atomic_set(&pc->nr_intents, 0);
	pc_pendings_exit(&pc->pendings);
	pc->pendings = fresh;
	return 0;
}

/* status looks at it from another thread. Returns the old one. */
static struct pc_metadata *exchange_metadata(struct pc_cache *pc, struct pc_metadata *md)
{
	struct pc_metadata *old;

	spin_lock(&pc->md_lock);
	old = pc->md;
	pc->md = md;
	spin_unlock(&pc->md_lock);
	return old;
}

static int load(struct pc_cache *pc)
{
	struct pc_metadata_params params;
	const char *hints_name;
	char why[PC_META_ERR_SIZE];
	u32 hints_version;
	struct pc_metadata *md;
	int r;

	if (atomic_read(&pc->nr_resident) || pc->pendings.nr_free != pc->pendings.nr) {
		r = forget(pc);
		if (r)
			return r;
	}
	pc_metadata_free(exchange_metadata(pc, NULL));
	metadata_params(pc, &params);
	md = pc_metadata_open(pc->metaio, &params, &r, why);
	if (!md) {
		DMERR("%s: metadata device %s: %s", pc->name, pc->metadata_dev->name, why);
		return r;
	}
	exchange_metadata(pc, md);
	pc_metadata_hints_of(pc->md, &hints_name, &hints_version);
	pc->use_hints = pc_host_begin_with(pc->policy, hints_name, hints_version);
	r = pc_metadata_load(pc->md, load_block, pc, why);
	if (r) {
		DMERR("%s: metadata device %s: %s", pc->name, pc->metadata_dev->name, why);
		return r;
	}
	pc_blocks_rebuild_free(&pc->blocks);
	pc_host_loaded(pc->policy);
	pc_metadata_counters(pc->md, pc->base_counters);
	/* what the metadata that this instance had before had led to */
	WRITE_ONCE(pc->failed, false);
	WRITE_ONCE(pc->cache_losing, false);
	WRITE_ONCE(pc->cache_gone, false);
	pc_round_gone(&pc->cache_round, false);
	pc->loaded = true;
	return 0;
}

/* Rule 23: becomes the one writer, or says who is. */
int pc_instance_become_writer(struct pc_cache *pc)
{
	struct pc_cache *other;
	int r = 0;

	mutex_lock(&instances_lock);
	list_for_each_entry(other, &instances, instances) {
		if (other == pc || !other->is_writer ||
		    other->metadata_dev->bdev != pc->metadata_dev->bdev)
			continue;
		DMERR("%s: metadata device %s: in use by %s, which is not suspended", pc->name,
		      pc->metadata_dev->name, other->name);
		r = -EBUSY;
	}
	if (!r)
		pc->is_writer = true;
	mutex_unlock(&instances_lock);
	return r;
}

void pc_instance_cease_writer(struct pc_cache *pc)
{
	mutex_lock(&instances_lock);
	pc->is_writer = false;
	mutex_unlock(&instances_lock);
}

int pc_instance_start(struct pc_cache *pc)
{
	int r;

	if (pc->loaded) {
		r = pc_metadata_changed(pc->md);
		/* as it was: reads go on, nothing is written (rule 15) */
		if (r <= 0 && READ_ONCE(pc->failed))
			return 0;
		if (r < 0)
			return r;
		if (r)
			pc->loaded = false;
	}
	r = pc->loaded ? pc_metadata_reopen(pc->md) : load(pc);
	if (r)
		return r;
	if (pc->mode == PC_MODE_PASSTHROUGH && atomic_read(&pc->nr_dirty)) {
		DMERR("%s: passthrough: %d blocks are dirty; use writethrough until they are clean",
		      pc->name, atomic_read(&pc->nr_dirty));
		return -EINVAL;
	}
	return 0;
}

static u32 get_hint(void *context, u32 cblock)
{
	struct pc_cache *pc = context;

	return pc_host_hint(pc->policy, pc_cblock(cblock));
}

/* Everything durable, no intents, CLEAN; or the reason in the log. */
void pc_instance_close(struct pc_cache *pc)
{
	u64 counters[PC_NR_COUNTERS];
	char name[PC_POLICY_NAME_SIZE];
	u32 version;
	int i, r;

	for (i = 0; i < 8; i++) {
		pc_intent_clear_all(pc);
		pc_commit_run(&pc->commit);
		if (READ_ONCE(pc->failed) || pc->pendings.nr_free == pc->pendings.nr)
			break;
	}
	pc_commit_stop(&pc->commit);
	if (READ_ONCE(pc->failed) || READ_ONCE(pc->cache_gone) || PC_BREAK_RULE22)
		return;
	if (pc->pendings.nr_free != pc->pendings.nr || atomic_read(&pc->nr_intents)) {
		DMERR("%s: %u records could not be made durable; the next start recovers them",
		      pc->name, pc->pendings.nr - pc->pendings.nr_free);
		return;
	}
	pc_status_counters(pc, counters);
	version = pc_host_working(pc->policy, name);
	pc_host_drain(pc->policy);
	r = pc_metadata_close_clean(pc->md, name, version, get_hint, pc, counters);
	if (r)
		DMERR("%s: metadata device %s: clean shutdown failed: error %d; the next start recovers",
		      pc->name, pc->metadata_dev->name, r);
}
