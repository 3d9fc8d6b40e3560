#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The demonstration: a simulated hard disk and SSD, a cached device made with
# dmsetup, the same random reads on the bare disk, on the cold and on the warm
# cache, writes, and an exchange of the policy while I/O runs. Runs in the guest of
# scripts/vm-run.sh; "make demo" calls it. Ends within three minutes.

PC_TEST=demo
# shellcheck source=../vm/lib.sh
. "$PC_SRC/tests/vm/lib.sh"

work=64m
depth=4
seed=1

say() { printf '\n== %s\n' "$*"; }

# row NAME DEVICE RW SECONDS [HITS BEFORE]: runs fio and prints one line of figures
row()
{
	local name=$1 dev=$2 rw=$3 seconds=$4 f hits0=0 all0=0 hits=0 all=0 ratio='-'

	if [ "$dev" = /dev/mapper/fast ]; then
		read -r hits0 all0 < <(hits)
	fi
	f=$(fio --name=d --filename="$dev" --direct=1 --rw="$rw" --bs=4k --size=$work \
		--ioengine=libaio --iodepth=$depth --norandommap --runtime="$seconds" --time_based \
		--randseed=$seed --output-format=terse)
	seed=$((seed + 1))
	if [ "$dev" = /dev/mapper/fast ]; then
		read -r hits all < <(hits)
		ratio=$(awk -v h=$((hits - hits0)) -v a=$((all - all0)) \
			'BEGIN { printf "%.1f %%", a ? 100 * h / a : 0 }')
	fi
	awk -F';' -v name="$name" -v rw="$rw" -v ratio="$ratio" '{
		o = rw ~ /write/ ? 41 : 0
		p99 = "?"
		for (i = 18 + o; i <= 37 + o; i++)
			if (split($i, a, "=") == 2 && a[1] ~ /^99\.000/) p99 = a[2]
		printf "  %-34s %8d  %10.2f ms  %10.2f ms  %10s\n", name, $(8 + o),
			$(40 + o) / 1000, p99 / 1000, ratio }' <<<"$f"
}

# hits: requests that hit, all requests
hits()
{
	dmsetup status fast | awk '{ print $8 + $10, $8 + $9 + $10 + $11 }'
}

head_line()
{
	printf '  %-34s %8s  %13s  %13s  %10s\n' "4 KiB, random, depth $depth" IOPS "mean latency" \
		"99 % below" "hits"
}

load_modules
make_brd 3 1048576

say "A simulated hard disk (1 GiB, 7200 rpm), SSD (128 MiB) and metadata device (16 MiB)"
dmsetup create hdd --table "0 2097152 pcsim /dev/ram0 hdd"
dmsetup create ssd --table "0 262144 pcsim /dev/ram1 ssd"
dmsetup create meta --table "0 32768 pcsim /dev/ram2 ssd"
dmsetup table hdd; dmsetup table ssd

table="0 2097152 polycache /dev/mapper/meta /dev/mapper/ssd /dev/mapper/hdd 128 1 writeback lru 0"
say "Reads of 64 MiB, from the disk and through the cache"
head_line
row "the bare disk" /dev/mapper/hdd randread 6
dmsetup create fast --table "$table"
row "cold: the first 3 seconds" /dev/mapper/fast randread 3
row "warming: the next 6 seconds" /dev/mapper/fast randread 6
row "warm" /dev/mapper/fast randread 6
echo "  the cached device was made with:"
echo "  dmsetup create fast --table \"$table\""

say "Writes: the disk, and the cache in writeback mode"
head_line
row "the bare disk" /dev/mapper/hdd randwrite 5
row "cached" /dev/mapper/fast randwrite 5

say "The policy is exchanged while reads run: lru -> cleaner -> lru"
head_line
(
	sleep 2
	dmsetup message fast 0 policy cleaner
	sleep 2
	dmsetup message fast 0 policy lru promote_after 1
) &
row "with two exchanges" /dev/mapper/fast randread 6
wait $!

say "Status, with its fields named (dmsetup status fast)"
dmsetup status fast
for f in used total read_hits read_misses write_hits write_misses demotions promotions dirty \
	features core_args policy policy_args rw needs_check; do
	printf '  %-14s %s\n' "$f" "$(pc_status_field fast $f)"
done

say "Written back and removed: the disk alone has all the data"
dmsetup message fast 0 flush
pc_wait_clean fast 60
sum=$(dd if=/dev/mapper/fast bs=1M count=64 iflag=direct status=none | sha256sum)
dmsetup remove --retry fast
if [ "$sum" = "$(dd if=/dev/mapper/hdd bs=1M count=64 iflag=direct status=none | sha256sum)" ]; then
	pass "the disk holds what the cached device showed"
else
	fail "the disk differs from what the cached device showed"
fi
