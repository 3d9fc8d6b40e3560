// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The page pool of pages.h.
 *
 * Owns its lock (a leaf, interrupts off) and the reserve. Pages come from the
 * system without sleeping; the reserve is used only when the system has none, and
 * is refilled first when pages come back.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "pages.h"

#define RESERVE 256u	/* pages: one piece of 1 MiB */

struct pc_pages {
	spinlock_t lock;
	unsigned int limit;
	unsigned int in_use;		/* lock */
	unsigned int nr_reserve;	/* lock */
	struct page *reserve[RESERVE];	/* lock */
};

struct pc_pages *pc_pages_create(unsigned int limit)
{
	struct pc_pages *pool = kzalloc(sizeof(*pool), GFP_KERNEL);

	if (!pool)
		return NULL;
	spin_lock_init(&pool->lock);
	pool->limit = max(limit, RESERVE);
	while (pool->nr_reserve < RESERVE) {
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page) {
			pc_pages_destroy(pool);
			return NULL;
		}
		pool->reserve[pool->nr_reserve++] = page;
	}
	return pool;
}

void pc_pages_destroy(struct pc_pages *pool)
{
	if (!pool)
		return;
	WARN_ON(pool->in_use);
	while (pool->nr_reserve)
		__free_page(pool->reserve[--pool->nr_reserve]);
	kfree(pool);
}

static struct page *take_reserve(struct pc_pages *pool)
{
	struct page *page = NULL;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	if (pool->nr_reserve)
		page = pool->reserve[--pool->nr_reserve];
	spin_unlock_irqrestore(&pool->lock, flags);
	return page;
}

bool pc_pages_get(struct pc_pages *pool, unsigned int n, struct page **pages)
{
	unsigned long flags;
	unsigned int i;
	bool fits;

	spin_lock_irqsave(&pool->lock, flags);
	fits = pool->in_use + n <= pool->limit;
	if (fits)
		pool->in_use += n;
	spin_unlock_irqrestore(&pool->lock, flags);
	if (!fits)
		return false;
	for (i = 0; i < n; i++) {
		pages[i] = alloc_page(GFP_NOWAIT | __GFP_NOWARN);
		if (!pages[i])
			pages[i] = take_reserve(pool);
		if (!pages[i])
			break;
	}
	if (i == n)
		return true;
	spin_lock_irqsave(&pool->lock, flags);
	pool->in_use -= n - i;
	spin_unlock_irqrestore(&pool->lock, flags);
	pc_pages_put(pool, i, pages);
	return false;
}

void pc_pages_put(struct pc_pages *pool, unsigned int n, struct page **pages)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&pool->lock, flags);
	pool->in_use -= n;
	for (i = 0; i < n && pool->nr_reserve < RESERVE; i++)
		pool->reserve[pool->nr_reserve++] = pages[i];
	spin_unlock_irqrestore(&pool->lock, flags);
	for (; i < n; i++)
		__free_page(pages[i]);
}

bool pc_pages_any_used(struct pc_pages *pool)
{
	return READ_ONCE(pool->in_use);
}

size_t pc_pages_memory(struct pc_pages *pool)
{
	return sizeof(*pool) + (RESERVE + (size_t)READ_ONCE(pool->in_use)) * PAGE_SIZE;
}

void pc_pages_add(struct bio *bio, struct page **pages, unsigned int offset,
		  unsigned int sectors)
{
	unsigned int bytes = sectors << SECTOR_SHIFT, at = offset << SECTOR_SHIFT;

	while (bytes) {
		unsigned int in_page = offset_in_page(at);
		unsigned int len = min_t(unsigned int, bytes, PAGE_SIZE - in_page);

		__bio_add_page(bio, pages[at >> PAGE_SHIFT], len, in_page);
		at += len;
		bytes -= len;
	}
}

/* Calls memcpy for each piece that lies in one page on both sides. */
static void copy(struct page **pages, unsigned int at, struct bio *bio, struct bvec_iter iter,
		 bool to_bio)
{
	struct bvec_iter i;
	struct bio_vec bv;

	__bio_for_each_segment(bv, bio, i, iter) {
		unsigned int done = 0;

		while (done < bv.bv_len) {
			unsigned int in_page = offset_in_page(at);
			unsigned int len = min_t(unsigned int, bv.bv_len - done,
						 PAGE_SIZE - in_page);
			char *user = kmap_local_page(bv.bv_page);
			char *own = kmap_local_page(pages[at >> PAGE_SHIFT]);

			if (to_bio)
				memcpy(user + bv.bv_offset + done, own + in_page, len);
			else
				memcpy(own + in_page, user + bv.bv_offset + done, len);
			kunmap_local(own);
			if (to_bio)
				flush_dcache_page(bv.bv_page);
			kunmap_local(user);
			done += len;
			at += len;
		}
	}
}

void pc_pages_to_bio(struct page **pages, unsigned int offset, struct bio *bio,
		     struct bvec_iter iter)
{
	copy(pages, offset << SECTOR_SHIFT, bio, iter, true);
}

void pc_pages_from_bio(struct page **pages, struct bio *bio, struct bvec_iter iter)
{
	copy(pages, 0, bio, iter, false);
}
