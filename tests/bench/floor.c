// floor.c -- what a sweep of probit regression costs at least on this machine, one thread, part by part.
//
//   floor N P        prints seconds per sweep for: one reading of X (predictor and X'z together), one Cholesky of P, N truncated normals
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "gm.h"
#include "../backends/blas.h"

const GmModel gm_model;
void gm_fault(const GmRun *run, int chain, const char *variable, long element, const char *what)
{
    (void)run;
    (void)chain;
    (void)variable;
    (void)element;
    (void)what;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    const long n = argc > 1 ? atol(argv[1]) : 10000, p = argc > 2 ? atol(argv[2]) : 100;
    enum { REPEATS = 21 };
    double *X = malloc(sizeof *X * (size_t)(n * p)), *b = calloc((size_t)p, sizeof *b), *h = calloc((size_t)p, sizeof *h),
           *z = malloc(sizeof *z * (size_t)n);
    double *J = malloc(sizeof *J * (size_t)(p * p)), *G = malloc(sizeof *G * (size_t)(p * p)), t[3][REPEATS];
    const Sweep at = {1, 0, 1};
    Stream g = stream(at, 1, 0);
    for (long i = 0; i < n * p; i++) X[i] = normal_standard(&g);
    for (long j = 0; j < p; j++) b[j] = 0.1 * normal_standard(&g);
    gm_blas()->dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)p, (int)n, 1, X, (int)p, 0, G, (int)p);
    for (int r = 0; r < REPEATS; r++) {
        double start = now();
        for (long i = 0; i < n; i++) {
            const double *x = X + i * p;
            double m = 0;
            for (long j = 0; j < p; j++) m += x[j] * b[j];
            z[i] = m;
            for (long j = 0; j < p; j++) h[j] += m * x[j];
        }
        t[0][r] = now() - start;
        for (long k = 0; k < p * p; k++) J[k] = G[k];
        start = now();
        int bad;
        gm_blas()->dpotrf("U", &(int){(int)p}, J, &(int){(int)p}, &bad, 1);
        t[1][r] = now() - start;
        start = now();
        for (long i = 0; i < n; i++) {
            Stream s = stream(at, 2, (uint64_t)(i + r * n));
            z[i] = i & 1 ? normal_natural_truncated(&s, z[i], -0.5, 0, INFINITY) : normal_natural_truncated(&s, z[i], -0.5, -INFINITY, 0);
        }
        t[2][r] = now() - start;
    }
    for (int k = 0; k < 3; k++) {
        qsort(t[k], REPEATS, sizeof **t, by_size);
        printf("%s%.9g", k ? " " : "", t[k][REPEATS / 2]);
    }
    printf("\n");
    fprintf(stderr, "%g %g\n", z[n / 2], h[0]);
    return 0;
}
