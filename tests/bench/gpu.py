"""Gibbs sweeps on a GPU, against the time that the memory alone needs: make bench-gpu.

    gpu.py                      compiles the models, makes the data, measures
    gpu.py build FOLDER         compiles only
    gpu.py run FOLDER [NAME..]  measures what was built

Times are of a run of one chain and of four, in mixed precision, from the line that ends a run (graphs, draws leaving); the median of five
(of fewer where loading the data takes long). The floor is
bytes that must be read once a sweep over the device's read bandwidth (4.27 TB/s on one NVIDIA H200), plus what is given as its own cost.
Peers are library calls of the same sweep (PyTorch over cuBLAS and cuSOLVER), on one NVIDIA H200.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
READ = 4.27e12

#  name, model, rows, columns, Cholesky ms, peer ms
WORKLOADS = [
    ("horseshoe probit 1e4 x 1000", "horseshoe", 10_000, 1000, 0.381, 0.94),
    ("horseshoe probit 1e5 x 1000", "horseshoe", 100_000, 1000, 0.381, 1.19),
    ("horseshoe probit 1e6 x 1000", "horseshoe", 1_000_000, 1000, 0.381, 2.77),
    ("horseshoe probit 1295848 x 141", "horseshoe", 1_295_848, 141, 0.092, 1.02),
    ("probit 1e7 x 8", "probit", 10_000_000, 8, 0, None),
    ("logistic 506450 x 56", "logistic", 506_450, 56, 0.04, None),
]


def build(folder):
    os.makedirs(folder, exist_ok=True)
    for model in sorted({w[1] for w in WORKLOADS}):
        source = os.path.join(HERE, model + ".gm") if os.path.exists(os.path.join(HERE, model + ".gm")) else os.path.join(ROOT, "examples", model, model + ".gm")
        subprocess.run([GMC, "-q", source, "-o", os.path.join(folder, model)], check=True)


def data(folder, n, p):
    r = np.random.default_rng(1)
    X = r.standard_normal((n, p), dtype=np.float32)
    y = (X[:, : min(p, 5)].sum(axis=1) + r.standard_normal(n, dtype=np.float32) > 0).astype(np.int32)
    np.save(os.path.join(folder, "X.npy"), X.astype(np.float64))
    np.save(os.path.join(folder, "y.npy"), y)


def measure(folder, model, chains, sweeps):
    times, started = [], time.monotonic()
    for seed in range(5):
        ran = subprocess.run(["./" + model, "X=X.npy", "y=y.npy", "--device", "gpu", "--chains", str(chains), "--warmup", str(sweeps), "--samples", "20", "--no-summary", "--no-lp",
                              "--params", "beta", "--seed", str(seed)], cwd=folder, capture_output=True, text=True)
        found = re.search(r"([0-9.e+-]+) ms each", ran.stderr)
        if ran.returncode != 0 or not found:
            sys.exit("bench-gpu: %s: status %d: %s" % (model, ran.returncode, (ran.stderr.strip().splitlines() or [""])[-1]))
        times.append(float(found.group(1)))
        if time.monotonic() - started > 10:              # loading gigabytes takes longer than sweeping over them
            break
    return statistics.median(times)


def run(folder, only):
    print("%-32s %7s %10s %10s %7s %10s" % ("workload", "chains", "ms", "floor ms", "ratio", "peer ms"))
    for name, model, n, p, cholesky, peer in WORKLOADS:
        if only and not any(o in name for o in only):
            continue
        data(folder, n, p)
        for chains in (1, 4):
            floor = 1e3 * 4.0 * n * (p + 1 + chains) / READ + cholesky
            ms = measure(folder, model, chains, 200)
            print("%-32s %7d %10.3f %10.3f %7.2f %10s" % (name, chains, ms, floor, ms / floor, "%.2f" % peer if peer and chains == 1 else "-"), flush=True)
    return 0


def main():
    if sys.argv[1:2] == ["build"]:
        build(sys.argv[2])
    elif sys.argv[1:2] == ["run"]:
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            build(folder)
            sys.exit(run(folder, sys.argv[1:]))


main()
