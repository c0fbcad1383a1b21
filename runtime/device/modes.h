// modes.h -- where the conditionals of updates have their maximum, and expectations of their statistics: for programs that look for
// posterior modes.
//
//   NAME_mode   the maximum of the density that the routine NAME draws from, of the same arguments
//   NAME_mean   the expectation of the statistic `which` of the family, counted from 0 as the library lists them
//   method      closed forms. Where the density rises towards an end of its support without reaching a maximum (exponents not positive,
//               weights of a Dirichlet whose counts are below 1: the components are cut back), the mode is the closest number to that end
//               that draws may have: 2.2e-308 from 0, 1.1e-16 from 1. NaN: it rises without bound elsewhere.
//   source      Dempster, Laird and Rubin 1977 (EM); Figueiredo and Jain 2002 (weights that vanish); Polson, Scott and Windle 2013
//               (Polya-Gamma); Johnson, Kotz and Balakrishnan 1994
//   climb       the maximum of a log density of one real: golden sections within a bracket (Brent 1973, chapter 5)
//   test        tests/runtime/modes.c
#ifndef GM_MODES_H
#define GM_MODES_H

#include "gm.h"

// ---- modes ----

// exp(h x + q x^2)
DEVICE double normal_natural_mode(double h, double q) { return q < 0 ? -0.5 * h / q : NAN; }

DEVICE double normal_natural_truncated_mode(double h, double q, double lo, double hi)
{
    if (!(lo <= hi)) return NAN;
    if (q < 0) return clamp(-0.5 * h / q, lo, hi);
    const double top = h * hi + q * hi * hi, bottom = h * lo + q * lo * lo;  // convex: one of the ends
    const double end = top >= bottom || !is_finite(lo) ? hi : lo;
    return is_finite(end) ? end : NAN;
}

// x^p exp(a x^k + b x^-k) on [lo, hi], a, b <= 0: with v = x^k the derivative is 0 where k a v^2 + p v - k b = 0.
DEVICE double power_gig_natural_truncated_mode(double k, double p, double a, double b, double lo, double hi)
{
    if (lo < 0) lo = 0;
    if (!(lo <= hi)) return NAN;
    if (k < 0) return power_gig_natural_truncated_mode(-k, p, b, a, lo, hi);
    const double A = -k * a, B = -k * b, root = sqrt(p * p + 4 * A * B);
    double x;
    if (!(A >= 0) || !(B >= 0)) return NAN;
    if (A > 0 && p >= 0) x = pow((p + root) / (2 * A), 1 / k);
    else if (B > 0 && p < 0) x = pow(2 * B / (root - p), 1 / k);
    else if (p < 0 || A > 0) x = 0;
    else if (p > 0 || B > 0) x = INFINITY;
    else x = is_finite(hi) ? 0.5 * (lo + hi) : NAN;
    x = clamp(x, lo > GM_TINY ? lo : GM_TINY, hi);
    return is_finite(x) ? x : NAN;
}

DEVICE double power_gig_natural_mode(double k, double p, double a, double b)
{
    return power_gig_natural_truncated_mode(k, p, a, b, 0, INFINITY);
}
DEVICE double power_gamma_natural_truncated_mode(double k, double a, double b, double lo, double hi)
{
    return power_gig_natural_truncated_mode(k, a, b, 0, lo, hi);
}
DEVICE double power_gamma_natural_mode(double k, double a, double b)
{
    return b < 0 ? power_gamma_natural_truncated_mode(k, a, b, 0, INFINITY) : NAN;
}
DEVICE double power_natural_truncated_mode(double a, double lo, double hi) { return power_gig_natural_truncated_mode(1, a, 0, 0, lo, hi); }

// x^a (1 - x)^b
DEVICE double beta_natural_truncated_mode(double a, double b, double lo, double hi)
{
    lo = lo > GM_TINY ? lo : GM_TINY;
    hi = hi < GM_BELOW_ONE ? hi : GM_BELOW_ONE;
    if (!(lo <= hi) || !is_finite(a) || !is_finite(b)) return NAN;
    if (a == 0 && b == 0) return 0.5 * (lo + hi);
    if (a >= 0 && b >= 0) return clamp(a / (a + b), lo, hi);
    if (a >= 0) return hi;
    if (b >= 0) return lo;
    return a * log(lo) + b * log1p(-lo) >= a * log(hi) + b * log1p(-hi) ? lo : hi;
}

DEVICE double beta_natural_mode(double a, double b) { return beta_natural_truncated_mode(a, b, 0, 1); }

DEVICE double uniform_between_mode(double lo, double hi) { return 0.5 * (lo + hi); }

// exp(a cos x + b sin x)
DEVICE double von_mises_natural_mode(double a, double b) { return atan2(b, a); }

// prod x[k]^(alpha[k] - 1) on the simplex: alpha[k] - 1 over their sum; what is not positive vanishes.
DEVICE void dirichlet_mode(const double *alpha, long n, double *x)
{
    double sum = 0;
    for (long k = 0; k < n; k++) sum += alpha[k] > 1 ? alpha[k] - 1 : 0;
    for (long k = 0; k < n; k++) x[k] = sum > 0 ? (alpha[k] - 1) / sum : NAN;
    if (!(sum > 0)) {  // flat, or highest in a corner: that of the largest exponent
        long at = 0, same = 0;
        for (long k = 1; k < n; k++) at = alpha[k] > alpha[at] ? k : at;
        for (long k = 0; k < n; k++) same += alpha[k] == alpha[at];
        for (long k = 0; k < n; k++) x[k] = alpha[at] == 1 ? (alpha[k] == 1) / (double)same : k == at;
    }
    for (long k = 0; k < n; k++) x[k] = x[k] < GM_TINY ? GM_TINY : x[k];
}

// |X|^d exp(tr(B X)): X = d (-B)^-1. 0, or what is not positive definite. work: 2 n n.
DEVICE long wishart_natural_mode(double d, const double *B, long n, double *out, double *work)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) work[i * n + j] = -0.5 * (B[i * n + j] + B[j * n + i]);
    const long failed = chol_factor(work, n);
    if (failed || !(d > 0)) {
        out[0] = NAN;
        return failed ? failed : 1;
    }
    for (long j = 0; j < n; j++) {
        double *column = work + n * n;
        for (long i = 0; i < n; i++) column[i] = i == j;
        chol_solve_lower(work, n, column);
        chol_solve_upper(work, n, column);
        for (long i = 0; i < n; i++) out[i * n + j] = d * column[i];
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) out[i * n + j] = out[j * n + i] = 0.5 * (out[i * n + j] + out[j * n + i]);
    return 0;
}

// |X|^d exp(tr(B X^-1)): X = B / d.
DEVICE long inv_wishart_natural_mode(double d, const double *B, long n, double *out, double *work)
{
    (void)work;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) out[i * n + j] = d < 0 ? 0.5 * (B[i * n + j] + B[j * n + i]) / d : NAN;
    return !(d < 0);
}

// exp(h'x - x'J x / 2), as normal_draw without its noise.
DEVICE long normal_mode(Stream *g, long n, double *J, const double *h, double *x)
{
    (void)g;
    const long failed = chol_factor(J, n);
    if (failed) return failed;
    for (long i = 0; i < n; i++) x[i] = h[i];
    chol_solve_lower(J, n, x);
    chol_solve_upper(J, n, x);
    return 0;
}

// ---- expectations ----

// x^k is gamma((a + 1) / k) with rate -b: 0 the logarithm, 1 the power.
DEVICE double power_gamma_natural_mean(int which, double k, double a, double b)
{
    const double shape = (a + 1) / k;
    if (!(shape > 0) || !(b < 0)) return NAN;
    return which ? shape / -b : (digamma(shape) - log(-b)) / k;
}

// x^k is generalised inverse Gaussian: 0 the logarithm, 1 the power, 2 its inverse. Of order 1/2 and -1/2, where its Bessel functions are
// elementary.
DEVICE double power_gig_natural_mean(int which, double k, double p, double a, double b)
{
    const double order = (p + 1) / k, alpha = -2 * a;
    if (!(alpha > 0) || !(b <= 0) || fabs(fabs(order) - 0.5) > 1e-12 || which == 0) return NAN;
    // a residual of 0, at a kink of the density: as one of 1e-10 scales (Hunter and Lange 2000)
    const double least = 1e-20 / alpha, beta = -2 * b > least ? -2 * b : least;
    const double ratio = sqrt(beta / alpha), z = sqrt(alpha * beta);
    const double up = order < 0 ? 1 : 1 + 1 / z;  // K(order + 1) / K(order)
    return which == 1 ? ratio * up : (up - 2 * order / z) / ratio;
}

// 0 the logarithm of x, 1 that of 1 - x.
DEVICE double beta_natural_mean(int which, double a, double b) { return digamma(which ? b + 1 : a + 1) - digamma(a + b + 2); }

// polya_gamma(b, c) with n = -c^2/2.
DEVICE double polya_gamma_natural_mean(int which, double b, double n)
{
    (void)which;
    const double c = sqrt(-2 * n);
    return c > 1e-6 ? b * tanh(0.5 * c) / (2 * c) : b * (0.25 - c * c / 48);
}

// 0 x, 1 its square.
DEVICE double normal_natural_mean(int which, double h, double q)
{
    const double m = -0.5 * h / q;
    return !(q < 0) ? NAN : which ? m * m - 0.5 / q : m;
}

// phi(t) / (1 - Phi(t)): the hazard of the normal.
DEVICE double normal_hazard(double t) { return exp(-0.5 * t * t - 0.91893853320467274178 - log_Phi(-t)); }

DEVICE double normal_natural_truncated_mean(int which, double h, double q, double lo, double hi)
{
    const double sd = 1 / sqrt(-2 * q), m = -0.5 * h / q;
    double a = (lo - m) / sd, b = (hi - m) / sd;
    if (!(q < 0) || !(a <= b)) return NAN;
    const double side = a + b < 0 ? -1 : 1;  // the tail that matters lies above
    if (side < 0) {
        const double swap = -a;
        a = -b;
        b = swap;
    }
    double e, ee;  // of the standard normal on [a, b]
    if (b == INFINITY) {
        e = a == -INFINITY ? 0 : normal_hazard(a);
        ee = a == -INFINITY ? 1 : 1 + a * e;
    } else {  // differences of tails, in logs of the larger
        const double la = a == -INFINITY ? 0 : log_Phi(-a), lb = log_Phi(-b), mass = -expm1(lb - la);
        const double da = a == -INFINITY ? 0 : exp(-0.5 * a * a - 0.91893853320467274178 - la),
                     db = exp(-0.5 * b * b - 0.91893853320467274178 - la);
        e = mass > 0 ? (da - db) / mass : 0.5 * (a + b);
        ee = mass > 0 ? 1 + ((a == -INFINITY ? 0 : a * da) - b * db) / mass : e * e;
        if (b - a < 1e-4) {  // nearly uniform
            e = 0.5 * (a + b);
            ee = e * e + square(b - a) / 12;
        }
    }
    e *= side;
    return which ? m * m + 2 * m * sd * e + sd * sd * ee : m + sd * e;
}

// Log weights of n values become their probabilities; true: none is possible. In the first sweep of three chains of four about two elements
// of each value are taken at random for certain, and all others count next to nothing: a start from values that random elements suggest.
// elements: how many there are; evidence: the log of the sum of weights, or NULL.
#if defined(__cplusplus)
template <typename Weight>
#else
typedef real Weight;  // double
#endif
DEVICE int expect_values(Stream *g, Sweep at, long elements, Weight *weight, long n, wide *evidence)
{
    double top = -INFINITY, sum = 0;
    for (long k = 0; k < n; k++) top = weight[k] > top ? (double)weight[k] : top;
    if (!is_finite(top)) return 1;
    const int random = at.sweep == 1 && at.chain % 4 != 3;
    for (long k = 0; k < n; k++) {
        const double share = exp((double)weight[k] - top);
        sum += share;
        if (!random) weight[k] = (Weight)share;
    }
    if (evidence) *evidence = top + log(sum);
    if (random) {
        const int seed = uniform_open(g) * (double)elements < 2 * (double)n;
        long possible = 0, chosen;
        for (long k = 0; k < n; k++) possible += weight[k] > -INFINITY;
        chosen = (long)(uniform_open(g) * (double)possible);
        for (long k = 0; k < n; k++)
            if (weight[k] > -INFINITY) weight[k] = seed ? (Weight)(chosen-- == 0) : (Weight)(0.5 / (double)elements);
            else weight[k] = 0;
        return 0;
    }
    const double unit = 1 / sum;
    for (long k = 0; k < n; k++) weight[k] = (Weight)(weight[k] * unit);
    return 0;
}

// ---- the maximum of a log density of one real ----

// Asks for log densities at x until next() is 0; then x is where the highest was found, never below that of the start. Logs for positive
// variables: what is maximised is still the density by x.
typedef struct Climb {
    double x, log_density;
    int failed;
    double lo, hi;                               // of the coordinate
    double start, step, left, mid, right, best;  // best: the log density at mid
    double high, low;                            // of right and left, while the bracket is sought
    int log, stage, turn;
    double width;  // of the bracket that was found
} Climb;

DEVICE void climb_put(Climb *c, double t) { c->x = c->log ? exp(t) : t; }

DEVICE void climb_begin_on(Climb *c, double start, double lo, double hi, double width, int log_scale)
{
    c->log = log_scale;
    c->lo = log_scale ? (lo > 0 ? log(lo) : -700) : lo;
    c->hi = log_scale ? (hi < INFINITY ? log(hi) : 700) : hi;
    c->start = c->mid = log_scale ? log(start) : start;
    c->step = width > 0 && is_finite(width) ? width : 1;
    c->stage = c->turn = c->failed = 0;
    c->left = c->right = c->mid;
    c->best = -INFINITY;
}

DEVICE void climb_begin(Climb *c, Stream *g, double start, double lo, double hi, double width)
{
    (void)g;
    climb_begin_on(c, start, lo, hi, width, 0);
}
DEVICE void climb_begin_log(Climb *c, Stream *g, double start, double lo, double hi, double width)
{
    (void)g;
    climb_begin_on(c, start, lo, hi, width, 1);
}

// A point between, inside of the support by half of what is left of it.
DEVICE double climb_inside(const Climb *c, double from, double t)
{
    if (t <= c->lo) return 0.5 * (from + c->lo);
    if (t >= c->hi) return 0.5 * (from + c->hi);
    return t;
}

// 1: the log density at x is asked for.
DEVICE int climb_next(Climb *c)
{
    enum { GM_CLIMB_MOST = 200 };
    double t = c->log ? log(c->x) : c->x, f = c->log_density;
    switch (c->stage) {
    case 0:  // at the start
        c->stage = 1;
        climb_put(c, c->start);
        return 1;
    case 1:
        c->best = f;
        if (!(f > -INFINITY) || f != f) {
            c->failed = 1;
            return 0;
        }
        c->stage = 2;
        c->right = climb_inside(c, c->mid, c->mid + c->step);
        climb_put(c, c->right);
        return 1;
    case 2:  // upwards
    case 3:  // downwards
        c->turn++;
        if (f > c->best && c->turn < GM_CLIMB_MOST) {
            const double was = c->mid;
            c->best = f;
            c->mid = c->stage == 2 ? c->right : c->left;
            if (c->stage == 2) c->left = was;
            else c->right = was;
            c->step *= 2;
            t = climb_inside(c, c->mid, c->stage == 2 ? c->mid + c->step : c->mid - c->step);
            if (fabs(t - c->mid) <= 1e-13 * fabs(c->mid) || t == c->mid) break;  // an end of the support
            if (c->stage == 2) c->right = t;
            else c->left = t;
            climb_put(c, t);
            return 1;
        }
        if (c->stage == 2 && c->left == c->mid) {  // the first step upwards went down
            c->stage = 3;
            c->left = climb_inside(c, c->mid, c->mid - c->step);
            climb_put(c, c->left);
            return 1;
        }
        c->stage = 4;
        c->width = c->right - c->left;
        t = c->right - c->mid > c->mid - c->left ? c->mid + 0.381966011250105 * (c->right - c->mid)
                                                 : c->mid - 0.381966011250105 * (c->mid - c->left);
        climb_put(c, t);
        return 1;
    case 4:
        c->turn++;
        if (f > c->best) {
            if (t > c->mid) c->left = c->mid;
            else c->right = c->mid;
            c->mid = t;
            c->best = f;
        } else if (t > c->mid) c->right = t;
        else c->left = t;
        if (c->right - c->left <= 1e-9 * (fabs(c->mid) + 1e-9 * c->width) || c->right - c->left < 1e-9 * c->width ||
            c->turn >= GM_CLIMB_MOST)
            break;
        t = c->right - c->mid > c->mid - c->left ? c->mid + 0.381966011250105 * (c->right - c->mid)
                                                 : c->mid - 0.381966011250105 * (c->mid - c->left);
        climb_put(c, t);
        return 1;
    }
    climb_put(c, c->mid);
    return 0;
}

// Half of the bracket is where the next climb begins.
DEVICE double climb_adapt(double width, const Climb *c, double start)
{
    const double moved = 4 * fabs(c->mid - c->start);
    (void)start;
    return c->failed ? width : moved > 1e-7 * (1 + fabs(c->mid)) ? moved : 1e-7 * (1 + fabs(c->mid));
}

#endif
