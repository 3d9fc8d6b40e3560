#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Data written in each mode reads back right, while other requests are in flight and
# over twice the cache's size; the counters of the status line are never absurd; the
# origin, cleaned, holds what the cached device shows.
# timeout: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_rig 6 14
for mode in writeback writethrough writearound passthrough; do
	blank_meta
	pc_create c "${rig[@]}" 128 $mode lru
	watch_status c
	status=0
	fio_verify load 3500k /dev/mapper/c || status=$?
	fio_passed "$mode: fio verifies" load.out $status
	check_watch $mode
	diag "$mode: $(dmsetup status c)"
	check_clean c $mode
	case $mode in
	writeback | writethrough)
		# once more over a cache that is full: hits, misses and demotions
		status=0
		fio_verify again 3500k /dev/mapper/c --loops=1 || status=$?
		fio_passed "$mode: fio verifies over a warm cache" again.out $status
		check_clean c "$mode, warm"
		;;
	esac
	if [ $mode = writeback ]; then
		cmp_ok "$(pc_status_field c used)" ">" 40 "$mode: the cache is used"
		cmp_ok "$(pc_stat c write_allocations)" ">" 40 "$mode: writes take sub-blocks"
	elif [ $mode = passthrough ]; then
		is "$(pc_status_field c used)" 0 "$mode: caches nothing"
	fi
	pc_remove c
done
