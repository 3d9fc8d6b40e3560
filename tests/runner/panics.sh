#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The kernel dies. Must count a failure, show the panic, and run what comes after.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
echo c >/proc/sysrq-trigger
sleep 60
