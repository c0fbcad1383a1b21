"""Scales proposed together with what they are the scales of (compiler/graph/updates/proposals.c): against the posterior by quadrature in
NumPy, and by Geweke's joint distribution test (geweke.py).

Quadrature: over the logarithm of each scale and standardised elements, so that the grid holds what matters at any scale. Means of the
scale's logarithm, of elements and of their squares are compared; the bound is 6 Monte Carlo errors, as in geweke.py: some 60 numbers ring
falsely once in 10^5 runs, seeds are fixed. Each program passes --check, which compares what is accepted with the change of the model's
density. Programs made with a copy of the runtime that accepts all proposals have to fail.

    proposals.py [NAME...]
"""
import functools
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import geweke
import program
from geweke import M, identity, log, normal, rng, squash
from program import GMC, ROOT, Failed, Workplace, in_stages, mcse, report

DRAWS = 6000
exact, drawn = [], []


def law(text, data, proposed, wrong=True):
    """The function makes (axes, values, log density): axes by name, in which the log density of all (with Jacobians) is given, and the
    named numbers. `wrong`: whether accepting all proposals shows."""
    def add(make):
        exact.append((make.__name__, text, data, proposed, make, wrong))
        return make
    return add


def grids(**axes):
    return dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij", sparse=True)))


Z = np.linspace(-5, 5, 41)
G, OFF, YS = np.array([1, 1, 2, 3, 3, 3]), np.array([0.2, -0.3, 0.1, 0.0, 0.5, -0.2]), np.array([1, 0, 3, 2, 9, 0])


@law("data { int g[6], y[6], c[6]; vector[6] off; } prior { s ~ half_cauchy(0, 0.7); x[1] ~ normal(0, 1.5); for (t in 2:3) x[t] ~ "
     "normal(x[t - 1], s); }\n"
     "likelihood { for (i in 1:6) if (c[i] == 1) y[i] ~ poisson(exp(off[i] + x[g[i]])); }",
     {"g": G, "off": OFF, "y": [1, 0, None, 2, 9, 0], "c": [1, 1, 1, 1, 1, 0]}, "s, x")
def walk_of_counts():                            # y[3] is missing, and y[6] has no statement
    a = grids(s=np.linspace(-9, 4, 50), a=Z, b=Z, c=Z)
    s = np.exp(a["s"])
    x = [1.5 * a["a"], 1.5 * a["a"] + s * a["b"], 1.5 * a["a"] + s * (a["b"] + a["c"])]
    f = -(a["a"] ** 2 + a["b"] ** 2 + a["c"] ** 2) / 2 - np.log1p((s / 0.7) ** 2) + a["s"]
    for i in (0, 1, 3, 4):
        eta = OFF[i] + x[G[i] - 1]
        f = f + YS[i] * eta - np.exp(np.minimum(eta, 300))
    return {"log s": a["s"], "x.1": x[0], "x.3": x[2]}, f


K = np.array([0, 1, 4])


@law("data { int k[3], b[3]; } prior { m ~ normal(0.3, 1); t ~ gamma(2, 1); u[1] = 0; for (j in 2:3) u[j] ~ normal(0, 1 / sqrt(t)); }\n"
     "likelihood { for (j in 1:3) k[j] ~ poisson(2 * exp(m + u[j])); for (j in 1:3) b[j] ~ bernoulli(1 - exp(-exp(u[j] - m))); }",
     {"k": K, "b": [1, 0, 1]}, "t, u, m")
def two_responses():                             # u[1] is not drawn; a precision; another predictor for each response
    a = grids(t=np.linspace(-7, 4, 60), m=np.linspace(-5, 5, 61), a=Z, b=Z)
    m, sd = a["m"], np.exp(-a["t"] / 2)
    u = [0, sd * a["a"], sd * a["b"]]
    f = -(a["a"] ** 2 + a["b"] ** 2) / 2 - (m - 0.3) ** 2 / 2 + 2 * a["t"] - np.exp(a["t"])
    for j, seen in enumerate((1, 0, 1)):
        f = f + K[j] * (m + u[j]) - 2 * np.exp(np.minimum(m + u[j], 300))
        rate = np.exp(np.minimum(u[j] - m, 300))
        f = f + (np.log(-np.expm1(-rate)) if seen else -rate)
    return {"log t": a["t"], "m": m + 0 * f, "u.2": u[1] + 0 * f, "u.3": u[2] + 0 * f}, f


A, B, C = [1, 1, 2, 2], [1, 2, 1, 2], np.array([0, 2, 1, 7])


@law("data { int a[4], b[4], y[4]; } prior { su ~ half_normal(0, 1); sv ~ uniform(0.05, 2); for (i in 1:2) u[i] ~ normal(0, su); for (i in "
     "1:2) v[i] ~ normal(0.2, sv); }\n"
     "likelihood { for (i in 1:4) y[i] ~ poisson_log(u[a[i]] + v[b[i]]); }", {"a": A, "b": B, "y": C}, "su, sv, u, v")
def two_scales():
    """Each count has one u and one v, so sums over v[1] and v[2] at given u are products of matrices."""
    z = np.linspace(-4.5, 4.5, 25)
    normal = np.exp(-z ** 2 / 2)
    sums = np.zeros(9)
    for log_su in np.linspace(-7, 1.7, 30):
        for log_sv in np.log(0.05 + 1.95 * (np.arange(24) + 0.5) / 24):
            su = np.exp(log_su)
            u, v = su * z, 0.2 + np.exp(log_sv) * z
            eta = u[:, None] + v
            density = {(a, b): np.exp(c * eta - np.exp(eta)) for a, b, c in zip(A, B, C)}
            first = (density[1, 1] * normal) @ density[2, 1].T * normal[:, None] * normal * np.exp(log_su - su ** 2 / 2)
            second = [first * ((density[1, 2] * normal * v ** k) @ density[2, 2].T) for k in (0, 1, 2)]     # [u[1], u[2]]
            w = second[0].sum()
            of_u = second[0].sum(axis=1)
            sums += [w, w * log_su, w * log_su ** 2, w * log_sv, w * log_sv ** 2, of_u @ u, of_u @ u ** 2, second[1].sum(), second[2].sum()]
    means = sums[1:] / sums[0]
    return dict(zip(("log su", "log sv", "u.1", "v.2"), zip(means[::2], means[1::2]))), None


@functools.cache                             # a quadrature of seconds, asked for right and wrong programs
def moments(make):
    values, f = make()
    if f is None:
        return values
    p = np.exp(f - f.max())
    return {k: ((p * x).sum() / p.sum(), (p * x ** 2).sum() / p.sum()) for k, x in values.items()}


def says(w, name, text):
    path = w.path(name + "_explained.gm")
    with open(path, "w") as f:
        f.write(text)
    said = subprocess.run([GMC, "--method", "gibbs", "--explain=full", path], capture_output=True, text=True).stdout
    return re.findall(r"^(.*), proposed together", said, re.M)


def copy_of_compiler(w):
    """Its programs accept all proposals."""
    home = w.path("copy")
    os.makedirs(os.path.join(home, "build"))
    for part in ("runtime", "stdlib"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(home, part))
    for part in ("gmc", "libgmhost.a"):
        shutil.copy(os.path.join(os.path.dirname(os.path.realpath(GMC)), part), os.path.join(home, "build", part))
    path = os.path.join(home, "runtime/device/proposals.h")
    with open(path) as f:
        text, changed = re.subn(r"!refused && more > -exponential_standard\(&g\)", "!refused && is_finite(more)", f.read())
    assert changed == 1
    with open(path, "w") as f:
        f.write(text)
    return os.path.join(home, "build/gmc")


def compare(w, name, text, data, proposed, make, right):
    found = says(w, name, text)
    if found != [proposed]:
        return False, "%s: %s are proposed together in place of %s" % (name, found, proposed)
    fit, values = w.compile(name + ("" if right else "_wrong"), text, flags=("--method", "gibbs")), w.data(name,
            {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()})
    checked = right and subprocess.run([fit, values, "--check", "--samples", "20", "--chains", "2", "--no-summary"], capture_output=True,
                                       text=True)
    if right and (checked.returncode or not re.search(r"^proposal of .* [1-9]\d*  ok$", checked.stdout, re.M)):
        return False, "%s: --check%s" % (name, checked.stdout[-1200:] + checked.stderr[-600:])
    known = moments(make)

    def judge(samples, part):
        d, z = w.draws(fit, values, samples, warmup=600), []
        for k, m in known.items():
            x = np.log(d[k[4:]]) if k.startswith("log ") else d[k]
            z += [(abs((x ** (q + 1)).mean() - m[q]) / mcse(x ** (q + 1)), k + "^2" * q) for q in range(2)]
        worst, bound = max(z), 6 * part
        return (worst[0] < bound) == right, "%s%s: %d moments, largest |z| %s %g: %s %.2f" % (name, "" if right else ", all accepted",
                len(z), "<" if right else ">", bound, worst[1], worst[0])
    if right:
        return in_stages(judge, DRAWS)
    row = judge(DRAWS // 4, 1)
    return row if row[0] else judge(DRAWS, 1)


# ---- Geweke's test ----

def test(proposed, prior, likelihood, data, values, transforms):
    def add(direct):
        drawn.append((direct.__name__, "data { %s }\nprior { %s }\nlikelihood { %s }\n" % (data, prior, likelihood), values, transforms,
                      proposed, direct))
        return direct
    return add


@test("s, x, m", "s ~ uniform(0.1, 0.9); m ~ normal(0.4, 0.5); x[1] ~ normal(0, 0.5); x[2] ~ normal(x[1], 0.5); for (t in 3:5) x[t] ~ "
                 "normal(2 * x[t - 1] - x[t - 2], s);", "for (i in 1:7) y[i] ~ poisson(exp(m + x[g[i]]));",
      "int g[7], y[7];", {"g": [1, 2, 3, 4, 5, 5, 2], "y": [None] * 7}, {"s": identity, "m": identity, "x.1": identity, "x.5": squash,
                                                                         "y.1": np.log1p, "y.6": np.log1p})
def second_order():
    s, m = rng.uniform(0.1, 0.9, M), normal(0.4, 0.5)
    x = [normal(0, 0.5)]
    x.append(normal(x[0], 0.5))
    for _ in range(3):
        x.append(normal(2 * x[-1] - x[-2], s))
    return {"s": s, "m": m, "x.1": x[0], "x.5": x[4], "y.1": rng.poisson(np.exp(m + x[0])),
            "y.6": rng.poisson(np.exp(np.minimum(m + x[4], 20)))}


@test("su, sv, u, m, v", "su ~ uniform(0.1, 1); sv ~ gamma(3, 6); m ~ normal(0.2, 0.5); for (j in 1:3) u[j] ~ normal(m, su); for (j in "
                         "1:2) v[j] ~ normal(0, sv);",
      "for (i in 1:6) y[i] ~ poisson(0.5 * exp(u[a[i]] + x[i] * v[b[i]])); for (i in 1:2) b2[i] ~ bernoulli(1 - exp(-exp(v[i])));",
      "int a[6], b[6], y[6], b2[2]; vector[6] x;",
      {"a": [1, 1, 2, 2, 3, 3], "b": [1, 2, 1, 2, 1, 2], "x": [0.5, -1, 1, 1, 0.3, 2], "y": [None] * 6, "b2": [None, None]},
      {"su": identity, "sv": log, "m": identity, "u.1": identity, "v.2": squash, "y.2": np.log1p, "b2.2": identity})
def crossed():
    su, sv, m = rng.uniform(0.1, 1, M), rng.gamma(3, 1 / 6, M), normal(0.2, 0.5)
    u, v = normal(m, su), normal(0, sv)
    mean = np.exp(u - v)
    return {"su": su, "sv": sv, "m": m, "u.1": u, "v.2": v, "y.2": rng.poisson(0.5 * mean),
            "b2.2": (rng.random(M) < -np.expm1(-np.exp(v))) * 1.0}


def compare_drawn(w, name, model, data, transforms, proposed, direct):
    found = says(w, name, model)
    if found != [proposed]:
        return False, "%s: %s are proposed together in place of %s" % (name, found, proposed)
    return geweke.compare(w, name, model, data, transforms, direct, ["--method", "gibbs"], samples=4000, thin=8, warmup=400)


if __name__ == "__main__":
    rows, chosen = [], lambda name: not sys.argv[1:] or name in sys.argv[1:]
    with Workplace() as w:
        wrong, right = copy_of_compiler(w), program.GMC
        for name, *rest, fails in exact:
            for good in (True, False)[:1 + fails] if chosen(name) else ():
                program.GMC = right if good else wrong
                try:
                    rows.append(compare(w, name, *rest, good))
                except Failed as why:
                    rows.append((False, "%s: %s" % (name, why)))
        program.GMC = right
        rows += [compare_drawn(w, *t) for t in drawn if chosen(t[0])]
    report(rows)
