#!/usr/bin/env python3
"""Every function of numbers has a cost of its own: one that is forgotten counts as a call, fifteen multiply-adds. A comparison takes one, a
tail of a gamma distribution 450, and its slope by the shape 11,000, so that method selection takes the wrong method.

    costs.py ROOT

Functions are those of runtime/device/functions.def that work element by element, and those that the compiler makes; costs are the rows of
compiler/kernel/cost.def. Functions of whole arrays are counted by what they are lowered to.
"""
import re
import sys


def main():
    root = sys.argv[1]
    with open(root + "/runtime/device/functions.def") as f:
        text = f.read()
    elements = re.findall(r"^ELEMENT\((\w+),", text, re.M)
    made = re.findall(r'^INTERNAL\(\w+,\s*"([^"]+)"', text, re.M)
    with open(root + "/compiler/kernel/cost.def") as f:
        rows = [name.strip() for name in re.findall(r"COST_OF\(([^,]+),\s*[\d.]+,", f.read())]
    bad = ["%s has no row in compiler/kernel/cost.def" % name for name in elements + made if name not in rows]
    bad += ["%s has two rows in compiler/kernel/cost.def" % name for name in sorted(set(rows)) if rows.count(name) > 1]
    if len(elements) < 60 or len(made) < 10:
        bad.append("functions.def is not read as it is written: %d functions, %d of the compiler" % (len(elements), len(made)))
    for line in bad:
        print(line)
    sys.exit(1 if bad else 0)


main()
