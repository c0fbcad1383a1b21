// multivariate.h -- vectors and matrices: normal, t, Wishart and its inverse, correlation matrices.
//
//   densities   as in Stan's reference. Matrices are n by n, row-major, symmetric ones full; L is lower triangular.
//   parameters  df > n - 1, matrices positive definite, eta > 0
//   method      normal: factor and triangular product or solve, never an inverse; Wishart: Bartlett 1933, carried through triangular
//               solves, so that a scale may be given as itself or as its inverse; LKJ: the onion of Lewandowski, Kurowicka and Joe 2009
//   errors      where a matrix has to be factored the function returns 0, or the 1-based pivot that was not positive
//   accuracy    rounding times the condition number of the factor
//   test        tests/runtime/multivariate.c
#ifndef GM_MULTIVARIATE_H
#define GM_MULTIVARIATE_H

#include "chol.h"
#include "gamma.h"
#include "beta.h"

// ---- vectors ----

// out = mu + L e. out may be mu.
DEVICE_CALL void multi_normal_mean_cholesky(Stream *g, long n, const double *mu, const double *L, double *out)
{
    // Row i of L e needs e_0..e_i, which are not stored: each e_k is added to all rows i >= k.
    for (long i = 0; i < n; i++) out[i] = mu[i];
    for (long k = 0; k < n; k++) {
        const double e = normal_standard(g);
        for (long i = k; i < n; i++) out[i] += L[i * n + k] * e;
    }
}

// work: n * n.
DEVICE_CALL long multi_normal_mean_covariance(Stream *g, long n, const double *mu, const double *Sigma, double *out, double *work)
{
    for (long i = 0; i < n * n; i++) work[i] = Sigma[i];
    const long failed = chol_factor(work, n);
    if (!failed) multi_normal_mean_cholesky(g, n, mu, work, out);
    return failed;
}

// Precision Omega. work: n * n + n.
DEVICE_CALL long multi_normal_mean_precision(Stream *g, long n, const double *mu, const double *Omega, double *out, double *work)
{
    double *e = work + n * n;
    for (long i = 0; i < n * n; i++) work[i] = Omega[i];
    const long failed = chol_factor(work, n);
    if (failed) return failed;
    for (long i = 0; i < n; i++) e[i] = normal_standard(g);
    chol_solve_upper(work, n, e);
    for (long i = 0; i < n; i++) out[i] = mu[i] + e[i];
    return 0;
}

// Student t: location mu, scale matrix Sigma. work: n * n.
DEVICE_CALL long multi_student_t(Stream *g, long n, double nu, const double *mu, const double *Sigma, double *out, double *work)
{
    const double root = exp(0.5 * (log(0.5 * nu) - log_gamma_standard(g, 0.5 * nu)));
    for (long i = 0; i < n * n; i++) work[i] = Sigma[i];
    const long failed = chol_factor(work, n);
    if (failed) return failed;
    for (long i = 0; i < n * n; i++) work[i] *= root;
    multi_normal_mean_cholesky(g, n, mu, work, out);
    return 0;
}

// ---- Wishart ----

// Bartlett's factor A of a Wishart(df, I) draw A A': chi on the diagonal, normals below.
DEVICE_CALL void bartlett(Stream *g, double df, long n, double *A)
{
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) A[i * n + j] = normal_standard(g);
        A[i * n + i] = sqrt(2.0) * exp(0.5 * log_gamma_standard(g, 0.5 * (df - (double)i)));
        for (long j = i + 1; j < n; j++) A[i * n + j] = 0;
    }
}

// Solves L' X = A for all n columns of A, in place.
DEVICE_CALL void solve_upper_columns(const double *L, long n, double *A)
{
    for (long i = n - 1; i >= 0; i--)
        for (long j = 0; j < n; j++) {
            double sum = A[i * n + j];
            for (long k = i + 1; k < n; k++) sum -= L[k * n + i] * A[k * n + j];
            A[i * n + j] = sum / L[i * n + i];
        }
}

// out = M M' of a full M.
DEVICE_CALL void times_transpose(const double *M, long n, double *out)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = 0;
            for (long k = 0; k < n; k++) sum += M[i * n + k] * M[j * n + k];
            out[i * n + j] = out[j * n + i] = sum;
        }
}

// Wishart with scale S = L L'. work: 2 n * n.
DEVICE_CALL void wishart_df_scale_cholesky(Stream *g, double df, const double *L, long n, double *out, double *work)
{
    double *A = work, *M = work + n * n;
    bartlett(g, df, n, A);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long k = j; k <= i; k++) sum += L[i * n + k] * A[k * n + j];
            M[i * n + j] = sum;
        }
    lower_times_transpose(M, n, out);
}

// Wishart with scale S, mean df S. work: 3 n * n.
DEVICE_CALL long wishart(Stream *g, double df, const double *S, long n, double *out, double *work)
{
    double *L = work + 2 * n * n;
    for (long i = 0; i < n * n; i++) L[i] = S[i];
    const long failed = chol_factor(L, n);
    if (!failed) wishart_df_scale_cholesky(g, df, L, n, out, work);
    return failed;
}

// Wishart whose inverse scale is given: with S^-1 = C C', the draw is (C'^-1 A)(C'^-1 A)'. work: 2 n * n.
DEVICE_CALL long wishart_df_inverse_scale(Stream *g, double df, const double *Sinv, long n, double *out, double *work)
{
    double *C = work, *A = work + n * n;
    for (long i = 0; i < n * n; i++) C[i] = Sinv[i];
    const long failed = chol_factor(C, n);
    if (failed) return failed;
    bartlett(g, df, n, A);
    solve_upper_columns(C, n, A);
    times_transpose(A, n, out);
    return 0;
}

// Inverse Wishart with scale S, mean S / (df - n - 1): with S = C C' and W = A A' ~ Wishart(df, I), C W^-1 C' = M' M where A M = C'.
// work: 2 n * n.
DEVICE_CALL long inv_wishart_df_scale(Stream *g, double df, const double *S, long n, double *out, double *work)
{
    double *C = work, *A = work + n * n;
    for (long i = 0; i < n * n; i++) C[i] = S[i];
    const long failed = chol_factor(C, n);
    if (failed) return failed;
    bartlett(g, df, n, A);
    for (long j = 0; j < n; j++) chol_solve_lower(A, n, C + j * n);  // row j of C is column j of C'; becomes column j of M
    times_transpose(C, n, out);
    return 0;
}
DEVICE_CALL long inv_wishart(Stream *g, double df, const double *S, long n, double *out, double *work)
{
    return inv_wishart_df_scale(g, df, S, n, out, work);
}

// |X|^d exp(tr(B X)), B negative definite: df = 2 d + n + 1, inverse scale -2 B. work: 3 n * n.
DEVICE_CALL long wishart_natural(Stream *g, double d, const double *B, long n, double *out, double *work)
{
    double *Sinv = work + 2 * n * n;
    for (long i = 0; i < n * n; i++) Sinv[i] = -2 * B[i];
    return wishart_df_inverse_scale(g, 2 * d + (double)n + 1, Sinv, n, out, work);
}

// |X|^d exp(tr(B X^-1)), B negative definite: df = -2 d - n - 1, scale -2 B. work: 3 n * n.
DEVICE_CALL long inv_wishart_natural(Stream *g, double d, const double *B, long n, double *out, double *work)
{
    double *S = work + 2 * n * n;
    for (long i = 0; i < n * n; i++) S[i] = -2 * B[i];
    return inv_wishart_df_scale(g, -2 * d - (double)n - 1, S, n, out, work);
}

// ---- correlation matrices ----

// The Cholesky factor of a correlation matrix with density proportional to |R|^(eta - 1), into out. Row k is a random direction
// whose squared length is beta(k / 2, eta + (n - 1 - k) / 2), k = 1..n-1, completed to length 1.
DEVICE_CALL void lkj_corr_cholesky(Stream *g, double eta, long n, double *out)
{
    for (long k = 0; k < n; k++) {
        double *row = out + k * n;
        double length = 0;
        for (long j = k + 1; j < n; j++) row[j] = 0;
        row[k] = 1;
        if (k == 0) continue;
        for (long j = 0; j < k; j++) {
            row[j] = normal_standard(g);
            length += row[j] * row[j];
        }
        const double y = beta_a_b(g, 0.5 * (double)k, eta + 0.5 * (double)(n - 1 - k)), scale = sqrt(y / length);
        for (long j = 0; j < k; j++) row[j] *= scale;
        row[k] = sqrt(1 - y);
    }
}

// The correlation matrix itself. work: n * n.
DEVICE_CALL void lkj_corr(Stream *g, double eta, long n, double *out, double *work)
{
    lkj_corr_cholesky(g, eta, n, work);
    lower_times_transpose(work, n, out);
    for (long i = 0; i < n; i++) out[i * n + i] = 1;
}

#endif
