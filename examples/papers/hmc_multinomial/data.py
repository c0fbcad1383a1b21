#!/usr/bin/env python3
"""Makes X.npy, y.npy and truth.json of multinomial regression: standard normal predictors behind a column of ones, K categories of which
the last is the reference.

    data.py FOLDER [N p K [SEED]]
"""
import json
import math
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common


def make(folder, N=1000, p=10, K=4, seed=1):
    """Predictors have sd 1 / sqrt(p), so that categories are no more certain with many of them; coefficients have sd 2."""
    common.made(folder)
    r = random.Random(seed + 1)
    B = [[r.gauss(0, 2) for _ in range(K - 1)] + [0] for _ in range(p)]
    by_category, scale = list(zip(*B)), 1 / math.sqrt(p)
    X, y = common.Table(os.path.join(folder, "X.npy"), N, p), common.Table(os.path.join(folder, "y.npy"), N, kind="i")
    for row in common.normals(seed, N, p):
        row = [1.0] + [v * scale for v in row[1:]]
        X.add(row)
        y.add(1 + r.choices(range(K), [math.exp(common.dot(row, b)) for b in by_category])[0])
    X.close()
    y.close()
    with open(os.path.join(folder, "truth.json"), "w") as f:
        json.dump(B, f)


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
