#!/usr/bin/env python3
"""Runs the commands behind the listings of the documentation and compares what they print with what stands there.

    python3 tests/docs/listings.py [FILE.md ...]            compare (all of README.md and docs/ if no file is given)
    python3 tests/docs/listings.py --bless [FILE.md ...]    write what the commands print into the files, and show what changed

A listing is a fenced block under a comment that names its command, a line of sh run in the root of the repository with build/
on its PATH:

    <!-- listing: gmc examples/probit/probit.gm -q --emit=graph -->
    ```
    data int N in (0, inf)
    ...
    ```

Exit status 1 if a listing differs, a command fails or prints nothing, or a comment has no block under it.
"""
import difflib
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LISTING = re.compile(r"^<!-- listing: (?P<command>.+?) -->\n```[a-z]*\n(?P<text>.*?)^```$", re.M | re.S)


def run(command):
    """What the command prints; an error of any part of its pipe is an error."""
    path = os.path.join(ROOT, "build") + os.pathsep + os.environ["PATH"]
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError("exit status %d\n%s" % (done.returncode, done.stderr))
    if not done.stdout.strip():
        raise RuntimeError("it prints nothing")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def visit(path, bless):
    """(number of listings, number of faults) of one file."""
    with open(path) as f:
        page = f.read()
    name, faults, pieces, at = os.path.relpath(path, ROOT), 0, [], 0
    found = list(LISTING.finditer(page))
    if len(found) != page.count("\n<!-- listing:"):
        print("%s: a listing comment has no fenced block under it" % name)
        faults += 1
    for m in found:
        line = page.count("\n", 0, m.start()) + 1
        try:
            text = run(m["command"])
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            print("%s:%d: %s: %s" % (name, line, m["command"], e))
            faults += 1
            continue
        if text != m["text"]:
            print("%s:%d: %s" % (name, line, m["command"]))
            sys.stdout.writelines(difflib.unified_diff(m["text"].splitlines(True), text.splitlines(True), "in the page", "printed now"))
            faults += not bless
        pieces += [page[at:m.start("text")], text]
        at = m.end("text")
    if bless and at:
        with open(path, "w") as f:
            f.write("".join(pieces) + page[at:])
    return len(found), faults


def main():
    given = [a for a in sys.argv[1:] if a != "--bless"]
    pages = given or [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))
    listings = faults = 0
    for page in pages:
        n, bad = visit(page, "--bless" in sys.argv[1:])
        listings += n
        faults += bad
    print("%d listings in %d pages, %d faults" % (listings, len(pages), faults))
    return 1 if faults or not listings else 0


sys.exit(main())
