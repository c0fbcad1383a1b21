"""The README of a folder is its table of contents: it names every file once, in an order in which each file calls and includes only those before it.

    readmes.py ROOT OBJECTS        OBJECTS: build/obj of the tree ROOT

A file is named where its name, with or without its ending, and a colon begin what is said of it: `- order, colours: ...`, also after the end of another sentence. A name stands for all files that have
it, whatever their endings. Files of one circle (knots.py) may stand in any order, since none of their orders is right."""
import os
import re
import sys

import knots

FOLDERS = ["compiler/base", "compiler/front", "compiler/emit", "compiler/driver", "runtime/device", "runtime/backends", "runtime/host"]
ENDINGS = (".c", ".cc", ".h", ".def", ".l", ".y", ".awk")
NAMES = re.compile(r"(?:^- |(?<=[.:] ))((?:`?[\w.]+`?, )*`?[\w.]+`?): ", re.M)


def stem(name):
    name = name.strip("`")
    return os.path.splitext(name)[0] if name.endswith(ENDINGS) else name


def named(text):
    """The names of a README in their order. Rows may go on, and hold several sentences."""
    rows = "\n".join(" ".join(line.split()) for line in re.sub(r"\n  +", " ", text).splitlines() if line.startswith("- "))
    names = [stem(n) for group in NAMES.findall(rows) for n in group.split(", ")]
    return [n for n, before in zip(names, [None, *names]) if n != before]


def included(path):
    with open(path) as f:
        return re.findall(r'^#include "([^"/]+)"', f.read(), re.M)


def main():
    sys.setrecursionlimit(10000)
    root, objects = sys.argv[1:]
    of = {f.removesuffix("_cc"): s for f, s in knots.symbols(objects).items()}         # of a .cc
    home = {s: f for f, (defines, _) in of.items() for s in defines}
    wrong = 0
    for folder in FOLDERS:
        files = [f for f in sorted(os.listdir(os.path.join(root, folder))) if f.endswith(ENDINGS)]
        there = {stem(f) for f in files}
        with open(os.path.join(root, folder, "README.md")) as f:
            order = [n for n in named(f.read()) if n in there]
        for name in sorted(there - set(order)):
            print("%s/README.md does not name %s" % (folder, name))
        for name in sorted({n for n in order if order.count(n) > 1}):
            print("%s/README.md names %s more than once" % (folder, name))
        wrong += len(there) != len(order)
        place = {n: i for i, n in enumerate(order)}
        calls = {n: {} for n in there}
        for f, (_, asks) in of.items():
            if os.path.dirname(f) == folder and stem(os.path.basename(f)) in there:
                for s in asks:
                    if s in home and os.path.dirname(home[s]) == folder and home[s] != f:
                        calls[os.path.basename(f)][os.path.basename(home[s])] = "calls %s of" % s
        for f in files:
            for other in included(os.path.join(root, folder, f)):
                if other in files and stem(other) != stem(f):
                    calls[stem(f)].setdefault(stem(other), "includes")
        circle = {n: c for c in map(frozenset, knots.circles({n: set(to) for n, to in calls.items()})) for n in c}
        for f, to in sorted(calls.items()):
            for other, why in sorted(to.items()):
                if f in place and other in place and place[other] > place[f] and (f not in circle or circle[f] != circle.get(other)):
                    print("%s/README.md has %s before %s, but it %s %s" % (folder, f, other, why, other))
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
