#!/usr/bin/env python3
"""Pages are short where they should be: no paragraph of README.md and docs/ has more than 120 words, and no page more lines than LINES
allows.

    prose.py ROOT"""
import glob
import os
import re
import sys

MOST = 120
LINES = [("README.md", 60), ("docs/architecture.md", 250), ("docs/methods/*.md", 150)]


def words(paragraph):
    return len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"`[^`]*`", "x", paragraph)))


def paragraphs(text):
    """(line, text) of what is no code, no table and no heading; each item of a list is one."""
    text = re.sub(r"(?ms)^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), text)
    at = 1
    for part in re.split(r"(\n[ \t]*\n|\n(?=[ \t]*(?:- |\d+\. )|\|))", text):
        if part.strip() and not part.lstrip("\n").startswith(("|", "#", "    ", "<!--")):
            yield at, part
        at += part.count("\n")


def main():
    root, wrong, n = sys.argv[1], 0, 0
    for page in [os.path.join(root, "README.md")] + sorted(glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True)):
        with open(page) as f:
            text = f.read()
        for at, part in paragraphs(text):
            n += 1
            if words(part) > MOST:
                print("%s:%d: a paragraph of %d words" % (os.path.relpath(page, root), at, words(part)))
                wrong += 1
    for pattern, most in LINES:
        for page in glob.glob(os.path.join(root, pattern)):
            with open(page) as f:
                lines = sum(1 for _ in f)
            if lines > most:
                print("%s: %d lines, of at most %d" % (os.path.relpath(page, root), lines, most))
                wrong += 1
    print("%d paragraphs, %d faults" % (n, wrong))
    return 1 if wrong or n < 1000 else 0


sys.exit(main())
