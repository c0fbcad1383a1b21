"""Geweke's joint distribution test (geweke.py) of location moves (docs/conditionals.md, section 7): all responses are missing, so what is
drawn from is the prior and the data's distribution under it. Models are drawn with the group moves, and once more with `group_move = off`;
--explain=full must name what each group move changes, or name none.

z and its bound are those of geweke.py: |z| < 6, P(|t| > 6) = 3e-8 with 99 degrees of freedom; some 600 moments, twice, ring falsely once in
30000 runs. Seeds are fixed. With what is added to all but the first variable doubled by hand, each of five models in which several change
failed: |z| of 25 to 53, or counts without an end.

    geweke_location_moves.py [NAME...]
"""
import re
import subprocess

import numpy as np
from scipy.special import ndtr, ndtri

import geweke
from geweke import M, gamma, identity, log, normal, rng, squash
from program import GMC

G = [1, 1, 2, 3, 3]
H = [1, 2, 2, 1, 2]
null = [None] * 5
COUNTS = "int<lower=0> k[5];"
tests = []


def test(group_moves, prior, likelihood, transforms, data="", values=None, off=None):
    """`group_moves`: what the group moves change, as --explain=full names it. `off`: unknowns that no group move changes then."""
    def add(direct):
        model = "data { int g[5], h[5]; %s %s }\nprior { %s }\nlikelihood { %s }\n" % (COUNTS if " k[i] ~" in likelihood else "", data,
                prior, likelihood)
        all_values = {"g": G, "h": H, **({"k": null} if " k[i] ~" in likelihood else {}), **(values or {})}
        tests.append((direct.__name__, model, all_values, transforms, group_moves, direct))
        if off:
            tests.append((direct.__name__ + "_off", model + "infer { %s }\n" % " ".join("%s by gibbs(group_move = off);" % v for v in off),
                          all_values, transforms, [], direct))
        return direct
    return add


def counts(eta):
    return rng.poisson(np.exp(eta)) * 1.0


def coin(eta):
    return (rng.random(M) < (1 + np.tanh(eta / 2)) / 2) * 1.0


@test(["mu, theta"], "mu ~ normal(0.3, 0.7); t ~ uniform(0.1, 0.8); for (j in 1:3) theta[j] ~ normal(mu, t);",
      "for (i in 1:5) k[i] ~ poisson_log(theta[g[i]]);",
      {"mu": identity, "t": identity, "theta.1": identity, "theta.3": identity, "k.2": np.log1p}, off=["theta"])
def poisson_of_two_levels():
    mu, t = normal(0.3, 0.7), rng.uniform(0.1, 0.8, M)
    u = [normal(mu, t) for _ in range(2)]
    return {"mu": mu, "t": t, "theta.1": u[0], "theta.3": u[1], "k.2": counts(u[0])}


@test(["m, mu", "m, mu, theta", "mu, theta"],
      "m ~ logistic(0, 0.1); for (j in 1:2) mu[j] ~ normal(3 * m, 0.4); for (j in 1:3) theta[j] ~ student_t(5, mu[h[j]] + 0.2, 0.3);",
      "for (i in 1:5) k[i] ~ poisson_log(theta[g[i]]);",
      {"m": identity, "mu.1": identity, "mu.2": identity, "theta.1": identity, "theta.3": identity, "k.2": np.log1p}, off=["theta", "mu"])
def three_levels_by_group():
    m = rng.logistic(0, 0.1, M)
    mu = [normal(3 * m, 0.4) for _ in range(2)]
    u = [mu[k] + 0.2 + 0.3 * rng.standard_t(5, M) for k in range(2)]
    return {"m": m, "mu.1": mu[0], "mu.2": mu[1], "theta.1": u[0], "theta.3": u[1], "k.2": counts(u[0])}


@test(["a, u", "a, v", "u, v"],
      "a ~ normal(0.2, 0.5); t ~ gamma(3, 6); for (j in 1:3) u[j] ~ normal(0, t); for (j in 1:2) v[j] ~ student_t(6, 0, 0.4);",
      "for (i in 1:5) k[i] ~ poisson_log(a + u[g[i]] + v[h[i]]);",
      {"a": identity, "t": log, "u.1": identity, "u.2": identity, "v.1": identity, "k.3": np.log1p}, off=["a", "u", "v"])
def sum_of_three():
    a, t = normal(0.2, 0.5), gamma(3, 6)
    u1, u2, v1, v2 = normal(0, t), normal(0, t), 0.4 * rng.standard_t(6, M), 0.4 * rng.standard_t(6, M)
    return {"a": a, "t": t, "u.1": u1, "u.2": u2, "v.1": v1, "k.3": counts(a + u2 + v2)}


@test(["a, mu, u", "a, u", "mu, u"], "a ~ normal(0.2, 0.5); mu ~ uniform(-1, 0.7); for (j in 1:3) u[j] ~ logistic(mu, 0.2);",
      "for (i in 1:5) k[i] ~ poisson_log(a + u[g[i]]);",
      {"a": identity, "mu": identity, "u.1": identity, "u.2": identity, "k.3": np.log1p}, off=["u"])
def mean_between_ends_beside_an_intercept():
    a, mu = normal(0.2, 0.5), rng.uniform(-1, 0.7, M)
    u1, u2 = rng.logistic(mu, 0.2), rng.logistic(mu, 0.2)
    return {"a": a, "mu": mu, "u.1": u1, "u.2": u2, "k.3": counts(a + u2)}


@test(["x"], "x[1] ~ normal(0.2, 0.6); s ~ gamma(3, 8); for (t in 2:4) x[t] ~ normal(x[t - 1], s);",
      "for (i in 1:5) k[i] ~ poisson_log(x[g[i]]);",
      {"x.1": identity, "s": log, "x.2": identity, "x.4": identity, "k.3": np.log1p}, off=["x"])
def walk():
    x, s = [normal(0.2, 0.6)], gamma(3, 8)
    for _ in range(3):
        x.append(normal(x[-1], s))
    return {"x.1": x[0], "s": s, "x.2": x[1], "x.4": x[3], "k.3": counts(x[1])}


@test(["x"], "for (j in 1:2) x[j, 1] ~ normal(0.2, 0.6); for (j in 1:2, t in 2:3) x[j, t] ~ normal(x[j, t - 1], 0.5);",
      "for (i in 1:5) k[i] ~ poisson_log(x[h[i], g[i]]);",
      {"x.1.1": identity, "x.2.1": identity, "x.1.3": identity, "x.2.2": identity, "k.3": np.log1p}, off=["x"])
def panel_of_walks():
    x = [[normal(0.2, 0.6)] for _ in range(2)]
    for _ in range(2):
        for row in x:
            row.append(normal(row[-1], 0.5))
    return {"x.1.1": x[0][0], "x.2.1": x[1][0], "x.1.3": x[0][2], "x.2.2": x[1][1], "k.3": counts(x[1][1])}


@test(["m, x"], "m ~ uniform(-0.5, 1); r ~ uniform(-0.8, 0.8); x[1] ~ normal(m, 0.6); for (t in 2:4) x[t] ~ normal(m + r * (x[t - 1] - m), "
                "0.4);", "for (i in 1:5) k[i] ~ poisson_log(x[g[i]]);",
      {"m": identity, "r": identity, "x.1": identity, "x.2": identity, "x.4": identity, "k.3": np.log1p}, off=["m"])
def autoregression_about_a_level():
    m, r = rng.uniform(-0.5, 1, M), rng.uniform(-0.8, 0.8, M)
    x = [normal(m, 0.6)]
    for _ in range(3):
        x.append(normal(m + r * (x[-1] - m), 0.4))
    return {"m": m, "r": r, "x.1": x[0], "x.2": x[1], "x.4": x[3], "k.3": counts(x[1])}


@test(["b, u"], "b ~ normal(0.3, 0.5); for (j in 1:3) u[j] ~ normal(0, 0.5);", "for (i in 1:5) k[i] ~ poisson_log(b * x[g[i]] + u[g[i]]);",
      {"b": identity, "u.1": identity, "u.2": identity, "k.3": np.log1p}, data="vector[3] x;", values={"x": [0.5, -1.2, 0]}, off=["b"])
def slope_of_a_covariate_of_groups():
    b, u1, u2 = normal(0.3, 0.5), normal(0, 0.5), normal(0, 0.5)
    return {"b": b, "u.1": u1, "u.2": u2, "k.3": counts(-1.2 * b + u2)}


@test(["a, z"], "a ~ normal(0.3, 0.5); s ~ gamma(4, 8); for (j in 1:3) z[j] ~ normal(0, 1);",
      "for (i in 1:5) k[i] ~ poisson_log(a + s * z[g[i]]);",
      {"a": identity, "s": log, "z.1": identity, "z.2": identity, "k.3": np.log1p}, off=["a"])
def standardised_effects():
    a, s, z1, z2 = normal(0.3, 0.5), gamma(4, 8), normal(0), normal(0)
    return {"a": a, "s": s, "z.1": z1, "z.2": z2, "k.3": counts(a + s * z2)}


@test(["mu, theta"], "mu ~ normal(0.3, 0.5); for (j in 1:3) if (here[j] == 1) theta[j] ~ normal(mu, 0.4);",
      "for (i in 1:5) if (g[i] > 1) k[i] ~ poisson_log(theta[g[i]]); else k[i] ~ poisson_log(mu);",
      {"mu": identity, "theta.2": identity, "theta.3": identity, "k.2": np.log1p, "k.4": np.log1p}, data="int here[3];",
      values={"here": [0, 1, 1]}, off=["mu"])
def elements_that_do_not_exist():
    mu = normal(0.3, 0.5)
    u = [normal(mu, 0.4) for _ in range(2)]
    return {"mu": mu, "theta.2": u[0], "theta.3": u[1], "k.2": counts(mu), "k.4": counts(u[1])}


@test(["mu, nu", "mu, theta", "mu, nu, theta", "nu, theta"],
      "mu ~ normal(0.3, 0.5); nu ~ normal(-0.2, 0.3); theta[1] ~ logistic(mu, 0.2); for (j in 2:3) theta[j] ~ logistic(nu + mu, 0.2);",
      "for (i in 1:5) k[i] ~ poisson_log(theta[g[i]]);",
      {"mu": identity, "nu": identity, "theta.1": identity, "theta.2": identity, "theta.3": identity, "k.3": np.log1p}, off=["mu", "nu"])
def statements_with_locations_of_their_own():
    mu, nu = normal(0.3, 0.5), normal(-0.2, 0.3)
    u = [rng.logistic(mu, 0.2), rng.logistic(mu + nu, 0.2), rng.logistic(mu + nu, 0.2)]
    return {"mu": mu, "nu": nu, "theta.1": u[0], "theta.2": u[1], "theta.3": u[2], "k.3": counts(u[1])}


@test([], "mu ~ normal(0.3, 0.5); for (j in 1:3) theta[j] ~ normal(mu, 0.5) T[0, ];", "for (i in 1:5) k[i] ~ poisson(theta[g[i]]);",
      {"mu": identity, "theta.1": identity, "theta.3": identity, "k.2": np.log1p})
def truncated_elements_do_not_move():
    mu = normal(0.3, 0.5)
    u = [mu - 0.5 * ndtri(rng.random(M) * ndtr(mu / 0.5)) for _ in range(2)]
    return {"mu": mu, "theta.1": u[0], "theta.3": u[1], "k.2": rng.poisson(u[0])}


@test(["a, u"], "a ~ normal(0, 1); for (j in 1:3) u[j] ~ cauchy(0, 0.5);",
      "for (i in 1:5) { e[i] = a + u[g[i]]; c[i] ~ bernoulli_logit(e[i]); y[i] ~ gamma(2, 2 * exp(-e[i] / 4)); }",
      {"a": identity, "u.1": squash, "u.2": squash, "c.3": identity, "y.3": squash}, data="int<lower=0, upper=1> c[5]; vector[5] y;",
      values={"c": null, "y": null}, off=["a"])
def definition_in_two_likelihoods():
    a, u1, u2 = normal(0), 0.5 * rng.standard_cauchy(M), 0.5 * rng.standard_cauchy(M)
    e = a + u2
    return {"a": a, "u.1": u1, "u.2": u2, "c.3": coin(e), "y.3": gamma(2, 2) * np.exp(np.clip(e / 4, -700, 700))}


@test(["a, u", "a, v", "u, v"],
      "for (i in 1:2) a[i] ~ normal(0.1, 0.4); for (j in 1:3) u[j] ~ logistic(0, 0.2); for (j in 1:2) v[j] ~ logistic(0, 0.3);",
      "for (i in 1:5) k[i] ~ poisson_log(a[h[i]] + u[g[i]] + v[h[i]]);",
      {"a.1": identity, "a.2": identity, "u.2": identity, "v.1": identity, "v.2": identity, "k.3": np.log1p}, off=["a", "u", "v"])
def element_by_element():
    a1, a2, v1, v2, u2 = normal(0.1, 0.4), normal(0.1, 0.4), rng.logistic(0, 0.3, M), rng.logistic(0, 0.3, M), rng.logistic(0, 0.2, M)
    return {"a.1": a1, "a.2": a2, "u.2": u2, "v.1": v1, "v.2": v2, "k.3": counts(a2 + u2 + v2)}


@test(["e, m"], "m ~ normal(0.2, 0.5); s ~ gamma(4, 9); for (j in 1:3) e[j] ~ normal(0, s); x[1] = 1; for (j in 1:3) x[j + 1] = 0.4 * x[j] "
                "+ exp(m + e[j]);", "for (j in 1:3) c[j] ~ poisson_log(m + e[j]); for (i in 1:5) k[i] ~ poisson(x[g[i] + 1]);",
      {"m": identity, "s": log, "e.1": identity, "e.3": identity, "c.1": np.log1p, "k.1": np.log1p, "k.4": np.log1p},
      data="int<lower=0> c[3];", values={"c": [None] * 3}, off=["m"])
def recursion_that_stays():
    m, s = normal(0.2, 0.5), gamma(4, 9)
    e, x = [normal(0, s) for _ in range(3)], [1]
    for j in range(3):
        x.append(0.4 * x[-1] + np.exp(m + e[j]))
    return {"m": m, "s": s, "e.1": e[0], "e.3": e[2], "c.1": counts(m + e[0]), "k.1": rng.poisson(x[1]) * 1.0,
            "k.4": rng.poisson(x[3]) * 1.0}


FIELD = {"from": [1, 1], "to": [2, 3]}
TREE = "vector[3] u; u[1] ~ normal(0.2, 0.5); for (e in 1:2) u[to[e]] ~ normal(u[from[e]], t); "


def tree(t):
    """The field of FIELD: places 2 and 3 hang on place 1."""
    u = [normal(0.2, 0.5)]
    return u + [normal(u[0], t) for _ in range(2)]


@test(["u", "u, v", "u, v"], "t ~ gamma(3, 6); s ~ gamma(4, 8); " + TREE + "for (j in 1:3) v[j] ~ normal(0, s);",
      "for (i in 1:5) k[i] ~ poisson_log(u[g[i]] + v[g[i]]);",
      {"t": log, "s": log, "u.1": identity, "u.3": identity, "v.1": identity, "v.3": identity, "k.4": np.log1p}, data="int from[2], to[2];",
      values=FIELD, off=["u"])
def field_beside_effects():
    t, s = gamma(3, 6), gamma(4, 8)
    u, v = tree(t), [normal(0, s) for _ in range(2)]
    return {"t": t, "s": s, "u.1": u[0], "u.3": u[2], "v.1": v[0], "v.3": v[1], "k.4": counts(u[2] + v[1])}


@test(["u", "u, w", "u, w"], "s ~ gamma(4, 8); for (j in 1:3) u[j] ~ normal(0.2, 1); for (e in 1:2) target += -2 * square(u[to[e]] - "
                             "u[from[e]]); for (i in 1:5) w[i] ~ normal(0.1, s);", "for (i in 1:5) k[i] ~ poisson_log(u[g[i]] + w[i]);",
      {"s": log, "u.1": identity, "u.2": identity, "u.3": identity, "w.1": identity, "w.4": identity, "w.5": identity, "k.4": np.log1p},
      data="int from[2], to[2];", values=FIELD, off=["w", "u"])
def field_of_groups_beside_effects_of_rows():
    J = np.eye(3) + 4 * np.array([[2, -1, -1], [-1, 1, 0], [-1, 0, 1]])
    u = 0.2 + rng.normal(size=(M, 3)) @ np.linalg.inv(np.linalg.cholesky(J))
    s = gamma(4, 8)
    w = [normal(0.1, s) for _ in range(3)]
    return {"s": s, "u.1": u[:, 0], "u.2": u[:, 1], "u.3": u[:, 2], "w.1": w[0], "w.4": w[1], "w.5": w[2], "k.4": counts(u[:, 2] + w[1])}


@test(["s, u", "u", "u, z", "u, z"], "t ~ gamma(3, 6); s ~ gamma(4, 8); " + TREE + "for (j in 1:3) z[j] ~ normal(0, 1);",
      "for (i in 1:5) k[i] ~ poisson_log(u[g[i]] + s * z[g[i]]);",
      {"t": log, "s": log, "u.1": identity, "u.3": identity, "z.1": identity, "z.3": identity, "k.4": np.log1p}, data="int from[2], to[2];",
      values=FIELD, off=["u", "s"])
def field_beside_standardised_effects():
    t, s = gamma(3, 6), gamma(4, 8)
    u, z = tree(t), [normal(0) for _ in range(2)]
    return {"t": t, "s": s, "u.1": u[0], "u.3": u[2], "z.1": z[0], "z.3": z[1], "k.4": counts(u[2] + s * z[1])}


@test(["x", "v, x"], "x[1] ~ normal(0.2, 0.6); s ~ gamma(3, 8); r ~ gamma(4, 9); for (t in 2:T) x[t] ~ normal(x[t - 1], s); for (t in 1:T) "
                     "v[t] ~ normal(0, r);", "for (i in 1:5) k[i] ~ poisson_log(x[g[i]] + v[g[i]]);",
      {"x.1": identity, "s": log, "r": log, "x.2": identity, "x.4": identity, "v.1": identity, "v.2": identity, "v.4": identity,
       "k.3": np.log1p}, data="int T;", values={"T": 4}, off=["x"])
def walk_beside_effects():
    x, s, r = [normal(0.2, 0.6)], gamma(3, 8), gamma(4, 9)
    for _ in range(3):
        x.append(normal(x[-1], s))
    v = [normal(0, r) for _ in range(3)]
    return {"x.1": x[0], "s": s, "r": r, "x.2": x[1], "x.4": x[3], "v.1": v[0], "v.2": v[1], "v.4": v[2], "k.3": counts(x[1] + v[1])}


@test(["a, b"], "W ~ wishart(5, R); s ~ gamma(4, 8); for (j in 1:3) vector[2] a[j] ~ multi_normal_prec([0.1, 0], W); for (j in 1:3, l in "
                "1:2) b[j, l] ~ normal(0, s);", "for (i in 1:5) k[i] ~ poisson_log(a[g[i], h[i]] + b[g[i], h[i]]);",
      {"W.1.1": log, "W.2.1": identity, "s": log, "a.1.1": identity, "a.3.2": identity, "b.1.1": identity, "b.3.2": identity,
       "k.5": np.log1p}, data="cov_matrix[2] R;", values={"R": [[1.2, 0.4], [0.4, 1.5]]}, off=["b"])
def vectors_beside_effects():
    L = np.linalg.cholesky(np.array([[1.2, 0.4], [0.4, 1.5]]))
    z = L @ rng.normal(size=(M, 2, 5))
    W = z @ z.transpose(0, 2, 1)
    s, C = gamma(4, 8), np.linalg.cholesky(np.linalg.inv(W))
    a = [np.array([0.1, 0]) + np.einsum("mij,mj->mi", C, rng.normal(size=(M, 2))) for _ in range(2)]
    b = [normal(0, s) for _ in range(2)]
    return {"W.1.1": W[:, 0, 0], "W.2.1": W[:, 1, 0], "s": s, "a.1.1": a[0][:, 0], "a.3.2": a[1][:, 1], "b.1.1": b[0], "b.3.2": b[1],
            "k.5": counts(a[1][:, 1] + b[1])}


# Programs that without optimisation run for longer than cc_quick compiles
SLOW = {"vectors_beside_effects", "walk_beside_effects"}


def said(w, name, model):
    path = w.path(name + "_explained.gm")
    with open(path, "w") as f:
        f.write(model)
    text = subprocess.run([GMC, "--method", "gibbs", "--explain=full", path], capture_output=True, text=True).stdout
    steps = re.findall(r"^(.*), a group move.*\n(?:.+\n)*? +then (.*)$", text, re.M)
    return [", ".join(sorted(who.split(", "))) for who, becomes in steps if "shift_" in becomes]


def compare(w, name, model, data, transforms, group_moves, direct):
    found = said(w, name, model)
    if sorted(found) != sorted(group_moves):
        return False, "%s: location moves of %s in place of %s" % (name, found, group_moves)
    return geweke.compare(w, name, model, data, transforms, direct, ["--method", "gibbs"], samples=4000, thin=8, warmup=400,
                          compiler="cc_quick" if name in SLOW else None)


if __name__ == "__main__":
    geweke.main(tests, compare)
