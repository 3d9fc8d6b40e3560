/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [K] metaio.h on a block device.
 */
#ifndef PC_METAIO_DM_H
#define PC_METAIO_DM_H

#include <linux/blkdev.h>

#include "metaio.h"

/* May sleep. NULL: no memory. The device stays the caller's. */
struct pc_metaio *pc_metaio_create(struct block_device *bdev);
void pc_metaio_destroy(struct pc_metaio *io);

#endif
