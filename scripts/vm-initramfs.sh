#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints the path of the test guest's initramfs for a kernel, building it first
# where the cache has none: scripts/vm-initramfs.sh KERNEL-VERSION
#
# It holds busybox, scripts/vm-init.sh and the modules, decompressed, that reach
# the host's root over 9p. Named by a checksum of all that goes into it.

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

kver=${1:?usage: vm-initramfs.sh KERNEL-VERSION}
init=$PC_TOP/scripts/vm-init.sh
busybox=$(command -v busybox) || die "busybox is missing: scripts/setup.sh vm"

# modprobe prints "insmod PATH" or "builtin NAME", dependencies first; the debug kernel
# has all it needs built in
needed=$([ -e "/lib/modules/$kver" ] || exit 0
for m in virtio_pci 9pnet_virtio 9p overlay; do
	modprobe -C /dev/null -S "$kver" --show-depends "$m"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }')

# shellcheck disable=SC2086
sum=$({ cat "$0" "$init"; stat -L -c '%n %s %Y' "$busybox" $needed; } | sha256sum | cut -c 1-16)
image=$PC_CACHE/initramfs-$kver-$sum.gz
if [ ! -s "$image" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	mkdir -p "$dir/bin" "$dir/modules" "$PC_CACHE"
	cp "$busybox" "$dir/bin/busybox"
	cp "$init" "$dir/init"
	chmod 755 "$dir/init" "$dir/bin/busybox"
	for m in $needed; do
		name=$(basename "$m")
		name=${name%%.ko*}.ko
		case $m in
		*.xz) xz -dc "$m" >"$dir/modules/$name" ;;
		*.gz) gzip -dc "$m" >"$dir/modules/$name" ;;
		*.zst) zstd -dc "$m" >"$dir/modules/$name" ;;
		*) cp "$m" "$dir/modules/$name" ;;
		esac
		echo "$name" >>"$dir/modules/list"
	done
	touch "$dir/modules/list"
	(cd "$dir" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$image.$$"
	# other checkouts may be using theirs: only what is old goes
	find "$PC_CACHE" -maxdepth 1 -name 'initramfs-*.gz' -mtime +7 -delete
	mv "$image.$$" "$image"
fi
echo "$image"
