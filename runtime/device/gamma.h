// gamma.h -- the gamma distribution, its inverse, its powers, and all of them on intervals.
//
//   density     rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape), x > 0
//               natural, with exponent k != 0: x^a exp(b x^k), where x^k ~ gamma((a + 1) / k, -b). k = 1 the gamma, k = -1 the inverse
//               gamma, k = -2 the sd whose variance is inverse gamma, k = 2 the root of a gamma
//   parameters  shape, rate, scale > 0; b < 0 and (a + 1) / k > 0 (on an interval that cuts off the divergent end: any a, b <= 0)
//   method      Marsaglia and Tsang 2000, shapes below 1 by their power of a uniform, in logs; intervals: log_concave.h
//   accuracy    rounding; draws stay within [2.2e-308, 1.8e308], also for shapes of 1e-5 where most of the mass lies below; the stream
//               keeps the logarithm of the last draw by natural parameters, which is exact there
//   test        tests/runtime/continuous.c, tests/runtime/truncated.c
#ifndef GM_GAMMA_H
#define GM_GAMMA_H

#include "rng.h"
#include "log_concave.h"

// Gamma with rate 1, shape >= 1.
DEVICE_CALL double gamma_standard_large(Stream *g, double shape)
{
    const double d = shape - 1.0 / 3, c = 1 / (3 * sqrt(d));
    for (;;) {
        const double z = normal_standard(g), t = 1 + c * z;
        if (!(t > 0)) continue;
        const double v = t * t * t, u = uniform_open(g), zz = z * z;
        if (u < 1 - 0.0331 * zz * zz) return d * v;
        // d (1 - v + log v) = -d (3 (cz - log1p(cz)) + 3 (cz)^2 + (cz)^3), written so that it keeps its digits for large d
        const double e = c * z;
        if (log(u) < 0.5 * zz - d * (3 * x_minus_log1p(e) + e * e * (3 + e))) return d * v;
    }
}

// log of a gamma draw with rate 1, any shape > 0: the draw itself would underflow for tiny shapes.
DEVICE_CALL double log_gamma_standard(Stream *g, double shape)
{
    if (!(shape > 0) || !is_finite(shape)) return NAN;
    if (shape >= 1) return log(gamma_standard_large(g, shape));
    const double x = log(gamma_standard_large(g, shape + 1));
    return x - exponential_standard(g) / shape;
}

DEVICE_CALL double gamma_shape_rate(Stream *g, double shape, double rate)
{
    if (!(shape > 0) || !is_finite(shape) || !(rate > 0)) return NAN;
    if (shape >= 1) return clamp(gamma_standard_large(g, shape) / rate, GM_TINY, GM_HUGE);
    return clamp(exp(log_gamma_standard(g, shape) - log(rate)), GM_TINY, GM_HUGE);
}

DEVICE_CALL double inv_gamma_shape_scale(Stream *g, double shape, double scale)
{
    return clamp(exp(log(scale) - log_gamma_standard(g, shape)), GM_TINY, GM_HUGE);
}

// The root of an inverse gamma draw: an sd.
DEVICE_CALL double root_inv_gamma(Stream *g, double shape, double scale)
{
    return clamp(exp(0.5 * (log(scale) - log_gamma_standard(g, shape))), GM_TINY, GM_HUGE);
}

DEVICE_CALL double chi_square(Stream *g, double nu) { return gamma_shape_rate(g, 0.5 * nu, 0.5); }
DEVICE_CALL double inv_chi_square(Stream *g, double nu) { return inv_gamma_shape_scale(g, 0.5 * nu, 0.5); }
DEVICE_CALL double scaled_inv_chi_square(Stream *g, double nu, double s) { return inv_gamma_shape_scale(g, 0.5 * nu, 0.5 * nu * s * s); }

// x^a exp(b x^k) on x > 0. NaN unless b < 0 and (a + 1) / k > 0.
DEVICE_CALL double power_gamma_natural(Stream *g, double k, double a, double b)
{
    if (!(b < 0)) return NAN;
    g->log_value = (log_gamma_standard(g, (a + 1) / k) - log(-b)) / k;
    return clamp(exp(g->log_value), GM_LEAST, GM_MOST);
}

// x^k ~ gamma(shape, rate).
#define POWER_GAMMA(k, shape, rate)                     power_gamma, k, shape, rate
#define power_gamma_ratio_terms(x, old, k, shape, rate) ((k) * (shape)-1) * (log(x) - log(old)), -(rate) * (pow(x, k) - pow(old, k))
DEVICE_CALL double power_gamma_drawn(Stream *g, double k, double shape, double rate)
{
    if (!(rate > 0)) return NAN;
    g->log_value = (log_gamma_standard(g, shape) - log(rate)) / k;
    return clamp(exp(g->log_value), GM_LEAST, GM_MOST);
}

// x^p exp(a x^k + b x^-k) on [lo, hi], 0 <= lo <= hi <= inf, a, b <= 0, k != 0: the most general of the family.
DEVICE_CALL double power_gig_natural_truncated(Stream *g, double k, double p, double a, double b, double lo, double hi)
{
    if (lo < 0) lo = 0;
    if (lo == hi) return lo;
    if (!(lo < hi)) return NAN;
    if (k < 0) {
        const double swap = a;
        a = b;
        b = swap;
        k = -k;
    }
    // v = x^k has density v^((p + 1) / k - 1) exp(a v + b / v). A narrow interval is measured from its lower end in units where
    // that end is 1: log hi - log lo would lose what hi - lo still has.
    if (lo > 0 && hi < 2 * lo) {
        const double unit = exp(k * log(lo));
        const double top = k * log1p((hi - lo) / lo);
        return clamp(lo * exp(log_power_draw(g, (p + 1) / k, -a * unit, -b / unit, 0, top) / k), lo, hi);
    }
    const double log_lo = lo > 0 ? k * log(lo) : -INFINITY, log_hi = hi < INFINITY ? k * log(hi) : INFINITY;
    const double x = exp(log_power_draw(g, (p + 1) / k, -a, -b, log_lo, log_hi) / k);
    // a density asks powers of their ratio to a scale
    const double least = k == 1 || hi < GM_LEAST ? GM_TINY : GM_LEAST, most = k == 1 || lo > GM_MOST ? GM_HUGE : GM_MOST;
    return clamp(x, lo > least ? lo : least, hi < most ? hi : most);
}

// x^a exp(b x^k) on [lo, hi].
DEVICE_CALL double power_gamma_natural_truncated(Stream *g, double k, double a, double b, double lo, double hi)
{
    return power_gig_natural_truncated(g, k, a, b, 0, lo, hi);
}

// x^k ~ gamma(shape, rate), on [lo, hi].
#define POWER_GAMMA_WITHIN(k, shape, rate, lo, hi)                     power_gamma_within, k, shape, rate, lo, hi
#define power_gamma_within_ratio_terms(x, old, k, shape, rate, lo, hi) power_gamma_ratio_terms(x, old, k, shape, rate)
DEVICE_CALL double power_gamma_within_drawn(Stream *g, double k, double shape, double rate, double lo, double hi)
{
    return power_gamma_natural_truncated(g, k, k * shape - 1, -rate, lo, hi);
}

// x^a on [lo, hi]: a < -1 if hi is infinite (the Pareto), a > -1 if lo is 0.
DEVICE_CALL double power_natural_truncated(Stream *g, double a, double lo, double hi)
{
    return power_gig_natural_truncated(g, 1, a, 0, 0, lo, hi);
}

DEVICE_CALL double gamma_shape_rate_truncated(Stream *g, double shape, double rate, double lo, double hi)
{
    return power_gig_natural_truncated(g, 1, shape - 1, -rate, 0, lo, hi);
}

DEVICE_CALL double inv_gamma_shape_scale_truncated(Stream *g, double shape, double scale, double lo, double hi)
{
    return power_gig_natural_truncated(g, 1, -shape - 1, 0, -scale, lo, hi);
}

#endif
