// sum_to_zero.h -- joint normals on the plane of the vectors whose sum is 0.
//
//   density     proportional to exp(h'x - x'J x / 2) on the plane 1'x = 0; of `diagonal`, J has nothing but the diagonal D
//   parameters  J positive definite along the plane, which is less than positive definite: of D one element may be 0. n >= 0
//   method      a draw of the normal without the constraint, and then x - J^-1 1 (1'J^-1 1)^-1 1'x (conditioning by kriging: Rue and Held
//               2005, Gaussian Markov Random Fields, section 2.3.3). J + c 1 1' has the same density on the plane as J, and is positive
//               definite where J is so along it alone. Of D the element with the widest conditional is what the others leave
//   accuracy    that of the factorisation; the sum is 0 but for a rounding of the largest element
//   test        tests/runtime/sum_to_zero.c
#ifndef GM_SUM_TO_ZERO_H
#define GM_SUM_TO_ZERO_H

#include "chol.h"

// J becomes a factor. work: n. 0, or where J proves not to be positive definite (then x is untouched).
DEVICE_CALL long normal_sum_to_zero(Stream *g, long n, double *J, const double *h, double *x, double *work)
{
    double trace = 0, sum = 0, variance = 0, rest = 0;
    for (long i = 0; i < n; i++) trace += J[i * n + i];
    for (long i = 0; i < n * n; i++) J[i] += trace / ((double)n * (double)n);
    const long failed = normal_precision_shift(g, n, J, h, x);
    if (failed) return failed;
    for (long i = 0; i < n; i++) work[i] = 1;
    chol_solve_lower(J, n, work);
    chol_solve_upper(J, n, work);
    for (long i = 0; i < n; i++) {
        sum += x[i];
        variance += work[i];
    }
    for (long i = 0; i < n; i++) rest += x[i] -= work[i] * (sum / variance);
    for (long i = 0; i < n; i++) x[i] -= rest / (double)n;
    return 0;
}

// 0, or 1 + the place of an element of D that is no precision (then x is not drawn).
DEVICE_CALL long normal_diagonal_sum_to_zero(Stream *g, long n, const double *D, const double *h, double *x)
{
    long widest = 0;
    for (long i = 1; i < n; i++)
        if (D[i] < D[widest]) widest = i;
    for (long i = 0; i < n; i++)
        if (!(i == widest ? D[i] >= 0 : D[i] > 0)) return i + 1;
    // with D = D[widest]: D times the sum of all elements is shift + D sum, D times that of all variances is ratio
    double sum = 0, ratio = 1, shift = 0;
    for (long i = 0; i < n; i++) {
        const double e = normal_standard(g);
        if (i == widest) {
            shift = h[i] + e * sqrt(D[i]);
            continue;
        }
        x[i] = (h[i] + e * sqrt(D[i])) / D[i];
        sum += x[i];
        ratio += D[widest] / D[i];
    }
    const double excess = (shift + D[widest] * sum) / ratio;
    sum = 0;
    for (long i = 0; i < n; i++)
        if (i != widest) sum += x[i] -= excess / D[i];
    if (n) x[widest] = 0 - sum;
    return 0;
}

#endif
