"""Data that do not fit a GPU, and a second GPU: the same files of draws. Part of devices.py, which builds and runs programs.

For each model without a limit, then under the least --device-memory that it runs with and under one between: the matrix stays with the
host, wholly or in part.
"""
import os
import re

import numpy as np

from failures import MODELS, REAL

#  model, rows, columns, chains, precision: row passes narrow and wide, weighted products by tiles and by cuBLAS, gathered plates, six
# chains
CASES = [("horseshoe", 100_003, 150, 4, "mixed"), ("horseshoe", 50_003, 150, 6, "double"), ("logistic", 300_007, 30, 4, "mixed"),
         ("logistic", 150_003, 200, 2, "mixed"),
         ("groups", 200_003, 20, 4, "mixed"), ("robust", 300_001, 14, 4, "single")]


def build(folder, compile_program):
    """Compiles the programs; whether gmc took them all."""
    good = True
    for model in sorted({c[0] for c in CASES}):
        source = os.path.join(folder, "away_%s.gm" % model)
        with open(source, "w") as f:
            f.write(MODELS[model])
        good &= compile_program(folder, "away_" + model, source)
    return good


def data(folder, model, n, p):
    r = np.random.default_rng(3)
    X = r.standard_normal((n, p))
    eta = X[:, 0] - X[:, 1] + r.standard_normal(n)
    np.save(os.path.join(folder, "away_X.npy"), X)
    np.save(os.path.join(folder, "away_y.npy"), eta if model in REAL else (eta > 0).astype(np.int32))
    np.save(os.path.join(folder, "away_g.npy"), r.integers(1, 51, size=n).astype(np.int32))
    return "X=away_X.npy y=away_y.npy" + (" g=away_g.npy G=50" if model == "groups" else "")


def run(folder, fit, body):
    """[(good, text)]; fit and body as in devices.py."""
    results = []
    for model, n, p, chains, precision in CASES:
        inputs, name = data(folder, model, n, p), "away_" + model
        common = ["--seed", "3", "--warmup", "6", "--samples", "6", "--no-summary", "--no-lp", "--chains", str(chains), "--precision",
                  precision]

        def same(one, two):
            return all(body(folder, one, k) == body(folder, two, k) for k in range(1, chains + 1))

        whole = fit(folder, name, inputs, "--device", "gpu", *common, "--overwrite", "-o", name + "_whole")
        refused = fit(folder, name, inputs, "--device", "gpu", *common, "--device-memory", "1MB")
        least = re.search(r"needs ([0-9.]+) ([MG])B", refused.stderr)
        what = "%s %d x %d, %d chains, %s" % (model, n, p, chains, precision)
        if whole.returncode != 0 or refused.returncode != 6 or not least:
            results.append((False, "%s: status %d, and %d with 1 MB: %s" % (what, whole.returncode, refused.returncode,
                                                                            (whole.stderr + refused.stderr)[-400:])))
            continue
        least = float(least.group(1)) * {"M": 1e6, "G": 1e9}[least.group(2)] * 1.006
        for limit in (least, least + n * p):
            ran = fit(folder, name, inputs, "--device", "gpu", *common, "--device-memory", "%.0f" % limit,
                      "--overwrite", "-o", name + "_away")
            good = ran.returncode == 0 and "X (" in ran.stderr and "stays in the memory of the host" in ran.stderr and same(name + "_whole",
                    name + "_away")
            results.append((good, "%s, %.0f MB of the GPU's memory: %s" % (what, limit / 1e6, "the same draws" if good
                                                                           else "status %d %s" % (ran.returncode, ran.stderr[-400:]))))
        if (model, n, p, chains, precision) == CASES[0]:
            ran = fit(folder, name, inputs, "--device", "gpu:1", *common, "--overwrite", "-o", name + "_away")
            if ran.returncode == 5 and "there is no GPU 1" in ran.stderr:
                print("skipped: a second GPU, there is one")
            else:
                good = ran.returncode == 0 and same(name + "_whole", name + "_away")
                results.append((good, "%s, on GPU 1: %s" % (what, "the same draws" if good else "status %d %s" % (ran.returncode,
                        ran.stderr[-400:]))))
    return results
