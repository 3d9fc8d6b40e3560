// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The device-mapper target: constructor, callbacks, registration. The only
 * place that sees all layers; owns no algorithm.
 *
 * The constructor only reads; what preresume and postsuspend do with the metadata
 * is instance.c's. The destructor writes nothing.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "broken.h"
#include "cache.h"
#include "discard.h"
#include "endio.h"
#include "fill.h"
#include "flush.h"
#include "instance.h"
#include "intent.h"
#include "loss.h"
#include "map.h"
#include "message.h"
#include "metaio-dm.h"
#include "pages.h"
#include "reclaim.h"
#include "status.h"
#include "writeback.h"

#define MAX_CBLOCKS (1u << 30)
#define PAGE_LIMIT 4096u		/* 16 MiB of private pages in use at once */
#define BIO_RESERVE 64u
#define MAX_DISCARD_SECTORS 524288u	/* 256 MiB in one discard bio */

static bool lvm;
module_param(lvm, bool, 0444);
MODULE_PARM_DESC(lvm, "also register the target name \"cache\", which LVM uses");

static char *defaults = "";
module_param(defaults, charp, 0644);
MODULE_PARM_DESC(defaults, "tunables for all devices, \"key=value ...\"; a table line wins");

static int open_device(struct dm_target *ti, const char *path, struct dm_dev **dev,
		       const char *what, char *err)
{
	int r = dm_get_device(ti, path, dm_table_get_mode(ti->table), dev);

	if (r) {
		*dev = NULL;
		snprintf(err, PC_ERR_SIZE, "%s device %s: cannot be opened (error %d)", what, path,
			 r);
	}
	return r;
}

static int open_devices(struct pc_cache *pc, const struct pc_args *args, char *err)
{
	struct dm_target *ti = pc->ti;
	int r;

	r = open_device(ti, args->metadata_dev, &pc->metadata_dev, "metadata", err);
	if (!r)
		r = open_device(ti, args->cache_dev, &pc->cache_dev, "cache", err);
	if (!r)
		r = open_device(ti, args->origin_dev, &pc->origin_dev, "origin", err);
	if (r)
		return r;
	if (pc->metadata_dev->bdev == pc->cache_dev->bdev ||
	    pc->metadata_dev->bdev == pc->origin_dev->bdev ||
	    pc->cache_dev->bdev == pc->origin_dev->bdev) {
		snprintf(err, PC_ERR_SIZE,
			 "metadata %s, cache %s, origin %s: must be three different devices",
			 pc->metadata_dev->name, pc->cache_dev->name, pc->origin_dev->name);
		return -EINVAL;
	}
	if (bdev_logical_block_size(pc->metadata_dev->bdev) > PC_META_BLOCK_SIZE ||
	    bdev_logical_block_size(pc->cache_dev->bdev) > PC_META_BLOCK_SIZE ||
	    bdev_logical_block_size(pc->origin_dev->bdev) > PC_META_BLOCK_SIZE) {
		snprintf(err, PC_ERR_SIZE, "logical block size of a device is over %u bytes",
			 PC_META_BLOCK_SIZE);
		return -EINVAL;
	}
	return 0;
}

static int check_sizes(struct pc_cache *pc, u32 *nr_cblocks, char *err)
{
	u64 origin = bdev_nr_sectors(pc->origin_dev->bdev);
	u64 cache = bdev_nr_sectors(pc->cache_dev->bdev);
	u64 n = div_u64(cache, pc->block_sectors);

	if (pc->ti->len > origin) {
		snprintf(err, PC_ERR_SIZE,
			 "target length %llu sectors: the origin %s has only %llu",
			 (unsigned long long)pc->ti->len, pc->origin_dev->name,
			 (unsigned long long)origin);
		return -EINVAL;
	}
	if (!n || n > MAX_CBLOCKS) {
		snprintf(err, PC_ERR_SIZE,
			 "cache device %s: %llu blocks of %u sectors, must be 1 to %u",
			 pc->cache_dev->name, (unsigned long long)n, pc->block_sectors, MAX_CBLOCKS);
		return -EINVAL;
	}
	*nr_cblocks = n;
	return 0;
}

/* defaults="key=value ...": for the keys that the table line does not give. */
static int apply_defaults(struct pc_cache *pc, const char *policy, char *err)
{
	struct pc_tunables t = pc->tunables;
	char *words, *word, *rest, *value;
	int r = 0, key;

	rest = words = kstrdup(defaults, GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	t.set = 0;
	while (!r && (word = strsep(&rest, " \t,"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (value)
			*value++ = 0;
		r = value ? pc_args_set_tunable(&t, word, value, policy, err) : -ENOENT;
		if (r == -ENOENT) {
			snprintf(err, PC_ERR_SIZE,
				 "module parameter defaults, \"%s\": must be a tunable as key=value",
				 word);
			r = -EINVAL;
		}
	}
	kfree(words);
	for (key = 0; !r && key < PC_NR_KEYS; key++) {
		char text[32];

		if (!(t.set & ~pc->tunables.set & (1u << key)))
			continue;
		pc_args_format_tunable(&t, key, text, sizeof(text));
		r = pc_args_set_tunable(&pc->tunables, pc_args_key_name(key), text, policy, err);
		/* in force, but not the table's: not echoed */
		pc->tunables.set &= ~(1u << key);
	}
	return r;
}

static void destroy(struct pc_cache *pc)
{
	pc_instance_remove(pc);
	/* made last of those that have a work on pc->wq: the others are set up as well */
	if (pc->writeback) {
		cancel_delayed_work_sync(&pc->tick_work);
		cancel_delayed_work_sync(&pc->intent_work);
		pc_writeback_stop(pc);
	}
	pc_discard_exit(pc);
	pc_flush_exit(pc);
	pc_commit_exit(&pc->commit);
	if (pc->wq)
		destroy_workqueue(pc->wq);
	pc_map_exit(pc);
	pc_fill_exit(pc);
	pc_writeback_exit(pc);
	pc_intent_exit(pc);
	bioset_exit(&pc->bios);
	pc_pages_destroy(pc->pages);
	if (pc->policy)
		pc_host_destroy(pc->policy);
	if (pc->md)
		pc_metadata_free(pc->md);
	pc_metaio_destroy(pc->metaio);
	pc_pendings_exit(&pc->pendings);
	pc_blocks_exit(&pc->blocks);
	kvfree(pc->origin_writes);
	free_percpu(pc->stats);
	if (pc->metadata_dev)
		dm_put_device(pc->ti, pc->metadata_dev);
	if (pc->cache_dev)
		dm_put_device(pc->ti, pc->cache_dev);
	if (pc->origin_dev)
		dm_put_device(pc->ti, pc->origin_dev);
	kfree(pc);
}

/* Pending objects: room for twice the intents, and for a burst of fills. */
static u32 nr_pendings(u32 nr_cblocks)
{
	return max3(2 * max(1024u, nr_cblocks / 64), 8192u, nr_cblocks / 32);
}

static int init_core(struct pc_cache *pc, u32 nr_cblocks)
{
	u32 sub = pc_args_subblock_sectors(pc->block_sectors);
	int i, r;

	for (i = 0; i < PC_NR_SHARDS; i++)
		spin_lock_init(&pc->shards[i].lock);
	spin_lock_init(&pc->free_lock);
	spin_lock_init(&pc->pool_lock);
	spin_lock_init(&pc->md_lock);
	init_waitqueue_head(&pc->background_wait);
	r = pc_blocks_init(&pc->blocks, nr_cblocks, pc->block_sectors, sub, pc->ti->len);
	if (!r)
		r = pc_pendings_init(&pc->pendings, nr_pendings(nr_cblocks));
	if (r)
		return r;
	pc->stats = alloc_percpu(struct pc_stats);
	pc->origin_writes = kvcalloc(PC_NR_ORIGIN_WRITES, sizeof(*pc->origin_writes), GFP_KERNEL);
	pc->pages = pc_pages_create(PAGE_LIMIT);
	pc->wq = alloc_workqueue("pc/%s", WQ_MEM_RECLAIM | WQ_UNBOUND | WQ_HIGHPRI, 0, pc->name);
	pc->metaio = pc_metaio_create(pc->metadata_dev->bdev);
	if (!pc->stats || !pc->origin_writes || !pc->pages || !pc->wq || !pc->metaio)
		return -ENOMEM;
	return bioset_init(&pc->bios, BIO_RESERVE, 0, BIOSET_NEED_BVECS);
}

static int init_engines(struct pc_cache *pc)
{
	int r;

	pc_reclaim_init(pc);
	pc_loss_init(pc);
	pc_message_init(pc);
	r = pc_map_init(pc);
	if (!r)
		r = pc_fill_init(pc);
	if (!r)
		r = pc_intent_init(pc);
	if (!r)
		r = pc_writeback_init(pc);
	if (!r)
		r = pc_flush_init(pc);
	if (!r)
		r = pc_discard_init(pc);
	if (!r)
		r = pc_commit_init(&pc->commit, &pc_flush_commit_ops, pc, pc->name);
	pc->commit.interval_ms = pc->tunables.commit_ms;
	return r;
}

static int init_policy(struct pc_cache *pc, const struct pc_args *args, char *err)
{
	struct pc_policy_params params = {
		.nr_cblocks = pc->blocks.nr,
		.nr_oblocks = pc->blocks.nr_oblocks,
		.block_sectors = pc->block_sectors,
		.seed = get_random_u32(),
	};
	int r = 0;

	pc->policy = pc_host_create(&params, args->policy, args->pairs, args->nr_pairs, true, err,
				    &r);
	return pc->policy ? 0 : r;
}

/* Splits bios at a length that divides the block and that one piece can carry. */
static u32 max_io_sectors(u32 block_sectors)
{
	u32 n = min(block_sectors, PC_MAX_COPY_SECTORS);

	n -= n % PC_BLOCK_SECTORS_MIN;
	while (block_sectors % n)
		n -= PC_BLOCK_SECTORS_MIN;
	return n;
}

static int init_target(struct dm_target *ti, struct pc_cache *pc)
{
	ti->private = pc;
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	ti->num_discard_bios = 1;
	ti->discards_supported = true;
	ti->accounts_remapped_io = true;
	ti->per_io_data_size = sizeof(struct pc_bio);
	return dm_set_target_max_io_len(ti, max_io_sectors(pc->block_sectors));
}

static int construct(struct dm_target *ti, const struct pc_args *args, char *err)
{
	struct pc_cache *pc = kzalloc(sizeof(*pc), GFP_KERNEL);
	u32 nr_cblocks;
	int r;

	if (!pc)
		return -ENOMEM;
	pc->ti = ti;
	INIT_LIST_HEAD(&pc->instances);
	strscpy(pc->name, dm_device_name(dm_table_get_md(ti->table)), sizeof(pc->name));
	pc->block_sectors = args->block_sectors;
	pc->mode = pc->table_mode = args->mode;
	pc->metadata2 = args->metadata2;
	pc->discard_passdown = args->discard_passdown;
	pc->tunables = args->tunables;
	pc->stop_background = true;
	r = apply_defaults(pc, args->policy, err);
	if (!r)
		r = open_devices(pc, args, err);
	if (!r)
		r = check_sizes(pc, &nr_cblocks, err);
	if (!r)
		r = pc_instance_check(pc, err);
	if (!r)
		r = init_core(pc, nr_cblocks);
	if (!r)
		r = init_engines(pc);
	if (!r)
		r = pc_instance_inspect(pc, err);
	if (!r)
		r = init_policy(pc, args, err);
	if (!r)
		r = init_target(ti, pc);
	if (r) {
		destroy(pc);
		return r;
	}
	pc_instance_add(pc);
	return 0;
}

/* ti->error must outlive the call: the text of the last refusal. */
static char last_error[PC_ERR_SIZE];
static DEFINE_MUTEX(last_error_lock);

static int polycache_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct pc_args *args = kzalloc(sizeof(*args), GFP_KERNEL);
	char err[PC_ERR_SIZE] = "";
	int r = -ENOMEM;

	if (args)
		r = pc_args_parse_table(args, argc, argv, err);
	if (!r)
		r = construct(ti, args, err);
	kfree(args);
	if (r) {
		if (!err[0])
			snprintf(err, sizeof(err), "out of memory");
		mutex_lock(&last_error_lock);
		strscpy(last_error, err, sizeof(last_error));
		mutex_unlock(&last_error_lock);
		ti->error = last_error;
	}
	return r;
}

static void polycache_dtr(struct dm_target *ti)
{
	destroy(ti->private);
}

static int polycache_map(struct dm_target *ti, struct bio *bio)
{
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	return pc_map_bio(ti->private, bio);
}

static int polycache_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	return pc_endio(ti->private, bio, error);
}

static int polycache_preresume(struct dm_target *ti)
{
	struct pc_cache *pc = ti->private;
	unsigned int noio;
	int r;

	if (pc->running)
		return 0;
	noio = memalloc_noio_save();
	r = pc_instance_become_writer(pc);
	if (!r) {
		r = pc_instance_start(pc);
		if (r)
			pc_instance_cease_writer(pc);
	}
	memalloc_noio_restore(noio);
	if (r)
		return r;
	pc_commit_start(&pc->commit, pc->md);
	WRITE_ONCE(pc->running, true);
	return 0;
}

static void polycache_resume(struct dm_target *ti)
{
	struct pc_cache *pc = ti->private;

	WRITE_ONCE(pc->last_user_origin, jiffies);
	WRITE_ONCE(pc->stop_background, false);
	pc_message_apply(pc);
	pc_reclaim_kick(pc);
	queue_delayed_work(system_unbound_wq, &pc->tick_work, HZ);
}

static void polycache_presuspend(struct dm_target *ti)
{
	struct pc_cache *pc = ti->private;

	WRITE_ONCE(pc->stop_background, true);
}

static void polycache_presuspend_undo(struct dm_target *ti)
{
	polycache_resume(ti);
}

static void polycache_postsuspend(struct dm_target *ti)
{
	struct pc_cache *pc = ti->private;
	unsigned int noio;

	if (!pc->running)
		return;
	noio = memalloc_noio_save();
	/* a message that is under way ends first; later ones are refused */
	mutex_lock(&pc->message_lock);
	WRITE_ONCE(pc->running, false);
	mutex_unlock(&pc->message_lock);
	cancel_delayed_work_sync(&pc->tick_work);
	/* a work that was past its look at stop_background may have started something */
	flush_workqueue(pc->wq);
	pc_background_wait(pc);
	pc_writeback_stop(pc);
	cancel_work_sync(&pc->reclaim_work);
	cancel_work_sync(&pc->after_work);
	cancel_delayed_work_sync(&pc->intent_work);
	/* it writes the superblock, as the following does */
	cancel_work_sync(&pc->loss_work);
	flush_workqueue(pc->flush_wq);
	flush_workqueue(pc->discard_wq);
	pc_instance_close(pc);
	cancel_delayed_work_sync(&pc->intent_work);
	pc_instance_cease_writer(pc);
	memalloc_noio_restore(noio);
}

static void polycache_status(struct dm_target *ti, status_type_t type,
			     unsigned int status_flags, char *result, unsigned int maxlen)
{
	pc_status(ti->private, type, result, maxlen);
}

static int polycache_message(struct dm_target *ti, unsigned int argc, char **argv,
			     char *result, unsigned int maxlen)
{
	unsigned int noio = memalloc_noio_save();
	int r = pc_message(ti->private, argc, argv, result, maxlen);

	memalloc_noio_restore(noio);
	return r;
}

static int polycache_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn,
				     void *data)
{
	struct pc_cache *pc = ti->private;
	int r;

	r = fn(ti, pc->cache_dev, 0, bdev_nr_sectors(pc->cache_dev->bdev), data);
	if (!r)
		r = fn(ti, pc->origin_dev, 0, ti->len, data);
	return r;
}

static void polycache_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct pc_cache *pc = ti->private;
	u64 opt = limits->io_opt >> SECTOR_SHIFT;

	if (opt < pc->block_sectors || opt % pc->block_sectors) {
		limits->io_min = pc->block_sectors << SECTOR_SHIFT;
		limits->io_opt = pc->block_sectors << SECTOR_SHIFT;
	}
	pc->origin_discards = bdev_max_discard_sectors(pc->origin_dev->bdev);
	limits->discard_granularity = pc->blocks.sub_sectors << SECTOR_SHIFT;
	limits->max_discard_sectors = MAX_DISCARD_SECTORS;
	limits->max_hw_discard_sectors = MAX_DISCARD_SECTORS;
	if (pc->discard_passdown && pc->origin_discards) {
		u32 most = bdev_max_discard_sectors(pc->origin_dev->bdev);

		limits->max_discard_sectors = min(MAX_DISCARD_SECTORS, most);
		limits->max_hw_discard_sectors = limits->max_discard_sectors;
		limits->discard_granularity = max(limits->discard_granularity,
						  bdev_discard_granularity(pc->origin_dev->bdev));
	}
}

#define POLYCACHE_TARGET(pc_name, pc_version)			\
	{							\
		.name = pc_name,				\
		.version = pc_version,				\
		.module = THIS_MODULE,				\
		.ctr = polycache_ctr,				\
		.dtr = polycache_dtr,				\
		.map = polycache_map,				\
		.end_io = polycache_end_io,			\
		.presuspend = polycache_presuspend,		\
		.presuspend_undo = polycache_presuspend_undo,	\
		.postsuspend = polycache_postsuspend,		\
		.preresume = polycache_preresume,		\
		.resume = polycache_resume,			\
		.status = polycache_status,			\
		.message = polycache_message,			\
		.iterate_devices = polycache_iterate_devices,	\
		.io_hints = polycache_io_hints,			\
	}

#define VERSION(x, y, z) { x, y, z }

static struct target_type polycache_target = POLYCACHE_TARGET("polycache", VERSION(0, 1, 0));
/* LVM asks for 1.3, and for 1.10 to use metadata2; the kernel's own is 2.3 */
static struct target_type cache_target = POLYCACHE_TARGET("cache", VERSION(2, 3, 0));

#ifdef PC_BREAKABLE
unsigned int pc_broken;
module_param_named(broken, pc_broken, uint, 0644);
MODULE_PARM_DESC(broken, "rules to break, a bit each (broken.h); for tests of the tests");
#endif

static int __init polycache_init(void)
{
	int r = dm_register_target(&polycache_target);

	if (!r && lvm) {
		r = dm_register_target(&cache_target);
		if (r) {
			DMERR("lvm=1: a target named \"cache\" is registered already (error %d); unload dm-cache first",
			      r);
			dm_unregister_target(&polycache_target);
		}
	}
	return r;
}

static void __exit polycache_exit(void)
{
	if (lvm)
		dm_unregister_target(&cache_target);
	dm_unregister_target(&polycache_target);
}

module_init(polycache_init);
module_exit(polycache_exit);

MODULE_DESCRIPTION("device-mapper cache with exchangeable policies");
MODULE_LICENSE("GPL");
MODULE_VERSION(PC_VERSION);
