// polya_gamma_law.h -- the law of the Polya-Gamma distribution, by other means than the samplers use.
#ifndef POLYA_GAMMA_LAW_H
#define POLYA_GAMMA_LAW_H

#include <complex.h>

// E exp(-s W) for W ~ PG(b, c), complex s: (cosh(c/2) / cosh(sqrt(c^2/4 + s/2)))^b (Polson, Scott and Windle 2013, section 2).
static double complex transform(double complex s, double b, double c)
{
    const double complex z = csqrt(0.25 * c * c + 0.5 * s);
    const double h = 0.5 * c;
    return cexp(b * (h + log1p(exp(-2 * h)) - z - clog(1 + cexp(-2 * z))));
}

// P(W <= x) by numerical inversion of transform(s) / s: the Euler method of Abate and Whitt 1995, error about 1e-8. It shares nothing
// with the sampler, which never inverts a transform.
static double polya_gamma_P(double x, double b, double c)
{
    enum { FIRST = 30, AVERAGED = 12 };
    const double A = 18.4;
    double sum = 0.5 * creal(transform(A / (2 * x), b, c) / (A / (2 * x))), result = 0, weight = pow(0.5, AVERAGED);
    for (int k = 1; k <= FIRST + AVERAGED; k++) {
        const double complex s = (A + 2 * GM_PI * k * I) / (2 * x);
        sum += (k & 1 ? -1 : 1) * creal(transform(s, b, c) / s);
        if (k >= FIRST) {                                // binomial average of the last partial sums
            result += weight * sum;
            weight *= (double)(AVERAGED - (k - FIRST)) / (k - FIRST + 1);
        }
    }
    return result * exp(0.5 * A) / x;
}

static double polya_gamma_law_mean(double b, double c) { return c == 0 ? b / 4 : b * tanh(c / 2) / (2 * c); }
static double polya_gamma_law_variance(double b, double c)
{
    if (c == 0) return b / 24;
    return c > 100 ? b / (2 * c * c * c) : b * (sinh(c) - c) / (4 * c * c * c * cosh(c / 2) * cosh(c / 2));
}

#endif
