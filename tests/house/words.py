#!/usr/bin/env python3
"""One word for one notion: words.py ROOT [PATH...] names the places where comments, messages and docs use a word that the glossary
replaces, where a sentence of a comment or of a page is too long, and code lines that are too wide.

BANNED has a regular expression for each word, and what is written instead. A sentence ends at a full stop, a colon or a semicolon, or with
its paragraph.
"""
import os
import re
import subprocess
import sys

WIDE = 140
LONG = 30
CODE = (".c", ".h", ".cc", ".def", ".l", ".y", ".gm", ".cu", ".cpp")
PAGES = (".md",)
SCRIPTS = (".py", ".test")                                            # their lines alone are measured
OLDER = re.compile(r"^SETTING_ALSO\(")                                 # an older word that models may still use
UNSEEN = re.compile(r"tests/(golden/.*/expected\.cu|freeze\.txt|fuzz/.*\.gm)|LICENSE|CHANGELOG\.md")
BANNED = [
    (r"orbits?", "group move, scale move"),
    (r"compet\w+|contests?", "method selection, trial"),
    (r"claim(s|ed|ing)?", "requirement (of data), ratio check (of --check), claims of a person: says"),
    (r"(?<!in )(?<!U-)turns?(?! back)", "iteration (of a loop), update, category"),
    (r"told|tells?", "identify (data), row-listed, report, say"),
    (r"crawl(s|ed|ing)?", "mixes slowly"),
    (r"company", "auxiliary"),
    (r"moves? (?:\w+ )?along gradients?|moves? by gradients?", "HMC, NUTS, trajectory"),
    (r"step by step", "by Gibbs updates"),
    (r"chains? stands?|stands? still|hold (?:each other|fast)", "the chain's state; determine each other; stays"),
]
BANNED = [(re.compile(r"(?<![\w.`-])(?:%s)(?![\w`-])" % b, re.I), instead) for b, instead in BANNED]
COMMENT = re.compile(r"//(.*)$|/\*(.*?)\*/|^\s*#(?!\s*(?:define|include|if|ifn?def|else|endif|undef|pragma|error|elif|line))(.*)$")
DIRECTIVE = re.compile(r"^\s*#? *[A-Z0-9_]+(-(NEXT|DAG|NOT|SAME|LABEL|EMPTY|COUNT-\d+))?: ")     # FileCheck's lines cannot be wrapped
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def words_of_code(line, path):
    """The text of a line that people read: its comments and its strings."""
    text, rest = [], line
    for m in STRING.finditer(line):
        text.append(m.group(1))
        rest = rest.replace(m.group(0), '""', 1)
    m = COMMENT.search(rest)
    comment = next((g for g in m.groups() if g is not None), "") if m else None
    return text, comment


def banned(text):
    for pattern, instead in BANNED:
        for m in pattern.finditer(text):
            yield m.group(0), instead


def too_long(sentences):
    for s in re.split(r"[.;:](?:\s|$)|\|", sentences):
        n = len(re.findall(r"(?<![\w_`*/^])[A-Za-z][a-z'-]*(?![\w_`*/^(\[])", s))
        if n > LONG:
            yield "a sentence of %d words: %s ..." % (n, " ".join(s.split()[:8]))


def checks(line): return DIRECTIVE.match(line) and not line.lstrip(" #").startswith("RUN:")


def visit(root, path):
    with open(os.path.join(root, path), errors="replace") as f:
        lines = f.read().split("\n")
    if path.endswith(SCRIPTS):
        yield from ((at, "%d columns" % len(line)) for at, line in enumerate(lines, 1) if len(line) > WIDE and not checks(line))
        return
    code, block, first = path.endswith(CODE), [], 0
    fenced = False
    for at, line in enumerate(lines + [""], 1):
        if code:
            if len(line) > WIDE and not checks(line):
                yield at, "%d columns" % len(line)
            strings, comment = words_of_code("" if OLDER.match(line) else line, path)
            for text in strings + ([comment] if comment else []):
                for word, instead in banned(text):
                    yield at, "`%s`: %s" % (word, instead)
            alone = comment is not None and re.match(r"\s*(//|#)", line)
        else:
            fenced ^= line.startswith("```")
            comment = "" if fenced or line.startswith(("```", "    ")) else line
            for word, instead in banned(re.sub(r"`[^`]*`", "", comment)):
                yield at, "`%s`: %s" % (word, instead)
            alone = bool(comment.strip()) and not comment.startswith(("|", "#", "- ["))
        if alone and comment.strip() and not (code and re.search(r" {3,}|->|[=<>]{2}", comment.strip())):
            if not block:
                first = at
            block.append(re.sub(r"`[^`]*`|\$[^$]*\$", "x_", comment.strip()))
        elif block:
            for says in too_long(" ".join(block)):
                yield first, says
            block = []


def main():
    root, given = sys.argv[1], sys.argv[2:]
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout.split("\n")
    else:
        listed = [os.path.relpath(os.path.join(a, f), root) for a, _, fs in os.walk(root) for f in fs
                  if not a.startswith(os.path.join(root, "build"))]
    faults = files = 0
    for path in sorted(listed):
        if not path.endswith(CODE + PAGES + SCRIPTS) or UNSEEN.search(path) or (given and not any(path.startswith(g) for g in given)):
            continue
        files += 1
        for at, says in visit(root, path):
            print("%s:%d: %s" % (path, at, says))
            faults += 1
    print("%d files, %d faults" % (files, faults))
    return 1 if faults else 0


sys.exit(main())
