"""The first chain of a probit regression of 20,000 rows and 150 columns, run with different numbers of threads and of other chains."""
import os
import subprocess

import numpy as np

from program import ROOT, Workplace

RUNS = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 2)]          # chains, threads

with Workplace() as w:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20000, 150))
    np.save(w.path("X.npy"), X)
    np.save(w.path("y.npy"), (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int32))
    with open(os.path.join(ROOT, "tests/bench/horseshoe.gm")) as f:
        program = w.compile("horseshoe", f.read())
    draws = set()
    for chains, threads in RUNS:
        subprocess.run([program, "X=" + w.path("X.npy"), "y=" + w.path("y.npy"), "--device", "cpu", "--seed", "3", "--chains", str(chains), "--threads",
                        str(threads), "--warmup", "1", "--samples", "3", "--params", "beta,tau", "--no-summary", "-q", "-o", w.path("draws")], check=True)
        with open(w.path("draws_1.csv")) as f:
            draws.add("".join(line for line in f if not line.startswith("#")))
    print("%d runs, %d different" % (len(RUNS), len(draws)))
