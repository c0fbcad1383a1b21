"""If this fails, `fit --new` does not compute with the new data what the draws say of them.

    new_data.py            needs numpy and scipy

Nothing is random: means, sds and logs of mean densities in the table are compared with those that NumPy makes of the draws in the files,
relative 1e-9. Replicates are drawn: the mean of 400 residuals in units of its standard error is beyond 6 once in 10^9 runs.
"""
import csv
import json
import subprocess
import sys

import numpy as np
from scipy import special

import program

MODEL = """data {
  int<lower=0> N, p, G;
  int<lower=2> K;
  matrix[N, p] X;
  int<lower=1, upper=G> g[N];
  real y[N];
  int<lower=1, upper=K> z[N];
  real scale;
  vector[p] centre;
}
prior {
  matrix[p, K] B ~ normal(0, 1);
  vector[p] c ~ normal(0, 1);
  for (k in 1:G) u[k] ~ normal(0, 1);
  real<lower=0> s ~ exponential(1);
  int<lower=0> n;
  n ~ poisson(3);
}
likelihood {
  for (i in 1:N) {
    mu[i] = u[g[i]] + scale * n + (X[i] - centre) * c;
    q[i] = softmax(X[i] * B);
    y[i] ~ normal(mu[i], s);
    z[i] ~ categorical_logit(X[i] * B);
  }
}
predict { total = sum(mu) + mean(X[, 1]); }
"""
PER_ROW = """data { int<lower=0> N; real y[N]; }
prior { for (i in 1:N) a[i] ~ normal(0, 1); s ~ exponential(1); }
likelihood { for (i in 1:N) y[i] ~ normal(a[i], s); }
"""
BOUNDED = """data { int<lower=0> N; real y[N]; }
prior { m ~ uniform(0, 2); }
likelihood { for (i in 1:N) y[i] ~ uniform(0, 1 + m); }
"""
EFFECTS = """data { int<lower=0> N; real y[N]; }
prior { m ~ normal(0, 1); }
latent { for (i in 1:N) u[i] ~ normal(m, 1); }
likelihood { for (i in 1:N) y[i] ~ student_t(4, u[i], 1); }
"""
ONE = """data { int<lower=0> N; vector[N] y; }
prior { m ~ normal(0, 1); }
likelihood { y ~ multi_normal(rep_vector(m, N), identity_matrix(N)); }
"""
NOTHING = """data { int<lower=0> N; real y[N]; }
prior { s ~ exponential(1); }
likelihood { for (i in 1:N) y[i] ~ normal(0, s); }
"""

rng = np.random.default_rng(11)
rows = []


def data(n, **more):
    X = rng.normal(size=(n, 2))
    return dict(X=X, y=rng.normal(size=n) + X[:, 0], z=rng.integers(1, 4, n), g=rng.integers(1, 4, n), **more)


def run(fit, *args):
    ran = subprocess.run([fit, *args, "--seed", "4", "--threads", "1", "-q"], capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def refused(what, fit, words, *args):
    status, said = run(fit, "--warmup", "20", "--samples", "10", "--no-summary", *args)
    rows.append((status == 2 and all(word in said for word in words), "refused: " + what, said.strip()[:300]))


with program.Workplace() as w:
    fit = w.compile("new", MODEL)
    first, second = data(40, G=3, K=3, scale=0.1, centre=np.array([0.5, -0.5])), data(400)
    old, new = w.data("old", first), w.data("rows", second)
    out = w.path("d")
    status, said = run(fit, old, "--new", new, "--log-prior", "--predict", "--chains", "2", "--warmup", "200", "--samples", "150", "--thin",
                       "2", "--no-summary", "--overwrite", "-o", out)
    rows.append((status == 0, "runs", said[:300]))
    draws = []
    for k in (1, 2):
        with open("%s_%d.csv" % (out, k)) as f:
            lines = [line.strip().split(",") for line in f if not line.startswith("#")]
        draws.append(np.array(lines[1:], dtype=float))
    column = dict(zip(lines[0], np.concatenate(draws).T))
    with open(out + "_new.csv") as f:
        table = {r["variable"]: r for r in csv.DictReader(f)}

    def element(name, *at):
        return column[".".join([name] + [str(k) for k in at])]

    X = second["X"]
    c = np.stack([element("c", j) for j in (1, 2)], 1)
    u = np.stack([element("u", k) for k in (1, 2, 3)], 1)
    B = np.stack([[element("B", j, k) for k in (1, 2, 3)] for j in (1, 2)]).transpose(2, 0, 1)
    mu = u[:, second["g"] - 1] + 0.1 * column["n"][:, None] + c @ (X - first["centre"]).T
    eta = np.einsum("ij,djk->dik", X, B)
    q = special.softmax(eta, axis=2)
    expected = {"mu.%d" % (i + 1): mu[:, i] for i in range(400)}
    expected.update({"q.%d.%d" % (i + 1, k + 1): q[:, i, k] for i in range(400) for k in range(3)})
    expected["total"] = mu.sum(1) + X[:, 0].mean()
    densities = {"log_lik_y.%d" % (i + 1): program.log_normal(second["y"][i], mu[:, i], column["s"]) for i in range(400)}
    densities.update({"log_lik_z.%d" % (i + 1): np.log(q[:, i, second["z"][i] - 1]) for i in range(400)})
    expected.update(densities)
    worst = 0
    for name, x in expected.items():
        values = [(x.mean(), float(table[name]["mean"])), (x.std(ddof=1), float(table[name]["sd"]))]
        if name in densities:
            values.append((special.logsumexp(x) - np.log(len(x)), float(table[name]["log_mean_exp"])))
        worst = max([worst] + [abs(a - b) / (1e-3 + abs(a)) for a, b in values])
    rows.append((worst < 1e-9, "%d quantities of 400 new rows, over %d draws" % (len(expected), len(mu)),
                 "largest relative error %.2g" % worst))
    rows.append((len(table) == len(expected) + 800, "no others but replicates: the log prior is of the draws", str(len(table))))
    residual = np.array([float(table["y_rep.%d" % (i + 1)]["mean"]) for i in range(400)]) - mu.mean(0)
    z = residual.sum() / np.sqrt(400 * (column["s"] ** 2).mean() / len(mu))
    rows.append((abs(z) < 6, "replicates of new rows", "z = %.2f" % z))
    total = sum(float(table["log_lik_y.%d" % (i + 1)]["log_mean_exp"]) for i in range(400))
    rows.append(("log_lik_y: the log of the mean density of each observation is %.6g in all" % total in said,
                 "the sum of logs of mean densities", said[-400:]))

    short = w.data("short", {k: (v[:5] if k != "y" else [1, None, 2, 3, 4]) for k, v in second.items()})
    refused("a value is missing", fit, ["--new", "y[2]"], old, "--new", short)
    refused("an unknown is not kept", fit, ["--new", "B is not in the draws"], old, "--new", new, "--params", "s,u,c,n")
    refused("an array of the run has another size", fit, ["in no file", "X[N, p]"], old, "--new", w.data("part", {"y": second["y"]}))
    apart = w.compile("apart", PER_ROW)
    refused("an unknown for each row", apart, ["--new: a has size 40", "3"], w.data("a", {"y": first["y"]}), "--new",
            w.data("b", {"y": [1, 2, 3]}), "--log-lik")
    effects = w.compile("effects", EFFECTS)
    refused("latent effects are not kept", effects, ["--new", "u is not in the draws: it is latent", "--params all"],
            w.data("e", {"y": first["y"]}), "--new", w.data("f", {"y": first["y"]}), "--log-lik")
    plain = w.compile("plain", NOTHING)
    refused("nothing to compute", plain, ["--new", "--log-lik"], w.data("a", {"y": first["y"]}), "--new", w.data("b", {"y": [1, 2, 3]}))
    status, said = run(plain, w.data("a", {"y": first["y"]}), "--new", w.data("b", {"y": [1, 2, 3]}), "--log-lik", "--warmup", "50",
                       "--samples", "20")
    rows.append((status == 0 and "log_lik_y[3]" in said, "on the screen alone", said[-300:]))

    status, said = run(w.compile("one", ONE), w.data("a", {"y": [1, 2]}), "--new", w.data("b", {"y": [2, 1]}), "--log-lik", "--warmup",
                       "50", "--samples", "20")
    rows.append((status == 0 and "mean density of the observation is" in said and "standard error of" not in said,
                 "one observation has no standard error", said[-300:]))

    bounded, out = w.compile("bounded", BOUNDED), w.path("b")
    status, said = run(bounded, w.data("a", {"y": [0.5, 1.4]}), "--new", w.data("b", {"y": [7, 0.3, 2.2]}), "--log-lik", "--chains", "1",
                       "--warmup", "200", "--samples", "500", "--overwrite", "-o", out)
    with open(out + "_new.csv") as f:
        table = {r["variable"]: r for r in csv.DictReader(f)}
    never, inside, some = (table["log_lik_y.%d" % k] for k in (1, 2, 3))
    with open(out + "_1.csv") as f:
        header = next(line for line in f if line[0] != "#").strip().split(",")
        m = np.loadtxt([line for line in f if line[0] != "#"], delimiter=",")[:, header.index("m")]
    mean_density = np.log(np.where(m > 1.2, 1 / (1 + m), 0).mean())
    rows.append((never["mean"].lower().startswith("-inf") and never["log_mean_exp"].lower().startswith("-inf"),
                 "density 0 in every draw: -inf", str(never)))
    rows.append((some["mean"].lower().startswith("-inf") and abs(float(some["log_mean_exp"]) - mean_density) < 1e-9,
                 "density 0 in some draws: a mean density", str(some)))
    rows.append((abs(float(inside["mean"]) + np.log1p(m).mean()) < 1e-9, "density above 0 in all of them", str(inside)))

for good, what, more in rows:
    print("PASS" if good else "FAIL", what, "" if good and "error" not in more and "z =" not in more else more[:80])
sys.exit(not all(good for good, _, _ in rows))
