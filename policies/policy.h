/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The policy contract: what a policy module offers, and what it may rely on.
 *
 * A policy decides what is cached; it never does I/O, never sleeps, takes no
 * lock, and allocates in create() only. Every operation but create(), destroy()
 * and loaded() is called with the core's one policy lock held and interrupts off,
 * in kernel and userspace alike, so a policy file compiles unchanged in both.
 * No floating point, no clock, no randomness but from the seed.
 *
 * What the core promises: cblock < nr_cblocks and oblock < nr_oblocks always;
 * inserted() and removed() of a cblock alternate, starting with load() or
 * inserted(), and say the same oblock. What it does not: hit() arrives late, in
 * batches, and may name a cblock that was removed or reused since; a policy
 * ignores cblocks that it does not hold, and accepts any oblock in hit().
 */
#ifndef PC_POLICY_H
#define PC_POLICY_H

#include <linux/types.h>
#include <linux/list.h>
#include <linux/module.h>

#include "block-types.h"

#define PC_POLICY_API 1
#define PC_POLICY_NAME_SIZE 16
/* longest text that emit() may produce, in bytes, ending zero included */
#define PC_POLICY_EMIT_SIZE 512

/* what the policy name "default" stands for */
#define PC_POLICY_DEFAULT "as3fifo"
/* the name that stands for several policies, of which one is at work (auto.h) */
#define PC_POLICY_AUTO "auto"

enum pc_dir {
	PC_READ,
	PC_WRITE,
};

/* flags of miss() */
#define PC_MISS_SEQUENTIAL (1u << 0)	/* part of a stream (DESIGN rule 17) */
#define PC_MISS_PREFETCH   (1u << 1)	/* nobody asked: a neighbour in a fill window */

enum pc_verdict {
	PC_BYPASS,
	PC_ADMIT,
};

/* flags of struct pc_policy_type */
#define PC_POLICY_CLEANER (1u << 0)	/* write all dirty blocks back, always */

struct pc_policy_type;

/* One instance. A policy embeds it as the first member of its own struct. */
struct pc_policy {
	const struct pc_policy_type *type;
};

struct pc_policy_params {
	u32 nr_cblocks;		/* cache size in blocks */
	u64 nr_oblocks;		/* origin size in blocks */
	u32 block_sectors;	/* block size in 512-byte sectors */
	u32 seed;		/* for policies that draw lots */
};

struct pc_policy_type {
	/*
	 * May sleep; the only operation that may allocate (vzalloc, kzalloc).
	 * Returns NULL when out of memory. Arguments follow through set().
	 */
	struct pc_policy *(*create)(const struct pc_policy_type *type,
				    const struct pc_policy_params *params);
	/* May sleep. No other operation is running. */
	void (*destroy)(struct pc_policy *p);

	/*
	 * A mapping that exists already: at start, and on a policy swap; coldest
	 * first where that is known. hint is what hint() said of this block when
	 * hints were saved by a policy of the same name and version, else 0 with
	 * has_hint false. Equal hints keep the order of the calls.
	 */
	void (*load)(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, bool dirty,
		     bool has_hint, u32 hint);
	void (*hit)(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir);
	/* An access to an uncached block. PC_ADMIT may still not be acted upon. */
	enum pc_verdict (*miss)(struct pc_policy *p, pc_oblock_t o, enum pc_dir dir,
				unsigned int flags);
	void (*inserted)(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o);
	void (*removed)(struct pc_policy *p, pc_cblock_t c, pc_oblock_t o);
	/*
	 * Up to n candidates for demotion, best first. Does not remove them: the
	 * core demotes those that it can (clean, idle), calling removed() for each,
	 * and asks again. Asked again without a removal in between, it offers other
	 * candidates after those already refused, until all were offered once; then
	 * it starts over. Returns how many were stored; fewer than n, 0 included, end
	 * such a round: a caller that could use none of a whole round stops there.
	 */
	unsigned int (*victims)(struct pc_policy *p, unsigned int n, pc_cblock_t *out);
	/* What to remember of a block over a restart or a policy swap. */
	u32 (*hint)(struct pc_policy *p, pc_cblock_t c);
	/*
	 * Walk all held blocks from the coldest. Stateless: *cursor is 0 at the
	 * start and opaque after; stores up to n cblocks and advances. Returns how
	 * many, 0 at the end. A block that moves while the walk is in progress may
	 * be seen twice or not at all; one that does not move is seen once.
	 */
	unsigned int (*walk)(struct pc_policy *p, u64 *cursor, unsigned int n, pc_cblock_t *out);

	/*
	 * Optional: all blocks of a start were loaded, in the order of cblocks; now the
	 * hints may be put to use. May take long and sleep: the only operation besides
	 * create() and destroy() called without the policy lock; no other runs. Not
	 * called after a swap, where the order of the load() calls is the right one.
	 */
	void (*loaded)(struct pc_policy *p);
	/*
	 * Optional: hit() of this cblock follows in a moment, a few others come before
	 * it. For policies whose hits would wait for memory; must change nothing.
	 */
	void (*expect)(struct pc_policy *p, pc_cblock_t c);
	/* Optional: time passes; called about every second. */
	void (*tick)(struct pc_policy *p);
	/*
	 * Optional: set a tunable. -EINVAL: no such key. -ERANGE: value not allowed;
	 * *why then says what is (a constant text such as "a count from 1 to 100").
	 */
	int (*set)(struct pc_policy *p, const char *key, const char *value, const char **why);
	/*
	 * Optional: the tunables as "key value key value", without a leading or
	 * trailing blank. Returns the number of words; at most
	 * PC_POLICY_EMIT_SIZE bytes, ending zero included.
	 */
	unsigned int (*emit)(struct pc_policy *p, char *buf, size_t len);
	/* Bytes allocated by this instance. */
	size_t (*memory)(struct pc_policy *p);

	const char *name;	/* as in the table line; shorter than PC_POLICY_NAME_SIZE */
	u32 api;		/* PC_POLICY_API */
	u32 version;		/* hints saved by another version are not given to load() */
	u32 flags;
	struct module *owner;

	struct list_head list;	/* the registry's */
};

/*
 * Both may sleep. register: -EEXIST if the name is taken, -EINVAL for another API
 * number or a missing operation.
 */
int pc_policy_register(struct pc_policy_type *type);
void pc_policy_unregister(struct pc_policy_type *type);

/* The last line of a policy file: module init and exit that (un)register it. */
#define PC_POLICY_MODULE(pc_type, pc_desc)					\
	static int __init pc_policy_module_init(void)				\
	{									\
		return pc_policy_register(&(pc_type));				\
	}									\
	static void __exit pc_policy_module_exit(void)				\
	{									\
		pc_policy_unregister(&(pc_type));				\
	}									\
	module_init(pc_policy_module_init);					\
	module_exit(pc_policy_module_exit);					\
	MODULE_DESCRIPTION(pc_desc);						\
	MODULE_LICENSE("GPL")

#endif
