#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A read that misses costs the origin exactly one read, which serves the reader and
# fills the cache: for one sub-block, for several, over two blocks, and for many readers
# of the same place at once. What is warm costs the origin nothing.
# timeout: 200
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 65536
pc-io /dev/ram2 write bs 65536 count 1024 byte 256
make_sim s-cache /dev/ram1
make_sim s-origin /dev/ram2 servers 16
dev=/dev/mapper/c
pc_create c /dev/ram0 /dev/mapper/s-cache /dev/mapper/s-origin 128 writeback lru \
	"fill 8 bypass_sequential 0"
udev_pause

declare -A SIM
sim()
{
	local key value

	while read -r key value; do
		SIM[$key]=$value
	done < <(dmsetup message s-origin 0 stats)
}

# costs READS KIB NAME PC-IO-ARGUMENTS...: so many requests and so much of the origin
costs()
{
	local reads=$1 kib=$2 name=$3

	shift 3
	sim_reset s-origin
	ok "$name: read right" pc-io $dev read check 256 "$@"
	sim
	is "${SIM[reads]} ${SIM[read_bytes]}" "$reads $((kib * 1024))" "$name: cost of the origin"
	is "${SIM[writes]}" 0 "$name: nothing is written there"
}

costs 1 4 "a sub-block" bs 4096 first 4000
costs 0 0 "the same again" bs 4096 first 4000
costs 1 64 "a block of 16 sub-blocks" bs 65536 first 300
costs 0 0 "the same again" bs 65536 first 300
costs 1 24 "6 sub-blocks of one block" bs 24576 first 1000

# half of it is there: only the rest is read
costs 1 4 "a sub-block in the middle" bs 4096 first 6408
costs 2 60 "the block around it: what is missing before and after" bs 65536 first 400

# a window over two blocks: one read, though the request is two for the cache
pc_message c fill 256
costs 1 128 "two blocks" bs 131072 first 210
costs 1 128 "4 KiB, and the window around" bs 4096 first 7000
costs 0 0 "elsewhere in the window" bs 4096 first 7001
pc_message c fill 8

# a slow origin, so that the readers meet
dmsetup message s-origin 0 set read_us 100000
costs 1 4 "16 readers of one sub-block" bs 4096 first 8000 jobs 16
costs 1 64 "16 readers of one block" bs 65536 first 510 jobs 16
costs 16 64 "16 readers of 16 sub-blocks of one block" bs 4096 first 8320 jobs 16 spread 1
dmsetup message s-origin 0 set read_us 0
is "$(dm_inflight c)" "0 0" "nothing in flight"

# a write of less than a sub-block goes to the origin, and the sub-block warms up (rule 4)
is_filled() { [ "$(pc_stat c fills)" -gt "$fills" ]; }
fills=$(pc_stat c fills)
pc-io $dev write bs 512 first 72003 byte 256
ok "written in part: a fill follows" poll 20 is_filled
is "$(dm_inflight c)" "0 0" "written in part: nothing in flight"
costs 0 0 "written in part" bs 4096 first 9000

# --- warm -----------------------------------------------------------------------

pc-io $dev read bs 65536 first 300 count 100
costs 0 0 "warm random reads" random 1600 first 4800 count 1000 jobs 4
pc_read_stats c
is "${STATS[fill_errors]} ${STATS[no_pages]}" "0 0" "no fill failed"

# a miss that is bypassed costs one read as well
sim_reset s-origin
ionice -c3 pc-io $dev read bs 65536 first 600 check 256
sim
is "${SIM[reads]} ${SIM[read_bytes]}" "1 65536" "a bypassed read: one read of the origin"
diag "$SECONDS s"
