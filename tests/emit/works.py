"""Works that the compiler names by author and year in what it writes are in the list of compiler/emit/works.c, with where each appeared.

    works.py ROOT"""
import os
import re
import sys

root = sys.argv[1]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
TOGETHER = re.compile(r'"\s*\n\s*"')   # pieces of one text
NAME = r"[A-Z][A-Za-z]+(?:-[A-Z][a-z]+)?"
WORK = re.compile(r"%s(?:, %s)*(?: and %s| et al\.)? (?:19|20)\d\d\b(?!,)" % (NAME, NAME, NAME))


def texts():
    for folder in ("compiler", "stdlib/augment"):
        for path, _, files in os.walk(os.path.join(root, folder)):
            for name in sorted(files):
                if name.endswith((".c", ".gm")) and name != "works.c":
                    code = re.sub(r"^\s*//.*", "", open(os.path.join(path, name)).read(), flags=re.M)
                    for text in LITERAL.findall(TOGETHER.sub("", code)):
                        yield name, text


def main():
    listed = set(re.findall(r'^    \{"([^"]+)", "', open(os.path.join(root, "compiler/emit/works.c")).read(), flags=re.M))
    found = {(work, name) for name, text in texts() for work in WORK.findall(text)}
    missing = sorted(x for x in found if x[0] not in listed)
    for work, name in missing:
        print("FAILED  %s, of %s: compiler/emit/works.c does not say where it appeared" % (work, name))
    print("%d works are named, %d listed" % (len({work for work, _ in found}), len(listed)))
    return bool(missing) or len(found) < 20


sys.exit(main())
