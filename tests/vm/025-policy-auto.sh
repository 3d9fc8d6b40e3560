#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Policy auto: among the policies that are there the one is at work that would hit most;
# it says so, and remembers it over a restart. Wrong arguments are refused.
# timeout: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 131072
udev_off
make_linear fast /dev/ram1 131072
table=(/dev/ram0 /dev/mapper/fast /dev/ram2 128 writeback)
args="bypass_sequential 0 fill 8"

kmsg_mark
nok "margin 0" pc_create c "${table[@]}" auto "margin 0"
like "$(kmsg)" "margin 0: must be .* from 1 to 1000" "is refused, with what is allowed"
nok "another policy's key" pc_create c "${table[@]}" auto "promote_after 2"
like "$(kmsg)" "promote_after: neither .* policy auto, which knows: margin" "refused by name"

pc_create c "${table[@]}" auto "$args margin 20"
is "$(pc_status_field c policy) $(pc_status_field c margin)" "auto 20" "the status line says it"
is "$(pc_stat c auto_working)" as3fifo "the default begins"
pc_message c margin 10
is "$(pc_status_field c margin)" 10 "margin by message"
nok "margin by message, too large" pc_message c margin 1001

# tuned policies do not stay as auto's first, others do
pc_message c policy s3fifo promote_hits 1
pc_message c policy auto
is "$(pc_stat c auto_working)" as3fifo "not with a policy that was tuned"
pc_message c policy s3fifo
pc_message c policy auto
is "$(pc_stat c auto_working)" s3fifo "it begins with the policy at work"

# A new block, then one of which up to half the cache is younger: all policies but those
# with a small queue of one size hit each second time. One 4 KiB read a block.
cat >drift.py <<'E2'
import mmap, os, random, sys
fd = os.open("/dev/mapper/c", os.O_RDONLY | os.O_DIRECT)
buf = mmap.mmap(-1, 4096)
cache, first, n = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
r = random.Random(first)
for i in range(first, first + n):
    back = r.randrange(cache // 5, cache // 20 * 9) if i & 1 else 0
    os.preadv(fd, [buf], (i // 2 + cache - back) % (2 * cache) * 65536)
E2
total=$(pc_status_field c total)
diag "$total blocks"
auto_moved() { [ "$(pc_stat c auto_working)" != s3fifo ]; }
for ((i = 0; i < 40; i++)); do
	python3 drift.py $total $((i * 4000)) 4000
	! auto_moved || break
done
diag "$(pc_stats c | grep auto)"
ok "another policy took over" auto_moved
like "$(kmsg)" "policy auto: [a-z0-9]* takes over from s3fifo: hits [0-9]* instead of [0-9]*" \
	"the log says why"
like "$(pc_stat c auto_exchange_0)" "^[0-9]+:s3fifo:[0-9]+:[a-z0-9]+:[0-9]+$" "so does stats"
working=$(pc_stat c auto_working)
kept=$(pc_status_field c used)
pc_remove c
pc_create c "${table[@]}" auto "$args"
is "$(pc_stat c auto_working)" "$working" "after a restart the same one is at work"
is "$(pc_status_field c used)" "$kept" "and every mapping is there"
pc_message c policy lru
is "$(pc_status_field c policy)" lru "one policy, by message"
is "$(pc_stats c | grep -c auto_ || true)" 0 "nothing left of auto"
pc_message c policy auto margin 30
is "$(pc_status_field c policy) $(pc_status_field c margin) $(pc_stat c auto_working)" \
	"auto 30 lru" "auto again: it begins with the policy at work"
pc_remove c
