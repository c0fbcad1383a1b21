"""Computed numbers of emitted programs: each long one has the formula that it was computed by beside it, and the formulas are right.

    numbers.py GMC DIRECTORY

A number of more than 12 digits in the code of fit.cu or its tables stands before a comment with its formula; the formula, computed here, is
the number but for rounding. What stands in the code as a formula is compared with the numbers of the model: of KNOWN, as text."""
import glob
import math
import os
import re
import subprocess
import sys

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = ["tests/golden/*/model.gm", "examples/*/*.gm", "examples/cookbook/*/*.gm", "examples/papers/*/*.gm"]
LONG = re.compile(r"(?<![\w.])(\d+\.\d+(?:e[-+]?\d+)?)( /\* (.*?) \*/)?")
ROUNDING = 1e-14      # relative: formulas have a few terms, each with the rounding of a double, which may cancel by a factor of ten
# a model, a line of its program, and what the line has to add to the log density: computed by hand from the law
KNOWN = [("s ~ half_cauchy(0, 5);\n  mu ~ normal(0, 5);", ["(log(2 / GM_PI) - log(5.0))", "(log(5.0) + log(2 * GM_PI) / 2)"]),
         ("s ~ exponential(0.2);", ["lp += log(0.2) - 0.2 * "]), ("s ~ exponential(7);", ["log(7.0)"]),
         ("s ~ gamma(0.1, 1);", ["- 2.2527126517342055 /* lgamma(1/10) */"]),
         ("z ~ bernoulli(0.3);", ["log1p(-0.3)"]), ("m ~ normal(0, 1.5);", ["2 / 9.0", "log(1.5) + "])]


def value(formula):
    names = {name: getattr(math, name) for name in
             ("log", "lgamma", "exp", "sqrt", "log1p", "expm1", "tanh", "sin", "cos", "tan", "erf", "erfc")}
    names.update(pi=lambda: math.pi, log1m=lambda x: math.log1p(-x))
    return eval(formula.replace("^", "**"), {"__builtins__": {}}, names)


def is_long(number):
    return len(re.sub(r"e.*", "", number).replace(".", "").strip("0")) > 12


def faults(path):
    said = None
    for at, line in enumerate(open(path).read().split("\n"), 1):
        code = line.split("//")[0] if line.lstrip().startswith("//") else line
        for number, _, formula in LONG.findall(code):
            if not is_long(number) and not formula:
                continue
            v = float(number)
            if not formula and v != round(v * 2 ** 30) / 2 ** 30:
                said = "%d: %s has no formula" % (at, number)
            elif formula and abs(value(formula) - v) > ROUNDING * abs(v):
                said = "%d: %s is not %s" % (at, number, formula)
    return said


def emit(model, path):
    r = subprocess.run([gmc, "-q", model, "--emit=cuda", "-o", path], capture_output=True, text=True)
    return r.returncode == 0


def main():
    failed = programs = 0
    os.makedirs(work, exist_ok=True)
    out = os.path.join(work, "program.cu")
    for model in sorted(m for pattern in MODELS for m in glob.glob(os.path.join(ROOT, pattern))):
        if not emit(model, out):
            continue
        programs += 1
        said = faults(out)
        if said:
            print("%s: %s" % (os.path.relpath(model, ROOT), said))
            failed += 1
    for text, expected in KNOWN:
        model = os.path.join(work, "known.gm")
        with open(model, "w") as f:
            f.write("model known\n\nprior {\n  %s\n}\n" % text)
        program = open(out).read() if emit(model, out) else ""
        for e in expected:
            if e not in program:
                print("%r: no %s" % (text, e))
                failed += 1
    print("%d programs" % programs)
    return failed > 0 or programs < 40


sys.exit(main())
