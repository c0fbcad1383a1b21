#!/usr/bin/env python3
"""What an evaluation of a log density with its slopes takes where values are summed out, beside what is counted for it: milliseconds of
processor time of one core.

    tests/bench/evaluations.py [--gmc build/gmc] [--work DIR]

Mixtures and topics of tests/bench/mixtures, their indicators summed out: 20 leapfrog steps a sweep, each very short, so 21 evaluations, and
one draw of the indicators; the difference of runs of 12 and 2 sweeps, the least of three. Counted is the cost by which Gibbs updates and
NUTS are compared (kernel/cost.c), in multiply-adds of 0.4 ns, where there is method selection.
"""
import argparse
import json
import os
import re
import resource
import subprocess

import numpy as np

import mixtures

HERE = mixtures.HERE
DATA = {
    "topics": ("topics", lambda: mixtures.topics(np.random.default_rng(3)), "z by marginal; (theta, phi) by hmc"),
    "normals": ("mixture of five normals, N = 100,000", lambda: {**mixtures.normals(np.random.default_rng(1), 100_000), "K": 5},
                "c by marginal; (w, mu, tau) by hmc"),
    "multivariate": ("mixture of multivariate normals, N = 10,000, p = 5, K = 10", lambda: mixtures.multivariate(np.random.default_rng(2)),
                     "c by marginal; (w, mu, Sigma) by hmc"),
}


def processor_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def counted(gmc, source, data):
    text = subprocess.run([gmc, "-q", source, "--emit=cuda"], check=True, capture_output=True, text=True).stdout
    if ".summed" not in text:                     # NUTS under method selection has the indicators as they are
        return ""
    cost = re.search(r"cost\[2\] = (.*?);", text, re.S).group(1).replace("(double)", "").replace("(long)", "").replace("d->", "")
    return "%.3g" % (eval("(" + cost + ")", {"pow": pow, "fmax": max, **{k: v for k, v in data.items() if np.ndim(v) == 0}}) * 0.4e-6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gmc", default=os.path.join(mixtures.ROOT, "build", "gmc"))
    parser.add_argument("--work", default="/tmp/gmc_evaluations")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    print("| model | ms an evaluation | counted |\n| --- | --- | --- |")
    for name, (title, make, infer) in DATA.items():
        source, data, base = os.path.join(HERE, "mixtures", name + ".gm"), make(), os.path.join(o.work, name)
        with open(base + ".gm", "w") as f, open(source) as g:
            f.write("%s\ninfer { %s(steps = 20, step = 0.000001); }\n" % (g.read(), infer))
        with open(base + ".json", "w") as f:
            json.dump({k: np.asarray(v).tolist() for k, v in data.items()}, f)
        subprocess.run([o.gmc, "-q", base + ".gm", "-o", base], check=True)

        def run(sweeps):
            return processor_time([base, base + ".json", "--device", "cpu", "--threads", "1", "--chains", "1", "--seed", "1", "--warmup",
                                   "0", "--samples", str(sweeps), "--no-summary", "-q", "--overwrite", "-o", base + "_draws"])
        print("| %s | %.3g | %s |" % (title, 1000 * (min(run(12) for _ in range(3)) - min(run(2) for _ in range(3))) / 210,
                                      counted(o.gmc, source, data)), flush=True)


if __name__ == "__main__":
    main()
