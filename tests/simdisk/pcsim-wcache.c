// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulated disk: the volatile write cache, as an undo log. The backing device
 * always holds the newest data; the log holds what a power cut may bring back.
 * A version is the old content of up to eight sectors (one 4 KiB unit) that
 * one write replaced. All versions are in a tree by (unit, write); those of a
 * write that has not completed hang on its request, the others on sim->done in
 * the order of completion. All of it is under sim->lock.
 *
 * A write becomes durable by dropping its versions, and with them the older
 * ones of the same sectors: what they would bring back is no longer possible.
 * A flush does that, when it completes, for writes that had completed before
 * it was submitted; a FUA write does it for itself; the oldest completed
 * writes do it when the log is full.
 */
#include "pcsim.h"

#include <linux/slab.h>

#define UNIT_SHIFT 3			/* sectors */
#define UNIT_SECTORS BIT(UNIT_SHIFT)
#define CHUNK_SECTORS (PCSIM_BOUNCE_PAGES * UNIT_SECTORS)

struct version {
	struct rb_node node;
	struct list_head link;		/* pcsim_req.versions or pcsim.done */
	u64 unit;
	u64 wseq;			/* of the write that replaced this */
	u64 epoch;			/* flushes seen when it completed */
	u8 mask;			/* sectors of the unit still undoable */
	u8 first;			/* what data begins with */
	u16 bytes;
	char *data;
};

static struct kmem_cache *version_cache;

int pcsim_wcache_module_init(void)
{
	version_cache = kmem_cache_create("pcsim_version", sizeof(struct version), 0, 0, NULL);
	return version_cache ? 0 : -ENOMEM;
}

void pcsim_wcache_module_exit(void)
{
	kmem_cache_destroy(version_cache);
}

void pcsim_wcache_init(struct pcsim *sim)
{
	sim->log = RB_ROOT;
	INIT_LIST_HEAD(&sim->done);
}

static struct version *to_version(struct rb_node *node)
{
	return rb_entry_safe(node, struct version, node);
}

static struct version *version_alloc(unsigned int bytes)
{
	gfp_t gfp = GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN;
	struct version *v = kmem_cache_zalloc(version_cache, gfp);

	if (!v)
		return NULL;
	v->data = kmalloc(bytes, gfp);
	if (!v->data) {
		kmem_cache_free(version_cache, v);
		return NULL;
	}
	v->bytes = bytes;
	INIT_LIST_HEAD(&v->link);
	return v;
}

static void version_free(struct version *v)
{
	kfree(v->data);
	kmem_cache_free(version_cache, v);
}

static u64 version_cost(const struct version *v)
{
	return sizeof(*v) + v->bytes;
}

static void version_drop(struct pcsim *sim, struct version *v)
{
	lockdep_assert_held(&sim->lock);

	rb_erase(&v->node, &sim->log);
	list_del(&v->link);
	sim->log_bytes -= version_cost(v);
	version_free(v);
}

/* Forgets "mask" of "v" and of all older versions of its unit. */
static void forget_upto(struct pcsim *sim, struct version *v, u8 mask)
{
	u64 unit = v->unit;

	while (v && v->unit == unit) {
		struct version *older = to_version(rb_prev(&v->node));

		v->mask &= ~mask;
		if (!v->mask)
			version_drop(sim, v);
		v = older;
	}
}

static void make_durable(struct pcsim *sim, struct version *v)
{
	forget_upto(sim, v, v->mask);
}

/* The last version with unit <= "unit". */
static struct version *find_last(struct pcsim *sim, u64 unit)
{
	struct rb_node *node = sim->log.rb_node;
	struct version *best = NULL;

	while (node) {
		struct version *v = to_version(node);

		if (v->unit <= unit) {
			best = v;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return best;
}

static bool version_less(struct rb_node *a, const struct rb_node *b)
{
	const struct version *va = rb_entry(a, struct version, node);
	const struct version *vb = rb_entry(b, struct version, node);

	return va->unit != vb->unit ? va->unit < vb->unit : va->wseq < vb->wseq;
}

/* True if there is room, after the oldest completed writes became durable. */
static bool make_room(struct pcsim *sim, u64 cost)
{
	u64 limit = (u64)READ_ONCE(sim->cfg.wcache_kb) << 10;

	lockdep_assert_held(&sim->lock);

	while (sim->log_bytes + cost > limit && !list_empty(&sim->done))
		make_durable(sim, list_first_entry(&sim->done, struct version, link));
	return sim->log_bytes + cost <= limit;
}

/*
 * Saves sectors [first, first + nr) of a unit, whose old content is at "old".
 * Without memory for it the write is durable from the start: a cache may write
 * back whenever it likes.
 */
static void log_unit(struct pcsim_req *req, u64 unit, unsigned int first, unsigned int nr,
		     const char *old)
{
	struct pcsim *sim = req->sim;
	u8 mask = GENMASK(first + nr - 1, first);
	struct version *v = version_alloc(nr << SECTOR_SHIFT);

	if (v) {
		v->unit = unit;
		v->wseq = sim->wseq;
		v->mask = mask;
		v->first = first;
		memcpy(v->data, old, v->bytes);
	}

	spin_lock_irq(&sim->lock);
	if (v && make_room(sim, version_cost(v))) {
		sim->log_bytes += version_cost(v);
		rb_add(&v->node, &sim->log, version_less);
		list_add_tail(&v->link, &req->versions);
		v = NULL;
	} else {
		struct version *last = find_last(sim, unit);

		if (last && last->unit == unit)
			forget_upto(sim, last, mask);
	}
	spin_unlock_irq(&sim->lock);

	if (v)
		version_free(v);
}

static blk_status_t log_chunk(struct pcsim_req *req, sector_t sector, unsigned int nr)
{
	struct pcsim *sim = req->sim;
	unsigned int into = sector & (UNIT_SECTORS - 1);
	unsigned int i = 0;
	blk_status_t status;

	/* Bounce page i holds unit i, each sector at its place in the unit. */
	status = pcsim_data_rw(sim, REQ_OP_READ, sector, nr << SECTOR_SHIFT, into << SECTOR_SHIFT);
	while (!status && nr) {
		unsigned int here = min_t(unsigned int, nr, UNIT_SECTORS - into);
		const char *page = page_address(sim->bounce[i++]);

		log_unit(req, sector >> UNIT_SHIFT, into, here, page + (into << SECTOR_SHIFT));
		sector += here;
		nr -= here;
		into = 0;
	}
	return status;
}

/* A discard of more than the log should hold is durable at once. */
static bool log_nothing(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;
	u64 first = req->sector >> UNIT_SHIFT;
	u64 last = (req->sector + (req->bytes >> SECTOR_SHIFT) - 1) >> UNIT_SHIFT;
	struct version *v;

	if (req->op != PCSIM_DISCARD || req->bytes >> 10 <= READ_ONCE(sim->cfg.wcache_kb) / 4)
		return false;

	spin_lock_irq(&sim->lock);
	v = find_last(sim, last);
	while (v && v->unit >= first) {
		struct version *older = to_version(rb_prev(&v->node));

		version_drop(sim, v);
		v = older;
	}
	spin_unlock_irq(&sim->lock);
	return true;
}

/* In the worker, before the data of a write or discard goes to the device. */
blk_status_t pcsim_wcache_log(struct pcsim_req *req)
{
	unsigned int left = req->bytes >> SECTOR_SHIFT;
	sector_t sector = req->sector;
	blk_status_t status = BLK_STS_OK;

	req->sim->wseq++;
	if (log_nothing(req))
		return BLK_STS_OK;
	while (left && !status) {
		unsigned int into = sector & (UNIT_SECTORS - 1);
		unsigned int nr = min_t(unsigned int, left, CHUNK_SECTORS - into);

		status = log_chunk(req, sector, nr);
		sector += nr;
		left -= nr;
		cond_resched();
	}
	return status;
}

/* Covers what has completed by now, not what completes while it is served. */
void pcsim_wcache_flush_start(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;
	unsigned long flags;

	spin_lock_irqsave(&sim->lock, flags);
	req->epoch = ++sim->epoch;
	spin_unlock_irqrestore(&sim->lock, flags);
}

static void finish_flush(struct pcsim *sim, u64 epoch)
{
	struct version *v;

	while ((v = list_first_entry_or_null(&sim->done, struct version, link)) &&
	       v->epoch < epoch)
		make_durable(sim, v);
}

static void finish_write(struct pcsim *sim, struct pcsim_req *req, bool fua)
{
	struct version *v, *next;

	list_for_each_entry_safe(v, next, &req->versions, link) {
		if (fua)
			make_durable(sim, v);
		else
			v->epoch = sim->epoch;
	}
	list_splice_tail_init(&req->versions, &sim->done);
}

/* Just before the bio ends, in any context; returns what it ends with. */
blk_status_t pcsim_wcache_finish(struct pcsim_req *req, blk_status_t status)
{
	struct pcsim *sim = req->sim;
	bool durable;
	unsigned long flags;

	spin_lock_irqsave(&sim->lock, flags);
	if (pcsim_is_dead(sim))
		status = BLK_STS_IOERR;
	durable = !status && !READ_ONCE(sim->cfg.ignore_flush);
	if (req->op != PCSIM_FLUSH)
		finish_write(sim, req, durable && req->fua);
	else if (durable)
		finish_flush(sim, req->epoch);
	spin_unlock_irqrestore(&sim->lock, flags);
	return status;
}

/* Everything that has completed becomes durable. */
void pcsim_wcache_sync(struct pcsim *sim)
{
	spin_lock_irq(&sim->lock);
	finish_flush(sim, U64_MAX);
	spin_unlock_irq(&sim->lock);
}

/* How a cut chooses what is lost. */
enum cut_kind { CUT_SECTOR, CUT_UNIT, CUT_WRITE, CUT_TAIL, CUT_ALL, CUT_NONE };

struct cut {
	enum cut_kind kind;
	u64 lost_of_256;
	u64 seed;
	u64 first_lost;			/* CUT_TAIL: writes from this on */
	sector_t grain;			/* sectors that are lost together */
};

static const char * const cut_names[] = { "sector", "unit", "write", "tail", "all", "none" };

bool pcsim_wcache_mode_valid(const char *mode)
{
	return match_string(cut_names, ARRAY_SIZE(cut_names), mode) >= 0;
}

static void cut_choose(struct pcsim *sim, struct cut *cut, u64 seed, const char *mode)
{
	static const struct {
		enum cut_kind kind;
		u64 lost_of_256;
	} kinds[] = {
		{ CUT_SECTOR, 128 }, { CUT_SECTOR, 32 }, { CUT_SECTOR, 224 }, { CUT_UNIT, 128 },
		{ CUT_WRITE, 128 }, { CUT_WRITE, 224 }, { CUT_TAIL, 0 }, { CUT_ALL, 0 },
	};
	u64 pick, min = U64_MAX, max = 0, span;
	struct rb_node *node;

	cut->seed = pcsim_mix(pcsim_mix(seed) ^ sim->cfg.seed);
	pick = pcsim_mix(cut->seed) % ARRAY_SIZE(kinds);
	cut->kind = kinds[pick].kind;
	cut->lost_of_256 = kinds[pick].lost_of_256;
	if (mode) {
		cut->kind = match_string(cut_names, ARRAY_SIZE(cut_names), mode);
		cut->lost_of_256 = 128;
	}
	cut->grain = sim->cfg.lbs >> SECTOR_SHIFT;

	for (node = rb_first(&sim->log); node; node = rb_next(node)) {
		min = min(min, to_version(node)->wseq);
		max = max(max, to_version(node)->wseq);
	}
	span = max >= min ? max - min + 2 : 1;
	cut->first_lost = min + (pcsim_mix(cut->seed ^ 0x7461696c) >> 1) % span;
}

static bool is_lost(const struct cut *cut, const struct version *v, sector_t sector)
{
	u64 place;

	switch (cut->kind) {
	case CUT_ALL:
		return true;
	case CUT_NONE:
		return false;
	case CUT_TAIL:
		return v->wseq >= cut->first_lost;
	case CUT_WRITE:
		place = 0;
		break;
	case CUT_UNIT:
		place = v->unit + 1;
		break;
	default:
		place = sector - (sector & (cut->grain - 1)) + 1;
	}
	return (pcsim_mix(pcsim_mix(cut->seed ^ v->wseq) ^ place) & 255) < cut->lost_of_256;
}

/*
 * The content that sector "s" of the unit goes back to, NULL if the newest
 * stays: from the newest version down to the first write that is not lost.
 */
static const char *cut_content(const struct cut *cut, struct version *newest, unsigned int s)
{
	struct version *v = newest;
	const char *content = NULL;

	while (v && v->unit == newest->unit) {
		if (v->mask & BIT(s)) {
			if (!is_lost(cut, v, (v->unit << UNIT_SHIFT) + s))
				break;
			content = v->data + ((s - v->first) << SECTOR_SHIFT);
		}
		v = to_version(rb_prev(&v->node));
	}
	return content;
}

static u8 unit_mask(struct version *newest)
{
	struct version *v = newest;
	u8 mask = 0;

	while (v && v->unit == newest->unit) {
		mask |= v->mask;
		v = to_version(rb_prev(&v->node));
	}
	return mask;
}

static blk_status_t write_back_runs(struct pcsim *sim, u64 unit, u8 mask)
{
	sector_t sector = unit << UNIT_SHIFT;
	blk_status_t status = BLK_STS_OK;
	unsigned int s = 0, nr;

	while (s < UNIT_SECTORS && !status) {
		for (nr = 0; s + nr < UNIT_SECTORS && mask & BIT(s + nr); nr++)
			;
		if (nr)
			status = pcsim_data_rw(sim, REQ_OP_WRITE, sector + s, nr << SECTOR_SHIFT,
					       s << SECTOR_SHIFT);
		s += nr + 1;
	}
	return status;
}

static blk_status_t cut_unit(struct pcsim *sim, const struct cut *cut, struct version *newest)
{
	char *page = page_address(sim->bounce[0]);
	u8 mask = unit_mask(newest);
	u8 lost = 0;
	unsigned int s;

	for (s = 0; s < UNIT_SECTORS; s++) {
		const char *content = mask & BIT(s) ? cut_content(cut, newest, s) : NULL;

		if (content) {
			memcpy(page + (s << SECTOR_SHIFT), content, SECTOR_SIZE);
			lost |= BIT(s);
		}
	}
	sim->cut_volatile += hweight8(mask);
	sim->cut_lost += hweight8(lost);
	return write_back_runs(sim, newest->unit, lost);
}

/*
 * The device is dead and no request is left, so nobody else looks at the log
 * although this sleeps and holds no spinlock. Called under pcsim_mutex.
 */
int pcsim_wcache_cut(struct pcsim *sim, u64 seed, const char *mode)
{
	struct version *v = to_version(rb_first(&sim->log)), *next;
	blk_status_t status = BLK_STS_OK;
	struct cut cut;

	cut_choose(sim, &cut, seed, mode);
	sim->cut_lost = 0;
	sim->cut_volatile = 0;
	for (; v && !status; v = next) {
		next = to_version(rb_next(&v->node));
		if (!next || next->unit != v->unit)
			status = cut_unit(sim, &cut, v);
		cond_resched();
	}
	pcsim_wcache_sync(sim);
	sim->wseq = 0;
	return blk_status_to_errno(status);
}
