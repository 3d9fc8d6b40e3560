#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Wrong messages are refused, each with a text of its own in the kernel log and with an
# errno that fits. They change nothing.
# timeout: 200
. "$(dirname "$0")/lib.sh"
load_modules dm-polycache dm-polycache-lru
make_brd 3 32768
pc_create c /dev/ram0 /dev/ram1 /dev/ram2 64 writethrough lru
bad=0

# refused ERROR TEXT MESSAGE: ERROR as dmsetup words it
refused()
{
	local error=$1 text=$2 message=$3 log

	kmsg_mark
	bad=$((bad + 1))
	if dmsetup message c 0 "$message" 2>err; then
		fail "refused: $message" "it was accepted"
		return
	fi
	log=$(dmesg | tail -n 30 | sed "1,/${PC_KMSG_MARK}/d" |
		sed -n 's/.*device-mapper: polycache: [0-9:]*: \(.*\)$/\1/p')
	if ! [[ $log =~ $text ]]; then
		fail "refused: $message" "the log says: $log"$'\n'"does not match: $text"
	elif ! grep -qF "$error" err; then
		fail "refused: $message" "expected: $error"$'\n'"$(cat err)"
	else
		pass "refused: $message: $log"
	fi
}

inval="Invalid argument"
pc_read_status c
before="${STATUS[core_args]} ${STATUS[policy]} ${STATUS[policy_args]} ${STATUS[features]}"

known="policy, mode, flush, invalidate_cblocks, stats, stats_reset or <key> <value>"
refused "$inval" "^message sing: must be $known" sing
refused "$inval" \
	"^volume: neither a key of the core nor of policy lru, which knows: promote_after" \
	"volume 11"
refused "$inval" "^fill: value missing, must be 0 \(adapt\) or a power of two" "fill"
refused "$inval" "^fill 7: must be 0 \(adapt\) or a power of two from 8 to 2048" "fill 7"
refused "$inval" "^fill: more than one value" "fill 8 16"
refused "$inval" "^migration_threshold -5: must be a number of sectors" "migration_threshold -5"
refused "$inval" "^writeback_target 71: must be at most writeback_limit, which is 70" \
	"writeback_target 71"
refused "$inval" "^writeback_limit 9: must be at least writeback_target, which is 10" \
	"writeback_limit 9"
refused "$inval" "^promote_after 0: must be " "promote_after 0"
refused "$inval" \
	"^mode: name missing, must be writeback, writethrough, writearound or passthrough" mode
refused "$inval" "^mode writeonly: must be writeback" "mode writeonly"
refused "$inval" "^mode writeback now: 1 words too many" "mode writeback now"
refused "$inval" "^policy: name missing" policy
refused "$inval" "^policy ../x: must be 1 to 15 characters" "policy ../x"
refused "$inval" "^policy lru: 1 words follow, must be an even number" "policy lru promote_after"
refused "$inval" "^policy lru: fill must be a key of the policy" "policy lru fill 8"
refused "$inval" "^colour: neither a key of the core nor of policy lru" "policy lru colour red"
refused "No such file or directory" \
	"^policy cleaner: load first the module dm-polycache-cleaner; loaded: lru" "policy cleaner"
refused "No such file or directory" "^policy nosuch: load first the module dm-polycache-nosuch" \
	"policy nosuch"
refused "$inval" "^flush now: 1 words too many, flush must stand alone" "flush now"
refused "$inval" "^stats all: 1 words too many, stats must stand alone" "stats all"
refused "Operation not permitted" \
	"^invalidate_cblocks: the mode is writethrough, allowed in passthrough only" \
	"invalidate_cblocks 0-10"
refused "$inval" "^invalidate_cblocks: 0 ranges given" "invalidate_cblocks"
refused "$inval" \
	"^invalidate_cblocks 5-5: must be <n> or <begin>-<end>, begin below end, within 0-1024" \
	"invalidate_cblocks 5-5"
refused "$inval" "^invalidate_cblocks 1024: must be <n> or" "invalidate_cblocks 1024"

dmsetup suspend c
for message in "fill 8" "policy lru" "mode writeback" flush "invalidate_cblocks 0"; do
	refused "Device or resource busy" \
		"^message refused while suspended; resume the device first" "$message"
done
ok "stats while suspended" pc_message c stats
dmsetup resume c
cmp_ok $bad ">=" 10 "$bad wrong messages"

pc_read_status c
is "${STATUS[core_args]} ${STATUS[policy]} ${STATUS[policy_args]} ${STATUS[features]}" "$before" \
	"none of them changed anything"

# and the right ones
ok "fill" pc_message c fill 16
ok "upper case" pc_message c Mode WriteAround
ok "promote_after" pc_message c promote_after 2
ok "policy with a key" pc_message c policy lru promote_after 3
is "$(pc_status_field c promote_after)" 3 "which it takes"
ok "mode passthrough" pc_message c mode passthrough
in_passthrough()
{
	[ "$(pc_stat c mode)" = passthrough ]
}
ok "entered, since all is clean" poll 20 in_passthrough
ok "invalidate_cblocks in passthrough" pc_message c "invalidate_cblocks 0-10 12 1000-1024"
diag "$SECONDS s"
