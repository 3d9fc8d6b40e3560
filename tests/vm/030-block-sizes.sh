#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Block sizes from the smallest up, also such that are no power of two and one whose
# last sub-block is short, over an origin that is no multiple of the block.
# timeout: 400
# once: much of the same on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
# seven sectors less than a multiple of 4 KiB: the last sub-block is short everywhere
make_rig 9 28 8199
for spec in 64:8 128:8 768:16 2048:32 4160:128 8192:128; do
	block=${spec%:*}
	for mode in writeback writethrough; do
		blank_meta
		pc_create c "${rig[@]}" "$block" $mode lru
		is "$(pc_stat c subblock_sectors)" "${spec#*:}" "$block: sub-blocks of ${spec#*:}"
		status=0
		fio_verify load 3m /dev/mapper/c --loops=1 --offset=11m || status=$?
		fio_passed "$block $mode: fio verifies" load.out $status
		# up to the end of the origin, sector by sector and in one go
		end=$(sectors_of /dev/mapper/c)
		head -c 10240 /dev/urandom >ending
		dd if=ending of=/dev/mapper/c bs=512 seek=$((end - 20)) oflag=direct status=none
		dd if=/dev/mapper/c of=seen bs=512 count=20 skip=$((end - 20)) iflag=direct \
			status=none
		ok "$block $mode: the last sectors" cmp ending seen
		check_clean c "$block $mode"
		pc_remove c
	done
done
