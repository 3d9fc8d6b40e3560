#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# When nobody uses the cache and it is clean, no request reaches any of its devices: disks
# may sleep. The last intents go within two sweeps of 20 s after the last write, and a
# commit takes commit_ms; after that there is silence.
# timeout: 300
# once: much of the same on every kernel
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 32768
make_sim s-meta /dev/ram0
make_sim s-cache /dev/ram1
make_sim s-origin /dev/ram2
dev=/dev/mapper/c
dd if=/dev/zero of=/dev/mapper/s-meta bs=4k count=1 conv=fsync status=none
pc_create c /dev/mapper/s-meta /dev/mapper/s-cache /dev/mapper/s-origin 64 writeback lru
udev_pause

requests()
{
	local d

	for d in meta cache origin; do
		dmsetup message s-$d 0 stats | awk -v d=$d \
			'$1 ~ /^(reads|writes|flushes|discards)$/ { n += $2 } END { print d, n }'
	done | tr '\n' ' '
}

settled()
{
	pc_read_stats c
	[ "${STATS[intents]} ${STATS[pending]} ${STATS[blocks_dirty]}" = "0 0 0" ]
}

# overwritten where it was clean, so that there are intents, then read, flushed, discarded
pc-io $dev write first 3000 count 200
ok "clean" pc_wait_clean c 60
pc-io $dev write first 3000 count 200
pc-io $dev read first 5000 count 200
pc-io $dev fsync
blkdiscard -f -o 16777216 -l 1048576 $dev
pc_read_stats c
cmp_ok "${STATS[intents]}" ">=" 1 "there are intents (${STATS[intents]})"
start=$SECONDS
ok "intents, records and dirty blocks go by themselves" poll 120 settled
cmp_ok $((SECONDS - start)) "<=" 75 "within two sweeps and what the machine needs"

# longer than a sweep: what a timer would send is sent in this time
sleep 3
before=$(requests)
sleep 24
is "$(requests)" "$before" "24 s of silence, which is more than a sweep"

# status, stats and the table cost no request either
for ((i = 0; i < 5; i++)); do
	dmsetup status c >/dev/null
	dmsetup table c >/dev/null
	pc_read_stats c
done
is "$(requests)" "$before" "looking costs no request"

# and it wakes up again
ok "still works" pc-io $dev write first 3000 count 10
isnt "$(requests)" "$before" "and is seen to"
diag "$SECONDS s"
