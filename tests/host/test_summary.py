"""If this failed, the summary would disagree with ArviZ on effective sample sizes, R-hat, Monte Carlo errors or quantiles.

usage: python tests/host/test_summary.py [PROGRAM]        (PROGRAM: build/tests/host/summary; needs numpy and arviz < 1)

Bounds: 1e-6 relative. Both sides compute the same formulas; they differ in rounding only (ArviZ sums autocovariances by FFT, and takes
normal scores from SciPy), which for n draws amplifies 1e-16 by less than n^2 = 10^8 where chains hardly mix, and not at all elsewhere.
Prints one line per set: the largest relative difference and the bound; exits 1 if any is above it.
"""
import subprocess
import sys
import tempfile
import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz

BOUND = 1e-6


def autoregressive(rng, chains, draws, a):
    x = np.zeros((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for i in range(1, draws):
        x[:, i] = a * x[:, i - 1] + rng.normal(size=chains) * np.sqrt(1 - a * a)
    return x


def data_sets():
    rng = np.random.default_rng(20210627)
    yield "independent", rng.normal(size=(4, 1000))
    yield "two short chains", rng.normal(size=(2, 20))
    yield "eight draws", rng.normal(size=(4, 8))
    yield "odd length", autoregressive(rng, 4, 501, 0.5)
    yield "slow", autoregressive(rng, 4, 1000, 0.95)
    yield "hardly moving", autoregressive(rng, 4, 400, 0.9999)
    yield "antithetic", autoregressive(rng, 4, 1000, -0.7)
    yield "Cauchy", rng.standard_cauchy(size=(4, 1000))
    yield "chains apart", rng.normal(size=(4, 300)) + np.arange(4)[:, None]
    yield "scales differ", rng.normal(size=(4, 300)) * np.array([1, 1, 1, 3])[:, None]
    yield "drift", rng.normal(size=(3, 500)) + np.linspace(0, 2, 500)
    yield "poisson", rng.poisson(3, size=(4, 500)).astype(float)
    yield "coin", (rng.uniform(size=(4, 500)) < 0.3).astype(float)
    yield "rare event", (rng.uniform(size=(4, 500)) < 0.01).astype(float)
    yield "far from zero", 1e6 + rng.normal(size=(4, 500))
    yield "many chains", autoregressive(rng, 16, 100, 0.3)


def ours(program, x):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write("\n".join(repr(float(v)) for v in x.ravel()))
        f.flush()
        text = subprocess.run([program, f.name, str(x.shape[0]), str(x.shape[1])], check=True, capture_output=True, text=True).stdout
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def theirs(x):
    low, middle, high = np.quantile(x, [0.05, 0.5, 0.95])
    return {
        "mean": x.mean(),
        "sd": x.std(ddof=1),
        "q5": low,
        "q50": middle,
        "q95": high,
        "mcse": float(arviz.mcse(x, method="mean")),
        "ess_bulk": float(arviz.ess(x, method="bulk")),
        "ess_tail": float(arviz.ess(x, method="tail")),
        "rhat": float(arviz.rhat(x, method="rank")),
    }


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/tests/host/summary"
    failed = False
    for name, x in data_sets():
        a, b = ours(program, x), theirs(x)
        differences = {k: abs(a[k] - b[k]) / max(abs(b[k]), 1e-12) if np.isfinite(b[k]) else float(np.isfinite(a[k])) for k in b}
        worst = max(differences, key=differences.get)
        good = differences[worst] <= BOUND
        failed |= not good
        print(f"{'ok   ' if good else 'FAIL '} {name}: largest relative difference {differences[worst]:.2g} ({worst}) <= {BOUND:g}")
        if not good:
            print("      ours ", a, "\n      arviz", b)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
