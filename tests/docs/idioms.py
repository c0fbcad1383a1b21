#!/usr/bin/env python3
"""The tables of docs/from-*.md: what stands in their second column is a part of a model that a test compiles and runs.

    idioms.py ROOT

A row names its model by a comment in its last cell, <!-- CASE -->: tests/docs/idioms/CASE/model.gm or, beginning with examples/, that
folder's model. Every piece of code of the second cell has to stand there, but for spaces. A row without a case begins its second cell with
`none`, in letters, or has an option of a program, a piece that begins with `./fit` or `--`: these are in the table of options, or commands
of the program. Exit status 1 if one is not."""
import glob
import os
import re
import sys

CASE = re.compile(r"<!-- (\S+) -->")
COMMANDS = ("map", "relabel", "predict", "prior", "simulate", "calibrate")


def cells(line):
    return [c.replace("\0", "|").strip() for c in line.replace("\\|", "\0").strip().strip("|").split("|")]


def squeezed(text):
    return re.sub(r"\s+", "", re.sub(r"(#|//).*", "", text))


def model_of(root, case):
    folder = os.path.join(root, case) if case.startswith("examples/") else os.path.join(root, "tests/docs/idioms", case)
    for name in (os.path.basename(case) + ".gm", "model.gm"):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name)) as f:
                return squeezed(f.read())
    return None


def faults_of(root, row, options):
    """What is wrong with a row of a table."""
    code, case = re.findall(r"`` (.+?) ``|`([^`]+)`", row[1]), CASE.search(row[-1])
    code = [a or b for a, b in code]
    if case:
        model = model_of(root, case.group(1))
        if model is None:
            return ["no model %s" % case.group(1)]
        return ["%s has no `%s`" % (case.group(1), c) for c in code if squeezed(c) not in model] + ([] if code else ["no code"])
    if row[1].startswith("none"):
        return []
    known = [w for c in code for w in re.findall(r"--[a-z-]+", c)] + [w for c in code for w in re.findall(r"\./fit ([a-z]+)(?![.\w])", c)]
    return ([] if known else ["no case"]) + ["%s is no option" % w for w in known if w not in options and w not in COMMANDS]


def main():
    root, rows, wrong, used = sys.argv[1], 0, 0, set()
    with open(os.path.join(root, "docs/fit.md")) as f, open(os.path.join(root, "docs/language.md")) as g:
        options = set(re.findall(r"--[a-z-]+", f.read() + g.read()))
    for page in sorted(glob.glob(os.path.join(root, "docs/from-*.md"))):
        with open(page) as f:
            for at, line in enumerate(f, 1):
                if not line.startswith("|") or "gmc | |" in line or re.match(r"\|[ -]+\|[ -]+\|", line):
                    continue
                row = cells(line)
                rows += 1
                used |= set(CASE.findall(line))
                for why in faults_of(root, row, options) if len(row) == 3 else ["%d cells" % len(row)]:
                    print("%s:%d: %s" % (os.path.relpath(page, root), at, why))
                    wrong += 1
    for case in sorted(os.listdir(os.path.join(root, "tests/docs/idioms"))):
        if case not in used:
            print("tests/docs/idioms/%s: no row names it" % case)
            wrong += 1
    print("%d rows, %d faults" % (rows, wrong))
    return 1 if wrong or rows < 100 else 0


sys.exit(main())
