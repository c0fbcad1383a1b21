"""Moments that are computed while chains go on, beside those of stored draws.

    moments.py GMC FOLDER"""
import csv
import os
import random
import subprocess
import sys

import numpy as np

from programs import by_chain, check, failures

gmc, work = sys.argv[1:3]
os.chdir(work)
MODEL = """data { int N; vector[N] y; int<lower=0> k[N]; }
prior { mu ~ normal(0, 10); s ~ half_normal(0, 5); t ~ half_normal(0, 2); vector[2] b ~ normal(0, 1); }
latent { for (i in 1:N) z[i] ~ normal(mu, t); for (i in 1:N) n[i] ~ poisson(3); }
likelihood { for (i in 1:N) y[i] ~ normal(z[i], s); for (i in 1:N) k[i] ~ binomial(n[i], 0.5); }
predict { for (i in 1:N) e[i] = exp(0.1 * z[i]); }
"""


def fit(*arguments, of="./fit"):
    again = ["--overwrite"] if "-o" in arguments else []
    return subprocess.run([of, "--seed", "1", *again, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def moments(name):
    with open(name + "_moments.csv") as f: return {r["variable"]: r for r in csv.DictReader(f)}


with open("model.gm", "w") as f: f.write(MODEL)
subprocess.run([gmc, "-q", "--no-device", "model.gm", "-o", "fit"], check=True)
random.seed(1)
with open("d.csv", "w") as f: f.write("y,k\n" + "".join("%r,%d\n" % (random.gauss(1, 2), random.randrange(4)) for _ in range(30)))
NAMES = "z,n,e,mu,b,log_lik_y"
size = {"samples": 410, "each": 20}                               # 20 whole batches, and 10 draws that are in none
for threads in ("1", "2"):
    done = fit("d.csv", "--log-lik", "--samples", "410", "--thin", "2", "--moments", NAMES, "--params", NAMES, "--threads", threads, "-o",
               "both" + threads, "-q")
    check(done.returncode == 0, "a run with both", done)
check(open("both1_moments.csv").read() == open("both2_moments.csv").read(), "moments do not depend on threads")
drawn, said = by_chain("both1"), moments("both1")
check(len(said) == 4 * 30 + 3 and set(said) <= set(drawn), "all elements are there", len(said))
worst = dict.fromkeys(("mean", "sd", "mcse", "ess"), 0.0)
for name, row in said.items():
    x = drawn[name]
    batches = x.mean(0)[:size["samples"] // size["each"] * size["each"]].reshape(-1, size["each"]).mean(1)
    right = {"mean": x.mean(), "sd": x.std(ddof=1), "mcse": batches.std(ddof=1) / np.sqrt(len(batches))}
    right["ess"] = (right["sd"] / right["mcse"])**2
    for key in ("mean", "sd", "mcse"): worst[key] = max(worst[key], abs(float(row[key]) - right[key]) / right["sd"])
    worst["ess"] = max(worst["ess"], abs(float(row["ess"]) / right["ess"] - 1))
for key, most in (("mean", 1e-12), ("sd", 1e-12), ("mcse", 1e-12), ("ess", 1e-10)):
    check(worst[key] <= most, key + " is that of stored draws", worst[key])

# Draws that are not named by --params are not stored.
done = fit("d.csv", "--samples", "410", "--moments", "z,mu", "-o", "few", "--log-lik", "--moments", "z,mu,log_lik_y")
names = set(by_chain("few"))
check("mu" not in names and "s" in names and not any(n.startswith(("z.", "log_lik_y")) for n in names),
      "what has moments is not stored", names)
check("moments of 1640 draws" in done.stdout.decode() and "27 more of z" in done.stdout.decode(), "the first ones are printed", done)
for wanted, words in (("nothing", "no such quantity"), ("y_rep", "--predict only"),
                      ("y", "draws of its missing values are stored by --params all")):
    done = fit("d.csv", "--moments", wanted, "-q")
    check(done.returncode == 2 and words in done.stderr.decode(), "--moments " + wanted, done)
done = fit("map", "d.csv", "--moments", "z", "-q")
check(done.returncode == 2 and b"--moments is for draws" in done.stderr, "not for modes", done)

# Memory: less than 40 bytes an element.
with open("large.gm", "w") as f: f.write("data { int N; }\nlatent { for (i in 1:N) z[i] ~ normal(0, 1); }\nprior { m ~ normal(0, 1); }\n")
subprocess.run([gmc, "-q", "--no-device", "--method", "gibbs", "large.gm", "-o", "large"], check=True)


def peak(*arguments):
    """Bytes that the program has had at most."""
    run = subprocess.Popen(["./large", "--seed", "1", "-q", "--chains", "2", "--warmup", "1", "--samples", "2", "N=2000000", *arguments],
                           stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(run.pid, 0)
    check(status == 0, "a large run", status)
    return 1024 * used.ru_maxrss


each = (peak("--moments", "z") - peak()) / 2e6
check(20 < each < 40, "memory of an element", each)

# Of many quantities those that are shown, and some thousand others, are diagnosed; all on request.
for rows, all_of_them in (("5", False), ("all", True)):
    done = fit("N=12000", "--params", "all", "--samples", "20", "--warmup", "5", "--chains", "2", "-q", "--summary", rows, of="./large")
    out = done.stdout.decode()
    line = [s for s in out.splitlines() if s.startswith("R-hat and effective sample sizes are those of ")]
    check(len(line) == (0 if all_of_them else 1), "--summary %s says what is diagnosed" % rows, done.stderr, line)
    short = [s for s in out.splitlines() if "effective sample size is below" in s][0].split(" of ")[1].split()[0]
    check(int(short) == 12002 if all_of_them else 3500 < int(short) <= 5000, "--summary %s: how many" % rows, short)
    shown = [s.split() for s in out.splitlines() if s.startswith(("z[", "m ", "lp__"))]
    check(all(len(s) == 10 for s in shown), "--summary %s: whole rows" % rows, out[:900])
sys.exit(failures() > 0)
