#!/usr/bin/env python3
"""If this fails, a formula of the stdlib is wrong: a density, its mean, mode or tail, or an augmentation rule.

    prove.py [NAME ...] [--stdlib stdlib]        needs numpy, scipy and mpmath

Every distribution, at several parameter values:
    mass        integrates or sums to 1
    mean        equals the integral of x times the density
    mode        no point of a fine grid has a higher density
    log_cdf     log_cdf and log_ccdf equal the logs of the integrals to the left and to the right
    scipy       equals scipy.stats, or a second form of the density, where there is one
Every augmentation: the replacing densities, integrated over the latent, give the matched density, at several
points and parameter values.  The base density of polya_gamma has no closed form; its Laplace transform
    E exp(-t w) = cosh(sqrt(t/2))^-b,  w ~ polya_gamma(b, 0)         (Polson, Scott and Windle 2013, section 2)
is used instead, and that identity is checked against the infinite product that defines polya_gamma.

Prints a line per check, exits 1 if one failed.  Nothing here is random.
"""
import argparse
import math
import os
import sys

import numpy as np
from scipy import special, stats

import gmlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INF = math.inf

# Quadrature stops when two halvings of the step agree to 1e-11; endpoints lose up to half the digits of a double where
# a density is singular there (x near 1 is only known to 1e-16, its square root to 1e-8).  So 1e-7 relative.
TOLERANCE = 1e-7

failures = 0


def report(what, check, error, bound=TOLERANCE, note=""):
    global failures
    good = error <= bound                                 # NaN is not
    failures += not good
    print(f"{'ok    ' if good else 'FAILED'} {what:<58} {check:<8} error {error:8.1e}  bound {bound:.0e}{note}")


# ---------------------------------------------------------------- integrals

def segment(f, lo, hi):
    """Integral of f over (lo, hi), one end finite at least: double exponential quadrature (Takahasi and Mori 1974)."""
    previous, step = None, 0.25
    while step > 1e-4:
        u = np.arange(-6.5, 6.5 + step / 2, step)
        g, dg = math.pi / 2 * np.sinh(u), math.pi / 2 * np.cosh(u)
        if math.isfinite(lo) and math.isfinite(hi):
            x = lo + (hi - lo) * special.expit(2 * g)
            w = (hi - lo) * 2 * dg * special.expit(2 * g) * special.expit(-2 * g)
        else:
            x = lo + np.exp(g) if math.isfinite(lo) else hi - np.exp(g)
            w = dg * np.exp(g)
        keep = (x > lo) & (x < hi) & (w > 0) & np.isfinite(x)
        with np.errstate(all="ignore"):
            values = f(x[keep]) * w[keep]
        total = np.sum(np.where(np.isfinite(values), values, 0)) * step
        if previous is not None and abs(total - previous) <= 1e-11 * abs(total):
            return total
        previous, step = total, step / 2
    return total


def integral(f, lo, hi, cuts):
    """The same over pieces between `cuts`, where f may have kinks or its bulk."""
    ends = [lo] + sorted({c for c in cuts if lo < c < hi and math.isfinite(c)}) + [hi]
    if len(ends) == 2 and not (math.isfinite(lo) or math.isfinite(hi)):
        ends.insert(1, 0.0)
    return sum(segment(f, a, b) for a, b in zip(ends, ends[1:]))


def relative(a, b):
    return abs(a - b) / max(abs(a), abs(b), 1e-300)


# ---------------------------------------------------------------- distributions

def dirichlet_multinomial(x, alpha):
    return stats.dirichlet_multinomial.logpmf(x, alpha, int(np.sum(x)))


def ordered(cdf):
    def log_pmf(x, eta, c):
        cuts = np.concatenate([[-INF], c, [INF]])
        return np.log(cdf(cuts[int(x)] - eta) - cdf(cuts[int(x) - 1] - eta))
    return log_pmf


def softmax(b):
    return np.exp(b - special.logsumexp(b))


A = np.array
S2, S3 = A([[2.0, 0.6], [0.6, 1.5]]), A([[1.5, 0.3, -0.2], [0.3, 0.9, 0.1], [-0.2, 0.1, 2.0]])
X3 = [A([[1.2, 0.1, 0.2], [0.1, 0.7, -0.3], [0.2, -0.3, 2.2]]), A([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 5.0]])]

# name: (parameter values, log density by other means or None)
UNIVARIATE = dict(
    normal=([(0., 1.), (-3., 0.2), (50., 10.)], lambda x, m, s: stats.norm.logpdf(x, m, s)),
    std_normal=([()], stats.norm.logpdf),
    half_normal=([(0., 1.), (2., 0.3)], lambda x, m, s: stats.halfnorm.logpdf(x, m, s)),
    cauchy=([(0., 1.), (5., 0.3)], lambda x, m, s: stats.cauchy.logpdf(x, m, s)),
    half_cauchy=([(0., 1.), (0., 25.), (-1., 2.)], lambda x, m, s: stats.halfcauchy.logpdf(x, m, s)),
    student_t=([(4., 0., 1.), (1.5, 3., 0.2), (30., -1., 5.)], lambda x, v, m, s: stats.t.logpdf(x, v, m, s)),
    half_student_t=([(3., 0., 1.), (7., 1., 4.)], lambda x, v, m, s: stats.t.logpdf(x, v, m, s) + math.log(2)),
    double_exponential=([(0., 1.), (2., 0.1)], lambda x, m, s: stats.laplace.logpdf(x, m, s)),
    asymmetric_laplace=([(0., 1., 0.5), (2., 0.7, 0.1), (-1., 3., 0.9)], lambda x, m, s, q:
                        stats.laplace_asymmetric.logpdf(x, math.sqrt(q / (1 - q)), m, s / math.sqrt(q * (1 - q)))),
    skew_double_exponential=([(0., 1., 0.5), (2., 0.7, 0.2)], lambda x, m, s, q:
                             stats.laplace_asymmetric.logpdf(x, math.sqrt(q / (1 - q)), m, s / 2 / math.sqrt(q * (1 - q)))),
    logistic=([(0., 1.), (3., 0.2)], lambda x, m, s: stats.logistic.logpdf(x, m, s)),
    gumbel=([(0., 1.), (-2., 3.)], lambda x, m, b: stats.gumbel_r.logpdf(x, m, b)),
    skew_normal=([(0., 1., 0.), (1., 2., 4.), (1., 0.5, -3.)], lambda x, m, s, a: stats.skewnorm.logpdf(x, a, m, s)),
    exp_mod_normal=([(0., 1., 1.), (2., 0.3, 4.), (0., 3., 0.2)], lambda x, m, s, r: stats.exponnorm.logpdf(x, 1 / (r * s), m, s)),
    lognormal=([(0., 1.), (2., 0.25)], lambda x, m, s: stats.lognorm.logpdf(x, s, 0, math.exp(m))),
    exponential=([(1.,), (40.,)], lambda x, r: stats.expon.logpdf(x, 0, 1 / r)),
    gamma=([(1., 1.), (0.1, 2.), (30., 0.5)], lambda x, a, b: stats.gamma.logpdf(x, a, 0, 1 / b)),
    inv_gamma=([(1.5, 1.), (3., 20.)], lambda x, a, b: stats.invgamma.logpdf(x, a, 0, b)),
    root_inv_gamma=([(0.7, 1.), (4., 9.)], lambda x, a, b: stats.invgamma.logpdf(x * x, a, 0, b) + np.log(2 * x)),
    chi_square=([(1.,), (7.,)], lambda x, v: stats.chi2.logpdf(x, v)),
    inv_chi_square=([(3.,), (9.,)], lambda x, v: stats.invgamma.logpdf(x, v / 2, 0, 0.5)),
    scaled_inv_chi_square=([(3., 1.), (9., 0.4)], lambda x, v, s: stats.invgamma.logpdf(x, v / 2, 0, v * s * s / 2)),
    weibull=([(1., 1.), (0.7, 3.), (4., 0.2)], lambda x, a, s: stats.weibull_min.logpdf(x, a, 0, s)),
    frechet=([(1.5, 1.), (5., 3.)], lambda x, a, s: stats.invweibull.logpdf(x, a, 0, s)),
    rayleigh=([(1.,), (12.,)], lambda x, s: stats.rayleigh.logpdf(x, 0, s)),
    loglogistic=([(1., 1.5), (3., 6.)], lambda x, a, b: stats.fisk.logpdf(x, b, 0, a)),
    inverse_gaussian=([(1., 1.), (3., 0.5), (2., 40.)], lambda x, m, r: stats.invgauss.logpdf(x, m / r, 0, r)),
    gig=([(-0.5, 2., 3.), (1.5, 0.3, 4.), (0.5, 2., 0.1)],
         lambda x, p, a, b: stats.geninvgauss.logpdf(x, p, math.sqrt(a * b), 0, math.sqrt(b / a))),
    pareto=([(1., 1.5), (0.2, 6.)], lambda x, m, a: stats.pareto.logpdf(x, a, 0, m)),
    pareto_type_2=([(0., 1., 1.5), (-2., 3., 6.)], lambda x, m, s, a: stats.lomax.logpdf(x, a, m, s)),
    uniform=([(0., 1.), (-3., 100.)], lambda x, a, b: stats.uniform.logpdf(x, a, b - a)),
    beta=([(1.5, 3.), (0.5, 0.5), (40., 2.)], lambda x, a, b: stats.beta.logpdf(x, a, b)),
    beta_proportion=([(0.4, 5.), (0.9, 30.)], lambda x, m, k: stats.beta.logpdf(x, m * k, (1 - m) * k)),
    von_mises=([(0., 1.), (1., 20.)], lambda x, m, k: stats.vonmises.logpdf(x, k, m)))

def hurdle(x, theta, d):
    return np.where(np.asarray(x) == 0, np.log(theta), np.log1p(-theta) + d.logpmf(x) - np.log1p(-d.pmf(0)))


# Sums run to 200 000 where the support is infinite: parameters are such that less than 1e-9 lies beyond.
DISCRETE = dict(
    bernoulli=([(0.2,), (0.9,)], lambda x, p: stats.bernoulli.logpmf(x, p)),
    bernoulli_probit=([(-1.,), (3.,)], lambda x, a: stats.bernoulli.logpmf(x, special.ndtr(a))),
    bernoulli_logit=([(-1.,), (3.,)], lambda x, a: stats.bernoulli.logpmf(x, special.expit(a))),
    binomial=([(1, 0.3), (12, 0.8)], lambda x, n, p: stats.binom.logpmf(x, n, p)),
    binomial_logit=([(1, -2.), (12, 0.4)], lambda x, n, a: stats.binom.logpmf(x, n, special.expit(a))),
    poisson=([(0.3,), (40.,)], lambda x, m: stats.poisson.logpmf(x, m)),
    poisson_log=([(-1.,), (4.,)], lambda x, a: stats.poisson.logpmf(x, math.exp(a))),
    geometric=([(0.1,), (0.8,)], lambda x, p: stats.geom.logpmf(x + 1, p)),
    neg_binomial=([(2., 0.3), (0.4, 5.)], lambda x, a, b: stats.nbinom.logpmf(x, a, b / (b + 1))),
    neg_binomial_2=([(10., 2.), (3., 50.)], lambda x, m, f: stats.nbinom.logpmf(x, f, f / (f + m))),
    neg_binomial_2_log=([(2., 2.), (-1., 0.5)], lambda x, e, f: stats.nbinom.logpmf(x, f, f / (f + math.exp(e)))),
    zero_inflated_poisson=([(0.3, 2.), (0.02, 30.)], lambda x, t, m: np.log(t * (x == 0) + (1 - t) * stats.poisson.pmf(x, m))),
    zero_inflated_neg_binomial_2=([(0.3, 10., 2.), (0.1, 3., 50.)],
                                  lambda x, t, m, f: np.log(t * (x == 0) + (1 - t) * stats.nbinom.pmf(x, f, f / (f + m)))),
    zero_inflated_binomial=([(0.3, 12, 0.2), (0.1, 1, 0.7)], lambda x, t, n, p: np.log(t * (x == 0) + (1 - t) * stats.binom.pmf(x, n, p))),
    hurdle_poisson=([(0.3, 2.), (0.9, 0.1)], lambda x, t, m: hurdle(x, t, stats.poisson(m))),
    hurdle_neg_binomial_2=([(0.3, 10., 2.), (0.1, 3., 50.)], lambda x, t, m, f: hurdle(x, t, stats.nbinom(f, f / (f + m)))),
    beta_binomial=([(12, 2., 3.), (5, 0.4, 0.6)], lambda x, n, a, b: stats.betabinom.logpmf(x, n, a, b)),
    beta_neg_binomial=([(3., 6., 2.), (2., 9., 4.)], lambda x, r, a, b: stats.betanbinom.logpmf(x, r, a, b)),
    hypergeometric=([(5, 4, 10), (12, 8, 7)], lambda x, n, a, b: stats.hypergeom.logpmf(x, a + b, a, n)),
    yule_simon=([(4.,), (9.,)], lambda x, a: stats.yulesimon.logpmf(x, a)),
    discrete_range=([(1, 6), (-3, 0)], lambda x, a, b: stats.randint.logpmf(x, a, b + 1)),
    categorical=([(A([0.2, 0.5, 0.3]),)], lambda x, p: np.log(p[int(x) - 1])),
    categorical_logit=([(A([0.2, -3.0, 1.0]),)], lambda x, b: np.log(softmax(b)[int(x) - 1])),
    ordered_logistic=([(0.3, A([-1.0, 0.5, 2.0])), (-2., A([0.0]))], ordered(special.expit)),
    ordered_probit=([(0.3, A([-1.0, 0.5, 2.0])), (-2., A([0.0]))], ordered(special.ndtr)))

PROPER = A([0.2, 0.5, 0.3])
COUNTS = [A([3, 0, 4]), A([1, 1, 1]), A([0, 9, 2])]
VECTORS = [A([0.3, -1.0]), A([4.0, 2.0])]
CORR = A([[1.0, 0.4, -0.3], [0.4, 1.0, 0.2], [-0.3, 0.2, 1.0]])

EDGES = A([1, 2, 3, 1]), A([2, 3, 4, 3])                    # of a graph of four nodes, all joined; without the third one node is alone
FIELDS = [A([0.3, -1.0, 2.0, 0.4]), A([-0.2, 0.1, 0.0, 1.0])]


def adjacency(node1, node2, weight):
    W = np.zeros((4, 4))
    for i, j, w in zip(node1, node2, weight):
        W[i - 1, j - 1] = W[j - 1, i - 1] = w
    return W


def intrinsic(x, precision):
    """Of a field with a singular precision, but for the pseudo-determinant of what is known: by its rank and its quadratic form."""
    scale, Q = precision
    return np.linalg.matrix_rank(Q) * math.log(scale / (2 * math.pi)) / 2 - scale * x @ Q @ x / 2


def laplacian(node1, node2, weight):
    W = adjacency(node1, node2, weight)
    return np.diag(W.sum(0)) - W


def differences(n, order):
    D = np.diff(np.eye(n), order, axis=0)
    return D.T @ D


def car_proper(x, m, node1, node2, number, eigenvalues, tau, gamma):
    W = adjacency(node1, node2, np.ones(len(node1)))
    return stats.multivariate_normal.logpdf(x, m, np.linalg.inv(tau * (np.diag(W.sum(0)) - gamma * W)))


def ar1(x, phi, sigma):
    lag = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    return stats.multivariate_normal.logpdf(x, np.zeros(4), sigma**2 * phi**lag / (1 - phi**2))


W4 = adjacency(*EDGES, np.ones(4))
D4 = W4.sum(0)

# name: (parameters, points, log density by other means)
MULTIVARIATE = dict(
    multinomial=((PROPER,), COUNTS, lambda x, p: stats.multinomial.logpmf(x, x.sum(), p)),
    multinomial_logit=((A([0.2, -1.0, 1.0]),), COUNTS, lambda x, b: stats.multinomial.logpmf(x, x.sum(), softmax(b))),
    dirichlet_multinomial=((A([0.5, 2.0, 3.0]),), COUNTS, dirichlet_multinomial),
    dirichlet=((A([0.5, 2.0, 3.0]),), [A([0.2, 0.3, 0.5]), A([0.05, 0.9, 0.05])], stats.dirichlet.logpdf),
    multi_normal=((A([1.0, -0.5]), S2), VECTORS, stats.multivariate_normal.logpdf),
    multi_normal_prec=((A([1.0, -0.5]), S2), VECTORS, lambda x, m, P: stats.multivariate_normal.logpdf(x, m, np.linalg.inv(P))),
    multi_normal_cholesky=((A([1.0, -0.5]), np.linalg.cholesky(S2)), VECTORS,
                           lambda x, m, L: stats.multivariate_normal.logpdf(x, m, L @ L.T)),
    multi_student_t=((4., A([1.0, -0.5]), S2), VECTORS, lambda x, v, m, S: stats.multivariate_t.logpdf(x, m, S, v)),
    icar=((*EDGES, 2.5), FIELDS, lambda x, i, j, tau: intrinsic(x, (tau, laplacian(i, j, np.ones(4))))),
    car_normal=((EDGES[0][[0, 1, 3]], EDGES[1][[0, 1, 3]], A([0.5, 2.0, 1.0]), 2, 2.5), FIELDS,
                lambda x, i, j, w, c, tau: intrinsic(x, (tau, laplacian(i, j, w)))),
    car_proper=((A([1.0, 0.0, -0.5, 2.0]), *EDGES, D4, np.linalg.eigvalsh(W4 / np.sqrt(np.outer(D4, D4))), 2.5, 0.8), FIELDS, car_proper),
    ar1=((-0.7, 1.3), FIELDS, ar1),
    ar=((A([0.5, 0.7]), 1.3), FIELDS,
        lambda x, phi, s: sum(stats.norm.logpdf(x[t], phi[0] * x[t - 1] + phi[1] * x[t - 2], s) for t in (2, 3))),
    rw1=((1.3,), FIELDS, lambda x, s: intrinsic(x, (s**-2, differences(4, 1)))),
    rw2=((1.3,), FIELDS, lambda x, s: intrinsic(x, (s**-2, differences(4, 2)))),
    wishart=((4.5, S3), X3, lambda x, v, S: stats.wishart.logpdf(x, v, S)),
    inv_wishart=((4.5, S3), X3, lambda x, v, S: stats.invwishart.logpdf(x, v, S)))

ELSEWHERE = dict(flat="improper", half_flat="improper", lkj_corr="", lkj_corr_cholesky="", polya_gamma="")


def arguments(d, values):
    return {name: v for (name, _, _), v in zip(d["params"], values)}


def show(values):
    return ", ".join(f"{v:g}" if np.ndim(v) == 0 else "..." for v in values)


def prove_univariate(d, values, other):
    env = arguments(d, values)
    name, ends = f"{d['name']}({show(values)})", [float(gmlib.evaluate(e, env)) for e in d["support"][1]]
    lo, hi = {"real": (-INF, INF), "positive": (0, INF), "unit": (0, 1), "circle": (-math.pi, math.pi)}.get(d["support"][0], ends)

    def log_density(x):
        return np.asarray(gmlib.evaluate(d["log_density"], env | {"x": x})) + 0.0 * x

    def value(key):
        return float(gmlib.evaluate(d[key], env)) if key in d else math.nan

    mean, mode = value("mean"), value("mode")
    cuts = [mean, mode] + list(values)
    density = lambda x: np.exp(log_density(x))
    report(name, "mass", abs(integral(density, lo, hi, cuts) - 1))
    if "mean" in d and d["support"][0] != "circle":
        scale = integral(lambda x: np.abs(x) * density(x), lo, hi, cuts)
        report(name, "mean", abs(integral(lambda x: x * density(x), lo, hi, cuts) - mean) / scale)

    # a fine grid over the bulk: the quantiles of the normalised density, found from its own log density
    grid = np.concatenate([sign * np.geomspace(1e-6, 1e6, 4001) + c for sign in (-1, 1) for c in (0, mean if math.isfinite(mean) else 0)])
    grid = grid[(grid > lo) & (grid < hi)]
    if "mode" in d and lo < mode < hi and not (d["name"] == "beta" and min(values) < 1):
        excess = np.max(log_density(grid)) - float(log_density(np.array(mode)))
        report(name, "mode", max(excess, 0), 1e-10, "  (log density on a grid, less that at the mode)")
    points = [p for p in (mean, mode, *(values[:1] or [0.4]), *grid[::1500]) if lo < p < hi and log_density(np.array(p)) > -30][:8]
    if "log_cdf" in d:
        worst = 0.0
        for p in points:
            left, right = integral(density, lo, p, cuts), integral(density, p, hi, cuts)
            at = env | {"x": p}
            worst = max(worst, relative(math.exp(gmlib.evaluate(d["log_cdf"], at)), left),
                        relative(math.exp(gmlib.evaluate(d["log_ccdf"], at)), right))
        # a tail probability that is a difference of two numbers near 1 keeps 1e-16/1e-9 of its digits at these points
        report(name, "log_cdf", worst, 1e-6)
    if other:
        x = grid[::37]
        x = x[log_density(x) > -200]
        report(name, "scipy", float(np.max(np.abs(log_density(x) - other(x, *values)) / (1 + np.abs(log_density(x))))), 1e-9)


def prove_discrete(d, values, other):
    env = arguments(d, values)
    name = f"{d['name']}({show(values)})"
    lo, hi = [float(gmlib.evaluate(e, env)) for e in d["support"][1]]
    pointwise = any(np.ndim(v) for v in values)            # arguments that x indexes
    x = np.arange(int(lo), int(min(hi, 200000)) + 1)

    def log_pmf(x):
        if pointwise:
            return A([float(gmlib.evaluate(d["log_density"], env | {"x": int(k)})) for k in x])
        return np.asarray(gmlib.evaluate(d["log_density"], env | {"x": x})) + 0.0 * x

    p = np.exp(log_pmf(x))
    report(name, "mass", abs(p.sum() - 1), 1e-9)
    if "mean" in d:
        # beyond the last term lies less than x * 1e-9 of the first moment for the heaviest tail listed (yule_simon(4))
        report(name, "mean", relative(float(np.sum(x * p)), float(gmlib.evaluate(d["mean"], env))) if p @ x else 0.0, 1e-7)
    if "mode" in d:
        mode = float(gmlib.evaluate(d["mode"], env))
        report(name, "mode", float(np.max(log_pmf(x)) - log_pmf(A([int(mode)]))[0]), 1e-10)
    if "log_cdf" in d:
        y, below = x[:300], np.cumsum(p)[:300]
        above = np.cumsum(p[::-1])[::-1] - p
        worst = 0.0
        for k in (i for i in range(0, len(y), 1 + len(y) // 40) if min(below[i], above[i]) > 1e-6):
            at = env | {"x": y[k]}
            worst = max(worst, relative(math.exp(gmlib.evaluate(d["log_cdf"], at)), below[k]),
                        relative(math.exp(gmlib.evaluate(d["log_ccdf"], at)), above[k]))
        report(name, "log_cdf", worst, 1e-6)               # of the tail, less than 1e-9 lies beyond the last term
    y = x[p > 1e-200][:500]
    with np.errstate(all="ignore"):
        theirs = A([other(k, *values) for k in y]) if pointwise else other(y, *values)
    report(name, "scipy", float(np.max(np.abs(log_pmf(y) - theirs) / (1 + np.abs(theirs)))), 1e-9)


def prove_multivariate(d, values, points, other):
    env = arguments(d, values)
    worst = max(abs(float(gmlib.evaluate(d["log_density"], env | {"x": x})) - float(other(x, *values))) for x in points)
    report(f"{d['name']}({show(values)})", "scipy", worst, 1e-10)


def prove_lkj(library):
    """2 x 2 and 3 x 3 correlation matrices over their partial correlations, and the Jacobian of the Cholesky factor."""
    full, factor = library["lkj_corr"], library["lkj_corr_cholesky"]
    for eta in (1.0, 0.7, 3.0):
        env = dict(eta=eta)
        log_p = lambda R: float(gmlib.evaluate(full["log_density"], env | {"x": R}))
        two = np.vectorize(lambda r: math.exp(log_p(A([[1, r], [r, 1]]))))
        report(f"lkj_corr({eta:g}), 2 by 2", "mass", abs(integral(two, -1, 1, [0.0]) - 1))

        def three(a, b, c):                                # r12 = a, r13 = b, r23 = a*b + c*root: dr23 = root dc
            root = math.sqrt((1 - a * a) * (1 - b * b))
            R = A([[1, a, b], [a, 1, a * b + c * root], [b, a * b + c * root, 1]])
            return math.exp(log_p(R)) * root
        t, w = np.polynomial.legendre.leggauss(24)         # after r = sin(pi t/2): smooth enough for any eta >= 1/2
        r, jac = np.sin(math.pi / 2 * t), math.pi / 2 * np.cos(math.pi / 2 * t) * w
        total = sum(three(r[i], r[j], r[k]) * jac[i] * jac[j] * jac[k]
                    for i in range(24) for j in range(24) for k in range(24)) if eta == 1.0 else None
        if total is not None:
            report(f"lkj_corr({eta:g}), 3 by 3", "mass", abs(total - 1), 1e-6)

        # density of the factor: that of the matrix times |dR/dL| = product of L[k,k]^(n-k), k = 2..n
        L, n = np.linalg.cholesky(CORR), 3
        jacobian = sum((n - k) * math.log(L[k - 1, k - 1]) for k in range(2, n + 1))
        ours = float(gmlib.evaluate(factor["log_density"], env | {"x": L}))
        report(f"lkj_corr_cholesky({eta:g})", "jacobian", abs(ours - log_p(CORR) - jacobian), 1e-12)


# ---------------------------------------------------------------- augmentations

def log_laplace_polya_gamma(b, t):
    """log E exp(-t w), w ~ polya_gamma(b, 0); t may be negative above -pi^2/2"""
    return -b * np.log(np.cosh(np.emath.sqrt(t / 2)).real)


def prove_polya_gamma(d):
    """The identity that the rules rest on, against the product over gamma variables that defines the distribution."""
    for b, t in ((1., 0.3), (2.5, 4.0), (7., 60.0)):
        k = np.arange(1, 2_000_001) - 0.5
        product = -b * (np.sum(np.log1p(t / (2 * math.pi**2 * k**2))) + t / (2 * math.pi**2) / 2e6)
        report(f"polya_gamma({b:g}, 0), t = {t:g}", "laplace", relative(product, log_laplace_polya_gamma(b, t)), 1e-9)
    # the tilt: base(w) * exp(normaliser - c^2 w/2) integrates to 1
    functions = dict(gmlib.FUNCTIONS)
    for b, c in ((1., 0.), (3., 2.), (0.5, -4.)):
        gmlib.FUNCTIONS["polya_gamma_base"] = lambda b, x: 0.0
        env = dict(b=b, c=c)
        at = [float(gmlib.evaluate(d["log_density"], env | {"x": x})) for x in (0.0, 1.0)]
        mass = at[0] + log_laplace_polya_gamma(b, at[0] - at[1])
        report(f"polya_gamma({b:g}, {c:g})", "mass", abs(mass), 1e-12)
    gmlib.FUNCTIONS.clear()
    gmlib.FUNCTIONS.update(functions)


def log_density_of(library, dist, args, x, env):
    d = library["distribution"][dist]
    values = {name: gmlib.evaluate(a, env) for (name, _, _), a in zip(d["params"], args)}
    values = {k: (float(v) if isinstance(v, int) and kind == "real" else v)
              for (k, v), (_, kind, _) in zip(values.items(), d["params"])}
    return gmlib.evaluate(d["log_density"], values | {"x": x})


def matched(library, pattern, env):
    """log density of a `match` line, its truncation to positive values included"""
    _, left, dist, args, cut = pattern
    value = float(log_density_of(library, dist, args, env[left], env))
    return value + math.log(2) if cut else value           # T[0, ] of a density that is symmetric about 0


# rule: (names of the pattern with their values, kinks of the latent)
c3 = A([-1.0, 0.4, 1.7])
RULES = dict(
    albert_chib=([dict(y=y, eta=e) for y in (0, 1) for e in (-2.5, 0., 0.7)], [0.0]),
    albert_chib_ordered=([dict(y=y, eta=e, c=c3) for y in (1, 2, 3, 4) for e in (-1.5, 0.6)], list(c3)),
    polya_gamma_bernoulli=([dict(y=y, psi=p) for y in (0, 1) for p in (-3., 0., 1.2)], []),
    polya_gamma_binomial=([dict(y=y, n=n, psi=p) for y, n in ((0, 1), (3, 3), (4, 11)) for p in (-2., 0.7)], []),
    polya_gamma_neg_binomial=([dict(y=y, eta=e, phi=f) for y in (0, 7) for e in (-1., 2.) for f in (0.6, 12.)], []),
    half_cauchy_mixture=([{"lambda": v, "s": s} for v in (0.01, 0.8, 30.) for s in (0.2, 1., 25.)], []),
    half_t_mixture=([{"lambda": v, "df": f, "s": s} for v in (0.05, 2.) for f in (1., 3., 12.) for s in (0.3, 5.)], []),
    student_t_mixture=([dict(y=y, df=f, m=1., s=s) for y in (-9., 1., 1.6) for f in (1.5, 4., 30.) for s in (0.4, 3.)], []),
    cauchy_mixture=([dict(y=y, m=-1., s=s) for y in (-9., -1., 1.6) for s in (0.4, 3.)], []),
    laplace_mixture=([dict(y=y, m=0.5, b=b) for y in (-4., 0.4, 2.) for b in (0.3, 2.)], []),
    asymmetric_laplace_mixture=([dict(y=y, m=0.5, s=s, p=p) for y in (-4., 0.4, 2.) for s in (0.6, 2.) for p in (0.1, 0.5, 0.8)], []))


def integrated(library, rule, env, kinks):
    """log of the replacing density with the latent integrated out"""
    pattern = set(env)
    latent = next(s for s in rule["replace"] if s[0] == "~" and s[1] not in pattern)
    others = [s for s in rule["replace"] if s is not latent]

    def rest(w):
        total, at = 0.0, env | {latent[1]: w}
        for s in others:
            if s[0] == "~":
                total = total + log_density_of(library, s[2], s[3], at[s[1]], at)
            elif s[0] == "target":
                total = total + gmlib.evaluate(s[1], at)
            else:
                total = total + np.where(gmlib.evaluate(s[2], at) == env[s[1]], 0.0, -INF)
        return total

    if latent[2] == "polya_gamma":                         # the rest must be a line in w: intercept - slope*w
        at = [float(rest(w)) for w in (0.0, 1.0, 2.0)]
        assert abs(at[2] - 2 * at[1] + at[0]) <= 1e-12 * (1 + max(map(abs, at))), "not linear in the latent"
        b, c = (float(gmlib.evaluate(a, env)) for a in latent[3])
        assert c == 0
        return at[0] + float(log_laplace_polya_gamma(b, at[0] - at[1]))

    support = library["distribution"][latent[2]]["support"][0]
    lo = {"real": -INF, "positive": 0.0}[support]

    def joint(w):
        with np.errstate(all="ignore"):
            return np.exp(np.asarray(log_density_of(library, latent[2], latent[3], w, env)) + rest(w))

    grid = np.geomspace(1e-8, 1e8, 3201)
    bulk = grid[np.nanargmax(joint(grid) * grid)] if lo == 0 else float(env.get("eta", 0.0))
    return float(np.log(integral(joint, lo, INF, kinks + [bulk])))


def prove_rule(library, rule):
    cases, kinks = RULES[rule["name"]]
    worst = max(abs(integrated(library, rule, env, kinks) - matched(library, m, env)) for env in cases for m in rule["match"])
    report(rule["name"], "integral", worst, 1e-8, f"  ({len(cases)} points, {len(rule['match'])} patterns)")


# ---------------------------------------------------------------- laws of families

# family: (natural parameters, the names of its base and exponent among them; values of x)
P2 = A([[2., 0.3], [0.3, 1.1]])
FAMILIES = dict(
    normal=([dict(h=h, q=q) for h in (-3., 0.4) for q in (-0.2, -5.)], [-2., 0.1, 1.7]),
    power_gamma=([dict(a=k * s - 1, b=-r, k=k) for k in (1., -1., -2., 2., 0.5) for s, r in ((0.7, 2.), (5., 0.3))], [0.2, 1., 3.3]),
    power_gig=([dict(p=k * o - 1, a=-0.4, b=-1.7, k=k) for k in (1., -1., -2., 2.) for o in (-0.5, 2.)], [0.2, 1., 3.3]),
    beta=([dict(a=-0.4, b=2.), dict(a=3., b=0.)], [0.1, 0.5, 0.97]),
    uniform=([dict(lower=-1., upper=2.5)], [-0.5, 0.1, 2.]),
    von_mises=([dict(a=0.5, b=-1.2), dict(a=-2., b=0.7)], [-3., 0.2, 1.5]),
    polya_gamma=([dict(n=-0.3, b=1.), dict(n=-4., b=2.5)], [0.1, 0.4, 2.]),
    dirichlet=([dict(a=A([-0.5, 1., 3.]))], [A([0.2, 0.3, 0.5]), A([0.7, 0.2, 0.1])]),
    wishart=([dict(d=1.7, B=-P2)], [P2, A([[0.5, -0.1], [-0.1, 3.]])]),
    inv_wishart=([dict(d=-4.2, B=-P2)], [P2, A([[0.5, -0.1], [-0.1, 3.]])]))


def prove_law(library, family):
    """The log density that the natural parameters give, less that of the law, is the same at all x."""
    of, dist, args, parameters = family["law"]
    cases, points = FAMILIES[family["name"]]
    gmlib.FUNCTIONS["polya_gamma_base"] = lambda b, x: 0.0      # on both sides
    worst = 0.0
    for case in cases:
        apart = []
        for x in points:
            env = case | {"x": x}
            natural = sum(float(np.sum(env[name] * gmlib.evaluate(s, env))) for name, s in family["natural"])
            for name, value in parameters:
                env[name] = gmlib.evaluate(value, env)
            k = case.get("k", 1.)
            density = float(log_density_of(library, dist, args, gmlib.evaluate(of, env), env))
            apart.append(natural - density - (math.log(abs(k)) + (k - 1) * math.log(x) if k != 1 else 0.))
        worst = max(worst, max(apart) - min(apart))
    del gmlib.FUNCTIONS["polya_gamma_base"]
    report(family["name"], "law", worst, 1e-10, f"  ({len(cases)} points)")


# ---------------------------------------------------------------- all

def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ap.add_argument("names", nargs="*")
    ap.add_argument("--stdlib", default=os.path.join(ROOT, "stdlib"))
    opt = ap.parse_args()
    library = gmlib.read_library([opt.stdlib])
    asked = lambda n: not opt.names or n in opt.names
    np.seterr(all="ignore")                                # grids reach far into the tails, where exp overflows to the right limit
    for name, d in library["distribution"].items():
        if not asked(name):
            continue
        if name in UNIVARIATE:
            for values in UNIVARIATE[name][0]:
                prove_univariate(d, values, UNIVARIATE[name][1])
        elif name in DISCRETE:
            for values in DISCRETE[name][0]:
                prove_discrete(d, values, DISCRETE[name][1])
        elif name in MULTIVARIATE:
            prove_multivariate(d, *MULTIVARIATE[name])
        elif name == "lkj_corr":
            prove_lkj(library["distribution"])
        elif name == "polya_gamma":
            prove_polya_gamma(d)
        elif name not in ELSEWHERE:
            report(name, "listed", math.nan, note="  (no parameter values in this file: nothing is proved)")
    for name, family in library["family"].items():
        if asked(name) and "law" in family:
            if name in FAMILIES:
                prove_law(library, family)
            else:
                report(name, "listed", math.nan, note="  (no points in this file: nothing is proved)")
    for name, rule in library["augmentation"].items():
        if asked(name):
            if name in RULES:
                prove_rule(library, rule)
            else:
                report(name, "listed", math.nan, note="  (no points in this file: nothing is proved)")
    print(f"{failures} failed" if failures else "all proved")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
