#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Errors of the cache and of the origin, sub-block by sub-block: what is clean is read
# from the origin, what is dirty is an error and stays, a fill that fails costs its
# reader nothing but a second read, and no error leaves anything valid that is not.
# timeout: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

load_modules
make_brd 3 16384
udev_off
make_sim s-cache /dev/ram1
make_sim s-origin /dev/ram2
dev=/dev/mapper/c
io() { timeout 60 pc-io $dev "$@"; }
is_quiet() { [ "$(dm_inflight c)" = "0 0" ]; }
origin() { timeout 60 pc-io /dev/ram2 "$@"; }
fails() { dmsetup message "s-$1" 0 fail "${@:2}"; }
works() { dmsetup message s-cache 0 fail off; dmsetup message s-origin 0 fail off; }
create()
{
	dd if=/dev/zero of=/dev/ram0 bs=4k count=1 oflag=direct status=none
	pc_create c /dev/ram0 /dev/mapper/s-cache /dev/mapper/s-origin 128 "$1" lru \
		"bypass_sequential 0 fill ${2:-8}"
}
quiet()
{
	ok "$1: nothing in flight" is_quiet
	ok "$1: removed" timeout 60 dmsetup remove --retry c
}
origin write bs 65536 count 200 byte 256

# --- the origin, in a fill --------------------------------------------------------

create writeback 128
# one error: the fill's read of the whole window
fails origin read 1024 8 1
ok "a fill fails once: its reader does not notice" io read bs 32768 first 16 check 256
is "$(pc_stat c fill_errors)" 1 "it is counted"
works
# for good: the window's other readers
fails origin read 2048 8 0
ok "another sub-block of the window" io read bs 4096 first 260 check 256
nok "the bad one" io read bs 4096 first 256
nok "both" io read bs 65536 first 16
works
ok "later" io read bs 65536 first 16 check 256
quiet "fills"

# --- the cache --------------------------------------------------------------------

create writeback
io read bs 65536 first 50 count 4
# so that it stays dirty
fails origin write 0 0 0
io write bs 65536 first 60 count 4 byte 256
fails cache read 0 0 0
ok "clean: read from the origin" io read bs 65536 first 50 count 2 check 256
nok "dirty: an error" io read bs 4096 first 960
works
ok "dirty: it is still there" io read bs 65536 first 60 count 4 check 256
fails cache write 0 0 0
ok "a write to a new block goes to the origin" io write bs 4096 first 1200 count 4 byte 9
ok "which has it" origin read bs 4096 first 1200 count 4 check 9
nok "a write to a valid sub-block is an error" io write bs 4096 first 960 byte 9
ok "no fill" io read bs 4096 first 1280 count 4 check 256
works
ok "read right afterwards: new" io read bs 4096 first 1200 count 4 check 9
ok "read right afterwards: not filled" io read bs 4096 first 1280 count 4 check 256
ok "read right afterwards: dirty neighbours" io read bs 4096 first 961 count 60 check 256
io write bs 4096 first 960 byte 256
pc_message c flush
is_clean() { [ "$(pc_status_field c dirty)" = 0 ]; }
ok "clean after a flush" poll 30 is_clean
ok "the origin has it" origin read bs 65536 first 60 count 4 check 256
quiet "cache"

# --- two-device writes ------------------------------------------------------------

create writethrough
io read bs 65536 first 50 count 4
fails cache write 0 0 0
ok "the cache fails: the write succeeds" io write bs 4096 first 800 count 8 byte 5
works
ok "and is read" io read bs 4096 first 800 count 8 check 5
ok "from the origin" origin read bs 4096 first 800 count 8 check 5
io write bs 4096 first 800 count 8 byte 6
fails origin write 0 0 0
nok "the origin fails: an error" io write bs 4096 first 800 byte 7
nok "on a new block, too" io write bs 4096 first 2000 byte 7
works
ok "dropped: the origin is read" io read bs 4096 first 2000 check 256
ok "its neighbours" io read bs 4096 first 801 count 7 check 6
quiet "two devices"

# --- writeback to an origin that fails --------------------------------------------

create writeback
io write bs 65536 first 70 count 4 byte 256
fails origin write 0 0 0
pc_message c flush
has_failed() { [ "$(pc_stat c writeback_errors)" -gt 0 ]; }
ok "writeback fails" poll 30 has_failed
cmp_ok "$(pc_status_field c dirty)" ">" 0 "it stays dirty"
ok "and is read" io read bs 65536 first 70 count 4 check 256
works
ok "it is tried again" poll 60 is_clean
quiet "writeback"
