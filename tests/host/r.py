"""R's posterior and loo read the files of draws: effective sizes, R-hat and loo beside gmc's. Says so where R or a package is missing.

    r.py GMC SCRIPT FOLDER"""
import csv
import io
import json
import math
import os
import random
import shutil
import subprocess
import sys
import warnings

import arviz as az

from programs import check, failures

gmc, script, work = (os.path.abspath(a) for a in sys.argv[1:4])
os.makedirs(work, exist_ok=True)
os.chdir(work)
lacks = not shutil.which("Rscript") or subprocess.run(["Rscript", "-e", "library(posterior); library(loo); library(jsonlite)"],
                                                      capture_output=True).returncode
if lacks:
    print("not run: R with the packages posterior and loo is not here (apt-get install r-cran-posterior r-cran-loo r-cran-jsonlite)")
    sys.exit(0)
MODEL = """data { int N; vector[N] x; vector[N] y; }
prior { a ~ normal(0, 5); b ~ normal(0, 5); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], s); }
"""


random.seed(3)
rows = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(40)]
with open("line.json", "w") as f: json.dump({"x": [r[0] for r in rows], "y": [1 + r[0] + r[1] for r in rows]}, f)
with open("line.gm", "w") as f: f.write(MODEL)
subprocess.run([gmc, "-q", "--no-device", "--method", "gibbs", "line.gm", "-o", "line"], check=True)
subprocess.run(["./line", "line.json", "--seed", "1", "-q", "--no-summary", "--overwrite", "--log-lik", "-o", "draws"], check=True)
said = subprocess.run(["Rscript", "--vanilla", script, "draws"], capture_output=True, text=True)
check(said.returncode == 0, "R reads the files", said.stderr.strip()[-400:])
theirs = {tuple(line.split()[:2]): float(line.split()[2]) for line in said.stdout.splitlines()}
table = subprocess.run([gmc, "summary", "draws", "--summary", "csv"], capture_output=True, text=True, check=True).stdout
mine = {r["variable"]: r for r in csv.DictReader(io.StringIO(table))}
for name in ("a", "b", "s"):
    for what in ("mean", "rhat", "ess_bulk", "ess_tail", "mcse"):
        one, other = float(mine[name][what]), theirs[what, name]
        check(math.isclose(one, other, rel_tol=1e-8), what, name, one, other)
subprocess.run([gmc, "loo", "draws", "--r-eff", "each", "--pointwise", "loo.csv"], capture_output=True, check=True)
with open("loo.csv") as f: points = [{k: float(v) for k, v in r.items() if k != "observation"} for r in csv.DictReader(f)]
elpd, mean = [p["elpd_loo"] for p in points], sum(p["elpd_loo"] for p in points) / len(points)
# R's se has the divisor n - 1
se = math.sqrt(len(elpd) * sum((e - mean)**2 for e in elpd) / (len(elpd) - 1))
for what, one in (("elpd_loo", sum(elpd)), ("p_loo", sum(p["p_loo"] for p in points)), ("se", se)):
    # loo 2.5 fits the tail on another grid, and has its own rule for effective sizes
    check(math.isclose(one, theirs[what, "y"], rel_tol=0, abs_tol=0.01), what, one, theirs[what, "y"])
rats = os.path.join(os.path.dirname(os.path.abspath(script)), "..", "..", "examples", "hierarchical_normal")
subprocess.run([gmc, "-q", "--no-device", os.path.join(rats, "hierarchical_normal.gm"), "-o", "rats"], check=True)
subprocess.run(["./rats", os.path.join(rats, "rats.json"), "--method", "nuts", "--samples", "1000", "--seed", "1", "-q", "--no-summary",
                "--overwrite", "-o", "nuts"], check=True)
said = subprocess.run(["Rscript", "--vanilla", os.path.join(os.path.dirname(os.path.abspath(script)), "files.R"), gmc,
                       *["nuts_%d.csv" % c for c in (1, 2, 3, 4)]], capture_output=True, text=True)
check(said.returncode == 0 and said.stdout.strip().endswith(" 0 failed"), "R reads what NUTS wrote",
      said.stdout + said.stderr.strip()[-400:])
# Sensitivity to the prior, by R from the CSV files and by ArviZ from the NetCDF file.
warnings.simplefilter("ignore")
subprocess.run(["./line", "line.json", "--seed", "1", "-q", "--no-summary", "--overwrite", "--log-lik", "--log-prior", "--format", "both",
                "-o", "sensitive"], check=True)
said = subprocess.run(["Rscript", "--vanilla", os.path.join(os.path.dirname(os.path.abspath(script)), "psens.R"), "sensitive", *"abs"],
                      capture_output=True, text=True)
by_r = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in said.stdout.splitlines()}
inference = az.from_netcdf("sensitive.nc")
for k, component in enumerate(("prior", "likelihood")):
    by_arviz = az.psens(inference, component=component)
    for name in ("a", "b", "s"):
        # weights differ a little: loo 2.5 fits the tail on another grid
        close = math.isclose(by_r.get(name, [0, 0])[k], float(by_arviz[name]), rel_tol=1e-3)
        check(close, "sensitivity of", name, "to the", component, by_r, float(by_arviz[name]), said.stderr[-300:])
sys.exit(failures() > 0)
