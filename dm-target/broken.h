/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] Switches that break one rule of the design each, at one place, so that tests
 * can show that they would notice (tests/vm/061-powercut-teeth.sh, tests/teeth), or let
 * something fail that a stock kernel cannot be made to. They are the constant 0 in the
 * product, where the compiler leaves nothing of them. Only a
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

/* Rule 1: a read is not cut where validity changes. */
#define PC_BREAK_RULE1 PC_BREAK(12)

/* Rule 2: a read does not wait for a fill of what it wants. */
#define PC_BREAK_RULE2 PC_BREAK(13)

/* Rule 4: no fill follows a partial write. */
#define PC_BREAK_RULE4 PC_BREAK(14)

/* Rule 5: a write does not wait for a fill, or another write, of its sub-block. */
#define PC_BREAK_RULE5 PC_BREAK(15)

/* Rule 7: outside writeback a write to a dirty sub-block goes to the origin. */
#define PC_BREAK_RULE7 PC_BREAK(16)

/* Rule 15: a clean sub-block that the cache cannot read is an error. */
#define PC_BREAK_RULE15 PC_BREAK(17)

/* Rule 16: a sub-block that is touched in copy after copy is never held. */
#define PC_BREAK_RULE16 PC_BREAK(18)

/* Rule 17: nothing is taken for a stream. */
#define PC_BREAK_RULE17 PC_BREAK(19)

/* Rule 19: a fill fetches what was asked for, and no more. */
#define PC_BREAK_RULE19 PC_BREAK(20)

/* Rule 21: a suspended cache takes messages. */
#define PC_BREAK_RULE21 PC_BREAK(21)

/* Rule 22: a stop does not close the metadata. */
#define PC_BREAK_RULE22 PC_BREAK(22)

/* Rule 23: the constructor takes metadata that another device uses. */
#define PC_BREAK_RULE23 PC_BREAK(23)

/* Rule 24: intents do not go with time. */
#define PC_BREAK_RULE24 PC_BREAK(24)

/* Rule 25: a write in writearound leaves the cached copy as it is. */
#define PC_BREAK_RULE25 PC_BREAK(25)

/* No rule: there is no memory for a policy, or for what its taking over needs. */
#define PC_BREAK_POLICY_MEMORY PC_BREAK(26)
#define PC_BREAK_EXCHANGE_MEMORY PC_BREAK(27)

/* Serial commits: the end of one is neither flushed nor FUA. */
#define PC_BREAK_SERIAL PC_BREAK(11)

#endif
