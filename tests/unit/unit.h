/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the unit tests share: cmocka with what it wants included before it, and
 * random numbers from a printed seed (PC_SEED=n repeats a run).
 */
#ifndef PC_UNIT_H
#define PC_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/types.h>
#include <linux/kernel.h>

/* The seed of this run: PC_SEED, else from the clock. Printed at the first call. */
u64 unit_seed(void);

/* A generator of its own for each test, so that tests do not shift each other. */
struct unit_random {
	u64 state;
};

/* salt: the same for each run of a test; iteration tells repetitions apart. */
void unit_random_init(struct unit_random *r, const char *salt, u64 iteration);
u64 unit_random(struct unit_random *r);
/* 0 <= result < n */
u64 unit_random_below(struct unit_random *r, u64 n);
/* true once in n calls */
bool unit_random_one_in(struct unit_random *r, u64 n);

#endif
