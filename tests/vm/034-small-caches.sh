#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Caches of 1, 8, 63 and 64 blocks, where everything is always short: no hang, right
# data, no block is lost.
# timeout: 500
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_brd 3 16384
make_linear meta /dev/ram0 16384
make_linear slow /dev/ram2 20000
for spec in 1:writeback 1:writethrough 8:writeback 63:writethrough 64:writeback; do
	blocks=${spec%:*}
	mode=${spec#*:}
	# and a rest that is no block
	make_linear fast /dev/ram1 $((blocks * 64 + 24))
	blank_meta
	pc_create c /dev/mapper/{meta,fast,slow} 64 $mode lru
	is "$(pc_status_field c total)" $blocks "$blocks blocks"
	watch_status c
	status=0
	timeout 200 bash -c "$(declare -f fio_verify); FIO_SIZES=$FIO_SIZES
		fio_verify load 1200k /dev/mapper/c --loops=1" || status=$?
	fio_passed "$blocks $mode: fio verifies" load.out $status
	check_watch "$blocks $mode"
	cmp_ok "$(pc_status_field c promotions)" ">" 0 "$blocks $mode: blocks are taken"
	cmp_ok "$(pc_status_field c demotions)" ">" 0 "$blocks $mode: and given up"
	check_clean c "$blocks $mode"
	# a hit is still possible: two reads of one place
	is_hit()
	{
		local hits

		dd if=/dev/mapper/c bs=4k skip=3 count=1 iflag=direct status=none >/dev/null
		hits=$(pc_status_field c read_hits)
		dd if=/dev/mapper/c bs=4k skip=3 count=1 iflag=direct status=none >/dev/null
		[ "$(pc_status_field c read_hits)" -gt "$hits" ]
	}
	ok "$blocks $mode: a read becomes a hit" poll 10 is_hit
	settled() { [ "$(pc_stat c blocks_demoting)" = 0 ]; }
	ok "$blocks $mode: no block stays half given up" poll 10 settled
	is "$(($(pc_stat c blocks_free) + $(pc_stat c blocks_resident)))" $blocks \
		"$blocks $mode: every block is accounted for"
	pc_remove c
	dmsetup remove --retry fast
done
