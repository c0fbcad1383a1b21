#!/usr/bin/env python3
"""Runs the commands of pages that show a session at a terminal, in order, and compares what they print with what stands there.

    python3 tests/docs/sessions.py [FILE.md ...]            compare (all pages of the repository that have a session if no file is given)
    python3 tests/docs/sessions.py --bless [FILE.md ...]    write what the commands print into the pages, and show what changed

Each page has a scratch folder of its own. Three things of a page count, in their order:

    <!-- setup: COMMAND -->         a line of sh that the reader does not see; $ROOT is the repository
    <!-- file: NAME -->             the fenced block below it is written to NAME
    a block ```console              lines `$ COMMAND`, each with what it prints below it; `...` alone on a line stands for any lines

build/ and build/venv/bin are on the PATH. A number of a summary may differ by Monte Carlo error, since another processor may round
differently: a mean by six of its errors, an sd by 15 %, an effective size by a factor of two, R-hat by 0.02. Times are not compared. Of
what the sampler or a warning says below the table words count only (`about as` is `about 2 times as`). Any other number may differ by
10 % or 1e-6, and words by nothing.
Exit status 1 if something differs or a command fails.
"""
import difflib
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PIECE = re.compile(r"^<!-- setup: (?P<setup>.+?) -->$|^<!-- file: (?P<file>\S+) "
                   r"-->\n```[a-z]*\n(?P<content>.*?)^```$|^```console\n(?P<session>.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TIMES = re.compile(r"\d[\d.e+-]* (?:m?s|us)\b")
PROPORTION = re.compile(r"about \d[\d.]* times as")
COLUMNS = "mean MCSE sd 5% 50% 95% ess_bulk ess_tail rhat".split()


def same_row(a, b):
    """Two rows of a summary, as words without the name."""
    if len(a) != len(COLUMNS) or len(b) != len(COLUMNS):
        return False
    if "-" in a or "-" in b:
        return a == b
    a, b = dict(zip(COLUMNS, map(float, a))), dict(zip(COLUMNS, map(float, b)))
    mcse = max(a["MCSE"], b["MCSE"])
    return (abs(a["mean"] - b["mean"]) <= 6 * mcse + 1e-3 * abs(a["mean"]) * (mcse == 0) and abs(a["sd"] - b["sd"]) <= 0.15 * a["sd"]
            and all(abs(a[q] - b[q]) <= 0.2 * a["sd"] for q in ("5%", "50%", "95%"))
            and all(a[e] <= 2 * b[e] and b[e] <= 2 * a[e] for e in ("ess_bulk", "ess_tail")) and abs(a["rhat"] - b["rhat"]) <= 0.02)


def same_line(a, b, summary):
    if a == b:
        return True
    x, y = a.split(), b.split()
    if summary and len(x) > len(COLUMNS) and len(y) == len(x) and not a.startswith(("Sampler: ", "Warning: ")):
        k = len(x) - len(COLUMNS)
        return x[:k] == y[:k] and same_row(x[k:], y[k:])
    a, b = (PROPORTION.sub("about as", TIMES.sub("TIME", line)) for line in (a, b))
    if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split():
        return False
    if a.startswith(("Sampler: ", "Warning: ")):
        return True
    for p, q in zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b))):
        if abs(p - q) > max(0.1 * max(abs(p), abs(q)), 1e-6):
            return False
    return True


def same(page, printed):
    """Whether the lines that were printed are those of the page, whose `...` stands for any."""
    summary, i, j = False, 0, 0
    while i < len(page):
        if page[i].strip() == "...":
            return any(same(page[i + 1:], printed[k:]) if not summary else same(HEAD + page[i + 1:], HEAD + printed[k:])
                       for k in range(j, len(printed) + 1))
        if j == len(printed) or not same_line(page[i], printed[j], summary):
            return False
        if page[i].split() == COLUMNS:
            summary = True
        elif not page[i].strip():
            summary = summary and i > 0 and page[i - 1].split() == COLUMNS
        i, j = i + 1, j + 1
    return j == len(printed)


HEAD = [" ".join(COLUMNS)]


def compiler(page, bless):
    """CC for the programs of a page: a page of which a figure goes by time, or by how NUTS rounds, has them as they
    are shipped, as have all that is written."""
    as_shipped = bless or "for the same work" in page or "were divergent" in page
    return {} if as_shipped else {"CC": os.path.join(ROOT, "tests", "stat", "cc_quick")}


def run(command, folder, compiled):
    """What the command prints on both streams; any status but 0 is an error, unless the line ends in `|| true`."""
    path = os.pathsep.join([os.path.join(ROOT, "build"), os.path.join(ROOT, "build", "venv", "bin"), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "ROOT": ROOT, "PYTHONWARNINGS": "ignore", "MPLBACKEND": "Agg", **compiled}
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, [line.rstrip() for line in done.stdout.splitlines()]


def commands_of(session):
    """[command, its lines] of a block. A command goes on below a line that ends with a backslash."""
    found = []
    for line in session.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1].append(line)
    return found


def shown(command, lines):
    return "".join(line + "\n" for line in ["$ " + command] + lines)


def blessed(page, printed):
    """What is printed, with what the page leaves out left out: between the line above its `...` and the line below it."""
    if "..." not in [line.strip() for line in page]:
        return printed
    out, j = [], 0
    first = lambda line: line.split()[:1]
    for i, line in enumerate(page):
        if line.strip() == "...":
            out.append(line)
            below = page[i + 1] if i + 1 < len(page) else None
            while below is not None and j < len(printed) and first(printed[j]) != first(below):
                j += 1
            if below is None:
                j = len(printed)
        elif j < len(printed):
            out.append(printed[j])
            j += 1
    return out + printed[j:]


def visit(path, bless):
    """(number of commands, number of faults) of one page."""
    with open(path) as f:
        page = f.read()
    compiled = compiler(page, bless)
    name, n, faults, pieces, at = os.path.relpath(path, ROOT), 0, 0, [], 0
    with tempfile.TemporaryDirectory(prefix="session-") as folder:
        for m in PIECE.finditer(page):
            line = page.count("\n", 0, m.start()) + 1
            if m["file"]:
                with open(os.path.join(folder, m["file"]), "w") as f:
                    f.write(m["content"])
                continue
            if m["setup"]:
                status, lines = run(m["setup"], folder, compiled)
                if status != 0:
                    print("%s:%d: %s: exit status %d\n%s" % (name, line, m["setup"], status, "\n".join(lines)))
                    faults += 1
                continue
            block = ""
            for command, lines in commands_of(m["session"]):
                n += 1
                status, printed = run(command, folder, compiled)
                if status != 0:
                    print("%s:%d: %s: exit status %d\n%s" % (name, line, command, status, "\n".join(printed)))
                    faults += 1
                if not same(lines, printed):
                    new = blessed(lines, printed)
                    print("%s:%d: $ %s" % (name, line, command))
                    sys.stdout.writelines(d.rstrip("\n") + "\n" for d in difflib.unified_diff(lines, new if bless else printed,
                            "in the page", "printed now", lineterm=""))
                    faults += not bless
                    lines = new
                block += shown(command, lines)
            pieces += [page[at:m.start("session")], block]
            at = m.end("session")
    if bless and at:
        with open(path, "w") as f:
            f.write("".join(pieces) + page[at:])
    return n, faults


def main():
    given = [os.path.abspath(a) for a in sys.argv[1:] if a != "--bless"]
    pages = given or [p for p in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"),
            recursive=True))
                      if "\n```console\n" in open(p).read()]
    commands = faults = 0
    for page in pages:
        n, bad = visit(page, "--bless" in sys.argv[1:])
        commands += n
        faults += bad
    print("%d commands in %d pages, %d faults" % (commands, len(pages), faults))
    return 1 if faults or not commands else 0


sys.exit(main())
