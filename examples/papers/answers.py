#!/usr/bin/env python3
"""Computes what answers.md of each folder says: by arithmetic, by simulation, by quadrature, by gmc's programs.

    answers.py [PAPER ...]      0 to 4, all without a number; needs numpy. Some minutes
"""
import argparse
import json
import math
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run as runs
from common import Phi

SQRT = math.sqrt(2 * math.pi)


def put(folder, name, **data):
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as f:
        json.dump(data, f)
    return path


def density_moments(log_density, at):
    """Mean and sd of a density over a fine grid."""
    lp = np.array([log_density(b) for b in at])
    w = np.exp(lp - lp.max())
    w /= w.sum()
    mean = float((w * at).sum())
    return mean, math.sqrt(float((w * (at - mean) ** 2).sum()))


def say(text, *values):
    print("  " + text % values)


def paper_0(run):
    here = "horseshoe_probit"
    program, folder = run.compile(here, "horseshoe", "--method", "gibbs"), run.folder(here)
    # 1 the prior alone
    stem = os.path.join(folder, "prior")
    run.fit(program, [put(folder, "prior", N=0, p=3, X=[], y=[])], samples=20_000, more=("--overwrite", "-o", stem))
    of = runs.draws(stem, 4)
    for name in ("tau", "lambda.1"):
        x = np.array(of[name])
        say("1: P(%s < 1) = %.3f, mean of 1/(1 + %s^2) %.3f", name, (x < 1).mean(), name, (1 / (1 + x * x)).mean())
    # 2 y -> 1 - y
    where = run.folder(here, "flip")
    runs.module(here).make(where, 1000, 20)
    X, y = np.load(os.path.join(where, "X.npy")), np.load(os.path.join(where, "y.npy"))
    np.save(os.path.join(where, "flipped.npy"), 1 - y)
    a = run.fit(program, runs.tables(where)[:1] + ["y=" + os.path.join(where, "y.npy")], samples=10_000)
    b = run.fit(program, runs.tables(where)[:1] + ["y=" + os.path.join(where, "flipped.npy")], samples=10_000)
    z = [(a["beta[%d]" % j]["mean"] + b["beta[%d]" % j]["mean"]) / math.hypot(a["beta[%d]" % j]["mcse"], b["beta[%d]" % j]["mcse"])
         for j in range(1, 21)]
    say("2: beta[2] %.3f and %.3f; sums of means over their errors: largest %.1f of 20", a["beta[2]"]["mean"], b["beta[2]"]["mean"],
        max(map(abs, z)))
    # 3 acceptance of the two proposals
    for m in (-4, 0, 0.47, 2):
        rate = (-m + math.sqrt(m * m + 4)) / 2
        say("3: m = %g: normal %.3f, exponential %.3f", m, Phi(m), rate * math.exp(-rate * m - rate * rate / 2) * SQRT * Phi(m))
    # 4 bytes
    size = 1e6 * 1000 * 4
    say("4: two readings in 12 ms: %.0f GB/s; H200: %.2f ms for two readings at 4.8 TB/s, %.1f s for 10,000 sweeps", 2 * size / 0.012 / 1e9,
        2 * size / 4.8e12 * 1e3, 2 * size / 4.8e12 * 1e4)
    # 5 the wrong triangular solve
    r = np.random.default_rng(1)
    P = X[:, :3].T @ X[:, :3] / 1000 + np.array([[0.5, 0.4, 0], [0.4, 1, 0.3], [0, 0.3, 2]])
    L = np.linalg.cholesky(P)
    e = r.standard_normal((3, 400_000))
    right, wrong = np.linalg.solve(L.T, e), np.linalg.solve(L, e)
    say("5: variances wanted %s, by the transposed factor %s, by the factor %s", np.round(np.diag(np.linalg.inv(P)), 3),
        np.round(right.var(axis=1), 3), np.round(wrong.var(axis=1), 3))


def polya_gamma(r, h, z, terms=200):
    """PG(h, z) by its series of gammas, and the mean of the rest: n draws for n values z."""
    k = np.arange(1, terms + 1)[:, None] - 0.5
    below = k * k + z * z / (4 * math.pi ** 2)
    w = (r.gamma(h, size=(terms, len(z))) / below).sum(axis=0) / (2 * math.pi ** 2)
    mean = np.where(np.abs(z) > 1e-6, h * np.tanh(z / 2) / (2 * np.where(z == 0, 1, z)), h / 4)
    return w + mean - h / (2 * math.pi ** 2) * (1 / below).sum(axis=0)


def counts_by_gibbs(fresh, chains=200_000, sweeps=60):
    """Two intercepts for counts 2, 5, 13 and N(0, 4) priors: one draw from each of many chains."""
    r, counts = np.random.default_rng(2), np.array([2, 5, 13])
    n = counts.sum()
    b, w = np.zeros((2, chains)), np.ones((2, chains)) * n / 4
    for _ in range(sweeps):
        for j in (0, 1):
            c = np.log(1 + np.exp(b[1 - j]))
            if fresh:
                w[j] = polya_gamma(r, n, b[j] - c, 60)
            V = 1 / (w[j] + 0.25)
            b[j] = V * (counts[j] - n / 2 + w[j] * c) + np.sqrt(V) * r.standard_normal(chains)
            if not fresh:
                w[j] = polya_gamma(r, n, b[j] - c, 60)
    return b


def lasso_of_one(x, y, printed, chains=20_000, sweeps=300):
    """E b of the Lasso with one predictor, r = 1, delta = 1.78, by the update of lambda^2 that is right, or as printed."""
    r = np.random.default_rng(3)
    n, xx, xy, yy = len(y), float(x @ x), float(x @ y), float(y @ y)
    b, s2, tau2, lam2 = np.zeros(chains), np.full(chains, yy / n), np.ones(chains), np.ones(chains)
    for _ in range(sweeps):
        A = xx + 1 / tau2
        b = xy / A + np.sqrt(s2 / A) * r.standard_normal(chains)
        tau2 = 1 / np.maximum(r.wald(np.sqrt(lam2 * s2 / (b * b)), lam2), 1e-12)
        rest = yy - 2 * b * xy + b * b * xx
        s2 = (rest / 2 + b * b / tau2 / 2) / r.gamma((n - 1) / 2 + 0.5, size=chains)
        lam2 = r.gamma(1 + 1, size=chains) / (1.78 + (1 / tau2 if printed else tau2 / 2))
    return b.mean(), b.std() / math.sqrt(chains)


def paper_1(run):
    here = "lasso_multinomial"
    lasso, multinomial = (run.compile(here, m, "--method", "gibbs") for m in ("lasso", "multinomial"))
    folder = run.folder(here)
    # 1 the printed update of lambda^2
    r = np.random.default_rng(4)
    x = r.standard_normal(30)
    x -= x.mean()
    x /= math.sqrt(x @ x)
    y = 3 * x + r.standard_normal(30)
    y -= y.mean()
    fit = run.fit(lasso, [put(folder, "one", N=30, p=1, X=x[:, None].tolist(), y=y.tolist())], samples=20_000)
    for printed in (False, True):
        say("1: E b %.3f (error %.3f), update %s", *lasso_of_one(x, y, printed), "as printed" if printed else "right")
    say("1: E b %.3f (error %.3f), gmc", fit["beta[1]"]["mean"], fit["beta[1]"]["mcse"])
    # 2 the order of w and b
    for fresh in (True, False):
        b = counts_by_gibbs(fresh)
        say("2: %s: means %.3f %.3f, variances %.4f %.4f, covariance %.4f", "fresh" if fresh else "stale", *b.mean(axis=1), *b.var(axis=1),
            float(np.cov(b)[0, 1]))
    # 3 Polya-Gamma moments
    for z in (0.0, 2.0, 8.0):
        w = polya_gamma(np.random.default_rng(5), 1, np.full(200_000, z))
        mean = 0.25 if z == 0 else math.tanh(z / 2) / (2 * z)
        variance = 1 / 24 if z == 0 else (math.sinh(z) - z) / (4 * z ** 3 * math.cosh(z / 2) ** 2)
        say("3: z = %g: mean %.4f (formula %.4f), variance %.5f (%.5f)", z, w.mean(), mean, w.var(), variance)
    # 4 much shrinkage
    study = runs.tables(run.folder(here, "diabetes"))
    for given in ([], ["r=100000", "delta=1"], ["r=1", "delta=1000"]):
        fit = run.fit(lasso, study + given, samples=5000)
        say("4: %s: lambda %.3g, largest |beta| %.3g, sigma %.1f", " ".join(given) or "r=1 delta=1.78", fit["lambda"]["mean"],
            max(abs(fit["beta[%d]" % j]["mean"]) for j in range(1, 11)), fit["sigma"]["mean"])
    y = np.load(os.path.join(run.folder(here, "diabetes"), "y.npy"))
    say("4: sd of y %.1f", y.std(ddof=1))
    # 5 two categories
    fit = run.fit(multinomial, [put(folder, "two", N=20, p=1, K=2, X=[[1]] * 20, y=[1] * 7 + [2] * 13)], samples=20_000)
    exact = density_moments(lambda b: 7 * b - 20 * math.log1p(math.exp(b)) - b * b / 8, np.linspace(-6, 5, 20_001))
    say("5: mean %.4f sd %.4f by quadrature; %.4f (error %.4f), %.4f by gmc", *exact, fit["B[1, 1]"]["mean"], fit["B[1, 1]"]["mcse"],
        fit["B[1, 1]"]["sd"])


def leapfrog(eps, steps, extra, chains=200_000, transitions=60):
    """Variance of HMC for N(0, 1), and mean acceptance; extra: a full step of momentum where the last should be a half."""
    r = np.random.default_rng(6)
    q, accepted = r.standard_normal(chains), 0
    for _ in range(transitions):
        p = r.standard_normal(chains)
        x, m = q, p - eps / 2 * q
        for k in range(steps):
            x = x + eps * m
            if extra or k < steps - 1:
                m = m - eps * x
        m = m - eps / 2 * x
        yes = r.random(chains) < np.exp(np.minimum(0, (q * q + p * p - x * x - m * m) / 2))
        q = np.where(yes, x, q)
        accepted += yes.mean()
    return q.var(), accepted / transitions


def paper_2(run):
    here = "hmc_multinomial"
    # 1 the extra step
    for eps in (0.1, 0.3, 0.6):
        say("1: eps %.1f: right variance %.3f, acceptance %.3f; extra step %.3f, %.3f", eps, *leapfrog(eps, 5, False),
            *leapfrog(eps, 5, True))
    # 2 gradients
    r = np.random.default_rng(7)
    X, B = r.standard_normal((6, 3)), r.standard_normal((3, 4))
    B[:, 3] = 0
    Y = np.eye(4)[[0, 1, 2, 3, 0, 1]]

    def soft(B):
        e = np.exp(X @ B - (X @ B).max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    kernel = lambda B: (Y * np.log(soft(B))).sum() - np.log1p(B * B).sum()
    gradient = X.T @ (Y - soft(B)) - 2 * B / (1 + B * B)
    worst = wrong = 0
    for j in range(3):
        for k in range(3):
            D = np.zeros((3, 4))
            D[j, k] = 1e-5
            slope = (kernel(B + D) - kernel(B - D)) / 2e-5
            worst = max(worst, abs(slope - gradient[j, k]))
            wrong = max(wrong, abs(slope - gradient[j, k] - 4 * B[j, k] / (1 + B[j, k] ** 2)))
    say("2: central differences: off by %.1e with minus, by %.2f with plus", worst, wrong)
    # 3 rows of the gradient
    say("3: sums over categories of X'(Y - P): at most %.1e", np.abs((X.T @ (Y - soft(B))).sum(axis=1)).max())
    # 4 annealing
    T, n = 1000.0, 0
    while T > 1:
        T, n = max(1, 0.9 * T), n + 1
    U = 1000.0
    for _ in range(100):
        U = 1 + 0.9 * U
    say("4: T is 1 after %d iterations; by 1 + 0.9 T it is %.3f after 100", n, U)
    # 5 effective sample size for 1000 gradients
    where = run.folder(here, "data")
    runs.module(here).make(where, 1000, 10, 4)
    given = runs.tables(where) + ["K=4"]
    for steps in (1, 3, 10, 30, 100):
        fit = run.fit(run.compile(here, "hmc", steps=steps), given, samples=1000, warmup=500)
        name, ess = fit.least()
        say("5: %d steps: %.0f effective of 4000 (%s), %.2f for 1000 gradients", steps, ess, name, 1000 * ess / (4000 * steps))


def paper_3(run):
    here = "mixtures"
    # 1 truncation and numbers of clusters
    for a, k, n in ((1, 10, 1000), (10, 256, 1_000_000), (10, 64, 10_000)):
        say("1: alpha %d, k %d: rest of the stick %.1e on average; n = %d: %.1f clusters expected", a, k, (a / (1 + a)) ** (k - 1), n,
            sum(a / (a + i) for i in range(n)))
    # 2 inverse Wishart
    r = np.random.default_rng(8)
    p, nu = 3, 4
    total = np.zeros((p, p))
    for _ in range(20_000):
        Z = r.standard_normal((nu + p + 1, p)) / math.sqrt(nu)
        total += np.linalg.inv(Z.T @ Z) / 20_000
    say("2: mean of IW(nu + p + 1 = %d, nu I) by simulation: diagonal %s", nu + p + 1, np.round(np.diag(total), 3))
    # 3 what depends on labels
    data = runs.module(here)
    mixture = run.compile(here, "mixture", "--method", "gibbs")
    where = run.folder(here, "three")
    data.three(where, 1000)
    fit = run.fit(mixture, runs.tables(where) + ["k=10"], samples=2000, more=("--params", "alpha,w,share"))
    for names in (("w",), ("share",), ("alpha",)):
        name, ess = fit.least(names)
        say("3: %s: least effective %.0f of 8000, R-hat %.3f", name, ess, fit[name]["rhat"])
    # 4 the prior of the hierarchy, and its draws given data
    where = run.folder(here, "groups")
    runs.module(here).groups(where, 4, 200)
    for model in ("groups", "symmetric"):
        program = run.compile(here, model, "--method", "gibbs")
        empty = put(run.folder(here), "empty", N=0, p=2, x=[], g=[], k=10, G=4, A=0, anchor=[])
        fit = run.fit(program, [empty], samples=100_000, warmup=1000, more=("--params", "alpha,a0"))
        for name, exact in (("alpha", 2), ("a0", 10)):
            say("4: %s: %s: mean %.3f (error %.3f) for %d, effective %.0f of 400,000", model, name, fit[name]["mean"], fit[name]["mcse"],
                exact, fit[name]["ess"])
        fit = run.fit(program, runs.tables(where) + ["k=10", "G=4"], samples=2000, more=("--params", "alpha,a0,share"))
        for name in ("alpha", "a0"):
            say("4: %s: %s given 4 sets: effective %.0f of 8000, R-hat %.3f", model, name, fit[name]["ess"], fit[name]["rhat"])
    # 5 sizes of sticks
    for a in (1, 10):
        say("5: alpha %d: E w1 %.3f, E w2 %.3f", a, 1 / (1 + a), a / (1 + a) ** 2)


def paper_4(run):
    here = "truncated_normals"
    # 1 moments
    first, second = runs.moments(2, 1, 0, 1.5)
    say("1: mean %.5f, sd %.5f", first, math.sqrt(second - first * first))
    # 2 a frozen mean
    where = run.folder(here, "frozen")
    runs.module(here).make(where, 1000, 8)
    probit = run.compile(here, "probit", "--method", "gibbs")
    fit = run.fit(probit, runs.tables(where), samples=5000)
    X, y = np.load(os.path.join(where, "X.npy")), np.load(os.path.join(where, "y.npy"))
    frozen = np.sqrt(np.diag(np.linalg.inv(X.T @ X + np.eye(8) / 1e4)))
    ratios = [fit["beta[%d]" % (j + 1)]["sd"] / frozen[j] for j in range(8)]
    say("2: posterior sd over that of the frozen normal: %.2f to %.2f", min(ratios), max(ratios))
    # 3 quadrature
    x, v = [-1, 0.5, 1, 2, -2], [0, 1, 1, 0, 0]
    small = put(run.folder(here), "five", N=5, p=1, X=[[a] for a in x], y=v, prior_sd=1)
    few = run.fit(probit, [small], samples=20_000)
    exact = density_moments(lambda b: -b * b / 2 + sum(math.log(Phi(b * a if u else -b * a)) for a, u in zip(x, v)),
                            np.linspace(-5, 5, 10_001))
    say("3: mean %.4f sd %.4f by quadrature; %.4f (error %.4f), %.4f by gmc", *exact, few["beta[1]"]["mean"], few["beta[1]"]["mcse"],
        few["beta[1]"]["sd"])
    # 4 rates of the tail
    for a in (1, 3, 8):
        tail = 0.5 * math.erfc(a / math.sqrt(2))
        acceptance = [rate * math.exp(rate * a - rate * rate / 2) * SQRT * tail
                      for rate in ((a + math.sqrt(a * a + 4)) / 2, a + math.sqrt(a * a + 4) / 2)]
        # The bound of exp(-(x - rate)^2/2) for x > a is 1 where rate > a
        say("4: a = %d: acceptance %.3f, with the wrong rate %.3f", a, *acceptance)
    # 5 the maximum of the likelihood
    b = np.zeros(8)
    for _ in range(50):
        eta = (2 * y - 1) * (X @ b)
        ratio = np.exp(-eta * eta / 2) / SQRT / np.array([Phi(e) for e in eta])
        g = X.T @ ((2 * y - 1) * ratio)
        H = (X * (ratio * (ratio + eta))[:, None]).T @ X
        b = b + np.linalg.solve(H, g)
    sd = np.sqrt(np.diag(np.linalg.inv(H)))
    off = [(fit["beta[%d]" % (j + 1)]["mean"] - b[j]) / sd[j] * np.sign(b[j]) for j in range(8)]
    ratios = [fit["beta[%d]" % (j + 1)]["sd"] / sd[j] for j in range(8)]
    say("5: sizes of posterior means less those of the maximum, in sds: %.2f to %.2f; sds over those of the information: %.2f to %.2f",
        min(off), max(off), min(ratios), max(ratios))


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("papers", nargs="*", type=int, choices=range(5))
    given = ask.parse_args()
    options = argparse.Namespace(gmc=os.path.join(runs.ROOT, "build", "gmc"), out=os.path.join(runs.ROOT, "build", "papers"), device=None,
                                 full=False, quick=False,
                                 pictures=False)
    for k in given.papers or range(5):
        print("Paper %d" % k)
        (paper_0, paper_1, paper_2, paper_3, paper_4)[k](runs.Runs(options))


main()
