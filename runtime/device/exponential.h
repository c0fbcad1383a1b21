// exponential.h -- the exponential distribution, whole and on an interval, and the uniform as its limit.
//
//   density     rate exp(-rate x), x > 0; natural: exp(h x) on [lo, hi], h of any sign
//   parameters  rate > 0; lo <= hi, the end towards which the density grows (either end if h = 0) must be finite
//   method      inversion, one uniform a draw; expm1 and log1p keep short intervals exact
//   accuracy    rounding
//   test        tests/runtime/continuous.c, tests/runtime/truncated.c
#ifndef GM_EXPONENTIAL_H
#define GM_EXPONENTIAL_H

#include "rng.h"

DEVICE double exponential_rate(Stream *g, double rate) { return clamp(exponential_standard(g) / rate, GM_TINY, GM_HUGE); }

// Uniform on [lo, hi]. A weighted mean, since hi - lo may overflow.
DEVICE double uniform_between(Stream *g, double lo, double hi)
{
    const double u = uniform_open(g);
    return clamp((1 - u) * lo + u * hi, lo, hi);
}

// t in [0, width] with density proportional to exp(-rate t); rate real, width > 0, infinite only if rate > 0.
DEVICE double exponential_offset(double u, double rate, double width)
{
    const double x = rate * width;
    if (fabs(x) < 1e-12) return u * width;  // to first order; the density varies by 1e-12
    if (x > 700) return clamp(-log(u) / rate, 0, width);
    if (x < 0) return clamp(width + log1p(u * expm1(x)) / -rate, 0, width);  // grows: measured from the right end
    return clamp(-log1p(u * expm1(-x)) / rate, 0, width);
}

// Density proportional to exp(h x) on [lo, hi]. NaN if that has no finite integral or lo > hi.
DEVICE double exponential_natural_truncated(Stream *g, double h, double lo, double hi)
{
    if (lo == hi) return lo;
    if (!(lo < hi)) return NAN;
    if (h == 0 && is_finite(lo) && is_finite(hi)) return uniform_between(g, lo, hi);
    const double u = uniform_open(g);
    if (h < 0 && is_finite(lo)) return clamp(lo + exponential_offset(u, -h, hi - lo), lo, hi);
    if (h > 0 && is_finite(hi)) return clamp(hi - exponential_offset(u, h, hi - lo), lo, hi);
    return NAN;
}

#endif
