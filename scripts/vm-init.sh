#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash
#
# /init of the test guest's initramfs, run by busybox. Loads what is needed to
# reach the host's root file system over 9p, mounts it read-only with a tmpfs
# over it, so that the guest can write anywhere without the host noticing, mounts
# the folder for results, and hands over to scripts/vm-guest.sh of the checkout.
# User-mode Linux reaches the host's files by hostfs. Kernel command line:
# pc.top=CHECKOUT, there also pc.out=RESULTS and pc.lib=MODULES, folders of the host.

export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /bin /lower /over /root
/bin/busybox --install -s /bin

give_up()
{
	echo "vm-init: $*" >/dev/console
	echo o >/proc/sysrq-trigger
	sleep 60
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r m; do
	insmod "/modules/$m" || echo "vm-init: cannot load $m" >/dev/console
done </modules/list

top='' out='' lib=''
for word in $(cat /proc/cmdline); do
	case $word in
	pc.top=*) top=${word#pc.top=} ;;
	pc.out=*) out=${word#pc.out=} ;;
	pc.lib=*) lib=${word#pc.lib=} ;;
	esac
done
[ -n "$top" ] || give_up "no pc.top= on the command line"

opts=trans=virtio,version=9p2000.L
if [ -n "$out" ]; then
	mount -t hostfs -o ro,/ root /lower || give_up "cannot mount the root"
else
	mount -t 9p -o "$opts,msize=1048576,cache=loose,ro" root /lower ||
		give_up "cannot mount the root"
fi
mount -t tmpfs -o mode=0755,size=75% over /over || give_up "no tmpfs"
mkdir -p /over/upper /over/work
mount -t overlay -o lowerdir=/lower,upperdir=/over/upper,workdir=/over/work root /root ||
	give_up "cannot mount the overlay"

# The results folder: uncached, every write is on the host when it returns
mkdir -p /root/out
if [ -n "$out" ]; then
	# here soon after, and at once when a file is closed
	mount -t hostfs -o "$out" out /root/out || give_up "cannot mount /out"
	echo 20 >/proc/sys/vm/dirty_writeback_centisecs
	echo 20 >/proc/sys/vm/dirty_expire_centisecs
	mkdir -p "/root/usr/lib/modules/$(uname -r)"
	mount --bind "/lower$lib" "/root/usr/lib/modules/$(uname -r)" || give_up "no modules: $lib"
else
	mount -t 9p -o "$opts,msize=262144,cache=none" out /root/out || give_up "cannot mount /out"
fi

# The host's files as they are, also those below /tmp, and the checkout
mkdir -p /root/host /root/checkout
mount --bind /lower /root/host
mount --bind "/lower$top" /root/checkout || give_up "no checkout at $top"

umount /proc /sys
mount --move /dev /root/dev
exec switch_root /root /bin/bash /out/src/scripts/vm-guest.sh
