#!/usr/bin/env python3
"""Makes data of the mixtures.

    data.py three FOLDER [N [SEED]]          x.npy: the three components in two dimensions of the tests of dpmix
    data.py many FOLDER [N p [SEED]]         x.npy: 30 components in p dimensions, weights from a stick
    data.py groups FOLDER [G N [SEED]]       x.npy and g.npy: G sets of N points that share the three components, with other weights

anchor.json names the point nearest to the mean of each component (of the three largest, of many), so that a component can be followed
whatever its number.
"""
import json
import math
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

WEIGHTS = (0.4, 0.3, 0.3)
MEANS = ((0, 5), (-5, 0), (5, 0))
SDS = ((0.5, 0.5), (0.5, 1), (1, 0.25))
CORRELATIONS = (0.5, -0.5, 0)
BY_GROUP = ((0.4, 0.3, 0.3), (0.7, 0.2, 0.1), (0.1, 0.2, 0.7), (0.5, 0.5, 0))
STICK = 30
SHRINK = 5                                     # brings the means into the unit of the prior


def point(z, noise):
    (a, b), (s, t), r = MEANS[z], SDS[z], CORRELATIONS[z]
    return [(a + s * noise[0]) / SHRINK, (b + t * (r * noise[0] + math.sqrt(1 - r * r) * noise[1])) / SHRINK]


class Anchors:
    """The point of each component whose noise is least."""

    def __init__(self):
        self.best, self.rows = {}, 0

    def add(self, z, noise):
        self.rows += 1
        self.best[z] = min(self.best.get(z, (float("inf"), 0)), (common.dot(noise, noise), self.rows))

    def write(self, folder, components):
        anchor = [self.best[z][1] for z in components if z in self.best]
        with open(os.path.join(folder, "anchor.json"), "w") as f:
            json.dump({"A": len(anchor), "anchor": anchor}, f)


def three(folder, N=600, seed=1):
    common.made(folder)
    r, anchors = random.Random(seed + 1), Anchors()
    x = common.Table(os.path.join(folder, "x.npy"), N, 2)
    for noise in common.normals(seed, N, 2):
        z = r.choices(range(3), WEIGHTS)[0]
        x.add(point(z, noise))
        anchors.add(z, noise)
    x.close()
    anchors.write(folder, range(3))


def groups(folder, G=4, N=200, seed=1):
    common.made(folder)
    r, anchors = random.Random(seed + 1), Anchors()
    x, g = common.Table(os.path.join(folder, "x.npy"), G * N, 2), common.Table(os.path.join(folder, "g.npy"), G * N, kind="i")
    for i, noise in enumerate(common.normals(seed, G * N, 2)):
        z = r.choices(range(3), BY_GROUP[i // N % len(BY_GROUP)])[0]
        x.add(point(z, noise))
        g.add(i // N + 1)
        anchors.add(z, noise)
    x.close()
    g.close()
    anchors.write(folder, range(3))


def many(folder, N=1000, p=14, seed=1):
    """Means have sd 2, the rows of a factor of each covariance sd 0.5 about the identity, a stick with parts from Be(1, 5)."""
    common.made(folder)
    r = random.Random(seed + 1)
    rest, w = 1.0, []
    for _ in range(STICK - 1):
        v = r.betavariate(1, 5)
        w.append(rest * v)
        rest *= 1 - v
    w.append(rest)
    means = [[r.gauss(0, 2) for _ in range(p)] for _ in w]
    factors = [[[r.gauss(0, 0.5 / math.sqrt(p)) + 0.5 * (i == j) for j in range(i + 1)] for i in range(p)] for _ in w]
    anchors = Anchors()
    cumulative = [sum(w[:j + 1]) for j in range(STICK)]
    x = common.Table(os.path.join(folder, "x.npy"), N, p)
    for noise in common.normals(seed, N, p):
        z = r.choices(range(STICK), cum_weights=cumulative)[0]
        x.add([m + common.dot(row, noise) for m, row in zip(means[z], factors[z])])
        anchors.add(z, noise)
    x.close()
    anchors.write(folder, sorted(range(STICK), key=lambda j: -w[j])[:3])


if __name__ == "__main__":
    {"three": three, "many": many, "groups": groups}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
