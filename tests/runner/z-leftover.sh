#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Leaves a device that is in use. Must count a failure.
. "$(dirname "$0")/../vm/lib.sh"
make_brd 1 1024
make_linear lin /dev/ram0 2048
setsid -f sleep 1000 </dev/mapper/lin
pass "first"
