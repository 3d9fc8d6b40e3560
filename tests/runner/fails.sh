#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One assertion of two is wrong. The runner must say: 1 passed, 1 failed.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
is 1 2 "second"
