#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs cmocka programs one after the other and adds up. A program that dies without
# a summary counts as one failure.
passed=0
failed=0
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT

for program; do
	echo "== ${program##*/}"
	"$program" >"$log" 2>&1
	status=$?
	cat "$log"
	ok=$(grep -c '^\[       OK \]' "$log")
	bad=$(sed -n 's/^ *\([0-9][0-9]*\) FAILED TEST(S).*/\1/p' "$log" | tail -n 1)
	if [ "$status" -ne 0 ] && [ "${bad:-0}" -eq 0 ]; then
		echo "${program##*/}: ended with status $status"
		bad=1
	fi
	passed=$((passed + ok))
	failed=$((failed + ${bad:-0}))
done

echo "unit: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
