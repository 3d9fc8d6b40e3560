// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulated disk: the device-mapper side. Owns the table line (one table of
 * keys parses, checks and prints it), creation and removal, limits, status and
 * the way of a bio from map to one of: the backing device at once, a request
 * with a time and a data part, or an error. map may run on any CPU and takes
 * no lock for a request that costs nothing.
 */
#include "pcsim.h"

#include <linux/module.h>
#include <linux/slab.h>

DEFINE_MUTEX(pcsim_mutex);
static LIST_HEAD(pcsim_powers);		/* named ones, under pcsim_mutex */

#define SECONDS_60 60000000

struct pcsim_key {
	const char *name;
	size_t at;
	u32 min;
	u32 max;
	bool fixed;			/* cannot be changed by message */
	const char * const *names;	/* words instead of numbers */
};

static const char * const move_names[] = { "early", "late", "random" };
static const char * const discard_names[] = { "none", "pass", "zero" };

#define KEY(field, min, max) { #field, offsetof(struct pcsim_cfg, field), min, max }
#define KEY_FIXED(field, min, max) { #field, offsetof(struct pcsim_cfg, field), min, max, true }
#define KEY_NAMED(field, fixed, names) \
	{ #field, offsetof(struct pcsim_cfg, field), 0, ARRAY_SIZE(names) - 1, fixed, names }

static const struct pcsim_key keys[] = {
	KEY(servers, 1, 1024),
	KEY(read_us, 0, SECONDS_60),
	KEY(write_us, 0, SECONDS_60),
	KEY(flush_us, 0, SECONDS_60),
	KEY(discard_us, 0, SECONDS_60),
	KEY(seek_us_min, 0, SECONDS_60),
	KEY(seek_us_max, 0, SECONDS_60),
	KEY(rot_us, 0, SECONDS_60),
	KEY(bytes_per_us, 0, 1000000),
	KEY(near_kb, 0, 1048576),
	KEY(elevator, 0, 1),
	KEY_NAMED(move, false, move_names),
	KEY_FIXED(wcache, 0, 1),
	KEY(wcache_kb, 4, 1048576),
	KEY(ignore_flush, 0, 1),
	KEY_NAMED(discard, true, discard_names),
	KEY_FIXED(lbs, 512, 4096),
	KEY_FIXED(offset, 0, U32_MAX),
	KEY(seed, 0, U32_MAX),
};

static const struct pcsim_cfg config_default = {
	.servers = 1, .wcache_kb = 32768, .discard = PCSIM_DISCARD_PASS, .lbs = 512, .seed = 1,
};

static const struct pcsim_cfg config_hdd = {
	.servers = 1, .read_us = 10, .write_us = 10, .flush_us = 4000,
	.seek_us_min = 600, .seek_us_max = 8600, .rot_us = 8333, .bytes_per_us = 150,
	.near_kb = 256, .wcache_kb = 32768, .discard = PCSIM_DISCARD_PASS, .lbs = 512, .seed = 1,
};

static const struct pcsim_cfg config_ssd = {
	.servers = 32, .read_us = 90, .write_us = 30, .flush_us = 300, .bytes_per_us = 500,
	.wcache_kb = 32768, .discard = PCSIM_DISCARD_PASS, .lbs = 512, .seed = 1,
};

static u32 *config_field(struct pcsim_cfg *cfg, const struct pcsim_key *key)
{
	return (u32 *)((char *)cfg + key->at);
}

static int parse_value(const struct pcsim_key *key, const char *value, u32 *v)
{
	int r;

	if (key->names) {
		r = match_string(key->names, key->max + 1, value);
		*v = r;
		if (r < 0)
			DMERR("%s: \"%s\" is not among its words", key->name, value);
		return min(r, 0);
	}
	r = kstrtou32(value, 10, v);
	if (r) {
		DMERR("%s: \"%s\" is no number", key->name, value);
		return r;
	}
	if (*v < key->min || *v > key->max) {
		DMERR("%s: %u is not within %u to %u", key->name, *v, key->min, key->max);
		return -ERANGE;
	}
	return 0;
}

/* 0, -ENOENT: no such key, -EPERM: fixed at creation, -EINVAL or -ERANGE: bad value */
int pcsim_config_set(struct pcsim_cfg *cfg, const char *name, const char *value, bool at_run_time)
{
	const struct pcsim_key *key;
	u32 v;
	int r;

	for (key = keys; key < keys + ARRAY_SIZE(keys); key++)
		if (!strcmp(key->name, name))
			break;
	if (key == keys + ARRAY_SIZE(keys)) {
		DMERR("unknown key \"%s\"", name);
		return -ENOENT;
	}
	if (at_run_time && key->fixed) {
		DMERR("%s can only be set by the table", name);
		return -EPERM;
	}

	r = parse_value(key, value, &v);
	if (r)
		return r;
	WRITE_ONCE(*config_field(cfg, key), v);
	return 0;
}

static int parse_keys(struct pcsim *sim, struct dm_arg_set *as, const char **domain)
{
	while (as->argc) {
		const char *key = dm_shift_arg(as);
		const char *value = dm_shift_arg(as);

		if (!value) {
			sim->ti->error = "A key without a value";
			return -EINVAL;
		}
		if (!strcmp(key, "domain")) {
			*domain = value;
			continue;
		}
		if (pcsim_config_set(&sim->cfg, key, value, false)) {
			sim->ti->error = "Invalid key or value (see the log)";
			return -EINVAL;
		}
	}
	if (sim->cfg.seek_us_max < sim->cfg.seek_us_min)
		sim->cfg.seek_us_max = sim->cfg.seek_us_min;
	if (sim->cfg.lbs != 512 && sim->cfg.lbs != 4096) {
		sim->ti->error = "lbs must be 512 or 4096";
		return -EINVAL;
	}
	return 0;
}

static int check_backing(struct pcsim *sim)
{
	struct dm_target *ti = sim->ti;
	unsigned int unit = sim->cfg.lbs >> SECTOR_SHIFT;

	if (bdev_logical_block_size(pcsim_bdev(sim)) > sim->cfg.lbs) {
		ti->error = "lbs is smaller than the backing device's logical block size";
		return -EINVAL;
	}
	if ((ti->len | sim->cfg.offset) & (unit - 1)) {
		ti->error = "Length or offset is not a multiple of lbs";
		return -EINVAL;
	}
	if (bdev_nr_sectors(pcsim_bdev(sim)) < sim->cfg.offset + ti->len) {
		ti->error = "Backing device too small";
		return -EINVAL;
	}
	return 0;
}

static struct pcsim_power *power_find(const char *name)
{
	struct pcsim_power *power;

	if (name)
		list_for_each_entry(power, &pcsim_powers, link)
			if (!strcmp(power->name, name))
				return power;
	return NULL;
}

static int power_join(struct pcsim *sim, const char *name)
{
	struct pcsim_power *power;

	mutex_lock(&pcsim_mutex);
	power = power_find(name);
	if (!power) {
		power = kzalloc(sizeof(*power), GFP_KERNEL);
		if (!power) {
			mutex_unlock(&pcsim_mutex);
			return -ENOMEM;
		}
		INIT_LIST_HEAD(&power->members);
		INIT_LIST_HEAD(&power->link);
		if (name) {
			strscpy(power->name, name, sizeof(power->name));
			list_add(&power->link, &pcsim_powers);
		}
	}
	sim->power = power;
	list_add_tail(&sim->member, &power->members);
	mutex_unlock(&pcsim_mutex);
	return 0;
}

static void power_leave(struct pcsim *sim)
{
	mutex_lock(&pcsim_mutex);
	list_del(&sim->member);
	if (list_empty(&sim->power->members)) {
		list_del(&sim->power->link);
		kfree(sim->power);
	}
	mutex_unlock(&pcsim_mutex);
}

static struct pcsim *sim_alloc(struct dm_target *ti)
{
	struct pcsim *sim = kzalloc(sizeof(*sim), GFP_KERNEL);

	if (!sim)
		return NULL;
	sim->ti = ti;
	sim->cfg = config_default;
	spin_lock_init(&sim->lock);
	init_waitqueue_head(&sim->idle_wait);
	INIT_LIST_HEAD(&sim->faults);
	sim->stats = alloc_percpu(struct pcsim_stats);
	if (!sim->stats) {
		kfree(sim);
		return NULL;
	}
	pcsim_wcache_init(sim);
	return sim;
}

static void sim_free(struct pcsim *sim)
{
	pcsim_faults_clear(sim);
	free_percpu(sim->stats);
	kfree(sim);
}

static void take_preset(struct pcsim *sim, struct dm_arg_set *as)
{
	if (!as->argc)
		return;
	if (!strcmp(as->argv[0], "hdd")) {
		sim->cfg = config_hdd;
		sim->preset = "hdd";
	} else if (!strcmp(as->argv[0], "ssd")) {
		sim->cfg = config_ssd;
		sim->preset = "ssd";
	}
	if (sim->preset)
		dm_shift_arg(as);
}

static void target_setup(struct pcsim *sim)
{
	struct dm_target *ti = sim->ti;

	ti->private = sim;
	ti->per_io_data_size = sizeof(struct pcsim_req);
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	if (sim->cfg.discard != PCSIM_DISCARD_NONE) {
		ti->num_discard_bios = 1;
		ti->discards_supported = true;
	}
}

/* pcsim <backing dev> [hdd|ssd] [<key> <value>]... */
static int pcsim_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	const char *domain = NULL;
	struct pcsim *sim;
	int r;

	if (!argc) {
		ti->error = "No backing device";
		return -EINVAL;
	}
	sim = sim_alloc(ti);
	if (!sim) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}

	r = dm_get_device(ti, dm_shift_arg(&as), dm_table_get_mode(ti->table), &sim->dev);
	if (r) {
		ti->error = "Cannot open the backing device";
		goto bad_free;
	}
	take_preset(sim, &as);
	r = parse_keys(sim, &as, &domain);
	if (!r)
		r = check_backing(sim);
	if (r)
		goto bad_put;
	sim->backing_discards = bdev_max_discard_sectors(pcsim_bdev(sim)) != 0;

	r = pcsim_data_init(sim);
	if (r) {
		ti->error = "Out of memory";
		goto bad_put;
	}
	r = power_join(sim, domain);
	if (r) {
		ti->error = "Out of memory";
		goto bad_data;
	}
	pcsim_model_init(sim);
	target_setup(sim);
	return 0;

bad_data:
	pcsim_data_exit(sim);
bad_put:
	dm_put_device(ti, sim->dev);
bad_free:
	sim_free(sim);
	return r;
}

static void pcsim_dtr(struct dm_target *ti)
{
	struct pcsim *sim = ti->private;

	power_leave(sim);		/* after this no cut of the domain reaches it */
	pcsim_model_exit(sim);
	pcsim_data_exit(sim);
	pcsim_wcache_sync(sim);
	dm_put_device(ti, sim->dev);
	sim_free(sim);
}

/* A suspend waits for all requests, so none may be held. */
static void pcsim_presuspend(struct dm_target *ti)
{
	pcsim_model_release(ti->private);
}

static enum pcsim_op classify(const struct bio *bio)
{
	if (bio->bi_opf & REQ_PREFLUSH)
		return PCSIM_FLUSH;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return PCSIM_DISCARD;
	return op_is_write(bio_op(bio)) ? PCSIM_WRITE : PCSIM_READ;
}

static void count(struct pcsim *sim, enum pcsim_op op, const struct bio *bio)
{
	this_cpu_inc(sim->stats->ops[op]);
	switch (op) {
	case PCSIM_READ:
		this_cpu_add(sim->stats->read_bytes, bio->bi_iter.bi_size);
		break;
	case PCSIM_WRITE:
		this_cpu_add(sim->stats->write_bytes, bio->bi_iter.bi_size);
		if (bio->bi_opf & REQ_FUA)
			this_cpu_inc(sim->stats->fua);
		break;
	case PCSIM_DISCARD:
		this_cpu_add(sim->stats->discard_bytes, bio->bi_iter.bi_size);
		break;
	default:
		break;
	}
}

/* The model counts the seeks of timed requests, in the order of service. */
static void count_untimed_seek(struct pcsim *sim, enum pcsim_op op, const struct bio *bio,
			       sector_t sector)
{
	if (op != PCSIM_READ && op != PCSIM_WRITE)
		return;
	if (READ_ONCE(sim->last_end) != sector)
		this_cpu_inc(sim->stats->seeks);
	WRITE_ONCE(sim->last_end, sector + bio_sectors(bio));
}

static int fail_now(struct pcsim *sim)
{
	this_cpu_inc(sim->stats->errors);
	return DM_MAPIO_KILL;
}

static bool decide_late(struct pcsim *sim, bool timed)
{
	u32 move = READ_ONCE(sim->cfg.move);
	u64 rnd;

	if (!timed || move == PCSIM_MOVE_EARLY)
		return false;
	if (move == PCSIM_MOVE_LATE)
		return true;
	rnd = READ_ONCE(sim->rnd);
	WRITE_ONCE(sim->rnd, rnd + 1);
	return pcsim_mix(rnd ^ 0x6c617465) & 1;
}

static bool has_data(const struct pcsim_req *req)
{
	const struct pcsim *sim = req->sim;

	if (req->op == PCSIM_DISCARD)
		return sim->backing_discards || sim->cfg.discard == PCSIM_DISCARD_ZERO;
	return true;
}

/*
 * Gives the request its parts and sets them going. The time part is started
 * first: it may end at once on another CPU, but the data part keeps the
 * request alive until it is started in turn. A late data part is started by
 * the end of the time part.
 */
static int start_request(struct pcsim_req *req, bool timed)
{
	struct pcsim *sim = req->sim;
	bool data = !req->status && has_data(req);
	bool late = data && req->late;

	if (!data && !timed) {
		atomic_set(&req->parts, 1);
		pcsim_req_put(req);
		return DM_MAPIO_SUBMITTED;
	}
	req->late = late;
	atomic_set(&req->parts, data + timed);
	if (timed)
		pcsim_model_add(req);
	if (!data || late)
		return DM_MAPIO_SUBMITTED;
	if (pcsim_data_needs_worker(sim, req->op))
		pcsim_data_queue(req);
	else
		pcsim_data_submit(req);
	return DM_MAPIO_SUBMITTED;
}

static void request_init(struct pcsim_req *req, struct pcsim *sim, enum pcsim_op op,
			 struct bio *bio, sector_t sector)
{
	req->sim = sim;
	req->op = op;
	req->fua = bio->bi_opf & REQ_FUA;
	req->late = false;
	req->status = BLK_STS_OK;
	req->sector = sector;
	req->bytes = bio->bi_iter.bi_size;
	req->end_io = bio->bi_end_io;
	req->private = bio->bi_private;
	req->epoch = 0;
	INIT_LIST_HEAD(&req->versions);
}

static bool pass_at_once(struct pcsim *sim, enum pcsim_op op, bool timed)
{
	if (timed || READ_ONCE(sim->nr_faults))
		return false;
	if (op == PCSIM_READ)
		return true;
	if (sim->cfg.wcache || pcsim_data_needs_worker(sim, op))
		return false;
	return op != PCSIM_DISCARD || sim->backing_discards;
}

static int pcsim_map(struct dm_target *ti, struct bio *bio)
{
	struct pcsim *sim = ti->private;
	enum pcsim_op op = classify(bio);
	sector_t sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	bool timed = pcsim_model_is_timed(sim, op);
	struct pcsim_req *req;

	bio_set_dev(bio, pcsim_bdev(sim));
	if (bio_sectors(bio))
		bio->bi_iter.bi_sector = pcsim_backing_sector(sim, sector);
	if (unlikely(pcsim_is_dead(sim)))
		return fail_now(sim);
	count(sim, op, bio);
	if (!timed)
		count_untimed_seek(sim, op, bio, sector);
	if (READ_ONCE(sim->held_mask) & BIT(op))
		timed = true;
	if (pass_at_once(sim, op, timed))
		return DM_MAPIO_REMAPPED;

	req = dm_per_bio_data(bio, sizeof(*req));
	request_init(req, sim, op, bio, sector);
	if (READ_ONCE(sim->nr_faults) && pcsim_fault_hit(sim, req)) {
		if (!timed)
			return fail_now(sim);
		req->status = BLK_STS_IOERR;
	}
	req->late = decide_late(sim, timed);

	atomic_inc(&sim->inflight);
	/* Pairs with the barrier in drain() of pcsim-message.c: either this
	 * sees the device dead, or cut waits for this request.
	 */
	smp_mb__after_atomic();
	if (unlikely(pcsim_is_dead(sim)))
		req->status = BLK_STS_IOERR;
	if (op == PCSIM_FLUSH && sim->cfg.wcache)
		pcsim_wcache_flush_start(req);
	return start_request(req, timed);
}

/* Requests that went straight through and were overtaken by a power cut. */
static int pcsim_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	if (unlikely(pcsim_is_dead(ti->private)) && !*error)
		*error = BLK_STS_IOERR;
	return DM_ENDIO_DONE;
}

void pcsim_stats_sum(struct pcsim *sim, struct pcsim_stats *sum)
{
	u64 *to = (u64 *)sum;
	unsigned int i;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const u64 *from = (const u64 *)per_cpu_ptr(sim->stats, cpu);

		for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
			to[i] += READ_ONCE(from[i]);
	}
}

static unsigned int emit_table(struct pcsim *sim, char *result, unsigned int maxlen)
{
	const struct pcsim_key *key;
	unsigned int sz = 0;

	DMEMIT("%s", sim->dev->name);
	if (sim->preset)
		DMEMIT(" %s", sim->preset);
	for (key = keys; key < keys + ARRAY_SIZE(keys); key++) {
		u32 v = *config_field(&sim->cfg, key);

		if (key->names)
			DMEMIT(" %s %s", key->name, key->names[v]);
		else
			DMEMIT(" %s %u", key->name, v);
	}
	if (sim->power->name[0])
		DMEMIT(" domain %s", sim->power->name);
	return sz;
}

static void pcsim_status(struct dm_target *ti, status_type_t type, unsigned int flags,
			 char *result, unsigned int maxlen)
{
	struct pcsim *sim = ti->private;

	switch (type) {
	case STATUSTYPE_INFO:
		pcsim_emit_stats(sim, result, maxlen, ' ');
		break;
	case STATUSTYPE_TABLE:
		emit_table(sim, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int pcsim_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct pcsim *sim = ti->private;

	return fn(ti, sim->dev, sim->cfg.offset, ti->len, data);
}

static void pcsim_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct pcsim *sim = ti->private;
	u32 lbs = sim->cfg.lbs;

	limits->logical_block_size = lbs;
	limits->physical_block_size = max_t(u32, limits->physical_block_size, lbs);
	limits->io_min = max_t(u32, limits->io_min, lbs);
	if (sim->cfg.discard != PCSIM_DISCARD_NONE) {
		limits->discard_granularity = max_t(u32, limits->discard_granularity, lbs);
		if (!sim->backing_discards) {
			limits->max_discard_sectors = 1U << 22;
			limits->max_hw_discard_sectors = 1U << 22;
		}
	}
}

static struct target_type pcsim_target = {
	.name = "pcsim",
	.version = {1, 0, 0},
	.module = THIS_MODULE,
	.ctr = pcsim_ctr,
	.dtr = pcsim_dtr,
	.map = pcsim_map,
	.end_io = pcsim_end_io,
	.presuspend = pcsim_presuspend,
	.status = pcsim_status,
	.message = pcsim_message,
	.iterate_devices = pcsim_iterate_devices,
	.io_hints = pcsim_io_hints,
};

static int __init pcsim_init(void)
{
	int r = pcsim_wcache_module_init();

	if (r)
		return r;
	r = dm_register_target(&pcsim_target);
	if (r)
		pcsim_wcache_module_exit();
	return r;
}

static void __exit pcsim_exit(void)
{
	dm_unregister_target(&pcsim_target);
	pcsim_wcache_module_exit();
}

module_init(pcsim_init);
module_exit(pcsim_exit);

MODULE_DESCRIPTION("device-mapper simulated disk for tests");
MODULE_AUTHOR("dm-polycache developers");
MODULE_LICENSE("GPL");
