// truncated.h -- the normal distribution on an interval.
//
//   density     exp(-((x - mu) / sd)^2 / 2) on [lo, hi], either end may be infinite; natural: exp(h x + q x^2) on [lo, hi], q <= 0
//   parameters  mu real, sd > 0, lo <= hi (lo == hi gives lo); natural: q = 0 gives the truncated exponential or uniform
//   method      Everything reduces to t = (x - end) / sd in [0, w], measured from the end nearer to the mean, with density
//               exp(-a t - t^2 / 2). That form has no cancellation however far or narrow the interval is.
//               - a <= 0.3 and w >= 1: inversion in the upper tail; where most normals fall inside, one is tried first. Mixing "kept if
//                 inside" with an exact draw otherwise is exact.
//               - a <= 0 and w < 1: rejection from the uniform, accepts > 0.85.
//               - otherwise rejection from an exponential, after Robert 1995, Simulation of truncated normal variables: rate
//                 (a + sqrt(a^2 + 4)) / 2 if the optimum lies inside the interval, rate a if not. Accepts > 0.80.
//               Probit spends its time on w infinite: one Philox block nearly always, about 30 ns a draw on one core, for any a.
//   accuracy    rounding; no draw lies outside [lo, hi]; ends at 40 sd and beyond, widths of 1e-6 sd and below are exact
//   test        tests/runtime/truncated.c
#ifndef GM_TRUNCATED_H
#define GM_TRUNCATED_H

#include "rng.h"
#include "normal.h"
#include "exponential.h"

// t in [0, w] with density proportional to exp(-a t - t^2 / 2): the distance of a standard normal beyond a, given that it is
// between a and a + w. Needs a >= -w / 2 (the mean is not beyond the middle), w > 0, w may be infinite.
DEVICE double normal_offset(Stream *g, double a, double w)
{
    if (a <= 0.3 && w >= 1) {
        const double b = a + w;
        double u = uniform_open(g);
        if (a < -0.6) {                                  // most normals fall inside: see whether this one does
            const double z = inv_Phi(u);
            if (z >= a && z <= b) return z - a;
            u = uniform_open(g);
        }
        const double above = b > 38 ? 0 : Phi(-b);       // beyond the interval
        return clamp(-inv_Phi(above + u * (Phi(-a) - above)) - a, 0, w);
    }
    if (a <= 0) {                                        // narrow, and the mean inside: nearly uniform
        for (;;) {
            const double t = w * uniform_open(g), z = a + t;
            if (uniform_open(g) <= exp(-0.5 * z * z)) return t;
        }
    }
    double gap = 2 / (a + (a < 1e150 ? sqrt(a * a + 4) : a));   // Robert's rate, less a
    if (gap > w) gap = 0;
    for (;;) {
        const double t = exponential_offset(uniform_open(g), a + gap, w);
        const double e = 0.5 * (t - gap) * (t - gap), u = uniform_open(g);
        if (u <= 1 - e || u <= exp(-e)) return t;        // the first test decides most cases without exp
    }
}

// Density proportional to exp(h x + q x^2) on [lo, hi]. NaN if q > 0, if lo > hi, or if the density has no finite integral.
DEVICE double normal_natural_truncated(Stream *g, double h, double q, double lo, double hi)
{
    if (lo == hi) return lo;
    if (q == 0) return exponential_natural_truncated(g, h, lo, hi);
    if (!(q < 0) || !(lo < hi)) return NAN;
    const double root = sqrt(-2 * q), sd = 1 / root;
    const double w = (hi - lo) * root;
    const double a = -(h + 2 * q * lo) * sd, b = (h + 2 * q * hi) * sd;   // end minus mean, outwards, in sd; b from the other side
    if (!(lo > -INFINITY) && !(hi < INFINITY)) return normal_natural(g, h, q);
    if (lo > -INFINITY && (a >= b || !(hi < INFINITY))) return clamp(lo + sd * normal_offset(g, a, w), lo, hi);
    return clamp(hi - sd * normal_offset(g, b, w), lo, hi);
}

DEVICE double normal_truncated(Stream *g, double mu, double sd, double lo, double hi)
{
    if (lo == hi) return lo;
    if (!(lo < hi) || !(sd >= 0)) return NAN;
    if (sd == 0) return clamp(mu, lo, hi);
    const int has_lo = lo > -INFINITY, has_hi = hi < INFINITY;
    if (!has_lo && !has_hi) return normal_mean_sd(g, mu, sd);
    const double a = (lo - mu) / sd, b = (mu - hi) / sd;
    const double w = (hi - lo) / sd;
    if (has_lo && (a >= b || !has_hi)) return clamp(lo + sd * normal_offset(g, a, w), lo, hi);
    return clamp(hi - sd * normal_offset(g, b, w), lo, hi);
}

#endif
