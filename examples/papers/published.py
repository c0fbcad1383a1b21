#!/usr/bin/env python3
"""Times of the published sizes on a GPU: a row for each table of the papers.

    published.py [--share S] [--device D] [--gmc FILE] [--out FOLDER]

      --share S      rows of the data: this share of those published (1), for a try on a small machine
      --device D     gpu (the default) or cpu

Data have the shapes and the laws of the recipes, made by numpy in seconds; what answers are right is a matter of run.py. A row is printed
when it is measured: milliseconds a sweep of one chain, by the clock of the GPU in the median, so that no compilation counts; of HMC, a
leapfrog step. Needs numpy, a C compiler and 10 GB of disk.
"""
import argparse
import os
import sys
import time

import run

try:
    import numpy
except ImportError:
    sys.exit("published.py needs numpy: pip install numpy")

BLOCK = 4_000_000                     # normals that are made at once


def normals(path, n, p, random):
    """A .npy file of n x p standard normals, and the sum of the first six columns of each row, for responses."""
    table = numpy.lib.format.open_memmap(path, "w+", dtype="<f8", shape=(n, p))
    total, most = numpy.empty(n), max(1, BLOCK // p)
    for at in range(0, n, most):
        rows = random.standard_normal((min(most, n - at), p))
        table[at:at + most] = rows
        total[at:at + most] = rows[:, :6].sum(axis=1)
    return total


def regression(folder, n, p, kinds):
    """X and y: of two kinds from 0 by the sign of a noisy sum, of more from 1 by its size, of none the sum itself."""
    random = numpy.random.default_rng(1)
    eta = normals(os.path.join(folder, "X.npy"), n, p, random) / 6 ** 0.5 + random.standard_normal(n)
    if kinds == 2:
        y = (eta > 0).astype("<i4")
    elif kinds:
        y = (1 + numpy.clip(numpy.floor((eta + 2) / 4 * kinds), 0, kinds - 1)).astype("<i4")
    else:
        y = eta
    numpy.save(os.path.join(folder, "y.npy"), y)


def points(folder, n, p):
    """x of 30 components, whose centres are ten standard deviations wide."""
    random = numpy.random.default_rng(1)
    centre = 10 * random.standard_normal((30, p))
    numpy.save(os.path.join(folder, "x.npy"), centre[random.integers(30, size=n)] + random.standard_normal((n, p)))
    with open(os.path.join(folder, "anchor.json"), "w") as f:
        f.write('{"A": 0, "anchor": []}')


# the folder, its model, options of gmc, leapfrog steps, the name of the row, rows of data, what makes them, arguments, sweeps
ROWS = [("horseshoe_probit", "horseshoe", ("--method", "gibbs"), 0, "horseshoe probit, {n} x 1000", 1_000_000,
         lambda f, n: regression(f, n, 1000, 2), (), 20),
        ("lasso_multinomial", "lasso", ("--method", "gibbs"), 0, "Lasso, {n} x 3000", 425,
         lambda f, n: regression(f, n, 3000, 0), (), 100),
        ("lasso_multinomial", "multinomial", ("--method", "gibbs"), 0, "multinomial, {n} x 56, 9 categories", 506_450,
         lambda f, n: regression(f, n, 56, 9), ("K=9",), 40),
        ("hmc_multinomial", "hmc", (), 10, "HMC, {n} x 1000, 10 categories, a leapfrog step", 10_000,
         lambda f, n: regression(f, n, 1000, 10), ("K=10",), 40),
        ("mixtures", "mixture", ("--method", "gibbs"), 0, "mixture, {n} points of 14 coordinates, k = 256", 1_000_000,
         lambda f, n: points(f, n, 14), ("k=256",), 20),
        ("truncated_normals", "truncated", ("--method", "gibbs"), 0, "{n} truncated normals", 100_000_000, None, (), 20),
        ("truncated_normals", "probit", ("--method", "gibbs"), 0, "probit, {n} x 8", 10_000_000,
         lambda f, n: regression(f, n, 8, 2), (), 40)]


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--share", type=float, default=1)
    ask.add_argument("--device", default="gpu")
    ask.add_argument("--gmc", default=os.path.join(run.ROOT, "build", "gmc"))
    ask.add_argument("--out", default=os.path.join(run.ROOT, "build", "papers", "published"))
    given = ask.parse_args()
    given.full, given.quick, given.pictures = True, False, False
    runs, began = run.Runs(given), time.time()
    for folder, model, options, steps, name, n, make, more, sweeps in ROWS:
        n = max(20, int(n * given.share))
        program = runs.compile(folder, model, *options, steps=steps or None)
        where, start = runs.folder(folder, "data"), time.time()
        if make:
            make(where, n)
        made = time.time() - start
        data = [*run.tables(where), *more] if make else ["n=%d" % n]
        shown = ("--params", "first") if not make else ("--params", "alpha") if folder == "mixtures" else ()
        fit = runs.fit(program, data, 1, 10, sweeps, 1, ("--no-summary", "--no-lp", *shown))
        print("  %-60s %8.4g ms   data in %.0f s, run in %.0f s" % (name.format(n="{:,}".format(n)), fit.clock / (steps or 1), made,
                                                                   fit.wall), flush=True)
        for file in run.tables(where) if make else ():
            os.remove(file.split("=", 1)[-1])
    print("%.0f s in all" % (time.time() - began))


main()
