// weighted_cores.h -- X' diag(w) X of up to 64 columns in single precision, by tensor cores.
//
//   order      A block takes a chunk of rows, which two pairs of warps share, eight rows at a time each. What a lane reads of eight rows is
//              its part of both factors: X', and X times the weights. The two warps of a pair have ten of the twenty tiles of 16 by 8
//              outputs at or below the diagonal each, in registers. Nothing goes through shared memory before the chunk ends, and the next
//              eight rows are on their way while eight are worked on.
//   products   of tensor_cores.h: each number is a sum of two of type tf32, three of the four products are taken. The sums of the tensor
//              cores are cut off rather than rounded: after 32 rows they are added to others of single precision, which are rounded; chunks
//              are added in double, in a fixed order (gm_weighted_products_add).
//   accuracy   6e-7 of the sum of sizes, sum_i |w[i] X[i, j] X[i, k]|
//   test       tests/gpu/weighted.cu
#ifndef GM_WEIGHTED_CORES_H
#define GM_WEIGHTED_CORES_H

#include "tensor_cores.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

enum { CORES_SIDE = 64, CORES_THREADS = 128 };

// Columns of eight of two rows of X, and the rows' weights; column: of those from the fifth on, which may lie beyond p.
template <int MINE> static __device__ __forceinline__ void cores_read(const float *X, const float *w, long row, long last, int p,
                                                                      const int (&column)[MINE - 4], float (&next)[2][MINE],
                                                                      float (&next_weight)[2])
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, q = lane % 4;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const long i = row + q + 4 * k, at = i < last ? i : last - 1;
        const float *const from = X + at * p + g;
        next_weight[k] = i < last ? w[i] : 0;
#pragma unroll
        for (int j = 0; j < MINE; j++) next[k][j] = from[j < 4 ? 8 * j : column[j - 4]];
    }
}

// part += the products of eight rows.
template <int LARGE, int SMALL, int TILES, int MINE>
static __device__ __forceinline__ void cores_add(const float (&x)[2][MINE], const float (&weight)[2], float (&part)[TILES][4])
{
    unsigned large[4], large_low[4], small[4], small_low[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        cores_split(x[e / 2][2 * LARGE + e % 2], large[e], large_low[e]);
        cores_split(x[e / 2][2 * SMALL + e % 2], small[e], small_low[e]);
    }
#pragma unroll
    for (int j = 0; j < MINE; j++) {
        unsigned b[2], low[2];
#pragma unroll
        for (int k = 0; k < 2; k++) cores_split(weight[k] * x[k][j], b[k], low[k]);
        cores_product(part[j], large_low, b[0], b[1]);
        if (j < 2 * (SMALL + 1)) cores_product(part[MINE + j], small_low, b[0], b[1]);
        cores_product(part[j], large, low[0], low[1]);
        if (j < 2 * (SMALL + 1)) cores_product(part[MINE + j], small, low[0], low[1]);
        cores_product(part[j], large, b[0], b[1]);
        if (j < 2 * (SMALL + 1)) cores_product(part[MINE + j], small, b[0], b[1]);
    }
}

// The sums of the first pair go to share; those of the second, with these, to out.
template <int LARGE, int SMALL, int TILES, int MINE>
static __device__ __forceinline__ void cores_store(const float (&sum)[TILES][4], const float (&part)[TILES][4], int pair, double *share,
                                                   double *out)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, q = lane % 4;
    for (int turn = 0; turn < 2; turn++) {
        if (pair == turn)
#pragma unroll
            for (int k = 0; k < TILES; k++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int at =
                        (16 * (k < MINE ? LARGE : SMALL) + g + 8 * (e / 2)) * CORES_SIDE + 8 * (k < MINE ? k : k - MINE) + 2 * q + e % 2;
                    const double whole = (double)(sum[k][e] + part[k][e]);
                    if (turn == 0) share[at] = whole;
                    else out[at] = share[at] + whole;
                }
        __syncthreads();
    }
}

// The tiles of one warp of a pair: rows 48 .. 63 and 0 .. 15 of the outputs (the first), or 32 .. 47 and 16 .. 31. Sums go to share (the
// first pair), or with what is there to out.
template <int LARGE, int SMALL> static __device__ __forceinline__ void cores_of_warp(const float *X, const float *w, long first, long last,
                                                                                     int p, int pair, double *share, double *out)
{
    // MINE: tiles of the larger row of tiles, and columns of eight that are read
    enum { TILES = 2 * (LARGE + SMALL + 2), MINE = 2 * (LARGE + 1), GROUP = 8, EVERY = 4 };
    const int g = (int)threadIdx.x % 32 / 4;
    float sum[TILES][4], part[TILES][4], x[2][MINE], next[2][MINE], weight[2], next_weight[2];
    int column[MINE - 4], done = 0;
#pragma unroll
    for (int j = 4; j < MINE; j++) column[j - 4] = 8 * j + g < p ? 8 * j : p - 1 - g;  // p > 32; outputs beyond p are not used
#pragma unroll
    for (int k = 0; k < TILES; k++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum[k][e] = part[k][e] = 0;
    if (first + GROUP * pair < last) cores_read<MINE>(X, w, first + GROUP * pair, last, p, column, next, next_weight);
    for (long row = first + GROUP * pair; row < last; row += 2 * GROUP) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            weight[k] = next_weight[k];
#pragma unroll
            for (int j = 0; j < MINE; j++) x[k][j] = next[k][j];
        }
        if (row + 2 * GROUP < last) cores_read<MINE>(X, w, row + 2 * GROUP, last, p, column, next, next_weight);
        cores_add<LARGE, SMALL, TILES, MINE>(x, weight, part);
        if (++done % EVERY == 0) {
#pragma unroll
            for (int k = 0; k < TILES; k++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    sum[k][e] += part[k][e];
                    part[k][e] = 0;
                }
        }
    }
    cores_store<LARGE, SMALL, TILES, MINE>(sum, part, pair, share, out);
}

// blockIdx.y: the chunk, after `before` others of all `chunks`; z: the chain. part[chain][chunk][64 * 64], what lies above the diagonal's
// tiles excepted.
extern "C" __global__ void __launch_bounds__(CORES_THREADS, 3)
    gm_weighted_products_cores(const State *states, long n, long p, long chunk, long before, long chunks, const real *X, uint64_t at_w,
                               double *part)
{
    __shared__ double share[CORES_SIDE * CORES_SIDE];
    const int chain = (int)blockIdx.z, warp = (int)threadIdx.x / 32;
    const long at = before + blockIdx.y, first = at * chunk, last = first + chunk < n ? first + chunk : n;
    const float *const w = (const float *)gm_array<const real>(states, chain, at_w), *const x = (const float *)X;
    double *const out = part + (chain * chunks + at) * (CORES_SIDE * CORES_SIDE);
    if (warp % 2 == 0) cores_of_warp<3, 0>(x, w, first, last, (int)p, warp / 2, share, out);
    else cores_of_warp<2, 1>(x, w, first, last, (int)p, warp / 2, share, out);
}

#endif
#endif
