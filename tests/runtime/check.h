// check.h -- what the sampler tests share: draws, order statistics, moments, and one printed line per check.
//
// Each case draws n = DRAWS values, each from a stream of its own as in an emitted program. The seed is fixed, so a false alarm is a
// matter of once and for all; its probability is 2e-9 for a normal statistic (bound 6), 7e-10 for sqrt(n) times the
// Kolmogorov-Smirnov distance (bound 3.3: 2 exp(-2 3.3^2)), 1e-9 for a chi-square, which is made a normal score.
#ifndef CHECK_H
#define CHECK_H

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../runtime/device/rng.h"

#ifndef DRAWS
#define DRAWS    400000
#endif
#define SEED     20240607
#define BOUND_Z  6.0
#define BOUND_KS 3.3

static int      failures;
__attribute__((unused)) static uint32_t next_variable = 1;      // each case has streams of its own

// Prints the line; fails if the statistic is above the bound or NaN.
static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-60s %-9s %10.3g  bound %.3g\n", ok ? "ok  " : "FAIL", what, statistic, value, bound);
}

// |got - want| relative to max(|want|, floor).
__attribute__((unused)) static void check_close(const char *what, double got, double want, double floor, double bound)
{
    const double scale = fabs(want) > floor ? fabs(want) : floor;
    check(what, "error", got == want ? 0 : fabs(got - want) / scale, bound);
}

__attribute__((unused)) static double draws[DRAWS];

// Sorts `draws` by their bits, 11 at a time: five times as fast as qsort, and sorting is most of a test's time. Doubles order as
// integers once negative ones are inverted and positive ones have their sign bit set. NaN go to the ends.
__attribute__((unused)) static void sort_draws(void)
{
    static uint64_t from[DRAWS], to[DRAWS];
    for (long i = 0; i < DRAWS; i++) {
        uint64_t bits;
        memcpy(&bits, &draws[i], sizeof bits);
        from[i] = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    }
    uint64_t *a = from, *b = to;
    for (int shift = 0; shift < 64; shift += 11) {
        static long start[2049];
        memset(start, 0, sizeof start);
        for (long i = 0; i < DRAWS; i++) start[(a[i] >> shift & 2047) + 1]++;
        for (int k = 0; k < 2048; k++) start[k + 1] += start[k];
        for (long i = 0; i < DRAWS; i++) b[start[a[i] >> shift & 2047]++] = a[i];
        uint64_t *swap = a;
        a = b;
        b = swap;
    }
    for (long i = 0; i < DRAWS; i++) {
        const uint64_t bits = a[i] >> 63 ? a[i] & ~((uint64_t)1 << 63) : ~a[i];
        memcpy(&draws[i], &bits, sizeof bits);
    }
}

// Fills `draws` with DRAWS values of `expr`, which uses Stream *g and may use long i.
#define DRAW(expr)                                                                                       \
    do {                                                                                                 \
        const uint32_t variable_ = next_variable++;                                                      \
        for (long i = 0; i < DRAWS; i++) {                                                               \
            Sweep  at_ = { SEED, 0, 0 };                                                                 \
            Stream stream_ = stream(at_, variable_, (uint64_t)i), *g = &stream_;                         \
            draws[i] = (double)(expr);                                                                   \
        }                                                                                                \
    } while (0)

// Smallest and largest draw within [lo, hi], and no NaN.
__attribute__((unused)) static void check_range(const char *what, double lo, double hi)
{
    long outside = 0;
    for (long i = 0; i < DRAWS; i++) outside += !(draws[i] >= lo && draws[i] <= hi);
    check(what, "outside", (double)outside, 0);
}

// Mean and variance of the draws against known ones. The standard error of the variance comes from the sample's fourth moment.
__attribute__((unused)) static void check_moments(const char *what, double mean, double variance)
{
    double sum = 0, second = 0, fourth = 0;
    for (long i = 0; i < DRAWS; i++) {
        const double d = draws[i] - mean, dd = d * d;
        sum += d;
        second += dd;
        fourth += dd * dd;
    }
    sum /= DRAWS;
    second /= DRAWS;
    fourth /= DRAWS;
    check(what, "z mean", fabs(sum) / sqrt(variance / DRAWS), BOUND_Z);
    check(what, "z var", fabs(second - variance) / sqrt((fourth - second * second) / DRAWS), BOUND_Z);
}

// The mean of the draws alone, where a variance is infinite or not known: standard error from the sample.
__attribute__((unused)) static void check_mean(const char *what, double mean)
{
    double sum = 0, second = 0;
    for (long i = 0; i < DRAWS; i++) {
        const double d = draws[i] - mean;
        sum += d;
        second += d * d;
    }
    sum /= DRAWS;
    check(what, "z mean", fabs(sum) / sqrt((second / DRAWS - sum * sum) / DRAWS), BOUND_Z);
}

// Kolmogorov-Smirnov distance of the sorted draws from the distribution function `cdf`, an expression in x, taken at every 200th order
// statistic: never above the full distance, so the false alarm rate holds, and below it by at most 1e-4 in probability, a tenth of the
// bound.
#define CHECK_KS(what, cdf)                                                                              \
    do {                                                                                                 \
        sort_draws();                                                                                    \
        double distance_ = 0;                                                                            \
        for (long i_ = 100; i_ < DRAWS; i_ += 200) {                                                     \
            const double x = draws[i_], p_ = (cdf);                                                      \
            const double above_ = p_ - (double)(i_ + 1) / DRAWS, below_ = (double)i_ / DRAWS - p_;       \
            const double gap_ = above_ > below_ ? above_ : below_;                                       \
            if (gap_ > distance_ || gap_ != gap_) distance_ = gap_;                                      \
            if (distance_ != distance_) break;                                                           \
        }                                                                                                \
        check(what, "KS", distance_ * sqrt(DRAWS), BOUND_KS);                                            \
    } while (0)

// One continuous case: draws, distribution function.
#define CASE_KS(expr, cdf)                                                                               \
    do {                                                                                                 \
        DRAW(expr);                                                                                      \
        CHECK_KS(#expr, cdf);                                                                            \
    } while (0)

// Chi-square of counts observed against expected, cells with fewer than 20 expected joined to the next. Reported as the Wilson-Hilferty
// score, a standard normal nearly: held to BOUND_Z.
__attribute__((unused)) static void check_counts(const char *what, const double *observed, const double *expected, long cells)
{
    double chi2 = 0, o = 0, e = 0;
    long   df = -1;
    for (long k = 0; k < cells; k++) {
        o += observed[k];
        e += expected[k];
        double rest = 0;
        for (long j = k + 1; j < cells && rest < 20; j++) rest += expected[j];
        if (e < 20 || (rest < 20 && k + 1 < cells)) continue;
        chi2 += (o - e) * (o - e) / e;
        df++;
        o = e = 0;
    }
    if (df < 1) df = 1;
    const double v = 2.0 / (9 * (double)df), score = (cbrt(chi2 / (double)df) - (1 - v)) / sqrt(v);
    check(what, "chi2 z", score, BOUND_Z);
}

static int finish(void)
{
    printf("%s: %d failed\n", failures ? "FAILED" : "passed", failures);
    return failures > 0;
}

#endif
