# SPDX-License-Identifier: GPL-2.0-only
# The one list of sources. Kbuild builds the modules from it; userspace.mk
# compiles the [S] files a second time, under sanitizers (docs/architecture.md).

PC_VERSION := 0.1.0

# [S]: pure C, compiled for the kernel and for userspace
PC_SHARED := args stream swap auto blocks pending superblock journal table metadata recovery

# [K]: kernel only
PC_KERNEL := target instance status message map endio read write lookup \
	     fill writeback flush intent discard reclaim loss cache pages round \
	     registry host candidates commit metaio-dm

# policies/NAME.c -> dm-polycache-NAME.ko, and one object in userspace
PC_POLICIES := lru cleaner as3fifo smq s3fifo mq
