#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the deliberately broken modules that tests/vm/variants asks for, a line a
# variant: NAME CFLAG... A test finds them in $PC_MODULES/NAME and must fail with
# them: that is how it proves that it can.
#
#   scripts/build-variants.sh KERNEL

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

list=$PC_TOP/tests/vm/variants
[ -e "$list" ] || exit 0
while read -r name flags; do
	case $name in '' | '#'*) continue ;; esac
	# shellcheck disable=SC2086
	"$PC_TOP/scripts/build-modules.sh" --variant "$name" "$1" $flags
done <"$list"
