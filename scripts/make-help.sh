#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints the targets and variables of a Makefile from the comments behind "##";
# with --check fails, naming them, if any has none.
#
#   scripts/make-help.sh [--check] MAKEFILE

set -euo pipefail

check=0
if [ "${1:-}" = --check ]; then
	check=1
	shift
fi
awk -v check=$check '
# "## NAME: text" above a definition too long for a comment of its own
/^## [A-Z_]+: / {
	name = $2; sub(/:$/, "", name)
	text[name] = substr($0, length($2) + 5)
	next
}
# NAME ?= default## text
/^[A-Z_]+[ \t]*\?=/ {
	name = $1; sub(/\?=.*/, "", name)
	value = $0; sub(/^[A-Z_]+[ \t]*\?=[ \t]*/, "", value)
	if (index(value, "##")) {
		text[name] = substr(value, index(value, "##") + 3)
		value = substr(value, 1, index(value, "##") - 1)
		sub(/[ \t]+$/, "", value)
		if (value != "" && value !~ /\$/) text[name] = text[name] " [" value "]"
	}
	variables[++nv] = name
	next
}
# name: prerequisites ## text
/^[a-z][a-z-]*:([^=]|$)/ {
	name = $1; sub(/:.*/, "", name)
	if (index($0, "##")) text[name] = substr($0, index($0, "##") + 3)
	targets[++nt] = name
}
function show(names, n,   i) {
	for (i = 1; i <= n; i++) {
		if (text[names[i]] == "") missing = missing " " names[i]
		if (!check) printf "  %-12s%s\n", names[i], text[names[i]]
	}
}
END {
	if (!check) print "usage: make [TARGET] [VARIABLE=value]...\n\nTargets:"
	show(targets, nt)
	if (!check) print "\nVariables, with the targets that read them:"
	show(variables, nv)
	if (missing != "") {
		print "make-help.sh: no description of" missing > "/dev/stderr"
		exit 1
	}
}' "${1:?usage: make-help.sh [--check] MAKEFILE}"
