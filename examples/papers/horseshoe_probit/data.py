#!/usr/bin/env python3
"""Makes X.npy and y.npy by the synthetic recipe of Terenin, Dong and Draper: standard normal predictors, six coefficients that are not 0,
y from the probit model.

    data.py FOLDER [N p [SEED]]
"""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

BETA = (1.3, 4, -1, 1.6, 5, -2)                # the others are 0


def make(folder, N=2000, p=50, seed=1):
    common.made(folder)
    uniform = random.Random(seed + 1).random
    X = common.Table(os.path.join(folder, "X.npy"), N, p)
    y = common.Table(os.path.join(folder, "y.npy"), N, kind="i")
    for row in common.normals(seed, N, p):
        X.add(row)
        y.add(int(uniform() < common.Phi(common.dot(BETA, row))))
    X.close()
    y.close()


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
