#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The cache device dies. In writethrough, and in writeback with nothing dirty, the
# origin goes on alone: status Fail, one line, FLUSH included; a later start drops what
# was cached. With dirty blocks errors stay errors, and the data is there again with the
# device.
# timeout: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 16384
udev_off
make_sim s-cache /dev/ram1
make_sim s-origin /dev/ram2
dev=/dev/mapper/c
io() { timeout 60 pc-io $dev "$@"; }
is_quiet() { [ "$(dm_inflight c)" = "0 0" ]; }
create()
{
	dd if=/dev/zero of=/dev/ram0 bs=4k count=1 oflag=direct status=none
	pc_create c /dev/ram0 /dev/mapper/s-cache /dev/mapper/s-origin 128 "$1" lru \
		"bypass_sequential 0 commit_ms 100"
}
is_gone() { dmsetup status c | grep -q Fail; }
is_clean() { [ "$(pc_status_field c dirty)" = 0 ]; }

for mode in writethrough writeback; do
	create $mode
	io write bs 65536 count 40 byte 256 fsync 40
	if [ $mode = writeback ]; then
		pc_message c flush
		ok "$mode: clean" poll 30 is_clean
	fi
	io read bs 65536 count 40 check 256
	kmsg_mark
	dmsetup message s-cache 0 kill
	ok "$mode: reads are right" io read bs 4096 first 5 step 7 count 80 check 256
	ok "$mode: the device is known to be gone" poll 20 is_gone
	ok "$mode: writes go on" io write bs 4096 first 300 count 40 byte 256
	ok "$mode: fsync goes on" io write bs 4096 first 400 count 4 byte 7 fsync 1
	ok "$mode: reads go on" io read bs 4096 first 400 count 4 check 7
	is "$(kmsg | grep -c 'is gone (')" 1 "$mode: one line"
	ok "$mode: nothing in flight" is_quiet
	ok "$mode: removed" timeout 60 dmsetup remove --retry c
	dmsetup message s-cache 0 revive
	pc_create c /dev/ram0 /dev/mapper/s-cache /dev/mapper/s-origin 128 $mode lru
	is "$(pc_status_field c used)" 0 "$mode: all is dropped at the next start"
	ok "$mode: the origin is right" io read bs 4096 first 400 count 4 check 7
	pc_remove c
done

create writeback
# so that it stays dirty
dmsetup message s-origin 0 fail write 0 0 0
io write bs 65536 count 40 byte 256
cmp_ok "$(pc_status_field c dirty)" ">" 0 "dirty"
dmsetup message s-cache 0 kill
status=0
io read bs 4096 count 600 check 256 2>/dev/null || status=$?
isnt $status 124 "dirty: nothing hangs"
nok "dirty: the device is not given up" is_gone
dmsetup message s-cache 0 revive
dmsetup message s-origin 0 fail off
ok "dirty: all is there again" io read bs 65536 count 40 check 256
ok "dirty: removed" timeout 60 dmsetup remove --retry c
