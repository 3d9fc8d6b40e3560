#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Shows that the VM tests notice a broken rule of the I/O path: the power-cut test with
# all its teeth, and for each line of tests/teeth/rules a boot with modules that break
# that rule, in which the test must fail with a wrong assertion. That it passes with
# nothing broken is what make vm shows.
#
#   scripts/test-teeth.sh KERNEL [RULE...]
#
# Some 20 minutes; with rules named, only these of tests/teeth/rules, 40 s each. Closes
# with "teeth: N passed, N failed".

set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/env.sh
. scripts/env.sh

kver=$(pc_kernel_version "$1")
shift
log=$(mktemp)
modules=$(mktemp -d)
trap 'rm -rf "$log" "$modules"' EXIT
passed=0 failed=0
for d in "$PC_BUILD/$kver/ko" "$PC_BUILD/$kver+breakable/ko"; do
	cp -L "$d"/*.ko "$modules/" || exit 1
done

# a line of TAP a rule
if [ $# = 0 ]; then
	scripts/vm-run.sh --kernel "$kver" --env RULES=all 061 | tee "$log"
	passed=$(grep -c '^ok ' "$log")
	failed=$(grep -c '^not ok ' "$log")
	[ "$passed" != 0 ] || failed=$((failed + 1))
fi

while read -r rule bit test; do
	case $rule in '' | '#'*) continue ;; esac
	[ $# = 0 ] || [[ " $* " == *" $rule "* ]] || continue
	scripts/vm-run.sh --kernel "$kver" --modules "$modules" \
		--append "dm_polycache.broken=$((1 << bit))" "$test" >"$log" 2>&1 </dev/null
	if grep -q '^not ok ' "$log"; then
		echo "ok - $rule broken: $test: $(grep -m 1 '^not ok ' "$log")"
		passed=$((passed + 1))
	else
		echo "not ok - $rule broken: $test did not notice"
		tail -n 5 "$log"
		failed=$((failed + 1))
	fi
done <tests/teeth/rules
echo "teeth: $passed passed, $failed failed"
[ $failed = 0 ]
