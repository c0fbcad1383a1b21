"""The law of every sampler on a GPU: 10^7 draws of each case in double, and again with parameters in single precision, against exact
probabilities.

    laws.py build FOLDER [ARCH]     probabilities (SciPy) and kernels (NVRTC; for ARCH, else for the GPU that is here)
    laws.py run FOLDER [DRAWS]      draws and compares: the CUDA driver is all it needs; the last line counts. With fewer than 10^5 draws
                                    ranges alone are compared
    laws.py list                    cases, and which samplers have none

A case is a call of a sampler, and a law. The line is cut into some 250 cells of equal probability and four further ones at each end, down
to 3 in 10^6; the counts of the draws are held against the probabilities by chi-square, whose bound rings falsely once in 10^8 (about: the
cells of the tails expect 30 draws and more). Draws that are NaN or outside the support: none. A parameter that is 1 % off must not pass:
the cases WRONG ask that. Every function of runtime/device/*.h that takes a Stream must stand in a case, or in PARTS with the reason why
not.
"""
import ctypes
import glob
import json
import math
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import toolkit

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEVICE = os.path.join(ROOT, "runtime", "device")
DRAWS = 10_000_000
FALSE_ALARM = 1e-8
GROUP = 16                       # cases in one program

# Functions that are no samplers by themselves, and what draws through them.
PARTS = {
    "normal_beyond_next": "normal_beyond", "normal_beyond": "normal_standard", "normal_from_cells": "normal_cells",
    "normal_cells": "normal_standard",
    "normal_offset_narrow": "normal_offset", "normal_offset": "normal_truncated", "normal_natural_truncated_as": "normal_natural_truncated",
    "normal_natural_truncated_single": "normal_natural_truncated", "polya_gamma_unit": "polya_gamma", "polya_gamma_single": "polya_gamma",
    "polya_gamma_one_single": "polya_gamma", "polya_gamma_apart_single": "polya_gamma", "log_concave_offset": "log_power_draw",
    "interval_draw": "log_power_draw", "normal_upside_down": "normal_natural_truncated",
    "normal_beyond_single_next": "normal_natural_truncated",
    "normal_natural_truncated_apart": "normal_natural_truncated", "slice_restart": "a start, not a draw",
    "stream_pass": "moves a stream on", "inv_wishart_df_scale": "inv_wishart",
    "binomial_less_likely": "binomial", "nuts_begin": "begins a move: tests/runtime/nuts.c and tests/gpu/nuts.cu have its law",
    "weigh_values": "one_of_8",
    "one_of_8": "choices among values whose weights come some at a time: tests/runtime/discrete.c has their law, devices.py the same text "
                "on a GPU",
    "normal_draw_by_crew": "normal_draw", "crew_bartlett": "bartlett", "wishart_natural_by_crew": "wishart_natural",
    "inv_wishart_natural_by_crew": "the same draws by a crew of lanes: devices.py has them beside the CPU's",
    "weigh_row": "the same for rows in registers: devices.py has it beside the loop that it stands for",
    "states_apply_each": "a link of a chain of several unknowns, in turn: tests/stat/states.py has the law of the chain, devices.py the "
                         "same draws on a GPU",
    "ellipse_begin": "begins a slice: tests/runtime/elliptical.c has its law",
    "sparse_back": "sparse_scale",
    "sparse_scale": "a joint normal by many blocks: tests/gpu/threads.test has it beside a dense factor, devices.py beside the CPU",
    "normal_sum_to_zero": "tests/runtime/sum_to_zero.c has its law", "normal_diagonal_sum_to_zero": "normal_sum_to_zero",
    "transfer_distance": "which elements meet, and the values a move is drawn from: tests/runtime/discrete.c",
    "transfer_phase": "transfer_distance", "transfer_step": "transfer_distance", "transfer_below": "transfer_distance",
    "climb_begin": "a mode, not a draw, and on a CPU: tests/runtime/modes.c", "climb_begin_log": "climb_begin",
    "normal_mode": "climb_begin", "expect_values": "climb_begin",
}

# In C, before the kernels. S is a covariance matrix, Sinv its inverse, L its factor; direction and other are linear forms.
PRELUDE = """
enum { D = 4 };
__device__ const double S[D * D] = { 2, 0.6, -0.3, 0.1, 0.6, 1, 0.2, 0, -0.3, 0.2, 1.5, 0.7, 0.1, 0, 0.7, 3 };
__device__ const double mu[D] = { 1, -2, 0.5, 3 }, direction[D] = { 1, -0.5, 2, 0.3 }, other[D] = { 0.2, 1, 0, -1 };
__device__ const double alpha3[3] = { 2, 0.5, 4 }, natural3[3] = { 1, -0.5, 3 }, weights6[6] = { 0.5, 0, 3, 1e-3, 0, 2 }, trials4[4] = {
1, 0, 2, 5 }, cuts3[3] = { -1, 0.5, 2.5 };
static __device__ double quadratic(const double *A, const double *a)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) sum += a[i] * A[i * D + j] * a[j];
    return sum;
}
static __device__ double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < D; i++) sum += a[i] * b[i];
    return sum;
}
static __device__ void invert(const double *A, double *out)
{
    double copy[D * D];
    for (int i = 0; i < D * D; i++) copy[i] = A[i];
    spd_inverse(copy, D, out);
}
static __device__ void scaled(const double *A, double by, double *out)
{
    for (int i = 0; i < D * D; i++) out[i] = by * A[i];
}
// (x - mu)' S^-1 (x - mu)
static __device__ double distance(const double *x)
{
    double A[D * D], v[D];
    for (int i = 0; i < D; i++) v[i] = x[i] - mu[i];
    invert(S, A);
    return quadratic(A, v);
}
static __device__ double two_modes(double x) { return log(0.3 * exp(-0.5 * (x + 2) * (x + 2)) + 1.4 * exp(-2 * (x - 3) * (x - 3))); }
#define UPDATE(begin, f) { Slice sl; begin; while (slice_next(&sl)) sl.log_density = (f); x = sl.x; }
#define KEPT(begin, f) { Slice sl; begin; while (slice_next(&sl)) sl.log_density = (f); KEPT_VALUE }
#define KEPT_VALUE x = fabs(sl.log_x - log(sl.x)) > 1e-10 ? NAN : sl.x;
#define STEP(begin, f) { Metropolis m; begin; while (metropolis_next(&m)) m.log_density = (f); x = m.x; }
"""

KERNEL = """
extern "C" __global__ void case_%(k)d(long n, unsigned sweep, const double *border, int borders, double lo, double hi,
unsigned long long *count)
{
    __shared__ unsigned cell[MOST_CELLS + 2];
    for (int k = threadIdx.x; k < MOST_CELLS + 2; k += blockDim.x) cell[k] = 0;
    __syncthreads();
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        Sweep at;
        at.seed = 20240607;
        at.chain = 0;
        at.sweep = sweep;
        Stream own = stream(at, %(k)d, i), *g = &own;
        double x;
        %(body)s
        atomicAdd(&cell[place(x, border, borders, lo, hi)], 1u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < MOST_CELLS + 2; k += blockDim.x)
        if (cell[k]) atomicAdd(&count[k], (unsigned long long)cell[k]);
}
"""

# The cell of x; MOST_CELLS: outside the support; MOST_CELLS + 1: NaN.
PLACE = """
enum { MOST_CELLS = 700 };
static __device__ int place(double x, const double *border, int borders, double lo, double hi)
{
    if (x != x) return MOST_CELLS + 1;
    if (!(x >= lo && x <= hi)) return MOST_CELLS;
    int from = 0, to = borders;                  // the number of borders below x
    while (from < to) {
        const int middle = (from + to) / 2;
        if (border[middle] < x) from = middle + 1; else to = middle;
    }
    return from;
}
"""
MOST_CELLS = 700
TAILS = [3e-6, 1e-5, 1e-4, 1e-3]
EVEN = 250


# ---- laws: borders, the probabilities of the cells between them, and the support ----

class Continuous:
    """From distribution functions of both tails and their inverses."""

    def __init__(self, law, lo=None, hi=None):
        self.law = law
        self.lo, self.hi = law.support() if lo is None else (lo, hi)

    def cells(self):
        import numpy as np
        low = [t for t in TAILS if t < 1 / EVEN] + [k / EVEN for k in range(1, EVEN // 2 + 1)]
        border = np.concatenate([self.law.ppf(np.array(low)), self.law.isf(np.array(low[-2::-1]))])
        border = np.unique(border[(border > max(self.lo, -1.7e308)) & (border < min(self.hi, 1.7e308)) & (np.abs(border) >= 2.3e-308)])
        return border, between(self.law.cdf(border), self.law.sf(border))


def between(cdf, sf):
    """Probabilities of cells from both tails at the borders: each difference from the side where the terms are small."""
    import numpy as np
    lower = np.diff(np.concatenate([[0], cdf]))
    upper = -np.diff(np.concatenate([sf, [0]]))
    p = np.where(cdf < 0.5, lower, np.nan)
    first = int(np.argmax(cdf >= 0.5)) if np.any(cdf >= 0.5) else len(cdf)
    out = np.empty(len(cdf) + 1)
    out[:first] = p[:first]
    out[first + 1:] = upper[first:]
    out[first] = 1 - out[:first].sum() - out[first + 1:].sum()
    return out


class Transformed:
    """Of x = f(t), f rising, where t has the law `inner` (or f falling, from the other side)."""

    def __init__(self, inner, f, lo=-math.inf, hi=math.inf, falling=False):
        self.inner, self.f, self.lo, self.hi, self.falling = inner, f, lo, hi, falling

    def cells(self):
        import numpy as np
        border, p = self.inner.cells()
        border = self.f(border)
        if self.falling:
            border, p = border[::-1], p[::-1]
        keep = (np.abs(border) >= 2.3e-308) & np.isfinite(border)
        return join(border, p, keep)


def tidy(border, p, lo, hi, spacing=0.0):
    """Cells joined to a neighbour: those that expect too few draws, and those narrower than `spacing` times their border."""
    import numpy as np
    keep, at, last = [], 0.0, lo
    for k in range(len(border)):
        at += p[k]
        wide = spacing * abs(border[k])
        keep.append(bool(at >= 2e-6 and border[k] - last >= wide and hi - border[k] >= wide))
        if keep[k]:
            at, last = 0.0, border[k]
    kept = [k for k in range(len(border)) if keep[k]]
    if kept and p[-1] + at < 2e-6:
        keep[kept[-1]] = False
    return join(border, p, np.array(keep, bool))


def join(border, p, keep):
    """Cells joined where a border is not kept."""
    import numpy as np
    sums, at = [], 0.0
    for k in range(len(border)):
        at += p[k]
        if keep[k]:
            sums.append(at)
            at = 0.0
    return border[keep], np.array(sums + [at + p[-1]])


class Within:
    """A law given an interval, from the tail where the interval is small."""

    def __init__(self, law, lo, hi):
        self.law, self.lo, self.hi = law, max(lo, law.support()[0]), min(hi, law.support()[1])

    def cells(self):
        import numpy as np
        low = np.array([t for t in TAILS] + [k / EVEN for k in range(1, EVEN // 2 + 1)])
        share = np.concatenate([low, 1 - low[-2::-1]])
        F = self.law
        upper = F.sf(self.lo) < 0.5
        a, b = (F.sf(self.lo), F.sf(self.hi)) if upper else (F.cdf(self.lo), F.cdf(self.hi))
        border = np.unique(F.isf(a + (b - a) * share) if upper else F.ppf(a + (b - a) * share))
        border = border[(border > self.lo) & (border < self.hi)]
        if upper:
            return border, between((a - F.sf(border)) / (a - b), (F.sf(border) - b) / (a - b))
        return border, between((F.cdf(border) - a) / (b - a), (b - F.cdf(border)) / (b - a))


class Tabulated:
    """A density in t, smooth, on [lo, hi] or where it exceeds e^-60 of its top, integrated by Gauss-Legendre over 20000 steps; x = f(t)."""

    def __init__(self, log_density, lo, hi, f=None, support=None):
        self.g, self.a, self.b, self.f = log_density, lo, hi, f or (lambda t: t)
        self.lo, self.hi = support or (self.f(lo), self.f(hi))

    def cells(self):
        import numpy as np
        steps = 20000
        t = np.linspace(self.a, self.b, steps + 1)
        node, weight = np.polynomial.legendre.leggauss(6)
        at = 0.5 * (t[:-1] + t[1:])[:, None] + 0.5 * (t[1] - t[0]) * node
        g = self.g(at)
        mass = np.exp(g - g.max()) @ weight
        mass /= mass.sum()
        cdf, sf = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:]
        low = np.array([q for q in TAILS] + [k / EVEN for k in range(1, EVEN // 2 + 1)])
        chosen = np.unique(np.concatenate([np.searchsorted(cdf, low), len(sf) - 1 - np.searchsorted(sf[::-1], low)]))
        chosen = chosen[(chosen > 0) & (chosen < len(cdf) - 1) & (cdf[np.clip(chosen, 0, len(cdf) - 1)] > 1e-6)
                        & (sf[np.clip(chosen, 0, len(sf) - 1)] > 1e-6)]
        border = self.f(t[1:-1][chosen])
        keep = np.concatenate([[True], np.diff(border) > 0])
        return border[keep], between(cdf[chosen][keep], sf[chosen][keep])


class Known:
    """From functions written out: P(X <= x), P(X > x), borders where they are wanted by bisection."""

    def __init__(self, cdf, sf, lo, hi, first, last):
        self.cdf_of, self.sf_of, self.lo, self.hi, self.first, self.last = cdf, sf, lo, hi, first, last

    def cells(self):
        import numpy as np
        low = np.array([t for t in TAILS] + [k / EVEN for k in range(1, EVEN // 2 + 1)])

        def solve(f, sign):
            a, b = np.full(len(low), self.first), np.full(len(low), self.last)
            for _ in range(60):
                m = np.sqrt(a * b) if self.first > 0 else 0.5 * (a + b)
                more = sign * (f(m) - low) > 0
                a, b = np.where(more, a, m), np.where(more, m, b)
            return 0.5 * (a + b)
        border = np.unique(np.concatenate([solve(self.cdf_of, 1), solve(self.sf_of, -1)]))
        border = border[(self.cdf_of(border) > 1e-7) & (self.sf_of(border) > 1e-7)]
        return border, between(self.cdf_of(border), self.sf_of(border))


class Counts:
    """Whole numbers: cells of neighbours that expect 30 draws at least."""

    def __init__(self, law):
        self.law = law
        self.lo, self.hi = law.support()

    def cells(self):
        import numpy as np
        lo = int(max(self.lo, self.law.ppf(1e-7)))
        hi = int(min(self.hi, self.law.isf(1e-7) + 1))
        k = np.arange(lo, hi + 1)
        p = self.law.pmf(k)
        border, cell, at = [], [], float(self.law.cdf(lo - 1)) if lo > self.lo else 0.0
        need = 3e-6 if len(k) < 600 else 1 / 600
        for j in range(len(k) - 1):
            at += p[j]
            if at >= need:
                border.append(k[j] + 0.5)
                cell.append(at)
                at = 0.0
        rest = float(self.law.sf(math.floor(border[-1]))) if border else 1.0
        if rest < 3e-6 and len(border) > 1:
            border.pop()
            rest += cell.pop()
        return np.array(border), np.array(cell + [rest])


class YuleSimon:
    """P(X > k) = Gamma(k + 1) Gamma(alpha + 1) / Gamma(k + 1 + alpha) on 1, 2, ..: borders where the tail is wanted."""

    def __init__(self, alpha):
        self.alpha, self.lo, self.hi = alpha, 1, math.inf

    def cells(self):
        import numpy as np
        from scipy import special
        k = np.unique(np.concatenate([np.arange(1, 100), np.rint(np.geomspace(100, 4e5 ** max(1, 1 / self.alpha), 150))]))
        sf = np.exp(special.gammaln(self.alpha + 1) - np.log(special.poch(k + 1, self.alpha)))
        k, sf = k[sf > 3e-6], sf[sf > 3e-6]
        return k + 0.5, between(1 - sf, sf)


class Weights:
    """1 .. n with given weights."""

    def __init__(self, w, lo=None, hi=None):
        self.w, self.lo, self.hi = w, lo or 1, hi or len(w)

    def cells(self):
        import numpy as np
        w = np.array(self.w, float) / sum(self.w)
        used = [k for k in range(len(w)) if w[k] > 0]
        border = [0.5 * (a + b) + 1 for a, b in zip(used, used[1:])]
        return np.array(border), w[used]


class Polya:
    """Polya-Gamma: the Laplace transform inverted by the Euler method of Abate and Whitt 1995, error about 1e-8."""

    def __init__(self, b, c):
        self.b, self.c, self.lo, self.hi = b, c, 2.2e-308, math.inf

    def transform(self, s):
        import numpy as np
        z, h = np.sqrt(0.25 * self.c ** 2 + 0.5 * s), 0.5 * abs(self.c)
        return np.exp(self.b * (h + np.log1p(np.exp(-2 * h)) - z - np.log(1 + np.exp(-2 * z))))

    def cdf(self, x):
        import numpy as np
        first, averaged, A = self.terms, 12, 18.4
        s = A / (2 * x) + 0j
        total, result, weight = 0.5 * (self.transform(s) / s).real, np.zeros_like(x), 0.5 ** averaged
        for k in range(1, first + averaged + 1):
            s = (A + 2j * math.pi * k) / (2 * x)
            total = total + (-1) ** k * (self.transform(s) / s).real
            if k >= first:
                result += weight * total
                weight *= (averaged - (k - first)) / (k - first + 1)
        return result * math.exp(0.5 * A) / x

    def cells(self):
        import numpy as np
        b, c = self.b, abs(self.c)
        mean = b / 4 if c == 0 else b * math.tanh(c / 2) / (2 * c)
        var = b / 24 if c < 1e-3 else b / (2 * c ** 3) if c > 100 else b * (math.sinh(c) - c) / (4 * c ** 3 * math.cosh(c / 2) ** 2)
        spread = math.sqrt(var)
        self.terms = 30 + int(8 * mean / spread)             # a narrow law has a long transform
        x = np.unique(np.concatenate([np.geomspace(max(1e-9 * mean, 1e-12), mean, 3000),
                                      np.linspace(max(mean - 6 * spread, 1e-3 * mean), mean + 40 * spread, 6000)]))
        F = np.clip(self.cdf(x), 0, 1)
        low = [t for t in TAILS if t >= 1e-5] + [k / EVEN for k in range(1, EVEN)] + [1 - t for t in TAILS[::-1] if t >= 1e-5]
        chosen = np.unique(np.clip(np.searchsorted(F, low), 1, len(x) - 2))
        chosen = chosen[(F[chosen] > 5e-6) & (1 - F[chosen] > 5e-6)]
        border, F = x[chosen], F[chosen]
        keep = np.concatenate([[True], np.diff(F) > 1e-5])
        return border[keep], between(F[keep], 1 - F[keep])


# ---- cases ----

def cases():
    """[(name, body in C that sets x, law, single)]: single says whether the case is drawn with parameters in single precision too."""
    import numpy as np
    from scipy import special, stats as st
    found = []

    def call(text, law, single=True, scale=None):
        """A plain call; its numbers become `real` where that is single precision. scale: C that makes of x what has the law."""
        numbers = re.fullmatch(r"(\w+)\(g((?:, [-+.\w]+)*)\)", text)
        arguments = [a for a in numbers.group(2).split(", ") if a] if numbers else []
        written = text if not numbers else "%s(g%s)" % (numbers.group(1), "".join(", (real)(%s)" % a for a in arguments))
        found.append((text + (" %s" % scale if scale else ""), "x = (double)%s;%s" % (written, " x = %s;" % scale if scale else ""), law,
                      single))

    def body(name, text, law, single=False):
        found.append((name, text, law, single))

    C, W, N = Continuous, Within, Counts
    normal, expon = st.norm(), st.expon()

    # bits, uniforms, exponentials
    body("random_bits", "x = (double)(random_bits(g) >> 11) * 1.11022302462515654e-16;", C(st.uniform()))
    body("random_block, third word", "x = ((double)random_block(g).word2 + 0.5) * 2.3283064365386963e-10;", C(st.uniform()))
    body("stream_part 7, second draw", "Stream part = stream_part(g, 7); uniform_open(&part); x = uniform_open(&part);", C(st.uniform()))
    call("uniform_open(g)", C(st.uniform()))
    call("exponential_standard(g)", C(expon))
    call("exponential_rate(g, 3)", C(st.expon(scale=1 / 3)))
    call("uniform_between(g, -2, 5)", C(st.uniform(-2, 7)))
    call("uniform_between(g, -1.7e308, 1.7e308)", C(st.uniform(-1, 2)), False, "x / 1.7e308")
    call("exponential_natural_truncated(g, 1.5, 2, 4)", Transformed(W(expon, 0, 3), lambda t: 4 - t / 1.5, 2, 4, True))
    call("exponential_natural_truncated(g, -1.5, 2, INFINITY)", C(st.expon(2, 1 / 1.5)))
    call("exponential_natural_truncated(g, 0, 2, 4)", C(st.uniform(2, 2)))

    # normal
    call("normal_standard(g)", C(normal))
    body("normal_standard, second draw of a stream", "normal_standard(g); x = normal_standard(g);", C(normal), True)
    call("normal_mean_sd(g, -3, 2)", C(st.norm(-3, 2)))
    call("normal_natural(g, 6, -1.5)", C(st.norm(2, math.sqrt(1 / 3))))
    call("lognormal(g, 0.5, 2)", C(st.lognorm(2, 0, math.exp(0.5))))
    call("half_normal(g, 1, 2)", C(st.halfnorm(1, 2)))

    # truncated normal: one end near, far, and on both sides of where the methods change; two ends
    for m in (-40, -8, -4.5, -4.01, -3.99, -3.5, -3, -1.76, -1.74, -1, -0.5, -0.2, 0, 0.46, 0.48, 0.7, 2, 2.9, 8, 14, 40):
        law = C(st.truncnorm(-m, math.inf, m, 1)) if m > -38 else Tabulated(lambda t, m=m: m * t - 0.5 * t * t, 0, 1.5)
        call("normal_truncated(g, %g, 1, 0, INFINITY)" % m, law)
        law.lo, law.hi = 0, math.inf
        call("normal_natural_truncated(g, %g, -0.5, 0, INFINITY)" % m, law)
        call("normal_natural_truncated(g, %g, -0.5, -INFINITY, 0)" % -m, mirrored(law))
    for a, b in ((-1, 1), (-0.3, 0.4), (0.2, 5), (0.5, 0.8), (3, 3.2), (5, 9), (-9, -5), (-0.1, 12), (-0.035, 0.035), (-0.05, 0.05),
                 (1, 1.08), (1, 1.2), (1.7, 3), (-2.95, 2.95),
                 (-3, -1), (2, 30), (6, 6.2), (-30, 0.25), (-9, 9), (-0.02, 0.04)):
        call("normal_truncated(g, 0, 1, %g, %g)" % (a, b), C(st.truncnorm(a, b)))
        lo, hi = (float(np.float32(3 + 0.5 * e)) for e in (a, b))        # numbers of either precision
        call("normal_natural_truncated(g, 12, -2, %r, %r)" % (lo, hi), C(st.truncnorm((lo - 3) / 0.5, (hi - 3) / 0.5, 3, 0.5)))
    call("normal_natural_truncated(g, 0, -0.5, -1e20, 1e20)", C(normal))
    call("normal_truncated(g, 1e6, 1, -INFINITY, 0)", C(expon), False, "x * -1e6")
    call("normal_natural_truncated(g, -2e6, -0.5, 0, INFINITY)", C(expon), True, "x * 2e6")
    call("normal_natural_truncated(g, 1e-9, -1e-18, 0, 1)", C(st.uniform()), False)
    call("normal_natural_truncated(g, 1.5, 0, 2, 4)", Transformed(W(expon, 0, 3), lambda t: 4 - t / 1.5, 2, 4, True))
    call("normal_natural_truncated(g, -1.5, 0, 2, INFINITY)", C(st.expon(2, 1 / 1.5)))
    call("normal_natural_truncated(g, 0, 0, -3, 4)", C(st.uniform(-3, 7)))
    call("normal_truncated(g, 0, 1, 30, 30.000001)", Transformed(W(expon, 0, 30 * (30.000001 - 30)), lambda t: t / 30, 0, 1.001e-6), False,
         "x - 30")

    # gamma and its powers
    for shape, rate in ((1, 2), (1.01, 2), (0.5, 2), (0.03, 1), (30, 2), (1000, 0.25)):
        call("gamma_shape_rate(g, %g, %g)" % (shape, rate), C(st.gamma(shape, scale=1 / rate)))
    call("gamma_shape_rate(g, 30, 1e-100)", C(st.gamma(30)), False, "x * 1e-100")
    call("gamma_shape_rate(g, 1e14, 1)", C(normal), False, "(x - 1e14) / 1e7")           # skewness 2e-7
    call("gamma_standard_large(g, 2.5)", C(st.gamma(2.5)))
    call("log_gamma_standard(g, 2.5)", Transformed(C(st.gamma(2.5)), np.log))
    # P(X <= x) = x^shape / Gamma(1 + shape) (1 - shape x + ..): most of the mass lies below the smallest double
    call("log_gamma_standard(g, 1e-5)", Known(lambda t: np.exp(1e-5 * t - special.gammaln(1 + 1e-5)),
                                              lambda t: -np.expm1(1e-5 * t - special.gammaln(1 + 1e-5)), -math.inf, 4, -2e6, -3), False)
    call("inv_gamma_shape_scale(g, 2.5, 3)", C(st.invgamma(2.5, scale=3)))
    call("root_inv_gamma(g, 2.5, 3)", Transformed(C(st.invgamma(2.5, scale=3)), np.sqrt, 0))
    call("chi_square(g, 3)", C(st.chi2(3)))
    call("inv_chi_square(g, 3)", C(st.invgamma(1.5, scale=0.5)))
    call("scaled_inv_chi_square(g, 3, 2)", C(st.invgamma(1.5, scale=6)))
    call("power_gamma_natural(g, 1, 2, -3)", C(st.gamma(3, scale=1 / 3)))
    call("power_gamma_natural(g, -1, -3, -3)", C(st.invgamma(2, scale=3)))
    call("power_gamma_natural(g, -2, -4, -3)", Transformed(C(st.invgamma(1.5, scale=3)), np.sqrt, 0))
    call("power_gamma_natural(g, 2.5, 1.5, -0.5)", Transformed(C(st.gamma(1, scale=2)), lambda t: t ** 0.4, 0))
    gamma3 = st.gamma(3, scale=0.5)
    for lo, hi in ((0, 1), (1, 2.5), (0, math.inf), (4, math.inf)):
        call("gamma_shape_rate_truncated(g, 3, 2, %g, %s)" % (lo, "INFINITY" if hi == math.inf else "%g" % hi), W(gamma3, lo, hi))
    call("gamma_shape_rate_truncated(g, 0.2, 2, 40, INFINITY)", W(st.gamma(0.2, scale=0.5), 40, math.inf))
    call("gamma_shape_rate_truncated(g, 0.05, 1, 0, 0.0009765625)", W(st.gamma(0.05), 0, 0.0009765625))
    call("gamma_shape_rate_truncated(g, 500, 1, 0, 300)", W(st.gamma(500), 0, 300))
    call("gamma_shape_rate_truncated(g, 0, 1, 0.0009765625, INFINITY)",
         Known(lambda x: 1 - special.exp1(x) / special.exp1(0.0009765625), lambda x: special.exp1(x) / special.exp1(0.0009765625),
               0.0009765625, math.inf, 0.0009765626, 50.0))
    call("inv_gamma_shape_scale_truncated(g, 2, 3, 1, 10)", W(st.invgamma(2, scale=3), 1, 10))
    # The same in the parameters of textbooks.
    call("normal_drawn(g, 2, 3)", C(st.norm(2, math.sqrt(1 / 3))))
    call("power_gamma_drawn(g, -2, 1.5, 3)", Transformed(C(st.invgamma(1.5, scale=3)), np.sqrt, 0))
    call("power_gamma_within_drawn(g, -2, 4, 0.125, 0, 1)", Transformed(W(st.invgamma(4, scale=0.125), 0, 1), np.sqrt, 0, 1))
    call("power_gig_drawn(g, 3, 0.5, 2, 1)", Tabulated(lambda t: 1.5 * t - np.exp(3 * t) - 0.5 * np.exp(-3 * t), -4, 3, np.exp,
                                                       (0, math.inf)))
    call("power_gig_within_drawn(g, 1, 0.7, 2.4, 0.8, 0.5, 3)", Tabulated(
        lambda t: 0.7 * t - 1.2 * np.exp(t) - 0.4 * np.exp(-t), math.log(0.5), math.log(3), np.exp, (0.5, 3)))
    call("power_gamma_natural_truncated(g, -2, -9, -0.125, 0, 1)", Transformed(W(st.invgamma(4, scale=0.125), 0, 1), np.sqrt, 0, 1))
    call("power_gamma_natural_truncated(g, 2, 3, -0.75, 0.5, INFINITY)", Transformed(W(st.gamma(2, scale=1 / 0.75), 0.25, math.inf),
            np.sqrt, 0.5))
    call("power_natural_truncated(g, 2.5, 0, 3)", Transformed(C(st.uniform()), lambda u: 3 * u ** (1 / 3.5), 0, 3))
    call("power_natural_truncated(g, -4, 2, INFINITY)", C(st.pareto(3, scale=2)))
    call("power_natural_truncated(g, -1, 1e-9, 1e9)", Transformed(C(st.uniform()), lambda u: 1e-9 * 1e18 ** u, 0.99e-9, 1.01e9))
    call("power_gig_natural_truncated(g, 1, -0.3, -1.2, -0.4, 0.5, 3)", Tabulated(lambda t: 0.7 * t - 1.2 * np.exp(t) - 0.4 * np.exp(-t),
            math.log(0.5), math.log(3), np.exp, (0.5, 3)))
    # Natural parameters of the other sign, proper on the interval alone.
    call("power_gig_natural_truncated(g, 1, 0.3, 4, -0.7, 0.2, 0.9)", Tabulated(lambda t: 1.3 * t + 4 * np.exp(t) - 0.7 * np.exp(-t),
            math.log(0.2), math.log(0.9), np.exp, (0.2, 0.9)))
    call("power_gig_natural_truncated(g, 1, -0.5, 2, 2, 0.1, 10)", Tabulated(lambda t: 0.5 * t + 2 * np.exp(t) + 2 * np.exp(-t),
                                                                             math.log(0.1), math.log(10), np.exp, (0.1, 10)))
    call("gamma_shape_rate_truncated(g, 1.5, -2, 0, 1)", Tabulated(lambda t: 1.5 * t + 2 * np.exp(t), -25.0, 0.0, np.exp, (0, 1)))
    # in single precision NaN: truncated_single.h
    call("normal_natural_truncated(g, -0.5, 4, -1, 1.2)", Tabulated(lambda t: -0.5 * t + 4 * t * t, -1.0, 1.2, lambda t: t, (-1, 1.2)),
         False)
    call("power_gig_natural_truncated(g, -2, -2.5, -3, -0.2, 2, 4)", Tabulated(lambda t: -1.5 * t - 0.2 * np.exp(2 * t) - 3
            * np.exp(-2 * t), math.log(2), math.log(4), np.exp, (2, 4)))
    call("log_power_draw(g, 1.5, 2, 0.5, -INFINITY, INFINITY)", gig(1.5, 4, 1, np.log, False))

    # beta
    for a, b in ((2, 3), (0.5, 0.5), (0.05, 3), (300, 20)):
        call("beta_a_b(g, %g, %g)" % (a, b), C(st.beta(a, b)))
    call("beta_natural(g, 300, 20)", C(st.beta(301, 21)))
    for a, b, lo, hi in ((1, 2, 0, 1), (1, 2, 0.9375, 1), (40, 60, 0.125, 0.1875), (0, 0, 0.25, 0.75), (-0.875, -0.9375, 0.25, 0.75)):
        call("beta_natural_truncated(g, %g, %g, %g, %g)" % (a, b, lo, hi), W(st.beta(a + 1, b + 1), lo, hi))
    call("beta_natural_truncated(g, -2, 0, 0.125, 0.5)", Transformed(C(st.uniform()), lambda u: 1 / (8 - 6 * u), 0.125, 0.5))

    # inverse Gaussian, generalised
    for mean, shape in ((2, 3), (1, 0.125), (0.25, 40)):
        call("inverse_gaussian_mean_shape(g, %g, %g)" % (mean, shape), C(st.invgauss(mean / shape, scale=shape)))
    call("inverse_gaussian_mean_shape(g, INFINITY, 3)", C(st.invgamma(0.5, scale=1.5)))
    call("inverse_gaussian_mean_shape(g, 1e300, 3)", C(st.invgamma(0.5, scale=1.5)), False)
    call("inverse_gaussian_mean_shape(g, 2, 2e12)", C(normal), False, "(x - 2) * 5e5")
    for p, a, b in ((1.5, 2, 3), (-1.5, 2, 3), (0, 1, 1), (0, 1e-4, 1e-4), (0.5, 2, 3), (-0.5, 2, 3), (40, 0.125, 5), (-40, 5, 0.125),
                    (0.0078125, 1e-3, 1e-6), (2, 1e4, 1e4),
                    (5, 2, 1e-12), (-0.25, 1e-6, 4)):
        call("gig_p_a_b(g, %g, %g, %g)" % (p, a, b), gig(p, a, b))
    call("gig_p_a_b(g, 2, 3, 0)", C(st.gamma(2, scale=2 / 3)))
    call("gig_p_a_b(g, -2, 0, 3)", C(st.invgamma(2, scale=1.5)))
    call("power_gig_natural(g, 3, 0.5, -1, -0.5)", Tabulated(lambda t: 1.5 * t - np.exp(3 * t) - 0.5 * np.exp(-3 * t), -4, 3, np.exp,
                                                             (0, math.inf)))
    call("power_gig_natural(g, -1, 0.5, -0.5, -1)", Tabulated(lambda t: 1.5 * t - np.exp(t) - 0.5 * np.exp(-t), -6, 6, np.exp,
                                                              (0, math.inf)))
    call("power_gig_natural(g, -2, 0.5, 0, -1)", Transformed(C(st.gamma(0.75)), np.sqrt, 0))

    # Polya-Gamma: below 8 and above, whole and in part, tilted weakly and strongly
    for b, c in ((1, 0), (1, 0.1), (1, 0.75), (1, 2), (1, 3.25), (1, 8), (1, 29.875), (1, 30.125), (1, 200), (2, 1), (5, 0), (7, 4),
                 (7.5, 4), (0.1, 1), (0.3, 0), (0.5, 2), (0.5, 12), (0.85, 0.5), (0.95, 0), (0.999, 1),
                 (8, 0), (8.7, 5), (9, 8.9), (9, 12), (9, 17), (60, 1), (171, 0), (400, 10)):
        call("polya_gamma(g, %g, %g)" % (b, c), Polya(b, c))
    body("polya_gamma(0.35, 1.2) + polya_gamma(0.65, 1.2)", "x = polya_gamma(g, 0.35, 1.2) + polya_gamma(g, 0.65, 1.2);", Polya(1, 1.2))
    call("polya_gamma_natural(g, 1, -2)", Polya(1, 2))

    # Student and others
    call("student_t_standard(g, 5)", C(st.t(5)))
    call("student_t(g, 3, 1, 2)", C(st.t(3, 1, 2)))
    call("student_t(g, 0.3125, 0, 1)", C(st.t(0.3125)))
    call("student_t(g, INFINITY, 0, 1)", C(normal))
    call("half_student_t(g, 4, 1, 2)", W(st.t(4, 1, 2), 1, math.inf))
    call("cauchy_standard(g)", C(st.cauchy()))
    call("cauchy(g, 1, 2)", C(st.cauchy(1, 2)))
    call("half_cauchy(g, 1, 2)", C(st.halfcauchy(1, 2)))
    call("double_exponential(g, 1, 2)", C(st.laplace(1, 2)))
    call("logistic(g, 1, 2)", C(st.logistic(1, 2)))
    call("loglogistic(g, 2, 3)", C(st.fisk(3, scale=2)))
    call("weibull(g, 1.5, 2)", C(st.weibull_min(1.5, scale=2)))
    call("frechet(g, 2.5, 2)", C(st.invweibull(2.5, scale=2)))
    call("rayleigh(g, 2)", C(st.rayleigh(scale=2)))
    call("gumbel(g, 1, 2)", C(st.gumbel_r(1, 2)))
    call("pareto(g, 2, 3)", C(st.pareto(3, scale=2)))
    call("pareto_type_2(g, 1, 2, 3)", C(st.lomax(3, 1, 2)))
    call("skew_normal(g, 1, 2, -3)", Tabulated(lambda x: -0.125 * (x - 1) ** 2 + special.log_ndtr(-1.5 * (x - 1)), -15, 8, None,
                                               (-math.inf, math.inf)))
    for alpha, lo, hi in ((-3, -2, 1.5), (2, 0.5, 4), (-1, 1, math.inf), (1.5, -math.inf, 0), (0, 0, 2)):
        call("skew_normal_truncated(g, 1, 2, %g, %s, %s)" % (alpha, c_number(lo), c_number(hi)),
             Tabulated(lambda x, alpha=alpha: -0.125 * (x - 1) ** 2 + special.log_ndtr(0.5 * alpha * (x - 1)), max(lo, -20), min(hi, 22),
                       None, (lo, hi)))
    call("exp_mod_normal(g, 1, 2, 0.5)", C(st.exponnorm(1, 1, 2)))
    call("asymmetric_laplace(g, 1, 2, 0.25)", asymmetric_laplace(1, 2, 0.25))
    for k in (0, 1e-6, 0.5, 4, 200):
        spread = min(math.pi, 9 / math.sqrt(k) if k > 0 else math.pi)
        call("von_mises(g, 1, %g)" % k, Tabulated(lambda t, k=k: -2 * k * np.sin(0.5 * t) ** 2, -spread, spread, None, (-math.pi, math.pi)),
             True, "(x - 1 < -GM_PI ? x - 1 + 2 * GM_PI : x - 1)")
    call("von_mises(g, 0, 1e12)", C(normal), True, "x * 1e6")
    call("von_mises_natural(g, 0.8, -1.1)", Tabulated(lambda t: 0.8 * np.cos(t) - 1.1 * np.sin(t), -math.pi, math.pi, None,
                                                      (-3.1415927, 3.1415927)))
    for mu, k, lo, hi in ((1, 4, 0.5, 2.5), (3, 1.5, -3.125, -1), (0, 0, -1, 2), (-1, 200, -0.75, 3)):
        call("von_mises_truncated(g, %g, %g, %g, %g)" % (mu, k, lo, hi), Tabulated(lambda t, mu=mu, k=k: k * np.cos(t - mu), lo, hi))

    # counts and categories
    for rate in (0.01, 9.9, 10, 35, 1000):
        call("poisson(g, %g)" % rate, N(st.poisson(float(np.float32(rate)))))
    call("poisson(g, 1e14)", C(normal), False, "(x - 1e14) / 1e7")
    for n, p in ((1, 0.3), (20, 0.3), (25, 0.5), (40, 0.74), (3000, 0.97)):
        call("binomial(g, %d, %g)" % (n, p), N(st.binom(n, p)))
    call("binomial(g, 1000000000000000, 0.3)", C(normal), False, "(x - 3e14) / sqrt(2.1e14)")
    call("binomial(g, 10000000000, 1e-9)", N(st.poisson(10)), False)
    call("bernoulli(g, 0.2)", N(st.bernoulli(0.2)))
    call("geometric(g, 0.2)", N(st.geom(0.2, -1)))
    call("neg_binomial_alpha_beta(g, 2.5, 0.5)", N(st.nbinom(2.5, 1 / 3)))
    call("neg_binomial_2(g, 6, 0.8)", N(st.nbinom(0.8, 0.8 / 6.8)))
    call("beta_binomial(g, 30, 2, 3)", N(st.betabinom(30, 2, 3)))
    for r, a, b in ((3, 4, 2), (1, 2.5, 0.5), (20, 30, 10)):
        call("beta_neg_binomial(g, %g, %g, %g)" % (r, a, b), N(st.betanbinom(r, a, b)))
    for alpha in (0.75, 1.5, 4):
        call("yule_simon(g, %g)" % alpha, YuleSimon(alpha))
    call("hypergeometric(g, 30, 50, 70)", N(st.hypergeom(120, 50, 30)))
    call("hypergeometric(g, 95, 50, 50)", N(st.hypergeom(100, 50, 95)))
    call("discrete_uniform(g, 3, 12)", N(st.randint(3, 13)))
    body("categorical_weights", "x = categorical_weights(g, weights6, 6);", Weights((0.5, 0, 3, 1e-3, 0, 2)))
    body("categorical_log_weights",
         "double w[6]; for (int k = 0; k < 6; k++) w[k] = log(weights6[k]) - 5000; x = categorical_log_weights(g, w, 6);",
         Weights((0.5, 0, 3, 1e-3, 0, 2)))
    body("choose_by_weights", "alignas(16) const real a[8] = {0.5, 0, 1.5, 1e-3, 0.7, 1}, b[8] = {1, 0.3, 2, 1, 0, 2}; const real *const "
                              "w[] = {a, b}; x = choose_by_weights(g, 6, 2, w);", Weights((0.5, 0, 3, 1e-3, 0, 2)))
    body("categorical_logits", "double w[6]; for (int k = 0; k < 6; k++) w[k] = log(weights6[k]) - 5000; x = categorical_logits(g, w, 6);",
         Weights((0.5, 0, 3, 1e-3, 0, 2)))
    cuts = np.array([-math.inf, -1, 0.5, 2.5, math.inf])
    for eta in (-0.5, 3):
        body("ordered_logistic(%g)" % eta, "x = ordered_logistic(g, %g, cuts3, 3);" % eta, Weights(np.diff(special.expit(cuts - eta))))
        body("ordered_probit(%g)" % eta, "x = ordered_probit(g, %g, cuts3, 3);" % eta, Weights(np.diff(special.ndtr(cuts - eta))))
    many = "int32_t c[4]; multinomial(g, 50, trials4, 4, c); x = c[0] + c[1] + c[2] + c[3] != 50 || c[1] ? NAN : %s;"
    body("multinomial, one count", many % "c[3]", N(st.binom(50, 5 / 8)))
    body("multinomial, two counts", many % "c[0] + c[2]", N(st.binom(50, 3 / 8)))

    # parts of a distribution: by its distribution function, and by its probabilities from either end
    whole = ("Inversion v = inversion_start(g, %s, %s); while (inversion_next(&v, -INFINITY, INFINITY)) { v.below = log_Phi(v.x); v.above "
             "= log_Phi(-v.x); } x = inversion_value(&v);")
    for lo, hi in ((-1, 2), (-math.inf, -6), (5, 5.5), (7, math.inf)):
        body("inversion_start: normal on [%g, %g]" % (lo, hi), whole % (c_number(lo), c_number(hi)), W(normal, lo, hi))
    whole = ("Weights v = weights_start(%s, %s); while (weights_next(g, &v)) v.log_weight = v.x * log(%g) - lgamma(v.x + 1.0); x = "
             "weights_value(&v) - %d;")
    for rate, lo, hi in ((4, 2, 9), (9, 0, 3), (4, 7, math.inf), (0.5, 0, math.inf)):
        body("weights_next: poisson(%g) on [%g, %g]" % (rate, lo, hi), whole % (c_number(lo), c_number(hi), rate, lo - 1),
             Weights(st.poisson(rate).pmf(np.arange(lo, min(hi, lo + 60) + 1))))

    # vectors: a linear form, and the distance from the mean, which asks all of the covariance matrix
    S = np.array([[2, 0.6, -0.3, 0.1], [0.6, 1, 0.2, 0], [-0.3, 0.2, 1.5, 0.7], [0.1, 0, 0.7, 3]])
    mean, one, two = np.array([1, -2, 0.5, 3]), np.array([1, -0.5, 2, 0.3]), np.array([0.2, 1, 0, -1])
    form = C(st.norm(mean @ one, math.sqrt(one @ S @ one)))
    factor = "double L[D * D]; for (int k = 0; k < D * D; k++) L[k] = S[k]; chol_factor(L, D);"
    vector = "double v[D], work[3 * D * D], A[D * D]; %s if (%s) x = NAN; else x = %s;"
    h = "double h[D]; invert(S, A); for (int k = 0; k < D; k++) h[k] = dot(A + k * D, mu);"
    for name, before, draw in (("multi_normal_mean_cholesky", factor, "(multi_normal_mean_cholesky(g, D, mu, L, v), 0)"),
                               ("sample_multi_normal_cholesky", factor, "sample_multi_normal_cholesky(g, mu, L, D, v)"),
                               ("multi_normal_mean_covariance", "", "multi_normal_mean_covariance(g, D, mu, S, v, work)"),
                               ("multi_normal_mean_precision", "invert(S, A);", "multi_normal_mean_precision(g, D, mu, A, v, work)"),
                               ("normal_precision_shift", h, "normal_precision_shift(g, D, A, h, v)"),
                               ("normal_draw", h, "normal_draw(g, D, A, h, v)")):
        body(name + ", a linear form", vector % (before, draw, "dot(v, direction)"), form)
        body(name + ", distance", vector % (before, draw, "distance(v)"), C(st.chi2(4)))
    body("sample_ar1, the last", "double a[6]; x = sample_ar1(g, 0.8, 0.6, 6, a) ? NAN : a[5];", C(st.norm(0, 1)))
    body("sample_ar1, a form", "double a[6]; x = sample_ar1(g, 0.8, 0.6, 6, a) ? NAN : a[5] - 0.64 * a[3];",
         C(st.norm(0, 0.6 * math.sqrt(1.64))))
    body("multi_student_t, a linear form", vector % ("", "multi_student_t(g, D, 3.5, mu, S, v, work)",
                                                     "(dot(v, direction) - %.17g) / %.17g" % (mean @ one, math.sqrt(one @ S @ one))),
                                                     C(st.t(3.5)))
    body("multi_student_t, distance", vector % ("", "multi_student_t(g, D, 3.5, mu, S, v, work)", "distance(v) / 4"), C(st.f(4, 3.5)))

    # Wishart: a'Wa / a'Sa ~ chi-square(df), a'S^-1 a / a'W^-1 a ~ chi-square(df - 3); the inverse the other way round
    matrix = "double W[D * D], V[D * D], work[3 * D * D], A[D * D]; %s if (%s) x = NAN; else { invert(W, V); x = %s; }"
    inverse = np.linalg.inv(S)
    # Bartlett's factor A: A A' is Wishart with scale I
    body("bartlett, a form", "double W[D * D], A[D * D]; bartlett(g, 7, D, A); lower_times_transpose(A, D, W); x = quadratic(W, direction) "
                             "/ dot(direction, direction);", C(st.chi2(7)))
    for name, df, before, draw in (("wishart", 7, "", "wishart(g, 7, S, D, W, work)"),
                                   ("wishart_df_inverse_scale", 4.5, "invert(S, A);", "wishart_df_inverse_scale(g, 4.5, A, D, W, work)"),
                                   ("wishart_natural", 5.5, "invert(S, V); scaled(V, -0.5, A);", "wishart_natural(g, 0.25, A, D, W, work)"),
                                   ("wishart_df_scale_cholesky", 20, factor, "(wishart_df_scale_cholesky(g, 20, L, D, W, work), 0)")):
        for w, a in (("direction", one), ("other", two)):
            body("%s, a form (%s)" % (name, w), matrix % (before, draw, "quadratic(W, %s) / %.17g" % (w, a @ S @ a)), C(st.chi2(df)))
        body(name + ", a form of its inverse", matrix % (before, draw, "%.17g / quadratic(V, direction)" % (one @ inverse @ one)),
             C(st.chi2(df - 3)))
    for name, df, before, draw in (("inv_wishart", 9, "", "inv_wishart(g, 9, S, D, W, work)"),
                                   ("inv_wishart_natural", 8.5, "scaled(S, -0.5, A);", "inv_wishart_natural(g, -6.75, A, D, W, work)")):
        body(name + ", a form of its inverse", matrix % (before, draw, "quadratic(V, direction) / %.17g" % (one @ inverse @ one)),
             C(st.chi2(df)))
        body(name + ", a form", matrix % (before, draw, "%.17g / quadratic(W, direction)" % (one @ S @ one)), C(st.chi2(df - 3)))

    # points of the simplex: elements and sums of them are beta
    simplex = "double p[3]; %s x = fabs(p[0] + p[1] + p[2] - 1) > 4e-16 ? NAN : %s;"
    body("dirichlet, an element", simplex % ("dirichlet(g, alpha3, 3, p);", "p[1]"), C(st.beta(0.5, 6)))
    body("dirichlet, a sum", simplex % ("dirichlet(g, alpha3, 3, p);", "p[0] + p[1]"), C(st.beta(2.5, 4)))
    body("dirichlet, a ratio", simplex % ("dirichlet(g, alpha3, 3, p);", "p[0] / (p[0] + p[2])"), C(st.beta(2, 4)))
    body("sample_dirichlet, an element", simplex % ("if (sample_dirichlet(g, alpha3, 3, p)) p[0] = NAN;", "p[1]"), C(st.beta(0.5, 6)))
    body("sample_dirichlet, a sum", simplex % ("if (sample_dirichlet(g, alpha3, 3, p)) p[0] = NAN;", "p[1] + p[2]"), C(st.beta(4.5, 2)))
    body("dirichlet_logs, an element by its logarithm",
         "double p[3], logs[3]; dirichlet_logs(g, alpha3, 3, p, logs); x = fabs(logs[1] - log(p[1])) > 1e-12 ? NAN : "
         "exp(logs[1]);", C(st.beta(0.5, 6)))
    body("dirichlet_natural, an element", simplex % ("dirichlet_natural(g, natural3, 3, p);", "p[0]"), C(st.beta(2, 4.5)))
    # correlation matrices: each correlation is 2 beta - 1
    for eta, i, j in ((0.5, 0, 1), (1, 1, 2), (4, 2, 3)):
        body("lkj_corr(%g), element %d %d" % (eta, i, j),
             "double R[D * D], work[D * D]; lkj_corr(g, %g, D, R, work); x = 0.5 * (1 + R[%d]);" % (eta, 4 * i + j),
             C(st.beta(eta + 1, eta + 1)))
    body("lkj_corr_cholesky(2)", "double R[D * D]; lkj_corr_cholesky(g, 2, D, R); x = 0.5 * (1 + R[D]);", C(st.beta(3, 3)))

    for i, j in ((1, 0), (3, 2)):
        body("sample_lkj_corr_cholesky(2), element %d %d" % (i, j),
             "double R[D * D], A[D * D]; const long failed = sample_lkj_corr_cholesky(g, 2, D, R); lower_times_transpose(R, D, A); "
             "x = failed ? NAN : 0.5 * (1 + A[%d]);" % (4 * i + j), C(st.beta(3, 3)))

    # slice: an exact draw, two updates; the law stays
    free = "slice_begin(&sl, g, x, -INFINITY, INFINITY, %g)"
    for width in (2, 0.05, 1000):
        step = "UPDATE(%s, -0.5 * sl.x * sl.x)" % free % width
        body("slice_begin: normal, width %g" % width, "x = normal_standard(g); %s %s" % (step, step), C(normal))
    step = "UPDATE(%s, two_modes(sl.x))" % free % 1.5
    body("slice_begin: two modes", "x = uniform_open(g) < 0.3 ? normal_mean_sd(g, -2, 1) : normal_mean_sd(g, 3, 0.5); %s %s" % (step, step),
         Tabulated(lambda x: np.log(0.3 * np.exp(-0.5 * (x + 2) ** 2) + 1.4 * np.exp(-2 * (x - 3) ** 2)), -9, 8, None,
                   (-math.inf, math.inf)))
    step = "UPDATE(slice_begin(&sl, g, x, 0.5, 1.2, 0.3), -0.5 * sl.x * sl.x)"
    body("slice_begin: normal on [0.5, 1.2]", "x = normal_truncated(g, 0, 1, 0.5, 1.2); %s %s" % (step, step), C(st.truncnorm(0.5, 1.2)))
    step = "UPDATE(slice_begin_log(&sl, g, x, 0, INFINITY, 2), -0.5 * log(sl.x) - sl.x)"
    body("slice_begin_log: gamma(0.5)", "x = gamma_shape_rate(g, 0.5, 1); %s %s" % (step, step), C(st.gamma(0.5)))
    step = "UPDATE(slice_begin_log(&sl, g, x, 2, INFINITY, 0.5), 2 * log(sl.x) - sl.x)"
    body("slice_begin_log: gamma(3) above 2", "x = gamma_shape_rate_truncated(g, 3, 1, 2, INFINITY); %s %s" % (step, step),
         W(st.gamma(3), 2, math.inf))
    # where logarithms are kept, they belong to the value
    step = "KEPT(slice_begin_log_kept(&sl, g, x, log(x), 0, INFINITY, 2), -0.5 * log(sl.x) - sl.x)"
    body("slice_begin_log_kept: gamma(0.5)", "x = gamma_shape_rate(g, 0.5, 1); %s %s" % (step, step), C(st.gamma(0.5)))
    step = "KEPT(slice_begin_logit_kept(&sl, g, x, log(x), log1p(-x), 0, 1, 2), 2 * log1p(-sl.x))"
    body("slice_begin_logit_kept: beta(1, 3)", "x = beta_a_b(g, 1, 3); %s %s" % (step, step), C(st.beta(1, 3)))

    # Metropolis: the same, with two updates
    for width in (2.4, 0.3):
        step = "STEP(metropolis_begin(&m, g, x, -INFINITY, INFINITY, %g), -0.5 * m.x * m.x)" % width
        body("metropolis_begin: normal, width %g" % width, "x = normal_standard(g); %s %s" % (step, step), C(normal))
    step = "STEP(metropolis_begin(&m, g, x, 0.5, 1.2, 0.3), -0.5 * m.x * m.x)"
    body("metropolis_begin: normal on [0.5, 1.2]", "x = normal_truncated(g, 0, 1, 0.5, 1.2); %s %s" % (step, step),
         C(st.truncnorm(0.5, 1.2)))
    step = "STEP(metropolis_begin_log(&m, g, x, 0, INFINITY, 1.5), -0.5 * log(m.x) - m.x)"
    body("metropolis_begin_log: gamma(0.5)", "x = gamma_shape_rate(g, 0.5, 1); %s %s" % (step, step), C(st.gamma(0.5)))

    # what joint normal draws use
    body("gm_noise, element 3", "x = gm_noise(g, 3);", C(normal))
    body("gm_scale_drawn(7, 2)", "x = gm_scale_drawn(g, 7, 2); x = x * x;", C(st.gamma(3.5, scale=1)))

    # One parameter 1 % off: each must fail.
    def wrong(text, law):
        call(text, law)
        found[-1] = ("WRONG " + found[-1][0],) + found[-1][1:]
    wrong("normal_mean_sd(g, 0, 1.01)", C(normal))
    wrong("normal_natural_truncated(g, 1.01, -0.5, 0, INFINITY)", C(st.truncnorm(-1, math.inf, 1, 1)))
    wrong("gamma_shape_rate(g, 3.03, 1)", C(st.gamma(3)))
    wrong("poisson(g, 35.35)", N(st.poisson(35)))
    wrong("polya_gamma(g, 1, 2.02)", Polya(1, 2))
    wrong("beta_a_b(g, 2.02, 3)", C(st.beta(2, 3)))
    return found


def c_number(x):
    return "%sINFINITY" % ("-" if x < 0 else "") if math.isinf(x) else "%g" % x


def mirrored(law):
    return Transformed(law, lambda t: -t, -law.hi, -law.lo, True)


def gig(p, a, b, f=None, whole=True):
    """exp(-(a x + b / x) / 2) x^(p - 1) in t = log x, where it exceeds e^-50 of its top."""
    import numpy as np

    def g(t):
        return p * t - 0.5 * a * np.exp(t) - 0.5 * b * np.exp(-t)
    root = math.hypot(p, math.sqrt(a * b))
    mode = math.log((p + root) / a) if p >= 0 else math.log(b / (root - p))
    left, right, step = mode, mode, 0.01 / (1 + 0.01 * math.sqrt(a * b))
    while g(left) > g(mode) - 50:
        left -= step
    while g(right) > g(mode) - 50:
        right += step
    return Tabulated(g, left, right, np.exp if whole else None, (0, math.inf) if whole else (-math.inf, math.inf))


def asymmetric_laplace(mu, sigma, q):
    import numpy as np

    def cdf(x):
        return np.where(x < mu, q * np.exp(np.minimum(x - mu, 0) * (1 - q) / sigma),
                        1 - (1 - q) * np.exp(-np.maximum(x - mu, 0) * q / sigma))

    def sf(x):
        return np.where(x < mu, 1 - q * np.exp(np.minimum(x - mu, 0) * (1 - q) / sigma),
                        (1 - q) * np.exp(-np.maximum(x - mu, 0) * q / sigma))
    return Known(cdf, sf, -math.inf, math.inf, mu - 60 * sigma, mu + 60 * sigma * 4)


def without_a_case(found):
    """Functions of the device headers that take a Stream and stand neither in a case nor in PARTS."""
    text = "\n".join(c[1] for c in found)
    names = set()
    for path in sorted(glob.glob(os.path.join(DEVICE, "*.h"))):
        if path.endswith("_cpu.h"):
            continue
        with open(path) as f:
            names |= set(re.findall(r"^(?:DEVICE\w*|static[\w ]*)[^(\n;=]*?\b(\w+)\((?:[^)]*, )?(?:const )?Stream \*?\w*[,)]", f.read(),
                                    re.M))
    return sorted(n for n in names if n not in PARTS and not re.search(r"\b%s\(" % n, text))


# ---- build ----

def source(part):
    runtime = any("gm_" in text or "normal_draw" in text for _, _, text in part)
    return ('#include "gm.h"\ntypedef struct Data { long n; } Data;\ntypedef struct State { wide *x; } State;\n#include "kernels.h"\n'
            + ('#define GM_JOINT_NORMALS\n#define GM_WEIGHTED_GRAMS\n#include "runtime_cuda.h"\n' if runtime else "")
            + PRELUDE + PLACE + "".join(KERNEL % {"k": k, "body": text} for k, _, text in part))


def build(folder, arch=None):
    from scipy import stats
    nvrtc = toolkit.nvrtc()
    if nvrtc is None:
        print("laws: skipped: NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
        return 0
    arch = arch or "sm_%d" % Driver().capability
    found = cases()
    missing = without_a_case(found)
    if missing:
        print("FAIL laws: samplers without a case: " + " ".join(missing))
        return 1
    os.makedirs(folder, exist_ok=True)
    table, groups = [], []
    for k, (name, text, law, single) in enumerate(found):
        tables = {}
        # Numbers of single precision lie 6e-8 apart: cells 1000 times as wide hold what they should to 0.1 %.
        for precision, spacing in (("double", 0), ("single", 5e-5)):
            border, p = tidy(*law.cells(), law.lo, law.hi, spacing)
            if len(border) > MOST_CELLS - 1 or abs(sum(p) - 1) > 1e-9 or min(p) < 2e-6 or any(b <= a for a, b in zip(border, border[1:])):
                print("FAIL laws: %s: its table is not one of probabilities" % name)
                return 1
            tables[precision] = {"border": [float(b) for b in border], "p": [float(q) for q in p],
                                 "bound": float(stats.chi2.isf(FALSE_ALARM, len(p) - 1))}
        table.append({"name": name, "lo": float(law.lo), "hi": float(law.hi), **tables})
    for precision in ("double", "single"):
        chosen = [(k, name, text) for k, (name, text, _, single) in enumerate(found) if precision == "double" or single]
        # The slow ones of one header to different programs: they are compiled in parallel, and read each other's time.
        count = (len(chosen) + GROUP - 1) // GROUP
        groups += [(precision, g, chosen[g::count]) for g in range(count)]

    def one(group):
        precision, g, part = group
        options = ["--gpu-architecture=" + arch, "--std=c++17", "--disable-warnings", "-I" + DEVICE]
        options += ["-DGM_PRECISION=float", "-DGM_SOLVE_PRECISION=float"] if precision == "single" else []
        file = "laws_%s_%d.cubin" % (precision, g)
        status, log, code = toolkit.compile_text(nvrtc, source(part), "laws_%s_%d.cu" % (precision, g), options, code=True)
        if status != 0:
            raise RuntimeError(log)
        with open(os.path.join(folder, file), "wb") as f:
            f.write(code)
        return {"file": file, "precision": precision, "cases": [k for k, _, _ in part]}

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        images = list(pool.map(one, groups))
    with open(os.path.join(folder, "laws.json"), "w") as f:
        json.dump({"cases": table, "images": images}, f)
    print("laws: %d cases in double, %d in single precision, for %s" % (len(found), sum(c[3] for c in found), arch))
    return 0


# ---- run ----

class Driver:
    """As much of the CUDA driver as launching needs."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            self.refuse("the NVIDIA driver is not installed")
        device, number = ctypes.c_int(), ctypes.c_int()
        if self.cuda.cuInit(0) != 0 or self.cuda.cuDeviceGet(ctypes.byref(device), 0) != 0:
            self.refuse("there is no NVIDIA GPU")
        parts = []
        for attribute in (75, 76):
            self.call("cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
            parts.append(number.value)
        self.capability = 10 * parts[0] + parts[1]
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    @staticmethod
    def refuse(why):
        print("laws: it cannot run here: " + why)
        sys.exit(3)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError("%s: %s" % (name, text.value.decode() if text.value else status))

    def upload(self, array):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(ctypes.sizeof(array)))
        self.call("cuMemcpyHtoD_v2", at, array, ctypes.c_size_t(ctypes.sizeof(array)))
        return at

    def module(self, path):
        with open(path, "rb") as f:
            code = f.read()
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        return module


def run(folder, draws=DRAWS):
    if not os.path.exists(os.path.join(folder, "laws.json")):
        print("laws: skipped: they were not built")
        return 0
    with open(os.path.join(folder, "laws.json")) as f:
        built = json.load(f)
    driver, passed, failed, worst = Driver(), 0, 0, (0, "")
    for image in built["images"]:
        module = driver.module(os.path.join(folder, image["file"]))
        for k in image["cases"]:
            case = {**built["cases"][k], **built["cases"][k][image["precision"]]}
            kernel = ctypes.c_void_p()
            driver.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"case_%d" % k)
            border = driver.upload((ctypes.c_double * max(1, len(case["border"])))(*case["border"]))
            count = (ctypes.c_uint64 * (MOST_CELLS + 2))()
            counts = driver.upload(count)
            slack = 2e-7 if image["precision"] == "single" else 4e-16         # rounding of the ends themselves
            lo, hi = (case[e] if math.isinf(case[e]) else case[e] + sign * slack * abs(case[e]) for e, sign in (("lo", -1), ("hi", 1)))
            values = [ctypes.c_long(draws), ctypes.c_uint(1), border, ctypes.c_int(len(case["border"])), ctypes.c_double(lo),
                      ctypes.c_double(hi), counts]
            arguments = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
            driver.call("cuLaunchKernel", kernel, max(1, min(2048, draws // 256)), 1, 1, 256, 1, 1, 0, None, arguments, None)
            driver.call("cuCtxSynchronize")
            driver.call("cuMemcpyDtoH_v2", count, counts, ctypes.c_size_t(ctypes.sizeof(count)))
            driver.call("cuMemFree_v2", border)
            driver.call("cuMemFree_v2", counts)
            good, text, share = judge(case, list(count), draws)
            passed += good
            failed += not good
            worst = max(worst, (share, case["name"]))
            if not good or case["name"].startswith("WRONG"):
                print("%s law of %s, %s precision: %s" % ("ok  " if good else "FAIL", case["name"], image["precision"], text))
        driver.call("cuModuleUnload", module)
    if draws >= 100_000:
        print("ok   laws: the largest chi-square is %.2f of its bound (%s)" % worst)
    print("laws: %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


def judge(case, count, draws):
    """(good, what was seen, chi-square over its bound)."""
    outside, nan = count[MOST_CELLS], count[MOST_CELLS + 1]
    if outside or nan or sum(count) != draws:
        return False, "%d outside the support, %d NaN, of %d" % (outside, nan, sum(count)), 0
    if draws < 100_000:
        return True, "", 0
    chi2 = sum((c - draws * p) ** 2 / (draws * p) for c, p in zip(count, case["p"]))
    text = "chi-square %.4g of %d cells, bound %.4g" % (chi2, len(case["p"]), case["bound"])
    if case["name"].startswith("WRONG"):
        return chi2 > case["bound"], "is seen: " + text, 0
    return chi2 <= case["bound"], text, chi2 / case["bound"]


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) > 2:
        sys.exit(build(*sys.argv[2:4]))
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
        sys.exit(run(sys.argv[2], *[int(n) for n in sys.argv[3:4]]))
    elif sys.argv[1:2] == ["list"]:
        found = cases()
        print("\n".join(c[0] for c in found))
        print("without a case: " + (" ".join(without_a_case(found)) or "none"))
    else:
        print(__doc__)
        sys.exit(2)


if __name__ == "__main__":
    main()
