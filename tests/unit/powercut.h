/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a power cut may leave of a recorded sequence of writes and flushes.
 *
 * At a cut in front of event k, the events before k have completed and event k is in
 * flight. Writes since the last flush, and event k itself, may each be on the medium
 * or not, in units of the device's logical block; all others are there. A write with
 * PREFLUSH reaches the medium only behind everything that completed before it.
 */
#ifndef PC_POWERCUT_H
#define PC_POWERCUT_H

#include "unit.h"

#include "metaio-file.h"

/* Ways in which a device may lie; a test that has teeth finds each. */
struct powercut_lies {
	bool no_preflush;
	bool no_fua;
	bool no_flush;
};

struct powercut_unit {
	u64 at;			/* in units */
	const u8 *data;
};

struct powercut {
	const struct pc_metaio_file *f;	/* the record */
	struct powercut_lies lies;
	u32 unit;		/* bytes: 512 or 4096 */
	u8 *medium;		/* what is durable for certain in front of event `next` */
	size_t bytes;
	size_t next;
	struct powercut_unit *pending;	/* completed, perhaps not durable; in order */
	size_t nr_pending, max_pending;
};

/* base: contents of the device before the first event. */
void powercut_init(struct powercut *p, const struct pc_metaio_file *f, const void *base,
		   u32 unit, struct powercut_lies lies);
void powercut_free(struct powercut *p);
/* Lets the event at p->next complete. */
void powercut_advance(struct powercut *p);

/*
 * The images that a cut in front of event p->next may leave: calls fn with each of
 * them. All subsets where there are few, else the extreme ones and random ones.
 */
typedef void (*powercut_fn)(void *context, const u8 *image);
void powercut_images(struct powercut *p, struct unit_random *r, powercut_fn fn, void *context);
/* One of them, at random. */
void powercut_random_image(struct powercut *p, struct unit_random *r, u8 *image);

#endif
