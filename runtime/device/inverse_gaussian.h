// inverse_gaussian.h -- the inverse Gaussian (Wald) distribution.
//
//   density     sqrt(shape / (2 pi x^3)) exp(-shape (x - mean)^2 / (2 mean^2 x)), x > 0
//   parameters  mean > 0, may be infinite (then x ~ shape / chi_square(1)); shape > 0
//   method      Michael, Schucany and Haas 1976; the smaller root is taken as the reciprocal of a sum of positive terms, which does
//               not cancel when mean / shape is huge
//   accuracy    rounding; draws stay within [2.2e-308, 1.8e308]
//   test        tests/runtime/continuous.c
#ifndef GM_INVERSE_GAUSSIAN_H
#define GM_INVERSE_GAUSSIAN_H

#include "rng.h"

DEVICE_CALL double inverse_gaussian_mean_shape(Stream *g, double mean, double shape)
{
    if (!(mean > 0) || !(shape > 0)) return NAN;
    const double z = normal_standard(g);
    const double r = 0.5 * z * z / shape, m = 1 / mean;
    const double x = 1 / (m + r + sqrt(r) * sqrt(r + 2 * m));
    const double ratio = x * m;  // x / mean, 0 for an infinite mean
    const double y = uniform_open(g) * (1 + ratio) <= 1 ? x : mean / ratio;
    return clamp(y, GM_TINY, GM_HUGE);
}

#endif
