#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The simulator tells the truth: requests that fio replays on the target, one at a time
# and with time for a commit between them, hit as often as polycache sim says, reads
# with lru exactly. In writethrough: the model cleans at once what is to go.
# timeout: 600
# once: fio waits between requests, the same code on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 131072
make_linear fast /dev/ram1 32768
udev_off
requests=1500

# make_log MS WRITES: one request each so many milliseconds (fio takes microseconds), to a
# hot part, a warm one, and blocks that come once; that share of them writes whole
# blocks, since the model does not count by sub-blocks
make_log()
{
	python3 - $requests "$1" "$2" <<'E2'
import random, sys
r = random.Random(7)
pause = int(sys.argv[2]) * 1000
log = open("replay.log", "w")
log.write("fio version 3 iolog\n0 /dev/mapper/c add\n0 /dev/mapper/c open\n")
once = 1000
for i in range(int(sys.argv[1])):
    kind = r.random()
    if kind < .6:
        block = int(150 * r.random() ** 2)
    elif kind < .9:
        block = 150 + r.randrange(350)
    else:
        block, once = once, once + 1
    if r.random() < float(sys.argv[3]):
        what = "write %d 65536" % (block * 65536)
    else:
        what = "read %d 4096" % (block * 65536 + 4096 * r.randrange(16))
    log.write("%d /dev/mapper/c %s\n" % (pause * i, what))
log.write("%d /dev/mapper/c close\n" % (pause * i))
E2
}

# simulated POLICY: "read hits, read misses, write misses" of the model; write hits are
# counted by the piece where a write waits for an intent
simulated()
{
	polycache sim --format iolog --policy "$1" --block-size 64K --size 16M --pool \
		--mode writethrough --json replay.log >sim.json
	python3 -c 'import json
r = json.load(open("sim.json"))["runs"][0]
# a read that had to fetch a part of its block is a miss to the target
part = r["partial_read_hits"]
print(r["read_hits"] - part, r["read_misses"] + part, r["write_misses"])'
}

# measured POLICY: the same of the target
measured()
{
	dd if=/dev/zero of=/dev/ram0 bs=4k count=1 oflag=direct status=none
	pc_create c /dev/ram0 /dev/mapper/fast /dev/ram2 128 writethrough "$1" \
		"bypass_sequential 0 fill 128 commit_ms 2"
	fio --name=replay --read_iolog=replay.log --direct=1 --ioengine=psync >replay.out 2>&1
	pc_read_stats c
	echo "${STATS[read_hits]} ${STATS[read_misses]} ${STATS[write_misses]}"
	diag "$1: no_free ${STATS[no_free_block]}, waits ${STATS[waits_busy]}" >&2
	pc_remove c
}

# exact where each request finds the commit of the one before done, and no block waits
# for another one's sake, as after writes: a host that is held up gets another chance
make_log 20 0
want=$(simulated lru)
for _ in 1 2 3; do
	got=$(measured lru)
	diag "lru: simulated $want, measured $got"
	[ "$got" != "$want" ] || break
done
is "$got" "$want" "lru: hits and misses are the simulator's"

# near NAME POLICY...: within 1 in 100 accesses
near()
{
	local name=$1 policy want got off

	shift
	for policy; do
		want=$(simulated "$policy")
		got=$(measured "$policy")
		diag "$policy: simulated $want, measured $got"
		off=$((${want%% *} - ${got%% *}))
		cmp_ok ${off#-} "<=" $((requests / 100)) \
			"$policy: read hits within 1 in 100 accesses, $name"
	done
}

make_log 10 0
near reads as3fifo smq s3fifo mq
# a write that waits for an intent comes in pieces, each a hit: not for who counts hits
make_log 10 .1
near "reads and writes" lru as3fifo
