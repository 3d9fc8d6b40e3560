# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by the other scripts: where the checkout and the cache folder are, and
# which of the installed Debian kernels stands for "6.12" or "6.1"; "uml" is the debug
# kernel (uml-kernel.sh). Nothing is executed here but assignments and function definitions.

PC_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
PC_BUILD=${PC_BUILD:-$PC_TOP/build}

# What is expensive to make and independent of the checkout: initramfs images,
# the result of the kvm probe, checkpatch. An ordinary user gets his own.
if [ -z "${PC_CACHE:-}" ]; then
	PC_CACHE=/var/cache/dm-polycache
	if ! mkdir -p "$PC_CACHE" 2>/dev/null || [ ! -w "$PC_CACHE" ]; then
		PC_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/dm-polycache
	fi
fi
export PC_TOP PC_BUILD PC_CACHE

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# Newest name PREFIX<version>-amd64 of a series: pc_newest /boot/vmlinuz- 6.12
# prints the full version. The cloud flavour lacks 9p and is left out by the glob.
pc_newest()
{
	local prefix=$1 series=$2 f

	for f in "$prefix$series"-amd64 "$prefix$series"[.+-]*-amd64; do
		[ -e "$f" ] || continue
		case $f in *-cloud-amd64 | *-rt-amd64) continue ;; esac
		echo "${f#"$prefix"}"
	done | sort -V | tail -n 1
}

# The version of the debug kernel, which is built if need be, and its folder.
pc_uml_version()
{
	local dir

	dir=$("$PC_TOP/scripts/uml-kernel.sh") && cat "$dir/release"
}

pc_uml_dir()
{
	"$PC_TOP/scripts/uml-kernel.sh"
}

# Full version of the installed kernel image (headers) that stands for a series;
# a full version stands for itself.
pc_kernel_version()
{
	if [ "$1" = uml ]; then
		pc_uml_version
	elif [ -e "/boot/vmlinuz-$1" ]; then
		echo "$1"
	else
		pc_newest /boot/vmlinuz- "$1"
	fi
}

pc_headers_version()
{
	if [ "$1" = uml ]; then
		pc_uml_version
	elif [ -e "/lib/modules/$1/build" ]; then
		echo "$1"
	else
		pc_newest /usr/src/linux-headers- "$1"
	fi
}
