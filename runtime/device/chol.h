// chol.h -- small dense linear algebra for one thread: Cholesky factors and what is drawn with them.
//
// Matrices are n by n, row-major, double. A factor L is lower triangular with A = L L'; functions that take one read the lower
// triangle only. Serial and unblocked: meant for n up to some dozens, one matrix per element of a plate; the large systems of a
// model go to the linear algebra of the backend.
// Accuracy: backward stable (Higham 2002, chapter 10). Test: tests/runtime/multivariate.c
#ifndef GM_CHOL_H
#define GM_CHOL_H

#include "rng.h"

// The factor of A in place; the strict upper triangle is set to 0. Reads the lower triangle. 0, or the 1-based pivot that is not positive.
DEVICE_CALL long chol_factor(double *A, long n)
{
    for (long j = 0; j < n; j++) {
        const double diagonal = A[j * n + j];
        double pivot = diagonal;
        for (long k = 0; k < j; k++) pivot -= A[j * n + k] * A[j * n + k];
        if (!(pivot > GM_PIVOT_LOST * diagonal) || !is_finite(pivot)) return j + 1;
        const double root = sqrt(pivot);
        A[j * n + j] = root;
        for (long i = j + 1; i < n; i++) {
            double sum = A[i * n + j];
            for (long k = 0; k < j; k++) sum -= A[i * n + k] * A[j * n + k];
            A[i * n + j] = sum / root;
            A[j * n + i] = 0;
        }
    }
    return 0;
}

// The same where a density is to be no number if there is no factor.
DEVICE_CALL void chol_in_place(long n, double *A)
{
    if (!chol_factor(A, n)) return;
    for (long i = 0; i < n * n; i++) A[i] = NAN;
}

// Whether a function does not depend on a matrix, as one of no rows does not: its derivatives are 0, also where the matrix has no factor.
DEVICE_CALL int has_no_slope(long n, const double *slope)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            if (slope[i * n + j] != 0 || slope[j * n + i] != 0) return 0;
    return 1;
}

// The derivatives of a function by the elements of L, in the lower triangle of slope, become those by the lower triangle of A, of which L
// is the factor: an element off the diagonal stands for both of its places (Murray 2016, "Differentiation of the Cholesky decomposition",
// arXiv:1602.07527, section 5.2). The upper triangle of slope is not looked at. Accuracy: that of solving with L. Test:
// tests/runtime/multivariate.c
DEVICE_CALL void chol_adjoint(long n, const double *L, double *slope)
{
    if (has_no_slope(n, slope)) return;
    for (long j = n - 1; j >= 0; j--) {
        const double *of_j = L + j * n;
        const double root = of_j[j];
        double *by_j = slope + j * n;
        for (long i = n - 1; i > j; i--) {
            const double *of_i = L + i * n;
            double *by_i = slope + i * n;
            const double by = by_i[j] / root;
            by_i[j] = by;
            by_j[j] -= by * of_i[j];
            for (long k = 0; k < j; k++) {
                by_i[k] -= by * of_j[k];
                by_j[k] -= by * of_i[k];
            }
        }
        by_j[j] /= 2 * root;
        for (long k = 0; k < j; k++) by_j[k] -= 2 * by_j[j] * of_j[k];
    }
}

// x with L x = b, in place of b.
DEVICE_CALL void chol_solve_lower(const double *L, long n, double *b)
{
    for (long i = 0; i < n; i++) {
        double sum = b[i];
        for (long k = 0; k < i; k++) sum -= L[i * n + k] * b[k];
        b[i] = sum / L[i * n + i];
    }
}

// x with L' x = b, in place of b.
DEVICE_CALL void chol_solve_upper(const double *L, long n, double *b)
{
    for (long i = n - 1; i >= 0; i--) {
        double sum = b[i];
        for (long k = i + 1; k < n; k++) sum -= L[k * n + i] * b[k];
        b[i] = sum / L[i * n + i];
    }
}

// log |A| of A = L L'.
DEVICE_CALL double chol_log_determinant(const double *L, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += log(L[i * n + i]);
    return 2 * sum;
}

// out = M M' of a lower triangular M; out may not be M.
DEVICE_CALL void lower_times_transpose(const double *M, long n, double *out)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = 0;
            for (long k = 0; k <= j; k++) sum += M[i * n + k] * M[j * n + k];
            out[i * n + j] = out[j * n + i] = sum;
        }
}

// Whether A is symmetric but for rounding: an element differs from its mirror image by at most 1e-8 of the largest one. Elements that are
// NaN do not count.
DEVICE_CALL int matrix_is_symmetric(const double *A, long n)
{
    double most = 0, apart = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            most = fmax(most, fmax(fabs(A[i * n + j]), fabs(A[j * n + i])));
            apart = fmax(apart, fabs(A[i * n + j] - A[j * n + i]));
        }
    return !(apart > 1e-8 * most);
}

// Any square A, of which nothing stays: log |det A|, and unless out is NULL the inverse there (Gauss and Jordan, rows exchanged for the
// largest pivot; Higham 2002, section 14.4). *sign is that of the determinant. -infinity if A is singular, and the inverse NaN. Accuracy:
// rounding times the condition number.
DEVICE_CALL double gauss_jordan(double *A, long n, double *out, double *sign)
{
    double log_det = 0;
    *sign = 1;
    for (long i = 0; out && i < n * n; i++) out[i] = i / n == i % n;
    for (long k = 0; k < n; k++) {
        long p = k;
        for (long i = k + 1; i < n; i++)
            if (fabs(A[i * n + k]) > fabs(A[p * n + k])) p = i;
        const double pivot = A[p * n + k];
        if (!(fabs(pivot) > 0) || !is_finite(pivot)) {
            for (long i = 0; out && i < n * n; i++) out[i] = NAN;
            return pivot == 0 ? -INFINITY : NAN;
        }
        if ((p != k) != (pivot < 0)) *sign = -*sign;
        log_det += log(fabs(pivot));
        for (long j = 0; j < n; j++) {
            const double a = A[p * n + j];
            A[p * n + j] = A[k * n + j];
            A[k * n + j] = a / pivot;
            if (!out) continue;
            const double b = out[p * n + j];
            out[p * n + j] = out[k * n + j];
            out[k * n + j] = b / pivot;
        }
        for (long i = out ? 0 : k + 1; i < n; i++) {
            const double times = A[i * n + k];
            if (i == k || times == 0) continue;
            for (long j = k; j < n; j++) A[i * n + j] -= times * A[k * n + j];
            for (long j = 0; out && j < n; j++) out[i * n + j] -= times * out[k * n + j];
        }
    }
    return log_det;
}

// The inverse of a positive definite A into out, by the inverse of the factor (Higham 2002, section 14.3); A becomes its factor. 0, or the
// failing pivot.
DEVICE_CALL long spd_inverse(double *A, long n, double *out)
{
    const long failed = chol_factor(A, n);
    if (failed) return failed;
    for (long i = 0; i < n; i++) {  // M = L^-1, row by row, in the lower triangle of out
        double *row = out + i * n;
        const double root = 1 / A[i * n + i];
        for (long j = 0; j < i; j++) row[j] = 0;
        for (long k = 0; k < i; k++) {
            const double l = A[i * n + k] * root;
            for (long j = 0; j <= k; j++) row[j] -= l * out[k * n + j];
        }
        row[i] = root;
    }
    for (long i = 0; i < n; i++) {  // M' M, whose row i takes rows of M from i on
        double *row = out + i * n;
        const double diagonal = row[i];
        for (long j = 0; j <= i; j++) row[j] *= diagonal;
        for (long k = i + 1; k < n; k++) {
            const double m = out[k * n + i];
            for (long j = 0; j <= i; j++) row[j] += m * out[k * n + j];
        }
        for (long j = 0; j < i; j++) out[j * n + i] = row[j];
    }
    return 0;
}

// The inverse of a positive definite A, and log |A|; A becomes its factor. All are NaN where A is not positive definite.
DEVICE_CALL void inverse_and_log_det(long n, double *A, double *out, double *log_det)
{
    const long failed = spd_inverse(A, n, out);
    *log_det = failed ? NAN : chol_log_determinant(A, n);
    for (long i = 0; i < n * n && failed; i++) out[i] = NAN;
}

// These two of a whole matrix, which may not be symmetric: NaN then.
DEVICE_CALL void chol_if_symmetric(long n, double *A)
{
    if (!matrix_is_symmetric(A, n)) A[0] = NAN;
    chol_in_place(n, A);
}

DEVICE_CALL void inverse_and_log_det_if_symmetric(long n, double *A, double *out, double *log_det)
{
    if (!matrix_is_symmetric(A, n)) A[0] = NAN;
    inverse_and_log_det(n, A, out, log_det);
}

// Whether the symmetric matrix B is c v v' but for rounding: that of the derivatives of y' P y is. Column k, of the largest element on the
// diagonal, goes into v, and c is 1 / B[k][k].
DEVICE_CALL int is_outer_product(long n, const double *B, double *v, double *c)
{
    long k = 0;
    for (long i = 1; i < n; i++)
        if (fabs(B[i * n + i]) > fabs(B[k * n + k])) k = i;
    if (!(fabs(B[k * n + k]) > 0)) return 0;
    *c = 1 / B[k * n + k];
    for (long i = 0; i < n; i++) v[i] = B[k * n + i];
    for (long i = 0; i < n; i++) {
        const double t = *c * v[i];
        long apart = 0;
        for (long j = 0; j <= i; j++) apart += !(fabs(B[i * n + j] - t * v[j]) <= 1e-15 * fabs(t * v[j]));
        if (apart) return 0;
    }
    return 1;
}

// The derivatives of a function by the elements of P = A^-1, in slope, and by log |A| become those by the lower triangle of A, an element
// off the diagonal standing for both of its places: with B = slope + slope', dA = -P B P + 2 by_log_det P there, half of it on the
// diagonal. The upper triangle of slope is 0 then. Where B = c v v', P B P = c (P v)(P v)', in n^2 operations. work: n by n.
DEVICE_CALL void inverse_adjoint(long n, const double *P, double by_log_det, double *slope, double *work)
{
    if (by_log_det == 0 && has_no_slope(n, slope)) return;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) slope[i * n + j] = slope[j * n + i] = slope[i * n + j] + slope[j * n + i];
    double c;
    if (n > 2 && is_outer_product(n, slope, work, &c)) {
        double *Pv = work + n;
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long k = 0; k < n; k++) sum += P[i * n + k] * work[k];
            Pv[i] = sum;
        }
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < n; j++) slope[i * n + j] = j <= i ? 2 * by_log_det * P[i * n + j] - c * Pv[i] * Pv[j] : 0;
            slope[i * n + i] *= 0.5;
        }
        return;
    }
    for (long i = 0; i < n * n; i++) work[i] = 0;
    for (long i = 0; i < n; i++)  // P B
        for (long k = 0; k < n; k++) {
            const double p = P[i * n + k];
            for (long j = 0; j < n; j++) work[i * n + j] += p * slope[k * n + j];
        }
    for (long i = 0; i < n; i++) {
        double *row = slope + i * n;
        for (long j = 0; j < n; j++) row[j] = j <= i ? 2 * by_log_det * P[i * n + j] : 0;
        for (long k = 0; k < n; k++) {
            const double w = work[i * n + k];
            for (long j = 0; j <= i; j++) row[j] -= w * P[k * n + j];
        }
        row[i] *= 0.5;
    }
}

// A draw from N(J^-1 h, J^-1) into out[n]: J = L L', L v = h, L' out = v + e, e standard normal. J becomes L. out may be h.
// 0, or the failing pivot (then out is untouched).
DEVICE_CALL long normal_precision_shift(Stream *g, long n, double *J, const double *h, double *out)
{
    const long failed = chol_factor(J, n);
    if (failed) return failed;
    for (long i = 0; i < n; i++) out[i] = h[i];
    chol_solve_lower(J, n, out);
    for (long i = 0; i < n; i++) out[i] += normal_standard(g);
    chol_solve_upper(J, n, out);
    return 0;
}

#endif
