#!/usr/bin/env python3
"""NUTS beside Gibbs updates and slices: effective draws a second of the worst parameter, one chain on one core.

    tests/bench/nuts.py [NAME...]

Models of tests/oracles with their data, compiled by --method gibbs and --method nuts; 4000 draws after 1000 sweeps of warm-up, whose time
is taken off. Effective draws are the summary's ess_bulk. Microseconds a leapfrog step are those of the sampling over the sum of
n_leapfrog__.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = ["pdb_eight_schools_noncentered", "bugs_rats", "bugs_pump", "ref_logit_pima", "pdb_gp_regr"]
DRAWS = 4000


def fit(program, data, draws, *more):
    ran = subprocess.run([program, data, "--chains", "1", "--threads", "1", "--warmup", "1000", "--samples", str(draws), "--seed", "1",
                          "--summary", "all", *more],
                         capture_output=True, text=True, check=True)
    return ran.stdout, float(re.search(r"in ([0-9.e+-]+) s", ran.stdout + ran.stderr).group(1))


def worst(table):
    return min(float(line.split()[-3]) for line in table.splitlines() if re.match(r"\S+( .*)? {2,}\S", line) and not line.startswith("lp__")
               and len(line.split()) >= 10)


def main():
    print("| model | `--method gibbs` | `--method nuts` | ratio | us a leapfrog step |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or MODELS:
            at, pace = os.path.join(ROOT, "tests", "oracles", name), {}
            for method in ("gibbs", "nuts"):
                program = os.path.join(folder, name)
                subprocess.run([os.path.join(ROOT, "build", "gmc"), "-q", "--no-device", "--method", method, os.path.join(at, "model.gm"),
                                "-o", program], check=True)
                data = os.path.join(at, "data.json")
                table, whole = fit(program, data, DRAWS)
                _, start = fit(program, data, 10)
                pace[method] = worst(table) / (whole - start)
            _, written = fit(program, data, DRAWS, "--overwrite", "-o", os.path.join(folder, "draws"))
            with open(os.path.join(folder, "draws_1.csv")) as f:
                steps = sum(float(row["n_leapfrog__"]) + 1 for row in csv.DictReader(line for line in f if line[0] != "#"))
            print("| %s | %.3g | %.3g | %.1f | %.2g |" % (name, pace["gibbs"], pace["nuts"], pace["nuts"] / pace["gibbs"],
                                                          1e6 * (whole - start) / steps), flush=True)


main()
