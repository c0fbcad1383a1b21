"""Which file calls which, by the symbols of the objects: arrows between floors go one way, and files of a folder that call each other in a
circle are few.

    knots.py OBJECTS [-v]        OBJECTS: build/obj; -v names the files of each circle, and the calls that close it

A file of compiler/graph calls what its README names before it, and nothing behind it, but for files of one circle. A circle is a strongly
connected component (Tarjan 1972, SIAM Journal on Computing 1). MOST has the size of the largest in each folder; a smaller one is to be
written down there, so that none grows again."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOORS = ["compiler/base", "compiler/front", "compiler/graph/terms", "compiler/graph/model", "compiler/graph/algebra",
          "compiler/graph/rewrite", "compiler/graph/updates", "compiler/graph/plan",
          "compiler/kernel", "compiler/emit", "compiler/pages", "compiler/driver"]
MOST = {"compiler/base": 1, "compiler/front": 2, "compiler/graph/terms": 2, "compiler/graph/model": 3, "compiler/graph/algebra": 1,
        "compiler/graph/rewrite": 1, "compiler/graph/updates": 1,
        "compiler/graph/plan": 2, "compiler/kernel": 1, "compiler/emit": 1, "compiler/pages": 1, "compiler/driver": 1, "runtime/host": 1,
        "runtime/backends": 1}


def is_there(file):
    """what the object is made from, which may have moved since"""
    return any(os.path.exists(os.path.join(ROOT, f)) for f in (file + ".c", file.removesuffix("_cc") + ".cc", "build/" + file + ".c"))


def reading_order(files):
    """file -> its place in compiler/graph/README.md, which has a section for each folder, and in it `NAME: what it does` or `NAME, NAME:
    ...`"""
    place, folder = {}, None
    with open(os.path.join(ROOT, "compiler/graph/README.md")) as f:
        for word in re.findall(r"^## \w+|\w+(?=(?:, \w+)*:)", f.read(), flags=re.M):
            if word.startswith("## "):
                folder = "compiler/graph/" + word[3:]
            elif "%s/%s" % (folder, word) in files:
                place.setdefault("%s/%s" % (folder, word), len(place))
    return place


def symbols(objects):
    """file -> what it defines, what it asks for. Objects that older trees have left, of files that there are no more, are none of them."""
    out, paths = {}, {}
    for folder, _, names in os.walk(objects):
        for name in names:
            file = os.path.relpath(os.path.join(folder, name[:-2]), objects)
            if name.endswith(".o") and is_there(file):
                paths[os.path.join(folder, name)] = out[file] = (set(), set())
    # nm for all at once: it takes longer to start than to read
    for line in subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout.splitlines() if paths else ():
        path, _, rest = line.partition(".o:")
        words = rest.split()
        if len(words) == 3 and words[1] in "TDBRVWC":
            paths[path + ".o"][0].add(words[-1])
        elif len(words) == 2 and words[0] == "U":
            paths[path + ".o"][1].add(words[-1])
    return out


def floor(path):
    """The floor that a file stands on; a folder within one belongs to it."""
    return max((m for m in MOST if path.startswith(m + "/")), key=len, default=os.path.dirname(path))


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
            a, b = floor(f), floor(other)
            if a in FLOORS and b in FLOORS and FLOORS.index(a) < FLOORS.index(b):
                print("%s calls %s of %s, a floor above" % (f, s, other))
                wrong += 1
    place = reading_order(of)
    for f in sorted(of):
        if f.startswith("compiler/graph/") and f not in place:
            print("compiler/graph/README.md does not name %s" % f)
            wrong += 1
    together = {f: c for c in circles({f: {o for o, _ in to} for f, to in calls.items()}) for f in c}
    for f, to in sorted(calls.items()):
        for other, s in sorted(to):
            if place.get(f, 0) < place.get(other, 0) and f in place and together.get(f, f) is not together.get(other):
                print("%s calls %s of %s, which its README names behind it" % (f, s, other))
                wrong += 1
    for folder in sorted(MOST):
        inside = {f: {o for o, _ in to if floor(o) == folder} for f, to in calls.items() if floor(f) == folder}
        all_of = circles(inside)
        largest = len(all_of[0]) if all_of else 1
        print("%s: circles of %s of %d files, %d allowed" % (folder, ", ".join(str(len(c)) for c in all_of) or "1", len(inside),
                                                             MOST[folder]))
        wrong += largest > MOST[folder]
        for c in all_of if "-v" in sys.argv else []:
            for f in c:
                print("    %s: %s" % (os.path.basename(f), ", ".join("%s of %s" % (s, os.path.basename(o)) for o,
                                                                     s in sorted(calls[f]) if o in c)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
