// whole.h -- vectors and matrices as the library's `sample` names them: the arguments, the size n, the place; each allocates what it works
// with.
//
//   errors      not 0 if a matrix is not symmetric, not positive definite or no Cholesky factor, or if an argument out of range makes an
//               element that is not finite
//   method      dirichlet.h, multivariate.h
//   test        tests/runtime/multivariate.c
#ifndef GM_WHOLE_H
#define GM_WHOLE_H

#include "dirichlet.h"
#include "multivariate.h"

DEVICE long not_all_finite(const double *x, long n)
{
    for (long i = 0; i < n; i++)
        if (!is_finite(x[i])) return i + 1;
    return 0;
}

DEVICE_CALL long sample_dirichlet(Stream *g, const double *alpha, long n, double *out)
{
    dirichlet(g, alpha, n, out);
    return not_all_finite(out, n);
}

DEVICE_CALL long sample_multi_normal_cholesky(Stream *g, const double *mu, const double *L, long n, double *out)
{
    for (long i = 0; i < n; i++) {
        if (!(L[i * n + i] >= 0)) return i + 1;
        for (long k = i + 1; k < n; k++)
            if (L[i * n + k] != 0) return i + 1;
    }
    for (long k = 0; k < n; k++) out[k] = normal_standard(g);
    for (long i = n - 1; i >= 0; i--) {  // row by row, from the last one: those before it read what still stands in out
        const double *row = L + i * n;
        double sum = 0;
        for (long k = 0; k <= i; k++) sum += row[k] * out[k];
        out[i] = mu[i] + sum;
    }
    return not_all_finite(out, n);
}

// A stationary autoregression of order 1 with mean 0; sigma is the standard deviation of its innovations.
DEVICE_CALL long sample_ar1(Stream *g, double phi, double sigma, long n, double *out)
{
    if (!(sigma >= 0)) return 1;
    double sd = sigma / sqrt((1 - phi) * (1 + phi)), before = 0;
    for (long t = 0; t < n; t++, sd = sigma) before = out[t] = phi * before + sd * normal_standard(g);
    return not_all_finite(out, n);
}

// draw(work), an expression that gives 0 if it succeeds, with room for size numbers.
#define GM_SAMPLE_WHOLE(name, parameters, size, count, draw)              \
    DEVICE_CALL long name parameters                                      \
    {                                                                     \
        double *work = (double *)malloc(sizeof(double) * (size_t)(size)); \
        const long failed = draw;                                         \
        free(work);                                                       \
        return failed ? failed : not_all_finite(out, count);              \
    }

GM_SAMPLE_WHOLE(sample_multi_normal, (Stream * g, const double *mu, const double *Sigma, long n, double *out), n *n + 1, n,
                !matrix_is_symmetric(Sigma, n) || multi_normal_mean_covariance(g, n, mu, Sigma, out, work))
GM_SAMPLE_WHOLE(sample_multi_normal_prec, (Stream * g, const double *mu, const double *Omega, long n, double *out), n *n + n + 1, n,
                !matrix_is_symmetric(Omega, n) || multi_normal_mean_precision(g, n, mu, Omega, out, work))
GM_SAMPLE_WHOLE(sample_multi_student_t, (Stream * g, double nu, const double *mu, const double *Sigma, long n, double *out), n *n + 1, n,
                !matrix_is_symmetric(Sigma, n) || multi_student_t(g, n, nu, mu, Sigma, out, work))
GM_SAMPLE_WHOLE(sample_wishart, (Stream * g, double nu, const double *S, long n, double *out), 3 * n * n + 1, n *n,
                !matrix_is_symmetric(S, n) || wishart(g, nu, S, n, out, work))
GM_SAMPLE_WHOLE(sample_inv_wishart, (Stream * g, double nu, const double *S, long n, double *out), 2 * n * n + 1, n *n,
                !matrix_is_symmetric(S, n) || inv_wishart(g, nu, S, n, out, work))
GM_SAMPLE_WHOLE(sample_lkj_corr, (Stream * g, double eta, long n, double *out), n *n + 1, n *n, (lkj_corr(g, eta, n, out, work), 0))

DEVICE_CALL long sample_lkj_corr_cholesky(Stream *g, double eta, long n, double *out)
{
    lkj_corr_cholesky(g, eta, n, out);
    return not_all_finite(out, n * n);
}

#endif
