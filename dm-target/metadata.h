/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The durable half of the cache: open, load, commit, close. The facade of
 * superblock.c, journal.c and table.c (docs/ondisk-format.md).
 *
 * Blocking code for one thread at a time: the constructor, preresume, the commit
 * worker and postsuspend take turns. Knows records, never in-core masks. Memory
 * is allocated in pc_metadata_open() and pc_metadata_load() only: a commit or a
 * checkpoint allocates nothing.
 *
 * Once a write or flush has failed, the state on disk is unknown: every later
 * modifying call returns -EROFS (pc_metadata_failed() tells) until a new start.
 */
#ifndef PC_METADATA_H
#define PC_METADATA_H

#include <linux/types.h>

#include "metaio.h"

#define PC_UUID_SIZE 16

/* flags of struct pc_entry */
#define PC_ENTRY_MAPPED		0x0001
#define PC_ENTRY_INTENT_CACHE	0x0002	/* after a crash valid sub-blocks are dirty */
#define PC_ENTRY_INTENT_ORIGIN	0x0004	/* ... valid clean ones are dropped */
#define PC_ENTRY_INTENTS	(PC_ENTRY_INTENT_CACHE | PC_ENTRY_INTENT_ORIGIN)
#define PC_ENTRY_FLAGS		(PC_ENTRY_MAPPED | PC_ENTRY_INTENTS)

/* What the disk says of one cache block. Not mapped: all zero. */
struct pc_entry {
	u64 oblock;
	u64 valid;	/* a bit a sub-block, bit 0 first */
	u64 dirty;	/* subset of valid */
	u32 hint;	/* the policy's, kept by commits (see pc_metadata_save_hints) */
	u16 flags;
};

struct pc_record {
	u32 cblock;
	struct pc_entry entry;	/* its hint is ignored: commits keep the old one */
};

/* What lies in the first 4 KiB (and, for ours, in copy B). */
enum pc_probe {
	PC_PROBE_BLANK,		/* block 0 all zero: may be formatted */
	PC_PROBE_OURS,
	PC_PROBE_DM_CACHE,	/* a dm-cache superblock */
	PC_PROBE_UNKNOWN,
};

/* Lifetime counters kept in the superblock, in the order of the status line. */
enum pc_counter {
	PC_COUNT_READ_HIT, PC_COUNT_READ_MISS, PC_COUNT_WRITE_HIT, PC_COUNT_WRITE_MISS,
	PC_COUNT_DEMOTION, PC_COUNT_PROMOTION,
	PC_NR_COUNTERS,
};

struct pc_metadata_params {
	u32 block_sectors;
	u32 subblock_sectors;
	u32 nr_cblocks;
	u64 origin_sectors;	/* ti->len */
	u8 uuid[PC_UUID_SIZE];	/* random; used when formatting */
};

#define PC_META_ERR_SIZE 160

struct pc_metadata;

/*
 * Reads only; allocates one buffer. 0 and *what, or the errno of the read. Reads
 * copy B only if block 0 is neither blank, ours and valid, nor recognised.
 */
int pc_metadata_probe(struct pc_metaio *io, enum pc_probe *what);

/* Metadata blocks (4096 bytes) that a cache of so many blocks needs at least. */
u64 pc_metadata_min_blocks(u32 nr_cblocks);

/*
 * Formats a blank device, else reads the superblock and compares it with params
 * (block size must match; sizes may have changed as DESIGN section 7, Resize,
 * allows). Writes nothing unless it formats. On error returns NULL, *err is a
 * negative errno and why says what was wrong, with the values.
 */
struct pc_metadata *pc_metadata_open(struct pc_metaio *io,
				     const struct pc_metadata_params *params,
				     int *err, char why[PC_META_ERR_SIZE]);

/* Called in ascending order of cblock for each mapped block; non-zero return aborts. */
typedef int (*pc_load_fn)(void *context, u32 cblock, const struct pc_entry *entry);

/*
 * Start: table and journal are read, DESIGN rule 9 is applied (intents become
 * dirty or dropped), resizes are carried out, everything is checkpointed and CLEAN
 * is cleared, durably. After it the journal is empty. fn sees each mapped block once,
 * as it is after the start, without intents; it is called before that is durable, so
 * if the load fails later, what fn was given counts for nothing.
 *
 * A start checks all there is; if it passes, NEEDS_CHECK is cleared. -EUCLEAN: it does
 * not; nothing was written but NEEDS_CHECK. May be called again on the same object
 * after pc_metadata_close_clean(), or after a load that wrote nothing.
 */
int pc_metadata_load(struct pc_metadata *md, pc_load_fn fn, void *context,
		     char why[PC_META_ERR_SIZE]);

/*
 * Makes n records durable. On return 0 they are. Splits what is too big for one
 * transaction. Records that follow each other for the same cblock apply in order.
 * Data that the records assert must be durable already: no flush but the metadata
 * device's is sent. Checkpoints when the journal is half full. -EINVAL: a record is
 * unsound; nothing was written.
 */
int pc_metadata_commit(struct pc_metadata *md, const struct pc_record *records, size_t n);

/* True when pc_metadata_close_clean() was the last thing written. */
bool pc_metadata_is_clean(const struct pc_metadata *md);

/*
 * An instance that was suspended and not reloaded: has anyone written the metadata
 * since our close? 0: no. 1: yes, load again. Or a negative errno.
 */
int pc_metadata_changed(struct pc_metadata *md);
/* Clears CLEAN durably, without reading the table again. */
int pc_metadata_reopen(struct pc_metadata *md);

/*
 * A checkpoint is due: the next commit makes it first. Calling pc_metadata_checkpoint()
 * when idle keeps it off a user's FLUSH.
 */
bool pc_metadata_checkpoint_due(const struct pc_metadata *md);

/* Checkpoint of all committed records: the journal is empty at return. */
int pc_metadata_checkpoint(struct pc_metadata *md);

/*
 * Clean shutdown: checkpoint; with fn not NULL, hints of all mapped blocks as fn
 * gives them; flush; superblock with the flag CLEAN, policy name and version, and
 * counters. Refused (-EBUSY, nothing written as CLEAN) while an entry on disk has
 * an intent: the caller clears them first.
 */
typedef u32 (*pc_hint_fn)(void *context, u32 cblock);
int pc_metadata_close_clean(struct pc_metadata *md, const char *policy, u32 policy_version,
			    pc_hint_fn fn, void *context, const u64 counters[PC_NR_COUNTERS]);

/* Frees; writes nothing. */
void pc_metadata_free(struct pc_metadata *md);

/* needs_check in the superblock; set is durable, best effort. */
bool pc_metadata_needs_check(const struct pc_metadata *md);
int pc_metadata_set_needs_check(struct pc_metadata *md);
bool pc_metadata_failed(const struct pc_metadata *md);

/*
 * The flag EMPTY (DESIGN rule 15): a start that finds it drops every mapping.
 * Written into both superblocks, durable at return.
 */
int pc_metadata_set_empty(struct pc_metadata *md);

void pc_metadata_counters(const struct pc_metadata *md, u64 counters[PC_NR_COUNTERS]);
/* Policy that the hints belong to; name is "" when there are none. */
void pc_metadata_hints_of(const struct pc_metadata *md, const char **name, u32 *version);
/* Used and total metadata blocks, for the status line. */
void pc_metadata_usage(const struct pc_metadata *md, u64 *used, u64 *total);
size_t pc_metadata_memory(const struct pc_metadata *md);

#endif
