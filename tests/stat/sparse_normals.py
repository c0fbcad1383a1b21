"""Joint normals of several plates against their algebra in NumPy: with all scales known the posterior is one normal, and each sweep is an
independent draw from it. Its mean and covariance are compared whole: with L L' the covariance, w = L^-1 (x - mean) is standard normal, so
sums of w over the draws and of w w' - I have known variances. The bound is 6: of some 2000 numbers one exceeds it falsely once in 10^5
runs; seeds are fixed. The same models are drawn by CHOLMOD, by conjugate gradients where there are rows of lists, dense, and (by their
means and variances) plate by plate, and checked by --check."""
import os
import subprocess
import sys

import numpy as np

from program import Failed, Workplace, in_stages, mcse, report

rng = np.random.default_rng(11)
M = 20000
rows = []


class Normal:
    """log p = sum of -w (c - row'x)^2/2: names of the elements of x, and what has been added."""

    def __init__(self, **sizes):
        self.at, self.names = {}, []
        for name, n in sizes.items():
            self.at[name] = len(self.names)
            self.names += [name] if n is None else ["%s.%d" % (name, i + 1) for i in range(n)]
        self.J, self.h = np.zeros((len(self.names),) * 2), np.zeros(len(self.names))

    def add(self, c, sd, *parts):
        """parts: (name, index or None, factor)"""
        row = np.zeros(len(self.names))
        for name, i, factor in parts:
            row[self.at[name] + (i or 0)] += factor
        self.J += np.outer(row, row) / sd ** 2
        self.h += row * c / sd ** 2


def crossed():
    N, A, B = 60, 7, 5
    a, b = rng.integers(1, A, N), rng.integers(1, B + 1, N)         # group A has no rows
    y, s = rng.normal(size=N), rng.uniform(0.5, 2, N)
    p = Normal(mu=None, u=A, v=B)
    p.add(1, 3, ("mu", None, 1))
    for i in range(A): p.add(0, 0.7, ("u", i, 1))
    for i in range(B): p.add(0.5, 1.5, ("v", i, 1))
    for i in range(N): p.add(y[i], s[i], ("mu", None, 1), ("u", a[i] - 1, 1), ("v", b[i] - 1, 1))
    return """data { int N, A, B; int<lower=1, upper=A> a[N]; int<lower=1, upper=B> b[N]; vector[N] y; vector<lower=0>[N] s; }
prior { mu ~ normal(1, 3); for (i in 1:A) u[i] ~ normal(0, 0.7); for (i in 1:B) v[i] ~ normal(0.5, 1.5); }
likelihood { for (n in 1:N) y[n] ~ normal(mu + u[a[n]] + v[b[n]], s[n]); }""", {"N": N, "A": A, "B": B, "a": a, "b": b, "y": y, "s": s}, p


def slopes_with_means():
    N, G = 40, 6
    g, x, y = rng.integers(1, G + 1, N), rng.normal(size=N), rng.normal(size=N)
    p = Normal(m=2, alpha=G, beta=G)
    p.add(0, 2, ("m", 0, 1))
    p.add(0, 2, ("m", 1, 1))
    for i in range(G):
        p.add(0, 0.8, ("alpha", i, 1), ("m", 0, -10))
        p.add(0, 0.3, ("beta", i, 1), ("m", 1, -1))
    for n in range(N): p.add(y[n], 0.9, ("alpha", g[n] - 1, 1), ("beta", g[n] - 1, x[n]))
    return """data { int N, G; int<lower=1, upper=G> g[N]; vector[N] x, y; }
prior { for (k in 1:2) m[k] ~ normal(0, 2); for (i in 1:G) { alpha[i] ~ normal(10 * m[1], 0.8); beta[i] ~ normal(m[2], 0.3); } }
likelihood { for (n in 1:N) y[n] ~ normal(alpha[g[n]] + beta[g[n]] * x[n], 0.9); }""", {"N": N, "G": G, "g": g, "x": x, "y": y}, p


def walk_of_order_two():
    T, K = 12, 3
    y, z, k = rng.normal(size=T), rng.normal(size=T), rng.integers(1, K + 1, T)
    p = Normal(c=None, x=T, w=K)
    p.add(0, 1, ("c", None, 1))
    for t in range(2): p.add(0, 2, ("x", t, 1))
    for t in range(2, T): p.add(0, 0.5, ("x", t, 1), ("x", t - 1, -2), ("x", t - 2, 1))
    for i in range(K): p.add(0, 1, ("w", i, 1))
    for t in range(T):
        p.add(y[t], 0.7, ("x", t, 1), ("w", k[t] - 1, 1))
        p.add(z[t], 1.2, ("c", None, 1), ("x", t, 0.5))
    return """data { int T, K; int<lower=1, upper=K> k[T]; vector[T] y, z; }
prior { c ~ normal(0, 1); for (t in 1:2) x[t] ~ normal(0, 2); for (t in 3:T) x[t] ~ normal(2 * x[t - 1] - x[t - 2], 0.5);
  for (i in 1:K) w[i] ~ normal(0, 1); }
likelihood { for (t in 1:T) { y[t] ~ normal(x[t] + w[k[t]], 0.7); z[t] ~ normal(c + 0.5 * x[t], 1.2); } }""", {"T": T, "K": K, "k": k,
        "y": y, "z": z}, p


def field():
    side = 4
    n = side * side
    edges = [(i, i + 1) for i in range(n) if (i + 1) % side] + [(i, i + side) for i in range(n - side)]
    y, x = rng.normal(size=n), rng.normal(size=(n, 2))
    p = Normal(beta=2, phi=n)
    for j in range(2): p.add(0, 1, ("beta", j, 1))
    for i, j in edges: p.add(0, 0.6, ("phi", i, 1), ("phi", j, -1))
    for i in range(n):
        p.add(0, 3, ("phi", i, 1))
        p.add(y[i], 0.8, ("phi", i, 1), ("beta", 0, x[i, 0]), ("beta", 1, x[i, 1]))
    return """data { int n, E; int<lower=1, upper=n> one[E], other[E]; vector[n] y; matrix[n, 2] X; }
prior { vector[2] beta ~ normal(0, 1); for (e in 1:E) target += -0.5 * square((phi[one[e]] - phi[other[e]]) / 0.6);
  for (i in 1:n) phi[i] ~ normal(0, 3); }
likelihood { for (i in 1:n) y[i] ~ normal(X[i] * beta + phi[i], 0.8); }""", {"n": n, "E": len(edges), "one": [i + 1 for i, _ in edges],
                                                                             "other": [j + 1 for _, j in edges], "y": y, "X": x}, p


def no_rows_and_one_group():
    p = Normal(mu=None, u=1, v=3)
    p.add(0, 2, ("mu", None, 1))
    p.add(0, 1, ("u", 0, 1), ("mu", None, -1))
    for i in range(3): p.add(0, 0.5, ("v", i, 1), ("mu", None, -2))
    return """data { int N, A, B; int<lower=1, upper=A> a[N]; int<lower=1, upper=B> b[N]; vector[N] y; }
prior { mu ~ normal(0, 2); for (i in 1:A) u[i] ~ normal(mu, 1); for (i in 1:B) v[i] ~ normal(2 * mu, 0.5); }
likelihood { for (n in 1:N) y[n] ~ normal(u[a[n]] + v[b[n]], 1); }""", {"N": 0, "A": 1, "B": 3, "a": [], "b": [], "y": []}, p


def lists(N, p, most):
    """Rows of up to `most` entries, some of the same column: start, col, x."""
    length = rng.integers(0, most + 1, N)
    start = np.concatenate([[1], 1 + np.cumsum(length)]).astype(int)
    n = int(length.sum())
    return start, (rng.integers(1, p, n) if p > 1 else np.ones(n, int)), rng.normal(size=n)


def rows_of_lists(N=25, P=7):
    """Empty rows, a column without entries, entries that come twice, an intercept and columns of a matrix."""
    start, col, x = lists(N, P, 4)
    if len(col) > 3: col[1], col[2] = col[0], col[0]
    y, s, Z, m, t = rng.normal(size=N), rng.uniform(0.5, 2, N), rng.normal(size=(N, 2)), rng.normal(size=P), rng.uniform(0.3, 2, P)
    p = Normal(a=None, g=2, beta=P)
    p.add(1, 3, ("a", None, 1))
    for j in range(2): p.add(0, 1, ("g", j, 1))
    for j in range(P): p.add(m[j], t[j], ("beta", j, 1))
    for i in range(N):
        p.add(y[i], s[i], ("a", None, 1), ("g", 0, Z[i, 0]), ("g", 1, Z[i, 1]),
              *(("beta", col[k] - 1, x[k]) for k in range(start[i] - 1, start[i + 1] - 1)))
    return """data { int N, P, n; int start[N + 1]; int<lower=1, upper=P> col[n]; vector[n] x; vector[N] y; vector<lower=0>[N] s;
  matrix[N, 2] Z; vector[P] m; vector<lower=0>[P] t; }
prior { a ~ normal(1, 3); vector[2] g ~ normal(0, 1); for (j in 1:P) beta[j] ~ normal(m[j], t[j]); }
likelihood { for (i in 1:N) y[i] ~ normal(a + Z[i] * g + sum(k in start[i]:(start[i + 1] - 1), x[k] * beta[col[k]]), s[i]);
  }""", {"N": N, "P": P, "n": len(col), "start": start, "col": col, "x": x, "y": y, "s": s, "Z": Z, "m": m, "t": t}, p


def one_row_of_a_list(): return rows_of_lists(1, 5)
def no_rows_of_lists(): return rows_of_lists(0, 1)
def more_columns_than_rows(): return rows_of_lists(8, 30)


def penalties_of_zero(N=40, P=6):
    """Rows alone know of some elements: a diagonal that data make 0 there leaves them to a factor."""
    start, column, x = lists(N, P, 4)
    y, penalty, weight = rng.normal(size=N), rng.uniform(0.5, 2, P), rng.uniform(0.2, 2, N)
    penalty[[0, 2]], weight[::5] = 0, 0
    p = Normal(b=P)
    for j in np.flatnonzero(penalty): p.add(0, penalty[j] ** -0.5, ("b", j, 1))
    for i in np.flatnonzero(weight): p.add(y[i], weight[i] ** -0.5, *(("b", column[k - 1] - 1, x[k - 1])
                                                                      for k in range(start[i], start[i + 1])))
    return """data { int N, P, n; int start[N + 1]; int<lower=1, upper=P> column[n]; vector[n] x; vector[N] y; vector<lower=0>[P] penalty;
  vector<lower=0>[N] weight; }
prior { vector[P] b; for (j in 1:P) target += -0.5 * penalty[j] * square(b[j]); }
likelihood { for (i in 1:N) target += -0.5 * weight[i] * square(y[i] - sum(k in start[i]:(start[i + 1] - 1), x[k] * b[column[k]])); }""", {
        "N": N, "P": P, "n": len(column), "start": start, "column": column, "x": x, "y": y, "penalty": penalty, "weight": weight}, p


def two_responses():
    """Rows of a fixed length under a condition, and two statements that name lists: one of an array of coefficients."""
    N, P, K = 14, 5, 3
    col, x, keep = rng.integers(1, P + 1, (N, K)), rng.normal(size=(N, K)), rng.integers(0, 2, N)
    y, z = rng.normal(size=(N, 2)), rng.normal(size=N)
    p = Normal(B=2 * P)
    for j in range(2 * P): p.add(0, 1.3, ("B", j, 1))
    p.names = ["B.%d.%d" % (j // 2 + 1, j % 2 + 1) for j in range(2 * P)]
    for i in range(N):
        for m in range(2):
            p.add(y[i, m], 0.8, *(("B", 2 * (col[i, k] - 1) + m, x[i, k]) for k in range(K)))
        if keep[i]: p.add(z[i], 0.6, *(("B", 2 * (col[i, k] - 1), -2) for k in range(K)))
    return """data { int N, P, K; int<lower=1, upper=P> col[N, K]; matrix[N, K] x; matrix[N, 2] y; vector[N] z; int keep[N]; }
prior { for (j in 1:P, m in 1:2) B[j, m] ~ normal(0, 1.3); }
likelihood {
  for (i in 1:N, m in 1:2) y[i, m] ~ normal(sum(k in 1:K, x[i, k] * B[col[i, k], m]), 0.8);
  for (i in 1:N) if (keep[i] == 1) z[i] ~ normal(-2 * sum(k in 1:K, B[col[i, k], 1]), 0.6);
}""", {"N": N, "P": P, "K": K, "col": col, "x": x, "y": y, "z": z, "keep": keep}, p


def rows_of_a_matrix(N=90, P=60, share=0.04, scales=None):
    """Most of the matrix is 0, and one column all of it, one row; beside it an intercept, the columns of a dense matrix, and a
    condition."""
    X, Z, keep = rng.normal(size=(N, P)) * (rng.random((N, P)) < share), rng.normal(size=(N, 2)), (rng.random(N) < 0.8).astype(int)
    if N > 1 and P > 1: X[:, 0], X[1], X[2] = 0, 0, rng.normal(size=P) * (share < 1)
    if scales is not None: X = X * scales
    y, s, m, t = rng.normal(size=N), rng.uniform(0.5, 2, N), rng.normal(size=P), rng.uniform(0.3, 2, P)
    p = Normal(a=None, g=2, beta=P)
    p.add(1, 3, ("a", None, 1))
    for j in range(2): p.add(0, 1, ("g", j, 1))
    for j in range(P): p.add(m[j], t[j], ("beta", j, 1))
    for i in range(N):
        if keep[i]: p.add(y[i], s[i], ("a", None, 1), ("g", 0, Z[i, 0]), ("g", 1, Z[i, 1]), *(("beta", j, X[i, j]) for j in range(P)))
    return """data { int N, P; matrix[N, P] X; vector[N] y; vector<lower=0>[N] s; matrix[N, 2] Z; vector[P] m; vector<lower=0>[P] t;
  int keep[N]; }
prior { a ~ normal(1, 3); vector[2] g ~ normal(0, 1); for (j in 1:P) beta[j] ~ normal(m[j], t[j]); }
likelihood { for (i in 1:N) if (keep[i] == 1) y[i] ~ normal(a + Z[i] * g + X[i] * beta, s[i]); }""", {"N": N, "P": P, "X": X, "y": y,
        "s": s, "Z": Z, "m": m, "t": t, "keep": keep}, p


def rows_of_a_dense_matrix(): return rows_of_a_matrix(40, 9, 1)
def few_rows_of_a_matrix(): return rows_of_a_matrix(70, 90, 0.03)
def few_rows_of_a_dense_matrix(): return rows_of_a_matrix(6, 12, 1)
def one_row_of_a_matrix(): return rows_of_a_matrix(1, 1, 1)
def no_rows_of_a_matrix(): return rows_of_a_matrix(0, 3, 1)
def rows_too_hard(): return rows_of_a_matrix(scales=10.0 ** rng.uniform(-1, 3, 60))
def dense_rows_too_hard(): return rows_of_a_matrix(60, 40, 1, 10.0 ** rng.uniform(-1, 3, 40))


def field_with_a_sum(data=True):
    """An intrinsic field whose sum is nearly 0. Without data the precision is singular but for that."""
    side = 10
    n = side * side
    edges = [(i, i + 1) for i in range(n) if (i + 1) % side] + [(i, i + side) for i in range(n - side)]
    N = n if data else 0
    y = rng.normal(size=N)
    p = Normal(mu=None, phi=n)
    p.add(0, 2, ("mu", None, 1))
    for i, j in edges: p.add(0, 1, ("phi", i, 1), ("phi", j, -1))
    p.add(0, 0.01, *(("phi", i, 1) for i in range(n)))
    for i in range(N): p.add(y[i], 0.5, ("mu", None, 1), ("phi", i, 1))
    return """data { int n, N, E; int<lower=1, upper=n> one[E], other[E]; vector[N] y; }
prior { mu ~ normal(0, 2); vector[n] phi; for (e in 1:E) target += -0.5 * square(phi[one[e]] - phi[other[e]]);
  target += -0.5 * square(sum(phi) / 0.01); }
likelihood { for (i in 1:N) y[i] ~ normal(mu + phi[i], 0.5); }""", {"n": n, "N": N, "E": len(edges), "one": [i + 1 for i, _ in edges],
                                                                    "other": [j + 1 for _, j in edges], "y": y}, p


def field_with_a_sum_alone(): return field_with_a_sum(False)


def compare(w, make):
    name = make.__name__
    model, data, p = make()
    program, values = w.compile(name, model), w.data(name, data)
    covariance = np.linalg.inv(p.J)
    mean, L = covariance @ p.h, np.linalg.cholesky(covariance)
    for route in ("sparse", "gradients", "dense", "separate") if make in lists_of_elements else ("sparse", "dense", "separate"):
        os.environ["GM_JOINT"] = route
        checked = subprocess.run([program, values, "--check", "--samples", "20", "--chains", "2", "--no-summary"], capture_output=True,
                                 text=True)
        rows.append((checked.returncode == 0, "%s, %s: --check%s" % (name, route, "" if checked.returncode == 0
                                                                     else checked.stdout[-600:] + checked.stderr[-600:])))
        if make in too_hard and route == "gradients":
            said = subprocess.run([program, values, "--samples", "200", "--chains", "1", "--no-summary", "--profile",
                                   "--overwrite", "-o", w.path("said")],
                                  capture_output=True, text=True).stdout
            rows.append((" 0 draws by the factor" not in said and "draws by the factor" in said,
                         "%s: where steps do not suffice a factor solves: %s" % (name,
                                 said.split("chosen")[0].split("elements")[-1].splitlines()[0])))

        def judge(samples, part):
            d, n = w.draws(program, values, samples, chains=2, warmup=300), 2 * samples
            if route == "separate":
                z = max(abs(d[k].mean() - m) / mcse(d[k]) for k, m in zip(p.names, mean))
                v = max(abs(((d[k] - m) ** 2).mean() - c) / mcse((d[k] - m) ** 2) for k, m, c in zip(p.names, mean, np.diag(covariance)))
            else:
                white = np.linalg.solve(L, np.stack([d[k].ravel() for k in p.names]) - mean[:, None])
                z = abs(white.mean(axis=1)).max() * np.sqrt(n)
                v = (abs(white @ white.T / n - np.eye(len(mean))) / np.sqrt(1 + np.eye(len(mean)))).max() * np.sqrt(n)
            return max(z, v) < 6 * part, "%s, %s: means |z| %.2f, covariances |z| %.2f < %g" % (name, route, z, v, 6 * part)
        rows.append(in_stages(judge, M // 2, many=len(mean) > 30))
    del os.environ["GM_JOINT"]


too_hard = (rows_too_hard, dense_rows_too_hard)
lists_of_elements = (rows_of_lists, one_row_of_a_list, no_rows_of_lists, more_columns_than_rows, two_responses, rows_of_a_matrix,
                     rows_of_a_dense_matrix, few_rows_of_a_matrix, few_rows_of_a_dense_matrix,
                     one_row_of_a_matrix, no_rows_of_a_matrix, *too_hard, penalties_of_zero)
only = sys.argv[1:]
with Workplace() as w:
    for make in (crossed, slopes_with_means, walk_of_order_two, field, no_rows_and_one_group, field_with_a_sum, field_with_a_sum_alone,
                 *lists_of_elements):
        if only and make.__name__ not in only: continue
        try:
            compare(w, make)
        except Failed as why:
            rows.append((False, "%s: %s" % (make.__name__, why)))
report(rows)
