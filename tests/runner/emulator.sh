#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The kernel dies of the emulator's fault, the first time. Must be run once more.
. "$(dirname "$0")/../vm/lib.sh"
if [ ! -e /out/emulator-erred ]; then
	: >/out/emulator-erred
	echo "<2>Oops: int3" >/dev/kmsg
	echo c >/proc/sysrq-trigger
	sleep 60
fi
pass "the second time"
