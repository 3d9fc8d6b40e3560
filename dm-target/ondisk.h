/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [S] The metadata device, byte for byte. All little-endian, in blocks of 4096
 * bytes. docs/ondisk-format.md explains what may be written when.
 *
 *   block 0      1      2          2+J                2+J+T
 *   +--------+--------+-----------+--------------------+----------+
 *   | super  | super  | journal   | table              | unused   |
 *   | copy A | copy B | J blocks  | T blocks           |          |
 *   +--------+--------+-----------+--------------------+----------+
 *                      |           |
 *     journal block: header 64      table block: 8 sectors of 512 bytes
 *     + 112 records of 36           sector: header 32 + 15 entries of 32
 *
 * Only layout lives here: superblock.c, journal.c and table.c read and write it.
 */
#ifndef PC_ONDISK_H
#define PC_ONDISK_H

#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include "metaio.h"

#define PC_DISK_MAGIC		"polycach"	/* 8 bytes, no ending zero */
#define PC_DISK_VERSION		1
#define PC_DISK_POLICY_SIZE	16
#define PC_DISK_NR_COUNTERS	6

/* pc_super_disk.flags */
#define PC_SUPER_CLEAN		0x1	/* closed cleanly, journal empty, no intents */
#define PC_SUPER_NEEDS_CHECK	0x2
#define PC_SUPER_EMPTY		0x4	/* the next start drops every mapping */
#define PC_SUPER_FLAGS		0x7

/* known feature bits; none so far */
#define PC_SUPER_COMPAT		0x0	/* unknown ones: ignore and keep */
#define PC_SUPER_RO_COMPAT	0x0	/* unknown ones: do not write */
#define PC_SUPER_INCOMPAT	0x0	/* unknown ones: do not read */

struct pc_super_disk {
	u8 magic[8];
	__le32 crc;			/* crc32c of all bytes after this field */
	__le32 version;
	__le32 compat;
	__le32 ro_compat;
	__le32 incompat;
	__le32 flags;
	u8 uuid[16];
	__le64 sequence;		/* the valid copy with the higher one counts */
	__le32 block_sectors;
	__le32 subblock_sectors;
	__le64 origin_sectors;
	__le32 nr_cblocks;
	__le32 table_blocks;
	__le64 journal_start;		/* metadata block */
	__le32 journal_blocks;
	__le32 journal_max_records;	/* cache blocks with records since the tail */
	__le64 table_start;		/* metadata block */
	__le64 tail_sequence;		/* first journal block to be replayed */
	__le64 tail_transaction;	/* and the transaction that it belongs to */
	u8 policy_name[PC_DISK_POLICY_SIZE];	/* whose hints the table holds; zero padded */
	__le32 policy_version;
	__le32 spare;
	__le64 counters[PC_DISK_NR_COUNTERS];
	u8 zero[PC_META_BLOCK_SIZE - 192];
} __packed;

/* A cache block. Not mapped: all zero but hint, which is then meaningless. */
struct pc_entry_disk {
	__le64 oblock_flags;		/* origin block << 16 | flags */
	__le64 valid;
	__le64 dirty;
	__le32 hint;
	__le32 spare;
} __packed;

#define PC_ENTRY_FLAG_BITS	16
#define PC_TABLE_SECTOR_SIZE	512
#define PC_TABLE_SECTORS	8	/* a block */
#define PC_TABLE_ENTRIES	15	/* a sector */
#define PC_TABLE_BLOCK_ENTRIES	(PC_TABLE_SECTORS * PC_TABLE_ENTRIES)

struct pc_sector_disk {
	__le32 crc;			/* crc32c of all bytes of the sector after this field */
	__le32 uuid_part;		/* first 4 bytes of the uuid */
	__le64 index;			/* of this sector in the table */
	__le64 transaction;		/* the last one that this sector reflects */
	__le64 spare;
	struct pc_entry_disk entries[PC_TABLE_ENTRIES];
} __packed;

struct pc_record_disk {
	__le32 cblock;
	struct pc_entry_disk entry;	/* hint and spare are zero */
} __packed;

#define PC_JOURNAL_MAGIC	0x6a706370	/* "pcpj" */
#define PC_JOURNAL_END		0x1		/* last block of its transaction */
#define PC_JOURNAL_RECORDS	112		/* a block */

struct pc_journal_disk {
	__le32 crc;			/* crc32c of all bytes of the block after this field */
	__le32 magic;
	__le32 uuid_part;
	__le32 flags;
	__le64 sequence;		/* lies at ring index sequence % J */
	__le64 transaction;
	__le32 nr_records;
	__le32 index;			/* of this block in its transaction */
	__le32 transaction_crc;		/* end block: of the crc fields of the blocks before it */
	u8 spare[20];
	struct pc_record_disk records[PC_JOURNAL_RECORDS];
} __packed;

/* The crc of everything behind a leading crc field; the seed of all of them. */
#define PC_CRC_SEED (~0u)

static_assert(sizeof(struct pc_super_disk) == PC_META_BLOCK_SIZE);
static_assert(offsetof(struct pc_super_disk, uuid) == 32);
static_assert(offsetof(struct pc_super_disk, sequence) == 48);
static_assert(offsetof(struct pc_super_disk, journal_start) == 80);
static_assert(offsetof(struct pc_super_disk, policy_name) == 120);
static_assert(offsetof(struct pc_super_disk, counters) == 144);
static_assert(offsetof(struct pc_super_disk, zero) == 192);
static_assert(sizeof(struct pc_entry_disk) == 32);
static_assert(offsetof(struct pc_sector_disk, entries) == 32);
static_assert(sizeof(struct pc_sector_disk) == PC_TABLE_SECTOR_SIZE);
static_assert(PC_TABLE_SECTORS * PC_TABLE_SECTOR_SIZE == PC_META_BLOCK_SIZE);
static_assert(sizeof(struct pc_record_disk) == 36);
static_assert(offsetof(struct pc_journal_disk, records) == 64);
static_assert(sizeof(struct pc_journal_disk) == PC_META_BLOCK_SIZE);

#endif
