#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Wrong table lines are refused, each with a text of its own in the kernel log that
# names the argument, the value and what is allowed. Nothing half-made is left.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 32768
for n in 0 1 2; do
	make_linear l$n /dev/ram$n 65536
done
M=/dev/mapper/l0 C=/dev/mapper/l1 O=/dev/mapper/l2
bad=0

# refused TEXT TABLE: TABLE without its start, length and target; TEXT is an extended
# regular expression that the reason must match
refused()
{
	local text=$1 table=$2 log

	kmsg_mark
	bad=$((bad + 1))
	if dmsetup create c --table "0 ${3:-65536} polycache $table" 2>err; then
		fail "refused: $table" "it was accepted"
		dmsetup remove --retry c
		return
	fi
	log=$(dmesg | tail -n 30 | sed "1,/${PC_KMSG_MARK}/d" |
		sed -n 's/.*: polycache: \(.*\) (-\?[A-Z0-9]*)$/\1/p')
	if [[ $log =~ $text ]]; then
		pass "refused: ${table//\/dev\/mapper\//}: $log"
	else
		fail "refused: $table" "the log says: $log"$'\n'"does not match: $text"
	fi
}

size="must be a multiple of 64 sectors from 64 to 2097152"
refused "^metadata device missing: must be a path" ""
refused "^cache device missing: must be a path" "$M"
refused "^origin device missing: must be a path" "$M $C"
refused "^block size missing: $size" "$M $C $O"
refused "^block size 0: $size" "$M $C $O 0 0 lru 0"
refused "^block size 32: $size" "$M $C $O 32 0 lru 0"
refused "^block size 100: $size" "$M $C $O 100 0 lru 0"
refused "^block size 2097216: $size" "$M $C $O 2097216 0 lru 0"
refused "^block size 64k: $size" "$M $C $O 64k 0 lru 0"
refused "^block size -64: $size" "$M $C $O -64 0 lru 0"
refused "^#feature args missing: must be 0 to 3" "$M $C $O 64"
refused "^#feature args 4: must be 0 to 3" "$M $C $O 64 4 a b c d lru 0"
refused "^#feature args x: must be 0 to 3" "$M $C $O 64 x lru 0"
refused "^#feature args 2: only 1 words follow" "$M $C $O 64 2 writeback"
refused \
	"^feature writefast: must be writeback, writethrough, writearound or passthrough, or meta" \
	"$M $C $O 64 1 writefast lru 0"
refused "^feature writethrough: the mode was given before as writeback" \
	"$M $C $O 64 2 writeback writethrough lru 0"
refused "^feature metadata2: given twice" "$M $C $O 64 2 metadata2 metadata2 lru 0"
refused "^policy missing: must be a policy's name" "$M $C $O 64 0"
refused "^policy LRU!: must be 1 to 15 characters of a-z" "$M $C $O 64 0 LRU! 0"
refused "^policy nosuch: there is no module dm-polycache-nosuch; loaded:.* lru" \
	"$M $C $O 64 0 nosuch 0"
refused "^#policy args missing: must be an even number from 0 to 64" "$M $C $O 64 0 lru"
refused "^#policy args 3: must be an even number" "$M $C $O 64 0 lru 3 fill 8 x"
refused "^#policy args 4: only 2 words follow" "$M $C $O 64 0 lru 4 fill 8"
refused "^fill 9: must be 0 \(adapt\) or a power of two from 8 to 2048" "$M $C $O 64 0 lru 2 fill 9"
refused "^bypass_sequential -1: must be 0 to 4294967295 sectors" \
	"$M $C $O 64 0 lru 2 bypass_sequential -1"
refused "^migration_threshold much: must be a number of sectors" \
	"$M $C $O 64 0 lru 2 migration_threshold much"
refused "^commit_ms 0: must be 1 to 60000 milliseconds" "$M $C $O 64 0 lru 2 commit_ms 0"
refused "^writeback_limit 101: must be 0 to 100 percent" "$M $C $O 64 0 lru 2 writeback_limit 101"
refused "^writeback_target 80: must be at most writeback_limit, which is 70" \
	"$M $C $O 64 0 lru 2 writeback_target 80"
refused "^on_cache_loss maybe: must be continue or fail" "$M $C $O 64 0 lru 2 on_cache_loss maybe"
refused "^promote_after 0: must be " "$M $C $O 64 0 lru 2 promote_after 0"
refused "^colour: neither a key of the core nor of policy lru, which knows: promote_after" \
	"$M $C $O 64 0 lru 2 colour red"
refused "^extra: 2 words too many" "$M $C $O 64 0 lru 0 extra words"
refused "^metadata device /dev/mapper/nothing: cannot be opened" \
	"/dev/mapper/nothing $C $O 64 0 lru 0"
refused "^cache device 251:99: cannot be opened" "$M 251:99 $O 64 0 lru 0"
refused "^origin device /dev/null: cannot be opened" "$M $C /dev/null 64 0 lru 0"
refused "must be three different devices" "$M $C $C 64 0 lru 0"
refused "must be three different devices" "$M $M $O 64 0 lru 0"
refused "^cache device .*: 0 blocks of 131072 sectors, must be 1 to" "$M $C $O 131072 0 lru 0"
refused "^target length 131072 sectors: the origin .* has only 65536" "$M $C $O 64 0 lru 0" 131072
cmp_ok $bad ">=" 20 "$bad wrong table lines"

is "$(dmsetup ls | awk '{ print $1 }' | sort | tr '\n' ' ')" "l0 l1 l2 " "no device is left"
is "$(dmsetup info -c --noheadings -o open,name | sort | tr '\n' ' ')" "0:l0 0:l1 0:l2 " \
	"no device is held open"
is "$(cat /sys/module/dm_polycache_lru/refcnt)" 0 "the policy is not in use"
# lru and cleaner use the target's module; nobody else does
is "$(cat /sys/module/dm_polycache/refcnt)" "$(ls /sys/module/dm_polycache/holders | wc -l)" \
	"nor is the target"
is "$(head -c 65536 /dev/ram0 | tr -d '\0' | wc -c)" 0 "nothing was written to the metadata device"

# two targets in one table: one of them is right
nok "a wrong second target" dmsetup create c <<<"0 32768 polycache $M $C $O 64 0 lru 0
32768 32768 polycache $M $C $O 64 0 lru 1"
ok "a right table after all" dmsetup create c --table "0 65536 polycache $M $C $O 64 0 lru 0"

# a wrong table for a live device: it goes on as it was
nok "reload with a wrong table" dmsetup reload c --table \
	"0 65536 polycache $M $C $O 64 1 fast lru 0"
nok "reload with another block size" dmsetup reload c --table \
	"0 65536 polycache $M $C $O 128 0 lru 0"
like "$(kmsg)" "block size" "which is named"
ok "it still works" pc-io /dev/mapper/c write first 100 count 100
is "$(pc_status_field c block)" 64 "as before"
pc_remove c
ok "unloads" rmmod dm_polycache_lru
diag "$SECONDS s"
