#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Device flushes fail that records wait for: a write that waits for such a record gets an
# error instead of waiting for ever, and succeeds once flushes do. All devices die at
# once, again and again, under a load that changes modes: everything ends.
# timeout: 400
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 16384
udev_off
make_sim s-meta /dev/ram0 domain power
make_sim s-cache /dev/ram1 domain power
make_sim s-origin /dev/ram2 domain power
dev=/dev/mapper/c
io() { timeout 60 pc-io $dev "$@"; }
fails() { dmsetup message "s-$1" 0 fail "${@:2}"; }
works() { for d in meta cache origin; do dmsetup message s-$d 0 fail off; done; }
is_quiet() { [ "$(dm_inflight c)" = "0 0" ]; }
is_copied() { [ "$(pc_stat c writeback_sectors)" -ge 1280 ]; }
create()
{
	dd if=/dev/zero of=/dev/mapper/s-meta bs=4k count=1 oflag=direct status=none
	pc_create c /dev/mapper/s-{meta,cache,origin} 128 "$1" lru \
		"bypass_sequential 0 commit_ms 60000 writeback_target 100 writeback_limit 100"
}
# ends NAME COMMAND...: within the limit of io, with an error if the origin is bad
ends()
{
	local name=$1 status=0

	shift
	"$@" 2>/dev/null || status=$?
	if [ $bad = origin ]; then
		is $status 1 "$name: an error"
	else
		isnt $status 124 "$name: it ends"
	fi
}

# --- a record that needs flushes ----------------------------------------------------

for bad in cache origin; do
	create writeback
	# dirty on disk; copied, and not clean before the flushes of both
	dmsetup message s-origin 0 hold write
	io write bs 65536 count 10 byte 256 fsync 10
	fails $bad flush 0 0 0
	pc_message c mode writearound
	dmsetup message s-origin 0 release
	ok "$bad: copied to the origin" poll 20 is_copied
	ends "$bad: a write to what may not be called clean" io write bs 4096 first 1 byte 4
	ends "$bad: another one after it" io write bs 4096 first 2 byte 4
	pc_message c mode writeback
	ok "$bad: in writeback it needs no record" io write bs 4096 first 3 byte 4
	ok "$bad: reads go on" io read bs 65536 first 2 count 8 check 256
	ok "$bad: what needs no record is written" io write bs 4096 first 1600 count 1 byte 5
	ok "$bad: nothing in flight" is_quiet
	is "$(pc_stat c waiting)" 0 "$bad: nothing waits"
	works
	pc_message c mode writearound
	ok "$bad: flushes work, so does the write" io write bs 4096 first 1 byte 6
	ok "$bad: it is read" io read bs 4096 first 1 check 6
	is "$(pc_status_field c rw)" rw "$bad: metadata is all right"
	ok "$bad: removed" timeout 60 dmsetup remove --retry c
done

# --- a discard -----------------------------------------------------------------------

create writeback
io write bs 65536 count 10 byte 256 fsync 10
fails origin flush 0 0 0
status=0
timeout 60 blkdiscard -f -o 0 -l 655360 $dev 2>/dev/null || status=$?
isnt $status 124 "a discard ends while the origin's flushes fail"
works
ok "discard: removed" timeout 60 dmsetup remove --retry c

# --- all of it, at any time ------------------------------------------------------------

for round in 1 2 3 4 5 6; do
	create writeback
	timeout 100 pc-io $dev write bs 4096 random 3000 count 0 seconds 4 jobs 4 byte 256 \
		fsync 50 2>/dev/null &
	load=$!
	for mode in writethrough writeback writearound writeback; do
		pc_message c mode $mode
		sleep 0.3
	done
	dmsetup message s-meta 0 kill
	status=0
	wait $load || status=$?
	isnt $status 124 "all dead, round $round: the load ends"
	ok "all dead, round $round: nothing in flight" poll 10 is_quiet
	ok "all dead, round $round: removed" timeout 60 dmsetup remove --retry c
	dmsetup message s-meta 0 revive
done
