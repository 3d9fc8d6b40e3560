#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest is gone without a word. Must count a failure, and run what comes after.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
echo o >/proc/sysrq-trigger
sleep 60
