// Routines of crew.h, by lanes that run alternately on a CPU, beside those of one lane: the same draws from the same streams, up to
// rounding. Arguments: rows of the matrices and how many, in pairs.
#include "../../../runtime/device/base.h"
#include "../../../runtime/device/special.h"
#include "../../../runtime/device/rng.h"
#include "../../../runtime/device/normal.h"
#include "../../../runtime/device/multivariate.h"
#include "cuda_by_threads.h"
#include <vector>
#define SCRATCH(n) ((wide *)malloc(sizeof(wide) * (size_t)((n) + 1)))
#define RELEASE(p) free(p)
#include "../../../runtime/device/crew.h"

enum { INVERSE, FACTOR, TRANSPOSED, NORMAL, WISHART, INV_WISHART, KINDS };
static long n, count;
static wide *A, *negative, *h, *log_det, *made[KINDS];

static Stream stream_of(long e, uint32_t kind)
{
    const Sweep at = {5, 1, 3};
    return stream(at, kind, (uint64_t)e);
}

static void kernel()
{
    EACH_MATRIX (e, count, n) {
        const wide *const a = A + e * n * n, *const b = negative + e * n * n;
        const long at = e * n * n;
        CREW(inverse_into, n, a, made[INVERSE] + at);
        CREW(cholesky_decompose_into, n, a, made[FACTOR] + at);
        CREW(cholesky_transposed_into, n, a, made[TRANSPOSED] + at);
        CREW(log_determinant_into, n, a, log_det + e);
        for (int kind = NORMAL; kind < KINDS; kind++) {
            Stream g = stream_of(e, kind);
            const wide bad = kind == NORMAL    ? CREW(normal_draw, &g, n, a, h + e * n, made[kind] + at)
                             : kind == WISHART ? CREW(wishart_natural, &g, 2.0, b, n, made[kind] + at, CREW_SCRATCH(0))
                                               : CREW(inv_wishart_natural, &g, -(wide)n - 3, b, n, made[kind] + at, CREW_SCRATCH(0));
            if (bad) made[kind][at] = NAN;
        }
    }
}

// The largest difference of the elements, over the largest element.
static double difference(const double *a, const double *b, long size)
{
    double most = 0, largest = 1e-300;
    for (long i = 0; i < size; i++) {
        largest = fmax(largest, fabs(b[i]));
        most = a[i] == a[i] ? fmax(most, fabs(a[i] - b[i])) : INFINITY;
        if (!(most < INFINITY)) return most;
    }
    return most / largest;
}

static void compare(void)
{
    std::vector<double> C(n * n), out(n * n), work(3 * n * n + 1);
    double worst = 0;
    for (long e = 0; e < count; e++) {
        const double *const a = A + e * n * n, *const b = negative + e * n * n;
        const long at = e * n * n;
        C.assign(a, a + n * n);
        spd_inverse(C.data(), n, out.data());
        worst = fmax(worst, difference(made[INVERSE] + at, out.data(), n * n));
        C.assign(a, a + n * n);
        chol_factor(C.data(), n);
        worst = fmax(worst, difference(made[FACTOR] + at, C.data(), n * n));
        for (long i = 0; i < n * n; i++) out[i] = C[i % n * n + i / n];
        worst = fmax(worst, difference(made[TRANSPOSED] + at, out.data(), n * n));
        const double value = chol_log_determinant(C.data(), n);
        worst = fmax(worst, difference(log_det + e, &value, 1));
        for (int kind = NORMAL; kind < KINDS; kind++) {
            Stream g = stream_of(e, kind);
            C.assign(a, a + n * n);
            if (kind == NORMAL) normal_precision_shift(&g, n, C.data(), h + e * n, out.data());
            else if (kind == WISHART) wishart_natural(&g, 2.0, b, n, out.data(), work.data());
            else inv_wishart_natural(&g, -(double)n - 3, b, n, out.data(), work.data());
            worst = fmax(worst, difference(made[kind] + at, out.data(), kind == NORMAL ? n : n * n));
        }
    }
    if (worst < 1e-12) printf("%ld matrices of %ld rows agree\n", count, n);
    else printf("%ld matrices of %ld rows: off by %.1e\n", count, n, worst);
}

int main(int argc, char **argv)
{
    srand(3);
    for (int k = 1; k + 1 < argc; k += 2) {
        n = atol(argv[k]), count = atol(argv[k + 1]);
        A = global<wide>(count * n * n), negative = global<wide>(count * n * n), h = global<wide>(count * n), log_det = global<wide>(count);
        for (wide *&array : made) array = global<wide>(count * n * n);
        std::vector<double> B(n * n);
        for (long e = 0; e < count; e++) {
            for (double &b : B) b = rand() / (RAND_MAX + 1.0) - 0.5;
            lower_times_transpose(B.data(), n, A + e * n * n);
            for (long i = 0; i < n; i++) {
                A[(e * n + i) * n + i] += 1;
                h[e * n + i] = rand() / (RAND_MAX + 1.0);
            }
            for (long i = 0; i < n * n; i++) negative[e * n * n + i] = -A[e * n * n + i];
        }
        const int status = run_blocks(1, kernel);
        if (status) printf("status %d\n", status);
        compare();
    }
    return 0;
}
