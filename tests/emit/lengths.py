"""Lines of what a student reads: of fit.cu, whose tables are apart, and of its first two parts, the model and the Gibbs updates; none is
wider than 140 columns.

    lengths.py GMC DIRECTORY"""
import os
import subprocess
import sys

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST = {"tests/golden/eight_schools/model.gm": (330, 150), "examples/linear/linear.gm": (400, 160),
        "examples/hierarchical_normal/hierarchical_normal.gm": (700, 360), "examples/horseshoe_probit/horseshoe_probit.gm": (560, 280)}


def main():
    failed = 0
    for model, most in MOST.items():
        path = os.path.join(work, os.path.basename(model)[:-3] + ".cu")
        subprocess.run([gmc, "-q", os.path.join(ROOT, model), "--emit=cuda", "-o", path], check=True)
        lines = open(path).read().split("\n")
        parts = [i for i, line in enumerate(lines) if line.startswith("// ---- part ")]
        titles = [lines[i].split(": ")[1] for i in parts]
        good = titles[:2] == ["the model ----", "the Gibbs updates ----"] and titles[-1] == "the sweep ----"
        good = good and any(line.startswith('#include "') and 'tables.h"' in line for line in lines)
        widest = max(len(line) for line in lines)
        found = len(lines) - 1, parts[2] - parts[0]
        good = good and widest <= 140 and all(a <= b for a, b in zip(found, most))
        failed += not good
        print("%-7s %s: %d lines, at most %d; the model and its Gibbs updates %d, at most %d; %d columns"
              % ("ok" if good else "FAILED", model, found[0], most[0], found[1], most[1], widest))
    return failed > 0


sys.exit(main())
