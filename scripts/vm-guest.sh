#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# First process of the test guest once the root is there. Makes the guest look
# like a running Debian (proc, sys, tmpfs, udev), copies the checkout's tests and
# modules into memory, then does what the host's vm-run.sh asked for in /out/job:
# a list of TAP tests, one program with live output, a shell, or just a sign of
# life. Powers off at the end, whatever happened.
#
# The host reads: /out/log (what the user sees, a section a test), /out/results
# ("TOKEN NAME exit-status seconds state" a line), /out/current (the running test and
# its limit), /out/dmesg (kernel log), /out/done (the token, at the very end).

set -uo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=linux LC_ALL=C

mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >>/out/log 2>&1

power_off()
{
	sync
	echo o >/proc/sysrq-trigger
	sleep 60
}
trap power_off EXIT

for t in tmp run; do
	mount -t tmpfs -o mode=1777,size=60% $t /$t
done
chmod 755 /run
mkdir -p /run/lock /run/lvm /dev/pts /dev/shm /root
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs root-home /root
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
modprobe -q configfs
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
ln -sfn /proc/self/fd /dev/fd
ln -sfn /proc/self/fd/0 /dev/stdin
ln -sfn /proc/self/fd/1 /dev/stdout
ln -sfn /proc/self/fd/2 /dev/stderr
ln -sfn /proc/self/mounts /etc/mtab
hostname polycache-vm
ip link set lo up 2>/dev/null
echo 0 >/proc/sys/kernel/printk_ratelimit
echo 1 >/proc/sys/kernel/sysrq

# A tmpfs on /tmp must not hide a checkout that lives there
job=/out/job
# shellcheck source=/dev/null
. $job
if [ ! -d "$JOB_TOP" ]; then
	mkdir -p "$JOB_TOP" && mount --bind /checkout "$JOB_TOP"
fi

# The snapshot that the host made, in memory: /pc/tests, /pc/scripts, /pc/modules
mkdir -p /pc
mount -t tmpfs pc /pc
cp -a /out/src/. /pc/
mkdir -p /modules
ln -sfn /pc/modules "/modules/$(uname -r)"

kver=$(uname -r)
for e in ${JOB_ENV[@]+"${JOB_ENV[@]}"}; do
	export "${e?}"
done
export PC_KVER=$kver PC_MODULES=/pc/modules PC_SRC=$JOB_TOP PC_IN_VM=1
export PATH=/pc/bin:$PATH

# Kernel log to the host from the very start, line by line
dmesg -w >/out/dmesg &
dmesg_pid=$!

# modprobe, also the kernel's own request_module(), finds the modules under test
# without a new index of the whole module tree
for ko in /pc/modules/*.ko; do
	[ -e "$ko" ] || continue
	name=$(basename "$ko" .ko)
	deps=$(modinfo -F depends "$ko" | tr ',' ' ')
	line="install ${name//-/_}"
	for d in $deps; do
		line+=" /sbin/modprobe $d &&"
	done
	echo "$line { [ -d /sys/module/${name//-/_} ] || /sbin/insmod $ko \$CMDLINE_OPTS; }"
done >/etc/modprobe.d/00-modules-under-test.conf

if [ "$JOB_UDEV" = 1 ]; then
	/lib/systemd/systemd-udevd --daemon
	udevadm trigger --type=devices --subsystem-match=block --action=add
	udevadm settle --timeout=60
else
	export DM_DISABLE_UDEV=1
fi

splats()
{
	grep -E -f /pc/scripts/vm-splats.txt | grep -v -E -f /pc/scripts/vm-splats-harmless.txt
}

# A pipe that nobody writes to: "read -t" on it sleeps without a process
mkfifo /run/never
exec 7<>/run/never

# stop_at LIMIT PID: when the time is up, tells the kernel log where every task hangs
# and ends the test's session, gently at first
stop_at()
{
	read -r -t "$1" -u 7
	touch /run/time-is-up
	echo "# time is up; what hangs follows in the kernel log"
	echo w >/proc/sysrq-trigger
	kill -TERM -- "-$2"
	read -r -t 20 -u 7
	kill -KILL -- "-$2"
}

# What is lost is found at the second look: the first may see what is on its way.
look_for_leaks()
{
	local leaks=/sys/kernel/debug/kmemleak

	[ -w $leaks ] || return 0
	echo scan >$leaks
	sleep 6
	echo scan >$leaks
	head -n 60 $leaks | while IFS= read -r line; do
		echo "leaks: $line" >/dev/kmsg
	done
	echo clear >$leaks
}

# run_test FILE: one TAP test, whose output is the section of the log that the first
# line begins; one line of /out/results. Fails where the kernel is not to be trusted
# with a further test.
run_test()
{
	local file=$1 name limit start status=0 state=clean mark left pid stopper

	name=$(basename "$file" .sh)
	limit=$(sed -n 's/^# timeout: *\([0-9]*\).*/\1/p' "/pc/$file" | head -n 1)
	limit=${limit:-$JOB_TIMEOUT}
	mark="vm-guest: $name begins $RANDOM$RANDOM"

	echo "$mark" >/dev/kmsg
	echo "$name $limit" >/out/current
	echo "# --- $name (at most $limit s)"
	start=$(date +%s)
	rm -f /run/time-is-up
	mkdir -p "/tmp/$name"
	(
		cd "/tmp/$name" || exit 1
		export PC_TEST=$name PC_KMSG_MARK=$mark TMPDIR=/tmp/$name
		exec setsid bash "/pc/$file" </dev/null 2>&1 7>&-
	) &
	pid=$!
	stop_at "$limit" $pid 2>/dev/null &
	stopper=$!
	wait $pid
	status=$?
	if [ -e /run/time-is-up ]; then
		state=timeout
	fi
	kill $stopper 2>/dev/null
	wait $stopper 2>/dev/null
	kill -KILL -- -$pid 2>/dev/null

	if ! left=$(timeout 120 bash -c '. /pc/tests/vm/lib.sh --no-test; vm_reset' 2>&1) ||
		[ -n "$left" ]; then
		echo "# $name left behind:" $left
		[ $state != clean ] || state=dirty
	fi
	rm -rf "/tmp/${name:?}"
	sleep 0.1
	look_for_leaks
	if dmesg | sed "1,/$mark/d" | splats >/run/splats; then
		echo "# $name: the kernel complained:"
		sed 's/^/#   /' /run/splats | head -n 40
		[ $state = timeout ] || state=splat
	fi
	echo "$JOB_TOKEN $name $status $(($(date +%s) - start)) $state" >>/out/results
	rm -f /out/current
	[ "$state" = clean ]
}

cd /pc || exit 1
case $JOB_MODE in
tests)
	: >/out/results
	for t in "${JOB_TESTS[@]}"; do
		# after a splat, a hang or leftovers the rest wants a fresh kernel
		run_test "$t" || break
	done
	;;
stream)
	start=$(date +%s)
	echo "stream $JOB_TIMEOUT" >/out/current
	export PC_TEST=stream PC_KMSG_MARK="vm-guest: stream" TMPDIR=/tmp
	echo "$PC_KMSG_MARK" >/dev/kmsg
	timeout -k 20 "$JOB_TIMEOUT" "${JOB_COMMAND[@]}" </dev/null
	status=$?
	echo "$JOB_TOKEN stream $status $(($(date +%s) - start)) clean" >>/out/results
	;;
shell)
	export PS1="polycache-vm $kver # " PC_TEST=shell TERM=${JOB_TERM:-linux}
	{
		echo "Modules: $PC_MODULES. Tests: /pc/tests/vm. Results: /out. Leave by exit."
		stty sane rows "${JOB_ROWS:-24}" cols "${JOB_COLS:-80}"
	} </dev/ttyS1 >/dev/ttyS1 2>&1
	setsid -c bash --norc -i </dev/ttyS1 >/dev/ttyS1 2>&1
	echo "$JOB_TOKEN shell 0 0 clean" >>/out/results
	;;
probe)
	# enough work on all CPUs to see an accelerator fail
	for _ in 1 2 3 4; do
		(for _ in $(seq 200); do /bin/true; done) &
		pids+=($!)
	done
	wait "${pids[@]}"
	;;
esac

sleep 0.2
kill "$dmesg_pid"
dmesg >/out/dmesg
echo "$JOB_TOKEN" >/out/done
