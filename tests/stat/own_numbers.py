"""Gibbs updates and a transition of NUTS in one sweep have random numbers of their own (STREAM_NUTS, device/rng.h). Where a momentum is
made of the numbers by which an element was drawn, sds and correlations are wrong: sds of these six independent elements were 0.763
to 0.808, and a correlation -0.024.

Each theta[j] has its exact second moment, by quadrature over s, and its product with the next one has mean 0: 11 z-scores by batch means,
each below 4.5. Chance exceeds that in one of 13,000 seeds; the seed is fixed.
"""
import subprocess

import numpy as np

from program import Workplace, draws, mcse, report

MODEL = """
data { int J; vector[J] y; }
prior { for (j in 1:J) theta[j] ~ normal(0, 1); s ~ half_normal(0, 1); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], 1 + s); }
"""
J, MOST = 6, 4.5


def second_moment():
    """Of theta[j], given y = 0: (1 + s)^2/(1 + (1 + s)^2) over the law of s."""
    s = np.linspace(0, 12, 200001)
    v = 1 + (1 + s) ** 2
    weight = np.exp(-0.5 * s ** 2) * v ** (-0.5 * J)
    return np.sum(weight * (v - 1) / v) / np.sum(weight)


def main():
    with Workplace() as w:
        program = w.compile("independent", MODEL)
        out = w.path("draws")
        data = w.data("independent", {"J": J, "y": [0] * J})
        subprocess.run([program, data, "--method", "both", "--samples", "20000", "--seed", "1", "-q", "--no-summary", "-o", out,
                        "--threads", "1"], check=True, capture_output=True)
        tables = list(draws.read(["%s_%d.csv" % (out, k) for k in range(1, 5)]))
        names = list(tables[0][0])
        x = np.stack([t[1] for t in tables])[:, [names.index("theta.%d" % j) for j in range(1, J + 1)]].swapaxes(0, 1)
    rows, exact = [], second_moment()
    for what, moment, mean in ([("theta[%d]^2" % (j + 1), x[j] ** 2, exact) for j in range(J)]
                               + [("theta[%d]*theta[%d]" % (j + 1, j + 2), x[j] * x[j + 1], 0) for j in range(J - 1)]):
        z = (moment.mean() - mean) / mcse(moment)
        rows.append((abs(z) < MOST, "%s: %.4f, exactly %.4f, z %.1f" % (what, moment.mean(), mean, z)))
    report(rows)


main()
