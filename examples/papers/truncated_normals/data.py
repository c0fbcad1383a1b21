#!/usr/bin/env python3
"""Makes X.npy, y.npy and truth.json of a probit regression with an intercept, as the course does: coefficients from N(0, 1), standard
normal predictors. The truncated normals need no data.

    data.py FOLDER [N p [SEED]]
"""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common


def make(folder, N=1000, p=8, seed=1):
    r = random.Random(seed + 1)
    beta = [r.gauss(0, 1) for _ in range(p)]
    common.regression(folder, N, p, common.with_intercept(common.normals(seed, N, p)),
                      lambda row: int(r.random() < common.Phi(common.dot(beta, row))), beta)


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
