// student.h -- Student's t, the Cauchy, and their halves.
//
//   density     t: Gamma((nu + 1)/2) / (Gamma(nu/2) sqrt(nu pi) sigma) (1 + ((x - mu) / sigma)^2 / nu)^(-(nu + 1) / 2); nu = 1 is the
//               Cauchy
//   parameters  nu > 0, mu real, sigma > 0; the halves have support [mu, infinity)
//   method      t: normal over the root of a gamma, in logs so that nu of 1e-3 does not overflow before it must; Cauchy: inversion
//   accuracy    rounding
//   test        tests/runtime/continuous.c
#ifndef GM_STUDENT_H
#define GM_STUDENT_H

#include "gamma.h"
#include "normal.h"

// t with mu = 0, sigma = 1.
DEVICE_CALL double student_t_standard(Stream *g, double nu)
{
    const double z = normal_standard(g);
    if (nu == INFINITY) return z;
    // precision ~ gamma(nu/2, nu/2)
    const double log_precision = log_gamma_standard(g, 0.5 * nu) - log(0.5 * nu);
    return clamp(z * exp(clamp(-0.5 * log_precision, -700, 700)), -GM_HUGE, GM_HUGE);
}

// Cauchy with mu = 0, sigma = 1. The tangent is taken of an angle in (0, pi/2), from either end: both tails have full digits.
DEVICE_CALL double cauchy_standard(Stream *g)
{
    const double u = uniform_open(g);
    return u < 0.5 ? -1 / tan(GM_PI * u) : 1 / tan(GM_PI * (1 - u));
}

DEVICE_CALL double student_t(Stream *g, double nu, double mu, double sigma) { return mu + sigma * student_t_standard(g, nu); }
DEVICE_CALL double cauchy(Stream *g, double mu, double sigma) { return mu + sigma * cauchy_standard(g); }
DEVICE_CALL double half_student_t(Stream *g, double nu, double mu, double sigma) { return mu + sigma * fabs(student_t_standard(g, nu)); }
DEVICE_CALL double half_cauchy(Stream *g, double mu, double sigma) { return mu + sigma * fabs(cauchy_standard(g)); }

#endif
