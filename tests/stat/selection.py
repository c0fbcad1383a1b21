"""What a run takes by method selection: NUTS for coefficients that slices draw slowly, Gibbs updates for conjugate ones, with posteriors by
quadrature from runs that have tried both in warm-up; the same draws with any number of threads; what is said of it; one lp__ whichever is
taken. Bounds of 6 Monte Carlo errors, seeds fixed: a change of random numbers rings falsely less than once in 10^6 checks. That the better
method wins is sure by a factor: with this seed gradients give more than 2 and some 0.2 times the effective draws, 1.3 decides."""
import json
import os
import subprocess

import numpy as np
from scipy.special import gammaln, logsumexp

from program import Workplace, draws, mcse

rng = np.random.default_rng(3)
N = 40
x = np.round(8 + rng.normal(size=N), 2)
counts = rng.poisson(np.exp(0.3 * x - 1.5))
events = (rng.random(N) < 1 / (1 + np.exp(8.5 - x))).astype(int)
SLICED = """data { int<lower=0> N; vector[N] x; int<lower=0> y[N]; }
prior { a ~ normal(0, 3); b ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ poisson_log(a + b * x[i]); }
"""
CONJUGATE = """data { int<lower=0> N; int<lower=0> y[N]; }
prior { b ~ gamma(2, 1); for (i in 1:N) theta[i] ~ gamma(2, b); }
likelihood { for (i in 1:N) y[i] ~ poisson(theta[i]); }
"""
AUGMENTED = """data { int<lower=0> N; vector[N] x; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, 3); b ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a + b * x[i]); }
"""


def run(program, data, *more):
    """The draws by name, [chain, draw]; what the summary says last; what the first file says below the names of the method."""
    out = program + "_draws"
    ran = subprocess.run([program, data, "--seed", "5", "--chains", "2", "--samples", "10000",
                          "--overwrite", "-o", out, "-q", *more], capture_output=True,
                         text=True, check=True)
    files = ["%s_%d.csv" % (out, k) for k in (1, 2)]
    tables = list(draws.read(files))
    for file in files:
        os.remove(file)
    said = tables[0][2].split("# Adaptation terminated")[0].split("# \n#  Elapsed")[0]
    return dict(zip(tables[0][0], np.stack([values for _, values, _ in tables], axis=1))), ran.stdout, said


def near(what, draws, known, error=0.0):
    z = abs(draws.mean() - known) / np.hypot(mcse(draws), error)
    print("%s: %s" % (what, "as known" if z < 6 else "%g, known %g, %g errors off" % (draws.mean(), known, z)))


with Workplace() as w:
    program, data = w.compile("sliced", SLICED), w.data("sliced", {"N": N, "x": x, "y": counts})
    d, summary, said = run(program, data)
    print("sliced: " + next(line for line in summary.splitlines() if line.startswith("Sampler: ")))
    print("sliced: " + said.strip())
    a, b = np.meshgrid(np.linspace(-7, 4, 2201), np.linspace(-0.4, 1, 1401), indexing="ij")
    log_p = -a ** 2 / 18 - b ** 2 / 2 + counts.sum() * a + (counts * x).sum() * b
    for v in x:
        log_p -= np.exp(a + b * v)
    p = np.exp(log_p - logsumexp(log_p))
    for name, at in (("a", a), ("b", b)):
        near("sliced: mean of " + name, d[name], (p * at).sum())
        near("sliced: square of " + name, d[name] ** 2, (p * at ** 2).sum())
    same = True
    for seed in range(1, 13):
        chains = []
        for n in ("1", "2"):
            out = program + "_threads_" + n
            subprocess.run([program, data, "--seed", str(seed), "--chains", "2", "--samples", "50", "--threads", n,
                            "--overwrite", "-o", out, "-q",
                            "--no-summary"], capture_output=True, check=True)
            with open(out + "_2.csv") as f:
                chains.append([line for line in f if line[0] != "#"])
        same = same and chains[0] == chains[1]
    print("sliced: %s with any number of threads" % ("the same" if same else "other draws"))
    for method in ("gibbs", "nuts"):                     # 2 chains of 1000 + 50 sweeps; the first 20 are always by Gibbs updates
        subprocess.run([program, data, "--seed", "1", "--chains", "2", "--samples", "50", "--method", method, "--overwrite", "-o",
                        program + "_work", "-q", "--no-summary"], capture_output=True, check=True)
        with open(program + "_work_run.json") as f:
            work = json.load(f)["work"]
        print("sliced, by %s: work of %s" % (method, [(v["of"], v["gibbs_sweeps"], v["transitions"], v["evaluations"] > 3 * 2060)
                                                      for v in work]))
    _, summary, said = run(program, data, "--warmup", "200")
    print("short: " + said.strip())
    far = w.data("far", {"a": -6.5, "b": 0.9})
    d, _, said = run(program, data, "--init", far, "--seed", "4")
    print("from values of a file: " + said.strip())
    near("from values of a file: mean of b", d["b"], (p * b).sum())
    first = subprocess.run([program, data, "--seed", "5", "--chains", "1", "--warmup", "0", "--samples", "1", "--init", far,
                            "--overwrite", "-o",
                            program + "_first", "-q"], capture_output=True, check=True)
    with open(program + "_first_1.csv") as f:
        one = dict(zip(*([v for v in line.strip().split(",")] for line in f if line[0] != "#")))
    print("from values of a file: the first draw is %s" % ("near them" if abs(float(one["a"]) + 6.5) < 1 else "at " + one["a"]))

    program, data = w.compile("conjugate", CONJUGATE), w.data("conjugate", {"N": N, "y": counts})
    d, summary, said = run(program, data)
    print("conjugate: " + said.strip())
    at = np.linspace(0.01, 12, 4000)
    log_p = np.log(at) - at + sum(2 * np.log(at) - (k + 2) * np.log1p(at) + gammaln(k + 2) for k in counts)
    p = np.exp(log_p - logsumexp(log_p))
    near("conjugate: mean of b", d["b"], (p * at).sum())
    print("conjugate: moves tell %s" % ("nothing" if not d["n_leapfrog__"].any() else "something"))
    for warmup in ("0", "10", "200"):
        print("conjugate, %s: " % warmup + run(program, data, "--warmup", warmup)[2].strip())

    program, data = w.compile("augmented", AUGMENTED), w.data("augmented", {"N": N, "x": x, "y": events})
    steps, _, said = run(program, data, "--params", "all,auxiliaries")
    print("augmented: " + said.strip())
    kept, _, said = run(program, data, "--params", "all")
    print("augmented, all: %s, %s" % ("no auxiliaries" if set(steps) > set(kept) >= {"a", "b"} else "these: " + " ".join(kept),
                                      said.strip().split("\n")[0]))
    subprocess.run([os.environ.get("GMC") or os.path.join(os.path.dirname(__file__), "../../build/gmc"), "-q", "--method", "nuts",
                    program + ".gm", "-o", program + "_moved"], check=True)
    moved, _, _ = run(program + "_moved", data)
    for name in ("lp__", "a", "b"):
        near("augmented: " + name, steps[name], moved[name].mean(), mcse(moved[name]))
