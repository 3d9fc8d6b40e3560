#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A policy whose module is missing is requested when a table names it, and never by a
# message. Policies are exchanged while I/O runs, and every mapping stays.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules dm-polycache
make_brd 3 65536
dev=/dev/mapper/c

# what the kernel asks for is written down, then done
modprobe_before=$(cat /proc/sys/kernel/modprobe)
cat >modprobe <<X
#!/bin/sh
echo "\$*" >>$PWD/asked
exec $modprobe_before "\$@"
X
chmod +x modprobe
echo "$PWD/modprobe" >/proc/sys/kernel/modprobe
at_exit "echo $modprobe_before >/proc/sys/kernel/modprobe"

asked()
{
	grep -o 'dm-polycache-[a-z0-9]*' asked 2>/dev/null | tr '\n' ' ' || true
	: >asked
}
asked >/dev/null

nok "a policy that there is not" pc_create c /dev/ram0 /dev/ram1 /dev/ram2 64 writeback nosuch
is "$(asked)" "dm-polycache-nosuch " "its module was requested, once"
ok "a policy that is not loaded" pc_create c /dev/ram0 /dev/ram1 /dev/ram2 64 writeback lru \
	"fill 8 bypass_sequential 0"
is "$(asked)" "dm-polycache-lru " "its module was requested"
is "$(cat /sys/module/dm_polycache_lru/refcnt)" 1 "and is in use"
kmsg_mark
nok "by message, not loaded" pc_message c policy cleaner
like "$(kmsg)" "policy cleaner: load first the module dm-polycache-cleaner" "answered by name"
is "$(asked)" "" "nothing was requested"
is "$(pc_status_field c policy)" lru "the old policy stays"
modprobe dm-polycache-cleaner
ok "by message, loaded" pc_message c policy cleaner
is "$(pc_status_field c policy)" cleaner "the new policy is there"
is "$(cat /sys/module/dm_polycache_lru/refcnt)/$(cat /sys/module/dm_polycache_cleaner/refcnt)" 0/1 \
	"and the old module is free"
ok "which unloads" rmmod dm-polycache-lru
ok "default is as3fifo" pc_reload c /dev/ram0 /dev/ram1 /dev/ram2 64 writeback default \
	"fill 8 bypass_sequential 0"
is "$(pc_status_field c policy)" as3fifo "by its name"
like "$(asked)" "dm-polycache-as3fifo" "requested"
nok "a module in use does not unload" rmmod dm-polycache-as3fifo
modprobe dm-polycache-lru
pc_message c policy lru

# --- exchanged while I/O runs -----------------------------------------------------

udev_pause
pc-io $dev write bs 32768 first 500 count 1000 byte 256
pc_read_status c
used=${STATUS[used]}
cmp_ok "$used" ">=" 1000 "a thousand blocks are cached"
pc-io $dev read bs 4096 first 4000 random 8000 jobs 2 count 0 seconds 5 check 256 2>err.1 &
reader=$!
pc-io $dev write bs 4096 first 4000 random 8000 jobs 1 count 0 seconds 5 byte 256 2>err.2 &
writer=$!
swaps=0 bad=''
while kill -0 $reader 2>/dev/null; do
	for p in cleaner lru "lru promote_after 1"; do
		# one that is still going on is not to be waited for
		pc_message c policy $p 2>err || bad+="$p: $(cat err) "
		swaps=$((swaps + 1))
	done
	pc_read_status c
	[ "${STATUS[used]}" = "$used" ] || bad+="used ${STATUS[used]} "
done
ok "reads during it" wait $reader
ok "writes during it" wait $writer
is "$bad" "" "$swaps exchanges, each mapping stays"
cmp_ok $swaps ">=" 3 "enough of them"
pc_message c stats_reset
ok "all is still there" pc-io $dev read bs 32768 first 500 count 1000 check 256
pc_read_stats c
is "${STATS[read_hits]} ${STATS[read_misses]}" "1000 0" "and every read hits"
pc_message c policy cleaner
ok "the cleaner cleans" pc_wait_clean c 60
pc_message c policy lru
is "$(pc_status_field c used)" "$used" "lru again: each mapping stays"
pc-io $dev read bs 32768 first 500 count 1000
pc_read_stats c
is "${STATS[read_hits]} ${STATS[read_misses]}" "2000 0" "and every read hits"
is "$(kmsg | grep -c 'policy' || true)" 1 "no complaint but the one above"
diag "$SECONDS s"
