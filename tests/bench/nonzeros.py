"""Matrices of predictors most of whose elements are 0, and dense ones of many columns: ms of processor time a sweep by the route that is
chosen and by others (GM_JOINT), and what --profile says of it.

    nonzeros.py [SWEEPS]
"""
import os
import resource
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stat"))
from program import Workplace

rng = np.random.default_rng(1)
NORMAL = """data { int N, p; matrix[N, p] X; vector[N] y; }
prior { vector[p] beta ~ normal(0, 2); s ~ half_cauchy(0, 1); }
likelihood { y ~ normal(X * beta, s); }"""
HORSESHOE = """data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, 5); tau ~ half_cauchy(0, 0.1); for (j in 1:p) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, tau * lambda[j]);
  } }
likelihood { y ~ bernoulli_logit(a + X * beta); }"""
COUNTS = """data { int N, p; matrix[N, p] X; int<lower=0> y[N]; }
prior { a ~ normal(0, 5); vector[p] beta ~ normal(0, 0.3); }
likelihood { y ~ poisson_log(a + X * beta); }
infer { (a, beta) by nuts; }"""


def design(w, name, N, p, k, kind):
    """k elements of a row are not 0."""
    X = np.zeros((N, p))
    for i in range(N):
        at = rng.choice(p, k, replace=False) if k < p else np.arange(p)
        X[i, at] = 1 if kind == "logit" and k < p else rng.normal(size=k)
    eta = X @ np.where(rng.random(p) < 0.05, 1.0 if kind != "counts" else 0.3, 0)
    y = eta + rng.normal(size=N) if kind == "normal" else rng.poisson(np.exp(np.clip(eta, -5, 5))) if kind == "counts" else (rng.random(N)
            < 1 / (1 + np.exp(2 - eta))).astype(int)
    np.save(w.path(name + "_X.npy"), X)
    return [w.data(name, {"N": N, "p": p, "y": y}), "X=" + w.path(name + "_X.npy")]


def time_of(program, data, sweeps, route, w):
    used = []
    for n in (2, 2 + sweeps):                    # the difference: without reading and ordering
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run([program, *data, "--samples", str(n), "--warmup", "1", "--chains", "1", "--threads", "1", "--no-summary",
                              "--profile", "--overwrite", "-o", w.path("draws")], capture_output=True, text=True,
                             env={**os.environ, **({"GM_JOINT": route} if route else {})}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1e3 * (used[1] - used[0]) / sweeps, [line for line in ran.stdout.splitlines() if "elements, " in line or "of whose" in line]


def main():
    sweeps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with Workplace() as w:
        programs = {"normal": w.compile("normal", NORMAL), "logit": w.compile("logit", HORSESHOE), "counts": w.compile("counts", COUNTS)}
        for kind, N, p, k, routes in (("normal", 20000, 2000, 5, ("", "dense")), ("logit", 20000, 2000, 20, ("", "dense")),
                                      ("normal", 20000, 10000, 5, ("",)), ("logit", 5000, 20000, 20, ("",)),
                                      ("logit", 4000, 4000, 4000, ("", "dense")),
                                      ("counts", 20000, 2000, 5, ("",))):
            data = design(w, kind, N, p, k, kind)
            for route in routes:
                ms, said = time_of(programs[kind], data, sweeps if not route else 2, route, w)
                print("%-8s %6d rows, %6d columns, %5d not 0   %-8s %9.1f ms a sweep   %s" % (kind, N, p, k, route or "chosen", ms,
                        "; ".join(said)), flush=True)


main()
