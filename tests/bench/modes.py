#!/usr/bin/env python3
"""Modes of mixtures by expectation-maximisation, on the CPU: milliseconds an iteration beside those of a Gibbs sweep, and iterations until
the mode of 8 starts is found. Seconds of a core (user time), one run.

    tests/bench/modes.py [NAME...]

Models and data are those of mixtures.py (normals, multivariate). An iteration: the difference of runs of 60 and 20, a sweep that of 250 and
50, so that reading data and the like are in neither.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

import numpy as np

from mixtures import DATA, HERE, ROOT, SEEDS


def user(command):
    """Seconds of user time, and what was said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, said


def main():
    print("%-16s %16s %16s %24s %12s" % ("model", "ms a sweep", "ms an iteration", "iterations of 8 starts", "seconds"))
    for name in sys.argv[1:] or ["normals", "multivariate"]:
        data = DATA[name](np.random.default_rng(SEEDS[name]))
        with tempfile.TemporaryDirectory() as work:
            path, fit = os.path.join(work, "data.json"), {}
            with open(path, "w") as f:
                json.dump({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}, f)
            for method in ("gibbs", "em"):
                fit[method] = os.path.join(work, method)
                subprocess.run([os.path.join(ROOT, "build", "gmc"), "-q", "--no-device", "--method", method,
                                os.path.join(HERE, "mixtures", name + ".gm"), "-o", fit[method]], check=True)
            sweeps = [user([fit["gibbs"], path, "--seed", "1", "--threads", "1", "--chains", "1", "--no-lp", "--no-summary", "--warmup",
                            "0", "--samples", n])[0] for n in ("50", "250")]
            some = [user([fit["em"], "map", path, "--seed", "5", "--threads", "1", "--starts", "1", "--no-summary", "--iterations", n])[0]
                    for n in ("20", "60")]
            whole, said = user([fit["em"], "map", path, "--seed", "1", "--threads", "1", "--no-summary"])
            print("%-16s %16.2f %16.2f %24s %12.2f" % (name, (sweeps[1] - sweeps[0]) * 5, (some[1] - some[0]) * 25,
                                                       re.search(r"(\d+) iterations", said).group(1), whole))


if __name__ == "__main__":
    main()
