"""Functions of compiler/ and runtime/ that are longer than a screen, 60 lines from their first line to their last brace; files of more
than 1000 lines.

    long.py ROOT [-v]        -v: all that are longer, the longest first

A function is read as a whole, so a long one is cut along its sections into functions with names. MOST has those that stay long, with the
number of their lines and the reason, and LONG_FILES the same of files, which are cut by subject: they are no lists to add to. What became
shorter is written down there, and what is short taken off."""
import os
import re
import sys

SCREEN = 60
ENDINGS = (".c", ".cc", ".h", ".y", ".l")
NAME = re.compile(r"(\w+)\(")
ROWS = "a flat switch: a case for each option, kind or stage"
TABLE = "three pairs of polynomials, as they are printed"
KERNEL = "a loop around what is in registers and shared memory: most of its lines share all of that"
LOOP = "one loop, of which each part may end the draw or begin it again"
TOUR = "messages, one after the other, about what was found before the first"
MOST = {
    "runtime/host/options.c apply": (103, ROWS),
    "runtime/device/special.h inv_Phi": (77, TABLE),
    "runtime/device/interval.h interval_draw": (75, LOOP),
    "runtime/device/classify.h classify_single": (74, KERNEL),
    "compiler/pages/plain.c formula_plain": (74, ROWS),
    "compiler/front/ast_print.c print_node": (72, ROWS),
    "runtime/host/summary.c print_warnings": (67, TOUR),
    "compiler/pages/latex.c formula_latex": (69, ROWS),
    "runtime/device/modes.h climb_next": (68, ROWS),
    "runtime/device/keyed_sums.h keyed_pass": (68, KERNEL),
    "runtime/device/classify.h classify_exactly": (68, KERNEL),
    "runtime/host/factors.c evaluate": (66, ROWS),
    "runtime/device/sparse_tiles.h sparse_tile": (65, KERNEL),
    "compiler/graph/plan/labels.c walk": (65, ROWS),
    "compiler/front/extents.c constant_value": (63, ROWS),
    "compiler/graph/algebra/ties.c value_at": (62, ROWS),
    "runtime/device/runtime_cuda.h gm_dense_small": (61, KERNEL),
    "runtime/device/dense_tiles.h dense_back": (61, KERNEL),
    "compiler/front/expressions.c type_binary": (61, ROWS),
}

FILE = 1000
LONG_FILES = {}


def functions(path):
    """name, first line, number of lines; a body lies between braces at the beginning of their lines"""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for i, line in enumerate(lines):
        if line != "{":
            continue
        first = i
        while first > 0 and lines[first - 1] and not re.match(r"//|#|}|\s*\*/|.*;$", lines[first - 1]):
            first -= 1
        last = next((j for j in range(i, len(lines)) if re.match(r"}", lines[j])), len(lines) - 1)
        name = NAME.search(" ".join(lines[first:i]))
        if name:
            yield name.group(1), first + 1, last - first + 1


def sources(root):
    for top in ("compiler", "runtime"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    yield os.path.relpath(os.path.join(folder, name), root)


def long_files(root):
    """file -> lines, of the long ones"""
    sizes = {}
    for file in sources(root):
        with open(os.path.join(root, file), encoding="utf-8") as f:
            sizes[file] = sum(1 for _ in f)
    return {file: n for file, n in sizes.items() if n > FILE}


def wrong_files(found):
    """what is to be said of them"""
    most = {file: LONG_FILES.get(file, (FILE, ""))[0] for file in found.keys() | LONG_FILES.keys()}
    return (["%s: %d lines, and %d may be: cut it by subject into files with names" % (f, n, most[f])
             for f, n in found.items() if n > most[f]] +
            ["%s: %d lines, no longer %d: LONG_FILES of tests/house/long.py has the number" % (f, n, most[f])
             for f, n in found.items() if n < most[f]] +
            ["%s: %d lines at most now: take it off LONG_FILES of tests/house/long.py" % (f, FILE)
             for f in LONG_FILES.keys() - found.keys()])


def main():
    root, wrong = sys.argv[1], []
    large = long_files(root)
    found = [(n, "%s %s" % (file, name), at) for file in sources(root) for name, at, n in functions(os.path.join(root, file))
             if n > SCREEN]
    if "-v" in sys.argv:
        print("\n".join("%4d %s, line %d" % f for f in sorted(found, reverse=True)))
    for n, where, at in found:
        most = MOST.get(where, (SCREEN, ""))[0]
        if n > most:
            wrong.append("%s, line %d: %d lines, and %d may be: cut it along its sections into functions with names" % (where, at, n, most))
        elif n < most:
            wrong.append("%s: %d lines, no longer %d: MOST of tests/house/long.py has the number" % (where, n, most))
    wrong += ["%s: %d lines at most now: take it off MOST of tests/house/long.py" % (w, SCREEN)
              for w in MOST.keys() - {w for _, w, _ in found}]
    wrong += wrong_files(large)
    print("\n".join(sorted(wrong)) or "%d functions are longer than %d lines, and %d files than %d, each for a reason" %
          (len(found), SCREEN, len(large), FILE))
    return 1 if wrong else 0


sys.exit(main())
