"""Modes by expectation-maximisation (gmc --method em) beside densities written down here with the latents integrated out: the log density
that is printed, its slope where the program has stopped, traces that never fall; closed forms; another program that climbs along gradients;
an iteration of EM written out; what is refused."""
import json
import os
import subprocess

import numpy as np
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from em_models import NORMALS, CLASSES, BINARY, ROBUST, NUMERICAL
from program import GMC, ROOT, Workplace, log_normal

rng = np.random.default_rng(11)


def compiled(w, name, model, *flags):
    source, program = w.path(name + ".gm"), w.path(name)
    with open(source, "w") as f:
        f.write(model)
    # "normals" has a million probabilities an iteration
    environment = {**os.environ, "CC": os.path.join(ROOT, "tests", "stat", "cc_quick")} if name == "normals" else None
    subprocess.run([GMC, "-q", "--no-device", "--check-passes", *(flags or ("--method", "em")), source, "-o", program], check=True,
                   env=environment)
    return program


def mode(w, program, data, *more, status=0):
    path = w.path("data.json")
    with open(path, "w") as f:
        json.dump({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}, f)
    ran = subprocess.run([program, "map", path, "--seed", "3", "--starts", "4",
                          "--overwrite", "-o", program + "_mode", *more], capture_output=True,
                         text=True)
    if ran.returncode != status:
        print("status %d, not %d: %s" % (ran.returncode, status, ran.stderr))
    if ran.returncode:
        return None, ran.stderr
    with open(program + "_mode.json") as f:
        return json.load(f), ran.stdout


def told(what, good, otherwise):
    print("%s: %s" % (what, "as known" if good else "off: %s" % (otherwise,)))


def slope(density, at, kinds):
    """The largest derivative of a density by free coordinates: logs of what is positive, logs of weights, numbers, elements of
    covariances."""
    most = 0
    for name, kind in kinds.items():
        x = np.array(at[name], dtype=float)
        for i in np.ndindex(x.shape):
            if kind == "matrix" and i[-1] > i[-2]:
                continue
            sides = []
            for h in (1e-4, -1e-4):
                y = x.copy()
                if kind == "real":
                    y[i] += h
                elif kind == "matrix":
                    unit = np.sqrt(x[i[:-2] + (i[-2], i[-2])] * x[i[:-2] + (i[-1], i[-1])])
                    y[i] += h * unit
                    y[i[:-2] + (i[-1], i[-2])] = y[i]
                else:
                    y[i] *= np.exp(h)
                    if kind == "simplex":
                        y /= y.sum(-1, keepdims=True)
                sides.append(density({**at, name: y}))
            most = max(most, abs(sides[0] - sides[1]) / 2e-4)
    return most


def compare(w, what, model, data, density, kinds, error=2e-4):
    got, said = mode(w, compiled(w, what.replace(" ", "_"), model), data)
    at = {k: np.array(v) for k, v in got.items()}
    known = density(at)
    told(what + ": log density", abs(got["lp__"] - known) < 1e-8 * (1 + abs(known)), (got["lp__"], known))
    d = slope(density, at, kinds)
    told(what + ": slope", d < error, d)
    with open(w.path(what.replace(" ", "_")) + "_mode_trace.csv") as f:
        rows = [line.split(",") for line in f if line[0].isdigit()]
    fell = max((float(a[2]) - float(b[2]) for a, b in zip(rows, rows[1:]) if a[0] == b[0]), default=-1)
    told(what + ": never falls", fell < 1e-9 * (1 + abs(known)) and len(rows) > 10, fell)
    return at


CUTS = """data { int N; int<lower=1, upper=3> y[N]; vector[N] x; }
prior { b ~ normal(0, 1); ordered[2] c; for (k in 1:2) c[k] ~ normal(k - 1, 1); }
likelihood { for (i in 1:N) y[i] ~ ordered_probit(b * x[i], c); }
"""
CATEGORIES = """data { int N, K; vector[N] x; int<lower=1, upper=K> y[N]; }
prior { b ~ normal(0, 1); ordered[K - 1] c; for (k in 1:K-1) c[k] ~ normal(k - 3, 1.5); }
likelihood { for (i in 1:N) y[i] ~ ordered_probit(b * x[i], c); }
"""
HELD = """data { int N, n; int y[N]; int z[N]; }
prior { a ~ beta(2, 2); b ~ uniform(0, 1 - a); }
likelihood { for (i in 1:N) { y[i] ~ binomial(n, a); z[i] ~ binomial(n, b); } }
"""
GUARDED = """data { int N; int<lower=0> y[N]; vector[N] x; int seen[N]; }
prior { a ~ normal(0, 1); b ~ normal(0, 1); w ~ beta(2, 2); }
latent { for (i in 1:N) if (seen[i] == 1) z[i] ~ bernoulli(w); }
likelihood { for (i in 1:N) if (seen[i] == 1) y[i] ~ poisson(z[i] * exp(a + b * x[i])); }
"""
WRITTEN = NORMALS.replace("latent { for (i in 1:N) c[i] ~ categorical(w); }\n", "").replace("normal(mu[c[i]], s[c[i]])",
        "mixture(w, normal(mu, s))")
MATRICES = """data { int<lower=0> N; int<lower=1> K, p; matrix[N, p] y; matrix[p, p] S; vector[p] m; }
prior { w ~ dirichlet(rep_vector(2, K)); for (k in 1:K) { mu[k] ~ multi_normal(m, 100 * S); Sigma[k] ~ inv_wishart(p + 2, S); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ multi_normal(mu[c[i]], Sigma[c[i]]); }
"""
GROUPS = """data { int<lower=0> N; int<lower=1> J; int<lower=1, upper=J> g[N]; vector[N] y; }
prior { p ~ beta(2, 2); for (k in 1:2) mu[k] ~ normal(0, 10); s ~ root_inv_gamma(2, 1); }
latent { for (j in 1:J) c[j] ~ bernoulli(p); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[g[i]] + 1], s); }
"""
CHAIN = """data { int<lower=1> N; vector[N] y; }
prior { for (k in 1:2) mu[k] ~ normal(0, 10); }
latent { c[1] ~ bernoulli(0.5); for (t in 2:N) c[t] ~ bernoulli(c[t - 1] == 1 ? 0.8 : 0.2); }
likelihood { for (t in 1:N) y[t] ~ normal(mu[c[t] + 1], 1); }
"""
COUNTS = """data { int<lower=0> N; vector[N] y; }
prior { a ~ normal(0, 1); }
latent { for (i in 1:N) k[i] ~ poisson(2); }
likelihood { for (i in 1:N) y[i] ~ normal(a * k[i], 1); }
"""
SIMPLEXES = """
data { int N, K; int<lower=1> g[N]; int<lower=1> y[N]; }
prior { for (k in 1:K) phi[k] ~ dirichlet(rep_vector(2, 3)); }
likelihood { for (i in 1:N) y[i] ~ categorical(phi[g[i]]); }
"""

PROCESS = """data { int<lower=0> N; int<lower=1> K, p; matrix[N, p] y; matrix[p, p] S; vector[p] m; }
prior {
  alpha ~ gamma(2, 1);
  for (k in 1:K-1) v[k] ~ beta(1, alpha);
  for (k in 1:K) { Sigma[k] ~ inv_wishart(p + 2, S); mu[k] ~ multi_normal(m, 10 * Sigma[k]); }
}
latent { for (i in 1:N) c[i] ~ categorical(stick_breaking(v)); }
likelihood { for (i in 1:N) y[i] ~ multi_normal(mu[c[i]], Sigma[c[i]]); }
"""
SEPARATED = """data { int<lower=0> N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { for (j in 1:p) b[j] ~ flat(); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * b); }
"""

FACTOR = """data { int N, J; matrix[N, J] y; }
prior { for (j in 1:J) { a[j] ~ normal(0, 10); l[j] ~ normal(0, 1); s[j] ~ half_cauchy(0, 1); } }
latent { for (i in 1:N) f[i] ~ normal(0, 1); }
likelihood { for (i in 1:N, j in 1:J) y[i, j] ~ normal(a[j] + l[j] * f[i], s[j]); }
"""
COLLAPSES = """data { int N; vector[N] y; }
prior { w ~ dirichlet([1,1]); for (k in 1:2) { mu[k] ~ normal(0, 5); s[k] ~ half_normal(0,1); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s[c[i]]); }
"""

VANISHING = NORMALS.replace("rep_vector(2, K)", "rep_vector(0.1, K)")


def log_dirichlet(x, a):
    return np.sum((a - 1) * np.log(x)) + gammaln(a * x.shape[-1]) * x[..., 0].size - x.size * gammaln(a)


def root_inv_gamma(s):
    return stats.invgamma(2).logpdf(s ** 2) + np.log(2 * s)


def normals(d):
    def density(x):
        rows = np.log(x["w"]) + log_normal(d["y"][:, None], x["mu"], x["s"])
        return log_dirichlet(x["w"], 2) + log_normal(x["mu"], 0, 10).sum() + root_inv_gamma(x["s"]).sum() + logsumexp(rows,
                axis=1).sum()
    return density


def matrices(d):
    def density(x):
        v = log_dirichlet(x["w"], 2)
        rows = []
        for k in range(d["K"]):
            v += stats.multivariate_normal(d["m"], 100 * d["S"]).logpdf(x["mu"][k]) + stats.invwishart(d["p"] + 2,
                    d["S"]).logpdf(x["Sigma"][k])
            rows.append(np.log(x["w"][k]) + stats.multivariate_normal(x["mu"][k], x["Sigma"][k]).logpdf(d["y"]))
        return v + logsumexp(rows, axis=0).sum()
    return density


def classes(d):
    def density(x):
        rows = np.log(x["w"]) + stats.poisson.logpmf(d["n"][:, None], x["lambda"])
        for j in range(d["J"]):
            rows = rows + np.log(x["theta"][:, j, d["y"][:, j] - 1]).T
        return log_dirichlet(x["w"], 2) + log_dirichlet(x["theta"], 1.5) + stats.gamma(2).logpdf(x["lambda"]).sum() + logsumexp(rows,
                axis=1).sum()
    return density


def binary(d):
    def density(x):
        sign, other = 2 * d["y"] - 1, 2 * d["z"] - 1
        return log_normal(np.r_[x["a"], x["b"]], 0, 2).sum() - np.log1p(np.exp(-sign
                * (d["X"] @ x["b"]))).sum() + log_ndtr(other * (d["X"] @ x["a"])).sum()
    return density


def robust(d):
    def density(x):
        return log_normal(x["b"], 0, 10).sum() + stats.halfcauchy(0, 5).logpdf(x["s"]) + stats.t(4, d["X"] @ x["b"],
                x["s"]).logpdf(d["y"]).sum()
    return density


def numerical(d):
    def density(x):
        rows = np.log([1 - x["p"], x["p"]]) + stats.t(4, x["mu"], x["s"]).logpdf(d["y"][:, None])
        return stats.beta(2, 2).logpdf(x["p"]) + log_normal(x["mu"], 0, 10).sum() + stats.gamma(3).logpdf(x["s"]) + logsumexp(rows,
                axis=1).sum()
    return density


def cuts(d):
    def density(x):
        ends = np.r_[-np.inf, x["c"], np.inf]
        eta = x["b"] * d["x"]
        return log_normal(x["b"], 0, 1).sum() + log_normal(x["c"], [0, 1], 1).sum() + np.log(ndtr(ends[d["y"]]
                - eta) - ndtr(ends[d["y"] - 1] - eta)).sum()
    return density


def best_cuts(d):
    """The largest log density of CATEGORIES, by free coordinates, in which categories may vanish."""
    def loss(q):
        c = q[1] + np.r_[0, np.cumsum(np.exp(q[2:]))]
        ends, eta = np.r_[-np.inf, c, np.inf], q[0] * d["x"]
        return -log_normal(q[0], 0, 1) - log_normal(c, np.arange(len(c)) - 2, 1.5).sum() - np.log(ndtr(ends[d["y"]]
                - eta) - ndtr(ends[d["y"] - 1] - eta)).sum()
    return -min(minimize(loss, np.r_[0, -1, at * np.ones(d["K"] - 2)], method="BFGS", options={"gtol": 1e-9}).fun for at in (-2, -1, 0))


def guarded(d):
    def density(x):
        rate, row = np.exp(x["a"] + x["b"] * d["x"]), d["seen"] == 1
        rows = np.logaddexp(np.log1p(-x["w"]) + np.where(d["y"] == 0, 0, -np.inf), np.log(x["w"]) + stats.poisson.logpmf(d["y"], rate))
        return log_normal(np.r_[x["a"], x["b"]], 0, 1).sum() + stats.beta(2, 2).logpdf(x["w"]) + rows[row].sum()
    return density


def groups(d):
    def density(x):
        rows = log_normal(d["y"][:, None], x["mu"], x["s"])
        each = np.log([1 - x["p"], x["p"]]) + np.array([rows[d["g"] == j + 1].sum(0) for j in range(d["J"])])
        return stats.beta(2, 2).logpdf(x["p"]) + log_normal(x["mu"], 0, 10).sum() + root_inv_gamma(x["s"]) + logsumexp(each,
                axis=1).sum()
    return density


def log_sticks(v):
    return np.log(np.r_[v, 1]) + np.r_[0, np.cumsum(np.log1p(-v))]


def process_rows(d, x):
    return log_sticks(x["v"])[:, None] + np.array([stats.multivariate_normal(x["mu"][k], x["Sigma"][k]).logpdf(d["y"])
                                                   for k in range(d["K"])])


def process(d):
    def density(x):
        v = stats.gamma(2).logpdf(x["alpha"]) + stats.beta(1, x["alpha"]).logpdf(x["v"]).sum() + logsumexp(process_rows(d, x), axis=0).sum()
        for k in range(d["K"]):
            v += stats.multivariate_normal(d["m"], 10 * x["Sigma"][k]).logpdf(x["mu"][k]) + stats.invwishart(d["p"] + 2,
                    d["S"]).logpdf(x["Sigma"][k])
        return v
    return density


def one_iteration_of_process(d, x):
    """Bayesian EM of the Dirichlet process mixture (Suchard et al. 2010), by hand; the denominator of Sigma is that of the joint mode of mu
    and Sigma."""
    rows = process_rows(d, x)
    r = np.exp(rows - logsumexp(rows, axis=0))
    n, y, m, alpha = r.sum(1), d["y"], d["m"], x["alpha"]
    mu = (m + 10 * (r @ y)) / (1 + 10 * n)[:, None]
    Sigma = np.array([(d["S"] + (r[k][:, None] * (y - mu[k])).T @ (y - mu[k]) + np.outer(mu[k] - m, mu[k] - m) / 10)
                      / (n[k] + 2 * d["p"] + 4) for k in range(d["K"])])
    rest = n[::-1].cumsum()[::-1][:-1]
    v = np.clip(n[:-1] / (alpha - 1 + rest), 0, 1)
    return {"mu": mu, "Sigma": Sigma, "v": v, "alpha": (2 + d["K"] - 2) / (1 - np.log1p(-v).sum())}


def one_iteration(d, x):
    """EM of the mixture of normals by hand (Dempster, Laird and Rubin 1977), mu before s."""
    y = d["y"][:, None]
    rows = np.log(x["w"]) + log_normal(y, x["mu"], x["s"])
    r = np.exp(rows - logsumexp(rows, axis=1, keepdims=True))
    n = r.sum(0)
    mu = (r * y).sum(0) / x["s"] ** 2 / (n / x["s"] ** 2 + 0.01)
    s = np.sqrt((2 + (r * (y - mu) ** 2).sum(0)) / (n + 5))
    return {"w": (n + 1) / (len(d["y"]) + d["K"]), "mu": mu, "s": s}


with Workplace() as w:
    n = 120
    c = rng.choice(3, n, p=[.5, .3, .2])
    y = np.array([0., 4, 9])[c] + np.array([1, .7, 1.5])[c] * rng.standard_normal(n)
    d = dict(N=n, K=3, y=y)
    kinds = {"w": "simplex", "mu": "real", "s": "positive"}
    x = compare(w, "normals", NORMALS, d, normals(d), kinds)
    again = one_iteration(d, x)
    told("normals: a fixed point", max(np.max(np.abs(again[k] - x[k])) for k in again) < 1e-6, (again, x))
    climbs, _ = mode(w, compiled(w, "climbs", NORMALS + "infer { c by marginal; }\n", "--method", "nuts"), d, "--starts", "8")
    told("normals: along gradients", np.max(np.abs(np.sort(climbs["mu"]) - np.sort(x["mu"]))) < 1e-6
         and np.max(np.abs(np.sort(climbs["w"]) - np.sort(x["w"]))) < 1e-6, (climbs, x))
    x = compare(w, "written as a mixture", WRITTEN, d, normals(d), kinds)
    one, _ = mode(w, w.path("normals"), dict(d, K=1))
    s = one["s"][0]
    told("one component: its closed form", abs(one["mu"][0] - y.sum() / s ** 2 / (n / s ** 2 + 0.01)) < 1e-6
         and abs(s ** 2 - (2 + ((y - one["mu"][0]) ** 2).sum()) / (n + 5)) < 1e-6, one)
    p = 2
    z = rng.standard_normal((n, p)) @ np.array([[1, .5], [0, .8]]) + np.array([[0, 0], [4, 1], [0, 5]])[c]
    d = dict(N=n, K=3, p=p, y=z, S=np.array([[1, .2], [.2, .5]]), m=np.array([1., 1]))
    compare(w, "matrices", MATRICES, d, matrices(d), {"w": "simplex", "mu": "real", "Sigma": "matrix"})
    d["K"] = 5
    x = compare(w, "process", PROCESS, d, process(d), {"alpha": "positive", "v": "positive", "mu": "real", "Sigma": "matrix"}, 1e-3)
    again = one_iteration_of_process(d, x)
    told("process: a fixed point", max(np.max(np.abs(again[k] - x[k])) for k in again) < 1e-5, (again, x))
    short = {}
    for some in (1, 2, 15):                      # an iteration is one, whatever comes after it
        short[some], said = mode(w, w.path("process"), d, "--starts", "1", "--iterations", str(some))
        told("after %d" % some, "no mode yet after --iterations %d" % some in said, said)
    told("higher each time", short[1]["lp__"] < short[2]["lp__"] < short[15]["lp__"] < process(d)(x) + 1e-9, short)
    # 8.4 MB of probabilities a start: eight starts run one after another, two do not
    wide = dict(N=4200, K=250, y=np.r_[y, rng.standard_normal(4200 - n) * 3])
    traces = {}
    for starts in ("2", "8"):
        mode(w, w.path("normals"), wide, "--starts", starts, "--iterations", "12")
        with open(w.path("normals") + "_mode_trace.csv") as f:
            traces[starts] = [line for line in f if line[:2] in ("1,", "2,")]
    told("starts that take turns", len(traces["2"]) >= 20 and traces["2"] == traces["8"], traces)
    profile = np.array([[.8, .1, .1], [.1, .8, .1]])
    c2 = rng.choice(2, n)
    d = dict(N=n, K=2, J=4, y=np.array([[rng.choice(3, p=profile[k]) + 1 for _ in range(4)] for k in c2]),
             n=rng.poisson(np.array([2., 7])[c2]))
    compare(w, "classes", CLASSES, d, classes(d), {"w": "simplex", "lambda": "positive", "theta": "simplex"})
    X = np.c_[np.ones(n), rng.standard_normal((n, 2))]
    b = np.array([.3, 1, -1])
    d = dict(N=n, p=3, X=X, y=(rng.random(n) < 1 / (1 + np.exp(-X @ b))).astype(int), z=(rng.standard_normal(n) < X @ b).astype(int))
    compare(w, "binary regressions", BINARY, d, binary(d), {"a": "real", "b": "real"})
    d = dict(N=9, x=np.array([-1, .3, 1.2, .5, -.4, .2, .8, -1.2, .1]), y=np.array([1, 2, 3, 3, 2, 1, 2, 1, 3]))
    # latents stay out: what they say of their ends is no statistic
    compare(w, "cutpoints, which end the latents", CUTS, d, cuts(d), {"b": "real", "c": "real"})
    x6 = np.array([-0.8, -1.3, -0.2, 0.4, 1.1, 0.1, -0.5, -0.8, 0.7, 1.6, 0.3, -1.2])
    program, heights = compiled(w, "categories", CATEGORIES), []
    # categories without rows: their cutpoints meet
    for seen in ([2, 5, 6, 5, 2, 6, 6, 5, 5, 6, 2, 5], [1, 4, 5, 5, 1, 4, 5, 4, 4, 1, 5, 4], [3] * 12):
        d = dict(N=12, K=6, x=x6, y=np.array(seen))
        x, said = mode(w, program, d, "--starts", "8")
        heights.append((x["lp__"] - best_cuts(d), said.count("a mode"), "from 8 of 8" in said))
    told("categories without rows", all(abs(h) < 1e-6 and all_of_them for h, _, all_of_them in heights), heights)
    x, said = mode(w, compiled(w, "held", HELD), dict(N=3, n=10, y=[7, 8, 6], z=[6, 5, 7]), status=8)
    print("a sum that is held: " + said.strip().split("\n")[-1])
    d = dict(N=14, y=np.array([0, 2, 1, 0, 0, 3, 1, 0, 4, 0, 2, 1, 0, 1]), x=np.linspace(-1, 1, 14),
             seen=np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1]))
    compare(w, "labels that a condition leaves out", GUARDED, d, guarded(d), {"a": "real", "b": "real", "w": "positive"})
    d = dict(N=n, p=3, X=X, y=X @ b + rng.standard_t(3, n))
    compare(w, "robust regression", ROBUST, d, robust(d), {"b": "real", "s": "positive"})
    d = dict(N=n, y=np.where(rng.random(n) < .4, 3., -2) + rng.standard_t(4, n))
    compare(w, "without a closed form", NUMERICAL, d, numerical(d), {"p": "positive", "mu": "real", "s": "positive"}, 2e-3)
    g = rng.integers(1, 21, n)
    d = dict(N=n, J=20, g=g, y=np.array([-1., 1])[rng.integers(0, 2, 20)][g - 1] + rng.standard_normal(n))
    compare(w, "rows that name their latent", GROUPS, d, groups(d), {"p": "positive", "mu": "real", "s": "positive"})
    d = dict(N=9, K=3, g=np.repeat([1, 2, 3], 3), y=np.array([1, 1, 2, 2, 2, 3, 3, 3, 3]))
    x, said = mode(w, compiled(w, "rows", SIMPLEXES), d)
    known = (np.array([[2, 1, 0], [0, 2, 1], [0, 0, 3]]) + 1) / 6
    told("each of some simplexes: its closed form", x is not None and np.abs(np.array(x["phi"]) - known).max() < 1e-9, x and x["phi"])
    x, said = mode(w, compiled(w, "vanishing", VANISHING), dict(N=n, K=6, y=y))
    told("components vanish", sum(v < 1e-200 for v in x["w"]) >= 1 and abs(sum(x["w"]) - 1) < 1e-9 and "at an end of its support" in said,
         (x["w"], said))
    X = np.c_[np.ones(8), np.array([-3, -2, -1.5, -1, 1, 1.5, 2, 4])]
    print("separated: " + mode(w, compiled(w, "separated", SEPARATED), dict(N=8, p=2, X=X, y=(X[:, 1] > 0).astype(int)),
                               status=8)[1].strip().split("\n")[-1])
    y6 = np.array([-1.2, .3, 2.1, 2.5, -.7, 1.9])
    x, said = mode(w, compiled(w, "collapses", COLLAPSES), dict(N=6, y=y6), "--starts", "8", "--seed", "1")
    told("one start collapses", x is not None and abs(x["lp__"] + 12.91229405) < 1e-6 and said.count("the density has no bound") == 1, said)
    print("only collapses: " + mode(w, compiled(w, "all", COLLAPSES.replace("half_normal(0,1)", "half_flat()")),
                                    dict(N=3, y=np.array([1., 1, 4])), "--starts", "2", status=8)[1].strip().split("\n")[-1])
    y4 = np.array([[-.9, .4, 1.3], [1.1, -.2, .3], [.2, -1.4, -.8], [-.3, .9, .1], [1.6, .5, -1.2]])
    print("residuals vanish: " + mode(w, compiled(w, "factor", FACTOR), dict(N=5, J=3, y=y4), "--starts", "8",
                                      status=8)[1].strip().split("\n")[-1])
    print("missing: " + mode(w, w.path("collapses"), dict(N=6, y=[None, *y6[1:]]), status=2)[1].strip())
    for name, model in (("chain", CHAIN), ("counts", COUNTS)):
        with open(w.path(name + ".gm"), "w") as f:
            f.write(model)
        ran = subprocess.run([GMC, "--method", "em", w.path(name + ".gm")], capture_output=True, text=True)
        print("%s: %d %s" % (name, ran.returncode, " ".join(line.strip() for line in ran.stderr.split("\n") if "error" in line
                                                            or "because" in line).replace(w.path(""), "")))
    print("flag: " + mode(w, w.path("normals"), dict(N=n, K=2, y=y), "--jacobian", status=2)[1].strip())
    print("draws: " + subprocess.run([w.path("normals"), w.path("data.json")], capture_output=True, text=True).stderr.strip())
