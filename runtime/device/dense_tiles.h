// dense_tiles.h -- draws x ~ N(J^-1 h, J^-1) on a GPU by one kernel for all chains: a flow of tiles between blocks.
//
//   J[n, n], h[n]   ->   L L' = J, w = L^-1 h   ->   scale s   ->   x = L'^-1 (s w + e)                    J is destroyed
//
// A factorisation by 32 columns at a time is bound by how long one operation waits for the one before, not by arithmetic. So there is one
// launch, and no operation waits for all of another. Work is cut into tasks, and blocks take the next one from a counter:
//
//   tile (i, k), i > k, by columns     P = J(i,k) - sum over j < k of L(i,j) L(k,j)', as these tiles get ready; then L(i,k) = P L(k,k)'^-1
//   and if i = k + 1                   Q = J(i,i) - sum over j < i of L(i,j) L(i,j)'; factors Q, inverts the factor, w(i) = L(i,i)^-1 (h(i)
//                                      - sum L(i,j) w(j))
//   then column k of tiles, from n     x(k) = L(k,k)'^-1 (s w(k) + e(k) - sum over i > k of L(i,k)' x(i))
//
// A task needs only tasks with smaller numbers, which blocks that run hold already: so it ends, however few blocks there are. What the next
// factorisation waits for goes the shortest way, from tile i on the diagonal to L(i+1,i) and tile i + 1 within one task. Sums run over j in
// order: the draws do not depend on which block does what.
//
// Blocks hand on numbers in two ways. Tiles L(i,k) are written to J, then done[i] is raised (release and acquire). Inverses, w, x and s,
// for which others wait, say themselves that they are there: their memory held bits that no such number has (dense_plan.h), and each is
// read until they are gone.
//
// method      tiled Cholesky (Buttari, Langou, Kurzak and Dongarra 2009), left-looking; inverted tiles on the diagonal as in MAGMA (Tomov,
// Nath, Ltaief and Dongarra 2010) accuracy    as Cholesky, in double and in single precision test        tests/gpu/joint_draws.cu
#ifndef GM_DENSE_TILES_H
#define GM_DENSE_TILES_H

#include "dense_handing.h"
#include "dense_plan.h"

enum { DENSE_STRIDE = 36 };  // of a tile's rows in shared memory: 16-byte aligned, columns of eight rows in different banks

// ---- arithmetic ----

// Where the four elements of a tile that a thread keeps in registers lie: rows first and first + 8, columns first and first + 1. As
// mma.m8n8k4 has them.
DEVICE int dense_row(void) { return (int)threadIdx.x / 128 * 16 + (int)threadIdx.x % 32 / 4; }
DEVICE int dense_column(void) { return (int)threadIdx.x / 32 % 4 * 8 + (int)threadIdx.x % 4 * 2; }

// sum += A B' for tiles in shared memory.
DEVICE void dense_product(double sum[4], const double *A, const double *B)
{
#if __CUDA_ARCH__ >= 800 && !defined(DENSE_PLAIN)  // DENSE_PLAIN: for the test of what older GPUs do
    const int lane = (int)threadIdx.x % 32;
    const double *a = A + dense_row() * DENSE_STRIDE + lane % 4,
                 *b = B + ((int)threadIdx.x / 32 % 4 * 8 + lane / 4) * DENSE_STRIDE + lane % 4;
#pragma unroll
    for (int c = 0; c < DENSE_TILE; c += 4) {
        const double first = a[c], second = a[8 * DENSE_STRIDE + c], right = b[c];
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(sum[0]), "+d"(sum[1])
            : "d"(first), "d"(right));
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(sum[2]), "+d"(sum[3])
            : "d"(second), "d"(right));
    }
#else
    const double *a = A + dense_row() * DENSE_STRIDE, *b = B + dense_column() * DENSE_STRIDE;
#pragma unroll 4
    for (int c = 0; c < DENSE_TILE; c += 2) {
        const double2 p = *(const double2 *)(a + c), q = *(const double2 *)(a + 8 * DENSE_STRIDE + c);
        const double2 u = *(const double2 *)(b + c), v = *(const double2 *)(b + DENSE_STRIDE + c);
        sum[0] = fma(p.y, u.y, fma(p.x, u.x, sum[0]));
        sum[1] = fma(p.y, v.y, fma(p.x, v.x, sum[1]));
        sum[2] = fma(q.y, u.y, fma(q.x, u.x, sum[2]));
        sum[3] = fma(q.y, v.y, fma(q.x, v.x, sum[3]));
    }
#endif
}

DEVICE float dense_dot(float4 a, float4 b, float sum) { return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum)))); }

DEVICE void dense_product(float sum[4], const float *A, const float *B)
{
    const float *a = A + dense_row() * DENSE_STRIDE, *b = B + dense_column() * DENSE_STRIDE;
#pragma unroll
    for (int c = 0; c < DENSE_TILE; c += 4) {
        const float4 p = *(const float4 *)(a + c), q = *(const float4 *)(a + 8 * DENSE_STRIDE + c);
        const float4 u = *(const float4 *)(b + c), v = *(const float4 *)(b + DENSE_STRIDE + c);
        sum[0] = dense_dot(p, u, sum[0]);
        sum[1] = dense_dot(p, v, sum[1]);
        sum[2] = dense_dot(q, u, sum[2]);
        sum[3] = dense_dot(q, v, sum[3]);
    }
}

// The thread's four elements to a tile in shared memory.
template <typename T> static __device__ __forceinline__ void dense_store(T *tile, const T v[4])
{
    T *to = tile + dense_row() * DENSE_STRIDE + dense_column();
    to[0] = v[0];
    to[1] = v[1];
    to[8 * DENSE_STRIDE] = v[2];
    to[8 * DENSE_STRIDE + 1] = v[3];
}

// ---- a tile on the diagonal ----
//
// By four warps, who hand each other columns through shared memory; lane i of each has row i, and half of its columns in registers:
//
//   warp 0   eliminates columns 0 to 15 of the tile                      warp 2   takes them from columns 16 to 31, then eliminates those
//   warp 1   does the same to the identity: rows 0 to 15 of L^-1         warp 3   likewise: rows 16 to 31
//
// The elimination applied to rows of the identity gives the rows of L'^-1: a warp has row k of L^-1 when it has come to column
// k. Barriers of the block cut the columns into phases of 4, 4, 4, 2 and 2 in each half; warp 1 is a phase behind who eliminates, and warp
// 3 two, then one. Each column waits for the one before it, so that is the short way: to the next pivot first, and to the rest of the
// columns while that is on its way.
//
// columns[k][36]: column k from the pivot down, at 32 the pivot's reciprocal, at 33 its inverse root.

enum { DENSE_HALF = DENSE_TILE / 2, DENSE_PHASES = 5 };

#define DENSE_FIRST(phase) ((phase) < 3 ? 4 * (phase) : 6 + 2 * (phase))  // the first column of a phase, in its half

template <typename T> struct __align__(2 * sizeof(T)) DensePair { T first, second; };

// A column on its way: its pivot's reciprocal is start (1 + rest), and its share in the column after it is share (1 + rest).
template <typename T> struct DensePivot {
    T start, rest, share;
};

// Column k, an element for each lane, to shared memory; its pivot to all lanes.
template <typename T> static __device__ __forceinline__ DensePivot<T> dense_pivot(T element, int k, int lane, T *column)
{
    DensePivot<T> p;
    const T value = __shfl_sync(0xffffffffu, element, k), next = __shfl_sync(0xffffffffu, element, k + 1);
    dense_reciprocal(value, &p.start, &p.rest);
    p.share = element * next * p.start;
    if (lane >= k) column[lane - k] = element;
    if (lane == 0) column[DENSE_TILE] = p.start + p.start * p.rest;
    return p;
}

// The WIDTH columns from the pivot's on of column k.
template <int WIDTH, typename T> static __device__ __forceinline__ void dense_load(DensePair<T> c[DENSE_HALF / 2], const T *column)
{
#pragma unroll
    for (int j = 0; j < WIDTH / 2; j++) c[j] = *(const DensePair<T> *)(column + 2 * j);
}

// Column k, c, from the WIDTH - 1 columns after it, which move up by one; the first of them is seen to elsewhere.
template <int WIDTH, typename T>
static __device__ __forceinline__ void dense_shift(T a[DENSE_HALF], const DensePair<T> c[DENSE_HALF / 2], T factor)
{
#pragma unroll
    for (int j = 2; j < WIDTH; j++) a[j - 1] = a[j] - factor * (j % 2 ? c[j / 2].second : c[j / 2].first);
}

// Column k; a[j] is column k + j. Afterwards the next pivot is known.
template <int WIDTH, typename T>
static __device__ __forceinline__ void dense_column(T a[DENSE_HALF], DensePivot<T> &p, int k, int lane, T *column)
{
    DensePair<T> c[DENSE_HALF / 2];
    dense_load<WIDTH>(c, column);
    const T factor = a[0] * (p.start + p.start * p.rest);
    a[0] = (a[1] - p.share) - p.share * p.rest;
    p = dense_pivot(a[0], k + 1, lane, column + DENSE_STRIDE);
    dense_shift<WIDTH>(a, c, factor);
    __syncwarp();
}

// Columns first to last - 1. In loops, for code that is run once comes slowly.
template <int WIDTH, typename T>
static __device__ __forceinline__ void dense_eliminate(T a[DENSE_HALF], DensePivot<T> &p, int first, int last, int lane, T *columns)
{
    T *column = columns + first * DENSE_STRIDE;
#pragma unroll 1
    for (int k = first; k < last; k += 2, column += 2 * DENSE_STRIDE) {
        dense_column<WIDTH>(a, p, k, lane, column);
        if (k + 1 < last) dense_column<WIDTH>(a, p, k + 1, lane, column + DENSE_STRIDE);
    }
}

// The same from rows of the identity: rows of the inverse.
template <int WIDTH, typename T> static __device__ __forceinline__ void dense_invert(T b[DENSE_HALF], int first, int last, int lane,
                                                                                     T *columns, T *inverse, T *out, int &bad)
{
#pragma unroll 1
    for (int k = first; k < last; k++) {
        T *column = columns + k * DENSE_STRIDE;
        DensePair<T> c[DENSE_HALF / 2];
        dense_load<WIDTH>(c, column);
        const T root = dense_inverse_root(c[0].first), y = b[0] * root, factor = b[0] * column[DENSE_TILE];
        dense_publish(out + k * DENSE_TILE + lane, y);
        inverse[k * DENSE_STRIDE + lane] = y;
        if (lane == 0) column[DENSE_TILE + 1] = root;
        b[0] = b[1] - factor * c[0].second;
        dense_shift<WIDTH>(b, c, factor);
        bad |= !(root > 0 && root < (T)INFINITY);
    }
}

// Some columns of the first half from all of the second half, of the tile or the identity.
template <typename T> static __device__ __forceinline__ void dense_follow(T a[DENSE_HALF], int first, int last, bool tile, int lane,
                                                                          const T *columns, const T *inverse)
{
#pragma unroll 1
    for (int k = first; k < last; k++) {
        const T *column = columns + k * DENSE_STRIDE;
        const T factor =
            tile ? column[lane < k ? 0 : lane - k] * column[DENSE_TILE] : inverse[k * DENSE_STRIDE + lane] * column[DENSE_TILE + 1];
#pragma unroll
        for (int j = 0; j < DENSE_HALF; j++) a[j] -= factor * column[DENSE_HALF - k + j];
    }
}

// By a block: tile[32][stride], symmetric -> the inverse of its factor, to `inverse` [32][stride] in shared memory and `out` [32][32].
// False in some thread: a pivot is not positive.
template <typename T> static __device__ __forceinline__ bool dense_factor(const T *tile, T *columns, T *inverse, T *out)
{
    T a[DENSE_HALF];
    DensePivot<T> p;
    int lane = (int)threadIdx.x % 32;
    asm volatile("" : "+r"(lane));  // kept, not read anew in loops
    const int warp = (int)threadIdx.x / 32, half = warp / 2 * DENSE_HALF;
    int bad = 0;
    p.start = p.rest = p.share = 0;
    if (warp < 4)
#pragma unroll
        for (int j = 0; j < DENSE_HALF; j++) a[j] = warp % 2 ? (T)(half + j == lane) : tile[(half + j) * DENSE_STRIDE + lane];
#pragma unroll 1
    for (int slot = 0; slot <= 2 * DENSE_PHASES; slot++) {
        const int behind = slot - warp % 2, phase = behind - warp / 2 * DENSE_PHASES;
        if (warp < 4) {
            if (warp >= 2 && behind >= 1 && behind <= DENSE_PHASES)
                dense_follow(a, DENSE_FIRST(behind - 1), DENSE_FIRST(behind), warp == 2, lane, columns, inverse);
            const int first = half + DENSE_FIRST(phase), last = half + DENSE_FIRST(phase + 1);
            if (phase >= 0 && phase < DENSE_PHASES && warp % 2 == 0) {
                if (phase == 0) {
                    p = dense_pivot(a[0], half, lane, columns + half * DENSE_STRIDE);
                    __syncwarp();
                }
                if (phase < 2) dense_eliminate<DENSE_HALF>(a, p, first, last, lane, columns);
                // nothing is after the last
                else dense_eliminate<DENSE_HALF / 2>(a, p, first, phase < DENSE_PHASES - 1 ? last : last - 1, lane, columns);
            } else if (phase >= 0 && phase < DENSE_PHASES) {
                if (phase < 2) dense_invert<DENSE_HALF>(a, first, last, lane, columns, inverse, out, bad);
                else dense_invert<DENSE_HALF / 2>(a, first, last, lane, columns, inverse, out, bad);
            }
        }
        __syncthreads();
    }
    return !bad;
}

// ---- tasks ----

// left[2][n] of a chain, after which come partial sums of M.
static __device__ double *dense_rows_left(const DenseRows &rows, int chain)
{
    return (double *)(rows.scratch + chain * rows.chain) + 2 * rows.p;
}

template <typename T> struct DenseDraw {  // one chain's
    long n;
    int tiles;
    T *J, *inverse, *w, *x;
    const T *h, *second;  // second: L^-1 of this instead of noise; or NULL
    const T *partial;     // J to begin with, as sums by chunks, without the identity; NULL: it lies in J
    long chunks;
    double *s;
    int *done;
};

template <typename T>
static __device__ DenseDraw<T> dense_draw_of(unsigned char *scratch, int chain, long n, T *J, const T *h, const DenseRows &rows)
{
    DenseDraw<T> d;
    d.n = n;
    d.tiles = (int)DENSE_TILES(n);
    d.J = J;
    d.h = h;
    d.second = d.partial = (const T *)0;
    d.chunks = rows.chunks;
    if (rows.p > 0) {
        d.h = (const T *)dense_rows_left(rows, chain);
        d.second = d.h + n;
        d.partial = d.second + n;
    }
    d.inverse = (T *)(scratch + DENSE_HEAD + (long)chain * DENSE_CHAIN((long)d.tiles, (long)sizeof(T)));
    d.w = d.inverse + (long)d.tiles * DENSE_TILE * DENSE_TILE;
    d.x = d.w + 2L * d.tiles * DENSE_TILE;
    d.s = (double *)(d.inverse + DENSE_VECTORS((long)d.tiles));
    d.done = (int *)(d.s + 1);
    return d;
}

// Four elements of tile (i, j) of J for a thread, rows warp, warp + 8, ... and the lane's column; 0 beyond the last row.
template <typename T> static __device__ __forceinline__ void dense_fetch(const DenseDraw<T> &d, int i, int j, T v[4])
{
    const long row = (long)i * DENSE_TILE + threadIdx.x / 32;
    const T *from = d.J + row * d.n + (long)j * DENSE_TILE + threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < 4; u++) v[u] = row + 8 * u < d.n ? __ldcg(from + 8 * u * d.n) : (T)0;
}

template <typename T> static __device__ __forceinline__ void dense_put(T *tile, const T v[4])
{
    T *to = tile + (int)threadIdx.x / 32 * DENSE_STRIDE + (int)threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < 4; u++) to[8 * u * DENSE_STRIDE] = v[u];
}

// The thread's four elements of J as it was, from (row, column) on; of the identity beyond the last row. Above the diagonal it is read from
// below.
template <typename T> static __device__ __forceinline__ void dense_begin(const DenseDraw<T> &d, long row, long column, T v[4])
{
    const long size = DENSE_TILE * DENSE_TILE, chunk = DENSE_PAIRS((long)d.tiles) * size;
    long at[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const long a = row + e / 2 * 8, b = column + e % 2, r = a > b ? a : b, c = a > b ? b : a;
        at[e] = r >= d.n    ? -1
                : d.partial ? (DENSE_PAIRS(r / DENSE_TILE) + c / DENSE_TILE) * size + r % DENSE_TILE * DENSE_TILE + c % DENSE_TILE
                            : r * d.n + c;
        v[e] = at[e] < 0 || d.partial ? (T)(r == c) : __ldcg(d.J + at[e]);
    }
    if (d.partial)
#pragma unroll 1
        for (long k = 0; k < d.chunks; k++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (at[e] >= 0) v[e] += __ldcg(d.partial + k * chunk + at[e]);
}

// w(j), the lane's element, and that of the second vector if there is one.
template <typename T> static __device__ __forceinline__ void dense_vectors(const DenseDraw<T> &d, int j, int lane, T w[2])
{
    const T *from = d.w + j * DENSE_TILE + lane;
    w[0] = dense_await(from);
    w[1] = d.second ? dense_await(from + d.tiles * DENSE_TILE) : (T)0;
}

// The sum over a warp.
template <typename T> static __device__ __forceinline__ T dense_lanes(T v)
{
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Parts of a round of tiles, one of which is read while the other is filled.
template <typename T> static __device__ __forceinline__ T *dense_part(T *part, int round)
{
    return part + round % 2 * 2 * DENSE_TILE * DENSE_STRIDE;
}

// P += sum over j < k of L(i,j) L(k,j)'; DIAGONAL: also Q += L(i,j) L(i,j)', and u: L(i,j) w(j) for rows 4 warp .. 4 warp + 3, of the
// lane's columns.
template <bool DIAGONAL, typename T>
static __device__ __forceinline__ void dense_sum(const DenseDraw<T> &d, int i, int k, T *part, T (&P)[4], T (&Q)[4], T (&u)[2][4])
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    T one[4], other[4], w[2] = {};
    int ready = 0;
    for (int j = 0; j < k; j++) {
        T *A = dense_part(part, j), *B = A + DENSE_TILE * DENSE_STRIDE;
        if (j >= ready) {  // else they are in registers since the last round
            do {
                const int a = dense_acquire(d.done + i), b = dense_acquire(d.done + k);
                ready = __shfl_sync(0xffffffffu, a < b ? a : b, 0);
            } while (j >= ready);
            dense_fetch(d, i, j, one);
            dense_fetch(d, k, j, other);
        }
        dense_put(A, one);
        dense_put(B, other);
        __syncthreads();
        if (j + 1 < k && j + 1 < ready) {
            dense_fetch(d, i, j + 1, one);
            dense_fetch(d, k, j + 1, other);
        }
        dense_product(P, A, B);
        if (DIAGONAL) {
            dense_product(Q, A, A);
            dense_vectors(d, j, lane, w);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const T a = A[(4 * warp + e) * DENSE_STRIDE + lane];
                u[0][e] += a * w[0];
                u[1][e] += a * w[1];
            }
        }
    }
}

// left = h(i) - sum of L(i,j) w(j) for j < k
template <typename T>
static __device__ __forceinline__ void dense_left(const DenseDraw<T> &d, int i, const T (&u)[2][4], T (*left)[DENSE_TILE])
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const long r = (long)i * DENSE_TILE + 4 * warp + e;
        const T sum = dense_lanes(u[0][e]), also = d.second ? dense_lanes(u[1][e]) : (T)0;
        if (lane == 0) left[0][4 * warp + e] = r < d.n ? d.h[r] - sum : (T)0;
        if (lane == 0) left[1][4 * warp + e] = r < d.n && d.second ? d.second[r] - also : (T)0;
    }
}

// L(i,k) = P L(k,k)'^-1, to J; DIAGONAL: to `third` as well.
template <bool DIAGONAL, typename T>
static __device__ __forceinline__ void dense_below(const DenseDraw<T> &d, int i, int k, T (&P)[4], T *first, T *second, T *third)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const long row = (long)i * DENSE_TILE + dense_row(), column = (long)k * DENSE_TILE + dense_column();
    T one[4], X[4] = {};
#pragma unroll
    for (int e = 0; e < 4; e++) P[e] = -P[e];
    dense_store(first, P);
    const T *inverse = d.inverse + (long)k * DENSE_TILE * DENSE_TILE;
    // the last row is sent last; many wait for it
    if (!DIAGONAL) dense_await(inverse + (DENSE_TILE - 1) * DENSE_TILE + lane);
    dense_await4(inverse + warp * DENSE_TILE + lane, 8 * DENSE_TILE, one);
    dense_put(second, one);
    __syncthreads();
    dense_product(X, first, second);
    if (DIAGONAL) dense_store(third, X);
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (row + e / 2 * 8 < d.n) __stcg(d.J + (row + e / 2 * 8) * d.n + column + e % 2, X[e]);
    __syncthreads();
}

// left -= L(i,k) w(k), if there is a tile below; then w(i) = L(i,i)^-1 left, inverse in `first`, for those that wait.
template <typename T> static __device__ __forceinline__ void dense_publish_w(const DenseDraw<T> &d, int i, int k, int below, const T *first,
                                                                             const T *third, T (*left)[DENSE_TILE])
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    if (below) {
        T w[2];
        dense_vectors(d, k, lane, w);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const T a = third[(4 * warp + e) * DENSE_STRIDE + lane], sum = dense_lanes(a * w[0]),
                    also = d.second ? dense_lanes(a * w[1]) : (T)0;
            if (lane == 0) left[0][4 * warp + e] -= sum;
            if (lane == 0) left[1][4 * warp + e] -= also;
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const T a = first[(4 * warp + e) * DENSE_STRIDE + lane], v = dense_lanes(a * left[0][lane]),
                also = d.second ? dense_lanes(a * left[1][lane]) : (T)0;
        if (lane == 0) dense_publish(d.w + i * DENSE_TILE + 4 * warp + e, v);
        if (lane == 0 && d.second) dense_publish(d.w + (d.tiles + i) * DENSE_TILE + 4 * warp + e, also);
    }
}

// DIAGONAL: k = i - 1, tiles (i, i - 1) and (i, i); i = 0: (0, 0) alone. Else tile (i, k) with k < i - 1. `part` is shared memory, 4 tiles.
template <bool DIAGONAL, typename T>
static __device__ __forceinline__ void dense_tile(const DenseDraw<T> &d, int i, int k, T *part, GmPlace *place, int chain, const char *name)
{
    __shared__ T left[2][DENSE_TILE];
    const long row = (long)i * DENSE_TILE + dense_row(), column = (long)k * DENSE_TILE + dense_column();
    T P[4] = {}, Q[4] = {}, u[2][4] = {};  // P, Q: less what they are to be
    if (k >= 0) dense_begin(d, row, column, P);
    if (DIAGONAL) dense_begin(d, row, column + DENSE_TILE, Q);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        P[e] = -P[e];
        Q[e] = -Q[e];
    }
    dense_sum<DIAGONAL>(d, i, k, part, P, Q, u);
    if (DIAGONAL) dense_left(d, i, u, left);
    // free since the last round but one
    T *first = dense_part(part, k + 2), *second = first + DENSE_TILE * DENSE_STRIDE;
    T *third = dense_part(part, k + 3), *fourth = third + DENSE_TILE * DENSE_STRIDE;
    if (k >= 0) {
        dense_below<DIAGONAL>(d, i, k, P, first, second, third);
        if (!DIAGONAL) {
            if (threadIdx.x == 160) dense_release(d.done + i, k + 1);
            return;
        }
        dense_product(Q, third, third);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) Q[e] = -Q[e];
    dense_store(fourth, Q);
    __syncthreads();
    T *out = d.inverse + (long)i * DENSE_TILE * DENSE_TILE;
    int below = k >= 0;
    asm volatile("" : "+r"(below));                                     // or the compiler makes two copies of all that follows
    if (threadIdx.x == 160 && below) dense_release(d.done + i, k + 1);  // by who has nothing to do now
    if (!dense_factor(fourth, second, first, out) && threadIdx.x % 32 == 0) gm_not_proper(place, chain, name, -1);
    dense_publish_w(d, i, k, below, first, third, left);
}

// Q - h'J^-1 h, which is Q - w'w; with few rows Q - k'k - y'y + w'w for k = D^-1/2 h. In every thread.
static __device__ double gm_rows_rest(const State *states, int chain, const DenseRows &rows)
{
    const wide *D = gm_array<const wide>(states, chain, rows.D), *y = gm_array<const wide>(states, chain, rows.y);
    const solve *h = gm_array<const solve>(states, chain, rows.h);
    double sum = 0;
    for (long j = threadIdx.x; j < rows.p; j += DENSE_THREADS) sum -= D[j] * h[j] * (D[j] * h[j]);
    for (long i = threadIdx.x; i < rows.n; i += DENSE_THREADS) sum -= y[i] * y[i];
    return gm_block_sum(sum);
}

// The scale, after the last tile.
template <typename T> static __device__ __forceinline__ void dense_scale(const DenseDraw<T> &d, const State *states, int chain,
                                                                         const DenseRows &rows, Stream *g, wide *scale)
{
    double square_sum = 0;
    for (long j = threadIdx.x; j < d.n; j += DENSE_THREADS) {
        const double w = dense_await(d.w + j);
        square_sum += w * w;
    }
    square_sum = gm_block_sum(square_sum);
    const double rest = scale[0] + (rows.p > 0 ? gm_rows_rest(states, chain, rows) + square_sum : -square_sum);
    if (threadIdx.x == 0) {
        const double s = gm_scale_drawn(g, scale[1], rest);
        scale[2] = s;
        dense_publish(d.s, s);
    }
}

// x of tile k.
template <typename T> static __device__ __forceinline__ void dense_back(const DenseDraw<T> &d, int k, const Stream *g, bool scaled, T *part,
                                                                        wide *x, GmPlace *place, int chain, const char *name)
{
    enum { AHEAD = 4 };
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const long mine = (long)k * DENSE_TILE + lane;
    T *shift = part, *sums = part + DENSE_TILE, *more = sums + 8 * DENSE_TILE;
    T inverse[4], tile[AHEAD][4], sum = 0;
    double e = 0;
    if (warp == 0 && mine < d.n && !d.second) e = gm_noise(g, mine);
    for (int i = k + 1 + lane; i < d.tiles; i += 32)
        while (dense_acquire(d.done + i) <= k) {}
    __syncwarp();
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        const long row = (long)(d.tiles - 1 - a) * DENSE_TILE + 4 * warp;
#pragma unroll
        for (int v = 0; v < 4; v++) tile[a][v] = d.tiles - 1 - a > k && row + v < d.n ? __ldcg(d.J + (row + v) * d.n + mine) : (T)0;
    }
    dense_await4(d.inverse + ((long)k * DENSE_TILE + 4 * warp) * DENSE_TILE + lane, DENSE_TILE, inverse);
    if (warp == 0) {
        const double w = dense_await(d.w + mine);
        if (d.second) e = dense_await(d.w + d.tiles * DENSE_TILE + mine);
        shift[lane] = (T)((scaled ? dense_await(d.s) : 1.0) * w + e);
    }
    for (int top = d.tiles - 1; top > k; top -= AHEAD) {
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const int i = top - a;
            if (i <= k) break;
            T xs[4];
            dense_await4(d.x + i * DENSE_TILE + 4 * warp, 1, xs);
#pragma unroll
            for (int v = 0; v < 4; v++) sum += tile[a][v] * xs[v];
            const long row = (long)(i - AHEAD) * DENSE_TILE + 4 * warp;
#pragma unroll
            for (int v = 0; v < 4; v++)
                if (i - AHEAD > k) tile[a][v] = __ldcg(d.J + (row + v) * d.n + mine);
        }
    }
    sums[warp * DENSE_TILE + lane] = sum;
    __syncthreads();
    T u = shift[lane];
#pragma unroll
    for (int v = 0; v < 8; v++) u -= sums[v * DENSE_TILE + lane];
    T product = 0;
#pragma unroll
    for (int v = 0; v < 4; v++) product += inverse[v] * __shfl_sync(0xffffffffu, u, 4 * warp + v);
    more[warp * DENSE_TILE + lane] = product;
    __syncthreads();
    if (warp == 0) {
        T y = more[lane];
#pragma unroll
        for (int v = 1; v < 8; v++) y += more[v * DENSE_TILE + lane];
        dense_publish(d.x + mine, y);
        if (mine < d.n) {
            if (!is_finite(y)) gm_not_proper(place, chain, name, -1);
            else if (x) x[mine] = y;
        }
    }
}

template <typename T> static __device__ __forceinline__ void dense_flow(const State *states, GmPlace *place, unsigned var, const char *name,
                                                                        long n, int chains, uint64_t at_J, uint64_t at_h, uint64_t at_x,
                                                                        uint64_t at_scale, unsigned char *scratch, const DenseRows &rows)
{
    __shared__ __align__(16) T part[4 * DENSE_TILE * DENSE_STRIDE];
    __shared__ unsigned taken;
    const int tiles = (int)DENSE_TILES(n);
    const unsigned factoring = 1 + (unsigned)tiles * (unsigned)(tiles - 1) / 2, all = factoring + (unsigned)tiles;
    int k = -1;  // the column of the last task, and the number of its first
    unsigned begin = 0;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 96) taken = atomicAdd((unsigned *)scratch, 1u) + 1;
        __syncthreads();
        const unsigned task = taken / (unsigned)chains;
        const int chain = (int)(taken % (unsigned)chains);
        if (task >= all) return;
        T *J = gm_array<T>(states, chain, at_J);
        if (sizeof(T) != sizeof(solve))
            J = (T *)dense_rows_left(rows, chain) + 2 * n + rows.chunks * DENSE_PAIRS((long)tiles) * (DENSE_TILE * DENSE_TILE);
        const DenseDraw<T> d = dense_draw_of<T>(scratch, chain, n, J, gm_array<const T>(states, chain, at_h), rows);
        wide *scale = gm_array<wide>(states, chain, at_scale);
        if (task < factoring) {
            while (task >= begin + (k < 0 ? 1u : (unsigned)(tiles - 1 - k))) begin += k < 0 ? 1u : (unsigned)(tiles - 1 - k), k++;
            const int i = k + 1 + (int)(task - begin);
            if (i > k + 1) dense_tile<false>(d, i, k, part, place, chain, name);
            else dense_tile<true>(d, i, k, part, place, chain, name);
            if (i == tiles - 1 && k == i - 1 && scale) {
                Stream g = stream(gm_sweep_of(place, chain), var, 0);
                dense_scale(d, states, chain, rows, &g, scale);
            }
        } else {
            const Stream g = stream(gm_sweep_of(place, chain), var, 0);
            dense_back(d, tiles - 1 - (int)(task - factoring), &g, scale != 0, part, gm_array<wide>(states, chain, at_x), place, chain,
                       name);
        }
    }
}

// n >= 1. scratch: dense_plan.h. rows: with p = 0 J and h are arrays of State, and x the draw; else J has room for the factor of M, which
// is made of what gm_rows_products left, there is no h, and the draw stays in scratch. Any number of blocks of DENSE_THREADS threads.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS, DENSE_RESIDENT)
    gm_dense_tiles(const State *states, GmPlace *place, unsigned var, const char *name, long n, int chains, uint64_t at_J, uint64_t at_h,
                   uint64_t at_x, uint64_t at_scale, unsigned char *scratch, const DenseRows rows)
{
    dense_flow<solve>(states, place, var, name, n, chains, at_J, at_h, at_x, at_scale, scratch, rows);
}

// ---- few rows ----
//
//   a = D^-1 h, b = D^-1/2 e1   ->   M = I + rows D^-1 rows', left = { y - rows a, e2 - rows b }   ->   t = L'^-1 L^-1 (s left[0] +
//                               left[1]), M = L L' ->   x = s a + b + D^-1 rows' t
//
// which is gm_normal_rows of linalg.h with rows as they are, e1 and e2 standard normal. The factor takes both vectors along, so that only
// the scale s and one solve come after it.

//
// In double in every precision: with a vague prior M is singular to within the rounding of single precision (in which rows are kept,
// though: they are data).

// As gm_dense_tiles, for M where solve is single precision.
template <typename T> struct DenseDouble {
    static __device__ __forceinline__ void flow(const State *states, GmPlace *place, unsigned var, const char *name, long n, int chains,
                                                uint64_t at_scale, unsigned char *scratch, const DenseRows &rows)
    {
        dense_flow<double>(states, place, var, name, n, chains, ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0, at_scale, scratch, rows);
    }
};
template <> struct DenseDouble<double> {  // gm_dense_tiles does
    static __device__ __forceinline__ void flow(const State *, GmPlace *, unsigned, const char *, long, int, uint64_t, unsigned char *,
                                                const DenseRows &)
    {
    }
};

extern "C" __global__ void __launch_bounds__(DENSE_THREADS, DENSE_RESIDENT)
    gm_rows_tiles(const State *states, GmPlace *place, unsigned var, const char *name, long n, int chains, uint64_t at_J, uint64_t at_h,
                  uint64_t at_x, uint64_t at_scale, unsigned char *scratch, const DenseRows rows)
{
    (void)at_J, (void)at_h, (void)at_x;
    DenseDouble<solve>::flow(states, place, var, name, n, chains, at_scale, scratch, rows);
}

// D to D^-1/2; a, b.
GM_KERNEL gm_rows_prior(const State *states, GmPlace *place, unsigned var, const char *name, const DenseRows rows)
{
    const int chain = (int)blockIdx.y;
    wide *D = gm_array<wide>(states, chain, rows.D);
    const solve *h = gm_array<const solve>(states, chain, rows.h);
    double *a = (double *)(rows.scratch + chain * rows.chain), *b = a + rows.p;
    const Stream g = stream(gm_sweep_of(place, chain), var, 0);
    for (long j = blockIdx.x * (long)DENSE_THREADS + threadIdx.x; j < rows.p; j += gridDim.x * (long)DENSE_THREADS) {
        if (!(D[j] > 0)) gm_not_proper(place, chain, name, -1);
        const double r = 1 / sqrt(D[j]);
        D[j] = r;
        a[j] = r * (r * h[j]);
        b[j] = r * gm_noise(&g, j);
    }
}

// Tile (i, j) of rows D^-1 rows', summed over a chunk of columns.
static __device__ __forceinline__ void gm_rows_tile(const solve *from, const wide *D, const DenseRows &rows, int i, int j, long chunk,
                                                    double *part, double *out)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    double sum[4] = {}, one[4], other[4];
    const long begin = chunk * rows.slabs * DENSE_TILE,
               end = begin + rows.slabs * DENSE_TILE < rows.p ? begin + rows.slabs * DENSE_TILE : rows.p;
    int half = 0;
    for (long column = begin + lane, at = begin; at < end + DENSE_TILE; at += DENSE_TILE, column += DENSE_TILE, half ^= 1) {
        double *A = part + half * 2 * DENSE_TILE * DENSE_STRIDE, *B = A + DENSE_TILE * DENSE_STRIDE;
        if (at > begin) {  // what was fetched in the last round
            dense_put(A, one);
            dense_put(B, other);
            __syncthreads();
        }
        if (at < end) {
            const double weight = column < end ? D[column] * D[column] : 0;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const long r = (long)i * DENSE_TILE + warp + 8 * e, c = (long)j * DENSE_TILE + warp + 8 * e;
                one[e] = r < rows.n && column < end ? (double)from[r * rows.p + column] : 0;
                other[e] = c < rows.n && column < end ? from[c * rows.p + column] * weight : 0;
            }
        }
        if (at > begin) dense_product(sum, A, B);
    }
    double *to = out + dense_row() * DENSE_TILE + dense_column();
    to[0] = sum[0];
    to[1] = sum[1];
    to[8 * DENSE_TILE] = sum[2];
    to[8 * DENSE_TILE + 1] = sum[3];
}

// Blocks 0 to n - 1: left, a row each. The others: tiles of M.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS, 3)
    gm_rows_products(const State *states, const GmPlace *place, unsigned var, const DenseRows rows)
{
    __shared__ __align__(16) double part[4 * DENSE_TILE * DENSE_STRIDE];
    const int chain = (int)blockIdx.y;
    const solve *from = gm_array<const solve>(states, chain, rows.rows);
    double *left = dense_rows_left(rows, chain);
    if (blockIdx.x >= rows.n) {
        const long pairs = DENSE_PAIRS(DENSE_TILES(rows.n)), task = (long)blockIdx.x - rows.n, chunk = task / pairs;
        int i = 0, j = (int)(task % pairs);
        while (j > i) j -= ++i;
        gm_rows_tile(from, gm_array<const wide>(states, chain, rows.D), rows, i, j, chunk, part,
                     left + 2 * rows.n + task * (DENSE_TILE * DENSE_TILE));
        return;
    }
    const long i = blockIdx.x;
    const double *a = (const double *)(rows.scratch + chain * rows.chain), *b = a + rows.p;
    double first = 0, second = 0;
    from += i * rows.p;
#pragma unroll 4
    for (long j = threadIdx.x; j < rows.p; j += DENSE_THREADS) {
        first += from[j] * a[j];
        second += from[j] * b[j];
    }
    first = gm_block_sum(first);
    second = gm_block_sum(second);
    if (threadIdx.x == 0) {
        const Stream g = stream(gm_sweep_of(place, chain), var, 0);
        left[i] = gm_array<const wide>(states, chain, rows.y)[i] - first;
        left[rows.n + i] = gm_noise(&g, rows.p + i) - second;
    }
}

// The scale where there is no row. One block a chain.
GM_KERNEL gm_rows_scale(const State *states, const GmPlace *place, unsigned var, uint64_t at_scale, const DenseRows rows)
{
    const int chain = (int)blockIdx.y;
    wide *scale = gm_array<wide>(states, chain, at_scale);
    Stream g = stream(gm_sweep_of(place, chain), var, 0);
    const double rest = scale[0] + gm_rows_rest(states, chain, rows);
    if (threadIdx.x == 0) scale[2] = gm_scale_drawn(&g, scale[1], rest);
}

// x, 32 columns a block; scratch: that of gm_dense_tiles.
GM_KERNEL gm_rows_place(const State *states, GmPlace *place, const char *name, uint64_t at_x, uint64_t at_scale, unsigned char *scratch,
                        const DenseRows rows)
{
    __shared__ double share[8][DENSE_TILE];
    const int chain = (int)blockIdx.y, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const long j = (long)blockIdx.x * DENSE_TILE + lane;
    const solve *from = gm_array<const solve>(states, chain, rows.rows) + j;
    const double *t = dense_draw_of<double>(scratch, chain, rows.n, (double *)0, (const double *)0, rows).x;
    double sum = 0;
    if (j < rows.p)
#pragma unroll 8
        for (long i = warp; i < rows.n; i += 8) sum += from[i * rows.p] * t[i];
    share[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || j >= rows.p) return;
    double all = 0;
    for (int k = 0; k < 8; k++) all += share[k][lane];
    const double *a = (const double *)(rows.scratch + chain * rows.chain), *b = a + rows.p,
                 D = gm_array<const wide>(states, chain, rows.D)[j];
    const wide *scale = gm_array<const wide>(states, chain, at_scale);
    const double x = (scale ? scale[2] : 1) * a[j] + b[j] + D * D * all;
    if (is_finite(x)) gm_array<wide>(states, chain, at_x)[j] = x;
    else gm_not_proper(place, chain, name, -1);
}

#endif
