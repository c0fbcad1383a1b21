// Sums by key of keyed_sums.h, by threads: whole numbers, so that every sum is exact. Arguments: rows, groups, blocks.
#include "cuda_by_threads.h"
#include <vector>
#define DEVICE static inline
typedef double wide;
typedef struct GmPlace { wide *partial; } GmPlace;
typedef struct GmContext { GmPlace *place; int chain; } GmContext;
static void team_barrier(GmContext *) { grid_sync(); }
#define ALONG(i, n) for (int gm_once = 1; gm_once; gm_once = 0, team_barrier(GM)) for (long i = gm_thread; i < (n); i += gm_threads)
DEVICE int *block_room(void)
{
    __shared__ int room[9 * GM_THREADS] alignas(8);
    return room;
}
#include "../../../runtime/device/keyed_sums.h"

enum { P = 5, FEW = 100 };          // columns; with fewer groups sums are made place by place, too, where a block goes through each group
static long N, K;
static int *key, *keys, *first, *rows, *spare;
static wide *X, *sum, *again, *product, *partial;

static void kernel()
{
    GmPlace place = {partial};
    GmContext context = {&place, 0}, *GM = &context;
    ORDER_KEYED(i, N, K, key[i], keys, first, rows, spare);
    if (K < FEW) EACH_KEYED (K, N, first, P) {
        KEYED_PLACES1 (i, N, key[i] - 1, rows, j, P) {
            ADD_TOTAL(0, sum[(key[i] - 1) * P + j], X[i * P + j]);
        }
    }
    team_barrier(GM);
    const auto times = [&](long) -> wide { return 1; };
    const auto factor = [&](long i, long k) -> wide { return X[i * P + k]; };
    const auto add = [&](long i, long k, long j, wide x) { product[((key[i] - 1) * P + k) * P + j] += x; };
    const auto add_again = [&](long i, long j, wide x) { again[(key[i] - 1) * P + j] += x; };
    segment_products(GM, K, N, first, rows, (long)P, times, factor, add, times, add_again);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    N = atol(argv[1]), K = atol(argv[2]);
    key = global<int>(N), keys = global<int>(N), first = global<int>(K + 1), rows = global<int>(N), spare = global<int>(N);
    X = global<wide>(N * P), sum = global<wide>(K * P), again = global<wide>(K * P), product = global<wide>(K * P * P),
    partial = global<wide>(GM_ROOM);
    std::vector<double> sums(K * P), products(K * P * P);
    srand(7);
    for (long i = 0; i < N; i++) {
        const double u = rand() / (RAND_MAX + 1.0);
        key[i] = u < 0.35 ? 3 : u < 0.6 ? (int)K : 1 + rand() % (int)K;         // two large groups; some are empty
        for (int j = 0; j < P; j++) X[i * P + j] = rand() % 2000 - 1000;
        for (int j = 0; j < P; j++) sums[(key[i] - 1) * P + j] += X[i * P + j];
        for (int j = 0; j < P * P; j++) products[(key[i] - 1) * P * P + j] += X[i * P + j / P] * X[i * P + j % P];
    }
    const int status = run_blocks(atoi(argv[3]), kernel);
    long wrong = 0;
    for (long e = 0; e < K * P; e++) wrong += (K < FEW && sums[e] != sum[e]) + (sums[e] != again[e]);
    for (long e = 0; e < K * P * P; e++) wrong += products[e] != product[e];
    printf("%ld rows, %ld groups: status %d, %ld wrong\n", N, K, status, wrong);
    return 0;
}
