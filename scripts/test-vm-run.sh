#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Proves that the VM runner notices what it must: runs the tests of tests/runner,
# most of which go wrong on purpose, and checks what vm-run.sh says of each. Some 90 s.
# Closes with "runner: N passed, N failed".

set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

scripts/vm-run.sh "$@" tests/runner/*.sh >"$log" 2>&1
status=$?

# expect NAME REGEX: a line of the log
expect()
{
	if grep -qE -e "$2" "$log"; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1: no line matches: $2"
		failed=$((failed + 1))
	fi
}

fails_with_1()
{
	if [ "$1" = 1 ]; then
		passed=$((passed + 1))
	else
		echo "not ok - exit status 1: got $1"
		failed=$((failed + 1))
	fi
}

expect "a sound test passes" '^# passed passes: 3 '
expect "a wrong assertion" '^# FAILED fails \('
expect "a command that fails" '^# FAILED dies \('
expect "a job's own status" "^not ok 3 - a job that ought to fail"
expect "no other one" '^# FAILED waits \('
expect "a test that gives up" '^(# )?Bail out! there is no fourth device'
expect "a missing plan" '^# FAILED no-plan: printed no plan'
expect "a report in the kernel log" '^# FAILED splat: the kernel complained'
expect "a fresh kernel after it" '^# passed after-splat: 1 '
expect "a hanging test" '^# FAILED hangs: did not finish in time'
expect "where it hangs" '^# .*task:dd .*state:D'
expect "a panic" '^# FAILED panics: the guest died'
expect "the panic's text" '^# .*Kernel panic - not syncing: sysrq'
expect "a guest that is gone without a word" '^# FAILED powers-off: the guest died'
expect "devices left behind" '^# FAILED z-leftover: left devices or modules behind'
expect "a line to run a test again" '^# run it again: make vm KERNEL=.* T=hangs'
expect "what the emulator broke is run once more" '^# the emulator .* emulator: once more'
expect "and may pass" '^# passed emulator: 1 '
expect "the sum" '^vm .*: 13 passed, 10 failed$'
fails_with_1 $status

# a kernel that finds no first program
scripts/vm-run.sh "$@" --append rdinit=/none tests/runner/passes.sh >"$log" 2>&1
status=$?
expect "a guest that does not start is booted again" '^# the guest did not start: once more'
expect "but not for ever" '^# FAILED: the guest did not start'
expect "its kernel's words" '^# .*Kernel panic - not syncing: VFS'
fails_with_1 $status
[ $failed = 0 ] || tail -n 40 "$log" | sed 's/^/  /'
echo "runner: $passed passed, $failed failed"
[ $failed = 0 ]
