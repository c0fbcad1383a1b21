"""If this fails, states along a chain that are drawn parallel in time (runtime/device/states.h) are not a draw of the whole chain.

    states.py [NAME ...]

Laws: all else is data, so draws are independent. Pairs of states, of neighbours and of elements further apart, are counted over DRAWS
sweeps and held against their exact probabilities, which come from the forward and backward recursions in logarithms here; the smallest
probability of a chi-square statistic, times the number of pairs, is at least 1e-7: a false alarm is rarer than that for each model. A pair
that is impossible must not be drawn. Lengths are such that chains have chunks, groups of chunks, and ends of either.

Draws: each element uses the random number that the serial recursion of the CPU uses for it, so programs that take a GPU's updates give the
same files, but for rounding: it could change one draw in 10^12. With one thread, and with a team of two.
"""
import os
import subprocess
import sys

import numpy as np
from scipy.special import chdtrc, logsumexp

from program import ROOT, Failed, Workplace

LIKE_GPU = os.path.join(ROOT, "tests/stat/cc_like_gpu")
# a third where all elements together have more values than that, a twelfth where each has more than 16: what is wrong in chunks is counted
# at hundreds of pairs
DRAWS, LARGE = 2000, 6000
FALSE_ALARM = 1e-7


# ---- laws ----

FIXED = """
data { int<lower=1> T, K; matrix[T, K] local; array[T, K, K] real link; array[T, K] int value; array[T, K, K] int pair; }
latent { z[1] ~ discrete_range(1, K); for (t in 2:T) z[t] ~ discrete_range(1, K); }
likelihood { for (t in 1:T) target += local[t, z[t]] + log(value[t, z[t]]);
  for (t in 2:T) target += link[t, z[t - 1], z[t]] + log(pair[t, z[t - 1], z[t]]); }
"""


# The same by two unknowns, whose values make those of z: K = 3 L.
TOGETHER = """
data { int<lower=1> T, K; int<lower=1> L; array[T, 3, L] real local; array[T, 3, 3, L] real one; array[T, 3, L, L] real two; }
latent { a[1] ~ discrete_range(1, 3); b[1] ~ discrete_range(1, L); for (t in 2:T) { a[t] ~ discrete_range(1, 3);
  b[t] ~ discrete_range(1, L); } }
likelihood { for (t in 1:T) target += local[t, a[t], b[t]]; for (t in 2:T)
  target += one[t, a[t - 1], a[t], b[t - 1]] + two[t, a[t], b[t - 1], b[t]]; }
infer { (a, b) by gibbs; }
"""


def smooth(rng, T, K, scale):
    return scale * rng.normal(size=(T, K)), rng.normal(size=(T, K, K)) * scale


def alike(rng, T, K):
    """States that stay: elements far apart are dependent."""
    link = np.full((K, K), np.log(0.02 / max(K - 1, 1)))
    np.fill_diagonal(link, np.log(0.98))
    return 0.2 * rng.normal(size=(T, K)), np.broadcast_to(link, (T, K, K))


def forward_only(rng, T, K):
    """State k goes to k or k + 1 alone, the first and the last are known: what is likely is far from what is possible."""
    local, link = -900 * rng.random((T, K)), np.full((K, K), -np.inf)
    for k in range(K):
        link[k, k:k + 2] = 0
    local[0, 1:] = -np.inf
    local[T - 1, :K - 1] = -np.inf
    local[:, 0] -= 1e5 * (np.arange(T) > T // 3)               # beyond all exponents of a double
    return local, np.broadcast_to(link, (T, K, K))


def impossible(rng, T, K):
    """Half of the transitions, in no order; a third of the values at each time but one."""
    link = np.where(rng.random((T, K, K)) < 0.5, -np.inf, rng.normal(size=(T, K, K)))
    path = rng.integers(0, K, T)
    local = np.where(rng.random((T, K)) < 0.3, -np.inf, rng.normal(size=(T, K)))
    for t in range(T):
        local[t, path[t]] = 0
        if t:
            link[t, path[t - 1], path[t]] = 0
    return local, link


LAWS = {
    "one element": (1, 3, lambda r, T, K: smooth(r, T, K, 1)),
    "two values": (700, 2, lambda r, T, K: smooth(r, T, K, 1)),
    "three values": (1025, 3, alike),
    "four values, a short chain": (255, 4, lambda r, T, K: smooth(r, T, K, 1)),
    "four values": (256, 4, alike),
    "groups of groups": (9000, 2, alike),
    "many values": (900, 9, alike),
    "more values than a lane has": (840, 17, lambda r, T, K: smooth(r, T, K, 2)),
    "one value": (300, 1, lambda r, T, K: smooth(r, T, K, 1)),
    "forward only": (1500, 4, forward_only),
    "impossible transitions": (777, 5, impossible),
}


def pairs_of(T):
    """Times whose states are counted together."""
    near = [(t, t + 1) for t in range(0, T - 1, max(1, T // 150))] + [(t, t + 1) for t in range(31, T - 1, 32 * max(1, T // 1500))]
    far = [(t, min(T - 1, t + by)) for by in (33, 200) for t in range(0, T - 1, max(1, T // 40))] + [(0, T - 1)]
    return sorted({p for p in near + far if p[0] < p[1]}) or [(0, 0)]


def log_sum(x, axis):
    """The logarithm of the sum of exp(x), a tenth of the time of scipy's."""
    most = np.maximum(x.max(axis=axis, keepdims=True), -1e300)
    return np.log(np.exp(x - most).sum(axis=axis)) + most.squeeze(axis)


def exact(local, link, pairs):
    """Log probabilities of the states at each pair of times."""
    T, K = local.shape
    ahead, behind = np.zeros((T, K)), np.zeros((T, K))
    ahead[0] = local[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        for t in range(1, T):
            ahead[t] = log_sum(ahead[t - 1][:, None] + link[t], 0) + local[t]
        for t in range(T - 2, -1, -1):
            behind[t] = log_sum(link[t + 1] + local[t + 1] + behind[t + 1], 1)
        out = {}
        for a, b in pairs:
            if a == b:
                log_p = np.diag(ahead[a] + behind[a])
                log_p[~np.eye(K, dtype=bool)] = -np.inf
            else:
                log_p = np.where(np.eye(K, dtype=bool), 0, -np.inf)
                for t in range(a + 1, b + 1):
                    log_p = log_sum(log_p[:, :, None] + (link[t] + local[t])[None], 1)
                log_p = ahead[a][:, None] + log_p + behind[b][None]
            out[a, b] = np.exp(log_p - logsumexp(log_p))
    return out


def chi_square(count, p):
    """The probability of a statistic as large; cells that expect fewer than 8 draws are put together."""
    n = count.sum()
    if (count[p == 0] > 0).any():
        return 0.0
    order = np.argsort(p, axis=None)
    count, p = count.ravel()[order], p.ravel()[order]
    cells, seen, expected = [], 0, 0
    for c, e in zip(count, n * p):
        seen, expected = seen + c, expected + e
        if expected >= 8:
            cells.append((seen, expected))
            seen = expected = 0
    if not cells:
        return 1.0
    cells[-1] = (cells[-1][0] + seen, cells[-1][1] + expected)
    if len(cells) < 2:
        return 1.0
    return float(chdtrc(len(cells) - 1, sum((c - e) ** 2 / e for c, e in cells)))


class Programs(Workplace):
    def build(self, name, model, like_gpu, flags=("--method", "gibbs"), level=None):
        """The program, made once. It takes a CPU's updates or a GPU's. `level`: of optimisation, where it need not round as another."""
        name += "_gpu" if like_gpu else "_cpu"
        if not os.path.exists(self.path(name)):
            before = os.environ.get("CC")
            os.environ["CC"] = LIKE_GPU if like_gpu else os.path.join(ROOT, "tests/stat/cc_quick")
            os.environ["LEVEL"] = level or ""
            self.compile(name, model, flags=flags)
            os.environ["CC"] = before or "cc"
        return self.path(name)

    def lines(self, program, data, threads=1):
        """Of the file of draws of a chain, without comments."""
        out = program + "_files"
        ran = subprocess.run([program, data, "--device", "cpu", "--samples", "60", "--warmup", "5", "--chains", "1", "--threads",
                              str(threads), "--seed", "4", "--overwrite", "-o", out, "--no-summary", "--params", "all", "-q"],
                             capture_output=True, text=True)
        if ran.returncode != 0:
            raise Failed("%s stopped with exit status %d:\n%s%s" % (program, ran.returncode, ran.stdout, ran.stderr))
        with open(out + "_1.csv") as f:
            return [line for line in f if not line.startswith("#")]


# Sizes of two unknowns together, the first of three values: of chunks in a lane's own memory, beyond it, and of one chunk.
PRODUCTS = {"two unknowns": (700, 9), "two unknowns, a short chain": (40, 9), "two unknowns, more values than a lane has": (840, 18)}


def draws_of(T, K):
    return DRAWS // 12 if K > 16 else DRAWS // 3 if T * K > LARGE else DRAWS


def law_of_two(w, name):
    T, K = PRODUCTS[name]
    rng = np.random.default_rng([6, T, K])
    L = K // 3
    local, one, two = rng.normal(size=(T, 3, L)), 2 * rng.normal(size=(T, 3, 3, L)), 2 * rng.normal(size=(T, 3, L, L))
    link = one[:, :, :, :, None].transpose(0, 1, 3, 2, 4) + two.transpose(0, 2, 1, 3)[:, None]         # [t, a before, b before, a, b]
    data = w.data("law", {"T": T, "K": K, "L": L, "local": local, "one": one, "two": two})
    draws = w.draws(w.build("together", TOGETHER, True, level="-O1"), data, draws_of(T, K), chains=1, warmup=0, params="a,b")
    z = np.stack([L * (draws["a.%d" % (t + 1)].ravel() - 1) + draws["b.%d" % (t + 1)].ravel() - 1 for t in range(T)], axis=1).astype(int)
    return compare(z, local.reshape(T, K), link.reshape(T, K, K))


def law(w, name):
    T, K, make = LAWS[name]
    rng = np.random.default_rng([5, T, K])
    local, link = make(rng, T, K)
    may = np.isfinite(local).astype(int), np.isfinite(link).astype(int)
    data = w.data("law", {"T": T, "K": K, "local": np.where(may[0], local, 0), "link": np.where(may[1], link, 0), "value": may[0],
                          "pair": may[1]})
    draws = w.draws(w.build("law", FIXED, True, level="-O1"), data, draws_of(T, K), chains=1, warmup=0, params="z")
    z = np.stack([draws["z.%d" % (t + 1)].ravel() for t in range(T)], axis=1).astype(int) - 1
    return compare(z, local, link)


def compare(z, local, link):
    T, K = local.shape
    pairs = pairs_of(T)
    p = exact(local, link, pairs)
    worst = 1.0
    for a, b in pairs:
        count = np.zeros((K, K))
        np.add.at(count, (z[:, a], z[:, b]), 1)
        worst = min(worst, chi_square(count, p[a, b]))
    return worst * len(pairs) >= FALSE_ALARM, "smallest probability %.1e of %d pairs" % (worst, len(pairs))


# ---- the same draws as by the recursion ----

def observed(rng, T, K, missing=0.05):
    y = np.concatenate([[0], rng.normal(size=T - 1).cumsum()]) % (2 * K)
    return [None if rng.random() < missing else round(float(v), 3) for v in y]


def switching(rng, T, K):
    """Missing observations, parameters drawn, transitions from a Dirichlet."""
    return """data { int<lower=1> T, K; vector[T] y; }
prior { for (k in 1:K) { P[k] ~ dirichlet(rep_vector(1, K)); mu[k] ~ normal(0, 5); } s ~ half_cauchy(0, 1); }
latent { z[1] ~ categorical(rep_vector(1.0 / K, K)); for (t in 2:T) z[t] ~ categorical(P[z[t - 1]]); }
likelihood { for (t in 1:T) y[t] ~ normal(mu[z[t]], s); }""", {"T": T, "K": K, "y": observed(rng, T, K)}


def covariate(rng, T, K):
    """Transitions by data of the time; two observations a state, one of them under a condition."""
    return """data { int<lower=1> T, K; vector[T] y; int<lower=1, upper=2> w[T]; array[T] int use; }
prior { for (v in 1:2, k in 1:K) P[v, k] ~ dirichlet(rep_vector(1, K)); for (k in 1:K) { mu[k] ~ normal(0, 5); q[k] ~ beta(1, 1); } }
latent { z[1] ~ discrete_range(1, K); for (t in 2:T) z[t] ~ categorical(P[w[t], z[t - 1]]); }
likelihood { for (t in 1:T) { y[t] ~ normal(mu[z[t]], 1); if (use[t] > 0) use[t] ~ binomial(3, q[z[t]]); } }""", {
        "T": T, "K": K, "y": observed(rng, T, K, 0), "w": rng.integers(1, 3, T), "use": rng.integers(0, 4, T)}


def middle(rng, T, K):
    """Time is the second of three subscripts, transitions by the third, values from 0."""
    I, J = 3, 2
    return """data { int<lower=0> I, T, J; array[I, T, J] real y; vector[J] shift; }
prior { for (k in 1:4, j in 1:J) p[k, j] ~ beta(1, 1); m ~ normal(0, 5); }
latent { for (i in 1:I, j in 1:J) z[i, 1, j] ~ binomial(3, 0.5); for (i in 1:I, t in 2:T, j in 1:J)
  z[i, t, j] ~ binomial(3, p[z[i, t - 1, j] + 1, j]); }
likelihood { for (i in 1:I, t in 1:T, j in 1:J) y[i, t, j] ~ normal(m * z[i, t, j] + shift[j], 1); }""", {
        "I": I, "T": T, "J": J, "y": rng.normal(size=(I, T, J)).round(3), "shift": rng.normal(size=J).round(3)}


def ragged(rng, T, K):
    """Chains of different lengths in a matrix, one of them of one element: the others do not exist."""
    n = [T, 1, T // 2, 40]
    return """data { int N, T; int<lower=1, upper=T> n[N]; array[N, T] real y; }
prior { stay ~ beta(1, 1); m ~ normal(0, 2); }
latent { for (i in 1:N) { z[i, 1] ~ bernoulli(0.5); for (t in 2:n[i]) z[i, t] ~ bernoulli(if_else(z[i, t - 1] == 1, stay, 0.2)); } }
likelihood { for (i in 1:N, t in 1:n[i]) y[i, t] ~ normal(m * z[i, t], 1); }""", {"N": 4, "T": T, "n": n,
        "y": rng.normal(size=(4, T)).round(3)}


def two_chains(rng, T, K):
    """Two chains that see the same observations are one."""
    return """data { int T; vector[T] y; }
prior { a ~ beta(5, 1); b ~ beta(5, 1); s ~ half_normal(0, 1); }
latent { u[1] ~ bernoulli(0.5); for (t in 2:T) u[t] ~ bernoulli(if_else(u[t - 1] == 1, a, 1 - a)); v[1] ~ bernoulli(0.5);
  for (t in 2:T) v[t] ~ bernoulli(if_else(v[t - 1] == 1, b, 1 - b)); }
likelihood { for (t in 1:T) y[t] ~ normal(u[t] + 2 * v[t], s); }""", {"T": T, "y": observed(rng, T, 2, 0)}


SAME = {
    "switching": [(switching, 500, 2), (switching, 2000, 3), (switching, 1, 3), (switching, 900, 12)],
    "covariate": [(covariate, 1100, 4), (covariate, 2, 4)],
    "time in the middle": [(middle, 300, 4), (middle, 20, 4), (middle, 1, 4)],
    "chains of different lengths": [(ragged, 600, 2)],
    "two chains": [(two_chains, 400, 2)],
}


def same(w, name):
    for make, T, K in SAME[name]:
        model, values = make(np.random.default_rng([7, T, K]), T, K)
        data = w.data("same", values)
        stem = make.__name__
        cpu = w.lines(w.build(stem, model, False), data)
        for threads in (1, 2):
            if w.lines(w.build(stem, model, True), data, threads) != cpu:
                return False, "T = %d, K = %d: other draws, with a team of %d" % (T, K, threads)
    return True, "%d sizes" % len(SAME[name])


def main(names):
    failed = 0
    with Programs() as w:
        for check, cases in ((law, LAWS), (law_of_two, PRODUCTS), (same, SAME)):
            for name in cases:
                if names and name not in names:
                    continue
                try:
                    good, says = check(w, name)
                except Failed as e:
                    good, says = False, str(e)
                failed += not good
                print("%-5s %-10s %-28s %s" % ("ok" if good else "FAIL", check.__name__, name, says))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
