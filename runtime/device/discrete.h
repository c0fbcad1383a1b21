// discrete.h -- counts and categories.
//
//   densities   as in Stan's reference, which the parameter names follow; geometric(p): failures before the first success
//   parameters  outside the domain, or NaN: the draw is -1 (counts) or 0 (categories), which the runtime reports as a fault
//   method      poisson, binomial: sequential inversion for means below 10, else transformed rejection (Hoermann 1993: PTRS for the
//               Poisson, BTRS for the binomial), with the log density from deviances (Loader 2000), which keeps its digits for counts
//               of 1e15; mixtures by their mixing distribution; hypergeometric by inversion outwards from its mode
//   accuracy    rounding of the density, below 1e-10 relative
//   test        tests/runtime/discrete.c
#ifndef GM_DISCRETE_H
#define GM_DISCRETE_H

#include "rng.h"
#include "gamma.h"
#include "beta.h"

#define GM_MAX_COUNT 9.0e18  // below 2^63

// log of the Poisson density at k > 0; at 0 it is -rate.
DEVICE_CALL double poisson_log_density(double k, double rate)
{
    if (k == 0) return -rate;
    return -stirling_error(k) - deviance(k, rate) - 0.5 * log(2 * GM_PI * k);
}

DEVICE_CALL long poisson(Stream *g, double rate)
{
    if (!(rate >= 0) || !(rate < GM_MAX_COUNT)) return -1;
    if (rate < 10) {
        double p = exp(-rate), u = uniform_open(g);
        long k = 0;
        while (u > p && k < 200) {  // beyond 200 the probability is below 1e-170
            u -= p;
            p *= rate / (double)++k;
        }
        return k;
    }
    const double root = sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inv_alpha = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = uniform_open(g) - 0.5, v = uniform_open(g), us = 0.5 - fabs(u);
        const double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= box) return (long)k;
        if (k < 0 || k > GM_MAX_COUNT || (us < 0.013 && v > us)) continue;
        if (log(v * inv_alpha / (a / (us * us) + b)) <= poisson_log_density(k, rate)) return (long)k;
    }
}

// log of the binomial density at 0 <= k <= n.
DEVICE_CALL double binomial_log_density(double k, double n, double p)
{
    const double q = 1 - p;
    if (k == 0) return n * log1p(-p);
    if (k == n) return n * log(p);
    return stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) - deviance(n - k, n * q) -
           0.5 * log(2 * GM_PI * k * ((n - k) / n));
}

// n >= 0 trials, 0 <= p <= 1/2. (A function that called itself would have a stack of unknown size on a GPU.)
DEVICE_CALL long binomial_less_likely(Stream *g, long n, double p)
{
    if (p == 0 || n == 0) return 0;
    const double size = (double)n, mean = size * p;
    if (mean < 10) {
        const double odds = p / (1 - p), at_zero = exp(size * log1p(-p));
        for (;;) {
            double mass = at_zero, u = uniform_open(g);
            long k = 0;
            while (u > mass && k < n && k < 200) {
                u -= mass;
                mass *= odds * (size - (double)k) / (double)(k + 1);
                k++;
            }
            if (k < 200) return k;  // else rounding has run off the end
        }
    }
    const double spread = sqrt(mean * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double centre = mean + 0.5, alpha = (2.83 + 5.1 / b) * spread, box = 0.92 - 4.2 / b;
    const double at_mode = binomial_log_density(floor((size + 1) * p), size, p);
    for (;;) {
        const double u = uniform_open(g) - 0.5, v = uniform_open(g), us = 0.5 - fabs(u);
        const double k = floor((2 * a / us + b) * u + centre);
        if (us >= 0.07 && v <= box) return (long)k;
        if (k < 0 || k > size) continue;
        if (log(v * alpha / (a / (us * us) + b)) <= binomial_log_density(k, size, p) - at_mode) return (long)k;
    }
}
DEVICE_CALL long binomial(Stream *g, long n, double p)
{
    if (n < 0 || !(p >= 0) || !(p <= 1)) return -1;
    return p > 0.5 ? n - binomial_less_likely(g, n, 1 - p) : binomial_less_likely(g, n, p);
}

DEVICE_CALL long bernoulli(Stream *g, double p)
{
    if (!(p >= 0) || !(p <= 1)) return -1;
    return uniform_open(g) <= p && p > 0;
}

// Number of one of 8 weights, from 0, with a probability proportional to exp of it; -1: none is positive, or one is no number. By
// inversion. Tested by tests/stat/geweke.py (scale_of_three).
DEVICE_CALL long one_of_8(Stream *g, double a, double b, double c, double d, double e, double f, double h, double i)
{
    const double weight[8] = {a, b, c, d, e, f, h, i};
    double most = -INFINITY, total = 0, below = 0;
    for (int k = 0; k < 8; k++) {
        if (!(weight[k] < INFINITY)) return -1;
        most = fmax(most, weight[k]);
    }
    if (most == -INFINITY) return -1;
    for (int k = 0; k < 8; k++) total += exp(weight[k] - most);
    const double u = uniform_open(g) * total;
    long chosen = -1;
    for (int k = 0; k < 8 && (chosen < 0 || below < u); k++) {
        if (weight[k] == -INFINITY) continue;
        below += exp(weight[k] - most);
        chosen = k;
    }
    return chosen;
}

// Mean alpha / beta: a Poisson whose rate is gamma(alpha, beta).
DEVICE_CALL long neg_binomial_alpha_beta(Stream *g, double alpha, double beta) { return poisson(g, gamma_shape_rate(g, alpha, beta)); }

// Mean mu, variance mu + mu^2 / phi.
DEVICE_CALL long neg_binomial_2(Stream *g, double mu, double phi)
{
    if (mu == 0) return 0;
    return poisson(g, gamma_shape_rate(g, phi, phi / mu));
}

DEVICE_CALL long geometric(Stream *g, double p)
{
    if (!(p > 0) || !(p <= 1)) return -1;
    const double k = floor(-exponential_standard(g) / log1p(-p));  // p = 1: -0
    return k < GM_MAX_COUNT ? (long)k : (long)GM_MAX_COUNT;
}

DEVICE_CALL long beta_binomial(Stream *g, long n, double alpha, double beta) { return binomial(g, n, beta_a_b(g, alpha, beta)); }

// Successes among n draws without replacement from a successes and b failures. Sums the density outwards from the mode: the work
// grows with the sd.
DEVICE_CALL long hypergeometric(Stream *g, long n, long a, long b)
{
    if (n < 0 || a < 0 || b < 0 || n > a + b) return -1;
    const long lo = n > b ? n - b : 0, hi = n < a ? n : a;
    long mode = (long)floor(((double)n + 1) * ((double)a + 1) / ((double)a + (double)b + 2));
    if (mode < lo) mode = lo;
    if (mode > hi) mode = hi;
    const double at_mode =
        exp(lchoose((double)a, (double)mode) + lchoose((double)b, (double)(n - mode)) - lchoose((double)(a + b), (double)n));
    for (;;) {
        double u = uniform_open(g) - at_mode, down = at_mode, up = at_mode;
        long i = mode, j = mode;
        if (u <= 0) return mode;
        while (i > lo || j < hi) {
            if (j < hi) {
                up *= (double)(a - j) * (double)(n - j) / ((double)(j + 1) * (double)(b - n + j + 1));
                j++;
                if ((u -= up) <= 0) return j;
            }
            if (i > lo) {
                down *= (double)i * (double)(b - n + i) / ((double)(a - i + 1) * (double)(n - i + 1));
                i--;
                if ((u -= down) <= 0) return i;
            }
            if (up + down < 1e-30 && u < 1e-9) break;  // the rest is rounding: again
        }
    }
}

// Uniform on lo, lo + 1, ..., hi.
DEVICE_CALL long discrete_uniform(Stream *g, long lo, long hi)
{
    const double count = (double)hi - (double)lo + 1;
    if (!(count >= 1)) return lo;
    const long k = lo + (long)floor(uniform_open(g) * count);
    return k > hi ? hi : k;
}

// 1..n with probability proportional to w[0..n-1] >= 0. 0 if no weight is positive or one is negative or not finite.
DEVICE_CALL long categorical_weights(Stream *g, const double *w, long n)
{
    double total = 0;
    for (long k = 0; k < n; k++) {
        if (!(w[k] >= 0)) return 0;
        total += w[k];
    }
    if (!(total > 0) || !is_finite(total)) return 0;
    double u = uniform_open(g) * total;
    long last = 0;
    for (long k = 0; k < n; k++) {
        if (!(w[k] > 0)) continue;
        last = k + 1;
        if (u <= w[k]) return last;
        u -= w[k];
    }
    return last;  // rounding
}

// 1..n with probability proportional to exp(logw[0..n-1]); logw is overwritten by weights with maximum 1. -infinity is weight 0.
// 0 if all are -infinity or one is NaN or +infinity.
DEVICE_CALL long categorical_log_weights(Stream *g, double *logw, long n)
{
    double top = -INFINITY;
    for (long k = 0; k < n; k++) {
        if (!(logw[k] < INFINITY)) return 0;
        if (logw[k] > top) top = logw[k];
    }
    if (!(top > -INFINITY)) return 0;
    for (long k = 0; k < n; k++) logw[k] = exp(logw[k] - top);
    return categorical_weights(g, logw, n);
}

// 1..n with probability proportional to exp(logw), for weights that come some at a time, at most WEIGHED_AT_ONCE: the choice changes to
// those that come with their share of all so far (Chao 1982, a sample of one), by one uniform number each time. What is kept does not grow
// with n. `chosen` counts from 1; 0 if all were -infinity; `wrong` if one was NaN or +infinity. n values in one go are drawn as
// categorical_log_weights draws them. Test: tests/runtime/discrete.c.

typedef struct Weighed {
    double top, total;  // the largest logarithm, and the sum of all weights over exp(top)
    double log_chosen;  // logarithm of the weight that is chosen
    long chosen;
    int wrong;
} Weighed;

DEVICE Weighed weigh_start(void)
{
    const Weighed w = {-INFINITY, 0, -INFINITY, 0, 0};
    return w;
}

// n more, after `before` others.
DEVICE void weigh_values(Weighed *w, Stream *g, const double *logw, long before, long n)
{
    double weight[WEIGHED_AT_ONCE], top = w->top, total = 0;
    for (long k = 0; k < n; k++) {
        if (!(logw[k] < INFINITY)) w->wrong = 1;
        if (logw[k] > top) top = logw[k];
    }
    if (w->wrong || !(top > -INFINITY)) return;
    for (long k = 0; k < n; k++) total += weight[k] = exp(logw[k] - top);
    const double others = w->total > 0 ? w->total * exp(w->top - top) : 0;
    w->top = top;
    w->total = others + total;
    if (!(total > 0)) return;
    double u = uniform_open(g) * w->total;
    long last = -1, k = 0;
    for (; k < n; k++) {
        if (!(weight[k] > 0)) continue;
        last = k;
        if (u <= weight[k]) break;
        u -= weight[k];
    }
    if (k == n && others > 0) return;  // it stays where it was
    w->chosen = before + last + 1;
    w->log_chosen = logw[last];
}

// The same for weights that are to stay.
DEVICE_CALL long categorical_logits(Stream *g, const double *logw, long n)
{
    double top = -INFINITY, total = 0;
    for (long k = 0; k < n; k++) {
        if (!(logw[k] < INFINITY)) return 0;
        if (logw[k] > top) top = logw[k];
    }
    if (!(top > -INFINITY)) return 0;
    for (long k = 0; k < n; k++) total += exp(logw[k] - top);
    double u = uniform_open(g) * total;
    long last = 0;
    for (long k = 0; k < n; k++) {
        const double w = exp(logw[k] - top);
        if (!(w > 0)) continue;
        last = k + 1;
        if (u <= w) return last;
        u -= w;
    }
    return last;  // rounding
}

// 1 + the number of thresholds below eta plus a standard logistic or normal error.
DEVICE_CALL long ordered_logistic(Stream *g, double eta, const double *c, long n)
{
    const double z = eta + logit(uniform_open(g));
    long k = 0;
    while (k < n && c[k] < z) k++;
    return z == z ? k + 1 : 0;
}

DEVICE_CALL long ordered_probit(Stream *g, double eta, const double *c, long n)
{
    const double z = eta + normal_standard(g);
    long k = 0;
    while (k < n && c[k] < z) k++;
    return z == z ? k + 1 : 0;
}

// Mixtures: a geometric on 1, 2, ... whose probability of stopping is exp(-w), w exponential with rate alpha; a negative binomial with a
// beta probability.
DEVICE_CALL long yule_simon(Stream *g, double alpha)
{
    if (!(alpha > 0)) return 0;
    const double k = (double)geometric(g, clamp(exp(-exponential_standard(g) / alpha), GM_TINY, 1));
    return k < GM_MAX_COUNT ? (long)k + 1 : (long)GM_MAX_COUNT;
}

DEVICE_CALL long beta_neg_binomial(Stream *g, double r, double alpha, double beta)
{
    const double x = log_gamma_standard(g, alpha), y = log_gamma_standard(g, beta);  // p / (1 - p) = exp(x - y)
    return neg_binomial_alpha_beta(g, r, clamp(exp(x - y), GM_TINY, GM_HUGE));
}

// Counts of n trials over K categories with probabilities proportional to p[0..K-1], by conditional binomials.
DEVICE_CALL void multinomial(Stream *g, long n, const double *p, long K, int32_t *out)
{
    double rest = 0;
    for (long k = 0; k < K; k++) rest += p[k];
    for (long k = 0; k < K; k++) {
        const long x = k + 1 == K || !(p[k] < rest) ? n : binomial(g, n, clamp(p[k] / rest, 0, 1));
        out[k] = (int32_t)x;
        n -= x < 0 ? 0 : x;
        rest -= p[k];
    }
}

#endif
