#!/usr/bin/env python3
"""The log Jacobians of compiler/front/support.def against determinants of numerical derivatives.

Rows of scalars are evaluated as they stand. Those of vectors and matrices are formulas for readers: what they say is done here by hand, for
sizes 2 to 4, and their text is compared with a copy, so that a change of one asks for a change of the other. Central differences of step
1e-5 have an error below 1e-8 of the derivatives' size here; the bound of 1e-6 on log |J| leaves two digits for the determinant.
"""
import os
import re
import sys
from math import exp, log, tanh

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
rows = {}
for line in re.findall(r"^SUPPORT\(.*?\"\)$", open(os.path.join(ROOT, "compiler/front/support.def")).read(), re.M | re.S):
    line = re.sub(r"\n\s*", " ", line)          # a row may go over several lines
    m = re.match(r'SUPPORT\((\w+), *"(\w+)", *(\d), .*?, *\w+, +"(.*)", +"(.*)"\)$', line.strip())
    if m:
        rows[m[1]] = (m[4], m[5], int(m[3]))


def inv_logit(y): return 1 / (1 + exp(-y))


names = {"exp": exp, "log": log, "inv_logit": inv_logit, "log_inv_logit": lambda y: log(inv_logit(y)),
         "log1m_inv_logit": lambda y: log(1 - inv_logit(y))}


def log_volume(f, y):
    """log |det df/dy| by central differences"""
    h = 1e-5
    columns = [(f(y + h * e) - f(y - h * e)) / (2 * h) for e in np.eye(len(y))]
    return log(abs(np.linalg.det(np.array(columns))))


def below(K, strictly): return [(i, j) for i in range(K) for j in range(K) if j < i or (j == i and not strictly)]


def simplex(y):
    K = len(y) + 1
    z = np.array([sum(y[i - 1] / np.sqrt(i * (i + 1)) for i in range(k, K)) - ((k - 1) * y[k - 2] / np.sqrt((k - 1) * k) if k > 1 else 0)
                  for k in range(1, K + 1)])
    return (np.exp(z) / np.sum(np.exp(z)))[:-1]


def simplex_log(y):
    x = simplex(y)
    return log(len(y) + 1) / 2 + np.sum(np.log(x)) + log(1 - np.sum(x))


def size_of(n, strictly): return next(K for K in range(2, 9) if len(below(K, strictly)) == n)


def covariance(y):
    K = size_of(len(y), False)
    L = np.zeros((K, K))
    for v, (i, j) in zip(y, below(K, False)):
        L[i, j] = exp(v) if i == j else v
    S = L @ L.T
    return np.array([S[at] for at in below(K, False)])


def covariance_log(y):
    K = size_of(len(y), False)
    return K * log(2) + sum((K - (i + 1) + 2) * v for v, (i, j) in zip(y, below(K, False)) if i == j)


def factor(y):
    K = size_of(len(y), True)
    L = np.zeros((K, K))
    for v, (i, j) in zip(y, below(K, True)):
        L[i, j] = tanh(v) * np.sqrt(1 - np.sum(L[i, :j] ** 2))
    for i in range(K):
        L[i, i] = np.sqrt(1 - np.sum(L[i, :i] ** 2))
    return L


def factor_elements(y):
    L = factor(y)
    return np.array([L[at] for at in below(len(L), True)])


def factor_log(y):
    L = factor(y)
    return sum(log(1 - tanh(v) ** 2) + log(1 - np.sum(L[i, :j] ** 2)) / 2 for v, (i, j) in zip(y, below(len(L), True)))


def correlation(y):
    L = factor(y)
    return np.array([(L @ L.T)[at] for at in below(len(L), True)])


def correlation_log(y):
    L = factor(y)
    K = len(L)
    return factor_log(y) + sum((K - k) * log(L[k - 1, k - 1]) for k in range(2, K + 1))


whole = {
    "SIMPLEX": (simplex, simplex_log, lambda K: K - 1,
                "x = softmax(z), z[k] = sum(i in k:K - 1, y[i] / sqrt(i * (i + 1))) - (k - 1) * y[k - 1] / sqrt((k - 1) * k)",
                "log(K) / 2 + sum(log(x))"),
    "COVARIANCE": (covariance, covariance_log, lambda K: K * (K + 1) // 2, "L * L', L[k, k] = exp(y[k, k])",
                   "K * log(2) + sum(k in 1:K, (K - k + 2) * y[k, k])"),
    "CHOLESKY_CORRELATION": (factor_elements, factor_log, lambda K: K * (K - 1) // 2,
                             "L[i, j] = tanh(y[i, j]) * sqrt(1 - sum(L[i, 1:j - 1]^2)), rows of length 1",
                             "sum(i in 2:K, sum(j in 1:i - 1, log(1 - tanh(y[i, j])^2) + log(1 - sum(L[i, 1:j - 1]^2)) / 2))"),
    "CORRELATION": (correlation, correlation_log, lambda K: K * (K - 1) // 2, "L * L', L of cholesky_correlation",
                    "sum(k in 2:K, (K - k) * log(L[k, k])), beside that of L"),
}

rng = np.random.default_rng(1)
failed = checked = 0
for name, (from_line, jacobian, rank) in rows.items():
    for trial in range(5):
        lo, hi = -1.5, 2.25
        if name in whole:
            f, log_jacobian, count, *text = whole[name]
            if text != [from_line, jacobian]:
                print("%s: its text has changed; this test has the old formulas" % name)
                failed += 1
                break
            y = rng.normal(size=count(2 + trial % 3))
            ours = log_jacobian(y)
        elif from_line and rank == 0:
            y = rng.normal(size=1)
            f = lambda y: np.array([eval(from_line, dict(names, y=y[0], lo=lo, hi=hi))])
            ours = eval(jacobian, dict(names, y=y[0], lo=lo, hi=hi))
        else:
            continue
        exact = log_volume(f, y)
        checked += 1
        if not abs(ours - exact) < 1e-6:
            print("%s at %s: %.9g, by differences %.9g" % (name, y, ours, exact))
            failed += 1
if checked < 9 * 5:
    print("only %d checks: rows of support.def were not read" % checked)
    failed += 1
sys.exit(failed > 0)
