// pareto.c -- Pareto-smoothed importance sampling: the largest weights are replaced by order statistics of a generalised Pareto law.
//
//   Vehtari, Simpson, Gelman, Yao and Gabry 2024, "Pareto smoothed importance sampling", Journal of Machine Learning Research 25(72);
//   below: P. Zhang and Stephens 2009, "A new and efficient estimation method for the generalized Pareto distribution", Technometrics
//   51(3); below: Z.
#include "../messages.h"
#include "after.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double gm_log_sum_exp(const double *x, long n)
{
    double most = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    if (isinf(most)) return most;
    for (long i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

// The average of log(1 - b x): -k of Z at b.
static double shape_at(double b, const double *x, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += log1p(-b * x[i]);
    return sum / (double)n;
}

// Fits a generalised Pareto law to n ascending excesses x > 0. Z section 4: the mean of b = -k/sigma over a grid of values, weighed by
// their profile likelihood. k is drawn towards 1/2 by a prior that counts as 10 excesses (P appendix G).
static void fit_pareto(const double *x, long n, double *k, double *sigma)
{
    const double spread = 3, prior = 10;
    const int grid = 30 + (int)sqrt((double)n);
    double *b = gm_alloc((size_t)grid, sizeof *b), *profile = gm_alloc((size_t)grid, sizeof *profile);
    const double quartile = x[(long)((double)n / 4 + 0.5) - 1];
    for (int j = 0; j < grid; j++) {
        b[j] = (1 - sqrt(grid / (j + 0.5))) / (spread * quartile) + 1 / x[n - 1];
        const double shape = shape_at(b[j], x, n);
        profile[j] = (double)n * (log(-(b[j] / shape)) - shape - 1);
    }
    const double all = gm_log_sum_exp(profile, grid);
    double total = 0, mean = 0;
    for (int j = 0; j < grid; j++) {
        const double weight = exp(profile[j] - all);
        if (weight < 10 * DBL_EPSILON) continue;
        total += weight;
        mean += weight * b[j];
    }
    mean /= total;
    const double shape = shape_at(mean, x, n);
    *sigma = -shape / mean;
    *k = ((double)n * shape + prior * 0.5) / ((double)n + prior);
    free(b);
    free(profile);
}

static double pareto_quantile(double p, double k, double sigma)
{
    if (!(sigma > 0)) return NAN;
    return sigma * (fabs(k) < DBL_EPSILON ? -log1p(-p) : expm1(-k * log1p(-p)) / k);
}

typedef struct Placed {
    double value;
    long at;
} Placed;

static int by_value(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

// The place of the first draw of the tail: the `tail` largest, of which those next to the cut may equal it, as chains repeat draws. Where a
// quarter of them do, no law of Pareto has such excesses, and the tail begins above the cut.
static long first_of_tail(const Placed *sorted, long n, long tail, double cut)
{
    long first = n - tail > 0 ? n - tail : 0;
    while (first < n && sorted[first].value < cut) first++;
    const long quarter = first + (long)((double)(n - first) / 4 + 0.5) - 1;
    if (quarter >= first && quarter < n && sorted[quarter].value > cut) return first;
    while (first < n && sorted[first].value <= cut) first++;
    return first;
}

double gm_pareto_smooth(double *x, long n, double efficiency)
{
    Placed *sorted = gm_alloc((size_t)n, sizeof *sorted);
    double most = -INFINITY, k = INFINITY;
    for (long i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    for (long i = 0; i < n; i++) {
        x[i] -= most;
        sorted[i] = (Placed){x[i], i};
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    // P section 3: the tail has min(S/5, 3 sqrt(S/r)) draws
    const long tail = (long)ceil(fmin((double)n / 5, 3 * sqrt((double)n / efficiency)));
    const double cut = fmax(tail < n ? sorted[n - tail - 1].value : -INFINITY, log(DBL_MIN));
    const long first = first_of_tail(sorted, n, tail, cut), excesses = n - first;
    if (excesses > 4) {
        double *excess = gm_alloc((size_t)excesses, sizeof *excess), sigma;
        for (long i = 0; i < excesses; i++) excess[i] = exp(sorted[first + i].value) - exp(cut);
        fit_pareto(excess, excesses, &k, &sigma);
        for (long i = 0; i < excesses && isfinite(k); i++) {
            const double smooth = log(pareto_quantile(((double)i + 0.5) / (double)excesses, k, sigma) + exp(cut));
            x[sorted[first + i].at] = smooth > 0 ? 0 : smooth;  // no weight is above the largest one
        }
        free(excess);
    }
    const double all = gm_log_sum_exp(x, n);
    for (long i = 0; i < n; i++) x[i] -= all;
    free(sorted);
    return k;
}
