"""Models of peers.py for nutpie, written for PyMC: nutpie_models.py NAME data.json draws.npz SEED DRAWS. Numba compiles; seconds are those
of the processor, compiling apart."""
import json
import sys
import time

import numpy as np
import nutpie
import pymc as pm
import pytensor.tensor as pt


def pdb_eight_schools_noncentered(d):
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    z = pm.Normal("theta_trans", 0, 1, shape=d["J"])
    theta = pm.Deterministic("theta", mu + tau * z)
    pm.Normal("y", theta, d["sigma"], observed=d["y"])


def bugs_pump(d):
    alpha = pm.Exponential("alpha", 1)
    beta = pm.Gamma("beta", 0.1, 1)
    theta = pm.Gamma("theta", alpha, beta, shape=d["N"])
    pm.Poisson("x", theta * d["t"], observed=d["x"])


def bugs_rats(d):
    x = d["x"] - d["x"].mean()
    alpha_c = pm.Normal("alpha_c", 0, 100)
    beta_c = pm.Normal("beta_c", 0, 100)
    tau_c, tau_alpha, tau_beta = (pm.Gamma(k, 0.001, 0.001) for k in ("tau_c", "tau_alpha", "tau_beta"))
    alpha = pm.Normal("alpha", alpha_c, 1 / pt.sqrt(tau_alpha), shape=d["N"])
    beta = pm.Normal("beta", beta_c, 1 / pt.sqrt(tau_beta), shape=d["N"])
    pm.Normal("Y", alpha[:, None] + beta[:, None] * x[None, :], 1 / pt.sqrt(tau_c), observed=d["Y"])


def bugs_seeds(d):
    a = [pm.Normal(k, 0, 1000) for k in ("alpha0", "alpha1", "alpha2", "alpha12")]
    tau = pm.Gamma("tau", 0.001, 0.001)
    b = pm.Normal("b", 0, 1 / pt.sqrt(tau), shape=d["N"])
    pm.Binomial("r", d["n"], logit_p=a[0] + a[1] * d["x1"] + a[2] * d["x2"] + a[3] * d["x1"] * d["x2"] + b, observed=d["r"])


def covariance(d, rho, alpha):
    return alpha**2 * pt.exp(-((d["x"][:, None] - d["x"][None, :]) ** 2) / (2 * rho**2))


def pdb_gp_regr(d):
    rho = pm.Gamma("rho", 25, 4)
    alpha = pm.HalfNormal("alpha", 2)
    sigma = pm.HalfNormal("sigma", 1)
    pm.MvNormal("y", np.zeros(d["N"]), covariance(d, rho, alpha) + sigma * np.eye(d["N"]), observed=d["y"])


def gp_poisson(d):
    rho = pm.Gamma("rho", 25, 4)
    alpha = pm.HalfNormal("alpha", 2)
    z = pm.Normal("z", 0, 1, shape=d["N"])
    f = pm.Deterministic("f", pt.linalg.cholesky(covariance(d, rho, alpha) + 1e-10 * np.eye(d["N"])) @ z)
    pm.Poisson("k", pt.exp(f), observed=d["k"])


def line(d, alpha=True):
    a = pm.Normal("alpha", 0, 2.5) if alpha else 0
    return a + pt.dot(d["X"], pm.Normal("beta", 0, 2.5, shape=d["p"]))


def neg_binomial(d):
    eta = line(d)
    pm.NegativeBinomial("y", mu=pt.exp(eta), alpha=pm.Exponential("phi", 1), observed=d["y"])


def ref_logit_pima(d):
    pm.Bernoulli("y", logit_p=line(d), observed=d["y"])


def ordered_logit(d):
    c = pm.Normal("c", 0, 5, shape=d["K"] - 1, transform=pm.distributions.transforms.ordered, initval=np.linspace(-1, 1, d["K"] - 1))
    pm.OrderedLogistic("y", line(d, False), c, observed=d["y"] - 1, compute_p=False)


def grouped(d):
    eta = line(d)
    s = pm.HalfCauchy("s", 1)
    return eta + pm.Normal("u", 0, s, shape=d["G"])[d["group"] - 1]


def mixed_poisson(d):
    pm.Poisson("y", pt.exp(grouped(d)), observed=d["y"])


def mixed_logit(d):
    pm.Bernoulli("y", logit_p=grouped(d), observed=d["y"])


def pdb_low_dim_gauss_mix(d):
    theta = pm.Beta("theta", 5, 5)
    mu = pm.Normal("mu", 0, 2, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1, 1])
    sigma = pm.HalfNormal("sigma", 2, shape=2)
    pm.NormalMixture("y", pt.stack([theta, 1 - theta]), mu, sigma, observed=d["y"])


def main():
    name, data, out, seed, draws = sys.argv[1:]
    with open(data) as f:
        d = {k: np.array(v) if isinstance(v, list) else v for k, v in json.load(f).items()}
    with pm.Model() as model:
        globals()[name](d)
    compiled = nutpie.compile_pymc_model(model, backend="numba")
    more = dict(chains=1, cores=1, seed=int(seed), progress_bar=False)
    nutpie.sample(compiled, tune=10, draws=10, **more)          # what is left to be compiled
    start = time.process_time()
    nutpie.sample(compiled, tune=1000, draws=1, **more)
    warmup = time.process_time() - start
    start = time.process_time()
    trace = nutpie.sample(compiled, tune=1000, draws=int(draws), **more)
    whole = time.process_time() - start
    posterior = {k: v.values[0] for k, v in trace.posterior.items()}
    np.savez(out, _warmup=warmup, _sampling=max(whole - warmup, 1e-6), _divergent=int(trace.sample_stats.diverging.values.sum()),
             **posterior)


main()
