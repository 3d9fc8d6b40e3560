#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A cache removed with dirty blocks comes back as it was: the same blocks, the same of
# them dirty, the data right, many times over. After an unclean stop all that was
# committed is there, and only blocks with intents are dirty.
# timeout: 600
# once: sixty stops with the same program
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../crash/crash.sh
. "$(dirname "$0")/../crash/crash.sh"

crash_disks
seed=${SEED:-$(date +%s)}
diag "SEED=$seed"
ok_torture "60 removals with dirty blocks" seed="$seed" cuts=60 stops=100 demote=12 mode=writeback

# --- exactly the blocks with intents -------------------------------------------

new()
{
	pc_create c /dev/mapper/pmeta /dev/mapper/pcache /dev/mapper/porigin 128 writeback lru \
		"commit_ms 10 bypass_sequential 0"
}

# put FILE BLOCK COUNT, get BLOCK COUNT: whole blocks of 64 KiB
put()
{
	dd if="$1" of=/dev/mapper/c bs=64k seek="$2" count="$3" oflag=direct conv=notrunc \
		status=none "${@:4}"
}

get()
{
	dd if="${3:-/dev/mapper/c}" bs=64k skip="$1" count="$2" iflag=direct status=none
}

head -c $((20 * 65536)) /dev/urandom >old
head -c $((3 * 65536)) /dev/urandom >new

dmsetup mknodes
dd if=/dev/zero of=/dev/mapper/pmeta bs=4k count=1 oflag=direct conv=fsync status=none
pc_message porigin hold write
new
put old 0 20 conv=fsync,notrunc
is "$(pc_status_field c dirty)" 20 "20 blocks written and flushed are dirty"
pc_message porigin release
pc_message c flush
ok "written back" pc_wait_clean c
pc_message porigin hold write
put new 17 3
is "$(pc_stat c intents)" 3 "three blocks written again have intents"
pc_message porigin cut "$seed" all
dmsetup remove --retry c
pc_message porigin revive
pc_message porigin hold write
new
is "$(pc_status_field c dirty)" 3 "after the cut the three blocks with intents are dirty"
is "$(pc_status_field c used)" 20 "and all 20 are there"
misses=$(pc_status_field c read_misses)
get 0 20 >after
is "$(pc_status_field c read_misses)" "$misses" "read from the cache"
ok "what was flushed is there" cmp -n $((17 * 65536)) old after
# the commit of an intent flushes what was written before it, and a cut tears the rest
ok "a sector of the others is what it was before the last write, or after it" python3 -c '
after, old, new = (open(name, "rb").read() for name in ("after", "old", "new"))
for at in range(17 * 65536, 20 * 65536, 512):
    other = at - 17 * 65536
    if after[at:at + 512] not in (old[at:at + 512], new[other:other + 512]):
        raise SystemExit("sector %d" % (at // 512))'
pc_message porigin release
ok "written back again" pc_wait_clean c
ok "and unchanged" cmp after <(get 0 20)
dmsetup remove --retry c
ok "the origin has it" cmp after <(get 0 20 /dev/mapper/porigin)
