// gm.h -- what every emitted program includes first: samplers, special functions, what the runtime and the program tell each other.
#ifndef GM_GM_H
#define GM_GM_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "special.h"
#include "rng.h"
#include "normal.h"
#include "exponential.h"
#include "gamma.h"
#include "beta.h"
#include "truncated.h"
#include "inverse_gaussian.h"
#include "gig.h"
#include "polya_gamma.h"
#include "discrete.h"
#include "student.h"
#include "others.h"
#include "chol.h"
#include "dirichlet.h"
#include "multivariate.h"
#include "slice.h"
#include "../host/model.h"
#include "../backends/linalg.h"

// 0 inside the bounds, -infinity outside: the log density of a constraint.
DEVICE double within(double x, double lo, double hi) { return x >= lo && x <= hi ? 0 : -INFINITY; }

// log(sum(exp(v))) in one pass: the largest value so far, and the sum relative to it.
typedef struct LogSum { double most, sum; } LogSum;

DEVICE LogSum log_sum_start(void)
{
    LogSum s;
    s.most = -INFINITY;
    s.sum = 0;
    return s;
}

DEVICE void log_sum_add(LogSum *s, double v)
{
    if (v <= s->most) { if (s->most > -INFINITY) s->sum += exp(v - s->most); }
    else { s->sum = s->sum * exp(s->most - v) + 1; s->most = v; }
}

DEVICE double log_sum_value(const LogSum *s) { return s->most + log(s->sum); }

// Widths of slice samplers: 1 at first, then moved during warm-up towards half of the brackets that come out; afterwards fixed.
DEVICE double slice_width(double stored) { return stored > 0 ? stored : 1; }

DEVICE double slice_adapt(double width, const Slice *sl, double start)
{
    const double moved = sl->log_scale ? fabs(log(sl->x / start)) : fabs(sl->x - start);
    const double w = 0.9 * width + 0.1 * (sl->right - sl->left + moved);
    return is_finite(w) && w > 1e-12 ? w : width;
}

// Matrices given whole: n by n, row by row, symmetric positive definite. NaN everywhere if they are not.
DEVICE double log_determinant_of(long n, const double *A)
{
    double *L = (double *)malloc(sizeof(double) * (size_t)(n * n + 1));
    for (long i = 0; i < n * n; i++) L[i] = A[i];
    const double value = chol_factor(L, n) ? -INFINITY : chol_log_determinant(L, n);
    free(L);
    return value;
}

DEVICE void inverse_into(long n, const double *A, double *out)
{
    double *L = (double *)malloc(sizeof(double) * (size_t)(n * n + 1));
    for (long i = 0; i < n * n; i++) L[i] = A[i];
    if (spd_inverse(L, n, out))
        for (long i = 0; i < n * n; i++) out[i] = NAN;
    free(L);
}

DEVICE void cholesky_decompose_into(long n, const double *A, double *out)
{
    for (long i = 0; i < n * n; i++) out[i] = A[i];
    const long bad = chol_factor(out, n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            if (bad) out[i * n + j] = NAN;
            else if (j > i) out[i * n + j] = 0;
}

#endif
