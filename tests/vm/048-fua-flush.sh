#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a FLUSH and a FUA cost, counted at simulated disks with volatile write caches: a
# device is flushed only if something lies there unflushed, records are written only if
# acknowledged data would be lost without them, and those that come together share.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 32768
make_sim s-meta /dev/ram0 wcache 1
make_sim s-cache /dev/ram1 wcache 1
make_sim s-origin /dev/ram2 wcache 1
dev=/dev/mapper/c
commit_ms=60000

# create MODE: a new cache with nothing unflushed. The timed commit comes after 60 s: what
# is to be counted exactly is over by then, so there is a new cache for each part.
create()
{
	dd if=/dev/zero of=/dev/mapper/s-meta bs=4k count=1 conv=fsync status=none
	# nothing in the background but what is asked for
	pc_create c /dev/mapper/s-meta /dev/mapper/s-cache /dev/mapper/s-origin 64 "$1" lru \
		"fill 8 bypass_sequential 0 commit_ms $commit_ms writeback_target 60"
	udev_pause
	pc-io $dev fsync
	sleep 0.5
	count
}

remove()
{
	dmsetup message s-origin 0 release
	udev_resume
	pc_remove c
}

declare -A N
# count: N[m.flushes], N[c.writes], N[o.reads] ... since the last count
count()
{
	local d key value

	for d in meta cache origin; do
		while read -r key value; do
			N[${d:0:1}.$key]=$value
		done < <(dmsetup message s-$d 0 stats)
	done
	sim_reset s-meta s-cache s-origin
}

# cost TEXT NAME: requests at the three disks, "m: writes flushes, c: ..., o: ..."
cost()
{
	local d got=''

	count
	for d in m c o; do
		got+="${got:+ }$d ${N[$d.writes]} ${N[$d.flushes]}"
	done
	is "$got" "$1" "$2"
}

# --- writeback -----------------------------------------------------------------------

create writeback
pc-io $dev fsync count 20
cost "m 0 0 c 0 0 o 0 0" "20 flushes with nothing unflushed reach no device"
pc-io $dev read first 3000 count 10
pc-io $dev fsync
count
is "${N[m.writes]} ${N[o.flushes]}" "0 0" "a flush after fills: no record, no flush of the origin"

# writeback's copies go no further than this, so that what is dirty stays dirty
dmsetup message s-origin 0 hold write
# a new block: its mapping must be durable
pc-io $dev write first 4000
pc-io $dev fsync
count
cmp_ok "${N[m.writes]}" ">=" 1 "flush after a write that allocates: a record"
is "${N[c.writes]} ${N[c.flushes]} ${N[o.flushes]}" "1 1 0" \
	"one write and one flush of the cache, none of the origin"
# the copy, which waits, is under way
sleep 1
count
for n in 1 2 3; do
	pc-io $dev write first 4000 byte $n
	pc-io $dev fsync
done
cost "m 0 0 c 3 3 o 0 0" "overwriting a durable dirty block: a write and a flush of the cache each"
pc-io $dev fsync count 5
cost "m 0 0 c 0 0 o 0 0" "and nothing for further flushes"

# FUA: O_DSYNC also flushes, in vain
pc-io $dev write first 4000 count 5 step 0 dsync 1
count
is "${N[c.writes]} ${N[c.fua]} ${N[c.flushes]} ${N[m.writes]} ${N[o.flushes]}" "5 5 0 0 0" \
	"FUA to a durable dirty block goes down as FUA, alone"
pc-io $dev write first 4100 dsync 1
count
cmp_ok "${N[m.writes]}" ">=" 1 "FUA that allocates: a record"
is "${N[o.flushes]}" 0 "and no flush of the origin"

# --- together ---------------------------------------------------------------------------

remove
create writeback
dmsetup message s-origin 0 hold write
dmsetup message s-cache 0 set flush_us 100000
pc-io $dev write first 4000 count 16
pc-io $dev fsync
sleep 1
count
pc-io $dev write first 4000 count 5 fsync 1 jobs 16 spread 1 step 0
count
is "${N[c.writes]} ${N[m.writes]} ${N[o.flushes]}" "80 0 0" \
	"16 jobs that write and flush 5 times: no record"
cmp_ok "${N[c.flushes]}" "<=" 40 "80 flushes share ${N[c.flushes]} rounds"
cmp_ok "${N[c.flushes]}" ">=" 5 "but each waits for one that began after its write"
pc-io $dev write first 4200 count 2 fsync 1 jobs 16 spread 4
count
cmp_ok "${N[m.flushes]}" "<=" 24 \
	"32 that need records share commits (${N[m.flushes]} flushes, ${N[m.writes]} writes)"
dmsetup message s-cache 0 set flush_us 0
pc_read_stats c
is "${STATS[waiting]} $(dm_inflight c)" "0 0 0" "nobody waits"

remove

# a failed flush is reported, and asked for again
create writeback
dmsetup message s-origin 0 hold write
pc-io $dev write first 4000 fsync 1
sleep 1
pc-io $dev write first 4000
dmsetup message s-cache 0 fail flush 0 0 1
nok "a flush that fails is reported" pc-io $dev fsync
ok "the next one is right" pc-io $dev fsync
count
cmp_ok "${N[c.flushes]}" ">=" 2 "since it asks the device again"
remove

create writeback
# the origin's: a write that bypasses
ionice -c3 pc-io $dev write first 5000
pc-io $dev fsync
count
is "${N[o.writes]} ${N[o.flushes]} ${N[m.writes]}" "1 1 0" \
	"a bypassed write: one flush of the origin, no record"
pc-io $dev fsync count 5
cost "m 0 0 c 0 0 o 0 0" "and nothing for further flushes"
remove

# --- writethrough ---------------------------------------------------------------------

create writethrough
pc-io $dev write first 4000 count 4
pc-io $dev fsync
count
is "${N[o.writes]} ${N[o.flushes]} ${N[m.writes]}" "4 1 0" \
	"writethrough: a flush of the origin, and no record for the copies"
pc-io $dev fsync count 5
cost "m 0 0 c 0 0 o 0 0" "and nothing for further flushes"
pc-io $dev write first 4000 count 3 step 0 dsync 1
count
is "${N[o.writes]} ${N[o.fua]}" "3 3" "FUA goes to the origin as FUA"
remove

# --- a stop ---------------------------------------------------------------------------

create writearound
pc-io $dev write first 4000 count 4
count
is "${N[o.writes]} ${N[o.flushes]}" "4 0" "written to the origin alone, and not flushed"
dmsetup suspend --noflush --nolockfs c
count
is "${N[o.flushes]}" 1 "a suspend flushes the origin"
udev_resume
dmsetup resume c
remove
diag "$SECONDS s"
