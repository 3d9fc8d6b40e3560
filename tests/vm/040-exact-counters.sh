#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A known sequence of requests gives exactly its numbers in the status line and in
# `stats`: hits, misses, allocations, bypasses, flushes. Nothing stays in flight, and
# dirty <= resident <= total whenever one looks.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 65536
dev=/dev/mapper/c
keys="read_hits read_misses write_hits write_misses read_bypasses write_bypasses sequential
idle_class flushes fua_writes discards fills write_allocations partial_writes no_free_block
no_pending_object no_pages dropped cache_read_errors cache_write_errors origin_errors
fill_errors"

ended()
{
	! kill -0 "$1" 2>/dev/null
}

declare -A want
reset()
{
	local k

	pc_message c stats_reset
	for k in $keys promotions demotions; do
		want[$k]=0
	done
}

# expect KEY=VALUE... as the last word says: these have changed, the others are as they were
expect()
{
	local k text='' got='' status='' what=${*: -1}
	for k in "${@:1:$#-1}"; do
		want[${k%%=*}]=${k#*=}
	done
	pc_read_stats c
	pc_read_status c
	for k in $keys; do
		text+="$k=${want[$k]} "
		got+="$k=${STATS[$k]} "
	done
	is "$got" "$text" "$mode: stats: $what"
	text=''
	for k in read_hits read_misses write_hits write_misses promotions demotions; do
		text+="$k=${STATS[$k]} "
		status+="$k=${STATUS[$k]} "
	done
	is "$status" "$text" "$mode: status says the same: $what"
}

for mode in writeback writethrough; do
	dd if=/dev/zero of=/dev/ram0 bs=4k count=1 status=none
	# 32 KiB blocks of 8 sub-blocks; one is fetched at a time
	pc_create c /dev/ram0 /dev/ram1 /dev/ram2 64 $mode lru "fill 8 bypass_sequential 0"
	# udev looks at the ends of a device: the test keeps to its middle
	udev_pause
	reset
	expect "after a reset"
	before=${STATUS[used]}

	pc-io $dev read first 4000 count 1000
	expect read_misses=1000 fills=1000 "1000 read misses"
	is "${STATUS[promotions]}" 125 "$mode: 8 sub-blocks share a block"
	is "$((STATUS[used] - before))" 125 "$mode: the blocks are resident"
	pc-io $dev read first 4000 count 1000
	expect read_hits=1000 "1000 read hits"
	ionice -c3 pc-io $dev read first 6000 count 100
	expect read_misses=1100 read_bypasses=100 idle_class=100 "100 bypassed, idle class"
	pc-io $dev fsync count 10
	expect flushes=10 "10 flushes"
	is "$(dm_inflight c)" "0 0" "$mode: nothing in flight"

	reset
	pc-io $dev write first 8000 count 1000
	expect write_misses=1000 write_allocations=1000 "1000 write misses"
	pc-io $dev write first 8000 count 1000
	expect write_hits=1000 "1000 write hits"
	ionice -c3 pc-io $dev write first 10000 count 100
	expect write_misses=1100 write_bypasses=100 idle_class=100 "100 writes bypassed"
	pc-io $dev read first 8000 count 1000
	expect read_hits=1000 "1000 reads of what was written"
	pc-io $dev write first 8000 count 7 dsync 1
	expect write_hits=1007 fua_writes=7 flushes=7 \
		"7 writes with O_DSYNC: FUA, and a flush of the kernel's"

	reset
	pc_message c bypass_sequential 64
	pc-io $dev read first 11000 count 108
	expect read_misses=108 fills=8 read_bypasses=100 sequential=100 "100 bypassed, a stream"
	is "$((STATUS[used] - before))" 251 "$mode: only what was not bypassed is resident"
	udev_resume

	# --- whenever one looks ---------------------------------------------------

	pc-io $dev mixed random 16384 jobs 3 count 0 seconds 15 fsync 50 &
	job=$!
	polls=0 wrong=''
	while kill -0 $job 2>/dev/null; do
		pc_read_status c
		((STATUS[dirty] <= STATUS[used] && STATUS[used] <= STATUS[total])) ||
			wrong+="${STATUS[dirty]}/${STATUS[used]}/${STATUS[total]} "
		if [ $((polls += 1)) = 20 ]; then
			# enough seen; the job ends with the request under way
			kill $job || true
		fi
		[ $polls -lt 60 ] || break
	done
	is "$wrong" "" "$mode: dirty <= resident <= total, $polls times"
	if poll 30 ended $job; then
		wait $job || true
	else
		fail "$mode: the mixed load hangs" "$(pc_stats c)"
	fi
	ok "$mode: clean in the end" pc_wait_clean c 60
	is "$(dm_inflight c)" "0 0" "$mode: nothing in flight"
	pc_read_stats c
	is "${STATS[pending_must]} ${STATS[waiting]}" "0 0" "$mode: nobody waits"
	diag "$SECONDS s"
	pc_remove c
done
