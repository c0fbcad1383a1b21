// dirichlet.h -- points of the simplex.
//
//   density     Gamma(sum alpha) prod x_k^(alpha_k - 1) / Gamma(alpha_k), x_k > 0, sum x = 1; natural: prod x_k^a_k
//   parameters  alpha_k > 0 (a_k > -1), n >= 1 of them
//   method      normalised gamma draws, kept as logs until the largest has been subtracted: tiny alpha do not underflow to 0/0
//   accuracy    rounding; no x_k is below 2.2e-308, so that log x_k is finite; the logarithms themselves are exact, and kept where they are
//               asked for
//   test        tests/runtime/multivariate.c
#ifndef GM_DIRICHLET_H
#define GM_DIRICHLET_H

#include "gamma.h"
#include "beta.h"

// What is no number stays none: a fault says so.
DEVICE double at_least_tiny(double x) { return x <= GM_TINY ? GM_TINY : x; }

// Replaces logs of gamma draws by the normalised point, in place; logs: of its elements, also of those that round to 0, or NULL.
DEVICE_CALL void normalise_logs(double *x, long n, double *logs)
{
    double top = x[0], sum = 0;
    for (long k = 1; k < n; k++)
        if (x[k] > top) top = x[k];
    for (long k = 0; k < n && logs; k++) logs[k] = x[k] - top;
    for (long k = 0; k < n; k++) sum += x[k] = exp(x[k] - top);
    for (long k = 0; k < n && logs; k++) logs[k] -= log(sum);
    for (long k = 0; k < n; k++) x[k] = at_least_tiny(x[k] / sum);
}

// Points with these alpha. logs: their logarithms, also of elements that round to 0, or NULL. NaN: some alpha is not positive.
DEVICE_CALL void dirichlet_logs(Stream *g, const double *alpha, long n, double *out, double *logs)
{
    for (long k = 0; k < n; k++) out[k] = log_gamma_standard(g, alpha[k]);
    normalise_logs(out, n, logs);
}

DEVICE_CALL void dirichlet(Stream *g, const double *alpha, long n, double *out) { dirichlet_logs(g, alpha, n, out, NULL); }

// The same by natural parameters, alpha - 1.
DEVICE_CALL void dirichlet_natural(Stream *g, const double *a, long n, double *out)
{
    for (long k = 0; k < n; k++) out[k] = log_gamma_standard(g, a[k] + 1);
    normalise_logs(out, n, NULL);
}

// A simplex of at most so many components has one stream; each component of a longer one its own, so that lanes of a GPU can share them.
enum { GM_SHORT_SIMPLEX = 32 };

// Simplex number `row` of an array of them.
DEVICE_CALL void dirichlet_row(Sweep at, uint32_t variable, long row, const double *alpha, long n, double *out, double *logs)
{
    if (n <= GM_SHORT_SIMPLEX) {
        Stream g = stream(at, variable, (uint64_t)row);
        dirichlet_logs(&g, alpha, n, out, logs);
        return;
    }
    for (long k = 0; k < n; k++) {
        Stream g = stream(at, variable, (uint64_t)(row * n + k));
        out[k] = log_gamma_standard(&g, alpha[k]);
    }
    normalise_logs(out, n, logs);
}

// Weights of n components from n - 1 fractions v in (0, 1): out_k = v_k prod over j < k of (1 - v_j), the last takes the rest.
DEVICE_CALL void stick_breaking(const double *v, long n, double *out)
{
    double rest = 1;
    for (long k = 0; k + 1 < n; k++) {
        out[k] = v[k] * rest;
        rest *= 1 - v[k];
    }
    out[n - 1] = rest;
}

#endif
