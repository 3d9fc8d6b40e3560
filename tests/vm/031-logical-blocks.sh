#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Devices of 512-byte and of 4 KiB logical blocks in every combination: the cached
# device has the larger of cache and origin, sends none of them less than it takes,
# and data is right.
# timeout: 300
# once: much of the same on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_brd 3 16384
for spec in 512:512:4096 512:4096:512 4096:512:512 512:4096:4096 4096:512:4096 \
	4096:4096:4096; do
	IFS=: read -r meta fast slow <<<"$spec"
	make_sim meta /dev/ram0 lbs "$meta"
	make_linear ram1a /dev/ram1 8192
	make_sim fast /dev/mapper/ram1a lbs "$fast"
	# no multiple of the block
	make_linear ram2a /dev/ram2 32744
	make_sim slow /dev/mapper/ram2a lbs "$slow"
	dd if=/dev/zero of=/dev/mapper/meta bs=4k count=1 oflag=direct status=none
	for mode in writeback writethrough; do
		pc_create c /dev/mapper/{meta,fast,slow} 192 $mode lru
		want=$((fast > slow ? fast : slow))
		is "$(blockdev --getss /dev/mapper/c)" $want "$spec: logical block $want"
		sizes=
		[ $want = 512 ] ||
			sizes="--bssplit=4k/40:8k/20:28k/20:64k/10:260k/10 --blockalign=4096"
		status=0
		# shellcheck disable=SC2086
		fio_verify load 2m /dev/mapper/c --loops=1 $sizes || status=$?
		fio_passed "$spec $mode: fio verifies" load.out $status
		check_clean c "$spec $mode"
		pc_remove c
	done
	is "$(for d in meta fast slow; do dmsetup message $d 0 stats; done |
		awk '$1 == "errors" { n += $2 } END { print n }')" 0 "$spec: no device saw an error"
	dmsetup remove --retry meta; dmsetup remove --retry fast; dmsetup remove --retry slow
	dmsetup remove --retry ram1a; dmsetup remove --retry ram2a
done
