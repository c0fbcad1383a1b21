"""The section Functions of docs/language.md names every function of runtime/device/functions.def and of stdlib/functions, and no other in
its tables. The table of docs/stdlib.md has the synonyms of each distribution's parameters, and no others.

    functions.py ROOT"""
import glob
import os
import re
import sys


def wrong_synonyms(root):
    with open(os.path.join(root, "docs/stdlib.md")) as f:
        text = f.read()
    part, rows, wrong = text[text.index("## Names of arguments"):text.index("## A distribution file")], {}, []
    for line in part.splitlines():
        cells = line.split("|")
        for name in re.findall(r"`(\w+)`", cells[1]) if line.startswith("| `") else []:
            rows[name] = set(re.findall(r"`(\w+)` is (\w+)", cells[2]))
    for path in sorted(glob.glob(os.path.join(root, "stdlib/distributions/*.gm"))):
        with open(path) as f:
            text = f.read()
        name, words = os.path.basename(path)[:-3], re.search(r"synonyms \{(.*?)\}", text, re.S)
        synonyms = set(re.findall(r"(\w+) = (\w+)", words.group(1))) if words else set()
        listed = rows.pop(name, set())
        if synonyms - listed or (listed and not synonyms):
            wrong.append("docs/stdlib.md lacks synonyms of %s, or has some that there are not" % name)
    return wrong + ["docs/stdlib.md has synonyms of %s, which is no distribution" % name for name in rows]


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
    synonyms = wrong_synonyms(sys.argv[1])
    print("\n".join(synonyms + ["%d functions" % len(rows)]))
    return 1 if missing or unknown or synonyms or len(rows) < 100 else 0


sys.exit(main())
