#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A clean stop and start keeps every mapping, dirty bit, the order of use and the lifetime
# counters. Memory stays within its bounds at a million blocks.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 65536
make_linear cache /dev/ram1 32768
make_sim s-origin /dev/ram2
dev=/dev/mapper/c

# create: the status as it is then, before udev reads the device, is in STATUS
create()
{
	udev_pause
	dmsetup create c --noudevsync --table "$(pc_table /dev/ram0 /dev/mapper/cache \
		/dev/mapper/s-origin 64 writeback lru \
		"fill 8 bypass_sequential 0 writeback_target 70")"
	pc_read_status c
	udev_resume
	udev_pause
}

# counters: those of the status line
counters()
{
	local k

	for k in read_hits read_misses write_hits write_misses demotions promotions; do
		echo "$k ${STATUS[$k]}"
	done
}

remove()
{
	dmsetup remove --retry --noudevsync c
	udev_resume
}

# 512 blocks; the origin takes no writes, so that what is dirty stays so
create
dmsetup message s-origin 0 fail write 0 0 0
pc-io $dev write bs 32768 first 300 count 200 byte 256
pc-io $dev read first 4800 count 800 step 2
pc-io $dev fsync
pc_read_status c
counters=$(counters)
used=${STATUS[used]} dirty=${STATUS[dirty]}
cmp_ok "$dirty" ">=" 200 "there are dirty blocks ($dirty of $used)"
remove
create
is "${STATUS[used]} ${STATUS[dirty]}" "$used $dirty" "restart: every mapping and dirty bit"
is "$(counters)" "$counters" "restart: lifetime counters"
sim_reset s-origin
ok "what was dirty is read back" pc-io $dev read bs 32768 first 300 count 200 check 256
pc-io $dev read first 4800 count 800 step 2
is "$(sim_stat s-origin reads)" 0 "and all that was cached, without the origin"
dmsetup message s-origin 0 fail off
ok "then it is written back" pc_wait_clean c 60
ok "to the right places" pc-io /dev/mapper/s-origin read bs 32768 first 300 count 200 check 256
remove

# --- the order of use ---------------------------------------------------------------

dd if=/dev/zero of=/dev/ram0 bs=4k count=1 conv=fsync status=none
create
pc-io $dev read bs 32768 first 200 count 400
# the first half again, last to first: the second half is now the coldest, in its order
for ((at = 399; at >= 200; at -= 10)); do
	pc-io $dev read bs 32768 first $((at - 9)) count 10
done
pc_read_status c
used=${STATUS[used]}
remove
create
# 150 new blocks push out what is coldest: some 50 of the second half
push_out()
{
	pc-io $dev read bs 32768 first 1000 count 150
	[ "$(pc_stat c demotions)" -ge 20 ]
}
# what finds no free block goes by, and comes again
ok "blocks were pushed out" poll 30 push_out
fresh_misses()
{
	pc_message c stats_reset
	# the idle class fills nothing: looking changes nothing
	ionice -c3 pc-io $dev read bs 32768 first "$1" count "$2"
	pc_stat c read_misses
}
is "$(fresh_misses 200 200)" 0 "none of those used last"
out=$(fresh_misses 400 200)
cmp_ok "$out" ">=" 20 "but of those not used since ($out)"
is "$(fresh_misses 400 $out)" "$out" "and of these the first, in their order"
remove

# --- stopped under the cleaner, hints are kept ----------------------------------------

create
pc_message c policy cleaner
pc_read_status c
used=${STATUS[used]}
ok "clean" pc_wait_clean c 30
remove
create
is "$(pc_status_field c used)" "$used" "stopped under another policy: each mapping is there"
remove

# --- a million blocks -----------------------------------------------------------------

dmsetup remove --retry s-origin
dmsetup remove --retry cache
rmmod brd
modprobe null_blk nr_devices=0
meta=$(make_null nb0 80)
cache=$(make_null nb1 32768 memory_backed=0)
origin=$(make_null nb2 65536 memory_backed=0)
udev_settle
kb()
{
	awk -v k="$1" '$1 == k ":" { print $2 }' /proc/meminfo
}

settle()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
}
# what the metadata device holds is the device's, not the cache's
pc-io "$meta" write bs 1048576 count 80
settle
free=$(kb MemAvailable) slab=$(($(kb Slab) + $(kb VmallocUsed)))
pc_create c "$meta" "$cache" "$origin" 64 writeback lru
settle
blocks=$(pc_status_field c total)
cmp_ok "$blocks" ">=" 1000000 "$blocks blocks"
free=$(((free - $(kb MemAvailable)) * 1024)) slab=$((($(kb Slab) + $(kb VmallocUsed) - slab) * \
	1024))
pc_read_stats c
diag "$(pc_stats c | grep '^memory')"
diag "MemAvailable $free, slab and vmalloc $slab"
cmp_ok "${STATS[memory_core]}" "<=" $((48 * blocks)) \
	"the core: $((STATS[memory_core] / blocks)) bytes a block"
cmp_ok "${STATS[memory_policy]}" "<=" $((24 * blocks)) \
	"lru: $((STATS[memory_policy] / blocks)) bytes a block"
bound=$((80 * blocks + 16 * 1024 * 1024))
cmp_ok $free "<=" $bound "MemAvailable: $((free / blocks)) bytes a block"
cmp_ok $slab "<=" $bound "slab and vmalloc: $((slab / blocks)) bytes a block"
ok "it works" pc-io $dev write bs 32768 first 0 step 1000 count 500
start=$SECONDS
pc_remove c
ok "and starts again" pc_create c "$meta" "$cache" "$origin" 64 writeback lru
diag "stop and start at a million blocks: $((SECONDS - start)) s"
cmp_ok "$(pc_status_field c used)" ">=" 500 "with what it had"
pc_remove c
diag "$SECONDS s"
