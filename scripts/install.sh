#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Puts the built modules under /lib/modules/VERSION/updates/dm-polycache and the
# polycache command and manual pages under PREFIX, or takes them away again:
#
#   scripts/install.sh [--remove] [--destdir DIR] [--prefix DIR] KERNEL

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

remove=0 destdir='' prefix=/usr/local
while [ $# -gt 1 ]; do
	case $1 in
	--remove) remove=1 ;;
	--destdir) destdir=$2; shift ;;
	--prefix) prefix=$2; shift ;;
	*) die "unknown option $1" ;;
	esac
	shift
done
kver=$(pc_headers_version "${1:?usage: install.sh [options] KERNEL}")
[ -n "$kver" ] || die "no headers for '$1'"
modules=$destdir/lib/modules/$kver/updates/dm-polycache

if [ $remove = 1 ]; then
	rm -rf "$modules"
	rm -f "$destdir$prefix/sbin/polycache" "$destdir$prefix/share/man/man8/"polycache*.8
else
	install -d "$modules" "$destdir$prefix/sbin"
	# the simulated disk is for tests only
	find "$PC_BUILD/$kver/ko" -name 'dm-polycache*.ko' -exec install -m 644 -t "$modules" {} +
	if [ -x "$PC_BUILD/user/polycache" ]; then
		install -m 755 "$PC_BUILD/user/polycache" "$destdir$prefix/sbin/"
	fi
	for page in "$PC_TOP"/docs/*.8; do
		[ ! -e "$page" ] || install -D -m 644 -t "$destdir$prefix/share/man/man8" "$page"
	done
fi
# a package's own scripts do this on the target machine
[ -n "$destdir" ] || depmod "$kver"
