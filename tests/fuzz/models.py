#!/usr/bin/env python3
"""Changes models at random and compiles them with a gmc that has sanitizers, through all passes to the text of the program (--emit=cuda).

    models.py [--seconds N] [--seed N] [--jobs N] [--only N]

Trial N of a seed changes one model, or library, of tests, examples or stdlib: words, numbers, lines and pieces of other models. Whatever
comes out has to be compiled, or refused by a message, within SECONDS. A report of a sanitizer, a signal, an internal error or a hang is a
finding: the model is kept in build/fuzz, with the command. Trial N is the same in every run; --only N repeats it. The last line counts.
Exit status 1 if anything was found. `make fuzz` builds what this needs, build/asan/gmc, and runs all of tests/fuzz.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KEPT = os.path.join(ROOT, "build", "fuzz")
GMC = os.path.join(ROOT, "build", "asan", "gmc")
SECONDS = 10                              # of gmc without sanitizers, which take some ten times as long
SLOWER = 10
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0:soft_rss_limit_mb=3000",
               "UBSAN_OPTIONS": "print_stacktrace=1"}
STATUSES = {0, 1, 2}

TOKEN = re.compile(r"\s+|#[^\n]*|\"[^\"\n]*\"|[A-Za-z]\w*|\d+\.?\d*(?:[eE][+-]?\d+)?|[=!<>]=|&&|\|\||->|.", re.S)
NUMBERS = ["0", "1", "-1", "2", "3", "0.5", "1e9", "1e300", "1e-300", "2147483647", "2147483648.0", "-2147483648.0", "1e18", "4294967297.0",
           "100", "1000000"]
OPERATORS = ["+", "-", "*", "/", "^", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]
FUNCTIONS = ["sin", "exp", "log", "sqrt", "square", "inv", "lgamma", "abs", "sum", "mean", "max", "min", "log_sum_exp",
             "cholesky_decompose", "inverse", "softmax", "missing", "step", "fmax", "prod"]
SETTINGS = [[], [], [], ["--method", "nuts"], ["--method", "gibbs"], ["--method", "em"]]


def files():
    """Models, in an order that is the same everywhere."""
    found = []
    for top in ("tests", "examples", "stdlib"):
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders.sort()
            found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".gm")]
    return found


def numbers_of(token):
    return token[0].isdigit()


def change(tokens, other, r):
    """One change of a list of tokens in place."""
    words = [k for k, t in enumerate(tokens) if not t.isspace() and not t.startswith("#")]
    if not words:
        return
    k = r.choice(words)
    names = [tokens[w] for w in words if tokens[w][0].isalpha()]
    what = r.randrange(12)
    if what == 0:
        tokens[k] = r.choice(NUMBERS)
    elif what == 1 and names:
        tokens[k] = r.choice(names)
    elif what == 2:
        tokens[k] = tokens[r.choice(words)]
    elif what == 3:
        del tokens[k : k + r.choice((1, 1, 2, 3, 8))]
    elif what == 4:
        length = r.choice((1, 3, 8, 30))
        tokens[k:k] = tokens[k : k + length]
    elif what == 5 and other:
        start = r.randrange(len(other))
        tokens[k:k] = other[start : start + r.choice((1, 4, 12, 40))]
    elif what == 6:
        of = [w for w in words if tokens[w] in OPERATORS]
        if of:
            tokens[r.choice(of)] = r.choice(OPERATORS)
    elif what == 7:
        of = [w for w in words if tokens[w][0].isalnum()]
        if of:
            w = r.choice(of)
            tokens[w] = "%s(%s)" % (r.choice(FUNCTIONS), tokens[w])
    elif what == 8:
        of = [w for w in words if numbers_of(tokens[w])]
        if of:
            tokens[r.choice(of)] = r.choice(NUMBERS)
    elif what == 9:
        of = [w for w in words if tokens[w][0].isalnum()]
        if of:
            w = r.choice(of)
            tokens[w] = "(%s %s %s)" % (tokens[w], r.choice(OPERATORS), r.choice(names or NUMBERS))
    elif what == 10:
        of = [w for w in words if tokens[w][0].isalnum()]
        if of and names:
            w = r.choice(of)
            tokens[w] = "(%s %s %s ? %s : %s)" % (r.choice(names), r.choice(OPERATORS), r.choice(NUMBERS), tokens[w], r.choice(names))
    else:
        t = tokens[k]
        at = r.randrange(len(t) + 1)
        tokens[k] = t[:at] + r.choice(["\xe9", "\x01", "\x00", "9", "_", ".", "'", "(", "]", "\x7f"]) + t[at:]


def trial(number, first, all_files):
    """-> the text of the model, words of the command after its name"""
    r = random.Random("%d %d" % (first, number))
    path, other = r.choice(all_files), r.choice(all_files)
    library = os.sep + "stdlib" + os.sep in path
    tokens = TOKEN.findall(open(path, errors="replace").read())
    pieces = TOKEN.findall(open(other, errors="replace").read())
    for _ in range(r.choice((1, 1, 1, 2, 2, 3, 6))):
        change(tokens, pieces, r)
    return "".join(tokens), r.choice(SETTINGS), library


def wrong_with(status, said):
    report = re.search(r"(ERROR: \w+Sanitizer[^\n]*|runtime error:[^\n]*)", said)
    if report:
        return report.group(1)
    if status is None:
        return "takes more than %d s" % (SECONDS * SLOWER)
    if status < 0:
        return "signal %d" % -status
    if status == 3 or "internal error" in said:
        return "internal error: " + said.strip().splitlines()[0][:160]
    return "" if status in STATUSES else "status %d" % status


def try_one(number, first, all_files):
    text, settings, library = trial(number, first, all_files)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lib", "own.gm") if library else os.path.join(folder, "model.gm")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace") as f:
            f.write(text)
        if library:                       # the library is read before a model that asks nothing of it
            with open(os.path.join(folder, "model.gm"), "w") as f:
                f.write("data { int N; real y[N]; } prior { mu ~ normal(0, 1); } likelihood { for (i in 1:N) y[i] ~ normal(mu, 1); }\n")
        words = ["-q", os.path.join(folder, "model.gm"), "--emit=cuda"] + settings + (["-I", os.path.join(folder, "lib")] if library
                else [])
        try:
            done = subprocess.run([GMC] + words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  timeout=SECONDS * SLOWER, env=ENVIRONMENT)
            status, said = done.returncode, done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            status, said = None, ""
        wrong = wrong_with(status, said)
        if wrong:
            kept = os.path.join(KEPT, "model_%d_%d" % (first, number))
            os.makedirs(kept, exist_ok=True)
            with open(os.path.join(kept, "own.gm" if library else "model.gm"), "w", encoding="utf-8", errors="replace") as f:
                f.write(text)
            with open(os.path.join(kept, "command.txt"), "w") as f:
                f.write("%s %s\n\n%s\n" % (GMC, " ".join(words), said[:20000]))
        return number, wrong, status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if not os.path.exists(GMC):
        sys.exit("models.py: there is no build/asan/gmc: make fuzz")
    all_files, begin, found, ended = files(), time.monotonic(), collections.OrderedDict(), collections.Counter()
    numbers = iter([given.only]) if given.only is not None else itertools.count()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        while time.monotonic() < begin + given.seconds:
            running = [pool.submit(try_one, n, given.seed, all_files) for n in itertools.islice(numbers, 20 * given.jobs)]
            if not running:
                break
            for done in running:
                number, wrong, status = done.result()
                ended[status] += 1
                if wrong:
                    key = re.sub(r"0x[0-9a-f]+|==\d+==", "", wrong)
                    found.setdefault(key, []).append(number)
                    if len(found[key]) == 1:
                        print("trial %d: %s" % (number, wrong), flush=True)
    print("models: %d trials, %d compiled, %d refused, %d findings of %d kinds" % (sum(ended.values()), ended[0], ended[1] + ended[2],
            sum(map(len, found.values())), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
