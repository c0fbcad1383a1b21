"""The summary as data: numbers are those of the files of draws, and nothing else stands on standard output.

    summary_data.py GMC FOLDER"""
import csv
import io
import json
import os
import re
import subprocess
import sys

import numpy as np

from programs import check, failures, pooled

gmc, work = sys.argv[1:3]
MODEL = """data { int N; vector[N] y; }
prior { vector[2] b ~ normal(0, 1); matrix[2, 2] M ~ normal(0, 1); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(b[1] + b[2] + M[1, 2], s); }
"""


def run(options, status=0):
    path = os.path.join(work, "fit")
    done = subprocess.run([path, os.path.join(work, "data.json"), "--seed", "1", "--samples", "200", "--chains", "2", "-q",
                           "--overwrite", "-o",
                           os.path.join(work, "draws")] + options, capture_output=True, text=True)
    check(done.returncode == status, " ".join(options), done.stderr)
    return done


def main():
    with open(os.path.join(work, "model.gm"), "w") as f:
        f.write(MODEL)
    with open(os.path.join(work, "data.json"), "w") as f:
        json.dump({"y": [1.0, 2.5, 0.3]}, f)
    subprocess.run([gmc, "-q", "--no-device", "--method", "gibbs", os.path.join(work, "model.gm"), "-o", os.path.join(work, "fit")],
                   check=True)
    table = list(csv.DictReader(io.StringIO(run(["--summary", "csv", "--quantiles", "2.5,50,90"]).stdout)))
    there = pooled(os.path.join(work, "draws"))
    rows = [row["variable"] for row in table]
    check(rows == ["lp__", "b[1]", "b[2]", "M[1, 1]", "M[2, 1]", "M[1, 2]", "M[2, 2]", "s"], "its rows", rows)
    check(list(table[0]) == ["variable", "mean", "mcse", "sd", "2.5%", "50%", "90%", "ess_bulk", "ess_tail", "rhat"], "its columns",
         list(table[0]))
    for row in table:
        x = np.array(there[row["variable"].replace("[", ".").replace("]", "").replace(", ", ".")])
        want = {"mean": x.mean(), "sd": x.std(ddof=1), "2.5%": np.quantile(x, 0.025), "50%": np.quantile(x, 0.5),
                "90%": np.quantile(x, 0.9)}
        worst = max(abs(float(row[k]) - v) / (abs(v) + 1e-3) for k, v in want.items())
        check(worst < 1e-9, "numbers of " + row["variable"], worst)  # files have all digits; sums are added in another order
    done = run(["--summary", "csv", "--profile"])
    check([row["variable"] for row in csv.DictReader(io.StringIO(done.stdout))] == rows and "us a sweep" in done.stderr,
         "a profile goes to standard error", done.stdout)
    done = run(["--summary", "json", "--log-lik", "--new", os.path.join(work, "data.json")])
    check("variables" in json.loads(done.stdout), "other data are summarised there, too", done.stdout)
    done = run(["--summary", "json"])
    data = json.loads(done.stdout)
    check(data["chains"] == 2 and data["draws"] == 200 and len(data["variables"]) == len(table), "the object")
    check(all(abs(v["mean"] - float(row["mean"])) < 1e-12 and set(v["quantiles"]) == {"5%", "50%", "95%"} and v["rhat"] > 0.9
             for v, row in zip(data["variables"], table)), "its numbers")
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "fit.md")
    with open(page) as f: said = f.read().split("`--summary json` an object with ")[1].split("What is not defined")[0].split("Each of the")
    keys = [[k for k in re.findall(r"`([^`]+)`", part) if k[0] != '"'] for part in said]
    check(list(data) == keys[0] and all(set(v) == set(keys[1]) for v in data["variables"]), "its keys are those of the page", keys)
    run(["--summary", "xml"], 2)
    for wrong in ("50,5", "5,5", "101", "-1", "", "5,", "x"):
        run(["--quantiles", wrong], 2)
    divergences()
    out_of_domain()
    return failures() > 0


def out_of_domain():
    """A root of a negative number is no improper posterior."""
    path = os.path.join(work, "root")
    with open(path + ".gm", "w") as f: f.write("prior { m ~ normal(0, 1); }\npredict { q = sqrt(m); r = log(m); }\n")
    subprocess.run([gmc, "-q", "--no-device", path + ".gm", "-o", path], check=True)
    said = subprocess.run([path, "--seed", "1", "-q"], capture_output=True, text=True).stdout
    check("2 of 4 quantities have draws that are not finite (the first: q). All others are finite" in said and "improper" not in said,
          "what is computed left its domain", said)


def divergences():
    """Steps of 1 where scales fall to exp(-5) diverge with certainty: what is advised is what the program can do."""
    path = os.path.join(work, "funnel")
    with open(path + ".gm", "w") as f:
        f.write("prior { t ~ normal(0, 3); for (i in 1:9) z[i] ~ normal(0, exp(t / 2)); }\n"
                "infer { (t, z) by hmc(steps = 20, step = 1.0); }\n")
    subprocess.run([gmc, "-q", "--no-device", path + ".gm", "-o", path], check=True)
    said = subprocess.run([path, "--seed", "1", "-q"], capture_output=True, text=True).stdout
    warned = [line for line in said.splitlines() if "were divergent" in line]
    check(len(warned) == 1 and "HMC transitions" in warned[0] and "Give hmc a smaller step in the infer block" in warned[0] and
          "adapt-delta" not in warned[0], "divergent transitions of HMC", said)


sys.exit(main())
