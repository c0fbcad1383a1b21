// columns.h -- on a GPU: sums over rows of weight times column, for every weight of a row and many columns,
//
//   place(k, m) = sum(i, P[i, k] * value(i, m))        P[n, K], m < M
//
// as the expectations of a mixture need: counts, sums and cross products of the rows by component, P'[1 X XX'] for all of them
// together. A block makes 128 by 128 of them from a chunk of rows, 16 rows at a time in shared memory, a lane 8 by 8 in its registers;
// columns are computed where they are needed and never stored. Products are single, and sums of FLUSH rows, which go to sums of the chunk
// in double precision; chunks, whose number depends on the sizes alone, are added in order. What is the same for all rows of a column, such
// as a mean that is taken off, is single, too, and one number in all columns that have it. So sums are right to some 1e-6 of the sums of
// absolute values, of many rows to 1e-7, and the same on any grid.
//
// In single precision; false: loops do it, as where there is no room for the sums of a chunk. Tests: tests/gpu/threads/modes.cpp,
// tests/gpu/modes.py.
#ifndef GM_COLUMNS_H
#define GM_COLUMNS_H

#define COLUMNS_OF_WEIGHTS

enum { GM_COLUMN_CHUNKS = 64 };

// which sum it belongs to, its place in it, and what is the same for all its rows
struct Column {
    int sum;
    long a, b, c;
    real given[4];
};

enum { COLUMN_TILE = 128, COLUMN_DEPTH = 16 };  // sums of a block; rows at a time

struct ColumnSlab {
    float weight[COLUMN_DEPTH][COLUMN_TILE], column[COLUMN_DEPTH][COLUMN_TILE];
};

// The task of a block: sums k0 .., m0 .. of rows first .. last - 1.
struct ColumnTask {
    long k0, m0, first, last, K, M;
    wide *to;
};

// A lane's weights of the next rows, which are on their way while those that are there are used.
template <typename Weight>
static __device__ __forceinline__ void columns_load(const ColumnTask &c, const Weight *P, long row, int lane, int half, float (&w)[8])
{
    const Weight *from = P + (row + half) * c.K + c.k0 + lane;
    const int rest = (int)(c.last - row < COLUMN_DEPTH ? c.last - row : COLUMN_DEPTH);
    const bool weighs = c.k0 + lane < c.K;
#pragma unroll
    for (int e = 0; e < 8; e++) w[e] = half + 2 * e < rest && weighs ? (float)from[2 * e * c.K] : 0;
}

// sum += weights times columns, of the rows that are there.
static __device__ __forceinline__ void columns_add(const ColumnSlab &slab, int tx, int ty, float (&sum)[8][8])
{
#pragma unroll
    for (int r = 0; r < COLUMN_DEPTH; r++) {
        const float4 a = *(const float4 *)&slab.weight[r][4 * ty], b = *(const float4 *)&slab.weight[r][64 + 4 * ty],
                     u = *(const float4 *)&slab.column[r][4 * tx], v = *(const float4 *)&slab.column[r][64 + 4 * tx];
        const float x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, y[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) sum[i][j] += x[i] * y[j];
    }
}

// The sums go to those of the chunk, and are 0 again.
static __device__ __forceinline__ void columns_flush(const ColumnTask &c, int tx, int ty, bool begun, float (&sum)[8][8])
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const long k = c.k0 + (i < 4 ? 4 * ty + i : 60 + 4 * ty + i);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const long m = c.m0 + (j < 4 ? 4 * tx + j : 60 + 4 * tx + j);
            if (k < c.K && m < c.M) c.to[k * c.M + m] = (begun ? c.to[k * c.M + m] : 0) + (wide)sum[i][j];
            sum[i][j] = 0;
        }
    }
}

template <typename Weight, typename Split, typename Value>
static __device__ __forceinline__ void columns_task(const ColumnTask &c, ColumnSlab &slab, const Weight *P, Split split, Value value)
{
    constexpr int FLUSH = 1024;
    const int lane = threadIdx.x % COLUMN_TILE, half = threadIdx.x / COLUMN_TILE, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const bool counts = c.m0 + lane < c.M;
    const Column mine = split(counts ? c.m0 + lane : 0);
    bool begun = false;
    float sum[8][8], w[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = 0;
    columns_load(c, P, c.first, lane, half, w);
    for (long row = c.first, until = c.first + FLUSH; row < c.last; row += COLUMN_DEPTH) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const long i = row + half + 2 * e;
            slab.weight[half + 2 * e][lane] = w[e];
            slab.column[half + 2 * e][lane] = i < c.last && counts ? (float)value(i, mine) : 0;
        }
        __syncthreads();
        if (row + COLUMN_DEPTH < c.last) columns_load(c, P, row + COLUMN_DEPTH, lane, half, w);
        columns_add(slab, tx, ty, sum);
        if (row + COLUMN_DEPTH >= until) {
            columns_flush(c, tx, ty, begun, sum);
            begun = true;
            until += FLUSH;
        }
    }
    columns_flush(c, tx, ty, begun, sum);
}

template <typename Weight, typename Split, typename Value, typename To>
static __device__ __forceinline__ bool columns_of_weights(GmContext *GM, const long n, const long K, const Weight *P, const long M,
                                                          Split split, Value value, To place, wide *room, const long size_of_room)
{
    if constexpr (sizeof(Weight) != 4) return false;
    const long most = K > 0 && M > 0 ? size_of_room / (K * M) : 0;
    if (most < 1) return false;
    __shared__ alignas(16) ColumnSlab slab;
    const long wanted = (n + 4095) / 4096, fit = wanted < GM_COLUMN_CHUNKS ? wanted : GM_COLUMN_CHUNKS,
               chunks = fit < 1      ? 1
                        : fit < most ? fit
                                     : most,
               size = (n + chunks - 1) / chunks;
    const long across = (K + COLUMN_TILE - 1) / COLUMN_TILE, tiles = across * ((M + COLUMN_TILE - 1) / COLUMN_TILE);
    for (long task = blockIdx.x; task < tiles * chunks; task += gridDim.x) {
        const long chunk = task / tiles, first = chunk * size;
        const ColumnTask c = {task % tiles % across * COLUMN_TILE,
                              task % tiles / across * COLUMN_TILE,
                              first,
                              first + size < n ? first + size : n,
                              K,
                              M,
                              room + chunk * K * M};
        columns_task(c, slab, P, split, value);
    }
    team_barrier(GM);
    for (long e = gm_thread; e < K * M; e += gm_threads) {
        wide sum = 0;
        for (long chunk = 0; chunk < chunks; chunk++) sum += ((const volatile wide *)room)[chunk * K * M + e];
        place(e / M, split(e % M)) = sum;
    }
    return true;
}

#endif
