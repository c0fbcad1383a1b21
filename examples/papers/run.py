#!/usr/bin/env python3
"""Makes the data of the five papers, compiles their models, runs them, compares the answers with what is known, and prints a table for each
paper: time, draws, the least effective size of what the table names, and these a second. Run time curves are written as SVG.

    run.py [PAPER ...]     all five without a name: 0 to 4, or the name of a folder
      --quick              the smallest sizes: for a test
      --full               published sizes (mixtures: to 10^6 points), for a GPU; needs numpy and 20 GB of disk
      --device D           cpu, gpu or auto, for all programs
      --pictures           copy the curves into the folders of the papers
      --gmc FILE           the compiler (build/gmc)
      --out FOLDER         what is made goes there (build/papers)

Exit status 1 if an answer is wrong. Python 3 standard library only.
"""
import argparse
import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import plot

DONE = re.compile(r"^(\d+) sweeps of (\d+) chains? in ([\d.e+-]+) s, ([\d.e+-]+) ms each", re.M)
NUMBER = r"(?:-?[\d.]+(?:e[+-]?\d+)?|nan|-?inf|-)"
ROW = re.compile(r"^(\S+(?:, \S+\])*) +(%s(?: +%s){8})$" % (NUMBER, NUMBER), re.M)
COLUMNS = ("mean", "mcse", "sd", "low", "middle", "high", "ess", "tail", "rhat")


class Fit:
    """What a program has printed: rows of the summary by name, seconds, milliseconds a sweep of all chains, the same by the GPU's clock."""

    def __init__(self, text, seconds):
        self.text, self.wall = text, seconds
        done = DONE.search(text)
        if not done:
            sys.exit("run.py: a program did not end as expected:\n" + text)
        self.sweeps, self.chains, self.seconds, self.ms = int(done[1]), int(done[2]), float(done[3]), float(done[4])
        clock = re.search(r"median ([0-9.e+-]+) ms by the GPU's clock", text)
        self.clock = float(clock[1]) if clock else self.ms              # without the first sweeps, in which kernels are compiled
        self.rows = {m[1]: dict(zip(COLUMNS, (float("nan") if v == "-" else float(v) for v in m[2].split()))) for m in ROW.finditer(text)}
        self.warnings = re.findall(r"^Warning: (.*)", text, re.M)

    def __getitem__(self, name):
        return self.rows[name]

    def least(self, names=None):
        """The name with the least effective size, of those that begin with one of `names`, and that size."""
        found = [(row["ess"], n) for n, row in self.rows.items() if row["ess"] == row["ess"]
                 and (n.split("[")[0] in names if names else n != "lp__")]
        return min(found)[::-1]


class Runs:
    """The options of the command line, and what has been found wrong."""

    def __init__(self, given):
        self.gmc, self.out, self.device = os.path.abspath(given.gmc), os.path.abspath(given.out), given.device
        self.size = "full" if given.full else "quick" if given.quick else "small"
        self.pictures = given.pictures
        self.wrong = 0

    def at(self, *sizes):
        """Of sizes for quick, small and full, the one that is asked for."""
        return sizes[("quick", "small", "full").index(self.size)]

    def folder(self, *names):
        path = os.path.join(self.out, *names)
        os.makedirs(path, exist_ok=True)
        return path

    def compile(self, folder, model, *options, steps=None):
        """A program. steps: trajectories of so many leapfrog steps in place of those of the model, by NUTS if 0."""
        source = os.path.join(HERE, folder, model + ".gm")
        name = "_".join([model] + [o.strip("-") for o in options] + ([] if steps is None else [str(steps)]))
        path = os.path.join(self.folder(folder), name)
        if steps is not None:
            with open(source) as f:
                text = f.read()
            source = path + ".gm"
            with open(source, "w") as f:
                f.write(re.sub(r"by hmc\(steps = \d+\)", "by hmc(steps = %d)" % steps if steps else "by nuts", text))
        began = time.time()
        subprocess.run([self.gmc, "-q", *options, source, "-o", path], check=True)
        print("  compiled %s.gm in %.1f s" % (name, time.time() - began))
        return path

    def fit(self, program, data, chains=4, warmup=500, samples=1000, seed=1, more=(), device=None):
        began = time.time()
        on = device or self.device
        ran = subprocess.run([program, *data, "--chains", str(chains), "--warmup", str(warmup), "--samples", str(samples), "--seed",
                              str(seed), "--summary", "all", *(("--device", on) if on else ()), *more],
                             capture_output=True, text=True)
        if ran.returncode:
            sys.exit("run.py: %s ended with %d\n%s" % (" ".join(ran.args), ran.returncode, ran.stdout + ran.stderr))
        return Fit(ran.stdout + "\n" + ran.stderr, time.time() - began)

    def time(self, program, data, least=0.25, more=(), device=None):
        """Milliseconds a sweep of one chain on one thread, over at least so many seconds."""
        sweeps = 20
        while True:
            fit = self.fit(program, data, 1, 10, sweeps, 1, ("--no-summary", "--no-lp", "--threads", "1", *more), device)
            if fit.seconds >= least or sweeps >= 100_000:
                return fit.ms
            sweeps = int(min(20 * sweeps, max(1.5 * sweeps, 1.3 * sweeps * least / max(fit.seconds, 1e-4))))

    def line(self, name, program, points, more=(), share=1):
        """Lines of a run time curve, of (x, data): milliseconds a sweep times `share`; on a GPU those of the CPU and the ratio as well."""
        devices = ("gpu", "cpu") if self.device and self.device.startswith("gpu") else (self.device,)
        found = []
        for device in devices:
            times = [(x, share * self.time(program, data, more=more, device=device)) for x, data in points]
            found.append((name + (", " + device.upper() if len(devices) > 1 else ""), times))
        for name, times in found:
            self.table([name] + ["%d" % x for x, _ in times], [["ms"] + [ms for _, ms in times]])
        if len(found) > 1:
            print("  CPU / GPU: " + ", ".join("%.3g" % (c / g) for (_, g), (_, c) in zip(found[0][1], found[1][1])))
        return found

    def check(self, what, good):
        print("  %-5s %s" % ("right" if good else "WRONG", what))
        self.wrong += not good

    def table(self, heads, rows):
        cells = [list(heads)] + [[c if isinstance(c, str) else "%.3g" % c if abs(c) < 1000 else "%.0f" % c for c in row] for row in rows]
        wide = [max(len(row[k]) for row in cells) for k in range(len(heads))]
        for row in cells:
            print("  " + "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, wide))))

    def row(self, name, fit, names=None):
        """A row of the table: seconds of all sweeps, draws, least effective size, these a second."""
        worst, ess = fit.least(names)
        return [name, fit.seconds, str((fit.sweeps) * fit.chains), fit.ms, worst, ess, ess / fit.seconds]


HEADS = ("run", "s", "sweeps", "ms a sweep", "worst", "effective", "a second")


def module(folder):
    """The data.py of a folder."""
    import importlib.util
    spec = importlib.util.spec_from_file_location("data_" + folder, os.path.join(HERE, folder, "data.py"))
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def tables(folder):
    """The files of a folder as a program reads them; truth.json is for this script."""
    paths = [(n, os.path.join(folder, n)) for n in sorted(os.listdir(folder))]
    return ["%s=%s" % (n[:-4], path) for n, path in paths if n.endswith(".npy")] + [path for n, path in paths if n == "anchor.json"]


def truth(folder):
    with open(os.path.join(folder, "truth.json")) as f:
        return json.load(f)


def draws(stem, chains):
    """name -> all draws of the files of a run with -o, one chain after the other."""
    found = {}
    for c in range(chains):
        with open("%s_%d.csv" % (stem, c + 1)) as f:
            head, *rows = csv.reader(line for line in f if not line.startswith("#"))
        for name, column in zip(head, zip(*rows)):
            found.setdefault(name, []).extend(map(float, column))
    return found


def distance(fit, name, value):
    """From a known value of a posterior mean, in Monte Carlo errors."""
    return abs(fit[name]["mean"] - value) / fit[name]["mcse"]


def picture(run, folder, name, title, x_name, y_name, lines):
    path = os.path.join(run.folder(folder), name + ".svg")
    plot.curves(path, title, x_name, y_name, lines)
    if run.pictures:
        shutil.copy(path, os.path.join(HERE, folder))


def horseshoe_probit(run):
    """Coefficients of the recipe, the prior alone, and time over rows for two or three numbers of columns."""
    data = module("horseshoe_probit")
    program = run.compile("horseshoe_probit", "horseshoe", "--method", "gibbs")
    N, p = run.at((1000, 20), (3000, 50), (1_000_000, 1000))
    where = run.folder("horseshoe_probit", "data")
    data.make(where, N, p)
    fit = run.fit(program, tables(where), warmup=run.at(500, 1000, 2500), samples=run.at(2000, 4000, 7500))
    run.table(HEADS, [run.row("N = %d, p = %d" % (N, p), fit)])
    beta = [fit["beta[%d]" % (j + 1)] for j in range(p)]
    z = [(b["mean"] - (data.BETA[j] if j < 6 else 0)) / b["sd"] for j, b in enumerate(beta)]
    run.check("the six coefficients lie within 4 posterior sds of the truth (largest %.1f)" % max(map(abs, z[:6])),
              max(map(abs, z[:6])) < 4)
    inside = sum(b["low"] <= 0 <= b["high"] for b in beta[6:])
    run.check("0 is in the 90 %% intervals of %d of the %d others" % (inside, p - 6), inside >= 0.85 * (p - 6))
    run.check("R-hat is at most %.3f" % max(r["rhat"] for r in fit.rows.values()), all(r["rhat"] < 1.05 for r in fit.rows.values()))
    lines = []
    for p in run.at((10,), (10, 100), (10, 100, 1000)):
        points = []
        for N in run.at((100, 1000), (100, 1000, 10_000, 100_000 if p == 10 else 30_000), (1000, 10_000, 100_000, 1_000_000)):
            where = run.folder("horseshoe_probit", "data_%d_%d" % (N, p))
            data.make(where, N, p)
            points.append((N, tables(where)))
        lines += run.line("p = %d" % p, program, points)
    picture(run, "horseshoe_probit", "time", "A sweep of the horseshoe probit", "rows N", "milliseconds a sweep", lines)


# Posterior medians of the diabetes study with r = 1, delta = 1.78, and what Monte Carlo error and rounding allow
DIABETES = {"beta[1]": (-3, 6), "beta[2]": (-209, 6), "beta[3]": (523, 6), "beta[4]": (305, 6), "beta[7]": (-157, 12), "beta[8]": (89, 12),
            "beta[9]": (516, 8), "beta[10]": (61, 6), "sigma": (54.4, 0.3), "lambda": (0.277, 0.012)}
# Means, variances and covariance of two intercepts for counts of 2, 5 and 13 and priors N(0, 2^2), by quadrature
COUNTS, MEANS, VARIANCES, COVARIANCE = (2, 5, 13), (-1.7720, -0.9120), (0.4946, 0.2716), 0.0687


def lasso_multinomial(run):
    """Medians of the diabetes study, exact moments of a multinomial, coefficients of a recipe; time over p and over n."""
    data, here = module("lasso_multinomial"), "lasso_multinomial"
    lasso, multinomial = (run.compile(here, m, "--method", "gibbs") for m in ("lasso", "multinomial"))
    study = run.folder(here, "diabetes")
    data.diabetes(study, os.path.join(ROOT, "examples", "lasso", "diabetes.csv"))
    fit = run.fit(lasso, tables(study), samples=run.at(4000, 10_000, 10_000))
    rows = [run.row("Lasso, diabetes, 442 x 10", fit)]
    off = {n: abs(fit[n]["middle"] - v) / most for n, (v, most) in DIABETES.items()}
    worst = max(off, key=off.get)
    run.check("medians of the diabetes study: all are as published (furthest %s, %.2f of what is allowed)" % (worst, off[worst]),
              off[worst] < 1)
    exact = os.path.join(run.folder(here), "counts.json")
    with open(exact, "w") as f:
        y = [k + 1 for k, n in enumerate(COUNTS) for _ in range(n)]
        json.dump({"N": len(y), "p": 1, "K": 3, "X": [[1]] * len(y), "y": y}, f)
    stem = os.path.join(run.folder(here), "counts")
    fit = run.fit(multinomial, [exact], samples=20_000, more=("--overwrite", "-o", stem))
    rows.append(run.row("multinomial, counts of 3 categories", fit))
    of = draws(stem, 4)
    a, b = of["B.1.1"], of["B.1.2"]
    at = [sum(v) / len(v) for v in (a, b)]
    spread = [sum((x - m) ** 2 for x in v) / len(v) for v, m in zip((a, b), at)]
    both = sum((x - at[0]) * (z - at[1]) for x, z in zip(a, b)) / len(a)
    off = max(distance(fit, "B[1, %d]" % (k + 1), MEANS[k]) for k in (0, 1))
    run.check("means %.4f, %.4f are the exact %.4f, %.4f (at most %.1f Monte Carlo errors)" % (*at, *MEANS, off), off < 4)
    # Errors of second moments from effective sizes; 4 of them are 0.016, 0.007 and 0.0085 here. The order that is not valid is 0.0127 off.
    run.check("variances %.4f, %.4f, covariance %.4f are the exact %.4f, %.4f, %.4f" % (*spread, both, *VARIANCES, COVARIANCE),
              abs(spread[0] - VARIANCES[0]) < 0.02 and abs(spread[1] - VARIANCES[1]) < 0.008 and abs(both - COVARIANCE) < 0.0085)
    N, p, K = run.at((500, 5, 3), (2000, 10, 4), (506_450, 56, 9))
    where = run.folder(here, "multinomial")
    data.multinomial(where, N, p, K)
    fit = run.fit(multinomial, tables(where) + ["K=%d" % K], samples=run.at(500, 1000, 1000))
    rows.append(run.row("multinomial, %d x %d, %d categories" % (N, p, K), fit))
    z = max(abs(fit["B[%d, %d]" % (j + 1, k + 1)]["mean"] - B[k]) / fit["B[%d, %d]" % (j + 1, k + 1)]["sd"]
            for j, B in enumerate(truth(where)) for k in range(K - 1))
    run.check("all %d coefficients lie within 4.5 posterior sds of the truth (largest %.1f)" % (p * (K - 1), z), z < 4.5)
    run.table(HEADS, rows)
    lines = []
    for n in run.at((425,), (100, 425), (425,)):
        points = []
        for p in run.at((10, 100), (10, 30, 100, 300, 1000), (100, 300, 1000, 3000)):
            where = run.folder(here, "lasso_%d_%d" % (n, p))
            data.lasso(where, n, p)
            points.append((p, tables(where)))
        lines += run.line("n = %d" % n, lasso, points)
    picture(run, here, "lasso", "The Bayesian Lasso", "predictors p", "milliseconds a sweep", lines)
    lines = []
    for p, K in run.at(((5, 3),), ((10, 4), (56, 9)), ((10, 4), (56, 9))):
        points = []
        for N in run.at((100, 1000), (100, 300, 1000, 3000, 10_000), (1000, 10_000, 100_000, 506_450)):
            if run.size == "small" and N * p * K > 2_000_000:
                continue
            where = run.folder(here, "multinomial_%d_%d_%d" % (N, p, K))
            data.multinomial(where, N, p, K)
            points.append((N, tables(where) + ["K=%d" % K]))
        lines += run.line("p = %d, K = %d" % (p, K), multinomial, points)
    picture(run, here, "multinomial", "Multinomial regression by Polya-Gamma latents", "rows n", "milliseconds a sweep", lines)


def land(run, program):
    """HMC of land in six classes, by 36 brightnesses: the accuracy on rows that were held out."""
    where, rows = run.folder("hmc_multinomial", "land"), {}
    common = sys.modules["common"]
    for part in ("train", "test"):
        with open(os.path.join(ROOT, "examples", "satellite", part + ".csv")) as f:
            head, *table = csv.reader(f)
        at = head.index("y")
        rows[part] = [([1.0] + [(float(v) - 85) / 20 for k, v in enumerate(row) if k != at], int(row[at]) + 1) for row in table]
    answers = iter([kind for _, kind in rows["train"]])
    common.regression(where, len(rows["train"]), len(rows["train"][0][0]), [x for x, _ in rows["train"]], lambda row: next(answers))
    stem = os.path.join(where, "draws")
    fit = run.fit(program, tables(where) + ["K=6"], 2, run.at(100, 200, 200), run.at(50, 100, 100), more=("--overwrite", "-o", stem))
    of = draws(stem, 2)
    kept = range(0, 2 * run.at(50, 100, 100), 10)
    right = {}
    for part in rows:
        right[part] = 0
        for x, kind in rows[part]:
            total = [0.0] * 6
            for d in kept:
                eta = [sum(v * of["B.%d.%d" % (j + 1, k + 1)][d] for j, v in enumerate(x)) for k in range(5)] + [0.0]
                most = max(eta)
                e = [math.exp(v - most) for v in eta]
                total = [t + v / sum(e) for t, v in zip(total, e)]
            right[part] += total.index(max(total)) + 1 == kind
        right[part] /= len(rows[part])
    return fit, right


def hmc_multinomial(run):
    """HMC beside NUTS and beside the recipe's coefficients, accuracy on held-out rows; the time of a leapfrog step over N, p and K."""
    data, here = module("hmc_multinomial"), "hmc_multinomial"
    short = run.compile(here, "hmc", steps=10)
    nuts = run.compile(here, "hmc", steps=0)
    N, p, K = run.at((500, 5, 3), (1000, 10, 4), (10_000, 1000, 10))
    where = run.folder(here, "data")
    data.make(where, N, p, K)
    given = tables(where) + ["K=%d" % K]
    samples = run.at(500, 1000, 500)
    fits = [("HMC, 10 steps", run.fit(short, given, samples=samples)), ("NUTS", run.fit(nuts, given, samples=samples))]
    if run.size != "quick":
        long = run.compile(here, "hmc")
        fits.append(("HMC, 100 steps", run.fit(long, given, warmup=200, samples=200)))
    rows = [run.row("%s, %d x %d, %d categories" % (name, N, p, K), f) for name, f in fits]
    names = ["B[%d, %d]" % (j + 1, k + 1) for j in range(p) for k in range(K - 1)]
    (_, a), (_, b) = fits[:2]
    off = max(abs(a[n]["mean"] - b[n]["mean"]) / math.hypot(a[n]["mcse"], b[n]["mcse"]) for n in names)
    run.check("HMC and NUTS have one posterior: means differ by at most %.1f Monte Carlo errors" % off, off < 4.5)
    B = truth(where)
    z = max(abs(a["B[%d, %d]" % (j + 1, k + 1)]["mean"] - B[j][k]) / a["B[%d, %d]" % (j + 1, k + 1)]["sd"] for j in range(p)
            for k in range(K - 1))
    run.check("all %d coefficients lie within 4.5 posterior sds of the truth (largest %.1f)" % (len(names), z), z < 4.5)
    if run.size != "quick":
        fit, right = land(run, long)
        rows.append(run.row("HMC, 100 steps, land of 6 classes", fit))
        run.check("land: accuracy %.3f on its own rows, %.3f on rows that were held out" % (right["train"], right["test"]),
                  right["test"] > 0.78)
    run.table(HEADS, rows)
    lines = []
    for p, K in run.at(((5, 3),), ((10, 3), (10, 10), (50, 3), (50, 10)), ((50, 3), (50, 20), (1000, 3), (1000, 10))):
        points = []
        for N in run.at((100, 1000), (100, 1000, 5000), (100, 1000, 5000, 10_000)):
            where = run.folder(here, "data_%d_%d_%d" % (N, p, K))
            data.make(where, N, p, K)
            points.append((N, tables(where) + ["K=%d" % K]))
        lines += run.line("p = %d, K = %d" % (p, K), short, points, share=0.1)
    picture(run, here, "leapfrog", "A leapfrog step of HMC", "rows N", "milliseconds a leapfrog step", lines)


def mixtures(run):
    """Weights of components known by a point, over one data set and several; a log posterior that rises; time over n and k."""
    data, here = module("mixtures"), "mixtures"
    mixture = run.compile(here, "mixture", "--method", "gibbs")
    groups, symmetric = (run.compile(here, name, "--method", "gibbs") for name in ("groups", "symmetric"))
    three, many = run.folder(here, "three"), run.folder(here, "groups")
    N = run.at(600, 1000, 1000)
    data.three(three, N)
    fit = run.fit(mixture, tables(three) + ["k=10"], samples=run.at(500, 2000, 2000), more=("--params", "alpha,share"))
    rows = [run.row("three components, n = %d, k = 10: shares" % N, fit, ("share",)),
            run.row("    the same run: alpha", fit, ("alpha",))]
    z = max(abs(fit["share[%d]" % (c + 1)]["mean"] - w) / fit["share[%d]" % (c + 1)]["sd"] for c, w in enumerate(data.WEIGHTS))
    run.check("shares %s are those of the recipe (within %.1f posterior sds)"
              % (", ".join("%.3f" % fit["share[%d]" % (c + 1)]["mean"] for c in range(3)), z), z < 4)
    N = run.at(100, 200, 1000)
    data.groups(many, 4, N)
    fit = run.fit(groups, tables(many) + ["k=10", "G=4"], samples=run.at(500, 2000, 2000), more=("--params", "alpha,a0,share"))
    rows += [run.row("4 sets of %d, k = 10: shares" % N, fit, ("share",)), run.row("    the same run: a0", fit, ("a0",)),
             run.row("    the same run: alpha", fit, ("alpha",))]
    other = run.fit(symmetric, tables(many) + ["k=10", "G=4"], samples=run.at(500, 2000, 2000), more=("--params", "alpha,a0,share"))
    rows += [run.row("symmetric, the same sets: a0", other, ("a0",)), run.row("    the same run: alpha", other, ("alpha",))]
    for name, of_model in (("sticks", fit), ("symmetric", other)):
        z = max(abs(of_model["share[%d, %d]" % (g + 1, c + 1)]["mean"] - w)
                / math.hypot(of_model["share[%d, %d]" % (g + 1, c + 1)]["sd"], 0.5 / N)
                for g, of in enumerate(data.BY_GROUP) for c, w in enumerate(of))
        run.check("shares by set are those of the recipe (%s, within %.1f posterior sds)" % (name, z), z < 4)
    name, ess = other.least(("alpha", "a0"))
    run.check("without an order both concentrations mix (%s, %.0f effective)" % (name, ess), ess > run.at(100, 400, 400))
    if run.size != "quick":
        where = run.folder(here, "many")
        n, k = run.at((0, 0), (2000, 32), (1_000_000, 256))
        data.many(where, n, 14)
        sweeps = run.at(0, 150, 300)         # enough to see that it does not mix: the effective sizes are the same after 300
        fit = run.fit(mixture, tables(where) + ["k=%d" % k], 2, sweeps, sweeps, more=("--params", "alpha,share"))
        rows.append(run.row("30 components of 14 coordinates, n = %d, k = %d" % (n, k), fit))
    run.table(HEADS, rows)
    lines = []
    for k in run.at((8,), (8, 32, 64), (64, 256)):
        points = []
        for n in run.at((100, 1000), (100, 1000, 10_000), (1000, 10_000, 100_000, 1_000_000)):
            where = run.folder(here, "many_%d" % n)
            data.many(where, n, 14)
            points.append((n, tables(where) + ["k=%d" % k]))
        lines += run.line("k = %d" % k, mixture, points, more=("--params", "alpha"))
    paper = [(n, 1000 * s / 100) for n, s in ((1e2, 3), (1e3, 20), (1e4, 191), (1e5, 1907), (1e6, 19_048))]
    picture(run, here, "time", "A sweep of a mixture of normals of 14 coordinates", "points n", "milliseconds a sweep",
            lines + [("*paper, k = 256: CPU", paper)])


def moments(mu, s, a, b):
    """Mean and mean square of a normal between two ends, by densities and by tails that do not cancel."""
    l, u = (a - mu) / s, (b - mu) / s
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    tail = lambda x: 0.5 * math.erfc(x / math.sqrt(2))
    mass = tail(l) - tail(u) if l > 0 else tail(-u) - tail(-l)
    first = (density(l) - density(u)) / mass
    second = 1 + (l * density(l) - u * density(u)) / mass
    return mu + s * first, mu * mu + 2 * mu * s * first + s * s * second


# Of the published run, and three that a careless sampler gets wrong: a far tail, a narrow interval, one that is nearly all of the line
INTERVALS = ((2, 1, 0, 1.5), (0, 1, 8, 9), (0, 1, 0.5, 0.5005), (1, 2, -12, 15))
PUBLISHED = ("*paper: CPU", [(1e4, 8), (1e5, 180), (1e6, 1116), (1e7, 7760), (1e8, 72_900)])


def truncated_normals(run):
    """Moments of truncated normals, coefficients of probit regression; time of both over n."""
    data, here = module("truncated_normals"), "truncated_normals"
    truncated, probit = run.compile(here, "truncated", "--method", "gibbs"), run.compile(here, "probit", "--method", "gibbs")
    off, inside, stem = 0, True, os.path.join(run.folder(here), "normals")
    for mu, s, a, b in INTERVALS:
        run.fit(truncated, ["n=1000", "mu=%r" % mu, "s=%r" % s, "a=%r" % a, "b=%r" % b], samples=run.at(250, 1000, 1000),
                warmup=10, more=("--params", "first,second,least,most", "--overwrite", "-o", stem))
        of = draws(stem, 4)
        inside = inside and min(of["least"]) >= a and max(of["most"]) <= b
        for name, exact in zip(("first", "second"), moments(mu, s, a, b)):    # sweeps are independent of each other
            n, mean = len(of[name]), sum(of[name]) / len(of[name])
            error = math.sqrt(sum((v - mean) ** 2 for v in of[name]) / n / n)
            off = max(off, abs(mean - exact) / error)
    run.check("means and mean squares over %d intervals are exact (at most %.1f Monte Carlo errors)" % (len(INTERVALS), off), off < 4.5)
    run.check("no draw lies outside its interval", inside)
    N, p = run.at((1000, 8), (10_000, 8), (10_000_000, 8))
    where = run.folder(here, "data")
    data.make(where, N, p)
    fit = run.fit(probit, tables(where), warmup=500, samples=run.at(1000, 2000, 2000))
    z = max(abs(fit["beta[%d]" % (j + 1)]["mean"] - v) / fit["beta[%d]" % (j + 1)]["sd"] for j, v in enumerate(truth(where)))
    run.check("all %d coefficients lie within 4 posterior sds of the truth (largest %.1f)" % (p, z), z < 4)
    run.table(HEADS, [run.row("probit, %d x %d" % (N, p), fit)])
    sizes = run.at((1000, 10_000), (100, 1000, 10_000, 100_000, 1_000_000), (1000, 10 ** 5, 10 ** 6, 10 ** 7, 10 ** 8))
    lines = run.line("one thread", truncated, [(n, ["n=%d" % n]) for n in sizes], more=("--params", "first"))
    picture(run, here, "normals", "n truncated normals", "draws n", "milliseconds", lines + [PUBLISHED])
    points = []
    for N in run.at((100, 1000), (1000, 10_000, 100_000), (1000, 10 ** 4, 10 ** 5, 10 ** 6, 10 ** 7)):
        where = run.folder(here, "data_%d" % N)
        data.make(where, N, 8)
        points.append((N, tables(where)))
    lines = run.line("one thread", probit, points)
    # Published: seconds of 2500 sweeps on a CPU
    paper = [(n, 1000 * s / 2500) for n, s in ((1e3, 2.3), (1e4, 16.2), (1e5, 96.6), (1e6, 834), (1e7, 8305))]
    picture(run, here, "probit", "Probit regression, 8 coefficients", "rows n", "milliseconds a sweep", lines + [("*paper: CPU", paper)])


PAPERS = (horseshoe_probit, lasso_multinomial, hmc_multinomial, mixtures, truncated_normals)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("papers", nargs="*")
    ask.add_argument("--quick", action="store_true")
    ask.add_argument("--full", action="store_true")
    ask.add_argument("--device")
    ask.add_argument("--pictures", action="store_true")
    ask.add_argument("--gmc", default=os.path.join(ROOT, "build", "gmc"))
    ask.add_argument("--out", default=os.path.join(ROOT, "build", "papers"))
    given = ask.parse_args()
    names = [f.__name__ for f in PAPERS]
    for name in given.papers:
        if name not in names and name not in map(str, range(len(names))):
            ask.error("there is no paper %s: %s" % (name, ", ".join(names)))
    run = Runs(given)
    for k, paper in enumerate(PAPERS):
        if not given.papers or names[k] in given.papers or str(k) in given.papers:
            began = time.time()
            print("Paper %d: %s" % (k, names[k]))
            paper(run)
            print("  %.0f s in all\n" % (time.time() - began))
    print("Curves are in %s; what a row means is in examples/papers/README.md and the READMEs of its folders." % os.path.relpath(run.out))
    print("all answers are right" if not run.wrong else "%d answers are wrong" % run.wrong)
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
