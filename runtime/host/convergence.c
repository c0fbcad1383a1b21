// convergence.c -- of the draws of one quantity: mean, sd, quantiles, Monte Carlo error, and the diagnostics of
//
//   Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, "Rank-normalization, folding, and localization: an improved R-hat
//   for assessing convergence of MCMC", Bayesian Analysis 16(2); below: V.
//
// Every chain is cut into halves first, so that a drift within one chain shows as a difference between two. Autocovariances are summed
// directly, lag by lag, up to where Geyer's rule stops: a few lags where chains mix, and where they do not, the table has
// worse news than its own slowness.
#include "../device/special.h"
#include "messages.h"
#include "warmup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// m sequences of n values each, x[sequence * n + draw].
typedef struct Sequences {
    double *x;
    int m;
    long n;
} Sequences;

static double mean_of(const double *x, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

// Sum of squared deviations from `mean` over n - 1.
static double variance_of(const double *x, long n, double mean)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / (double)(n - 1);
}

static bool all_equal(const double *x, long n)
{
    for (long i = 1; i < n; i++)
        if (x[i] != x[0]) return false;
    return true;
}

// Both halves of every chain; of an odd number of draws the middle one is left out.
static void split(const double *x, int chains, long draws, Sequences *out)
{
    const long half = draws / 2;
    for (int c = 0; c < chains; c++) {
        memcpy(out->x + (2 * c) * half, x + c * draws, (size_t)half * sizeof *x);
        memcpy(out->x + (2 * c + 1) * half, x + c * draws + (draws - half), (size_t)half * sizeof *x);
    }
}

// Means of the sequences into mean[m]; the average variance within them, and the variance of their means.
static void moments(const Sequences *s, double *mean, double *within, double *between)
{
    *within = 0;
    for (int k = 0; k < s->m; k++) {
        mean[k] = mean_of(s->x + k * s->n, s->n);
        *within += variance_of(s->x + k * s->n, s->n, mean[k]) / s->m;
    }
    *between = variance_of(mean, s->m, mean_of(mean, s->m));
}

// R-hat = sqrt(var+ / W), V equations (1) to (4).
static double split_rhat(const Sequences *s)
{
    double *mean = gm_alloc((size_t)s->m, sizeof *mean);
    double within, between;
    moments(s, mean, &within, &between);
    free(mean);
    return sqrt((double)(s->n - 1) / (double)s->n + between / within);
}

// The average over the sequences of the autocovariance at `lag`, each a sum over its n - lag products divided by n.
static double autocovariance(const Sequences *s, const double *mean, long lag)
{
    double total = 0;
    for (int k = 0; k < s->m; k++) {
        const double *x = s->x + k * s->n;
        double sum = 0;
        for (long i = 0; i + lag < s->n; i++) sum += (x[i] - mean[k]) * (x[i + lag] - mean[k]);
        total += sum / (double)s->n;
    }
    return total / s->m;
}

// Effective number of draws, V equations (10) to (13), with Geyer's (1992) initial monotone sequence: correlations are added in pairs of an
// even and an odd lag, whose sums are positive and decrease in theory. They are added as long as they are positive, and none counts as more
// than the one before. Of the last pair looked at only its even lag counts, once, if positive. At most log10(S) * S for S draws.
static double effective_size(const Sequences *s)
{
    const double total = (double)s->m * (double)s->n;
    if (all_equal(s->x, s->m * s->n)) return total;
    double *mean = gm_alloc((size_t)s->m, sizeof *mean);
    double within, between;
    moments(s, mean, &within, &between);
    const double variance = within * (double)(s->n - 1) / (double)s->n + between;
    double pairs = 0, previous = INFINITY;
    double even = 1, odd = 1 - (within - autocovariance(s, mean, 1)) / variance;
    for (long lag = 2; lag < s->n - 2 && even + odd > 0; lag += 2) {
        previous = even + odd < previous ? even + odd : previous;
        pairs += previous;
        even = 1 - (within - autocovariance(s, mean, lag)) / variance;
        odd = 1 - (within - autocovariance(s, mean, lag + 1)) / variance;
    }
    free(mean);
    const double time = -1 + 2 * pairs + (even > 0 ? even : 0);
    const double least = 1 / log10(total);
    return total / (time > least ? time : least);
}

typedef struct Ranked {
    double value;
    long at;
} Ranked;

static int by_value(const void *a, const void *b)
{
    const double x = ((const Ranked *)a)->value, y = ((const Ranked *)b)->value;
    return (x > y) - (x < y);
}

int gm_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Replaces values by their ranks from 1: ties share the mean of theirs.
static void rank(double *x, long size, Ranked *work)
{
    for (long i = 0; i < size; i++) work[i] = (Ranked){x[i], i};
    qsort(work, (size_t)size, sizeof *work, by_value);
    for (long i = 0; i < size;) {
        long end = i + 1;
        while (end < size && work[end].value == work[i].value) end++;
        const double mean = (double)(i + 1 + end) / 2;
        for (; i < end; i++) x[work[i].at] = mean;
    }
}

void gm_ranks(double *x, long size)
{
    Ranked *work = gm_alloc((size_t)size, sizeof *work);
    rank(x, size, work);
    free(work);
}

// Replaces values by normal scores of their ranks, V equation (14).
static void rank_normalise(Sequences *s, Ranked *work)
{
    const long size = s->m * s->n;
    rank(s->x, size, work);
    for (long i = 0; i < size; i++) s->x[i] = inv_Phi((s->x[i] - 0.375) / ((double)size + 0.25));
}

void gm_autocorrelations(const double *x, long draws, int lags, double *out)
{
    const double mean = mean_of(x, draws);
    const Sequences s = {(double *)x, 1, draws};
    const double variance = autocovariance(&s, &mean, 0);
    for (int lag = 0; lag <= lags; lag++) out[lag] = autocovariance(&s, &mean, lag) / variance;
}

double gm_energy_ratio(const double *energy, long draws)
{
    const double mean = mean_of(energy, draws);
    double change = 0, square = 0;
    for (long i = 0; i < draws; i++) {
        const double step = i ? energy[i] - energy[i - 1] : 0;
        change += step * step;
        square += (energy[i] - mean) * (energy[i] - mean);
    }
    return change / square;
}

double gm_quantile(const double *sorted, long n, double p)
{
    const double at = p * (double)(n - 1);
    const long below = (long)floor(at);
    const long above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

// Effective size of the estimate of P(x <= limit).
static double effective_size_below(const double *x, int chains, long draws, double limit, double *indicator, Sequences *s)
{
    for (long i = 0; i < chains * draws; i++) indicator[i] = x[i] <= limit;
    split(indicator, chains, draws, s);
    return effective_size(s);
}

// Effective size of the estimate of P(score <= limit), or of P(score > limit): what `from` holds is a normal score each.
static double effective_size_beyond(const Sequences *from, double limit, Sequences *indicator)
{
    for (long i = 0; i < from->m * from->n; i++) indicator->x[i] = limit < 0 ? from->x[i] <= limit : from->x[i] > limit;
    return effective_size(indicator);
}

double gm_mixing(const double *x, int chains, long draws)
{
    Sequences s = {gm_alloc((size_t)(chains * draws), sizeof(double)), 2 * chains, draws / 2},
              tail = {gm_alloc((size_t)(chains * draws), sizeof(double)), s.m, s.n};
    Ranked *ranked = gm_alloc((size_t)(chains * draws), sizeof *ranked);
    split(x, chains, draws, &s);
    rank_normalise(&s, ranked);
    // 5 % of the draws on each side
    const double bulk = effective_size(&s),
                 tails = sqrt(effective_size_beyond(&s, -1.645, &tail) * effective_size_beyond(&s, 1.645, &tail));
    free(ranked);
    free(s.x);
    free(tail.x);
    return bulk < tails ? bulk : tails;
}

GmSummary gm_summarise(const double *x, int chains, long draws)
{
    const long size = chains * draws;
    GmSummary out = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    bool finite = size > 0;
    for (long i = 0; i < size && finite; i++) finite = isfinite(x[i]);
    if (!finite) return out;
    double *sorted = gm_alloc((size_t)size, sizeof *sorted);
    memcpy(sorted, x, (size_t)size * sizeof *x);
    qsort(sorted, (size_t)size, sizeof *sorted, gm_ascending);
    out.mean = mean_of(x, size);
    out.sd = size > 1 ? sqrt(variance_of(x, size, out.mean)) : NAN;
    out.q5 = gm_quantile(sorted, size, 0.05);
    out.q50 = gm_quantile(sorted, size, 0.5);
    out.q95 = gm_quantile(sorted, size, 0.95);
    const double size_of_all = fmax(fabs(sorted[0]), fabs(sorted[size - 1]));
    const bool constant = sorted[size - 1] - sorted[0] <= 1e-12 * size_of_all;  // or rounding of one, as the diagonal of L * L'
    if (constant) {                                                             // the mean of equal numbers, without rounding
        out.mean = sorted[0] == sorted[size - 1] ? x[0] : out.q50;
        out.sd = 0;
    }
    if (draws >= 8 && !constant) {
        Sequences s = {gm_alloc((size_t)size, sizeof(double)), 2 * chains, draws / 2};
        const long used = s.m * s.n;
        double *work = gm_alloc((size_t)size, sizeof *work);
        Ranked *ranked = gm_alloc((size_t)used, sizeof *ranked);

        split(x, chains, draws, &s);
        out.mcse = out.sd / sqrt(effective_size(&s));
        memcpy(work, s.x, (size_t)used * sizeof *work);
        qsort(work, (size_t)used, sizeof *work, gm_ascending);
        const double median = gm_quantile(work, used, 0.5);
        rank_normalise(&s, ranked);
        out.ess_bulk = effective_size(&s);
        const double located = split_rhat(&s);

        split(x, chains, draws, &s);  // folded: sensitive to differences in scale
        for (long i = 0; i < used; i++) s.x[i] = fabs(s.x[i] - median);
        rank_normalise(&s, ranked);
        const double scaled = all_equal(s.x, used) ? 0 : split_rhat(&s);  // folding may leave a constant, as of a fair coin
        out.rhat = scaled > located ? scaled : located;

        const double low = effective_size_below(x, chains, draws, out.q5, work, &s);
        const double high = effective_size_below(x, chains, draws, out.q95, work, &s);
        out.ess_tail = low < high ? low : high;
        free(ranked);
        free(work);
        free(s.x);
    }
    free(sorted);
    return out;
}
