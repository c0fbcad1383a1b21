"""Gibbs updates and NUTS under method selection, on a GPU: effective draws a second of each, and which of them a program takes by itself.

    selection_gpu.py build FOLDER           compiles each model by --method gibbs, --method nuts and by default
    selection_gpu.py run FOLDER [NAME...]   measures. A NAME is a part of a workload's name
    selection_gpu.py [NAME...]              both

Effective draws are the least ess_bulk of the summary over all unknowns; a second counts everything from the first sweep to the last,
warm-up included. Data are random, seeds are fixed. The posterior means of the first unknown must agree within 6 of their errors, and what
is taken must not be slower than the better method by more than a factor of 3: else it says so, with exit status 1. A warm-up of W sweeps
tries both ways for 0.65 W of them, so that of two methods of which one is far slower the choice costs up to that much of its time.
"""
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
DEVICE = os.environ.get("BENCH_DEVICE", "gpu")

MODELS = {
    "logistic": """
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { alpha ~ normal(0, 5); for (j in 1:p) beta[j] ~ normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(alpha + X[i] * beta); }
""",
    "rates": """
data { int N; int<lower=0> y[N]; real t[N]; }
prior { a ~ exponential(1); b ~ gamma(1, 1); for (i in 1:N) r[i] ~ gamma(a, b); }
likelihood { for (i in 1:N) y[i] ~ poisson(r[i] * t[i]); }
""",
    "mixed": """
data { int N, p, G; matrix[N, p] X; int<lower=1, upper=G> g[N]; int<lower=0> y[N]; }
prior {
  alpha ~ normal(0, 5);
  tau ~ half_normal(0, 1);
  for (j in 1:p) beta[j] ~ normal(0, 1);
  for (k in 1:G) u[k] ~ normal(0, tau);
}
likelihood { for (i in 1:N) y[i] ~ poisson(exp(alpha + X[i] * beta + u[g[i]])); }
""",
}

#  name, model, rows, columns, groups, numbers of chains, sweeps of warm-up and after it
WORKLOADS = [
    ("logistic regression, 768 x 8", "logistic", 768, 8, 0, (1, 4), 1000, 1000),
    ("Poisson-gamma, 1000 groups", "rates", 1000, 0, 0, (1, 4), 1000, 1000),
    ("Poisson mixed model, 5000 x 2, 100 groups", "mixed", 5000, 2, 100, (4, 32), 1000, 1000),
    ("Poisson mixed model, 50,000 x 10, 500 groups", "mixed", 50_000, 10, 500, (4,), 400, 400),
]

METHODS = ("gibbs", "nuts", "chosen")


def build(folder):
    os.makedirs(folder, exist_ok=True)

    def one(work):
        model, method = work
        source = os.path.join(folder, model + ".gm")
        subprocess.run([GMC, "-q", *(["--method", method] if method != "chosen" else []), source, "-o",
                        os.path.join(folder, "%s_%s" % work)], check=True,
                       env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    for model, text in MODELS.items():
        with open(os.path.join(folder, model + ".gm"), "w") as f:
            f.write("model " + model + text)
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(one, [(model, method) for model in MODELS for method in METHODS]))


def poisson(r, mean):
    k, product, least = 0, r.random(), math.exp(-mean)
    while product > least:
        product *= r.random()
        k += 1
    return k


def data(folder, name, model, n, p, groups):
    r = random.Random(name)
    if model == "rates":
        rates, t = [r.gammavariate(2, 1) for _ in range(n)], [r.uniform(0.5, 5) for _ in range(n)]
        made = {"N": n, "t": t, "y": [poisson(r, a * b) for a, b in zip(rates, t)]}
    else:
        X = [[(0.3 if groups else 1) * r.gauss(0, 1) for _ in range(p)] for _ in range(n)]
        beta = [0.3 * r.gauss(0, 1) for _ in range(p)]
        eta = [0.3 + sum(a * b for a, b in zip(row, beta)) for row in X]
        made = {"N": n, "p": p, "X": X}
        if groups:
            g, u = [r.randrange(groups) for _ in range(n)], [0.5 * r.gauss(0, 1) for _ in range(groups)]
            made.update(G=groups, g=[k + 1 for k in g], y=[poisson(r, math.exp(e + u[k])) for e, k in zip(eta, g)])
        else:
            made["y"] = [int(r.random() < 1 / (1 + math.exp(-e))) for e in eta]
    path = os.path.join(folder, re.sub(r"\W+", "_", name) + ".json")
    with open(path, "w") as f:
        json.dump(made, f)
    return path


def fit(folder, program, inputs, chains, warmup, samples):
    """The summary, and the seconds from the first sweep to the last."""
    ran = subprocess.run([os.path.join(folder, program), inputs, "--device", DEVICE, "--chains", str(chains), "--warmup", str(warmup),
                          "--samples", str(samples), "--no-lp", "--seed", "1", "--summary", "all"],
                         capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit("bench: %s: status %d %s" % (program, ran.returncode, ran.stderr[-500:]))
    return ran.stdout + ran.stderr, float(re.search(r"in ([0-9.e+-]+) s", ran.stdout + ran.stderr).group(1))


def rows(table):
    """{unknown: (mean, error of the mean, ess_bulk)}"""
    out = {}
    for line in table.splitlines():
        words = line.split()
        if re.match(r"[A-Za-z_]\w*(\[[\d, ]+\])? +-?[\d.]", line) and len(words) >= 9:
            words = re.sub(r"\[(.*?)\]", lambda at: "[" + at.group(1).replace(" ", "") + "]", line).split()
            try:
                numbers = [float(w) for w in words[1:]]
            except ValueError:
                continue
            out[words[0]] = (numbers[0], numbers[1], numbers[-3])
    return out


def said(text):
    found = re.search(r"^Sampler: (.*)$", text, re.M)
    return found.group(1) if found else "nothing"


def run(folder, only):
    failed = []
    print("| model | chains | steps | moves | chosen | what it took |\n| --- | --- | --- | --- | --- | --- |")
    chosen = [w for w in WORKLOADS if not only or any(o in w[0] for o in only)]
    inputs = {w[0]: data(folder, *w[:5]) for w in chosen}
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:        # compiles the kernels for these data
        list(pool.map(lambda work: fit(folder, "%s_%s" % (work[0][1], work[1]), inputs[work[0][0]], 1, 1, 1),
                      [(w, m) for w in chosen for m in METHODS]))
    for name, model, *_, all_chains, warmup, samples in chosen:
        for chains in all_chains:
            pace, first, took = {}, {}, ""
            for method in METHODS:
                text, seconds = fit(folder, "%s_%s" % (model, method), inputs[name], chains, warmup, samples)
                table = rows(text)
                pace[method] = min(x[2] for x in table.values()) / seconds
                first[method] = next(iter(table.values()))
                took = said(text)
                print("    %s, %d chains, %s: %.2f s, %s" % (name, chains, method, seconds, took), file=sys.stderr, flush=True)
            print("| %s | %d | %s | %s |" % (name, chains, " | ".join("%.3g" % pace[m] for m in METHODS), took), flush=True)
            if pace["chosen"] < max(pace.values()) / 3:
                failed.append("%s, %d chains: what is taken is more than 3 times slower" % (name, chains))
            for method in METHODS[:2]:
                apart = abs(first[method][0] - first["chosen"][0]) / math.hypot(first[method][1], first["chosen"][1])
                if not apart < 6:
                    failed.append("%s, %d chains: the mean of --method %s is %.1f errors away" % (name, chains, method, apart))
    for text in failed:
        print("FAIL " + text)
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) == 3:
        build(sys.argv[2])
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            build(folder)
            sys.exit(run(folder, sys.argv[1:]))


main()
