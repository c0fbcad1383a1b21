#!/usr/bin/env python3
"""The expected results of the cookbook, found without gmc: NAME/expect.json.

    answers.py [--renew] [NAME ...]        all of them if no name is given; needs numpy, scipy and, where a folder has NAME.bug, JAGS

Without --renew the answers are compared with what stands in the files, and the exit status is 1 if one differs by more than a tenth of a
posterior sd. Where JAGS gives the answer it makes four chains, so long that its errors are below a thirtieth of an sd; it may take minutes
for some models. Elsewhere a function below adds or integrates over all values.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

HERE = os.path.dirname(os.path.abspath(__file__))
JAGS = {                                    # what is compared, and sweeps kept of each chain
    "regression": ("alpha beta sigma R2", 20000), "robust": ("a b s", 20000), "logistic": ("alpha beta", 20000),
    "correlated_effects": ("m sigma r", 40000),
    "ar": ("mu rho s next", 20000), "mixture": ("w m s", 20000), "hmm": ("P m s z", 40000),
    "missing_data": ("m s_x a b s x[1] y[4]", 20000),
    "measurement_error": ("a b s m s_x", 20000), "irt": ("a b theta[1]", 20000), "spline": ("s f[1] f[20] f[40]", 40000),
    "ordinal": ("b c", 40000), "zero_inflated": ("psi a b", 20000), "occupancy": ("a b p occupied", 40000),
    "meta_analysis": ("d tau new_trial", 40000),
    "lda": ("phi theta[1,1] theta[2,1]", 20000), "stochastic_volatility": ("mu phi s", 80000), "multinomial": ("a[2:3] b[2:3]", 20000),
}
START = {                                   # where JAGS begins, if its own start has probability 0
    "ordinal": lambda d: {"c0": [-1, 0, 1]}, "occupancy": lambda d: {"z": [1] * d["R"]}, "zero_inflated": lambda d: {"z": [1] * d["N"]},
}
SAMPLES = {"stochastic_volatility": 6000, "hmm": 3000, "irt": 3000, "mixture": 3000}
EXACT = {}


def exact(how):
    def keep(f):
        EXACT[f.__name__] = (f, how)
        return f
    return keep


def moments(weights, values):
    """{name: (mean, sd)} of values under log weights, which need not be normalised"""
    w = np.exp(weights - weights.max())
    w /= w.sum()
    out = {}
    for name, v in values.items():
        m = (w * v).sum()
        out[name] = (m, np.sqrt((w * (v - m) ** 2).sum()))
    return out


def mixed(weights, values):
    """The same of values that are known by their mean and variance at each point."""
    w = np.exp(weights - weights.max())
    w /= w.sum()
    out = {}
    for name, (m, v) in values.items():
        mean = (w * m).sum()
        out[name] = (mean, np.sqrt((w * (v + (m - mean) ** 2)).sum()))
    return out


@exact("Quadrature over tau; given tau all is normal.")
def hierarchical(d):
    y, se = np.array(d["y"], float), np.array(d["se"], float)
    u = (np.arange(20000) + 0.5) / 20000
    tau = 5 * np.tan(np.pi / 2 * u)                             # quantiles of the prior
    v = se ** 2 + tau[:, None] ** 2
    prec = (1 / v).sum(1) + 0.01
    m = (y / v).sum(1) / prec
    w = -0.5 * np.log(v).sum(1) - 0.5 * (y ** 2 / v).sum(1) + 0.5 * m ** 2 * prec - 0.5 * np.log(prec)
    values = {"mu": (m, 1 / prec), "tau": (tau, 0 * tau)}
    for j in (0, 2):
        k = tau ** 2 / (tau ** 2 + se[j] ** 2)
        values["theta.%d" % (j + 1)] = ((1 - k) * m + k * y[j], k * se[j] ** 2 + (1 - k) ** 2 / prec)
    return mixed(w, values)


@exact("Quadrature over the three hyperparameters.")
def gp(d):
    x, y = np.array(d["x"]), np.array(d["y"])
    a, rho, s = np.exp(np.linspace(np.log(0.05), np.log(8), 56)), np.exp(np.linspace(np.log(0.2), np.log(12),
            56)), np.exp(np.linspace(np.log(0.03), np.log(3), 56))
    r2 = (x[:, None] - x) ** 2
    w = np.empty((56, 56, 56))
    for i, j in itertools.product(range(56), range(56)):
        k = a[i] ** 2 * np.exp(-r2 / (2 * rho[j] ** 2))
        e, q = np.linalg.eigh(k)
        z = (q.T @ y) ** 2
        v = np.maximum(e, 0) + s[:, None] ** 2
        w[i, j] = -0.5 * np.log(v).sum(1) - 0.5 * (z / v).sum(1)
    A, R, S = np.meshgrid(a, rho, s, indexing="ij")
    w += -A ** 2 / 8 - 6 * np.log(R) - 5 / R - S ** 2 / 2 + np.log(A * R * S)        # the grid is even in logs
    return moments(w, {"a": A, "rho": R, "s": S})


@exact("Quadrature over the three parameters.")
def survival(d):
    t, x, e = np.array(d["t"]), np.array(d["x"]), np.array(d["event"])
    k, b0, b1 = np.meshgrid(np.linspace(0.4, 3.2, 121), np.linspace(0.3, 3.3, 121), np.linspace(-1.2, 2.6, 121), indexing="ij")
    w = np.log(k) - k - b0 ** 2 / 50 - b1 ** 2 / 8
    for ti, xi, ei in zip(t, x, e):
        ls = b0 + b1 * xi
        w += ei * (np.log(k) - ls + (k - 1) * (np.log(ti) - ls)) - np.exp(k * (np.log(ti) - ls))
    return moments(w, {"k": k, "b0": b0, "b1": b1, "median_0": np.exp(b0) * np.log(2) ** (1 / k)})


@exact("Sum over the size of the population, beta integrals for both probabilities.")
def capture_recapture(d):
    y, M, T = np.array(d["y"]), d["M"], d["T"]
    n, c = (y > 0).sum(), y.sum()
    N = np.arange(n, M + 1)
    beta = lambda a, b: gammaln(a) + gammaln(b) - gammaln(a + b)
    w = gammaln(M - n + 1) - gammaln(N - n + 1) - gammaln(M - N + 1) + beta(1 + N, 1 + M - N) + beta(1 + c, 1 + N * T - c)
    b = lambda p, q: (p / (p + q), p * q / (p + q) ** 2 / (p + q + 1))
    return mixed(w, {"N": (N, 0 * N), "psi": b(1 + N, 1 + M - N), "p": b(1 + c, 1 + N * T - c)})


@exact("Sum over the years, gamma integrals for both rates.")
def change_point(d):
    y = np.array(d["y"])
    t = np.arange(1, d["T"] + 1)
    c, all_ = np.cumsum(y), y.sum()
    g = lambda n, k: gammaln(2 + k) - (2 + k) * np.log(1 + n)
    w = g(t, c) + g(d["T"] - t, all_ - c)
    r = lambda n, k: ((2 + k) / (1 + n), (2 + k) / (1 + n) ** 2)
    return mixed(w, {"last": (t, 0 * t), "before": r(t, c), "after": r(d["T"] - t, all_ - c)})


@exact("Sum over all 32 models, quadrature over the variance.")
def variable_selection(d):
    X, y = np.array(d["X"]), np.array(d["y"])
    s2 = np.exp(np.linspace(np.log(0.2), np.log(6), 400))
    w, g, mean, var = [], [], [], []
    for chosen in itertools.product((0, 1), repeat=d["p"]):
        c = np.array(chosen)
        Xg = X * c
        for v in s2:
            J = Xg.T @ Xg / v + np.eye(d["p"]) / 4
            h = Xg.T @ y / v
            S = np.linalg.inv(J)
            w.append(-0.5 * len(y) * np.log(v) - 0.5 * y @ y / v + 0.5 * h @ S @ h + 0.5 * np.linalg.slogdet(S)[1]
                     + stats.invgamma.logpdf(v, 2, scale=2) + np.log(v)
                     + c.sum() * np.log(0.3) + (1 - c).sum() * np.log(0.7))
            g.append(c)
            mean.append(c * (S @ h))
            var.append(c * np.diag(S))
    g, mean, var = np.array(g, float), np.array(mean), np.array(var)
    out = {"g.%d" % (j + 1): (g[:, j], 0 * g[:, j]) for j in range(1, d["p"])}
    out.update({"coefficient.%d" % (j + 1): (mean[:, j], var[:, j]) for j in (0, 2)})
    return mixed(np.array(w), out)


@exact("A grid of tau; given tau importance sampling about the mode.")
def car(d):
    W, e, y = np.array(d["W"], float), np.array(d["expected"]), np.array(d["y"], float)
    n = len(y)
    Q = np.diag(W.sum(1)) - 0.9 * W
    A = np.hstack([np.ones((n, 1)), np.eye(n)])                 # predictors of b and u
    r = np.random.default_rng(1)
    z = r.normal(size=(20000, n + 1)) / np.sqrt(r.chisquare(8, size=(20000, 1)) / 8)
    log_z = -(8 + n + 1) / 2 * np.log1p((z ** 2).sum(1) / 8)
    w, values = [], {"b": [], "tau": [], "u.1": [], "u.16": []}
    for tau in np.exp(np.linspace(np.log(0.2), np.log(14), 40)):
        P = np.zeros((n + 1, n + 1))
        P[0, 0], P[1:, 1:] = 0.25, tau * Q
        at = np.zeros(n + 1)
        for _ in range(50):                                     # Newton's method
            rate = e * np.exp(A @ at)
            at = at + np.linalg.solve(A.T @ (rate[:, None] * A) + P, A.T @ (y - rate) - P @ at)
        rate = e * np.exp(A @ at)
        L = np.linalg.cholesky(np.linalg.inv(A.T @ (rate[:, None] * A) + P))
        x = at + z @ L.T
        eta = x @ A.T
        log_prior = -0.5 * np.einsum("ij,jk,ik->i", x, P, x) + n / 2 * np.log(tau) + np.log(tau) - tau + np.log(tau)
        log_p = (y * eta - e * np.exp(eta)).sum(1) + log_prior
        lw = log_p - log_z + np.log(np.diag(L)).sum()
        total = logsumexp(lw)
        share = np.exp(lw - total)
        w.append(total)
        for k, v in (("b", x[:, 0]), ("tau", np.full(len(x), tau)), ("u.1", x[:, 1]), ("u.16", x[:, 16])):
            m = share @ v
            values[k].append((m, share @ (v - m) ** 2))
    return mixed(np.array(w), {k: (np.array(v)[:, 0], np.array(v)[:, 1]) for k, v in values.items()})


def dump(d):
    """Data in the words of R. Matrices go column by column."""
    lines = []
    for k, v in d.items():
        a = np.array([np.nan if e is None else e for e in v] if isinstance(v, list) and v and not isinstance(v[0], list) else v, float)
        text = ", ".join("NA" if np.isnan(e) else "%.10g" % e for e in a.flatten(order="F"))
        if a.ndim == 0:
            lines.append("`%s` <- %s" % (k, text))
        elif a.ndim == 1:
            lines.append("`%s` <- c(%s)" % (k, text))
        else:
            lines.append("`%s` <- structure(c(%s), .Dim = c(%s))" % (k, text, ", ".join("%dL" % n for n in a.shape)))
    return "\n".join(lines) + "\n"


def by_jags(name, d):
    asked, n = JAGS[name]
    with open(os.path.join(HERE, name, name + ".bug")) as f:
        model = f.read()
    with tempfile.TemporaryDirectory(prefix="answers-") as folder:
        with open(os.path.join(folder, "data.R"), "w") as f:
            f.write(dump(d))
        with open(os.path.join(folder, "model.bug"), "w") as f:
            f.write(model)
        for c in range(4):
            with open(os.path.join(folder, "start%d.R" % c), "w") as f:
                f.write('".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- %d\n' % (c + 1) + dump(START[name](d) if name in START
                        else {}))
        thin = max(1, n // 10000)
        script = ["load glm", "load lecuyer", "model in model.bug", "data in data.R",
                  "compile, nchains(4)"] + ["parameters in start%d.R, chain(%d)" % (c, c + 1) for c in range(4)]
        script += ["initialize", "update 4000"] + ["monitor %s, thin(%d)" % (a, thin) for a in asked.split()] + ["update %d" % n, "coda *"]
        with open(os.path.join(folder, "script"), "w") as f:
            f.write("\n".join(script) + "\n")
        done = subprocess.run(["jags", "script"], cwd=folder, capture_output=True, text=True)
        if not os.path.exists(os.path.join(folder, "CODAindex.txt")):
            sys.exit("%s: %s%s" % (name, done.stdout[-1500:], done.stderr))
        chains = [np.loadtxt(os.path.join(folder, "CODAchain%d.txt" % c))[:, 1] for c in (1, 2, 3, 4)]
        found = {}
        for line in open(os.path.join(folder, "CODAindex.txt")):
            word, first, last = line.split()
            x = np.array([c[int(first) - 1:int(last)] for c in chains])
            k = 50                                                                   # batches of a chain, for the error of the mean
            batches = x[:, :x.shape[1] // k * k].reshape(4 * k, -1).mean(1)
            error, sd = batches.std(ddof=1) / np.sqrt(4 * k), x.std()
            if sd > (0.3 if np.array_equal(x, np.round(x)) else 0):                   # a label that hardly varies is known too badly
                if error > sd / 30:
                    print("%s: %s: the error of JAGS is %.2g, and the sd %.2g" % (name, word, error, sd))
                found[word.replace("[", ".").replace(",", ".").replace("]", "")] = (x.mean(), sd)
    return found


def answer(name):
    with open(os.path.join(HERE, name, "data.json")) as f:
        d = json.load(f)
    if name in EXACT:
        return EXACT[name][0](d), EXACT[name][1]
    return by_jags(name, d), "JAGS 4.3, %s.bug, 4 chains of %d sweeps." % (name, JAGS[name][1])


def digits(value, sd):
    """Rounded to a hundredth of the sd, or finer."""
    return float("%.*f" % (max(0, 3 - int(np.floor(np.log10(sd)))), value))


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    faults = 0
    names = words or sorted(list(EXACT) + list(JAGS))
    for name in names:
        found, note = answer(name)
        path = os.path.join(HERE, name, "expect.json")
        new = {"note": note, "means": {}, "sds": {}, "args": ["--samples", str(SAMPLES.get(name, 2000))]}
        for k, (m, s) in found.items():
            new["means"][k] = [digits(m, s), digits(0.1 * s, s)]
            new["sds"][k] = [digits(s, s), digits(0.1 * s, s)]
        if "--renew" in sys.argv:
            with open(path, "w") as f:
                f.write(json.dumps(new, indent=2).replace("[\n      ", "[").replace(",\n      ", ", ").replace("\n    ]", "]") + "\n")
            continue
        with open(path) as f:
            old = json.load(f)
        for kind in ("means", "sds"):
            for k, (value, tol) in new[kind].items():
                if k not in old[kind] or abs(old[kind][k][0] - value) > tol:
                    print("%s: %s of %s: %g, in expect.json %s" % (name, kind[:-1], k, value, old[kind].get(k)))
                    faults += 1
    print("%d models, %d faults" % (len(names), faults))
    return 1 if faults else 0


sys.exit(main())
