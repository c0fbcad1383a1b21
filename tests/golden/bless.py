#!/usr/bin/env python3
"""Compares the programs that gmc emits for the models of this folder with those kept here.

    bless.py            writes expected.cu of each model anew, and shows what changed
    bless.py --check    only compares; exit status 1 if a program changed
    bless.py [--check] NAME ...
"""
import difflib
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))


def main():
    check = "--check" in sys.argv[1:]
    names = [a for a in sys.argv[1:] if a != "--check"]
    names = names or sorted(d for d in os.listdir(here) if os.path.exists(os.path.join(here, d, "model.gm")))
    changed = 0
    for name in names:
        path = os.path.join(here, name, "expected.cu")
        # From the model's folder, so that the program names its source as `model.gm` wherever the tree lies.
        new = subprocess.run([os.path.join(root, "build", "gmc"), "-q", "--emit=cuda", "model.gm"], cwd=os.path.join(here, name),
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        old = open(path).read() if os.path.exists(path) else ""
        if new == old:
            print("same     " + name)
            continue
        changed += 1
        print("changed  " + name)
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name + "/expected.cu", "gmc"))
        if not check:
            with open(path, "w") as f:
                f.write(new)
    return 1 if check and changed else 0


sys.exit(main())
