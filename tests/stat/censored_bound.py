"""An exponential rate given exact and censored times, declared with their lower end 0 and without it: its mean and sd, and the means of the
censored times, against quadrature, within 6 Monte Carlo errors.

    censored_bound.py GMC FOLDER"""
import json
import math
import os
import subprocess
import sys

import numpy as np

gmc, work = os.path.abspath(sys.argv[1]), sys.argv[2]
os.chdir(work)
MODEL = """data { int N; vector%s[N] y; vector[N] lo, hi; }
prior { l ~ gamma(2, 1); }
likelihood { for (i in 1:N) y[i] ~ exponential(l) C[lo[i], hi[i]]; }
infer { y by marginal; }
"""
with open("times.json", "w") as f:
    json.dump({"y": [0.5, None, 1.5, None, None], "lo": [0, 2, 0, 1, 0], "hi": [9, "Inf", 9, 3, 0.5]}, f)


def between(l, lo, hi):
    """E(y | lo < y < hi) of an exponential with rate l."""
    width = hi - lo
    return lo + 1 / l - (0 if hi == math.inf else width / np.expm1(l * width))


l = (np.arange(400000) + 0.5) * 5e-5
density = l * np.exp(-l) * l**2 * np.exp(-2 * l) * np.exp(-2 * l) * (np.exp(-l) - np.exp(-3 * l)) * -np.expm1(-0.5 * l)
density /= density.sum()
mean = float((l * density).sum())
truth = {"l": mean, "y.2": float((between(l, 2, math.inf) * density).sum()), "y.4": float((between(l, 1, 3) * density).sum()),
         "y.5": float((between(l, 0, 0.5) * density).sum())}
failed = 0
for name, declared in (("declared", "<lower=0>"), ("open", "")):
    with open(name + ".gm", "w") as f: f.write(MODEL % declared)
    subprocess.run([gmc, "-q", "--no-device", name + ".gm", "-o", name], check=True)
    done = subprocess.run(["./" + name, "times.json", "--seed", "2", "--samples", "20000", "--params", "all", "--summary", "json", "-q"],
                          check=True, capture_output=True, text=True)
    for row in json.loads(done.stdout)["variables"]:
        column = row["variable"].replace("[", ".").replace("]", "")
        if column not in truth: continue
        z = (row["mean"] - truth[column]) / row["mcse"]
        failed += abs(z) > 6
        print("%-10s %-4s mean %.5f, exact %.5f, z = %.2f, bound 6" % (name, column, row["mean"], truth[column], z))
sys.exit(failed > 0)
