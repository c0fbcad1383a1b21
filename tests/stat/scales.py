"""Scales that are drawn with a joint normal integrated out (compiler/graph/updates/scales.c) against their posterior by quadrature in
NumPy: the joint normal is integrated out by its algebra, dense, at each point of a grid over the logarithms of the scales (or the numbers
themselves). Means of these coordinates and of their squares and products are compared, and two elements of the joint normal. The bound is 6
Monte Carlo errors; of some 250 numbers one exceeds it falsely once in 10^6 runs; seeds are fixed. Each program also passes --check, and
--explain=full must say that the scales are drawn so. They are compiled with a copy of the runtime that draws scales so in each sweep,
whatever it gains; then with one that leaves -log|J|/2 out as well, and have to fail.

    scales.py [NAME...]
"""
import functools
import itertools
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import program
from program import GMC, ROOT, Failed, Workplace, in_stages, mcse, report

rng = np.random.default_rng(5)
M = 6000
rows, models = [], []


class Joint:
    """The log density of x at given scales: sum of -(c - row'x)^2/(2 sd^2) - log(sd). Numbers that depend on scales are arrays over all
    points of the grid."""

    def __init__(self, n):
        self.n, self.rows, self.rest = n, [], 0.0

    def add(self, c, sd, **parts):
        row = [0.0] * self.n + [c / sd]
        for i, factor in parts.items():
            row[int(i[1:])] = row[int(i[1:])] + factor / sd
        self.rows.append(row)
        self.rest = self.rest - ((c / sd) ** 2 / 2 + np.log(sd))

    @functools.cached_property
    def products(self):
        """[point]: those of the rows, c last, with each other, once all are there."""
        rows = np.array([[np.broadcast_to(x, self.rest.shape) for x in row] for row in self.rows]).transpose(2, 0, 1)
        return rows.transpose(0, 2, 1) @ rows

    @property
    def J(self):
        return self.products[:, :-1, :-1]

    @property
    def h(self):
        return self.products[:, :-1, -1:]

    def add_vector(self, at, mean, S):
        """Elements `at` as a vector ~ multi_normal(mean, S); of the mean, an element of x is named by a string."""
        points = np.broadcast(*(x for row in S for x in row)).shape
        R = np.linalg.inv(np.linalg.cholesky(np.array([[np.broadcast_to(x, points) for x in row] for row in S]).transpose(2, 0, 1)))
        for row in R.transpose(1, 2, 0):
            parts = {"x%d" % i: f for i, f in zip(at, row)}
            fixed = 0.0
            for m, f in zip(mean, row):
                if isinstance(m, str):
                    parts[m] = parts.get(m, 0) - f
                else:
                    fixed = fixed + f * m
            self.add(fixed, 1, **parts)
        self.rest = self.rest + np.log(np.diagonal(R, axis1=1, axis2=2)).sum(axis=1)

    def marginal(self):
        L = np.linalg.cholesky(self.J)
        v = np.linalg.solve(L, self.h)[:, :, 0]
        return self.rest + (v * v).sum(axis=1) / 2 - np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)


def part(i, factor=1.0):
    return {"x%d" % i: factor}


def half_cauchy(t, s):
    return -np.log1p((t / s) ** 2)


def model(text, data, **scales):
    """`scales`: name -> (log prior of it, grid of its coordinate, whether that is the logarithm). The function makes the Joint at given
    scales, elements `names` of x."""
    def add(make):
        models.append((make.__name__, text, data, scales, make))
        return make
    return add


def by_log(prior, lo, hi, n=45):
    return prior, np.linspace(lo, hi, n), True


G = np.array([1, 1, 2, 3, 3, 3, 5])
Y = rng.normal(1, 1.2, len(G))


def effects(o, tau, s, mu=5, first=0):
    for j in range(5):
        o.add(0, tau, **part(first + j), **part(mu, -1))
    for g, y in zip(G, Y):
        if g != 3 or y > 0.5:
            o.add(y, s, **part(first + g - 1))


@model("data { int<lower=1, upper=5> g[7]; int c[7]; vector[7] y; } prior { mu ~ normal(0.5, 2); tau ~ half_cauchy(0, 0.8); s ~ normal(0, "
       "1) T[0, ]; for (j in 1:5) u[j] ~ normal(mu, tau); }\n"
       "likelihood { for (i in 1:7) if (c[i] == 1) y[i] ~ normal(u[g[i]], s); }",
       {"g": G, "c": [int(g != 3 or y > 0.5) for g, y in zip(G, Y)], "y": Y},
       tau=by_log(lambda t: half_cauchy(t, 0.8), -12, 9, 60), s=by_log(lambda s: -s ** 2 / 2, -6, 3))
def arrow(tau, s):
    o = Joint(6)
    o.add(0.5, 2, **part(5))
    effects(o, tau, s)
    return o, {"u.1": 0, "mu": 5}


X = rng.normal(size=(9, 3))
T1 = rng.normal(size=9)


def coefficients(X, y):
    def joint(tau, s):
        o = Joint(X.shape[1])
        for j in range(X.shape[1]):
            o.add(0.2, tau, **part(j))
        for row, c in zip(X, y):
            o.add(c, s, **{"x%d" % j: v for j, v in enumerate(row)})
        return o, {"b.1": 0, "b.%d" % X.shape[1]: X.shape[1] - 1}
    return joint


REGRESSION = ("data { int N, p; matrix[N, p] X; vector[N] y; } prior { tau ~ uniform(0.1, 2.5); s ~ half_cauchy(0, 1); for (j in 1:p) b[j] "
              "~ normal(0.2, tau); } likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b, s); }\n")
UNIFORM = (lambda t: 0, 0.1 + 2.4 * (np.arange(60) + 0.5) / 60, False)


@model(REGRESSION, {"N": 9, "p": 3, "X": X, "y": T1}, tau=UNIFORM, s=by_log(lambda s: half_cauchy(s, 1), -5, 6))
def dense(tau, s):
    return coefficients(X, T1)(tau, s)


@model(REGRESSION, {"N": 3, "p": 6, "X": X.reshape(-1)[:18].reshape(3, 6), "y": T1[:3]}, tau=UNIFORM,
       s=by_log(lambda s: half_cauchy(s, 1), -12, 12, 60))
def few_rows(tau, s):
    return coefficients(X.reshape(-1)[:18].reshape(3, 6), T1[:3])(tau, s)


W = rng.normal(0, 1, (2, 7)).cumsum(axis=1)
Z = rng.normal(size=7)


@model("data { int P, T; matrix[P, T] y; vector[T] z; } prior { s ~ half_cauchy(0, 1); phi ~ uniform(-1, 1); m ~ normal(0, 1.5);\n"
       "for (p in 1:P) x[p, 1] ~ normal(m, 1); for (p in 1:P, t in 2:T) x[p, t] ~ normal(m + phi * (x[p, t - 1] - m), s); }\n"
       "likelihood { for (p in 1:P, t in 1:T) y[p, t] ~ normal(x[p, t], 0.6); for (t in 1:T) z[t] ~ normal(2 * x[1, t] - m, 0.8); }",
       {"P": 2, "T": 7, "y": W, "z": Z},
       s=by_log(lambda s: half_cauchy(s, 1), -10, 6), phi=(lambda p: 0, -1 + 2 * (np.arange(40) + 0.5) / 40, False))
def panels_of_chains(s, phi):
    o = Joint(15)
    o.add(0, 1.5, **part(14))
    for p in range(2):
        o.add(0, 1, **part(7 * p), **part(14, -1))
        for t in range(1, 7):
            o.add(0, s, **part(7 * p + t), **part(7 * p + t - 1, -phi), **part(14, phi - 1))
        for t in range(7):
            o.add(W[p, t], 0.6, **part(7 * p + t))
    for t in range(7):
        o.add(Z[t], 0.8, **part(t, 2), **part(14, -1))
    return o, {"x.1.1": 0, "x.2.7": 13}


@model("data { int T; vector[T] y; int here[T]; } prior { s ~ half_cauchy(0, 0.5); q ~ half_cauchy(0, 1); for (t in 1:2) x[t] ~ normal(0, "
       "2); for (t in 3:T) x[t] ~ normal(2 * x[t - 1] - x[t - 2], s); }\n"
       "likelihood { for (t in 1:T) if (here[t] == 1) y[t] ~ normal(x[t], q); }", {"T": 8, "y": T1[:8], "here": [1, 1, 0, 1, 1, 1, 0, 1]},
       s=by_log(lambda s: half_cauchy(s, 0.5), -12, 8), q=by_log(lambda s: half_cauchy(s, 1), -11, 6))
def second_order(s, q):
    o = Joint(8)
    for t in range(2):
        o.add(0, 2, **part(t))
    for t in range(2, 8):
        o.add(0, s, **part(t), **part(t - 1, -2), **part(t - 2))
    for t in (0, 1, 3, 4, 5, 7):
        o.add(T1[t], q, **part(t))
    return o, {"x.1": 0, "x.8": 7}


@model("data { int T; vector[T] y; } prior { a ~ normal(0, 1); b ~ normal(0.2, 0.5); v ~ inv_gamma(2, 1); w ~ gamma(2, 1); for (t in 1:(T "
       "- 1)) e[t] ~ normal(b, sqrt(v)); }\n"
       "latent { x[1] = a; for (t in 1:(T - 1)) x[t + 1] = x[t] + e[t]; } likelihood { for (t in 1:T) y[t] ~ normal(x[t], 1 / sqrt(w)); }",
       {"T": 7, "y": W[0]},
       v=by_log(lambda v: -3 * np.log(v) - 1 / v, -4, 7), w=by_log(lambda w: np.log(w) - w, -7, 3.5))
def innovations(v, w):
    o = Joint(8)
    o.add(0, 1, **part(0))
    o.add(0.2, 0.5, **part(7))
    for t in range(6):
        o.add(0, np.sqrt(v), **part(t + 1), **part(t, -1), **part(7, -1))
    for t in range(7):
        o.add(W[0, t], w ** -0.5, **part(t))
    return o, {"a": 0, "b": 7}


A, B = rng.integers(1, 5, 14), rng.integers(1, 4, 14)
C = rng.normal(size=14)


@model("data { int a[14], b[14]; vector[14] y; } prior { m ~ normal(0, 1); su ~ half_cauchy(0, 1); s ~ half_cauchy(0, 1); for (i in 1:4) "
       "u[i] ~ normal(0, su); for (i in 1:3) v[i] ~ normal(0, 2 * su); }\n"
       "likelihood { for (i in 1:14) y[i] ~ normal(m + u[a[i]] + v[b[i]], s); }", {"a": A, "b": B, "y": C},
       su=by_log(lambda s: half_cauchy(s, 1), -12, 7, 60), s=by_log(lambda s: half_cauchy(s, 1), -4, 4, 40))
def crossed(su, s):
    o = Joint(8)
    o.add(0, 1, **part(7))
    for i in range(4):
        o.add(0, su, **part(i))
    for i in range(3):
        o.add(0, 2 * su, **part(4 + i))
    for a, b, c in zip(A, B, C):
        o.add(c, s, **part(a - 1), **part(3 + b), **part(7))
    return o, {"u.1": 0, "m": 7}


SIDE = 3
EDGES = [(i, i + 1) for i in range(SIDE * SIDE) if (i + 1) % SIDE] + [(i, i + SIDE) for i in range(SIDE * SIDE - SIDE)]
F = rng.normal(size=SIDE * SIDE)


@model("data { int n, E; int<lower=1, upper=n> one[E], other[E]; vector[n] y; } prior { t ~ normal(0, 1) T[0, ]; s ~ normal(0, 1) T[0, ]; "
       "for (e in 1:E) target += -0.5 * square((phi[one[e]] - phi[other[e]]) / t); target += -(n - 1) * log(t);\n"
       "target += -0.5 * square(sum(phi) / 0.01); for (i in 1:n) phi[i] ~ normal(0, 100); } likelihood { for (i in 1:n) y[i] ~ "
       "normal(phi[i], s); }",
       {"n": SIDE * SIDE, "E": len(EDGES), "one": [i + 1 for i, _ in EDGES], "other": [j + 1 for _, j in EDGES], "y": F},
       t=by_log(lambda t: -t ** 2 / 2, -12, 3), s=by_log(lambda t: -t ** 2 / 2, -12, 3))
def intrinsic_field(t, s):
    o = Joint(SIDE * SIDE)
    for i, j in EDGES:
        o.add(0, t, **part(i), **part(j, -1))
    o.rest = o.rest + (len(EDGES) - SIDE * SIDE + 1) * np.log(t)
    o.add(0, 0.01, **{"x%d" % i: 1.0 for i in range(SIDE * SIDE)})
    for i in range(SIDE * SIDE):
        o.add(0, 100, **part(i))
        o.add(F[i], s, **part(i))
    return o, {"phi.1": 0, "phi.5": 4}


KINDS = np.array([1, 1, 2, 3, 3, 3, 4, 4, 1, 2])
U, V = rng.normal(size=10), rng.normal(0.5, 1.5, 10)
HERE = [int(g != 3 or u > 0) for g, u in zip(KINDS, U)]


@model("data { int<lower=1, upper=5> g[10]; int c[10]; vector[10] x, y; } prior { sa ~ half_cauchy(0, 1); rho ~ uniform(-1, 1); for (k in "
       "1:2) mu[k] ~ normal(0.3, 1); } latent { S[1, 1] = square(sa); S[2, 2] = 0.64; S[1, 2] = 0.8 * rho * sa; S[2, 1] = 0.8 * rho * sa; "
       "}\n"
       "prior { for (j in 1:5) vector[2] A[j] ~ multi_normal(mu, S); } likelihood { for (i in 1:10) if (c[i] == 1) y[i] ~ normal(A[g[i], "
       "1] + A[g[i], 2] * x[i], 0.7); }", {"g": KINDS, "c": HERE, "x": U, "y": V},
       sa=by_log(lambda s: half_cauchy(s, 1), -10, 7, 60), rho=(lambda r: 0, -1 + 2 * (np.arange(40) + 0.5) / 40, False))
def correlated(sa, rho):                         # group 5 has no row
    o = Joint(12)
    for k in range(2):
        o.add(0.3, 1, **part(10 + k))
    for j in range(5):
        o.add_vector((2 * j, 2 * j + 1), ("x10", "x11"), [[sa ** 2, 0.8 * rho * sa], [0.8 * rho * sa, 0.64]])
    for g, c, x, y in zip(KINDS, HERE, U, V):
        if c:
            o.add(y, 0.7, **part(2 * g - 2), **part(2 * g - 1, x))
    return o, {"A.1.1": 0, "A.5.2": 9, "mu.2": 11}


OTHER = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 3])
R2 = np.array([[1, 0.4], [0.4, 1]])


@model("data { int g[10], h[10]; vector[10] x, y; corr_matrix[2] R; } prior { vector<lower=0>[2] tau ~ half_normal(0, 1); sb ~ "
       "half_normal(0, 1); for (j in 1:4) vector[2] A[j] ~ multi_normal([0, 0], quad_form_diag(R, tau));\n"
       "for (k in 1:3) vector[2] B[k] ~ multi_normal([0.1, 0.2], [[square(sb), 0.3 * sb], [0.3 * sb, 1]]); } likelihood { for (i in 1:10) "
       "y[i] ~ normal(A[g[i], 1] + A[g[i], 2] * x[i] + B[h[i], 1] + B[h[i], 2] * x[i], 0.7); }",
       {"g": KINDS, "h": OTHER, "x": U, "y": V, "R": R2}, **{"tau.1": by_log(lambda s: -s ** 2 / 2, -7, 1.7, 24),
                                                             "tau.2": by_log(lambda s: -s ** 2 / 2, -7, 1.7, 24),
                                                             "sb": by_log(lambda s: -s ** 2 / 2, -7, 1.7, 24)})
def two_plates(t1, t2, sb):                      # each with a set of its own
    o = Joint(14)
    t = (t1, t2)
    for j in range(4):
        o.add_vector((2 * j, 2 * j + 1), (0, 0), [[R2[a, b] * t[a] * t[b] for b in range(2)] for a in range(2)])
    for k in range(3):
        o.add_vector((8 + 2 * k, 9 + 2 * k), (0.1, 0.2), [[sb ** 2, 0.3 * sb], [0.3 * sb, 1]])
    for g, h, x, y in zip(KINDS, OTHER, U, V):
        o.add(y, 0.7, **part(2 * g - 2), **part(2 * g - 1, x), **part(6 + 2 * h), **part(7 + 2 * h, x))
    return o, {"A.1.1": 0, "B.3.2": 13}


@model("data { int J, K; int g[10]; matrix[10, K] X; vector[10] y; } prior { for (k in 1:K) mu[k] ~ normal(0, 1); for (k in 1:K) tau[k] ~ "
       "half_normal(0, 1); for (j in 1:J, k in 1:K) A[j, k] ~ normal(mu[k], tau[k]); }\n"
       "likelihood { for (i in 1:10) y[i] ~ normal(sum(k in 1:K, X[i, k] * A[g[i], k]), 0.7); }",
       {"J": 4, "K": 2, "g": KINDS, "X": np.column_stack([np.ones(10), U]), "y": V},
       **{"tau.1": by_log(lambda s: -s ** 2 / 2, -8, 1.7, 50), "tau.2": by_log(lambda s: -s ** 2 / 2, -8, 1.7, 50)})
def columns(t1, t2):                             # the means are drawn so as well
    o = Joint(10)
    for k, t in enumerate((t1, t2)):
        o.add(0, 1, **part(8 + k))
        for j in range(4):
            o.add(0, t, **part(2 * j + k), **part(8 + k, -1))
    for g, x, y in zip(KINDS, U, V):
        o.add(y, 0.7, **part(2 * g - 2), **part(2 * g - 1, x))
    return o, {"A.1.1": 0, "mu.1": 8, "mu.2": 9}


FACTORS = U[:8, None] * np.array([[1.0, -0.6]]) + rng.normal(0, 0.5, (8, 2))


@model("data { int n; matrix[n, 2] w; } prior { for (k in 1:2) e[k] ~ half_normal(0, 1); for (i in 1:n, m in 1:2) f[i, m] ~ normal(0, 1); "
       "}\n"
       "likelihood { for (i in 1:n, k in 1:2) w[i, k] ~ normal(k * f[i, 1] - 0.6 * f[i, 2], e[k]); }", {"n": 8, "w": FACTORS},
       **{"e.1": by_log(lambda s: -s ** 2 / 2, -8, 1.7, 50), "e.2": by_log(lambda s: -s ** 2 / 2, -8, 1.7, 50)})
def factors(e1, e2):                             # each response has a standard deviation of its own
    o = Joint(16)
    for i in range(8):
        for m in range(2):
            o.add(0, 1, **part(2 * i + m))
        for k, e in enumerate((e1, e2)):
            o.add(FACTORS[i, k], e, **part(2 * i, k + 1), **part(2 * i + 1, -0.6))
    return o, {"f.1.1": 0, "f.8.2": 15}


def says(said, scales):
    """Whether each scale is drawn with a joint normal integrated out."""
    before = "On a CPU (.*) (?:is|are) slice sampled before it, with the joint normal integrated out"
    drawn = set(", ".join(re.findall(before, said)).split(", "))
    return {k.split(".")[0] for k in scales} <= drawn


def copy_of_compiler(w, name, right):
    """Its programs draw scales in each sweep; if not `right`, without -log|J|/2."""
    home, objects = w.path(name), []
    os.makedirs(os.path.join(home, "build"))
    for part in ("runtime", "stdlib"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(home, part))
    built = os.path.dirname(os.path.realpath(GMC))
    for part in ("gmc", "libgmhost.a"):
        shutil.copy(os.path.join(built, part), os.path.join(home, "build", part))
    edits = [("device/scales.h", r"(GM_SCALES_SHARE|GM_SCALES_ENOUGH) = [0-9.e]+", r"\1 = 1e300")]
    if not right:
        edits += [(part, r"\blog\(", "0 * log(") for part in ("device/band.h", "backends/linalg_cpu.c", "backends/sparse.c")]
    for part, old, new in edits:
        path = os.path.join(home, "runtime", part)
        with open(path) as f:
            text, changed = re.subn(old, new, f.read())
        assert changed > 1
        with open(path, "w") as f:
            f.write(text)
        if part.endswith(".c"):
            objects.append(os.path.join(home, os.path.basename(part)[:-1] + "o"))
            subprocess.run(["cc", "-std=gnu11", "-O1", "-fopenmp", "-c", path, "-o", objects[-1]], check=True)
    if objects:
        subprocess.run(["ar", "r", os.path.join(home, "build/libgmhost.a"), *objects], check=True, capture_output=True)
    return os.path.join(home, "build/gmc")


@functools.cache
def by_quadrature(name):
    """Of a model: the names of elements of the joint normal, the points of the grid and their probabilities, means and mean squares of the
    elements."""
    scales, make = next((scales, make) for model, _, _, scales, make in models if model == name)
    priors, grids, logs = zip(*scales.values())
    points = np.array(list(itertools.product(*grids)))
    values = [np.exp(t) if by else t for t, by in zip(points.T, logs)]
    o, names = make(*values)
    weight = o.marginal() + sum(p(v) for p, v in zip(priors, values)) + sum(t for t, by in zip(points.T, logs) if by)
    S = np.linalg.inv(o.J)
    at = list(names.values())
    means = (S @ o.h)[:, at, 0]
    squares = S[:, at, at] + means ** 2
    p = np.exp(weight - weight.max())
    p /= p.sum()
    return names, points, p, p @ means, p @ squares


def compare(w, name, text, data, scales, make, right=True):
    fit, values = w.compile(name, text, flags=("--method", "gibbs")), w.data(name, data)
    said = subprocess.run([GMC, "--method", "gibbs", "--explain=full", w.path(name + ".gm")], capture_output=True, text=True).stdout
    if not says(said, scales):
        return False, "%s: --explain=full does not say that %s are drawn with a joint normal integrated out" % (name, ", ".join(scales))
    logs = [by for _, _, by in scales.values()]
    names, moments, p, means, squares = by_quadrature(name)
    routes = ("sparse", "dense")[:1 + right] if "sparse precision" in said else (None,)
    for route in routes if right else ():
        os.environ.update({"GM_JOINT": route} if route else {})
        checked = subprocess.run([fit, values, "--check", "--samples", "20", "--chains", "2", "--no-summary"], capture_output=True,
                                 text=True)
        if checked.returncode:
            return False, "%s: --check%s" % (name, checked.stdout[-600:] + checked.stderr[-600:])

    def judge(samples, part):
        numbers = []
        for route in routes:
            os.environ.update({"GM_JOINT": route} if route else {})
            numbers += compared(w.draws(fit, values, samples, warmup=600), names, scales, logs, p, moments, means, squares)
        z = [(abs(x.mean() - m) / mcse(x), k) for k, x, m in numbers]
        worst, bound = max(z), 6 * part
        return (worst[0] < bound) == right, "%s%s: %d moments, largest |z| %s %g: %s %.2f" % (name,
                "" if right else ", without determinants", len(z), "<" if right else ">", bound, worst[1], worst[0])
    row = in_stages(judge, M) if right else judge(M // 8, 1)
    if not (right or row[0]):
        row = judge(M // 2, 1)                    # what is wrong is so by more than 8 errors of half as many draws
    os.environ.pop("GM_JOINT", None)
    return row


def compared(d, names, scales, logs, p, moments, means, squares):
    """[(what, its draws, its exact mean)]: moments of scales and of the joint normal."""
    numbers = []
    c = [np.log(d[k]) if by else d[k] for k, by in zip(scales, logs)]
    for i in range(len(c)):
        numbers.append((list(scales)[i], c[i], p @ moments[:, i]))
        for j in range(i + 1):
            numbers.append((list(scales)[i] + "*" + list(scales)[j], c[i] * c[j], p @ (moments[:, i] * moments[:, j])))
    for k, m, q in zip(names, means, squares):
        if q < 100:                          # else a scale's tail is too heavy for its moments
            numbers += [(k, d[k], m), (k + "^2", d[k] ** 2, q)]
    return numbers


with Workplace() as w:
    copies = [copy_of_compiler(w, "without", False), copy_of_compiler(w, "with", True)]
    for name, *rest in models:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for right in (True, False):
            program.GMC = copies[right]
            try:
                rows.append(compare(w, name, *rest, right=right))
            except Failed as why:                # a law that cannot be normalised
                rows.append((not right, "%s%s: %s" % (name, "" if right else ", without determinants, stops",
                                                      str(why).split("\n")[1][:160] if not right else why)))
report(rows)
