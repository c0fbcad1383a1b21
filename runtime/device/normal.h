// normal.h -- the normal distribution, by mean and sd and by natural parameters.
//
//   density     exp(-((x - mu) / sd)^2 / 2) / (sd sqrt(2 pi)); natural: exp(h x + q x^2), q < 0
//   parameters  mu real, sd >= 0; h real, q < 0: mean -h / (2 q), variance -1 / (2 q)
//   method      rejection from cells of equal area (rng.h), 64 random bits a draw nearly always
//   accuracy    rounding; the tails have no bound
//   test        tests/runtime/continuous.c
#ifndef GM_NORMAL_H
#define GM_NORMAL_H

#include "rng.h"

DEVICE double normal_mean_sd(Stream *g, double mu, double sd) { return mu + sd * normal_standard(g); }

// NaN if q >= 0: then the density has no finite integral.
DEVICE double normal_natural(Stream *g, double h, double q)
{
    if (!(q < 0)) return NAN;
    return -0.5 * h / q + normal_standard(g) / sqrt(-2 * q);
}

// By mean and precision. The ratio of any of these, for --check, is log q(x) - log q(old) as a sum of terms.
#define NORMAL(mean, precision) normal, mean, precision
#define normal_ratio_terms(x, old, mean, precision) \
    (precision) * (mean) * ((x) - (old)), -0.5 * (precision) * (((x) - (old)) * ((x) + (old)))
DEVICE double normal_drawn(Stream *g, double mean, double precision)
{
    return precision > 0 ? mean + normal_standard(g) / sqrt(precision) : NAN;
}

DEVICE double lognormal(Stream *g, double mu, double sigma) { return clamp(exp(normal_mean_sd(g, mu, sigma)), GM_TINY, GM_HUGE); }

DEVICE double half_normal(Stream *g, double mu, double sigma) { return mu + sigma * fabs(normal_standard(g)); }

#endif
