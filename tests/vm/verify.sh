# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced after lib.sh by tests that write and verify with fio: a rig of three
# devices, the load, and what must hold during it and after it.
#
#   make_rig 16 40		# MiB of cache and origin
#   pc_create c "${rig[@]}" 128 writeback lru
#   watch_status c
#   fio_verify load 30m /dev/mapper/c	|| ...
#   check_watch; check_clean c "name"

rig=()
# make_rig CACHE_MIB ORIGIN_MIB [ORIGIN_SECTORS_LESS]: linear devices meta, fast and
# slow over RAM disks; rig holds their paths, in the order of a table line
make_rig()
{
	make_brd 3 $((($1 > $2 ? $1 : $2) * 1024))
	make_linear meta /dev/ram0 16384
	make_linear fast /dev/ram1 $(($1 * 2048))
	make_linear slow /dev/ram2 $(($2 * 2048 - ${3:-0}))
	udev_settle
	rig=(/dev/mapper/meta /dev/mapper/fast /dev/mapper/slow)
}

# blank_meta [DEVICE]: the next table formats it
blank_meta()
{
	dd if=/dev/zero of="${1:-/dev/mapper/meta}" bs=4k count=1 oflag=direct status=none
}

# for a load beside which other programs shall get on
FIO_GENTLE="--numjobs=2 --thinktime=4000 --thinktime_blocks=4 --serialize_overlap=1"

# start_fio NAME SIZE DEVICE: the load of fio_verify, gentle, in the background until
# stop_fio ends it
start_fio()
{
	(
		trap - ERR EXIT
		# shellcheck disable=SC2086
		fio_verify "$@" $FIO_GENTLE --time_based --runtime=3000
	) &
	fio_pid=$!
	fio_report=$1.out
}

# stop_fio "NAME": fails if the load ended before, or found what is wrong
stop_fio()
{
	local status=0

	pkill -INT -P "$fio_pid" -x fio || status=1
	# 128 is how fio says that it was interrupted
	wait "$fio_pid" || [ $? = 128 ] || status=1
	! grep -qE 'verify: bad|error=|err= *[1-9]' "$fio_report" || status=1
	fio_passed "$1" "$fio_report" $status
}

# sizes from a sector to 1 MiB at any sector, so that they cross sub-blocks and blocks
FIO_SIZES=512/15:1536/10:4k/20:7k/10:16k/15:65024/10:100k/8:256k/7:1m/5

# fio_verify NAME SIZE DEVICE [OPTION]...: four jobs, each on its own part of SIZE,
# write and verify while others write, twice over. fio's report goes to NAME.out.
fio_verify()
{
	local name=$1 size=$2 dev=$3

	shift 3
	fio --name="$name" --filename="$dev" --direct=1 --ioengine=libaio --iodepth=16 \
		--numjobs=4 --size="$size" --offset_increment="$size" --rw=randwrite \
		--bssplit="$FIO_SIZES" --blockalign=512 --verify=crc32c --verify_fatal=1 \
		--verify_backlog=48 --verify_backlog_batch=24 --loops=2 --randrepeat=0 \
		--randseed="${FIO_SEED:-$RANDOM}" --group_reporting "$@" >"$name.out" 2>&1
}

# fio_passed NAME FILE STATUS: one assertion, with the end of fio's report where it fails
fio_passed()
{
	if [ "$3" = 0 ]; then
		pass "$1"
	else
		fail "$1" "fio's exit status $3"$'\n'"$(grep -vE '^ |^$' "$2" | tail -n 25)"
	fi
}

# watch_status NAME: in the background, dirty <= resident <= total at every look
watch_status()
{
	: >watch.bad
	: >watch.seen
	: >watch.on
	(
		trap - ERR EXIT
		set +e
		while [ -e watch.on ]; do
			dmsetup status --noflush "$1" 2>/dev/null | awk '
				{ split($7, a, "/"); print >>"watch.seen" }
				$14 > a[1] + 0 || a[1] + 0 > a[2] + 0 { print >>"watch.bad" }'
			sleep 0.2
		done
	) &
	watch_pid=$!
}

check_watch()
{
	local looks

	rm -f watch.on
	wait "$watch_pid" || :
	looks=$(wc -l <watch.seen)
	cmp_ok "$looks" ">" 2 "$1: the status was looked at ($looks times)"
	is "$(head -n 3 watch.bad)" "" "$1: dirty <= resident <= total at every look"
}

is_at_rest()
{
	[ "$(dm_inflight "$1")" = "0 0" ]
}

# same_data DEVICE DEVICE: of the same size
same_data()
{
	cmp <(dd if="$1" bs=1M iflag=direct status=none) \
		<(dd if="$2" bs=1M iflag=direct status=none)
}

# check_clean NAME WHAT [ORIGIN]: nothing in flight; once cleaned, the raw origin holds
# what the cached device shows
check_clean()
{
	local origin=${3:-/dev/mapper/slow}

	poll 10 is_at_rest "$1" || :
	is "$(dm_inflight "$1")" "0 0" "$2: nothing is in flight"
	pc_message "$1" flush
	pc_wait_clean "$1" 60 || :
	is "$(pc_status_field "$1" dirty)" 0 "$2: clean after a flush"
	ok "$2: the origin holds what the device shows" same_data "/dev/mapper/$1" "$origin"
	is "$(pc_status_field "$1" rw) $(pc_status_field "$1" needs_check)" "rw -" "$2: rw"
}
