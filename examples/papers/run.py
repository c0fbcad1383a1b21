#!/usr/bin/env python3
"""Makes the data of the five papers, compiles their models, runs them, compares the answers with what is known, and prints a table for each
paper: time, draws, the least effective size of what the table names, and these a second. Run time curves are written as SVG.

    run.py [PAPER ...]     all five without a name: 0 to 4, or the name of a folder
      --quick              the smallest sizes: for a test
      --full               published sizes, for a GPU or a large machine; needs numpy and up to 20 GB of disk
      --device D           cpu, gpu or auto, for all programs
      --gmc FILE           the compiler (build/gmc)
      --out FOLDER         what is made goes there (build/papers)

Exit status 1 if an answer is wrong. Python 3 standard library only.
"""
import argparse
import json
import os
import re
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
    """What a program has printed: rows of the summary by name, seconds and milliseconds a sweep of all chains."""

    def __init__(self, text, seconds):
        self.text, self.wall = text, seconds
        done = DONE.search(text)
        if not done:
            sys.exit("run.py: a program did not end as expected:\n" + text)
        self.sweeps, self.chains, self.seconds, self.ms = int(done[1]), int(done[2]), float(done[3]), float(done[4])
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
        self.wrong = 0
        self.programs = {}

    def at(self, *sizes):
        """Of sizes for quick, small and full, the one that is asked for."""
        return sizes[("quick", "small", "full").index(self.size)]

    def folder(self, *names):
        path = os.path.join(self.out, *names)
        os.makedirs(path, exist_ok=True)
        return path

    def compile(self, folder, model, *options):
        key = (folder, model, options)
        if key not in self.programs:
            path = os.path.join(self.folder(folder), model + "".join(o.replace("-", "") for o in options))
            began = time.time()
            subprocess.run([self.gmc, "-q", *options, os.path.join(HERE, folder, model + ".gm"), "-o", path], check=True)
            print("  compiled %s in %.1f s" % (model + ".gm " + " ".join(options), time.time() - began))
            self.programs[key] = path
        return self.programs[key]

    def fit(self, program, data, chains=4, warmup=500, samples=1000, seed=1, more=()):
        began = time.time()
        ran = subprocess.run([program, *data, "--chains", str(chains), "--warmup", str(warmup), "--samples", str(samples), "--seed",
                              str(seed), "--summary", "all", *(("--device", self.device) if self.device else ()), *more],
                             capture_output=True, text=True)
        if ran.returncode:
            sys.exit("run.py: %s ended with %d\n%s" % (" ".join(ran.args), ran.returncode, ran.stdout + ran.stderr))
        return Fit(ran.stdout + "\n" + ran.stderr, time.time() - began)

    def time(self, program, data, least=0.25, more=()):
        """Milliseconds a sweep of one chain on one thread, over at least so many seconds."""
        sweeps = 20
        while True:
            fit = self.fit(program, data, 1, 10, sweeps, 1, ("--no-summary", "--no-lp", "--threads", "1", *more))
            if fit.seconds >= least or sweeps >= 100_000:
                return fit.ms
            sweeps = int(min(20 * sweeps, max(1.5 * sweeps, 1.3 * sweeps * least / max(fit.seconds, 1e-4))))

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
    return ["%s=%s" % (n[:-4], os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if n.endswith(".npy")]


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
            points.append((N, run.time(program, tables(where))))
        lines.append(("p = %d" % p, points))
    plot.curves(os.path.join(run.folder("horseshoe_probit"), "time.svg"), "Horseshoe probit: a sweep of one chain", "rows N",
                "milliseconds a sweep", lines)
    run.table(("ms a sweep",) + tuple("N = %d" % N for N, _ in lines[0][1]), [[name, *(ms for _, ms in pts)] for name, pts in lines])


PAPERS = (horseshoe_probit,)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("papers", nargs="*")
    ask.add_argument("--quick", action="store_true")
    ask.add_argument("--full", action="store_true")
    ask.add_argument("--device")
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
    print("all answers are right" if not run.wrong else "%d answers are wrong" % run.wrong)
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
