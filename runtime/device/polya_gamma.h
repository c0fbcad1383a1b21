// polya_gamma.h -- the Polya-Gamma distribution PG(b, c).
//
//   density     cosh(c/2)^b exp(-c^2 x / 2) f(x | b, 0), x > 0, where f(x | b, 0) is the density of
//               (1 / (2 pi^2)) sum over k >= 1 of g_k / (k - 1/2)^2, g_k ~ gamma(b, 1) independent
//               mean b tanh(c/2) / (2 c), variance b (sinh c - c) / (4 c^3 cosh(c/2)^2)
//   parameters  b > 0, real; c real (its sign does not matter). b <= 0 gives 0, the limit b -> 0.
//   method      |c| >= 30       inverse Gaussian with mean b / (2 |c|) and shape b^2 / 4: cosh has become one exponential
//               b < 8           the sum of floor(b) draws of PG(1, c) and one of PG(b - floor(b), c), all exact by the alternating
//                               series of Biane, Pitman and Yor 2001. For PG(1, c): Devroye 2009 as in Polson, Scott and Windle 2013.
//                               For the fraction the same with an envelope for h in (0, 1), see polya_gamma_unit.
//               b >= 8          the first K terms of the sum as gammas, the rest as an inverse Gaussian of the same mean and variance,
//                               whose third cumulant nearly agrees: K = 8, 12, 0 for |c| below 9, below 16, above
//   accuracy    |c| >= 30: distribution function within 1e-13 b. b < 8: exact, but that for a fraction the series has no digits left
//               where 4 x > 25, which has probability 1e-13. b >= 8: within 6e-7 everywhere, by the integral of the difference of the
//               characteristic functions over frequency (evaluated for b = 8, 20, 170 and twelve values of c).
//   test        tests/runtime/polya_gamma.c
#ifndef GM_POLYA_GAMMA_H
#define GM_POLYA_GAMMA_H

#include "rng.h"
#include "truncated.h"
#include "gamma.h"
#include "inverse_gaussian.h"

// The density of J(h) = 4 PG(h, 0) at x is the alternating sum of a_n(x), n >= 0,
//   a_n(x) = 2^h Gamma(n + h) / (Gamma(h) n!) (2 n + h) / sqrt(2 pi x^3) exp(-(2 n + h)^2 / (2 x)),
// so the partial sums bound it in turn from above and below once the terms decrease. Is y <= that density?
DEVICE_CALL int jacobi_below_density(double y, double h, double x)
{
    double coefficient = exp(h * GM_LOG_2) / (GM_SQRT_2PI * x * sqrt(x));
    double bell = exp(-0.5 * h * h / x);  // exp(-(2n + h)^2 / 2x) by its ratios
    double ratio = exp(-2 * (1 + h) / x);
    const double ratio_step = exp(-4 / x);
    double sum = coefficient * h * bell, last = sum;
    for (int n = 1; n < 400; n++) {
        coefficient *= (n - 1 + h) / n;
        bell *= ratio;
        ratio *= ratio_step;
        const double term = coefficient * (2 * n + h) * bell;
        const int decreasing = term < last;
        last = term;
        if (n & 1) {
            sum -= term;
            if (decreasing && y <= sum) return 1;
        } else {
            sum += term;
            if (decreasing && y > sum) return 0;
        }
        if (decreasing && term < 1e-17 * sum) break;
    }
    return y <= sum;
}

// The first term a_0(x), and a_1(x) / a_0(x): below the cut the density lies between a_0 - a_1 and a_0.
DEVICE_CALL double jacobi_first(double h, double x) { return exp(h * GM_LOG_2 - 0.5 * h * h / x) * h / (GM_SQRT_2PI * x * sqrt(x)); }
DEVICE_CALL double jacobi_second_by_first(double h, double x) { return (2 + h) * exp(-2 * (1 + h) / x); }

// jacobi_below_density for h = 1 and x beyond 0.64, by the other series: pi (n + 1/2) exp(-(n + 1/2)^2 pi^2 x / 2).
// `y` is relative to the first term.
DEVICE_CALL int jacobi_below_density_right(double y, double x)
{
    double sum = 1;
    for (int n = 1; n < 60; n++) {
        const double term = (2 * n + 1) * exp(-0.5 * GM_PI * GM_PI * x * n * (n + 1.0));
        if (n & 1) {
            sum -= term;
            if (y <= sum) return 1;
        } else {
            sum += term;
            if (y > sum) return 0;
        }
    }
    return 0;
}

typedef struct PolyaGammaUnit {  // what PG(h, c), 0 < h <= 1, precomputes
    double h, z;                 // z = |c| / 2
    double left;                 // probability of proposing below the cut
    double rate;                 // of the exponential envelope above it
    double height;               // of that envelope: height exp(-pi^2 x / 8) bounds the density of J(h) above the cut
} PolyaGammaUnit;

#define POLYA_GAMMA_CUT 0.64

// Envelope of J(h) tilted by exp(-z^2 x / 2): its first term below the cut, an exponential above. Above the cut the density times
// exp(pi^2 x / 8) decreases if h <= 0.9, so its value at the cut bounds it; up to h = 1 it rises by less than 0.6 per cent
// (to pi/2 at h = 1), which a factor of 1.01 covers. exp(|c|) is formed: |c| < 700.
DEVICE_CALL PolyaGammaUnit polya_gamma_unit_setup(double h, double c)
{
    const double t = POLYA_GAMMA_CUT, root = 0.8;  // sqrt(t)
    PolyaGammaUnit f;
    f.h = h;
    f.z = 0.5 * fabs(c);
    f.rate = 0.125 * GM_PI * GM_PI + 0.5 * f.z * f.z;
    const double power = h == 1 ? 2 : exp(h * GM_LOG_2);
    if (h == 1) {
        f.height = 0.5 * GM_PI;
    } else {
        double coefficient = power / (GM_SQRT_2PI * t * root), sum = 0;
        for (int n = 0; n < 6; n++) {  // the terms fall by exp(-4 (2n + 1 + h) / 1.28): the seventh is 1e-30
            const double term = coefficient * (2 * n + h) * exp(-(2 * n + h) * (2 * n + h) / (2 * t));
            sum += n & 1 ? -term : term;
            coefficient *= (n + h) / (n + 1);
        }
        f.height = (h > 0.9 ? 1.01 : 1) * sum * exp(0.125 * GM_PI * GM_PI * t);
    }
    // Masses of both parts, each times exp(h z): 2^h times an inverse Gaussian distribution function, and an exponential tail.
    const double low = (t * f.z - h) / root, high = (t * f.z + h) / root;
    const double below = power * (Phi(low) + exp(2 * h * f.z) * Phi(-high));
    const double above = f.height * exp(h * f.z - f.rate * t) / f.rate;
    f.left = below / (below + above);
    return f;
}

// A draw from PG(h, c), 0 < h <= 1.
DEVICE_CALL double polya_gamma_unit(Stream *g, const PolyaGammaUnit *f)
{
    const double t = POLYA_GAMMA_CUT, h = f->h, z = f->z;
    for (;;) {
        double x;
        if (uniform_open(g) < f->left) {
            // Inverse Gaussian, mean h / z, shape h^2, below t.
            if (h > z * t) {  // mean beyond the cut: the limit of infinite mean, then thin by exp(-z^2 x / 2)
                const double edge = h / 0.8;
                do {
                    const double root = h / (edge + normal_offset(g, edge, INFINITY));
                    x = root * root;
                } while (z > 0 && uniform_open(g) > exp(-0.5 * z * z * x));
            } else {
                do x = inverse_gaussian_mean_shape(g, h / z, h * h);
                while (x > t);
            }
            const double u = uniform_open(g);  // nearly always below (a_0 - a_1) / a_0
            if (u <= 1 - jacobi_second_by_first(h, x) || jacobi_below_density(u * jacobi_first(h, x), h, x)) return 0.25 * x;
        } else {
            x = t + exponential_standard(g) / f->rate;
            const double u = uniform_open(g);
            if (h == 1) {
                if (jacobi_below_density_right(u, x)) return 0.25 * x;
            } else if (jacobi_below_density(u * f->height * exp(-0.125 * GM_PI * GM_PI * x), h, x)) {
                return 0.25 * x;
            }
        }
    }
}

// Mean and variance of PG(1, c) without cancellation near c = 0 or overflow for large c.
DEVICE_CALL double polya_gamma_mean(double c)
{
    c = fabs(c);
    return c < 1e-4 ? 0.25 - c * c / 48 : tanh(0.5 * c) / (2 * c);
}
DEVICE_CALL double polya_gamma_variance(double c)
{
    c = fabs(c);
    const double s = c * c, e = exp(-c);
    if (c < 1) {  // (sinh c - c) / c^3 as a series
        const double series = 1.0 / 6 + s * (1.0 / 120 + s * (1.0 / 5040 + s * (1.0 / 362880 + s * (1.0 / 39916800 + s / 6227020800.0))));
        const double cosh_half = cosh(0.5 * c);
        return series / (4 * cosh_half * cosh_half);
    }
    return (1 - e * e - 2 * c * e) / (2 * c * s * (1 + e) * (1 + e));
}

DEVICE_CALL double polya_gamma(Stream *g, double b, double c)
{
    if (!(b > 0)) return b <= 0 ? 0 : NAN;
    c = fabs(c);
    if (!is_finite(c) || !is_finite(b)) return c == INFINITY ? GM_TINY : NAN;
    if (c >= 30) return inverse_gaussian_mean_shape(g, 0.5 * b / c, 0.25 * b * b);
    if (b < 8) {
        const int whole = (int)b;
        double sum = 0;
        if (whole > 0) {
            const PolyaGammaUnit one = polya_gamma_unit_setup(1, c);
            for (int i = 0; i < whole; i++) sum += polya_gamma_unit(g, &one);
        }
        if (b > whole) {
            const PolyaGammaUnit part = polya_gamma_unit_setup(b - whole, c);
            sum += polya_gamma_unit(g, &part);
        }
        return sum > GM_TINY ? sum : GM_TINY;
    }
    const int terms = c < 9 ? 8 : c < 16 ? 12 : 0;
    double mean = b * polya_gamma_mean(c), variance = b * polya_gamma_variance(c), sum = 0;
    for (int k = 1; k <= terms; k++) {
        const double weight = 0.5 / ((k - 0.5) * (k - 0.5) * GM_PI * GM_PI + 0.25 * c * c);
        sum += weight * gamma_standard_large(g, b);
        mean -= b * weight;
        variance -= b * weight * weight;
    }
    return sum + inverse_gaussian_mean_shape(g, mean, mean * mean * mean / variance);
}

// Natural parameter n on x, base PG(b, 0): c = sqrt(-2 n). A rounding error above 0 counts as 0.
DEVICE_CALL double polya_gamma_natural(Stream *g, double b, double n) { return polya_gamma(g, b, n < 0 ? sqrt(-2 * n) : 0); }

// log f(x | b, 0) is left out of log joints and of log conditionals alike: it cancels in every ratio where b does not change, and the
// augmentations that bring it in are refused otherwise. Returns 0.
DEVICE_CALL double polya_gamma_base(double b, double x)
{
    (void)b;
    (void)x;
    return 0;
}

#endif
