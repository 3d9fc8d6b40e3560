#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The kernel log holds what a broken lock would leave. Must count a failure.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
echo "WARNING: possible circular locking dependency detected" >/dev/kmsg
