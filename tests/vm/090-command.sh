#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The polycache command on live devices: what it shows is what the target says, what it
# changes is changed, a refusal names the reason and the value, and check and dump agree
# with the device that was there before.
# timeout: 400
. "$(dirname "$0")/lib.sh"
command -v polycache >/dev/null || skip_all "build/user/polycache is not there: make tools"
load_modules dm-polycache dm-polycache-lru
make_brd 4 65536
meta=/dev/ram0 cache=/dev/ram1 origin=/dev/ram2 dm_cache=/dev/ram3
sectors=$(sectors_of $origin)

# refused NAME REGEX WORD...: fails with status 1, and says so
refused()
{
	local name=$1 regex=$2 out status=0

	shift 2
	out=$(polycache "$@" 2>&1) || status=$?
	is "$status" 1 "$name: exit status"
	like "$out" "$regex" "$name: $out"
}

write_some()
{
	dd if=/dev/urandom of=/dev/mapper/c bs=64k count=64 seek="${1:-0}" oflag=direct conv=fsync \
		status=none
}

# read_json: status --json, flattened; field PATH: one value of it, as stats.fills
read_json()
{
	polycache status --json c | python3 -c '
import json, sys
def walk(path, value):
    if isinstance(value, dict):
        for key in value:
            walk(path + [key], value[key])
    else:
        print(".".join(path), value)
walk([], json.load(sys.stdin)[0])' >fields
}

field()
{
	awk -v k="$1" '$1 == k { print $2 }' fields
}

dmsetup create plain --table "0 $sectors linear $origin 0"
is "$(polycache status)" "no polycache devices" "status: nothing there"
is "$(polycache status --json | tr -d '\n')" "[]" "status: nothing there, in JSON"
refused "another target" "plain: its target is linear, must be polycache" status plain
refused "no such device" "nosuch: no such device" status nosuch
dmsetup remove --retry plain

pc_create c $meta $cache $origin 128 writeback lru "promote_after 1"

# --- status ------------------------------------------------------------------------

write_some
drop_pages /dev/mapper/c
dd if=/dev/mapper/c of=/dev/null bs=64k count=64 iflag=direct status=none
text=$(polycache status)
like "$text" "^c: writeback, policy lru$" "status: first line"
like "$text" "state +good$" "status: state"
like "$text" "blocks .* of 1024 of 64 KiB in use" "status: blocks"
like "$text" "reads +[0-9]+ hits, [0-9]+ misses, [0-9.]+ % hits" "status: hit ratio"
like "$(polycache status --stats /dev/mapper/c)" "^ +stats +mode writeback" "status: by path, stats"
is "$(polycache status "/dev/$(dm_dev c)" | head -n 1)" "c: writeback, policy lru" \
	"status: by the kernel's name"
read_json
for key in read_hits read_misses write_hits write_misses promotions demotions; do
	is "$(field $key)" "$(pc_status_field c $key)" "JSON: $key"
done
is "$(field blocks_used)" "$(pc_status_field c used)" "JSON: blocks_used"
is "$(field core_args.migration_threshold)" 2048 "JSON: a core argument"
is "$(field policy_args.promote_after)" 1 "JSON: a policy argument"
is "$(field stats.mode)" writeback "JSON: a counter"
is "$(field needs_check)" False "JSON: needs_check"
hits=$(field read_hits) misses=$(field read_misses)
cmp_ok "$(field read_hit_ratio)" '>' "$(((hits * 1000 / (hits + misses)) - 1))e-3" "JSON: ratio"

# --- mode, set, policy ---------------------------------------------------------------

is "$(polycache mode c)" writeback "mode: printed"
ok "mode: writearound" polycache mode c writearound --wait
is "$(polycache mode c)" writearound "mode: which the status line has no word for"
read_json
is "$(field mode)" writearound "JSON: that mode"
is "$(pc_status_field c dirty)" 0 "mode: --wait left nothing dirty"
ok "mode: passthrough" polycache mode c passthrough -w
is "$(polycache mode c)" passthrough "mode: --wait waited until it was entered"
ok "mode: writeback again" polycache mode c writeback
refused "wrong mode" "mode .*sideways.*writeback, writethrough, writearound or passthrough" \
	mode c sideways

ok "set: two keys of the core" polycache set c writeback_limit 60 writeback_target 50
is "$(pc_status_field c writeback_limit)" 60 "set: the first is in force"
is "$(pc_status_field c writeback_target)" 50 "set: the second is in force"
refused "set: wrong value" "fill .*7.*power of two from 8 to 2048" set c fill 7
refused "set: against another key" "target 80: must be at most writeback_limit, .* 60" \
	set c writeback_target 80
refused "set: a blank" "must be printable" set c fill '8 9'
ok "set: a key of the policy" polycache set c promote_after 3
is "$(pc_status_field c promote_after)" 3 "set: it is in force"
# only the policy knows: the reason comes from the kernel's log
refused "set: the policy's refusal" "c: promote_after none: must be a" set c promote_after none
refused "set: a key that nobody knows" "c: nosuchkey: neither a key of the core" set c nosuchkey 1

is "$(polycache policy c)" lru "policy: printed"
is "$(test -d /sys/module/dm_polycache_cleaner && echo loaded)" "" "policy: module not loaded yet"
ok "policy: module loaded, policy exchanged" polycache policy c cleaner
is "$(polycache policy c)" cleaner "policy: at work"
refused "policy: no such" "policy 'nosuch': its module .* must be auto, default or one of: .*lru" \
	policy c nosuch
refused "policy: a key of the core" "must be a key of the policy" policy c lru fill 8
refused "policy: key without value" "must be an even number" policy c lru promote_after
ok "policy: with its tunables" polycache policy c lru promote_after 2
is "$(pc_status_field c promote_after)" 2 "policy: they are in force"
ok "policy: auto" polycache policy c auto
is "$(polycache policy c)" auto "policy: at work"
is "$(pc_stats c | grep -c '^auto_hits_')" 5 "policy: among all that there are"
ok "policy: default" polycache policy c default
is "$(polycache policy c)" as3fifo "policy: which is"

# --- flush -----------------------------------------------------------------------------

polycache set c writeback_target 100 writeback_limit 100 2>/dev/null ||
	polycache set c writeback_limit 100 writeback_target 100
write_some 0
out=$(polycache flush c 2>&1) || fail "flush" "$out"
like "$out" "^c: clean, [0-9]+ blocks written back in [0-9.]+ s$" "flush: says when it is done"
is "$(pc_status_field c dirty)" 0 "flush: nothing is dirty"
write_some 64
ok "flush: --no-wait" polycache flush --no-wait c
ok "flush: done in the background" poll 30 eval 'test "$(pc_status_field c dirty)" = 0'

dmsetup suspend c
like "$(polycache status c)" "state +good, suspended" "status: suspended"
refused "flush: while suspended" "c: message refused while suspended; resume" flush c
dmsetup resume c

# LVM's volumes go through lvchange, which knows no such one
dmsetup remove --retry c
dmsetup create my--vg-my--lv --uuid "LVM-$(printf '%064d' 1)" \
	--table "$(pc_table $meta $cache $origin 128 writeback lru)"
refused "mode of a logical volume" "my-vg/my-lv: lvchange --cachemode writethrough failed" \
	mode my--vg-my--lv writethrough
refused "policy of a logical volume" "my-vg/my-lv: lvchange --cachepolicy lru failed" \
	policy my--vg-my--lv lru promote_after 4
refused "mode that LVM has not" "LVM knows no mode writearound" mode my--vg-my--lv writearound
dmsetup remove --retry my--vg-my--lv

# --- check and dump ----------------------------------------------------------------------

pc_create c $meta $cache $origin 128 writeback lru
# direct I/O of less than a block: cached in part
dd if=/dev/urandom of=/dev/mapper/c bs=4k count=1 seek=8000 oflag=direct conv=fsync status=none
refused "check: device in use" "the device is in use" check $meta
ok "check: in use, all the same" polycache check --in-use $meta
ok "clean before XML" polycache flush c
used=$(pc_status_field c used)
cmp_ok "$used" '>=' 64 "blocks in the cache"
pc_remove c
before=$(md5sum <$meta)
out=$(polycache check $meta 2>&1) || fail "check" "$out"
like "$out" "state: closed cleanly" "check: closed cleanly"
like "$out" "table: $used blocks mapped" "check: as many blocks as the status had"
is "$(polycache check -q $meta 2>&1)" "" "check: --quiet"
is "$(polycache dump $meta | grep -c '^cache_block ')" "$used" "dump: as many blocks"
polycache dump --xml $meta >all.xml
is "$(grep -cE '<(partial_)?mapping ' all.xml)" "$used" "dump --xml: as many blocks"
polycache dump --xml --whole-only $meta >whole.xml 2>/dev/null
partial=$(grep -c '<partial_mapping ' all.xml || true)
is "$(grep -c '<mapping ' whole.xml)" "$((used - partial))" "dump --xml --whole-only"
is "$(md5sum <$meta)" "$before" "nothing was written"

if command -v cache_restore >/dev/null; then
	dd if=/dev/zero of=$dm_cache bs=1M count=16 oflag=direct status=none
	cmp_ok "$partial" '>' 0 "a block is cached in part"
	nok "cache_restore refuses blocks in part" cache_restore -i all.xml -o $dm_cache
	ok "cache_restore takes whole blocks" cache_restore -i whole.xml -o $dm_cache
	ok "cache_check finds that good" cache_check $dm_cache
	is "$(cache_dump $dm_cache | grep -c '<mapping ')" "$((used - partial))" \
		"cache_dump has as many blocks"
	refused "check: metadata of dm-cache" "holds a dm-cache superblock" check $dm_cache
else
	skip "thin-provisioning-tools are not installed"
fi

# after a damage, check finds what a start refuses
start=$(polycache dump --superblock $meta | awk '$1 == "table_start" { print $2 }')
dd if=/dev/urandom of=$meta bs=512 count=1 seek=$((start * 8 + 2)) conv=fsync status=none
refused "check: damage" "table sector 2 .* has a bad checksum" check $meta
nok "a start refuses it, too" pc_create c $meta $cache $origin 128 writeback lru
