#!/usr/bin/env python3
"""Names of the model never meet names of the program: models are written with the names that C, CUDA, the runtime and emission have, and
compiled.

    tests/emit/names.py GMC                    some models, each index and variable renamed, those of one day (half a minute)
    tests/emit/names.py GMC --round 7          those of another round
    tests/emit/names.py GMC --all              every model with every name (hours)

The text of a renamed model is that of one with names of the same length that nothing has, word by word, but for the names; and it passes
`cc -fsyntax-only`.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNTIME = os.path.join(root, "runtime", "device")
KEYWORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef
union unsigned void volatile while asm typeof class new delete this template private public bool true false operator namespace and or not
xor alignas constexpr decltype nullptr noexcept thread_local
using virtual typename wchar_t threadIdx blockIdx warpSize gridDim dim3 float4 uint linux unix stdin errno offset pow fmax fabs lgamma
isnan isfinite memcpy malloc exp log sqrt NONE main abs min max""".split()
LOOP = re.compile(r"\bfor\s*\(([^)]*?\bin\b[^)]*)\)")
DECLARED = re.compile(r"^\s*(?:int|real|vector|matrix|simplex|ordered)\b(?:<[^>]*>)?(?:\[[^\]]*\])?\s+"
                      r"([A-Za-z]\w*(?:\[[^\]]*\])?(?:\s*,\s*[A-Za-z]\w*(?:\[[^\]]*\])?)*)", re.M)
DRAWN = re.compile(r"(?:^|[;{)])\s*([A-Za-z]\w*)(?:\[[^\]]*\])?\s*(?:~|=[^=])", re.M)


def words():
    """Names that the headers of the runtime declare, that their macros have, and that programs have of themselves."""
    text = open(os.path.join(root, "build", "gen", "runtime_words.def")).read()
    names = set(re.findall(r"[A-Za-z_]\w*", text)) | set(KEYWORDS)
    for f in os.listdir(os.path.join(root, "compiler", "emit")):
        if f.endswith(".c"):
            for s in re.findall(r'"((?:[^"\\\n]|\\.)*)"', open(os.path.join(root, "compiler", "emit", f)).read()):
                names |= set(re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*|%[a-z]+|\\.", " ", s)))
    for f in os.listdir(os.path.join(root, "compiler", "kernel")):      # slice_width is the kernel that slices `width`
        if f.endswith(".c"):
            for verb in re.findall(r'"([a-z_]+_)%s', open(os.path.join(root, "compiler", "kernel", f)).read()):
                names |= {n[len(verb):] for n in names if n.startswith(verb)}
    return sorted(n for n in names if re.fullmatch(r"[A-Za-z]\w{1,30}", n))


def models():
    out = []
    for top in ("examples", "tests/posteriors", "tests/golden", "tests/graph", "tests/kernel"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            out += [os.path.join(folder, f) for f in files if f.endswith(".gm")]
    return sorted(out)


def named(model):
    """Its indices; its data, variables and definitions."""
    text = re.sub(r"#.*", "", model)
    indices = {m for loop in LOOP.findall(text) for m in re.findall(r"([A-Za-z]\w*)\s+in\b", loop)}
    others = {re.match(r"\w+", n.strip()).group() for m in DECLARED.findall(text) for n in re.sub(r"\[[^\]]*\]", "",
            m).split(",")} | set(DRAWN.findall(text))
    return sorted(indices), sorted(others - indices)


def renamed(model, to):
    """Every name of `to` by its new one, outside of comments."""
    pattern = re.compile(r"#.*|\b(" + "|".join(map(re.escape, to)) + r")\b")
    return pattern.sub(lambda m: to[m.group(1)] if m.group(1) else "", model)


def code(text):
    return re.findall(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_0-9.]+|[^\sA-Za-z_0-9]', re.sub(r"//[^\n]*", "", text))


def differs(before, after, to):
    """Where the texts differ by more than the names; None: nowhere."""
    # constants share a line while it is short, so a longer name may leave them on two: types of locals are not compared
    a, b = ([w for w in code(text) if w not in ("const", "wide", "real", ";", ",")] for text in (before, after))
    if len(a) != len(b):
        return "%d words have become %d" % (len(a), len(b))
    sums = {}
    for x, y in zip(a, b):
        if any(new in x and re.fullmatch(re.escape(x).replace(new, new + r"_\d+"), y) for new in to.values()):
            continue                    # a name of the program that gives way to one of the model
        if x in to and re.fullmatch("[klmnqr][23]?", y):
            continue                    # a subscript whose name an update's own unknown has, as `shift`, is a letter (var_element)
        if x not in (y, "VAR_NONE") and x[0] != '"' and not any(old in x and new in y for old, new in to.items()):
            # names of sums stop at some length after a whole word, and new names have other words: the same name stays one name
            if x.startswith("sum") and y.startswith("sum") and sums.setdefault(x, y) == y: continue
            return "%s has become %s" % (x, y)
    return None


class Place:
    def __init__(self, gmc):
        self.gmc, self.folder = gmc, tempfile.TemporaryDirectory()
        self.cc = ["cc", "-std=gnu11", "-fopenmp", "-w", "-I" + self.folder.name, "-I" + RUNTIME]
        # read once for all programs
        subprocess.run(self.cc + ["-x", "c-header", os.path.join(RUNTIME, "gm.h"), "-o", os.path.join(self.folder.name, "gm.h.gch")],
                       check=True)

    def emit(self, text, name):
        path = os.path.join(self.folder.name, "%s.gm" % name)
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([self.gmc, "-q", path, "--emit=cuda"], capture_output=True, text=True, timeout=60)
        os.unlink(path)
        return done.returncode, done.stdout.replace("%s.gm" % name, "model.gm"), done.stderr

    def compile(self, text, name):
        path = os.path.join(self.folder.name, "%s.c" % name)
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run(self.cc + ["-x", "c", "-fsyntax-only", path], capture_output=True, text=True)
        os.unlink(path)
        return done.returncode, done.stderr


class Refused(str):
    """What gmc says of a name that the language does not have."""


def plain_name(k, length):
    """The k-th (below 676) of the names that nothing has, of this length, or of 2 or 3 for shorter ones: local names stop at a length."""
    two = "".join("abcdefghijklmnopqrstuvwxyz"[i] for i in divmod(k, 26))
    return ("zq" + two).ljust(length, "z") if length > 3 else "z" + two if length == 3 or k >= 26 else "z" + two[1]


def examine(place, model, to, name, compile_too=True):
    """What is wrong, Refused if the language has no such names, None if all is well."""
    text = open(model).read()
    plain = {old: plain_name(k, len(new)) for k, (old, new) in enumerate(to.items())}
    status, before, says = place.emit(renamed(text, plain), name)
    if status:
        return Refused(says)
    status, after, says = place.emit(renamed(text, to), name)
    if status in (1, 2):
        return Refused(says)            # a word of the language
    if status:
        return "gmc: status %d: %s" % (status, says[:300])
    wrong = differs(before, after, {plain[old]: new for old, new in to.items()})
    if wrong:
        return wrong
    if compile_too:
        status, says = place.compile(after, name)
        if status and place.compile(before, name)[0] == 0:
            return says[:400]
    return None


def jobs(pool, which, everything):
    """(model, renaming): in one round each model with a part of its names, in all rounds all."""
    at = which * 7919
    for n, model in enumerate(models()):
        indices, others = named(open(model).read())
        if everything:
            for old in indices + others:
                for new in pool:
                    yield model, {old: new}
        elif n % 20 == which % 20:
            for names in (indices, others):
                if not names:
                    continue
                taken = set(indices) | set(others)
                fresh = [pool[(at + k) % len(pool)] for k in range(3 * len(names))]
                at += 3 * len(names)
                fresh = [f for f in dict.fromkeys(fresh) if f not in taken and not re.search(r"\b%s\b" % f, open(model).read())]
                yield model, dict(zip(names, fresh))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gmc")
    parser.add_argument("--round", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="a list of names, with commas between")
    given = parser.parse_args()
    pool = given.only.split(",") if given.only else words()
    if "switch" in pool and not given.only:
        pool = [pool[(k * 977) % len(pool)] for k in range(len(pool))] if len(pool) % 977 else pool     # neighbours are alike
    place, asked, refused, failed = Place(given.gmc), 0, 0, 0
    work = [(k, j) for r in range(given.round, given.round + given.rounds) for k, j in enumerate(jobs(pool, r, given.all))]
    def one(item):
        k, (model, to) = item
        name = "m%d_%d" % (k, id(item) % 100003)
        wrong = examine(place, model, to, name)
        if isinstance(wrong, Refused) and len(to) > 1:       # those that are words of the language are asked alone
            said = re.findall(r"`(\w+)` is a word of the language", wrong)
            words, rest = ({o: n for o, n in to.items() if (n in said) == which} for which in (True, False))
            parts = [{o: n} for o, n in words.items()] + [rest] if words and rest else [dict(list(to.items())[k::2]) for k in (0, 1)]
            return [f for part in parts for f in one((k, (model, part)))]
        return [(model, to, wrong)]
    with ThreadPoolExecutor(2) as workers:
        for result in workers.map(one, work):
            for model, to, wrong in result:
                asked += 1
                refused += isinstance(wrong, Refused)
                if wrong and not isinstance(wrong, Refused):
                    failed += 1
                    print("%s with %s: %s" % (os.path.relpath(model, root), ", ".join("%s -> %s" % p for p in to.items()), wrong))
    print("%d renamed models, %d of them refused by the language, %d failed" % (asked, refused, failed))
    return 1 if failed or asked == refused else 0


if __name__ == "__main__":
    sys.exit(main())
