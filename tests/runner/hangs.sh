#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Reads from a suspended device, which no signal interrupts. Must count a failure
# soon after the limit, and name the blocked task.
# timeout: 5
. "$(dirname "$0")/../vm/lib.sh"
make_brd 1 1024
make_linear lin /dev/ram0 2048
dmsetup suspend --noflush lin
dd if=/dev/mapper/lin of=/dev/null bs=4k count=1 iflag=direct
