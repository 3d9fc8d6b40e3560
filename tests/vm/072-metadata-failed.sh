#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The metadata device fails under load: the cache is read-only and says so, nobody is
# told of a success that is not durable, nothing hangs, and the device can be suspended,
# resumed, read and removed.
# timeout: 240
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 16384
udev_off
make_sim s-meta /dev/ram0
# no commit but for who asks for one
pc_create c /dev/mapper/s-meta /dev/ram1 /dev/ram2 128 writeback lru \
	"bypass_sequential 0 commit_ms 60000 writeback_target 80 writeback_limit 90"
dev=/dev/mapper/c
io() { timeout 60 pc-io $dev "$@"; }
status_of() { [ "$(pc_status_field c "$1")" = "$2" ]; }
is_quiet() { [ "$(dm_inflight c)" = "0 0" ]; }

# known to the disk: blocks 0 to 9, and a sub-block of block 100
io write bs 65536 count 10 byte 256 fsync 10
io write bs 4096 first 1600 count 1 byte 256 fsync 1

# --- under load -----------------------------------------------------------------

timeout 100 pc-io $dev write bs 4096 random 1000 first 2000 count 0 seconds 6 jobs 4 \
	byte 256 2>load.err &
load=$!
sleep 2
dmsetup message s-meta 0 fail write 0 0 0
nok "an fsync is told" io write bs 4096 first 3400 byte 256 fsync 1
status=0
wait $load || status=$?
isnt $status 124 "nothing hangs"
ok "read-only" poll 10 status_of rw ro
ok "needs a check" status_of needs_check needs_check
like "$(kmsg)" "writing the metadata device .* failed" "the log names the device"

# --- afterwards -------------------------------------------------------------------

ok "reads go on: cached ones" io read bs 65536 count 10 check 256
ok "reads go on: uncached ones" io read bs 65536 first 60 count 10
nok "a write to what the disk calls valid is refused" io write bs 4096 first 1600
nok "so is an fsync, while data has no record" io write bs 4096 first 3500 fsync 1
status=0
timeout 60 blkdiscard -f -o 0 -l 65536 $dev 2>/dev/null || status=$?
isnt $status 124 "a discard ends"
ok "what it refused to discard is there" io read bs 65536 first 1 count 9 check 256
ok "nothing in flight" is_quiet
is "$(pc_stat c waiting)" 0 "nothing waits"

ok "suspended" timeout 60 dmsetup suspend c
timeout 60 dmsetup resume c || bail "not resumed: what follows would hang"
pass "resumed"
ok "reads still go on" io read bs 65536 first 1 count 9 check 256
is "$(pc_status_field c rw)" ro "still read-only"
ok "removed" timeout 60 dmsetup remove --retry c
