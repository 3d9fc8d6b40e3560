#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest itself: two CPUs, the wanted kernel, RAM disks, real udev nodes for a
# dm device, and a clean removal. What fails here is the test machinery's fault.
# timeout: 60
. "$(dirname "$0")/lib.sh"

like "$(uname -r)" '^6\.' "kernel $(uname -r)"
cmp_ok "$(nproc)" ">=" 1 "CPUs: $(nproc)"
is "$(findmnt -no FSTYPE /)" overlay "the root is an overlay"

make_brd 2 16384
is "$(sectors_of /dev/ram1)" 32768 "a RAM disk of 16 MiB"

make_linear lin /dev/ram0 8192 2048
ok "udev made the node of the dm device" test -b /dev/mapper/lin
head -c 1M /dev/urandom >data
dd if=data of=/dev/mapper/lin bs=64k oflag=direct status=none
dd if=/dev/ram0 of=seen bs=1M skip=1 count=1 status=none
ok "data arrives at the offset" cmp data seen
is "$(dm_inflight lin)" "0 0" "nothing in flight"
dmsetup remove --retry lin
nok "the node is gone" test -e /dev/mapper/lin
