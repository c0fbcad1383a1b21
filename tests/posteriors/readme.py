#!/usr/bin/env python3
"""readme.py [--renew]: whether the list of cases in README.md is that of the folders, a line for each with the note of its expect.json;
--renew writes it anew. Exit status 1 if it is not current."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "README.md")
HEAD = "## Cases\n"


def line(case):
    with open(os.path.join(HERE, case, "expect.json")) as f:
        note = json.load(f).get("note")
    if not note:
        sys.exit("%s: expect.json has no note" % case)
    return "- `%s`: %s\n" % (case, " ".join(note.split()))


def main():
    with open(README) as f:
        text = f.read()
    cases = sorted(d for d in os.listdir(HERE) if os.path.exists(os.path.join(HERE, d, "expect.json")))
    new = text[:text.index(HEAD)] + HEAD + "\n" + "".join(map(line, cases))
    if new == text:
        print("README.md lists all %d cases" % len(cases))
        return 0
    if "--renew" in sys.argv[1:]:
        with open(README, "w") as f:
            f.write(new)
        return 0
    print("README.md is not current: python3 %s --renew" % os.path.relpath(__file__))
    return 1


sys.exit(main())
