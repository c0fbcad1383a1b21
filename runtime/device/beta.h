// beta.h -- the beta distribution, whole and on an interval.
//
//   density     x^(a - 1) (1 - x)^(b - 1) / B(a, b), 0 < x < 1; natural: x^a (1 - x)^b
//   parameters  a, b > 0 (natural: a, b > -1); an interval that cuts off an end lifts the condition on that end's parameter
//   method      two gamma draws in logs (Devroye 1986, chapter IX.4); intervals: log_concave.h in the coordinate logit x
//   accuracy    draws stay within [2.2e-308, 1 - 1.1e-16]. With a, b of 1e-5 nearly all the mass is at the two ends, in the right shares;
//               the stream keeps log x and log(1 - x) of the last draw, which are exact there
//   test        tests/runtime/continuous.c, tests/runtime/truncated.c
#ifndef GM_BETA_H
#define GM_BETA_H

#include "exponential.h"
#include "gamma.h"

DEVICE_CALL double beta_a_b(Stream *g, double a, double b)
{
    const double t = log_gamma_standard(g, a) - log_gamma_standard(g, b);
    g->log_value = log_inv_logit(t);
    g->log_rest = log1m_inv_logit(t);
    return clamp(inv_logit(t), GM_TINY, GM_BELOW_ONE);
}

#define BETA(shape1, shape2)                     beta, shape1, shape2
#define beta_drawn(g, shape1, shape2)            beta_a_b(g, shape1, shape2)
#define beta_ratio_terms(x, old, shape1, shape2) ((shape1)-1) * (log(x) - log(old)), ((shape2)-1) * (log1m(x) - log1m(old))
DEVICE_CALL double beta_natural(Stream *g, double a, double b) { return beta_a_b(g, a + 1, b + 1); }

// x^a (1 - x)^b on [lo, hi], within [0, 1].
DEVICE_CALL double beta_natural_truncated(Stream *g, double a, double b, double lo, double hi)
{
    if (lo < 0) lo = 0;
    if (hi > 1) hi = 1;
    if (lo == hi) return lo;
    if (!(lo < hi) || !is_finite(a) || !is_finite(b)) return NAN;
    LogConcave f;
    f.beta = 1;
    f.a = a + 1;
    f.b = b + 1;
    f.alpha = f.B = f.C = 0;
    if ((lo == 0 && f.a <= 0) || (hi == 1 && f.b <= 0)) return NAN;

    // The density over t = logit x is e^(a' t) / (1 + e^t)^(a' + b') with a' = a + 1, b' = b + 1: log-concave if a' + b' >= 0. If
    // not, the interval must have two finite ends in t; the denominator, then a growing factor, is bounded by its value at hi.
    double x;
    if (f.a + f.b < 0) {
        const double t_lo = logit(lo), width = logit(hi) - t_lo, n = -(f.a + f.b), top = log1p_exp(t_lo + width);
        for (;;) {
            const double t = t_lo + exponential_offset(uniform_open(g), -f.a, width);
            if (log(uniform_open(g)) <= n * (log1p_exp(t) - top)) return clamp(inv_logit(t), lo, hi);
        }
    }
    double mode = f.a > 0 && f.b > 0 ? f.a / (f.a + f.b) : f.a <= 0 ? lo : hi;
    f.p = clamp(mode, lo, hi);
    f.q = f.p == mode && f.a > 0 && f.b > 0 ? f.b / (f.a + f.b) : 1 - f.p;
    // Offsets of the ends from the anchor in logits: log of the ratio of odds, by log1p of differences where they are close.
    const double left = lo > 0 ? log1p((lo - f.p) / f.p) - log1p((f.p - lo) / f.q) : -INFINITY;
    const double right = hi < 1 ? log1p((hi - f.p) / f.p) - log1p((f.p - hi) / f.q) : INFINITY;
    const double s = log_concave_offset(g, &f, left < 0 ? left : 0, right > 0 ? right : 0);
    if (s <= 0) x = f.p * exp(s) / (f.q + f.p * exp(s));
    else x = f.p / (f.p + f.q * exp(-s));
    return clamp(x, lo > GM_TINY ? lo : GM_TINY, hi < GM_BELOW_ONE ? hi : GM_BELOW_ONE);
}
#define BETA_WITHIN(shape1, shape2, lo, hi)                     beta_within, shape1, shape2, lo, hi
#define beta_within_drawn(g, shape1, shape2, lo, hi)            beta_natural_truncated(g, (shape1)-1, (shape2)-1, lo, hi)
#define beta_within_ratio_terms(x, old, shape1, shape2, lo, hi) beta_ratio_terms(x, old, shape1, shape2)

#endif
