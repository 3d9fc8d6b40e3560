#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs the Debian packages that building and testing need, by groups:
#
#   scripts/setup.sh [build|unit|vm|uml|all]...
#
# Called by the make targets, each for its own groups. Where everything is there
# it does nothing, in a fraction of a second; otherwise it says what it installs
# and what for, then runs apt-get without questions and without recommended
# packages. It changes nothing else on the machine. Needs root only then.

set -euo pipefail

# package  what for
group_build()
{
	cat <<-EOF
	gcc			compiler of the kernel's headers package and of the tools
	make			runs everything
	libc6-dev		C library headers for the tools
	linux-headers-6.12-amd64	to build the modules for Debian's 6.12
	linux-headers-amd64	to build the modules for Debian's 6.1
	sparse			checks endianness and typed block numbers in the modules
	libdevmapper-dev	the polycache command talks to device-mapper through it
	libjson-c-dev	the polycache command writes --json with it
	libarchive-dev	polycache sim reads compressed traces through it
	gnuplot-nox		polycache sim draws its curves with it
	pkg-config		finds libdevmapper
	kmod			depmod, modprobe, modinfo
	EOF
}

group_unit()
{
	cat <<-EOF
	gcc			builds the unit tests with sanitizers
	make			runs everything
	libc6-dev		C library headers
	libdevmapper-dev	the tools are built and tested too
	libjson-c-dev	the same
	libarchive-dev	the same
	gnuplot-nox		the same
	pkg-config		finds libraries
	libcmocka-dev		unit test framework
	clang			builds the fuzzers
	libclang-rt-14-dev	the fuzzers' runtime
	clang-format		checks the format of the C sources
	shellcheck		checks the scripts
	python3			the layering check
	perl			checkpatch
	xz-utils		takes checkpatch out of the kernel source package
	linux-source-6.12	holds checkpatch, the kernel's style checker
	EOF
}

group_vm()
{
	cat <<-EOF
	qemu-system-x86		runs the test kernels
	linux-image-6.12-amd64	the kernel that the tests boot
	linux-image-amd64	the same, 6.1
	busybox-static		first user program of the guest
	cpio			packs the initramfs
	xz-utils		unpacks modules for the initramfs
	kmod			finds modules for the initramfs; in the guest: loads them
	udev			in the guest: device nodes as on a real system
	dmsetup			in the guest: drives device-mapper
	lvm2			in the guest: logical volumes
	thin-provisioning-tools	in the guest: dm-cache's metadata tools
	fio			in the guest: load and verification
	e2fsprogs		in the guest: a file system for the tests
	procps			in the guest: process tools
	EOF
}

group_uml()
{
	cat <<-EOF
	linux-source-6.12	becomes the debug kernel, for user-mode Linux
	gcc			compiles it
	libc6-dev		it is a program
	make			the same
	flex			for its configuration
	bison			the same
	bc			for its build
	xz-utils		unpacks the source
	EOF
}

usage()
{
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
}

list=
for group in "${@:-all}"; do
	case $group in
	build | unit | vm | uml) list+=$(group_"$group")$'\n' ;;
	all) list+=$(group_build; group_unit; group_vm)$'\n' ;;
	-h | --help) usage; exit 0 ;;
	*) echo "setup.sh: unknown group '$group' (build, unit, vm, uml, all)" >&2; exit 2 ;;
	esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "setup.sh: not a Debian system; install what corresponds to these packages:" >&2
	sort -u <<<"$list" >&2
	exit 1
fi

mapfile -t wanted < <(awk 'NF { print $1 }' <<<"$list" | sort -u)
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
	awk '$1 == "installed" { print $2 }' || true)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}") <(sort -u <<<"$have"))
[ ${#missing[@]} -gt 0 ] || exit 0

echo "setup: installing ${#missing[@]} Debian packages:"
for p in "${missing[@]}"; do
	awk -v p="$p" '$1 == p { $1 = ""; printf "  %-26s%s\n", p, $0; exit }' <<<"$list"
done

if [ "$(id -u)" -ne 0 ]; then
	echo "setup.sh: run as root, or: sudo apt-get install ${missing[*]}" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -y -q -o DPkg::Lock::Timeout=600)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run()
{
	# 3 attempts: mirrors and other users of the package lock come and go
	local try

	for try in 1 2 3; do
		if "$@" </dev/null >"$log" 2>&1; then
			return 0
		fi
		echo "setup: attempt $try of '${*:1:1} ${*: -1}' failed" >&2
		sleep $((try * 5))
	done
	tail -n 40 "$log" >&2
	return 1
}

echo "setup: apt-get update"
run "${apt[@]}" update
echo "setup: apt-get install (some minutes)"
run "${apt[@]}" install --no-install-recommends "${missing[@]}"
echo "setup: done"
