// What finds modes of mixtures on a GPU, by threads: probabilities of values (expect_rows of classify.h) and sums of weights times columns
// (columns.h), beside plain loops in double precision. Arguments: rows, values, blocks.
#define GM_PRECISION float
#define GM_MODES
#define GM_ROWS_WIDTH 5
#include "cuda_by_threads.h"
#include <vector>
#undef alignas
#define _Thread_local thread_local
#include "../../../runtime/device/gm.h"
#include "../../../runtime/device/modes.h"
#define alignas(n) __attribute__((aligned(n)))
#define __expf expf
#define __ffs(x) __builtin_ffs(x)
#define gm_lane_of_warp ((long)(threadIdx.x & 31))
#define FAULT(name, element, what) (*wrong_rows += 1)

struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float __shfl_sync(unsigned, float v, int from)
{
    int bits;
    memcpy(&bits, &v, sizeof bits);
    bits = exchanged(bits, __syncwarp, [from] { return (int)shown[threadIdx.x / 32 * 32 + from]; });
    memcpy(&v, &bits, sizeof bits);
    return v;
}
typedef struct GmContext { int chain; } GmContext;
static void team_barrier(GmContext *) { grid_sync(); }
static long *wrong_rows;
#include "../../../runtime/device/classify.h"
#include "../../../runtime/device/columns.h"

enum { P = GM_ROWS_WIDTH, ROOM = 1 << 16 };
static long N, K;
static float *X, *probability;
static wide *centre, *root, *of, *evidence, *sums, *room;
static uint64_t sweep = 2;

static void kernel()
{
    GmContext context = {0}, *GM = &context;
    Sweep at = {};
    at.sweep = sweep;
    if (!expect_rows(GM, at, 1, "c", N, 1, K, X, centre, root, probability, evidence, -0.5, [&](long x) -> wide { return of[x - 1]; }))
        *wrong_rows += 1000000;
    team_barrier(GM);
    const auto split = [&](long m) -> Column {
        if (m < 1) return Column{0, 0, 0, 0, {}};
        Column q = {1, (m - 1) / P, (m - 1) % P, 0, {}};
        q.given[0] = 2;
        return q;
    };
    const auto column = [&](long i, const Column &q) -> real { return q.sum ? (X[i * P + q.a] - q.given[0]) * X[i * P + q.b] : 1; };
    const auto place = [&](long v, const Column &q) -> wide & { return sums[v * (1 + P * P) + (q.sum ? 1 + q.a * P + q.b : 0)]; };
    if (!columns_of_weights(GM, N, K, probability, 1 + P * P, split, column, place, room, (long)ROOM)) *wrong_rows += 1000000;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    N = atol(argv[1]), K = atol(argv[2]);
    X = global<float>(N * P), probability = global<float>(N * K), evidence = global<wide>(N), wrong_rows = global<long>(1);
    centre = global<wide>(K * P), root = global<wide>(K * P * P), of = global<wide>(K), sums = global<wide>(K * (1 + P * P)),
    room = global<wide>(ROOM);
    srand(7);
    const auto uniform = [] { return rand() / (RAND_MAX + 1.0); };
    for (long e = 0; e < K * P; e++) centre[e] = 3 + 2 * uniform();
    for (long e = 0; e < K * P * P; e++) root[e] = e % P >= e / P % P ? 0.5 + uniform() : 0;
    for (long k = 0; k < K; k++) of[k] = -3 * uniform();
    for (long e = 0; e < N * P; e++) X[e] = (float)(3 + 2 * uniform());
    int status = run_blocks(atoi(argv[3]), kernel);
    double worst = 0, off = 0, most = 0;
    std::vector<double> known(K * (1 + P * P)), lp(K);
    for (long i = 0; i < N; i++) {
        double top = -INFINITY, total = 0;
        for (long k = 0; k < K; k++) {
            lp[k] = of[k];
            for (int j = 0; j < P; j++) {
                double z = 0;
                for (int l = j; l < P; l++) z += root[(k * P + j) * P + l] * (X[i * P + l] - centre[k * P + l]);
                lp[k] -= 0.5 * z * z;
            }
            top = fmax(top, lp[k]);
        }
        for (long k = 0; k < K; k++) total += exp(lp[k] - top);
        worst = fmax(worst, fabs(top + log(total) - evidence[i]));
        for (long k = 0; k < K; k++) {
            worst = fmax(worst, fabs(exp(lp[k] - top) / total - probability[i * K + k]));
            for (int m = 0; m < 1 + P * P; m++)
                known[k * (1 + P * P) + m] += probability[i * K + k] * (m ? (X[i * P + (m - 1) / P] - 2.0) * X[i * P + (m - 1) % P] : 1);
        }
    }
    for (long e = 0; e < K * (1 + P * P); e++) off = fmax(off, fabs(known[e] - sums[e])), most = fmax(most, known[e]);
    printf("%ld rows, %ld values: status %d, %ld faults, probabilities and logarithms %s, sums %s\n", N, K, status, *wrong_rows,
           worst < 1e-4 ? "agree" : "differ", off < 5e-6 * most ? "agree" : "differ");
    if (worst >= 1e-4 || off >= 5e-6 * most) printf("off by %g and %g of %g\n", worst, off, most);
    sweep = 1;                                           // the first iteration: a random partition
    status = run_blocks(atoi(argv[3]), kernel);
    long certain = 0, others = 0;
    for (long e = 0; e < N * K; e++)
        certain += probability[e] == 1, others += probability[e] != 1 && probability[e] != 0 && fabs(probability[e] - 0.5 / N) > 1e-6 / N;
    printf("at random: status %d, %s\n", status, others == 0 && certain > 0 && certain < 6 * K + 20 ? "a partition" : "no partition");
    return 0;
}
