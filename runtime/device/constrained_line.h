// constrained_line.h -- vectors and matrices whose elements are constrained together as images of R^m, for HMC, which knows no bounds.
//
//   n, m                 n numbers, or n by n row-major; m coordinates y, the density being that of the elements named below
//
//   simplex              m = n - 1           x = softmax(z), z = V y with V the orthonormal basis of the vectors whose sum is 0 in which
//                        column i weighs element i + 1 against those
//                                            before it (isometric log-ratio); density of all elements but one: log |J| = log(n) / 2 +
//                                            sum(log x)
//   ordered              m = n               from the one in the middle, x[c] = y[c], on to both sides by distances exp(y[k]); log |J| =
//                        sum(y[k], k != c). Beginning at the first, an end
//                                            that is hardly known would be correlated with all that follow
//   positive_ordered     m = n               x[k] = x[k - 1] + exp(y[k]), x[0] = 0; log |J| = sum(y)
//   ordered_within       m = n               between lo and hi, which follow n: the same from lo on or down from hi; or the n + 1 distances
//                        are hi - lo times a simplex:
//                                            log |J| = n log(hi - lo) + log |J| of that simplex
//   sum_to_zero          m = n - 1           x = V y, V as for a simplex: an isometry onto the plane of the vectors whose sum is 0; log |J|
//                        = 0
//   unit_vector          m = n               x = y / |y|; y would be standard normal if x were uniform: log |J| stands for -|y|^2 / 2
//   cholesky_corr        m = n (n - 1) / 2   rows of length 1: x[i, j] = tanh(y[i, j]) sqrt(1 - sum(x[i, k]^2, k < j)), j < i; density of
//                        the elements below the diagonal
//   correlation          the same            x = L L', L a cholesky_corr; log |J| has sum((n - k) log L[k, k]) besides; density of the
//                        elements below the diagonal
//   cholesky_cov         m = n (n + 1) / 2   x[i, j] = y[i, j], x[k, k] = exp(y[k, k]); log |J| = sum(y[k, k])
//   covariance           the same            x = L L', L a cholesky_cov; log |J| = n log 2 + sum((n - k + 2) y[k, k]); density of the lower
//                        triangle
//
//   NAME_from_line(n, y, x)          x, at y. Upper triangles of factors are 0, other matrices are filled
//   NAME_to_line(n, x, y, work)      y, at x, unless y stands for x already; what lies on a boundary is put inside by 1e-10 of what it is
//                                    measured by
//   NAME_chain(n, y, x, slope, out, work)   from slope, the derivatives of a log density by the elements of x as if each were free: out,
//                                           those by y of it and log |J|; returns log |J|
//
// work: 2 n numbers, 2 n n for matrices. Coordinates of a triangle stand row by row.
// Source: Stan Reference Manual, "Constraint Transforms"; Egozcue et al. 2003, Isometric logratio transformations for compositional data
// analysis; Lewandowski, Kurowicka and Joe 2009. Errors: what is no number stays so. Accuracy: some n roundings. Test:
// tests/runtime/constrained_line.c
#ifndef GM_CONSTRAINED_LINE_H
#define GM_CONSTRAINED_LINE_H

#include "chol.h"
#include "special.h"

#define LINE_INSIDE 1e-10     // of a boundary
#define LINE_LEAST  2.3e-308  // element of a simplex

DEVICE int line_stands_for(long n, const double *x, const double *image)
{
    long same = 0;
    while (same < n && x[same] == image[same]) same++;
    return same == n;
}

// ---- simplex ----

// z = V y, in place of z.
DEVICE void basis_times(long n, const double *y, double *z)
{
    double above = 0;
    for (long i = n - 1; i >= 0; i--) {
        z[i] = above;
        if (i == 0) continue;
        const double w = y[i - 1] / sqrt((double)i * (double)(i + 1));
        z[i] -= w * (double)i;
        above += w;
    }
}

// y = V' z. y may not be z.
DEVICE void basis_transpose_times(long n, const double *z, double *y)
{
    double before = 0;
    for (long i = 1; i < n; i++) {
        before += z[i - 1];
        y[i - 1] = (before - (double)i * z[i]) / sqrt((double)i * (double)(i + 1));
    }
}

// log(sum(exp(z)))
DEVICE double simplex_scale(long n, const double *z)
{
    double most = z[0], sum = 0;
    for (long i = 1; i < n; i++) most = fmax(most, z[i]);
    for (long i = 0; i < n; i++) sum += exp(z[i] - most);
    return most + log(sum);
}

DEVICE void simplex_from_line(long n, const double *y, double *x)
{
    basis_times(n, y, x);
    const double scale = simplex_scale(n, x);
    for (long i = 0; i < n; i++) {
        x[i] = exp(x[i] - scale);
        if (x[i] < LINE_LEAST) x[i] = LINE_LEAST;  // not 0: densities have logs and powers of it
    }
}

// The same where logarithms of the elements are kept (special.h, log_kept).
DEVICE void simplex_from_line_logs(long n, const double *y, double *x, double *logs)
{
    basis_times(n, y, logs);
    const double scale = simplex_scale(n, logs);
    for (long i = 0; i < n; i++) {
        logs[i] -= scale;
        x[i] = logs[i] <= log(GM_TINY) ? GM_TINY : exp(logs[i]);
    }
}

DEVICE void simplex_to_line_logs(long n, const double *x, const double *logs, double *y, double *work)
{
    for (long i = 0; i < n; i++) work[i] = log_kept(x[i], logs[i]);
    basis_transpose_times(n, work, y);
}

DEVICE void simplex_to_line(long n, const double *x, double *y, double *work)
{
    simplex_from_line(n, y, work);
    if (line_stands_for(n, x, work)) return;
    for (long i = 0; i < n; i++) work[i] = log(x[i] < LINE_LEAST ? LINE_INSIDE : x[i]);
    basis_transpose_times(n, work, y);
}

DEVICE double simplex_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    double mean = 0, sum = 0;
    basis_times(n, y, work);
    const double scale = simplex_scale(n, work);
    for (long i = 0; i < n; i++) {
        mean += slope[i] * x[i];
        sum += work[i] - scale;
    }
    for (long i = 0; i < n; i++) work[i] = x[i] * (slope[i] - mean - (double)n);
    basis_transpose_times(n, work, out);
    return sum + 0.5 * log((double)n);
}

// ---- ordered vectors ----

DEVICE void positive_ordered_from_line(long n, const double *y, double *x)
{
    for (long i = 0; i < n; i++) x[i] = (i ? x[i - 1] : 0) + exp(y[i]);
}

DEVICE void ordered_from_line(long n, const double *y, double *x)
{
    const long c = (n - 1) / 2;
    x[c] = y[c];
    for (long i = c + 1; i < n; i++) x[i] = x[i - 1] + exp(y[i]);
    for (long i = c - 1; i >= 0; i--) x[i] = x[i + 1] - exp(y[i]);
}

// The log of the distance between two, or what stands for it where there is none.
DEVICE double line_log_gap(double before, double x)
{
    const double size = fabs(before) + fabs(x), gap = x - before;
    return log(gap <= 0 ? LINE_INSIDE * (size > 0 ? size : 1) : gap);
}

DEVICE void positive_ordered_to_line(long n, const double *x, double *y, double *work)
{
    positive_ordered_from_line(n, y, work);
    if (line_stands_for(n, x, work)) return;
    for (long i = 0; i < n; i++) y[i] = line_log_gap(i ? x[i - 1] : 0, x[i]);
}

DEVICE void ordered_to_line(long n, const double *x, double *y, double *work)
{
    ordered_from_line(n, y, work);
    if (line_stands_for(n, x, work)) return;
    const long c = (n - 1) / 2;
    for (long i = 0; i < n; i++) y[i] = i == c ? x[i] : i > c ? line_log_gap(x[i - 1], x[i]) : line_log_gap(x[i], x[i + 1]);
}

// n distances, from the outermost (at `last`) to where they begin: out, the derivatives by their logs, and *sum grows by these. step: 1
// upwards, -1 downwards. Returns the derivative by a shift of all these elements.
DEVICE double line_chain_of_gaps(long last, long step, long n, const double *y, const double *slope, double *out, double *sum)
{
    double further = 0;
    for (long i = last; n-- > 0; i -= step) {
        further += slope[i];
        out[i] = (double)step * further * exp(y[i]) + 1;
        *sum += y[i];
    }
    return further;
}

DEVICE double positive_ordered_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)x;
    (void)work;
    double sum = 0;
    line_chain_of_gaps(n - 1, 1, n, y, slope, out, &sum);
    return sum;
}

DEVICE double ordered_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)x;
    (void)work;
    const long c = (n - 1) / 2;
    double sum = 0;
    const double above = line_chain_of_gaps(n - 1, 1, n - 1 - c, y, slope, out, &sum),
                 below = line_chain_of_gaps(0, -1, c, y, slope, out, &sum);
    out[c] = above + below + slope[c];
    return sum;
}

DEVICE void ordered_within_from_line(long n, double lo, double hi, const double *y, double *x)
{
    if (!(hi < INFINITY)) {
        for (long i = 0; i < n; i++) x[i] = (i ? x[i - 1] : lo) + exp(y[i]);
        return;
    }
    if (!(lo > -INFINITY)) {
        for (long i = n - 1; i >= 0; i--) x[i] = (i < n - 1 ? x[i + 1] : hi) - exp(y[i]);
        return;
    }
    double z = 0, scale, part;  // of the first distance; x has the others
    for (long i = n; i >= 1; i--) {
        const double w = y[i - 1] / sqrt((double)i * (double)(i + 1));
        x[i - 1] = z - w * (double)i;
        z += w;
    }
    scale = log_sum_exp2(z, simplex_scale(n, x));
    part = exp(z - scale);
    for (long i = 0; i < n; i++) {
        const double next = exp(x[i] - scale);
        x[i] = lo + (hi - lo) * (part < 1 ? part : 1);
        part += next;
    }
}

DEVICE void ordered_within_to_line(long n, double lo, double hi, const double *x, double *y, double *work)
{
    ordered_within_from_line(n, lo, hi, y, work);
    if (line_stands_for(n, x, work)) return;
    if (!(hi < INFINITY))
        for (long i = 0; i < n; i++) y[i] = line_log_gap(i ? x[i - 1] : lo, x[i]);
    else if (!(lo > -INFINITY))
        for (long i = 0; i < n; i++) y[i] = line_log_gap(x[i], i < n - 1 ? x[i + 1] : hi);
    else {
        for (long i = 0; i <= n; i++) {
            const double gap = ((i < n ? x[i] : hi) - (i ? x[i - 1] : lo)) / (hi - lo);
            work[i] = log(gap <= 0 ? LINE_INSIDE : gap);
        }
        basis_transpose_times(n + 1, work, y);
    }
}

DEVICE double ordered_within_chain(long n, double lo, double hi, const double *y, const double *x, const double *slope, double *out,
                                   double *work)
{
    double sum = 0, mean = 0, above = 0;
    (void)x;
    if (!(hi < INFINITY)) {
        line_chain_of_gaps(n - 1, 1, n, y, slope, out, &sum);
        return sum;
    }
    if (!(lo > -INFINITY)) {
        line_chain_of_gaps(0, -1, n, y, slope, out, &sum);
        return sum;
    }
    basis_times(n + 1, y, work);
    const double scale = simplex_scale(n + 1, work);
    for (long i = n; i >= 0; i--) {  // distance i moves elements i .. n - 1
        if (i < n) above += slope[i] * (hi - lo);
        mean += above * exp(work[i] - scale);
        sum += work[i] - scale;
    }
    above = 0;
    for (long i = n; i >= 0; i--) {
        if (i < n) above += slope[i] * (hi - lo);
        work[i] = exp(work[i] - scale) * (above - mean - (double)(n + 1));
    }
    basis_transpose_times(n + 1, work, out);
    return sum + 0.5 * log((double)(n + 1)) + (double)n * log(hi - lo);
}

// ---- vectors whose sum is 0 ----

DEVICE void sum_to_zero_from_line(long n, const double *y, double *x) { basis_times(n, y, x); }

// What is off the plane goes to its nearest point there.
DEVICE void sum_to_zero_to_line(long n, const double *x, double *y, double *work)
{
    sum_to_zero_from_line(n, y, work);
    if (line_stands_for(n, x, work)) return;
    basis_transpose_times(n, x, y);
}

DEVICE double sum_to_zero_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)y;
    (void)x;
    (void)work;
    basis_transpose_times(n, slope, out);
    return 0;
}

// ---- unit vectors ----

DEVICE double line_length(long n, const double *y)
{
    double most = 0, squares = 0;
    for (long i = 0; i < n; i++) most = fabs(y[i]) > most ? fabs(y[i]) : most;
    for (long i = 0; i < n && most > 0; i++) squares += y[i] / most * (y[i] / most);
    return most > 0 ? most * sqrt(squares) : 0;
}

DEVICE void unit_vector_from_line(long n, const double *y, double *x)
{
    const double length = line_length(n, y);
    for (long i = 0; i < n; i++) x[i] = length > 0 ? y[i] / length : i == 0;
}

// The length of y is not that of x: it stays as it is, or begins where it would be likely.
DEVICE void unit_vector_to_line(long n, const double *x, double *y, double *work)
{
    unit_vector_from_line(n, y, work);
    const double length = line_length(n, y), of_x = line_length(n, x);
    if (length > 0 && line_stands_for(n, x, work)) return;
    for (long i = 0; i < n; i++) y[i] = x[i] / of_x * (length > 0 ? length : sqrt((double)n));
}

DEVICE double unit_vector_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)work;
    const double length = line_length(n, y);
    double along = 0, squares = 0;
    for (long i = 0; i < n; i++) along += slope[i] * x[i];
    for (long i = 0; i < n; i++) {
        out[i] = (slope[i] - along * x[i]) / length - y[i];
        squares += y[i] * y[i];
    }
    return -0.5 * squares;
}

// ---- matrices, by Cholesky factors L ----

// x = L L' in place of L, from the last element to the first.
DEVICE void line_square(long n, double *x)
{
    for (long i = n - 1; i >= 0; i--)
        for (long j = i; j >= 0; j--) {
            double sum = 0;
            for (long k = 0; k <= j; k++) sum += x[i * n + k] * x[j * n + k];
            x[i * n + j] = sum;
        }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) x[j * n + i] = x[i * n + j];
}

// L of x. What is not positive definite is mixed with its diagonal.
DEVICE void line_factor(long n, const double *x, double *L)
{
    for (double part = 0; part <= 1; part = part > 0 ? 10 * part : LINE_INSIDE) {
        for (long i = 0; i < n * n; i++) L[i] = i % (n + 1) ? (1 - part) * x[i] : x[i];
        if (!chol_factor(L, n)) return;
    }
    for (long i = 0; i < n * n; i++) L[i] = NAN;
}

// d log p / dL, the lower triangle, from d log p / dx; diagonal 0: that of x stays.
DEVICE void line_slope_of_factor(long n, const double *L, const double *slope, int diagonal, double *out)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = 0;
            for (long k = j; k < n; k++)
                if (k != i || diagonal) sum += (slope[i * n + k] + slope[k * n + i]) * L[k * n + j];
            out[i * n + j] = sum;
        }
}

DEVICE void cholesky_cov_from_line(long n, const double *y, double *x)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) x[i * n + j] = j > i ? 0 : j == i ? exp(*y++) : *y++;
}

DEVICE void cholesky_cov_to_line(long n, const double *x, double *y, double *work)
{
    cholesky_cov_from_line(n, y, work);
    if (line_stands_for(n * n, x, work)) return;
    for (long i = 0; i < n; i++) {
        const double length = line_length(i + 1, x + i * n), least = LINE_INSIDE * (length > 0 ? length : 1);
        for (long j = 0; j < i; j++) *y++ = x[i * n + j];
        *y++ = log(x[i * n + i] <= 0 ? least : x[i * n + i]);
    }
}

DEVICE double cholesky_cov_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)work;
    double sum = 0;
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) *out++ = slope[i * n + j];
        *out++ = slope[i * n + i] * x[i * n + i] + 1;
        y += i;
        sum += *y++;
    }
    return sum;
}

DEVICE void covariance_from_line(long n, const double *y, double *x)
{
    cholesky_cov_from_line(n, y, x);
    line_square(n, x);
}

DEVICE void covariance_to_line(long n, const double *x, double *y, double *work)
{
    covariance_from_line(n, y, work);
    if (line_stands_for(n * n, x, work)) return;
    line_factor(n, x, work);
    cholesky_cov_to_line(n, work, y, work + n * n);
}

DEVICE double covariance_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)x;
    double *L = work, *by_L = work + n * n, sum = (double)n * log(2.0);
    cholesky_cov_from_line(n, y, L);
    line_slope_of_factor(n, L, slope, 1, by_L);
    cholesky_cov_chain(n, y, L, by_L, out, NULL);
    for (long i = 0, at = 0; i < n; i++, at++) {
        at += i;
        out[at] += (double)(n - i);
        sum += (double)(n - i + 1) * y[at];
    }
    return sum;
}

// log cosh, without overflow.
DEVICE double line_log_cosh(double y) { return fabs(y) - log(2.0) + log1p_exp(-2 * fabs(y)); }

DEVICE void cholesky_corr_from_line(long n, const double *y, double *x)
{
    for (long i = 0; i < n; i++) {
        double log_rest = 0;  // of sqrt(1 - sum(x[i, k]^2, k < j))
        for (long j = 0; j < i; j++) {
            x[i * n + j] = tanh(*y) * exp(log_rest);
            log_rest -= line_log_cosh(*y++);
        }
        const double diagonal = exp(log_rest);
        x[i * n + i] = diagonal > GM_LEAST_DIAGONAL ? diagonal : 0;
        for (long j = i + 1; j < n; j++) x[i * n + j] = 0;
    }
}

DEVICE void cholesky_corr_to_line(long n, const double *x, double *y, double *work)
{
    cholesky_corr_from_line(n, y, work);
    if (line_stands_for(n * n, x, work)) return;
    for (long i = 0; i < n; i++) {
        // length of what follows
        double rest = x[i * n + i] > GM_LEAST_DIAGONAL ? x[i * n + i] : LINE_INSIDE * line_length(i + 1, x + i * n);
        for (long j = i - 1; j >= 0; j--) {
            y[j] = asinh(x[i * n + j] / rest);
            rest = sqrt(rest * rest + x[i * n + j] * x[i * n + j]);
        }
        y += i;
    }
}

// square: log |J| has that of x = L L' besides.
DEVICE double line_chain_of_rows(long n, const double *y, const double *x, const double *slope, int square, double *out)
{
    double sum = 0;
    for (long i = 1; i < n; i++) {
        const double power = square ? (double)(n - 1 - i) : 0;  // of x[i, i]
        double log_rest = 0;
        for (long j = 0; j < i; j++) {
            const double c = line_log_cosh(y[j]);
            out[j] = slope[i * n + j] * exp(log_rest - 2 * c);
            sum += log_rest - 2 * c;
            log_rest -= c;
        }
        sum += power * log_rest;
        double after = slope[i * n + i] * x[i * n + i] + power;
        for (long j = i - 1; j >= 0; j--) {
            out[j] -= tanh(y[j]) * (after + (double)(i - j + 1));
            after += slope[i * n + j] * x[i * n + j];
        }
        y += i;
        out += i;
    }
    return sum;
}

DEVICE double cholesky_corr_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)work;
    return line_chain_of_rows(n, y, x, slope, 0, out);
}

DEVICE void correlation_from_line(long n, const double *y, double *x)
{
    cholesky_corr_from_line(n, y, x);
    line_square(n, x);
    for (long i = 0; i < n; i++) x[i * n + i] = 1;
}

DEVICE void correlation_to_line(long n, const double *x, double *y, double *work)
{
    correlation_from_line(n, y, work);
    if (line_stands_for(n * n, x, work)) return;
    line_factor(n, x, work);
    cholesky_corr_to_line(n, work, y, work + n * n);
}

DEVICE double correlation_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)
{
    (void)x;
    double *L = work, *by_L = work + n * n;
    cholesky_corr_from_line(n, y, L);
    line_slope_of_factor(n, L, slope, 0, by_L);
    return line_chain_of_rows(n, y, L, by_L, 1, out);
}

#endif
