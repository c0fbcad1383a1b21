"""Which file calls which, by the symbols of the objects: arrows between floors go one way, and files of a folder that call each other in a circle are few.

    knots.py OBJECTS [-v]        OBJECTS: build/obj; -v names the files of each circle, and the calls that close it

A circle is a strongly connected component (Tarjan 1972, SIAM Journal on Computing 1). MOST has the size of the largest in each folder; a smaller one is to be written down there, so that none grows again."""
import os
import subprocess
import sys

FLOORS = ["compiler/base", "compiler/front", "compiler/graph", "compiler/kernel", "compiler/emit", "compiler/driver"]
MOST = {"compiler/base": 1, "compiler/front": 2, "compiler/graph": 48, "compiler/kernel": 23, "compiler/emit": 1, "compiler/driver": 1, "runtime/host": 13, "runtime/backends": 1}


def symbols(objects):
    """file -> what it defines, what it asks for"""
    out = {}
    for folder, _, names in os.walk(objects):
        for name in names:
            if not name.endswith(".o"):
                continue
            text = subprocess.run(["nm", os.path.join(folder, name)], capture_output=True, text=True, check=True).stdout
            words = [line.split() for line in text.splitlines()]
            out[os.path.relpath(os.path.join(folder, name[:-2]), objects)] = ({w[-1] for w in words if len(w) == 3 and w[1] in "TDBRVWC"}, {w[-1] for w in words if len(w) == 2 and w[0] == "U"})
    return out


def circles(calls):
    """The strongly connected components of more than one file, the largest first."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(calls[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while not part or part[-1] != v:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                found.append(sorted(part))
    for v in sorted(calls):
        if v not in index:
            visit(v)
    return sorted(found, key=len, reverse=True)


def main():
    sys.setrecursionlimit(10000)
    of = symbols(sys.argv[1])
    home = {s: f for f, (defines, _) in of.items() for s in defines}
    calls = {f: {(home[s], s) for s in asks if s in home and home[s] != f} for f, (_, asks) in of.items()}
    wrong = 0
    for f, to in sorted(calls.items()):
        for other, s in sorted(to):
            a, b = os.path.dirname(f), os.path.dirname(other)
            if a in FLOORS and b in FLOORS and FLOORS.index(a) < FLOORS.index(b):
                print("%s calls %s of %s, a floor above" % (f, s, other))
                wrong += 1
    for folder in sorted(MOST):
        inside = {f: {o for o, _ in to if os.path.dirname(o) == folder} for f, to in calls.items() if os.path.dirname(f) == folder}
        all_of = circles(inside)
        largest = len(all_of[0]) if all_of else 1
        print("%s: circles of %s of %d files, %d allowed" % (folder, ", ".join(str(len(c)) for c in all_of) or "1", len(inside), MOST[folder]))
        wrong += largest > MOST[folder]
        for c in all_of if "-v" in sys.argv else []:
            for f in c:
                print("    %s: %s" % (os.path.basename(f), ", ".join("%s of %s" % (s, os.path.basename(o)) for o, s in sorted(calls[f]) if o in c)))
    return 1 if wrong else 0


sys.exit(main())
