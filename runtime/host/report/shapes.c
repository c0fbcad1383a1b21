// shapes.c -- what figures are made of: ranges, histograms, densities.
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *sorted_copy(const double *x, long n, long *finite)
{
    double *to = gm_alloc((size_t)n, sizeof *to);
    *finite = 0;
    for (long i = 0; i < n; i++)
        if (isfinite(x[i])) to[(*finite)++] = x[i];
    qsort(to, (size_t)*finite, sizeof *to, ascending);
    return to;
}

static void widen(double *lo, double *hi)
{
    if (*hi > *lo) return;
    const double margin = *lo ? 0.05 * fabs(*lo) : 1;
    *lo -= margin;
    *hi += margin;
}

void gm_range(const double *x, long n, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (long i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        *lo = fmin(*lo, x[i]);
        *hi = fmax(*hi, x[i]);
    }
    if (*lo > *hi) *lo = *hi = 0;
    widen(lo, hi);
}

// A tail counts as long where the central 99 % take less than a third of the range.
void gm_shown_range(const double *x, long n, double *lo, double *hi)
{
    long finite;
    double *sorted = sorted_copy(x, n, &finite);
    gm_range(x, n, lo, hi);
    if (finite > 0) {
        const double low = gm_quantile(sorted, finite, 0.005), high = gm_quantile(sorted, finite, 0.995), width = high - low;
        if (width > 0 && *hi - *lo > 3 * width) {
            *lo = fmax(*lo, low - width / 4);
            *hi = fmin(*hi, high + width / 4);
        }
    }
    free(sorted);
}

void gm_histogram(const double *x, long n, double lo, double hi, int bins, double *out)
{
    memset(out, 0, sizeof *out * (size_t)bins);
    for (long i = 0; i < n; i++) {
        if (!(x[i] >= lo && x[i] <= hi)) continue;
        const int k = (int)((x[i] - lo) / (hi - lo) * bins);
        out[k < bins ? k : bins - 1]++;
    }
}

// Silverman's rule (1986, equation 3.31), 0.9 min(sd, interquartile range / 1.34) n^(-1/5), by the narrowest of the chains: where chains
// are in modes of their own the spread of all says nothing of a mode.
double gm_kernel_width(const double *x, int chains, long draws)
{
    double least = INFINITY;
    for (int c = 0; c < chains; c++) {
        long n;
        double *sorted = sorted_copy(x + c * draws, draws, &n), mean = 0, square = 0;
        for (long i = 0; i < n; i++) mean += sorted[i] / (double)n;
        for (long i = 0; i < n; i++) square += (sorted[i] - mean) * (sorted[i] - mean);
        const double sd = n > 1 ? sqrt(square / (double)(n - 1)) : 0;
        const double quartiles = n > 1 ? (gm_quantile(sorted, n, 0.75) - gm_quantile(sorted, n, 0.25)) / 1.34 : 0;
        const double spread = quartiles > 0 && quartiles < sd ? quartiles : sd;
        if (spread > 0 && spread < least) least = spread;
        free(sorted);
    }
    return isfinite(least) ? 0.9 * least * pow((double)draws, -0.2) : 0;
}

// Counts on a fine grid, each shared by the two points next to it, and then the kernel over these.
void gm_density(const double *x, long n, double lo, double hi, double width, double *out)
{
    enum { FINE = 1024 };
    double *count = gm_alloc(FINE, sizeof *count);
    const double step = (hi - lo) / (FINE - 1);
    if (width < step) width = step;
    for (long i = 0; i < n; i++) {
        if (!(x[i] >= lo && x[i] <= hi)) continue;
        const double at = (x[i] - lo) / step;
        const int k = at < FINE - 1 ? (int)at : FINE - 2;
        count[k] += 1 - (at - k);
        count[k + 1] += at - k;
    }
    for (int g = 0; g < GM_GRID; g++) {
        const double at = (hi - lo) * g / (GM_GRID - 1);
        double sum = 0;
        for (int k = 0; k < FINE; k++) {
            if (count[k] == 0) continue;
            const double there = step * k, right = 2 * (hi - lo) - there;
            const double z[] = {(at - there) / width, (at + there) / width, (at - right) / width};
            for (int q = 0; q < 3; q++)
                if (fabs(z[q]) < 6) sum += count[k] * exp(-0.5 * z[q] * z[q]);
        }
        out[g] = sum / ((double)n * width * 2.5066282746310002);
    }
    free(count);
}
