// sparse_tiles.h -- draws x ~ N(J^-1 h, J^-1) on a GPU for a J with few entries: the flow of tiles of dense_tiles.h over the tiles of the
// factor that are not all 0.
//
//   values of terms, as a KERNEL_TERMS left them   ->   tiles of P J P', shift P h   ->   L L' = P J P', w = L^-1 P h   ->   scale s   ->
//                                                  x = P'L'^-1 (s w + e)
//
// Host and symbolic part: runtime/backends/tiles.c. Tiles say that they are there by a number each, ready[]; w, x, inverses and s say it
// themselves. A task needs tasks with smaller numbers alone, which blocks that run hold already. Sums run over columns in an order that the
// plan fixes, so draws do not depend on which block does what. In double in every precision.
//
// method      left-looking multifrontal order of tasks, by height in the tree of eliminations (Liu 1990, SIAM Review 34); tiles as in
// dense_tiles.h accuracy    as Cholesky in double test        tests/gpu/threads/sparse.cpp, by threads; tests/gpu/devices.py beside the CPU
#ifndef GM_SPARSE_TILES_H
#define GM_SPARSE_TILES_H

#include "dense_tiles.h"
#include "sparse_plan.h"

typedef struct SparseDraw {  // one chain's
    double *inverse, *w, *x, *s, *tile;
    const double *h;
    int *ready;
} SparseDraw;

static __device__ __forceinline__ SparseDraw sparse_draw_of(const SparsePlan &p, int chain, int chains)
{
    SparseDraw d;
    d.inverse = (double *)(p.scratch + DENSE_HEAD + (long)chain * SPARSE_POISONED(&p));
    d.w = d.inverse + p.tiles * DENSE_TILE * DENSE_TILE;
    d.x = d.w + p.tiles * DENSE_TILE;
    d.s = d.x + p.tiles * DENSE_TILE;
    d.ready = (int *)(d.s + 1);
    d.tile = (double *)(p.scratch + SPARSE_HEAD(&p, (long)chains) + (long)chain * SPARSE_ZERO(&p));
    d.h = d.tile + p.stored * DENSE_TILE * DENSE_TILE;
    return d;
}

static __device__ __forceinline__ void sparse_place(const SparseDraw &d, long to, double sum)
{
    if (to < 0) ((double *)d.h)[-1 - to] = sum;
    else d.tile[to / 2] = to % 2 ? 2 * sum : sum;
}

// A lane a sum.
extern "C" __global__ void gm_sparse_sums(const SparsePlan p)
{
    const int chain = (int)blockIdx.y;
    const SparseDraw d = sparse_draw_of(p, chain, (int)gridDim.y);
    const double *value = p.value + chain * p.terms;
    for (long k = blockIdx.x * (long)blockDim.x + threadIdx.x; k < p.sums; k += (long)gridDim.x * blockDim.x) {
        const SparseSum s = p.sum[k];
        double sum = 0;
        for (int t = s.first; t < s.first + s.count; t++) sum += value[p.list[t]];
        if (s.to == SPARSE_NOWHERE) p.part[chain * p.parts + k] = sum;
        else sparse_place(d, s.to, sum);
    }
}

// A warp a sum of parts.
extern "C" __global__ void gm_sparse_longs(const SparsePlan p)
{
    const int chain = (int)blockIdx.y, lane = (int)threadIdx.x % 32;
    const SparseDraw d = sparse_draw_of(p, chain, (int)gridDim.y);
    for (long k = (blockIdx.x * (long)blockDim.x + threadIdx.x) / 32; k < p.longs; k += (long)gridDim.x * blockDim.x / 32) {
        const SparseLong s = p.longer[k];
        double sum = 0;
        for (int t = s.first + lane; t < s.first + s.count; t += 32) sum += p.part[chain * p.parts + t];
        sum = dense_lanes(sum);
        if (lane == 0) sparse_place(d, s.to, sum);
    }
}

static __device__ __forceinline__ bool sparse_ready(const SparseDraw &d, int tile) { return dense_acquire(d.ready + tile) == 0; }

// Four numbers of a tile for a thread: rows warp, warp + 8, ..., the lane's column.
static __device__ __forceinline__ void sparse_fetch(const SparseDraw &d, int tile, double v[4])
{
    const double *from = d.tile + (long)tile * DENSE_TILE * DENSE_TILE + threadIdx.x;
#pragma unroll
    for (int u = 0; u < 4; u++) v[u] = __ldcg(from + u * DENSE_THREADS);
}

// The thread's four numbers of J, from (row, column) of the tile on, less than 0: what is added up counts against them. On the diagonal
// what is above is read from below, and beyond the last element it is the identity.
static __device__ __forceinline__ void sparse_begin(const SparsePlan &p, const SparseDraw &d, int tile, bool diagonal, double v[4])
{
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int a = dense_row() + e / 2 * 8, b = dense_column() + e % 2;
        const int r = diagonal && b > a ? b : a, c = diagonal && b > a ? a : b;
        v[e] = -(diagonal && r >= p.begin[tile + 1] - p.begin[tile]
                     ? (double)(r == c)
                     : __ldcg(d.tile + (long)tile * DENSE_TILE * DENSE_TILE + r * DENSE_TILE + c));
    }
}

// L w of a piece.
static __device__ __forceinline__ double *sparse_piece_vector(const SparsePlan &p, const SparseDraw &d, int tile)
{
    return (double *)d.h + (p.tiles + tile - p.factor) * DENSE_TILE;
}

// The task's updates: P of tile (i, k), less what it is to be; with SQUARES Q of (i, i), and u, L(i,j) w(j) for rows 4 warp .. 4 warp + 3,
// of the lane's columns. How many of them were products.
template <bool SQUARES> static __device__ __forceinline__ int sparse_updates(const SparsePlan &p, const SparseDraw &d, const SparseTask &t,
                                                                             double *part, double P[4], double Q[4], double u[4])
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const SparseUpdate *update = p.update + t.first;
    double one[4], other[4];
    int ready = 0, products = 0;
    bool fetched = false;
    for (int n = 0; n < t.count; n++) {
        const SparseUpdate now = update[n];
        while (n >= ready) {  // a lane looks at an update
            const SparseUpdate look = update[n + lane < t.count ? n + lane : n];
            const bool is =
                n + lane < t.count && sparse_ready(d, look.left) && (!(look.what & SPARSE_PRODUCT) || sparse_ready(d, look.right));
            const unsigned those = __ballot_sync(0xffffffffu, is);
            __syncwarp();
            ready = n + (those == 0xffffffffu ? 32 : __ffs((int)~those) - 1);
        }
        if (now.what & (SPARSE_ADD_PIECE | SPARSE_ADD_SQUARES)) {
            const double *from = d.tile + (long)now.left * DENSE_TILE * DENSE_TILE + dense_row() * DENSE_TILE + dense_column();
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const double v = __ldcg(from + e / 2 * 8 * DENSE_TILE + e % 2);
                if (now.what & SPARSE_ADD_PIECE) P[e] += v;
                else Q[e] += v;
                if (SQUARES && now.what & SPARSE_ADD_SQUARES && lane == 0)
                    u[e] += __ldcg(sparse_piece_vector(p, d, now.left) + 4 * warp + e);
            }
            continue;
        }
        double *A = part + products++ % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *B = A + DENSE_TILE * DENSE_STRIDE;
        if (!fetched) {  // else they are in registers since the last round
            sparse_fetch(d, now.left, one);
            if (now.what & SPARSE_PRODUCT) sparse_fetch(d, now.right, other);
        }
        dense_put(A, one);
        if (now.what & SPARSE_PRODUCT) dense_put(B, other);
        __syncthreads();
        fetched = n + 1 < t.count && n + 1 < ready && update[n + 1].what <= (SPARSE_PRODUCT | SPARSE_SQUARE);
        if (fetched) {
            sparse_fetch(d, update[n + 1].left, one);
            if (update[n + 1].what & SPARSE_PRODUCT) sparse_fetch(d, update[n + 1].right, other);
        }
        if (now.what & SPARSE_PRODUCT) dense_product(P, A, B);
        if (SQUARES && now.what & SPARSE_SQUARE) {
            dense_product(Q, A, A);
            const double w = dense_await(d.w + now.j * DENSE_TILE + lane);
#pragma unroll
            for (int e = 0; e < 4; e++) u[e] += A[(4 * warp + e) * DENSE_STRIDE + lane] * w;
        }
    }
    return products;
}

// A piece: its sum to a tile.
template <bool SQUARES>
static __device__ __forceinline__ void sparse_piece(const SparsePlan &p, const SparseDraw &d, const SparseTask &t, double *part)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    double P[4] = {}, Q[4] = {}, u[4] = {};
    sparse_updates<SQUARES>(p, d, t, part, P, Q, u);
    double *to = d.tile + (long)t.tile * DENSE_TILE * DENSE_TILE + dense_row() * DENSE_TILE + dense_column();
#pragma unroll
    for (int e = 0; e < 4; e++) __stcg(to + e / 2 * 8 * DENSE_TILE + e % 2, SQUARES ? Q[e] : P[e]);
    if (SQUARES)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const double sum = dense_lanes(u[e]);
            if (lane == 0) __stcg(sparse_piece_vector(p, d, t.tile) + 4 * warp + e, sum);
        }
    __syncthreads();
    if (threadIdx.x == 160) dense_release(d.ready + t.tile, 0);
}

// FINISHES: tile (i, k), if k >= 0, and (i, i); else tile (i, k) alone. `part` is shared memory, 4 tiles.
template <bool FINISHES> static __device__ __forceinline__ void sparse_tile(const SparsePlan &p, const SparseDraw &d, const SparseTask &t,
                                                                            double *part, GmPlace *place, int chain, const char *name)
{
    __shared__ double left[DENSE_TILE];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, i = t.i, k = t.k;
    double P[4] = {}, Q[4] = {}, one[4], u[4] = {};
    if (k >= 0) sparse_begin(p, d, t.tile, false, P);
    if (FINISHES) sparse_begin(p, d, i, true, Q);
    const int products = sparse_updates<FINISHES>(p, d, t, part, P, Q, u);
    if (FINISHES)  // h(i) - sum of L(i,j) w(j) for the other columns
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const double sum = dense_lanes(u[e]);
            if (lane == 0) left[4 * warp + e] = d.h[i * DENSE_TILE + 4 * warp + e] - sum;
        }
    // free since the last round but one
    double *first = part + products % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *second = first + DENSE_TILE * DENSE_STRIDE;
    double *third = part + (products + 1) % 2 * 2 * DENSE_TILE * DENSE_STRIDE, *fourth = third + DENSE_TILE * DENSE_STRIDE;
    if (k >= 0) {
#pragma unroll
        for (int e = 0; e < 4; e++) P[e] = -P[e];
        dense_store(first, P);
        const double *inverse = d.inverse + (long)k * DENSE_TILE * DENSE_TILE;
        dense_await(inverse + (DENSE_TILE - 1) * DENSE_TILE + lane);  // the last row is sent last; many wait for it
        dense_await4(inverse + warp * DENSE_TILE + lane, 8 * DENSE_TILE, one);
        dense_put(second, one);
        __syncthreads();
        double X[4] = {};
        dense_product(X, first, second);
        if (FINISHES) dense_store(third, X);
        double *to = d.tile + (long)t.tile * DENSE_TILE * DENSE_TILE;
#pragma unroll
        for (int e = 0; e < 4; e++) __stcg(to + (dense_row() + e / 2 * 8) * DENSE_TILE + dense_column() + e % 2, X[e]);
        __syncthreads();
        if (!FINISHES) {
            if (threadIdx.x == 160) dense_release(d.ready + t.tile, 0);
            return;
        }
        dense_product(Q, third, third);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) Q[e] = -Q[e];
    dense_store(fourth, Q);
    __syncthreads();
    int below = k >= 0;
    asm volatile("" : "+r"(below));                                       // or the compiler makes two copies of all that follows
    if (threadIdx.x == 160 && below) dense_release(d.ready + t.tile, 0);  // by who has nothing to do now
    if (!dense_factor(fourth, second, first, d.inverse + (long)i * DENSE_TILE * DENSE_TILE) && threadIdx.x % 32 == 0)
        gm_not_proper(place, chain, name, -1);
    if (below) {
        const double w = dense_await(d.w + k * DENSE_TILE + lane);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const double sum = dense_lanes(third[(4 * warp + e) * DENSE_STRIDE + lane] * w);
            if (lane == 0) left[4 * warp + e] -= sum;
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const double v = dense_lanes(first[(4 * warp + e) * DENSE_STRIDE + lane] * left[lane]);
        if (lane == 0) dense_publish(d.w + i * DENSE_TILE + 4 * warp + e, v);
    }
    __syncthreads();
}

// The scale, after the last tile.
static __device__ __forceinline__ void sparse_scale(const SparsePlan &p, const SparseDraw &d, Stream *g, wide *scale)
{
    double square_sum = 0;
    for (long j = threadIdx.x; j < p.tiles * DENSE_TILE; j += DENSE_THREADS) {
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
static __device__ __forceinline__ void sparse_back(const SparsePlan &p, const SparseDraw &d, int k, const Stream *g, bool scaled,
                                                   double *part, wide *x, GmPlace *place, int chain, const char *name)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, begin = p.first_below[k], end = p.first_below[k + 1];
    const long mine = (long)k * DENSE_TILE + lane, number = p.begin[k] + lane;
    const bool is = number < p.begin[k + 1];
    double *shift = part, *sums = part + DENSE_TILE, *more = sums + 8 * DENSE_TILE;
    double inverse[4], tile[4], sum = 0, e = 0;
    if (warp == 0 && is) e = gm_noise(g, number);
    for (int b = begin + lane; b < end; b += 32)
        while (!sparse_ready(d, p.below[b].tile)) {}
    __syncwarp();
    const auto fetch = [&](int b) {
        const double *from = d.tile + ((long)p.below[b].tile * DENSE_TILE + 4 * warp) * DENSE_TILE + lane;
#pragma unroll
        for (int v = 0; v < 4; v++) tile[v] = __ldcg(from + v * DENSE_TILE);
    };
    if (begin < end) fetch(begin);
    dense_await4(d.inverse + ((long)k * DENSE_TILE + 4 * warp) * DENSE_TILE + lane, DENSE_TILE, inverse);
    if (warp == 0) shift[lane] = (scaled ? dense_await(d.s) : 1.0) * dense_await(d.w + mine) + e;
    for (int b = begin; b < end; b++) {
        double xs[4], now[4];
#pragma unroll
        for (int v = 0; v < 4; v++) now[v] = tile[v];
        if (b + 1 < end) fetch(b + 1);
        dense_await4(d.x + p.below[b].i * DENSE_TILE + 4 * warp, 1, xs);
#pragma unroll
        for (int v = 0; v < 4; v++) sum += now[v] * xs[v];
    }
    sums[warp * DENSE_TILE + lane] = sum;
    __syncthreads();
    double y = shift[lane];
#pragma unroll
    for (int v = 0; v < 8; v++) y -= sums[v * DENSE_TILE + lane];
    double product = 0;
#pragma unroll
    for (int v = 0; v < 4; v++) product += inverse[v] * __shfl_sync(0xffffffffu, y, 4 * warp + v);
    more[warp * DENSE_TILE + lane] = product;
    __syncthreads();
    if (warp == 0) {
        y = more[lane];
#pragma unroll
        for (int v = 1; v < 8; v++) y += more[v * DENSE_TILE + lane];
        dense_publish(d.x + mine, y);
        if (is) {
            if (is_finite(y)) x[p.element[number]] = y;
            else gm_not_proper(place, chain, name, -1);
        }
    }
}

// Any number of blocks of DENSE_THREADS threads.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS, DENSE_RESIDENT)
    gm_sparse_tiles(const State *states, GmPlace *place, unsigned var, const char *name, int chains, uint64_t at_x, uint64_t at_scale,
                    const SparsePlan p)
{
    __shared__ __align__(16) double part[4 * DENSE_TILE * DENSE_STRIDE];
    __shared__ unsigned taken;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 96) taken = atomicAdd((unsigned *)p.scratch, 1u) + 1;
        __syncthreads();
        const unsigned task = taken / (unsigned)chains;
        const int chain = (int)(taken % (unsigned)chains);
        if (task >= (unsigned)(p.tasks + p.tiles)) return;
        const SparseDraw d = sparse_draw_of(p, chain, chains);
        wide *scale = gm_array<wide>(states, chain, at_scale);
        if (task < (unsigned)p.tasks) {
            const SparseTask t = p.task[task];
            if (t.kind == SPARSE_FINISHES) sparse_tile<true>(p, d, t, part, place, chain, name);
            else if (t.kind == SPARSE_TILE) sparse_tile<false>(p, d, t, part, place, chain, name);
            else if (t.kind == SPARSE_PIECE) sparse_piece<false>(p, d, t, part);
            else sparse_piece<true>(p, d, t, part);
            if (task == (unsigned)p.tasks - 1 && scale) {
                Stream g = stream(gm_sweep_of(place, chain), var, 0);
                sparse_scale(p, d, &g, scale);
            }
        } else {
            const Stream g = stream(gm_sweep_of(place, chain), var, 0);
            sparse_back(p, d, p.back[task - (unsigned)p.tasks], &g, scale != 0, part, gm_array<wide>(states, chain, at_x), place, chain,
                        name);
        }
    }
}

#endif
