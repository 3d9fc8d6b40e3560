#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# libdevmapper's dm_get_status_cache() reads our status line in every mode and state,
# with the values that the text has and without a complaint. The kernel's own `cache`
# target goes through the same program first, so that a fault of the test shows there.
# timeout: 200
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 3 32768
make_sim s-meta /dev/ram0
make_sim s-origin /dev/ram2
dev=/dev/mapper/c
meta=/dev/mapper/s-meta origin=/dev/mapper/s-origin

# parsed NAME [KEY=VALUE|-fail|-error]...: the fields agree, and these are as given
parsed()
{
	local name=$1 state='' out status=0 kv

	shift
	case ${1:-} in
	-*) state=${1#-}; shift ;;
	esac
	out=$(dmsetup status c | status-parse $state 2>&1) || status=$?
	for kv in "$@"; do
		grep -qxE -- "$kv ?" <<<"$out" || { out+=$'\n'"expected: $kv"; status=1; }
	done
	if [ $status = 0 ]; then
		pass "$name"
	else
		fail "$name" "$(dmsetup status c)"$'\n'"$out"
	fi
}

status_has()
{
	dmsetup status c | grep -qE "$1"
}

blank()
{
	dd if=/dev/zero of=/dev/ram0 bs=4k count=1 conv=fsync status=none
}

# --- control ----------------------------------------------------------------------

if modprobe -q dm-cache && modprobe -q dm-cache-smq; then
	blank
	PC_TARGET=cache pc_create c $meta /dev/ram1 $origin 64 writethrough smq
	parsed "the kernel's own cache target" features=writethrough policy=smq used=0
	pc_remove c
else
	skip "the kernel's own cache target is not there"
fi

# --- modes and states --------------------------------------------------------------

for mode in writeback writethrough writearound passthrough; do
	blank
	pc_create c $meta /dev/ram1 $origin 64 $mode lru
	text=${mode/writearound/writethrough}
	parsed "$mode: fresh" "features=$text" "core=migration_threshold 2048" policy=lru \
		block_size=64 metadata_block_size=8 total=1024 dirty=0 read_only=0 needs_check=0
	pc-io $dev read first 2000 count 200
	# what is dirty stays so for a while
	[ $mode != writeback ] || dmsetup message s-origin 0 fail write 0 0 0
	pc-io $dev write first 3000 count 200
	parsed "$mode: used" "features=$text"
	if [ $mode = writeback ]; then
		isnt "$(pc_status_field c dirty)" 0 "there are dirty blocks"
		dmsetup message s-origin 0 fail off
		pc_message c policy cleaner
		parsed "$mode: cleaner" policy=cleaner args=
		ok "clean in the end" pc_wait_clean c 30
		parsed "$mode: clean, cleaner" dirty=0 policy=cleaner
		pc_message c policy lru promote_after 3
		parsed "$mode: policy arguments" "args=promote_after 3" policy=lru
		pc_message c bypass_sequential 4096
		pc_message c on_cache_loss fail
		parsed "$mode: core arguments by message" \
			"core=migration_threshold 2048 bypass_sequential 4096 on_cache_loss fail"
		dmsetup suspend c
		parsed "$mode: suspended" policy=lru
		dmsetup resume c
		parsed "$mode: resumed" policy=lru
	fi
	pc_remove c
done

core="migration_threshold 4096 bypass_sequential 128 fill 64 commit_ms 200"
core+=" writeback_target 5 writeback_limit 50"
blank
pc_create c $meta /dev/ram1 $origin 128 "metadata2 writethrough no_discard_passdown" lru \
	"$core on_cache_loss continue promote_after 2"
parsed "all that a table can say" "features=metadata2 writethrough no_discard_passdown" \
	"core=$core on_cache_loss continue" \
	"args=promote_after 2" block_size=128 total=512
pc_message c mode writearound
parsed "writearound by message" "features=metadata2 writethrough no_discard_passdown"
pc_remove c

# --- failures ------------------------------------------------------------------------

blank
pc_create c $meta /dev/ram1 $origin 64 writeback lru
pc-io $dev write first 3000 count 100
dmsetup message s-meta 0 fail write 0 0 0
pc-io $dev write first 4000 count 10 fsync 1 2>/dev/null || true
ok "the metadata device fails: read-only" poll 20 status_has " ro "
parsed "metadata failed" read_only=1 needs_check=1
dmsetup message s-meta 0 fail off
parsed "and works again, too late" read_only=1 needs_check=1
pc_remove c
pc_create c $meta /dev/ram1 $origin 64 writeback lru
parsed "a start that found nothing wrong" read_only=0 needs_check=0
ok "clean" pc_wait_clean c 30
pc_remove c

blank
make_linear l-cache /dev/ram1 65536
pc_create c $meta /dev/mapper/l-cache $origin 64 writethrough lru "fill 8"
pc-io $dev read first 2000 count 300
sync $dev
dmsetup suspend --nolockfs l-cache
dmsetup reload l-cache --table "0 65536 error"
dmsetup resume l-cache
pc-io $dev read first 2000 count 300
ok "the cache device is gone: Fail" poll 20 status_has "cache Fail"
parsed "cache gone" -fail
ok "the origin serves" pc-io $dev read first 2000 count 300
diag "$SECONDS s"
