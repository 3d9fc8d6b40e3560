#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Streams past bypass_sequential and I/O of the idle class go by the cache: they fill
# nothing, take the place of nothing that was hit, and are served from the cache where it
# has the data.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 65536
make_linear cache /dev/ram1 32768
make_sim s-origin /dev/ram2
dev=/dev/mapper/c
# 512 blocks of 32 KiB for an origin of 2048; a stream is what is over 256 KiB
pc_create c /dev/ram0 /dev/mapper/cache /dev/mapper/s-origin 64 writeback lru \
	"fill 8 bypass_sequential 512"
udev_pause

fresh()
{
	pc_message c stats_reset
	sim_reset s-origin
}

# --- reads ------------------------------------------------------------------------

fresh
pc-io $dev read first 4000 count 1000
pc_read_stats c
is "${STATS[fills]} ${STATS[read_bypasses]} ${STATS[sequential]}" "64 936 936" \
	"a read stream: 256 KiB fill, the rest bypasses"
fresh
pc-io $dev read first 9000 count 500 step 2
pc_read_stats c
is "${STATS[fills]} ${STATS[read_bypasses]}" "500 0" "with holes it is none"

# what is there is served from the cache, in the middle of a stream too
fresh
for at in 6100 6120 6140; do
	pc-io $dev read first $at count 2
done
fresh
pc-io $dev read first 6000 count 200
pc_read_stats c
is "${STATS[read_hits]} ${STATS[read_misses]} ${STATS[fills]}" "6 194 64" \
	"a stream over six that are there: hits"
is "$(sim_stat s-origin reads)" 194 "which the origin does not see"

# two streams at once are two streams
fresh
pc-io $dev read first 12000 count 200 jobs 2 spread 500
pc_read_stats c
is "${STATS[fills]} ${STATS[read_bypasses]}" "128 272" "two interleaved streams"

# --- the idle class ------------------------------------------------------------------

fresh
ionice -c3 pc-io $dev read first 14000 count 50
ionice -c3 pc-io $dev write first 14100 count 50
ionice -c3 pc-io $dev read first 4000 count 10
pc_read_stats c
is "${STATS[idle_class]} ${STATS[read_bypasses]} ${STATS[write_bypasses]}" "110 50 50" \
	"the idle class bypasses"
is "${STATS[fills]} ${STATS[write_allocations]} ${STATS[read_hits]}" "0 0 10" \
	"and is served where it can be"

# --- writes ---------------------------------------------------------------------------

# the cache is full: half of it is hit, the rest is not, and colder
pc-io $dev write bs 32768 first 1000 step 2 count 300
pc-io $dev write bs 32768 first 100 step 3 count 250
pc-io $dev read bs 32768 first 100 step 3 count 250
ok "clean" pc_wait_clean c 60
# a few found no free block in time
fresh
pc-io $dev read bs 32768 first 100 step 3 count 250
pc_read_stats c
hits=${STATS[read_hits]}
cmp_ok "$hits" ">=" 150 "$hits of 250 are hit"
fresh
pc-io $dev write bs 32768 first 1700 count 300 byte 1
pc_read_stats c
cmp_ok "${STATS[sequential]}" ">=" 280 "a write stream"
cmp_ok "${STATS[blocks_stream]}" "<=" 52 "takes at most a tenth of the cache"
cmp_ok "${STATS[write_bypasses]}" ">=" 100 "and bypasses for the rest"
ok "what it wrote is right" pc-io $dev read bs 32768 first 1700 count 300 check 1
fresh
pc-io $dev read bs 32768 first 100 step 3 count 250
pc_read_stats c
cmp_ok "${STATS[read_hits]}" ">=" "$hits" "what was hit before is still there"

# a stream's write to what is cached stays in the cache
pc-io $dev write bs 32768 first 2045 byte 2
pc-io $dev read bs 32768 first 2045
fresh
pc-io $dev write bs 32768 first 2020 count 28 byte 3
pc_read_stats c
cmp_ok "${STATS[sequential]}" ">=" 18 "a stream over a cached block"
cmp_ok "${STATS[write_hits]}" ">=" 1 "writes to what is cached hit"
ok "and are right" pc-io $dev read bs 32768 first 2020 count 28 check 3

# --- what is no stream ------------------------------------------------------------------

# a log: small sequential writes, each with a flush
fresh
pc-io $dev write first 10000 count 300 fsync 1
pc_read_stats c
is "${STATS[sequential]}" 0 "a log that flushes is no stream"
fresh
pc_message c bypass_sequential 0
pc-io $dev read first 15000 count 300
pc_read_stats c
is "${STATS[sequential]}" 0 "bypass_sequential 0: never"
diag "$SECONDS s"
