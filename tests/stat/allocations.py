"""Mixtures of few observations against the sum over all allocations: how often two observations are of one component, how many components
are empty, and what the parameters of components, empty ones among them, come to. Nothing compared depends on the labels, or the labels are
exchangeable. z is the difference over its Monte Carlo error; the bound is 6 and the seeds are fixed: a change of random numbers rings
falsely less than once in 10^6 checks.

One component is compared with the closed form of its normal-inverse-Wishart posterior (Murphy 2007, Conjugate Bayesian analysis of the
Gaussian distribution)."""
from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from program import Failed, Workplace, mcse, report

rows = []
w = Workplace()


def near(what, x, known):
    z = (x.mean() - known) / mcse(x) if x.std() > 0 else 0 if abs(x.mean() - known) < 1e-9 else np.inf
    rows.append((abs(z) < 6, "%s: %.4f, known %.4f, |z| %.2f < 6" % (what, x.mean(), known, abs(z))))


def compare(name, model, data, params, N, K, alpha, log_marginal, component):
    """`log_marginal`: of the rows of a set under one component, its parameters integrated out. `component`: name of a column of component 1
    -> (function of its draws, function of a set that gives its posterior mean); the mean over allocations is compared."""
    d = w.draws(w.compile(name, model), w.data(name, data), samples=40000, seed=1, params=params)
    log_weight, together, empty, means = [], [], [], {column: [] for column in component}
    sets = {}
    for c in product(range(K), repeat=N):
        c = np.array(c)
        counts = np.bincount(c, minlength=K)
        lw = gammaln(counts + alpha).sum()
        for k in range(K):
            members = tuple(np.flatnonzero(c == k))
            if members not in sets:
                sets[members] = log_marginal(members), {column: f[1](members) for column, f in component.items()}
            lw += sets[members][0]
        log_weight.append(lw)
        together.append(c[:, None] == c[None, :])
        empty.append((counts == 0).sum())
        for column in component:
            means[column].append(sets[tuple(np.flatnonzero(c == 0))][1][column])
    log_weight = np.array(log_weight)
    weight = np.exp(log_weight - logsumexp(log_weight))
    label = next(column[:-2] for column in d.keys() if column.endswith(".1") and column.split(".")[0] in ("c", "z_y"))
    c = np.array([d["%s.%d" % (label, i + 1)] for i in range(N)])
    known = np.einsum("a,aij->ij", weight, np.array(together))
    for i in range(N):
        for j in range(i):
            near("%s: %d and %d together" % (name, j + 1, i + 1), (c[i] == c[j]) * 1.0, known[i, j])
    near("%s: empty components" % name, K - np.array([(c == k + 1).any(axis=0) for k in range(K)]).sum(axis=0) * 1.0,
         (weight * empty).sum())
    for column, f in component.items():
        near("%s: %s" % (name, column), f[0](d[column]), (weight * means[column]).sum())


def univariate():
    y = np.array([-1.4, -0.9, -1.1, 0.1, 0.4, 1.2, 1.5, 2.2])
    def posterior(members):
        precision = 1 / 4 + len(members)
        return y[list(members)].sum() / precision, precision
    def log_marginal(members):
        v = y[list(members)]
        mean, precision = posterior(members)
        return -len(v) / 2 * np.log(2 * np.pi) - 0.5 * np.log(4 * precision) - 0.5 * ((v ** 2).sum() - mean ** 2 * precision)
    prior = "data { int N, K; vector[N] y; }\nprior { w ~ dirichlet(rep_vector(0.8, K)); for (k in 1:K) mu[k] ~ normal(0, 2); }\n"
    square = {"mu.1": (np.square, lambda m: posterior(m)[0] ** 2 + 1 / posterior(m)[1])}
    compare("by_indicator", prior + "latent { for (i in 1:N) c[i] ~ categorical(w); }\nlikelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], "
                                    "1); }\ninfer { mu by gibbs; }",
            {"N": 8, "K": 2, "y": y}, "c,mu", 8, 2, 0.8, log_marginal, square)
    y = y[[0, 3, 5, 7]]                          # more components than observations: most are empty
    compare("mostly_empty", prior + "likelihood { for (i in 1:N) y[i] ~ mixture(w, normal(mu, 1)); }", {"N": 4, "K": 5, "y": y}, "z_y,mu",
            4, 5, 0.8, log_marginal, square)


def multivariate():
    y = np.array([[-1.0, 0.2], [-1.3, -0.4], [-0.2, 0.9], [0.5, 0.3], [1.4, -0.8], [1.9, 0.1], [1.1, 1.6]])
    m0, kappa, nu, S0 = np.array([0.2, 0.1]), 0.5, 5.0, np.array([[1.0, 0.3], [0.3, 0.8]])
    def posterior(members):
        v = y[list(members)].reshape(-1, 2)
        n = len(v)
        mean = v.mean(axis=0) if n else np.zeros(2)
        S = S0 + (v - mean).T @ (v - mean) + kappa * n / (kappa + n) * np.outer(mean - m0, mean - m0)
        return (kappa * m0 + n * mean) / (kappa + n), kappa + n, nu + n, S
    def log_marginal(members):
        n = len(members)
        _, k, v, S = posterior(members)
        return (-n * np.log(np.pi) + multigammaln(v / 2, 2) - multigammaln(nu / 2, 2) + nu / 2 * np.linalg.slogdet(S0)[1] - v / 2
                * np.linalg.slogdet(S)[1]
                + np.log(kappa / k))
    prior = """data { int N, K; matrix[N, 2] y; vector[2] m; matrix[2, 2] S; real kappa, nu; }
      prior { w ~ dirichlet(rep_vector(1.5, K)); for (k in 1:K) { Sigma[k] ~ inv_wishart(nu, S);
              mu[k] ~ multi_normal(m, Sigma[k] / kappa); } }\n"""
    data = {"m": m0, "S": S0, "kappa": kappa, "nu": nu}
    component = {"mu.1.2": (lambda x: x, lambda s: posterior(s)[0][1]), "Sigma.1.2.1": (lambda x: x,
            lambda s: posterior(s)[3][1, 0] / (posterior(s)[2] - 3)),
                 # Sigma[1, 1] is inv_gamma((nu - 1)/2, S[1, 1]/2)
                 "Sigma.1.1.1": (lambda x: 1 / x, lambda s: (posterior(s)[2] - 1) / posterior(s)[3][0, 0])}
    indicator = (prior + "latent { for (i in 1:N) c[i] ~ categorical(w); }\nlikelihood { for (i in 1:N) y[i] ~ multi_normal(mu[c[i]], "
                         "Sigma[c[i]]); }\ninfer { mu by gibbs; Sigma by gibbs; }")
    compare("multivariate", indicator, {"N": 7, "K": 2, "y": y, **data}, "c,mu,Sigma", 7, 2, 1.5, log_marginal, component)
    y = y[:3]
    compare("as_mixture", prior + "likelihood { for (i in 1:N) y[i] ~ mixture(w, multi_normal(mu, Sigma)); }\ninfer { w by gibbs; mu by "
                                  "gibbs; Sigma by gibbs; }", {"N": 3, "K": 4, "y": y, **data}, "z_y,mu,Sigma", 3, 4, 1.5, log_marginal,
                                  component)
    compare("one_component", indicator, {"N": 3, "K": 1, "y": y, **data}, "c,mu,Sigma", 3, 1, 1.5, log_marginal, component)


def classes():
    """Latent classes of rows of categories."""
    y = np.array([[1, 2, 3], [1, 2, 2], [2, 1, 3], [3, 1, 1], [1, 3, 3], [2, 1, 1]])
    def log_marginal(members):
        v = y[list(members)].reshape(-1, 3)
        return sum(gammaln(1 + np.bincount(v[:, j], minlength=4)[1:]).sum() - gammaln(3 + len(v)) + gammaln(3) for j in range(3))
    compare("latent_classes", """data { int N, J, K, C; int<lower=1, upper=C> y[N, J]; }
      prior { w ~ dirichlet(rep_vector(1, K)); for (k in 1:K, j in 1:J) theta[k, j] ~ dirichlet(rep_vector(1, C)); }
      latent { for (i in 1:N) c[i] ~ categorical(w); }\nlikelihood { for (i in 1:N, j in 1:J) y[i, j] ~ categorical(theta[c[i], j]); }""",
            {"N": 6, "J": 3, "K": 2, "C": 3, "y": y}, "c,theta", 6, 2, 1, log_marginal,
            {"theta.1.2.1": (lambda x: x, lambda s: (1 + (y[list(s), 1] == 1).sum()) / (3 + len(s)))})


with w:
    for part in (univariate, multivariate, classes):
        try:
            part()
        except Failed as e:
            rows.append((False, "%s: %s" % (part.__name__, e)))
    report(rows)
