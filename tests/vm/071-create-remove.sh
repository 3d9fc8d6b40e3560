#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Devices come and go: with I/O just over, never resumed, refused at each step of the
# constructor, suspended twice, reloaded. Nothing stays behind, nothing is lost, and the
# metadata of a device that was never resumed is still blank.
# timeout: 300
# once: much of the same on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 4 16384
udev_off
dm()
{
	timeout 60 dmsetup "$@" 2>&1 | { grep -v "^Udev is running" || :; }
	return "${PIPESTATUS[0]}"
}
is_quiet() { [ "$(dm_inflight c)" = "0 0" ]; }
table() { pc_table /dev/ram0 /dev/ram1 /dev/ram2 "$@"; }

# --- never resumed ------------------------------------------------------------

create_loaded() { dm create c --notable && dm load c --table "$(table 128 writeback lru)"; }
for i in 1 2 3; do
	create_loaded || fail "load $i"
	dm remove c || fail "remove $i without a resume"
done
ok "blank as before" cmp -n 4096 /dev/ram0 /dev/zero

create_loaded
dm clear c
dm remove c
pass "an inactive table is cleared"

# --- refused constructors -----------------------------------------------------

refused()
{
	local name=$1

	shift
	nok "refused: $name" dm create c --table "0 ${SECTORS:-32768} polycache $*"
	dm remove c >/dev/null || :
}
good=(/dev/ram0 /dev/ram1 /dev/ram2)
refused "no argument"
refused "no such metadata device" /dev/nowhere /dev/ram1 /dev/ram2 128 0 lru 0
refused "no such cache device" /dev/ram0 /dev/nowhere /dev/ram2 128 0 lru 0
refused "no such origin" /dev/ram0 /dev/ram1 /dev/nowhere 128 0 lru 0
refused "a device twice" /dev/ram0 /dev/ram1 /dev/ram1 128 0 lru 0
refused "block size" "${good[@]}" 100 0 lru 0
refused "a block larger than the cache" "${good[@]}" 65536 0 lru 0
refused "no such policy" "${good[@]}" 128 0 nobody 0
refused "a wrong policy argument" "${good[@]}" 128 0 lru 2 promote_after x
SECTORS=99999999 refused "origin too small" "${good[@]}" 128 0 lru 0
dd if=/dev/urandom of=/dev/ram3 bs=4k count=1 oflag=direct status=none
refused "unknown metadata" /dev/ram3 /dev/ram1 /dev/ram2 128 0 lru 0
ok "still blank" cmp -n 4096 /dev/ram0 /dev/zero

# --- cycles -------------------------------------------------------------------

dd if=/dev/zero of=/dev/ram2 bs=64k oflag=direct status=none 2>/dev/null || :
start=$SECONDS n=0
while [ $n -lt 200 ] && [ $((SECONDS - start)) -lt 40 ]; do
	n=$((n + 1))
	dm create c --table "$(table 128 writeback lru)" || fail "create $n"
	# still being written back, filled and committed when the device goes
	pc-io /dev/mapper/c write bs 4096 random 1000 count 20 jobs 4 seed $n byte 256 ||
			fail "write $n"
	pc-io /dev/mapper/c read bs 4096 random 1000 count 20 jobs 4 seed $n || fail "read $n"
	dm remove c || fail "remove $n"
done
cmp_ok $n ">" 5 "create, write, read and remove"
diag "$n times"
dm create c --table "$(table 128 writeback lru)"
like "$(dm status c)" "rw -" "sound after them"

# --- suspend and resume --------------------------------------------------------

for i in 1 2 3; do
	dm suspend c || fail "suspend $i"
	dm suspend c || fail "suspend $i again"
	dm resume c || fail "resume $i"
	dm resume c || fail "resume $i again"
done
pass "suspended and resumed twice, three times"
pc-io /dev/mapper/c write bs 4096 first 100 count 50 byte 256
dm suspend --noflush c
dm resume c
ok "data over a suspend without flush" pc-io /dev/mapper/c read bs 4096 first 100 count 50 check 256

# a table that is loaded while the device lives, and goes unused
dm load c --table "$(table 128 writethrough lru)"
nok "a wrong table" dm load c --table "$(table 64 writethrough lru)"
dm clear c
# and one that is used, in the middle of I/O
pc-io /dev/mapper/c mixed bs 4096 random 1000 count 0 seconds 4 jobs 4 first 1000 &
io=$!
for mode in writethrough writeback writearound writeback; do
	dm load c --table "$(table 128 $mode lru)" || fail "load $mode"
	dm resume c || fail "resume $mode"
done
ok "four tables under I/O" wait $io
ok "data over reloads" pc-io /dev/mapper/c read bs 4096 first 100 count 50 check 256
ok "nothing in flight" is_quiet
ok "removed" dm remove c
