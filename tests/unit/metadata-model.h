/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metadata as a naive model: an array of entries, changed by random records
 * that a correct core could commit. What the real code loads is compared with it.
 */
#ifndef PC_METADATA_MODEL_H
#define PC_METADATA_MODEL_H

#include "unit.h"

#include "metadata.h"
#include "metaio-file.h"

struct model {
	struct pc_metadata_params params;
	u32 nr;			/* cache blocks */
	u64 nr_oblocks;
	struct pc_entry *entries;
	bool *used;		/* by origin block */
};

void model_init(struct model *m, u32 nr_cblocks, u32 block_sectors, u32 subblock_sectors,
		u64 origin_sectors);
void model_free(struct model *m);
void model_copy(struct model *to, const struct model *from);

/* Sub-blocks of an origin block that may be valid, by the long way. */
u64 model_covered(const struct pc_metadata_params *p, u64 oblock);

/* A random legal change of a random block, made in the model too. */
void model_change(struct model *m, struct unit_random *r, struct pc_record *record);
/* Records that clear all intents. Returns how many; room for as many as blocks. */
u32 model_clear_intents(struct model *m, struct pc_record *records);
/* What a start without CLEAN makes of intents. */
void model_settle(struct model *m);
/* What a smaller origin or cache leaves; false: refused. The params are changed. */
bool model_resize(struct model *m, u32 nr_cblocks, u64 origin_sectors);

/* The hint that tests give a block. */
u32 model_hint(void *context, u32 cblock);

/* Opens and asserts success. */
struct pc_metadata *model_open(const struct model *m, struct pc_metaio_file *f);
/* Loads; 0 and the entries (not mapped: all zero), or the error. */
int model_load_raw(struct pc_metadata *md, struct pc_entry *entries, u32 nr,
		   char why[PC_META_ERR_SIZE]);
/* Loads and asserts that it gives what the model holds; hints if hints is set. */
void model_load(const struct model *m, struct pc_metadata *md, bool hints);
/* The same, opened, as the device is now. */
void model_check_device(const struct model *m, struct pc_metaio_file *f, bool hints);
bool model_equal(const struct model *m, const struct pc_entry *entries, u32 nr);

/* Commits n random changes. */
int model_commit(struct model *m, struct unit_random *r, struct pc_metadata *md, u32 n);
/* Clears intents and closes cleanly, hints by model_hint(). */
void model_close(struct model *m, struct pc_metadata *md);

#endif
