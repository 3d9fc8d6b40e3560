/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Switches that break one rule of the design each, at one place, so that tests
 * can show that they would notice (tests/vm/061-powercut-teeth.sh). They are the
 * constant 0 in the product, where the compiler leaves nothing of them. Only a
 * module built with -DPC_BREAKABLE (tests/vm/variants) has them, as bits of its
 * parameter `broken`.
 */
#ifndef PC_BROKEN_H
#define PC_BROKEN_H

#ifdef PC_BREAKABLE
extern unsigned int pc_broken;	/* target.c; READ_ONCE */

#define PC_BREAK(n) ((*(const volatile unsigned int *)&pc_broken >> (n)) & 1)
#else
#define PC_BREAK(n) 0
#endif

/* The cache is never flushed: what FLUSH acknowledged may be lost there. */
#define PC_BREAK_NO_CACHE_FLUSH PC_BREAK(0)

/* Rule 3: a fill's sub-blocks are valid from its start on. */
#define PC_BREAK_RULE3 PC_BREAK(1)

/* Rule 6: fills and populating writes ignore writes to the origin in flight. */
#define PC_BREAK_RULE6 PC_BREAK(2)

/* Rule 8: a demoted block is free before its removal is durable. */
#define PC_BREAK_RULE8 PC_BREAK(3)

/* Rule 9: writes do not wait for an intent. */
#define PC_BREAK_RULE9 PC_BREAK(4)

/* Rule 10: a record that is being committed does not count until it is durable. */
#define PC_BREAK_RULE10 PC_BREAK(5)

/* Rule 11: a copy cleans what was written while it went on, too. */
#define PC_BREAK_RULE11 PC_BREAK(6)

/* Rule 12: records do not wait for the flushes that they need. */
#define PC_BREAK_RULE12 PC_BREAK(7)

/* Rule 13: FLUSH does not commit the records that its data needs. */
#define PC_BREAK_RULE13 PC_BREAK(8)

/* Rule 14: a discard goes down before its drop is durable. */
#define PC_BREAK_RULE14 PC_BREAK(9)

/* Rule 18: a two-device write reads the submitter's pages for each device. */
#define PC_BREAK_RULE18 PC_BREAK(10)

/* Serial commits: the end of one is neither flushed nor FUA. */
#define PC_BREAK_SERIAL PC_BREAK(11)

#endif
