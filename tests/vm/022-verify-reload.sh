#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Suspends and table reloads, with another mode and policy each, while data is written
# and verified: no data is lost, the cache stays warm, the metadata is clean each time.
# timeout: 600
# once: two hundred loops
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

# nodes by dmsetup: the loops would wait for udev two hundred times
export DM_DISABLE_UDEV=1
exec 2> >(sed '/^Udev is running/d' >&2)
ROUNDS=${ROUNDS:-100}

load_modules
make_rig 6 14
pc_create c "${rig[@]}" 128 writeback lru
start_fio load 7m /dev/mapper/c
used_enough() { [ "$(pc_status_field c used)" -ge 60 ]; }
ok "the cache fills" poll 60 used_enough

modes=(writethrough writeback writearound writeback writeback writethrough)
policies=(lru cleaner lru)
bad=0 least=1000000 start=$SECONDS
for ((n = 0; n < ROUNDS; n++)); do
	# suspend alone, without flush every other time
	flags=
	[ $((n % 2)) = 0 ] || flags=--noflush
	# shellcheck disable=SC2086
	dmsetup suspend $flags c && dmsetup resume c || bad=$((bad + 1))
	pc_reload c "${rig[@]}" 128 "${modes[n % 6]}" "${policies[n % 3]}" || bad=$((bad + 1))
	used=$(pc_status_field c used)
	[ "$used" -ge "$least" ] || least=$used
done
diag "$ROUNDS rounds of suspend and reload in $((SECONDS - start)) s; at least $least blocks used"
is $bad 0 "every suspend, reload and resume works"
cmp_ok "$least" ">=" 50 "the cache stays warm"
stop_fio "fio verifies over suspends and reloads"
check_clean c "after reloads"
is "$(kmsg | grep -cE 'could not be made durable|clean shutdown failed|recover' || :)" 0 \
	"every stop was a clean one"

# warm: what was cached is, to the block, after a reload without load
before=$(pc_status_field c used)
pc_reload c "${rig[@]}" 128 writethrough lru
is "$(pc_status_field c used)" "$before" "a reload keeps every block"
pc_remove c
pc_create c "${rig[@]}" 128 writethrough lru
is "$(pc_status_field c used)" "$before" "so does a new start"
