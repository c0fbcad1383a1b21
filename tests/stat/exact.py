"""Posteriors that are known exactly: by a formula, by symmetry or by quadrature. z is the difference over its Monte Carlo error (of both
sides when both are chains). The bound is 6, as in geweke.py: with fixed seeds a run that passes keeps passing, and a change of
random numbers rings falsely less than once in 10^6 checks."""
import numpy as np
from scipy import integrate, stats
from scipy.special import expit, log_ndtr, logsumexp

from program import Failed, Workplace, log_normal, log_poisson, mcse, report

rng = np.random.default_rng(7)
rows = []
w = Workplace()
stage, FEWER, BOUND = 0, (4, 1), (3.6, 6)          # a quarter of the draws within 0.6 of the bound is enough, as program.in_stages says

PROBIT_DATA = "data { int<lower=0> N; int<lower=1> p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }\n"
X = np.round(rng.normal(size=(30, 2)), 2)
y = (rng.random(30) < stats.norm.cdf(X @ [1.0, -0.5])).astype(int)
x = X[:, 0]


def draws(name, model, data, **settings):
    settings = {"samples": 20000, "seed": 1, **settings}
    settings["samples"] //= FEWER[stage]
    return w.draws(w.compile(name, model), w.data(name, data), **settings)


def near(what, x, known, error=0.0):
    z = (x.mean() - known) / np.hypot(mcse(x), error)
    rows.append((abs(z) < BOUND[stage], "%s: %.4f, known %.4f, |z| %.2f < %g" % (what, x.mean(), known, abs(z), BOUND[stage])))


def moments(f, lo, hi):
    """Mean and second moment of the density exp(f) on (lo, hi) by adaptive quadrature (relative error 1e-8, far below the chains')."""
    cuts = np.linspace(lo, hi, 21)                # short pieces: kinks and narrow peaks do no harm
    top = max(f(v) for v in np.linspace(lo, hi, 2001)[1:-1])
    total, first, second = (sum(integrate.quad(lambda v: v ** k * np.exp(f(v) - top), a, b, epsrel=1e-8, limit=200)[0] for a,
                                b in zip(cuts, cuts[1:]))
                            for k in range(3))
    return first / total, second / total


def no_data():
    """With no rows the posterior is the prior: medians of half-Cauchy scales are their scales, a half is below."""
    d = draws("nothing", PROBIT_DATA + """prior { tau ~ half_cauchy(0, 2); a ~ normal(1, 2);
      for (j in 1:p) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, tau * lambda[j]); } }
    likelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(a + X[i] * beta)); }""", {"N": 0, "p": 2, "X": np.zeros((0, 2)), "y": []}, thin=20)
    near("no rows: P(tau < 2)", (d["tau"] < 2) * 1.0, 0.5)
    near("no rows: P(lambda < 1)", (d["lambda.1"] < 1) * 1.0, 0.5)
    near("no rows: P(beta < 0)", (d["beta.2"] < 0) * 1.0, 0.5)
    near("no rows: E a", d["a"], 1)
    near("no rows: E a^2", d["a"] ** 2, 5)


def normal_known_answer():
    """A normal mean with known variance, a variance with known mean, and both at once (normal-inverse-gamma)."""
    v = np.array([1.2, -0.3, 2.2, 0.9, 1.7, 0.4])
    data = {"N": 6, "y": v}
    declare = "data { int<lower=0> N; vector[N] y; }\n"
    d = draws("mean", declare + "prior { mu ~ normal(1, 2); }\nlikelihood { y ~ normal(mu, 1.5); }", data)
    precision = 1 / 4 + 6 / 2.25
    mean = (1 / 4 + v.sum() / 2.25) / precision
    near("normal mean: mean", d["mu"], mean)
    near("normal mean: variance", (d["mu"] - mean) ** 2, 1 / precision)
    d = draws("variance", declare + "prior { s2 ~ inv_gamma(3, 2); }\nlikelihood { y ~ normal(1, sqrt(s2)); }", data)
    a, b = 3 + 3, 2 + ((v - 1) ** 2).sum() / 2
    near("normal variance: E 1/s2", 1 / d["s2"], a / b)
    near("normal variance: E s2", d["s2"], b / (a - 1))
    d = draws("both", declare + "prior { s2 ~ inv_gamma(3, 2); mu ~ normal(1, sqrt(s2 / 0.5)); }\nlikelihood { y ~ normal(mu, sqrt(s2)); }",
              data)
    m = (0.5 * 1 + v.sum()) / 6.5
    b = 2 + ((v ** 2).sum() + 0.5 - 6.5 * m ** 2) / 2
    near("normal-inverse-gamma: E mu", d["mu"], m)
    near("normal-inverse-gamma: Var mu", (d["mu"] - m) ** 2, b / (a - 1) / 6.5)
    near("normal-inverse-gamma: E 1/s2", 1 / d["s2"], a / b)
    design = np.column_stack([np.ones(30), X])
    target = design @ [0.5, 1, -1] + np.round(rng.normal(size=30), 2)
    d = draws("line", "data { int N, p; matrix[N, p] X; vector[N] y; }\nprior { a ~ normal(0, 3); vector[p] b ~ normal(0, 2); "
                      "}\nlikelihood { y ~ normal(a + X * b, 0.8); }",
              {"N": 30, "p": 2, "X": X, "y": target})
    V = np.linalg.inv(design.T @ design / 0.64 + np.diag([1 / 9, 1 / 4, 1 / 4]))
    mean = V @ design.T @ target / 0.64
    got = [d["a"], d["b.1"], d["b.2"]]
    for i, name in enumerate(["a", "b.1", "b.2"]):
        near("linear regression: mean of " + name, got[i], mean[i])
        for j in range(i, 3):
            near("linear regression: covariance %d, %d" % (i, j), (got[i] - mean[i]) * (got[j] - mean[j]), V[i, j])


def forms_of_probit():
    """The loop, the vectorised form and the explicit latent are one model; the opposite of y gives the opposite sign of beta."""
    forms = {
        "loop": ("prior { for (j in 1:p) b[j] ~ normal(0, 2); }\nlikelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(X[i] * b)); }", y),
        "vectorised": ("prior { vector[p] b ~ normal(0, 2); }\nlikelihood { y ~ bernoulli(Phi(X * b)); }", y),
        "latent": ("prior { vector[p] b ~ normal(0, 2); }\nlatent { z ~ normal(X * b, 1); }\n"
                   "likelihood { for (i in 1:N) y[i] = z[i] > 0; }", y),
        "turned": ("prior { vector[p] b ~ normal(0, 2); }\nlikelihood { y ~ bernoulli(Phi(X * b)); }", 1 - y),
    }

    # Both coefficients by a grid: the log posterior is smooth, and the trapezoid rule's error on 401 points within 8 sd is below 1e-6.
    g = np.linspace(-3, 4, 401)
    b1, b2 = np.meshgrid(g, g, indexing="ij")
    lp = -(b1 ** 2 + b2 ** 2) / 8
    for i in range(30):
        lp += log_ndtr((2 * y[i] - 1) * (X[i, 0] * b1 + X[i, 1] * b2))
    weight = np.exp(lp - lp.max())
    weight /= weight.sum()
    for name, (body, response) in forms.items():
        d = draws("probit_" + name, PROBIT_DATA + body, {"N": 30, "p": 2, "X": X, "y": response}, params="b")
        sign = -1 if name == "turned" else 1
        for j, b in enumerate([b1, b2]):
            near("probit, %s: E b.%d" % (name, j + 1), sign * d["b.%d" % (j + 1)], (weight * b).sum())
            near("probit, %s: E b.%d^2" % (name, j + 1), d["b.%d" % (j + 1)] ** 2, (weight * b ** 2).sum())


def one_coefficient():
    """Logit by Polya-Gamma, a horseshoe of fixed scale, the Lasso's prior, t errors, and quantile regression, against quadrature."""
    xy = "data { int<lower=0> N; vector[N] x; int<lower=0, upper=1> y[N]; }\n"
    d = draws("logit", xy + "prior { b ~ normal(0, 2); }\nlikelihood { for (i in 1:N) y[i] ~ bernoulli_logit(b * x[i]); }",
              {"N": 30, "x": x, "y": y}, params="b")
    first, second = moments(lambda b: -b ** 2 / 8 + np.log(expit((2 * y - 1) * b * x)).sum(), -4, 10)
    near("logit: E b", d["b"], first)
    near("logit: E b^2", d["b"] ** 2, second)

    v = np.round(0.4 * x + 0.8 * rng.normal(size=30), 2)
    real = "data { int<lower=0> N; vector[N] x; vector[N] y; }\n"
    data = {"N": 30, "x": x, "y": v}
    fit = lambda b: -((v - b * x) ** 2).sum() / 2
    d = (draws("horseshoe", real + "prior { lambda ~ half_cauchy(0, 1); b ~ normal(0, 0.3 * lambda); }\nlikelihood { y ~ normal(b * x, 1); "
                                   "}", data))
    # The horseshoe's density up to a constant: the integral of N(b; 0, 0.09*l^2) over a half-Cauchy l is exp(u) E1(u), u = b^2/0.18
    # (Carvalho, Polson and Scott 2010).
    from scipy.special import exp1
    f = lambda b: fit(b) + np.log(exp1(b * b / 0.18)) + b * b / 0.18
    top = max(f(b) for b in np.linspace(-2, 3, 1000))
    parts = [sum(integrate.quad(lambda b: b ** k * np.exp(f(b) - top), lo, hi, limit=500)[0] for lo, hi in [(-3, 0), (0, 0.5), (0.5, 3)])
             for k in range(3)]
    near("horseshoe: E b", d["b"], parts[1] / parts[0])
    near("horseshoe: E b^2", d["b"] ** 2, parts[2] / parts[0])
    d = draws("laplace", real + "prior { b ~ double_exponential(0, 0.1); }\nlikelihood { y ~ normal(b * x, 1); }", data)
    first, second = moments(lambda b: fit(b) - abs(b) / 0.1, -3, 3)
    near("double exponential prior: E b", d["b"], first)
    near("double exponential prior: E b^2", d["b"] ** 2, second)
    d = draws("student", real + "prior { b ~ normal(0, 2); }\nlikelihood { y ~ student_t(3, b * x, 0.5); }", data)
    first, second = moments(lambda b: -b ** 2 / 8 + stats.t.logpdf((v - b * x) / 0.5, 3).sum(), -3, 4)
    near("student t errors: E b", d["b"], first)
    near("student t errors: E b^2", d["b"] ** 2, second)
    d = draws("quantile", real + "prior { b ~ normal(0, 2); }\nlikelihood { y ~ asymmetric_laplace(b * x, 0.3, 0.25); }", data)
    first, second = moments(lambda b: -b ** 2 / 8 - ((v - b * x) * (0.25 - (v < b * x)) / 0.3).sum(), -3, 4)
    near("asymmetric laplace errors: E b", d["b"], first)
    near("asymmetric laplace errors: E b^2", d["b"] ** 2, second)
    n = np.array([3, 0, 5, 2, 1, 4])
    d = draws("rate", "data { int N; int<lower=0> y[N]; }\nprior { a ~ normal(0, 1); }\nlikelihood { y ~ poisson(exp(a)); }",
              {"N": 6, "y": n})
    first, second = moments(lambda a: -a * a / 2 + n.sum() * a - 6 * np.exp(a), -3, 4)
    near("log rate by slice: E a", d["a"], first)
    near("log rate by slice: E a^2", d["a"] ** 2, second)
    d = draws("bounded", real + "prior { sigma ~ uniform(0, 1); }\nlikelihood { y ~ normal(0, sigma); }", data)
    first, second = moments(lambda s: -30 * np.log(s) - (v ** 2).sum() / (2 * s * s), 1e-3, 1)
    near("uniform prior of sigma: E sigma", d["sigma"], first)
    near("uniform prior of sigma: E sigma^2", d["sigma"] ** 2, second)
    m = np.abs(v) + 0.1
    d = draws("truncated", "data { int N; vector<lower=0>[N] y; }\nprior { mu ~ normal(0, 2); }\nlikelihood { y ~ normal(mu, 1) T[0, ]; }",
              {"N": 30, "y": m})
    first, second = moments(lambda u: -u * u / 8 - ((m - u) ** 2).sum() / 2 - 30 * log_ndtr(u), -12, 6)
    near("truncated likelihood: E mu", d["mu"], first)
    near("truncated likelihood: E mu^2", d["mu"] ** 2, second)


def joint_normal(name, got, design, target, weight, precision, shift=0):
    """Means, variances and one covariance of joint normal coefficients whose rows are known."""
    V = np.linalg.inv(design.T @ (weight[:, None] * design) + np.diag(precision))
    mean = V @ (design.T @ (weight * target) + shift)
    for k in range(len(got)):
        near("%s: mean of coefficient %d" % (name, k), got[k], mean[k])
        near("%s: variance of coefficient %d" % (name, k), (got[k] - mean[k]) ** 2, V[k, k])
    near("%s: a covariance" % name, (got[0] - mean[0]) * (got[-1] - mean[-1]), V[0, -1])


def blocks():
    """Crossed effects drawn together and one by one; more coefficients than rows, with latents whose scale has a scale move or not."""
    J, K, N = 4, 3, 12
    g, h = rng.integers(J, size=N), rng.integers(K, size=N)
    v = np.round(rng.normal(size=N), 2)
    model = """data { int N, J, K; int<lower=1, upper=J> g[N]; int<lower=1, upper=K> h[N]; vector[N] y; }
      prior { mu ~ normal(0.5, 2); for (j in 1:J) u[j] ~ normal(0, 0.8); for (k in 1:K) v[k] ~ normal(0, 0.6); }
      likelihood { for (i in 1:N) y[i] ~ normal(mu + u[g[i]] + v[h[i]], 0.5); }\n"""
    design = np.column_stack([np.ones(N), np.eye(J)[g], np.eye(K)[h]])
    precision = np.array([1 / 4] + J * [1 / 0.64] + K * [1 / 0.36])
    for what, infer in {"together": "infer { (mu, u, v) by gibbs; }", "in pairs": "infer { (v, u) by gibbs; }",
                        "one by one": "infer { mu by gibbs; u by gibbs; v by gibbs; }"}.items():
        d = draws("crossed", model + infer, {"N": N, "J": J, "K": K, "g": g + 1, "h": h + 1, "y": v})
        got = [d["mu"]] + [d["u.%d" % (j + 1)] for j in range(J)] + [d["v.%d" % (k + 1)] for k in range(K)]
        joint_normal("crossed effects " + what, got, design, v, np.full(N, 4.0), precision, np.r_[0.5 / 4, np.zeros(J + K)])

    N, p = 4, 7
    Z = np.round(rng.normal(size=(N, p)), 2)
    s = np.round(0.5 + rng.random(N), 2)
    v = np.round(rng.normal(size=N), 2)
    d = draws("few_rows", """data { int N, p; matrix[N, p] X; vector<lower=0>[N] s; vector[N] y; }
      prior { a ~ normal(1, 2); for (j in 1:p) b[j] ~ normal(0, 1.5); }
      likelihood { for (i in 1:N) y[i] ~ normal(a + X[i] * b, s[i]); }""", {"N": N, "p": p, "X": Z, "s": s, "y": v})
    joint_normal("few rows", [d["a"]] + [d["b.%d" % (j + 1)] for j in range(p)], np.column_stack([np.ones(N), Z]), v, 1 / s ** 2,
                 np.r_[1 / 4, np.full(p, 1 / 2.25)], np.r_[1 / 4, np.zeros(p)])
    # A probit with more coefficients than rows: b depends on y through X b alone, whose posterior is a normal N(0, 4XX') times a product of
    # Phi. With two rows that is a plane: by a grid, the trapezoid rule's error below 1e-6.
    Z = Z[:2]
    d = draws("few_rows_probit", PROBIT_DATA + "prior { vector[p] b ~ normal(0, 2); }\nlikelihood { y ~ bernoulli(Phi(X * b)); }",
              {"N": 2, "p": p, "X": Z, "y": [1, 0]}, params="b", samples=40000)
    S = 4 * Z @ Z.T
    e = np.linspace(-40, 40, 2001)
    e1, e2 = np.meshgrid(e, e, indexing="ij")
    P = np.linalg.inv(S)
    weight = np.exp(-(P[0, 0] * e1 ** 2 + 2 * P[0, 1] * e1 * e2 + P[1, 1] * e2 ** 2) / 2 + log_ndtr(e1) + log_ndtr(-e2))
    weight /= weight.sum()
    eta = [sum(Z[i, j] * d["b.%d" % (j + 1)] for j in range(p)) for i in range(2)]
    near("probit of few rows: first predictor", eta[0], (weight * e1).sum())
    near("probit of few rows: second predictor", eta[1], (weight * e2).sum())
    near("probit of few rows: square", eta[0] ** 2, (weight * e1 ** 2).sum())
    near("probit of few rows: product", eta[0] * eta[1], (weight * e1 * e2).sum())


def missing():
    """Missing counts without a bound, with and without other factors; missing elements of vectors. Sums over counts to 60 leave out less
    than 1e-12."""
    y, x = [1, None, 2, 0, 3, None], np.array([1.0, 2.5, 2.2, -0.3, 2.0, 0.1])
    d = draws("missing_counts", """data { int N; int<lower=0> y[N]; vector[N] x; int<lower=0> z[N]; }
      prior { a ~ normal(0, 1); }
      likelihood { for (i in 1:N) { y[i] ~ poisson(exp(a)); x[i] ~ normal(0.8 * y[i], 1); z[i] ~ poisson(2 * exp(a)); } }""",
              {"N": 6, "y": y, "x": x, "z": [2, 1, 4, None, 3, 2]}, params="a,y,z")
    k = np.arange(61)
    pmf = lambda a, v: np.exp(log_normal(v, 0.8 * k, 1) + log_poisson(k, np.exp(a)))
    known = lambda a: (-a * a / 2 + log_poisson([1, 2, 0, 3], np.exp(a)).sum() + log_poisson([2, 1, 4, 3, 2],
            2 * np.exp(a)).sum()
                       + np.log(pmf(a, 2.5).sum()) + np.log(pmf(a, 0.1).sum()))
    g = np.linspace(-3, 4, 2001)                  # the trapezoid rule's error on this smooth density is below 1e-8
    weight = np.exp([known(a) for a in g])
    weight /= weight.sum()
    near("missing counts: E a", d["a"], (weight * g).sum())
    near("missing counts: sliced", d["y.2"], sum(p * (k * pmf(a, 2.5)).sum() / pmf(a, 2.5).sum() for p, a in zip(weight, g)))
    near("missing counts: sliced, square", d["y.6"] ** 2, sum(p * (k * k * pmf(a, 0.1)).sum() / pmf(a, 0.1).sum() for p,
                                                              a in zip(weight, g)))
    near("missing counts: alone", d["z.4"], (weight * 2 * np.exp(g)).sum())
    near("missing counts: alone, square", d["z.4"] ** 2, (weight * (2 * np.exp(g) + 4 * np.exp(2 * g))).sum())

    S = np.array([[2, 1.2], [1.2, 1.5]])
    d = draws("missing_elements", """data { int N; matrix[N, 2] y; matrix[2, 2] S; }
      prior { mu ~ multi_normal([0, 0], 4 * identity_matrix(2)); }
      likelihood { for (i in 1:N) y[i] ~ multi_normal(mu, S); }""",
              {"N": 4, "y": [[1, None], [2, 1], [None, None], [0.5, -1]], "S": S}, params="mu,y")
    P = np.eye(2) / 4 + 2 * np.linalg.inv(S) + np.diag([1 / 2, 0])        # the observed parts of the rows
    h = np.linalg.inv(S) @ [2.5, 0] + [1 / 2, 0]
    mu, V = np.linalg.solve(P, h), np.linalg.inv(P)
    b = 1.2 / 2
    near("missing elements: E mu", d["mu.2"], mu[1])
    near("missing elements: one of a row", d["y.1.2"], mu[1] + b * (1 - mu[0]))
    near("missing elements: its variance", (d["y.1.2"] - mu[1] - b * (1 - mu[0])) ** 2, np.array([-b, 1]) @ V @ [-b, 1] + 1.5 - 1.2 * b)
    near("missing elements: a whole row", d["y.3.1"], mu[0])
    near("missing elements: their product", (d["y.3.1"] - mu[0]) * (d["y.3.2"] - mu[1]), V[0, 1] + 1.2)


def truncated_counts():
    """Truncated integers with unknown arguments, missing ones among them; elements of one variable with different supports."""
    y, z, u = [1, None, 2, 5], np.array([1, 0, 2]), np.array([2, 3, 4])
    d = draws("truncated_counts", """data { int N, M; int<lower=0> y[N], z[M], u[M], b[M]; }
      prior { a ~ normal(0, 1); c ~ normal(0, 1); p ~ beta(1, 1); k ~ poisson(3) T[2, 5]; }
      likelihood { for (i in 1:N) y[i] ~ poisson(exp(a)) T[1, ]; for (i in 1:M) { z[i] ~ poisson(exp(c)) T[, u[i]];
        b[i] ~ binomial(7, p) T[3, ]; } }""",
              {"N": 4, "M": 3, "y": y, "z": z, "u": u, "b": [3, 5, 4]}, params="a,c,p,k,y")
    seen = np.array([1, 2, 5])
    first, second = moments(lambda a: -a * a / 2 + (log_poisson(seen, np.exp(a)) - np.log(-np.expm1(-np.exp(a)))).sum(), -6, 4)
    near("truncated below: E a", d["a"], first)
    near("truncated below: E a^2", d["a"] ** 2, second)
    near("truncated below: a missing count is at least 1", (d["y.2"] < 1) * 1.0 + (d["a"] - first), 0)
    first, second = moments(lambda c: -c * c / 2 + (log_poisson(z, np.exp(c))
                                                    - [np.logaddexp.reduce(log_poisson(np.arange(m + 1), np.exp(c))) for m in u]).sum(), -8,
                                                    8)
    near("truncated above: E c", d["c"], first)
    near("truncated above: E c^2", d["c"] ** 2, second)
    first, second = moments(lambda p: (stats.binom.logpmf([3, 5, 4], 7, p) - stats.binom.logsf(2, 7, p)).sum(), 1e-6, 1 - 1e-6)
    near("truncated binomial: E p", d["p"], first)
    near("truncated binomial: E p^2", d["p"] ** 2, second)
    pmf = stats.poisson.pmf(np.arange(2, 6), 3)
    near("truncated unknown: E k", d["k"], (pmf * np.arange(2, 6)).sum() / pmf.sum())
    d = draws("supports", """data { real y; }
      prior { x[1] ~ exponential(1); x[2] ~ normal(0, 1); z[1] ~ uniform(0, 1); z[2] ~ uniform(1, 3); }
      likelihood { y ~ normal(x[2] + z[1] + z[2] - 2, 1); }""", {"y": -1.0}, params="x,z")
    e = np.linspace(0, 1, 401)
    z1, z2 = np.meshgrid((e[1:] + e[:-1]) / 2, 1 + e[1:] + e[:-1], indexing="ij")        # the midpoint rule's error is below 1e-5
    weight = np.exp(-(-1 - z1 - z2 + 2) ** 2 / 4)
    weight /= weight.sum()
    near("elements of several supports: E x.1", d["x.1"], 1)
    near("elements of several supports: E z.1", d["z.1"], (weight * z1).sum())
    near("elements of several supports: E z.2", d["z.2"], (weight * z2).sum())
    near("elements of several supports: E x.2", d["x.2"], (weight * (-1 - z1 - z2 + 2) / 2).sum())


def mixtures():
    """Mixtures by their indicators and as written: means of two components, zero-inflated counts, a prior of two widths, a missing value, a
    plate of components."""
    v = np.array([-1.2, 0.3, 2.5, 3.1, 2.2])
    g = np.linspace(-6, 8, 561)                   # the trapezoid rule's error on this smooth density is below 1e-8
    m1, m2 = np.meshgrid(g, g, indexing="ij")
    lp = -m1 ** 2 / 8 - (m2 - 2) ** 2 / 8
    for x in v:
        lp += np.logaddexp(np.log(0.4) - (x - m1) ** 2 / 2, np.log(0.6) - (x - m2) ** 2 / 2)
    weight = np.exp(lp - lp.max())
    weight /= weight.sum()
    model = """data { int N; vector[N] y; }\nprior { a ~ normal(0, 2); b ~ normal(2, 2); }
      likelihood { y ~ mixture(0.4, normal(a, 1), normal(b, 1)); }\n"""
    for what, request in {"indicators": "", "as written": "augment { y by none; }"}.items():
        d = draws("mixture", model + request, {"N": 6, "y": list(v) + [None]}, params="a,b,y")
        near("mixture, %s: E a" % what, d["a"], (weight * m1).sum())
        near("mixture, %s: E b^2" % what, d["b"] ** 2, (weight * m2 ** 2).sum())
        near("mixture, %s: E a b" % what, d["a"] * d["b"], (weight * m1 * m2).sum())
        near("mixture, %s: a missing value" % what, d["y.6"], (weight * (0.4 * m1 + 0.6 * m2)).sum())
    n = np.array([0, 0, 3, 1, 0, 2])
    d = draws("zeros", """data { int N; int<lower=0> y[N]; }
    prior { p ~ beta(1, 1); l ~ gamma(2, 1); b ~ mixture(0.3, normal(0, 0.1), normal(1, 2)); }
      likelihood { y ~ mixture(p, poisson(l), discrete_range(0, 0)); }""", {"N": 6, "y": n}, params="p,l,b")
    e = (np.arange(400) + 0.5) / 400              # the midpoint rule's error is below 1e-4 of the spread, far below the Monte Carlo error
    p, l = np.meshgrid(e, 15 * e, indexing="ij")
    lp = np.log(l) - l + sum(np.log(p * stats.poisson.pmf(k, l) + (1 - p) * (k == 0)) for k in n)
    weight = np.exp(lp - lp.max())
    weight /= weight.sum()
    near("zero-inflated: E p", d["p"], (weight * p).sum())
    near("zero-inflated: E l", d["l"], (weight * l).sum())
    near("zero-inflated: E p l", d["p"] * d["l"], (weight * p * l).sum())
    near("prior of two widths: E b^2", d["b"] ** 2, 0.3 * 0.01 + 0.7 * 5)
    near("prior of two widths: P(|b| < 0.2)", (abs(d["b"]) < 0.2) * 1.0, 0.3 * (1 - 2 * stats.norm.sf(2)) + 0.7
         * (stats.norm.cdf(-0.4) - stats.norm.cdf(-0.6)))
    c = np.array([-2.0, 0.5, 3.0])
    d = draws("plate", """data { int N, K; vector[N] y; vector[K] c; }\nprior { w ~ dirichlet(rep_vector(1, K)); }
      likelihood { for (i in 1:N) y[i] ~ mixture(w, normal(c, 1)); }""", {"N": 5, "K": 3, "y": v, "c": c}, params="w")
    a, b = np.meshgrid(e, e, indexing="ij")
    like = stats.norm.pdf(v[:, None], c, 1)
    rest = 1 - a - b
    weight = np.where(rest > 0, np.prod([a * f[0] + b * f[1] + rest * f[2] for f in like], axis=0), 0)
    weight /= weight.sum()
    near("plate of components: E w.1", d["w.1"], (weight * a).sum())
    near("plate of components: E w.2", d["w.2"], (weight * b).sum())


def grid(f, *axes):
    """Midpoints of boxes (lo, hi, n) and the weights of the density exp(f) there. The rule's error with smooth f and 60 points an axis is
    below 1e-3 of the spread."""
    points = np.meshgrid(*[lo + (hi - lo) * (np.arange(n) + 0.5) / n for lo, hi, n in axes], indexing="ij")
    lp = f(*points)
    weight = np.exp(lp - lp.max())
    return points, weight / weight.sum()


def series():
    """Recursive definitions: ARMA(1,1) with a missing value, GARCH(1,1) with a forecast; by grids over three parameters."""
    e = rng.normal(size=31)
    y = np.zeros(30)
    for t in range(30):
        y[t] = 0.3 + 0.5 * (y[t - 1] if t else 0.6) + e[t + 1] + 0.4 * e[t]
    y = np.round(y, 2)
    d = draws("arma", """data { int T; vector[T] y; }
      prior { phi ~ uniform(-1, 1); theta ~ uniform(-1, 1); real<lower=0> sigma ~ uniform(0.3, 3); }
      likelihood {
        nu[1] = 0.6; err[1] = y[1] - nu[1];
        for (t in 2:T) { nu[t] = 0.3 + phi * y[t - 1] + theta * err[t - 1]; err[t] = y[t] - nu[t]; }
        for (t in 1:T) y[t] ~ normal(nu[t], sigma);
      }""", {"T": 30, "y": y}, params="phi,theta,sigma,err")

    def arma(phi, theta, sigma):
        err, lp = y[0] - 0.6, 0
        for t in range(30):
            if t:
                err = y[t] - 0.3 - phi * y[t - 1] - theta * err
            lp = lp - err ** 2 / (2 * sigma ** 2) - np.log(sigma)
        return lp

    (phi, theta, sigma), weight = grid(arma, (-1, 1, 120), (-1, 1, 120), (0.3, 3, 80))
    near("ARMA: E phi", d["phi"], (weight * phi).sum())
    near("ARMA: E theta", d["theta"], (weight * theta).sum())
    near("ARMA: E phi theta", d["phi"] * d["theta"], (weight * phi * theta).sum())
    near("ARMA: E sigma", d["sigma"], (weight * sigma).sum())
    near("ARMA: a residual", d["err.2"], (weight * (y[1] - 0.3 - phi * y[0] - theta * (y[0] - 0.6))).sum())
    # The parameters known, one value missing: y is normal, and so is the missing value given the others.
    d = draws("arma_missing", """data { int T; vector[T] y; }
      prior { unused ~ normal(0, 1); }
      likelihood { nu[1] = 0; for (t in 2:T) nu[t] = 0.5 * y[t - 1] + 0.4 * (y[t - 1] - nu[t - 1]); for (t in 1:T) y[t] ~ normal(nu[t], 1);
        }""",
              {"T": 5, "y": [0.4, -1.0, None, 1.5, 0.2]}, params="y")
    A = np.zeros((5, 5))                          # the residuals are A y
    for t in range(5):
        A[t, t] = 1
        if t:
            A[t] -= 0.4 * A[t - 1]
            A[t, t - 1] -= 0.5
    P, known = A.T @ A, np.array([0.4, -1, 0, 1.5, 0.2])
    mean = -(P[2] @ known) / P[2, 2]
    near("ARMA: a missing value", d["y.3"], mean)
    near("ARMA: its variance", (d["y.3"] - mean) ** 2, 1 / P[2, 2])

    r = np.round(0.8 * rng.normal(size=40), 2)
    d = draws("garch", """data { int T; vector[T] y; }
      prior { a0 ~ uniform(0, 2); a1 ~ uniform(0, 1); b1 ~ uniform(0, 1); }
      likelihood { s2[1] = 0.7; for (t in 2:T) s2[t] = a0 + a1 * y[t - 1] ^ 2 + b1 * s2[t - 1];
        for (t in 1:T) y[t] ~ normal(0, sqrt(s2[t])); }
      predict { h[1] = a0 + a1 * y[T] ^ 2 + b1 * s2[T]; x[1] ~ normal(0, sqrt(h[1])); h[2] = a0 + a1 * x[1] ^ 2 + b1 * h[1];
        }""", {"T": 40, "y": r})

    def garch(a0, a1, b1):
        v, lp = 0.7, 0
        for t in range(40):
            if t:
                v = a0 + a1 * r[t - 1] ** 2 + b1 * v
            lp = lp - r[t] ** 2 / (2 * v) - np.log(v) / 2
        garch.ahead = a0 + a1 * r[39] ** 2 + b1 * v
        return lp

    (a0, a1, b1), weight = grid(garch, (0, 2, 150), (0, 1, 100), (0, 1, 100))
    near("GARCH: E a0", d["a0"], (weight * a0).sum())
    near("GARCH: E a1", d["a1"], (weight * a1).sum())
    near("GARCH: E b1", d["b1"], (weight * b1).sum())
    near("GARCH: E a1 b1", d["a1"] * d["b1"], (weight * a1 * b1).sum())
    near("GARCH: one step ahead", d["h.1"], (weight * garch.ahead).sum())
    near("GARCH: two steps ahead", d["h.2"], (weight * (a0 + (a1 + b1) * garch.ahead)).sum())


def one_after_the_other():
    """Coefficients drawn one by one, whose kernel keeps the predictors of the rows up to date: by slice, and truncated; by grids."""
    head = "data { int N, p; matrix[N, p] X; %s; }\nprior { for (j in 1:p) b[j] ~ normal(0, 1)%s; }\n"
    counts = np.round(np.exp(X @ [0.5, -0.3]) + 0.5)
    d = draws("rates", head % ("int<lower=0> y[N]", "") + "likelihood { for (i in 1:N) y[i] ~ poisson(exp(X[i] * b)); }",
              {"N": 30, "p": 2, "X": X, "y": counts.astype(int)})
    (b1, b2), weight = grid(lambda b1, b2: -(b1 ** 2 + b2 ** 2) / 2 + sum(c * (u * b1 + v * b2) - np.exp(u * b1 + v * b2) for (u, v),
                                                                          c in zip(X, counts)), (-2, 2, 300), (-2, 2, 300))
    near("rates by slice: E b.1", d["b.1"], (weight * b1).sum())
    near("rates by slice: E b.2", d["b.2"], (weight * b2).sum())
    near("rates by slice: E b.1 b.2", d["b.1"] * d["b.2"], (weight * b1 * b2).sum())
    values = X @ [0.3, 0.2] + np.round(rng.normal(size=30), 2)
    d = draws("positive", head % ("vector[N] y", " T[0, ]") + "likelihood { for (i in 1:N) y[i] ~ student_t(4, X[i] * b, 1); }",
              {"N": 30, "p": 2, "X": X, "y": values})
    (b1, b2), weight = grid(lambda b1, b2: -(b1 ** 2 + b2 ** 2) / 2 - 2.5 * sum(np.log1p((c - u * b1 - v * b2) ** 2 / 4) for (u, v),
            c in zip(X, values)), (0, 3, 300), (0, 3, 300))
    near("positive coefficients: E b.1", d["b.1"], (weight * b1).sum())
    near("positive coefficients: E b.2", d["b.2"], (weight * b2).sum())
    near("positive coefficients: E b.1 b.2", d["b.1"] * d["b.2"], (weight * b1 * b2).sum())


def categories():
    """Counts of three categories by Polya-Gamma, moments by quadrature over both logits: if latents were drawn under an old offset,
    variances would be 0.5114 and 0.2745 and the covariance 0.0814."""
    d = draws("counts", """data { int K; int<lower=0> Y[K]; } prior { for (k in 1:K - 1) a[k] ~ normal(0, 2); }
    likelihood { Y ~ multinomial_logit(append_row(a, [0])); } infer { a by gibbs; }""", {"K": 3, "Y": [2, 5, 13]}, samples=100000)
    (a1, a2), weight = grid(lambda a1, a2: -(a1 ** 2 + a2 ** 2) / 8 + 2 * a1 + 5 * a2 - 20 * np.logaddexp(np.logaddexp(a1, a2), 0),
                            (-7, 3, 400), (-7, 3, 400))
    m1, m2 = (weight * a1).sum(), (weight * a2).sum()
    near("counts of categories: E a.1", d["a.1"], m1)
    near("counts of categories: E a.2", d["a.2"], m2)
    near("counts of categories: var a.1", (d["a.1"] - m1) ** 2, (weight * (a1 - m1) ** 2).sum())
    near("counts of categories: var a.2", (d["a.2"] - m2) ** 2, (weight * (a2 - m2) ** 2).sum())
    near("counts of categories: cov a.1 a.2", (d["a.1"] - m1) * (d["a.2"] - m2), (weight * (a1 - m1) * (a2 - m2)).sum())
    # Categories that are listed, and the log of a sum that is written out: an update for each.
    d = draws("listed", """data { int N; } prior { a1 ~ normal(0, 2); a2 ~ normal(0, 2); }
    likelihood { for (i in 1:N) target += 2 * a1 + 5 * a2 - 20 * log(1 + exp(a1) + exp(a2)); } infer { a1 by gibbs; a2 by gibbs;
      }""", {"N": 1}, samples=100000)
    near("categories that are listed: E a1", d["a1"], m1)
    near("categories that are listed: E a2", d["a2"], m2)
    near("categories that are listed: var a1", (d["a1"] - m1) ** 2, (weight * (a1 - m1) ** 2).sum())
    near("categories that are listed: cov a1 a2", (d["a1"] - m1) * (d["a2"] - m2), (weight * (a1 - m1) * (a2 - m2)).sum())
    # Without a reference; a category that is never seen, a row of no trials, a group without rows.
    d = draws("unseen", """data { int N, K, G; int<lower=0> Y[N, K]; int g[N]; }
    prior { for (h in 1:G, k in 1:K) u[h, k] ~ normal(0.3 * k, 1.5); }
    likelihood { for (i in 1:N) Y[i] ~ multinomial_logit(u[g[i]]); } infer { u by gibbs; }""",
              {"N": 3, "K": 3, "G": 3, "Y": [[2, 0, 1], [0, 0, 0], [4, 0, 2]], "g": [1, 2, 1]}, samples=50000)
    t = np.linspace(-7, 8, 121)
    u1, u2, u3 = np.meshgrid(t, t, t, indexing="ij")
    log_density = 6 * u1 + 3 * u3 - 9 * logsumexp([u1, u2, u3], axis=0) - sum((u - 0.3 * (k + 1)) ** 2 for k,
                                                                              u in enumerate((u1, u2, u3))) / 4.5
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    for k, u in enumerate((u1, u2, u3)):
        m, v = (weight * u).sum(), (weight * u ** 2).sum()
        near("a category that is never seen: E u.1.%d" % (k + 1), d["u.1.%d" % (k + 1)], m)
        near("a category that is never seen: E u.1.%d^2" % (k + 1), d["u.1.%d" % (k + 1)] ** 2, v)
        for h in (2, 3):
            near("no trials: E u.%d.%d" % (h, k + 1), d["u.%d.%d" % (h, k + 1)], 0.3 * (k + 1))
            near("no trials: var u.%d.%d" % (h, k + 1), (d["u.%d.%d" % (h, k + 1)] - 0.3 * (k + 1)) ** 2, 2.25)
    near("a category that is never seen: E u.1.1 u.1.3", d["u.1.1"] * d["u.1.3"], (weight * u1 * u3).sum())


with w:
    for part in (no_data, normal_known_answer, blocks, forms_of_probit, one_coefficient, one_after_the_other, missing, truncated_counts,
                 mixtures, series, categories):
        before, random = len(rows), rng.bit_generator.state
        for stage in (0, 1):
            del rows[before:]
            rng.bit_generator.state = random
            try:
                part()
            except Failed as e:
                rows.append((False, "%s: %s" % (part.__name__, e)))
            if all(good for good, _ in rows[before:]):
                break
    report(rows)
