"""Chains that adapt together (`by chees`, `--moves chees`): posteriors that are known, alone and beside other updates, the same draws with
any number of threads, effective draws for the same work beside NUTS, and what is said. Bounds of 6 Monte Carlo errors (from 25 batches of
each of 32 chains: 3e-9 a check), seeds fixed. Effective draws of the worse of an element and its square, since antithetic draws have good
means and poor squares; on these two models ChEES has 2.8 and 2.5 times those of NUTS, so that 1 is sure.

    together.py [PART...]
"""
import subprocess
import sys

import numpy as np
from scipy.special import logsumexp

from program import Workplace, mcse

CHAINS = 32
# As a term, so that its coordinates stay correlated: effects would be standardised.
CORRELATED = """data { int<lower=2> K; }
prior { x[1] ~ normal(0, 1); for (k in 2:K) { x[k] ~ flat(); target += -square(x[k] - 0.9 * x[k - 1]) / 0.38; } }
infer { x by chees(accept = 0.75); }
"""
SCALED = """data { int<lower=2> K; }
prior { for (k in 1:K) x[k] ~ normal(0, 1 + 29.0 * (k - 1) / (K - 1)); }
infer { x by METHOD; }
"""
LOGISTIC = """data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { vector[p] x ~ normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * x); }
infer { x by METHOD; }
"""
SCHOOLS = """data { int J; vector[J] y, sigma; }
prior { mu ~ normal(0, 5); tau ~ half_cauchy(0, 5); for (j in 1:J) z[j] ~ normal(0, 1); }
likelihood { for (j in 1:J) y[j] ~ normal(mu + tau * z[j], sigma[j]); }
infer { (mu, tau, z) by chees; }
"""
BESIDE = """data { int N; vector[N] x, y; }
prior { a ~ normal(0, 2); b ~ normal(0, 2); s2 ~ inv_gamma(3, 4); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], sqrt(s2)); }
infer { a by chees; b by chees; }
"""


def near(what, draws, known):
    z = abs(draws.mean() - known) / mcse(draws)
    print("%s: %s" % (what, "as known" if z < 6 else "%g, known %g, %g errors off" % (draws.mean(), known, z)))


def moments(what, draws, at, p):
    for power in (1, 2):
        near("%s, power %d" % (what, power), draws ** power, (p * at ** power).sum())


def per_gradient(d):
    """Effective draws a leapfrog step, of the worst of the elements and their squares."""
    return min(v.var() / (mcse(v) ** 2 * v.size) for k in d if k.startswith("x.") for v in (d[k], d[k] ** 2)) / d["n_leapfrog__"].mean()


def said(program, *options):
    ran = subprocess.run([program, *options], capture_output=True, text=True)
    print("%d: %s" % (ran.returncode, (ran.stderr or ran.stdout).strip().splitlines()[-1]))


def correlated(w):
    program, data = w.compile("correlated", CORRELATED), w.data("correlated", {"K": 10})
    d = w.draws(program, data, 1000, chains=CHAINS, warmup=400)
    for k in (1, 10):
        near("correlated: mean of x[%d]" % k, d["x.%d" % k], 0)
        near("correlated: square of x[%d]" % k, d["x.%d" % k] ** 2, 1)
    near("correlated: product of the ends", d["x.1"] * d["x.10"], 0.9 ** 9)
    print("correlated: depth %g, accepted about 0.75: %s" % (d["treedepth__"].max(), abs(d["accept_stat__"].mean() - 0.75) < 0.06))
    print("correlated: all chains take as many steps: %s, not always the same: %s" % ((d["n_leapfrog__"] == d["n_leapfrog__"][0]).all(),
            len(set(d["n_leapfrog__"][0])) > 3))
    same = []
    for threads in ("1", "2", "3"):
        subprocess.run([program, data, "--chains", "6", "--warmup", "150", "--samples", "20", "--seed", "3", "--threads", threads,
                        "--overwrite", "-o",
                        program + "_t", "-q"], check=True, capture_output=True)
        with open(program + "_t_5.csv") as f:
            same.append("".join(line for line in f if "_datetime" not in line).split("# \n#  Elapsed")[0])
    print("correlated: %s with any number of threads" % ("the same" if same[0] == same[1] == same[2] else "other draws"))
    print(same[0][same[0].index("# x:"):].splitlines()[0])
    said(program, data, "--chains", "3")
    said(program, data, "--warmup", "50")
    subprocess.run([program, data, "--chains", "1", "--samples", "10", "--moves", "nuts",
                    "--overwrite", "-o", program + "_n", "-q"], check=True,
                   capture_output=True)
    with open(program + "_n_1.csv") as f:
        print("by nuts on demand: %s" % ("moved" if max(float(line.split(",")[3]) for line in f if line[0] in "-0123456789") > 0
                                         else "together"))


def schools(w):
    y, sigma = np.array([28, 8, -3, 7, -1, 1, 18, 12.0]), np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    program, data = w.compile("schools", SCHOOLS), w.data("schools", {"J": 8, "y": y, "sigma": sigma})
    d = w.draws(program, data, 1500, chains=CHAINS, warmup=500)
    tau = np.exp(np.linspace(np.log(1e-3), np.log(300), 4000))
    v = tau[:, None] ** 2 + sigma ** 2
    precision = 1 / 25 + (1 / v).sum(1)
    mu = (y / v).sum(1) / precision
    log_p = np.log(tau) - np.log1p(tau ** 2 / 25) - 0.5 * np.log(v).sum(1) - 0.5 * np.log(precision) - 0.5 * (y ** 2
            / v).sum(1) + 0.5 * mu ** 2 * precision
    p = np.exp(log_p - logsumexp(log_p))
    near("schools: mu", d["mu"], (p * mu).sum())
    near("schools: square of mu", d["mu"] ** 2, (p * (mu ** 2 + 1 / precision)).sum())
    near("schools: log of tau", np.log(d["tau"]), (p * np.log(tau)).sum())
    near("schools: tau below 3", (d["tau"] < 3) * 1.0, p[tau < 3].sum())


def beside(w):
    rng = np.random.default_rng(8)
    x = rng.normal(size=12).round(2)
    y = (1 + 0.5 * x + 1.5 * rng.normal(size=12)).round(2)
    program, data = w.compile("beside", BESIDE), w.data("beside", {"N": 12, "x": x, "y": y})
    d = w.draws(program, data, 1500, chains=CHAINS, warmup=300)
    X, s2 = np.stack([np.ones(12), x], 1), np.exp(np.linspace(np.log(0.1), np.log(60), 3000))
    S = s2[:, None, None] * np.eye(12) + 4 * X @ X.T
    log_p = -3 * np.log(s2) - 4 / s2 - (y @ np.linalg.inv(S) @ y + np.linalg.slogdet(S)[1]) / 2
    p = np.exp(log_p - logsumexp(log_p))
    moments("beside: log of s2", np.log(d["s2"]), np.log(s2), p)
    V = np.array([np.linalg.inv(X.T @ X / s + np.eye(2) / 4) for s in s2])
    m = np.einsum("sij,j,s->si", V, X.T @ y, 1 / s2)
    for k, name in enumerate("ab"):
        near("beside: mean of " + name, d[name], (p * m[:, k]).sum())
        near("beside: square of " + name, d[name] ** 2, (p * (m[:, k] ** 2 + V[:, k, k])).sum())


def worth(w):
    rng = np.random.default_rng(9)
    Z = rng.normal(size=(300, 10)) * (1 + np.arange(10) % 4)
    for name, model, values in (("scaled", SCALED, {"K": 100}),
                                ("logistic", LOGISTIC, {"N": 300, "p": 10, "X": Z,
                                                        "y": (rng.random(300) < 1 / (1 + np.exp(-Z @ (0.3 * (np.arange(10) % 3 - 1)))))
                                                        * 1})):
        data, of = w.data(name, values), {}
        for method in ("chees", "nuts"):
            of[method] = per_gradient(w.draws(w.compile(name + "_" + method, model.replace("METHOD", method)), data, 500, chains=CHAINS,
                                              warmup=300))
        print("%s: chees has %s effective draws a gradient than nuts" % (name, "no fewer" if of["chees"] > of["nuts"]
                                                                         else "fewer (%g against %g)" % (of["chees"], of["nuts"])))
        if name == "scaled":
            subprocess.run([w.path("scaled_nuts"), data, "--moves", "chees", "--warmup", "100", "--samples", "10", "-q"], check=True,
                           capture_output=True)


def refused(w):
    plain = w.compile("plain", "prior { m ~ normal(0, 1); }\n")
    said(plain, "--moves", "chees")
    said(plain, "--moves", "both")


with Workplace() as workplace:
    for part in (correlated, schools, beside, worth, refused):
        if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
            part(workplace)
