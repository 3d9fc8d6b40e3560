# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by the tests that cut the power: three simulated disks with volatile write
# caches in one power domain, and the program that does it (tests/crash/torture.c).

torture=$(command -v torture || echo /none)

# crash_disks [ORIGIN-MIB CACHE-MIB META-KIB]: pmeta, pcache, porigin, and the modules.
# udev looks on: what it does on each of thousands of devices would be most of the time.
crash_disks()
{
	local origin=${1:-8} cache=${2:-3} meta=${3:-1024}

	[ -x "$torture" ] || bail "no torture: make vm-modules"
	load_modules
	make_brd 3 $((origin * 1024))
	crash_disk pmeta /dev/ram0 $((meta * 2))
	crash_disk pcache /dev/ram1 $((cache * 2048))
	crash_disk porigin /dev/ram2 $((origin * 2048))
	udev_settle
	if [ -z "${DM_DISABLE_UDEV:-}" ]; then
		udevadm control --stop-exec-queue
		at_exit udevadm control --start-exec-queue
		export DM_DISABLE_UDEV=1
	fi
}

# crash_disk NAME DEVICE SECTORS
crash_disk()
{
	[ -d /sys/module/dm_pcsim ] || load_modules dm-pcsim
	dmsetup create "$1" --table "0 $3 pcsim $2 wcache 1 domain power"
}

# ok_torture NAME KEY=VALUE...: must find nothing
ok_torture()
{
	local name=$1 status=0

	shift
	"$torture" "$@" >torture.out 2>&1 || status=$?
	tail -n 40 torture.out | sed 's/^\(# \)\?/# /'
	if [ $status = 0 ]; then
		pass "$name"
	else
		fail "$name" "exit status $status"
	fi
}
