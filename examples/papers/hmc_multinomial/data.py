#!/usr/bin/env python3
"""Makes X.npy, y.npy and truth.json of multinomial regression: standard normal predictors behind a column of ones, K categories of which
the last is the reference.

    data.py FOLDER [N p K [SEED]]
"""
import math
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common


def make(folder, N=1000, p=10, K=4, seed=1):
    """Predictors have sd 1 / sqrt(p), so that categories are no more certain with many of them; coefficients have sd 2."""
    r = random.Random(seed + 1)
    B = [[r.gauss(0, 2) for _ in range(K - 1)] + [0] for _ in range(p)]
    rows, by_category = common.with_intercept(common.normals(seed, N, p), 1 / math.sqrt(p)), list(zip(*B))
    common.regression(folder, N, p, rows, lambda row: common.category(r, row, by_category), B)


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
