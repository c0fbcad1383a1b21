"""Models on a GPU against the CPU. Needs a GPU to run, none to build.

    devices.py build FOLDER [K/N]     compiles the models, or the K-th of N parts of them, and makes their data
    devices.py run FOLDER [NAME...]   runs them here; the last line counts
    devices.py compare FOLDER [NAME...]      of these parts 1, 3 and 4
    devices.py compile                programs with code for GPUs in them, by NVRTC

1. Every model of tests/graph, every example and 15 random models: --compare-devices, three sweeps update by update from the same state in
   double precision. Variables agree to 1e-9, ints exactly; to BY_ROWS where coefficients are drawn by a system of the rows.
2. Every example, and models drawn by HMC and NUTS, each chain for itself and together, in mixed, single and double precision: posterior
   means against the CPU's, |z| < 6 by batch means of 4 chains of 20 batches: a t with about 150 degrees of freedom, so a false alarm is
   rarer than 1 in 10^5 for all of them together. An example runs as its README says; those of ASKED with log-likelihoods and replicates.
3. The same seed gives the same files: again; with fewer chains; without graphs (--profile).
4. Faults: one line that names the variable, exit status 4.
5. A logistic regression of 500,000 rows and 56 columns: rare paths of samplers, met by some rows in every sweep. Coefficients within 6 sd
of those of the data. 6. Data that do not fit the GPU, and a second GPU, give the same files (away.py).
7. 5200 coefficients jointly: as 1. By cuSOLVER, where it is found.
8. 1000 simulations as chains of one run: ranks are uniform (a false alarm in 1 of 100 seeds; it has one).
"""
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import away

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
sys.path.insert(0, os.path.join(ROOT, "tests", "stat"))

PRECISIONS = ("mixed", "single", "double")
ASKED = ("poisson_gamma", "hierarchical_normal", "ar1_missing")
# what has one value in a chain, or in all that adapt together, or follows from it
OF_A_RUN = [("stepsize",), ("stepsize", "n_leapfrog", "accept_stat")]
REPEATED = ("probit", "hierarchical_normal", "ar1_missing", "moves", "several")
# A coefficient with a prior sd of 1000 comes out of a system of the rows as a small difference of large numbers: against exact arithmetic
# the CPU's own draws of examples/lasso on four rows are off by more than 3e-9 in a tenth of the cases, by 7e-8 in the worst of 300.
BY_ROWS = 1e-6
AT_ONCE = 8                      # programs that share a GPU: most of a short run is starting it

# Sums by group, by a warp and by all lanes, of data in the order of groups; and over all rows in that order.
BY_GROUP = """
model by_group
data { int N, I, J; vector[N] x, y; int<lower=1, upper=I> a[N]; int<lower=1, upper=J> b[N]; }
prior {
  s ~ half_cauchy(0, 1);
  for (i in 1:I) u[i] ~ normal(0, 1);
  for (j in 1:J) v[j] ~ normal(0, 1);
  c ~ normal(0, 1);
}
likelihood { for (n in 1:N) y[n] ~ normal(u[a[n]] + v[b[n]] * x[n] * exp(c * x[n]), s); }
infer { u by gibbs; v by gibbs; }
"""

IMPROPER = """
model improper
data { int N; vector[N] y, x; }
prior { real a ~ flat(); real b ~ flat(); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], 1); }
"""

# Chains that are drawn in chunks: a lag of 2 with a mean at the border; a panel of levels and slopes; vectors of five.
LAGS = """
model lags
data { int<lower=2> T; vector[T] y; }
prior { mu ~ normal(0, 1); s ~ half_cauchy(0, 1); for (t in 1:2) x[t] ~ normal(mu, 2);
  for (t in 3:T) x[t] ~ normal(0.1 * mu + 1.2 * x[t - 1] - 0.3 * x[t - 2], s); }
likelihood { for (t in 1:T) y[t] ~ normal(x[t], 0.5); }
"""
TRENDS = """
model trends
data { int<lower=1> I, T; matrix[I, T] y; }
prior {
  s ~ half_cauchy(0, 1);
  for (i in 1:I) { level[i, 1] ~ normal(0, 10); slope[i, 1] ~ normal(0, 1);
  for (t in 2:T) { level[i, t] ~ normal(level[i, t - 1] + slope[i, t - 1], s); slope[i, t] ~ normal(slope[i, t - 1], 0.1); } }
}
likelihood { for (i in 1:I, t in 1:T) y[i, t] ~ normal(level[i, t], 0.5); }
"""
VECTORS = """
model vectors
data { int<lower=1> T, d; matrix[d, d] F; matrix[T, d] y; }
prior { s ~ half_cauchy(0, 1); for (k in 1:d) x[1, k] ~ normal(0, 1); for (t in 2:T, k in 1:d)
  x[t, k] ~ normal(sum(j in 1:d, F[k, j] * x[t - 1, j]), s); }
likelihood { for (t in 1:T, k in 1:d) y[t, k] ~ normal(x[t, k], 0.5); }
"""


# Joint normals with a sparse precision: a field over a grid with its mean, by the tiles of its factor; crossed effects with unknown scales.
FIELD = open(os.path.join(ROOT, "tests", "bench", "field.gm")).read()
CROSSED = """
model crossed
data { int N, A, B; int<lower=1, upper=A> a[N]; int<lower=1, upper=B> b[N]; vector[N] y; vector[N] x; }
prior {
  mu ~ normal(0, 10); s ~ half_cauchy(0, 1); sa ~ half_cauchy(0, 1); sb ~ half_cauchy(0, 1);
  for (i in 1:A) { u[i] ~ normal(0, sa); slope[i] ~ normal(0, 1); }
  for (j in 1:B) v[j] ~ normal(mu, sb);
}
likelihood { for (n in 1:N) if (x[n] > -1) y[n] ~ normal(u[a[n]] + slope[a[n]] * x[n] + v[b[n]], s); }
"""


def field_data(side):
    n, r = side * side, np.random.default_rng(7)
    edges = np.array([(i, i + 1) for i in range(n) if (i + 1) % side] + [(i, i + side) for i in range(n - side)]) + 1
    return {"n": n, "E": len(edges), "one": edges[:, 0], "other": edges[:, 1], "y": r.standard_normal((side,
            side)).cumsum(0).cumsum(1).ravel().round(3)}


def crossed_data(n, levels, others):
    r = np.random.default_rng(n)
    return {"N": n, "A": levels, "B": others, "a": r.integers(1, levels + 1, n), "b": r.integers(1, others + 1, n),
            "y": r.standard_normal(n), "x": r.standard_normal(n)}


def chain_data(*size):
    y = np.random.default_rng(9).standard_normal(size).cumsum(axis=-1 if len(size) == 2 and size[0] < size[1] else 0).round(3)
    return {"T": max(size), "I": size[0], "d": size[-1], "y": y, "F": (0.7 * np.eye(size[-1]) + 0.05).round(3) if size[-1] < 10 else None}


# 150 coefficients: joint draws by tiles; 40 rows of them: the route of few rows.
WIDE = """
model wide
data { int N, p; matrix[N, p] X; vector[N] y; }
prior {
  sigma ~ half_cauchy(0, 1);
  for (j in 1:p) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, lambda[j]); }
}
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * beta, sigma); }
"""

# NUTS with rows of a matrix, groups, bounds and a simplex; HMC beside a Gibbs update.
MOVES = """
model moves
data { int N, p, G; matrix[N, p] X; int<lower=1, upper=G> g[N]; int<lower=0, upper=1> y[N]; int<lower=1, upper=3> z[N]; vector[N] v; }
prior {
  for (j in 1:p) beta[j] ~ normal(0, 2);
  tau ~ half_normal(0, 1);
  for (k in 1:G) u[k] ~ normal(0, 1);
  simplex[3] q ~ dirichlet([2, 2, 2]);
  real<lower=-1, upper=2> m ~ normal(0, 1);
  s ~ half_cauchy(0, 1);
}
likelihood {
  for (i in 1:N) { y[i] ~ bernoulli_logit(X[i] * beta + tau * u[g[i]]); z[i] ~ categorical(q); v[i] ~ normal(m, s); }
}
infer { (beta, tau, u, q) by nuts; m by hmc(steps = 10); }
"""


def moves_data(n, p, groups):
    r = np.random.default_rng(6)
    X, g = r.normal(size=(n, p)).round(3), r.integers(1, groups + 1, n)
    eta = X[:, :3] @ np.array([1.0, -0.5, 0.2]) + 0.7 * r.normal(size=groups)[g - 1]
    return {"N": n, "p": p, "G": groups, "X": X.tolist(), "g": g.tolist(), "y": (r.uniform(size=n) < 1
            / (1 + np.exp(-eta))).astype(int).tolist(),
            "z": r.choice([1, 2, 3], n, p=[0.5, 0.3, 0.2]).tolist(), "v": (0.8 + 1.5 * r.normal(size=n)).round(3).tolist()}


# Predictors of several outputs: two matrices of coefficients in one reading of the rows, a scale that they add up a slope for, rows that a
# condition leaves out.
SEVERAL = """
model several
data { int N, p; int<lower=2> K; matrix[N, p] X; int<lower=1, upper=K> y[N], z[N]; vector[N] v; }
prior {
  matrix[p, K] B ~ normal(0, 1);
  vector[K] b ~ normal(0, 1);
  matrix[K, p] C ~ normal(0, 1);
  real<lower=0> s ~ half_normal(0, 1);
}
likelihood {
  for (i in 1:N) {
    y[i] ~ categorical_logit(b + X[i] * B);
    if (v[i] > -1) z[i] ~ categorical_logit(s * (C * X[i]));
  }
}
infer { (B, b, C, s) by nuts; }
"""


def by_group_data(n, levels, others, missing=0.0):
    r = np.random.default_rng(n)
    y = [None if r.random() < missing else v for v in r.standard_normal(n).tolist()]
    return {"N": n, "I": levels, "J": others, "y": y, "x": r.standard_normal(n), "a": r.integers(1, levels + 1, n),
            "b": r.integers(1, others + 1, n)}


def several_data(n, p, K):
    r = np.random.default_rng(8)
    X = r.normal(size=(n, p)).round(3)
    classes = [((X @ r.normal(size=(p, K)) + r.gumbel(size=(n, K))).argmax(1) + 1).tolist() for _ in range(2)]
    return {"N": n, "p": p, "K": K, "X": X.tolist(), "y": classes[0], "z": classes[1], "v": r.normal(size=n).round(3).tolist()}


LARGE = """
model large
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { for (j in 1:p) beta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * beta); }
"""


def wide_data(n, p):
    r = np.random.default_rng(5)
    X = r.normal(size=(n, p))
    return {"N": n, "p": p, "X": X.round(3).tolist(), "y": (X[:, 0] - X[:, 1] + r.normal(size=n)).round(3).tolist()}


# ---- build ----

def compile_program(folder, name, source, *options):
    # No GPU is shown to gmc, so that it leaves compiling to NVRTC at the start of a program, or to --arch.
    environment = {"VIRTUAL_ENV": sys.prefix, **os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run([GMC, "-q", source, "-o", os.path.join(folder, name), *options], capture_output=True, text=True, env=environment)
    if ran.returncode == 5 and "NVRTC is not installed" in ran.stderr:
        print("skipped: " + ran.stderr.strip())
        sys.exit(0)
    if ran.returncode != 0:
        print("%s: gmc gave %d\n%s%s" % (name, ran.returncode, ran.stdout, ran.stderr))
    return ran.returncode == 0


def examples():
    """{name: (the arguments after ./fit, the files they need)} of every folder of examples/, from the first ./fit line of its README. Not
    of those whose data are made first (prepare.py, .npy), nor of those whose components have no order, so that two runs agree on no element
    (`fit relabel`), nor of those that are about other data (--new)."""
    found = {}
    for model in sorted(glob.glob(os.path.join(ROOT, "examples/*/*.gm"))):
        folder, name = os.path.dirname(model), os.path.basename(model)[:-3]
        with open(os.path.join(folder, "README.md")) as f:
            lines = [line for line in f if line.startswith("    ./fit ")]
        command = lines[0].split()[1:] if lines else None
        if command is None:
            sys.exit("devices.py: examples/%s/README.md names no ./fit command" % name)
        if any(line.startswith("    ./fit relabel") for line in lines) or "--new" in command:
            continue
        if any(w.endswith(".npy") and not os.path.exists(os.path.join(folder, w.split("=")[-1])) for w in command):
            continue
        files = [w.split("=")[-1].split(":")[0] for w in command if os.path.exists(os.path.join(folder, w.split("=")[-1].split(":")[0]))]
        for option in ("--samples", "--seed"):        # the comparison's own
            if option in command:
                at = command.index(option)
                del command[at:at + 2]
        found[name] = command, [os.path.join(folder, f) for f in files]
    return found


# A covariance that has a factor only where distances are in double precision: rounded to single precision, its least eigenvalue is -2e-8
# a^2. What it magnifies rounding by is 1e9, so that devices agree to BY_ROWS.
NEARLY_SINGULAR = """
model nearly_singular
data { int N; vector[N] x, y; }
prior {
  a ~ half_normal(0, 1); s ~ half_normal(0, 1);
  for (i in 1:N, j in 1:N) K[i, j] = a^2 * exp(-0.5 * (x[i] - x[j])^2) + (i == j ? 1e-9 : 0);
  f ~ multi_normal(rep_vector(0, N), K);
}
likelihood { for (i in 1:N) y[i] ~ normal(f[i], s); }
"""


def near_data():
    r = np.random.default_rng(8)
    x = 0.2 * np.arange(15) + 0.013 * np.sin(5 * np.arange(15))
    return {"N": 15, "x": x.tolist(), "y": (np.sin(2 * x) + 0.3 * r.normal(size=15)).round(3).tolist()}


def build(folder, part="1/1"):
    from program import random_data, takes_random_data
    from random_models import random_model
    os.makedirs(folder, exist_ok=True)
    runs, shown, by_rows = {}, examples(), []
    files = sorted(glob.glob(os.path.join(ROOT, "tests/graph/*.gm")) + glob.glob(os.path.join(ROOT, "examples/*/*.gm")))
    models = [(os.path.basename(f)[:-3], open(f).read()) for f in files] + [("random_%d" % s, random_model(s)) for s in range(1, 16)]
    models += [("wide", WIDE), ("improper", IMPROPER), ("moves", MOVES), ("together", MOVES.replace("model moves",
            "model together").replace("by nuts", "by chees")), ("several", SEVERAL), ("by_group", BY_GROUP), ("large", LARGE),
            ("lags", LAGS), ("trends", TRENDS), ("vectors", VECTORS), ("field", FIELD), ("crossed", CROSSED),
            ("nearly_singular", NEARLY_SINGULAR), ("schools", open(os.path.join(ROOT, "tests/golden/eight_schools/model.gm")).read())]
    twice = {name for name, _ in models if sum(name == other for other, _ in models) > 1}
    if twice:
        sys.exit("devices.py: two models are named %s" % ", ".join(sorted(twice)))
    k, n = (int(word) for word in part.split("/"))
    models = [m for m in models if m[0] != "definitions_chain" and takes_random_data(m[1])][k - 1::n]
    for name in ("moves", "together", "several", "nearly_singular"):
        shown[name] = ([name + "_0.json"], [])
    # the second: several chunks of iterations, more columns than a block has threads
    given = {"moves": [moves_data(300, 3, 12), moves_data(2500, 270, 40)],
              "together": [moves_data(300, 3, 12), moves_data(2500, 270, 40)],
              "several": [several_data(300, 8, 3), several_data(1500, 141, 4)],
              "lags": [chain_data(5000), chain_data(331)], "trends": [chain_data(3, 1501)], "vectors": [chain_data(1201, 5)],
              "field": [field_data(2), field_data(33)], "crossed": [crossed_data(0, 1, 3), crossed_data(30, 40, 3),
                                                                    crossed_data(3000, 60, 45), crossed_data(20000, 2000, 8)],
              "by_group": [by_group_data(40000, 3000, 4), by_group_data(3000, 40, 7, 0.1)],
              "wide": [wide_data(300, 150), wide_data(40, 150)], "improper": [{"N": 2, "y": [1.0, 2.0], "x": [0.0, 0.0]}],
              "nearly_singular": [near_data()], "large": [], "schools": []}

    def one(model):
        name, text = model
        source = os.path.join(folder, name + ".gm")
        with open(source, "w") as f:
            f.write(text)
        if not compile_program(folder, name, source):     # a model that is refused
            return None
        data = given[name] if name in given else [random_data(text, 1)]
        # the mean of a field and the level are identified by one node alone: drawn with all tiles, where no library finds an order, it is
        # off by 1.4e-9
        if name in ("field", "nearly_singular") or "by rows if" in subprocess.run([GMC, "-q", "--emit=schedule", source],
                capture_output=True, text=True).stdout:
            by_rows.append(name)
            if name not in ("wide", "field", "nearly_singular"):
                data.append(random_data(text, 1, {"N": 4, "p": 9, "T": 2}))
        return data

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        made = list(pool.map(one, models))
    for (name, _), data in zip(models, made):
        if not data:
            continue
        runs[name] = []
        for k, values in enumerate(data):
            runs[name].append("%s_%d.json" % (name, k))
            with open(os.path.join(folder, runs[name][-1]), "w") as f:
                json.dump(values, f, default=lambda v: v.tolist())
    for _, files in shown.values():
        for file in files:
            shutil.copy(file, folder)
    with open(os.path.join(folder, "runs.json"), "w") as f:
        json.dump({"compare": runs, "by_rows": by_rows, "examples": {name: command for name, (command, _) in shown.items()}}, f)
    return 0 if k > 1 or away.build(folder, compile_program) else 1


# ---- run ----

def gpus():
    try:
        return max(1, subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU "))
    except OSError:
        return 1


TURNS = itertools.cycle(range(gpus()))


def fit(folder, name, inputs, *options, seconds=120):
    """Runs a program on the next GPU in order; a program that names its GPU sees all of them."""
    words = inputs.split() if isinstance(inputs, str) else inputs
    seen = os.environ if any(o.startswith("gpu:") for o in options) else {**os.environ, "CUDA_VISIBLE_DEVICES": str(next(TURNS))}
    try:
        # killed when it ends
        return subprocess.run([os.path.join(".", name), *words, *options], cwd=folder, capture_output=True, text=True, timeout=seconds,
                              env=seen)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 124, "", "no end after %d s" % seconds)


def draws(folder, stem, chains=4):
    out = []
    for c in range(1, chains + 1):
        with open(os.path.join(folder, "%s_%d.csv" % (stem, c))) as f:
            names = next(line for line in f if line[0] != "#").strip().split(",")
            out.append(np.loadtxt(f, delimiter=",", comments="#", ndmin=2))
    # a sampler's diagnostics are no quantity
    kept = [k for k, name in enumerate(names) if name == "lp__" or not name.endswith("__")]
    return [names[k] for k in kept], np.array(out)[:, :, kept]


def means(x, batches=20):
    """Means and their squared errors by batch means; x[chain, draw, column]."""
    size = x.shape[1] // batches
    b = x[:, : size * batches].reshape(-1, size, x.shape[2]).mean(axis=1)
    return b.mean(axis=0), b.var(axis=0, ddof=1) / len(b)


def asked(name):
    return ["--log-lik", "--predict"] if name in ASKED else []


def compare(folder, name, data, loose):
    ran = fit(folder, name, data, "--compare-devices", "--seed", "1", "--chains", "2", "-q")
    bad = [line for line in ran.stdout.splitlines() if "FAILED" in line]
    apart = [float(re.search(r" ([-+.\w]+)  FAILED", line).group(1)) for line in bad]
    if loose and ran.returncode == 1 and "the devices DIFFER" in ran.stdout and apart and all(a <= BY_ROWS for a in apart):
        return True, "%s %s: agree to %.1e, by rows" % (name, data, max(apart))
    if ran.returncode == 5 and "on the CPU alone" in ran.stderr:
        return True, "%s %s: refused, with its reason: %s" % (name, data, ran.stderr.strip().split(": ", 1)[1])
    return ran.returncode == 0, "%s %s: %s" % (name, data, "agree" if ran.returncode == 0 else "status %d %s %s" % (ran.returncode,
            "; ".join(bad), ran.stderr.strip()[-500:]))


def posterior(folder, name, inputs, precision):
    common = ["--seed", "7", "--samples", "4000", "--no-summary", "-q", *asked(name)]
    stem = "%s_%s" % (name, precision)
    gpu = fit(folder, name, inputs, "--device", "gpu", "--precision", precision, "--overwrite", "-o", stem, *common)
    if gpu.returncode != 0:
        return False, "%s %s: status %d %s" % (name, precision, gpu.returncode, gpu.stderr[-500:])
    names, x = draws(folder, stem)
    _, y = draws(folder, name + "_cpu")
    with np.errstate(invalid="ignore"):
        (mx, vx), (my, vy) = means(x), means(y)
    keep = (vx + vy > 0) & np.isfinite(vx + vy) & [not n.startswith(OF_A_RUN[name == "together"]) for n in names]
    z = np.abs(mx - my)[keep] / np.sqrt((vx + vy)[keep])
    worst = int(np.argmax(z))
    return z[worst] < 6, "%s %s: largest |z| %.2f (%s), bound 6" % (name, precision, z[worst], np.array(names)[keep][worst])


def body(folder, stem, chain):
    with open(os.path.join(folder, "%s_%d.csv" % (stem, chain))) as f:
        return [line for line in f if line[0] != "#"]


def repeats(folder, name, inputs):
    common = ["--seed", "11", "--samples", "50", "--warmup", "20", "--no-summary", "-q", "--device", "gpu", *asked(name)]
    results, one, two = [], name + "_first", name + "_second"
    fit(folder, name, inputs, *common, "--overwrite", "-o", one)
    for what, options, chains in (("again", [], 4), ("two chains", ["--chains", "2"], 2), ("without graphs", ["--profile"], 4),
                                  ("the last two", ["--first-chain", "3", "--chains", "2"], 2)):
        ran = fit(folder, name, inputs, *common, "--overwrite", "-o", two, *options)
        first = 3 if what == "the last two" else 1
        same = ran.returncode == 0 and all(body(folder, one, first + k) == body(folder, two, first + k) for k in range(chains))
        results.append((same, "%s, %s: %s" % (name, what, "the same draws" if same else "other draws (status %d) %s" % (ran.returncode,
                ran.stderr[-300:]))))
    return results


def fault(folder):
    ran = fit(folder, "improper", "improper_0.json", "--device", "gpu", "--seed", "1")
    good = ran.returncode == 4 and "fault: a" in ran.stderr and "not proper" in ran.stderr
    return good, "improper: status %d, %s" % (ran.returncode, "named" if good else ran.stderr[-300:])


def large(folder):
    n, p, true = 500_000, 56, [1.0, -1.0, 0.5]
    r = np.random.default_rng(9)
    X = r.standard_normal((n, p))
    y = (r.uniform(size=n) < 1 / (1 + np.exp(-X[:, :3] @ true))).astype(np.int32)
    np.save(os.path.join(folder, "large_X.npy"), X)
    np.save(os.path.join(folder, "large_y.npy"), y)
    ran = fit(folder, "large", "X=large_X.npy y=large_y.npy", "--device", "gpu", "--seed", "1", "--warmup", "100", "--samples", "200",
              "--overwrite", "-o",
              "large", "--no-lp", "--params", "beta", "--no-summary", "-q", seconds=60)
    if ran.returncode != 0:
        return False, "large: status %d %s" % (ran.returncode, ran.stderr[-300:])
    _, x = draws(folder, "large")
    x = x[:, 50:, :].reshape(-1, x.shape[2])
    z = np.abs(x.mean(axis=0) - np.array(true + [0.0] * (p - 3))) / x.std(axis=0)
    return z.max() < 6, "large: largest |z| %.2f, bound 6" % z.max()


def many(folder):
    n, p = 5300, 5200
    r = np.random.default_rng(10)
    X = r.standard_normal((n, p))
    np.save(os.path.join(folder, "many_X.npy"), X)
    np.save(os.path.join(folder, "many_y.npy"), X[:, 0] - X[:, 1] + r.standard_normal(n))
    ran = fit(folder, "wide", "X=many_X.npy y=many_y.npy", "--compare-devices", "--seed", "1", "--chains", "1", "-q", seconds=200)
    return ran.returncode == 0, "wide, 5200 coefficients: %s" % ("agree" if ran.returncode == 0 else "status %d %s %s" % (ran.returncode,
            ran.stdout[-600:], ran.stderr[-300:]))


def calibration(folder):
    began = time.monotonic()
    with open(os.path.join(folder, "schools.json"), "w") as f:
        json.dump({"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}, f)
    ran = fit(folder, "schools", "calibrate schools.json", "--device", "gpu", "--sims", "1000", "--seed", "1", "-q", seconds=200)
    return ran.returncode == 0, "eight schools, 1000 simulations in %.1f s: %s" % (
        time.monotonic() - began, "uniform" if ran.returncode == 0 else "status %d %s %s" % (ran.returncode, ran.stdout, ran.stderr[-300:]))


def run(folder, only, posteriors=True):
    with open(os.path.join(folder, "runs.json")) as f:
        built = json.load(f)
    runs = {n: d for n, d in built["compare"].items() if not only or n in only}
    shown = {n: d for n, d in built["examples"].items() if n in runs}
    if not runs:
        print("devices: there is no such model")
        return 1
    probe = fit(folder, next(iter(runs)), runs[next(iter(runs))][0], "--device", "gpu", "--warmup", "0", "--samples", "1", "--no-summary",
                "--seed", "1")
    if probe.returncode == 5 and "--device gpu" in probe.stderr:
        print("test-gpu: it cannot run here: " + probe.stderr.strip().splitlines()[-1])
        return 3
    # NVRTC takes seconds a program: one core each. What is compiled is kept for the runs below. The CPU's draws are made beside it.
    quiet = ["--warmup", "0", "--samples", "1", "--chains", "1", "--no-summary", "-q", "--seed", "1", "--device", "gpu"]
    warm = [(n, shown[n], p) for n in shown for p in (PRECISIONS if posteriors else ()) if (n, p) != ("nearly_singular", "single")] + [(n,
            d[0], "double") for n, d in runs.items()]
    chosen = list(shown) if posteriors else []
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        cpu = [pool.submit(fit, folder, n, shown[n], "--device", "cpu", "--seed", "8", "--samples", "4000", "--threads", "2",
                           "--no-summary", "-q", "--overwrite", "-o", n + "_cpu", *asked(n), seconds=300) for n in chosen]
        list(pool.map(lambda w: fit(folder, w[0], w[1], *quiet, "--precision", w[2], seconds=300), warm))
        results = [(c.result().returncode == 0, "%s on the CPU: status %d" % (n, c.result().returncode)) for n,
                   c in zip(chosen, cpu) if c.result().returncode != 0]
    clock("compiled", len(warm))
    with ThreadPoolExecutor(AT_ONCE * gpus()) as pool:
        jobs = [pool.submit(compare, folder, name, data, name in built["by_rows"]) for name in runs if name != "improper"
                for data in runs[name]]
        # there its joint normal is not proper, and the run says so
        jobs += [pool.submit(posterior, folder, name, shown[name], precision) for name in chosen for precision in PRECISIONS
                 if (name, precision) != ("nearly_singular", "single")]
        several = [pool.submit(repeats, folder, name, shown[name]) for name in REPEATED if name in shown]
        shown_so_far = show(results, 0)
        for more in (j.result() if isinstance(j.result(), list) else [j.result()] for j in jobs + several):
            results += more
            shown_so_far = show(results, shown_so_far)
    clock("compared", len(jobs))
    if os.path.exists(os.path.join(folder, "large")) and (not only or "large" in only):
        results.append(large(folder))
    if "wide" in runs:
        results.append(many(folder))
    if os.path.exists(os.path.join(folder, "away_groups")) and (not only or "away" in only):
        results += away.run(folder, fit, body)
    if "improper" in runs:
        results.append(fault(folder))
    if os.path.exists(os.path.join(folder, "schools")) and (not only or "schools" in only):
        results.append(calibration(folder))
    show(results, shown_so_far)
    failed = sum(not good for good, _ in results)
    print("models: %d passed, %d failed" % (len(results) - failed, failed))
    return 1 if failed else 0


def show(results, first):
    """Prints what came since; how many there are."""
    for good, text in results[first:]:
        print("ok  " if good else "FAIL", text, flush=True)
    return len(results)


def clock(what, n, started=time.monotonic()):
    print("     %s %d programs after %.0f s" % (what, n, time.monotonic() - started), flush=True)


# ---- compile ----

def compile_all():
    """What gmc puts into a program, without a GPU: PTX, and machine code in every precision, of a model with little of the runtime where
    one drawn by NUTS has shown that it compiles. Whether all models compile is asked by nvrtc.py."""
    import tempfile
    small = "tests/graph/conj_uniform_mean.gm"
    models = ["tests/golden/eight_schools/model.gm", small, small, small]
    jobs = [(os.path.join(ROOT, m), ["--arch", a, "--precision", p]) for m, a, p in zip(models, ("sm_80", "sm_90", "sm_90", "compute_80"),
            ("mixed", "double", "single", "mixed"))]
    with tempfile.TemporaryDirectory() as folder:
        results = [(compile_program(folder, "program", f, *options), os.path.relpath(f, ROOT) + " " + " ".join(options)) for f,
                   options in jobs]
    for good, text in results:
        print("ok  " if good else "FAIL", text)
    failed = sum(not good for good, _ in results)
    print("%d passed, %d failed" % (len(results) - failed, failed))
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ["build"]:
        sys.exit(build(*sys.argv[2:4]))
    elif sys.argv[1:2] == ["run"]:
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    elif sys.argv[1:2] == ["compare"]:
        sys.exit(run(sys.argv[2], sys.argv[3:], posteriors=False))
    elif sys.argv[1:2] == ["compile"]:
        sys.exit(compile_all())
    else:
        print(__doc__)
        sys.exit(2)


if __name__ == "__main__":
    main()
