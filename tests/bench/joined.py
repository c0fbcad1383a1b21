"""Effective draws of two chains of states that factors hold together: drawn as one chain of the combinations of their values, and in turn.

    joined.py

A chain of 3 states and one of 2, 400 observations of the sum of a level of each and noise, all numbers known but the states. Draws, in 4
chains of 5000, of every 4th element whose posterior has a standard deviation of 0.1 or more: the least and the median effective number, and
seconds of a processor.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

import arviz
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = """data { int<lower=1> T; vector[T] y; vector[3] a; vector[2] b; matrix[3, 3] P; matrix[2, 2] Q; real s; }
latent { u[1] ~ discrete_range(1, 3); v[1] ~ discrete_range(1, 2); for (t in 2:T) { u[t] ~ categorical(P[u[t - 1]]);
  v[t] ~ categorical(Q[v[t - 1]]); } }
likelihood { for (t in 1:T) y[t] ~ normal(a[u[t]] + b[v[t]], s); }
"""
REQUESTS = {"together": "", "in turn": "infer { u by gibbs(joint = off); v by gibbs(joint = off); }\n"}
T = 400


def simulated(level, sd):
    rng = np.random.default_rng(5)
    u, v, y = 0, 0, []
    for _ in range(T):
        u = rng.integers(3) if rng.random() < 0.1 else u
        v = 1 - v if rng.random() < 0.1 else v
        y.append(2 * u + level * v + sd * rng.normal())
    return {"T": T, "y": y, "a": [0, 2, 4], "b": [0, level], "P": (0.85 * np.eye(3) + 0.05).tolist(), "Q": [[0.9, 0.1], [0.1, 0.9]],
            "s": sd}


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        for name, request in REQUESTS.items():
            with open(path("model.gm"), "w") as f:
                f.write(MODEL + request)
            subprocess.run([os.path.join(ROOT, "build/gmc"), "-q", path("model.gm"), "-o", path(name)], check=True)
        for level, sd in ((0.9, 1.0), (0.9, 0.4), (1.0, 0.5), (2.0, 0.5)):
            with open(path("data.json"), "w") as f:
                json.dump(simulated(level, sd), f)
            for name in REQUESTS:
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                subprocess.run([path(name), path("data.json"), "--samples", "5000", "--warmup", "200", "--seed", "3", "--threads", "1",
                                "--params", "all", "--no-summary", "-q", "--overwrite", "-o", path("draws")], check=True)
                seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
                chains = []
                for k in range(1, 5):
                    with open(path("draws_%d.csv" % k)) as f:
                        lines = [line for line in f if not line.startswith("#")]
                    names = lines[0].strip().split(",")
                    chains.append(np.loadtxt(lines[1:], delimiter=",")[:, [i for i, n in enumerate(names) if n[:2] in ("u.", "v.")]])
                x = np.stack(chains)
                ess = [float(arviz.ess(x[:, :, i])) for i in range(0, x.shape[2], 4) if x[:, :, i].std() > 0.1]
                print("levels 0, %g, noise %g, %-9s least %6.0f, median %6.0f effective of 20000; %.1f s" % (level, sd, name + ":",
                        min(ess), np.median(ess), seconds), flush=True)


if __name__ == "__main__":
    sys.exit(main())
