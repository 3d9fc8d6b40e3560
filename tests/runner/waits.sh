#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A job that goes on is waited for, and its own status judged. The runner must say:
# 2 passed, and one failed.
. "$(dirname "$0")/../vm/lib.sh"
sleep 0.5 &
ok "a job that ends well" wait $!
(sleep 0.5; exit 3) &
nok "a job that fails" wait $!
(sleep 0.5; true) &
nok "a job that ought to fail" wait $!
