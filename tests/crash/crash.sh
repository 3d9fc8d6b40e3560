# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by the tests that cut the power: three simulated disks with volatile write
# caches in one power domain, and the program that does it (tests/crash/torture.c).

torture=$(command -v torture || echo /none)

# crash_disks: the modules, and the disks pmeta, pcache, porigin. udev looks on: what
# it does on each of thousands of devices would be most of the time.
crash_disks()
{
	load_modules
	crash_make_disks
}

# crash_disks_with VARIANT: the same with modules built differently (tests/vm/variants)
crash_disks_with()
{
	load_variant "$1" dm-polycache dm-polycache-lru dm-polycache-cleaner
	crash_make_disks
}

crash_make_disks()
{
	[ -x "$torture" ] || bail "no torture: make vm-modules"
	make_brd 3 8192
	crash_disk pmeta /dev/ram0 2048
	crash_disk pcache /dev/ram1 6144
	crash_disk porigin /dev/ram2 16384 discard zero
	udev_settle
	if [ -z "${DM_DISABLE_UDEV:-}" ]; then
		udevadm control --stop-exec-queue
		at_exit 'unset DM_DISABLE_UDEV; udev_resume'
		export DM_DISABLE_UDEV=1
	fi
}

# crash_disk NAME DEVICE SECTORS [ARG]...
crash_disk()
{
	[ -d /sys/module/dm_pcsim ] || load_modules dm-pcsim
	dmsetup create "$1" --table "0 $3 pcsim $2 wcache 1 domain power ${*:4}"
}

# run_torture KEY=VALUE...: its status; the device does not stay
run_torture()
{
	local status=0

	"$torture" "$@" >torture.out 2>&1 || status=$?
	if [ $status != 0 ] && dmsetup info cut >/dev/null 2>&1; then
		pc_message porigin revive
		dmsetup remove --retry cut
	fi
	return $status
}

# ok_torture NAME KEY=VALUE...: must find nothing
ok_torture()
{
	local name=$1 status=0

	shift
	run_torture "$@" || status=$?
	tail -n 60 torture.out | sed 's/^\(# \)\?/# /'
	if [ $status = 0 ]; then
		pass "$name"
	else
		fail "$name" "exit status $status"
	fi
}

# nok_torture NAME CUTS KEY=VALUE...: must find wrong data or counts
nok_torture()
{
	local name=$1 cuts=$2 status=0

	shift 2
	run_torture cuts="$cuts" "$@" || status=$?
	grep -E 'WRONG|^cuts' torture.out | sed 's/^\(# \)\?/# /' || true
	if [ $status = 1 ]; then
		pass "$name: found"
	else
		tail -n 20 torture.out | sed 's/^\(# \)\?/# /'
		fail "$name: not found in $cuts cuts" "exit status $status"
	fi
}
