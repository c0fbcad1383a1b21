// If this failed, normals given that their sum is 0 would have another law, or another sum.
//
// The law is worked out by eliminating the last element, x[n - 1] = -(the others): their precision is B'J B and their shift B'h with B =
// [I; -1'].
#include "check.h"
#include "../../runtime/device/sum_to_zero.h"
#include <gsl/gsl_cdf.h>

enum { N = 4 };
static const double along[N] = { 1, -0.5, 2, 0.3 };
static double mean_along, sd_along;

static double image(const double *a, long i) { return a[i] - a[N - 1]; }       // B'a

// Mean and sd of along'x.
static void expect(const double *J, const double *h)
{
    double A[(N - 1) * (N - 1)], mean[N - 1], spread[N - 1];
    for (long i = 0; i < N - 1; i++) {
        for (long j = 0; j < N - 1; j++) A[i * (N - 1) + j] = J[i * N + j] - J[i * N + N - 1] - J[(N - 1) * N + j] + J[N * N - 1];
        mean[i] = image(h, i);
        spread[i] = image(along, i);
    }
    check("reference", "pivot", (double)chol_factor(A, N - 1), 0);
    chol_solve_lower(A, N - 1, mean);
    chol_solve_lower(A, N - 1, spread);
    mean_along = sd_along = 0;
    for (long i = 0; i < N - 1; i++) {
        mean_along += spread[i] * mean[i];
        sd_along += spread[i] * spread[i];
    }
    sd_along = sqrt(sd_along);
}

static double off;                       // the largest sum, in units of the largest element

static double seen(const double *x, long failed)
{
    double sum = 0, most = 0, value = 0;
    for (long i = 0; i < N; i++) {
        sum += x[i];
        most = fmax(most, fabs(x[i]));
        value += along[i] * x[i];
    }
    off = fmax(off, fabs(sum) / most);
    return failed ? NAN : value;
}

static double dense(Stream *g, const double *J, const double *h)
{
    double L[N * N], x[N], work[N];
    memcpy(L, J, sizeof L);
    const long failed = normal_sum_to_zero(g, N, L, h, x, work);
    return seen(x, failed);
}

static double diagonal(Stream *g, const double *D, const double *h)
{
    double x[N];
    const long failed = normal_diagonal_sum_to_zero(g, N, D, h, x);
    return seen(x, failed);
}

#define CASE(what, call)                                                                                 \
    do {                                                                                                 \
        off = 0;                                                                                         \
        CASE_KS(call, gsl_cdf_gaussian_P(x - mean_along, sd_along));                                     \
        check(what, "sum", off, 1e-15);                                                                  \
    } while (0)

static void check_diagonal(const char *what, const double *D, const double *h)
{
    double J[N * N] = { 0 };
    for (long i = 0; i < N; i++) J[i * N + i] = D[i];
    expect(J, h);
    CASE(what, diagonal(g, D, h));
}

int main(void)
{
    const double h[N] = { 1, -2, 0.5, 3 };
    const double J[N * N] = { 2, 0.6, -0.3, 0.1, 0.6, 1, 0.2, 0, -0.3, 0.2, 1.5, 0.7, 0.1, 0, 0.7, 3 };
    expect(J, h);
    CASE("a dense precision", dense(g, J, h));
    const double walk[N * N] = { 1, -1, 0, 0, -1, 2, -1, 0, 0, -1, 2, -1, 0, 0, -1, 1 };      // singular but for the plane
    expect(walk, h);
    CASE("a random walk", dense(g, walk, h));
    check_diagonal("different precisions", (double[]){ 2, 0.5, 1, 8 }, h);
    check_diagonal("one without a precision", (double[]){ 2, 0.5, 0, 8 }, h);
    check_diagonal("one with hardly any", (double[]){ 2, 1e-280, 0.3, 8 }, h);

    double x[N] = { 5, 5, 5, 5 }, work[N], one = 3;
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 900, 0);
    check("two without a precision", "drawn", normal_diagonal_sum_to_zero(&g, N, (double[]){ 2, 0, 0, 8 }, h, x) == 0 || x[0] != 5, 0);
    double flat[N * N] = { 1, -1, 0, 0, -1, 1, 0, 0 };
    check("a plane in which it is flat", "drawn", normal_sum_to_zero(&g, N, flat, h, x, work) == 0 || x[0] != 5, 0);
    normal_diagonal_sum_to_zero(&g, 1, &one, h, x);
    check("one element", "value", fabs(x[0]), 0);
    normal_sum_to_zero(&g, 1, &one, h, x, work);
    check("one element, dense", "value", fabs(x[0]), 0);
    check("none", "fault", (double)(normal_diagonal_sum_to_zero(&g, 0, &one, h, x) + normal_sum_to_zero(&g, 0, &one, h, x, work)), 0);
    return finish();
}
