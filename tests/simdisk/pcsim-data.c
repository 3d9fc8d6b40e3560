// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulated disk: data. Owns the transfer of a request to or from the backing
 * device and the end of a request. Transfers that must sleep (through the undo
 * log, zeroing) or that start in interrupt context (late ones) are done by one
 * ordered worker a device, in the order of arrival; others are submitted by
 * map. The worker owns the bounce pages; a power cut uses them too, when the
 * device is dead and no request is left.
 */
#include "pcsim.h"

bool pcsim_data_needs_worker(const struct pcsim *sim, enum pcsim_op op)
{
	if (op == PCSIM_WRITE)
		return sim->cfg.wcache;
	if (op == PCSIM_DISCARD)
		return sim->cfg.wcache || sim->cfg.discard == PCSIM_DISCARD_ZERO;
	return false;
}

static void finish(struct pcsim_req *req)
{
	struct bio *bio = pcsim_req_bio(req);
	struct pcsim *sim = req->sim;
	blk_status_t status = req->status;

	if (sim->cfg.wcache && req->op != PCSIM_READ)
		status = pcsim_wcache_finish(req, status);
	else if (pcsim_is_dead(sim))
		status = BLK_STS_IOERR;
	if (status)
		this_cpu_inc(sim->stats->errors);

	bio->bi_end_io = req->end_io;
	bio->bi_private = req->private;
	bio->bi_status = status;
	if (atomic_dec_and_test(&sim->inflight))
		wake_up(&sim->idle_wait);
	/* The device may be gone as soon as its last bio has ended. */
	bio_endio(bio);
}

void pcsim_req_put(struct pcsim_req *req)
{
	if (atomic_dec_and_test(&req->parts))
		finish(req);
}

static void data_done(struct bio *bio)
{
	struct pcsim_req *req = dm_per_bio_data(bio, sizeof(*req));

	if (bio->bi_status)
		req->status = bio->bi_status;
	pcsim_req_put(req);
}

void pcsim_data_submit(struct pcsim_req *req)
{
	struct bio *bio = pcsim_req_bio(req);

	bio->bi_end_io = data_done;
	submit_bio_noacct(bio);
}

void pcsim_data_queue(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;
	unsigned long flags;

	spin_lock_irqsave(&sim->lock, flags);
	list_add_tail(&req->work_link, &sim->work_list);
	spin_unlock_irqrestore(&sim->lock, flags);
	queue_work(sim->wq, &sim->work);
}

/* Waits; reads into or writes from the bounce pages. */
blk_status_t pcsim_data_rw(struct pcsim *sim, blk_opf_t opf, sector_t sector, unsigned int bytes,
			   unsigned int page_offset)
{
	unsigned int i, left = bytes;
	blk_status_t status;
	struct bio bio;

	bio_init(&bio, pcsim_bdev(sim), sim->bvecs, PCSIM_BOUNCE_PAGES, opf);
	bio.bi_iter.bi_sector = pcsim_backing_sector(sim, sector);
	for (i = 0; left; i++) {
		unsigned int len = min_t(unsigned int, left, PAGE_SIZE - page_offset);

		__bio_add_page(&bio, sim->bounce[i], len, page_offset);
		page_offset = 0;
		left -= len;
	}
	status = errno_to_blk_status(submit_bio_wait(&bio));
	bio_uninit(&bio);
	return status;
}

static blk_status_t discard_zeroing(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;

	return errno_to_blk_status(blkdev_issue_zeroout(pcsim_bdev(sim),
							pcsim_backing_sector(sim, req->sector),
							req->bytes >> SECTOR_SHIFT, GFP_NOIO, 0));
}

/* The next write must find this one's data when it saves what it overwrites. */
static blk_status_t submit_and_wait(struct pcsim_req *req)
{
	return errno_to_blk_status(submit_bio_wait(pcsim_req_bio(req)));
}

static void run(struct pcsim_req *req)
{
	struct pcsim *sim = req->sim;
	blk_status_t status = BLK_STS_OK;

	if (pcsim_is_dead(sim)) {
		req->status = BLK_STS_IOERR;
		pcsim_req_put(req);
		return;
	}
	if (!pcsim_data_needs_worker(sim, req->op)) {
		pcsim_data_submit(req);
		return;
	}
	if (sim->cfg.wcache)
		status = pcsim_wcache_log(req);
	if (!status)
		status = req->op == PCSIM_DISCARD && sim->cfg.discard == PCSIM_DISCARD_ZERO ?
			 discard_zeroing(req) : submit_and_wait(req);
	if (status)
		req->status = status;
	pcsim_req_put(req);
}

static void work(struct work_struct *ws)
{
	struct pcsim *sim = container_of(ws, struct pcsim, work);
	struct pcsim_req *req;

	do {
		spin_lock_irq(&sim->lock);
		req = list_first_entry_or_null(&sim->work_list, struct pcsim_req, work_link);
		if (req)
			list_del(&req->work_link);
		spin_unlock_irq(&sim->lock);
		if (req)
			run(req);
		cond_resched();
	} while (req);
}

static void free_bounce(struct pcsim *sim)
{
	unsigned int i;

	for (i = 0; i < PCSIM_BOUNCE_PAGES; i++)
		if (sim->bounce[i])
			__free_page(sim->bounce[i]);
}

int pcsim_data_init(struct pcsim *sim)
{
	unsigned int i;

	INIT_WORK(&sim->work, work);
	INIT_LIST_HEAD(&sim->work_list);
	for (i = 0; i < PCSIM_BOUNCE_PAGES; i++) {
		sim->bounce[i] = alloc_page(GFP_KERNEL);
		if (!sim->bounce[i])
			goto bad;
	}
	sim->wq = alloc_ordered_workqueue("pcsim", WQ_MEM_RECLAIM | WQ_HIGHPRI);
	if (!sim->wq)
		goto bad;
	return 0;

bad:
	free_bounce(sim);
	return -ENOMEM;
}

void pcsim_data_exit(struct pcsim *sim)
{
	destroy_workqueue(sim->wq);
	free_bounce(sim);
}
