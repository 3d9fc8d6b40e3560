#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The kernel dies of the emulator's faults, twice. Must be run once more, each time.
. "$(dirname "$0")/../vm/lib.sh"
for fault in "Oops: int3" "RSP: 0018:ffa000000042b950 EFLAGS: 0890a482"; do
	[ ! -e "/out/${fault#* }" ] || continue
	: >"/out/${fault#* }"
	echo "<2>$fault" >/dev/kmsg
	echo c >/proc/sysrq-trigger
	sleep 60
done
pass "the third time"
