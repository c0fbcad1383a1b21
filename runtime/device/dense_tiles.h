// dense_tiles.h -- draws x ~ N(J^-1 h, J^-1) on a GPU by one kernel for all chains: a flow of tiles between blocks.
//
//   J[n, n], h[n]   ->   L L' = J, w = L^-1 h   ->   scale s   ->   x = L'^-1 (s w + e)                    J is destroyed
//
// A factorisation by 32 columns at a time is bound by how long one step waits for the one before, not by arithmetic. So there is one launch, and no
// step waits for all of another. Work is cut into tasks, and blocks take the next one from a counter:
//
//   tile (i, k), i > k, by columns     P = J(i,k) - sum over j < k of L(i,j) L(k,j)', as these tiles get ready; then L(i,k) = P L(k,k)'^-1
//   and if i = k + 1                   Q = J(i,i) - sum over j < i of L(i,j) L(i,j)'; factors Q, inverts the factor, w(i) = L(i,i)^-1 (h(i) - sum L(i,j) w(j))
//   then column k of tiles, from n     x(k) = L(k,k)'^-1 (s w(k) + e(k) - sum over i > k of L(i,k)' x(i))
//
// A task needs only tasks with smaller numbers, which blocks that run hold already: so it ends, however few blocks there are. What the next
// factorisation waits for goes the shortest way, from tile i on the diagonal to L(i+1,i) and tile i + 1 within one task. Sums run over j in order: the
// draws do not depend on which block does what.
//
// Blocks hand on numbers in two ways. Tiles L(i,k) are written to J, then done[i] is raised (release and acquire). Inverses, w, x and s, for which others
// wait, say themselves that they are there: their memory held bits that no such number has (dense_plan.h), and each is read until they are gone.
//
// method      tiled Cholesky (Buttari, Langou, Kurzak and Dongarra 2009), left-looking; inverted tiles on the diagonal as in MAGMA (Tomov, Nath, Ltaief and Dongarra 2010)
// accuracy    as Cholesky: backward stable up to the condition of single 32 by 32 tiles on the diagonal
// test        tests/gpu/joint_draws.cu
#ifndef GM_DENSE_TILES_H
#define GM_DENSE_TILES_H

#include "dense_plan.h"

enum { DENSE_STRIDE = 36 };                              // of a tile's rows in shared memory: 16-byte aligned, columns of eight rows in different banks

// ---- numbers that say themselves that they are there ----

DEVICE void dense_publish(double *to, double v) { *(volatile double *)to = v == v ? v : __longlong_as_double(0x7ff8000000000000LL); }
DEVICE void dense_publish(float *to, float v)   { *(volatile float *)to = v == v ? v : __int_as_float(0x7fc00000); }

DEVICE bool dense_absent(double v) { return __double_as_longlong(v) == -1; }
DEVICE bool dense_absent(float v)  { return __float_as_int(v) == -1; }

template <typename T> static __device__ __forceinline__ T dense_await(const T *from)
{
    T v;
    do v = *(const volatile T *)from;
    while (dense_absent(v));
    return v;
}

// Four of them, `step` elements apart: read together until the last is there.
template <typename T> static __device__ __forceinline__ void dense_await4(const T *from, int step, T v[4])
{
    do {
#pragma unroll
        for (int e = 0; e < 4; e++) v[e] = *(const volatile T *)(from + e * step);
    } while (dense_absent(v[0]) || dense_absent(v[1]) || dense_absent(v[2]) || dense_absent(v[3]));
}

DEVICE int dense_acquire(const int *from)
{
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

DEVICE void dense_release(int *to, int v)
{
    __threadfence();
    asm volatile("st.release.gpu.global.s32 [%0], %1;" : : "l"(to), "r"(v) : "memory");
}

// ---- arithmetic ----

// 1 / p = start (1 + rest), to rounding for normal p > 0 whose result is normal; something for others, which are reported elsewhere.
DEVICE void dense_reciprocal(double p, double *start, double *rest)
{
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(*start) : "d"(p));       // 20 bits, then thrice as many
    const double e = fma(-p, *start, 1.0);
    *rest = fma(e, e, e);
}

DEVICE void dense_reciprocal(float p, float *start, float *rest)
{
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(*start) : "f"(p));
    *rest = fmaf(-p, *start, 1.0f);
}

DEVICE double dense_inverse_root(double p)
{
    double r;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(p));
    const double e = fma(-p * r, r, 1.0);
    return fma(r * e, fma(e, 0.375, 0.5), r);
}

DEVICE float dense_inverse_root(float p) { return rsqrtf(p); }

// Where the four elements of a tile that a thread keeps in registers lie: rows first and first + 8, columns first and first + 1. As mma.m8n8k4 has them.
DEVICE int dense_row(void)    { return (int)threadIdx.x / 128 * 16 + (int)threadIdx.x % 32 / 4; }
DEVICE int dense_column(void) { return (int)threadIdx.x / 32 % 4 * 8 + (int)threadIdx.x % 4 * 2; }

// sum += A B' for tiles in shared memory.
DEVICE void dense_product(double sum[4], const double *A, const double *B)
{
#if __CUDA_ARCH__ >= 800
    const int lane = (int)threadIdx.x % 32;
    const double *a = A + dense_row() * DENSE_STRIDE + lane % 4, *b = B + ((int)threadIdx.x / 32 % 4 * 8 + lane / 4) * DENSE_STRIDE + lane % 4;
#pragma unroll
    for (int c = 0; c < DENSE_TILE; c += 4) {
        const double first = a[c], second = a[8 * DENSE_STRIDE + c], right = b[c];
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(sum[0]), "+d"(sum[1]) : "d"(first), "d"(right));
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(sum[2]), "+d"(sum[3]) : "d"(second), "d"(right));
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
// What an elimination does to rows of the identity turns them into the rows of L'^-1: a warp has row k of L^-1 when it has come to column k. Each
// column waits for the one before it, so that is the short way: to the next pivot first, and to the rest of the columns while that is on its way.
//
// columns[k][36]: column k from the pivot down, at 32 the pivot's reciprocal, at 33 its inverse root.

enum { DENSE_HALF = DENSE_TILE / 2 };

template <typename T> struct __align__(2 * sizeof(T)) DensePair { T first, second; };

template <typename T> struct DensePivot { T next, start, rest; };        // the element below it; its reciprocal is start (1 + rest)

// A barrier of two warps or three. Those that arrive do not wait.
DEVICE void dense_arrive(int barrier, int threads) { asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory"); }
DEVICE void dense_sync(int barrier, int threads)   { asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory"); }

// Who eliminates tells after these columns how far it is, more often towards the end of each half: by barriers 1 to 12. Warp 1 tells warp 3 by 13 and 14.
enum : unsigned { DENSE_TELLS = 1u << 3 | 1u << 7 | 1u << 11 | 1u << 13 | 1u << 15 | 1u << 19 | 1u << 23 | 0xf8000000u };
DEVICE int dense_told(int k)    { return k - 1 + __ffs((int)(DENSE_TELLS >> k)); }                 // the first of these from k on
DEVICE int dense_barrier(int k) { return __popc((int)(DENSE_TELLS & ((2u << k) - 1))); }
DEVICE int dense_party(int k)   { return k < DENSE_HALF ? 96 : 64; }

// Column k, an element for each lane, to shared memory; its pivot to all lanes.
template <typename T> static __device__ __forceinline__ DensePivot<T> dense_pivot(T element, int k, int lane, T *columns, bool &bad)
{
    T *column = columns + k * DENSE_STRIDE;
    DensePivot<T> p;
    const T value = __shfl_sync(0xffffffffu, element, k);
    p.next = __shfl_sync(0xffffffffu, element, k + 1);
    dense_reciprocal(value, &p.start, &p.rest);
    if (lane >= k) column[lane - k] = element;
    if (lane == 0) column[DENSE_TILE] = p.start + p.start * p.rest;
    bad |= !(value > 0) || !(value < (T)INFINITY);
    return p;
}

template <int WIDTH, typename T> static __device__ __forceinline__ void dense_load(DensePair<T> c[DENSE_HALF / 2], const T *column)
{
#pragma unroll
    for (int j = 0; j < WIDTH / 2; j++) c[j] = *(const DensePair<T> *)(column + 2 * j);
}

// Column k, c, from the WIDTH - 1 columns after it, which move up by one; the first of them is seen to elsewhere.
template <int WIDTH, typename T> static __device__ __forceinline__ void dense_shift(T a[DENSE_HALF], const DensePair<T> c[DENSE_HALF / 2], T factor)
{
#pragma unroll
    for (int j = 2; j < WIDTH; j++) a[j - 1] = a[j] - factor * (j % 2 ? c[j / 2].second : c[j / 2].first);
}

template <int WIDTH, typename T> static __device__ __forceinline__ void dense_eliminate(T a[DENSE_HALF], DensePivot<T> &p, int first, int last, int lane, T *columns, bool &bad)
{
#pragma unroll 1
    for (int k = first; k < last; k++) {
        DensePair<T> c[DENSE_HALF / 2];
        dense_load<WIDTH>(c, columns + k * DENSE_STRIDE);
        const T factor = a[0] * (p.start + p.start * p.rest), share = a[0] * p.next * p.start;
        a[0] = (a[1] - share) - share * p.rest;
        p = dense_pivot(a[0], k + 1, lane, columns, bad);
        dense_shift<WIDTH>(a, c, factor);
        __syncwarp();
        if (DENSE_TELLS >> (k + 1) & 1) dense_arrive(dense_barrier(k + 1), dense_party(k + 1));
    }
}

template <typename T> static __device__ __forceinline__ bool dense_eliminate_half(T a[DENSE_HALF], int first, int lane, T *columns)
{
    bool bad = false;
    DensePivot<T> p = dense_pivot(a[0], first, lane, columns, bad);
    __syncwarp();
    dense_eliminate<DENSE_HALF>(a, p, first, first + 8, lane, columns, bad);
    dense_eliminate<DENSE_HALF - 8>(a, p, first + 8, first + 15, lane, columns, bad);
    return !bad;
}

template <int WIDTH, typename T> static __device__ __forceinline__ void dense_invert(T b[DENSE_HALF], int first, int lane, T *columns, T *inverse, T *out, int &told)
{
#pragma unroll 1
    for (int k = first; k < first + 8; k++) {
        if (told < k) {
            told = dense_told(k);
            dense_sync(dense_barrier(told), dense_party(told));
        }
        T *column = columns + k * DENSE_STRIDE;
        DensePair<T> c[DENSE_HALF / 2];
        dense_load<WIDTH>(c, column);
        const T root = dense_inverse_root(c[0].first), y = b[0] * root, factor = b[0] * column[DENSE_TILE];
        dense_publish(out + k * DENSE_TILE + lane, y);
        inverse[k * DENSE_STRIDE + lane] = y;
        if (lane == 0) column[DENSE_TILE + 1] = root;
        b[0] = b[1] - factor * c[0].second;
        dense_shift<WIDTH>(b, c, factor);
    }
}

// By the first 128 threads: tile[32][stride], symmetric -> the inverse of its factor, to `inverse` [32][stride] in shared memory and `out` [32][32].
// False in some: a pivot is not positive.
template <typename T> static __device__ __forceinline__ bool dense_factor(const T *tile, T *columns, T *inverse, T *out)
{
    T a[DENSE_HALF];
    int lane = (int)threadIdx.x % 32;
    asm volatile("" : "+r"(lane));                       // kept, not read anew in loops
    const int warp = (int)threadIdx.x / 32, half = warp / 2 * DENSE_HALF;
#pragma unroll
    for (int j = 0; j < DENSE_HALF; j++) a[j] = warp % 2 ? (T)(half + j == lane) : tile[(half + j) * DENSE_STRIDE + lane];
    int told = -1;
    if (warp >= 2) {                                     // columns 0 to 15 from columns 16 to 31
        if (warp == 3) told = DENSE_HALF - 1;            // warp 1 knows
#pragma unroll 1
        for (int k = 0; k < DENSE_HALF; k++) {
            if (warp == 3 && k % 8 == 0) dense_sync(13 + k / 8, 64);
            if (told < k) {
                told = dense_told(k);
                dense_sync(dense_barrier(told), dense_party(told));
            }
            const T *column = columns + k * DENSE_STRIDE;
            const T factor = warp == 3 ? inverse[k * DENSE_STRIDE + lane] * column[DENSE_TILE + 1] : column[lane < k ? 0 : lane - k] * column[DENSE_TILE];
#pragma unroll
            for (int j = 0; j < DENSE_HALF; j++) a[j] -= factor * column[DENSE_HALF - k + j];
        }
    }
    if (warp % 2 == 0) return dense_eliminate_half(a, half, lane, columns);
    dense_invert<DENSE_HALF>(a, half, lane, columns, inverse, out, told);
    if (warp == 1) dense_arrive(13, 64);
    dense_invert<DENSE_HALF - 8>(a, half + 8, lane, columns, inverse, out, told);
    if (warp == 1) dense_arrive(14, 64);
    return true;
}

// ---- tasks ----

template <typename T> struct DenseDraw {                 // one chain's
    long  n;
    int   tiles;
    T    *J, *inverse, *w, *x;
    const T *h;
    double *s;
    int  *done;
};

template <typename T> static __device__ DenseDraw<T> dense_draw_of(unsigned char *scratch, int chain, long n, T *J, const T *h)
{
    DenseDraw<T> d;
    d.n = n;
    d.tiles = (int)DENSE_TILES(n);
    d.J = J;
    d.h = h;
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

// Element (row, column) of J for row >= column, beyond the last row that of the identity.
template <typename T> static __device__ __forceinline__ T dense_element(const DenseDraw<T> &d, long row, long column)
{
    return row < d.n ? __ldcg(d.J + row * d.n + column) : (T)(row == column);
}

// Tiles (i, i - 1) and (i, i); i = 0: (0, 0) alone. Or tile (i, k) with k < i - 1. `part` is shared memory, 4 tiles.
template <typename T> static __device__ __forceinline__ void dense_tile(const DenseDraw<T> &d, int i, int k, T *part, GmPlace *place, int chain, const char *name)
{
    __shared__ T left[DENSE_TILE];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const bool diagonal = i == k + 1;
    const long row = (long)i * DENSE_TILE + dense_row(), column = (long)k * DENSE_TILE + dense_column();
    T P[4] = {}, Q[4] = {}, u[4] = {}, p[4], q[4];       // u: L(i,j) w(j) for rows 4 warp .. 4 warp + 3, of the lane's columns
    T one[4], other[4], w = 0;
    int ready = 0;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const long r = row + e / 2 * 8, c = column + e % 2, across = c + DENSE_TILE;
        p[e] = k >= 0 && r < d.n ? __ldcg(d.J + r * d.n + c) : (T)0;
        q[e] = diagonal ? dense_element(d, r > across ? r : across, r > across ? across : r) : (T)0;
    }
    for (int j = 0; j < k; j++) {
        T *A = part + j % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *B = A + DENSE_TILE * DENSE_STRIDE;
        if (j >= ready) {                                // else they are in registers since the last round
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
        if (diagonal) w = *(const volatile T *)(d.w + j * DENSE_TILE + lane);
        dense_product(P, A, B);
        if (diagonal) {
            dense_product(Q, A, A);
            if (dense_absent(w)) w = dense_await(d.w + j * DENSE_TILE + lane);
#pragma unroll
            for (int e = 0; e < 4; e++) u[e] += A[(4 * warp + e) * DENSE_STRIDE + lane] * w;
        }
    }
    if (diagonal) {                                      // h(i) - sum of L(i,j) w(j) for j < k
#pragma unroll
        for (int e = 0; e < 4; e++) {
            for (int o = 16; o > 0; o /= 2) u[e] += __shfl_xor_sync(0xffffffffu, u[e], o);
            const long r = (long)i * DENSE_TILE + 4 * warp + e;
            if (lane == 0) left[4 * warp + e] = r < d.n ? d.h[r] - u[e] : (T)0;
        }
    }
    T *first = part + (k + 2) % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *second = first + DENSE_TILE * DENSE_STRIDE;        // free since the last round but one
    T *third = part + (k + 3) % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *fourth = third + DENSE_TILE * DENSE_STRIDE;
    if (k >= 0) {
#pragma unroll
        for (int e = 0; e < 4; e++) P[e] = p[e] - P[e];
        dense_store(first, P);
        const T *inverse = d.inverse + (long)k * DENSE_TILE * DENSE_TILE;
        if (!diagonal) dense_await(inverse + (DENSE_TILE - 1) * DENSE_TILE + lane);      // the last row is sent last; many wait for it
        dense_await4(inverse + warp * DENSE_TILE + lane, 8 * DENSE_TILE, one);
        dense_put(second, one);
        __syncthreads();
        T X[4] = {};
        dense_product(X, first, second);
        if (diagonal) dense_store(third, X);
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (row + e / 2 * 8 < d.n) __stcg(d.J + (row + e / 2 * 8) * d.n + column + e % 2, X[e]);
        __syncthreads();
        if (threadIdx.x == 160) dense_release(d.done + i, k + 1);
        if (!diagonal) return;
        dense_product(Q, third, third);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) Q[e] = q[e] - Q[e];
    dense_store(fourth, Q);
    __syncthreads();
    T *out = d.inverse + (long)i * DENSE_TILE * DENSE_TILE;
    if (threadIdx.x < 128 && !dense_factor(fourth, second, first, out) && threadIdx.x % 32 == 0) gm_raise(place, chain, name, 0, GM_NOT_PROPER);
    w = k >= 0 ? dense_await(d.w + k * DENSE_TILE + lane) : (T)0;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        T v = k >= 0 ? third[(4 * warp + e) * DENSE_STRIDE + lane] * w : (T)0;
        for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
        if (lane == 0) left[4 * warp + e] -= v;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) {
        T v = first[(4 * warp + e) * DENSE_STRIDE + lane] * left[lane];
        for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
        if (lane == 0) dense_publish(d.w + i * DENSE_TILE + 4 * warp + e, v);
    }
}

// The scale, after the last tile: from w'w.
template <typename T> static __device__ __forceinline__ void dense_scale(const DenseDraw<T> &d, Stream *g, wide *scale)
{
    double square_sum = 0;
    for (long j = threadIdx.x; j < d.n; j += DENSE_THREADS) {
        const double w = dense_await(d.w + j);
        square_sum += w * w;
    }
    square_sum = gm_block_sum(square_sum);
    if (threadIdx.x == 0) {
        const double s = gm_scale_drawn(g, scale[1], scale[0] - square_sum);
        scale[2] = s;
        dense_publish(d.s, s);
    }
}

// x of tile k.
template <typename T> static __device__ __forceinline__ void dense_back(const DenseDraw<T> &d, int k, const Stream *g, bool scaled, T *part, wide *x, GmPlace *place, int chain, const char *name)
{
    enum { AHEAD = 4 };
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const long mine = (long)k * DENSE_TILE + lane;
    T *shift = part, *sums = part + DENSE_TILE, *more = sums + 8 * DENSE_TILE;
    T inverse[4], tile[AHEAD][4], sum = 0;
    double e = 0;
    if (warp == 0 && mine < d.n) e = gm_noise(g, mine);
    for (int i = k + 1 + lane; i < d.tiles; i += 32)
        while (dense_acquire(d.done + i) <= k) { }
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
            if (!is_finite(y)) gm_raise(place, chain, name, 0, GM_NOT_PROPER);
            x[mine] = y;
        }
    }
}

// n >= 1; scratch: dense_plan.h. Any number of blocks of DENSE_THREADS threads.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS, DENSE_RESIDENT) gm_dense_tiles(const State *states, GmPlace *place, unsigned var, const char *name, long n, int chains,
                           uint64_t at_J, uint64_t at_h, uint64_t at_x, uint64_t at_scale, unsigned char *scratch)
{
    __shared__ __align__(16) solve part[4 * DENSE_TILE * DENSE_STRIDE];
    __shared__ unsigned taken;
    const int tiles = (int)DENSE_TILES(n);
    const unsigned factoring = 1 + (unsigned)tiles * (unsigned)(tiles - 1) / 2, all = factoring + (unsigned)tiles;
    int k = -1;                                          // the column of the last task but one, and the number of its first
    unsigned begin = 0;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 96) taken = atomicAdd((unsigned *)scratch, 1u) + 1;
        __syncthreads();
        const unsigned task = taken / (unsigned)chains;
        const int chain = (int)(taken % (unsigned)chains);
        if (task >= all) return;
        const DenseDraw<solve> d = dense_draw_of<solve>(scratch, chain, n, gm_array<solve>(states, chain, at_J), gm_array<const solve>(states, chain, at_h));
        wide *scale = gm_array<wide>(states, chain, at_scale);
        if (task < factoring) {
            while (task >= begin + (k < 0 ? 1u : (unsigned)(tiles - 1 - k))) begin += k < 0 ? 1u : (unsigned)(tiles - 1 - k), k++;
            const int i = k + 1 + (int)(task - begin);
            dense_tile(d, i, k, part, place, chain, name);
            if (i == tiles - 1 && k == i - 1 && scale) {
                Stream g = stream(gm_sweep_of(place, chain), var, 0);
                dense_scale(d, &g, scale);
            }
        } else {
            const Stream g = stream(gm_sweep_of(place, chain), var, 0);
            dense_back(d, tiles - 1 - (int)(task - factoring), &g, scale != 0, part, gm_array<wide>(states, chain, at_x), place, chain, name);
        }
    }
}

#endif
