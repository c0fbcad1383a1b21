"""Files that documentation and comments name, as `kernel/share.c` or runtime/host/fault.c, are there: a file that gets another place takes
its mentions with it.

    paths.py ROOT"""
import os
import re
import sys

TEXTS = ("docs", "compiler", "runtime", "stdlib", "tests")
ENDINGS = (".md", ".c", ".cc", ".h", ".def", ".l", ".y", ".gm", ".py", ".test")
FLOORS = {name: top for top, names in (("compiler", "base front graph kernel emit driver"), ("runtime", "device host backends"))
          for name in names.split()}
NAMED = re.compile(r"(?<![\w/.])(?:compiler/|runtime/)?(%s)/((?:\w+/)?[a-z]\w*\.(?:c|cc|h|def|l|y))\b" % "|".join(FLOORS))


def main():
    root, wrong, n = sys.argv[1], 0, 0
    for top in TEXTS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for path in sorted(os.path.join(folder, f) for f in files if f.endswith(ENDINGS)):
                with open(path, errors="replace") as f:
                    text = f.read()
                for m in NAMED.finditer(text):
                    n += 1
                    if not os.path.exists(os.path.join(root, FLOORS[m.group(1)], m.group(1), m.group(2))):
                        print("%s:%d names %s" % (os.path.relpath(path, root), text.count("\n", 0, m.start()) + 1, m.group()))
                        wrong += 1
    print("%d files named, %d that are not there" % (n, wrong))
    return 1 if wrong or n == 0 else 0


sys.exit(main())
