#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Mode and policy are exchanged by message while data is written and verified: every
# mode follows every other, and neither data nor time is lost.
# timeout: 400
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=verify.sh
. "$(dirname "$0")/verify.sh"

load_modules
make_rig 6 14
pc_create c "${rig[@]}" 128 writeback lru
watch_status c
start_fio load 7m /dev/mapper/c

# each ordered pair of modes once
modes=(writethrough writeback writearound writethrough writearound writeback passthrough
	writethrough passthrough writearound passthrough writeback)
policies=(lru cleaner lru lru cleaner lru)
n=0 slow=0 refused=0
while [ $n -lt 14 ]; do
	start=${EPOCHREALTIME/./}
	pc_message c mode "${modes[n % 12]}" || refused=$((refused + 1))
	sleep 0.5
	pc_message c policy "${policies[n % 6]}" || refused=$((refused + 1))
	sleep 0.5
	took=$(((${EPOCHREALTIME/./} - start) / 1000 - 1000))
	[ $took -le $slow ] || slow=$took
	n=$((n + 1))
done
stop_fio "fio verifies while modes and policies are exchanged"
diag "$n rounds, the slowest took $slow ms more than it slept; $(dmsetup status c)"
is $refused 0 "no message is refused"
check_watch switching
pc_message c mode writethrough
pc_message c policy lru
check_clean c "after switching"

# passthrough is entered once all is clean, and then nothing is cached any more
pc_message c mode writeback
dd if=/dev/urandom of=/dev/mapper/c bs=64k count=32 oflag=direct status=none
pc_message c mode passthrough
in_passthrough() { [ "$(pc_stat c mode)" = passthrough ]; }
ok "passthrough is entered" poll 20 in_passthrough
is "$(pc_status_field c dirty)" 0 "passthrough: nothing is dirty"
check_clean c passthrough
