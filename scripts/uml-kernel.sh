#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints the folder of the debug kernel for user-mode Linux, building it first where the
# cache has none (some ten minutes on two cores): scripts/uml-kernel.sh
#
# From Debian's linux-source-6.12 and scripts/uml.config. The folder holds linux, the
# program; build, which modules are built against; lib/modules; and release, its version.
# Named by a checksum of all that goes into it.

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

series=6.12
source=/usr/src/linux-source-$series.tar.xz
config=$PC_TOP/scripts/uml.config
[ -e "$source" ] || die "no $source: scripts/setup.sh uml"

sum=$({ cat "$0" "$config"; dpkg-query -W -f '${Version}' "linux-source-$series"
	gcc -dumpfullversion; } | sha256sum | cut -c 1-16)
dir=$PC_CACHE/uml-$sum
mkdir -p "$PC_CACHE"
exec 9>"$PC_CACHE/uml.lock"
flock 9
if [ -e "$dir/release" ]; then
	echo "$dir"
	exit 0
fi

say()
{
	echo "uml-kernel: $*" >&2
}

say "building the debug kernel (some ten minutes, once): $dir"
# older ones serve nobody
find "$PC_CACHE" -maxdepth 1 -name 'uml-*' -type d -exec rm -rf {} +
mkdir -p "$dir/build"
trap '[ -e "$dir/release" ] || rm -rf "$dir"' EXIT
tar -xJf "$source" -C "$dir/build" --strip-components=1
cd "$dir/build"

# A CPU with AMX has more state than the buffer holds that user-mode Linux saves it in: the
# first process would die of "set fp regs failed".
sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696)/DEFINE_LONGS(HOST_FP_SIZE, 12288)/' \
	arch/x86/um/user-offsets.c
grep -q 'HOST_FP_SIZE, 12288' arch/x86/um/user-offsets.c || die "user-offsets.c has changed"

unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
log=$PC_CACHE/uml-build.log
make_um()
{
	nice make ARCH=um -j"$(nproc)" "$@" >>"$log" 2>&1 9>&- </dev/null ||
		{ tail -n 40 "$log" >&2; die "make $* failed: $log"; }
}

: >"$log"
make_um KCONFIG_ALLCONFIG="$config" allnoconfig
missing=$(sed -n 's/^# \(CONFIG_[A-Z0-9_]*\) is not set$/\1/p' "$config" | while read -r off; do
	! grep "^$off=" .config
done || true
grep '^CONFIG_' "$config" | grep -vxF -f .config || true)
[ -z "$missing" ] || die "the kernel does not take these lines of uml.config:
$missing"
say "compiling"
make_um linux modules
say "installing its modules"
make_um INSTALL_MOD_PATH="$dir" modules_install
mv linux "$dir/linux"
release=$(cat include/config/kernel.release)
# what modules need is headers, scripts and symbols: the objects go
find . -name '*.o' ! -path './scripts/*' ! -path './tools/*' -delete
find . -name '*.c' ! -path './scripts/*' ! -path './tools/*' -delete
rm -f vmlinux vmlinux.a
echo "$release" >"$dir/release"
echo "$dir"
