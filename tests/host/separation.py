"""Complete and quasi-complete separation: whether the summary warns of it agrees with linear programming on random small data sets, with
flat and vague priors. With a proper prior of the usual size, or without separation, it never does.

    separation.py GMC FOLDER"""
import json
import os
import re
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
LEVELS = """data { int N, J; int<lower=1, upper=J> g[N]; int<lower=0, upper=1> y[N]; }
prior { PRIOR }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(ETA); }
"""
CATEGORIES = """data { int N; vector[N] x; int<lower=1, upper=3> y[N]; }
prior { vector[3] a; vector[3] b; a[1] = 0; b[1] = 0; for (k in 2:3) { a[k] ~ normal(0, 1000); b[k] ~ normal(0, 1000); } }
likelihood { for (i in 1:N) y[i] ~ categorical_logit(a + b * x[i]); }
"""
LINE = """data { int N; vector[N] x; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, SCALE); b ~ normal(0, SCALE); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a + b * x[i]); }
"""
WARNING = "Warning: the model separates outcomes"


# Where NUTS follows an improper posterior, its trees double until they may no more: most of a run's time.
SHORT = ("--warmup", "300", "--samples", "300", "--max-treedepth", "7")


def said_by(fit, data, seed, *more):
    with open("data.json", "w") as f: json.dump(data, f)
    return run(fit, "data.json", "--seed", str(seed), "-q", "--summary", "4", *more).stdout


def separated(X, y):
    """Rows that linear programming can make certain without another getting less likely: one after the other, and then all together, since
    the sum of such directions is one"""
    G = X * (2 * y - 1)[:, None]
    return np.array([-linprog(-g, A_ub=-G, b_ub=np.zeros(len(y)), bounds=[(-1, 1)] * X.shape[1], method="highs").fun > 1e-7 for g in G])


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
    most = {True: 0, False: 0}
    for k in range(sets):
        X, y = random_data(rng)
        truth = separated(X, y)
        said = said_by(fit, {"N": len(y), "p": X.shape[1], "X": X.tolist(), "y": y.tolist()}, k)
        warned = WARNING in said or "every observed value of y has a probability above 0.99" in said
        check(warned == (truth.any() and name != "proper") and not (warned and "Run longer" in said),
              "%s, set %d: %d of %d values can be separated" % (name, k, truth.sum(), len(y)), said.split("\n\n")[-1])
        if warned and WARNING in said:  # along the direction that it names; values that were not certain at the ends of chains stay there
            found = re.search(r"(\d+) of %d observed values" % len(y), said)
            check(found and 0 < int(found.group(1)) <= truth.sum(), "and no more are said", said.split("\n\n")[-1])
            most[int(found.group(1)) == truth.sum()] += 1
        count[bool(truth.any())] += 1
    check(min(count.values()) >= 3, "sets of both kinds", count)
    check(most[True] >= 3 * most[False], "mostly all of them", most)

# Programs that run once or twice compile for longer than they run.
os.environ["CC"] = os.environ["CC"].replace("cc_quick", "cc_brief")

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
said = said_by(program("ordered", ORDERED), {"N": 60, "y": category.tolist(), "x": x.tolist(), "d": d.tolist()}, 1, *SHORT)
check("as e grows, 10 of 60 observed values" in said, "ordered categories", said)
category[55] = 2
said = said_by("./ordered", {"N": 60, "y": category.tolist(), "x": x.tolist(), "d": d.tolist()}, 1, *SHORT)
check(WARNING not in said, "not all the highest", said)
groups = program("groups", GROUPS)
for seed in range(6):
    effect = 2 * rng.normal(size=12)
    g = np.repeat(np.arange(1, 13), 6)
    y = (rng.random(72) < 1 / (1 + np.exp(-effect[g - 1]))).astype(int)
    said = said_by(groups, {"N": 72, "J": 12, "g": g.tolist(), "y": y.tolist()}, seed)
    alike = sum(len(set(y[g == j])) == 1 for j in range(1, 13))
    check(WARNING not in said, "effects with a law, %d groups of 12 all alike" % alike, said.split("\n\n")[-1])

# Arrays of which only some elements are drawn: the drawn ones are directions, and those that follow from them move along.
g = [1 + i % 3 for i in range(30)]
mixed = [i // 3 % 2 for i in range(30)]
RISES = "Warning: the model separates outcomes: as %s, %d of 30 observed values become certain (the first: y[%d])"
for name, prior, eta, certain, expected in (
        ("first is 0", "m ~ normal(0, 1000); b[1] = 0; for (j in 2:J) b[j] ~ normal(0, 1000);", "m + b[g[i]]", {3: 1},
         ("b[3] grows", 10, 3)),
        ("middle is 0", "b[1] ~ normal(0, 1000); b[2] = 0; b[3] ~ normal(0, 1000);", "b[g[i]]", {3: 0}, ("-b[3] grows", 10, 3)),
        ("the one that is 0", "b[1] ~ normal(0, 1000); b[2] = 0; b[3] ~ normal(0, 1000);", "b[g[i]]", {2: 1}, None),
        ("no first", "m ~ normal(0, 1000); for (j in 2:J) b[j] ~ normal(0, 1000);", "m + (g[i] > 1 ? b[g[i]] : 0)", {2: 1},
         ("b[2] grows", 10, 2)),
        ("follows, both", "for (j in 2:J) b[j] ~ normal(0, 1000); b[1] = -b[2];", "b[g[i]]", {2: 1, 1: 0}, ("b[2] grows", 20, 1)),
        ("follows, one", "for (j in 2:J) b[j] ~ normal(0, 1000); b[1] = -b[2];", "b[g[i]]", {2: 1}, None),
        ("sum of 0", "m ~ normal(0, 1000); sum_to_zero_vector[J] b; for (j in 1:J) b[j] ~ normal(0, 1000);", "m + b[g[i]]", {3: 1},
         ("m, -b[1], -b[2] and 1 other grow", 10, 3)),
        ("sum of 0 without m", "sum_to_zero_vector[J] b; for (j in 1:J) b[j] ~ normal(0, 1000);", "b[g[i]]", {3: 1}, None)):
    y = [certain.get(j, mixed[i]) for i, j in enumerate(g)]
    said = said_by(program("levels", LEVELS.replace("PRIOR", prior).replace("ETA", eta)), {"N": 30, "J": 3, "g": g, "y": y}, 1)
    check(RISES % expected in said if expected else WARNING not in said, "some elements are drawn: " + name, said)

# Of two sums of effects only what is needed is named, not what changes no sum: b[g] + c and u[h] - c.
crossed = LEVELS.replace("g[N];", "g[N], h[N];").replace("PRIOR", "b ~ normal(0, 1000); for (j in 1:J) u[j] ~ normal(0, 1);")
crossed = program("crossed", crossed.replace("b ~ normal", "vector[3] b ~ normal").replace("ETA", "b[g[i]] + u[h[i]]"))
y = [0 if j == 3 else mixed[i] for i, j in enumerate(g)]
said = said_by(crossed, {"N": 30, "J": 6, "g": g, "h": [1 + i // 5 for i in range(30)], "y": y}, 1)
check(RISES % ("-b[3] grows", 10, 3) in said, "what changes nothing is not named", said)

# A prior that is narrow keeps the coefficients finite, however steep the predictor: a longer run does help. A vague one does not.
for scale in (1, 2.5, 1000):
    line = program("line", LINE.replace("SCALE", str(scale)))
    for high, low in ((10, 0), (10, 5)):
        said = said_by(line, {"N": high + low, "x": [100] * high + [-100] * low, "y": [1] * high + [0] * low}, 1)
        check(("a longer run does not help" in said) == (scale == 1000), "normal(0, %g), %d and %d" % (scale, high, low), said)

# Of categories no direction is looked for; what is said of R-hat does not contradict that.
x = np.round(rng.normal(size=30), 2)
said = said_by(program("categories", CATEGORIES), {"N": 30, "x": x.tolist(), "y": [1 if v < 0 else 2 + i % 2 for i, v in enumerate(x)]}, 1)
check(WARNING in said or "several modes, outcomes may be separated, or the model" in said, "categories", said)
sys.exit(failures() > 0)
