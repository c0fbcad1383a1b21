"""Programs by `gmc --lesson`: their length, and their draws beside those of the full program.

    lesson.py GMC DIRECTORY

The draws of both are made from the same streams. Sums are made in another order, so draws differ by rounding: 1e-6 of their size after 60
sweeps, which is far above it and far below any change of a law. A model that is refused has the status 2 and the one line that says why."""
import csv
import os
import subprocess
import sys

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST = {"tests/golden/eight_schools/model.gm": 80, "examples/hierarchical_normal/hierarchical_normal.gm": 160}
# exact draws, latents, truncation, labels, simplexes, slices, rows by group, joint normals (dense, arrow, each its own, along chains),
# counts, logarithms that are kept, recursions, states drawn along chains and by messages
SAME = ["tests/golden/eight_schools/model.gm", "examples/hierarchical_normal/hierarchical_normal.gm"]
SAME += ["examples/cookbook/%s/%s.gm" % (name, name)
         for name in ("regression mixture lda ordinal logistic correlated_effects change_point survival ar "
                      "variable_selection occupancy").split()]
SAME += ["examples/probit/probit.gm", "examples/galaxies/galaxies.gm", "examples/cookbook/hmm/hmm.gm",
         "examples/cookbook/stochastic_volatility/stochastic_volatility.gm", "tests/posteriors/chain_remembers_one/model.gm"]
SAME += ["tests/posteriors/%s/model.gm" % name for name in "capture_recapture check_small_counts check_small_exponent".split()]
TABLE = {"examples/probit/probit.gm": ("pima.csv", "X", "pregnant-age")}  # data in columns of a table
TABLES = {"examples/galaxies/galaxies.gm": "galaxies.csv"}
REFUSED = {"examples/papers/hmc_multinomial/hmc.gm": "Hamiltonian Monte Carlo",
           "examples/cookbook/multinomial/multinomial.gm": "category by category"}
SWEEPS = ["--warmup", "20", "--samples", "40"]


def run(command, status=0, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != status:
        sys.exit("%s: exit status %d, not %d\n%s" % (" ".join(command), done.returncode, status, done.stderr))
    return done


def draws(text):
    return list(csv.DictReader(line for line in text.splitlines() if line and line[0] != "#"))


def data_of(model):
    folder = os.path.dirname(model)
    table = TABLE.get(os.path.relpath(model, ROOT))
    if table:
        path = os.path.join(folder, table[0])
        return [path, "%s=%s:%s" % (table[1], path, table[2])]
    if os.path.relpath(model, ROOT) in TABLES:
        return [os.path.join(folder, TABLES[os.path.relpath(model, ROOT)])]
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".json") and f != "expect.json"][:1]


def differs(lesson, full):
    """The first draw that differs, or None."""
    if not lesson or len(lesson) != len(full):
        return "%d draws beside %d" % (len(lesson), len(full))
    shared = [name for name in lesson[0] if name in full[0]]
    if not shared:
        return "no column is in both"
    for i, (a, b) in enumerate(zip(lesson, full)):
        for name in shared:
            x, y = float(a[name]), float(b[name])
            if not abs(x - y) <= 1e-6 * (1e-3 + max(abs(x), abs(y))):
                return "draw %d of %s is %r beside %r" % (i + 1, name, x, y)
    return None


def lesson_of(model, name):
    text = os.path.join(work, name + ".c")
    run([gmc, "-q", "--lesson", os.path.join(ROOT, model), "-o", text])
    return text


def wide_comments(path):
    """How many of its comments go beyond column 140; the first line is a command to copy."""
    return sum(line.lstrip().startswith("//") and len(line) > 140 for line in open(path).read().split("\n")[1:])


SMALL = """data { int N; vector<lower=0>[N] y; real<lower=0> sd = 10; int<upper=5> shift = N; }
prior { m ~ normal(shift, sd); s ~ inv_gamma(2, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(m, sqrt(s)); }
"""
# what a lesson is given, the status, what it says
WRONG = [('{"y": [1, 2, -3]}', [], 2, "y[3] = -3 is below its lower bound 0"),
         ('{"y": [1, null, 3]}', [], 2, "y[2] is missing, but a lesson takes data that are complete"),
         ('{"y": [1, 2], "N": 3}', [], 2, "y"),
         ('{"N": 3}', [], 2, "y is in none of the files of data"),
         ('{"y": [1, ', [], 2, "data.json"),
         ('{"y": [1, 2, 3]}', ["--samples", "many"], 2, "--samples: a whole number, 0 or more, is missing behind it"),
         ('{"y": [1, 2, 3]}', ["--chains", "4"], 2, "--chains: there are --seed N"),
         ('{"y": [1, 2, 3], "sd": -1}', [], 2, "sd = -1 is below its lower bound 0"),
         ('{"y": [1, 2, 3, 4, 5, 6]}', [], 2, "default: shift = 6 is above its upper bound 5"),
         ('{"y": [1, 2, 3]}', ["-"], 2, "a lesson reads its files once for each variable"),
         ('{"y": [1, 2, 3]}', ["--samples", "10"], 0, "m "),
         ('{"y": [1, 2, 3], "sd": 0.001, "shift": -7}', ["--samples", "10"], 0, "m                              -7 ")]


def wrong_inputs(flags):
    """Cases in which a small lesson, or gmc, does not say what is wrong in a line."""
    model, path, data = (os.path.join(work, name) for name in ("small.gm", "small", "data.json"))
    with open(model, "w") as f:
        f.write(SMALL)
    run([gmc, "-q", "--lesson", model, "-o", path + ".c"])
    run(["cc", path + ".c"] + flags + ["-o", path])
    failed = 0
    for text, options, status, says in WRONG:
        with open(data, "w") as f:
            f.write(text)
        done = run([path, data] + options, status)
        good = says in done.stderr and (status == 0 or (done.stderr.count("\n") == 1 and not done.stdout)) \
            and (status != 0 or done.stdout.count("\n") == 11)
        failed += not good
        print("%-7s %s %s: %s" % ("ok" if good else "FAILED", text, " ".join(options), done.stderr.strip().split("\n")[0]))
    for options, says in ((["--method", "nuts"], "a lesson has Gibbs updates"), (["--emit=cuda"], "leave --emit out"),
                          (["--explain"], "leave --explain out"), (["--keep"], "leave --keep out"),
                          (["--device", "gpu"], "leave --device out"), (["--precision", "double"], "leave --precision out"),
                          (["-o", model], "it is a file that is read"),
                          (["-o", "/nowhere/lesson.c"], "/nowhere/lesson.c")):
        done = run([gmc, "-q", "--lesson", model] + options, 2)
        good = says in done.stderr and done.stderr.count("\n") == 1 and open(model).read() == SMALL
        failed += not good
        print("%-7s gmc --lesson %s: %s" % ("ok" if good else "FAILED", " ".join(options), done.stderr.strip()))
    return failed


def main():
    failed = 0
    flags = run([gmc, "--lesson-flags"]).stdout.split()
    for model in SAME:
        name = os.path.splitext(os.path.basename(model))[0]
        name = os.path.basename(os.path.dirname(model)) if name == "model" else name
        text, path, data = lesson_of(model, name), os.path.join(work, name), data_of(os.path.join(ROOT, model))
        lines = open(text).read().count("\n")
        run(["cc", "-O1", "-Wall", "-Wno-unused"] + [f for f in flags if f != "-w"][:1] + ["-fopenmp", "-fsyntax-only", text])
        run(["cc", "-O1", text] + flags + ["-o", path])
        run([gmc, "-q", "--no-device", "--method", "gibbs", os.path.join(ROOT, model), "-o", path + "_full"])
        mine = draws(run([path] + data + ["--seed", "5"] + SWEEPS).stdout)
        run([path + "_full"] + data + ["--seed", "5", "--chains", "1", "-q", "--overwrite", "-o", path] + SWEEPS,
            env={**os.environ, "GM_JOINT": "lesson", "OMP_NUM_THREADS": "1"})
        wrong = differs(mine, draws(open(path + "_1.csv").read()))
        if not wrong and lines > MOST.get(model, 400):
            wrong = "%d lines, at most %d" % (lines, MOST[model])
        if not wrong and wide_comments(text):
            wrong = "%d comments of more than 140 columns" % wide_comments(text)
        failed += wrong is not None
        print("%-7s %s: %s" % ("FAILED" if wrong else "ok", model, wrong or "%d lines, %d draws" % (lines, len(mine))))
    failed += wrong_inputs(flags)
    for model, why in REFUSED.items():
        done = run([gmc, "-q", "--lesson", os.path.join(ROOT, model)], status=2)
        good = why in done.stderr and done.stderr.count("\n") == 1 and not done.stdout
        failed += not good
        print("%-7s %s is refused: %s" % ("ok" if good else "FAILED", model, done.stderr.strip()))
    return failed > 0


sys.exit(main())
