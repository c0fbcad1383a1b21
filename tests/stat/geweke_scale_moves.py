"""Geweke's joint distribution test (geweke.py) of scale moves and reflections (docs/conditionals.md, section 7): all responses are missing,
so what is drawn from is the prior and the data's distribution under it. Models are drawn with the group moves; --explain=full must name
what each changes, or name none.

z and its bound are those of geweke.py: |z| < 6, P(|t| > 6) = 3e-8 with 99 degrees of freedom; some 500 moments ring falsely once in 60000
runs. Seeds are fixed. With the Jacobian's power wrong by one, by hand, every model with group moves failed, with |z| from 9 to 300; with
signs reflected whatever their density says, 57.

    geweke_scale_moves.py [NAME...]
"""
import re
import subprocess

import numpy as np

import geweke
from geweke import M, gamma, identity, log, normal, rng, squash, squash_log
from program import GMC

G = [1, 1, 2, 3, 3]
H = [1, 1, 2]
null = [None] * 5
Y = "for (i in 1:5) y[i] ~ normal(u[g[i]], 0.7);"
tests = []


# heavy tails of u cross these in one update, which they do not cross in responses of one width
K = {"data": "int<lower=0, upper=1> k[5];", "likelihood": "for (i in 1:5) k[i] ~ bernoulli_logit(u[g[i]]);", "values": {"k": null}}


def test(group_moves, prior, transforms, data="", likelihood=Y, values=None):
    """`group_moves`: what the group moves change, as --explain=full names it."""
    def add(direct):
        normals = " y[i] ~" in likelihood
        model = "data { int g[5]; %s %s }\nprior { %s }\nlikelihood { %s }\n" % ("vector[5] y;" if normals else "", data, prior, likelihood)
        tests.append((direct.__name__, model, {"g": G, **({"y": null} if normals else {}), **(values or {})},
                      {**transforms, **({"y.3": squash} if normals else {})}, group_moves, direct))
        return direct
    return add


def y3(u, sd=0.7):
    return {"y.3": normal(u, sd)}


def coin(u):
    return (rng.random(M) < (1 + np.tanh(u / 2)) / 2) * 1.0


@test(["tau, u, nu_tau"], "mu ~ normal(0.5, 1); tau ~ half_cauchy(0, 0.7); for (j in 1:3) u[j] ~ normal(mu, tau);",
      {"mu": identity, "tau": squash_log, "u.1": squash, "u.2": squash, "k.3": identity}, **K)
def half_cauchy_scale():
    mu, tau = normal(0.5), 0.7 * np.abs(rng.standard_cauchy(M))
    u = [normal(mu, tau) for _ in range(2)]
    return {"mu": mu, "tau": tau, "u.1": u[0], "u.2": u[1], "k.3": coin(u[1])}


@test(["tau, u"], "mu ~ normal(0.5, 1); tau ~ uniform(0.2, 3); for (j in 1:3) u[j] ~ normal(2 * mu, tau);",
      {"mu": identity, "tau": identity, "u.1": identity, "u.2": identity})
def scale_between_two_ends():
    mu, tau = normal(0.5), rng.uniform(0.2, 3, M)
    u = [normal(2 * mu, tau) for _ in range(2)]
    return {"mu": mu, "tau": tau, "u.1": u[0], "u.2": u[1], **y3(u[1])}


@test(["v, u"], "mu ~ normal(0.5, 1); v ~ inv_gamma(3, 2); for (j in 1:3) u[j] ~ normal(mu, sqrt(v));",
      {"mu": identity, "v": log, "u.1": identity, "u.2": identity})
def variance():
    mu, v = normal(0.5), 1 / gamma(3, 2)
    u = [normal(mu, np.sqrt(v)) for _ in range(2)]
    return {"mu": mu, "v": v, "u.1": u[0], "u.2": u[1], **y3(u[1])}


@test(["t, u"], "mu ~ normal(0.5, 1); t ~ gamma(3, 2); for (j in 1:3) u[j] ~ normal(mu, 1 / sqrt(t));",
      {"mu": identity, "t": log, "u.1": identity, "u.2": identity})
def precision():
    mu, t = normal(0.5), gamma(3, 2)
    u = [normal(mu, t ** -0.5) for _ in range(2)]
    return {"mu": mu, "t": t, "u.1": u[0], "u.2": u[1], **y3(u[1])}


@test(["b, u"], "b ~ gamma(3, 2); for (j in 1:3) u[j] ~ gamma(1.5, b);", {"b": log, "u.1": log, "u.2": log, "k.3": np.log1p},
      data="int<lower=0> k[5];",
      likelihood=Y + " for (i in 1:5) k[i] ~ poisson(u[g[i]]);", values={"k": null})
def rate_of_gammas():
    b = gamma(3, 2)
    u = [rng.gamma(1.5, size=M) / b for _ in range(2)]
    return {"b": b, "u.1": u[0], "u.2": u[1], "k.3": rng.poisson(u[1]), **y3(u[1])}


@test(["s, u"], "s ~ gamma(3, 2); for (j in 1:3) u[j] ~ student_t(4, 0.3, s);", {"s": log, "u.1": squash, "u.2": squash, "k.3": identity},
      data="int<lower=0, upper=1> k[5];",
      likelihood=Y + " for (i in 1:5) k[i] ~ bernoulli_logit(u[g[i]]);", values={"k": null})
def student_t_and_bernoulli():
    s = gamma(3, 2)
    u = [0.3 + s * rng.standard_t(4, M) for _ in range(2)]
    return {"s": s, "u.1": u[0], "u.2": u[1], "k.3": coin(u[1]), **y3(u[1])}


@test(["s, u"], "s ~ normal(0, 1) T[0, ]; m ~ normal(0, 0.5); for (j in 1:3) u[j] ~ normal(m, s);",
      {"m": identity, "s": identity, "u.1": identity, "u.2": identity, "k.3": np.log1p}, data="int<lower=0> k[5];",
      likelihood=Y + " for (i in 1:5) k[i] ~ poisson(exp(u[g[i]]));", values={"k": null})
def half_normal_scale_and_poisson():
    s, m = np.abs(normal(0)), normal(0, 0.5)
    u = [normal(m, s) for _ in range(2)]
    return {"s": s, "m": m, "u.1": u[0], "u.2": u[1], "k.3": rng.poisson(np.exp(u[1])), **y3(u[1])}


@test(["s, u"], "m ~ normal(0, 1); for (k in 1:2) s[k] ~ gamma(4, 3); for (j in 1:3) u[j] ~ normal(m, s[h[j]]);",
      {"m": identity, "s.1": log, "s.2": log, "u.1": identity, "u.3": identity}, data="int h[3];", values={"h": H})
def scales_by_group():
    m, s = normal(0), gamma(4, 3)
    t = gamma(4, 3)
    u1, u3 = normal(m, s), normal(m, t)
    return {"m": m, "s.1": s, "s.2": t, "u.1": u1, "u.3": u3, **y3(normal(m, s))}


@test(["t, u, nu_t", "t, l, nu_t", "l, u"],
      "t ~ half_cauchy(0, 1); for (j in 1:3) l[j] ~ gamma(3, 2); for (j in 1:3) u[j] ~ normal(0, t * l[j]);",
      {"t": squash_log, "l.1": log, "u.1": squash, "u.2": squash, "k.3": identity}, **K)
def product_of_scales():
    t, l = np.abs(rng.standard_cauchy(M)), gamma(3, 2)
    u1, u2 = normal(0, t * l), normal(0, t * gamma(3, 2))
    return {"t": t, "l.1": l, "u.1": u1, "u.2": u2, "k.3": coin(u2)}


@test(["s, u"], "m ~ normal(0, 1); s ~ gamma(3, 2); for (j in 1:3) if (here[j] == 1) u[j] ~ normal(m, s);",
      {"m": identity, "s": log, "u.2": identity, "u.3": identity}, data="int here[3];",
      likelihood="for (i in 1:5) if (g[i] > 1) y[i] ~ normal(u[g[i]], 0.7);", values={"here": [0, 1, 1], "y": [0.3, 0.1] + [None] * 3})
def elements_that_do_not_exist():
    m, s = normal(0), gamma(3, 2)
    u = [normal(m, s) for _ in range(2)]
    return {"m": m, "s": s, "u.2": u[0], "u.3": u[1], **y3(u[0])}


@test(["s, u, v"], "m ~ normal(0, 1); s ~ gamma(3, 2); for (j in 1:3) u[j] ~ normal(m, s); for (j in 1:2) v[j] ~ normal(0, 2 * s);",
      {"m": identity, "s": log, "u.1": identity, "u.2": identity, "v.1": identity},
      likelihood="for (i in 1:5) y[i] ~ normal(u[g[i]] + v[1] - v[2], 0.7);")
def one_scale_of_two_plates():
    m, s = normal(0), gamma(3, 2)
    u, v = [normal(m, s) for _ in range(2)], [normal(0, 2 * s) for _ in range(2)]
    return {"m": m, "s": s, "u.1": u[0], "u.2": u[1], "v.1": v[0], **y3(u[1] + v[0] - v[1])}


@test(["s, u"], "u[1] ~ normal(1, 2); s ~ gamma(3, 2); for (j in 2:3) u[j] ~ normal(u[j-1], s);",
      {"s": log, "u.1": identity, "u.2": identity, "u.3": identity})
def random_walk():
    s, u1 = gamma(3, 2), normal(1, 2)
    u2 = normal(u1, s)
    return {"s": s, "u.1": u1, "u.2": u2, "u.3": normal(u2, s), **y3(u2)}


@test(["s, u"], "u[1] ~ normal(0, 2); u[2] ~ normal(0.5, 1); s ~ gamma(3, 2); u[3] ~ normal(0, 1.5); for (j in 4:6) u[j] ~ normal(0.6 * "
                "u[j-1] - 0.3 * u[j-2], s);",
      {"s": log, "u.1": identity, "u.3": identity, "u.4": identity, "u.6": identity},
      likelihood="for (i in 1:5) y[i] ~ normal(u[g[i] + 2], 0.7);")
def second_order():
    s, u = gamma(3, 2), [normal(0, 2), normal(0.5), normal(0, 1.5)]
    for _ in range(3):
        u.append(normal(0.6 * u[-1] - 0.3 * u[-2], s))
    return {"s": s, "u.1": u[0], "u.3": u[2], "u.4": u[3], "u.6": u[5], **y3(u[3])}


# ---- by logarithms ----

@test(["s, u"], "mu ~ normal(0.5, 1); s ~ gamma(3, 2); for (j in 1:3) u[j] ~ lognormal(mu, s);",
      {"mu": identity, "s": log, "u.1": log, "u.2": log}, likelihood="for (i in 1:5) y[i] ~ normal(log(u[g[i]]), 0.7);")
def lognormals_and_their_logarithms():
    mu, s = normal(0.5), gamma(3, 2)
    u = [np.exp(normal(mu, s)) for _ in range(2)]
    return {"mu": mu, "s": s, "u.1": u[0], "u.2": u[1], **y3(np.log(u[1]))}


@test(["s, u"], "for (l in 1:2) s[l] ~ gamma(3, 4); for (j in 1:3) if (here[j] == 1) u[j] ~ lognormal(0.3 * h[j], s[h[j]]);",
      {"s.1": log, "s.2": log, "u.2": log, "u.3": log, "k.3": identity},
      data="int h[3]; int here[3]; int<lower=0, upper=1> k[5];",
      likelihood="for (i in 1:5) if (g[i] > 1) k[i] ~ bernoulli_logit(u[g[i]] - 1);",
      values={"h": H, "here": [0, 1, 1], "k": [1, 0] + [None] * 3})
def lognormals_by_group():
    s = [gamma(3, 4), gamma(3, 4)]
    u = [np.exp(normal(0.3, s[0])), np.exp(normal(0.6, s[1]))]
    return {"s.1": s[0], "s.2": s[1], "u.2": u[0], "u.3": u[1], "k.3": coin(u[0] - 1)}


# ---- vectors by their covariance ----

def vectors(m, root):
    """Two vectors m + root z, and root z of a difference."""
    return [m + np.einsum("nij,nj->ni", root, rng.standard_normal((M, 2))) for _ in range(2)]


def of_vectors(u):
    return {"u.1.1": u[0][:, 0], "u.1.2": u[0][:, 1], "u.2.1": u[1][:, 0]}


HEAVY = {"u.1.1": squash, "u.1.2": squash, "u.2.1": squash, "k.3": identity}
BY_VECTOR = dict(data="int<lower=0, upper=1> k[5];", likelihood="for (i in 1:5) k[i] ~ bernoulli_logit(u[g[i], 1] - u[g[i], 2]);",
                 values={"k": null})
COUNTS = dict(data="int<lower=0> k[5];", likelihood="for (i in 1:5) k[i] ~ poisson_log(0.5 * u[g[i], 1] - 0.5 * u[g[i], 2]);",
              values={"k": null})
LIGHT = {**HEAVY, "k.3": np.log1p}


def difference(u):
    return u[1][:, 0] - u[1][:, 1]


def poisson(eta):
    return rng.poisson(np.exp(np.minimum(eta, 30)))


def wishart(n, S):
    """From n rows each; scipy's takes a draw at a time."""
    a = np.linalg.cholesky(S) @ rng.standard_normal((M, 2, n))
    return a @ a.transpose(0, 2, 1)


@test(["S, u"], "S ~ inv_wishart(6, [[2, 0.6], [0.6, 1.6]]); for (d in 1:2) m[d] ~ normal(0, 1); for (j in 1:3) vector[2] u[j] ~ "
                "multi_normal(m, S);", {"m.1": identity, "S.1.1": log, "S.2.1": squash, "S.2.2": log, **HEAVY}, **BY_VECTOR)
def covariance():
    m, S = rng.standard_normal((M, 2)), np.linalg.inv(wishart(6, np.linalg.inv([[2, 0.6], [0.6, 1.6]])))
    u = vectors(m, np.linalg.cholesky(S))
    return {"m.1": m[:, 0], "S.1.1": S[:, 0, 0], "S.2.1": S[:, 1, 0], "S.2.2": S[:, 1, 1], **of_vectors(u), "k.3": coin(difference(u))}


@test(["P, u"], "P ~ wishart(6, [[1, 0.3], [0.3, 0.8]]); for (j in 1:3) vector[2] u[j] ~ multi_normal_prec([0.3, 0.2], P);",
      {"P.1.1": log, "P.2.1": squash, "P.2.2": log, **LIGHT}, **COUNTS)
def precision_matrix():
    P = wishart(6, [[1, 0.3], [0.3, 0.8]])
    u = vectors(np.array([0.3, 0.2]), np.linalg.cholesky(np.linalg.inv(P)))
    return {"P.1.1": P[:, 0, 0], "P.2.1": P[:, 1, 0], "P.2.2": P[:, 1, 1], **of_vectors(u), "k.3": poisson(difference(u) / 2)}


@test(["L, u"], "cholesky_factor_cov[2] L; target += -2 * L[1, 1] - 3 * L[2, 2] - 2 * square(L[2, 1]); for (j in 1:3) vector[2] u[j] ~ "
                "multi_normal_cholesky([0.3, 0.2], L);", {"L.1.1": log, "L.2.1": identity, "L.2.2": log, **LIGHT}, **COUNTS)
def cholesky_factor():
    L = np.zeros((M, 2, 2))
    L[:, 0, 0], L[:, 1, 1], L[:, 1, 0] = gamma(1, 2), gamma(1, 3), normal(0, 0.5)
    u = vectors(np.array([0.3, 0.2]), L)
    return {"L.1.1": L[:, 0, 0], "L.2.1": L[:, 1, 0], "L.2.2": L[:, 1, 1], **of_vectors(u), "k.3": poisson(difference(u) / 2)}


@test(["tau, u, v", "s, u, v"],
      "vector<lower=0>[2] tau ~ gamma(3, 3); s ~ gamma(4, 3); for (d in 1:2) m[d] ~ normal(0, 1); for (j in 1:3) vector[2] u[j] ~ "
      "multi_normal(m, s * quad_form_diag(R, tau)); for (j in 1:2) vector[2] v[j] ~ multi_normal([0, 0], square(tau[1]) * s * R);",
      {"tau.1": log, "tau.2": log, "s": log, "v.1.2": squash, **HEAVY}, data="int<lower=0, upper=1> k[5]; corr_matrix[2] R;",
      likelihood="for (i in 1:5) k[i] ~ bernoulli_logit(u[g[i], 1] - u[g[i], 2] + v[1, 2]);", values={"k": null, "R": [[1, 0.4], [0.4, 1]]})
def scales_of_a_covariance():
    m, tau, s = rng.standard_normal((M, 2)), np.stack([gamma(3, 3), gamma(3, 3)], 1), gamma(4, 3)
    R = np.linalg.cholesky(np.array([[1, 0.4], [0.4, 1]]))
    u = vectors(m, np.sqrt(s)[:, None, None] * tau[:, :, None] * R)
    v = vectors(0, (np.sqrt(s) * tau[:, 0])[:, None, None] * R)[0]
    return {"tau.1": tau[:, 0], "tau.2": tau[:, 1], "s": s, "v.1.2": v[:, 1], **of_vectors(u), "k.3": coin(difference(u) + v[:, 1])}


@test(["l, f, b", "f, b"], "l ~ half_normal(0, 1.5); for (j in 1:2) b[j] ~ normal(0, 1.5); "
      "for (i in 1:5, k in 1:2) f[i, k] ~ normal(0, 1);",
      {"l": identity, "b.1": identity, "b.2": identity, "f.3.1": identity, "f.3.2": identity, "z.3.1": squash, "z.3.2": squash,
       "z.4.2": squash}, data="real z[5, 2];",
      likelihood="for (i in 1:5) y[i] ~ normal(f[i, 1] + l * f[i, 2], 0.7); for (i in 1:5, j in 1:2) z[i, j] ~ "
                 "normal(b[j] * f[i, 2], 0.5);", values={"z": [[None] * 2] * 5})
def signs_of_a_factor():
    l, b, f, f4 = np.abs(normal(0, 1.5)), rng.normal(0, 1.5, (2, M)), rng.standard_normal((2, M)), normal(0)
    return {"l": l, "b.1": b[0], "b.2": b[1], "f.3.1": f[0], "f.3.2": f[1], "z.3.1": normal(b[0] * f[1], 0.5),
            "z.3.2": normal(b[1] * f[1], 0.5), "z.4.2": normal(b[1] * f4, 0.5), **y3(f[0] + l * f[1])}


@test(["b, f"], "b[1] ~ normal(0.5, 1) T[0.2, ]; b[2] ~ normal(0.7, 1); for (k in 3:4) b[k] ~ normal(0, 1.5); for (i in 1:5, k in 1:2) "
                "f[i, k] ~ normal(0, 1);",
      {"b.1": identity, "b.2": identity, "b.4": identity, "f.2.2": identity, "f.3.1": identity, "f.3.2": identity, "z.2": squash,
       "z.3": squash, "z.5": squash}, data="int h[5]; real z[5];",
      likelihood="for (i in 1:5) y[i] ~ normal(f[i, 1] + b[1] * f[i, 2], 0.7); for (i in 1:5) z[i] ~ normal(b[h[i]] * f[i, 2], 0.5);",
      values={"h": [3, 2, 1, 4, 4], "z": null})
def signs_that_elements_give():
    b1 = normal(0.5)
    while (b1 < 0.2).any():
        b1 = np.where(b1 < 0.2, normal(0.5), b1)
    b2, b4, f, f2, f5 = normal(0.7), normal(0, 1.5), rng.standard_normal((2, M)), normal(0), normal(0)
    return {"b.1": b1, "b.2": b2, "b.4": b4, "f.2.2": f2, "f.3.1": f[0], "f.3.2": f[1], "z.2": normal(b2 * f2, 0.5),
            "z.3": normal(b1 * f[1], 0.5), "z.5": normal(b4 * f5, 0.5), **y3(f[0] + b1 * f[1])}


@test(["f, B"], "for (k in 1:2) l[k] ~ half_normal(0, 1.5); for (j in 1:3, k in 1:2) B[j, k] ~ normal(0, 1.5); for (i in 1:5, k in 1:2) "
                "f[i, k] ~ normal(0, 1);",
      {"l.1": identity, "l.2": identity, "B.2.1": identity, "B.3.1": identity, "B.3.2": identity, "f.3.1": identity, "f.3.2": identity,
       "z.3.2": squash, "z.3.3": squash, "z.4.3": squash}, data="real z[5, 3];",
      likelihood="for (i in 1:5) y[i] ~ normal(l[1] * f[i, 1] + l[2] * f[i, 2], 0.7); for (i in 1:5, j in 1:3) z[i, j] ~ normal(sum(k in "
                 "1:2, (j == k ? l[k] : j > k ? B[j, k] : 0) * f[i, k]), 0.5);", values={"z": [[None] * 3] * 5})
def signs_of_columns():
    l, B, f, f4 = np.abs(rng.normal(0, 1.5, (2, M))), rng.normal(0, 1.5, (3, M)), rng.standard_normal((2, M)), rng.standard_normal((2, M))
    return {"l.1": l[0], "l.2": l[1], "B.2.1": B[0], "B.3.1": B[1], "B.3.2": B[2], "f.3.1": f[0], "f.3.2": f[1],
            "z.3.2": normal(B[0] * f[0] + l[1] * f[1], 0.5), "z.3.3": normal(B[1] * f[0] + B[2] * f[1], 0.5),
            "z.4.3": normal(B[1] * f4[0] + B[2] * f4[1], 0.5), **y3(l[0] * f[0] + l[1] * f[1])}


def positive_from(end, mean):
    x = normal(mean)
    while (x < end).any():
        x = np.where(x < end, normal(mean), x)
    return x


TRIANGLE = "for (j in 1:3, k in 1:2) if (j > k) B[j, k] ~ normal(0, 1.5); else if (j < k) B[j, k] = 0;"
OF_TRIANGLE = {"B.1.1": identity, "B.2.2": identity, "B.2.1": identity, "B.3.1": identity, "B.3.2": identity, "f.3.1": identity,
               "f.3.2": identity, "z.3.1": squash, "z.3.2": squash, "z.3.3": squash, "z.4.3": squash}
PRODUCT = "for (i in 1:5, j in 1:3) z[i, j] ~ normal(%s * f[i], 0.5);"


def triangle():
    d, B, f, f4 = [positive_from(0.2, 0.5) for _ in range(2)], rng.normal(0, 1.5, (3, M)), rng.standard_normal((2,
            M)), rng.standard_normal((2, M))
    return {"B.1.1": d[0], "B.2.2": d[1], "B.2.1": B[0], "B.3.1": B[1], "B.3.2": B[2], "f.3.1": f[0], "f.3.2": f[1],
            "z.3.1": normal(d[0] * f[0], 0.5), "z.3.2": normal(B[0] * f[0] + d[1] * f[1], 0.5),
            "z.3.3": normal(B[1] * f[0] + B[2] * f[1], 0.5), "z.4.3": normal(B[1] * f4[0] + B[2] * f4[1], 0.5)}


FACTORS = "for (i in 1:5, k in 1:2) f[i, k] ~ normal(0, 1);"


@test(["f, B"], "matrix[3, 2] B; for (k in 1:2) B[k, k] ~ normal(0.5, 1) T[0.2, ]; " + TRIANGLE + FACTORS, OF_TRIANGLE,
      data="real z[5, 3];", likelihood=PRODUCT % "B[j]", values={"z": [[None] * 3] * 5})
def signs_of_a_triangle():
    return triangle()


@test(["f, B"], "matrix[3, 2] B; B[1, 1] ~ normal(0.5, 1) T[0.2, ]; B[2, 2] ~ normal(0.5, 1) T[0.2, ]; B[1, 2] = 0; for (j in 2:3) B[j, 1] "
                "~ normal(0, 1.5); for (j in 3:3) B[j, 2] ~ double_exponential(0, 0.8);" + FACTORS,
      OF_TRIANGLE, data="real z[5, 3];", likelihood=PRODUCT % "B[j]", values={"z": [[None] * 3] * 5})
def signs_of_named_elements():
    t = triangle()
    B32 = rng.laplace(0, 0.8, M)
    f4 = rng.standard_normal((2, M))
    return {**t, "B.3.2": B32, "z.3.3": normal(t["B.3.1"] * t["f.3.1"] + B32 * t["f.3.2"], 0.5),
            "z.4.3": normal(t["B.3.1"] * f4[0] + B32 * f4[1], 0.5)}


@test(["f, B"], "matrix[3, 2] B; for (k in 1:2) B[h[k], k] ~ normal(0.5, 1) T[0.2, ]; for (j in 1:3, k in 1:2) if (j > h[k]) B[j, k] ~ "
                "normal(0, 1.5); else if (j < h[k]) B[j, k] = 0; " + FACTORS, OF_TRIANGLE,
      data="int h[2]; real z[5, 3];", likelihood=PRODUCT % "B[j]", values={"h": [1, 2], "z": [[None] * 3] * 5})
def signs_of_anchors():
    return triangle()


@test(["s, u"], "s ~ normal(0.4, 1); for (i in 1:5) u[i] ~ normal(0, 1);", {"s": identity, "u.1": identity, "u.3": identity, "v.1": squash,
                                                                            "v.3": squash, "w": identity}, data="real v[5]; real w;",
      likelihood="for (i in 1:5) v[i] ~ normal(s * u[i], 0.5); w ~ normal(s, 0.8);", values={"v": null, "w": None})
def signs_that_a_statement_tells():
    s, u = normal(0.4), rng.standard_normal((2, M))
    return {"s": s, "u.1": u[0], "u.3": u[1], "v.1": normal(s * u[0], 0.5), "v.3": normal(s * u[1], 0.5), "w": normal(s, 0.8)}


@test(["f, l", "f, l"], "for (j in 1:3) l[j] ~ normal(m[j], 1); for (i in 1:5) f[i] ~ normal(0, 1);",
      {"l.1": identity, "l.2": identity, "l.3": identity, "f.1": identity, "f.3": identity, "z.1.1": squash, "z.1.2": squash,
       "z.3.3": squash},
      data="real m[3]; real z[5, 3];", likelihood="for (i in 1:5, j in 1:3) z[i, j] ~ normal(l[j] * f[i], 0.7);",
      values={"m": [0.6, 0, -0.4], "z": [[None] * 3] * 5})
def signs_that_means_tell():
    l, f = [normal(m) for m in (0.6, 0, -0.4)], rng.standard_normal((2, M))
    return {"l.1": l[0], "l.2": l[1], "l.3": l[2], "f.1": f[0], "f.3": f[1], "z.1.1": normal(l[0] * f[0], 0.7),
            "z.1.2": normal(l[1] * f[0], 0.7), "z.3.3": normal(l[2] * f[1], 0.7)}


@test(["f, B", "f, B"], "for (j in 1:3, k in 1:2) B[j, k] ~ normal(0, k); for (i in 1:5, k in 1:2) f[i, k] ~ normal(0, 1);",
      {"B.2.1": identity, "B.3.1": identity, "B.3.2": identity, "f.3.1": identity, "f.3.2": identity, "z.3.2": squash, "z.3.3": squash},
      data="real z[5, 3];", likelihood="for (i in 1:5, j in 1:3) z[i, j] ~ normal(sum(k in 1:2, B[j, k] * f[i, k]), 0.5);",
      values={"z": [[None] * 3] * 5})
def stretched_columns():
    B, f = [normal(0, 1), normal(0, 1), normal(0, 2), normal(0, 2)], rng.standard_normal((2, M))
    return {"B.2.1": B[0], "B.3.1": B[1], "B.3.2": B[2], "f.3.1": f[0], "f.3.2": f[1], "z.3.2": normal(B[0] * f[0] + B[3] * f[1], 0.5),
            "z.3.3": normal(B[1] * f[0] + B[2] * f[1], 0.5)}


@test(["s, a", "b, t, a"], "s ~ gamma(6, 12); for (j in 1:3) a[j] ~ lognormal(0.2, s); for (l in 1:2) b[l] ~ normal(0.3, 0.8); for (i in "
                           "1:5) t[i] ~ normal(0, 1);", {"s": log, "a.1": log, "a.2": log, "b.2": identity, "t.3": identity,
                                                         "k.3": identity},
      data="int h[5]; int<lower=0, upper=1> k[5];", likelihood="for (i in 1:5) k[i] ~ bernoulli_logit(a[g[i]] * (t[i] - b[h[i]]));",
      values={"h": [1, 2, 2, 1, 1], "k": null})
def discriminations():
    s, b, t = gamma(6, 12), normal(0.3, 0.8), normal(0)
    a = [np.exp(normal(0.2, s)) for _ in range(2)]
    return {"s": s, "a.1": a[0], "a.2": a[1], "b.2": b, "t.3": t, "k.3": coin(a[1] * (t - b))}


EDGES = "int<lower=1, upper=3> a[2], b[2];"
TERMS = "for (e in 1:2) target += -0.5 * square((u[a[e]] - u[b[e]]) / t);"


@test(["t, u"], "t ~ gamma(3, 2); for (j in 1:3) u[j] ~ flat(); %s target += -2 * log(t); sum(u) ~ normal(0, 0.9);" % TERMS,
      {"t": log, "u.1": identity, "u.2": identity}, data=EDGES,
      values={"a": [1, 3], "b": [2, 2]})
def intrinsic_field():                           # differences and the sum are independent
    t = gamma(3, 2)
    d, e, total = normal(0, t), normal(0, t), normal(0, 0.9)
    u = (total - d - e) / 3
    return {"t": t, "u.1": u + d, "u.2": u, **y3(u)}


@test(["t, u"], "t ~ gamma(3, 2); for (j in 1:3) u[j] ~ normal(0, 1.5); %s target += 0.5 * log(1 / square(t) + 1 / 4.5);"
      % TERMS.replace("1:2", "1:1"), {"t": log, "u.1": identity, "u.2": identity}, data=EDGES,
      values={"a": [1, 3], "b": [2, 2]})
def proper_field():
    t = gamma(3, 2)
    d, total = normal(0, (1 / t ** 2 + 1 / 4.5) ** -0.5), normal(0, 4.5 ** 0.5)
    return {"t": t, "u.1": (total + d) / 2, "u.2": (total - d) / 2, **y3((total - d) / 2)}


ALIVE = ("for (i in 1:3, t in 1:3) if (t == 1) z[i, t] ~ bernoulli(inv_logit(m + e[i])); else z[i, t] ~ bernoulli(z[i, t - 1] * "
         "inv_logit(m + e[i]));")


@test(["s, e"], "s ~ gamma(3, 2) T[, 4]; m ~ normal(0.5, 0.5); for (i in 1:3) e[i] ~ normal(0, s); %s" % ALIVE,
      {"s": log, "m": identity, "e.1": squash, "e.3": squash, "z.1.1": identity, "z.2.3": identity, "k.3.1": identity, "k.2.2": identity},
      data="int<lower=0, upper=1> k[3, 3];",
      likelihood="for (i in 1:3, t in 1:3) k[i, t] ~ bernoulli(0.8 * z[i, t]);", values={"k": [[None] * 3] * 3})
def effects_on_a_chain():                        # sums over the chain read what the group move changes, too
    s = gamma(3, 2)
    while (s > 4).any():
        s = np.where(s > 4, gamma(3, 2), s)
    m, e = rng.normal(0.5, 0.5, M), [normal(0, s) for _ in range(3)]
    z = [[rng.random(M) < 1 / (1 + np.exp(-m - e[i])) for _ in range(3)] for i in range(3)]
    for i in range(3):
        for t in range(1, 3):
            z[i][t] &= z[i][t - 1]
    k = {"k.3.1": z[2][0] & (rng.random(M) < 0.8), "k.2.2": z[1][1] & (rng.random(M) < 0.8)}
    return {"s": s, "m": m, "e.1": e[0], "e.3": e[2], "z.1.1": z[0][0] * 1.0, "z.2.3": z[1][2] * 1.0,
            **{name: x * 1.0 for name, x in k.items()}}


def said(w, name, model):
    path = w.path(name + "_explained.gm")
    with open(path, "w") as f:
        f.write(model)
    text = subprocess.run([GMC, "--method", "gibbs", "--explain=full", path], capture_output=True, text=True).stdout
    steps = re.findall(r"^(.*), a group move.*\n(?:.+\n)*? +then (.*)$", text, re.M)
    return [who for who, becomes in steps if "shift_" not in becomes]          # those have geweke_location_moves.py


def compare(w, name, model, data, transforms, group_moves, direct):
    found = said(w, name, model)
    if found != group_moves:
        return False, "%s: scale moves of %s in place of %s" % (name, found, group_moves)
    return geweke.compare(w, name, model, data, transforms, direct, ["--method", "gibbs"], samples=4000, thin=8, warmup=400)


if __name__ == "__main__":
    geweke.main(tests, compare)
