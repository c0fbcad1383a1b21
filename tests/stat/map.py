"""Modes beside closed forms and beside optima of scipy: of the density of the unknowns as declared and of that of their coordinates, for
every kind of support that has a closed form; the best of two modes; densities without a mode, and programs without a density of all
unknowns; the files, and a run that starts at the mode."""
import json
import os
import subprocess

import numpy as np
from scipy.optimize import minimize

from program import GMC, Workplace

rng = np.random.default_rng(8)


def compiled(w, name, model, *flags):
    source, program = w.path(name + ".gm"), w.path(name)
    with open(source, "w") as f:
        f.write(model)
    subprocess.run([GMC, "-q", "--no-device", *flags, source, "-o", program], check=True)
    return program


def mode(program, data, *more, status=0):
    """The unknowns of NAME.json, and what was said."""
    ran = subprocess.run([program, "map", data, "--seed", "3",
                          "--overwrite", "-o", program + "_mode", *more], capture_output=True, text=True)
    if ran.returncode != status:
        print("status %d, not %d: %s" % (ran.returncode, status, ran.stderr))
    if status:
        return None, ran.stderr
    with open(program + "_mode.json") as f:
        return json.load(f), ran.stdout


def near(what, got, known, error=1e-5):
    off = np.max(np.abs(np.asarray(got) - np.asarray(known)) / (1 + np.abs(np.asarray(known))))
    print("%s: %s" % (what, "as known" if off < error else "%g off: %s, known %s" % (off, got, known)))


NARROW = """data { int N; vector[N] x; vector[N] y; }
prior { a ~ normal(0, 1000); b ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], 0.1); }
"""
KINK = """data { int N; vector[N] y; }
prior { m ~ double_exponential(0, 1); }
likelihood { y ~ double_exponential(m, 1); }
"""
SUPPORTS = """data { int<lower=0> N, K; int<lower=0> y, n; vector[N] x; int<lower=0> c[K]; }
prior {
  mu ~ normal(1, 3);
  p ~ beta(3, 5);
  s ~ gamma(3, 2);
  w ~ dirichlet(rep_vector(2, K));
  u ~ beta(2, 4);
  low ~ uniform(0, u);
}
likelihood {
  for (i in 1:N) x[i] ~ normal(mu, 2);
  y ~ binomial(n, p);
  c ~ multinomial(w);
}
"""
MATRICES = """data { int<lower=0> p; matrix[p, p] S; vector[4] a; }
prior {
  K ~ inv_wishart(7, S);
  W ~ wishart(8, S);
  corr_matrix[3] C ~ lkj_corr(3);
  ordered[4] o;
  for (k in 1:4) o[k] ~ normal(a[k], 1);
}
"""
LOGISTIC = """data { int<lower=0> N, P; matrix[N, P] X; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, 5); for (j in 1:P) b[j] ~ normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a + X[i] * b); }
"""
HIERARCHICAL = """data { int<lower=0> N, J; int<lower=1, upper=J> g[N]; vector[N] y; }
prior { mu ~ normal(0, 10); for (j in 1:J) u[j] ~ student_t(4, mu, 0.7); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(u[g[i]], s); }
"""
TWO = """data { int<lower=0> N; vector[N] x; }
prior { m ~ normal(0, 10); }
likelihood { for (i in 1:N) x[i] ~ cauchy(m, 0.5); }
"""
UNBOUNDED = """data { int<lower=0> J; vector[J] y; }
prior { mu ~ normal(0, 5); tau ~ half_cauchy(0, 5); for (j in 1:J) theta[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], 10); }
"""
SEPARATED = """data { int<lower=0> N, P; matrix[N, P] X; int<lower=0, upper=1> y[N]; vector[N] v; }
prior { for (j in 1:P) b[j] ~ flat(); m ~ normal(0, 1); s ~ gamma(2, 2); }
likelihood { for (i in 1:N) { y[i] ~ bernoulli(Phi(X[i] * b)); v[i] ~ normal(m, s); } }
"""
RATES = """data { int<lower=0> N; int<lower=0> y[N]; vector[N] x; }
prior { a ~ flat(); b ~ flat(); }
likelihood { for (i in 1:N) y[i] ~ poisson_log(a + b * x[i]); }
"""
SCALE = """data { int<lower=0> N; vector[N] y; }
prior { m ~ normal(0, 1); s ~ half_flat(); }
likelihood { target += -1 / s; for (i in 1:N) y[i] ~ normal(m, 1); }
"""
AT_END = """data { int<lower=0> N; vector[N] y; }
prior { m ~ normal(0, 1); s ~ half_normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(m, sqrt(1 + square(s))); }
"""
MIXTURE = """data { int<lower=0> N; vector[N] x; }
prior { m ~ normal(0, 10); d ~ half_normal(0, 5); p ~ beta(2, 2); for (i in 1:N) z[i] ~ bernoulli(p); }
likelihood { for (i in 1:N) x[i] ~ normal(m + d * z[i], 1); }
infer { z by marginal; }
"""
DISCRETE = """data { int<lower=0> N; vector[N] x; }
prior { k ~ binomial(5, 0.4); m ~ normal(0, 1); }
likelihood { for (i in 1:N) x[i] ~ normal(m + k, 1); }
"""

with Workplace() as w:
    x, c = rng.normal(2, 2, 12), np.array([4, 0, 3])
    program = compiled(w, "supports", SUPPORTS, "--method", "nuts")
    data = w.data("supports", {"N": 12, "K": 3, "y": 7, "n": 20, "x": x, "c": c})
    m, said = mode(program, data, "--starts", "3")
    near("mean of normals", m["mu"], (1 / 9 + x.sum() / 4) / (1 / 9 + 3))
    near("probability", m["p"], (3 + 7 - 1) / (8 + 20 - 2))
    near("scale", m["s"], 2 / 2)
    near("simplex", m["w"], (c + 1) / (c + 1).sum())
    m, said = mode(program, data, "--starts", "3", "--jacobian")
    near("by coordinates: mean of normals", m["mu"], (1 / 9 + x.sum() / 4) / (1 / 9 + 3))
    near("by coordinates: probability", m["p"], (3 + 7) / (8 + 20))
    near("by coordinates: scale", m["s"], 3 / 2)
    near("by coordinates: simplex", m["w"], (c + 2) / (c + 2).sum())
    near("by coordinates: an end that is an unknown", [m["u"], m["low"] / m["u"]], [2 / 6, 0.5])

    S = np.array([[2, 0.5], [0.5, 1]])
    m, said = mode(compiled(w, "matrices", MATRICES, "--method", "nuts"), w.data("matrices",
            {"p": 2, "S": S, "a": np.array([1.0, 2, 3, 4])}), "--starts", "3")
    near("covariance", m["K"], S / (7 + 2 + 1))
    near("precision", m["W"], S * (8 - 2 - 1))
    near("correlation", m["C"], np.eye(3))
    near("ordered", m["o"], [1, 2, 3, 4])

    N, P = 200, 4
    X = rng.normal(size=(N, P))
    y = (rng.random(N) < 1 / (1 + np.exp(-0.3 - X @ [1, -0.5, 0, 2]))).astype(int)

    def logistic(q):
        eta = q[0] + X @ q[1:]
        return q[0] ** 2 / 50 + (q[1:] ** 2).sum() / 8 + np.logaddexp(0, eta).sum() - y @ eta

    best = minimize(logistic, np.zeros(P + 1), method="BFGS", options={"gtol": 1e-9})
    program, data = compiled(w, "logistic", LOGISTIC), w.data("logistic", {"N": N, "P": P, "X": X, "y": y})
    m, said = mode(program, data)
    near("logistic regression", [m["a"], *m["b"]], best.x)
    near("its log density", m["lp__"], -best.fun - np.log(5 * np.sqrt(2 * np.pi)) - P * np.log(2 * np.sqrt(2 * np.pi)))
    one = [mode(program, data, "--threads", n)[0] for n in ("1", "2")]
    print("logistic regression: %s with any number of threads" % ("the same" if one[0] == one[1] else "another mode"))
    with open(program + "_mode.csv") as f:
        lines = [line.strip() for line in f if line[0] != "#"]
    print("logistic regression: csv %s" % ("says the same" if dict(zip(lines[0].split(","), map(float, lines[1].split(","))))["b.4"]
                                           == m["b"][3] else "differs"))
    ran = subprocess.run([program, data, "--init", program + "_mode.json", "--seed", "1", "--warmup", "0", "--samples", "5", "-q"],
                         capture_output=True, text=True)
    print("logistic regression: starting there gives %d%s" % (ran.returncode, ran.stderr))

    J = 6
    g = rng.integers(1, J + 1, 80)
    y = rng.normal(0.5 * g, 0.8)

    def hierarchical(q):
        u, mu, s = q[:J], q[J], np.exp(q[J + 1])
        return mu ** 2 / 200 + 2.5 * np.log1p(((u - mu) / 0.7) ** 2 / 4).sum() + s ** 2 / 8 + 80 * np.log(s) + ((y
                - u[g - 1]) ** 2).sum() / (2 * s * s)

    best = minimize(hierarchical, np.zeros(J + 2), method="BFGS", options={"gtol": 1e-7})
    m, said = mode(compiled(w, "hierarchical", HIERARCHICAL, "--method", "nuts"), w.data("hierarchical", {"N": 80, "J": J, "g": g, "y": y}))
    near("groups of fixed spread", [*m["u"], m["mu"], m["s"]], [*best.x[:J + 1], np.exp(best.x[J + 1])])

    m, said = mode(compiled(w, "two", TWO, "--method", "nuts"), w.data("two", {"N": 5, "x": np.array([-4.0, -4.2, 5.0, 5.1, 5.2])}),
                   "--starts", "20", "--init", "10")
    near("the higher of two modes", m["m"], 5.1, 0.02)
    values = {round(float(line.split()[1]), 3) for line in said.splitlines() if line.strip()[:1].isdigit()}
    print("two modes: %d heights" % len(values))

    x = np.array([0, 0.2, -0.3, 4, 4.4, 3.9])

    def mixture(q):
        m, d, p = q[0], np.exp(q[1]), 1 / (1 + np.exp(-q[2]))
        return m ** 2 / 200 + d ** 2 / 50 - np.log(p * (1 - p)) - np.logaddexp(np.log(1 - p) - (x - m) ** 2 / 2,
                np.log(p) - (x - m - d) ** 2 / 2).sum()

    best = minimize(mixture, [0, 1, 0], method="BFGS", options={"gtol": 1e-9}).x
    m, said = mode(compiled(w, "mixture", MIXTURE), w.data("mixture", {"N": 6, "x": x}))
    near("summed out", [m["m"], m["d"], m["p"]], [best[0], np.exp(best[1]), 1 / (1 + np.exp(-best[2]))])
    print("summed out: z is %s, lp__ %s" % ("told" if "z[1]" in said or "z" in m else "not told",
                                            "up to a constant" if "up to a constant" in said else "whole"))

    # Scales that lie far apart along directions that are no axes: a normal posterior, whose mode is a least squares solution.
    x, y = np.array([10001, 10002, 10003, 10004.5]), np.array([1, 2.2, 2.9, 4.6])
    X, rows = np.vstack([np.c_[np.ones(4), x] / 0.1, np.diag([1e-3, 0.1])]), np.r_[y / 0.1, 0, 0]
    m, _ = mode(compiled(w, "narrow", NARROW, "--method", "nuts"), w.data("narrow", {"N": 4, "x": x, "y": y}))
    near("a narrow ridge", [m["a"], m["b"]], np.linalg.lstsq(X, rows, rcond=None)[0])
    m, _ = mode(compiled(w, "kink", KINK, "--method", "nuts"), w.data("kink", {"N": 4, "y": [1, 2, 3.5, 4]}))
    near("a kink", m["m"], 2)

    _, said = mode(compiled(w, "unbounded", UNBOUNDED, "--method", "nuts"), w.data("unbounded", {"J": 4, "y": np.array([1.0, 5, -3, 8])}),
                   "--starts", "2", status=8)
    print("unbounded: " + said.strip())

    def asked(name):                         # evaluations of each start
        ran = subprocess.run([w.path(name), "map", w.path(name + ".json"), "--seed", "3", "--starts", "2"], capture_output=True, text=True)
        return max(int(line.split()[3]) for line in ran.stdout.splitlines() if line.strip()[:1].isdigit())

    # Densities that rise for ever: the rows with x[2] = 1 have y = 1 throughout; no counts where x = 1; a scale that nothing holds.
    X = np.c_[np.ones(60), rng.normal(size=60), np.arange(60) < 10]
    y = np.where(X[:, 2] == 1, 1, rng.random(60) < 1 / (1 + np.exp(-X[:, 1]))).astype(int)
    for name, model, data in (("separated", SEPARATED, {"N": 60, "P": 3, "X": X, "y": y, "v": X[:, 1]}),
                              ("rates", RATES, {"N": 6, "x": [0, 0, 0, 1, 1, 1], "y": [2, 1, 3, 0, 0, 0]}),
                              ("scale", SCALE, {"N": 3, "y": [1, 2, 3]})):
        _, said = mode(compiled(w, name, model, "--method", "nuts"), w.data(name, data), "--starts", "2", status=8)
        print("%s: %s" % (name, said.strip()))
        print("%s: %s" % (name, "told early" if asked(name) < 200 else "off: %d evaluations" % asked(name)))
    print("unbounded: %s" % ("told early" if asked("unbounded") < 1000 else "off: %d evaluations" % asked("unbounded")))
    m, _ = mode(compiled(w, "at_end", AT_END, "--method", "nuts"), w.data("at_end", {"N": 3, "y": [0.1, 0.2, -0.3]}))
    near("at an end of the support", [m["m"], m["s"]], [0, 0])
    program, data = compiled(w, "discrete", DISCRETE), w.data("discrete", {"N": 3, "x": x[:3]})
    print("discrete: " + mode(program, data, status=2)[1].strip())
    data = w.data("missing", {"N": 12, "K": 3, "y": 7, "n": 20, "x": [None] * 12, "c": c})
    print("missing: " + mode(w.path("supports"), data, status=2)[1].strip().splitlines()[-1])
    print("gibbs: " + mode(compiled(w, "steps", LOGISTIC, "--method", "gibbs"), w.path("logistic.json"), status=2)[1].strip())
    m, _ = mode(w.path("logistic"), w.path("logistic.json"))
    said = subprocess.run([w.path("logistic"), w.path("logistic.json"), "--init", "map", "--seed", "3", "--chains", "2", "--warmup", "1",
                           "--samples", "1", "--no-summary"], capture_output=True, text=True).stderr
    begun = [float(line.split()[-1]) for line in said.split("\n") if "starts at a mode: log density" in line]
    print("chains start at modes: %s" % ("as known" if len(begun) == 2 and max(abs(b - m["lp__"]) for b in begun) < 1e-6
                                         * (1 + abs(m["lp__"])) else "off: %s, %s" % (said, m)))
    told = subprocess.run([w.path("unbounded"), w.path("unbounded.json"), "--init", "map", "--seed", "3", "--chains", "1"],
                          capture_output=True, text=True)
    print("no start: %d %s" % (told.returncode, told.stderr.strip().split("\n")[-1]))
    print("flag: " + subprocess.run([w.path("logistic"), w.path("logistic.json"), "--jacobian"], capture_output=True,
                                    text=True).stderr.strip().replace(w.folder, ""))
