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
    uniform = random.Random(seed + 1).random
    common.regression(folder, N, p, common.normals(seed, N, p), lambda row: int(uniform() < common.Phi(common.dot(BETA, row))))


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
