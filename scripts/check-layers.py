#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks that the layers of the kernel code lean one way only.

The table LAYERS below is the one place that says who may use whom. Checked, over
.c and .h files alike: an include, or the use of another file's function, never
points up; no cycles, with x.c and x.h taken as one; shared files ([S], compiled
for the kernel and for userspace) include only shared files and a short list of
kernel headers, and know no bio, lock, clock or random number; policies see nothing
but their contract; kernel versions are compat.h's business alone; userspace and
its tests use shared files only; sources.mk lists every file, each on its side.

Usage: check-layers.py [--graph] [--self-test]     (the self-test runs always)
"""
import os
import re
import sys
import tempfile

# Top to bottom. A row may use its own row and all rows below. Names without suffix
# stand for the .c and the .h; a name with one for that file alone.
LAYERS = [
    ("K", "target"),                        # callbacks; puts everything together
    ("K", "instance"),                      # one writer; loading and closing
    ("K", "message"),                       # the target's larger callbacks
    ("K", "status"),
    ("K", "map"),                           # what happens to one bio
    ("K", "endio"),                         # and when it ends
    ("K", "read", "write", "discard"),
    ("K", "lookup"),                        # what these have in common
    # engines
    ("K", "fill", "writeback", "flush", "intent", "reclaim", "loss"),
    ("K", "cache", "pages", "round"),       # state and steps that the engines share
    ("K", "host"),                          # the policy at work, batches of hits
    ("K", "candidates"),                    # the policies that auto chooses from
    ("S", "auto"),                          # shadows of policies, and the choice
    ("S", "stream", "pending", "blocks"),   # what is in core
    ("K", "registry"),                      # policies by name
    ("S", "swap"),                          # exchange of policies
    ("S", "args"),                          # words of tables and messages
    ("K", "commit"),                        # group commit
    ("K", "metaio-dm"),                     # metadata on a device
    ("S", "metadata.c", "recovery"),        # facade of what is durable; what a start makes of it
    ("S", "metadata-internal"),             # between these two
    ("S", "journal", "superblock", "table"),
    ("S", "entry"),                         # one table entry, in core and on disk
    ("S", "metadata.h"),                    # its door, also the vocabulary of the above
    ("S", "ondisk"),                        # the format
    ("S", "metaio"),                        # read, write, flush of metadata
    ("S", "policy", "queues", "chain", "block-types"),  # contract of policies
    ("S", "broken"),                        # rules broken on purpose, never in the product
    ("K", "compat"),                        # differences between kernels
]

# Kernel headers that have a look-alike in userspace/kshim
SHARED_HEADERS = set("""
    asm/byteorder.h linux/bitmap.h linux/bitops.h linux/bits.h linux/bug.h linux/build_bug.h
    linux/compiler.h linux/container_of.h linux/crc32c.h linux/ctype.h linux/err.h
    linux/errno.h linux/hash.h linux/kernel.h linux/kstrtox.h linux/limits.h linux/list.h
    linux/log2.h linux/math.h linux/math64.h linux/minmax.h linux/mm.h linux/module.h
    linux/overflow.h linux/prefetch.h linux/printk.h linux/sched.h linux/slab.h
    linux/sprintf.h linux/stddef.h linux/string.h linux/types.h linux/vmalloc.h
""".split())

POLICY_HEADERS = {"policy.h", "block-types.h", "queues.h", "chain.h", "ghosts.h"}

# Words that [S] files must not contain
IMPURE = re.compile(
    r"\b(__KERNEL__|jiffies\w*|struct bio|(raw_)?spin_(un)?lock\w*|mutex_(un)?lock\w*|"
    r"get_random_\w+|ktime_get\w*|smp_processor_id|float|double)\b")
VERSION = re.compile(r"\b(LINUX_VERSION_CODE|KERNEL_VERSION|RHEL_RELEASE_\w+)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)


def strip(text):
    """Comments and strings replaced by blanks; line numbers stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                  blank, text, flags=re.S)


class Source:
    def __init__(self, top, path):
        self.path = path
        self.name = os.path.basename(path)
        self.stem = os.path.splitext(self.name)[0]
        with open(os.path.join(top, path), encoding="utf-8") as f:
            self.text = f.read()
        # comments first: an include in a comment is none. Strings must stay for it.
        nocomment = re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                           self.text, flags=re.S)
        self.includes = [(nocomment.count("\n", 0, m.start(2)) + 1, m.group(1), m.group(2))
                         for m in INCLUDE.finditer(nocomment)]
        self.code = strip(self.text)
        row = next((i for i, layer in enumerate(LAYERS)
                    if self.name in layer[1:] or self.stem in layer[1:]), None)
        self.row = row
        self.side = LAYERS[row][0] if row is not None else None
        split = row is not None and self.name in LAYERS[row][1:]
        self.unit = self.name if split else self.stem

    def at(self, offset):
        return f"{self.path}:{self.code.count(chr(10), 0, offset) + 1}"


def sources(top, folder):
    full = os.path.join(top, folder)
    if not os.path.isdir(full):
        return []
    return [Source(top, os.path.join(folder, n)) for n in sorted(os.listdir(full))
            if n.endswith((".c", ".h"))]


def tree(top, folder):
    found = []
    for base, _, _ in sorted(os.walk(os.path.join(top, folder))):
        found += sources(top, os.path.relpath(base, top))
    return found


def find_cycle(edges):
    """One cycle in {unit: set of units} as a list, or None."""
    done, path = set(), []

    def walk(unit):
        if unit in path:
            return path[path.index(unit):] + [unit]
        if unit in done:
            return None
        path.append(unit)
        for other in sorted(edges.get(unit, ())):
            cycle = walk(other)
            if cycle:
                return cycle
        path.pop()
        done.add(unit)
        return None

    for unit in sorted(edges):
        cycle = walk(unit)
        if cycle:
            return cycle
    return None


def declared(header):
    """Functions that a header declares: pc_NAME( in a line that starts a declaration."""
    return set(re.findall(r"^(?![ \t#]|typedef)[^\n(;={]*?\b(pc_\w+)\(", header.code, re.M))


def defined(source):
    """Functions whose body is in a file."""
    return set(re.findall(r"^(?![ \t#]|typedef)[^\n(;={]*?\b(pc_\w+)\([^;{]*\)\s*\{",
                          source.code, re.M))


def check_kernel(top, errors):
    core = sources(top, "dm-target")
    contract = [s for s in sources(top, "policies") if s.name in POLICY_HEADERS]
    ranked = {s.name: s for s in core + contract if s.row is not None}
    owner = {f: s for s in ranked.values() if s.name.endswith(".h") for f in declared(s)}
    edges = {}

    for s in core:
        if s.row is None:
            errors.append(f"{s.path}: not in the table LAYERS of scripts/check-layers.py")
            continue
        for line, quote, name in s.includes:
            where = f"{s.path}:{line}"
            if quote == "<":
                if s.side == "S" and name not in SHARED_HEADERS:
                    errors.append(f"{where}: [S] file includes <{name}>, not on the list of "
                                  "kernel headers with a look-alike")
                continue
            other = ranked.get(os.path.basename(name))
            if other is None:
                errors.append(f"{where}: includes \"{name}\", no header of the kernel code")
                continue
            if other.name != name:
                errors.append(f"{where}: includes \"{name}\" by a path; write \"{other.name}\"")
            if other.unit == s.unit:
                continue
            edges.setdefault(s.unit, set()).add(other.unit)
            if other.row < s.row:
                errors.append(f"{where}: {s.name} includes {other.name}, which is above it")
            if s.side == "S" and other.side == "K":
                errors.append(f"{where}: [S] file includes {other.name}, which is [K]")
        own = defined(s)
        # a struct may have the name of a function
        for m in re.finditer(r"(?<!struct )(?<!enum )\bpc_\w+", s.code):
            other = owner.get(m.group(0)) if m.group(0) not in own else None
            # the facade's own functions are declared in a header of another row
            if other and other.stem != s.stem and other.row < s.row:
                errors.append(f"{s.at(m.start())}: {s.name} uses {m.group(0)}(), "
                              f"which {other.name} above it declares")
            elif other and other.stem != s.stem and other.name == "metadata.h" and \
                    s.name.endswith(".c") and s.row > LAYERS_ROW["metadata.c"]:
                errors.append(f"{s.at(m.start())}: {s.name} uses {m.group(0)}() of the facade "
                              "above it")
        if s.side == "S":
            for m in IMPURE.finditer(s.code):
                errors.append(f"{s.at(m.start())}: [S] file contains '{m.group(0)}'")

    cycle = find_cycle(edges)
    if cycle:
        errors.append("cycle of includes: " + " -> ".join(cycle))
    return core, edges


def check_policies(top, errors):
    for s in sources(top, "policies"):
        for line, quote, name in s.includes:
            if quote == '"' and name not in POLICY_HEADERS:
                errors.append(f"{s.path}:{line}: a policy includes \"{name}\"; only "
                              f"{', '.join(sorted(POLICY_HEADERS))} are its business")
            elif quote == "<" and name not in SHARED_HEADERS:
                errors.append(f"{s.path}:{line}: a policy includes <{name}>, not on the list "
                              "of kernel headers with a look-alike")
        for m in IMPURE.finditer(s.code):
            errors.append(f"{s.at(m.start())}: a policy contains '{m.group(0)}'")


def check_versions(top, errors):
    for folder in ("dm-target", "policies", "userspace", "tests"):
        for s in tree(top, folder):
            m = VERSION.search(s.code)
            if m and s.name != "compat.h":
                errors.append(f"{s.at(m.start())}: {m.group(0)} outside compat.h")


def check_userspace(top, errors):
    kernel = {s.name for s in sources(top, "dm-target") if s.side == "K"}
    for folder in ("userspace", "tests/unit", "tests/fuzz"):
        for s in tree(top, folder):
            for line, quote, name in s.includes:
                if quote == '"' and os.path.basename(name) in kernel:
                    errors.append(f"{s.path}:{line}: userspace includes {name}, which is [K]")


def check_list(top, core, errors):
    """sources.mk: each .c of dm-target is there, on the side that the table says."""
    path = os.path.join(top, "sources.mk")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for side, variable in (("S", "PC_SHARED"), ("K", "PC_KERNEL")):
        m = re.search(rf"^{variable}\s*:=((?:.*\\\n)*.*)$", text, re.M)
        listed = set(m.group(1).replace("\\", " ").split()) if m else set()
        there = {s.stem for s in core if s.side == side and s.name.endswith(".c")}
        for name in sorted(there - listed):
            errors.append(f"sources.mk: {variable} lacks {name} (dm-target/{name}.c is [{side}])")
        for name in sorted(listed - there):
            errors.append(f"sources.mk: {variable} has {name}, but there is no "
                          f"dm-target/{name}.c of kind [{side}]")


LAYERS_ROW = {name: i for i, layer in enumerate(LAYERS) for name in layer[1:]}


def check(top):
    errors = []
    core, edges = check_kernel(top, errors)
    check_policies(top, errors)
    check_versions(top, errors)
    check_userspace(top, errors)
    check_list(top, core, errors)
    return errors, core, edges


# Each case: files, and what the check must say (None: nothing)
CASES = {
    "a sound tree": ({
        "dm-target/map.c": '#include <linux/bio.h>\n#include "map.h"\n#include "fill.h"\n',
        "dm-target/map.h": "int pc_map_bio(void);\n",
        "dm-target/fill.h": "int pc_fill_start(void);\n",
        "dm-target/blocks.h": '#include <linux/types.h>\n#include "block-types.h"\n',
        "policies/block-types.h": "#include <linux/types.h>\n",
        "policies/lru.c": '#include "policy.h"\n/* #include "map.h" */\n',
        "policies/policy.h": '#include "block-types.h"\n',
    }, None),
    "include that points up": ({
        "dm-target/fill.c": '#include "map.h"\n', "dm-target/map.h": ""}, "above it"),
    "use that points up without an include": ({
        "dm-target/fill.c": "int pc_map_bio(void);\nint f(void) { return pc_map_bio(); }\n",
        "dm-target/map.h": "int pc_map_bio(void);\n"}, "which map.h above it declares"),
    "use of the facade from below": ({
        "dm-target/journal.c": '#include "metadata.h"\nint f(void) { return pc_metadata_x(); }\n',
        "dm-target/metadata.h": "int pc_metadata_x(void);\n"}, "of the facade"),
    "cycle within a row": ({
        "dm-target/fill.c": '#include "flush.h"\n', "dm-target/fill.h": "",
        "dm-target/flush.c": '#include "fill.h"\n', "dm-target/flush.h": ""}, "cycle"),
    "shared file with a kernel header": ({
        "dm-target/table.c": "#include <linux/bio.h>\n"}, "<linux/bio.h>"),
    "shared file with a [K] header": ({
        "dm-target/blocks.c": '#include "compat.h"\n', "dm-target/compat.h": ""}, "which is [K]"),
    "shared file that looks for the kernel": ({
        "dm-target/stream.c": "#ifdef __KERNEL__\n#endif\n"}, "__KERNEL__"),
    "shared file with a clock": ({
        "dm-target/stream.c": "u64 f(void) { return jiffies; }\n"}, "jiffies"),
    "policy that sees the core": ({
        "policies/lru.c": '#include "blocks.h"\n', "dm-target/blocks.h": ""}, "a policy includes"),
    "version outside compat.h": ({
        "dm-target/map.c": "#if LINUX_VERSION_CODE > 1\n#endif\n"}, "outside compat.h"),
    "userspace with a [K] header": ({
        "userspace/x.c": '#include "commit.h"\n', "dm-target/commit.h": ""}, "userspace includes"),
    "file that nobody ranked": ({"dm-target/util.c": "\n"}, "not in the table"),
    "file that is not built": ({
        "dm-target/map.c": "\n", "sources.mk": "PC_SHARED :=\nPC_KERNEL :=\n"}, "lacks map"),
}


def self_test():
    for name, (files, expected) in CASES.items():
        with tempfile.TemporaryDirectory() as top:
            for path, text in files.items():
                full = os.path.join(top, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            errors = check(top)[0]
        if expected is None and errors:
            sys.exit(f"check-layers: self-test '{name}': unexpected: {errors}")
        if expected is not None and not any(expected in e for e in errors):
            sys.exit(f"check-layers: self-test '{name}': not caught, said {errors}")
    return len(CASES)


def main():
    cases = self_test()
    if "--self-test" in sys.argv:
        print(f"check-layers: self-test: {cases} cases")
        return 0
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    errors, core, edges = check(top)
    if "--graph" in sys.argv:
        for unit in sorted(edges):
            print(f"{unit}: {' '.join(sorted(edges[unit]))}")
    for e in errors:
        print(e)
    print(f"check-layers: {len(core)} files, {len(errors)} errors (self-test: {cases} cases)")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
