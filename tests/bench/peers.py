#!/usr/bin/env python3
"""gmc beside Stan, and nutpie and JAGS where they are there: effective draws a second of the worst parameter, one chain on one core.

    tests/bench/peers.py compile|run|table [NAME...] --work DIR [--httpstan DIR] [--nutpie PYTHON] [--jags JAGS] [--methods auto,nuts]
    [--seeds 3]

Models are those of tests/oracles, or stand in tests/bench/peers beside their Stan programs; simulated data are made here, from fixed seeds.
All contenders get the same data, priors and parameters, and as many iterations of warm-up (1000). They run in turn, with one thread;
seconds are those of the processor, all threads of a process together, so that a busy machine disturbs the ratios less; those of warm-up
have all that comes before the first draw, reading the data and loading libraries too. Draws are as many as take about --target seconds
(1000 at least); effective draws are ArviZ's ess_bulk of the parameters that are compared; figures are medians over seeds. Of several Stan
programs of one model (centred or not) the best one counts. Means of contenders are compared with each other, of all parameters that are
named: a difference beyond 5 standard errors is said, and so are parameters that one of them lacks.

Needs build/gmc, numpy, pandas and arviz; g++ and the folder of PyPI's httpstan (4.13 has Stan 2.35: `pip install httpstan`, its folder in
site-packages), which has stanc and Stan's headers; for nutpie a Python with pymc, numba and nutpie; JAGS runs what stands in
tests/bench/peers/NAME.jags, with its module of generalised linear models, which draws effects in blocks. A Stan program takes about a
minute to compile, some 1 GB for all of them. Results are kept in DIR/results.csv: `run` adds to them.
"""
import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLAGS = ("-O3 -march=native -std=c++17 -pthread -D_REENTRANT -DBOOST_DISABLE_ASSERTS -DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION "
         "-D_GLIBCXX_USE_CXX11_ABI=0 -w".split())
COLUMNS = ("model contender seed draws warmup_s sampling_s worst_ess worst median_ess worst_per_s worst_per_s_with_warmup median_per_s "
           "peak_MB divergent".split())

# What is compared, under the names of the CSV files; other Stan programs of the same model.
MODELS = {
    "linear": ("linear regression, correlated columns, 5000 x 24", "alpha beta sigma"),
    "pdb_nes1972": ("linear regression, nes1972", "beta sigma"),
    "pdb_low_dim_gauss_mix": ("mixture of two normals", "mu sigma theta"),
    "horseshoe_probit": ("horseshoe probit, 1000 x 50", "beta tau"),
    "mixed_logit": ("hierarchical logistic, 20,000 rows", "alpha beta s u"),
    "pdb_eight_schools_centered": ("eight schools, centred", "mu tau theta"),
    "probit": ("probit, 5000 x 20", "beta"),
    "pdb_eight_schools_noncentered": ("eight schools, not centred", "mu tau theta"),
    "bugs_rats": ("rats", "alpha_c beta_c tau_c tau_alpha tau_beta alpha beta"),
    "garch": ("garch(1, 1)", "mu alpha0 alpha1 beta1"),
    "bugs_pump": ("pump", "alpha beta theta"),
    "bugs_seeds": ("random-intercept logistic, seeds", "alpha0 alpha1 alpha2 alpha12 b", "bugs_seeds_noncentred"),
    "pdb_gp_regr": ("Gaussian process", "rho alpha sigma"),
    "neg_binomial": ("negative binomial, 500 x 4", "alpha beta phi"),
    "ref_logit_pima": ("logistic, pima", "alpha beta"),
    "ordered_logit": ("ordered logit, 1000 x 4", "beta c"),
    "pdb_hmm_drive_0": ("hidden Markov", "theta1.1 theta2.1 phi lambda"),
    "mixed_poisson": ("Poisson mixed model, 5000 rows", "alpha beta s u"),
    "gp_poisson": ("Poisson Gaussian process, not centred", "rho alpha f"),
    "crossed": ("crossed effects, 100,000 rows, 1000 x 500", "mu s su sv u v"),
    "partial_credit": ("partial credit, 150 x 12, 4 categories", "sigma theta beta"),
    "generalised_partial_credit": ("generalised partial credit, 150 x 12", "theta alpha beta"),
    "correlated_topics": ("correlated topics, 60 texts of 50 words, 4 topics", "fit words topics spread"),
    "bandit": ("bandit, learning rates and temperatures of 30", "mu_rate mu_temp sd_rate sd_temp rate temp"),
    "joint_survival": ("joint longitudinal and survival, 200 subjects", "mu s cor sigma b shape g0 g1 a", "joint_survival_centred"),
    "kinetics": ("differential equation by subject, 12 subjects", "mu s sigma u", "kinetics_centred"),
    "gp_normal": ("Gaussian process, 120 points", "rho alpha sigma"),
    "cox_icar": ("log-Gaussian Cox, intrinsic field of 15 x 15", "beta sigma phi"),
}


# ---- data ----

def linear(r):
    c = r.lognormal(-0.4, 0.55, 5000)
    side = c[:, None] ** (1 / 3) + 0.03 * r.normal(size=(5000, 3))
    columns = [c, c**2, c**3, *side.T, *(side[:, k] * c for k in range(3)), r.normal(size=5000), r.normal(size=5000)]
    for levels in (5, 7, 4):
        z = r.integers(0, levels, 5000)
        columns += [z == k for k in range(1, levels)]
    X = np.array(columns, float).T
    X = (X - X.mean(0)) / X.std(0)
    b = r.normal(size=X.shape[1]) * 0.3
    return dict(N=5000, p=X.shape[1], X=X, y=7.8 + X @ b + 0.13 * r.normal(size=5000))


def regression(r, n, p, scale):
    X = np.round(r.normal(size=(n, p)), 6)
    return X, X @ (scale * r.normal(size=p))


def grouped(r, n, p, groups, scale, centre):
    X, eta = regression(r, n, p, scale)
    g = r.integers(1, groups + 1, n)
    return dict(N=n, G=groups, p=p, group=g, X=X), eta + centre + 0.7 * r.normal(size=groups)[g - 1]


def probit(r):
    X, eta = regression(r, 5000, 20, 0.5)
    return dict(N=5000, p=20, X=X, y=(r.normal(size=5000) < eta).astype(int))


def horseshoe_probit(r):
    X = r.normal(size=(1000, 50))
    eta = X[:, :5] @ np.array([1.3, -1, 0.8, 0.6, -0.4])
    return dict(N=1000, p=50, X=X, y=(r.normal(size=1000) < eta).astype(int))


def mixed_logit(r):
    data, eta = grouped(r, 20000, 10, 200, 0.5, -0.3)
    return dict(data, y=(r.random(20000) < 1 / (1 + np.exp(-eta))).astype(int))


def mixed_poisson(r):
    data, eta = grouped(r, 5000, 5, 100, 0.3, 0.5)
    return dict(data, y=r.poisson(np.exp(eta)))


def garch(r):
    y, v = [], 1.0
    for _ in range(200):
        y.append(1 + np.sqrt(v) * r.normal())
        v = 0.4 + 0.4 * (y[-1] - 1) ** 2 + 0.4 * v
    return dict(T=200, y=np.array(y), sigma1=1.0)


def neg_binomial(r):
    X, eta = regression(r, 500, 4, 0.4)
    return dict(N=500, p=4, X=X, y=r.poisson(np.exp(1 + eta) * r.gamma(2, 0.5, 500)))


def ordered_logit(r):
    X, eta = regression(r, 1000, 4, 0.7)
    return dict(N=1000, p=4, K=4, X=X, y=1 + np.sum((eta + r.logistic(size=1000))[:, None] > np.array([-1.5, 0, 1.2]), 1))


def crossed(r):
    a, b = r.integers(1, 1001, 100_000), r.integers(1, 501, 100_000)
    y = 1.5 + 0.7 * r.normal(size=1000)[a - 1] + 0.4 * r.normal(size=500)[b - 1] + r.normal(size=100_000)
    return dict(N=100_000, I=1000, J=500, a=a, b=b, y=np.round(y, 6))


def gp_poisson(_):
    with open(os.path.join(ROOT, "tests", "oracles", "pdb_gp_regr", "data.json")) as f:
        data = json.load(f)
    return {k: data[k] for k in ("N", "x", "k")}


def partial_credits(r, alpha, scale):
    theta, beta = scale * r.normal(size=150), np.sort(r.normal(size=(12, 3)), 1) + 0.5 * r.normal(size=(12, 1))
    eta = np.cumsum(np.concatenate([np.zeros((150, 12, 1)), alpha[:, None] * theta[:, None, None] - beta], 2), 2)
    return dict(N=150, I=12, K=4, y=1 + np.argmax(eta + r.gumbel(size=eta.shape), 2))


def partial_credit(r):
    return partial_credits(r, np.ones(12), 1.2)


def generalised_partial_credit(r):
    return partial_credits(r, r.lognormal(0, 0.4, 12), 1)


def correlated_topics(r):
    phi, S = r.dirichlet([0.2] * 40, 4), np.array([[1, 0.6, 0, 0], [0.6, 1, 0, 0], [0, 0, 1, -0.5], [0, 0, -0.5, 1]])
    theta = np.exp(r.multivariate_normal([0.3, 0, 0, -0.3], S, 60))
    doc = np.repeat(np.arange(60), 50)
    z = [r.choice(4, p=theta[d] / theta[d].sum()) for d in doc]
    return dict(K=4, V=40, D=60, N=len(doc), doc=doc + 1, word=np.array([1 + r.choice(40, p=phi[k]) for k in z]))


def bandit(r):
    choice, reward = np.zeros((30, 100), int), np.zeros((30, 100), int)
    rate, temp, pays = 1 / (1 + np.exp(0.8 - 0.8 * r.normal(size=30))), np.exp(1 + 0.4 * r.normal(size=30)), (0.3, 0.7)
    for s in range(30):
        q = np.array([0.5, 0.5])
        for t in range(100):
            k = choice[s, t] = int(r.random() < 1 / (1 + np.exp(temp[s] * (q[0] - q[1]))))
            reward[s, t] = int(r.random() < pays[k if t < 50 else 1 - k])
            q[k] += rate[s] * (reward[s, t] - q[k])
    return dict(S=30, T=100, choice=choice, reward=reward)


def joint_survival(r):
    b, x = r.multivariate_normal([2, 0.3], [[0.8, 0.1], [0.1, 0.09]], 200), r.integers(0, 2, 200)
    points, weights = np.polynomial.legendre.leggauss(15)
    grid = np.linspace(0, 6, 6001)[1:]
    hazard = 1.3 * grid**0.3 * np.exp(-3.5 + 0.4 * x[:, None] + 0.5 * (b[:, :1] + b[:, 1:] * grid))
    gone = np.cumsum(hazard * grid[0], 1) > r.exponential(size=200)[:, None]
    stop, died = np.where(gone.any(1), grid[gone.argmax(1)], 6.0), gone.any(1).astype(int)
    id, time = zip(*[(i, t) for i in range(200) for t in np.arange(0, 6, 0.75) if t < stop[i]])
    id, time = np.array(id), np.array(time)
    y = b[id, 0] + b[id, 1] * time + 0.5 * r.normal(size=len(id))
    return dict(N=200, M=len(id), Q=15, id=id + 1, time=time, y=np.round(y, 6), stop=stop, died=died, x=x, node=(points + 1) / 2,
                weight=weights / 2)


def kinetics(r):
    ka, cl, v = np.exp(np.array([0.4, -3.2, -0.8]) + np.array([0.5, 0.3, 0.15]) * r.normal(size=(12, 3))).T
    sizes, dose = r.integers(7, 12, 12), np.round(r.uniform(3, 6, 12), 2)
    last = np.cumsum(sizes)
    j = np.repeat(np.arange(12), sizes)
    time = np.concatenate([np.sort(np.array([0.25, 0.5, 1, 2, 3.5, 5, 7, 9, 12, 18, 24])[r.permutation(11)[:n]]) for n in sizes])
    ke = cl / v
    mean = (dose * ka / (v * (ka - ke)))[j] * (np.exp(-ke[j] * time) - np.exp(-ka[j] * time))
    return dict(J=12, M=len(j), first=last - sizes + 1, last=last, time=time, conc=np.round(mean + 0.3 * r.normal(size=len(j)), 6),
                dose=dose)


def gp_normal(r):
    x = np.round(np.sort(r.uniform(0, 10, 120)), 4)
    f = np.linalg.cholesky(np.exp(-((x[:, None] - x) ** 2) / 2) + 1e-8 * np.eye(120)) @ r.normal(size=120)
    return dict(N=120, x=x, y=np.round(f + 0.3 * r.normal(size=120), 6))


def cox_icar(r):
    cell = np.arange(225).reshape(15, 15)
    one, other = (np.concatenate([a.ravel(), b.ravel()]) + 1 for a, b in ((cell[1:], cell[:, 1:]), (cell[:-1], cell[:, :-1])))
    at = np.array(np.unravel_index(cell.ravel(), cell.shape)).T / 15
    far = ((at[:, None] - at) ** 2).sum(2)
    field = 0.8 * np.linalg.cholesky(np.exp(-far / 0.08) + 1e-6 * np.eye(225)) @ r.normal(size=225)
    return dict(N=225, E=len(one), one=one, other=other, area=1 / 225, k=r.poisson(np.exp(6.4 + field) / 225))


def places(name):
    """Where model and data are; data that are simulated are written."""
    folder = os.path.join(ROOT, "tests", "oracles", name)
    if os.path.exists(folder):
        return os.path.join(folder, "model.gm"), os.path.join(folder, "data.json")
    data = os.path.join(A.work, name + ".json")
    if not os.path.exists(data):
        made = globals()[name](np.random.Generator(np.random.PCG64(9 + list(MODELS).index(name))))
        with open(data, "w") as f:
            json.dump({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in made.items()}, f)
    return os.path.join(HERE, "peers", name + ".gm"), data


def stan_programs(name):
    return [name, *MODELS[name][2:]]


# ---- programs ----

def command(words, limit=None):
    limit = limit or A.limit
    """-> (processor seconds, what it printed, peak memory in MB), or the text of an error."""
    try:
        p = subprocess.Popen([os.path.join(A.work, "measure"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True,
                             env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
        out, _ = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        p.communicate()
        return "more than %d s" % limit
    if p.returncode:
        return out[-800:]
    seconds, peak = re.search(r"\nused (\S+) (\S+)\n$", out).groups()
    return float(seconds), out, float(peak)


def here(words):
    return ["taskset", "-c", A.core, *words] if A.core else words


def program(name, method):
    return os.path.join(A.work, "%s.%s" % (name, method))


def compile_all(names):
    path = os.path.join(A.work, "compile.json")
    taken = json.load(open(path)) if os.path.exists(path) else {}
    for name in names:
        for method in A.methods:
            got = command([A.gmc, "-q", "--no-device", *(["--method", method] if method != "auto" else []), places(name)[0], "-o",
                           program(name, method)])
            if isinstance(got, str):
                print(name, method, got)
            else:
                taken[name + " " + method] = got[0]
        for stan in stan_programs(name) if A.httpstan else []:
            base, include, lib = os.path.join(A.work, stan), os.path.join(A.httpstan, "include"), os.path.join(A.httpstan, "lib")
            if os.path.exists(base + ".stan"):
                continue
            main = os.path.join(A.work, "stan_main.o")
            if not os.path.exists(main):
                print(command(["g++", *FLAGS, "-I" + include, "-c", os.path.join(HERE, "peers", "stan_main.cpp"), "-o", main], 900))
            spent = 0
            for words in ([os.path.join(A.httpstan, "stanc"), "--O1", os.path.join(HERE, "peers", stan + ".stan"), "--o=" + base + ".hpp"],
                          ["g++", *FLAGS, "-I" + include, "-x", "c++", "-c", base + ".hpp", "-o", base + ".o"],
                          ["g++", base + ".o", main, "-o", base + ".stan", "-L" + lib, "-lsundials_cvodes", "-lsundials_idas",
                           "-lsundials_nvecserial", "-ltbb", "-Wl,-rpath," + lib, "-pthread"]):
                got = command(words, 900)
                if isinstance(got, str):
                    print(stan, got)
                    break
                spent += got[0]
            taken[stan + " stan"] = spent
        print(name, {k: round(v, 1) for k, v in taken.items() if k.split()[0] in (name, *stan_programs(name))}, flush=True)
        with open(path, "w") as f:
            json.dump(taken, f, indent=1)


# ---- runs: each gives {warmup, sampling: seconds, peak: MB, names, draws, divergent}, or the text of an error ----

def read_csv(path):
    import pandas
    table = pandas.read_csv(path, comment="#")
    return list(table.columns), table.to_numpy(float)


def divergences(names, draws):
    return int(draws[:, names.index("divergent__")].sum()) if "divergent__" in names else 0


def run_gmc(name, method, seed, draws):
    out = os.path.join(A.work, name + "_gmc")
    words = here([program(name, method), places(name)[1], "-q", "--device", "cpu", "--chains", "1", "--threads", "1", "--warmup",
                  str(A.warmup), "--seed", str(seed), "--no-summary", "--overwrite", "-o", out, "--samples"])
    warm = [command(words + ["1"]) for _ in range(3)]
    whole = command(words + [str(draws)])
    for got in [*warm, whole]:
        if isinstance(got, str):
            return got
    warm = statistics.median(w[0] for w in warm)
    names, table = read_csv(out + "_1.csv")
    return dict(warmup=warm, sampling=max(whole[0] - warm, 1e-6), peak=whole[2], names=names, draws=table,
                divergent=divergences(names, table))


def run_stan(name, stan, seed, draws):
    out = os.path.join(A.work, stan + "_stan.csv")
    got = command(here([os.path.join(A.work, stan + ".stan"), places(name)[1], out, str(seed), str(A.warmup), str(draws)]))
    if isinstance(got, str):
        return got
    sampling = float(re.search(r"processor seconds \S+ (\S+)", got[1]).group(1))
    names, table = read_csv(out)
    return dict(warmup=got[0] - sampling, sampling=sampling, peak=got[2], names=names, draws=table, divergent=divergences(names, table))


def run_nutpie(name, seed, draws):
    out = os.path.join(A.work, name + "_nutpie.npz")
    got = command(here([A.nutpie, os.path.join(HERE, "peers", "nutpie_models.py"), name, places(name)[1], out, str(seed), str(draws)]))
    if isinstance(got, str):
        return got
    with np.load(out) as z:
        names, columns = [], []
        for k in z.files:
            if k.startswith("_"):
                continue
            flat = z[k].reshape(len(z[k]), -1)
            names += [k] if z[k].ndim == 1 else ["%s.%d" % (k, i + 1) for i in range(flat.shape[1])]
            columns.append(flat)
        return dict(warmup=float(z["_warmup"]), sampling=float(z["_sampling"]), peak=got[2], names=names, draws=np.concatenate(columns, 1),
                    divergent=int(z["_divergent"]))


def run_jags(name, seed, draws):
    base = os.path.join(A.work, name + "_jags")
    with open(places(name)[1]) as f:
        data = json.load(f)
    with open(base + ".data", "w") as f:
        for k, v in data.items():
            f.write('"%s" <- %s\n' % (k, "c(%s)" % ", ".join(map(repr, v)) if isinstance(v, list) else repr(v)))
    with open(base + ".inits", "w") as f:
        f.write('".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- %d\n' % seed)
    with open(base + ".cmd", "w") as f:
        f.write('load glm\nmodel in "%s"\ndata in "%s"\ncompile, nchains(1)\nparameters in "%s"\ninitialize\nupdate %d\npwd\n%supdate '
                '%d\npwd\ncoda *, stem("%s")\nexit\n'
                % (os.path.join(HERE, "peers", name + ".jags"), base + ".data", base + ".inits", A.warmup,
                   "".join("monitor %s\n" % v for v in MODELS[name][1].split()), draws, base))
    process, marks, began, ticks = subprocess.Popen(here([A.jags, base + ".cmd"]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                    text=True, cwd=A.work), [], time.monotonic(), os.sysconf("SC_CLK_TCK")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.strip() == os.path.realpath(A.work):     # pwd: a mark in time
            with open("/proc/%d/stat" % process.pid) as f:
                marks.append(sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / ticks)
        if time.monotonic() - began > A.limit:
            process.kill()
            return "more than %d s" % A.limit
    if process.wait() != 0 or len(marks) != 2:
        return "".join(lines)[-800:]
    with open(base + "index.txt") as f:
        index = [line.split() for line in f]
    chain = np.loadtxt(base + "chain1.txt")[:, 1]
    return dict(warmup=marks[0], sampling=marks[1] - marks[0], peak=0, names=[re.sub(r"\[(.*)\]",
            lambda m: "." + m.group(1).replace(",", "."), i[0]) for i in index],
                draws=np.stack([chain[int(i[1]) - 1:int(i[2])] for i in index], 1), divergent=0)


def contenders(name):
    all = [("gmc " + m, lambda seed, draws, m=m: run_gmc(name, m, seed, draws)) for m in A.methods if os.path.exists(program(name, m))]
    all += [("stan" if s == name else "stan " + s[len(name) + 1:], lambda seed, draws, s=s: run_stan(name, s, seed, draws))
            for s in stan_programs(name)
            if os.path.exists(os.path.join(A.work, s + ".stan"))]
    if A.nutpie:
        with open(os.path.join(HERE, "peers", "nutpie_models.py")) as f:
            if "\ndef %s(" % name in f.read():
                all.append(("nutpie", lambda seed, draws: run_nutpie(name, seed, draws)))
    if A.jags and os.path.exists(os.path.join(HERE, "peers", name + ".jags")):
        all.append(("jags", lambda seed, draws: run_jags(name, seed, draws)))
    return [c for c in all if not A.only or c[0] in A.only.split(",")]


def effective(run, name):
    import arviz
    wanted = MODELS[name][1].split()
    found = {}
    for i, k in enumerate(run["names"]):
        if k in wanted or k.split(".")[0] in wanted:
            x = run["draws"][:, i]
            found[k] = (float(arviz.ess(x[None, :], method="bulk")), float(x.mean()), float(x.std()))
    return found


def run_all(names):
    path = os.path.join(A.work, "results.csv")
    fresh = not os.path.exists(path)
    with open(path, "a", newline="") as f:
        to = csv.writer(f)
        if fresh:
            to.writerow(COLUMNS)
        for name in names:
            draws, first, furthest, runs = {}, None, (0, ""), 0
            for seed in range(1, A.seeds + 1):
                for who, run in contenders(name):
                    pilot = None
                    if who not in draws:                       # how many draws: a pilot, which counts if they are as many
                        pilot = run(seed, A.least)
                        if isinstance(pilot, str):
                            print(name, who, pilot.strip(), flush=True)
                            draws[who] = 0
                            continue
                        draws[who] = max(A.least, int(min(A.least * A.target / max(pilot["sampling"], 1e-4), 100000)) // 1000 * 1000)
                    if not draws[who]:
                        continue
                    got = pilot if pilot and draws[who] == A.least else run(seed, draws[who])
                    if isinstance(got, str):
                        print(name, who, seed, got.strip(), flush=True)
                        continue
                    e = effective(got, name)
                    first, runs = first or e, runs + 1
                    lacks = [v for v in MODELS[name][1].split() if not any(k == v or k.startswith(v + ".") for k in e)]
                    if lacks:
                        print("%s %s: there is no %s" % (name, who, ", ".join(lacks)), flush=True)
                    if sorted(e) != sorted(first):
                        print("%s %s: other parameters: %s" % (name, who, sorted(set(e) ^ set(first))[:10]))
                    far = max((abs(e[k][1] - first[k][1]) / np.sqrt(e[k][2] ** 2 / max(e[k][0], 1) + first[k][2] ** 2 / max(first[k][0],
                            1)), k) for k in e if k in first)
                    furthest = max(furthest, far)
                    if far[0] > 5:
                        print("%s %s seed %d: the mean of %s is %.1f standard errors from that of the first run" % (name, who, seed, far[1],
                                far[0]), flush=True)
                    worst = min(e, key=lambda k: e[k][0])
                    low, middle = e[worst][0], statistics.median(v[0] for v in e.values())
                    s, all = got["sampling"], got["sampling"] + got["warmup"]
                    to.writerow([name, who, seed, draws[who], *("%.4g" % x for x in (got["warmup"], s, low)), worst,
                                 *("%.4g" % x for x in (middle, low / s, low / all, middle / s, got["peak"])), got["divergent"]])
                    f.flush()
                    print("%s %s: %d draws in %.3g s after %.3g, worst %s %.0f: %.3g a second" % (name, who, draws[who], s, got["warmup"],
                            worst, low, low / s), flush=True)
            if first:
                print("%s: means of %d parameters in %d runs are within %.1f standard errors of those of the first run (%s)" % (name,
                        len(first), runs, *furthest), flush=True)


# ---- the table ----

def table(names):
    import pandas
    rows = pandas.read_csv(os.path.join(A.work, "results.csv"))
    taken = json.load(open(os.path.join(A.work, "compile.json")))
    middle = rows.groupby(["model", "contender"]).median(numeric_only=True)
    ratios, with_warmup, beside_nutpie = [], [], []
    print("| model | gmc | Stan | ratio | by default | with warm-up | nutpie | ratio | warm-up, s | peak MB | compile, s |\n| --- | --- | "
          "--- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        if name not in rows.model.values:
            continue
        r = middle.loc[name]

        def best(kind):
            some = [c for c in r.index if c.split()[0] == kind]
            return max(some, key=lambda c: r.worst_per_s[c]) if some else None
        g, s, n = best("gmc"), best("stan"), best("nutpie")
        if not g:
            continue
        cells = [MODELS[name][0], "%.3g%s" % (r.worst_per_s[g], "" if g == "gmc auto" else " (%s)" % g.split()[1])]
        if s:
            usual = r.worst_per_s["gmc auto"] / r.worst_per_s[s] if "gmc auto" in r.index else float("nan")
            ratios.append(r.worst_per_s[g] / r.worst_per_s[s])
            with_warmup.append(r.worst_per_s_with_warmup[g] / r.worst_per_s_with_warmup[s])
            cells += ["%.3g" % r.worst_per_s[s], "%.2g" % ratios[-1] if ratios[-1] < 100 else "%.0f" % ratios[-1],
                      "%.2g" % usual if usual < 100 else "%.0f" % usual, "%.2g" % with_warmup[-1] if with_warmup[-1] < 100
                      else "%.0f" % with_warmup[-1]]
        else:
            cells += ["", "", "", ""]
        if n:
            beside_nutpie.append(r.worst_per_s[g] / r.worst_per_s[n])
            cells += ["%.3g" % r.worst_per_s[n], "%.2g" % beside_nutpie[-1]]
        else:
            cells += ["", ""]
        pair = lambda form, values: ", ".join(form % v for v in values)
        cells.append(pair("%.2g", [r.warmup_s[c] for c in (g, s) if c]))
        cells.append(pair("%.0f", [r.peak_MB[c] for c in (g, s) if c]))
        stan = name if s == "stan" else name + "_" + s.split()[1] if s else ""
        cells.append(pair("%.2g", [taken[k] for k in (name + " " + g.split()[1], stan + " stan") if k in taken]))
        print("| " + " | ".join(cells) + " |")
    for what, all in (("Stan", ratios), ("Stan, with warm-up", with_warmup), ("nutpie", beside_nutpie)):
        if all:
            print("beside %s: median %.2g, least %.2g, %d of %d below 1" % (what, statistics.median(all), min(all), sum(x < 1 for x in all),
                                                                            len(all)))


def main():
    global A
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["compile", "run", "table"])
    ap.add_argument("names", nargs="*", metavar="NAME")
    ap.add_argument("--work", required=True, help="folder for programs, data and results")
    ap.add_argument("--httpstan", help="the folder of the Python package")
    ap.add_argument("--nutpie", help="a Python that has it")
    ap.add_argument("--jags", help="the program, jags")
    ap.add_argument("--gmc", default=os.path.join(ROOT, "build", "gmc"))
    ap.add_argument("--methods", default="auto,nuts", help="of gmc, each a contender: auto, gibbs, nuts")
    ap.add_argument("--only", default="", help="contenders, by name")
    ap.add_argument("--core", help="the core to stay on")
    ap.add_argument("--seeds", type=int, default=3)
    ap.add_argument("--target", type=float, default=2, help="seconds of sampling")
    ap.add_argument("--warmup", type=int, default=1000, help="iterations of warm-up")
    ap.add_argument("--least", type=int, default=1000, help="draws at least")
    ap.add_argument("--limit", type=int, default=300, help="seconds that a run may take")
    A = ap.parse_intermixed_args()
    A.methods = A.methods.split(",")
    A.work = os.path.abspath(A.work)
    os.makedirs(A.work, exist_ok=True)
    subprocess.run(["cc", "-O1", os.path.join(HERE, "peers", "measure.c"), "-o", os.path.join(A.work, "measure")], check=True)
    names = A.names or list(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit("no model `%s`; there are %s" % (name, ", ".join(MODELS)))
    {"compile": compile_all, "run": run_all, "table": table}[A.what](names)


main()
