#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Format and style of sources and scripts (make style): licence line and head
# comment, length of lines, functions and files, ASCII, words that must not stay
# behind, the kernel's checkpatch, shellcheck, descriptions in the Makefile.
#
#   scripts/check-style.sh [FILE]...      default: all files of the checkout
#
# checkpatch comes from Debian's kernel source package, once, into the cache. A
# tool that is missing is said to be skipped; with CI set that is a failure.
# Closes with "style: N passed, N failed".

set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$PC_TOP" || exit 1

max_columns=100 max_lines=800 max_function=100
passed=0 failed=0

if [ $# -gt 0 ]; then
	files=("$@")
elif git rev-parse --git-dir >/dev/null 2>&1; then
	mapfile -t files < <(git ls-files -co --exclude-standard | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done)
else
	mapfile -t files < <(find . -path ./build -prune -o -type f -print | sed 's,^\./,,')
fi

c_files=() sh_files=() py_files=() mk_files=()
for f in "${files[@]}"; do
	case $f in
	tests/fuzz/seeds/*) ;;
	*.c | *.h) c_files+=("$f") ;;
	*.sh | .ci/run) sh_files+=("$f") ;;
	*.py) py_files+=("$f") ;;
	*.mk | Makefile | Kbuild | */Kbuild | */Makefile) mk_files+=("$f") ;;
	*) if [ "$(head -c 11 "$f" | tr -d '\0')" = '#!/bin/bash' ]; then sh_files+=("$f"); fi ;;
	esac
done
sources=("${c_files[@]}" "${sh_files[@]}" "${py_files[@]}" "${mk_files[@]}")

# verdict NAME FINDINGS: one line, and the findings if there are any
verdict()
{
	if [ -z "$2" ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		sed 's/^/  /' <<<"$2" | sed -n 1,60p
		failed=$((failed + 1))
	fi
}

# skipped NAME TOOL
skipped()
{
	if [ -n "${CI:-}" ]; then
		verdict "$1" "$2 is not installed"
	else
		echo "skipped: $1: $2 is not installed"
	fi
}

verdict "licence line first" "$(for f in "${sources[@]}"; do
	head -n 2 "$f" | grep -q 'SPDX-License-Identifier: GPL-2.0-only' || echo "$f"
done)"

verdict "a comment at the head of each file" "$(for f in "${sources[@]}"; do
	case $f in */Kbuild | Kbuild) continue ;; esac
	awk '/SPDX-License|^#!/ { next }
		/^[ \t]*$|^#$/ { next }
		/^# shellcheck/ { next }
		{ exit !/^(\/\*|\/\/|# |""")/ }' "$f" || echo "$f"
done)"

# of C sources checkpatch sees to that
text_files=("${sh_files[@]}" "${py_files[@]}" "${mk_files[@]}")
verdict "at most $max_columns columns, no blanks at line ends" "$(for f in "${text_files[@]}"; do
	expand "$f" | awk -v f="$f" -v max=$max_columns '
		# a long message stays in one piece
		length($0) > max && !/"[^"]{50,}"/ { print f ":" NR ": " length($0) " columns" }
		/[ \t]$/ { print f ":" NR ": blank at the end" }'
done)"

verdict "at most $max_lines lines a file" "$(for f in "${sources[@]}"; do
	n=$(wc -l <"$f")
	[ "$n" -le $max_lines ] || echo "$f: $n lines"
done)"

# kernel style, in C and in shell: the braces of a function stand alone in column one
verdict "at most $max_function lines a function" "$(for f in "${c_files[@]}" "${sh_files[@]}"; do
	awk -v f="$f" -v max=$max_function '
		/^{/ { start = NR; name = last }
		/^}/ && start {
			if (NR - start > max) print f ":" start ": " NR - start " lines: " name
			start = 0
		}
		{ last = $0 }' "$f"
done)"

verdict "ASCII only" "$(LC_ALL=C grep -nP '[^\x00-\x7F]' "${sources[@]}" /dev/null)"

# not this file, which must name them
others=()
for f in "${sources[@]}"; do
	[ "$f" = scripts/check-style.sh ] || others+=("$f")
done
verdict "nothing unfinished" "$(grep -nE '\b(TODO|FIXME|XXX|HACK)\b|^#[ \t]*if[ \t]+0\b' \
	"${others[@]}" /dev/null)"
verdict "nothing fetched from anywhere but by apt-get" "$(grep -nE \
	'https?://|\b(curl|wget|git clone|pip3? install|npm (i|install))\b' \
	"${sh_files[@]/#scripts\/check-style.sh//dev/null}" "${mk_files[@]}" /dev/null)"

# --- checkpatch --------------------------------------------------------------

checkpatch=$PC_CACHE/checkpatch/checkpatch.pl
if [ ! -e "$checkpatch" ]; then
	tarball=$(find /usr/src -maxdepth 1 -name 'linux-source-6.12*.tar.xz' |
		sort -V | tail -n 1)
	if [ -n "$tarball" ]; then
		mkdir -p "$PC_CACHE/checkpatch.$$"
		dir=$(basename "$tarball" .tar.xz)/scripts
		# each name once: tar need not read to the end
		wanted=("$dir"/{checkpatch.pl,spelling.txt,const_structs.checkpatch})
		tar -C "$PC_CACHE/checkpatch.$$" --strip-components=2 -xJf "$tarball" \
			--occurrence=1 "${wanted[@]}" &&
			mv -T "$PC_CACHE/checkpatch.$$" "$PC_CACHE/checkpatch" 2>/dev/null
		rm -rf "$PC_CACHE/checkpatch.$$"
	fi
fi
# What only makes sense for a patch to the kernel, or for its own sources
ignore=FILE_PATH_CHANGES,SPLIT_STRING,CONSTANT_COMPARISON,LINUX_VERSION_CODE
ignore+=,MACRO_WITH_FLOW_CONTROL,STRCPY,STRLCPY,STRNCPY,REPEATED_WORD,CONFIG_DESCRIPTION
ignore+=,SPDX_LICENSE_TAG,EMBEDDED_FUNCTION_NAME,PREFER_PR_LEVEL,PREFER_FALLTHROUGH
ignore+=,MACRO_ARG_UNUSED,SIZEOF_ADDRESS,UNSPECIFIED_INT
# volatile stands where a test wants a read or a write to be one: broken.h, tests/crash
ignore+=,VOLATILE
# userspace has no __aligned() and the like
ignore+=,PREFER_DEFINED_ATTRIBUTE_MACRO
# the look-alikes of kernel headers are made of what checkpatch warns of
mapfile -t patch_files < <(printf '%s\n' "${c_files[@]}" | grep -v '^userspace/kshim/')
if [ -e "$checkpatch" ] && [ ${#c_files[@]} -gt 0 ]; then
	verdict "checkpatch" "$(printf '%s\n' "${patch_files[@]}" | xargs -n 6 -P "$(nproc)" \
		perl "$checkpatch" --no-tree --no-summary --terse --show-types \
		--max-line-length=$max_columns --ignore "$ignore" -f 2>/dev/null)"
elif [ ! -e "$checkpatch" ]; then
	skipped checkpatch "linux-source-6.12 (checkpatch)"
fi

# --- scripts -----------------------------------------------------------------

if ! command -v shellcheck >/dev/null; then
	skipped shellcheck shellcheck
elif [ ${#sh_files[@]} -gt 0 ]; then
	# SC1091: sourced files by computed names. SC2034, SC2154: variables shared by sourcing
	verdict "shellcheck" "$(shellcheck -x -S warning -f gcc -e SC1091,SC2034,SC2154 \
		"${sh_files[@]}")"
fi
if [ ${#py_files[@]} -gt 0 ]; then
	verdict "scripts in Python compile" "$(for f in "${py_files[@]}"; do
		python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$f" 2>&1
	done)"
fi
verdict "each target and variable of the Makefile described" \
	"$(scripts/make-help.sh --check Makefile 2>&1)"

echo "style: $passed passed, $failed failed"
[ $failed = 0 ]
