// conjugate.c -- conjugate.h by plain loops: the preconditioned method of Hestenes and Stiefel (1952), begun again where rounding has led the residual astray.
#include "conjugate.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

double gm_row_times(const GmRows *R, long i, const double *x)
{
    double sum = 0;
    for (long k = R->first[i]; k < R->first[i + 1]; k++) sum += R->value[k] * x[R->column[k]];
    return sum;
}

void gm_row_added(const GmRows *R, long i, double c, double *x)
{
    for (long k = R->first[i]; k < R->first[i + 1]; k++) x[R->column[k]] += c * R->value[k];
}

void gm_rows_product(const GmRows *R, long n, const double *D, const double *x, double *y)
{
    for (long j = 0; j < n; j++) y[j] = D[j] * x[j];
    for (long i = 0; i < R->rows; i++) gm_row_added(R, i, gm_row_times(R, i, x), y);
}

static double dot(long n, const double *x, const double *y)
{
    double sum = 0;
    for (long j = 0; j < n; j++) sum += x[j] * y[j];
    return sum;
}

static double weighted(long n, const double *r, const double *M)         // r'M^-1 r
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
            more = weighted(n, r, D) > 0.25 * enough;        // as the recurrence has it: what is left is then computed anew
            const double next = weighted(n, r, M), beta = next / rho;
            for (long j = 0; j < n; j++) p[j] = r[j] / M[j] + beta * p[j];
            rho = next;
        }
        steps++;
    }
    return -1;
}
