"""Gibbs sweeps on a GPU: measured, floor, ratio, target, peer. make bench-gpu.

    gpu.py [NAME...]                     compiles the models, makes the data, measures; a NAME is a part of a workload's name
    gpu.py build FOLDER [ARCH]           compiles only; ARCH (sm_90) for a machine without a GPU
    gpu.py run FOLDER [NAME...]          measures what was built; needs NumPy, and some 10 GB in FOLDER for the largest data
    gpu.py profile FOLDER [NAME...]      the time of each kernel of what was built (launched one by one, which takes longer)

Measured: milliseconds a sweep of the whole program in mixed precision (and single), draws leaving; the median of batches of sweeps between
two events, from the line that ends a run. Floor: reading the data once and a Cholesky factor of the smaller side by cuSOLVER, measured in
the same run. Peer: the same sweep by cuBLAS, cuSOLVER and elementwise kernels (tests/bench/gpu/peers.cu); both need nvcc. Data are random
and seeds are fixed; the draws must be finite and lie around the parameters that the data were made with (6 sd). Modes (--method em): an
iteration of one start, from runs of 8 and 40; the log density never falls, and the mean of the mixture is that of the rows. Its floor is
twice that of a sweep of the same mixture: densities and weighted cross products are as many multiply-adds. Start-up: seconds of a run
outside its sweeps, at most 3 and a second for each GB of data. A failed check is said and gives exit status 1.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))
import toolkit

#  name, model, rows, columns (intercepts: groups; chains and fields: numbers of a place), {chains: target ms}, sweeps of warm-up and of a
# run
WORKLOADS = [
    ("horseshoe probit, 10^6 x 1000", "horseshoe", 1_000_000, 1000, {1: 1.8, 4: 2.6}, 100, 400),
    ("horseshoe probit, 1,295,848 x 141", "horseshoe", 1_295_848, 141, {1: 0.45, 4: None}, 200, 2000),
    ("horseshoe probit, 10^4 x 1000", "horseshoe", 10_000, 1000, {1: 0.70, 4: None}, 500, 1500),
    ("Lasso, 425 x 3000", "lasso", 425, 3000, {1: 0.6, 4: None}, 1000, 1500),
    ("10^8 truncated normals, means in memory", "normals", 100_000_000, 1, {1: 0.8}, 0, 0),
    ("10^9 Polya-Gamma(1, z), z in memory", "polya", 1_000_000_000, 1, {1: 30}, 0, 0),
    ("probit, 10^7 x 8", "probit", 10_000_000, 8, {1: 0.25, 4: None}, 300, 3000),
    ("random intercepts, 10^7 rows, 8 groups", "intercepts", 10_000_000, 8, {1: 0.5, 4: None}, 1000, 10000),
    ("random intercepts, 10^7 rows, 10^5 groups", "intercepts", 10_000_000, 100_000, {1: 0.5, 4: None}, 500, 2000),
    ("mixture of 256 normals, 5 10^6 x 14", "mixture", 5_000_000, 14, {1: 15}, 50, 100),
    ("mixture of 256 normals, 10^6 x 14", "mixture", 1_000_000, 14, {1: 5}, 50, 100),
    ("modes of a mixture of 256 normals, 5 10^6 x 14: an iteration", "modes", 5_000_000, 14, {1: 60}, 8, 40),
    ("100 topics, 10^6 words, 10^4 documents, vocabulary 10^4", "topics", 1_000_000, 100, {1: 3, 4: None}, 100, 200),
    ("matrix factorisation, 10^6 ratings, 6000 x 4000, 20 factors", "factors", 1_000_000, 20, {1: 1.5, 4: None}, 100, 400),
    ("logistic, 506,450 x 56", "logistic", 506_450, 56, {1: None, 4: None}, 300, 1000),
    ("logistic, 10^6 x 20, 10^4 groups", "grouped", 1_000_000, 20, {1: 0.6, 4: None}, 100, 400),
    ("crossed effects, 10^7 rows, 10^5 x 10^4 levels", "crossed", 10_000_000, 100_000, {1: 1.0, 4: None}, 200, 1000),
    ("state space, 10^6 places", "walk", 1_000_000, 4, {1: 1.0, 4: None}, 200, 1000),
    ("autoregression of order 2, 10^6 places", "ar2", 1_000_000, 5, {1: None, 4: None}, 200, 500),
    ("level and slope, 10^6 times", "trend", 1_000_000, 12, {1: None, 4: None}, 200, 500),
    ("field over a grid of 100 x 100, with its mean", "field", 10_000, 23, {1: None, 4: None}, 1000, 2000),
    ("hidden Markov, 10^6 times", "hmm", 1_000_000, 4, {1: 1.5, 4: None}, 300, 1000),
    ("multinomial, 506,450 x 56, 9 categories", "multinomial", 506_450, 56, {1: 2.0, 4: None}, 300, 1000),
]
SINGLE_TOO = {"horseshoe", "lasso"}                      # joint draws of hundreds of coefficients: in single precision too
ALONE = {"normals", "polya"}                             # samplers by themselves, by the program of the floors
PEERS = "peers"
CATEGORIES = 9
KEPT = 100                       # draws that are checked


def build(folder, arch=None):
    os.makedirs(folder, exist_ok=True)
    subprocess.run([GMC, "-q", "--method", "em", os.path.join(HERE, "mixture.gm"), "-o", os.path.join(folder, "modes")], check=True,
                   env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})

    def one(model):
        source = os.path.join(HERE, model + ".gm")
        if not os.path.exists(source):
            source = os.path.join(ROOT, "examples", model, model + ".gm")
        subprocess.run([GMC, "-q", source, "-o", os.path.join(folder, model)], check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(one, sorted({w[1] for w in WORKLOADS} - ALONE - {"modes"})))
    nvcc = toolkit.tool("nvcc")
    if nvcc:
        subprocess.run([nvcc, "-O3", "-std=c++17", "-arch=" + (arch or "native"), "-o", os.path.join(folder, PEERS),
                        os.path.join(HERE, "gpu", "peers.cu"), "-lcublas", "-lcusolver", "-lcurand"], check=True)
    else:
        print("no floors and peers: nvcc is not installed (it is part of the CUDA Toolkit)")


# ---- data ----

def in_blocks(n, size, work):
    """work(begin, end, random numbers of this block), on all cores; the data do not depend on their number."""
    begins = list(range(0, n, size))
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(lambda b: work(b, min(n, b + size), np.random.default_rng([1, b])), begins))


def data(folder, model, n, p):
    """Files in the folder. Gives the arguments, and {column of the draws: the value that the data were made with}."""
    if model == "intercepts":
        y, group = (np.lib.format.open_memmap(os.path.join(folder, f), "w+", t, (n,)) for f, t in (("y.npy", "<f8"), ("group.npy", "<i4")))
        u = 0.7 * np.random.default_rng(3).standard_normal(p)

        def rows(b, e, r):
            group[b:e] = r.integers(1, p + 1, e - b)
            y[b:e] = 1.5 + u[group[b:e] - 1] + r.standard_normal(e - b)
        in_blocks(n, 1 << 18, rows)
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"K": p}, f)
        return ["size.json", "y=y.npy", "group=group.npy"], {"sigma": 1.0}
    if model == "crossed":
        y, a, b = (np.lib.format.open_memmap(os.path.join(folder, f), "w+", t, (n,)) for f,
                   t in (("y.npy", "<f8"), ("a.npy", "<i4"), ("b.npy", "<i4")))
        levels = (p, max(1, p // 10))
        u, v = (sd * np.random.default_rng(3 + k).standard_normal(levels[k]) for k, sd in enumerate((0.5, 0.8)))

        def rows(begin, end, r):
            a[begin:end], b[begin:end] = (r.integers(1, m + 1, end - begin) for m in levels)
            y[begin:end] = 1 + u[a[begin:end] - 1] + v[b[begin:end] - 1] + r.standard_normal(end - begin)
        in_blocks(n, 1 << 18, rows)
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"N": n, "I": levels[0], "J": levels[1]}, f)
        return ["size.json", "y=y.npy", "a=a.npy", "b=b.npy"], {"s": 1.0, "sa": 0.5, "sb": 0.8} if n >= 1_000_000 else {}
    if model == "walk":
        r = np.random.default_rng(3)
        np.save(os.path.join(folder, "y.npy"), (0.3 * r.standard_normal(n)).cumsum() + 0.5 * r.standard_normal(n))
        return ["y=y.npy"], {"s": 0.3, "q": 0.5} if n >= 1_000_000 else {}
    if model == "ar2":
        from scipy.signal import lfilter
        r = np.random.default_rng(3)
        np.save(os.path.join(folder, "y.npy"), lfilter([1], [1, -1.2, 0.3], 0.3 * r.standard_normal(n)) + 0.5 * r.standard_normal(n))
        return ["y=y.npy"], {"s": 0.3, "q": 0.5} if n >= 1_000_000 else {}
    if model == "trend":
        r = np.random.default_rng(3)
        # as in the model; so small a scale that single precision distinguishes responses
        slope = (1e-4 * r.standard_normal(n)).cumsum()
        level = (np.concatenate([[0], slope[:-1]]) + 0.3 * r.standard_normal(n)).cumsum()
        np.save(os.path.join(folder, "y.npy"), level + 0.5 * r.standard_normal(n))
        return ["y=y.npy"], {"s": 0.3, "q": 0.5} if n >= 1_000_000 else {}
    if model == "field":
        side, r = int(n ** 0.5), np.random.default_rng(3)
        node, at = np.arange(side * side).reshape(side, side), np.arange(side) / 15
        pairs = np.concatenate([np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()]), np.stack([node[:-1].ravel(), node[1:].ravel()])],
                               axis=1) + 1
        y = 2 * np.sin(at)[:, None] * np.cos(at) + r.standard_normal((side, side))
        with open(os.path.join(folder, "field.json"), "w") as f:
            json.dump({"n": side * side, "E": pairs.shape[1], "one": pairs[0].tolist(), "other": pairs[1].tolist(),
                       "y": y.ravel().tolist()}, f)
        return ["field.json"], {"s": 1.0}
    if model == "hmm":                                   # p states, that stay for 20 times
        r = np.random.default_rng(3)
        moves = np.where(r.random(n) < 0.05, r.integers(1, p, n), 0).cumsum() % p
        np.save(os.path.join(folder, "y.npy"), 2.0 * moves + 0.8 * r.standard_normal(n))
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"K": p}, f)
        # chains may stay where two states share a mean: only then s is larger
        return ["size.json", "y=y.npy"], {"sd": float((2.0 * moves + 0.8 * r.standard_normal(n)).std())}
    if model in ("topics", "factors"):
        r, files = np.random.default_rng(3), {}
        if model == "topics":                            # 100 words a document
            D, V = max(1, n // 100), 10_000
            phi, theta = r.dirichlet(np.full(V, 0.05), p).cumsum(axis=1), r.dirichlet(np.full(p, 0.1), D)
            doc = np.arange(n) * D // n
            z = (theta.cumsum(axis=1)[doc] < r.random((n, 1))).sum(axis=1).clip(max=p - 1)
            w, u = np.empty(n, int), r.random(n)
            for k in range(p):
                w[z == k] = np.searchsorted(phi[k], u[z == k]).clip(max=V - 1)
            files, size = {"doc": doc + 1, "w": w + 1}, {"D": D, "V": V, "K": p, "M": min(n, 1000)}
            share = np.bincount(w, minlength=V) / n
            truth = {"fit": float(np.log(share[w[:size["M"]]]).mean())}      # of one topic: draws have to fit better
        else:
            size = {"I": 6000, "J": 4000, "K": p}
            a, b = r.integers(0, 6000, n), r.integers(0, 4000, n)
            y = np.einsum("ij,ij->i", r.standard_normal((6000, p))[a], r.standard_normal((4000, p))[b]) + 0.5 * r.standard_normal(n)
            files, truth = {"a": a + 1, "b": b + 1, "y": y}, {"s": 0.5} if n >= 1_000_000 else {}
        for name, x in files.items():
            np.save(os.path.join(folder, name + ".npy"), x.astype("<f8" if x.dtype.kind == "f" else "<i4"))
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"N": n, **size}, f)
        return ["size.json"] + ["%s=%s.npy" % (name, name) for name in files], truth
    if model in ("mixture", "modes"):                    # 40 components; what is known without their names: the mean of all
        X = np.lib.format.open_memmap(os.path.join(folder, "X.npy"), "w+", "<f4", (n, p))
        centre = 4 * np.random.default_rng(3).standard_normal((40, p))

        def rows(b, e, r):
            X[b:e] = centre[r.integers(0, 40, e - b)] + r.standard_normal((e - b, p))
        in_blocks(n, 1 << 18, rows)
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"K": 256, "m0": [0] * p, "S0": np.eye(p).tolist(), "nu0": p + 2}, f)
        return ["size.json", "X=X.npy"], {"mean.%d" % (j + 1): float(m) for j, m in enumerate(X.mean(axis=0, dtype=np.float64))}
    X = np.lib.format.open_memmap(os.path.join(folder, "X.npy"), "w+", "<f8", (n, p))
    y = np.lib.format.open_memmap(os.path.join(folder, "y.npy"), "w+", "<f8" if model == "lasso" else "<i4", (n,))
    strong = {"lasso": 3.0, "probit": 0.4, "logistic": 0.5, "horseshoe": 0.4, "grouped": 0.4, "multinomial": 0.5}[model]
    groups = {"grouped": max(2, n // 100)}.get(model, 0)
    if groups:
        g = np.random.default_rng(5).integers(0, groups, n)
        u = 0.7 * np.random.default_rng(6).standard_normal(groups)
        np.save(os.path.join(folder, "group.npy"), (g + 1).astype("<i4"))
    B = strong * np.random.default_rng(4).standard_normal((5, CATEGORIES - 1))

    def rows(b, e, r):
        x = r.standard_normal((e - b, p), dtype=np.float32)
        X[b:e] = x
        if model == "multinomial":
            eta = np.concatenate([x[:, :5] @ B, np.zeros((e - b, 1))], axis=1)
            y[b:e] = 1 + (eta + r.gumbel(size=eta.shape)).argmax(axis=1)
            return
        m = strong * x[:, :5].sum(axis=1) + (u[g[b:e]] if groups else 0)
        if model == "lasso":
            y[b:e] = m + r.standard_normal(e - b)
        elif model in ("logistic", "grouped"):
            y[b:e] = r.uniform(size=e - b) < 1 / (1 + np.exp(-m))
        else:
            y[b:e] = m + r.standard_normal(e - b) > 0
    in_blocks(n, max(1, (1 << 22) // p), rows)
    if model == "multinomial":
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"K": CATEGORIES}, f)
        return ["size.json", "X=X.npy", "y=y.npy"], {"B.%d.%d" % (j, k): B[j - 1, k - 1] if j <= 5 else 0.0 for j in range(1, p + 1)
                                                     for k in range(1, CATEGORIES)}
    if groups:
        with open(os.path.join(folder, "size.json"), "w") as f:
            json.dump({"J": groups}, f)
    return (["size.json", "g=group.npy"] if groups else []) + ["X=X.npy", "y=y.npy"], {"beta.%d" % j: strong if j <= 5 else 0.0
            for j in range(1, p + 1)}


# ---- measuring ----

MOST_STARTING, BYTES_A_SECOND = 3, 1e9                   # seconds of a start; data that are read beside


def starting(folder, inputs, seconds, said):
    """Seconds of a run outside its sweeps, and how many there may be."""
    sweeps = re.search(r"sweeps of \d+ chains? in ([0-9.e+-]+) s", said)
    read = sum(os.path.getsize(os.path.join(folder, i.split("=")[-1])) for i in inputs)
    return seconds - float(sweeps.group(1)) if sweeps else math.nan, MOST_STARTING + read / BYTES_A_SECOND


def fit(folder, model, inputs, precision, chains, warmup, samples, thin=1):
    common = ["--device", "gpu", "--precision", precision, "--chains", str(chains), "--warmup", str(warmup), "--samples", str(samples),
              "--thin", str(thin), "--no-summary", "--no-lp",
              "--params", {"intercepts": "mu,tau,sigma", "mixture": "w,mu", "multinomial": "B", "topics": "fit", "factors": "s",
                           "walk": "s,q", "ar2": "s,q", "trend": "s,q", "field": "s,t", "crossed": "mu,s,sa,sb", "hmm": "s"}.get(model,
                                   "beta"), "--seed", "1", "--overwrite", "-o", "draws"]
    if model == "modes":
        common = ["map", "--device", "gpu", "--precision", precision, "--starts", "1", "--iterations", str(max(1, samples)), "--no-summary",
                  "--seed", "1", "--overwrite", "-o", "mode"]
    try:
        return subprocess.run(["./" + model, *common, *inputs] if model == "modes" else ["./" + model, *inputs, *common], cwd=folder,
                              capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 124, "", "no end after 240 s")


def check(folder, model, truth):
    """What is wrong with the draws of the first chain, or None."""
    with open(os.path.join(folder, "draws_1.csv")) as f:
        lines = [line for line in f if line[0] != "#"]
    names = lines[0].strip().split(",")
    x = np.array([[float(v) for v in line.split(",")] for line in lines[1:]])
    if not np.isfinite(x).all():
        return "draws that are not finite"
    if model == "mixture":                               # the mean of the mixture
        w, mu = (x[:, [k for k, name in enumerate(names) if name.startswith(v)]] for v in ("w.", "mu."))
        column = np.array([int(name.split(".")[2]) for name in names if name.startswith("mu.")])
        of = np.array([int(name.split(".")[1]) for name in names if name.startswith("mu.")])
        x = np.stack([(w[:, of[column == j] - 1] * mu[:, column == j]).sum(axis=1) for j in range(1, column.max() + 1)], axis=1)
        names = ["mean.%d" % j for j in range(1, column.max() + 1)]
    if model == "hmm":
        return None if 0.79 < x[:, names.index("s")].mean() < 0.8 * truth["sd"] else "the noise about the states is %.3f" % x[:,
                names.index("s")].mean()
    if model == "field":                                 # the field that the data have is smoother than those of the model
        return None if abs(x[:, names.index("s")].mean() - 1) < 0.1 else "the noise about the field is %.3f" % x[:, names.index("s")].mean()
    if model == "topics":
        return None if x.mean() > truth["fit"] else "words are predicted no better than by one topic"
    at = [k for k, name in enumerate(names) if truth.get(name) is not None]
    want = np.array([truth[names[k]] for k in at])
    if len(at) < len(truth):
        return "draws of %d of %d parameters" % (len(at), len(truth))
    mean, sd = x[:, at].mean(axis=0), x[:, at].std(axis=0)
    if model == "lasso":                                 # shrunk on purpose: the five that are not 0 stand out
        return (None if sorted(np.argsort(-np.abs(mean))[:5]) == [0, 1, 2, 3, 4]
                else "other coefficients than the five of the data stand out")
    far = np.abs(mean - want) / (sd + 1e-12)
    # coefficients that are 0 may be held closer than the noise: their sd is what the prior leaves
    if model == "horseshoe":
        far = np.abs(mean - want) / np.maximum(sd, np.median(sd[5:]))
    return None if far.max() < 6 else "%s is %.1f sd from the value that the data were made with" % (names[at[int(far.argmax())]],
            far.max())


def iterations(folder, inputs, truth, few, many):
    """ms an iteration, or None, and what is wrong."""
    seconds = []
    for n in (few, many):
        ran = fit(folder, "modes", inputs, "mixed", 1, 0, n)
        took = re.search(r"iterations of 1 start in ([0-9.e+-]+) s", ran.stderr)
        if ran.returncode != 0 or not took:
            return None, "status %d: %s" % (ran.returncode, (ran.stderr.strip().splitlines() or [""])[-1])
        seconds.append(float(took.group(1)))
    with open(os.path.join(folder, "mode_trace.csv")) as f:
        trace = [float(line.split(",")[2]) for line in f if line[0].isdigit()]
    with open(os.path.join(folder, "mode.json")) as f:
        mode = json.load(f)
    mean, want = np.array(mode["w"]) @ np.array(mode["mu"]), np.array([truth["mean.%d" % (j + 1)] for j in range(len(truth))])
    wrong = "the log density fell" if any(b < a - 1e-7 * abs(a) for a, b in zip(trace,
            trace[1:])) else "the mean of the mixture is off by %.2g" % np.abs(mean - want).max() if np.abs(mean
                    - want).max() > 1e-3 else None
    return 1000 * (seconds[1] - seconds[0]) / (many - few), wrong


def peers(folder, model, n, p, chains):
    """{read, cholesky, peer, ...} in ms, as far as measured."""
    if not os.path.exists(os.path.join(folder, PEERS)):
        return {}
    ran = subprocess.run(["./" + PEERS, {"grouped": "logistic", "modes": "mixture", "ar2": "walk", "trend": "walk",
                                         "field": "walk"}.get(model, model), str(n), str(p), str(chains)], cwd=folder, capture_output=True,
                                         text=True, timeout=120)
    if ran.returncode != 0:
        print("bench-gpu: peers %s: status %d: %s" % (model, ran.returncode, (ran.stdout + ran.stderr)[-300:]))
    return {w: float(v) for w, v in re.findall(r"^(\w+) ([0-9.e+-]+)$", ran.stdout, re.M)}


def precisions(model):
    return ("mixed", "single") if model in SINGLE_TOO else ("mixed",)


def warm(folder, chosen):
    """Has NVRTC compile every program for its width, on small data and all cores, so that no run below waits for it."""
    def one(work):
        model, p, precision = work
        own = os.path.join(folder, "warm_%s_%d_%s" % work)
        os.makedirs(own, exist_ok=True)
        shutil.copy(os.path.join(folder, model), own)
        inputs, _ = data(own, model, p + 50 if model != "lasso" else 20, p)
        return fit(own, model, inputs, precision, 1, 0, 1)
    works = sorted({(w[1], w[3], precision) for w in chosen if w[1] not in ALONE for precision in precisions(w[1])})
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for work, ran in zip(works, pool.map(one, works)):
            if ran.returncode != 0:
                sys.exit("bench-gpu: %s, %d columns, %s precision: status %d: %s" % (*work, ran.returncode,
                        (ran.stderr.strip().splitlines() or [""])[-1]))
            shutil.rmtree(os.path.join(folder, "warm_%s_%d_%s" % work))


def row(name, chains, ms, floor, target, peer, start=None):
    """A line of the table; ms by precision."""
    def cell(x, form="%.3g"):
        return form % x if x else ""
    shown = cell(ms.get("mixed")) + (" (single %s)" % cell(ms["single"]) if "single" in ms else "")
    print("| %s | %d | %s | %s | %s | %s | %s | %s |" % (name, chains, shown, cell(floor),
                                                         cell(floor and ms.get("mixed", 0) / floor, "%.2f"), cell(target), cell(peer),
                                                         cell(start, "%.1f")), flush=True)


def profile(folder, only):
    chosen = [w for w in WORKLOADS if (not only or any(o in w[0] for o in only)) and w[1] not in ALONE and w[1] != "modes"]
    for name, model, n, p, _, warmup, sweeps in chosen:
        inputs, _ = data(folder, model, n, p)
        ran = fit(folder, model, inputs + ["--profile"], "mixed", 1, warmup, min(sweeps, 300))
        print("== %s\n%s" % (name, ran.stdout + ran.stderr), flush=True)
    return 0


def run(folder, only):
    chosen = [w for w in WORKLOADS if not only or any(o in w[0] for o in only)]
    failed, began = [], time.monotonic()
    warm(folder, chosen)
    print("| workload | chains | ms a sweep | floor | ratio | target | library calls | start-up, s |\n| --- | --- | --- | --- | --- | --- "
          "| --- | --- |")
    for name, model, n, p, targets, warmup, sweeps in chosen:
        if model in ALONE:
            seen = peers(folder, model, n, p, 1)
            row(name, 1, {"mixed": seen.get("own", 0)}, seen.get("read", 0), targets[1], seen.get("peer"))
            if not seen.get("z", 7) < 6:
                failed.append("%s: the mean of the draws is off (z %.1f)" % (name, seen.get("z", math.nan)))
            continue
        inputs, truth = data(folder, model, n, p)
        if model == "modes":
            seen, (each, wrong) = peers(folder, model, n, p, 1), iterations(folder, inputs, truth, warmup, sweeps)
            row(name, 1, {"mixed": each or 0}, 2 * seen.get("read", 0), targets[1], None)
            if wrong:
                failed.append("%s: %s" % (name, wrong))
        for chains, target in targets.items() if model != "modes" else ():
            seen, ms, start = peers(folder, model, n, p, chains), {}, None
            if model == "grouped":
                seen.pop("peer", None)                   # the sweep of a logistic regression without groups
            for precision in precisions(model):
                before = time.monotonic()
                ran = fit(folder, model, inputs, precision, chains, warmup, sweeps // max(1, sweeps // KEPT), max(1, sweeps // KEPT))
                took = time.monotonic() - before
                found = re.search(r"median ([0-9.e+-]+) ms", ran.stderr)
                wrong = "status %d: %s" % (ran.returncode, (ran.stderr.strip().splitlines()
                                                            or [""])[-1]) if ran.returncode != 0 or not found else check(folder, model,
                                                                    truth)
                if wrong:
                    failed.append("%s, %d chains, %s precision: %s" % (name, chains, precision, wrong))
                if found:
                    ms[precision] = float(found.group(1))
                    start, most = starting(folder, inputs, took, ran.stderr)
                    if not start <= most:
                        failed.append("%s, %d chains, %s precision: %.1f s to start, %.1f at most" % (name, chains, precision, start, most))
            row(name, chains, ms, seen.get("read", 0) + seen.get("cholesky", 0), target, seen.get("peer") if chains == 1
                or model in ("horseshoe", "probit") else None, start)
        for file in ("X.npy", "y.npy", "group.npy", "doc.npy", "w.npy", "a.npy", "b.npy"):
            if os.path.exists(os.path.join(folder, file)):
                os.remove(os.path.join(folder, file))
    print("%.0f s" % (time.monotonic() - began))
    for text in failed:
        print("FAIL " + text)
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ["build"]:
        build(*sys.argv[2:4])
    elif sys.argv[1:2] == ["run"]:
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    elif sys.argv[1:2] == ["profile"]:
        sys.exit(profile(sys.argv[2], sys.argv[3:]))
    else:
        # in memory: nobody waits for a disk
        room = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 12e9 else None
        with tempfile.TemporaryDirectory(dir=room) as folder:
            build(folder)
            sys.exit(run(folder, sys.argv[1:]))


if __name__ == "__main__":
    main()
