#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What lies on the metadata device decides: blank is formatted; dm-cache's superblock and
# anything unknown are refused by name and left alone; a damaged copy of the superblock is
# served from the other; sizes and block size must fit; one device, one cache.
# timeout: 300
. "$(dirname "$0")/lib.sh"
load_modules
make_brd 4 32768
make_linear meta /dev/ram0 16384
make_linear cache /dev/ram1 32768
make_linear origin /dev/ram2 49152
M=/dev/mapper/meta C=/dev/mapper/cache O=/dev/mapper/origin
dev=/dev/mapper/c

sum()
{
	md5sum <"$1"
}

blank()
{
	dd if=/dev/zero of=$M bs=4k count=1 conv=fsync status=none
}

# refused NAME TEXT [DEVICES AND BLOCK SIZE]: at load or at resume, with this text in the
# kernel log, and the metadata device as it was
refused()
{
	local name=$1 text=$2 before

	before=$(sum $M)
	kmsg_mark
	if dmsetup create c --table "$(pc_table ${3:-$M $C $O 64} writethrough lru)" 2>err; then
		fail "$name: refused" "it was accepted"
		pc_remove c
		return
	fi
	like "$(kmsg)" "$text" "$name: refused by name"
	is "$(sum $M)" "$before" "$name: not overwritten"
	dmsetup remove --retry c 2>/dev/null || true
}

# --- blank ------------------------------------------------------------------------

# only the first 4 KiB are zero: that is what LVM does
head -c $((8192 * 1024)) /dev/urandom >$M
blank
pc_create c $M $C $O 64 writeback lru "fill 8"
is "$(pc_status_field c total)" 512 "blank: formatted"
# udev has read a little of it by now
cmp_ok "$(pc_status_field c used)" "<=" 100 "blank: as good as empty"
pc-io $dev write first 3000 count 400 byte 256
pc_remove c
pc_create c $M $C $O 64 writeback lru "fill 8"
cmp_ok "$(pc_status_field c used)" ">=" 50 "ours: used as it is"
ok "with what it holds" pc-io $dev read first 3000 count 400 check 256
pc_wait_clean c
pc_remove c
cp --sparse=never $M good

# --- other contents -----------------------------------------------------------------

cat >dump.xml <<'X'
<superblock uuid="" block_size="64" nr_cache_blocks="512" policy="smq" hint_width="4">
  <mappings><mapping cache_block="0" origin_block="5" dirty="true"/></mappings>
</superblock>
X
if cache_restore -i dump.xml -o $M >restore.out 2>&1; then
	refused "dm-cache" "holds a dm-cache superblock"
else
	skip "cache_restore does not run here: $(tail -n 1 restore.out)"
fi
if modprobe -q dm-cache && modprobe -q dm-cache-smq; then
	blank
	PC_TARGET=cache pc_create k $M $C $O 64 writethrough smq
	dmsetup remove --retry k
	refused "dm-cache, from the kernel" "holds a dm-cache superblock"
fi
head -c 65536 /dev/urandom >$M
refused "noise" "unknown contents"
blank
mkfs.ext2 -q -F $M 4096 >/dev/null 2>&1 || printf 'x' | dd of=$M bs=1 seek=1024 conv=notrunc \
	status=none
refused "a file system" "unknown contents"
blank
printf '\001' | dd of=$M bs=1 seek=4095 conv=notrunc status=none
refused "one byte is not zero" "unknown contents"

# --- copies of the superblock ---------------------------------------------------------

serves()
{
	local name=$1

	ok "$name: accepted" pc_create c $M $C $O 64 writethrough lru "fill 8"
	cmp_ok "$(pc_status_field c used)" ">=" 50 "$name: mappings are there"
	ok "$name: data is right" pc-io $dev read first 3000 count 400 check 256
	pc_remove c
}

for copy in 0 1; do
	cat good >$M
	dd if=/dev/urandom of=$M bs=512 count=1 seek=$((copy * 8)) conv=notrunc status=none
	serves "copy $copy torn"
	cat good >$M
	dd if=/dev/urandom of=$M bs=4096 count=1 seek=$copy conv=notrunc status=none
	serves "copy $copy is noise"
done
cat good >$M
dd if=/dev/urandom of=$M bs=4096 count=2 conv=notrunc status=none
refused "both copies are noise" "unknown contents"
cat good >$M
serves "whole again"

# --- sizes ------------------------------------------------------------------------------

refused "another block size" "made for a block size of 64 sectors, not 128" "$M $C $O 128"
make_linear tiny /dev/ram3 64
dd if=/dev/zero of=/dev/ram3 bs=4k count=8 status=none
refused "too small" "8 blocks of 4 KiB, a cache of 512 blocks needs [0-9]+" \
	"/dev/mapper/tiny $C $O 64"
need=$(kmsg | sed -n 's/.*512 blocks needs \([0-9]*\).*/\1/p' | tail -n 1)
dmsetup remove --retry tiny
make_linear tiny /dev/ram3 $(((need - 1) * 8))
refused "one block too small" "needs $need" "/dev/mapper/tiny $C $O 64"
dmsetup remove --retry tiny
make_linear tiny /dev/ram3 $((need * 8))
ok "the size that was named is enough" pc_create c /dev/mapper/tiny $C $O 64 writethrough lru
pc_remove c
dmsetup remove --retry tiny

resize()
{
	dmsetup suspend "$1"
	dmsetup reload "$1" --table "0 $3 linear $2 0"
	dmsetup resume "$1"
}
resize cache /dev/ram1 65536
serves "cache grown"
pc_create c $M $C $O 64 writethrough lru
is "$(pc_status_field c total)" 1024 "the new blocks are there"
pc_remove c
resize cache /dev/ram1 16384
ok "cache shrunk, all clean: accepted" pc_create c $M $C $O 64 writeback lru "fill 8"
is "$(pc_status_field c total)" 256 "fewer blocks"
ok "the data is right" pc-io $dev read first 3000 count 400 check 256
pc_remove c
resize origin /dev/ram2 65536
serves "origin grown"
pc_create c $M $C $O 64 writeback lru "fill 8"
# the last block of the origin is dirty and stays so
dmsetup suspend c
make_sim s-origin /dev/ram2
dmsetup reload c --table "$(PC_SECTORS=65536 pc_table $M $C /dev/mapper/s-origin 64 writeback lru)"
dmsetup resume c
dmsetup message s-origin 0 fail write 0 0 0
pc-io $dev write first 8184 count 8 byte 7 fsync 8
pc_remove c
cp $M dirty
PC_SECTORS=49152 refused "origin shrunk below a dirty block" \
	"origin has shrunk from 65536 to 49152 sectors, and origin block 1023 is dirty" \
		"$M $C $O 64"
dmsetup message s-origin 0 fail off
ok "with the old size it is accepted" pc_create c $M $C /dev/mapper/s-origin 64 writeback lru
pc_wait_clean c
pc_remove c
dmsetup remove --retry s-origin
resize origin /dev/ram2 49152
ok "origin shrunk, all clean: accepted" pc_create c $M $C $O 64 writeback lru "fill 8"
ok "the data is right" pc-io $dev read first 3000 count 400 check 256
pc_remove c

# --- one device, one cache ------------------------------------------------------------------

pc_create c $M $C $O 64 writethrough lru
kmsg_mark
nok "a second cache on the same metadata device" dmsetup create d \
	--table "$(pc_table $M /dev/ram3 $O 64 writethrough lru)"
like "$(kmsg)" "metadata device .*: in use by 25[0-9]:[0-9]+; a metadata device serves one" \
	"refused by name"
dmsetup remove --retry d 2>/dev/null || true
ok "the first goes on" pc-io $dev read first 3000 count 400 check 256
ok "reload of the same device" pc_reload c $M $C $O 64 writethrough lru
pc_remove c
diag "$SECONDS s"
