#!/usr/bin/env python3
"""Prints, for each oracle model, the least effective size of its unknowns and what is computed of them, under default settings: a table for
docs/performance.md.

    effective.py [NAME ...] [--gmc build/gmc] [--build build/effective] [--timeout 600] [--gibbs]

A NAME is a folder here, or part of its name; without one all are run, each with 4 chains of 5000 draws after 1000 sweeps of warm-up and one
seed, whatever its `settings` say. --gibbs: by Gibbs updates (gmc --method gibbs). The effective size is that of the summary (ess_bulk,
rank-normalised; Vehtari et al. 2021), lp__ left out. `steps` or `moves` is what the chains took where both were tried. Exit status 1 if a
program failed. The table depends on the seed, not on the machine. Python 3 standard library only; CC is the compiler of the programs.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SETTINGS = ["--chains", "4", "--warmup", "1000", "--samples", "5000", "--seed", "20240229", "--threads", "1", "--summary", "all"]


def least(summary):
    """-> (effective size, name) of the unknown that mixes worst."""
    worst = (float("inf"), "")
    for line in summary.splitlines():
        cells = line.split()
        if len(cells) < 10 or cells[0] == "lp__":
            continue
        try:
            worst = min(worst, (float(cells[-3]), " ".join(cells[:-9])))         # theta[1, 2] has a space
        except ValueError:                       # the header; a constant has a dash
            continue
    return worst


def taken(said):
    """What the lines on methods say: moves, steps, or both."""
    ways = [w for w, words in (("moves", "Sampler: NUTS"), ("steps", "Sampler: Gibbs")) if any(words in line for line in said.splitlines())]
    return " and ".join(ways) or "steps"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--gmc", default=os.path.join(ROOT, "build/gmc"))
    p.add_argument("--build", default=os.path.join(ROOT, "build/effective"))
    p.add_argument("--timeout", type=float, default=600)
    p.add_argument("--gibbs", action="store_true")
    o = p.parse_args()
    os.makedirs(o.build, exist_ok=True)
    failed = few = done = 0
    for name in sorted(os.listdir(HERE)):
        folder = os.path.join(HERE, name)
        if not os.path.exists(os.path.join(folder, "model.gm")) or os.path.exists(os.path.join(folder, "skip")) or (o.names
                and not any(n in name for n in o.names)):
            continue
        program = os.path.join(o.build, name)
        try:
            subprocess.run([o.gmc, "-q", *(["--method", "gibbs"] if o.gibbs else []), os.path.join(folder, "model.gm"), "-o", program],
                           check=True, capture_output=True, text=True, timeout=o.timeout)
            ran = subprocess.run([program, os.path.join(folder, "data.json"), *SETTINGS], check=True, capture_output=True, text=True,
                                 timeout=o.timeout)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            failed += 1
            print("| %s | failed: %s | | |" % (name, str(e)[:60].replace("|", "/")), flush=True)
            continue
        size, worst = least(ran.stdout)
        way = taken(ran.stdout + ran.stderr)
        done += 1
        few += size < 1000
        # a dash: of no unknown is there an effective size
        print("| %s | %s | %s | %s |" % (name, "%.0f" % size if worst else "-", worst, way), flush=True)
    print("%d models, %d with fewer than 1000 effective draws of 20,000, %d failed" % (done, few, failed))
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
