"""The first chain of a probit regression of 20,000 rows and 150 columns, and of a mixture of regressions of 40,000 rows, run with different
numbers of threads and of other chains."""
import csv
import os
import subprocess

import numpy as np

from program import ROOT, Workplace

RUNS = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 2)]          # chains, threads

KEYED = """data { int<lower=1> N, p, K, D; matrix[N, p] X; vector[N] y; int<lower=1, upper=D> d[N]; }
prior { for (j in 1:D) w[j] ~ dirichlet(rep_vector(1, K)); for (k in 1:K) { s2[k] ~ inv_gamma(3, 2);
  for (j in 1:p) beta[k, j] ~ normal(0, 2); } }
latent { for (i in 1:N) c[i] ~ categorical(w[d[i]]); }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * beta[c[i]], sqrt(s2[c[i]])); }
"""
EXTREMES = """data { int<lower=0> N; vector<lower=0>[N] u; }
prior { theta ~ pareto(1, 2); m ~ normal(0, 1); }
latent { for (i in 1:N) z[i] ~ normal(m, 1); for (i in 1:N) k[i] ~ poisson(2); }
likelihood { for (i in 1:N) u[i] ~ uniform(0, theta); }
predict { least = min(z); most = max(z); count = max(k); }
"""


def wrong_extremes():
    """Draws of three threads whose extremes are not those of the latents beside them, or whose theta is below the data."""
    with open(w.path("draws_1.csv")) as f:
        rows = list(csv.reader(line for line in f if not line.startswith("#")))
    columns, x = rows[0], np.array(rows[1:], dtype=float)
    z, k = (x[:, [n.startswith(v + ".") for n in columns]] for v in "zk")
    least, most, count, theta = (x[:, columns.index(n)] for n in ("least", "most", "count", "theta"))
    return int(((least != z.min(axis=1)) | (most != z.max(axis=1)) | (count != k.max(axis=1)) | (theta < 3)).sum())


def different(program, given, params):
    """How many different draws the runs give."""
    draws = set()
    for chains, threads in RUNS:
        subprocess.run([program] + given + ["--device", "cpu", "--seed", "3", "--chains", str(chains), "--threads",
                        str(threads), "--warmup", "1", "--samples", "3", "--params", params, "--no-summary", "-q",
                        "--overwrite", "-o", w.path("draws")],
                        check=True)
        with open(w.path("draws_1.csv")) as f:
            draws.add("".join(line for line in f if not line.startswith("#")))
    return len(draws)


with Workplace() as w:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20000, 150))
    np.save(w.path("X.npy"), X)
    np.save(w.path("y.npy"), (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int32))
    with open(os.path.join(ROOT, "tests/bench/horseshoe.gm")) as f:
        program = w.compile("horseshoe", f.read())
    print("%d runs, %d different" % (len(RUNS), different(program, ["X=" + w.path("X.npy"), "y=" + w.path("y.npy")], "beta,tau")))
    X = rng.normal(size=(40000, 3))
    np.save(w.path("Z.npy"), X)
    np.save(w.path("u.npy"), X[:, 0] * rng.integers(0, 3, len(X)) + rng.normal(size=len(X)))
    np.save(w.path("d.npy"), rng.integers(1, 51, len(X)).astype(np.int32))
    given = ["X=" + w.path("Z.npy"), "y=" + w.path("u.npy"), "d=" + w.path("d.npy"), "K=3", "D=50"]
    print("%d runs by a drawn key, %d different" % (len(RUNS), different(w.compile("keyed", KEYED), given, "beta,s2,w")))
    np.save(w.path("ends.npy"), np.append(rng.uniform(0, 2.5, 29999), 3))
    alike = different(w.compile("extremes", EXTREMES), ["u=" + w.path("ends.npy")], "theta,least,most,count,z,k")
    print("%d runs with extremes, %d different, %d wrong" % (len(RUNS), alike, wrong_extremes()))
