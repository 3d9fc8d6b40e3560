// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] Superblock copies: decode and check, choose, encode and write, lay out.
 *
 * Copy B (block 1) is always replaced first and copy A (block 0) second, each with
 * FUA, so at least one of them is whole at any time and the newer one is never
 * relied on before both are. All that is in use lies in the first 512 bytes, which
 * no device tears. Every value that others compute with is checked here, so that a
 * superblock with a good checksum and bad values cannot lead them astray.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "block-types.h"
#include "superblock.h"

#define JOURNAL_MIN_BLOCKS	8u
#define JOURNAL_MAX_BLOCKS	(32u << 20 >> 12)
#define MAX_RECORDS		65536u
/* the entries that fill up the last table block have numbers, too */
#define MAX_CBLOCKS		(U32_MAX - PC_TABLE_BLOCK_ENTRIES)
/* far beyond any lifetime; keeps sums of counters from wrapping */
#define COUNTER_LIMIT		BIT_ULL(62)

/* Where dm-cache's superblock has its magic, and its value (octal there, too). */
#define DM_CACHE_MAGIC_OFFSET	32
#define DM_CACHE_MAGIC		06142003

u32 pc_superblock_table_blocks(u32 nr_cblocks)
{
	return DIV_ROUND_UP_ULL((u64)nr_cblocks, PC_TABLE_BLOCK_ENTRIES);
}

u32 pc_superblock_uuid_part(const struct pc_super *sb)
{
	return sb->uuid[0] | sb->uuid[1] << 8 | sb->uuid[2] << 16 | (u32)sb->uuid[3] << 24;
}

static u32 super_crc(const struct pc_super_disk *d)
{
	size_t from = offsetofend(struct pc_super_disk, crc);

	return crc32c(PC_CRC_SEED, (const u8 *)d + from, sizeof(*d) - from);
}

static bool has_magic(const struct pc_super_disk *d)
{
	return !memcmp(d->magic, PC_DISK_MAGIC, sizeof(d->magic));
}

static bool is_valid(const struct pc_super_disk *d)
{
	return has_magic(d) && le32_to_cpu(d->crc) == super_crc(d);
}

/* What one block alone looks like. */
static enum pc_probe probe_block(const void *buf)
{
	__le64 magic;

	if (!memchr_inv(buf, 0, PC_META_BLOCK_SIZE))
		return PC_PROBE_BLANK;
	if (is_valid(buf))
		return PC_PROBE_OURS;
	memcpy(&magic, buf + DM_CACHE_MAGIC_OFFSET, sizeof(magic));
	if (le64_to_cpu(magic) == DM_CACHE_MAGIC && !has_magic(buf))
		return PC_PROBE_DM_CACHE;
	return PC_PROBE_UNKNOWN;
}

int pc_superblock_probe(struct pc_metaio *io, void *buf, enum pc_probe *what)
{
	int err = io->ops->read(io, 0, 1, buf);

	*what = err ? PC_PROBE_UNKNOWN : probe_block(buf);
	if (*what == PC_PROBE_UNKNOWN && io->nr_blocks > 1 &&
	    !io->ops->read(io, 1, 1, buf) && is_valid(buf)) {
		*what = PC_PROBE_OURS;
		return 0;
	}
	return err;
}

static void decode(struct pc_super *sb, const struct pc_super_disk *d)
{
	int i;

	memset(sb, 0, sizeof(*sb));
	sb->flags = le32_to_cpu(d->flags);
	sb->compat = le32_to_cpu(d->compat);
	memcpy(sb->uuid, d->uuid, sizeof(sb->uuid));
	sb->sequence = le64_to_cpu(d->sequence);
	sb->block_sectors = le32_to_cpu(d->block_sectors);
	sb->subblock_sectors = le32_to_cpu(d->subblock_sectors);
	sb->origin_sectors = le64_to_cpu(d->origin_sectors);
	sb->nr_cblocks = le32_to_cpu(d->nr_cblocks);
	sb->table_blocks = le32_to_cpu(d->table_blocks);
	sb->journal_start = le64_to_cpu(d->journal_start);
	sb->journal_blocks = le32_to_cpu(d->journal_blocks);
	sb->max_records = le32_to_cpu(d->journal_max_records);
	sb->table_start = le64_to_cpu(d->table_start);
	sb->tail_sequence = le64_to_cpu(d->tail_sequence);
	sb->tail_transaction = le64_to_cpu(d->tail_transaction);
	memcpy(sb->policy_name, d->policy_name, sizeof(sb->policy_name) - 1);
	sb->policy_version = le32_to_cpu(d->policy_version);
	for (i = 0; i < PC_NR_COUNTERS; i++)
		sb->counters[i] = le64_to_cpu(d->counters[i]);
}

static void encode(struct pc_super_disk *d, const struct pc_super *sb)
{
	int i;

	BUILD_BUG_ON(PC_NR_COUNTERS != PC_DISK_NR_COUNTERS);
	BUILD_BUG_ON(PC_UUID_SIZE != sizeof(d->uuid));

	memset(d, 0, sizeof(*d));
	memcpy(d->magic, PC_DISK_MAGIC, sizeof(d->magic));
	d->version = cpu_to_le32(PC_DISK_VERSION);
	d->compat = cpu_to_le32(sb->compat);
	d->flags = cpu_to_le32(sb->flags);
	memcpy(d->uuid, sb->uuid, sizeof(d->uuid));
	d->sequence = cpu_to_le64(sb->sequence);
	d->block_sectors = cpu_to_le32(sb->block_sectors);
	d->subblock_sectors = cpu_to_le32(sb->subblock_sectors);
	d->origin_sectors = cpu_to_le64(sb->origin_sectors);
	d->nr_cblocks = cpu_to_le32(sb->nr_cblocks);
	d->table_blocks = cpu_to_le32(sb->table_blocks);
	d->journal_start = cpu_to_le64(sb->journal_start);
	d->journal_blocks = cpu_to_le32(sb->journal_blocks);
	d->journal_max_records = cpu_to_le32(sb->max_records);
	d->table_start = cpu_to_le64(sb->table_start);
	d->tail_sequence = cpu_to_le64(sb->tail_sequence);
	d->tail_transaction = cpu_to_le64(sb->tail_transaction);
	memcpy(d->policy_name, sb->policy_name, sizeof(d->policy_name));
	d->policy_version = cpu_to_le32(sb->policy_version);
	for (i = 0; i < PC_NR_COUNTERS; i++)
		d->counters[i] = cpu_to_le64(sb->counters[i]);
	d->crc = cpu_to_le32(super_crc(d));
}

/* Block and sub-block size that fit each other and 64 masks bits. */
static bool is_block_size(u32 block_sectors, u32 subblock_sectors)
{
	return subblock_sectors && block_sectors >= subblock_sectors &&
	       (block_sectors - 1) / subblock_sectors < 64;
}

static int check_versions(const struct pc_super_disk *d, char why[PC_META_ERR_SIZE])
{
	u32 version = le32_to_cpu(d->version);
	u32 incompat = le32_to_cpu(d->incompat) & ~PC_SUPER_INCOMPAT;
	u32 ro_compat = le32_to_cpu(d->ro_compat) & ~PC_SUPER_RO_COMPAT;

	if (version != PC_DISK_VERSION)
		scnprintf(why, PC_META_ERR_SIZE, "metadata is of version %u, only %u is supported",
			  version, PC_DISK_VERSION);
	else if (incompat | ro_compat)
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata uses unknown features: incompat 0x%x, ro_compat 0x%x",
			  incompat, ro_compat);
	else
		return 0;
	return -EINVAL;
}

static int check_values(const struct pc_super *sb, u64 nr_blocks, char why[PC_META_ERR_SIZE])
{
	u64 table_end = sb->table_start + sb->table_blocks;
	const char *bad = NULL;

	if (sb->flags & ~PC_SUPER_FLAGS)
		bad = "flags";
	else if (!is_block_size(sb->block_sectors, sb->subblock_sectors))
		bad = "block size";
	else if (div_u64(sb->origin_sectors, sb->block_sectors) > PC_OBLOCK_MAX)
		bad = "origin size";
	else if (!sb->nr_cblocks || sb->nr_cblocks > MAX_CBLOCKS ||
		 sb->table_blocks != pc_superblock_table_blocks(sb->nr_cblocks))
		bad = "cache size";
	else if (sb->journal_start != 2 || sb->journal_blocks < JOURNAL_MIN_BLOCKS ||
		 sb->journal_blocks > JOURNAL_MAX_BLOCKS)
		bad = "journal";
	else if (!sb->max_records || sb->max_records > MAX_RECORDS)
		bad = "journal_max_records";
	else if (sb->table_start < sb->journal_start + sb->journal_blocks ||
		 sb->table_start > COUNTER_LIMIT)
		bad = "table";
	else if (sb->sequence > COUNTER_LIMIT || sb->tail_sequence > COUNTER_LIMIT ||
		 sb->tail_transaction > COUNTER_LIMIT || !sb->tail_transaction)
		bad = "sequence";

	if (bad) {
		scnprintf(why, PC_META_ERR_SIZE, "superblock with an impossible value: %s", bad);
		return -EUCLEAN;
	}
	if (table_end > nr_blocks) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata device has %llu blocks of 4096 bytes, its superblock says %llu",
			  nr_blocks, table_end);
		return -ENOSPC;
	}
	return 0;
}

/* Takes buf as a superblock copy, if it is one and counts more than *sb. */
static int consider(const void *buf, struct pc_super *sb, bool *found, u64 nr_blocks,
		    char why[PC_META_ERR_SIZE])
{
	struct pc_super other;
	int err;

	if (!is_valid(buf))
		return 0;
	decode(&other, buf);
	/* A is looked at first: B of another uuid is left over from before a format */
	if (*found && (memcmp(other.uuid, sb->uuid, PC_UUID_SIZE) ||
		       other.sequence <= sb->sequence))
		return 0;
	err = check_versions(buf, why);
	if (!err)
		err = check_values(&other, nr_blocks, why);
	if (err)
		return err;
	*sb = other;
	*found = true;
	return 0;
}

int pc_superblock_read(struct pc_metaio *io, void *buf, struct pc_super *sb,
		       enum pc_probe *what, char why[PC_META_ERR_SIZE])
{
	bool found = false;
	int read_a, read_b, err;

	*what = PC_PROBE_UNKNOWN;
	if (io->nr_blocks < 2) {
		scnprintf(why, PC_META_ERR_SIZE, "metadata device is smaller than 8192 bytes");
		return -ENOSPC;
	}
	read_a = io->ops->read(io, 0, 1, buf);
	if (!read_a) {
		*what = probe_block(buf);
		if (*what == PC_PROBE_BLANK)
			return 0;
		if (*what == PC_PROBE_DM_CACHE) {
			scnprintf(why, PC_META_ERR_SIZE,
				  "metadata device holds a dm-cache superblock");
			return -EINVAL;
		}
		err = consider(buf, sb, &found, io->nr_blocks, why);
		if (err)
			return err;
	}
	read_b = io->ops->read(io, 1, 1, buf);
	if (!read_b) {
		err = consider(buf, sb, &found, io->nr_blocks, why);
		if (err)
			return err;
	}
	if (found) {
		*what = PC_PROBE_OURS;
		return 0;
	}
	if (read_a || read_b) {
		scnprintf(why, PC_META_ERR_SIZE, "reading the superblock failed: error %d",
			  read_a ? read_a : read_b);
		return read_a ? read_a : read_b;
	}
	scnprintf(why, PC_META_ERR_SIZE, "metadata device holds unknown contents");
	return -EINVAL;
}

int pc_superblock_write_copy(struct pc_metaio *io, void *buf, const struct pc_super *sb,
			     u64 copy, unsigned int flags)
{
	encode(buf, sb);
	return io->ops->write(io, copy, 1, buf, flags);
}

int pc_superblock_write(struct pc_metaio *io, void *buf, struct pc_super *sb)
{
	int err;

	/* also after an error: a sequence that may be on disk is not used again */
	sb->sequence++;
	err = pc_superblock_write_copy(io, buf, sb, 1, PC_META_FUA);
	if (err)
		return err;
	return pc_superblock_write_copy(io, buf, sb, 0, PC_META_FUA);
}

u64 pc_metadata_min_blocks(u32 nr_cblocks)
{
	return 2 + JOURNAL_MIN_BLOCKS + (u64)pc_superblock_table_blocks(nr_cblocks);
}

int pc_superblock_layout(struct pc_super *sb, const struct pc_metadata_params *params,
			 u64 nr_blocks, char why[PC_META_ERR_SIZE])
{
	u64 least = pc_metadata_min_blocks(params->nr_cblocks);
	u64 journal;

	if (nr_blocks < least) {
		scnprintf(why, PC_META_ERR_SIZE,
			  "metadata device has %llu blocks of 4096 bytes, a cache of %u blocks needs %llu",
			  nr_blocks, params->nr_cblocks, least);
		return -ENOSPC;
	}
	journal = min_t(u64, nr_blocks / 4, JOURNAL_MAX_BLOCKS);
	journal = min_t(u64, journal, nr_blocks - least + JOURNAL_MIN_BLOCKS);
	journal = max_t(u64, journal, JOURNAL_MIN_BLOCKS);

	memset(sb, 0, sizeof(*sb));
	sb->flags = PC_SUPER_CLEAN;
	memcpy(sb->uuid, params->uuid, sizeof(sb->uuid));
	sb->sequence = 1;
	sb->block_sectors = params->block_sectors;
	sb->subblock_sectors = params->subblock_sectors;
	sb->origin_sectors = params->origin_sectors;
	sb->nr_cblocks = params->nr_cblocks;
	sb->table_blocks = pc_superblock_table_blocks(params->nr_cblocks);
	sb->journal_start = 2;
	sb->journal_blocks = journal;
	sb->max_records = min_t(u32, journal * PC_JOURNAL_RECORDS, MAX_RECORDS);
	sb->table_start = sb->journal_start + journal;
	sb->tail_sequence = 1;
	sb->tail_transaction = 1;
	return check_values(sb, nr_blocks, why);
}
