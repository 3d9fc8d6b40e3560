# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by every test in tests/vm. A test is a bash script that runs as root in
# the guest (scripts/vm-run.sh) and prints TAP: one line an assertion, a plan at
# the end (tap_plan is optional; without it the plan is what was run). Its working
# folder is a tmpfs of its own. A command that fails outside a condition ends the
# test as failed, with the line. Afterwards at_exit's commands run, last first,
# then every dm device, loop device and module that the test left is removed.
#
#   #!/bin/bash
#   # SPDX-License-Identifier: GPL-2.0-only
#   # What must hold, in a sentence or two.
#   # timeout: 120
#   . "$(dirname "$0")/lib.sh"
#   load_modules
#   make_brd 3 65536
#   pc_create c /dev/ram0 /dev/ram1 /dev/ram2 128 writeback lru
#   is "$(pc_status_field c dirty)" 0 "a new cache is clean"
#
# Sectors are 512 bytes. Environment: PC_MODULES (folder of the .ko files), PC_KVER,
# PC_SRC (the checkout, read-only), PC_TEST (name of the test), TMPDIR.

# --- removing what a test left ---------------------------------------------

# vm_reset: remove dm devices from the top down, loop and configfs devices, then
# modules. Prints what could not be removed; silence is success.
vm_reset()
{
	local round name busy m d

	for round in 1 2 3 4 5 6 7 8 9 10; do
		busy=
		for name in $(dmsetup ls 2>/dev/null | awk '$0 !~ /^No devices/ { print $1 }'); do
			# a suspended device would make everything above it hang
			dmsetup resume "$name" >/dev/null 2>&1
			dmsetup remove "$name" >/dev/null 2>&1 || busy+=" $name"
		done
		[ -n "$busy" ] || break
		[ "$round" -lt 5 ] || sleep 0.5
	done
	[ -z "$busy" ] || echo "dm devices still there:$busy"
	# made while udev was off: udev would not replace them by its links
	[ -n "$busy" ] || find /dev/mapper -type b -delete

	losetup -D 2>/dev/null
	for d in /sys/kernel/config/nullb/*/; do
		[ -e "${d}power" ] || continue
		echo 0 >"${d}power"
		rmdir "$d" || echo "null_blk still there: $d"
	done

	for round in 1 2 3 4 5 6 7 8 9 10; do
		busy=
		for m in $(awk '$1 ~ /^dm_(polycache|pcsim)/ { print $1 }' /proc/modules); do
			rmmod "$m" 2>/dev/null || busy+=" $m"
		done
		[ -n "$busy" ] || break
		[ "$round" -lt 5 ] || sleep 0.3
	done
	[ -z "$busy" ] || echo "modules still there:$busy"

	for m in scsi_debug brd null_blk dm_delay dm_flakey dm_log_writes; do
		[ ! -d /sys/module/$m ] || [ ! -e /sys/module/$m/refcnt ] ||
			rmmod $m 2>/dev/null || echo "module still there: $m"
	done
}

if [ "${1:-}" = --no-test ]; then
	return 0
fi

# --- TAP --------------------------------------------------------------------

set -euo pipefail
PC_TEST=${PC_TEST:-$(basename "$0" .sh)}
tap_count=0
tap_failed=0
tap_planned=
exit_commands=()
# what the command of ok or nok printed, and where the test's own lines go meanwhile
tap_out=$(mktemp)
exec {tap_fd}>&1

tap_plan()
{
	tap_planned=$1
	echo "1..$1"
}

# diag TEXT: a comment for the reader, one or more lines
diag()
{
	sed 's/^/# /' <<<"$*"
}

pass()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $*"
}

# fail NAME [DETAIL]: one failed assertion; the test goes on
fail()
{
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $1"
	[ $# -lt 2 ] || diag "${*:2}"
}

skip()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - # SKIP $*"
}

# skip_all REASON: the whole test makes no sense here
skip_all()
{
	tap_planned=0
	echo "1..0 # SKIP $*"
	exit 0
}

# bail REASON: nothing further can be tested
bail()
{
	echo "Bail out! $*"
	tap_failed=$((tap_failed + 1))
	exit 1
}

# ok NAME COMMAND...: the command must succeed; nok: must fail. Output is shown
# where it does not. The command runs in the test's own shell, so that it may be a
# wait for one of the test's jobs.
ok()
{
	local tap_status=0

	"${@:2}" >"$tap_out" 2>&1 || tap_status=$?
	if [ $tap_status = 0 ]; then
		pass "$1"
	else
		fail "$1" "exit status $tap_status of: ${*:2}"$'\n'"$(<"$tap_out")"
	fi
	: >"$tap_out"
}

nok()
{
	local tap_status=0

	"${@:2}" >"$tap_out" 2>&1 || tap_status=$?
	if [ $tap_status = 0 ]; then
		fail "$1" "succeeded: ${*:2}"$'\n'"$(<"$tap_out")"
	else
		pass "$1"
	fi
	: >"$tap_out"
}

# is GOT WANT NAME, and its relatives
is()
{
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3" "     got: $1"$'\n'"expected: $2"
	fi
}
assert_eq()
{
	is "$@"
}

isnt()
{
	if [ "$1" != "$2" ]; then
		pass "$3"
	else
		fail "$3" "got what it should not be: $1"
	fi
}

# like GOT REGEX NAME: extended regular expression; unlike: must not match
like()
{
	if grep -qE -e "$2" <<<"$1"; then
		pass "$3"
	else
		fail "$3" "          got: $1"$'\n'"does not match: $2"
	fi
}

unlike()
{
	if grep -qE -e "$2" <<<"$1"; then
		fail "$3" "    got: $1"$'\n'"matches: $2"
	else
		pass "$3"
	fi
}

# cmp_ok GOT OP WANT NAME: numbers, OP one of == != < <= > >=; fractions allowed
cmp_ok()
{
	case $2 in
	"<" | "<=" | ">" | ">=" | "==" | "!=") ;;
	*) bail "cmp_ok: operator $2, must be one of awk's" ;;
	esac
	if awk -v a="$1" -v b="$3" "BEGIN { exit !((a + 0) $2 (b + 0)) }" && [ -n "$1" ]; then
		pass "$4"
	else
		fail "$4" "not true: '$1' $2 $3"
	fi
}

# poll SECONDS COMMAND...: until it succeeds; its last status where it never does
poll()
{
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

at_exit()
{
	exit_commands+=("$*")
}

tap_exit()
{
	local status=$? i left

	trap - EXIT ERR
	set +e
	exec >&$tap_fd 2>&1
	# a command of ok or nok may be what ended the test
	[ ! -s "$tap_out" ] || diag "$(<"$tap_out")"
	rm -f "$tap_out"
	for ((i = ${#exit_commands[@]} - 1; i >= 0; i--)); do
		eval "${exit_commands[i]}"
	done
	if [ -z "$tap_planned" ]; then
		echo "1..$tap_count"
	fi
	cd /
	left=$(vm_reset 2>&1)
	[ -z "$left" ] || diag "$left"
	[ $tap_failed = 0 ] || status=1
	exit $status
}
trap tap_exit EXIT
trap 'fail "line $LINENO: $BASH_COMMAND" "exit status $?, in ${FUNCNAME[0]:-the test}"' ERR
set -E

# cleanup: undo everything now, to start over within a test
cleanup()
{
	local i left

	for ((i = ${#exit_commands[@]} - 1; i >= 0; i--)); do
		eval "${exit_commands[i]}" || true
	done
	exit_commands=()
	left=$(vm_reset 2>&1) || true
	[ -z "$left" ] || fail "cleanup" "$left"
}

# --- kernel log --------------------------------------------------------------

# kmsg: the kernel log since the test began; kmsg_mark starts afresh
kmsg_mark()
{
	PC_KMSG_MARK="$PC_TEST mark $RANDOM$RANDOM"
	echo "$PC_KMSG_MARK" >/dev/kmsg
}

kmsg()
{
	dmesg | sed "1,/${PC_KMSG_MARK:-no mark}/d"
}

# --- modules and devices -----------------------------------------------------

# load_modules [NAME...]: the modules under test (default: all that were built but
# the simulated disk), each with what it depends on
load_modules()
{
	local m names=("$@")

	if [ ${#names[@]} = 0 ]; then
		for m in "$PC_MODULES"/dm-polycache*.ko; do
			[ -e "$m" ] ||
				bail "no modules in $PC_MODULES: make modules KVER=$(uname -r)"
			names+=("$(basename "$m" .ko)")
		done
	fi
	for m in "${names[@]}"; do
		modprobe "$m" || bail "modprobe $m failed: $(kmsg | tail -n 3)"
	done
}

# load_variant VARIANT MODULE...: modules built differently (tests/vm/variants)
load_variant()
{
	local m dir=$PC_MODULES/$1

	[ -e "$dir/dm-polycache.ko" ] || bail "no modules in $dir: make vm-modules"
	modprobe -a dm-mod libcrc32c
	for m in "${@:2}"; do
		insmod "$dir/$m.ko" || bail "insmod $m of variant $1 failed: $(kmsg | tail -n 3)"
	done
}

# make_brd COUNT KIB: RAM disks /dev/ram0... of that size each
make_brd()
{
	[ ! -d /sys/module/brd ] || rmmod brd
	modprobe brd rd_nr="$1" rd_size="$2" max_part=1
	poll 10 test -b "/dev/ram$(($1 - 1))"
	udev_settle
}

udev_settle()
{
	# a udevd that a test before stopped may sleep on: wake it up
	[ -n "${DM_DISABLE_UDEV:-}" ] || udevadm settle --timeout=30 || udev_resume
}

# udev_pause: udev reads no device until udev_resume, so that counters hold what the
# test did and nothing else. No device may come or go in between.
udev_pause()
{
	udev_settle
	[ -n "${DM_DISABLE_UDEV:-}" ] || udevadm control --stop-exec-queue
	at_exit udev_resume
}

udev_resume()
{
	local try

	[ -z "${DM_DISABLE_UDEV:-}" ] || return 0
	# udevd may sleep on after the first request
	for try in 1 2 3 4; do
		udevadm control --start-exec-queue
		udevadm settle --timeout=$((try * 2)) 2>/dev/null && return 0
	done
	# it does not wake up: another one
	diag "udevd sleeps on, and is started again"
	pkill -x systemd-udevd || true
	sleep 0.5
	/lib/systemd/systemd-udevd --daemon
	udevadm trigger --type=devices --subsystem-match=block --action=add
	udevadm settle --timeout=60
}

# udev_off: udev reads no device until the end of the test, where a look would be
# counted or meet a fault; dmsetup makes the nodes, and devices may come and go
udev_off()
{
	[ -z "${DM_DISABLE_UDEV:-}" ] || return 0
	udev_settle
	udevadm control --stop-exec-queue
	export DM_DISABLE_UDEV=1
	at_exit 'unset DM_DISABLE_UDEV; udev_resume'
	exec 2> >(sed '/^Udev is running/d' >&2)
}

# sim_stat NAME KEY: one counter of a simulated disk; sim_reset NAME...
sim_stat()
{
	dmsetup message "$1" 0 stats | awk -v k="$2" '$1 == k { print $2 }'
}

sim_reset()
{
	local name

	for name in "$@"; do
		dmsetup message "$name" 0 reset
	done
}

# make_null NAME MIB [KEY=VALUE]...: a memory-backed null_blk device, prints its
# path. Keys are the configfs files: blocksize=4096 completion_nsec=100000 irqmode=2
make_null()
{
	local dir=/sys/kernel/config/nullb/$1 kv

	[ -d /sys/module/null_blk ] || modprobe null_blk nr_devices=0
	mkdir "$dir"
	echo "$2" >"$dir/size"
	echo 1 >"$dir/memory_backed"
	for kv in "${@:3}"; do
		echo "${kv#*=}" >"$dir/${kv%%=*}"
	done
	echo 1 >"$dir/power"
	# 6.12 names the device after the folder, 6.1 by its index
	if [ -b "/dev/$1" ]; then
		echo "/dev/$1"
	else
		echo "/dev/nullb$(cat "$dir/index")"
	fi
}

# make_linear NAME DEVICE SECTORS [OFFSET]: a piece of another device
make_linear()
{
	dmsetup create "$1" --table "0 $3 linear $2 ${4:-0}"
}

# make_loop FILE MIB [losetup options]: a sparse file as a loop device, prints its path
make_loop()
{
	truncate -s "$2M" "$1"
	losetup --show -f "${@:3}" "$1"
}

# make_sim NAME DEVICE [ARG]...: a simulated disk over DEVICE (tests/simdisk)
make_sim()
{
	local name=$1 dev=$2 sectors

	shift 2
	[ -d /sys/module/dm_pcsim ] || load_modules dm-pcsim
	sectors=$(blockdev --getsz "$dev")
	dmsetup create "$name" --table "0 $sectors pcsim $dev $*"
}

sectors_of()
{
	blockdev --getsz "$1"
}

# drop_pages DEVICE: nothing of it stays in the page cache
drop_pages()
{
	blockdev --flushbufs "$1"
	echo 1 >/proc/sys/vm/drop_caches
}

# dm_dev NAME: the kernel's name, dm-0; dm_inflight NAME: reads and writes under way
dm_dev()
{
	dmsetup info -c --noheadings -o blkdevname "$1"
}

dm_inflight()
{
	awk '{ print $1, $2 }' "/sys/block/$(dm_dev "$1")/inflight"
}

# --- the cache ---------------------------------------------------------------

# pc_table META CACHE ORIGIN BLOCKSIZE [FEATURES [POLICY [ARGS]]]: the table line.
# FEATURES and ARGS are words in one string, counted here. ORIGIN's size is the
# device's; PC_SECTORS overrides it. PC_TARGET overrides the target's name.
pc_table()
{
	local meta=$1 cache=$2 origin=$3 bs=$4 policy=${6:-default}
	local -a feature arg

	read -r -a feature <<<"${5:-}"
	read -r -a arg <<<"${7:-}"
	echo "0 ${PC_SECTORS:-$(blockdev --getsz "$origin")} ${PC_TARGET:-polycache}" \
		"$meta $cache $origin $bs" \
		"${#feature[@]}${feature[*]:+ ${feature[*]}}" \
		"$policy ${#arg[@]}${arg[*]:+ ${arg[*]}}"
}

# pc_create NAME META CACHE ORIGIN BLOCKSIZE [FEATURES [POLICY [ARGS]]]
pc_create()
{
	local name=$1

	shift
	dmsetup create "$name" --table "$(pc_table "$@")"
}

# pc_reload NAME META CACHE ...: another table for a live device
pc_reload()
{
	local name=$1

	shift
	dmsetup reload "$name" --table "$(pc_table "$@")"
	dmsetup resume "$name"
}

# udev opens a device shortly after each change to look at it: that is waited for, and
# whoever holds it for longer fails the test
pc_remove()
{
	dmsetup remove --retry "$1"
}

pc_message()
{
	dmsetup message "$1" 0 "${*:2}"
}

# pc_status_field NAME FIELD: one field of the status line. FIELD: metadata_block,
# metadata_used, metadata_total, block, used, total, read_hits, read_misses,
# write_hits, write_misses, demotions, promotions, dirty, features, core_args, policy,
# policy_args, rw (rw or ro), needs_check; or the name of a core or policy argument
pc_status_field()
{
	dmsetup status "$1" | awk -v want="$2" '
	function out(name, value) { if (name == want && !found) { print value; found = 1 } }
	{
		if ($4 == "Fail" || $4 == "Error") { print $4; found = 1; exit }
		out("metadata_block", $4); split($5, a, "/")
		out("metadata_used", a[1]); out("metadata_total", a[2])
		out("block", $6); split($7, a, "/")
		out("used", a[1]); out("total", a[2])
		out("read_hits", $8); out("read_misses", $9)
		out("write_hits", $10); out("write_misses", $11)
		out("demotions", $12); out("promotions", $13); out("dirty", $14)
		i = 15
		for (n = $(i++); n > 0; n--) list = list (list == "" ? "" : " ") $(i++)
		out("features", list); list = ""
		for (n = $(i++); n > 0; n -= 2) {
			key[$i] = $(i + 1)
			list = list (list == "" ? "" : " ") $i " " $(i + 1); i += 2
		}
		out("core_args", list); list = ""
		out("policy", $(i++))
		for (n = $(i++); n > 0; n -= 2) {
			key[$i] = $(i + 1)
			list = list (list == "" ? "" : " ") $i " " $(i + 1); i += 2
		}
		out("policy_args", list)
		out("rw", $(i++)); out("needs_check", $i)
		if (want in key) out(want, key[want])
	}
	END { exit !found }'
}

# pc_stat NAME KEY: one number of the stats message, pc_stats NAME: all lines
pc_stats()
{
	dmsetup message "$1" 0 stats
}

pc_stat()
{
	pc_stats "$1" | awk -v k="$2" '$1 == k { $1 = ""; print substr($0, 2); found = 1; exit }
		END { exit !found }'
}

# pc_read_stats NAME, pc_read_status NAME: all at once, into the associative arrays
# STATS and STATUS, keyed as pc_stat and pc_status_field are. One process each: in a
# guest without acceleration a process costs more than a thousand requests.
declare -A STATS STATUS
pc_read_stats()
{
	local key value

	STATS=()
	while read -r key value; do
		STATS[$key]=$value
	done < <(dmsetup message "$1" 0 stats)
}

pc_read_status()
{
	local -a w
	local n

	read -r -a w < <(dmsetup status "$1")
	STATUS=([metadata_block]="${w[3]}" [metadata_used]="${w[4]%/*}" \
		[metadata_total]="${w[4]#*/}"
		[block]="${w[5]}" [used]="${w[6]%/*}" [total]="${w[6]#*/}"
		[read_hits]="${w[7]}" [read_misses]="${w[8]}" [write_hits]="${w[9]}"
		[write_misses]="${w[10]}" [demotions]="${w[11]}" [promotions]="${w[12]}"
		[dirty]="${w[13]}" [features]="${w[*]:15:w[14]}")
	w=("${w[@]:15+w[14]}")
	for ((n = 1; n <= w[0]; n += 2)); do
		STATUS[${w[n]}]=${w[n + 1]}
	done
	STATUS[core_args]="${w[*]:1:w[0]}"
	w=("${w[@]:1+w[0]}")
	STATUS[policy]=${w[0]}
	for ((n = 2; n <= w[1] + 1; n += 2)); do
		STATUS[${w[n]}]=${w[n + 1]}
	done
	STATUS[policy_args]="${w[*]:2:w[1]}"
	w=("${w[@]:2+w[1]}")
	STATUS[rw]=${w[0]} STATUS[needs_check]=${w[1]}
}

pc_is_clean()
{
	[ "$(pc_status_field "$1" dirty)" = 0 ]
}

# pc_wait_clean NAME [SECONDS]
pc_wait_clean()
{
	poll "${2:-60}" pc_is_clean "$1"
}
