"""Metrics of HMC and NUTS that are not diagonal: normal distributions have their moments, trajectories are short, and a seed gives the same
draws.

    metrics.py build FOLDER          compiles the models
    metrics.py run FOLDER [DEVICE]   runs them on a GPU (or `cpu`) and checks
    metrics.py stub FOLDER           what can be seen without a GPU: trajectories by one lane, in a stub of a driver (stub_nuts.cpp)

If this failed, HMC with a metric of low rank or a dense one would have another law on a GPU than the model's, or would not learn what makes
trajectories short. Means and variances of draws are compared with exact ones, by batch means: |z| < 6, some 300 comparisons by a t
distribution of more than 100 degrees of freedom: 3e-6 false alarms a run; seeds are fixed. How many directions a metric of low rank
keeps is no condition: one is there, and of four seeds two find it alone, the others up to ten.
"""
import json
import math
import os
import random
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")

TURNED = ("data { int n; vector[n] y, s; matrix[n, n] A; }\nprior { for (i in 1:n) x[i] ~ normal(0, 100000); }\nlikelihood { for (k in "
          "1:n) y[k] ~ normal(A[k] * x, s[k]); }\ninfer { x by %s; }\n")
HELD = ("data { int n; real y, s; vector[n] a; }\nprior { for (i in 1:n) x[i] ~ normal(0, 1); }\nlikelihood { y ~ normal(dot_product(a, "
        "x), s); }\npredict { total = dot_product(a, x); }\ninfer { x by %s; }\n")

#  name, text, coordinates, chains, what draws them, most leapfrog steps a draw, words of the summary
CASES = [
    ("turned_dense", TURNED, 40, 8, "nuts(metric = dense)", 12, "metric dense"),
    ("turned_low_rank", TURNED, 40, 8, "nuts(metric = low_rank)", 12, "metric of low rank"),
    ("turned_chosen", TURNED, 40, 8, "nuts", 20, "metric"),
    ("turned_diagonal", TURNED, 40, 8, "nuts(metric = diagonal)", 1e9, None),
    ("turned_hmc", TURNED, 40, 8, "hmc(steps = 3, metric = dense)", 3, "metric dense"),
    ("held_low_rank", HELD, 300, 8, "nuts(metric = low_rank)", 20, "metric of low rank"),
    ("held_dense", HELD, 300, 4, "nuts(metric = dense)", 20, "metric dense"),
    ("held_blocks", HELD, 3000, 4, "nuts(metric = low_rank)", 20, "metric of low rank"),          # several blocks a chain
]
WARMUP, SAMPLES, BATCHES = 1000, 2000, 10


def build(folder):
    os.makedirs(folder, exist_ok=True)
    for name, text, _, _, moves, _, _ in CASES:
        source = os.path.join(folder, name + ".gm")
        with open(source, "w") as f:
            f.write("model %s\n" % name + text % moves)
        subprocess.run([GMC, "-q", source, "-o", os.path.join(folder, name)], check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


def turned(n):
    """Directions, and their variances: three of 100, two of 1/100, the others 1, none of them a coordinate."""
    r, rows = random.Random(5), []
    for _ in range(n):
        v = [r.gauss(0, 1) for _ in range(n)]
        for u in rows:
            d = sum(a * b for a, b in zip(u, v))
            v = [a - d * b for a, b in zip(v, u)]
        length = math.sqrt(sum(a * a for a in v))
        rows.append([a / length for a in v])
    return rows, [100 if k < 3 else 0.01 if k < 5 else 1 for k in range(n)]


def data(text, n):
    """The data, and {column: (mean, variance)} of what is looked at."""
    if text is TURNED:
        rows, spread = turned(n)
        A = [[u[i] / (1 + i % 4) for i in range(n)] for u in rows]                                 # scales from 1 to 4
        y = [sum(0.1 * i * a[i] for i in range(n)) for a in A]
        return {"n": n, "y": y, "s": [math.sqrt(v) for v in spread], "A": A}, {"x.%d" % (i + 1): (0.1 * i,
                (1 + i % 4) ** 2 * sum(v * u[i] ** 2 for v, u in zip(spread, rows))) for i in range(n)}
    a = [(-1 if i % 2 else 1) / math.sqrt(n) for i in range(n)]
    return {"n": n, "y": 0.0, "s": math.sqrt(1 / 99), "a": a}, {"total": (0, 0.01), "x.1": (0, 1 - 0.99 / n), "x.%d" % n: (0, 1 - 0.99 / n)}


def columns(path):
    with open(path) as f:
        lines = [line.strip().split(",") for line in f if line[0] != "#"]
    return {name: [float(row[k]) for row in lines[1:]] for k, name in enumerate(lines[0])}


def z_of(chains, value):
    """Of the mean of (values - value): how far it is from 0, in its errors."""
    means = []
    for x in chains:
        size = len(x) // BATCHES
        means += [sum(x[b * size:(b + 1) * size]) / size - value for b in range(BATCHES)]
    m = sum(means) / len(means)
    v = sum((a - m) ** 2 for a in means) / (len(means) - 1)
    return abs(m) / math.sqrt(v / len(means))


def fit(folder, name, inputs, chains, device, out):
    ran = subprocess.run(["./" + name, inputs, "--device", device, "--chains", str(chains), "--warmup", str(WARMUP), "--samples",
                          str(SAMPLES), "--moves", "nuts", "--no-lp", "--seed", "1", "--overwrite", "-o", out],
                         cwd=folder, capture_output=True, text=True, timeout=200)
    if ran.returncode != 0:
        return ran.stderr[-500:], None
    return ran.stdout + ran.stderr, [columns(os.path.join(folder, "%s_%d.csv" % (out, c + 1))) for c in range(chains)]


def run(folder, device):
    failed = 0
    for name, text, n, chains, moves, most, words in CASES:
        inputs, exact = data(text, n)
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(inputs, f)
        said, draws = fit(folder, name, name + ".json", chains, device, name)
        if draws is None:
            print("FAIL %s: %s" % (name, said))
            failed += 1
            continue
        steps = sum(sum(c["n_leapfrog__"]) for c in draws) / (chains * SAMPLES)
        z = max(max(z_of([c[k] for c in draws], mean), z_of([[(v - mean) ** 2 for v in c[k]] for c in draws], variance)) for k,
                (mean, variance) in exact.items())
        told = re.search(r"^x: (metric.*)$", said, re.M)
        seconds = re.search(r"in ([0-9.e+-]+) s", said)
        good = z < 6 and steps <= most and (told is not None and told.group(1).startswith(words) if words else told is None)
        if name == "turned_low_rank" and draws != fit(folder, name, name + ".json", chains, device, "again")[1]:
            good = False
            print("other draws of the same seed")
        failed += not good
        print("%s %-16s %4d coordinates, %d chains: z %.1f, %.1f steps a draw (at most %g), %s, %s s" % ("ok  " if good else "FAIL", name,
                n, chains, z, steps, most, told.group(1) if told else "diagonal",
                                                                                               seconds.group(1) if seconds else "?"),
                                                                                                       flush=True)
    print("%d failed" % failed)
    return 1 if failed else 0


def stub(folder):
    os.makedirs(folder, exist_ok=True)
    library, here = os.path.join(folder, "stub.so"), os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["cc", "-std=gnu11", "-fPIC", "-O1", "-DSTUB_NUTS", "-c", "-o", library + ".1.o", os.path.join(here, "stub_cuda.c")],
                   check=True)
    subprocess.run(["c++", "-std=c++17", "-fPIC", "-O2", "-w", "-c", "-o", library + ".2.o", os.path.join(here, "stub_nuts.cpp")],
                   check=True)
    subprocess.run(["c++", "-shared", "-o", library, library + ".1.o", library + ".2.o"], check=True)
    env = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"), **{v: library for v in ("GMC_CUDA", "GMC_NVRTC", "GMC_CUBLAS",
            "GMC_CUSOLVER")}}
    with open(os.path.join(folder, "held.json"), "w") as f:
        json.dump(data(HELD, 60)[0], f)
    failed = 0
    for name, moves, most, words in (("diagonal", "nuts(metric = diagonal)", 1e9, None),
                                     ("low_rank", "nuts(metric = low_rank)", 20, "metric of low rank"),
                                     ("dense", "nuts(metric = dense)", 20, "metric dense"),
                                     ("chosen", "nuts", 20, "metric"), ("hmc", "hmc(steps = 5, metric = low_rank)", 5,
                                                                        "metric of low rank")):
        source = os.path.join(folder, name + ".gm")
        with open(source, "w") as f:
            f.write("model %s\n" % name + HELD % moves)
        subprocess.run([GMC, "-q", source, "-o", os.path.join(folder, name)], check=True, env=env)
        ran = subprocess.run(["./" + name, "held.json", "--device", "gpu", "--chains", "2", "--warmup", "700", "--samples", "2000",
                              "--no-lp", "--seed", "1"], cwd=folder, capture_output=True, text=True, env=env)
        found = re.search(r"stub: (\d+) transitions, (\S+) steps, variances (\S+) (\S+)", ran.stderr)
        told = re.search(r"^x: (metric.*)$", ran.stdout, re.M)
        # 4000 draws: the variance of a normal is known to 2.2 % and, where draws are correlated, some more.
        good = ran.returncode == 0 and found and found.group(1) == "4000" and float(found.group(2)) <= most and abs(float(found.group(3))
                / (1 - 0.99 / 60) - 1) < 0.25 and abs(float(found.group(4)) / 0.01 - 1) < 0.25
        good = good and (told is not None and told.group(1).startswith(words) if words else told is None)
        failed += not good
        print("%s %s: status %d, %s, %s %s" % ("ok  " if good else "FAIL", name, ran.returncode, found.group(0) if found else "nothing",
                                               told.group(1) if told else "diagonal", "" if good else ran.stderr[-300:]), flush=True)
    print("%d failed" % failed)
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) == 3:
        build(sys.argv[2])
    elif sys.argv[1:2] == ["stub"] and len(sys.argv) == 3:
        sys.exit(stub(sys.argv[2]))
    elif sys.argv[1:2] == ["run"] and len(sys.argv) in (3, 4):
        sys.exit(run(sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "gpu"))
    else:
        print(__doc__)
        sys.exit(2)


main()
