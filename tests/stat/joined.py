"""If this fails, discrete unknowns that are drawn together by the product of their values (compiler/graph/rewrite/joined.c) are not a draw
from their joint law.

    joined.py [NAME ...]

All else is data, or summed out, so draws are independent, but for a missing value. Paths of all unknowns together are counted over DRAWS
sweeps and held against their exact probabilities, of an enumeration of all paths here that knows nothing of chains; the smallest
probability of a chi-square statistic is at least 1e-7: a false alarm is rarer than that for each run. A path that is impossible must not be
drawn. Each model is drawn with a CPU's updates and with those of a GPU, on a CPU; where sizes decide, with sizes for which unknowns are
drawn together, and in turn.
"""
import itertools
import sys

import numpy as np
from scipy.special import logsumexp

from program import Failed
from states import Programs, chi_square

DRAWS = 20000
FALSE_ALARM = 1e-7


def normal(y, m, s):
    return 0.0 if y is None else -0.5 * ((y - m) / s) ** 2 - np.log(s)


def log(p):
    return -np.inf if p <= 0 else np.log(p)


def rows(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


class Case:
    """model, data, sites [(name, first, last)] in order, log density of a path (dict of names). Where a value is missing, or unknowns are
    drawn in turn, a draw depends on the one before: every so many are counted."""

    def __init__(self, model, data, sites, density, every=1):
        self.model, self.data, self.sites, self.density, self.every = model, data, sites, density, every


def chain(name, T, K, first=1):
    return [("%s.%d" % (name, t), first, K + first - 1) for t in range(1, T + 1)]


PAIR = """data { int<lower=1> T; vector[T] y; vector[3] a; vector[2] b; matrix[3,3] P; matrix[2,2] Q; }
latent { s[1] ~ categorical([0.2,0.3,0.5]); z[1] ~ categorical([0.4,0.6]); for (t in 2:T) { s[t] ~ categorical(P[s[t-1]]);
  z[t] ~ categorical(Q[z[t-1]]); } }
likelihood { for (t in 1:T) y[t] ~ normal(a[s[t]] + b[z[t]], 0.5); }"""


def pair(rng):
    """Two chains, whose transitions know nothing of each other."""
    T, P, Q, a, b = 3, rows(rng, 3, 3), rows(rng, 2, 2), [0, 1, 2], [0, 1.1]
    y = [1.0, 2.0, 1.2]

    def density(x):
        s, z = [x["s.%d" % t] - 1 for t in (1, 2, 3)], [x["z.%d" % t] - 1 for t in (1, 2, 3)]
        return log([.2, .3, .5][s[0]]) + log([.4, .6][z[0]]) + sum(log(P[s[t - 1]][s[t]]) + log(Q[z[t - 1]][z[t]])
                                                                   for t in (1, 2)) + sum(normal(y[t], a[s[t]] + b[z[t]], .5)
                                                                           for t in range(T))
    return Case(PAIR, {"T": T, "y": y, "a": a, "b": b, "P": P, "Q": Q}, chain("s", T, 3) + chain("z", T, 2), density)


def one_element(rng):
    """Chains of one element."""
    c = pair(rng)

    def density(x):
        return log([.2, .3, .5][x["s.1"] - 1]) + log([.4, .6][x["z.1"] - 1]) + normal(1.0,
                c.data["a"][x["s.1"] - 1] + c.data["b"][x["z.1"] - 1], .5)
    return Case(PAIR, dict(c.data, T=1, y=[1.0]), chain("s", 1, 3) + chain("z", 1, 2), density)


def given_new(rng):
    """The transition of the second knows the new state of the first, by data of the time; some transitions are impossible; two observations
    a state, one of them under a condition, one missing."""
    T, P, Q = 3, rows(rng, 3, 3, 3), rows(rng, 3, 2, 2)
    P[1, 0, 1] = 0
    P[1, 0] /= P[1, 0].sum()
    Q[2, 0] = [1, 0]
    y, w, use = [1.0, None, 2.2], [1, 0, 1], [1, 0, 1]
    model = """data { int T; vector[T] y; int w[T]; int use[T]; array[T, 3, 3] real P; array[3, 2, 2] real Q; }
latent { s[1] ~ discrete_range(1, 3); z[1] ~ discrete_range(1, 2); for (t in 2:T) { s[t] ~ categorical(P[t, s[t-1]]);
  z[t] ~ categorical(Q[s[t], z[t-1]]); } }
likelihood { for (t in 1:T) { y[t] ~ normal(s[t]*z[t], 0.7); if (use[t] == 1) w[t] ~ bernoulli(0.2*s[t]); } }"""

    def density(x):
        s, z = [x["s.%d" % t] for t in (1, 2, 3)], [x["z.%d" % t] for t in (1, 2, 3)]
        lp = sum(log(P[t][s[t - 1] - 1][s[t] - 1]) + log(Q[s[t] - 1][z[t - 1] - 1][z[t] - 1]) for t in (1, 2))
        return lp + sum(normal(y[t], s[t] * z[t], .7) + (use[t] == 1) * log(.2 * s[t] if w[t] else 1 - .2 * s[t]) for t in range(T))
    return Case(model, {"T": T, "y": y, "w": w, "use": use, "P": P, "Q": Q}, chain("s", T, 3) + chain("z", T, 2), density, 10)


def given_old(rng):
    """The transition of the first knows what the second was: messages are summed over the second first. Values of the second begin at 0."""
    T, P, q = 3, rows(rng, 2, 3, 3), [0.3, 0.8]
    y = [1.5, 3.0, 2.0]
    model = """data { int T; vector[T] y; array[2, 3, 3] real P; vector[2] q; }
latent { s[1] ~ discrete_range(1, 3); z[1] ~ bernoulli(0.4); for (t in 2:T) { s[t] ~ categorical(P[z[t-1] + 1, s[t-1]]);
  z[t] ~ bernoulli(q[z[t-1] + 1]); } }
likelihood { for (t in 1:T) y[t] ~ normal(s[t] + z[t], 0.8); }"""

    def density(x):
        s, z = [x["s.%d" % t] - 1 for t in (1, 2, 3)], [x["z.%d" % t] for t in (1, 2, 3)]
        lp = log([.6, .4][z[0]]) + sum(log(P[z[t - 1]][s[t - 1]][s[t]]) + log(q[z[t - 1]] if z[t] else 1 - q[z[t - 1]]) for t in (1, 2))
        return lp + sum(normal(y[t], s[t] + 1 + z[t], .8) for t in range(T))
    return Case(model, {"T": T, "y": y, "P": P, "q": q}, chain("s", T, 3) + chain("z", T, 2, 0), density)


def circle(rng):
    """Each transition knows what the other was: no order of sums, one link of all."""
    T, P, Q = 3, rows(rng, 2, 3, 3), rows(rng, 3, 2, 2)
    model = """data { int T; vector[T] y; array[2, 3, 3] real P; array[3, 2, 2] real Q; }
latent { s[1] ~ discrete_range(1, 3); z[1] ~ discrete_range(1, 2); for (t in 2:T) { s[t] ~ categorical(P[z[t-1], s[t-1]]);
  z[t] ~ categorical(Q[s[t-1], z[t-1]]); } }
likelihood { for (t in 1:T) y[t] ~ normal(s[t] - z[t], 0.8); }"""
    y = [1.5, 0.2, -0.4]

    def density(x):
        s, z = [x["s.%d" % t] - 1 for t in (1, 2, 3)], [x["z.%d" % t] - 1 for t in (1, 2, 3)]
        return sum(log(P[z[t - 1]][s[t - 1]][s[t]]) + log(Q[s[t - 1]][z[t - 1]][z[t]]) for t in (1, 2)) + sum(normal(y[t], s[t] - z[t], .8)
                for t in range(T))
    return Case(model, {"T": T, "y": y, "P": P, "Q": Q}, chain("s", T, 3) + chain("z", T, 2), density)


def three(rng):
    """Three chains of two values; the third knows what is new of the first and what was of the second. An observation of neighbours."""
    T, y = 2, [1.0, 3.3]
    p = rng.random((2, 2, 2)).round(3)
    model = """data { int T; vector[T] y; array[2, 2, 2] real p; }
latent { a[1] ~ bernoulli(0.3); b[1] ~ bernoulli(0.4); c[1] ~ bernoulli(0.5);
for (t in 2:T) { a[t] ~ bernoulli(0.2 + 0.6*a[t-1]); b[t] ~ bernoulli(0.7 - 0.4*b[t-1]);
c[t] ~ bernoulli(p[a[t] + 1, b[t-1] + 1, c[t-1] + 1]); } }
likelihood { for (t in 1:T) y[t] ~ normal(a[t] + 2*b[t] + 0.5*c[t] + (t > 1 ? a[t-1]*b[t] : 0), 0.6); }"""

    def density(x):
        a, b, c = ([x["%s.%d" % (v, t)] for t in (1, 2)] for v in "abc")
        be = lambda v, q: log(q if v else 1 - q)
        lp = be(a[0], .3) + be(b[0], .4) + be(c[0], .5) + be(a[1], .2 + .6 * a[0]) + be(b[1], .7 - .4 * b[0]) + be(c[1],
                p[a[1]][b[0]][c[0]])
        return lp + sum(normal(y[t], a[t] + 2 * b[t] + .5 * c[t] + (a[t - 1] * b[t] if t else 0), .6) for t in range(T))
    return Case(model, {"T": T, "y": y, "p": p}, chain("a", T, 2, 0) + chain("b", T, 2, 0) + chain("c", T, 2, 0), density)


def with_labels(rng):
    """A chain, and labels that do not follow each other."""
    T, P, w = 3, rows(rng, 3, 3), [0.5, 0.2, 0.3]
    y = [2.0, 4.0, 3.0]
    model = """data { int T; vector[T] y; matrix[3, 3] P; simplex[3] w; }
latent { s[1] ~ discrete_range(1, 3); for (t in 2:T) s[t] ~ categorical(P[s[t-1]]); for (t in 1:T) c[t] ~ categorical(w); }
likelihood { for (t in 1:T) y[t] ~ normal(s[t] + c[t], 0.6); }"""

    def density(x):
        s, c = [x["s.%d" % t] for t in (1, 2, 3)], [x["c.%d" % t] for t in (1, 2, 3)]
        return sum(log(P[s[t - 1] - 1][s[t] - 1]) for t in (1, 2)) + sum(log(w[c[t] - 1]) + normal(y[t], s[t] + c[t], .6) for t in range(T))
    return Case(model, {"T": T, "y": y, "P": P, "w": w}, chain("s", T, 3) + chain("c", T, 3), density)


def over_a_sum(rng):
    """Two chains, and labels that are summed out of what they see, and drawn before them."""
    T, P, y = 2, rows(rng, 3, 3), [2.0, 4.0]
    model = """data { int T; vector[T] y; matrix[3, 3] P; }
latent { s[1] ~ discrete_range(1, 3); u[1] ~ bernoulli(0.5); for (t in 2:T) { s[t] ~ categorical(P[s[t-1]]);
  u[t] ~ bernoulli(0.2 + 0.5*u[t-1]); } for (t in 1:T) c[t] ~ bernoulli(0.2*s[t]); }
likelihood { for (t in 1:T) y[t] ~ normal(s[t] + 1.5*u[t] + 0.8*c[t], 0.6); }
infer { c by marginal; }"""

    def density(x):
        s, u, c = [x["s.%d" % t] for t in (1, 2)], [x["u.%d" % t] for t in (1, 2)], [x["c.%d" % t] for t in (1, 2)]
        q = .2 + .5 * u[0]
        lp = log(P[s[0] - 1][s[1] - 1]) + log(q if u[1] else 1 - q)
        return lp + sum(log(.2 * s[t] if c[t] else 1 - .2 * s[t]) + normal(y[t], s[t] + 1.5 * u[t] + .8 * c[t], .6) for t in range(T))
    return Case(model, {"T": T, "y": y, "P": P}, chain("s", T, 3) + chain("u", T, 2, 0) + chain("c", T, 2, 0), density)


def panel(rng):
    """A chain for each of three individuals, time the first subscript, of lengths 2, 1 and 2; transitions by a covariate of the individual.
    The second unknown begins at the second time."""
    n, x, y = [2, 1, 2], [0.0, 0.2, 0.3], [[1.0, 0.2, 2.4], [2.0, 9.9, 1.1]]
    model = """data { int I, T; int n[I]; vector[I] x; array[T, I] real y; }
latent { for (i in 1:I) { u[1, i] ~ bernoulli(0.5); for (t in 2:n[i]) u[t, i] ~ bernoulli(0.2 + 0.5*u[t-1, i] + x[i]);
  for (t in 2:n[i]) v[t, i] ~ discrete_range(0, 2); } }
likelihood { for (i in 1:I) { y[1, i] ~ normal(2*u[1, i], 0.9); for (t in 2:n[i]) y[t, i] ~ normal(u[t, i] + v[t, i], 0.9); } }"""
    sites = [("u.1.1", 0, 1), ("u.1.2", 0, 1), ("u.1.3", 0, 1), ("u.2.1", 0, 1), ("u.2.3", 0, 1), ("v.2.1", 0, 2), ("v.2.3", 0, 2)]

    def density(z):
        lp = 0
        for i in range(3):
            lp += normal(y[0][i], 2 * z["u.1.%d" % (i + 1)], .9)
            if n[i] == 2:
                q = .2 + .5 * z["u.1.%d" % (i + 1)] + x[i]
                u, v = z["u.2.%d" % (i + 1)], z["v.2.%d" % (i + 1)]
                lp += log(q if u else 1 - q) + normal(y[1][i], u + v, .9)
        return lp
    return Case(model, {"I": 3, "T": 2, "n": n, "x": x, "y": y}, sites, density)


def labels(rng):
    """Labels of rows, no chain: together element by element. A third one meets one of the two; a row without one of them."""
    N, y, has, m = 3, [2.0, 3.9, 1.0], [1, 1, 0], [[0, 1.0, 2.0], [2.1, 3.0, 4.2]]
    model = """data { int N; vector[N] y; int has[N]; array[2, 3] real m; }
latent { for (i in 1:N) { a[i] ~ bernoulli(0.3); b[i] ~ categorical([0.3, 0.3, 0.4]); if (has[i] == 1) c[i] ~ bernoulli(0.1 + 0.2*b[i]); } }
likelihood { for (i in 1:N) { y[i] ~ normal(m[a[i] + 1, b[i]], 0.7); if (has[i] == 1) target += 1.5*(a[i] == c[i]); } }"""
    sites = [("a.%d" % i, 0, 1) for i in (1, 2, 3)] + [("b.%d" % i, 1, 3) for i in (1, 2, 3)] + [("c.%d" % i, 0, 1) for i in (1, 2)]

    def density(x):
        lp = 0
        for i in range(N):
            a, b = x["a.%d" % (i + 1)], x["b.%d" % (i + 1)]
            lp += log(.3 if a else .7) + log([.3, .3, .4][b - 1]) + normal(y[i], m[a][b - 1], .7)
            if has[i]:
                c = x["c.%d" % (i + 1)]
                lp += log(.1 + .2 * b if c else .9 - .2 * b) + 1.5 * (a == c)
        return lp
    return Case(model, {"N": N, "y": y, "has": has, "m": m}, sites, density)


SIZED = """data { int<lower=1> T, K, L; vector[T] y; vector[K] a; vector[L] b; matrix[K, K] P; matrix[L, L] Q; }
latent { s[1] ~ discrete_range(1, K); z[1] ~ discrete_range(1, L); for (t in 2:T) { s[t] ~ categorical(P[s[t-1]]);
  z[t] ~ categorical(Q[z[t-1]]); } }
likelihood { for (t in 1:T) y[t] ~ normal(a[s[t]] + b[z[t]], 1.5); }"""


def sized(K, L):
    def case(rng):
        """Numbers of values are data: sizes decide whether they are drawn together."""
        T, P, Q, a, b = 2, rows(rng, K, K), rows(rng, L, L), rng.normal(size=K).round(2), rng.normal(size=L).round(2)
        y = [0.4, 1.0]

        def density(x):
            s, z = [x["s.%d" % t] - 1 for t in (1, 2)], [x["z.%d" % t] - 1 for t in (1, 2)]
            return log(P[s[0]][s[1]]) + log(Q[z[0]][z[1]]) + sum(normal(y[t], a[s[t]] + b[z[t]], 1.5) for t in range(T))
        return Case(SIZED, {"T": T, "K": K, "L": L, "y": y, "a": a, "b": b, "P": P, "Q": Q}, chain("s", T, K) + chain("z", T, L), density,
                    1 if K * L <= 12 else 20)
    return case


CASES = {"pair": pair, "one element": one_element, "given what is new": given_new, "given what was": given_old, "circle": circle,
         "three": three, "with labels": with_labels, "over a sum": over_a_sum, "panel": panel, "labels": labels,
         "sizes, together": sized(3, 4), "sizes, in turn": sized(12, 11), "sizes, of one value": sized(1, 3),
         "sizes, more than a lane has": sized(5, 4)}


def check(w, name, like_gpu):
    case = CASES[name](np.random.default_rng(31))
    data = w.data("joined", {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in case.data.items()})
    program = w.build("sized" if case.model is SIZED else name.replace(" ", "_"), case.model, like_gpu)
    files = w.draws(program, data, DRAWS * (1 if case.every == 1 else 5), chains=1, warmup=10, params="all")
    drawn = np.stack([files[site].ravel()[::case.every] for site, _, _ in case.sites], axis=1).astype(int)
    paths = list(itertools.product(*[range(lo, hi + 1) for _, lo, hi in case.sites]))
    lp = np.array([case.density(dict(zip([s for s, _, _ in case.sites], p))) for p in paths])
    p = np.exp(lp - logsumexp(lp))
    count = np.zeros(len(paths))
    at = {path: i for i, path in enumerate(paths)}
    for row in drawn:
        count[at[tuple(row)]] += 1
    chance = chi_square(count, p)
    return chance >= FALSE_ALARM, "probability %.1e, %d paths, %d draws" % (chance, len(paths), len(drawn))


def main(names):
    failed = 0
    with Programs() as w:
        for like_gpu in (False, True):
            for name in CASES:
                if names and name not in names:
                    continue
                try:
                    good, says = check(w, name, like_gpu)
                except Failed as e:
                    good, says = False, str(e)
                failed += not good
                print("%-5s %-4s %-28s %s" % ("ok" if good else "FAIL", "gpu" if like_gpu else "cpu", name, says))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
