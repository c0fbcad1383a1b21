// others.h -- distributions with a closed inverse, and the angles.
//
//   densities   as in Stan's reference and in stdlib/distributions; asymmetric_laplace has its quantile `quantile` at mu:
//               log density  ... - (x - mu) (quantile - (x < mu)) / sigma
//   parameters  all scales, shapes, rates > 0; kappa >= 0
//   method      inversion, with expm1 and log1p where a plain formula would cancel; sums of simple draws for skew_normal and
//               exp_mod_normal; von Mises: Best and Fisher 1979, its normal limit beyond kappa = 1e6 (relative error of the
//               variance 1 / (2 kappa)), uniform below 1e-8
//   accuracy    rounding unless said above; positive draws stay within [2.2e-308, 1.8e308], those whose density has a power of their ratio
//               to a scale within [1e-300, 1e300]; angles lie in (-pi, pi]
//   test        tests/runtime/continuous.c
#ifndef GM_OTHERS_H
#define GM_OTHERS_H

#include "rng.h"
#include "normal.h"
#include "exponential.h"
#include "truncated.h"

DEVICE_CALL double double_exponential(Stream *g, double mu, double scale)
{
    const double u = uniform_open(g);
    return u < 0.5 ? mu + scale * log(2 * u) : mu - scale * log(2 * (1 - u));
}

DEVICE_CALL double logistic(Stream *g, double mu, double sigma) { return mu + sigma * logit(uniform_open(g)); }

DEVICE_CALL double loglogistic(Stream *g, double alpha, double beta)
{
    return clamp(alpha * exp(logit(uniform_open(g)) / beta), GM_LEAST, GM_MOST);
}

DEVICE_CALL double weibull(Stream *g, double shape, double scale)
{
    return clamp(scale * exp(log(exponential_standard(g)) / shape), GM_LEAST, GM_MOST);
}

DEVICE_CALL double frechet(Stream *g, double alpha, double sigma)
{
    return clamp(sigma * exp(-log(exponential_standard(g)) / alpha), GM_LEAST, GM_MOST);
}

DEVICE_CALL double rayleigh(Stream *g, double sigma) { return clamp(sigma * sqrt(2 * exponential_standard(g)), GM_TINY, GM_HUGE); }

DEVICE_CALL double gumbel(Stream *g, double mu, double beta) { return mu - beta * log(exponential_standard(g)); }

DEVICE_CALL double pareto(Stream *g, double y_min, double alpha)
{
    return clamp(y_min * exp(exponential_standard(g) / alpha), y_min, GM_HUGE);
}

DEVICE_CALL double pareto_type_2(Stream *g, double mu, double lambda, double alpha)
{
    return clamp(mu + lambda * expm1(exponential_standard(g) / alpha), mu, GM_HUGE);
}

// A normal pushed to one side by the absolute value of another (Azzalini 1985).
DEVICE_CALL double skew_normal(Stream *g, double xi, double omega, double alpha)
{
    const double delta = fabs(alpha) < 1e150 ? alpha / sqrt(1 + alpha * alpha) : alpha > 0 ? 1 : -1;
    const double rest = fabs(alpha) < 1e150 ? 1 / sqrt(1 + alpha * alpha) : 0;
    const double common = fabs(normal_standard(g)), own = normal_standard(g);
    return xi + omega * (delta * common + rest * own);
}

// Between two ends: a truncated normal, kept with its share of Phi(alpha z) / max Phi. Accepts at least about 1 / (1 + alpha^2).
DEVICE_CALL double skew_normal_truncated(Stream *g, double xi, double omega, double alpha, double lo, double hi)
{
    const double end = alpha >= 0 ? hi : lo, most = log_Phi(is_finite(end) ? alpha * (end - xi) / omega : alpha == 0 ? 0 : INFINITY);
    for (long tries = 0; tries < 10000000; tries++) {
        const double x = normal_truncated(g, xi, omega, lo, hi);
        if (!(log(uniform_open(g)) > log_Phi(alpha * (x - xi) / omega) - most)) return x;
    }
    return NAN;
}

DEVICE_CALL double exp_mod_normal(Stream *g, double mu, double sigma, double lambda)
{
    const double z = normal_standard(g);
    return mu + sigma * z + exponential_standard(g) / lambda;
}

// A draw falls below mu with probability `quantile`.
DEVICE_CALL double asymmetric_laplace(Stream *g, double mu, double sigma, double quantile)
{
    const double side = uniform_open(g), e = exponential_standard(g);
    return side < quantile ? mu - sigma * e / (1 - quantile) : mu + sigma * e / quantile;
}

// The angle brought to (-pi, pi].
DEVICE_CALL double wrap_angle(double x)
{
    const double turn = x - 2 * GM_PI * floor(x / (2 * GM_PI) + 0.5);
    return turn <= -GM_PI ? GM_PI : turn > GM_PI ? GM_PI : turn;
}

DEVICE_CALL double von_mises(Stream *g, double mu, double kappa)
{
    if (!(kappa >= 0)) return NAN;
    if (kappa < 1e-8) return GM_PI * (2 * uniform_open(g) - 1);
    if (kappa > 1e6) return wrap_angle(mu + normal_standard(g) / sqrt(kappa));
    // Envelope: wrapped Cauchy, s = (1 + rho^2) / (2 rho); for small kappa its expansion, which does not cancel.
    double s;
    if (kappa < 1e-5) {
        s = 1 / kappa + kappa;
    } else {
        const double tau = 1 + sqrt(1 + 4 * kappa * kappa), rho = (tau - sqrt(2 * tau)) / (2 * kappa);
        s = (1 + rho * rho) / (2 * rho);
    }
    for (;;) {
        const double z = cos(GM_PI * uniform_open(g)), w = (1 + s * z) / (s + z), y = kappa * (s - w);
        const double v = uniform_open(g);
        if (y * (2 - y) > v || log(y / v) + 1 >= y) {
            const double angle = acos(clamp(w, -1, 1));
            return wrap_angle(uniform_open(g) < 0.5 ? mu - angle : mu + angle);
        }
    }
}

// The largest value of cos(x - mu) on a short piece [l, r]: at an end, or 1 where a maximum lies within.
DEVICE double von_mises_most(double mu, double l, double r)
{
    const double turn = 2 * GM_PI, peak = mu + turn * ceil((l - mu) / turn);
    const double a = cos(l - mu), b = cos(r - mu);
    return peak <= r ? 1 : a > b ? a : b;
}

// Between two ends: from the piecewise constant envelope over 256 pieces.
DEVICE_CALL double von_mises_truncated(Stream *g, double mu, double kappa, double lo, double hi)
{
    enum { PIECES = 256 };
    if (!(kappa >= 0) || !is_finite(kappa) || !is_finite(mu) || !(lo <= hi)) return NAN;
    const double width = (hi - lo) / PIECES;
    double top = -1, total = 0;
    for (int k = 0; k < PIECES; k++) {
        const double c = von_mises_most(mu, lo + k * width, lo + (k + 1) * width);
        if (c > top) top = c;
    }
    for (int k = 0; k < PIECES; k++) total += exp(kappa * (von_mises_most(mu, lo + k * width, lo + (k + 1) * width) - top));
    for (long tries = 0; tries < 1000000; tries++) {
        double u = uniform_open(g) * total, c = top;
        int k = 0;
        for (; k < PIECES; k++) {
            c = von_mises_most(mu, lo + k * width, lo + (k + 1) * width);
            u -= exp(kappa * (c - top));
            if (u <= 0) break;
        }
        if (k == PIECES) continue;  // rounding
        const double x = clamp(lo + (k + uniform_open(g)) * width, lo, hi);
        if (log(uniform_open(g)) <= kappa * (cos(x - mu) - c)) return x;
    }
    return NAN;
}

// exp(a cos x + b sin x)
DEVICE_CALL double von_mises_natural(Stream *g, double a, double b) { return von_mises(g, atan2(b, a), hypot(a, b)); }

#endif
