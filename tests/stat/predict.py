"""If this fails, a draw in a predict block does not have its distribution: whole, or between the ends of a truncation.

    predict.py [NAME ...]            needs numpy and scipy

Every distribution of one number that prove.py knows, with its parameter values there, is drawn untruncated, with both ends, with one end in
either tail (1 % of the probability) and far out (one in 10^6, on the side where the density falls). The draws are compared with the
distribution function that quadrature of scipy's density gives between the same ends: sqrt(n) times the largest distance. That is above 3
once in 3*10^7 cases.
"""
import math
import os
import sys

import numpy as np
from scipy import special

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stdlib"))
import gmlib                                                # noqa: E402
import prove                                                # noqa: E402
import program                                              # noqa: E402

INF = math.inf
SAMPLES, CHAINS, BOUND = 2000, 2, 3.0
FEW_SAMPLES = 300                           # for tails so heavy that a draw far out sums some 10^4 probabilities
HEAVY = ("yule_simon", "beta_neg_binomial")
PER_MODEL = 60


def grid(lo, hi, centre, scale):
    v = np.linspace(-38, 38, 60001)
    if math.isfinite(lo) and math.isfinite(hi):
        return np.unique(lo + (hi - lo) * special.expit(v))
    if math.isfinite(lo):
        return np.unique(lo + np.exp(v))
    if math.isfinite(hi):
        return np.unique(hi - np.exp(-v))
    return np.unique(centre + scale * np.sinh(v))


def cumulated(x, log_p):
    """The distribution function at the points x of a grid, from the density."""
    with np.errstate(all="ignore"):
        p = np.exp(log_p - np.nanmax(log_p[np.isfinite(log_p)]))
    p = np.where(np.isfinite(p), p, 0)
    steps = np.diff(x) * (p[1:] + p[:-1]) / 2
    c = np.concatenate([[0], np.cumsum(steps)])
    return c / c[-1]


class Case:
    """A distribution at parameter values between ends."""

    def __init__(self, name, values, lo, hi, x, f, discrete):
        self.name, self.values, self.lo, self.hi, self.x, self.f, self.discrete = name, values, lo, hi, x, f, discrete

    def text(self):
        cut = "" if self.lo == -INF and self.hi == INF else " T[%s, %s]" % tuple(number(e) if math.isfinite(e) else ""
                for e in (self.lo, self.hi))
        return "%s(%s)%s" % (self.name, ", ".join(argument(v) for v in self.values), cut)

    def distance(self, draws):
        n = len(draws)
        d = np.sort(draws)
        if d[0] < self.lo or d[-1] > self.hi or not np.all(np.isfinite(d)):
            return INF
        if self.discrete:
            f = self.f[np.clip(np.searchsorted(self.x, d, side="right") - 1, 0, len(self.f) - 1)]
            return math.sqrt(n) * np.max(np.abs(f - np.searchsorted(d, d, side="right") / n))
        f = np.interp(d, self.x, self.f)
        return math.sqrt(n) * max(np.max(np.abs(f - np.arange(1, n + 1) / n)), np.max(np.abs(f - np.arange(n) / n)))


def number(v):
    return repr(int(v)) if isinstance(v, (int, np.integer)) or float(v).is_integer() and abs(v) < 1e9 and isinstance(v,
            (int, np.integer)) else repr(float(v))


def argument(v):
    return "[%s]" % ", ".join(number(e) for e in v) if np.ndim(v) else number(v)


def support(d, values):
    env = prove.arguments(d, values)
    ends = [float(gmlib.evaluate(e, env)) for e in d["support"][1]]
    return {"real": (-INF, INF), "positive": (0., INF), "unit": (0., 1.), "circle": (-math.pi, math.pi)}.get(d["support"][0], ends)


def continuous(d, values, log_density):
    name, (lo, hi) = d["name"], support(d, values)
    centre = float(values[0]) if math.isinf(lo) and math.isinf(hi) and values else 0.0
    if name == "student_t":
        centre = values[1]
    x = grid(lo, hi, centre, 1e-3)
    f = cumulated(x, log_density(x, *values))
    at = lambda q: float("%.12g" % np.interp(q, f, x))
    cuts = [(-INF, INF), (at(0.3), at(0.8)), (at(0.99), INF), (-INF, at(0.01)), (at(0.4), at(0.401))]
    # the density there is known to scipy, the tail to the grid
    lone = at(1 - 1e-6)
    if lone < hi and lone < 1e6:
        cuts.append((lone, INF))
    for a, b in cuts:
        left, right = max(lo, a), min(hi, b)
        y = grid(left, right, centre, 1e-3)
        yield Case(name, values, a, b, y, cumulated(y, log_density(y, *values)), False)


def discrete(d, values, log_pmf):
    lo, hi = support(d, values)
    x = np.arange(int(lo), int(min(hi, 200000)) + 1)
    pointwise = any(np.ndim(v) for v in values)
    with np.errstate(all="ignore"):
        log_p = np.array([float(log_pmf(k, *values)) for k in x]) if pointwise else np.asarray(log_pmf(x, *values), float)
    p = np.exp(log_p)
    f = np.cumsum(p)
    at = lambda q: int(x[min(np.searchsorted(f, q), len(x) - 1)])
    cuts = {(-INF, INF), (int(lo) + 1, INF), (at(0.3), at(0.8)), (at(0.99), INF), (-INF, at(0.01)), (at(1 - 1e-6), INF)}
    for a, b in sorted(cuts):
        keep = (x >= a) & (x <= b)
        with np.errstate(all="ignore"):
            weights = np.exp(log_p[keep] - np.max(log_p[keep])) if keep.any() else np.zeros(0)
        if keep.any() and np.isfinite(weights).all():
            yield Case(d["name"], values, a, b, x[keep], np.cumsum(weights) / np.sum(weights), True)


def main():
    names = sys.argv[1:]
    np.seterr(all="ignore")
    library = gmlib.read_library([os.path.join(program.ROOT, "stdlib")])["distribution"]
    cases = []
    for table, make in ((prove.UNIVARIATE, continuous), (prove.DISCRETE, discrete)):
        for name, (parameters, log_density) in table.items():
            if not names or name in names:
                for values in parameters:
                    cases += list(make(library[name], values, log_density))
    heavy = [c for c in cases if c.name in HEAVY]
    cases = [c for c in cases if c.name not in HEAVY]
    groups = [(cases[k:k + PER_MODEL], SAMPLES) for k in range(0, len(cases), PER_MODEL)] + ([(heavy, FEW_SAMPLES)] if heavy else [])
    failed = 0
    with program.Workplace() as w:
        for number_of_group, (some, samples) in enumerate(groups):
            name = "predict%d" % number_of_group
            model = "data { real y; }\nprior { m ~ normal(0, 1); }\nlikelihood { y ~ normal(m, 1); }\npredict {\n"
            model += "".join("  x%d ~ %s;\n" % (i, c.text()) for i, c in enumerate(some)) + "}\n"
            ran = w.compile(name, model)
            draws = w.draws(ran, w.data(name, dict(y=1.0)), samples, chains=CHAINS, warmup=10)
            for i, c in enumerate(some):
                distance = c.distance(draws["x%d" % i].ravel())
                failed += not distance < BOUND
                print("%s %-70s %6.2f" % ("ok    " if distance < BOUND else "FAILED", c.text(), distance))
    print("%d cases, %d failed" % (len(cases) + len(heavy), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
