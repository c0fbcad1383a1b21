#!/usr/bin/env python3
"""Mixtures and topics on the CPU, gmc beside JAGS: time to build, milliseconds a sweep, effective draws a second. One core each, one run.

    tests/bench/mixtures.py [NAME...] [--work DIR] [--sweeps 2000] [--jags-sweeps 100] [--without-jags]

Models are tests/bench/mixtures/NAME.gm and .jags; data are simulated here from fixed seeds. Both start where they start by themselves, and
get a warm-up of a fifth of their sweeps beside it. Effective draws are ArviZ's ess_bulk, its median over what is compared: labels are
sorted by the first coordinate of their means in each draw (normals, multivariate); topics are compared as sum(k, theta[d, k]*phi[k, v]) of
40 pairs of a document and a word, which labels do not change. With few JAGS sweeps its figure is rough (its effective draws are known to a
factor of some 1.5); the time of a sweep is not. Time to build: reading the model and data, for gmc the compiler too.

Needs build/gmc, jags, numpy and arviz.
"""
import argparse
import json
import os
import re
import subprocess
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


# ---- data ----

def normals(r, n=10_000):
    c = r.choice(3, n, p=[0.5, 0.3, 0.2])
    return dict(N=n, K=3, y=np.round(r.normal(np.array([-2.0, 1.0, 4.0])[c], np.array([0.8, 0.6, 1.2])[c]), 5))


def multivariate(r, n=10_000, p=5, K=10):
    c = r.integers(0, K, n)
    mu = r.normal(size=(K, p)) * 4
    L = r.normal(size=(K, p, p)) * 0.4 + np.eye(p)
    return dict(N=n, p=p, K=K, y=np.round(mu[c] + np.einsum("nij,nj->ni", L[c], r.normal(size=(n, p))), 5))


def topics(r, D=500, V=200, K=5, length=20):
    theta, phi = r.dirichlet(np.full(K, 0.3), D), r.dirichlet(np.full(V, 0.05), K)
    doc = np.repeat(np.arange(D), length)
    z = (theta[doc].cumsum(1) < r.random(D * length)[:, None]).sum(1).clip(max=K - 1)
    word = (phi.cumsum(1)[z] < r.random(D * length)[:, None]).sum(1).clip(max=V - 1)
    return dict(N=D * length, D=D, V=V, K=K, doc=doc + 1, word=word + 1)


SEEDS = {"normals": 1, "multivariate": 2, "topics": 3}
DATA = {"normals": normals, "multivariate": multivariate, "topics": topics}
# What JAGS is given besides: vectors and matrices that the other language makes by functions.
BESIDE = {
    "normals": lambda d: dict(ones=np.ones(d["K"])),
    "multivariate": lambda d: dict(ones=np.ones(d["K"]), zero=np.zeros(d["p"]), P=np.eye(d["p"]) / 100, I=np.eye(d["p"])),
    "topics": lambda d: dict(half=np.full(d["K"], 0.5), tenth=np.full(d["V"], 0.1)),
}
KEPT = {"normals": ["w", "mu", "tau"], "multivariate": ["w", "mu"], "topics": ["theta", "phi"]}


# ---- what is compared: draws by quantity, free of labels ----

def compared(name, values, data):
    """values: {variable: draws x shape}. One column for each quantity."""
    if name == "topics":
        r = np.random.default_rng(9)
        pairs = zip(r.integers(0, data["D"], 40), r.integers(0, data["V"], 40))
        return np.stack([(values["theta"][:, d] * values["phi"][:, :, v]).sum(1) for d, v in pairs], 1)
    by = values["mu"] if values["mu"].ndim == 2 else values["mu"][:, :, 0]
    order = by.argsort(1)
    sorted_ = [np.take_along_axis(v, order.reshape(order.shape + (1,) * (v.ndim - 2)), 1) for v in values.values()]
    return np.concatenate([v.reshape(len(v), -1) for v in sorted_], 1)


def effective(columns):
    import arviz as az
    return np.array([az.ess(column[None], method="bulk") for column in columns.T])


def shaped(names, draws, variable):
    """Draws of one variable, from columns named v.2.1 or v[2,1]."""
    where = {tuple(int(k) for k in re.findall(r"\d+", n[len(variable):])): j for j,
             n in enumerate(names) if re.match(re.escape(variable) + r"[.\[]", n)}
    shape = tuple(np.array(list(where)).max(0))
    out = np.empty((len(draws),) + shape)
    for at, j in where.items():
        out[(slice(None),) + tuple(k - 1 for k in at)] = draws[:, j]
    return out


# ---- contenders ----

def run_gmc(name, data, work, sweeps):
    began = time.time()
    fit = os.path.join(work, name)
    subprocess.run([os.path.join(ROOT, "build", "gmc"), "-q", os.path.join(HERE, "mixtures", name + ".gm"), "-o", fit], check=True)
    with open(fit + ".json", "w") as f:
        json.dump({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}, f)
    compiled = time.time() - began

    def seconds(warmup, kept):
        at = time.time()
        subprocess.run([fit, fit + ".json", "--device", "cpu", "--threads", "1", "--chains", "1", "--seed", "1", "--warmup", str(warmup),
                        "--samples", str(kept), "--params", ",".join(KEPT[name]),
                        "--no-lp", "--no-summary", "--overwrite", "-o", fit + "_draws"], check=True, stdout=subprocess.DEVNULL)
        return time.time() - at
    short = seconds(1, 1)
    long = seconds(sweeps // 5, sweeps)
    with open(fit + "_draws_1.csv") as f:
        lines = [line for line in f if not line.startswith("#")]
    names = lines[0].strip().split(",")
    draws = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    return compiled + short, (long - short) / (sweeps + sweeps // 5), {v: shaped(names, draws, v) for v in KEPT[name]}


def r_text(v):
    if np.ndim(v) == 0:
        return repr(v.item() if hasattr(v, "item") else v)
    flat = "c(%s)" % ", ".join(repr(x) for x in np.asarray(v).ravel(order="F").tolist())
    return flat if np.ndim(v) == 1 else "structure(%s, .Dim = c(%s))" % (flat, ", ".join(map(str, v.shape)))


def run_jags(name, data, work, sweeps):
    base = os.path.join(work, name + "_jags")
    with open(base + ".data", "w") as f:
        for k, v in {**data, **BESIDE[name](data)}.items():
            f.write('"%s" <- %s\n' % (k, r_text(v)))
    kept = "".join("monitor %s\n" % v for v in KEPT[name])
    script = ("model in \"%s\"\ndata in \"%s\"\ncompile, nchains(1)\nparameters in \"%s\"\ninitialize\npwd\nupdate %d\npwd\n%supdate "
              "%d\npwd\ncoda *, stem(\"%s\")\nexit\n"
              % (os.path.join(HERE, "mixtures", name + ".jags"), base + ".data", base + ".inits", max(sweeps // 5, 10), kept, sweeps, base))
    with open(base + ".inits", "w") as f:
        f.write('".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- 1\n')
    with open(base + ".cmd", "w") as f:
        f.write(script)
    began, marks = time.time(), []
    process = subprocess.Popen(["stdbuf", "-oL", "jags", base + ".cmd"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               cwd=work)
    for line in process.stdout:                         # pwd prints the folder: a mark in time
        if line.strip() == os.path.realpath(work):
            marks.append(time.time())
        elif "rror" in line:
            print("jags: " + line.strip())
    if process.wait() != 0 or len(marks) != 3:
        raise SystemExit("mixtures.py: jags failed (%s)" % (base + ".cmd"))
    with open(base + "index.txt") as f:
        index = [line.split() for line in f]
    chain = np.loadtxt(base + "chain1.txt")[:, 1]
    names = [i[0] for i in index]
    draws = np.stack([chain[int(i[1]) - 1:int(i[2])] for i in index], 1)
    return marks[0] - began, (marks[2] - marks[1]) / sweeps, {v: shaped(names, draws, v) for v in KEPT[name]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--work", default="/tmp/gmc_mixtures")
    parser.add_argument("--sweeps", type=int, default=2000)
    parser.add_argument("--jags-sweeps", type=int, default=100)
    parser.add_argument("--without-jags", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    print("%-14s %-6s %10s %12s %14s %16s" % ("model", "by", "build, s", "ms a sweep", "draws, eff.", "effective / s"))
    for name in o.names or list(DATA):
        data = DATA[name](np.random.default_rng(SEEDS[name]))
        rates = {}
        for contender, run, sweeps in [("gmc", run_gmc, o.sweeps)] + ([] if o.without_jags else [("jags", run_jags, o.jags_sweeps)]):
            built, sweep, values = run(name, data, o.work, sweeps)
            ess = float(np.median(effective(compared(name, values, data))))
            rates[contender] = ess / (sweep * sweeps)
            print("%-14s %-6s %10.1f %12.3f %14.0f %16.3g" % (name, contender, built, 1000 * sweep, ess, rates[contender]), flush=True)
        if len(rates) == 2:
            print("%-14s %.3g times the effective draws a second" % (name, rates["gmc"] / rates["jags"]), flush=True)


if __name__ == "__main__":
    main()
