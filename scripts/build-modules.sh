#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the modules for one kernel, outside the source folders:
#
#   scripts/build-modules.sh [--check] [--variant NAME] [--simdisk] KERNEL [CFLAG]...
#
# KERNEL is 6.12, 6.1, uml or a full version with headers installed. The sources are
# linked into build/VERSION/, objects stay there, finished modules (also the
# simulated disk of tests/simdisk) are in build/VERSION/ko/. A variant goes to
# build/VERSION+NAME/ and is built with the CFLAGs given, for tests that must fail
# where the product is deliberately broken.
#
# Compiler warnings are errors (Kbuild says so), modpost's and sparse's are made
# errors here; --check makes sparse look at every file, not only at changed ones.
# --simdisk builds the simulated disk alone.
# V=1 shows the commands.

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

variant='' sparse=1 product=1
while [ $# -gt 0 ]; do
	case $1 in
	--variant) variant=$2; shift ;;
	--check) sparse=2 ;;
	--simdisk) product=0 ;;
	-h | --help) sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-*) die "unknown option $1" ;;
	*) break ;;
	esac
	shift
done
series=${1:?usage: build-modules.sh [--check] [--variant NAME] KERNEL [CFLAG]...}
shift
cflags=$*

kver=$(pc_headers_version "$series")
[ -n "$kver" ] || die "no headers for '$series': scripts/setup.sh build"
arch=
if [ "$series" = uml ]; then
	arch=um
	KDIR=$(pc_uml_dir)/build
	# the stock kernels' builds have looked
	sparse=0
fi
kdir=${KDIR:-/lib/modules/$kver/build}
[ -e "$kdir/Makefile" ] || kdir=/usr/src/linux-headers-$kver
[ -e "$kdir/Makefile" ] || die "no kernel build folder at $kdir"
if [ $sparse != 0 ] && ! command -v sparse >/dev/null; then
	echo "build-modules: skipped: sparse is not installed"
	sparse=0
fi

out=$PC_BUILD/$kver${variant:++$variant}
mkdir -p "$out/src" "$out/simdisk" "$out/ko"
exec 9>"$out/lock"
flock 9

# link_tree FROM TO: TO has a link for each source in FROM and none for others. Make
# looks at the age of what a link points to.
link_tree()
{
	local from=$1 to=$2 f

	mkdir -p "$to"
	find "$to" -maxdepth 1 -xtype l -delete
	for f in "$from"/*.[ch] "$from"/Kbuild "$from"/sources.mk; do
		[ ! -e "$f" ] || [ -L "$to/${f##*/}" ] || ln -s "$f" "$to/${f##*/}"
	done
}

link_tree "$PC_TOP" "$out/src"
link_tree "$PC_TOP/dm-target" "$out/src/dm-target"
link_tree "$PC_TOP/policies" "$out/src/policies"
link_tree "$PC_TOP/tests/simdisk" "$out/simdisk"

# Other flags than last time: all is to be built anew
if [ "$(cat "$out/flags" 2>/dev/null)" != "$cflags" ]; then
	find "$out" -name '*.o' -delete
	echo "$cflags" >"$out/flags"
fi

# Variables of a calling make are not the kernel's
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

log=$out/log
# what the kernel's build always says about a module built out of tree
noise='^make(\[[0-9]+\])?: |Skipping BTF|^ +(CHECK|CC|LD|MODPOST|BTF|AR|GEN) '
noise+='|compiler differs|The kernel was built by:|You are using:'

build()
{
	local dir=$1 status=0 bad f

	make -C "$kdir" ${arch:+ARCH=$arch} M="$dir" C=$sparse \
		CF='-D__CHECK_ENDIAN__ -Wno-context' V="${V:-0}" \
		${cflags:+KCFLAGS="$cflags"} -j"$(nproc)" modules >"$log" 2>&1 9>&- || status=$?
	grep -vE "$noise" "$log" | sed -n 1,200p >&2 || true
	[ "${V:-0}" = 0 ] || cat "$log"
	[ $status = 0 ] || die "the modules do not build for $kver"
	bad=$(grep -E "^($dir|$PC_TOP)/.*(warning|error): |^(WARNING|ERROR): modpost" \
		"$log" || true)
	if [ -n "$bad" ]; then
		# so that the next run, too, sees the warning
		for f in $(sed -n "s|^$dir/\(.*\)\.c:.*|\1|p" "$log" | sort -u); do
			rm -f "$dir/$f.o"
		done
		die "warnings for $kver (above)"
	fi
}

[ $product = 0 ] || build "$out/src"
if [ -e "$out/simdisk/Kbuild" ] && [ -z "$variant" ]; then
	build "$out/simdisk"
fi
rm -f "$out/ko"/*.ko
find "$out/src" "$out/simdisk" -maxdepth 1 -name '*.ko' -exec ln -f {} "$out/ko/" \;
echo "modules: $kver${variant:+ ($variant)}: $(cd "$out/ko" && echo *.ko)"
