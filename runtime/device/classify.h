// classify.h -- on a GPU: which of many values a row takes, where the log density of row y and value x is
//
//   of_value(x) + times*|root[x]*(y - centre[x])|^2        root[x] an upper triangle of p by p
//
// which is what a mixture of multivariate normals asks of its rows: p(p+1)/2 + p multiply-adds a row and value, and nothing else of any
// size. A lane has several rows in its registers, and the block some values in shared memory, so that a number that is read there serves
// several rows.
//
// In double precision differences are taken before anything is multiplied; streams, and the order in which values come, are those of the
// loop over values that it stands for (discrete.h): the draws are the same up to rounding. In single precision root[x]*centre[x] is there
// for each value, which leaves z = root[x]*y - root[x]*centre[x]. Rows and centres are first taken from a point among the rows of the
// block, the median of 32 of them by columns: what cancels then is no larger than the distance between rows, of whose numbers rounding
// takes as much where they are stored. Values come BATCH at a time: a batch takes the row with the share that it has of all weights so far,
// and within it the value is found by its sums; both by one uniform number of 32 bits, so that probabilities are right to 2^-24 of
// themselves and 2^-32.
//
// Programs are compiled for the width of their rows (GM_ROWS_WIDTH); of other widths, and beyond MOST_CLASSIFIED columns, the loop does it.
// Test: tests/gpu/devices.py (everyday_multivariate_mixture, tables_by_key; faithful and gvhd in single precision).
#ifndef GM_CLASSIFY_H
#define GM_CLASSIFY_H

enum { MOST_CLASSIFIED = 24 };

#if defined(GM_ROWS_WIDTH) && GM_ROWS_WIDTH >= 1 && GM_ROWS_WIDTH <= 24
#define CLASSIFY(p)      ((p) == GM_ROWS_WIDTH)
#define CLASSIFIED_WIDTH GM_ROWS_WIDTH
#else
#define CLASSIFY(p)      false
#define CLASSIFIED_WIDTH 1
#endif

// weigh_values of discrete.h for weights of type T.
template <typename T> static __device__ __forceinline__ void weigh_row(Weighed *w, Stream *g, T *weight, long before, int n)
{
    T top = (T)w->top, total = 0;
    for (int k = 0; k < n; k++) {
        if (!(weight[k] < (T)INFINITY)) w->wrong = 1;
        if (weight[k] > top) top = weight[k];
    }
    if (w->wrong || !(top > -(T)INFINITY)) return;
    for (int k = 0; k < n; k++)
        total += weight[k] = sizeof(T) == 4 ? (T)__expf((float)(weight[k] - top)) : (T)exp((double)(weight[k] - top));
    const double others = w->total > 0 ? w->total * exp(w->top - (double)top) : 0;
    w->top = (double)top;
    w->total = others + (double)total;
    if (!(total > 0)) return;
    double u = uniform_open(g) * w->total;
    int last = -1, k = 0;
    for (; k < n; k++) {
        if (!(weight[k] > 0)) continue;
        last = k;
        if (u <= (double)weight[k]) break;
        u -= (double)weight[k];
    }
    if (k == n && others > 0) return;
    w->chosen = before + last + 1;
}

template <typename Value>
static __device__ __forceinline__ void classify_exactly(GmContext *GM, const Sweep at, const int var, const char *name, const long n,
                                                        const long first, const long last, const real *row, const wide *centre,
                                                        const wide *root, int *chosen, const double times, Value of_value)
{
    constexpr int P = CLASSIFIED_WIDTH, ROWS = P <= 16 ? 4 : 2, TRIANGLE = P * (P + 1) / 2, LENGTH = (TRIANGLE + P + 1 + 3) / 4 * 4;
    __shared__ alignas(16) real table[WEIGHED_AT_ONCE][LENGTH];  // root by rows, centre, number of the value
    const long values = last - first + 1, tile = (long)blockDim.x * ROWS;
    for (long from = blockIdx.x * tile; from < n; from += gridDim.x * tile) {
        real y[ROWS][P];
        Weighed all[ROWS];
        Stream g[ROWS];
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
#pragma unroll
            for (int l = 0; l < P; l++) y[r][l] = i < n ? row[i * P + l] : 0;
            all[r] = weigh_start();
            g[r] = stream(at, var, i);
        }
        for (long begin = 0; begin < values; begin += WEIGHED_AT_ONCE) {
            const int some = (int)(begin + WEIGHED_AT_ONCE < values ? WEIGHED_AT_ONCE : values - begin);
            __syncthreads();
            for (int e = threadIdx.x; e < some * P * P; e += blockDim.x) {
                const int x = e / (P * P), j = e / P % P, l = e % P;
                if (l >= j) table[x][j * P - j * (j - 1) / 2 + l - j] = (real)root[((first - 1 + begin + x) * P + j) * P + l];
            }
            for (int e = threadIdx.x; e < some * P; e += blockDim.x)
                table[e / P][TRIANGLE + e % P] = (real)centre[(first - 1 + begin) * P + e];
            for (int x = threadIdx.x; x < some; x += blockDim.x) table[x][TRIANGLE + P] = (real)of_value(first + begin + x);
            __syncthreads();
            real weight[ROWS][WEIGHED_AT_ONCE];
            for (int x = 0; x < some; x++) {
                const real *t = table[x];
                real a[ROWS][P], sum[ROWS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    sum[r] = 0;
#pragma unroll
                    for (int l = 0; l < P; l++) a[r][l] = y[r][l] - t[TRIANGLE + l];
                }
                int at_pair = 0;
#pragma unroll
                for (int j = 0; j < P; j++) {
                    real z[ROWS];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) z[r] = 0;
#pragma unroll
                    for (int l = j; l < P; l++) {
                        const real c = t[at_pair++];
#pragma unroll
                        for (int r = 0; r < ROWS; r++) z[r] += c * a[r][l];
                    }
#pragma unroll
                    for (int r = 0; r < ROWS; r++) sum[r] += z[r] * z[r];
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++) weight[r][x] = t[TRIANGLE + P] + (real)times * sum[r];
            }
            for (int r = 0; r < ROWS; r++) weigh_row(&all[r], &g[r], weight[r], begin, some);
        }
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
            if (i >= n) continue;
            if (all[r].wrong || all[r].chosen < 1) FAULT(name, i, "no value has a positive probability");
            else chosen[i] = (int)(first + all[r].chosen - 1);
        }
    }
}

// ---- in single precision ----

struct ClassifiedSizes {
    static constexpr int P = CLASSIFIED_WIDTH,
                         ROWS = P <= 8    ? 6
                                : P <= 16 ? 4
                                          : 2,
                         LENGTH = (P * (P + 1) / 2 + P + 1 + 3) / 4 * 4, BATCH = 16;
    // in shared memory: a block of random numbers is for four batches
    static constexpr int FIT = 40 * 1024 / 4 / LENGTH, VALUES = FIT >= 64 ? 64 : FIT >= 32 ? 32 : 16;
};

// Of each column, the median of the first 32 rows; all warps do the same.
DEVICE void classified_origin(const float *row, long n, long from, float *origin)
{
    constexpr int P = ClassifiedSizes::P;
    const long i = from + gm_lane_of_warp < n ? from + gm_lane_of_warp : n - 1;
    for (int l = 0; l < P; l++) {
        const float mine = row[i * P + l];
        int below = 0;
        for (int k = 0; k < 32; k++) {
            const float other = __shfl_sync(0xffffffffu, mine, k);
            below += other < mine || (other == mine && k < (int)gm_lane_of_warp);
        }
        const unsigned middle = __ballot_sync(0xffffffffu, below == 15);
        origin[l] = middle ? __shfl_sync(0xffffffffu, mine, __ffs((int)middle) - 1) : 0;  // none: a row has no numbers
    }
}

// root and root*centre of values from `begin` on, the centres from the origin.
static __device__ __forceinline__ void classified_table(float (*table)[ClassifiedSizes::LENGTH], int some, int whole, long begin,
                                                        const wide *centre, const wide *root, const float *origin)
{
    constexpr int P = ClassifiedSizes::P;
    for (int e = threadIdx.x; e < whole * P; e += blockDim.x) {
        const int x = e / P, j = e % P;
        float *const to = &table[x][j * (P + 1) - j * (j - 1) / 2];
        wide middle = 0;
        if (x < some) {
            const wide *const c = centre + (begin + x) * P, *const r = root + ((begin + x) * P + j) * P;
            for (int l = j; l < P; l++) {
                to[1 + l - j] = (float)r[l];
                middle -= r[l] * (c[l] - (wide)origin[l]);
            }
        } else
            for (int l = j; l < P; l++) to[1 + l - j] = 0;
        to[0] = (float)middle;
    }
}

// Log densities of the rows at the values of a batch.
static __device__ __forceinline__ void classified_weights(float (&weight)[ClassifiedSizes::ROWS][ClassifiedSizes::BATCH],
                                                          const float (*table)[ClassifiedSizes::LENGTH], int batch,
                                                          const float (&y)[ClassifiedSizes::ROWS][ClassifiedSizes::P], float times)
{
    constexpr int P = ClassifiedSizes::P, ROWS = ClassifiedSizes::ROWS;
#pragma unroll 1
    for (int x = 0; x < ClassifiedSizes::BATCH; x++) {
        const float4 *const t = (const float4 *)table[batch + x];
        float4 four = t[0];
        float sum[ROWS];
        int place = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r] = 0;
#pragma unroll
        for (int j = 0; j < P; j++) {
            float z[ROWS];
#pragma unroll
            for (int l = j - 1; l < P; l++) {
                const float c = place % 4 == 0 ? four.x : place % 4 == 1 ? four.y : place % 4 == 2 ? four.z : four.w;
                place++;
                if (place % 4 == 0) four = t[place / 4];
#pragma unroll
                for (int r = 0; r < ROWS; r++) z[r] = l < j ? c : z[r] + c * y[r][l];
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r] += z[r] * z[r];
        }
        const float number = place % 4 == 0 ? four.x : place % 4 == 1 ? four.y : place % 4 == 2 ? four.z : four.w;
#pragma unroll
        for (int r = 0; r < ROWS; r++) weight[r][x] = number + times * sum[r];
    }
}

template <typename Value>
static __device__ __forceinline__ void classify_single(GmContext *GM, const Sweep at, const int var, const char *name, const long n,
                                                       const long first, const long last, const float *row, const wide *centre,
                                                       const wide *root, int *chosen, const float times, Value of_value)
{
    constexpr int P = ClassifiedSizes::P, ROWS = ClassifiedSizes::ROWS, LENGTH = ClassifiedSizes::LENGTH, BATCH = ClassifiedSizes::BATCH,
                  VALUES = ClassifiedSizes::VALUES;
    // of a value: for each j root[j]*centre without its sign, root[j, j..]; then its number
    __shared__ alignas(16) float table[VALUES][LENGTH];
    const long values = last - first + 1, tile = (long)blockDim.x * ROWS;
    for (long from = blockIdx.x * tile; from < n; from += gridDim.x * tile) {
        float y[ROWS][P], origin[P], top[ROWS], total[ROWS];
        int taken[ROWS];
        bool wrong = false;
        classified_origin(row, n, from, origin);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
#pragma unroll
            for (int l = 0; l < P; l++) y[r][l] = i < n ? row[i * P + l] - origin[l] : 0;
            top[r] = -INFINITY;
            total[r] = 0;
            taken[r] = -1;
        }
        for (long begin = 0; begin < values; begin += VALUES) {
            const int some = (int)(begin + VALUES < values ? VALUES : values - begin), whole = (some + BATCH - 1) / BATCH * BATCH;
            __syncthreads();
            classified_table(table, some, whole, first - 1 + begin, centre, root, origin);
            for (int x = threadIdx.x; x < whole; x += blockDim.x)
                table[x][P * (P + 1) / 2 + P] = x < some ? (float)of_value(first + begin + x) : -INFINITY;
            __syncthreads();
            uint32_t word[ROWS][4];
            for (int r = 0; r < ROWS; r++) {
                Stream g = stream(at, var, from + r * (long)blockDim.x + threadIdx.x);
                g.counter0 += (uint32_t)(begin / (4 * BATCH));
                const Philox bits = random_block(&g);
                word[r][0] = bits.word0;
                word[r][1] = bits.word1;
                word[r][2] = bits.word2;
                word[r][3] = bits.word3;
            }
            for (int batch = 0; batch < some; batch += BATCH) {
                float weight[ROWS][BATCH];
                classified_weights(weight, table, batch, y, times);
                for (int r = 0; r < ROWS; r++) {
                    const long i = from + r * (long)blockDim.x + threadIdx.x;
                    float most = top[r], sum = 0;
#pragma unroll
                    for (int x = 0; x < BATCH; x++) {
                        wrong |= i < n && !(weight[r][x] < INFINITY);
                        most = fmaxf(most, weight[r][x]);
                    }
                    if (!(most > -INFINITY)) continue;
#pragma unroll
                    for (int x = 0; x < BATCH; x++) weight[r][x] = sum += __expf(weight[r][x] - most);
                    total[r] = total[r] * __expf(top[r] - most) + sum;
                    top[r] = most;
                    const float u = ((float)word[r][(begin + batch) / BATCH % 4] + 0.5f) * 2.3283064365386963e-10f * total[r];
                    if (u > sum) continue;
                    int k = 0;
#pragma unroll
                    for (int x = 0; x < BATCH - 1; x++) k += weight[r][x] < u;
                    taken[r] = (int)begin + batch + k;
                }
            }
        }
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
            if (i >= n) continue;
            if (wrong || taken[r] < 0) FAULT(name, i, "no value has a positive probability");
            else chosen[i] = (int)first + taken[r];
        }
    }
}

template <typename Row, typename Value>
static __device__ __forceinline__ void classify(GmContext *GM, const Sweep at, const int var, const char *name, const long n,
                                                const long first, const long last, const Row *row, const wide *centre, const wide *root,
                                                int *chosen, const double times, Value of_value)
{
    if constexpr (sizeof(Row) == 4) classify_single(GM, at, var, name, n, first, last, row, centre, root, chosen, (float)times, of_value);
    else classify_exactly(GM, at, var, name, n, first, last, row, centre, root, chosen, times, of_value);
}

// ---- probabilities of all values, for modes ----
//
// Log densities go to the array of probabilities batch by batch, with the largest and the sum of each row along the way; when a block has
// all values of its rows it makes probabilities of them. In single precision; false: the loop over values does it. Tests:
// tests/gpu/threads/modes.cpp, tests/gpu/modes.py.
#ifdef GM_MODES
#include "modes.h"

// A batch of log densities of the row, to where its probabilities will be; false: one of them is infinite or none.
template <int BATCH> static __device__ __forceinline__ bool expect_batch(const float (&weight)[BATCH], float *const to, int filled,
                                                                         bool by_four, float *top, float *total)
{
    bool good = true;
    float most = *top, sum = 0;
#pragma unroll
    for (int x = 0; x < BATCH; x++) {
        good &= weight[x] < INFINITY;
        most = fmaxf(most, weight[x]);
    }
    if (filled == BATCH && by_four)
#pragma unroll
        for (int x = 0; x < BATCH; x += 4) *(float4 *)(to + x) = make_float4(weight[x], weight[x + 1], weight[x + 2], weight[x + 3]);
    else
        for (int x = 0; x < filled; x++) to[x] = weight[x];
    if (!(most > -INFINITY)) return good;
#pragma unroll
    for (int x = 0; x < BATCH; x++) sum += __expf(weight[x] - most);
    *total = *total * __expf(*top - most) + sum;
    *top = most;
    return good;
}

// From log densities to probabilities, of rows of a tile; shift: the log of their sum. random: drawn (expect_values of modes.h).
static __device__ __forceinline__ void expect_shares(const Sweep at, int var, bool random, long n, long from, long rows, long values,
                                                     float *probability, const float *shift)
{
    if (random || values < 32) {
        for (long k = threadIdx.x; k < rows; k += blockDim.x) {
            float *const p = probability + (from + k) * values;
            if (random) {
                Stream g = stream(at, var, from + k);
                expect_values(&g, at, n, p, values, (wide *)0);
            } else
                for (long x = 0; x < values; x++) p[x] = __expf(p[x] - shift[k]);
        }
    } else
        for (long k = threadIdx.x / 32; k < rows; k += blockDim.x / 32) {
            float *const p = probability + (from + k) * values;
            for (long x = gm_lane_of_warp; x < values; x += 32) p[x] = __expf(p[x] - shift[k]);
        }
}

template <typename Value> static __device__ __forceinline__ void expect_single(GmContext *GM, const Sweep at, const int var,
                                                                               const char *name, const long n, const long first,
                                                                               const long last, const float *row, const wide *centre,
                                                                               const wide *root, float *probability, wide *evidence,
                                                                               const float times, Value of_value)
{
    constexpr int P = ClassifiedSizes::P, ROWS = ClassifiedSizes::ROWS, LENGTH = ClassifiedSizes::LENGTH, BATCH = ClassifiedSizes::BATCH,
                  VALUES = ClassifiedSizes::VALUES;
    __shared__ alignas(16) float table[VALUES][LENGTH];
    __shared__ float shift[GM_THREADS * ROWS];
    const long values = last - first + 1, tile = (long)blockDim.x * ROWS;
    const bool random = at.sweep == 1 && at.chain % 4 != 3;
    for (long from = blockIdx.x * tile; from < n; from += gridDim.x * tile) {
        float y[ROWS][P], origin[P], top[ROWS], total[ROWS];
        bool wrong = false;
        classified_origin(row, n, from, origin);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
#pragma unroll
            for (int l = 0; l < P; l++) y[r][l] = i < n ? row[i * P + l] - origin[l] : 0;
            top[r] = -INFINITY;
            total[r] = 0;
        }
        for (long begin = 0; begin < values; begin += VALUES) {
            const int some = (int)(begin + VALUES < values ? VALUES : values - begin), whole = (some + BATCH - 1) / BATCH * BATCH;
            __syncthreads();
            classified_table(table, some, whole, first - 1 + begin, centre, root, origin);
            for (int x = threadIdx.x; x < whole; x += blockDim.x)
                table[x][P * (P + 1) / 2 + P] = x < some ? (float)of_value(first + begin + x) : -INFINITY;
            __syncthreads();
            for (int batch = 0; batch < some; batch += BATCH) {
                float weight[ROWS][BATCH];
                classified_weights(weight, table, batch, y, times);
                const int filled = some - batch < BATCH ? some - batch : BATCH;
                for (int r = 0; r < ROWS; r++) {
                    const long i = from + r * (long)blockDim.x + threadIdx.x;
                    if (i < n)
                        wrong |=
                            !expect_batch(weight[r], probability + i * values + begin + batch, filled, values % 4 == 0, &top[r], &total[r]);
                }
            }
        }
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
            if (i >= n) continue;
            const wide all = (wide)top[r] + log((wide)total[r]);
            shift[r * blockDim.x + threadIdx.x] = (float)all;
            if (wrong || !(top[r] > -INFINITY)) FAULT(name, i, "no value has a positive probability");
            else if (evidence) evidence[i] = all;
        }
        __syncthreads();
        expect_shares(at, var, random, n, from, n - from < tile ? n - from : tile, values, probability, shift);
        __syncthreads();
    }
}

template <typename Row, typename Value>
static __device__ __forceinline__ bool expect_rows(GmContext *GM, const Sweep at, const int var, const char *name, const long n,
                                                   const long first, const long last, const Row *row, const wide *centre, const wide *root,
                                                   Row *probability, wide *evidence, const double times, Value of_value)
{
    if constexpr (sizeof(Row) == 4)
        expect_single(GM, at, var, name, n, first, last, row, centre, root, probability, evidence, (float)times, of_value);
    return sizeof(Row) == 4;
}
#endif
#endif
