"""Effective draws of a scale or a location with and without group moves (docs/conditionals.md, section 7), 4 chains of 5000 draws by
--method gibbs on one core: time, effective size of the scale or location, and of what mixes worst.

    scale_moves.py [GMC [NAME...]]        a NAME is a part of a model's name
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

from counts import poisson

GMC = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/gmc")
random.seed(7)
J, EACH, T, P, N = 40, 5, 60, 30, 60


g = [1 + i // EACH for i in range(J * EACH)]
u = [random.gauss(0, 0.4) for _ in range(J)]
counts = {"J": J, "N": J * EACH, "g": g, "k": [int(random.random() < 1 / (1 + math.exp(-0.3 - u[a - 1]))) for a in g],
          "n": [poisson(random, math.exp(0.5 + 0.5 * u[a - 1])) for a in g]}
level, walk = 5.0, []
for _ in range(T):
    level += random.gauss(0, 0.15)
    walk.append(level + random.gauss(0, 0.8))
X = [[random.gauss(0, 1) for _ in range(P)] for _ in range(N)]
rows = {"N": N, "p": P, "X": X, "y": [2 * r[0] - 1.5 * r[1] + random.gauss(0, 1) for r in X]}

effects, field = [random.gauss(0, 0.5) for _ in range(J)], [random.gauss(0, 0.5) for _ in range(J)]
both = [(random.randint(1, J), random.randint(1, J)) for _ in range(1000)]
crossed = {"J": J, "N": 1000, "g": [a for a, _ in both], "h": [b for _, b in both],
           "n": [poisson(random, math.exp(0.5 + effects[a - 1] + field[b - 1])) for a, b in both]}
above = [random.gauss(0.5, 0.4) for _ in range(8)]
levels = {"K": 8, "J": 80, "N": 160, "of": [1 + j % 8 for j in range(80)], "g": [1 + i % 80 for i in range(160)],
          "n": [poisson(random, math.exp(above[i % 8] + random.gauss(0, 0.3))) for i in range(160)]}
times = [1.0] * T
for t in range(1, T):
    times[t] = 1 + 0.8 * (times[t - 1] - 1) + random.gauss(0, 0.3)
hours = {"T": T, "y": [random.gammavariate(2, math.exp(x) / 2) for x in times]}

scores = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(100)]
loads = [(0.3, 0.0), (1.0, 0.0), (0.8, 0.0), (0.0, 0.3), (0.0, 1.0), (0.0, 0.8)]
indicators = {"N": 100, "y": [[a * f + b * h + random.gauss(0, 1) for a, b in loads] for f, h in scores]}

side = 10
edges = [(i * side + j, i * side + j + k) for i in range(side) for j in range(side)
         for k in ((1,) if j < side - 1 else ()) + ((side,) if i < side - 1 else ())]
smooth = [random.gauss(0, 1) for _ in range(side * side)]
for _ in range(3):
    near = [[smooth[b if a == i else a] for a, b in edges if i in (a, b)] for i in range(side * side)]
    smooth = [(2 * v + sum(n)) / (2 + len(n)) for v, n in zip(smooth, near)]
places = {"N": side * side, "E": len(edges), "a": [1 + a for a, _ in edges], "b": [1 + b for _, b in edges],
          "n": [poisson(random, 10 * math.exp(2 * v + random.gauss(0, 0.3))) for v in smooth]}

loads = [[0.5, 0], [0.1, 0.5], [0.9, -0.6], [0.7, 0.8], [-0.8, 0.7], [0.6, -0.9], [0.2, 0.8], [0.9, 0.1]]
scores = [[random.gauss(0, 1) for _ in range(2)] for _ in range(200)]
responses = {"N": 200, "P": 8, "K": 2, "y": [[sum(a * b for a, b in zip(l, f)) + random.gauss(0, 0.5) for l in loads] for f in scores]}

#  name, model, data, what switches the group moves off, what is looked at
MODELS = [
    ("eight schools", "data { int J; vector[J] y, sd; } prior { a ~ normal(0, 5); tau ~ half_cauchy(0, 5); for (j in 1:J) u[j] ~ normal(a, "
                      "tau); } likelihood { for (j in 1:J) y[j] ~ normal(u[j], sd[j]); }",
     {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sd": [15, 10, 16, 11, 9, 11, 10, 18]}, "tau by gibbs(group_move = off);", "tau"),
    ("logistic, 40 groups of 5",
     "data { int J, N; int<lower=1, upper=J> g[N]; int<lower=0, upper=1> k[N]; } prior { a ~ normal(0, 2); tau ~ half_cauchy(0, 1); for (j "
     "in 1:J) u[j] ~ normal(a, tau); }"
     " likelihood { for (i in 1:N) k[i] ~ bernoulli_logit(u[g[i]]); }", counts, "tau by gibbs(group_move = off);", "tau"),
    ("Poisson, 40 groups of 5",
     "data { int J, N; int<lower=1, upper=J> g[N]; int<lower=0> n[N]; } prior { a ~ normal(0, 2); tau ~ half_normal(0, 1); for (j in 1:J) "
     "u[j] ~ normal(a, tau); }"
     " likelihood { for (i in 1:N) n[i] ~ poisson(exp(u[g[i]])); }", counts, "tau by gibbs(group_move = off);", "tau"),
    ("local level, 60 times",
     "data { int T; vector[T] y; } prior { x[1] ~ normal(0, 3); tau ~ half_cauchy(0, 1); for (t in 2:T) x[t] ~ normal(x[t - 1], tau); s ~ "
     "half_cauchy(0, 1); } likelihood { for (t in 1:T) y[t] ~ normal(x[t], s); }",
     {"T": T, "y": walk}, "tau by gibbs(group_move = off);", "tau"),
    ("Poisson, a field beside effects",
     "data { int N, E, a[E], b[E], n[N]; } prior { m ~ normal(0, 5); t ~ half_normal(0, 1); s ~ half_normal(0, 1); for (i in 1:N) u[i] ~ "
     "normal(0, 10); for (e in 1:E) target += -(N - 1.0) / E * log(t) - 0.5 * square((u[a[e]] - u[b[e]]) / t);"
     " for (i in 1:N) v[i] ~ normal(0, s); } likelihood { for (i in 1:N) n[i] ~ poisson(exp(m + u[i] + v[i])); }", places,
     "v by gibbs(group_move = off);", "s"),
    ("two factors, 8 x 200 responses",
     "data { int N, P, K; matrix[N, P] y; } prior { for (k in 1:K) d[k] ~ half_normal(0, 1); for (j in 1:P, k in 1:K) l[j, k] ~ normal(0, "
     "1); for (i in 1:N, k in 1:K) f[i, k] ~ normal(0, 1); for (j in 1:P) s[j] ~ half_normal(0, 1); }"
     " likelihood { for (i in 1:N, j in 1:P) y[i, j] ~ normal(sum(k in 1:K, (j == k ? d[k] : j > k ? l[j, k] : 0) * f[i, k]), s[j]); }",
     responses, "f by gibbs(group_move = off);", "d[2]"),
    ("horseshoe, 60 rows, 30 columns",
     "data { int N, p; matrix[N, p] X; vector[N] y; } prior { tau ~ half_cauchy(0, 1); for (j in 1:p) l[j] ~ half_cauchy(0, 1); for (j in "
     "1:p) b[j] ~ normal(0, tau * l[j]); s ~ half_cauchy(0, 1); }"
     " likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b, s); }", rows, "tau by gibbs(group_move = off); l by gibbs(group_move = off);",
     "tau"),
    ("Poisson, 40 groups of 5, mean",
     "data { int J, N; int<lower=1, upper=J> g[N]; int<lower=0> n[N]; } prior { a ~ normal(0, 2); tau ~ half_normal(0, 1); for (j in 1:J) "
     "u[j] ~ normal(a, tau); }"
     " likelihood { for (i in 1:N) n[i] ~ poisson(exp(u[g[i]])); }", counts, "a by gibbs(group_move = off);", "a"),
    ("Poisson, 40 x 40 effects crossed",
     "data { int J, N; int<lower=1, upper=J> g[N], h[N]; int<lower=0> n[N]; } prior { a ~ normal(0, 2); s ~ half_normal(0, 1); t ~ "
     "half_normal(0, 1); for (j in 1:J) u[j] ~ normal(0, s); for (j in 1:J) v[j] ~ normal(0, t); }"
     " likelihood { for (i in 1:N) n[i] ~ poisson_log(a + u[g[i]] + v[h[i]]); }", crossed,
     "a by gibbs(group_move = off); u by gibbs(group_move = off);", "a"),
    ("Poisson, 3 levels, 8 of 10 of 2",
     "data { int K, J, N; int<lower=1, upper=K> of[J]; int<lower=1, upper=J> g[N]; int<lower=0> n[N]; } prior { m ~ normal(0, 2); s ~ "
     "half_normal(0, 1); tau ~ half_normal(0, 1); for (k in 1:K) mu[k] ~ normal(m, s); for (j in 1:J) theta[j] ~ normal(mu[of[j]], tau); }"
     " likelihood { for (i in 1:N) n[i] ~ poisson_log(theta[g[i]]); }", levels, "theta by gibbs(group_move = off);", "m"),
    ("gamma about an autoregression",
     "data { int T; vector<lower=0>[T] y; } prior { m ~ normal(0, 2); r ~ uniform(-1, 1); s ~ half_normal(0, 1); x[1] ~ normal(m, 1); for "
     "(t in 2:T) x[t] ~ normal(m + r * (x[t - 1] - m), s); }"
     " likelihood { for (t in 1:T) y[t] ~ gamma(2, 2 * exp(-x[t])); }", hours, "x by gibbs(group_move = off);", "m"),
    ("signs of two factors",
     "data { int N; matrix[N, 6] y; } prior { s ~ half_normal(0, 1); first ~ half_normal(0, 1); second ~ half_normal(0, 1); for (j in 1:2) "
     "a[j] ~ normal(0, 1); for (j in 1:2) b[j] ~ normal(0, 1);"
     " for (i in 1:N) f[i] ~ normal(0, 1); for (i in 1:N) h[i] ~ normal(0, 1); } likelihood { for (i in 1:N) y[i, 1] ~ normal(first * "
     "f[i], s); for (i in 1:N, j in 1:2) y[i, 1 + j] ~ normal(a[j] * f[i], s);"
     " for (i in 1:N) y[i, 4] ~ normal(second * h[i], s); for (i in 1:N, j in 1:2) y[i, 4 + j] ~ normal(b[j] * h[i], s); }",
     indicators, "f by gibbs(group_move = off); h by gibbs(group_move = off);", "first"),
]
CHOSEN = sys.argv[2:]

print("%-32s %-8s %8s %10s %10s" % ("model", "orbits", "s", "effective", "least"))
with tempfile.TemporaryDirectory() as folder:
    for name, model, data, off, looked in MODELS:
        if CHOSEN and not any(c in name for c in CHOSEN):
            continue
        for moves in (False, True):
            at = os.path.join(folder, "m")
            with open(at + ".gm", "w") as f:
                f.write("model m\n" + model + ("" if moves else "\ninfer { %s }" % off) + "\n")
            with open(at + ".json", "w") as f:
                json.dump(data, f)
            subprocess.run([GMC, "-q", "--method", "gibbs", at + ".gm", "-o", at], check=True)
            text = subprocess.run([at, at + ".json", "--seed", "1", "--samples", "5000", "--threads", "1", "--summary", "all"], check=True,
                                  capture_output=True, text=True)
            lines = (text.stdout + text.stderr).splitlines()
            seconds = next(line.split(" in ")[1].split(" s")[0] for line in lines if " sweeps of " in line)
            table = {r[0]: float(r[7]) for r in map(str.split, lines) if len(r) == 10 and r[0] not in ("mean", "lp__")
                     and r[7].replace(".", "").isdigit()}
            print("%-32s %-8s %8s %10.0f %10.0f" % (name, "on" if moves else "off", seconds, table[looked], min(table.values())),
                  flush=True)
