"""Starts of HMC and NUTS: where the random start has no density, a recursion having made a variance negative or a covariance being no
covariance, another one is tried; all chains of eight seeds run, and give the same draws with any number of threads. What is given, or has
no density anywhere, stays where it is and is reported. --check starts where runs do, and looks at annealed HMC where it is not hot: there
variables lie so near an end that differences of the density are no evidence. 1.2 million truncated latents are moved between their ends:
a start takes 3 s of the processor, where a search took 20. Means that many coefficients keep positive start with coefficients near the
random start: the last one decided was moved to 600."""
import os
import random
import resource
import subprocess

from program import GMC, Workplace

SERIES = """data { int<lower=0> T; vector[T] y; }
prior { c ~ normal(0, 1); k ~ normal(0, 1); }
likelihood {
  v[1] = 0.5;
  for (t in 2:T) v[t] = v[t-1] - c - 0.1 * k;
  for (t in 1:T) y[t] ~ normal(0, sqrt(v[t]));
}
"""
MATRIX = """data { int<lower=0> N; vector[3] y[N]; }
prior { for (i in 1:3) r[i] ~ uniform(-1, 1); s ~ half_normal(0, 2); }
likelihood {
  K[1, 1] = s; K[2, 2] = s; K[3, 3] = s;
  K[1, 2] = r[1]; K[2, 1] = r[1]; K[1, 3] = r[2]; K[3, 1] = r[2]; K[2, 3] = r[3]; K[3, 2] = r[3];
  for (i in 1:N) y[i] ~ multi_normal(rep_vector(0, 3), K);
}
"""
HOT = """data { vector[3] y; }
prior { a ~ gamma(2, 1); b ~ beta(1.5, 2); c ~ normal(0, 1); corr_matrix[2] R ~ lkj_corr(2); }
likelihood { for (i in 1:3) y[i] ~ normal(c + a * b * R[1, 2], 0.3 + a); }
infer { (a, b, c, R) by hmc(anneal = 100); }
"""
MANY = """data { int<lower=0> n; int<lower=0, upper=1> y[n]; }
prior { m ~ normal(0, 1); }
latent {
  for (i in 1:n) z[i] ~ normal(m, 1) T[2, 2.5];
  for (i in 1:n) w[i] ~ normal(m, 1) T[if_else(y[i] == 1, 3, -8), if_else(y[i] == 1, 9, -3)];
  for (i in 1:n) k[i] ~ poisson(exp(m)) T[7, 9];
}
"""
POSITIVE = """data { int N, K; matrix[N, K] X; int<lower=0> y[N]; }
prior { vector[K] b ~ normal(0, 2); a ~ normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ poisson(a + X[i] * b); }
"""
NOWHERE = SERIES.replace("0.5", "-1 - square(c)").replace("- 0.1 * k", "- square(k)").replace("v[t-1] - c", "v[t-1]")


def run(program, data, seed, *more):
    return subprocess.run([program, data, "--seed", str(seed), "--warmup", "20", "--samples", "5", "-q", *more],
                          capture_output=True, text=True)


with Workplace() as w:
    for name, model, values in (("series", SERIES, {"T": 6, "y": [1, 2, 1, 2, 3, 1]}),
                                ("matrix", MATRIX, {"N": 3, "y": [[1, 2, 1], [2, 3, 1], [0, 1, 0]]})):
        program, data = w.path(name), w.data(name, values)
        with open(program + ".gm", "w") as f:
            f.write(model)
        subprocess.run([GMC, "-q", "--no-device", "--method", "nuts", program + ".gm", "-o", program], check=True)
        print("%s: %d of 8 runs" % (name, sum(run(program, data, seed).returncode == 0 for seed in range(8))))
        print("%s, --check: %d of 8 runs" % (name, sum(subprocess.run([program, data, "--seed", str(seed), "--check"],
                                                                      capture_output=True).returncode == 0 for seed in range(8))))
        files = []
        for threads in ("1", "4"):
            run(program, data, 5, "--threads", threads, "--overwrite", "-o", program + "_draws")
            files.append([[line for line in open("%s_draws_%d.csv" % (program, c)) if line[0] != "#"] for c in (1, 2, 3, 4)])
        print("%s: %s" % (name, "the same with any number of threads" if files[0] == files[1] else "other draws"))
    program, data = w.path("hot"), w.data("hot", {"y": [0.4, 1, -0.3]})
    with open(program + ".gm", "w") as f:
        f.write(HOT)
    subprocess.run([GMC, "-q", "--no-device", program + ".gm", "-o", program], check=True)
    print("annealed, --check: %d of 30 runs" % sum(subprocess.run([program, data, "--seed", str(seed), "--check"],
                                                                  capture_output=True).returncode == 0 for seed in range(30)))
    given = w.data("given", {"c": 1.0, "k": 0.0})
    ran = run(w.path("series"), w.path("series.json"), 1, "--init", given)
    print("given: %d %s" % (ran.returncode, ran.stderr.splitlines()[0]))
    program, n = w.path("many"), 400_000
    with open(program + ".gm", "w") as f:
        f.write(MANY)
    subprocess.run([GMC, "-q", "--no-device", "--method", "gibbs", program + ".gm", "-o", program], check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ran = subprocess.run([program, "n=%d" % n, w.data("signs", {"y": [i % 2 for i in range(n)]}), "--chains", "1", "--warmup", "0",
                          "--samples", "1", "-q", "--no-summary", "--no-lp", "--params", "m"], capture_output=True, text=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print("many: %d, %s" % (ran.returncode, "soon" if used < 12 else "%.1f s of the processor" % used))
    program, draw = w.path("positive"), random.Random(2)
    with open(program + ".gm", "w") as f:
        f.write(POSITIVE)
    subprocess.run([GMC, "-q", "--no-device", "--method", "gibbs", program + ".gm", "-o", program], check=True)
    data = w.data("positive", {"N": 150, "K": 6, "X": [[draw.random() for _ in range(6)] for _ in range(150)], "y": [1] * 150})
    most = 0
    for seed in range(4):
        subprocess.run([program, data, "--seed", str(seed), "--warmup", "0", "--samples", "1", "-q", "--no-summary", "--overwrite",
                        "--no-lp", "-o", program + "_first"], check=True)
        for c in (1, 2, 3, 4):
            lines = [line for line in open("%s_first_%d.csv" % (program, c)) if line[0] != "#"]
            most = max(most, max(abs(float(x)) for x in lines[1].split(",")))
    print("positive: %s" % ("near" if most < 30 else "as far as %g" % most))
    program = w.path("nowhere")
    with open(program + ".gm", "w") as f:
        f.write(NOWHERE)
    subprocess.run([GMC, "-q", "--no-device", "--method", "nuts", program + ".gm", "-o", program], check=True)
    ran = run(program, w.path("series.json"), 1)
    print("nowhere: %d %s" % (ran.returncode, " / ".join(ran.stderr.splitlines()[:2])))
    ran = subprocess.run([program, "map", w.path("series.json"), "--seed", "1", "--starts", "2"], capture_output=True, text=True)
    print("nowhere, map: %d %s" % (ran.returncode, " / ".join(ran.stderr.splitlines())))
