#!/usr/bin/env python3
"""Commands that pages show and no test runs, since they take long or need a GPU, are possible: their options exist, and so do the files of
this repository that they name.

    commands.py ROOT

Commands are lines that are indented by four spaces and pieces of code (an option may stand by itself), of README.md, docs/ and the READMEs
of the examples. gmc is `gmc` or build/gmc, a program `./NAME`, and a script `python3 PATH`. Options are those of
compiler/driver/options.def and runtime/host/options.def. Exit status 1 if one is not there."""
import glob
import os
import re
import shlex
import sys

COMMANDS = {"report", "summary", "diagnose", "loo", "compare"}       # of gmc about stored draws: with the options of those of programs
OTHERS = {"--bless": None, "--renew": None, "--param": None}      # of the scripts that renew pages, and of gcc
OPTION = re.compile(r'^OPTION\((?:(\w+), )?\w+, (0|\'.\'), (NULL|"[\w-]+"), (NULL|"[^"]*"), (NULL|"[^"]*")', re.M)


def options_of(path):
    """--name or -letter -> its values (None: anything), and whether it takes an argument"""
    with open(path) as f:
        text = re.sub(r",\s*\n\s*", ", ", f.read())
    found = {"-h": (None, False), "--help": (None, False), "--version": (None, False)}
    for _, letter, name, argument, values in OPTION.findall(text):
        what = (values.strip('"').split() if values != "NULL" else None, argument != "NULL")
        if letter != "0":
            found["-" + letter[1]] = what
        if name != "NULL":
            found["--" + name.strip('"')] = what
    return found


def commands(text):
    """(line, command) of a page"""
    fenced = False
    for at, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if fenced:
            continue
        pieces = [line[4:]] if line.startswith("    ") else re.findall(r"`([^`]+)`", line)
        for piece in pieces:
            for part in re.split(r"\s[|;]\s|; |&& ", piece.replace("\\|", "|")):
                if re.match(r"(\w+=\S+ )?(build/gmc|gmc|\./\w+|python3) \S|--[a-z]", part.strip()):
                    yield at, part.strip()


def faults_of(root, folder, command, gmc, program):
    command = re.sub(r"\s{3,}.*|\s#.*|\[[^\]]*\]", "", command)
    try:
        words = shlex.split(command)
    except ValueError:
        return
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    if words[0].startswith("--"):                                # an option by itself: of either
        if words[0].partition("=")[0] not in {**gmc, **program, **OTHERS}:
            yield "no program has this option"
        return
    first, rest = words[0], words[1:]
    if first == "python3":
        if "/" in rest[0] and not os.path.exists(os.path.join(root, rest[0])) and not os.path.exists(os.path.join(folder, rest[0])):
            yield "there is no %s" % rest[0]
        return
    options = gmc if first.endswith("gmc") and rest[0] not in COMMANDS else program
    for k, word in enumerate(rest):
        name, _, value = word.partition("=")
        if not value and options.get(name, (None, False))[1]:
            value = rest[k + 1] if k + 1 < len(rest) else ""
        if word.startswith("--") or re.fullmatch(r"-[a-zA-Z]", word):
            if name not in options:
                yield "%s has no option %s" % ("gmc" if options is gmc else "a program", name)
            elif value and options[name][0] and value.isalpha() and value.islower() and value not in options[name][0]:
                yield "%s is no value of %s" % (value, name)
        elif word.startswith("examples/") or (folder.startswith(os.path.join(root, "examples")) and word.endswith(".gm")):
            if not os.path.exists(os.path.join(root if word.startswith("examples/") else folder, word)):
                yield "there is no %s" % word


def main():
    root = os.path.abspath(sys.argv[1])
    gmc, program = options_of(os.path.join(root, "compiler/driver/options.def")), options_of(os.path.join(root, "runtime/host/options.def"))
    pages = [os.path.join(root, "README.md")] + sorted(glob.glob(os.path.join(root, "docs", "**", "*.md"),
                                                                 recursive=True)) + sorted(glob.glob(os.path.join(root,
                                                                         "examples/*/README.md")))
    n = wrong = 0
    for page in pages:
        with open(page) as f:
            text = f.read()
        for at, command in commands(text):
            n += 1
            for why in faults_of(root, os.path.dirname(page), command, gmc, program):
                print("%s:%d: %s: %s" % (os.path.relpath(page, root), at, command, why))
                wrong += 1
    print("%d commands, %d faults; %d and %d options" % (n, wrong, len(gmc), len(program)))
    return 1 if wrong or n < 100 or len(gmc) < 15 or len(program) < 40 else 0


sys.exit(main())
