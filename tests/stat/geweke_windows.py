"""Geweke's joint distribution test (geweke.py) of group moves of rates of counts and probabilities of observing them, with the counts
summed over windows (graph/updates/windows.c; docs/conditionals.md, section 7): all responses are missing, so what is drawn from is the
prior and the data's distribution under it. --explain=full must name what each changes.

z and its bound are those of geweke.py: |z| < 6, P(|t| > 6) = 3e-8 with 99 degrees of freedom; some 250 moments ring falsely once in 120000
runs. Seeds are fixed.

    geweke_windows.py [NAME...]
"""
import re
import subprocess

import numpy as np

import geweke
from geweke import M, gamma, identity, log, logit, normal, rng
from program import GMC

tests = []
X = [0.6, -0.4, 0.2]
W = [[0.5, -0.3], [-0.8, 0.1], [0.2, 0.9]]
null = [[None] * 2] * 3


def inv_logit(x):
    return 1 / (1 + np.exp(-x))


def test(moves, text, transforms, values=None):
    """`moves`: pairs that move, in order; n[i] in 0, 1, 2, ... and y[i, t] of them, i in 1:3, t in 1:2."""
    def add(direct):
        model = ("data { int<lower=0> y[3, 2]; vector[3] x; matrix[3, 2] w; int g[3]; int here[3]; int site[4]; int<lower=0> v[4]; }\n"
                 + text)
        data = {"y": null, "x": X, "w": W, "g": [1, 2, 2], "here": [1, 0, 1], "site": [1, 3, 3, 2], "v": [0] * 4, **(values or {})}
        tests.append((direct.__name__, model, data, transforms, moves, direct))
        return direct
    return add


SEEN = "likelihood { for (i in 1:3, t in 1:2) y[i, t] ~ binomial(n[i], p); }"
roots = {"n.1": np.sqrt, "n.3": np.sqrt, "y.1.2": np.sqrt, "y.3.1": np.sqrt}


@test(["lambda, p"], "prior { lambda ~ gamma(6, 0.02); p ~ beta(3, 3); } latent { for (i in 1:3) n[i] ~ poisson(lambda); } " + SEEN,
      {"lambda": log, "p": logit, **roots})
def values_that_lie_apart():
    lam, p = gamma(6, 0.02), rng.beta(3, 3, M)
    return {"lambda": lam, "p": p, **seen([rng.poisson(lam) for _ in range(2)], p)}


def seen(n, p):
    """Of n[1] and n[3]."""
    q = [p(i) if callable(p) else p for i in (0, 2)]
    return {"n.1": n[0], "n.3": n[1], "y.1.2": rng.binomial(n[0], q[0]), "y.3.1": rng.binomial(n[1], q[1])}


@test(["lambda, p"], "prior { lambda ~ gamma(3, 0.4); p ~ beta(2, 2); } latent { for (i in 1:3) n[i] ~ poisson(lambda); } " + SEEN,
      {"lambda": log, "p": logit, **roots})
def rate_and_probability():
    lam, p = gamma(3, 0.4), rng.beta(2, 2, M)
    return {"lambda": lam, "p": p, **seen([rng.poisson(lam) for _ in range(2)], p)}


@test(["lambda, p"], "prior { lambda ~ uniform(0.5, 30); p ~ uniform(0.1, 0.7); } latent { for (i in 1:3) int<lower=0, upper=25> n[i] ~ "
                     "poisson(lambda) T[, 25]; } " + SEEN, {"lambda": identity, "p": identity, **roots})
def ends():
    lam, p, n = rng.uniform(0.5, 30, M), rng.uniform(0.1, 0.7, M), []
    for _ in range(2):
        k = rng.poisson(lam)
        while (k > 25).any():
            k = np.where(k > 25, rng.poisson(lam), k)
        n.append(k)
    return {"lambda": lam, "p": p, **seen(n, p)}


@test(["a, p"], "prior { a ~ normal(1.5, 0.6); b ~ normal(0, 0.5); p ~ beta(2, 3); } latent { for (i in 1:3) n[i] ~ poisson(exp(a + b * "
                "x[i])); } " + SEEN, {"a": identity, "b": identity, "p": logit, **roots})
def log_rate_with_covariate():
    a, b, p = normal(1.5, 0.6), normal(0, 0.5), rng.beta(2, 3, M)
    return {"a": a, "b": b, "p": p, **seen([rng.poisson(np.exp(a + b * X[i])) for i in (0, 2)], p)}


@test(["a, c"], "prior { a ~ normal(1.5, 0.6); b ~ normal(0, 0.5); c ~ normal(0, 1); d ~ normal(0, 0.7); } latent { for (i in 1:3) n[i] ~ "
                "poisson_log(a + b * x[i]); } "
      "likelihood { for (i in 1:3, t in 1:2) y[i, t] ~ binomial(n[i], inv_logit(c + d * w[i, t])); }",
      {"a": identity, "b": identity, "c": identity, "d": identity, **roots})
def covariates_of_both():
    a, b, c, d = normal(1.5, 0.6), normal(0, 0.5), normal(0), normal(0, 0.7)
    n = [rng.poisson(np.exp(a + b * X[i])) for i in (0, 2)]
    return {"a": a, "b": b, "c": c, "d": d, "n.1": n[0], "n.3": n[1], "y.1.2": rng.binomial(n[0], inv_logit(c + d * W[0][1])),
            "y.3.1": rng.binomial(n[1], inv_logit(c + d * W[2][0]))}


@test(["lambda, p"], "prior { for (k in 1:2) lambda[k] ~ gamma(3, 0.5); p ~ beta(2, 2); } latent { for (i in 1:3) n[i] ~ "
                     "poisson(lambda[g[i]]); } " + SEEN, {"lambda.1": log, "lambda.2": log, "p": logit, **roots})
def rates_by_group():
    lam, p = [gamma(3, 0.5) for _ in range(2)], rng.beta(2, 2, M)
    return {"lambda.1": lam[0], "lambda.2": lam[1], "p": p, **seen([rng.poisson(lam[k]) for k in range(2)], p)}


@test(["mu, p"], "prior { mu ~ gamma(3, 0.4); size ~ gamma(4, 2); p ~ beta(2, 2); } latent { for (i in 1:3) n[i] ~ neg_binomial_2(mu, "
                 "size); } " + SEEN, {"mu": log, "size": log, "p": logit, **roots})
def negative_binomial():
    mu, size, p = gamma(3, 0.4), gamma(4, 2), rng.beta(2, 2, M)
    return {"mu": mu, "size": size, "p": p, **seen([rng.poisson(rng.gamma(size) * mu / size) for _ in range(2)], p)}


@test([], "prior { lambda ~ gamma(3, 0.4); q ~ gamma(3, 3); } latent { for (i in 1:3) n[i] ~ poisson(lambda); } likelihood { for (i in "
          "1:3, t in 1:2) y[i, t] ~ poisson(n[i] * q + 0.1); }", {"lambda": log, "q": log, **roots})
def not_of_this_form():                          # the density is not linear in the count
    lam, q = gamma(3, 0.4), gamma(3, 3)
    n = [rng.poisson(lam) for _ in range(2)]
    return {"lambda": lam, "q": q, "n.1": n[0], "n.3": n[1], "y.1.2": rng.poisson(n[0] * q + 0.1), "y.3.1": rng.poisson(n[1] * q + 0.1)}


@test(["lambda, q"], "prior { lambda ~ gamma(3, 0.4); q ~ gamma(3, 3); } latent { for (i in 1:3) n[i] ~ poisson(lambda); } likelihood { "
                     "for (i in 1:3, t in 1:2) y[i, t] ~ poisson(n[i] * q); }", {"lambda": log, "q": log, **roots})
def rows_of_poisson():
    lam, q = gamma(3, 0.4), gamma(3, 3)
    n = [rng.poisson(lam) for _ in range(2)]
    return {"lambda": lam, "q": q, "n.1": n[0], "n.3": n[1], "y.1.2": rng.poisson(n[0] * q), "y.3.1": rng.poisson(n[1] * q)}


@test(["lambda, p"], "prior { lambda ~ gamma(3, 0.4); p ~ beta(2, 2); } latent { for (i in 1:3) if (here[i] == 1) n[i] ~ poisson(lambda); "
                     "} likelihood { for (i in 1:3, t in 1:2) if (here[i] == 1) y[i, t] ~ binomial(n[i], p); }",
      {"lambda": log, "p": logit, **roots}, {"y": [[None] * 2, [0, 0], [None] * 2]})
def elements_that_do_not_exist():
    lam, p = gamma(3, 0.4), rng.beta(2, 2, M)
    return {"lambda": lam, "p": p, **seen([rng.poisson(lam) for _ in range(2)], p)}


@test(["psi, p"], "prior { psi ~ beta(2, 2); p ~ beta(2, 2); } latent { for (i in 1:3) n[i] ~ binomial(14, psi); } " + SEEN,
      {"psi": logit, "p": logit, **roots})
def binomial_counts():
    psi, p = rng.beta(2, 2, M), rng.beta(2, 2, M)
    return {"psi": psi, "p": p, **seen([rng.binomial(14, psi) for _ in range(2)], p)}


@test(["a, p"], "prior { a ~ normal(1, 0.5); p ~ beta(2, 2); s ~ uniform(0.2, 0.8); for (i in 1:3) e[i] ~ normal(0, s); } latent { for (i "
                "in 1:3) { n[i] ~ poisson(exp(a + e[i])); } } "
      "likelihood { for (i in 1:3, t in 1:2) y[i, t] ~ binomial(n[i], p); }", {"a": identity, "p": logit, "s": identity, "e.1": identity,
              **roots})
def effects_of_sites():
    a, p, s = normal(1, 0.5), rng.beta(2, 2, M), rng.uniform(0.2, 0.8, M)
    e = [normal(0, s) for _ in range(2)]
    return {"a": a, "p": p, "s": s, "e.1": e[0], **seen([rng.poisson(np.exp(a + e[i])) for i in range(2)], p)}


@test(["a, p"], "prior { a ~ normal(1.5, 0.6); p ~ beta(2, 3); } latent { for (i in 1:3) n[i] ~ poisson(exp(a + 0.3 * x[i])); } likelihood "
                "{ for (r in 1:4) v[r] ~ binomial(n[site[r]], p); }",
      {"a": identity, "p": logit, "n.1": np.sqrt, "n.3": np.sqrt, "v.1": np.sqrt, "v.3": np.sqrt}, {"v": [None] * 4, "y": [[0] * 2] * 3})
def rows_that_name_counts():
    a, p = normal(1.5, 0.6), rng.beta(2, 3, M)
    n = [rng.poisson(np.exp(a + 0.3 * X[i])) for i in (0, 2)]
    return {"a": a, "p": p, "n.1": n[0], "n.3": n[1], "v.1": rng.binomial(n[0], p), "v.3": rng.binomial(n[1], p)}


def said(w, name, model):
    path = w.path(name + "_explained.gm")
    with open(path, "w") as f:
        f.write(model)
    text = subprocess.run([GMC, "--method", "gibbs", "--explain=full", path], capture_output=True, text=True).stdout
    return re.findall(r"^(.*), a group move with [^\n]* summed out", text, re.M)


def compare(w, name, model, data, transforms, moves, direct):
    found = said(w, name, model)
    if found != moves:
        return False, "%s: %s move in place of %s" % (name, found, moves)
    return geweke.compare(w, name, model, data, transforms, direct, ["--method", "gibbs"], samples=4000, thin=8, warmup=400)


if __name__ == "__main__":
    geweke.main(tests, compare)
