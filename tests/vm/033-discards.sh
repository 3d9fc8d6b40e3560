#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Discards: counted, passed down or not, dropped from the cache for good, also while
# the same blocks are read and written; a discarded range reads the same for ever.
# timeout: 300
# once: much of the same on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

export DM_DISABLE_UDEV=1
exec 2> >(sed '/^Udev is running/d' >&2)
load_modules
make_brd 3 16384
make_linear meta /dev/ram0 16384
make_linear fast /dev/ram1 12288
make_sim slow /dev/ram2 discard zero
rig=(/dev/mapper/meta /dev/mapper/fast /dev/mapper/slow)
sim() { dmsetup message slow 0 stats | awk -v k="$1" '$1 == k { print $2 }'; }
get() { dd if="${3:-/dev/mapper/c}" bs=4k skip="$1" count="$2" iflag=direct status=none; }
zeroes() { [ "$(get "$@" | tr -d '\0' | wc -c)" = 0 ]; }
discard() { blkdiscard -f -o $(($1 * 1024)) -l $(($2 * 1024)) /dev/mapper/c; }
head -c 1M /dev/urandom >data

for mode in writeback writethrough; do
	blank_meta
	pc_create c "${rig[@]}" 128 $mode lru
	dd if=data of=/dev/mapper/c bs=16k oflag=direct status=none
	dmsetup message slow 0 reset
	n=$(pc_stat c discards)
	# 6 KiB to 102 KiB: whole sub-blocks are those from 8 KiB to 100 KiB
	discard 6 96
	# the kernel sends what lies before the first 4 KiB boundary by itself
	is $(($(pc_stat c discards) - n)) 2 "$mode: discards are counted"
	is "$(sim discard_bytes)" $((92 * 1024)) "$mode: whole sub-blocks are passed down"
	ok "$mode: it reads zeroes, as the origin does" zeroes 2 23
	ok "$mode: what is before stays" cmp -n 8192 data <(get 0 2)
	ok "$mode: what is behind stays" cmp -i 102400:0 -n 946176 data <(get 25 231)
	# nothing of it comes back
	pc_remove c
	pc_create c "${rig[@]}" 128 $mode lru
	ok "$mode: nor after a restart" zeroes 2 23
	check_clean c $mode
	pc_remove c
done

# dirty data that is discarded without passdown: the origin's old data, and durably so
blank_meta
pc_create c "${rig[@]}" 128 "writeback no_discard_passdown" lru
head -c 1M /dev/zero | tr '\0' A >old
head -c 1M /dev/zero | tr '\0' B >new
dd if=old of=/dev/mapper/slow bs=64k oflag=direct status=none
dd if=new of=/dev/mapper/c bs=64k oflag=direct status=none
dmsetup message slow 0 reset
discard 0 256
is "$(sim discards)" 0 "no passdown: the origin sees no discard"
first=$(get 0 64 | cksum)
pc_remove c
pc_create c "${rig[@]}" 128 "writeback no_discard_passdown" lru
is "$(get 0 64 | cksum)" "$first" "no passdown: it reads the same after a restart"
ok "no passdown: what was not discarded stays" cmp -i 262144:0 new <(get 64 192)
check_clean c "no passdown"
pc_remove c

# discards, reads and writes all over the same blocks: whatever it holds in the end,
# cache and origin agree about it. Beside that, data that is verified.
for mode in writeback writethrough; do
	blank_meta
	pc_create c "${rig[@]}" 128 $mode lru
	fio_verify load 2m /dev/mapper/c &
	job=$!
	fio --filename=/dev/mapper/c --direct=1 --ioengine=libaio --offset=9m --size=6m \
		--time_based --runtime=15 --norandommap --randrepeat=0 --group_reporting \
		--name=rw --rw=randrw --iodepth=16 --bssplit=512/10:4k/40:12k/20:64k/20:300k/10 \
		--name=trim --rw=randtrim --ioengine=sync --bssplit=4k/30:60k/30:256k/30:3m/10 \
		>trim.out 2>&1 || fail "$mode: discards under load" "$(tail -n 20 trim.out)"
	status=0
	wait $job || status=$?
	fio_passed "$mode: fio verifies beside discards" load.out $status
	cmp_ok "$(pc_stat c discards)" ">" 20 "$mode: discards: $(pc_stat c discards)"
	diag "$(pc_stats c | grep -E 'hits|misses|fills|dropped|waits|commits' | paste -sd ' ')"
	get 0 4000 >shown
	check_clean c "$mode under discards"
	ok "$mode: it reads the same afterwards" cmp shown <(get 0 4000)
	pc_remove c
done
