"""Complete and quasi-complete separation: whether the summary warns of it agrees with linear programming on random small data sets, with
flat and vague priors. With a proper prior of the usual size, or without separation, it never does.

    separation.py GMC FOLDER"""
import json
import os
import sys

import numpy as np
from scipy.optimize import linprog

from programs import check, failures, program, run

sys.argv[1] = os.path.abspath(sys.argv[1])
os.chdir(sys.argv[2])
LOGIT = """data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { vector[p] b ~ PRIOR; }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * b); }
"""
PROBIT = LOGIT.replace("bernoulli_logit(X[i] * b)", "bernoulli(Phi(X[i] * b))")
COUNTS = """data { int N, J; int<lower=1, upper=J> g[N]; int<lower=0> k[N]; vector[N] u; }
prior { a ~ normal(0, 5); vector[J] b ~ flat(); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) k[i] ~ poisson_log(b[g[i]]); for (i in 1:N) u[i] ~ normal(a, s); }
"""
ORDERED = """data { int N; int<lower=1, upper=3> y[N]; vector[N] x; vector[N] d; }
prior { real b ~ flat(); real e ~ flat(); ordered[2] c ~ normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ ordered_logistic(b * x[i] + e * d[i], c); }
"""
GROUPS = """data { int N, J; int<lower=1, upper=J> g[N]; int<lower=0, upper=1> y[N]; }
prior { mu ~ normal(0, 2); tau ~ half_normal(0, 2); for (j in 1:J) a[j] ~ normal(mu, tau); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a[g[i]]); }
"""
WARNING = "Warning: the model separates outcomes"


def said_by(fit, data, seed):
    with open("data.json", "w") as f: json.dump(data, f)
    return run(fit, "data.json", "--seed", str(seed), "-q", "--summary", "4").stdout


def separated(X, y):
    """Rows that linear programming can make certain without another getting less likely"""
    G = X * (2 * y - 1)[:, None]
    best = linprog(-G.sum(0), A_ub=-G, b_ub=np.zeros(len(y)), bounds=[(-1, 1)] * X.shape[1], method="highs")
    return G @ best.x > 1e-7


def random_data(rng):
    while True:
        n = int(rng.integers(10, 40))
        columns = [np.ones(n)]
        for _ in range(int(rng.integers(1, 4))):
            kind = rng.integers(3)
            columns.append(rng.normal(size=n).round(3) if kind == 0 else (rng.random(n) < 0.25).astype(float) if kind == 1 else
                           rng.integers(0, 4, n).astype(float))
        X = np.stack(columns, 1)
        y = (rng.random(n) < 1 / (1 + np.exp(-X @ (1.5 * rng.normal(size=X.shape[1]))))).astype(int)
        if np.linalg.matrix_rank(X) == X.shape[1] and 0 < y.sum() < n: return X, y


for name, model, prior, sets in (("logit", LOGIT, "flat()", 24), ("probit", PROBIT, "flat()", 16), ("vague", LOGIT, "normal(0, 1000)", 12),
                                 ("proper", LOGIT, "normal(0, 2.5)", 16)):
    fit, rng, count = program(name, model.replace("PRIOR", prior)), np.random.default_rng(len(name)), {True: 0, False: 0}
    for k in range(sets):
        X, y = random_data(rng)
        truth = separated(X, y)
        said = said_by(fit, {"N": len(y), "p": X.shape[1], "X": X.tolist(), "y": y.tolist()}, k)
        warned = WARNING in said or "every observed value of y has a probability above 0.99" in said
        check(warned == (truth.any() and name != "proper") and not (warned and "Run longer" in said),
              "%s, set %d: %d of %d values can be separated" % (name, k, truth.sum(), len(y)), said.split("\n\n")[-1])
        if warned and WARNING in said:
            check("%d of %d observed values" % (truth.sum(), len(y)) in said, "and so many are said", said.split("\n\n")[-1])
        count[bool(truth.any())] += 1
    check(min(count.values()) >= 3, "sets of both kinds", count)

# The column is named, whatever its unit: a dummy of which all rows are 1.
rng = np.random.default_rng(7)
x, d = rng.normal(size=60), np.repeat([0, 1], [50, 10])
y = np.where(d == 1, 1, rng.random(60) < 1 / (1 + np.exp(-x))).astype(int)
for unit in (1, 1e5, 1e-5):
    said = said_by("./logit", {"N": 60, "p": 3, "X": np.stack([np.ones(60), x * 1e3, d * unit], 1).tolist(), "y": y.tolist()}, 1)
    check("as b[3] grows, 10 of 60 observed values become certain (the first: y[51])" in said, "a dummy in units of %g" % unit, said)
said = said_by("./logit", {"N": 60, "p": 3, "X": np.stack([np.ones(60), x, -1.0 * d], 1).tolist(), "y": y.tolist()}, 1)
check("as -b[3] grows, 10 of 60" in said, "downwards", said)

# Other laws: a group without counts beside another response, a dummy of ordered categories; and groups whose effects have a law.
g = np.repeat([1, 2, 3], 10)
counts = {"N": 30, "J": 3, "g": g.tolist(), "k": np.where(g == 2, 0, 1 + rng.poisson(2, 30)).tolist(), "u": rng.normal(size=30).tolist()}
said = said_by(program("counts", COUNTS), counts, 1)
check("as -b[2] grows, 10 of 60 observed values" in said, "counts", said)
counts["k"][12] = 1
check(WARNING not in said_by("./counts", counts, 1), "counts that are not all 0")
category = np.where(d == 1, 3, rng.integers(1, 4, 60))
said = said_by(program("ordered", ORDERED), {"N": 60, "y": category.tolist(), "x": x.tolist(), "d": d.tolist()}, 1)
check("as e grows, 10 of 60 observed values" in said, "ordered categories", said)
category[55] = 2
check(WARNING not in said_by("./ordered", {"N": 60, "y": category.tolist(), "x": x.tolist(), "d": d.tolist()}, 1), "not all the highest")
groups = program("groups", GROUPS)
for seed in range(6):
    effect = 2 * rng.normal(size=12)
    g = np.repeat(np.arange(1, 13), 6)
    y = (rng.random(72) < 1 / (1 + np.exp(-effect[g - 1]))).astype(int)
    said = said_by(groups, {"N": 72, "J": 12, "g": g.tolist(), "y": y.tolist()}, seed)
    alike = sum(len(set(y[g == j])) == 1 for j in range(1, 13))
    check(WARNING not in said, "effects with a law, %d groups of 12 all alike" % alike, said.split("\n\n")[-1])
sys.exit(failures() > 0)
