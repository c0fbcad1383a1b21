"""A week with gmc, by its commands alone: houses in counties with names, as in Gelman and Hill 2007, chapter 12; the houses are simulated.

    week.py GMC FOLDER

False alarms: none, since data and seeds are fixed. For random data fewer than 16 of 20 effects are in their 90 % intervals once in
23 weeks."""
import glob
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "host"))
from programs import check, failures, run, said_by  # noqa: E402

gmc, work = sys.argv[1:3]
os.chdir(work)
for old in glob.glob("*"):
    os.remove(old)
COUNTIES = ["Aitkin", "Anoka", "Becker", "Beltrami", "Benton", "Blue Earth", "Brown", "Carlton", "Cass", "Chippewa", "Chisago", "Clay",
            "Cook", "Crow Wing", "Dakota", "Dodge", "Goodhue", "Hennepin", "Isanti", "Lac Qui Parle"]
DATA = "data { int N, J; int<lower=1, upper=J> county[N]; int<lower=0, upper=1> basement[N]; vector[N] log_radon; }\n"
POOLED = "model pooled\n" + DATA + """prior { a ~ normal(0, 2); b ~ normal(0, 2); sigma ~ half_normal(0, 2); }
likelihood { for (i in 1:N) log_radon[i] ~ normal(a + b * basement[i], sigma); }
"""
VARYING = "model varying\n" + DATA + """function real level(real a, real b, real x) = a + b * x;
prior { mu ~ normal(0, sd = 2); b ~ normal(mean = 0, sd = 2); tau ~ half_normal(0, 2); sigma ~ half_normal(0, 2);
        for (j in 1:J) a[j] ~ normal(mu, tau); }
likelihood { for (i in 1:N) log_radon[i] ~ normal(level(a[county[i]], b, basement[i]), sigma); }
"""


def table():
    draw = random.Random(5)
    effect = {county: draw.gauss(1.3, 0.5) for county in COUNTIES}
    with open("homes.csv", "w") as f:
        f.write("county,basement,log_radon\n")
        for i in range(300):
            county, basement = COUNTIES[i % 20 if i < 40 else draw.randrange(20)], int(draw.random() < 0.8)
            radon = effect[county] + 0.7 * basement + draw.gauss(0, 0.7)
            f.write("%s,%d,%s\n" % (county, basement, "NA" if i == 100 else "%.4f" % radon))
    return effect


def rows(path):
    with open(path) as f:
        return [line for line in f if line[0] != "#"]


effect = table()
for name, text in (("pooled", POOLED), ("varying", VARYING)):
    with open(name + ".gm", "w") as f: f.write(text)
    said = said_by(gmc, name + ".gm", "-o", name, "--no-device")
    check(("W0904" in said) == (name == "pooled"), "data that a model does not use are told")

# Before the data: what the prior says, a data set from it that the program reads, and whether the program is right for such data
said = said_by("./varying", "prior", "homes.csv", "--seed", "1", "-o", "prior", "--overwrite")
check("a_rep" not in said and "mu " in said, "the summary is of unknowns", said)
run("./varying", "simulate", "--from", "prior", "homes.csv", "--seed", "1", "-o", "made", "-q")
run("./varying", "made_1.json", "--seed", "1", "--samples", "100", "-q")
said = said_by("./varying", "calibrate", "homes.csv", "--sims", "60", "--seed", "1", "-q")
check("calibration passed" in said, "counties pass", said)

# Monday: names from the table, the missing value told, the summary with labels
said = said_by("./varying", "homes.csv", "--seed", "1", "-o", "varying", "--log-lik", "--predict", "--log-prior", "--format", "both",
           "--samples", "2000")
check("J: 20, the levels of county, from Aitkin to Lac Qui Parle" in said, "the levels are told", said)
check("1 of 300 values of log_radon" in said, "the missing value is told", said)
check("a[Blue Earth]" in said, "counties have their names in the summary", said)
run("./pooled", "homes.csv", "--seed", "1", "-o", "pooled", "--log-lik", "--samples", "2000", "-q")
check("already" in said_by("./pooled", "homes.csv", "-o", "pooled", status=2), "older draws stay")

# Tuesday: the report, what is wrong, and two models compared
run("./varying", "report", "varying", "-o", "varying.html", "--data", "homes.csv")
with open("varying.html") as f: page = f.read()
check("<svg" in page and "varying" in page, "the report has figures")
check("No warnings" in said_by(gmc, "diagnose", "varying"), "nothing is wrong with the draws")
said = said_by(gmc, "compare", "pooled", "varying")
order = [line.split()[0] for line in said.splitlines() if line.split() and line.split()[0] in ("pooled", "varying")]
check(order[:1] == ["varying"], "counties that vary predict better", said)

# Wednesday: one file for ArviZ; cross-validation and prior sensitivity there
inference = az.from_netcdf("varying.nc")
check(list(inference.posterior.a.coords["J"].values) == sorted(COUNTIES), "coordinates are the names of counties")
low, high = np.quantile(inference.posterior.a.values, [0.05, 0.95], axis=(0, 1))
inside = sum(l < effect[c] < h for c, l, h in zip(sorted(COUNTIES), low, high))
check(inside >= 16, "90 % intervals have 16 of 20 effects at least", inside)
loo, reff = az.loo(inference), said_by(gmc, "loo", "varying")
check(("%.1f" % loo.elpd_loo) in reff and (loo.pareto_k.values < 0.7).all(), "az.loo of the houses that are known is gmc's", loo, reff)
total, terms = inference.sample_stats.lprior, inference.log_likelihood.log_radon
check(np.allclose(sum(inference.log_prior.data_vars.values()), total, rtol=1e-12), "each unknown has its log prior")
check(np.allclose(total + terms.sum(list(terms.dims[2:])), inference.sample_stats.lp, atol=1e-8),
      "log prior and log-likelihoods make the log density")

# Thursday night: killed three times
whole = ["./varying", "homes.csv", "--seed", "7", "-q", "--no-summary", "--samples", "4000"]
run(*whole, "-o", "quiet")
draw, kills = random.Random(3), 0
for attempt in range(4):
    night = subprocess.Popen([*whole, "-o", "night", "--checkpoint=0", "--resume"], stderr=subprocess.PIPE)
    if attempt == 3:
        night.wait()
        break
    time.sleep(0.05 + 0.25 * draw.random())
    kills += night.poll() is None
    night.send_signal(signal.SIGKILL)
    night.wait()
check(night.returncode == 0 and kills > 0, "the night ends", night.returncode, kills, night.stderr.read().decode())
for chain in range(1, 5):
    check(rows("night_%d.csv" % chain) == rows("quiet_%d.csv" % chain), "chain %d of the night has the draws of a quiet one" % chain)
run("./varying", "homes.csv", "--seed", "8", "-q", "-o", "enough", "--until-ess", "1000")

# Friday: a county without houses among the draws. The law of its effect has the variances of mu and of the counties.
with open("homes.csv") as f: lines = [line for line in f.read().splitlines() if ",NA" not in line]
for name, cook in (("elsewhere.csv", False), ("cook.csv", True)):
    with open(name, "w") as f: f.write("\n".join(lines[:1] + [line for line in lines[1:] if line.startswith("Cook,") == cook]) + "\n")
run("./varying", "elsewhere.csv", "--seed", "9", "-q", "--no-summary", "-o", "elsewhere", "--samples", "4000")
said = said_by("./varying", "predict", "elsewhere", "--new", "cook.csv", status=2)
check("with --new-levels draw" in said, "a county that the fit does not have", said)
said = said_by("./varying", "predict", "elsewhere", "--new", "cook.csv", "--new-levels", "draw", "-o", "cook", "--params", "all", "-q")
later = az.from_cmdstan(sorted(glob.glob("cook_[0-9].csv"))).posterior
effect, spread = later.a.values[:, :, -1], float(later.mu.var() + (later.tau**2).mean())
check(abs(effect.var() / spread - 1) < 0.1, "its effect varies as those of counties and mu", effect.var(), spread)
houses = np.array([[float(x) for x in line.split(",")[1:]] for line in lines if line.startswith("Cook,")])
z = (houses[:, 1] - later.log_radon_rep.values.mean((0, 1))) / later.log_radon_rep.values.std((0, 1))
check("elpd" in said and (np.abs(z) < 4).all(), "its houses are where they are predicted", z, said)

# Friday night: the same draws once more
check("the draws are those of the run" in said_by("./varying", "rerun", "quiet_run.json", "--no-summary"),
      "the record makes the draws again")
with open("homes.csv", "a") as f: f.write("Aitkin,1,0.5\n")
run("./varying", "rerun", "quiet_run.json", "--no-summary", "-o", "other", status=2)
sys.exit(failures() > 0)
