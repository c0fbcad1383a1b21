// conjugate.c -- conjugate.h: the preconditioned method of Hestenes and Stiefel (1952), begun again where rounding has led the residual
// astray.
#include "conjugate.h"
#include "linalg.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_ROWS = 256, HELD = 1 << 15 };  // of one tile; numbers of a matrix that stay in the cache between two passes over it

static double entries_times(const GmRows *R, long i, const double *x)
{
    double sum = 0;
    for (long k = R->first[i]; k < R->first[i + 1]; k++) sum += R->value[k] * x[R->column[k]];
    return sum;
}

void gm_row_added(const GmRows *R, long i, double c, double *x)
{
    for (long k = R->first[i]; k < R->first[i + 1]; k++) x[R->column[k]] += c * R->value[k];
}

// Rows of a part from `from` on that lie one after the other in the matrix; they begin at *x, NULL: they are none.
static long run_of(const GmPart *q, long from, long end, const double **x)
{
    long i = from + 1;
    *x = q->x[from];
    while (i < end && (*x ? q->x[i] == *x + (i - from) * q->p : !q->x[i])) i++;
    return i - from;
}

static long tile_of(const GmRows *R)
{
    long rows = MOST_ROWS;
    for (int k = 0; k < R->parts; k++)
        if (R->part[k].p * rows > HELD) rows = HELD / R->part[k].p < 8 ? 8 : HELD / R->part[k].p;
    return rows;
}

// Of rows first .. first + n - 1: t[n] = R x, and x += R't.
static void tile_times(const GmRows *R, long first, long n, const double *x, double *t)
{
    double dot[MOST_ROWS];
    const double *from;
    for (long i = 0; i < n; i++) t[i] = entries_times(R, first + i, x);
    for (int k = 0; k < R->parts; k++) {
        const GmPart *q = &R->part[k];
        for (long i = 0, some; i < n; i += some) {
            some = run_of(q, first + i, first + n, &from);
            if (!from) continue;
            rows_times(some, q->p, from, x + q->at, dot);
            for (long e = 0; e < some; e++) t[i + e] += R->root[first + i + e] * dot[e];
        }
    }
}

static void tile_added(const GmRows *R, long first, long n, const double *t, double *x)
{
    double weight[MOST_ROWS];
    const double *from;
    for (long i = 0; i < n; i++) gm_row_added(R, first + i, t[i], x);
    for (int k = 0; k < R->parts; k++) {
        const GmPart *q = &R->part[k];
        for (long i = 0, some; i < n; i += some) {
            some = run_of(q, first + i, first + n, &from);
            if (!from) continue;
            for (long e = 0; e < some; e++) weight[e] = R->root[first + i + e] * t[i + e];
            rows_added(some, q->p, from, weight, x + q->at);
        }
    }
}

static long least(long a, long b) { return a < b ? a : b; }

void gm_rows_times(const GmRows *R, const double *x, double *t)
{
    for (long i = 0; i < R->rows; i += MOST_ROWS) tile_times(R, i, least(MOST_ROWS, R->rows - i), x, t + i);
}

void gm_rows_added(const GmRows *R, const double *t, double *x)
{
    for (long i = 0; i < R->rows; i += MOST_ROWS) tile_added(R, i, least(MOST_ROWS, R->rows - i), t + i, x);
}

void gm_rows_product(const GmRows *R, long n, const double *D, const double *x, double *y)
{
    const long rows = tile_of(R);
    double t[MOST_ROWS];
    for (long j = 0; j < n; j++) y[j] = D[j] * x[j];
    for (long i = 0; i < R->rows; i += rows) {
        tile_times(R, i, least(rows, R->rows - i), x, t);
        tile_added(R, i, least(rows, R->rows - i), t, y);
    }
}

void gm_rows_diagonal(const GmRows *R, long n, const double *D, double *y)
{
    memcpy(y, D, sizeof *y * (size_t)n);
    for (long k = 0; k < R->first[R->rows]; k++) y[R->column[k]] += R->value[k] * R->value[k];
    for (int k = 0; k < R->parts; k++) {
        const GmPart *q = &R->part[k];
        for (long i = 0; i < R->rows; i++) {
            const double w = R->root[i] * R->root[i];
            for (long j = 0; j < q->p && q->x[i]; j++) y[q->at + j] += w * q->x[i][j] * q->x[i][j];
        }
    }
}

static double dot(long n, const double *x, const double *y)
{
    double sum = 0;
    for (long j = 0; j < n; j++) sum += x[j] * y[j];
    return sum;
}

static double weighted(long n, const double *r, const double *M)  // r'M^-1 r
{
    double sum = 0;
    for (long j = 0; j < n; j++) sum += r[j] * r[j] / M[j];
    return sum;
}

long gm_conjugate_gradients(const GmRows *R, long n, const double *D, const double *M, const double *b, double *x, double *work, long most)
{
    double *r = work, *p = r + n, *q = p + n;
    const double enough = GM_SOLVED * GM_SOLVED;
    long steps = 0;
    while (steps <= most) {
        gm_rows_product(R, n, D, x, q);
        for (long j = 0; j < n; j++) r[j] = b[j] - q[j];
        const double left = weighted(n, r, D);
        if (left <= enough) return steps;
        if (!isfinite(left)) return -1;
        for (long j = 0; j < n; j++) p[j] = r[j] / M[j];
        double rho = dot(n, r, p);
        for (bool more = true; more && steps < most; steps++) {
            gm_rows_product(R, n, D, p, q);
            const double curvature = dot(n, p, q), alpha = rho / curvature;
            if (!(curvature > 0) || !isfinite(alpha)) return -1;
            for (long j = 0; j < n; j++) {
                x[j] += alpha * p[j];
                r[j] -= alpha * q[j];
            }
            more = weighted(n, r, D) > 0.25 * enough;  // as the recurrence has it: what is left is then computed anew
            const double next = weighted(n, r, M), beta = next / rho;
            for (long j = 0; j < n; j++) p[j] = r[j] / M[j] + beta * p[j];
            rho = next;
        }
        steps++;
    }
    return -1;
}
