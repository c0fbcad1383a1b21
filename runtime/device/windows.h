// windows.h -- sums over a window of values whose weights change by a factor for each step along it.
//
// Parameters: weight[k - 1] >= 0 of value k = 1 .. n, the largest of them 1; x any number. By Horner's scheme in exp(-|x|), even and odd
// powers apart; where the powers leave the range of numbers, by logarithms. Accuracy: a relative error of the sum of n rounding errors.
// Test: tests/runtime/special.c.
#ifndef GM_WINDOWS_H
#define GM_WINDOWS_H

#include "special.h"

// log of the sum of weight[k - 1] exp(k x).
DEVICE_CALL double log_tilted_sum(const double *weight, long n, double x)
{
    if (!(fabs(x) * (double)n < 600)) {
        double top = -INFINITY, sum = 0;
        for (long k = 1; k <= n; k++) top = fmax(top, log(weight[k - 1]) + (double)k * x);
        for (long k = 1; k <= n; k++) sum += exp(log(weight[k - 1]) + (double)k * x - top);
        return top + log(sum);
    }
    const double r = exp(-fabs(x)), square = r * r;
    const long to = x > 0 ? -1 : 1;  // the powers of r go up this way
    const double *w = x > 0 ? weight : weight + (n - 1);
    double even = 0, odd = 0;
    long power = n;
    if (n % 2) {
        even = *w;
        w -= to;
        power--;
    }
    for (; power > 0; power -= 2, w -= 2 * to) {
        odd = odd * square + w[0];
        even = even * square + w[-to];
    }
    return log(even + r * odd) + (x > 0 ? (double)n * x : x);
}

#endif
