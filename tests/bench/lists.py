"""Regressions on sparse columns and a field whose sum is nearly 0: seconds of processor time a sweep by each route of the joint normal
(GM_JOINT), and what --profile says of it.

    lists.py [SWEEPS]
"""
import os
import resource
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stat"))
from program import Workplace

rng = np.random.default_rng(1)
DATA = "data { int N, p, n; int start[N + 1]; int<lower=1, upper=p> col[n]; vector[n] x; %s }\n"
SUM = "sum(k in start[i]:(start[i + 1] - 1), x[k] * beta[col[k]])"
NORMAL = (DATA % "vector[N] y;" + "prior { for (j in 1:p) beta[j] ~ normal(0, 2); s ~ half_cauchy(0, 1); }\nlikelihood { for (i in 1:N) "
                                  "y[i] ~ normal(%s, s); }" % SUM)
HORSESHOE = DATA % "int<lower=0, upper=1> y[N];" + """prior { a ~ normal(0, 5); tau ~ half_cauchy(0, 0.1);
  for (j in 1:p) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, tau * lambda[j]); } }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a + %s); }""" % SUM
FIELD = """data { int n, E; int<lower=1, upper=n> one[E], other[E]; vector[n] y; }
prior { mu ~ normal(0, 10); vector[n] phi; for (e in 1:E) target += -0.5 * square(phi[one[e]] - phi[other[e]]);
  target += -0.5 * square(sum(phi) / (0.001 * n)); }
likelihood { for (i in 1:n) y[i] ~ normal(mu + phi[i], 1); }"""


def lists(N, p, k, binary):
    col = np.concatenate([rng.choice(p, k, replace=False) for _ in range(N)])
    x, beta = (np.ones(N * k) if binary else rng.normal(size=N * k)), np.where(rng.random(p) < 0.05, 2.0, 0)
    eta = (x * beta[col]).reshape(N, k).sum(axis=1)
    y = (rng.random(N) < 1 / (1 + np.exp(2 - eta))).astype(int) if binary else eta + rng.normal(size=N)
    return {"N": N, "p": p, "n": N * k, "start": 1 + k * np.arange(N + 1), "col": col + 1, "x": x, "y": y}


def field(side):
    n = side * side
    edges = np.array([(i, i + 1) for i in range(n) if (i + 1) % side] + [(i, i + side) for i in range(n - side)]) + 1
    return {"n": n, "E": len(edges), "one": edges[:, 0], "other": edges[:, 1], "y": rng.normal(size=n)}


def main():
    sweeps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with Workplace() as w:
        normal, horseshoe, sums = w.compile("normal", NORMAL), w.compile("horseshoe", HORSESHOE), w.compile("field", FIELD)
        for name, program, data, routes in (("normal, p = 2000", normal, lists(4000, 2000, 5, False), ("", "sparse", "dense")),
                                            ("normal, p = 10000", normal, lists(20000, 10000, 5, False), ("",)),
                                            ("horseshoe, logit, p = 20000", horseshoe, lists(5000, 20000, 20, True), ("",)),
                                            ("field, 2500 nodes", sums, field(50), ("", "dense")),
                                            ("field, 10000 nodes", sums, field(100), ("",))):
            values = w.data("values", data)
            for route in routes:
                used = []
                for n in (2, 2 + (sweeps if not route else max(2, sweeps // 10))):       # the difference: without reading and ordering
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    ran = subprocess.run([program, values, "--samples", str(n), "--warmup", "1", "--chains", "1", "--threads", "1",
                                          "--no-summary", "--profile",
                                          "--overwrite", "-o", w.path("draws")], capture_output=True, text=True,
                                         env={**os.environ, **({"GM_JOINT": route} if route else {})}, check=True)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    used.append((n, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
                (n0, t0), (n1, t1) = used
                said = [line for line in ran.stdout.splitlines() if "elements, " in line]
                print("%-30s %-8s %8.1f ms a sweep    %s" % (name, route or "chosen", 1e3 * (t1 - t0) / (n1 - n0), said[0] if said else ""),
                      flush=True)


main()
