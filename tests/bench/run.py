#!/usr/bin/env python3
"""Speed on the CPU: gmc's programs beside their floors and beside JAGS, in one run. Prints a table; medians of repeats.

    tests/bench/run.py [horseshoe] [jags] [intercepts] [compile]

Needs what `make test` installs (build/venv with numpy and arviz, jags).
"""
import glob
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "build", "bench")
GMC = os.path.join(ROOT, "build", "gmc")
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")
ENV = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def run(command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, **more)


def compile_model(name):
    program = os.path.join(OUT, name)
    run([GMC, "-q", os.path.join(HERE, name + ".gm"), "-o", program])
    return program


def sweep_seconds(program, arguments, sweeps, repeats=5):
    times = []
    for _ in range(repeats):
        r = run([program, *arguments, "--warmup", "0", "--samples", str(sweeps), "--seed", "1", "--no-lp", "--no-summary"])
        times.append(float(re.search(r"([0-9.e+-]+) ms each", r.stdout + r.stderr).group(1)) / 1000)
    return statistics.median(times)


def probit_data(n, p, name):
    import numpy as np
    from scipy.special import ndtr
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, p))
    b = np.zeros(p)
    b[:6] = [1.3, 4, -1, 1.6, 5, -2]
    b *= 0.2                                        # the recipe of Terenin, Dong and Draper, scaled so that both outcomes occur at every x
    y = (rng.random(n) < ndtr(x @ b)).astype(np.int32)
    np.save(os.path.join(OUT, name + "_X.npy"), x)
    np.save(os.path.join(OUT, name + "_y.npy"), y)
    return x, y


def horseshoe():
    n, p = 10000, 100
    probit_data(n, p, "hs")
    program = compile_model("horseshoe")
    floor = os.path.join(OUT, "floor")
    run(["cc", "-std=gnu11", "-O2", "-march=native", "-ftree-vectorize", "-fno-math-errno", "-fno-trapping-math", "-fassociative-math",
         "-fno-signed-zeros", "-fopenmp", "-w",
         "-I" + os.path.join(ROOT, "runtime", "device"), os.path.join(HERE, "floor.c"), os.path.join(ROOT, "build", "libgmhost.a"), "-o",
         floor, "-ljansson", "-lm", "-ldl"])
    parts = [[float(v) for v in run([floor, str(n), str(p)]).stdout.split()] for _ in range(5)]
    parts = [statistics.median(x) for x in zip(*parts)]
    ours = sweep_seconds(program, ["X=" + os.path.join(OUT, "hs_X.npy"), "y=" + os.path.join(OUT, "hs_y.npy"), "--chains", "1", "--threads",
                                   "1"], 300)
    print("horseshoe probit, N = %d, p = %d, one thread, milliseconds a sweep" % (n, p))
    print("  reading X once %.3f, Cholesky %.3f, truncated normals %.3f: sum %.3f" % (*[1000 * v for v in parts], 1000 * sum(parts)))
    print("  gmc %.3f: %.2f times the sum (target: at most 2)" % (1000 * ours, ours / sum(parts)))


def jags():
    import numpy as np
    n, p = 5000, 20
    x, y = probit_data(n, p, "jags")
    program = compile_model("probit")
    arguments = ["X=" + os.path.join(OUT, "jags_X.npy"), "y=" + os.path.join(OUT, "jags_y.npy"), "--chains", "1", "--threads", "1",
                 "--seed", "1", "--no-lp", "--no-summary"]
    start = time.time()
    r = run([program, *arguments, "--warmup", "200", "--samples", "5000", "--overwrite", "-o", os.path.join(OUT, "probit")])
    per_sweep = float(re.search(r"([0-9.e+-]+) ms each", r.stdout + r.stderr).group(1)) / 1000
    with open(os.path.join(OUT, "probit_1.csv")) as f:
        rows = [line.rstrip().split(",") for line in f if not line.startswith("#")]
    beta = np.array([[float(r[rows[0].index("beta.%d" % (j + 1))]) for j in range(p)] for r in rows[1:]])
    import warnings
    warnings.simplefilter("ignore")
    import arviz
    ess = min(float(arviz.ess(beta[None, :, j])) for j in range(p))
    ours_rate = ess / (per_sweep * len(beta))
    with open(os.path.join(OUT, "probit.bug"), "w") as f:
        f.write("model {\n  for (i in 1:N) { y[i] ~ dbern(q[i]); probit(q[i]) <- inprod(X[i,], beta[]) }\n  for (j in 1:p) { beta[j] ~ "
                "dnorm(0, 0.01) }\n}\n")
    with open(os.path.join(OUT, "probit.data"), "w") as f:
        f.write("N <- %d\np <- %d\ny <- c(%s)\nX <- structure(c(%s), .Dim = c(%d, %d))\n" % (n, p, ",".join(map(str, y)),
                ",".join("%.17g" % v for v in x.T.ravel()), n, p))
    sweeps = 1500
    script = ("load glm\nmodel in probit.bug\ndata in probit.data\ncompile, nchains(1)\ninitialize\nupdate 200\nmonitor beta\nupdate "
              "%d\ncoda *, stem(jags)\n" % sweeps)
    with open(os.path.join(OUT, "probit.cmd"), "w") as f:
        f.write(script)
    with open(os.path.join(OUT, "none.cmd"), "w") as f:
        f.write(script.replace("update 200\nmonitor beta\nupdate %d\ncoda *, stem(jags)\n" % sweeps, "update 200\n"))
    times = {}
    for name in ("none", "probit"):
        start = time.time()
        run(["jags", name + ".cmd"], cwd=OUT)
        times[name] = time.time() - start
    theirs_sweep = (times["probit"] - times["none"]) / sweeps
    chain = np.loadtxt(os.path.join(OUT, "jagschain1.txt"))[:, 1].reshape(p, sweeps)
    theirs_ess = min(float(arviz.ess(chain[None, j])) for j in range(p))
    theirs_rate = theirs_ess / (theirs_sweep * sweeps)
    print("probit, N = %d, p = %d, prior normal(0, 10), one core each; effective draws: the smallest over beta" % (n, p))
    print("  JAGS with glm: %.2f ms a sweep, %.1f effective draws a second" % (1000 * theirs_sweep, theirs_rate))
    print("  gmc:           %.3f ms a sweep, %.0f effective draws a second: %.0f times as many (target: 40)" % (1000 * per_sweep, ours_rate,
            ours_rate / theirs_rate))
    d = np.abs(beta.mean(0) - chain.mean(1)) / np.hypot(beta.std(0) / np.sqrt(ess), chain.std(1) / np.sqrt(theirs_ess))
    print("  posterior means agree within %.1f Monte Carlo standard errors" % d.max())


def intercepts():
    import numpy as np
    program = compile_model("intercepts")
    print("random intercepts, 1000 groups, 1000 sweeps of 4 chains, all cores")
    for n in (10**4, 10**5, 10**6):
        rng = np.random.default_rng(2)
        g = rng.integers(1, 1001, n).astype(np.int32)
        u = rng.normal(0, 0.7, 1000)
        np.save(os.path.join(OUT, "ri_y.npy"), 2 + u[g - 1] + rng.normal(0, 1.5, n))
        np.save(os.path.join(OUT, "ri_g.npy"), g)
        start = time.time()
        run([program, "y=" + os.path.join(OUT, "ri_y.npy"), "group=" + os.path.join(OUT, "ri_g.npy"), "K=1000", "--chains", "4", "--warmup",
             "500", "--samples", "500", "--seed", "1", "--no-summary"])
        whole = time.time() - start
        sweep = sweep_seconds(program, ["y=" + os.path.join(OUT, "ri_y.npy"), "group=" + os.path.join(OUT, "ri_g.npy"), "K=1000",
                                        "--chains", "4"], 500)
        print("  N = %8d: %.3f ms a sweep; the whole run, reading data and writing nothing, %.2f s" % (n, 1000 * sweep, whole))


def compile_times():
    print("gmc model.gm -o fit, seconds (target: under 2)")
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*", "*.gm"))):
        times = []
        for _ in range(3):
            start = time.time()
            run([GMC, "-q", path, "-o", os.path.join(OUT, "example")])
            times.append(time.time() - start)
        print("  %-24s %.2f" % (os.path.basename(path), statistics.median(times)))


def main():
    if not os.environ.get("GMC_BENCH"):
        os.environ["GMC_BENCH"] = "1"
        if os.path.exists(VENV):
            os.execv(VENV, [VENV, os.path.abspath(__file__), *sys.argv[1:]])
    os.makedirs(OUT, exist_ok=True)
    wanted = sys.argv[1:] or ["horseshoe", "jags", "intercepts", "compile"]
    for name in wanted:
        {"horseshoe": horseshoe, "jags": jags, "intercepts": intercepts, "compile": compile_times}[name]()


main()
