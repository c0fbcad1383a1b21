#!/usr/bin/env python3
"""Makes the data of the cookbook, NAME/data.json: simulated with fixed seeds, but for those that are published (facts of the papers that
are named).

    data.py [NAME ...]      all of them if no name is given; needs numpy
"""
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = {}


def made(f):
    MADE[f.__name__] = f
    return f


def expit(x):
    return 1 / (1 + np.exp(-x))


@made
def regression(r):
    x = r.normal(size=(30, 2))
    return dict(N=30, p=2, X=x, y=1 + x @ [2, -0.5] + r.normal(0, 1.5, 30))


@made
def robust(r):
    x = np.linspace(-2, 2, 25)
    y = 1 + 2 * x + r.normal(0, 0.5, 25)
    y[[3, 20]] += [8, -6]
    return dict(N=25, x=x, y=y)


@made
def logistic(r):
    x = r.normal(size=(60, 2))
    return dict(N=60, p=2, X=x, y=(r.random(60) < expit(-0.5 + x @ [1.2, -0.8])).astype(int))


@made
def hierarchical(r):
    """Rubin 1981, Journal of Educational Statistics 6: coaching in eight schools."""
    return dict(J=8, y=[28, 8, -3, 7, -1, 1, 18, 12], se=[15, 10, 16, 11, 9, 11, 10, 18])


@made
def correlated_effects(r):
    g, x = np.repeat(np.arange(12), 6), np.tile(np.linspace(-1, 1, 6), 12)
    b = np.array([2, -1]) + r.normal(size=(12, 2)) @ np.linalg.cholesky([[1, 0.5], [0.5, 0.8]]).T
    return dict(N=72, J=12, g=g + 1, x=x, y=b[g, 0] + b[g, 1] * x + r.normal(0, 0.7, 72))


@made
def ar(r):
    y = [2.0]
    for _ in range(59):
        y.append(2 + 0.4 * (y[-1] - 2) + r.normal(0, 0.8))
    return dict(T=60, y=y)


@made
def mixture(r):
    return dict(N=60, y=np.where(r.random(60) < 0.35, r.normal(-2, 0.8, 60), r.normal(1.5, 0.8, 60)))


@made
def hmm(r):
    z = [0]
    for _ in range(59):
        z.append(z[-1] if r.random() < (0.9, 0.8)[z[-1]] else 1 - z[-1])
    return dict(T=60, y=r.normal(np.array([0, 2.5])[z], 0.8))


@made
def gp(r):
    x = np.linspace(0, 6, 12)
    return dict(N=12, x=x, y=np.sin(x) + r.normal(0, 0.3, 12))


@made
def survival(r):
    x = (np.arange(40) % 2).astype(float)
    t = r.weibull(1.4, 40) * np.exp(1.5 + 0.7 * x)
    end = r.uniform(2, 12, 40)
    return dict(N=40, x=x, t=np.minimum(t, end), event=(t <= end).astype(int))


@made
def missing_data(r):
    x = r.normal(1, 1, 40)
    y = 0.5 + 1.5 * x + r.normal(0, 1, 40)
    return dict(N=40, x=[None if k % 5 == 0 else v for k, v in enumerate(x)], y=[None if k % 10 == 3 else v for k, v in enumerate(y)])


@made
def measurement_error(r):
    x = r.normal(0, 1, 50)
    return dict(N=50, w=x + r.normal(0, 0.4, 50), y=1 + 2 * x + r.normal(0, 1, 50))


@made
def irt(r):
    a, b, t = [1.5, 1, 0.7, 2, 1.2], [-1, 0, 0.5, 1, -0.5], r.normal(size=50)
    return dict(N=50, K=5, y=(r.random((50, 5)) < expit(np.array(a) * (t[:, None] - np.array(b)))).astype(int))


@made
def spline(r):
    x = np.linspace(0, 1, 40)
    return dict(N=40, K=8, x=x, knot=np.linspace(0, 1, 10)[1:-1], y=np.sin(6 * x) + r.normal(0, 0.25, 40))


@made
def car(r):
    n = 4
    w = np.zeros((n * n, n * n), int)
    for i in range(n * n):
        for j in range(n * n):
            w[i, j] = abs(i // n - j // n) + abs(i % n - j % n) == 1
    expected = r.uniform(5, 20, n * n)
    q = 4 * (np.diag(w.sum(1)) - 0.9 * w)
    u = np.linalg.solve(np.linalg.cholesky(q).T, r.normal(size=n * n))
    return dict(N=n * n, W=w, expected=expected, y=r.poisson(expected * np.exp(0.2 + u)))


@made
def ordinal(r):
    x = r.normal(size=60)
    return dict(N=60, K=4, x=x, y=1 + (1.2 * x + r.logistic(size=60) > np.array([-1.5, 0.2, 1.5])[:, None]).sum(0))


@made
def zero_inflated(r):
    x = r.normal(size=60)
    return dict(N=60, x=x, y=np.where(r.random(60) < 0.35, 0, r.poisson(np.exp(1 + 0.5 * x))))


@made
def occupancy(r):
    x = r.normal(size=40)
    z = r.random(40) < expit(0.3 + 1.2 * x)
    return dict(R=40, T=3, x=x, y=(z[:, None] & (r.random((40, 3)) < 0.4)).astype(int))


@made
def capture_recapture(r):
    caught = r.binomial(5, 0.3, 60)
    seen = caught[caught > 0]
    return dict(M=150, T=5, y=list(seen) + [0] * (150 - len(seen)))


@made
def meta_analysis(r):
    """Thirteen trials of the BCG vaccine against tuberculosis (Colditz et al. 1994, JAMA 271)."""
    return dict(J=13, cases_t=[4, 6, 3, 62, 33, 180, 8, 505, 29, 17, 186, 5, 27],
                n_t=[123, 306, 231, 13598, 5069, 1541, 2545, 88391, 7499, 1716, 50634, 2498, 16913],
                cases_c=[11, 29, 11, 248, 47, 372, 10, 499, 45, 65, 141, 3, 29],
                n_c=[139, 303, 220, 12867, 5808, 1451, 629, 88391, 7277, 1665, 27338, 2341, 17854])


@made
def change_point(r):
    """Explosions in British coal mines that killed ten or more, a year, from 1851 on (Jarrett 1979, Biometrika 66)."""
    y = ("4 5 4 1 0 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3 1 0 3 2 2 0 1 1 1 "
         "0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 "
         "3 3 1 1 2 1 1 1 1 2 4 2 0 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1")
    return dict(T=112, y=[int(v) for v in y.split()])


@made
def lda(r):
    phi = np.array([[0.4, 0.3, 0.2, 0.05, 0.05], [0.05, 0.05, 0.2, 0.3, 0.4]])
    theta = r.dirichlet([0.7, 0.7], 8)
    doc = np.repeat(np.arange(8), 12)
    z = [r.choice(2, p=theta[d]) for d in doc]
    return dict(D=8, V=5, N=96, doc=doc + 1, word=[r.choice(5, p=phi[k]) + 1 for k in z])


@made
def stochastic_volatility(r):
    h = [-0.5]
    for _ in range(59):
        h.append(-0.5 + 0.9 * (h[-1] + 0.5) + r.normal(0, 0.4))
    return dict(T=60, y=r.normal(size=60) * np.exp(np.array(h) / 2))


@made
def variable_selection(r):
    x = r.normal(size=(40, 5))
    return dict(N=40, p=5, X=x, y=x @ [1.5, 0, 0.4, 0, 0] + r.normal(0, 1, 40))


@made
def multinomial(r):
    x = r.normal(size=80)
    eta = np.stack([np.zeros(80), 0.5 + 1.0 * x, -0.3 - 0.8 * x], 1)
    return dict(N=80, K=3, x=x, y=[r.choice(3, p=np.exp(e) / np.exp(e).sum()) + 1 for e in eta])


def plain(v):
    if isinstance(v, np.ndarray):
        v = v.tolist()
    if isinstance(v, (list, tuple)):
        return [plain(e) for e in v]
    if isinstance(v, (int, np.integer)):
        return int(v)
    return None if v is None else round(float(v), 3)


def main():
    for name in sys.argv[1:] or MADE:
        os.makedirs(os.path.join(HERE, name), exist_ok=True)
        rows = MADE[name](np.random.default_rng(20260101 + sorted(MADE).index(name)))
        with open(os.path.join(HERE, name, "data.json"), "w") as f:
            f.write("{\n" + ",\n".join('  "%s": %s' % (k, json.dumps(plain(v))) for k, v in rows.items()) + "\n}\n")
    print("%d data sets" % len(sys.argv[1:] or MADE))


main()
