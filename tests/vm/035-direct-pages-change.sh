#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A program changes the pages of its direct writes while they are in flight: cache and
# origin end up equal all the same, with sub-blocks that are cached and such that are not.
# timeout: 200
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_rig 6 8
# the two writes of a request do not happen at the same time
make_sim late /dev/mapper/slow servers 4 write_us 1500 read_us 100 move late
rig[2]=/dev/mapper/late
for mode in writethrough writeback; do
	blank_meta
	pc_create c "${rig[@]}" 128 $mode lru
	writes=$(/pc/bin/changing-pages /dev/mapper/c 3145728 6 1)
	cmp_ok "$writes" ">" 200 "$mode: $writes writes from changing pages"
	cmp_ok "$(pc_stat c write_hits)" ">" 50 "$mode: to what is cached"
	cmp_ok "$(pc_stat c write_allocations)" ">" 10 "$mode: and to what is not"
	dd if=/dev/mapper/c of=shown bs=1M count=3 iflag=direct status=none
	hits=$(pc_stat c read_hits)
	cmp_ok "$hits" ">" 0 "$mode: shown from the cache"
	check_clean c $mode
	ok "$mode: it reads the same afterwards" \
		cmp shown <(dd if=/dev/mapper/c bs=1M count=3 iflag=direct status=none)
	pc_remove c
done
