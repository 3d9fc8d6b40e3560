#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two assertions and a skipped one. The runner must say: 2 passed.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
is 1 1 "second"
skip "not here"
