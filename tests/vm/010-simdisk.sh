#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The simulated disk does what its README says: the time that requests take, exact
# counters, what a power cut loses and keeps, faults, death and revival. Times are
# the device's own and exact, or upper limits: they hold however slow the guest is.
# timeout: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules dm-pcsim
make_brd 2 65536

message() { dmsetup message "$1" 0 "${@:2}"; }
# stats_of NAME KEY...: "KEY VALUE KEY VALUE", stat_of: one value
stats_of()
{
	message "$1" stats | awk -v keys="${*:2}" '{ v[$1] = $2 }
		END { n = split(keys, k, " ")
			for (i = 1; i <= n; i++) printf "%s %s ", k[i], v[k[i]] }'
}
stat_of() { message "$1" stats | awk -v k="$2" '$1 == k { print $2 }'; }

# udev reads a device after each writer has closed it, which would be counted, or
# meet a fault: it sleeps, and dmsetup makes the nodes.
if [ -z "${DM_DISABLE_UDEV:-}" ]; then
	udevadm control --stop-exec-queue
	at_exit 'unset DM_DISABLE_UDEV; udev_resume'
	export DM_DISABLE_UDEV=1
fi
no_noise() { "$@" 2> >(sed '/^Udev is running/d' >&2); }
sim() { no_noise make_sim s /dev/ram0 "$@"; }
unsim() { no_noise dmsetup remove --retry "${1:-s}"; }
at_exit 'message s release 2>/dev/null || :'
dev=/dev/mapper/s

# fill C KIB: a file of that character. put FILE [SEEK [OPTIONS]]: writes it in 4 KiB
# pieces at a 4 KiB offset; get KIB [SKIP] [DEVICE]
# shellcheck disable=SC2094
fill() { head -c "$2"K /dev/zero | tr '\0' "$1" >"$1"; }
put() { dd if="$1" of=$dev bs=4k seek="${2:-0}" oflag=direct"${3:+,$3}" status=none; }
get() { dd if="${3:-$dev}" bs=4k count=$(($1 / 4)) skip="${2:-0}" iflag=direct status=none; }
reads() { get "$@" >/dev/null; }
flush() { sync $dev; }

# letters KIB [SKIP [DEVICE]]: which letters the 512-byte sectors hold, "A:3 B:5"; a
# sector of more than one letter shows as "torn"
letters()
{
	get "$@" | fold -w 512 | awk '
		{ c = substr($0, 1, 1); t = $0; gsub(c, "", t); n[t == "" ? c : "torn"]++ }
		END {
			k = split("A B C D E torn", name, " ")
			for (i = 1; i <= k; i++)
				if (name[i] in n) {
					printf "%s%s:%d", sep, name[i], n[name[i]]
					sep = " "
				}
		}'
}

# ratio EXPRESSION OP WANT NAME
ratio()
{
	cmp_ok "$(awk "BEGIN { print $1 }")" "$2" "$3" "$4"
}

# iops RW DEPTH: 4 KiB requests for a second
iops()
{
	fio --name=j --filename=$dev --direct=1 --ioengine=libaio --rw="$1" --iodepth="$2" --bs=4k \
		--runtime=1 --time_based --norandommap --output-format=terse |
		awk -F';' '{ print $8 + $49 }'
}

# in_flight COUNT: so many requests at least, asked of sysfs to start no process
in_flight()
{
	local dir name reads writes

	for dir in /sys/block/dm-*; do
		read -r name <"$dir/dm/name"
		read -r reads writes <"$dir/inflight"
		[ "$name" != s ] || [ $((reads + writes)) -lt "$1" ] || return 0
	done
	return 1
}

# batch RW SIZE COUNT: the device gets COUNT requests at one instant, so that what it
# makes of them does not depend on how fast the guest is
batch()
{
	message s hold
	message s reset
	fio --name=j --filename=$dev --direct=1 --ioengine=libaio --rw="$1" --bs="$2" \
		--iodepth="$3" --number_ios="$3" --iodepth_batch_submit="$3" --size=64m \
		--randrepeat=1 --norandommap >/dev/null &
	poll 30 in_flight "$3" || fail "$3 requests are held"
	message s release
	wait $!
}

for c in A B C D; do
	fill $c 256
done
fill E 4

# --- table line ---------------------------------------------------------------

nok "an unknown key is refused" sim nonsense 1
nok "a key without a value is refused" sim servers
nok "a value out of range is refused" sim servers 0
nok "a word that is none is refused" sim move sideways
nok "a block size other than 512 and 4096 is refused" sim lbs 1024
nok "a table longer than the device is refused" \
	dmsetup create s --table "0 131073 pcsim /dev/ram0"
is "$(dmsetup ls | grep -c '^s' || true)" 0 "nothing is left of a refused table"

sim ssd servers 7 move random wcache 1 domain d1
table=$(dmsetup table s)
like "$table" 'ssd servers 7 read_us 90 .*move random wcache 1 .*domain d1$' "the table is shown"
unsim
no_noise dmsetup create s --table "$table"
is "$(dmsetup table s)" "$table" "the shown table can be loaded again"
unsim

no_noise dmsetup create s --table "0 65536 pcsim /dev/ram0 lbs 4096 offset 8"
is "$(blockdev --getss $dev)" 4096 "logical block size 4096"
nok "and no smaller request" dd if=$dev of=/dev/null bs=512 count=1 iflag=direct status=none
put A
is "$(letters 256 1 /dev/ram0)" "A:512" "data lies at the offset"
unsim

# --- counters -----------------------------------------------------------------

for spec in "" "servers 2 read_us 20 write_us 20 flush_us 20 move late" \
	"ssd wcache 1 move random"; do
	# shellcheck disable=SC2086
	sim $spec
	message s reset
	put A			# 64 writes of 4 KiB
	put B 0			# again from 0: one seek
	reads 128		# 32 reads from 0: one seek
	flush
	flush
	blkdiscard -f -o 1048576 -l 65536 $dev 2>/dev/null
	put E 64 dsync		# FUA, then a flush
	is "$(stats_of s state reads writes flushes discards fua read_bytes write_bytes \
		discard_bytes errors inflight)" \
		"state alive reads 32 writes 129 flushes 3 discards 1 fua 1 read_bytes 131072 \
write_bytes 528384 discard_bytes 65536 errors 0 inflight 0 " "counters are exact ($spec)"
	cmp_ok "$(stat_of s seeks)" "<=" 4 "seeks are few"
	like "$(dmsetup status s)" "pcsim state alive reads 32 writes 129 flushes 3" "status line"
	message s reset
	is "$(stats_of s reads writes flushes seeks busy_us)" \
		"reads 0 writes 0 flushes 0 seeks 0 busy_us 0 " "reset"
	unsim
done

# --- time ---------------------------------------------------------------------

sim servers 4 read_us 20000 write_us 40000
batch randread 4k 16
is "$(stats_of s reads busy_us active_us)" "reads 16 busy_us 320000 active_us 80000 " \
	"16 reads of 20 ms on 4 servers"
batch randwrite 4k 16
is "$(stats_of s writes busy_us active_us)" "writes 16 busy_us 640000 active_us 160000 " \
	"16 writes of 40 ms on 4 servers"
cmp_ok "$(iops randread 8)" "<=" 204 "at most 200 reads a second"
message s set servers 1
message s set read_us 5000
batch randread 4k 16
is "$(stats_of s busy_us active_us)" "busy_us 80000 active_us 80000 " "set by message"
nok "wcache cannot be set by message" message s set wcache 1
unsim

sim hdd
batch randread 4k 64
us=$(($(stat_of s active_us) / 64))
cmp_ok "$us" ">=" 8000 "hdd: 8 to 10.5 ms a random read ($us us)"
cmp_ok "$us" "<=" 10500 "hdd: 8 to 10.5 ms a random read"
cmp_ok "$(stat_of s seeks)" ">=" 60 "hdd: each of them a seek"
batch read 64k 64
us=$(($(stat_of s active_us) - $(stat_of s seek_us)))
ratio "64 * 65536 / $us" ">=" 140 "hdd: up to 150 MB/s sequential (4 MiB in $us us)"
ratio "64 * 65536 / $us" "<=" 150 "hdd: no more than 150 MB/s"
cmp_ok "$(stat_of s seeks)" "<=" 1 "hdd: sequential without seeks"
unsim

sim seek_us_max 10000
batch randread 4k 64
fifo=$(stat_of s seek_us)
message s set elevator 1
batch randread 4k 64
nearest=$(stat_of s seek_us)
ratio "$nearest / $fifo" "<=" 0.5 "the elevator shortens seeks ($fifo us, $nearest us)"
unsim

sim bytes_per_us 10 servers 8	# 10 MB/s in all
batch read 64k 16
is "$(stat_of s active_us)" 104857 "the transfer rate is that of all servers together"
unsim

# --- data ---------------------------------------------------------------------

sim ssd wcache 1 move random wcache_kb 1024
ok "what was written is read back" fio --name=v --filename=$dev --direct=1 --ioengine=libaio \
	--rw=randwrite --bsrange=512-128k --iodepth=16 --size=6m --verify=crc32c \
	--verify_fatal=1 --fdatasync=16
unsim

# --- power cuts ---------------------------------------------------------------

sim wcache 1
put A
flush
is "$(stat_of s volatile_bytes)" 0 "nothing is volatile after a flush"
put B
is "$(letters 256)" "B:512" "a read returns the newest data"
cmp_ok "$(stat_of s volatile_bytes)" ">=" 262144 "which is volatile"
message s cut 1 all
like "$(dmsetup status s)" "state dead" "dead after a cut"
nok "a dead device does not read" reads 4
nok "a dead device does not write" put B
nok "a dead device does not flush" flush
message s revive
is "$(letters 256)" "A:512" "a cut loses what was not flushed"
is "$(stats_of s cut_volatile cut_lost)" "cut_volatile 512 cut_lost 512 " "and counts it"

put B
flush
message s cut 2 all
message s revive
is "$(letters 256)" "B:512" "a cut keeps what was flushed"

put A
flush
message s fail flush 0 0 0	# dsync is FUA and then a flush; that one fails
put B 0
nok "the flush fails" put C 64 dsync
message s fail off
is "$(stat_of s fua)" 1 "one FUA write"
message s cut 3 all
message s revive
is "$(letters 256)" "A:512" "a FUA write does not flush others"
is "$(letters 4 64)" "C:8" "a FUA write is kept"

# A FUA write over volatile data: what was below it cannot come back.
put A; flush; put B
message s fail flush 0 0 0
nok "FUA over a volatile write" put E 0 dsync
message s fail off
message s cut 4 all
message s revive
is "$(letters 256)" "A:504 E:8" "only its own sectors became durable"

put A; flush; put B; put C; put D
message s cut 5 sector
message s revive
mix=$(letters 256)
diag "after three unflushed writes and a cut: $mix"
like "$mix" '^A:[0-9]+ B:[0-9]+ C:[0-9]+ D:[0-9]+$' "a sector ends at any of its versions"
unsim

sim wcache 1
put A; flush
dd if=B of=$dev bs=512 seek=3 count=21 oflag=direct status=none
message s cut 6 all
message s revive
is "$(letters 256)" "A:512" "a write of some sectors of a 4 KiB unit is undone"
dd if=B of=$dev bs=512 seek=3 count=21 oflag=direct status=none
message s cut 6 none
message s revive
is "$(letters 16)" "A:11 B:21" "or kept, for a cut need not lose anything"

cut_sum()
{
	dd if=A of=$dev bs=4k count=32 oflag=direct conv=fsync status=none
	dd if=B of=$dev bs=4k count=32 oflag=direct status=none
	dd if=C of=$dev bs=4k count=16 oflag=direct status=none
	message s cut "$@"
	message s revive
	get 128 | cksum
}
first=$(cut_sum 7 sector)
is "$(cut_sum 7 sector)" "$first" "the same seed loses the same"
isnt "$(cut_sum 8 sector)" "$first" "another seed something else"
for seed in 1 2 3 4 5 6; do
	cut_sum $seed
done >sums
cmp_ok "$(sort -u sums | wc -l)" ">=" 4 "seeds differ without a mode as well"
unsim

sim wcache 1 ignore_flush 1
put A; message s sync; put B; flush; put C 0 dsync
message s cut 9 all
message s revive
is "$(letters 256)" "A:512" "ignore_flush: flush and FUA keep nothing"
unsim

sim wcache 1 wcache_kb 128
put A; flush; put B
volatile=$(stat_of s volatile_bytes)
cmp_ok "$volatile" "<=" 131072 "the cache is bounded"
cmp_ok "$volatile" ">=" 100000 "and used"
message s cut 10 all
message s revive
is "$(letters 128)" "B:256" "the oldest writes became durable"
is "$(letters 64 48)" "A:128" "the newest are lost"
unsim

# --- writes in flight -----------------------------------------------------------

sim wcache 1
put A; flush
message s hold write
put B 0 &
ok "a write is held" poll 30 in_flight 1
flush
message s release
wait $! || fail "a released write ends well"
message s cut 11 all
message s revive
is "$(letters 256)" "A:512" "a flush does not cover a write that was in flight"

message s hold write
dd if=B of=$dev bs=256k oflag=direct status=none 2>/dev/null &
ok "a large write is held" poll 30 in_flight 1
message s cut 12 sector
nok "a write in flight at the cut fails" wait $!
is "$(stat_of s inflight)" 0 "nothing is in flight after a cut"
message s revive
like "$(letters 256)" '^A:[0-9]+ B:[0-9]+$' "and is torn by sectors"

message s hold read
reads 4 &
ok "a read is held" poll 30 in_flight 1
no_noise dmsetup suspend s
no_noise dmsetup resume s
ok "suspend releases what is held" wait $!
unsim

# --- power domains, death, faults ------------------------------------------------

sim wcache 1 domain d
no_noise make_sim t /dev/ram1 wcache 1 domain d
put A; flush; put B
message t cut 1 all
like "$(dmsetup status s)" "state dead" "a cut reaches the whole domain"
message s revive
is "$(letters 256)" "A:512" "and its volatile data"
ok "the domain is revived together" reads 4 0 /dev/mapper/t
unsim t

put B
message s kill
nok "killed" reads 4
message s revive
is "$(letters 256)" "B:512" "kill loses nothing"
unsim

sim
message s reset
message s fail read 8 8 1
ok "a read beside the fault" reads 4
nok "a read of the fault" reads 4 1
ok "the count is used up" reads 4 1
message s fail write 0 1 0
nok "a write fault" put A
nok "for ever" put A
ok "not a read" reads 4
message s fail flush 0 0 2
nok "a flush fault" flush
message s fail off
ok "faults off: flush" flush
ok "faults off: write" put A
is "$(stat_of s errors)" 4 "errors are counted"
nok "a wrong message is refused" message s fail sideways 0 0 0
nok "an unknown message is refused" message s sing
unsim

# --- discards -------------------------------------------------------------------

sim discard none
nok "discard none" blkdiscard -f -l 65536 $dev
unsim
sim discard zero wcache 1
put A; flush
blkdiscard -f -l 65536 $dev 2>/dev/null
is "$(get 64 | tr -d '\0' | wc -c)" 0 "discard zero: reads zeroes"
message s cut 1 all
message s revive
is "$(letters 256)" "A:512" "a discard is volatile like a write"
unsim

# --- cuts under load ------------------------------------------------------------

sim servers 8 move random read_us 500 write_us 500 flush_us 500 wcache 1
fio --name=j --filename=$dev --direct=1 --ioengine=libaio --rw=randrw --bs=4k --iodepth=16 \
	--fdatasync=20 --size=32m --runtime=60 --time_based --continue_on_error=all >fio.out 2>&1 &
job=$!
for seed in 1 2 3; do
	ok "load before cut $seed" poll 30 in_flight 4
	message s cut $seed
	is "$(stat_of s inflight)" 0 "nothing in flight after cut $seed"
	message s revive
done
cmp_ok "$(stat_of s cut_lost)" "<=" "$(stat_of s cut_volatile)" "lost at most what was volatile"
kill $job 2>/dev/null || true
wait $job || true
unsim
ok "removed after cuts under load" rmmod dm-pcsim
is "$(kmsg | grep -cE 'BUG|WARNING|Call Trace' || true)" 0 "no report in the kernel log"
