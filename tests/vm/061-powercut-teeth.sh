#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The power-cut test has teeth: on a cache device that ignores flushes, and with each
# of the rules that keep data broken in turn (dm-target/broken.h), it must find wrong
# data within a bounded number of cuts; the same module with nothing broken passes.
# By default only what concerns flushes; RULES=all or RULES='rule9 rule12' in the
# environment (vm-run.sh --env, make teeth) runs the others.
# timeout: 1800
# once: much of the same on every kernel
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../crash/crash.sh
. "$(dirname "$0")/../crash/crash.sh"

crash_disks_with breakable
seed=${SEED:-$(date +%s)}
diag "SEED=$seed"

rules=${RULES:-ignore_flush no_cache_flush}
wanted()
{
	[[ $rules == all || " $rules " == *" $1 "* ]]
}

# break_rule NAME BIT CUTS KEY=VALUE...: must be found; the disks are told first
break_rule()
{
	local name=$1 bit=$2 cuts=$3

	wanted "$name" || return 0
	echo $((1 << bit)) >/sys/module/dm_polycache/parameters/broken
	nok_torture "$name broken" "$cuts" seed="$seed" "${@:4}"
	echo 0 >/sys/module/dm_polycache/parameters/broken
}

if wanted none; then
	ok_torture "nothing broken, intents few and short-lived: ${CUTS:-60} cuts" \
		seed="$seed" cuts="${CUTS:-60}"
fi

if wanted ignore_flush; then
	pc_message pcache set ignore_flush 1
	nok_torture "a cache device that ignores flushes" 60 seed="$seed" mode=writeback
	pc_message pcache set ignore_flush 0
fi

break_rule no_cache_flush 0 60 mode=writeback messages=0
break_rule rule3 1 60 mode=writeback
break_rule rule5 15 60 slow=100 hot=512
break_rule rule6 2 100 slow=100 hot=512 demote=1
break_rule rule7 16 60 hot=1024
break_rule rule8 3 100 block=768 demote=2
break_rule rule9 4 60 demote=1
break_rule rule10 5 200 slow=100 demote=1 hot=512 commit_ms=5
break_rule rule11 6 100 mode=writeback hot=512 demote=1 commit_ms=5
break_rule rule12 7 60 demote=2
break_rule rule13 8 60 mode=writeback messages=0 flushes=20
break_rule rule14 9 200 mode=writeback discards=60 flushes=2 commit_ms=1000 demote=1 messages=0
break_rule rule18 10 60 mode=writethrough scribble=30 demote=1 slow=100
break_rule serial 11 60 mode=writeback commit_ms=5
