"""If this fails, a chain of normals that is drawn whole does not have its distribution, or a sweep is no draw of all of it.

    chains.py [NAME ...]

All that scales the normals is data, so the posterior is normal and one update draws from it: mean and covariance come from dense algebra
here. z is the difference of a mean (of all elements), and of the mean of squares of random combinations of the elements, over its error for
independent draws. The bound is 6: with the fixed seeds a run that passes keeps passing, a change of random numbers rings falsely less than
once in 10^5 runs. Autocorrelation of the combinations is below 6/sqrt(draws) in the same sense.
"""
import subprocess
import sys

import numpy as np

from program import Failed, Workplace

rng = np.random.default_rng(11)
DRAWS = 3000


class Normal:
    """exp(-1/2 sum of ((row z - value)/sd)^2): rows are linear in the elements, which have names as in the draws."""

    def __init__(self, names):
        self.at = {n: i for i, n in enumerate(names)}
        self.J, self.h = np.zeros((len(names),) * 2), np.zeros(len(names))

    def add(self, terms, value, sd):
        r = np.zeros(len(self.h))
        for name, c in terms:
            r[self.at[name]] += c
        self.J += np.outer(r, r) / sd ** 2
        self.h += r * value / sd ** 2


def names(v, *dims):
    return ["%s.%s" % (v, ".".join(str(i + 1) for i in at)) for at in np.ndindex(*dims)]


def missing(y, share=0.3):
    return [None if rng.random() < share else round(v, 3) for v in y]


def ar1():
    """One lag, a mean as border, observations missing, a statement that holds for some of them."""
    T = 12
    y, use = rng.normal(size=T).round(3), (rng.random(T) < 0.7).astype(int)
    n = Normal(["mu"] + names("x", T))
    n.add([("mu", 1)], 0.5, 2)
    n.add([("x.1", 1), ("mu", -1)], 0, 1.5)
    for t in range(2, T + 1):
        n.add([("x.%d" % t, 1), ("x.%d" % (t - 1), -0.8), ("mu", -0.2)], 0, 0.7)
    for t in range(1, T + 1):
        if use[t - 1]:
            n.add([("x.%d" % t, 1)], y[t - 1], 0.5)
    return """data { int<lower=1> T; real y[T]; int use[T]; real phi; }
prior { mu ~ normal(0.5, 2); x[1] ~ normal(mu, 1.5); for (t in 2:T) x[t] ~ normal(mu + phi*(x[t-1] - mu), 0.7); }
likelihood { for (t in 1:T) if (use[t] == 1) y[t] ~ normal(x[t], 0.5); }""", {"T": T, "y": y, "use": use, "phi": 0.8}, n, "band"


def ar2():
    """Two lags, backwards in the text, and coefficients of a regression as border."""
    T, p = 9, 2
    X, y = rng.normal(size=(T, p)).round(2), rng.normal(size=T).round(3)
    n = Normal(names("b", p) + names("x", T))
    for j in range(1, p + 1):
        n.add([("b.%d" % j, 1)], 0, 1)
    for t in range(1, T + 1):
        n.add([("x.%d" % t, 1)] + ([("x.%d" % (t - 1), -1.1), ("x.%d" % (t - 2), 0.4)] if t > 2 else []), 0, 0.6)
        n.add([("x.%d" % t, 1)] + [("b.%d" % (j + 1), X[t - 1, j]) for j in range(p)], y[t - 1], 0.4)
    return """data { int<lower=2> T; int p; matrix[T, p] X; vector[T] y; }
prior { b ~ normal(0, 1); vector[p] b; for (t in 1:2) x[t] ~ normal(0, 0.6); for (t in 1:T-2) x[t+2] ~ normal(1.1*x[t+1] - 0.4*x[t], 0.6); }
likelihood { for (t in 1:T) y[t] ~ normal(x[t] + X[t]*b, 0.4); }""", {"T": T, "p": p, "X": X, "y": y}, n, "band"


def trend():
    """A level and its slope, two variables along one chain, seen through gathers, some places never."""
    T, N = 10, 14
    g, y = rng.integers(1, T - 1, N), rng.normal(size=N).round(3)
    n = Normal(names("level", T) + names("slope", T))
    n.add([("level.1", 1)], 0, 3)
    n.add([("slope.1", 1)], 0, 1)
    for t in range(2, T + 1):
        n.add([("level.%d" % t, 1), ("level.%d" % (t - 1), -1), ("slope.%d" % (t - 1), -1)], 0, 0.5)
        n.add([("slope.%d" % t, 1), ("slope.%d" % (t - 1), -1)], 0, 0.2)
    for i in range(N):
        n.add([("level.%d" % g[i], 1)], y[i], 0.8)
    return """data { int T; int N; int g[N]; real y[N]; }
prior {
  level[1] ~ normal(0, 3); slope[1] ~ normal(0, 1);
  for (t in 2:T) { level[t] ~ normal(level[t-1] + slope[t-1], 0.5); slope[t] ~ normal(slope[t-1], 0.2); }
}
likelihood { for (i in 1:N) y[i] ~ normal(level[g[i]], 0.8); }""", {"T": T, "N": N, "g": g, "y": y}, n, "band"


def states():
    """Vectors along a chain, a transition matrix and an observation matrix of data; means by component as border."""
    T, d, m = 6, 3, 2
    F, H, y = (0.6 * np.eye(d) + 0.2 * rng.normal(size=(d, d))).round(2), rng.normal(size=(m, d)).round(2), rng.normal(size=(T, m)).round(3)
    n = Normal(names("c", d) + names("x", T, d))
    for k in range(1, d + 1):
        n.add([("c.%d" % k, 1)], 0, 2)
        for t in range(1, T + 1):
            n.add([("x.%d.%d" % (t, k), 1), ("c.%d" % k, -1)] + ([("x.%d.%d" % (t - 1, j + 1), -F[k - 1, j]) for j in range(d)] if t > 1
                                                                 else []), 0, 0.5 + 0.1 * k)
    for t in range(1, T + 1):
        for i in range(m):
            n.add([("x.%d.%d" % (t, j + 1), H[i, j]) for j in range(d)], y[t - 1, i], 0.3)
    return """data { int T; int d; int m; matrix[d, d] F; matrix[m, d] H; matrix[T, m] y; }
prior {
  for (k in 1:d) c[k] ~ normal(0, 2);
  for (k in 1:d) x[1, k] ~ normal(c[k], 0.5 + 0.1*k);
  for (t in 2:T, k in 1:d) x[t, k] ~ normal(c[k] + sum(j in 1:d, F[k, j]*x[t-1, j]), 0.5 + 0.1*k);
}
likelihood { for (t in 1:T, i in 1:m) y[t, i] ~ normal(sum(j in 1:d, H[i, j]*x[t, j]), 0.3); }""", {"T": T, "d": d, "m": m, "F": F, "H": H,
        "y": y}, n, "band"


def panel():
    """Series of different lengths, one of length 1, with a common mean; places behind the end of a series have no statement."""
    n_series, T = 4, [5, 1, 3, 6]
    y = rng.normal(size=(n_series, max(T))).round(3)
    n = Normal(["mu"] + ["x.%d.%d" % (i + 1, t + 1) for i in range(n_series) for t in range(T[i])])
    n.add([("mu", 1)], 0, 2)
    for i in range(n_series):
        for t in range(T[i]):
            n.add([("x.%d.%d" % (i + 1, t + 1), 1)] + ([("x.%d.%d" % (i + 1, t), -0.9), ("mu", -0.1)] if t else [("mu", -1)]), 0,
                  0.6 if t else 1)
            n.add([("x.%d.%d" % (i + 1, t + 1), 1)], y[i, t], 0.5)
    return """data { int I; int S; int T[I]; real y[I, S]; }
prior { mu ~ normal(0, 2); for (i in 1:I) { x[i, 1] ~ normal(mu, 1); for (t in 2:T[i]) x[i, t] ~ normal(0.9*x[i, t-1] + 0.1*mu, 0.6); } }
likelihood { for (i in 1:I, t in 1:T[i]) y[i, t] ~ normal(x[i, t], 0.5); real x[I, S]; }""", {"I": n_series, "S": max(T), "T": T,
        "y": y}, n, "band"


def across():
    """The chain goes along the first subscript, a panel along the second; an independent noise beside it joins; weights differ from place
    to place."""
    T, m = 5, 3
    y, w = rng.normal(size=(T, m)).round(3), (0.3 + rng.random((T, m))).round(2)
    n = Normal(names("x", T, m) + names("u", T, m))
    for t in range(1, T + 1):
        for i in range(1, m + 1):
            n.add([("x.%d.%d" % (t, i), 1)] + ([("x.%d.%d" % (t - 1, i), -1)] if t > 1 else []), 0, w[t - 1, i - 1] if t > 1 else 2)
            n.add([("u.%d.%d" % (t, i), 1)], 0, 0.7)
            n.add([("x.%d.%d" % (t, i), 1), ("u.%d.%d" % (t, i), 1)], y[t - 1, i - 1], 0.4)
    return """data { int T; int m; real y[T, m]; real w[T, m]; }
prior {
  for (i in 1:m) x[1, i] ~ normal(0, 2);
  for (t in 2:T, i in 1:m) x[t, i] ~ normal(x[t-1, i], w[t, i]);
  for (t in 1:T, i in 1:m) u[t, i] ~ normal(0, 0.7);
}
likelihood { for (t in 1:T, i in 1:m) y[t, i] ~ normal(x[t, i] + u[t, i], 0.4); }""", {"T": T, "m": m, "y": y, "w": w}, n, "band"


def walk(T):
    def case():
        y = rng.normal(size=T).round(3)
        n = Normal(names("x", T))
        n.add([("x.1", 1)], 0, 2)
        for t in range(1, T + 1):
            if t > 1:
                n.add([("x.%d" % t, 1), ("x.%d" % (t - 1), -1)], 0, 1)
            n.add([("x.%d" % t, 1)], y[t - 1], 0.5)
        return """data { int<lower=1> T; vector[T] y; }
prior { x[1] ~ normal(0, 2); for (t in 2:T) x[t] ~ normal(x[t-1], 1); }
likelihood { y ~ normal(x, 0.5); }""", {"T": T, "y": y}, n, "band"
    return case


def innovations():
    """A series made of innovations: these, its start, their mean and a drift within the definition are one draw."""
    T = 7
    y = rng.normal(size=T).round(3)
    n = Normal(["a", "m", "drift"] + names("r", T - 1))
    n.add([("a", 1)], 0.3, 2)
    n.add([("m", 1)], 0, 1)
    n.add([("drift", 1)], 0, 0.5)
    at = {"a": 1}                                # the element of the series, in terms of the unknowns
    for t in range(T):
        n.add(list(at.items()), y[t], 0.4)
        if t < T - 1:
            n.add([("r.%d" % (t + 1), 1), ("m", -1)], 0, 0.6)
            at = {k: 0.7 * v for k, v in at.items()}
            for k, v in (("drift", 1), ("r.%d" % (t + 1), 1)):
                at[k] = at.get(k, 0) + v
    # with a datum in it the definition stays as it is written: others are centred (graph/centred_latent.gm)
    return """data { int<lower=2> T; vector[T] y; real d; }
prior { a ~ normal(0.3, 2); m ~ normal(0, 1); drift ~ normal(0, 0.5); }
latent { for (t in 1:T-1) r[t] ~ normal(m, 0.6); x[1] = a; for (t in 1:T-1) x[t+1] = 0.7*x[t] + drift + d + r[t]; }
likelihood { y ~ normal(x, 0.4); }""", {"T": T, "y": y, "d": 0}, n, "through (x, m, drift)"


def standardised():
    """Innovations of one plate in two statements, with coefficients of their own, over a panel; some are missing from the likelihood."""
    T, m = 5, 2
    y = rng.normal(size=(m, T)).round(3)
    n = Normal(names("z", m, T))
    for i in range(1, m + 1):
        at = {}
        for t in range(1, T + 1):
            at = {k: 0.6 * v for k, v in at.items()}
            at["z.%d.%d" % (i, t)] = 1.5 if t == 1 else 0.8 * i
            n.add([("z.%d.%d" % (i, t), 1)], 0, 1)
            if t != 3:
                n.add(list(at.items()), y[i - 1, t - 1], 0.5)
    return """data { int<lower=1> T; int m; matrix[m, T] y; }
prior { for (i in 1:m, t in 1:T) z[i, t] ~ normal(0, 1); }
likelihood {
  for (i in 1:m) { x[i, 1] = 1.5*z[i, 1]; for (t in 2:T) x[i, t] = 0.6*x[i, t-1] + 0.8*i*z[i, t]; }
  for (i in 1:m, t in 1:T) if (t != 3) y[i, t] ~ normal(x[i, t], 0.5);
}""", {"T": T, "m": m, "y": y}, n, "is drawn in place of z"


CASES = {"innovations": innovations, "standardised": standardised, "ar1": ar1, "ar2": ar2, "trend": trend, "states": states, "panel": panel,
         "across": across, "one": walk(1), "two": walk(2)}


def check(w, name):
    model, data, n, how = CASES[name]()
    program = w.compile(name, model)
    plan = subprocess.run([w.gmc, "-q", "--explain=full", w.path(name + ".gm")], capture_output=True, text=True).stdout
    if how and how not in plan:
        return False, "%s: no %s in the plan" % (name, how)
    path = w.data(name, data)
    claims = subprocess.run([program, path, "--check", "--seed", "3"], capture_output=True, text=True)
    if claims.returncode or "ok" not in claims.stdout:
        return False, "%s: --check says\n%s" % (name, claims.stdout + claims.stderr)
    d = w.draws(program, path, DRAWS, seed=1, chains=1, warmup=10)
    z = np.stack([d[c][0] for c in n.at], axis=1)
    S = np.linalg.inv(n.J)
    mean, worst = S @ n.h, 0
    along = rng.normal(size=(10, len(mean)))
    centred = (z - mean) @ along.T / np.sqrt(np.einsum("ij,jk,ik->i", along, S, along))
    worst = np.abs((z.mean(axis=0) - mean) / np.sqrt(np.diag(S) / DRAWS)).max()
    worst = max(worst, np.abs(((centred ** 2).mean(axis=0) - 1) / np.sqrt(2 / DRAWS)).max())
    worst = max(worst, np.abs((centred[1:] * centred[:-1]).mean(axis=0) * np.sqrt(DRAWS)).max())
    return worst < 6, "%s: largest |z| %.2f < 6" % (name, worst)


def main():
    bad = 0
    with Workplace() as w:
        w.gmc = __import__("program").GMC
        for name in sys.argv[1:] or CASES:
            try:
                good, says = check(w, name)
            except Failed as e:
                good, says = False, "%s: %s" % (name, e)
            bad += not good
            print("ok  " if good else "FAIL", says)
    return bad > 0


sys.exit(main())
