"""The ratio identity on many models: the difference of the log joint between two values of a variable is the difference of the
log conditional that its update draws from. Every model of tests/graph, every example and 25 random models are compiled,
get small random data (twice if a joint draw has a route for few rows), and run with --check, whose bounds are stated in the runtime
(check.c). No check here is random: seeds are fixed.

    check_all.py                 all
    check_all.py random 7        the random model with seed 7, printed
    check_all.py FILE.gm ...     some models
"""
import glob
import os
import subprocess
import sys

from program import ROOT, Failed, Workplace, random_data, report, takes_random_data
from random_models import random_model

RANDOM = range(1, 26)


# Programs that without optimisation run for longer than cc_quick compiles
SLOW = {"gradient_sums_kept", "keyed_pair", "keyed_regression", "request_marginal_chain", "request_marginal_rows_mixture", "weights_by_key",
        "weights_by_outcome"}
FEW_ROWS = {"N": 4, "p": 9, "T": 2}         # sizes at which joint draws take the route of few rows


def check(w, name, text):
    try:
        program = w.compile(name, text, ["--keep"], compiler="cc_quick" if name in SLOW else None)
        with open(program + "_tables.h") as f:
            few_rows = "// Whether there are fewer rows than coefficients" in f.read()
        runs = [random_data(text, 1)] + ([random_data(text, 1, FEW_ROWS)] if few_rows else [])
    except Failed as e:
        return False, "%s: %s" % (name, e)
    steps = 0
    for values in runs:
        data = w.data(name, values)
        ran = subprocess.run([program, data, "--check", "--seed", "1", "--chains", "2", "--threads", "1", "-q"], capture_output=True,
                             text=True)
        lines = ran.stdout.splitlines()
        if ran.returncode != 0:
            return False, "%s: exit status %d\n%s%s\n%s" % (name, ran.returncode, ran.stdout, ran.stderr, text)
        steps += len(lines) - 1
    os.remove(program)
    return True, "%s: %d steps" % (name, steps)


def main():
    given = sys.argv[1:]
    if given[:1] == ["random"]:
        models = [("random_%s" % s, random_model(int(s))) for s in given[1:]]
        for _, text in models:
            print(text)
    else:
        files = given or sorted(glob.glob(os.path.join(ROOT, "tests/graph/*.gm")) + glob.glob(os.path.join(ROOT, "examples/*/*.gm")))
        models = [(os.path.basename(f)[:-3], open(f).read()) for f in files]
        if not given:
            models = [m for m in models if takes_random_data(m[1])]
            models += [("random_%d" % s, random_model(s)) for s in RANDOM]
    with Workplace() as w:
        report([check(w, name, text) for name, text in models])


main()
