#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a hit costs in CPU: instructions a request, of the whole guest, fio and the RAM
# disk included. Random 4 KiB requests at depth 8 within 16 MiB that all hit; one CPU
# that counts instructions for its clock (vm-run.sh --accel icount), so that two runs
# print the same. Beside a linear mapping and the kernel's own cache; with the policies
# lru, default, and auto, which has the same one at work and watches the others.
# timeout: 3000
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

COUNT=${COUNT:-100000}

load_modules
make_brd 4 65536
udev_off

# cost DEVICE read|write: instructions a request; a nanosecond is one instruction
cost()
{
	fio --name=r --filename="$1" --direct=1 --rw="rand$2" --bs=4k --norandommap \
		--ioengine=libaio --iodepth=8 --size=16m --io_size=$((COUNT * 4))k \
		--clocksource=clock_gettime --gtod_reduce=1 --output-format=json |
		python3 -c 'import json, sys
j = json.load(sys.stdin)["jobs"][0]
print(j["job_runtime"] * 1000000 // (j["read"]["total_ios"] + j["write"]["total_ios"]))'
}

declare -A reads writes
# measure NAME DEVICE
measure()
{
	# several passes: a policy may want to see a block again before it is cached
	for _ in 1 2 3; do
		pc-io "$2" read bs 65536 count 256
	done
	cost "$2" read >/dev/null
	reads[$1]=$(cost "$2" read)
	pc-io "$2" write bs 4096 count 4096
	cost "$2" write >/dev/null
	writes[$1]=$(cost "$2" write)
	diag "$(printf '%-12s %6d a read %6d a write' "$1" "${reads[$1]}" "${writes[$1]}")"
}

# above_linear NAME READS_OR_WRITES
above_linear()
{
	local -n of=$2

	echo $((of[$1] - of[linear]))
}

measure ram /dev/ram3
make_linear lin /dev/ram3 131072
measure linear /dev/mapper/lin
dmsetup remove --retry lin

dmsetup create k --table \
	"0 131072 cache /dev/ram0 /dev/ram1 /dev/ram2 128 1 writeback smq 0"
measure cache /dev/mapper/k
dmsetup remove --retry k

# ours NAME POLICY: of a new cache
ours()
{
	dd if=/dev/zero of=/dev/ram0 bs=64k count=1 oflag=direct status=none
	pc_create c /dev/ram0 /dev/ram1 /dev/ram2 128 writeback "$2"
	measure "$1" /dev/mapper/c
	pc_remove c
}

ours polycache lru
ours default default
ours auto auto

for what in reads writes; do
	diag "above linear, $what: cache $(above_linear cache $what)," \
		"polycache $(above_linear polycache $what)"
done
cmp_ok $((reads[linear] * 100 / reads[polycache])) ">=" 85 \
	"percent of a linear mapping's requests for the same CPU, reads"
for what in reads writes; do
	declare -n of=$what
	diag "auto: $((of[auto] - of[default])) more than default, $what"
	cmp_ok $(((of[auto] - of[default]) * 1000 / of[default])) "<=" 30 \
		"per mille that watching other policies adds to a hit, $what"
done
for what in reads writes; do
	cmp_ok "$(above_linear polycache $what)" "<=" "$(above_linear cache $what)" \
		"$what that hit add no more to a linear mapping than the kernel's cache"
done
