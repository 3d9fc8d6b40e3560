/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] A bounded pool of private pages for fills, copies and two-device writes
 * (DESIGN rules 18 and 20), and bios over them.
 *
 * All or nothing: whoever gets pages gets all that it needs, so nobody holds some
 * while waiting for more. A reserve large enough for one piece of the largest size
 * (1 MiB) makes sure that a waiting write gets its turn when memory is short.
 */
#ifndef PC_PAGES_H
#define PC_PAGES_H

#include <linux/bio.h>
#include <linux/types.h>

struct pc_pages;

/* May sleep. limit: most pages in use at once. */
struct pc_pages *pc_pages_create(unsigned int limit);
void pc_pages_destroy(struct pc_pages *pool);

/* Any context, never sleeps. True: pages[0..n-1] are the caller's. */
bool pc_pages_get(struct pc_pages *pool, unsigned int n, struct page **pages);
void pc_pages_put(struct pc_pages *pool, unsigned int n, struct page **pages);
/* Some are in use: they come back, and whoever gives them back wakes the waiters. */
bool pc_pages_any_used(struct pc_pages *pool);
size_t pc_pages_memory(struct pc_pages *pool);

static inline unsigned int pc_pages_for(unsigned int sectors)
{
	return DIV_ROUND_UP(sectors, PAGE_SIZE >> SECTOR_SHIFT);
}

/* Adds sectors of the pages, from an offset in sectors on, to a bio with room. */
void pc_pages_add(struct bio *bio, struct page **pages, unsigned int offset,
		  unsigned int sectors);
/* Copies between the pages and a bio's data as iter describes it. Any context. */
void pc_pages_to_bio(struct page **pages, unsigned int offset, struct bio *bio,
		     struct bvec_iter iter);
void pc_pages_from_bio(struct page **pages, struct bio *bio, struct bvec_iter iter);

#endif
