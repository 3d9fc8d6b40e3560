#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Power cuts through volatile write caches on cache, metadata and origin at once:
# nothing that was acknowledged before an acknowledged flush is missing, what was
# read after a recovery never changes, only blocks with intents become dirty.
# CUTS, SEED and FIRST in the environment (vm-run.sh --env); the program and
# what it checks: tests/crash/torture.c.
# timeout: 900
# once: two hundred power cuts
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../crash/crash.sh
. "$(dirname "$0")/../crash/crash.sh"

crash_disks
seed=${SEED:-$(date +%s)}
diag "SEED=$seed CUTS=${CUTS:-200} FIRST=${FIRST:-0}"
ok_torture "${CUTS:-200} power cuts" seed="$seed" cuts="${CUTS:-200}" first="${FIRST:-0}"
