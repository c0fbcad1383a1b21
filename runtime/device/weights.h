// weights.h -- one of finitely many values whose weight is a product of numbers in tables.
//
// weight[k][v - 1] >= 0, for k = 0 .. m - 1, are those of value v; a row of a table is over its largest number, begins at a multiple of
// WEIGHTS_ASIDE numbers, and has zeros behind the last value up to the next multiple. By inversion, with one uniform number: the products
// are added up twice, first all, then up to the number times the sum; nothing is kept. Products are of the type of the tables, sums of more
// than WEIGHTS_ASIDE are double.
//
// What is smaller than the smallest normal number may be 0. Beside a sum of at least WEIGHTS_LEAST that is less than rounding; a smaller
// sum, which is one of values that are all unlikely by one table or another, is no choice. Test: tests/runtime/discrete.c.
#ifndef GM_WEIGHTS_H
#define GM_WEIGHTS_H

#include "rng.h"

enum { WEIGHTS_ASIDE = 4 };

#define WEIGHTS_WIDTH(n) (((long)(n) + WEIGHTS_ASIDE - 1) / WEIGHTS_ASIDE * WEIGHTS_ASIDE)
#define WEIGHTS_LEAST    (sizeof(real) == 4 ? 1e-25 : 1e-250)

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
typedef struct alignas(16) WeightsAside {
    real x[WEIGHTS_ASIDE];
} WeightsAside;  // read at once
#else
typedef struct WeightsAside {
    real x[WEIGHTS_ASIDE];
} WeightsAside;
#endif

DEVICE WeightsAside weights_aside(int m, const real *const *weight, long at)
{
    WeightsAside w = *(const WeightsAside *)(weight[0] + at);
    for (int k = 1; k < m; k++) {
        const WeightsAside more = *(const WeightsAside *)(weight[k] + at);
        for (int e = 0; e < WEIGHTS_ASIDE; e++) w.x[e] *= more.x[e];
    }
    return w;
}

DEVICE real sum_aside(const WeightsAside *w) { return (w->x[0] + w->x[1]) + (w->x[2] + w->x[3]); }

// From 1; 0: by logarithms.
DEVICE long choose_by_weights(Stream *g, long n, int m, const real *const *weight)
{
    double total = 0;
    for (long at = 0; at < n; at += WEIGHTS_ASIDE) {
        const WeightsAside w = weights_aside(m, weight, at);
        total += (double)sum_aside(&w);
    }
    if (!(total >= WEIGHTS_LEAST && total < INFINITY)) return 0;
    double u = uniform_open(g) * total, within = 0;
    long last = 0;
    for (long at = 0; at < n; at += WEIGHTS_ASIDE) {
        const WeightsAside w = weights_aside(m, weight, at);
        const double sum = (double)sum_aside(&w);
        if (!(sum > 0)) continue;
        last = at;
        within = u;
        if (u <= sum) break;
        u -= sum;
    }
    const WeightsAside w = weights_aside(m, weight, last);
    int chosen = 0;
    for (int e = 0; e < WEIGHTS_ASIDE; e++) {
        if (!(w.x[e] > 0)) continue;
        chosen = e + 1;
        if (within <= (double)w.x[e]) break;
        within -= (double)w.x[e];
    }
    return last + chosen;
}

// Logarithm of the weight of value v.
DEVICE double log_of_weights(int m, const real *const *weight, long v)
{
    double sum = 0;
    for (int k = 0; k < m; k++) sum += log((double)weight[k][v - 1]);
    return sum;
}

#endif
