"""The README of a folder is its table of contents: it names every file once, in an order in which each file calls and includes only those
before it.

    readmes.py ROOT OBJECTS        OBJECTS: build/obj of the tree ROOT

A file is named where its name and a colon begin what is said of it: `- order, colours: ...`, also after the end of another sentence.
`lower.h` stands for that file, `colours` for all of that name that are not named with their endings. A folder within the folder is one
name, and has a README of its own. Files of one circle (knots.py) may stand in any order, since none of their orders is right."""
import functools
import os
import re
import sys

import knots

FOLDERS = ["compiler/base", "compiler/front", "compiler/kernel", "compiler/kernel/hmc", "compiler/emit", "compiler/pages",
           "compiler/driver", "runtime/device", "runtime/backends", "runtime/host", "runtime/host/report", "runtime/host/after"]
ENDINGS = (".c", ".cc", ".h", ".def", ".l", ".y", ".awk")
NAMES = re.compile(r"(?:^- |(?<=[.:] ))((?:[\w.]+, )*[\w.]+): ", re.M)


def stem(name):
    return os.path.splitext(name)[0]


def named(path):
    """The names of a README in their order. Rows may go on, and hold several sentences."""
    with open(path) as f:
        text = re.sub(r"\n  +", " ", f.read())
    rows = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.startswith("- "))
    return [n for group in NAMES.findall(rows) for n in group.split(", ")]


def included(path):
    with open(path) as f:
        return re.findall(r'^#include "([^"]+)"', f.read(), re.M)


@functools.cache
def within(folder, path):
    """The entry of the folder, a file or a folder, that the path leads to; None: another folder"""
    rest = os.path.relpath(path, folder).split(os.sep)
    return None if rest[0] == ".." else rest[0]


def calls_of(root, folder, files, of, home):
    """entry -> {entry: why}, of files and of folders within the folder"""
    calls = {f: {} for f in files}
    sources = {stem(f): f for f in files if f.endswith((".c", ".cc"))}
    entry = lambda path: sources.get(within(folder, path), within(folder, path))
    for f, (_, asks) in of.items():
        a = entry(f)
        for s in asks if a in calls else ():
            b = entry(home.get(s, f))
            if b in calls and a != b:
                calls[a].setdefault(b, "calls %s of" % s)
    for f in files:
        path = os.path.join(root, folder, f)
        inside = [os.path.join(path, g) for g in sorted(os.listdir(path)) if g.endswith(ENDINGS)] if os.path.isdir(path) else [path]
        for one in inside:
            for other in included(one):
                b = within(os.path.join(root, folder), os.path.normpath(os.path.join(os.path.dirname(one), other)))
                if b in calls and b != f:
                    calls[f].setdefault(b, "includes")
    return calls


def look_at(root, folder, of, home):
    files = [f for f in sorted(os.listdir(os.path.join(root, folder))) if f.endswith(ENDINGS)
             or os.path.isdir(os.path.join(root, folder, f))]
    readme = "%s/README.md" % folder
    names = named(os.path.join(root, readme))
    place = {}
    wrong = []
    for f in files:
        at = [i for i, n in enumerate(names) if n == f] or [i for i, n in enumerate(names) if n == stem(f)]
        if len(at) != 1:
            wrong.append("%s %s" % (readme, "names %s more than once" % f if at else "does not name %s" % f))
        place[f] = at[0] if at else 0
    calls = calls_of(root, folder, files, of, home)
    circle = {f: c for c in map(frozenset, knots.circles({f: set(to) for f, to in calls.items()})) for f in c}
    for f, to in sorted(calls.items()):
        for other, why in sorted(to.items()):
            if place[other] > place[f] and (f not in circle or circle[f] != circle.get(other)):
                wrong.append("%s has %s before %s, but it %s %s" % (readme, f, other, why, other))
    return wrong


def main():
    sys.setrecursionlimit(10000)
    root, objects = sys.argv[1:]
    of = {f.removesuffix("_cc"): s for f, s in knots.symbols(objects).items()}         # of a .cc
    home = {s: f for f, (defines, _) in of.items() for s in defines}
    wrong = [line for folder in FOLDERS for line in look_at(root, folder, of, home)]
    print("\n".join(wrong) or "%d folders: each README names every file in its place" % len(FOLDERS))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
