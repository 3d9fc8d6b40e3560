#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs every suite (make test): layers, style, unit tests, the modules for each
# kernel, the VM tests on each kernel, the bench, the VM runner's own test. A suite that closes
# with "N passed, N failed" counts with these numbers, another as one; a suite that
# fails without having said so counts as one failure more. The rest runs on after a
# failure. Closes with one line, "N passed, N failed". VM tests with a line
# "# once: REASON" run on the first kernel only. Variables: KERNELS; FULL=1 to run these
# on each.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

suite()
{
	local name=$1 start=$SECONDS status counts p f

	shift
	echo "=== $name"
	"$@" </dev/null 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	counts=$(sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
	read -r p f <<<"${counts:-0 0}"
	if [ "$status" != 0 ] && [ "$f" = 0 ]; then
		f=1
	elif [ "$status" = 0 ] && [ "$p" = 0 ] && [ "$f" = 0 ]; then
		p=1
	fi
	passed=$((passed + p))
	failed=$((failed + f))
	echo "=== $name: $p passed, $f failed, $((SECONDS - start)) s"
	[ "$f" = 0 ] || summary+="FAILED: $name"$'\n'
}

summary=
suite layers make layers
suite style make style
suite unit make unit
for k in ${KERNELS:-6.12 6.1}; do
	suite "modules for $k" make matrix KERNELS="$k"
done
flags=
for k in ${KERNELS:-6.12 6.1}; do
	suite "vm on $k" make vm KERNEL="$k" VMFLAGS="$flags"
	[ "${FULL:-0}" = 1 ] || flags=--skip-once
done
suite bench make bench
suite runner make runner
printf '%s' "$summary"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
