#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Cleaning ends, however busy the device is: after writeback mode was left, and under
# `flush`, all gets clean while four writers go on overwriting the same 8 KiB and a copy
# takes as long as many writes.
# timeout: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 16384
udev_off
make_sim s-origin /dev/ram2 servers 4 write_us 20000
pc_create c /dev/ram0 /dev/ram1 /dev/mapper/s-origin 128 writeback lru \
	"bypass_sequential 0 commit_ms 100"
dev=/dev/mapper/c

load()
{
	timeout 250 pc-io $dev write bs 4096 random 2 jobs 4 seconds 200 count 0 byte 256 &
	load=$!
}
goes_on() { kill -0 $load; }
is_dirty() { [ "$(pc_status_field c dirty)" -gt 0 ]; }
is_clean() { [ "$(pc_status_field c dirty)" = 0 ]; }

load
ok "writers make blocks dirty" poll 20 is_dirty
# no new dirty data: it ends for good
pc_message c mode writethrough
start=$SECONDS
ok "writeback mode was left: clean" poll 60 is_clean
diag "after $((SECONDS - start)) s, $(pc_stat c writeback_touched) blocks were written while copied"
ok "and the writers still write" goes_on

pc_message c mode writeback
ok "dirty again" poll 20 is_dirty
# what is written after it was copied gets dirty again: a moment without is not to be
# waited for, but each copy ends
before=$(pc_stat c writebacks)
pc_message c flush
has_copied() { [ "$(pc_stat c writebacks)" -gt $((before + 16)) ]; }
ok "flush: copies are made" poll 60 has_copied
ok "and the writers still write" goes_on
kill $load
wait $load 2>/dev/null || :
ok "flush: clean once they have ended" pc_wait_clean c
ok "nothing in flight" poll 10 eval '[ "$(dm_inflight c)" = "0 0" ]'
