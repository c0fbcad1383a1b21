#!/usr/bin/env python3
"""Makes data of the Lasso and of multinomial regression.

    data.py diabetes FOLDER TABLE            the diabetes study, of a table age ... glu, y: columns centred, of norm 1
    data.py lasso FOLDER [N p [SEED]]        N rows, p predictors of which ten have an effect: columns centred, of norm 1
    data.py multinomial FOLDER [N p K [SEED]]    standard normal predictors behind a column of ones, K categories
"""
import csv
import math
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

EFFECTS = (60, -50, 40, -40, 30, -30, 25, -25, 20, -20)        # of columns of norm 1; the error has sd 1
SPREAD = 0.7                                                   # sd of the coefficients of multinomial regression


def put(folder, rows, y):
    """Columns are centred and scaled to norm 1; y is centred."""
    common.made(folder)
    n = len(rows)
    columns = []
    for column in zip(*rows):
        mean = sum(column) / n
        norm = math.sqrt(sum((v - mean) ** 2 for v in column))
        columns.append([(v - mean) / norm for v in column])
    X, out = common.Table(os.path.join(folder, "X.npy"), n, len(columns)), common.Table(os.path.join(folder, "y.npy"), n)
    rows, centre = list(zip(*columns)), sum(y) / n
    for row, v in zip(rows, y):
        X.add(row)
        out.add(v - centre)
    X.close()
    out.close()
    return rows


def diabetes(folder, table):
    with open(table) as f:
        head, *rows = csv.reader(f)
    at = head.index("y")
    put(folder, [[float(v) for k, v in enumerate(row) if k != at] for row in rows], [float(row[at]) for row in rows])


def lasso(folder, N=425, p=100, seed=1):
    r = random.Random(seed + 1)
    rows = list(common.normals(seed, N, p))
    X = put(folder, rows, [0] * N)
    y = common.Table(os.path.join(folder, "y.npy"), N)
    for row in X:
        y.add(common.dot(EFFECTS, row) + r.gauss(0, 1))
    y.close()


def multinomial(folder, N=2000, p=10, K=4, seed=1):
    """truth.json has the coefficients, a row for each predictor."""
    r = random.Random(seed + 1)
    B = [[r.gauss(0, SPREAD) for _ in range(K - 1)] + [0] for _ in range(p)]
    by_category = list(zip(*B))
    common.regression(folder, N, p, common.with_intercept(common.normals(seed, N, p)), lambda row: common.category(r, row, by_category), B)


if __name__ == "__main__":
    if sys.argv[1] == "diabetes":
        diabetes(*sys.argv[2:])
    else:
        {"lasso": lasso, "multinomial": multinomial}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
