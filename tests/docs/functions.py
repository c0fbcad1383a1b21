"""The section Functions of docs/language.md names every function of runtime/device/functions.def and of stdlib/functions, and no other in
its tables.

    functions.py ROOT"""
import glob
import os
import re
import sys


def main():
    with open(os.path.join(sys.argv[1], "runtime/device/functions.def")) as f:
        rows = set(re.findall(r"\b(?:ELEMENT|WHOLE|AGAIN)\((\w+), *\"", f.read()))
    for path in glob.glob(os.path.join(sys.argv[1], "stdlib/functions/*.gm")):
        with open(path) as f:
            rows |= set(re.findall(r"^function (?:\w+ )?(\w+)\(", f.read(), flags=re.M))
    with open(os.path.join(sys.argv[1], "docs/language.md")) as f:
        text = f.read()
    part = text[text.index("\n## Functions\n"):text.index("\n## augment and infer")]
    tables = "\n".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| "))
    missing = sorted(rows - set(re.findall(r"\b(\w+)\(", part)))
    unknown = sorted(set(re.findall(r"\b(\w+)\(", tables)) - rows)
    for name in missing:
        print("docs/language.md lacks %s" % name)
    for name in unknown:
        print("docs/language.md has %s, which is no function" % name)
    print("%d functions" % len(rows))
    return 1 if missing or unknown or len(rows) < 100 else 0


sys.exit(main())
