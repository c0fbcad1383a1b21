#!/usr/bin/env python3
"""Functions of the C library, written without vector registers in mind, are called by programs with the upper halves of these cleared. The
program is compiled as gmc compiles it, and run by each method with Inputs/upper_halves.c loaded before the library.

    tests/driver/upper_halves.py GMC
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = """data { int J; int n; int<lower=0> y[J]; }
prior { mu ~ normal(0, 2); tau ~ half_cauchy(0, 1); }
latent { for (j in 1:J) u[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ binomial_logit(n, u[j]); }
"""
DATA = {"J": 10, "n": 5, "y": [2, 1, 2, 1, 3, 3, 4, 3, 2, 1]}
LEAST = 5000    # calls: each method makes some 40,000


def calls(folder, method):
    """-> of the library, and those with upper halves in use"""
    subprocess.run(["./model", "data.json", "-q", "--no-summary", "--chains", "1", "--warmup", "300", "--samples", "10", "--threads", "1",
                    "--seed", "1", "--method", method], cwd=folder, check=True, capture_output=True,
                   env={**os.environ, "LD_PRELOAD": folder + "/counts.so", "UPPER_HALVES": folder + "/counts"})
    with open(folder + "/counts", "rb") as f:
        return struct.unpack("qq", f.read())


def main():
    with open("/proc/cpuinfo") as f:
        if " xgetbv1" not in f.read():
            print("this processor does not say which registers are in use")
            return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/model.gm", "w") as f:
            f.write(MODEL)
        with open(folder + "/data.json", "w") as f:
            json.dump(DATA, f)
        shipped = {k: v for k, v in os.environ.items() if k != "CC"}     # the flags that are shipped
        gmc = os.path.abspath(sys.argv[1])
        subprocess.run([gmc, "-q", "--no-device", "model.gm", "-o", "model"], cwd=folder, check=True, env=shipped)
        library = ["cc", "-O2", "-shared", "-fPIC", "-mno-avx", HERE + "/Inputs/upper_halves.c", "-o", "counts.so", "-ldl"]
        subprocess.run(library, cwd=folder, check=True)
        for method in ("gibbs", "nuts"):
            made, dirty = calls(folder, method)
            failed += dirty > 0 or made < LEAST
            print("%s: %d calls, %d with upper halves in use" % (method, made, dirty))
    return 1 if failed else 0


sys.exit(main())
