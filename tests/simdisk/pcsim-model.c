// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulated disk: time. Owns the queue, the servers and the timer, all under
 * sim->lock. A request waits in the queue until a server takes it, is then in
 * the tree of busy ones with a due time, and is put by the timer's interrupt
 * when that is reached. A server that gets free at its due time starts the
 * next request from that very instant, however late the interrupt came, so a
 * device that is kept busy keeps its rate on a slow machine.
 */
#include "pcsim.h"

#include <linux/math64.h>

/* The oldest request is not passed over for longer than this. */
#define ELEVATOR_MAX_WAIT_MS 500

bool pcsim_model_is_timed(const struct pcsim *sim, enum pcsim_op op)
{
	const struct pcsim_cfg *cfg = &sim->cfg;

	switch (op) {
	case PCSIM_FLUSH:
		return READ_ONCE(cfg->flush_us);
	case PCSIM_DISCARD:
		return READ_ONCE(cfg->discard_us);
	default:
		return READ_ONCE(cfg->seek_us_max) | READ_ONCE(cfg->seek_us_min) |
		       READ_ONCE(cfg->rot_us) | READ_ONCE(cfg->bytes_per_us) |
		       (op == PCSIM_READ ? READ_ONCE(cfg->read_us) : READ_ONCE(cfg->write_us));
	}
}

static sector_t sectors(const struct pcsim_req *req)
{
	return req->bytes >> SECTOR_SHIFT;
}

static u64 distance(const struct pcsim *sim, const struct pcsim_req *req)
{
	return req->sector > sim->head ? req->sector - sim->head : sim->head - req->sector;
}

static u64 seek_ns(struct pcsim *sim, u64 dist)
{
	u64 min = READ_ONCE(sim->cfg.seek_us_min);
	u64 max = READ_ONCE(sim->cfg.seek_us_max);
	u64 rot = READ_ONCE(sim->cfg.rot_us);
	u64 ns = min * NSEC_PER_USEC;

	if (max > min) {
		u64 root = int_sqrt64(div64_u64(dist << 20, sim->ti->len));

		ns += (max - min) * NSEC_PER_USEC * root >> 10;
	}
	if (rot) {
		WRITE_ONCE(sim->rnd, sim->rnd + 1);
		ns += mul_u64_u32_shr(rot * NSEC_PER_USEC, pcsim_mix(sim->rnd) >> 32, 32);
	}
	this_cpu_inc(sim->stats->seeks);
	this_cpu_add(sim->stats->seek_ns, ns);
	return ns;
}

static u64 transfer_ns(const struct pcsim *sim, u64 bytes)
{
	u32 rate = READ_ONCE(sim->cfg.bytes_per_us);

	return rate ? div_u64(bytes * NSEC_PER_USEC, rate) : 0;
}

/*
 * Moving the head. Adjacent: free. Within near_kb behind the head and part of
 * the present run: still in the drive's buffer. Within near_kb ahead: passed
 * over at the speed of a transfer. All else is a seek.
 */
static u64 position_ns(struct pcsim *sim, const struct pcsim_req *req)
{
	u64 near = (u64)READ_ONCE(sim->cfg.near_kb) << (10 - SECTOR_SHIFT);
	sector_t end = req->sector + sectors(req);
	u64 dist = distance(sim, req);
	u64 ns = 0;

	if (req->sector < sim->head && req->op == PCSIM_READ && dist <= near &&
	    req->sector >= sim->run_start && end <= sim->head)
		return 0;
	if (req->sector > sim->head && dist <= near)
		ns = transfer_ns(sim, dist << SECTOR_SHIFT);
	else if (dist) {
		ns = seek_ns(sim, dist);
		sim->run_start = req->sector;
	}
	sim->head = end;
	return ns;
}

static void count_service(struct pcsim *sim, ktime_t start, ktime_t due)
{
	this_cpu_add(sim->stats->busy_ns, ktime_sub(due, start));
	if (ktime_before(sim->active_end, start))
		sim->active_end = start;
	if (ktime_before(sim->active_end, due)) {
		this_cpu_add(sim->stats->active_ns, ktime_sub(due, sim->active_end));
		sim->active_end = due;
	}
}

/* The transfer shares one link: no more than bytes_per_us over all servers. */
static void set_due(struct pcsim *sim, struct pcsim_req *req, ktime_t start)
{
	const struct pcsim_cfg *cfg = &sim->cfg;
	u64 xfer = 0, fixed;

	switch (req->op) {
	case PCSIM_FLUSH:
		fixed = READ_ONCE(cfg->flush_us) * (u64)NSEC_PER_USEC;
		break;
	case PCSIM_DISCARD:
		fixed = READ_ONCE(cfg->discard_us) * (u64)NSEC_PER_USEC;
		break;
	default:
		fixed = READ_ONCE(cfg->write_us);
		if (req->op == PCSIM_READ)
			fixed = READ_ONCE(cfg->read_us);
		fixed *= NSEC_PER_USEC;
		if (pcsim_model_is_timed(sim, req->op))	/* else it was only held */
			fixed += position_ns(sim, req);
		xfer = transfer_ns(sim, req->bytes);
	}

	req->due = ktime_add_ns(start, fixed + xfer);
	if (xfer) {
		if (ktime_before(sim->link_free, start))
			sim->link_free = start;
		sim->link_free = ktime_add_ns(sim->link_free, xfer);
		if (ktime_before(req->due, sim->link_free))
			req->due = sim->link_free;
	}
	count_service(sim, start, req->due);
}

static bool due_less(struct rb_node *a, const struct rb_node *b)
{
	return ktime_before(rb_entry(a, struct pcsim_req, node)->due,
			    rb_entry(b, struct pcsim_req, node)->due);
}

static struct pcsim_req *pick_next(struct pcsim *sim, ktime_t now)
{
	struct pcsim_req *first = list_first_entry(&sim->queue, struct pcsim_req, link);
	struct pcsim_req *best = first, *req;

	if (!READ_ONCE(sim->cfg.elevator) || first->op == PCSIM_FLUSH ||
	    ktime_ms_delta(now, first->arrival) > ELEVATOR_MAX_WAIT_MS)
		return first;
	list_for_each_entry(req, &sim->queue, link)
		if (req->op != PCSIM_FLUSH && distance(sim, req) < distance(sim, best))
			best = req;
	return best;
}

/* Lets free servers take requests; none of them starts before "free_since". */
static void dispatch(struct pcsim *sim, ktime_t free_since)
{
	lockdep_assert_held(&sim->lock);

	while (!list_empty(&sim->queue) && sim->nr_busy < READ_ONCE(sim->cfg.servers)) {
		struct pcsim_req *req = pick_next(sim, free_since);

		list_del(&req->link);
		sim->nr_busy++;
		set_due(sim, req, ktime_after(req->arrival, free_since) ? req->arrival : free_since);
		rb_add_cached(&req->node, &sim->busy, due_less);
	}
}

static struct pcsim_req *first_due(struct pcsim *sim)
{
	struct rb_node *node = rb_first_cached(&sim->busy);

	return node ? rb_entry(node, struct pcsim_req, node) : NULL;
}

static void arm(struct pcsim *sim)
{
	struct pcsim_req *req = first_due(sim);

	lockdep_assert_held(&sim->lock);

	if (req && ktime_before(req->due, sim->armed)) {
		sim->armed = req->due;
		hrtimer_start(&sim->timer, req->due, HRTIMER_MODE_ABS);
	}
}

static void time_over(struct pcsim_req *req)
{
	if (req->late)
		pcsim_data_queue(req);
	pcsim_req_put(req);
}

static void put_all(struct list_head *list)
{
	struct pcsim_req *req, *next;

	list_for_each_entry_safe(req, next, list, link)
		time_over(req);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct pcsim *sim = container_of(timer, struct pcsim, timer);
	struct pcsim_req *req;
	unsigned long flags;
	LIST_HEAD(over);
	ktime_t now;

	spin_lock_irqsave(&sim->lock, flags);
	sim->armed = KTIME_MAX;
	now = ktime_get();
	while ((req = first_due(sim)) && !ktime_after(req->due, now)) {
		rb_erase_cached(&req->node, &sim->busy);
		sim->nr_busy--;
		list_add_tail(&req->link, &over);
		dispatch(sim, req->due);
	}
	arm(sim);
	spin_unlock_irqrestore(&sim->lock, flags);

	put_all(&over);
	return HRTIMER_NORESTART;
}

void pcsim_model_add(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;
	unsigned long flags;

	req->arrival = ktime_get();
	spin_lock_irqsave(&sim->lock, flags);
	if (unlikely(pcsim_is_dead(sim))) {
		spin_unlock_irqrestore(&sim->lock, flags);
		time_over(req);
		return;
	}
	if (unlikely(sim->held_mask & BIT(req->op))) {
		list_add_tail(&req->link, &sim->held);
	} else {
		list_add_tail(&req->link, &sim->queue);
		dispatch(sim, req->arrival);
		arm(sim);
	}
	spin_unlock_irqrestore(&sim->lock, flags);
}

void pcsim_model_hold(struct pcsim *sim, unsigned int mask)
{
	unsigned long flags;

	spin_lock_irqsave(&sim->lock, flags);
	WRITE_ONCE(sim->held_mask, sim->held_mask | mask);
	spin_unlock_irqrestore(&sim->lock, flags);
}

void pcsim_model_release(struct pcsim *sim)
{
	ktime_t now = ktime_get();
	struct pcsim_req *req;
	unsigned long flags;

	spin_lock_irqsave(&sim->lock, flags);
	WRITE_ONCE(sim->held_mask, 0);
	list_for_each_entry(req, &sim->held, link)
		req->arrival = now;
	list_splice_tail_init(&sim->held, &sim->queue);
	dispatch(sim, now);
	arm(sim);
	spin_unlock_irqrestore(&sim->lock, flags);
}

/* The device is dead: nothing waits for its time any more. */
void pcsim_model_abort(struct pcsim *sim)
{
	struct pcsim_req *req;
	unsigned long flags;
	LIST_HEAD(over);

	spin_lock_irqsave(&sim->lock, flags);
	WRITE_ONCE(sim->held_mask, 0);
	list_splice_init(&sim->held, &over);
	list_splice_tail_init(&sim->queue, &over);
	while ((req = first_due(sim))) {
		rb_erase_cached(&req->node, &sim->busy);
		list_add_tail(&req->link, &over);
	}
	sim->nr_busy = 0;
	sim->link_free = 0;
	sim->active_end = 0;
	spin_unlock_irqrestore(&sim->lock, flags);

	put_all(&over);
}

void pcsim_model_init(struct pcsim *sim)
{
	INIT_LIST_HEAD(&sim->queue);
	INIT_LIST_HEAD(&sim->held);
	sim->busy = RB_ROOT_CACHED;
	sim->armed = KTIME_MAX;
	sim->rnd = pcsim_mix(sim->cfg.seed);
	hrtimer_init(&sim->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	sim->timer.function = timer_fired;
}

void pcsim_model_exit(struct pcsim *sim)
{
	hrtimer_cancel(&sim->timer);
}
