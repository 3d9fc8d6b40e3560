#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Comes after a test that spoilt the kernel: must run all the same, in a new boot.
. "$(dirname "$0")/../vm/lib.sh"
unlike "$(dmesg)" "circular locking" "a fresh kernel"
