"""NUTS and HMC on a GPU: milliseconds a gradient of all chains, effective draws a second.

    nuts_gpu.py build FOLDER            compiles the models
    nuts_gpu.py run FOLDER [NAME...]    measures; needs NumPy. A NAME is a part of a workload's name
    nuts_gpu.py many FOLDER [NAME...]   64 chains: each for itself (NUTS) and together (ChEES-HMC)
    nuts_gpu.py profile FOLDER NAME     the time of each kernel

Milliseconds a gradient are those of the sweeps after warm-up over the gradients that a sweep needed: those of the chain that needed most,
since chains run in lockstep. Effective draws are the summary's ess_bulk, the least of the coefficients that the data were made with (of the
multinomial regression: its intercepts); a second counts everything from the first sweep to the last, warm-up included. Data are random,
seeds are fixed; coefficients must lie within 6 sd of those of the data.
"""
import json
import math
import os
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")

#  name, model, sizes, {chains: target ms a gradient}, sweeps of warm-up and after it, coefficients
WORKLOADS = [
    ("Poisson regression, 10^6 x 20, 10^4 groups", "nuts_poisson", (1_000_000, 20, 10_000), {1: 0.25, 4: 0.5}, 150, 100, "beta"),
    ("horseshoe probit, 10^4 x 100", "nuts_horseshoe", (10_000, 100), {1: None, 4: None, 16: None}, 300, 300, "beta"),
    ("multinomial regression, 60000 x 785, 10 classes", "nuts_multinomial", (60_000, 785), {1: 0.30, 4: 0.45, 16: 1.1}, 60, 40, "b"),
]

MANY = [
    ("Poisson regression, 10^5 x 20, 10^3 groups", "nuts_poisson", (100_000, 20, 1_000), 64, 150, 100, "beta"),
    ("horseshoe probit, 10^4 x 100", "nuts_horseshoe", (10_000, 100), 64, 300, 300, "beta"),
]


def build(folder):
    os.makedirs(folder, exist_ok=True)
    for model in sorted({w[1] for w in WORKLOADS}):
        subprocess.run([GMC, "-q", os.path.join(HERE, model + ".gm"), "-o", os.path.join(folder, model)], check=True,
                       env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


def data(folder, model, sizes):
    """The arguments, and the coefficients that the data were made with."""
    r = np.random.default_rng(1)
    n, p = sizes[:2]
    X = r.standard_normal((n, p)) * (0.3 if model == "nuts_poisson" else 1)
    beta = np.zeros(p)
    if model == "nuts_multinomial":                 # as many pixels are not 0 as in images of digits
        X = np.where(r.random((n, p)) < 0.19, r.random((n, p)), 0).astype(np.float32)
        beta = np.linspace(-1, 1, 10)
        B = np.where(r.random((p, 10)) < 0.1, 0.5 * r.standard_normal((p, 10)), 0)
        arrays = {"y": (beta + X @ B + r.gumbel(size=(n, 10))).argmax(1).astype(np.int32) + 1}
    elif model == "nuts_poisson":
        beta[:] = 0.3 * r.standard_normal(p)
        g = r.integers(1, sizes[2] + 1, n).astype(np.int32)
        arrays = {"g": g, "y": r.poisson(np.exp(0.3 + X @ beta + 0.5 * r.standard_normal(sizes[2])[g - 1])).astype(np.int32)}
    else:
        beta[:6] = [1.3, 4, -1, 1.6, 5, -2]
        arrays = {"y": (X @ beta + r.standard_normal(n) > 0).astype(np.int32)}
    for name, values in {"X": X, **arrays}.items():
        np.save(os.path.join(folder, "%s_%s.npy" % (model, name)), values)
    with open(os.path.join(folder, model + ".json"), "w") as f:
        json.dump({"G": sizes[2]} if len(sizes) > 2 else {"K": 10} if model == "nuts_multinomial" else {}, f)
    return [model + ".json"] + ["%s=%s_%s.npy" % (name, model, name) for name in ("X", *arrays)], beta


def fit(folder, model, inputs, chains, warmup, samples, *more):
    ran = subprocess.run(["./" + model, *inputs, "--device", "gpu", "--chains", str(chains), "--warmup", str(warmup), "--samples",
                          str(samples), "--no-lp", "--seed", "1", *more],
                         cwd=folder, capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit("bench: %s: status %d %s" % (model, ran.returncode, ran.stderr[-500:]))
    return ran.stdout, float(re.search(r"in ([0-9.e+-]+) s", ran.stderr).group(1))


def columns(folder, chains):
    out = []
    for c in range(1, chains + 1):
        with open(os.path.join(folder, "moves_%d.csv" % c)) as f:
            lines = [line.strip().split(",") for line in f if line[0] != "#"]
        out.append({name: np.array([float(row[k]) for row in lines[1:]]) for k, name in enumerate(lines[0])})
    return out


def run(folder, only):
    print("| model | chains | ms a gradient | target | leapfrog steps | worst ESS | s | ESS a second |\n| --- | --- | --- | --- | --- | "
          "--- | --- | --- |")
    for name, model, sizes, targets, warmup, samples, kept in WORKLOADS:
        if only and not any(o in name for o in only):
            continue
        inputs, beta = data(folder, model, sizes)
        fit(folder, model, inputs, 1, 1, 1, "--params", kept, "--no-summary")        # compiles the kernels for these data
        for chains, target in targets.items():
            _, start = fit(folder, model, inputs, chains, warmup, 1, "--params", kept, "--no-summary")
            table, whole = fit(folder, model, inputs, chains, warmup, samples, "--params", kept,
                               "--overwrite", "-o", "moves", "--summary", "all")
            steps, ess, far = measured(folder, chains, beta, kept, table)
            asked = float((steps + 1).max(axis=0)[1:].sum())
            print("| %s | %d | %.3f | %s | %.0f | %.0f | %.2f | %.1f |%s" % (name, chains, 1000 * (whole - start) / asked, target or "",
                                                                             steps.mean(), ess, whole, ess / whole,
                                                                   "" if far < 6 else " FAILED: %.1f sd from the data's" % far), flush=True)


def measured(folder, chains, beta, kept, table):
    """Leapfrog steps [chain, sweep]; effective draws of the worst coefficient that is not 0; how far the farthest of them is from what the
    data were made with, in sd."""
    drawn = columns(folder, chains)
    strong = [j for j in range(len(beta)) if beta[j] != 0]
    x = {j: np.concatenate([c["%s.%d" % (kept, j + 1)] for c in drawn]) for j in strong}
    found = re.findall(r"^%s\[(\d+)\].*?(\S+) +\S+ +\S+$" % kept, table, re.M)
    return (np.array([c["n_leapfrog__"] for c in drawn]), min([float(v) for k, v in found if int(k) - 1 in strong and v != "-"]
                                                              or [math.nan]),
            max(abs(x[j].mean() - beta[j]) / x[j].std() for j in strong))


def many(folder, only):
    print("| model | chains | sampler | leapfrog steps, of the longest | worst ESS | s | ESS a second |\n| --- | --- | --- | --- | --- | "
          "--- | --- |")
    for name, model, sizes, chains, warmup, samples, kept in MANY:
        if only and not any(o in name for o in only):
            continue
        inputs, beta = data(folder, model, sizes)
        fit(folder, model, inputs, 1, 1, 1, "--params", kept, "--no-summary")        # compiles the kernels for these data
        for moves in ("nuts", "chees"):
            table, whole = fit(folder, model, inputs, chains, warmup, samples, "--params", kept,
                               "--overwrite", "-o", "moves", "--summary", "all",
                               "--moves", moves)
            steps, ess, far = measured(folder, chains, beta, kept, table)
            print("| %s | %d | %s | %.0f, %.0f | %.0f | %.2f | %.1f |%s" % (name, chains, moves, steps.mean(), steps.max(axis=0).mean(),
                                                                            ess, whole, ess / whole,
                                                                         "" if far < 6 else " FAILED: %.1f sd from the data's" % far),
                                                                         flush=True)


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) == 3:
        build(sys.argv[2])
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
        run(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["many"] and len(sys.argv) > 2:
        many(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["profile"] and len(sys.argv) == 4:
        for name, model, sizes, targets, *_, kept in WORKLOADS:
            for chains in targets if sys.argv[3] in name else ():
                print(name, chains, fit(sys.argv[2], model, data(sys.argv[2], model, sizes)[0], chains, 30, 5, "--params", kept,
                                        "--no-summary", "--profile")[0])
    else:
        print(__doc__)
        sys.exit(2)


if __name__ == "__main__":
    main()
