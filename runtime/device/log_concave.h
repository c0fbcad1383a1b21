// log_concave.h -- one exact sampler for every truncated gamma, beta and generalised inverse Gaussian (and their powers).
//
// In the coordinate t = log x (or logit x for the beta) all these densities are log-concave for all parameters. Measured from
// the mode within the interval, or from any other anchor, the log density at offset s is
//
//   power form   psi(s) = alpha s - B (e^s - 1) - C (e^-s - 1)          B, C >= 0     gamma: C = 0; inverse gamma: B = 0
//   beta form    psi(s) = alpha s - n log(1 + p (e^s - 1))              0 < p < 1     anchor at x = p, alpha = a, n = a + b
//
//   method      rejection from the hull of up to three tangents: at the anchor and where psi has dropped by about 1 on either side.
//               The hull lies above psi wherever the tangents are, so the draw is exact and only the acceptance (about 0.8)
//               depends on them. Devroye 2014, Random variate generation for the generalized inverse Gaussian distribution, has
//               the untruncated case; tangents are of Gilks and Wild 1992.
//   accuracy    rounding of psi, which is formed from expm1 and log1p of the offset: no cancellation at shapes of 1e14
//   test        tests/runtime/truncated.c, tests/runtime/continuous.c
#ifndef GM_LOG_CONCAVE_H
#define GM_LOG_CONCAVE_H

#include "rng.h"
#include "interval.h"

typedef struct LogConcave {
    int beta;  // which form
    double alpha;
    double B, C;        // power form
    double a, b, p, q;  // beta form: q = 1 - p, kept apart so that neither end loses digits
} LogConcave;

// psi at s.
DEVICE_CALL double log_concave_at(const LogConcave *f, double s)
{
    if (f->beta) {
        if (s <= 0) return f->a * s - (f->a + f->b) * log1p(f->p * expm1(s));
        return -f->b * s - (f->a + f->b) * log1p(f->q * expm1(-s));
    }
    double value = f->alpha * s;
    if (f->B > 0) value -= f->B * expm1(s);
    if (f->C > 0) value -= f->C * expm1(-s);
    return value;
}

// The derivative of psi at s.
DEVICE_CALL double log_concave_slope(const LogConcave *f, double s)
{
    if (f->beta) {
        if (s <= 0) {
            const double e = exp(s), d = f->q + f->p * e;
            return (f->a * f->q - f->b * f->p * e) / d;
        }
        const double e = exp(-s), d = f->p + f->q * e;
        return (f->a * f->q * e - f->b * f->p) / d;
    }
    double slope = f->alpha;
    if (f->B > 0) slope -= f->B * exp(s);
    if (f->C > 0) slope += f->C * exp(-s);
    return slope;
}

// On the side `sign` of 0, within `width` of it, an s where psi has dropped by 0.4 to 2.5: by doubling, then bisection.
DEVICE_CALL double log_concave_drop(const LogConcave *f, double sign, double width)
{
    const double d = fabs(log_concave_slope(f, 0));
    const double c = f->beta ? (f->a + f->b) * f->p * f->q : f->B + f->C;
    const double scale = d + sqrt(d * d + 2 * c);  // of d s + c s^2 / 2 = 1
    double s = scale > 0 ? 2 / scale : 1, inside = 0, outside = INFINITY;
    for (int k = 0; k < 2200; k++) {
        if (s >= width) {
            if (log_concave_at(f, sign * width) > -2.5) return sign * width;
            s = 0.5 * width;
            outside = width;
            continue;
        }
        const double drop = log_concave_at(f, sign * s);
        if (drop < -0.4 && drop > -2.5) break;
        if (drop >= -0.4) inside = s;
        else outside = s;  // NaN, from infinite terms, is outside
        s = outside < INFINITY ? 0.5 * (inside + outside) : 2 * s;
    }
    return sign * s;
}

// An offset s in [left, right], left <= 0 <= right, either may be infinite, with density proportional to exp(psi(s)).
// NaN if the density has no finite integral.
DEVICE_CALL double log_concave_offset(Stream *g, const LogConcave *f, double left, double right)
{
    double point[3], value[3], slope[3], edge[4], mass[3];
    int n = 0;
    if (!(left < right)) return left == right ? left : NAN;

    if (left < 0) point[n++] = log_concave_drop(f, -1, -left);
    point[n++] = 0;
    if (right > 0) point[n++] = log_concave_drop(f, 1, right);
    double total = 0;
    for (int i = 0; i < n; i++) {
        value[i] = log_concave_at(f, point[i]);
        slope[i] = log_concave_slope(f, point[i]);
    }
    edge[0] = left;
    edge[n] = right;
    for (int i = 0; i + 1 < n; i++) {  // where neighbouring tangents meet
        const double turn = slope[i] - slope[i + 1];
        double at = 0.5 * (point[i] + point[i + 1]);
        if (turn > 0) at = point[i] + (value[i + 1] - value[i] - slope[i + 1] * (point[i + 1] - point[i])) / turn;
        if (!(at > point[i])) at = point[i];  // rounding only: any edge between the points will do
        if (at > point[i + 1]) at = point[i + 1];
        edge[i + 1] = at;
    }
    for (int i = 0; i < n; i++) {
        const double l = edge[i], r = edge[i + 1], width = r - l, rise = slope[i] * width;
        if (width <= 0) mass[i] = 0;
        else if (fabs(rise) < 1e-6) mass[i] = exp(value[i] + slope[i] * (0.5 * (l + r) - point[i])) * width;
        else if (slope[i] > 0) mass[i] = exp(value[i] + slope[i] * (r - point[i])) * -expm1(-rise) / slope[i];
        else mass[i] = exp(value[i] + slope[i] * (l - point[i])) * expm1(rise) / slope[i];
        total += mass[i];
    }
    if (!(total > 0) || !is_finite(total)) return NAN;

    for (;;) {
        double u = uniform_open(g) * total;
        int i = 0;
        while (i + 1 < n && u > mass[i]) u -= mass[i++];
        if (!(mass[i] > 0)) continue;
        const double l = edge[i], r = edge[i + 1], rise = slope[i] * (r - l);
        const double v = uniform_open(g);
        double s;
        if (fabs(rise) < 1e-6) s = l + v * (r - l);
        else if (slope[i] > 0) s = r + log1p(v * expm1(-rise)) / slope[i];
        else s = l + log1p(v * expm1(rise)) / slope[i];
        if (s < left) s = left;
        if (s > right) s = right;
        if (log(uniform_open(g)) <= log_concave_at(f, s) - value[i] - slope[i] * (s - point[i])) return s;
    }
}

// The power form in natural terms: v > 0 with density proportional to v^(alpha - 1) exp(-beta v - gamma / v) on [lo, hi],
// returned as log v. Where beta or gamma is below 0 the interval makes it proper (interval.h). Ends are given as logarithms (-inf and inf
// are open ends) together with their values.
DEVICE_CALL double log_power_draw(Stream *g, double alpha, double beta, double gamma, double log_lo, double log_hi)
{
    if (log_lo == log_hi) return log_lo;
    if (!(log_lo < log_hi) || !is_finite(alpha)) return NAN;
    if (beta < 0 || gamma < 0) {
        Hull hull;
        hull.normal = 0;
        hull.A = alpha;
        hull.c[0] = -beta;
        hull.c[1] = -gamma;
        return interval_draw(g, &hull, log_lo, log_hi);
    }
    if (!(beta >= 0) || !(gamma >= 0)) return NAN;

    // The mode solves alpha = beta v - gamma / v: with h = sqrt(alpha^2 + 4 beta gamma), v = (alpha + h) / (2 beta).
    const double w = 2 * sqrt(beta) * sqrt(gamma), h = hypot(alpha, w);
    LogConcave f;
    f.beta = 0;
    f.alpha = alpha;
    f.a = f.b = f.p = f.q = 0;
    double anchor;
    if (alpha >= 0) {
        anchor = beta > 0 ? log(alpha + h) - log(2 * beta) : INFINITY;
        if (alpha + h == 0) anchor = beta > 0 ? -INFINITY : gamma > 0 ? INFINITY : is_finite(log_lo) ? log_lo : log_hi;
        f.B = 0.5 * (alpha + h);
        f.C = alpha + h > 0 ? 0.5 * w * (w / (alpha + h)) : 0;
    } else {
        anchor = gamma > 0 ? log(2 * gamma) - log(h - alpha) : -INFINITY;
        f.C = 0.5 * (h - alpha);
        f.B = 0.5 * w * (w / (h - alpha));
    }
    if (anchor < log_lo || anchor > log_hi || !is_finite(anchor)) {
        anchor = anchor < log_lo ? log_lo : anchor > log_hi ? log_hi : anchor;
        if (!is_finite(anchor)) return NAN;  // no finite integral
        f.B = beta > 0 ? exp(log(beta) + anchor) : 0;
        f.C = gamma > 0 ? exp(log(gamma) - anchor) : 0;
    }
    return anchor + log_concave_offset(g, &f, log_lo - anchor, log_hi - anchor);
}

#endif
