// gm.h -- what every emitted program includes first: samplers, special functions, and what the runtime and the program exchange.
#ifndef GM_GM_H
#define GM_GM_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#endif
#include "base.h"
#include "special.h"
#include "windows.h"
#include "rng.h"
#include "normal.h"
#include "exponential.h"
#include "gamma.h"
#include "beta.h"
#include "truncated.h"
#include "truncated_single.h"
#include "inverse_gaussian.h"
#include "gig.h"
#include "polya_gamma.h"
#include "polya_gamma_single.h"
#include "discrete.h"
#include "transfers.h"
#include "weights.h"
#include "student.h"
#include "others.h"
#include "chol.h"
#include "dirichlet.h"
#include "multivariate.h"
#include "slice.h"
#include "metropolis.h"
#include "elliptical.h"
#include "line.h"
#include "constrained_line.h"
#include "whitened.h"
#include "sum_to_zero.h"
#include "nuts.h"
#include "chees.h"
#include "within.h"
#include "whole.h"
#include "../host/model.h"
#ifndef __CUDACC_RTC__
#include "ode.h"
#include "../backends/linalg.h"
#include "../backends/sparse.h"
#endif

// 0 inside the bounds, -infinity outside: the log density of a constraint.
DEVICE double within(double x, double lo, double hi) { return x >= lo && x <= hi ? 0 : -INFINITY; }

// log(sum(exp(v))) in one pass: the largest value so far, and the sum relative to it.
typedef struct LogSum {
    double most, sum;
} LogSum;

DEVICE LogSum log_sum_start(void)
{
    LogSum s;
    s.most = -INFINITY;
    s.sum = 0;
    return s;
}

DEVICE void log_sum_add(LogSum *s, double v)
{
    if (v <= s->most) {
        if (s->most > -INFINITY) s->sum += exp(v - s->most);
    } else {
        s->sum = s->sum * exp(s->most - v) + 1;
        s->most = v;
    }
}

DEVICE double log_sum_value(const LogSum *s) { return s->most + log(s->sum); }

// Widths of slice samplers (and of Metropolis proposals, metropolis.h): `first` at first, then changed during warm-up towards half of the
// brackets that come out; afterwards fixed.
DEVICE double slice_width(double stored, double first) { return stored > 0 ? stored : first; }

DEVICE double slice_adapt(double width, const Slice *sl, double start)
{
    const double moved = sl->log_scale ? fabs(log(sl->x / start)) : fabs(sl->x - start);
    const double w = 0.9 * width + 0.1 * (sl->right - sl->left + moved);
    return is_finite(w) && w > 1e-12 ? w : width;
}

// A start outside the support, in warm-up: another one to try, further away at each attempt. The constraint's ends stay outside.
DEVICE double slice_restart(Stream *g, double start, int attempt, double lo, double hi)
{
    const double reach = pow(2.0, attempt / 2), u = uniform_open(g);
    double x = attempt % 2 && is_finite(lo) ? lo + reach * u : attempt % 2 && is_finite(hi) ? hi - reach * u : start + reach * (2 * u - 1);
    if (is_finite(lo) && is_finite(hi)) x = lo + (hi - lo) * u;
    return x > lo && x < hi ? x : start;
}

// Matrices given whole: n by n, row by row. Symmetric ones go by their Cholesky factor, and have no logarithm of the determinant
// (-infinity) and no inverse (NaN) if they are not positive definite; others by Gauss and Jordan: the logarithm is NaN then if the
// determinant is negative.
DEVICE double log_determinant_of(long n, const double *A)
{
    double *L = (double *)malloc(sizeof(double) * (size_t)(n * n + 1)), sign = 1;
    for (long i = 0; i < n * n; i++) L[i] = A[i];
    double value;
    if (!matrix_is_symmetric(A, n)) value = gauss_jordan(L, n, (double *)0, &sign);
    else value = chol_factor(L, n) ? -INFINITY : chol_log_determinant(L, n);
    free(L);
    return sign < 0 ? NAN : value;
}

DEVICE void inverse_into(long n, const double *A, double *out)
{
    double *L = (double *)malloc(sizeof(double) * (size_t)(n * n + 1));
    double sign;
    for (long i = 0; i < n * n; i++) L[i] = A[i];
    if (!matrix_is_symmetric(A, n)) gauss_jordan(L, n, out, &sign);
    else if (spd_inverse(L, n, out))
        for (long i = 0; i < n * n; i++) out[i] = NAN;
    free(L);
}

// Whether element a of A comes before element b, in ascending (sign 1) or descending order (-1). Equal ones keep their order.
DEVICE int comes_before(const double *A, double sign, long a, long b) { return sign * A[a] < sign * A[b] || (A[a] == A[b] && a < b); }

// The places (from 1) of the n numbers of A in their order: heapsort (Williams 1964), n log n in place. What holds a NaN has no order: NaN
// everywhere.
DEVICE void sort_places(long n, const double *A, double sign, double *place)
{
    for (long i = 0; i < n; i++)
        if (A[i] != A[i]) {
            for (long k = 0; k < n; k++) place[k] = NAN;
            return;
        }
    for (long i = 0; i < n; i++) place[i] = (double)i;
    for (long end = n, start = n / 2; end > 1;) {
        if (start > 0) start--;
        else {
            end--;
            const double last = place[0];
            place[0] = place[end];
            place[end] = last;
        }
        for (long i = start, child; (child = 2 * i + 1) < end; i = child) {
            if (child + 1 < end && comes_before(A, sign, (long)place[child], (long)place[child + 1])) child++;
            if (!comes_before(A, sign, (long)place[i], (long)place[child])) break;
            const double up = place[child];
            place[child] = place[i];
            place[i] = up;
        }
    }
    for (long i = 0; i < n; i++) place[i] += 1;
}

// The n numbers of A in their order.
DEVICE void sort_values(long n, const double *A, double sign, double *out)
{
    sort_places(n, A, sign, out);
    for (long i = 0; i < n; i++)
        if (out[i] == out[i]) out[i] = A[(long)out[i] - 1];
}

DEVICE void sort_asc_into(long n, const double *A, double *out) { sort_values(n, A, 1, out); }
DEVICE void sort_desc_into(long n, const double *A, double *out) { sort_values(n, A, -1, out); }

// Places are whole numbers; those of a vector without an order are the number that marks a missing one.
DEVICE void sort_indices(long n, const double *A, double sign, double *out)
{
    sort_places(n, A, sign, out);
    for (long i = 0; i < n; i++)
        if (out[i] != out[i]) out[i] = -2147483647.0 - 1;
}

DEVICE void sort_indices_asc_into(long n, const double *A, double *out) { sort_indices(n, A, 1, out); }
DEVICE void sort_indices_desc_into(long n, const double *A, double *out) { sort_indices(n, A, -1, out); }

// The transpose of the factor: an upper triangle.
DEVICE void cholesky_transposed_into(long n, const double *A, double *out)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) out[i * n + j] = A[i * n + j];
    const long bad = !matrix_is_symmetric(A, n) || chol_factor(out, n);
    for (long i = 0; i < n; i++)
        for (long j = i; j < n; j++) {
            const double root = out[j * n + i];
            out[j * n + i] = bad ? NAN : 0;
            out[i * n + j] = bad ? NAN : root;
        }
}

DEVICE void log_determinant_into(long n, const double *A, double *out) { *out = log_determinant_of(n, A); }

DEVICE void cholesky_decompose_into(long n, const double *A, double *out)
{
    for (long i = 0; i < n * n; i++) out[i] = A[i];
    const long bad = !matrix_is_symmetric(A, n) || chol_factor(out, n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            if (bad) out[i * n + j] = NAN;
            else if (j > i) out[i * n + j] = 0;
}

// One coordinate of an array whose elements are constrained together, for the slice sampler. The densities are those of the constraint's
// usual coordinates. Of a simplex these are all elements but the last; of a covariance matrix, the lower triangle. Of a correlation matrix
// or its Cholesky factor they are the elements below the diagonal; of a unit vector, the angle of two coordinates. Of a vector whose sum is
// 0 they are lines on which one element changes and all others change against it by equal parts. A slice update changes an element of a
// Cholesky factor along asinh of its quotient by the diagonal, which may be far below the rounding of the element. It changes two
// neighbours of a simplex along the log of their ratio, with the Jacobian of that in constrained_slope. Among all elements but the last,
// 1e-20 beside 0.5 would be below rounding. A maximum (GM_LINE_SIMPLEX) is one along the element.
typedef enum {
    GM_LINE_SIMPLEX,
    GM_LINE_RATIO,
    GM_LINE_SUM_TO_ZERO,
    GM_LINE_UNIT,
    GM_LINE_COVARIANCE,
    GM_LINE_CORRELATION,
    GM_LINE_CHOLESKY_COV,
    GM_LINE_CHOLESKY_CORR
} ConstrainedKind;

typedef struct ConstrainedLine {
    ConstrainedKind kind;
    double *value;    // the array
    double *logs;     // of a simplex: logarithms of its elements, which are kept (special.h, log_kept), or NULL
    double log_rest;  // of what two elements share
    long n, i, j;     // its size; the element (i, j), or the neighbours i and i + 1
    double rest;      // what stays: a sum, a length
    double start, lo, hi;
    int moves;  // 0: this coordinate is not free
} ConstrainedLine;

DEVICE ConstrainedLine constrained_begin(ConstrainedKind kind, double *value, long n, long move)
{
    ConstrainedLine m;
    m.kind = kind;
    m.value = value;
    m.logs = NULL;
    m.log_rest = 0;
    m.n = n;
    m.i = kind <= GM_LINE_UNIT ? move : move / n;
    m.j = kind <= GM_LINE_UNIT ? move + 1 : move % n;
    m.moves = 1;
    m.lo = -INFINITY;
    m.hi = INFINITY;
    m.rest = 0;
    if (kind == GM_LINE_SIMPLEX) {
        m.rest = value[m.i] + value[m.j];
        m.start = value[m.i];
        m.lo = 0;
        m.hi = m.rest;
    } else if (kind == GM_LINE_RATIO) {
        m.rest = value[m.i] + value[m.j];
        m.start = log(value[m.i]) - log(value[m.j]);
    } else if (kind == GM_LINE_SUM_TO_ZERO) {
        m.start = value[m.i];
    } else if (kind == GM_LINE_UNIT) {
        m.rest = sqrt(value[m.i] * value[m.i] + value[m.j] * value[m.j]);
        m.start = atan2(value[m.j], value[m.i]);
        m.lo = -GM_PI;
        m.hi = GM_PI;
    } else {
        m.start = value[m.i * n + m.j];
        if (m.j > m.i) m.moves = 0;
        if (m.i == m.j) {
            m.lo = 0;
            m.moves = kind == GM_LINE_COVARIANCE || kind == GM_LINE_CHOLESKY_COV;
        } else if (kind == GM_LINE_CORRELATION) {
            m.lo = -1;
            m.hi = 1;
        } else if (kind == GM_LINE_CHOLESKY_CORR) {
            const double diagonal = value[m.i * n + m.i];
            m.rest = sqrt(m.start * m.start + diagonal * diagonal);
            m.start = asinh(m.start / diagonal);
        }
    }
    return m;
}

// Of a simplex whose logarithms are kept: elements may have rounded to an end.
DEVICE ConstrainedLine constrained_begin_logs(double *value, double *logs, long n, long move)
{
    ConstrainedLine m = constrained_begin(GM_LINE_RATIO, value, n, move);
    const double one = log_kept(value[m.i], logs[m.i]), other = log_kept(value[m.j], logs[m.j]);
    m.logs = logs;
    m.log_rest = log_sum_exp2(one, other);
    m.start = one - other;
    return m;
}

DEVICE int constrained_set_logs(const ConstrainedLine *m, double x)
{
    m->logs[m->i] = m->log_rest + log_inv_logit(x);
    m->logs[m->j] = m->log_rest + log1m_inv_logit(x);
    m->value[m->i] = clamp(exp(m->logs[m->i]), GM_TINY, 1);
    m->value[m->j] = clamp(exp(m->logs[m->j]), GM_TINY, 1);
    return 1;
}

// Puts x there. 0: the array is outside its constraint.
DEVICE int constrained_set(const ConstrainedLine *m, double x)
{
    const long n = m->n;
    switch (m->kind) {
    case GM_LINE_SIMPLEX:
        m->value[m->i] = x;
        m->value[m->j] = m->rest - x;
        return x > 0 && x < m->rest;
    case GM_LINE_RATIO: {
        if (m->logs) return constrained_set_logs(m, x);
        const double less = m->rest / (1 + exp(fabs(x)));
        m->value[m->i] = x < 0 ? less : m->rest - less;
        m->value[m->j] = x < 0 ? m->rest - less : less;
        return less > 1e-300 || (x == m->start && less > 0);  // numbers below lose their digits
    }
    case GM_LINE_SUM_TO_ZERO: {
        double sum = x;  // of all, anew each time: roundings do not add up
        m->value[m->i] = x;
        for (long k = 0; k < n; k++) sum += k == m->i ? 0 : m->value[k];
        for (long k = 0; k < n; k++) m->value[k] -= k == m->i ? 0 : sum / (double)(n - 1);
        return 1;
    }
    case GM_LINE_UNIT:
        m->value[m->i] = m->rest * cos(x);
        m->value[m->j] = m->rest * sin(x);
        return 1;
    case GM_LINE_COVARIANCE:
    case GM_LINE_CORRELATION: m->value[m->i * n + m->j] = m->value[m->j * n + m->i] = x; return log_determinant_of(n, m->value) > -INFINITY;
    case GM_LINE_CHOLESKY_COV: m->value[m->i * n + m->j] = x; return m->i != m->j || x > 0;
    case GM_LINE_CHOLESKY_CORR:
        m->value[m->i * n + m->j] = m->rest * tanh(x);
        m->value[m->i * n + m->i] = m->rest / cosh(x);
        return m->value[m->i * n + m->i] > GM_LEAST_DIAGONAL;
    }
    return 0;
}

// log d(element)/dx there, for the density of x.
DEVICE double constrained_slope(const ConstrainedLine *m, double x)
{
    if (m->kind == GM_LINE_CHOLESKY_CORR) return log(m->rest) - 2 * (fabs(x) + log1p(exp(-2 * fabs(x))) - 0.6931471805599453);
    return m->kind == GM_LINE_RATIO ? (m->logs ? m->log_rest : log(m->rest)) - fabs(x) - 2 * log1p(exp(-fabs(x))) : 0;
}

#if defined(GM_ELSEWHERE) || defined(GM_HERE)
#undef DEVICE
#define DEVICE static inline
#endif

#endif
