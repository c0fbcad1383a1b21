"""Programs for modes (gmc --method em) on a GPU against the CPU. Needs a GPU to run, none to build.

    modes.py                  both
    modes.py build FOLDER
    modes.py run FOLDER

Each model: --compare-devices in double precision, to 1e-6 (numerical maxima) and nearly always far closer; then the log densities of 8
iterations of 3 starts, one of which begins with random parameters: those of the CPU to 1e-9 of themselves in double and to 3e-6 in mixed
precision, where data and probabilities are single; to 1e-5 where maxima are found by comparing values of the density: such a maximum is
known to the root of rounding, and brackets are left early by what they meet; to 1e-4 in mixed precision for mixtures of matrices, whose
products of coordinates are added in single precision, 1024 rows at a time (right to 1e-6 of sums of absolute values), about the mean of all
rows: with components 4 to 8 widths apart these are up to some 60 times those about a component's mean. Nothing is random but the data,
whose seed is fixed. Sizes are such that rows, values and columns fill no tile of the kernels (columns.h, classify.h), or several.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
sys.path.insert(0, os.path.join(ROOT, "tests", "stat"))
from em_models import NORMALS, CLASSES, BINARY, ROBUST, NUMERICAL

MATRICES = """data { int<lower=0> N; int<lower=1> K, p; matrix[N, p] y; matrix[p, p] S; vector[p] m; }
prior { w ~ dirichlet(rep_vector(2, K)); for (k in 1:K) { Sigma[k] ~ inv_wishart(p + 2, S); mu[k] ~ multi_normal(m, 10 * Sigma[k]); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ multi_normal(mu[c[i]], Sigma[c[i]]); }
"""


def clusters(r, n, p, K):
    centre, scale = r.normal(size=(K, p)) * 4 + 20, r.uniform(0.5, 1.5, K)
    c = r.integers(0, K, n)
    return centre[c] + r.normal(size=(n, p)) * scale[c][:, None]


def cases():
    r = np.random.default_rng(12)
    for n, p, K in ((150, 2, 3), (5003, 3, 37), (20011, 14, 129), (3001, 5, 2)):
        yield "matrices %d %d %d" % (n, p, K), MATRICES, dict(N=n, K=K, p=p, y=clusters(r, n, p, K), S=np.eye(p) + 0.1, m=np.full(p, 20.0))
    yield "normals", NORMALS, dict(N=9001, K=5, y=clusters(r, 9001, 1, 5)[:, 0] - 20)
    n = 3000
    c = r.integers(0, 2, n)
    yield "classes", CLASSES, dict(N=n, K=2, J=4, y=np.array([[1 + r.choice(3, p=[.8, .1, .1] if k else [.1, .2, .7]) for _ in range(4)]
                                                              for k in c]), n=r.poisson(np.array([2., 7])[c]))
    X = np.c_[np.ones(n), r.normal(size=(n, 2))]
    eta = X @ np.array([.3, 1, -1])
    yield "binary", BINARY, dict(N=n, p=3, X=X, y=(r.random(n) < 1 / (1 + np.exp(-eta))).astype(int),
                                 z=(r.normal(size=n) < eta).astype(int))
    yield "robust", ROBUST, dict(N=n, p=3, X=X, y=eta + r.standard_t(3, n))
    yield "numerical", NUMERICAL, dict(N=500, y=np.where(r.random(500) < .4, 3., -2) + r.standard_t(4, 500))


def trace(program, data, *more):
    ran = subprocess.run([program, "map", data, "--seed", "4", "--starts", "4", "--iterations", "8", "--no-summary", "--overwrite", "-o",
                          program + "_mode", *more], capture_output=True, text=True)
    if ran.returncode:
        return None, ran.stderr
    with open(program + "_mode_trace.csv") as f:
        rows = [line.split(",") for line in f if line[0].isdigit()]
    return {(int(a), int(b)): float(x) for a, b, x in rows}, ran.stderr


def compiled(folder, name, model):
    program = os.path.join(folder, name)
    with open(program + ".gm", "w") as f:
        f.write(model)
    subprocess.run([GMC, "-q", "--method", "em", program + ".gm", "-o", program], check=True,
                   env={**os.environ, "VIRTUAL_ENV": sys.prefix, "CUDA_VISIBLE_DEVICES": ""})
    return program


def compare(program, path, data, bound_in_double, bound_in_mixed):
    """What is wrong, in words."""
    said = []
    with open(path, "w") as f:
        json.dump({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}, f)
    if data["N"] * data.get("K", 1) < 200000:
        ran = subprocess.run([program, path, "--compare-devices", "--chains", "2", "--seed", "3"], capture_output=True, text=True)
        if ran.returncode:
            said.append("devices differ: " + " ".join((ran.stdout + ran.stderr).split("\n")[:8]))
    known, why = trace(program, path, "--device", "cpu", "--threads", "4")
    if not known:
        return ["on the CPU: " + why]
    for precision, bound in (("double", bound_in_double), ("mixed", bound_in_mixed)):
        got, why = trace(program, path, "--device", "gpu", "--precision", precision)
        worst = max(abs(got.get(k, np.inf) - known[k]) / (1 + abs(known[k])) for k in known) if got else np.inf
        if not worst < bound:
            said.append("%s: log densities differ by %.2g %s" % (precision, worst, "" if got else why.strip()))
    return said


def build(folder):
    models = {}
    for name, model, _ in cases():
        models.setdefault(model, name.split()[0])
    os.makedirs(folder, exist_ok=True)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda m: compiled(folder, "modes_" + models[m], m), models))


def run(folder):
    failed = done = 0
    with ThreadPoolExecutor(8) as pool:
        found = []
        for name, _, data in cases():
            copy = os.path.join(folder, "modes_of_" + name.replace(" ", "_"))        # files of its own
            shutil.copy(os.path.join(folder, "modes_" + name.split()[0]), copy)
            found.append((name, pool.submit(compare, copy, copy + ".json", data, 1e-5 if name == "numerical" else 1e-9,
                                            1e-4 if name.startswith("matrices") else 1e-5 if name == "numerical" else 3e-6)))
        for name, future in found:
            said = future.result()
            done += 1
            failed += bool(said)
            print("%s modes of %s%s" % ("FAIL" if said else "ok  ", name, ": " + "; ".join(said) if said else ""), flush=True)
    print("modes: %d passed, %d failed" % (done - failed, failed))
    return 1 if failed else 0


def main():
    folder = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    if len(sys.argv) < 2 or sys.argv[1] == "build":
        build(folder)
    return run(folder) if len(sys.argv) < 2 or sys.argv[1] == "run" else 0


if __name__ == "__main__":
    sys.exit(main())
