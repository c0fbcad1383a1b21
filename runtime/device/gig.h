// gig.h -- the generalised inverse Gaussian distribution and its powers.
//
//   density     x^(p - 1) exp(-(a x + b / x) / 2), x > 0; natural, with exponent k != 0: x^p exp(a x^k + b x^-k), a, b <= 0
//   parameters  p real; a, b >= 0, where b = 0 needs p > 0 (the gamma) and a = 0 needs p < 0 (the inverse gamma)
//   method      p = 1/2 and -1/2: inverse Gaussian; otherwise log_concave.h, that is Devroye 2014 with tangents in place of his
//               fixed ends. Acceptance about 0.8 for all p, a, b.
//   accuracy    rounding; draws stay within [2.2e-308, 1.8e308]
//   test        tests/runtime/continuous.c, tests/runtime/truncated.c
#ifndef GM_GIG_H
#define GM_GIG_H

#include "gamma.h"
#include "inverse_gaussian.h"

DEVICE_CALL double gig_p_a_b(Stream *g, double p, double a, double b)
{
    if (!(a >= 0) || !(b >= 0) || !is_finite(p)) return NAN;
    if (b == 0) return gamma_shape_rate(g, p, 0.5 * a);
    if (a == 0) return inv_gamma_shape_scale(g, -p, 0.5 * b);
    if (p == -0.5) return inverse_gaussian_mean_shape(g, sqrt(b) / sqrt(a), b);
    if (p == 0.5) return clamp(1 / inverse_gaussian_mean_shape(g, sqrt(a) / sqrt(b), a), GM_TINY, GM_HUGE);
    return clamp(exp(log_power_draw(g, p, 0.5 * a, 0.5 * b, -INFINITY, INFINITY)), GM_TINY, GM_HUGE);
}

// x^p exp(a x^k + b x^-k): with v = x^k, v ~ gig((p + 1) / k, -2 a, -2 b).
DEVICE_CALL double power_gig_natural(Stream *g, double k, double p, double a, double b)
{
    const double v = k == 1 ? gig_p_a_b(g, p + 1, -2 * a, -2 * b) : k == -1 ? gig_p_a_b(g, p + 1, -2 * b, -2 * a) : 0;
    if (v != 0) return v;  // NaN included
    if (b == 0 && a < 0) return power_gamma_natural(g, k, p, a);
    if (a == 0 && b < 0) return power_gamma_natural(g, -k, p, b);
    return power_gig_natural_truncated(g, k, p, a, b, 0, INFINITY);
}

// x^k ~ gig(order, psi, chi), on [lo, hi] too.
#define POWER_GIG(k, order, psi, chi)                power_gig, k, order, psi, chi
#define POWER_GIG_WITHIN(k, order, psi, chi, lo, hi) power_gig_within, k, order, psi, chi, lo, hi
#define power_gig_ratio_terms(x, old, k, order, psi, chi) \
    ((k) * (order)-1) * (log(x) - log(old)), -0.5 * (psi) * (pow(x, k) - pow(old, k)), -0.5 * (chi) * (pow(x, -(k)) - pow(old, -(k)))
#define power_gig_within_ratio_terms(x, old, k, order, psi, chi, lo, hi) power_gig_ratio_terms(x, old, k, order, psi, chi)
DEVICE_CALL double power_gig_drawn(Stream *g, double k, double order, double psi, double chi)
{
    return power_gig_natural(g, k, k * order - 1, -0.5 * psi, -0.5 * chi);
}
DEVICE_CALL double power_gig_within_drawn(Stream *g, double k, double order, double psi, double chi, double lo, double hi)
{
    return power_gig_natural_truncated(g, k, k * order - 1, -0.5 * psi, -0.5 * chi, lo, hi);
}

#endif
