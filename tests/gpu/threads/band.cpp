// Scans of band_scan.h, by lanes that run alternately on a CPU, beside band_factor and band_solve of one lane: the same factor, and the
// same draws from the same streams, up to rounding. Arguments: panels, length, width, lag and border, again and again.
#include "../../../runtime/device/base.h"
#include "../../../runtime/device/special.h"
#include "../../../runtime/device/rng.h"
#include "../../../runtime/device/normal.h"
#include "../../../runtime/device/chol.h"
#include "cuda_by_threads.h"
#include <vector>
typedef struct GmPlace { wide *partial; } GmPlace;
typedef struct GmContext { GmPlace *place; int chain; } GmContext;
#define TEAM_BARRIER() grid_sync()
#include "../../../runtime/device/band_scan.h"

static Band made, given;
static wide *x, *edge, *partial;
static long *failed;
static bool known;
static const Sweep at = {5, 1, 3};

template <int SIZE, int EDGE> static void scan(GmContext *GM)
{
    const long bad = band_scan_factor<SIZE, EDGE>(GM, &made);
    if (bad) *failed = bad;
    TEAM_BARRIER();
    if (!*failed) band_scan_solve<SIZE, EDGE>(GM, &made, edge, x, at, 7);
}

static void kernel()
{
    GmPlace place = {partial};
    GmContext context = {&place, 0};
    const long size = made.lag * made.width, border = made.border;
    if (!known) scan<0, -1>(&context);
    else if (size == 1 && border == 0) scan<1, 0>(&context);
    else if (size == 1 && border == 1) scan<1, 1>(&context);
    else if (size == 2 && border == 0) scan<2, 0>(&context);
    else if (size == 2 && border == 2) scan<2, 2>(&context);
    else if (size == 3) scan<3, -1>(&context);
    else if (size == 4) scan<4, -1>(&context);
    else scan<0, -1>(&context);
}

static double uniform(void) { return rand() / (RAND_MAX + 1.0) - 0.5; }

// The largest difference, over the largest number.
static double difference(const wide *a, const wide *b, long n)
{
    double most = 0, largest = 1e-300;
    for (long i = 0; i < n; i++) {
        largest = fmax(largest, fabs(b[i]));
        most = fabs(a[i] - b[i]) <= most ? most : fabs(a[i] - b[i]);
    }
    return most == most ? most / largest : INFINITY;
}

static Band band_of(const long *a)
{
    const long rows = a[0] * a[1] * a[2], n = a[4];
    return (Band){a[0], a[1], a[2], a[3], n, global<wide>(rows * (a[3] + 1) * a[2] + 1), global<wide>(rows + 1), global<wide>(rows * n + 1),
                  NULL, NULL};
}

int main(int argc, char **argv)
{
    srand(3);
    partial = global<wide>(GM_ROOM), failed = global<long>(1);
    for (int c = 1; c + 4 < argc; c += 5) {
        long a[5];
        for (int k = 0; k < 5; k++) a[k] = atol(argv[c + k]);
        given = band_of(a), made = band_of(a);
        const long w = a[2], rows = a[1] * w, m = (a[3] + 1) * w, all = a[0] * rows;
        wide *want = global<wide>(all + 1);
        x = global<wide>(all + 1), edge = global<wide>(a[4] + 1);
        for (long j = 0; j < a[4]; j++) edge[j] = uniform();
        for (long p = 0; p < a[0]; p++) {                      // L L', of a band L
            std::vector<double> L(rows * m);
            for (long r = 0; r < rows; r++)
                for (long q = 0; q < m; q++)
                    L[r * m + q] = q == a[3] * w + r % w                                 ? 1 + fabs(uniform())
                                   : q < a[3] * w + r % w && (r / w - a[3]) * w + q >= 0 ? uniform()
                                                                                         : 0;
            for (long r = 0; r < rows; r++)
                for (long q = 0; q < m; q++) {
                    const long from = (r / w - a[3]) * w, c = from + q, of_c = (c / w - a[3]) * w;
                    if (c < 0 || c > r) continue;
                    double sum = 0;
                    for (long k = from > 0 ? from : 0; k <= c; k++)
                        if (k >= of_c) sum += L[r * m + k - from] * L[c * m + k - of_c];
                    given.B[(p * rows + r) * m + q] = sum;
                }
        }
        for (long r = 0; r < all; r++) given.k[r] = uniform();
        for (long r = 0; r < all * a[4]; r++) given.E[r] = uniform();
        const Band start = band_of(a);
        memcpy(start.B, given.B, sizeof(wide) * all * m);
        memcpy(start.k, given.k, sizeof(wide) * all);
        memcpy(start.E, given.E, sizeof(wide) * all * a[4]);
        for (long p = 0; p < a[0]; p++) {
            if (band_factor(&given, p, GM_PIVOT_LOST)) return 3;
        }
        for (long p = 0; p < a[0]; p++) band_solve(&given, p, edge, want, at, 7);
        double worst = 0;
        for (known = false;; known = true) {
            memcpy(made.B, start.B, sizeof(wide) * all * m);
            memcpy(made.k, start.k, sizeof(wide) * all);
            memcpy(made.E, start.E, sizeof(wide) * all * a[4]);
            *failed = 0;
            const int status = run_blocks(2, kernel);
            if (status || *failed) printf("status %d, pivot %ld\n", status, *failed);
            for (long r = 0; r < all; r++)                     // what neither sets
                for (long q = 0; q < m; q++)
                    if ((r % rows / w - a[3]) * w + q < 0 || (r % rows / w - a[3]) * w + q > r % rows)
                        made.B[r * m + q] = given.B[r * m + q] = 0;
            worst = fmax(
                worst, fmax(difference(made.B, given.B, all * m), fmax(difference(made.E, given.E, all * a[4]), difference(x, want, all))));
            if (known) break;
        }
        made = start;                                          // a pivot that is lost is reported
        made.B[(all - 1) * m + a[3] * w + (rows - 1) % w] = -1;
        *failed = 0;
        const int status = run_blocks(1, kernel);
        if (worst < 1e-12 && !status && *failed == all)
            printf("%ld chains of %ld times %ld elements, lag %ld, border %ld agree\n", a[0], a[1], w, a[3], a[4]);
        else
            printf("%ld chains of %ld times %ld elements, lag %ld, border %ld: off by %.1e, pivot %ld of %ld\n", a[0], a[1], w, a[3], a[4],
                   worst, *failed, all);
    }
    return 0;
}
