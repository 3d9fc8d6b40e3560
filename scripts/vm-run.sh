#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs tests, a program or a shell inside a stock Debian kernel under QEMU. The
# guest's root is the host's own, read-only, with a tmpfs over it; nothing that
# the guest does reaches the host.
#
#   scripts/vm-run.sh [options] TEST...            TAP tests, many in one boot
#   scripts/vm-run.sh [options] --stream PROG ...  one program, output live; the
#                                                  host's /tmp is the guest's /host/tmp
#   scripts/vm-run.sh [options] --shell            an interactive shell
#
# TEST is a file, or a pattern matched against the names in tests/vm/ (003, '0*').
#
#   --kernel V        6.12 (default), 6.1, the full version of an installed image, or
#                     uml: the debug kernel in user-mode Linux (uml-kernel.sh), without
#                     QEMU, with one CPU, tests only
#   --mem SIZE        memory (default 2G)          --cpus N     (default 2)
#   --timeout S       limit of a test or program in seconds (default 300); a test
#                     file may name its own in a line "# timeout: S"
#   --accel A         auto (default: kvm where a boot with it was seen to work,
#                     else tcg), kvm, tcg, or icount (one CPU, time counts
#                     instructions: the same on every run)
#   --append ARGS     further words for the kernel command line
#   --disk FILE       a raw image as a virtio disk; may be given more than once
#   --modules DIR     the modules under test (default build/KERNEL-VERSION/ko)
#   --env NAME=VALUE  a variable for the tests; may be given more than once
#   --no-udev         do not start udev in the guest
#   --skip-once       leave out the tests with a line "# once: REASON"
#   --keep            keep the folder with logs and results, also on success
#
# Built modules are taken as they are: "make vm" builds them first. Several tests
# share a boot; after each one its devices and modules are removed and the kernel
# log is searched for reports (scripts/vm-splats.txt). After a hang, a report or
# leftovers the remaining tests get a new boot. A guest that dies before its first test
# is booted again, up to three times. The closing line is
# "vm VERSION: N passed, N failed"; exit status 0 only without failures.

set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

kernel=${KERNEL:-6.12} mem=2G cpus=2 timeout=300 accel=${PC_ACCEL:-auto} append='' modules=''
mode=tests udev=1 keep=0 skip_once=0
disks=() tests=() command=() env=()

usage()
{
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
	exit "${1:-0}"
}

while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2; shift ;;
	--mem) mem=$2; shift ;;
	--cpus) cpus=$2; shift ;;
	--timeout) timeout=$2; shift ;;
	--accel) accel=$2; shift ;;
	--append) append+=" $2"; shift ;;
	--disk) disks+=("$2"); shift ;;
	--modules) modules=$2; shift ;;
	--env) env+=("$2"); shift ;;
	--no-udev) udev=0 ;;
	--keep) keep=1 ;;
	--skip-once) skip_once=1 ;;
	--shell) mode=shell ;;
	--probe) mode=probe ;;
	--stream) mode=stream; shift; command=("$@"); set -- end ;;
	-h | --help) usage ;;
	-*) echo "vm-run.sh: unknown option $1" >&2; usage 2 >&2 ;;
	*) tests+=("$1") ;;
	esac
	shift
done

kver=$(pc_kernel_version "$kernel")
[ -n "$kver" ] || die "no kernel image for '$kernel' in /boot: scripts/setup.sh vm"
modules=${modules:-$PC_BUILD/$kver/ko}
uml=
if [ "$kernel" = uml ]; then
	[ "$mode" = tests ] || die "--kernel uml runs tests only"
	[ ${#disks[@]} = 0 ] || die "--kernel uml has no --disk"
	uml=$(pc_uml_dir)
	accel=uml cpus=1
fi

# --- which tests -----------------------------------------------------------

pending=()
pick_tests()
{
	local t f found

	for t in "${tests[@]}"; do
		found=0
		# a file below the checkout, or a pattern for names in tests/vm
		for f in "$t" "$PC_TOP/$t" "$PC_TOP"/tests/vm/$t*.sh; do
			[ -f "$f" ] || continue
			f=$(realpath "$f")
			case $f in
			*/tests/vm/lib.sh) continue ;;
			"$PC_TOP"/tests/*.sh) pending+=("${f#"$PC_TOP"/}"); found=1 ;;
			esac
		done
		[ $found = 1 ] || die "no test matches '$t' in tests/vm"
	done
	mapfile -t pending < <(printf '%s\n' "${pending[@]}" | awk '!seen[$0]++')
	[ $skip_once = 1 ] || return 0
	for t in "${!pending[@]}"; do
		if grep -q '^# once: ' "$PC_TOP/${pending[t]}"; then
			echo "# left out: ${pending[t]}"
			unset "pending[t]"
		fi
	done
	pending=("${pending[@]}")
}

case $mode in
tests)
	[ ${#tests[@]} -gt 0 ] || usage 2 >&2
	pick_tests
	;;
stream)
	[ ${#command[@]} -gt 0 ] || usage 2 >&2
	# a program of the checkout runs from the guest's copy of it
	if [ -f "$PC_TOP/${command[0]}" ]; then
		command[0]=/pc/${command[0]}
	fi
	# the guest has a /tmp of its own
	for i in "${!command[@]}"; do
		case ${command[i]} in
		/tmp/* | /run/*) [ ! -e "${command[i]}" ] || command[i]=/host${command[i]} ;;
		esac
	done
	;;
esac

# --- the folder that is shared with the guest ------------------------------

mkdir -p "$PC_CACHE"
run=$(mktemp -d "$PC_CACHE/run-XXXXXX")
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
qemu_pid='' tail_pid='' failed=0 passed=0 skipped=0

cleanup()
{
	local status=$?

	trap - EXIT
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null || true
	[ -z "$tail_pid" ] || kill "$tail_pid" 2>/dev/null || true
	[ -z "$qemu_pid" ] || wait "$qemu_pid" 2>/dev/null || true
	rm -rf "$run/src" "$run/initrd"
	if [ $mode = probe ] || { [ $keep = 0 ] && [ $status = 0 ]; }; then
		rm -rf "$run"
	else
		echo "# logs and results: $run"
		# five of these are enough
		find "$PC_CACHE" -maxdepth 1 -name 'run-*' -mmin +60 -printf '%T@ %p\n' |
			sort -rn | tail -n +6 | cut -d ' ' -f 2- | xargs -r rm -rf
	fi
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# A copy: a script that is edited while bash reads it would misbehave
mkdir -p "$run/src/modules" "$run/src/bin"
cp -a "$PC_TOP/tests" "$PC_TOP/scripts" "$run/src/"
if compgen -G "$modules/*.ko" >/dev/null; then
	cp -L "$modules"/*.ko "$run/src/modules/"
fi
# variants built for tests: build/VERSION+NAME/ko -> /pc/modules/NAME
for v in "$PC_BUILD/$kver+"*/ko; do
	[ -d "$v" ] || continue
	name=${v%/ko}
	name=${name##*+}
	mkdir -p "$run/src/modules/$name"
	find "$v" -name '*.ko' -exec cp -L {} "$run/src/modules/$name/" \;
done
# the tools, and what tests/vm/*.c were built to
if [ -d "$PC_BUILD/bin" ]; then
	cp -aL "$PC_BUILD/bin/." "$run/src/bin/"
fi
if [ -x "$PC_BUILD/user/polycache" ]; then
	cp "$PC_BUILD/user/polycache" "$run/src/bin/"
fi

write_job()
{
	{
		declare -p token timeout mode udev
		declare -p pending command env
	} | sed 's/^declare -[-a-zA-Z]* //; s/^token=/JOB_TOKEN=/; s/^timeout=/JOB_TIMEOUT=/
		s/^mode=/JOB_MODE=/; s/^udev=/JOB_UDEV=/; s/^pending=/JOB_TESTS=/
		s/^command=/JOB_COMMAND=/; s/^env=/JOB_ENV=/' >"$run/job"
	{
		printf 'JOB_TOP=%q\n' "$PC_TOP"
		if [ $mode = shell ]; then
			printf 'JOB_TERM=%q\n' "${TERM:-linux}"
			stty size 2>/dev/null | awk '{ print "JOB_ROWS=" $1; print "JOB_COLS=" $2 }'
		fi
	} >>"$run/job"
}

# --- acceleration ----------------------------------------------------------

# kvm may be there and fail at the first instruction that needs emulation, or
# later: believe in it only after a boot up to user programs on all CPUs, which
# takes 3 s where it works. The answer holds for this boot of the host and this QEMU.
kvm_works()
{
	local key file

	[ -w /dev/kvm ] || return 1
	key=$({ cat /proc/sys/kernel/random/boot_id; qemu-system-x86_64 --version; } |
		sha256sum | cut -c 1-16)
	file=$PC_CACHE/kvm-probe-$key
	if [ ! -e "$file" ]; then
		rm -f "$PC_CACHE"/kvm-probe-*
		if PC_ACCEL=kvm "$0" --probe --kernel "$kver" --no-udev --timeout 12 \
			>/dev/null 2>&1; then
			echo yes >"$file"
		else
			echo no >"$file"
		fi
	fi
	[ "$(cat "$file")" = yes ]
}

if [ "$accel" = auto ]; then
	if kvm_works; then accel=kvm; else accel=tcg; fi
fi

# A TCG guest that measures its clock while the host is busy gets it wrong, up to
# tenfold; its time stamp counter is the host's, so tell it the host's rate.
tsc_khz()
{
	local mhz

	mhz=$(dmesg 2>/dev/null | sed -n 's/.*tsc: .* \([0-9.]*\) MHz.*/\1/p' | tail -n 1)
	[ -n "$mhz" ] || mhz=$(sed -n 's/^model name.*@ \([0-9.]*\)GHz.*/\1/p' /proc/cpuinfo |
		head -n 1 | awk '{ print $1 * 1000 }')
	[ -n "$mhz" ] || mhz=$(sed -n 's/^cpu MHz.*: //p' /proc/cpuinfo | head -n 1)
	[ -z "$mhz" ] || awk -v m="$mhz" 'BEGIN { printf "%.0f\n", m * 1000 }'
}

args=console=ttyS0,115200
args+=" loglevel=5 log_buf_len=8M panic=-1 oops=panic pc.top=$PC_TOP"
args+=" mitigations=off nopti init_on_alloc=0 apparmor=0 audit=0 nowatchdog nokaslr"
args+=" rcupdate.rcu_cpu_stall_timeout=60 random.trust_cpu=on"
qemu=(qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
	-m "$mem" -kernel "/boot/vmlinuz-$kver"
	-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"
	-virtfs "local,path=$run,mount_tag=out,security_model=none"
	-serial "file:$run/console")

case $accel in
uml)
	# its memory is a file, where there is room for one
	uml_tmp=/dev/shm
	[ "$(df --output=avail -B1 $uml_tmp | tail -n 1)" -gt "$(numfmt --from=iec "$mem")" ] ||
		uml_tmp=$PC_CACHE
	args="loglevel=5 panic=-1 oops=panic pc.top=$PC_TOP pc.out=$run"
	args+=" pc.lib=$uml/lib/modules/$kver mem=$mem con0=fd:0,fd:1 con=null ssl=null"
	;;
kvm)
	qemu+=(-accel kvm -cpu host -smp "$cpus") ;;
tcg | icount)
	if [ "$accel" = icount ]; then
		qemu+=(-accel tcg -smp 1 -icount "shift=0,sleep=off" -cpu max)
	else
		qemu+=(-accel "tcg,thread=multi" -cpu max -smp "$cpus")
		khz=$(tsc_khz)
		args+=" tsc=reliable no_timer_check${khz:+ tsc_early_khz=$khz}"
	fi
	;;
*) die "unknown --accel $accel" ;;
esac

for d in ${disks[@]+"${disks[@]}"}; do
	qemu+=(-drive "file=$d,format=raw,if=virtio,cache=writeback")
done
if [ $mode = shell ]; then
	qemu+=(-serial mon:stdio)
fi
args+=$append

# --- one boot --------------------------------------------------------------

# Ends QEMU when the guest stops making progress: 150 s for the start (a probe: its
# limit), then the limit of the running test, with room for a busy host.
watch_guest()
{
	local seen='' now limit deadline start=150

	[ $mode != probe ] || start=$timeout
	while kill -0 "$qemu_pid" 2>/dev/null; do
		now=start
		limit=$start
		if [ -s "$run/current" ]; then
			read -r now limit <"$run/current" || true
			limit=$((limit + limit / 2 + 180))
		fi
		if [ "$now" != "$seen" ]; then
			seen=$now
			deadline=$((SECONDS + limit))
		fi
		if [ $mode = probe ] && grep -q 'internal error' "$run/qemu"; then
			deadline=0
		fi
		if [ $SECONDS -ge $deadline ]; then
			echo "# no progress of '$now' within $limit s: guest stopped" >>"$run/log"
			kill "$qemu_pid" 2>/dev/null || true
			return
		fi
		sleep 0.2
	done
}

boot()
{
	write_job
	rm -f "$run"/{done,results,current,dmesg}
	: >"$run/log"
	if [ $mode = shell ]; then
		"${qemu[@]}" -initrd "$initrd" -append "$args quiet" || true
		return
	fi
	tail -n +1 -f "$run/log" 2>/dev/null &
	tail_pid=$!
	if [ -n "$uml" ]; then
		# shellcheck disable=SC2086
		TMPDIR=$uml_tmp "$uml/linux" initrd="$initrd" $args </dev/null \
			>"$run/console" 2>&1 &
	else
		"${qemu[@]}" -initrd "$initrd" -append "$args" </dev/null >"$run/qemu" 2>&1 &
	fi
	qemu_pid=$!
	watch_guest
	wait "$qemu_pid" 2>/dev/null || true
	qemu_pid=
	sleep 0.3
	kill "$tail_pid" 2>/dev/null || true
	wait "$tail_pid" 2>/dev/null || true
	tail_pid=
}

# The guest's last words on its console, for a boot that ended badly: the last LINES
# of it; where it died of something that it reported, all from the report on, and
# LINES/2 before it
show_logs()
{
	local lines=${1:-60} death from

	echo "# end of the guest's console ($kver, $accel):"
	death=$(grep -m 1 -naE \
		'Kernel panic|Oops|kernel BUG|unable to handle|general protection fault' \
		"$run/console" | cut -d : -f 1) || true
	from=$(($(wc -l <"$run/console") - lines + 1))
	if [ -n "$death" ] && [ $((death - lines / 2)) -lt $from ]; then
		from=$((death - lines / 2))
	fi
	[ $from -gt 0 ] || from=1
	sed -n "$from,$((from + 299))s/^/#   /p" "$run/console" | tr -d '\r'
	[ ! -s "$run/qemu" ] || tail -n 20 "$run/qemu" | sed 's/^/# qemu: /'
}

initrd=$run/initrd
cp "$("$PC_TOP/scripts/vm-initramfs.sh" "$kver")" "$initrd"

rerun_line()
{
	local k=$kernel

	echo "# run it again: make vm KERNEL=$k T=$1"
	echo "# or, without building: scripts/vm-run.sh --kernel $k $1"
}

# kernel_log NAME: what the kernel said while the test ran, at most 150 lines
kernel_log()
{
	[ -s "$run/dmesg" ] || return 0
	echo "# kernel log of $1:"
	awk -v n="$1" '/vm-guest: [^ ]+ begins [0-9]+$/ { on = $0 ~ "vm-guest: " n " begins"; next }
		on && ++lines <= 150 { print "#   " $0 }
		END { if (lines > 150) print "#   (" lines - 150 " lines more)" }' "$run/dmesg"
}

# section NAME: what the log holds of one test
section()
{
	awk -v n="$1" '/^# --- [^ ]+ \(at most [0-9]+ s\)$/ { on = $3 == n } on' "$run/log"
}

# score NAME: counts the assertions of one test from its output and result line.
# Whatever is wrong beyond a "not ok" counts as one more failure.
score()
{
	local name=$1 tap=$run/$1.tap status state seconds ok bad skip plan why=

	section "$name" >"$tap"
	read -r status seconds state < <(awk -v t="$token" -v n="$name" \
		'$1 == t && $2 == n { print $3, $4, $5 }' "$run/results" 2>/dev/null) ||
		{ status=none seconds=0 state="not finished"; }
	ok=$(grep -c '^ok ' "$tap" || true)
	skip=$(grep -ciE '^ok .*# *skip' "$tap" || true)
	bad=$(grep -c '^not ok ' "$tap" || true)
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$tap" | tail -n 1)
	case $state in
	clean) ;;
	timeout) why="did not finish in time" ;;
	splat) why="the kernel complained" ;;
	dirty) why="left devices or modules behind" ;;
	*) why="the guest died" ;;
	esac
	if [ -z "$why" ]; then
		if grep -q '^Bail out!' "$tap"; then
			why="bailed out"
		elif [ -z "$plan" ]; then
			why="printed no plan"
		elif [ "$plan" != $((ok + bad)) ]; then
			why="planned $plan, ran $((ok + bad))"
		elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
			why="exit status $status"
		fi
	fi
	[ -z "$why" ] || bad=$((bad + 1))
	passed=$((passed + ok - skip))
	skipped=$((skipped + skip))
	failed=$((failed + bad))
	if [ "$bad" != 0 ]; then
		echo "# FAILED $name${why:+: $why} ($seconds s)"
		kernel_log "$name"
		[ -n "$status" ] && [ "$status" != none ] || show_logs 40
		rerun_line "$name"
	else
		echo "# passed $name: $ok ($seconds s)"
	fi
}

# again WHY: true if the guest is to be booted once more for no fault of a test's
repeats=0
again()
{
	[ $repeats -lt 3 ] || return 1
	repeats=$((repeats + 1))
	echo "# $1: once more"
}

# Two faults of TCG that kill a kernel, each seen once in some hundred boots. A CPU runs
# into an instruction that another one is just patching, and dies of the break point it
# finds there. And an exception saves a wrong flags register, after which string
# instructions may go backwards; it is known by bits that no processor sets.
emulator_erred()
{
	local flags

	[ "$accel" = tcg ] || return 1
	! grep -qa 'Oops: int3' "$run/console" || return 0
	while read -r flags; do
		[ $((0x$flags & 0xffc08028)) = 0 ] || return 0
	done < <(grep -aoE 'EFLAGS: [0-9a-f]{8}' "$run/console" | cut -c 9-)
	return 1
}

case $mode in
shell)
	boot
	;;
probe)
	boot
	[ "$(cat "$run/done" 2>/dev/null)" = "$token" ] || exit 1
	;;
stream)
	boot
	if emulator_erred && again "the emulator broke the kernel"; then
		boot
	fi
	status=$(awk -v t="$token" '$1 == t { print $3 }' "$run/results" 2>/dev/null || true)
	if [ "$(cat "$run/done" 2>/dev/null)" != "$token" ] || [ "${status:-1}" != 0 ]; then
		show_logs
		echo "# failed: ${command[*]} (exit status ${status:-none: the guest died})"
		exit "${status:-1}"
	fi
	;;
tests)
	echo "# ${#pending[@]} tests on $kver ($accel, $cpus CPUs, $mem)"
	while [ ${#pending[@]} -gt 0 ]; do
		boot
		left=()
		ran=0
		for t in "${pending[@]}"; do
			name=$(basename "$t" .sh)
			if grep -qxE "# --- $name \(at most [0-9]+ s\)" "$run/log"; then
				ran=1
				if emulator_erred && ! grep -q "^$token $name " "$run/results" &&
				   again "the emulator broke the kernel during $name"; then
					left+=("$t")
				else
					score "$name"
				fi
			else
				left+=("$t")
			fi
		done
		if [ $ran = 0 ] && again "the guest did not start"; then
			show_logs 20
			continue
		fi
		if [ $ran = 0 ]; then
			echo "# FAILED: the guest did not start"
			show_logs 80
			failed=$((failed + ${#pending[@]}))
			break
		fi
		# keep what was logged: the next boot starts with empty files
		for f in console dmesg; do
			[ ! -e "$run/$f" ] || cat "$run/$f" >>"$run/all-$f"
		done
		pending=(${left[@]+"${left[@]}"})
	done
	[ $skipped = 0 ] || echo "# $skipped skipped"
	echo "vm $kver: $passed passed, $failed failed"
	[ $failed = 0 ] || exit 1
	;;
esac
