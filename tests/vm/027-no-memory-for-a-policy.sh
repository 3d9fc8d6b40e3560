#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An exchange of policies that finds no memory, for the policy or for its taking over, is
# refused by name and leaves the old policy at work; the cache stays as it is, and later the
# exchange succeeds. (Each single allocation: the conformance suite.)
# timeout: 120
# once: the same code on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_variant breakable dm-polycache dm-polycache-lru dm-polycache-as3fifo dm-polycache-smq \
	dm-polycache-s3fifo dm-polycache-mq dm-polycache-cleaner
make_brd 3 65536
udev_off
pc_create c /dev/ram0 /dev/ram1 /dev/ram2 64 writeback lru "bypass_sequential 0 fill 64"
pc-io /dev/mapper/c write bs 32768 count 500 byte 7
pc-io /dev/mapper/c read bs 32768 count 500
used=$(pc_status_field c used)
pc_message c stats_reset

# refused BIT POLICY WHY: the message fails, and says so
refused()
{
	kmsg_mark
	echo $((1 << $1)) >/sys/module/dm_polycache/parameters/broken
	nok "$2: $3" pc_message c policy "$2"
	echo 0 >/sys/module/dm_polycache/parameters/broken
	like "$(kmsg)" "policy $2: no memory for $3" "it says so"
	is "$(pc_status_field c policy)" lru "lru is at work"
}

refused 26 smq "[0-9]+ cache blocks"
refused 27 smq "the exchange, lru stays"
refused 26 auto "[0-9]+ cache blocks"
refused 27 cleaner "the exchange, lru stays"

ok "what was written is there" pc-io /dev/mapper/c read bs 32768 count 500 check 7
pc_read_stats c
is "${STATS[read_hits]} ${STATS[read_misses]}" "500 0" "and hits"
is "$(pc_status_field c used)" "$used" "each mapping stays"
ok "lru still takes its keys" pc_message c promote_after 2
pc_message c promote_after 1
for p in smq auto cleaner lru; do
	ok "with memory: $p" pc_message c policy $p
	is "$(pc_status_field c policy)" $p "at work"
done
ok "all is there" pc-io /dev/mapper/c read bs 32768 count 500 check 7

echo $((1 << 26)) >/sys/module/dm_polycache/parameters/broken
kmsg_mark
nok "a table: no memory for its policy" dmsetup reload c --table \
	"$(pc_table /dev/ram0 /dev/ram1 /dev/ram2 64 writeback mq)"
like "$(kmsg)" "policy mq: no memory for [0-9]+ cache blocks" "it says so"
echo 0 >/sys/module/dm_polycache/parameters/broken
is "$(pc_status_field c policy)" lru "the old table is at work"
ok "all is there" pc-io /dev/mapper/c read bs 32768 count 500 check 7
pc_remove c
