"""What the scripts of these folders share: normals, and tables of numbers as .npy files. Python 3 standard library only; where numpy is
installed it makes the normals of large tables: other numbers, of the same law."""
import array
import json
import math
import os
import random
import struct

LARGE = 5_000_000                     # normals that the standard library makes in some seconds
BLOCK = 1 << 18                       # normals that numpy makes at once
TYPES = {"d": "<f8", "i": "<i4"}


class Table:
    """A .npy file of n rows, written as they come. kind: "d" doubles, "i" 32-bit integers; p None: a vector, with a number a row."""

    def __init__(self, path, n, p=None, kind="d"):
        header = str({"descr": TYPES[kind], "fortran_order": False, "shape": (n,) if p is None else (n, p)})
        header += " " * (-(len(header) + 11) % 64) + "\n"
        self.file, self.part, self.left, self.p = open(path, "wb"), array.array(kind), n, p
        self.file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode())

    def add(self, row):
        if self.p is None:
            self.part.append(row)
        else:
            self.part.extend(row)
        self.left -= 1
        if len(self.part) >= BLOCK:
            self.part.tofile(self.file)
            del self.part[:]

    def close(self):
        self.part.tofile(self.file)
        self.file.close()
        if self.left:
            raise ValueError("%s: %d rows are missing" % (self.file.name, self.left))


def normals(seed, n, p):
    """n rows of p standard normals, a list at a time."""
    numpy = None
    if n * p > LARGE:
        try:
            import numpy
        except ImportError:
            pass
    if numpy:
        r, most = numpy.random.default_rng(seed), max(1, BLOCK // p)
        for at in range(0, n, most):
            yield from r.standard_normal((min(most, n - at), p)).tolist()
    else:
        gauss = random.Random(seed).gauss
        for _ in range(n):
            yield [gauss(0, 1) for _ in range(p)]


def with_intercept(rows, scale=1.0):
    """The first predictor is a column of ones; all others are multiplied by `scale`."""
    for row in rows:
        yield [1.0] + [v * scale for v in row[1:]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def Phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def made(folder):
    os.makedirs(folder, exist_ok=True)
    return folder


def category(r, row, by_category):
    """A category from 1 by the softmax of the linear predictors."""
    return 1 + r.choices(range(len(by_category)), [math.exp(dot(row, b)) for b in by_category])[0]


def regression(folder, N, p, rows, answer, truth=None):
    """X.npy of N rows and y.npy of their whole answers; truth.json of the coefficients, if they are given."""
    made(folder)
    X, y = Table(os.path.join(folder, "X.npy"), N, p), Table(os.path.join(folder, "y.npy"), N, kind="i")
    for row in rows:
        X.add(row)
        y.add(answer(row))
    X.close()
    y.close()
    if truth is not None:
        with open(os.path.join(folder, "truth.json"), "w") as f:
            json.dump(truth, f)
