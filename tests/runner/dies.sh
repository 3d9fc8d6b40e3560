#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A command fails outside a condition. The runner must count a failure.
. "$(dirname "$0")/../vm/lib.sh"
pass "first"
cat /nonexistent
pass "never reached"
