#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The measured part of docs/policies.md: hit ratios of every policy on public traces, as
# tables between the two marker comments there, and as curves in docs/policies/.
#
#   scripts/policy-curves.sh FOLDER
#
# FOLDER holds the traces that docs/policies.md names, compressed or not. Needs
# "make tools".

set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-}
if [ ! -d "$folder" ]; then
	echo "policy-curves.sh: '$folder': must be the folder of the traces" >&2
	exit 2
fi
policies=lru,as3fifo,smq,s3fifo,mq,auto
sizes=1%,2%,5%,10%,20%,40%
page=docs/policies.md
out=$(mktemp)
trap 'rm -f "$out" "$out.json"' EXIT
if ! grep -qx '<!-- measured -->' $page || ! grep -qx '<!-- end -->' $page; then
	echo "policy-curves.sh: $page: must have the lines <!-- measured --> and <!-- end -->" >&2
	exit 1
fi
mkdir -p docs/policies

# list TITLE NAME FILE OPTION...: one table and one curve
list()
{
	local title=$1 name=$2 file

	file=$(find "$folder" -maxdepth 1 -name "$3*" | sort | head -n 1)
	[ -n "$file" ] || { echo "policy-curves.sh: $3: not in $folder" >&2; exit 1; }
	shift 3
	echo "$name" >&2
	build/user/polycache sim --policy $policies --size $sizes --svg "docs/policies/$name.svg" \
		--json "$@" "$file" >"$out.json"
	python3 - "$title" "$name" "$out.json" \
		"polycache sim -p $policies -s $sizes${*:+ $*} ${file##*/}" >>"$out" <<'P'
import json, sys
title, name, path, command = sys.argv[1:]
runs = json.load(open(path))["runs"]
sizes = list(dict.fromkeys(r["size"] for r in runs))
print("\n### %s\n\n![hit ratio over cache size](policies/%s.svg)\n" % (title, name))
print("    %s\n" % command)
print("| policy | %s |\n|---|%s" % (" | ".join(sizes), "---:|" * len(sizes)))
for p in dict.fromkeys(r["policy"] for r in runs):
    row = ["%.2f" % (100 * r["hit_ratio"]) for r in runs if r["policy"] == p]
    print("| `%s` | %s |" % (p, " | ".join(row)))
P
}

list "A virtual disk, blocks of 64 KiB (cloudPhysicsIO)" cloudphysics-64k cloudPhysicsIO.csv -b 64K
list "The same, blocks of 4 KiB" cloudphysics-4k cloudPhysicsIO.csv -b 4K
list "A database, an hour, pages (OLTP)" oltp OLTP.lis
list "A workstation, blocks of 64 KiB (P3)" p3-64k P3.lis -b 64K
list "The same, blocks of 4 KiB" p3-4k P3.lis -b 4K
sed -i -e "/^<!-- measured -->/,/^<!-- end -->/{
/^<!-- measured -->/r $out
/^<!--/!d
}" "$page"
