"""Geweke's joint distribution test (geweke.py) of parameters of plates of conjugate unknowns that are drawn with the plate integrated out
(graph/updates/conjugates.c; docs/conditionals.md, section 7): all responses are missing, so what is drawn from is the prior and the data's
distribution under it. --explain=full must say what is integrated out of which law.

z and its bound are those of geweke.py: |z| < 6, P(|t| > 6) = 3e-8 with 99 degrees of freedom; some 250 moments ring falsely once in 120000
runs. Seeds are fixed.

    geweke_conjugates.py [NAME...]
"""
import re
import subprocess

import numpy as np

import geweke
from geweke import M, gamma, identity, log, logit, normal, rng
from program import GMC

tests = []
T = [0.5, 1.5, 2.0]
G = [1, 1, 3, 3, 3]
X = [0.4, -0.7, 0.1, 0.9, -0.2]


def test(without, text, transforms):
    """`without`: the laws that have a plate integrated out, and the plate, in order. y[i], i in 1:3, has t[i]; v[r], r in 1:5, has g[r] in
    1, 3 and x[r]."""
    def add(direct):
        model = ("data { int<lower=0> y[3]; int<lower=0, upper=1> b[3, 2]; vector[3] t; int<lower=0> v[5]; vector[5] w, x; int g[5]; int "
                 "here[3]; int k[3]; int n[3]; }\n" + text)
        data = {"y": [None] * 3, "b": [[None] * 2] * 3, "t": T, "v": [None] * 5, "w": [None] * 5, "x": X, "g": G, "here": [1, 0, 1],
                "k": [1, 2, 2], "n": [3, 5, 2]}
        for name, unused in {"y": [0] * 3, "b": [[0] * 2] * 3, "v": [0] * 5, "w": [0] * 5}.items():
            data[name] = data[name] if re.search(r"\b%s\[[^]]*\] ~" % name, text) else unused
        tests.append((direct.__name__, model, data, transforms, without, direct))
        return direct
    return add


def clip(p):
    return np.log(p + 1e-3) - np.log1p(1e-3 - p)           # of a probability that may be nearly 0 or 1


both = [("alpha", "theta"), ("beta", "theta"), ("alpha, beta", "theta")]
GAMMA = "prior { alpha ~ gamma(3, 2); beta ~ gamma(4, 2); } "


@test(both, GAMMA + "latent { for (i in 1:3) theta[i] ~ gamma(alpha, beta); } likelihood { for (i in 1:3) y[i] ~ poisson(theta[i] * t[i]); "
                    "}",
      {"alpha": log, "beta": log, "theta.1": np.sqrt, "theta.3": np.sqrt, "y.1": np.sqrt, "y.3": np.sqrt})
def rates():
    a, b = gamma(3, 2), gamma(4, 2)
    th = [rng.gamma(a) / b for _ in range(2)]
    return {"alpha": a, "beta": b, "theta.1": th[0], "theta.3": th[1], "y.1": rng.poisson(th[0] * T[0]), "y.3": rng.poisson(th[1] * T[2])}


@test(both, GAMMA + "latent { for (i in 1:3) theta[i] ~ gamma(alpha, beta); } likelihood { for (r in 1:5) v[r] ~ poisson(theta[g[r]]); }",
      {"alpha": log, "beta": log, "theta.1": np.sqrt, "theta.2": np.sqrt, "theta.3": np.sqrt, "v.1": np.sqrt, "v.4": np.sqrt})
def rates_that_rows_name():                                 # no row names the second
    a, b = gamma(3, 2), gamma(4, 2)
    th = [rng.gamma(a) / b for _ in range(3)]
    return {"alpha": a, "beta": b, "theta.1": th[0], "theta.2": th[1], "theta.3": th[2], "v.1": rng.poisson(th[0]),
            "v.4": rng.poisson(th[2])}


@test(both, "prior { alpha ~ gamma(3, 2); beta ~ gamma(4, 2); e ~ normal(0, 0.5); } latent { for (i in 1:3) theta[i] ~ gamma(alpha, beta); "
            "} likelihood { for (r in 1:5) v[r] ~ poisson(theta[g[r]] * exp(e * x[r])); }",
      {"alpha": log, "beta": log, "e": identity, "theta.1": np.sqrt, "theta.3": np.sqrt, "v.2": np.sqrt, "v.4": np.sqrt})
def exposures_that_are_unknown():
    a, b, e = gamma(3, 2), gamma(4, 2), normal(0, 0.5)
    th = [rng.gamma(a) / b for _ in range(2)]
    return {"alpha": a, "beta": b, "e": e, "theta.1": th[0], "theta.3": th[1], "v.2": rng.poisson(th[0] * np.exp(e * X[1])),
            "v.4": rng.poisson(th[1] * np.exp(e * X[3]))}


BETA = [("alpha", "p"), ("beta", "p"), ("alpha, beta", "p")]


@test(BETA, "prior { alpha ~ lognormal(0.3, 0.5); beta ~ lognormal(0, 0.5); } latent { for (i in 1:3) p[i] ~ beta(alpha, beta); } "
            "likelihood { for (i in 1:3, j in 1:2) b[i, j] ~ bernoulli(p[i]); }",
      {"alpha": log, "beta": log, "p.1": clip, "p.3": clip, "b.1.2": identity, "b.3.1": identity})
def probabilities_of_several_rows():
    a, b = np.exp(normal(0.3, 0.5)), np.exp(normal(0, 0.5))
    p = [rng.beta(a, b) for _ in range(2)]
    return {"alpha": a, "beta": b, "p.1": p[0], "p.3": p[1], "b.1.2": rng.binomial(1, p[0]), "b.3.1": rng.binomial(1, p[1])}


@test([("m", "p"), ("size", "p")],
      "prior { m ~ beta(2, 3); size ~ gamma(4, 1); } latent { for (i in 1:3) p[i] ~ beta(m * size, (1 - m) * size); } likelihood { for (i "
      "in 1:3) y[i] ~ binomial(n[i], p[i]); }",
      {"m": logit, "size": log, "p.1": clip, "p.3": clip, "y.1": identity, "y.3": identity})
def mean_and_size():
    m, s = rng.beta(2, 3, M), gamma(4, 1)
    p = [rng.beta(m * s, (1 - m) * s) for _ in range(2)]
    return {"m": m, "size": s, "p.1": p[0], "p.3": p[1], "y.1": rng.binomial(3, p[0]), "y.3": rng.binomial(2, p[1])}


@test(BETA, "prior { for (j in 1:2) { alpha[j] ~ gamma(3, 1); beta[j] ~ gamma(2, 1); } } latent { for (i in 1:3) p[i] ~ beta(alpha[k[i]], "
            "beta[k[i]]); } likelihood { for (i in 1:3) y[i] ~ binomial(n[i], p[i]); }",
      {"alpha.1": log, "alpha.2": log, "beta.1": log, "beta.2": log, "p.1": clip, "p.3": clip, "y.1": identity, "y.3": identity})
def parameters_of_groups():
    a, b = [gamma(3, 1) for _ in range(2)], [gamma(2, 1) for _ in range(2)]
    p = [rng.beta(a[j], b[j]) for j in range(2)]
    return {"alpha.1": a[0], "alpha.2": a[1], "beta.1": b[0], "beta.2": b[1], "p.1": p[0], "p.3": p[1], "y.1": rng.binomial(3, p[0]),
            "y.3": rng.binomial(2, p[1])}


@test([("alpha", "s2"), ("beta", "s2"), ("alpha, beta", "s2")],
      "prior { alpha ~ gamma(12, 3); beta ~ gamma(4, 2); } latent { for (i in 1:3) s2[i] ~ inv_gamma(alpha, beta); } likelihood { for (r "
      "in 1:5) w[r] ~ normal(0, sqrt(s2[g[r]])); }",
      {"alpha": log, "beta": log, "s2.1": log, "s2.3": log, "w.1": np.arctan, "w.5": np.arctan})
def variances_of_groups():
    a, b = gamma(12, 3), gamma(4, 2)
    s2 = [b / rng.gamma(a) for _ in range(2)]
    return {"alpha": a, "beta": b, "s2.1": s2[0], "s2.3": s2[1], "w.1": normal(0, np.sqrt(s2[0])), "w.5": normal(0, np.sqrt(s2[1]))}


@test([("nu", "u")], "prior { nu ~ gamma(4, 1); } latent { for (r in 1:5) u[r] ~ gamma(nu / 2, nu / 2); } likelihood { for (r in 1:5) w[r] "
                     "~ normal(x[r], 1 / sqrt(u[r])); }",
      {"nu": log, "u.1": lambda u: np.log(u + 0.01), "u.4": lambda u: np.log(u + 0.01), "w.1": np.arctan, "w.4": np.arctan})
def weights_of_student():
    nu = gamma(4, 1)
    u = [rng.gamma(nu / 2) / (nu / 2) for _ in range(2)]
    return {"nu": nu, "u.1": u[0], "u.4": u[1], "w.1": normal(X[0], 1 / np.sqrt(u[0])), "w.4": normal(X[3], 1 / np.sqrt(u[1]))}


@test([], GAMMA + "latent { for (i in 1:3) theta[i] ~ gamma(alpha, beta); } "
      "likelihood { for (i in 1:3) y[i] ~ poisson(theta[i] * alpha); }",
      {"alpha": log, "beta": log, "theta.1": np.sqrt, "y.1": np.sqrt})
def parameter_beside_the_plate():                           # alpha stands in what holds theta, and beta has a family
    a, b = gamma(3, 2), gamma(4, 2)
    th = rng.gamma(a) / b
    return {"alpha": a, "beta": b, "theta.1": th, "y.1": rng.poisson(th * a)}


@test([("alpha", "theta"), ("beta", "theta"), ("alpha, beta", "theta")],
      GAMMA + "latent { for (i in 1:3) { theta[i] ~ gamma(alpha, beta); phi[i] ~ gamma(alpha, 2); } } likelihood { for (i in 1:3) { y[i] ~ "
              "poisson(theta[i] + 0 * phi[1]); } }",
      {"alpha": log, "beta": log, "theta.1": np.sqrt, "phi.1": np.sqrt, "phi.3": np.sqrt, "y.1": np.sqrt})
def parameter_of_two_plates():                              # without one of them
    a, b = gamma(3, 2), gamma(4, 2)
    th, phi = rng.gamma(a) / b, [rng.gamma(a) / 2 for _ in range(2)]
    return {"alpha": a, "beta": b, "theta.1": th, "phi.1": phi[0], "phi.3": phi[1], "y.1": rng.poisson(th)}


@test(both, GAMMA + "latent { for (i in 1:3) if (here[i] == 1) theta[i] ~ gamma(alpha, beta); } likelihood { for (r in 1:5) v[r] ~ "
                    "poisson(theta[g[r]]); }",
      {"alpha": log, "beta": log, "theta.1": np.sqrt, "theta.3": np.sqrt, "v.1": np.sqrt, "v.4": np.sqrt})
def elements_that_do_not_exist():
    a, b = gamma(3, 2), gamma(4, 2)
    th = [rng.gamma(a) / b for _ in range(2)]
    return {"alpha": a, "beta": b, "theta.1": th[0], "theta.3": th[1], "v.1": rng.poisson(th[0]), "v.4": rng.poisson(th[1])}


def said(w, name, model):
    path = w.path(name + "_explained.gm")
    with open(path, "w") as f:
        f.write(model)
    text = subprocess.run([GMC, "-q", "--method", "gibbs", "--explain=full", path], capture_output=True, text=True).stdout
    return re.findall(r"^(\w+(?:, \w+)*)(?:, a group move)?   \(line(?:(?!\n\n).)*?note      (\w+) is integrated out", text, re.M | re.S)


def compare(w, name, model, data, transforms, without, direct):
    found = said(w, name, model)
    if found != without:
        return False, "%s: %s in place of %s" % (name, found, without)
    return geweke.compare(w, name, model, data, transforms, direct, ["--method", "gibbs"], samples=4000, thin=8, warmup=400)


if __name__ == "__main__":
    geweke.main(tests, compare)
