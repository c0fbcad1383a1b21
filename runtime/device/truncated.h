// truncated.h -- the normal distribution on an interval.
//
//   density     exp(-((x - mu) / sd)^2 / 2) on [lo, hi], either end may be infinite; natural: exp(h x + q x^2) on [lo, hi]
//   parameters  mu real, sd > 0, lo <= hi (lo == hi gives lo); natural: q = 0 gives the truncated exponential or uniform, q > 0 is
//               interval.h
//   method      Everything reduces to t = (x - end) / sd in [0, w], measured from the end nearer to the mean, with density
//               exp(-a t - t^2 / 2). That form has no cancellation however far or narrow the interval is.
//               - a <= 1.75, unless narrow: rejection from the cells of the normal (rng.h) that meet the interval, after Chopin 2011,
//                 Fast simulation of truncated Gaussian distributions. Accepts > 0.95 for a <= 1 and w infinite, 0.88 at 1.75;
//                 > 0.74 on any interval.
//               - a > 1.75: rejection from an exponential, after Robert 1995, Simulation of truncated normal variables: rate
//                 (a + sqrt(a^2 + 4)) / 2 if the optimum lies inside the interval, rate a if not. Accepts > 0.80.
//               - narrow, fewer than 16 of the 512 cells: for a <= 0 rejection from the uniform, accepts > 0.99; else from the exponential.
//               Probit spends its time on w infinite: one Philox block nearly always, and for a <= 1.75 no function of the library. For
//               a <= 1, 1.6 to 6 % of the draws leave the usual path. About 20 ns a draw on one core, 30 in the tail.
//   accuracy    rounding; no draw lies outside [lo, hi]; ends at 40 sd and beyond, widths of 1e-6 sd and below are exact
//   test        tests/runtime/truncated.c
#ifndef GM_TRUNCATED_H
#define GM_TRUNCATED_H

#include "rng.h"
#include "normal.h"
#include "exponential.h"
#include "interval.h"

#define GM_FAR 1.75  // in sd: farther out cells are too few

// A number <= that of the cell that contains a, by at most 2. The polynomial counts the cells between 0 and a to +-0.6.
DEVICE_USUAL int normal_cell_below(double a)
{
    const double x = a > -GM_CELL_TAIL ? a < GM_CELL_TAIL ? a : GM_CELL_TAIL : -GM_CELL_TAIL, s = x * x;
    return (int)(x * (200.753 + s * (-29.804 + s * (2.9982 - s * 0.12524))) + (GM_CELLS / 2 - 1));
}

// normal_offset where cells do not serve. NaN if a is.
DEVICE_UNUSUAL double normal_offset_narrow(Stream *g, double a, double w)
{
    if (a != a) return a;
    if (a <= 0) {  // the mean inside: nearly uniform
        for (;;) {
            const double t = w * uniform_open(g), z = a + t;
            if (uniform_open(g) <= exp(-0.5 * z * z)) return t;
        }
    }
    double gap = 2 / (a + (a < 1e150 ? sqrt(a * a + 4) : a));  // Robert's rate, less a
    if (gap > w) gap = 0;
    for (;;) {
        const double t = exponential_offset(uniform_open(g), a + gap, w);
        const double e = 0.5 * (t - gap) * (t - gap), u = uniform_open(g);
        if (u <= 1 - e || u <= exp(-e)) return t;  // the first test decides most cases without exp
    }
}

// t in [0, w] with density proportional to exp(-a t - t^2 / 2): the distance of a standard normal beyond a, given that it is
// between a and a + w. Needs a >= -w / 2 (the mean is not beyond the middle), w > 0, w may be infinite.
DEVICE_USUAL double normal_offset(Stream *g, double a, double w)
{
    const double b = a + w;
    const int first = normal_cell_below(a);
    const int count = GM_CELLS - normal_cell_below(-b) - first;  // up to a cell not below that of b, by symmetry
    const uint64_t bits = random_bits(g);
    if (a <= GM_FAR && count >= 16) return normal_cells(g, bits, first, count, a, b) - a;
    if (a > GM_FAR && !(w < INFINITY)) return normal_beyond(g, bits, a);
    Stream rest = *g;
    const double t = normal_offset_narrow(&rest, a, w);
    *g = rest;
    return t;
}

// exp(h x + q x^2) on [lo, hi] with q > 0, measured from the lower end.
DEVICE_CALL double normal_upside_down(Stream *g, double h, double q, double lo, double hi)
{
    Hull hull;
    hull.normal = 1;
    hull.A = h + 2 * q * lo;
    hull.c[0] = q;
    hull.c[1] = 0;
    return clamp(lo + interval_draw(g, &hull, 0, hi - lo), lo, hi);
}

// Density proportional to exp(h x + q x^2) on [lo, hi]. NaN if lo > hi or if the density has no finite integral.
DEVICE_USUAL double normal_natural_truncated(Stream *g, double h, double q, double lo, double hi)
{
    if (!(lo < hi) || !(q < 0)) {
        if (lo == hi) return lo;
        if (q == 0) return exponential_natural_truncated(g, h, lo, hi);
        return q > 0 && lo < hi ? normal_upside_down(g, h, q, lo, hi) : NAN;
    }
    const double root = sqrt(-2 * q), sd = 1 / root;
    // end minus mean, outwards, in sd; b from the other side
    const double a = -(h + 2 * q * lo) * sd, b = (h + 2 * q * hi) * sd;
    const double ends[2] = {hi, lo}, beyond[2] = {b, a};
    const int lower = a >= b;                                                // an index, not a branch: rows of data switch sides at random
    if (beyond[lower] < -38) return clamp(normal_natural(g, h, q), lo, hi);  // no draw gets as far as the ends
    const double t = sd * normal_offset(g, beyond[lower], (hi - lo) * root);
    return clamp(ends[lower] + (2 * lower - 1) * t, lo, hi);
}

// The same by h and the precision, -2 q, which may be 0 or less.
#define NORMAL_WITHIN(h, precision, lo, hi)                     normal_within, h, precision, lo, hi
#define normal_within_ratio_terms(x, old, h, precision, lo, hi) (h) * ((x) - (old)), -0.5 * (precision) * (((x) - (old)) * ((x) + (old)))
#define normal_within_drawn(g, h, precision, lo, hi)            normal_natural_truncated(g, h, -(precision) / 2, lo, hi)

DEVICE double normal_truncated(Stream *g, double mu, double sd, double lo, double hi)
{
    if (lo == hi) return lo;
    if (!(lo < hi) || !(sd >= 0)) return NAN;
    if (sd == 0) return clamp(mu, lo, hi);
    const double a = (lo - mu) / sd, b = (mu - hi) / sd;
    const int lower = a >= b;
    if ((lower ? a : b) < -38) return clamp(normal_mean_sd(g, mu, sd), lo, hi);
    const double t = sd * normal_offset(g, lower ? a : b, (hi - lo) / sd);
    return clamp(lower ? lo + t : hi - t, lo, hi);
}

#endif
