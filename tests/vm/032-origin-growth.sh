#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The origin grows by a reload with a longer target: what is cached stays, the new area
# works, the block at the old end too. It shrinks only where nothing dirty is beyond
# the new end; what was cached there is dropped.
# timeout: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_rig 8 16
make_sim disk /dev/mapper/slow
rig[2]=/dev/mapper/disk
origin() { dmsetup message disk 0 "$@"; }
small=12301		# neither a multiple of the block nor of 4 KiB
large=32768
pattern() { head -c "$1" /dev/urandom; }
put() { dd if="$1" of=/dev/mapper/c bs=512 seek="$2" oflag=direct status=none; }
get() { dd if="${3:-/dev/mapper/c}" bs=512 skip="$1" count="$2" iflag=direct status=none; }

PC_SECTORS=$small pc_create c "${rig[@]}" 128 writeback lru
pattern 1M >begin
put begin 0
# over the old end's block, to its last sector
pattern $(((small - 12200) * 512)) >edge
put edge 12200
used=$(pc_status_field c used)
hits=$(pc_status_field c read_hits)
is "$(blockdev --getsz /dev/mapper/c)" $small "small"

PC_SECTORS=$large pc_reload c "${rig[@]}" 128 writeback lru
is "$(blockdev --getsz /dev/mapper/c)" $large "grown by a reload"
cmp_ok "$(pc_status_field c used)" ">=" "$used" "every cached block is still there"
ok "and read back" cmp begin <(get 0 2048)
cmp_ok "$(pc_status_field c read_hits)" ">" "$hits" "from the cache"
ok "the old end reads back" cmp edge <(get 12200 $((small - 12200)))
is "$(get $small 400 | tr -d '\0' | wc -c)" 0 "beyond it the origin shows"
pattern 1M >new
put new 12280
ok "a write over the old end reads back" cmp new <(get 12280 2048)
pattern 512K >last
put last $((large - 1024))
ok "the new end is written and read back" cmp last <(get $((large - 1024)) 1024)
cmp_ok "$(pc_status_field c used)" ">" "$used" "the new area is cached"
status=0
fio_verify load 3m /dev/mapper/c --offset=4m --size=3m --loops=1 || status=$?
fio_passed "fio verifies over the whole" load.out $status
check_clean c "grown"

# dirty beyond the end, because the origin takes no writes
pattern 64K >d
is_cached()
{
	local misses

	misses=$(pc_status_field c write_misses)
	put d 30000
	[ "$(pc_status_field c write_misses)" = "$misses" ]
}
ok "a write beyond the end to be is cached" poll 20 is_cached
origin fail write 0 0 0
put d 30000
cmp_ok "$(pc_status_field c dirty)" ">" 0 "dirty beyond the end to be"
used=$(pc_status_field c used)
refused() { PC_SECTORS=$small pc_reload c "${rig[@]}" 128 writeback lru; }
kmsg_mark
nok "shrinking is refused while something dirty lies beyond" refused
like "$(kmsg)" 'shrunk from 32768 to 12301.* dirty' "the reason is said"
# the kernel gave the old table away before it asked whether the new one would do
PC_SECTORS=$large pc_reload c "${rig[@]}" 128 writeback lru
is "$(blockdev --getsz /dev/mapper/c)" $large "the old table, loaded again, works"
origin fail off
ok "and has its data" cmp d <(get 30000 128)
check_clean c "after the refusal"

# clean: what lies beyond is dropped
get 0 $large >/dev/null
get 30000 8 >/dev/null
used=$(pc_status_field c used)
PC_SECTORS=$small pc_reload c "${rig[@]}" 128 writeback lru
is "$(blockdev --getsz /dev/mapper/c)" $small "shrunk"
cmp_ok "$(pc_status_field c used)" "<" "$used" "blocks beyond the end are dropped"
cmp_ok "$(pc_status_field c used)" "<=" 97 "all of them"
get 0 $small >before
PC_SECTORS=$large pc_reload c "${rig[@]}" 128 writeback lru
pc_message c mode writethrough
ok "the rest is as before" cmp before <(get 0 $small)
# the origin is changed behind the target's back beyond the small end: no old copy shows
ok "what lay beyond is the origin's" cmp <(get $small 20000) <(get $small 20000 /dev/mapper/slow)
check_clean c "grown again"
