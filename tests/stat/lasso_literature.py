"""If this failed, the Lasso would not give the numbers of the literature on the diabetes data.

Medians and the 95 % interval of lambda as found by the corrected Gibbs sampler of Park and Casella (2008) over 19,000 draws: lambda 0.277
(0.143, 0.481), sigma 54.4 and the ten coefficients below; their literature reports 0.279 (0.139, 0.486). Bounds: the reference's own Monte
Carlo error, 4 for tc and ldl (sd 174 and 142), 2.5 for the rest (sd 50 to 120), 0.006 for the median of lambda, 0.012 for its ends, 0.15
for sigma.
"""
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GMC = os.environ.get("GMC", os.path.join(ROOT, "build", "gmc"))
BETA = {"age": -3, "sex": -209, "bmi": 523, "bp": 305, "tc": -152, "ldl": -11, "hdl": -157, "tch": 89, "ltg": 516, "glu": 61}
WIDE = {"tc", "ldl"}


def quantile(x, q):
    x = sorted(x)
    return x[min(int(q * len(x)), len(x) - 1)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "lasso.gm")
        with open(os.path.join(ROOT, "tests", "stat", "lasso_literature.model")) as f, open(model, "w") as to:
            to.write(f.read())
        program = os.path.join(folder, "lasso")
        subprocess.run([GMC, "-q", model, "-o", program], check=True)
        data = os.path.join(ROOT, "tests", "oracles", "ref_lasso_diabetes", "data.json")
        subprocess.run([program, data, "--seed", "1", "--samples", "20000",
                        "--overwrite", "-o", os.path.join(folder, "draws"), "--no-summary", "--quiet"],
                       check=True)
        columns = {}
        for chain in range(1, 5):
            with open(os.path.join(folder, "draws_%d.csv" % chain)) as f:
                rows = [line.rstrip().split(",") for line in f if not line.startswith("#")]
            for k, name in enumerate(rows[0]):
                columns.setdefault(name, []).extend(float(r[k]) for r in rows[1:])
    checks = [("lambda, median", statistics.median(columns["lambda"]), 0.277, 0.006),
              ("lambda, 2.5 %", quantile(columns["lambda"], 0.025), 0.143, 0.012),
              ("lambda, 97.5 %", quantile(columns["lambda"], 0.975), 0.481, 0.012),
              ("sigma, median", statistics.median(columns["sigma"]), 54.4, 0.15)]
    for j, (name, value) in enumerate(BETA.items()):
        checks.append((name + ", median", statistics.median(columns["beta.%d" % (j + 1)]), value, 4 if name in WIDE else 2.5))
    failed = 0
    for name, found, expected, bound in checks:
        good = abs(found - expected) <= bound
        failed += not good
        print("%-6s %-16s %9.4g  expected %8g +- %g" % ("ok" if good else "FAILED", name, found, expected, bound))
    return 1 if failed else 0


sys.exit(main())
