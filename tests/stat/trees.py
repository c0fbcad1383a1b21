"""If this fails, discrete unknowns whose laws depend on each other, drawn as a tree (compiler/graph/rewrite/trees.c), are not a draw from
their joint law.

    trees.py [NAME ...]

All else is data, so draws are independent, but for missing values and for several parents of one child, which are drawn one after another.
Values of all unknowns together are counted over sweeps and held against their exact probabilities, of an enumeration here that knows
nothing of trees; the smallest probability of a chi-square statistic is at least 1e-7 (joined.py). What is impossible must not be drawn.
Each model is drawn with a CPU's updates and with those of a GPU, on a CPU. `--explain` has to say that the first name of a case is drawn
with others summed out, so that it is this that is tested.
"""
import subprocess
import sys

import numpy as np

import joined
from joined import Case, log, normal
from program import GMC, Failed
from states import Programs


def be(v, p):
    return log(p if v else 1 - p)


def binomial(y, n, p):
    from scipy.special import comb
    return log(comb(n, y)) + (y * log(p) if y else 0) + ((n - y) * log(1 - p) if n - y else 0)


def sites(name, shape, first, last):
    return [(".".join([name] + [str(k + 1) for k in at]), first, last) for at in np.ndindex(*shape)]


def community(rng):
    """What is never there is nowhere: most values of the children are impossible."""
    y, psi, p = [[0, 0, 0], [0, 2, 0]], [0.4, 0.3], [0.3, 0.5]
    model = """data { int S, n; int y[S, n]; vector[S] psi, p; }
latent { for (k in 1:S) { w[k] ~ bernoulli(0.6); for (i in 1:n) z[k, i] ~ bernoulli(w[k] * psi[k]); } }
likelihood { for (k in 1:S, i in 1:n) y[k, i] ~ binomial(3, z[k, i] * p[k]); }"""

    def density(x):
        lp = 0
        for k in range(2):
            w = x["w.%d" % (k + 1)]
            lp += be(w, .6)
            for i in range(3):
                z = x["z.%d.%d" % (k + 1, i + 1)]
                lp += be(z, w * psi[k]) + binomial(y[k][i], 3, z * p[k])
        return lp
    return Case(model, {"S": 2, "n": 3, "y": y, "psi": psi, "p": p}, sites("w", [2], 0, 1) + sites("z", [2, 3], 0, 1), density)


def gathered(rng):
    """Children find their parent by data, one by two rows of observations, of which one is missing; conditions; a parent without children;
    some children do not exist."""
    g, has, y, Q = [1, 3, 3, 1], [1, 1, 0, 1], [0.4, 2.0, 9.0, None], rng.dirichlet(np.ones(3), 3).round(3)
    Q[0] = [0.5, 0.5, 0]
    Q[2] = 1 - Q[1]
    Q[2] /= Q[2].sum()
    model = """data { int n; int g[n], has[n]; vector[n] y; matrix[3, 3] Q; simplex[3] q; }
latent { for (k in 1:3) w[k] ~ categorical(q); for (i in 1:n) if (has[i] == 1) z[i] ~ categorical(Q[w[g[i]]]); }
likelihood { for (i in 1:n) if (has[i] == 1) y[i] ~ normal(z[i], 0.8); }"""
    q = [0.2, 0.3, 0.5]

    def density(x):
        w = [x["w.%d" % k] for k in (1, 2, 3)]
        lp = sum(log(q[v - 1]) for v in w)
        for i in range(4):
            if has[i]:
                z = x["z.%d" % (i + 1)]
                lp += log(Q[w[g[i] - 1] - 1][z - 1]) + normal(y[i], z, .8)
        return lp
    return Case(model, {"n": 4, "g": g, "has": has, "y": y, "Q": Q, "q": q}, sites("w", [3], 1, 3) + [("z.1", 1, 3), ("z.2", 1, 3),
            ("z.4", 1, 3)], density, 10)


def three_deep(rng):
    """Children of children, and an observation of each level."""
    y, u = [[0.3, 1.4], [2.2, 0.1]], [0, 1]
    model = """data { int S, n; matrix[S, n] y; int u[S]; }
latent { v ~ bernoulli(0.3); for (k in 1:S) { w[k] ~ discrete_range(0, 1 + v); for (i in 1:n) z[k, i] ~ bernoulli(0.9 * w[k] / 2); } }
likelihood { for (k in 1:S) { u[k] ~ bernoulli(0.2 + 0.3 * w[k]); for (i in 1:n) y[k, i] ~ normal(z[k, i] + 0.5 * v, 0.7); } }"""
    model = model.replace("discrete_range(0, 1 + v)", "categorical(Q[v + 1])").replace("int u[S]; }",
            "int u[S]; matrix[2, 3] Q; }").replace("w[k] / 2", "(w[k] - 1) / 2").replace("0.3 * w[k])", "0.3 * (w[k] - 1))")
    Q = [[0.5, 0.5, 0], [0.2, 0.3, 0.5]]

    def density(x):
        v = x["v"]
        lp = be(v, .3)
        for k in range(2):
            w = x["w.%d" % (k + 1)]
            lp += log(Q[v][w - 1]) + be(u[k], .2 + .3 * (w - 1))
            for i in range(2):
                z = x["z.%d.%d" % (k + 1, i + 1)]
                lp += be(z, .9 * (w - 1) / 2) + normal(y[k][i], z + .5 * v, .7)
        return lp
    return Case(model, {"S": 2, "n": 2, "y": y, "u": u, "Q": Q}, [("v", 0, 1)] + sites("w", [2], 1, 3) + sites("z", [2, 2], 0, 1), density)


def several(rng):
    """Two kinds of children, which an observation ties to each other, a bounded count, and a child of the parent's own shape."""
    y = [[1.0, 2.0], [0.2, 3.1]]
    model = """data { int S, n; matrix[S, n] y; }
latent { for (k in 1:S) { w[k] ~ bernoulli(0.5); u[k] ~ bernoulli(0.7 * w[k]); for (i in 1:n) { a[k, i] ~ bernoulli(0.2 + 0.6 * w[k]);
  int<lower=0, upper=2> b[k, i] ~ binomial(2, 0.3 + 0.4 * w[k]); } } }
likelihood { for (k in 1:S, i in 1:n) y[k, i] ~ normal(a[k, i] + b[k, i] + 0.3 * u[k], 0.6); }"""

    def density(x):
        lp = 0
        for k in range(2):
            w, u = x["w.%d" % (k + 1)], x["u.%d" % (k + 1)]
            lp += be(w, .5) + be(u, .7 * w)
            for i in range(2):
                a, b = x["a.%d.%d" % (k + 1, i + 1)], x["b.%d.%d" % (k + 1, i + 1)]
                lp += be(a, .2 + .6 * w) + binomial(b, 2, .3 + .4 * w) + normal(y[k][i], a + b + .3 * u, .6)
        return lp
    s = sites("w", [2], 0, 1) + sites("u", [2], 0, 1) + sites("a", [2, 2], 0, 1) + sites("b", [2, 2], 0, 2)
    return Case(model, {"S": 2, "n": 2, "y": y}, s, density, 10)


def two_parents(rng):
    """A child of a row and of a column, which are drawn one after another."""
    y = [[0.9, 0.1], [0.4, -0.3]]
    model = """data { int S, n; matrix[S, n] y; }
latent { for (k in 1:S) w[k] ~ bernoulli(0.6); for (i in 1:n) v[i] ~ bernoulli(0.7);
  for (k in 1:S, i in 1:n) z[k, i] ~ bernoulli(0.8 * w[k] * v[i]); }
likelihood { for (k in 1:S, i in 1:n) y[k, i] ~ normal(z[k, i], 0.5); }"""

    def density(x):
        w, v = [x["w.%d" % k] for k in (1, 2)], [x["v.%d" % k] for k in (1, 2)]
        return sum(be(a, .6) for a in w) + sum(be(a, .7) for a in v) + sum(
            be(x["z.%d.%d" % (k + 1, i + 1)], .8 * w[k] * v[i]) + normal(y[k][i], x["z.%d.%d" % (k + 1, i + 1)], .5) for k in range(2)
            for i in range(2))
    return Case(model, {"S": 2, "n": 2, "y": y}, sites("w", [2], 0, 1) + sites("v", [2], 0, 1) + sites("z", [2, 2], 0, 1), density, 10)


ONE = """data { int n; vector[n] y; int<lower=1> K; simplex[K] q; array[2, K] real Q; }
latent { w ~ bernoulli(0.3); for (i in 1:n) z[i] ~ categorical(Q[w + 1]); }
likelihood { for (i in 1:n) y[i] ~ normal(z[i], 0.9); }"""


def one_parent(n, K):
    def case(rng):
        """One parent of all; how many values its children have is data."""
        y, Q = [1.3, 2.4, 0.7][:n], rng.dirichlet(np.ones(K), 2)

        def density(x):
            return be(x["w"], .3) + sum(log(Q[x["w"]][x["z.%d" % (i + 1)] - 1]) + normal(y[i], x["z.%d" % (i + 1)], .9) for i in range(n))
        return Case(ONE, {"n": n, "y": y, "K": K, "q": [1 / K] * K, "Q": Q}, [("w", 0, 1)] + sites("z", [n], 1, K), density)
    return case


def by_pieces(rng):
    """Several statements of one name: the first child does not depend on the parent, others do in different ways."""
    y = [[0.4, 1.2, 0.8], [1.1, 0.2, 0.6]]
    model = """data { int S, n; matrix[S, n] y; }
latent { for (k in 1:S) { w[k] ~ bernoulli(0.6); z[k, 1] ~ bernoulli(0.3); z[k, 2] ~ bernoulli(0.9 * w[k]);
  for (i in 3:n) z[k, i] ~ bernoulli(0.8 - 0.8 * w[k]); } }
likelihood { for (k in 1:S, i in 1:n) y[k, i] ~ normal(z[k, i], 0.7); }"""

    def density(x):
        lp = 0
        for k in range(2):
            w, z = x["w.%d" % (k + 1)], [x["z.%d.%d" % (k + 1, i)] for i in (1, 2, 3)]
            lp += be(w, .6) + be(z[0], .3) + be(z[1], .9 * w) + be(z[2], .8 - .8 * w) + sum(normal(y[k][i], z[i], .7) for i in range(3))
        return lp
    return Case(model, {"S": 2, "n": 3, "y": y}, sites("w", [2], 0, 1) + sites("z", [2, 3], 0, 1), density)


def along_a_chain(rng):
    """Parents that follow each other."""
    y, P = [[0.1, 0.9], [1.3, 0.8], [0.2, 1.2]], [[0.9, 0.1], [0, 1]]
    model = """data { int T, n; matrix[T, n] y; matrix[2, 2] P; }
latent { s[1] ~ categorical([0.7, 0.3]); for (t in 2:T) s[t] ~ categorical(P[s[t - 1]]);
  for (t in 1:T, i in 1:n) z[t, i] ~ bernoulli(0.8 * (s[t] - 1)); }
likelihood { for (t in 1:T, i in 1:n) y[t, i] ~ normal(z[t, i], 0.8); }"""

    def density(x):
        s = [x["s.%d" % t] - 1 for t in (1, 2, 3)]
        lp = log([.7, .3][s[0]]) + sum(log(P[s[t - 1]][s[t]]) for t in (1, 2))
        return lp + sum(be(x["z.%d.%d" % (t + 1, i + 1)], .8 * s[t]) + normal(y[t][i], x["z.%d.%d" % (t + 1, i + 1)], .8) for t in range(3)
                        for i in range(2))
    return Case(model, {"T": 3, "n": 2, "y": y, "P": P}, sites("s", [3], 1, 2) + sites("z", [3, 2], 0, 1), density)


def by_rows(rng):
    """Rows of observations look up children that have a parent of their own; one of no rows; an observation that is missing."""
    species, site, y = [1, 1, 2, 2, 2], [1, 1, 2, 4, 4, 5], [0.3, None, 1.4, 0.6, 1.1, -0.2]
    model = """data { int S, M, N; int species[M], site[N]; vector[N] y; }
latent { for (k in 1:S) w[k] ~ bernoulli(0.6); for (m in 1:M) z[m] ~ bernoulli(0.8 * w[species[m]]); }
likelihood { for (i in 1:N) y[i] ~ normal(z[site[i]], 0.7); }"""

    def density(x):
        w, z = [x["w.%d" % k] for k in (1, 2)], [x["z.%d" % m] for m in range(1, 6)]
        return sum(be(a, .6) for a in w) + sum(be(z[m], .8 * w[species[m] - 1]) for m in range(5)) + sum(normal(y[i], z[site[i] - 1], .7)
                for i in range(6))
    return Case(model, {"S": 2, "M": 5, "N": 6, "species": species, "site": site, "y": y}, sites("w", [2], 0, 1) + sites("z", [5], 0, 1),
                density, 10)


def in_slices(rng):
    """Children in slices, whose parent is the one that picked the slice: of no, one and three; an observation there and one elsewhere."""
    first, last, y, x = [1, 2, 2], [1, 1, 4], [0.3, 1.4, None, 2.2], [0.5, 0.2, 1.8, 1.1]
    model = """data { int S, n; int first[S], last[S]; vector[n] x, y; vector[S] u; }
latent { for (k in 1:S) w[k] ~ bernoulli(0.6); for (k in 1:S) for (i in first[k]:last[k])
  z[i] ~ categorical([0.8 * w[k], 0.7 - 0.5 * w[k], 0.3 - 0.3 * w[k]]); }
likelihood { for (k in 1:S) for (i in first[k]:last[k]) y[i] ~ normal(z[i] + 0.5 * w[k], 0.7);
  for (i in 1:n) x[i] ~ normal(0.6 * z[i], 0.9); for (k in 1:S) u[k] ~ normal(w[k], 1.5); }"""
    u = [0.2, 0.4, 1.0]

    def density(x_):
        w, lp = [x_["w.%d" % k] for k in (1, 2, 3)], 0
        for k in range(3):
            lp += be(w[k], .6) + normal(u[k], w[k], 1.5)
            for i in range(first[k], last[k] + 1):
                z = x_["z.%d" % i]
                lp += log([.8 * w[k], .7 - .5 * w[k], .3 - .3 * w[k]][z - 1]) + normal(y[i - 1], z + .5 * w[k], .7) + normal(x[i - 1],
                        .6 * z, .9)
        return lp
    return Case(model, {"S": 3, "n": 4, "first": first, "last": last, "x": x, "y": y, "u": u},
                sites("w", [3], 0, 1) + sites("z", [4], 1, 3), density, 10)


def locked(rng):
    """A parent that has its value for sure, given the child, and children of that one, which rows look up."""
    h, first, last, row, y = [1, 1], [1, 2], [1, 3], [1, 2, 2, 3], [0.3, 1.5, 0.6, -0.5]
    model = """data { int S, N; int h[S], first[S], last[S], row[N]; vector[N] y; }
latent { for (j in 1:2) v[j] ~ bernoulli(0.4); for (k in 1:S) w[k] ~ binomial(2, v[h[k]]);
  for (k in 1:S) for (i in first[k]:last[k]) int<lower=0, upper=2> z[i] ~ binomial(2, 0.1 + 0.4 * w[k]); }
likelihood { for (r in 1:N) y[r] ~ normal(0.8 * z[row[r]], 0.7); }"""

    def density(x):
        v, w = [x["v.%d" % k] for k in (1, 2)], [x["w.%d" % k] for k in (1, 2)]
        lp = sum(be(a, .4) for a in v) + sum(log(1 if w[k] == 2 * v[h[k] - 1] else 0) for k in range(2))
        for k in range(2):
            lp += sum(binomial(x["z.%d" % i], 2, .1 + .4 * w[k]) for i in range(first[k], last[k] + 1))
        return lp + sum(normal(y[r], .8 * x["z.%d" % row[r]], .7) for r in range(4))
    return Case(model, {"S": 2, "N": 4, "h": h, "first": first, "last": last, "row": row, "y": y},
                sites("v", [2], 0, 1) + sites("w", [2], 0, 2) + sites("z", [3], 0, 2), density)


CASES = {"in slices": in_slices, "locked": locked, "by rows": by_rows, "community": community, "gathered": gathered,
         "three deep": three_deep, "several": several, "two parents": two_parents, "one parent": one_parent(3, 4),
         "no children": one_parent(0, 2), "one child": one_parent(1, 3),
         "by pieces": by_pieces, "along a chain": along_a_chain}


def check(w, name, like_gpu):
    case = CASES[name](np.random.default_rng(31))
    source = w.path("explained.gm")
    with open(source, "w") as f:
        f.write(case.model)
    said = subprocess.run([GMC, "--explain=full", source], capture_output=True, text=True).stdout
    if "summed out of its law" not in said:
        return False, "it is not drawn as a tree"
    return joined.check(w, name, like_gpu)


def main(names):
    failed = 0
    joined.CASES = CASES
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
                print("%-5s %-4s %-28s %s" % ("ok" if good else "FAIL", "gpu" if like_gpu else "cpu", name, says), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
