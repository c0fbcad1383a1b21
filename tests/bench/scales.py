"""Effective draws of a scale with and without scale moves, and draws with a joint normal integrated out (docs/conditionals.md, section 7),
4 chains of 5000 draws by --method gibbs on one core: processor time, effective size of the scale, of what mixes worst, and of that a
second.

    scales.py [GMC] [NAME ...]       models whose name holds a NAME; without one all
"""
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile

from counts import poisson

GMC = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/gmc")
random.seed(7)
J, T, P, N = 40, 60, 30, 60
HERE = os.path.dirname(os.path.abspath(__file__))


u = [random.gauss(0, 0.4) for _ in range(J)]


def groups(each):
    g = [1 + i // each for i in range(J * each)]
    return {"J": J, "N": J * each, "g": g, "k": [int(random.random() < 1 / (1 + math.exp(-0.3 - u[a - 1]))) for a in g],
            "n": [poisson(random, math.exp(0.5 + 0.5 * u[a - 1])) for a in g]}


level, walk = 5.0, []
for _ in range(T):
    level += random.gauss(0, 0.15)
    walk.append(level + random.gauss(0, 0.8))
X = [[random.gauss(0, 1) for _ in range(P)] for _ in range(N)]
with open(os.path.join(HERE, "../../examples/hierarchical_normal/rats.json")) as f:
    weights = json.load(f)
with open(os.path.join(HERE, "../../examples/hierarchical_normal/hierarchical_normal.gm")) as f:
    rats = f.read()
rows = {"N": N, "p": P, "X": X, "y": [2 * r[0] - 1.5 * r[1] + random.gauss(0, 1) for r in X]}

LOGISTIC = ("data { int J, N; int<lower=1, upper=J> g[N]; int<lower=0, upper=1> k[N]; } prior { a ~ normal(0, 2); tau ~ half_cauchy(0, 1); "
            "for (j in 1:J) u[j] ~ normal(a, tau); } likelihood { for (i in 1:N) k[i] ~ bernoulli_logit(u[g[i]]); }")
POISSON = ("data { int J, N; int<lower=1, upper=J> g[N]; int<lower=0> n[N]; } prior { a ~ normal(0, 2); tau ~ half_normal(0, 1); for (j in "
           "1:J) u[j] ~ normal(a, tau); } likelihood { for (i in 1:N) n[i] ~ poisson(exp(u[g[i]])); }")
MODELS = [                               # the first scale is the one that is shown
    ("eight schools", "data { int J; vector[J] y, sd; } prior { a ~ normal(0, 5); tau ~ half_cauchy(0, 5); for (j in 1:J) u[j] ~ normal(a, "
                      "tau); } likelihood { for (j in 1:J) y[j] ~ normal(u[j], sd[j]); }",
     {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sd": [15, 10, 16, 11, 9, 11, 10, 18]}, ["tau"]),
    ("rats", rats, weights, ["sigma_beta", "sigma_alpha", "sigma"]),
    ("logistic, 40 groups of 5", LOGISTIC, groups(5), ["tau"]),
    ("logistic, 40 groups of 50", LOGISTIC, groups(50), ["tau"]),
    ("Poisson, 40 groups of 5", POISSON, groups(5), ["tau"]),
    ("Poisson, 40 groups of 50", POISSON, groups(50), ["tau"]),
    ("local level, 60 times",
     "data { int T; vector[T] y; } prior { x[1] ~ normal(0, 3); tau ~ half_cauchy(0, 1); for (t in 2:T) x[t] ~ normal(x[t - 1], tau); s ~ "
     "half_cauchy(0, 1); } likelihood { for (t in 1:T) y[t] ~ normal(x[t], s); }",
     {"T": T, "y": walk}, ["tau", "s"]),
    ("horseshoe, 60 rows, 30 columns",
     "data { int N, p; matrix[N, p] X; vector[N] y; } prior { tau ~ half_cauchy(0, 1); for (j in 1:p) l[j] ~ half_cauchy(0, 1); for (j in "
     "1:p) b[j] ~ normal(0, tau * l[j]); s ~ half_cauchy(0, 1); }"
     " likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b, s); }", rows, ["tau", "l", "s"]),
]


def seconds(command):
    def spent():
        u = resource.getrusage(resource.RUSAGE_CHILDREN)
        return u.ru_utime + u.ru_stime
    least = math.inf
    for _ in range(3):
        before = spent()
        subprocess.run(command, check=True, capture_output=True)
        least = min(least, spent() - before)
    return least


print("%-32s %-15s %8s %8s %8s %10s" % ("model", "drawn with", "s", "scale", "least", "a second"))
with tempfile.TemporaryDirectory() as folder:
    for name, model, data, scales in MODELS:
        if len(sys.argv) > 2 and not any(n in name for n in sys.argv[2:]):
            continue
        for label, off in (("neither", "group_move = off, joint = off"), ("orbits", "joint = off"), ("integrated out", "group_move = off"),
                           ("both", "")):
            at = os.path.join(folder, "m")
            with open(at + ".gm", "w") as f:
                f.write((model if model.startswith(("model", "//", "#")) else "model m\n" + model)
                        + ("\ninfer { %s }" % " ".join("%s by gibbs(%s);" % (s, off) for s in scales) if off else "") + "\n")
            with open(at + ".json", "w") as f:
                json.dump(data, f)
            subprocess.run([GMC, "-q", "--method", "gibbs", at + ".gm", "-o", at], check=True)
            run = [at, at + ".json", "--seed", "1", "--samples", "5000", "--threads", "1"]
            text = subprocess.run(run + ["--summary", "all"], check=True, capture_output=True, text=True)
            lines = (text.stdout + text.stderr).splitlines()
            table = {r[0]: float(r[7]) for r in map(str.split, lines) if len(r) == 10 and r[0] not in ("mean", "lp__")
                     and r[7].replace(".", "").isdigit()}
            s = seconds(run + ["--no-summary"])
            print("%-32s %-15s %8.3f %8.0f %8.0f %10.0f" % (name, label, s, table[scales[0]], min(table.values()), min(table.values()) / s),
                  flush=True)
