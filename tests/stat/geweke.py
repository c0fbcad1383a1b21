"""Geweke's joint distribution test (Geweke 2004, Journal of the American Statistical Association 99): if every response is missing,
the sampler draws it anew in each sweep, given the parameters, and the parameters given it. What it then draws from is the prior
and the data's distribution under the prior. Both are simulated directly here, in NumPy, and moments are compared.

For each model: the first element of each variable (after a transform that gives it moments), its square, and all products of two.
z is the difference of means over its Monte Carlo error. The bound is 6: with 100 batches z has about a t distribution with 99 degrees
of freedom, P(|t| > 6) = 3e-8, so about 300 checks ring falsely once in 10^5 runs; the seeds are fixed, so a run that passes keeps passing.

    geweke.py [NAME ...]
"""
import sys

import numpy as np

from program import Failed, Workplace, in_stages, mcse, report

N = 4
X = np.array([[1.0, -0.5], [0.3, 1.2], [-1.1, 0.4], [0.6, 0.9]])
x = X[:, 0]
G = [1, 1, 2, 2]
null = [None] * N
M = 200000                                   # direct draws; their error is a tenth of the chains'
rng = np.random.default_rng(20040901)

identity, log, logit = (lambda v: v), np.log, (lambda v: np.log(v) - np.log1p(-v))
squash = np.arctan                           # for variables without a variance
squash_log = lambda v: np.arctan(np.log(v))
tests = []


def test(model, data, transforms):
    """`transforms`: name of a column of the draws -> function. The decorated function gives direct draws by the same names."""
    def add(direct):
        tests.append((direct.__name__, model, data, transforms, direct))
        return direct
    return add


def normal(mean, sd=1.0):
    return np.asarray(mean) + np.asarray(sd) * rng.normal(size=np.broadcast_shapes(np.shape(mean), np.shape(sd), (M,)))


def gamma(shape, rate):
    return rng.gamma(shape, size=M) / rate


@test("""data { int N; vector[N] x; vector[N] y; }
prior { a ~ normal(1, 1); b ~ normal(0, 2); s2 ~ inv_gamma(3, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], sqrt(s2)); }""",
      {"N": N, "x": x, "y": null}, {"a": identity, "b": identity, "s2": log, "y.1": squash})
def normal_block():
    a, b, s2 = normal(1), normal(0, 2), 1 / gamma(3, 2)
    return {"a": a, "b": b, "s2": s2, "y.1": normal(a + b * x[0], np.sqrt(s2))}


@test("""data { int N; vector[N] y; }
prior { for (k in 1:3) P[k] ~ dirichlet([1, 2, 1]); q ~ beta(2, 2); r ~ beta(2, 3); for (k in 1:3) mu[k] ~ normal(k, 1); d ~ normal(0, 1); }
latent { z[1] ~ discrete_range(1, 3); u[1] ~ bernoulli(0.4); c[1] ~ bernoulli(r);
for (t in 2:N) { z[t] ~ categorical(P[z[t - 1]]); u[t] ~ bernoulli(z[t] == 2 ? q : u[t - 1]*q); c[t] ~ bernoulli(r); } }
likelihood { for (t in 1:N) y[t] ~ normal(mu[z[t]] + d*u[t] + 0.7*c[t], 0.6); }""",
      {"N": N, "y": null}, {"P.1.1": logit, "q": logit, "r": logit, "mu.2": identity, "d": identity, "z.3": identity, "u.4": identity,
                            "c.2": identity, "y.3": identity, "y.4": identity})
def chains_together():
    P, q, r, mu, d = np.stack([rng.dirichlet([1, 2, 1], size=M) for _ in range(3)], axis=1), rng.beta(2, 2, M), rng.beta(2, 3,
            M), np.stack([normal(k) for k in (1, 2, 3)], axis=1), normal(0)
    i = np.arange(M)
    z, u, c = [rng.integers(0, 3, M)], [(rng.random(M) < 0.4).astype(int)], [rng.random(M) < r for _ in range(N)]
    for t in range(1, N):
        z.append((rng.random(M)[:, None] > P[i, z[-1]].cumsum(axis=1)).sum(axis=1))
        u.append((rng.random(M) < np.where(z[-1] == 1, q, u[-1] * q)).astype(int))
    y = lambda t: normal(mu[i, z[t]] + d * u[t] + 0.7 * c[t], 0.6)
    return {"P.1.1": P[:, 0, 0], "q": q, "r": r, "mu.2": mu[:, 1], "d": d, "z.3": z[2] + 1, "u.4": u[3], "c.2": c[1], "y.3": y(2),
            "y.4": y(3)}


@test("""data { int N, J; int g[N]; vector[N] x; vector[N] y; }
prior { mu ~ normal(0, 1); beta ~ normal(0, 1); s ~ uniform(0.2, 2); tau ~ gamma(3, 2);
  for (j in 1:J) u[j] ~ normal(mu, s); }
likelihood { for (i in 1:N) y[i] ~ normal(u[g[i]] + beta * x[i], 1 / sqrt(tau)); }""",
      {"N": N, "J": 2, "g": G, "x": x, "y": null},
      {"mu": identity, "beta": identity, "s": identity, "tau": log, "u.2": identity, "y.1": squash, "y.3": squash})
def arrow_block():
    mu, beta, s, tau = normal(0), normal(0), rng.uniform(0.2, 2, M), gamma(3, 2)
    u1, u2 = normal(mu, s), normal(mu, s)
    return {"mu": mu, "beta": beta, "s": s, "tau": tau, "u.2": u2, "y.1": normal(u1 + beta * x[0], tau ** -0.5),
            "y.3": normal(u2 + beta * x[2], tau ** -0.5)}


@test("""data { int N, J; int g[N]; matrix[N, 2] X; vector[N] y; cov_matrix[2] R; vector[2] m; }
prior { Omega ~ wishart(5, R); for (j in 1:J) b[j] ~ multi_normal_prec(m, Omega); }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b[g[i]], 0.7); }""",
      {"N": N, "J": 2, "g": G, "X": X, "y": null, "R": [[0.3, 0.1], [0.1, 0.4]], "m": [0.5, -0.5]},
      {"Omega.1.1": log, "Omega.2.1": squash, "Omega.2.2": log, "b.1.1": squash, "b.1.2": squash, "y.1": squash})
def batched_block_wishart():
    L = np.linalg.cholesky(np.array([[0.3, 0.1], [0.1, 0.4]]))
    z = rng.normal(size=(M, 2, 5))
    a = L @ z
    omega = a @ a.transpose(0, 2, 1)
    b = np.array([0.5, -0.5]) + np.einsum("mij,mj->mi", np.linalg.cholesky(np.linalg.inv(omega)), rng.normal(size=(M, 2)))
    return {"Omega.1.1": omega[:, 0, 0], "Omega.2.1": omega[:, 1, 0], "Omega.2.2": omega[:, 1, 1], "b.1.1": b[:, 0], "b.1.2": b[:, 1],
            "y.1": normal(b @ X[0], 0.7)}


@test("""data { int N; cov_matrix[2] R; }
prior { S ~ inv_wishart(6, R); for (k in 1:2) mu[k] ~ normal(0, 1); }
latent { for (i in 1:N) y[i] ~ multi_normal(mu, S); }""",
      {"N": 2, "R": [[1.5, 0.5], [0.5, 1]]},
      {"S.1.1": log, "S.2.1": squash, "S.2.2": log, "mu.1": identity, "mu.2": identity, "y.1.1": squash, "y.2.2": squash})
def inverse_wishart():
    L = np.linalg.cholesky(np.linalg.inv(np.array([[1.5, 0.5], [0.5, 1]])))
    a = L @ rng.normal(size=(M, 2, 6))
    S = np.linalg.inv(a @ a.transpose(0, 2, 1))
    mu = np.stack([normal(0), normal(0)], axis=1)
    C = np.linalg.cholesky(S)
    y = [mu + np.einsum("mij,mj->mi", C, rng.normal(size=(M, 2))) for _ in range(2)]
    return {"S.1.1": S[:, 0, 0], "S.2.1": S[:, 1, 0], "S.2.2": S[:, 1, 1], "mu.1": mu[:, 0], "mu.2": mu[:, 1], "y.1.1": y[0][:, 0],
            "y.2.2": y[1][:, 1]}


def phi(v):
    from scipy.special import ndtr
    return ndtr(v)


@test("""data { int N; matrix[N, 2] X; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0.5, 1); vector[2] b ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(a + X[i] * b)); }""",
      {"N": N, "X": X, "y": null}, {"a": identity, "b.1": identity, "b.2": identity, "y.1": identity, "y.2": identity})
def albert_chib():
    a, b = normal(0.5), rng.normal(size=(M, 2))
    y = [(rng.random(M) < phi(a + b @ X[i])) * 1.0 for i in range(2)]
    return {"a": a, "b.1": b[:, 0], "b.2": b[:, 1], "y.1": y[0], "y.2": y[1]}


@test("""data { int N; matrix[N, 2] X; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, 1); vector[2] b ~ normal(0, 0.7); }
likelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(a + X[i] * b)); }""",
      {"N": N, "X": X, "y": null}, {"a": identity, "b.1": identity, "b.2": identity, "y.1": identity, "y.2": identity})
def albert_chib_prior_at_zero():
    a, b = normal(0), 0.7 * rng.normal(size=(M, 2))
    y = [(rng.random(M) < phi(a + b @ X[i])) * 1.0 for i in range(2)]
    return {"a": a, "b.1": b[:, 0], "b.2": b[:, 1], "y.1": y[0], "y.2": y[1]}


@test("""data { int N; vector[N] x; int<lower=1, upper=3> y[N]; }
prior { b ~ normal(0, 1); ordered[2] c ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ ordered_probit(b * x[i], c); }""",
      {"N": N, "x": x, "y": null}, {"b": identity, "c.1": identity, "c.2": identity, "y.1": identity, "y.3": identity})
def ordered_probit():
    b, c = normal(0), np.sort(rng.normal(size=(M, 2)), axis=1)
    y = [1.0 + (normal(b * x[i])[:, None] > c).sum(axis=1) for i in (0, 2)]
    return {"b": b, "c.1": c[:, 0], "c.2": c[:, 1], "y.1": y[0], "y.3": y[1]}


@test("""data { int N; vector[N] x; int<lower=0, upper=1> y[N]; int<lower=0, upper=3> k[N]; }
prior { a ~ normal(0.5, 1); b ~ normal(0, 1); }
likelihood { for (i in 1:N) { y[i] ~ bernoulli_logit(a + b * x[i]); k[i] ~ binomial_logit(3, a - b * x[i]); } }""",
      {"N": N, "x": x, "y": null, "k": null}, {"a": identity, "b": identity, "y.1": identity, "k.3": identity})
def polya_gamma():
    a, b = normal(0.5), normal(0)
    y = (rng.random(M) < 1 / (1 + np.exp(-a - b * x[0]))) * 1.0
    return {"a": a, "b": b, "y.1": y, "k.3": rng.binomial(3, 1 / (1 + np.exp(-a + b * x[2]))) * 1.0}


def softmax_draws(eta):
    """Categories 1, 2, ... with log odds eta[:, k]."""
    return 1.0 + np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)


@test("""data { int N, p, K; matrix[N, p] X; int<lower=1, upper=K> y[N]; }
prior { for (j in 1:p, k in 1:K) B[j, k] ~ normal(0.2 * k, 1); }
likelihood { for (i in 1:N) y[i] ~ categorical_logit(X[i] * B); }
infer { B by gibbs; }""",
      {"N": N, "p": 2, "K": 3, "X": X, "y": null}, {"B.1.1": identity, "B.2.1": identity, "B.1.3": identity, "y.1": identity,
                                                    "y.3": identity})
def categories_all():
    B = [[normal(0.2 * k) for k in (1, 2, 3)] for j in range(2)]
    y = [softmax_draws(np.stack([X[i, 0] * B[0][k] + X[i, 1] * B[1][k] for k in range(3)], axis=1)) for i in (0, 2)]
    return {"B.1.1": B[0][0], "B.2.1": B[1][0], "B.1.3": B[0][2], "y.1": y[0], "y.3": y[1]}


@test("""data { int N, p, K, J; matrix[N, p] X; int g[N]; int<lower=1, upper=K> y[N]; }
prior { for (k in 1:K - 1) { a[k] ~ normal(0, 1); tau[k] ~ uniform(0.5, 2); for (j in 1:p) B[j, k] ~ double_exponential(0, 0.7);
  for (j in 1:J) u[j, k] ~ normal(0, tau[k]); } }
likelihood { for (i in 1:N) y[i] ~ categorical_logit(append_row(a + u[g[i]] + X[i] * B, [0])); }
infer { a by gibbs; B by gibbs; u by gibbs; }""",
      {"N": N, "p": 2, "K": 3, "J": 2, "g": G, "X": X, "y": null}, {"a.1": identity, "B.1.1": identity, "B.2.2": identity,
                                                                    "u.1.1": identity, "u.2.2": identity, "tau.1": identity,
                                                                    "y.1": identity, "y.3": identity})
def categories_reference():
    a, B, tau = [normal(0), normal(0)], [[rng.laplace(0, 0.7, size=M) for k in range(2)] for j in range(2)], [rng.uniform(0.5, 2, size=M)
            for k in range(2)]
    u = [[normal(0, tau[k]) for k in range(2)] for j in range(2)]
    y = [softmax_draws(np.stack([a[k] + u[G[i] - 1][k] + X[i, 0] * B[0][k] + X[i, 1] * B[1][k] for k in range(2)] + [np.zeros(M)], axis=1))
         for i in (0, 2)]
    return {"a.1": a[0], "B.1.1": B[0][0], "B.2.2": B[1][1], "u.1.1": u[0][0], "u.2.2": u[1][1], "tau.1": tau[0], "y.1": y[0], "y.3": y[1]}


# The errors' scale follows the effects': with fixed errors a large effect and its imputed response would determine each other.
@test("""data { vector[2] y; }
prior { tau ~ half_cauchy(0, 1); for (j in 1:2) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, tau * lambda[j]); } }
likelihood { for (j in 1:2) y[j] ~ normal(beta[j], 2 * tau * lambda[j]); }""",
      {"y": [None, None]}, {"tau": squash_log, "lambda.1": squash_log, "lambda.2": squash_log, "beta.1": squash, "beta.2": squash,
                            "y.1": squash})
def half_cauchy_mixture():
    tau, l1, l2 = (np.abs(rng.standard_cauchy(M)) for _ in range(3))
    b1, b2 = normal(0, tau * l1), normal(0, tau * l2)
    return {"tau": tau, "lambda.1": l1, "lambda.2": l2, "beta.1": b1, "beta.2": b2, "y.1": normal(b1, 2 * tau * l1)}


@test("""data { int N; matrix[N, 2] X; vector[N] y; }
prior { l2 ~ gamma(2, 1); s2 ~ inv_gamma(3, 2); for (j in 1:2) b[j] ~ double_exponential(0, sqrt(s2 / l2)); }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b, sqrt(s2)); }""",
      {"N": N, "X": X, "y": null}, {"l2": log, "s2": log, "b.1": squash, "b.2": squash, "y.1": squash})
def laplace_mixture():
    l2, s2 = gamma(2, 1), 1 / gamma(3, 2)
    b1, b2 = (rng.laplace(size=M) * np.sqrt(s2 / l2) for _ in range(2))
    return {"l2": l2, "s2": s2, "b.1": b1, "b.2": b2, "y.1": normal(b1 * X[0, 0] + b2 * X[0, 1], np.sqrt(s2))}


@test("""data { int N; vector[N] x; vector[N] y; }
prior { a ~ normal(0, 1); b ~ student_t(3, 0, 1); sigma ~ half_student_t(3, 0, 1); }
likelihood { for (i in 1:N) y[i] ~ student_t(4, a + b * x[i], sigma); }""",
      {"N": N, "x": x, "y": null}, {"a": identity, "b": squash, "sigma": log, "y.1": squash, "y.2": squash})
def student_t_mixture():
    a, b, sigma = normal(0), rng.standard_t(3, M), np.abs(rng.standard_t(3, M))
    return {"a": a, "b": b, "sigma": sigma, **{"y.%d" % (i + 1): a + b * x[i] + sigma * rng.standard_t(4, M) for i in range(2)}}


@test("""data { int N; vector[N] x; vector[N] y; }
prior { a ~ normal(0, 1); b ~ normal(0, 1); s ~ inv_gamma(3, 2); }
likelihood { for (i in 1:N) y[i] ~ asymmetric_laplace(a + b * x[i], s, 0.3); }""",
      {"N": N, "x": x, "y": null}, {"a": identity, "b": identity, "s": log, "y.1": squash, "y.2": squash})
def asymmetric_laplace_mixture():
    a, b, s = normal(0), normal(0), 1 / gamma(3, 2)
    # Kotz, Kozubowski and Podgorski 2001: a difference of exponentials with rates p/s and (1 - p)/s, the first to the right
    y = [a + b * x[i] + s * (rng.exponential(size=M) / 0.3 - rng.exponential(size=M) / 0.7) for i in range(2)]
    return {"a": a, "b": b, "s": s, "y.1": y[0], "y.2": y[1]}


@test("""data { int N; vector[N] y, u; }
prior { v ~ gamma(2, 1); sigma ~ half_normal(0, 1); m ~ normal(0, sqrt(v)); }
likelihood { for (i in 1:N) { y[i] ~ normal(m, sqrt(v)); u[i] ~ normal(0, sigma); } }""",
      {"N": N, "y": null, "u": null}, {"v": log, "sigma": log, "m": identity, "y.1": identity, "u.1": squash})
def inverse_gaussian_family():
    v, sigma = gamma(2, 1), np.abs(normal(0))
    m = normal(0, np.sqrt(v))
    return {"v": v, "sigma": sigma, "m": m, "y.1": normal(m, np.sqrt(v)), "u.1": normal(0, sigma)}


@test("""data { int N; vector[N] y; }
prior { w ~ dirichlet([2, 1, 1.5]); q ~ beta(2, 3); for (k in 1:3) { mu[k] ~ normal(2 * k - 4, 1); s2[k] ~ inv_gamma(3, 1); } }
latent { for (i in 1:N) { c[i] ~ categorical(w); d[i] ~ bernoulli(q); } }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]] + 2 * d[i], sqrt(s2[c[i]])); }""",
      {"N": N, "y": null}, {"w.1": identity, "w.2": identity, "q": logit, "mu.1": identity, "s2.2": log, "c.1": identity, "d.1": identity,
                            "y.1": squash})
def mixture():
    w, q = rng.dirichlet([2, 1, 1.5], M), rng.beta(2, 3, M)
    mu, s2 = rng.normal(size=(M, 3)) + [-2, 0, 2], 1 / rng.gamma(3, size=(M, 3))
    c, d = (rng.random(M)[:, None] > np.cumsum(w, axis=1)[:, :2]).sum(axis=1), rng.random(M) < q
    m, all = mu[np.arange(M), c] + 2 * d, np.arange(M)
    return {"w.1": w[:, 0], "w.2": w[:, 1], "q": q, "mu.1": mu[:, 0], "s2.2": s2[:, 1], "c.1": c + 1.0, "d.1": d * 1.0,
            "y.1": normal(m, np.sqrt(s2[all, c]))}


@test("""data { int N; cov_matrix[2] R; matrix[N, 2] y; }
prior { w ~ dirichlet([2, 1.5]); for (k in 1:2) { mu[k] ~ multi_normal([0.5, -1], [[1, 0.3], [0.3, 0.5]]); Sigma[k] ~ inv_wishart(7, R); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ multi_normal(mu[c[i]], Sigma[c[i]]); }""",
      {"N": N, "R": [[3, 1], [1, 2]], "y": [[None, None]] * N},
      {"w.1": identity, "mu.1.1": identity, "mu.2.2": identity, "Sigma.1.1.1": log, "Sigma.1.2.1": squash, "Sigma.2.2.2": log,
       "c.1": identity, "c.2": identity, "y.1.1": squash, "y.1.2": squash})
def multivariate_mixture():
    all, w = np.arange(M), rng.dirichlet([2, 1.5], M)
    L = np.linalg.cholesky(np.linalg.inv(np.array([[3.0, 1], [1, 2]])))
    a = L @ rng.normal(size=(M, 2, 2, 7))
    S = np.linalg.inv(a @ a.transpose(0, 1, 3, 2))
    mu = rng.multivariate_normal([0.5, -1], [[1, 0.3], [0.3, 0.5]], size=(M, 2))
    c, d = [(rng.random(M) > w[:, 0]) * 1 for _ in range(2)]
    y = mu[all, c] + np.einsum("mij,mj->mi", np.linalg.cholesky(S[all, c]), rng.normal(size=(M, 2)))
    return {"w.1": w[:, 0], "mu.1.1": mu[:, 0, 0], "mu.2.2": mu[:, 1, 1], "Sigma.1.1.1": S[:, 0, 0, 0], "Sigma.1.2.1": S[:, 0, 1, 0],
            "Sigma.2.2.2": S[:, 1, 1, 1], "c.1": c + 1, "c.2": d + 1,
            "y.1.1": y[:, 0], "y.1.2": y[:, 1]}


@test("""data { int T; vector[T] y; }
prior { for (k in 1:2) { P[k] ~ dirichlet([3 - k, k]); mu[k] ~ normal(0, 2); } }
latent { z[1] ~ discrete_range(1, 2); for (t in 2:T) z[t] ~ categorical(P[z[t - 1]]); }
likelihood { for (t in 1:T) y[t] ~ normal(mu[z[t]], 1); }""",
      {"T": N, "y": null}, {"P.1.1": logit, "P.2.1": logit, "mu.1": identity, "z.1": identity, "z.2": identity, "z.4": identity,
                            "y.2": identity})
def hidden_markov():
    p = np.stack([rng.beta(2, 1, M), rng.beta(1, 2, M)])             # probability of state 1 after states 1, 2
    mu = 2 * rng.normal(size=(2, M))
    z, all = [rng.integers(0, 2, M)], np.arange(M)
    for _ in range(3):
        z.append((rng.random(M) >= p[z[-1], all]) * 1)
    return {"P.1.1": p[0], "P.2.1": p[1], "mu.1": mu[0], "z.1": z[0] + 1.0, "z.2": z[1] + 1.0, "z.4": z[3] + 1.0,
            "y.2": normal(mu[z[1], all])}


@test("""data { int T; vector[T] y; }
prior { phi ~ uniform(-1, 1); mu ~ normal(0, 1); s2 ~ inv_gamma(3, 2); }
likelihood { y[1] ~ normal(mu, 1); for (t in 2:T) y[t] ~ normal(mu + phi * (y[t - 1] - mu), sqrt(s2)); }""",
      {"T": 5, "y": [None] * 5}, {"phi": identity, "mu": identity, "s2": log, "y.1": identity, "y.2": squash, "y.5": squash})
def autoregression():
    p, mu, s2 = rng.uniform(-1, 1, M), normal(0), 1 / gamma(3, 2)
    y = [normal(mu)]
    for _ in range(4):
        y.append(normal(mu + p * (y[-1] - mu), np.sqrt(s2)))
    return {"phi": p, "mu": mu, "s2": s2, "y.1": y[0], "y.2": y[1], "y.5": y[4]}


@test("""data { int T; vector[T] y; }
prior { s ~ half_normal(0, 1); h[1] ~ normal(0, 1); for (t in 2:T) h[t] ~ normal(0.9 * h[t - 1], s); }
likelihood { for (t in 1:T) y[t] ~ normal(h[t], exp(h[t] / 2)); }""",
      {"T": N, "y": null}, {"s": log, "h.1": identity, "h.2": identity, "h.4": squash, "y.2": squash})
def slice_in_colours():
    s = np.abs(normal(0))
    h = [normal(0)]
    for _ in range(3):
        h.append(normal(0.9 * h[-1], s))
    return {"s": s, "h.1": h[0], "h.2": h[1], "h.4": h[3], "y.2": normal(h[1], np.exp(h[1] / 2))}


@test("""data { int N; vector[N] t; }
prior { a ~ gamma(4, 2); b ~ gamma(2, 1); for (i in 1:N) theta[i] ~ gamma(a, b); }
latent { for (i in 1:N) { y[i] ~ poisson(theta[i] * t[i]); n[i] ~ binomial(5, 0.3); r[i] ~ exponential(theta[i]); } }""",
      {"N": 2, "t": [0.5, 2]}, {"a": log, "b": log, "theta.1": lambda v: np.log(v + 0.01), "y.1": np.log1p, "n.1": identity, "r.1": squash,
                                "y.2": np.log1p})
def gammas_and_counts():
    a, b = gamma(4, 2), gamma(2, 1)             # an a near 0 would stay there too long: log(theta) is then of the order of -1/a
    t1, t2 = gamma(a, b), gamma(a, b)
    return {"a": a, "b": b, "theta.1": t1, "y.1": rng.poisson(t1 * 0.5) * 1.0, "n.1": rng.binomial(5, 0.3, M) * 1.0,
            "r.1": rng.exponential(size=M) / t1, "y.2": rng.poisson(t2 * 2) * 1.0}


@test("""data { int N, D, V, K; int<lower=1, upper=D> doc[N]; int<lower=1, upper=V> word[N]; }
prior { for (d in 1:D) theta[d] ~ dirichlet([1, 0.7]); for (k in 1:K) phi[k] ~ dirichlet([1, 2, 0.5]); }
latent { for (i in 1:N) z[i] ~ categorical(theta[doc[i]]); }
likelihood { for (i in 1:N) word[i] ~ categorical(phi[z[i]]); }""",
      {"N": 5, "D": 2, "V": 3, "K": 2, "doc": [1, 1, 2, 2, 2], "word": [None] * 5},
      {"theta.1.1": identity, "theta.2.2": identity, "phi.1.1": identity, "phi.2.2": identity, "z.1": identity, "z.5": identity,
       "word.1": identity, "word.4": identity})
def topics():
    theta, phi = [rng.dirichlet([1, 0.7], M) for _ in range(2)], rng.dirichlet([1, 2, 0.5], (M, 2))
    z = [(rng.random(M) > theta[d][:, 0]) * 1 for d in (0, 0, 1, 1, 1)]
    word = [(rng.random(M)[:, None] > np.cumsum(phi[np.arange(M), z[i]], axis=1)[:, :-1]).sum(axis=1) for i in range(5)]
    return {"theta.1.1": theta[0][:, 0], "theta.2.2": theta[1][:, 1], "phi.1.1": phi[:, 0, 0], "phi.2.2": phi[:, 1, 1],
            "z.1": z[0] + 1, "z.5": z[4] + 1, "word.1": word[0] + 1, "word.4": word[3] + 1}


@test("""data { int N; vector[N] y; }
prior { m ~ normal(0, 1) T[-0.5, ]; p ~ beta(2, 2) T[0.2, 0.9]; r ~ gamma(2, 1) T[0.5, 3]; b ~ exponential(1); e ~ bernoulli(p); }
likelihood { for (i in 1:N) y[i] ~ normal(m + b * e, 1 / sqrt(r)); }""",
      {"N": N, "y": null}, {"m": identity, "p": identity, "r": identity, "b": identity, "e": identity, "y.1": identity})
def truncations():
    def within(draw, lo, hi):
        v = draw(8 * M)
        return v[(v > lo) & (v < hi)][:M]
    m = within(lambda k: rng.normal(size=k), -0.5, np.inf)
    p, r = within(lambda k: rng.beta(2, 2, k), 0.2, 0.9), within(lambda k: rng.gamma(2, size=k), 0.5, 3)
    b, e = rng.exponential(size=M), (rng.random(M) < p) * 1.0
    return {"m": m, "p": p, "r": r, "b": b, "e": e, "y.1": normal(m + b * e, r ** -0.5)}


@test("""data { int N; vector[N] y; }
prior { for (j in 1:2) l[j] ~ normal(1, 0.5); }
latent { for (i in 1:N) f[i] ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(l[1] * f[i] + l[2], 0.5); }""",
      {"N": N, "y": null}, {"l.1": identity, "l.2": identity, "f.1": identity, "f.2": identity, "y.1": identity})
def bilinear():
    l1, l2, f1, f2 = normal(1, 0.5), normal(1, 0.5), normal(0), normal(0)
    return {"l.1": l1, "l.2": l2, "f.1": f1, "f.2": f2, "y.1": normal(l1 * f1 + l2, 0.5)}


@test("""data { int N, K; vector[N] y; }
prior { alpha ~ gamma(3, 3); for (k in 1:K-1) v[k] ~ beta(1, alpha); for (k in 1:K) mu[k] ~ normal(0, 2); s2 ~ inv_gamma(3, 2);
  for (k in 1:K) w[k] = (k < K ? v[k] : 1) * prod(j in 1:k-1, 1 - v[j]); }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], sqrt(s2)); }""",
      {"N": N, "K": 5, "y": null}, {"alpha": log, "v.1": identity, "v.2": identity, "v.4": identity, "c.1": identity, "c.2": identity,
                                    "mu.1": identity, "y.1": squash})
def stick_breaking():
    alpha = gamma(3, 3)
    v = rng.beta(1, alpha[:, None], size=(M, 4))
    w = np.column_stack([v, np.ones(M)]) * np.cumprod(np.column_stack([np.ones(M), 1 - v]), axis=1)
    c1, c2 = [(rng.random(M)[:, None] > np.cumsum(w, axis=1)[:, :-1]).sum(axis=1) for _ in range(2)]
    mu, s2 = rng.normal(0, 2, (M, 5)), 1 / gamma(3, 2)
    return {"alpha": alpha, "v.1": v[:, 0], "v.2": v[:, 1], "v.4": v[:, 3], "c.1": c1 + 1, "c.2": c2 + 1, "mu.1": mu[:, 0],
            "y.1": normal(mu[np.arange(M), c1], np.sqrt(s2))}


@test("""data { int N, K; vector[N] y; }
prior { alpha ~ gamma(3, 3); for (k in 1:K-1) v[k] ~ beta(1, alpha); for (k in 1:K) mu[k] ~ normal(0, 2); s2 ~ inv_gamma(3, 2);
  left[1] = 1; for (k in 2:K) left[k] = left[k-1] * (1 - v[k-1]); for (k in 1:K) w[k] = (k < K ? v[k] : 1) * left[k]; }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], sqrt(s2)); }""",
      {"N": N, "K": 5, "y": null}, {"alpha": log, "v.1": identity, "v.2": identity, "v.4": identity, "c.1": identity, "c.2": identity,
                                    "mu.1": identity, "y.1": squash})
def stick_by_recursion(): return stick_breaking()


@test("""data { int N; matrix[N, 2] X; vector[N] y; }
prior { q ~ beta(2, 2); s2 ~ inv_gamma(3, 2); for (j in 1:2) { g[j] ~ bernoulli(q); b[j] ~ normal(0.5, 1); } }
likelihood { for (i in 1:N) y[i] ~ normal(sum(j in 1:2, X[i, j] * g[j] * b[j]), sqrt(s2)); }""",
      {"N": N, "X": X, "y": null}, {"q": identity, "s2": log, "g.1": identity, "g.2": identity, "b.1": identity, "b.2": identity,
                                    "y.1": squash})
def spike_and_slab():
    q, s2 = rng.beta(2, 2, M), 1 / gamma(3, 2)
    g, b = [(rng.random(M) < q) * 1.0 for _ in range(2)], [normal(0.5) for _ in range(2)]
    return {"q": q, "s2": s2, "g.1": g[0], "g.2": g[1], "b.1": b[0], "b.2": b[1],
            "y.1": normal(X[0, 0] * g[0] * b[0] + X[0, 1] * g[1] * b[1], np.sqrt(s2))}


@test("""data { int N; matrix[N, 2] X; vector[N] y; }
prior { for (k in 1:3) sd[k] ~ uniform(0.1, 1); w ~ dirichlet([1, 2, 1]); for (j in 1:2) { c[j] ~ categorical(w);
  b[j] ~ normal(0, sd[c[j]]); } }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * b, 1); }""",
      {"N": N, "X": X, "y": null}, {"sd.1": identity, "w.2": identity, "c.1": identity, "c.2": identity, "b.1": identity, "y.1": identity})
def scale_of_three():
    sd, w = rng.uniform(0.1, 1, (M, 3)), rng.dirichlet([1, 2, 1], M)
    c = [(rng.random(M)[:, None] > np.cumsum(w, axis=1)[:, :-1]).sum(axis=1) for _ in range(2)]
    b = [normal(0, sd[np.arange(M), k]) for k in c]
    return {"sd.1": sd[:, 0], "w.2": w[:, 1], "c.1": c[0] + 1, "c.2": c[1] + 1, "b.1": b[0], "y.1": normal(X[0, 0] * b[0] + X[0, 1] * b[1])}


def differences(draws, known, transforms, groups=None):
    """z of the mean of each column of `transforms`, and of each product of two of one group (default: all columns are one), between draws
    of chains and independent ones."""
    chain, forward, z = {}, {}, {}
    for column, f in transforms.items():
        v = f(known[column])
        mean, sd = v.mean(), v.std()
        forward[column] = (v - mean) / sd
        chain[column] = (f(draws[column]) - mean) / sd
    for names in groups or [list(transforms)]:
        for a, b in [(a, None) for a in names] + [(a, b) for i, a in enumerate(names) for b in names[i:]]:
            c, d = (chain[a], forward[a]) if b is None else (chain[a] * chain[b], forward[a] * forward[b])
            z[a if b is None else a + " * " + b] = (c.mean() - d.mean()) / np.hypot(mcse(c), d.std() / np.sqrt(len(d)))
    return z


def verdict(name, z, seed=1, part=1):
    """A row of the report: the largest |z|, or all that are too large."""
    worst = sorted(z, key=lambda k: -abs(z[k]) if np.isfinite(z[k]) else -np.inf)
    good = all(abs(v) < 6 * part for v in z.values())
    shown = worst[:1] if good else [k for k in worst if not abs(z[k]) < 6 * part]
    return good, "%s: seed %d, %d moments, largest |z| < %g: %s" % (name, seed, len(z), 6 * part,
                                                                    ", ".join("%s %.2f" % (k, z[k]) for k in shown))


def compare(w, name, model, data, transforms, direct, flags=(), samples=5000, thin=10, warmup=500, compiler=None):
    """Rows of the report: one for each model, with the largest |z| of its moments."""
    try:
        program, values, known = w.compile(name, model, list(flags), compiler), w.data(name, data), direct()

        def judge(samples, part):
            return verdict(name, differences(w.draws(program, values, samples=samples, thin=thin, warmup=warmup), known, transforms),
                           part=part)
        return in_stages(judge, samples)
    except Failed as e:
        return False, "%s: %s" % (name, e)


def main(tests, compare):
    with Workplace() as w:
        report([compare(w, *t) for t in tests if not sys.argv[1:] or t[0] in sys.argv[1:]])


if __name__ == "__main__":
    main(tests, compare)
