// products_pass.h -- products of rows on a GPU (ROW_PRODUCTS of launch_rows.h) in one reading of X[n, p], for several chains at once:
//
//   eta = X B        w, sums = the emitted KERNEL_SPAN, given eta of some rows        out = X'w, and 1'w
//
// Included by kernels_cuda.h after row_pass.h, once Data, State, GmPlace and GmContext are known. PRODUCTS_KERNELS(name) makes the kernels
// name_products_M_N around name_span(); products_plan.h says which to launch and how. For single precision, and GPUs of compute capability
// 8.0 and later; where they do not serve, the host has two products by cuBLAS.
//
//   order      A block takes a chunk of rows, tile after tile in shared memory, where both products read it; the next tile is on its way.
//              eta is shared between warps by columns of X, whose parts are added in order; X'w stays in registers, for some of the columns
//              in each warp, until the chunk ends; gm_products_sums adds chunks, in double, in a fixed order.
//   products   by tensor cores: each number is a sum of two of type tf32, and three of the four products are taken (Ootomo and Yokota 2022,
//              IJHPCA 36). Their sums are of single precision, cut off rather than rounded; a sum of eta is one of p / 8 terms, one of out
//              of 2048 rows at most.
//   1'w        by a column of ones behind those of X.
//   accuracy   eta: 5e-7 sum |X[i, j] B[j, k]|; out: 1e-6 of the sum of sizes. That of single precision.
//   test       tests/gpu/products.cu
#ifndef GM_PRODUCTS_PASS_H
#define GM_PRODUCTS_PASS_H

#include "products_plan.h"
#include "tensor_cores.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define PRODUCTS_INLINE static __device__ __forceinline__

// ---- the rows of a span: a lane's share of them, and what becomes of totals ----

typedef struct SpanRow {  // one row of a tile, or none
    long first, last;
    wide *totals;  // of 16 lanes
} SpanRow;

typedef struct SpanRowLoop {
    long first, last;
    int begun;
} SpanRowLoop;

template <int count> PRODUCTS_INLINE SpanRowLoop span_begin(const GmContext *, const SpanRow &r, long, wide *const (&)[count])
{
    SpanRowLoop l;
    l.first = r.first;
    l.last = r.last;
    l.begun = 0;
    return l;
}

template <int count> PRODUCTS_INLINE int span_next(GmContext *, SpanRowLoop *l, wide *const (&)[count]) { return !l->begun++; }

PRODUCTS_INLINE long span_first(const SpanRowLoop &l) { return l.first; }
PRODUCTS_INLINE long span_last(const SpanRowLoop &l) { return l.last; }
PRODUCTS_INLINE long span_step(const SpanRowLoop &) { return 1; }

PRODUCTS_INLINE void span_total(GmContext *, const SpanRow &r, int k, wide *, wide x)
{
    for (int o = 8; o; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
    if ((threadIdx.x & 15) == 0) r.totals[k] += x;
}

// ---- tensor cores ----

// The same to single precision, for n tiles of outputs in turns, since each product waits for the one before.
template <int n_tiles> PRODUCTS_INLINE void products_add(float (&c)[n_tiles][4], const unsigned (&high)[4], const unsigned (&low)[4],
                                                         const unsigned (&b)[n_tiles][2], const unsigned (&b_low)[n_tiles][2])
{
#pragma unroll
    for (int n = 0; n < n_tiles; n++) cores_product(c[n], low, b[n][0], b[n][1]);
#pragma unroll
    for (int n = 0; n < n_tiles; n++) cores_product(c[n], high, b_low[n][0], b_low[n][1]);
#pragma unroll
    for (int n = 0; n < n_tiles; n++) cores_product(c[n], high, b[n][0], b[n][1]);
}

// ---- copies that run ahead (RowStages of row_pass.h) ----

// Rows `from` .. of a tile into a stage, in one piece, or row by row where rows lie further apart there. By all threads.
PRODUCTS_INLINE void products_order(const RowStages *s, int stage, const ProductsPass &pass, long from, int rows)
{
    if (pass.stride == pass.p) {
        row_order(s, stage, (const unsigned char *)(pass.X + from * pass.p), (rows * pass.p * 4 + 15) & ~15L);
        return;
    }
    float *const to = (float *)(s->tiles + (long)stage * s->bytes);
    const float *const x = pass.X + from * pass.p;
#if __CUDA_ARCH__ >= 900 && !defined(GM_ROW_OLD_COPY)
    const unsigned barrier = s->barriers + 8 * stage, bytes = (unsigned)pass.p * 4;
    if (threadIdx.x >= 32) return;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(rows * bytes) : "memory");
    __syncwarp();
    for (int r = (int)threadIdx.x; r < rows; r += 32)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         row_shared_address(to + r * pass.stride)),
                     "l"(x + r * pass.p), "r"(bytes), "r"(barrier)
                     : "memory");
#elif __CUDA_ARCH__ >= 800
    for (int r = (int)threadIdx.x / 32; r < rows; r += PRODUCTS_WARPS)
        for (int j = 4 * (threadIdx.x & 31); j < pass.p; j += 128)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(row_shared_address(to + r * pass.stride + j)),
                         "l"(x + r * pass.p + j)
                         : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    (void)to;
    (void)x;
#endif
}

// ---- the pass ----

template <class T> PRODUCTS_INLINE T *products_field(const void *state, unsigned long offset)
{
    return *(T *const *)((const unsigned char *)state + offset);
}

// an output: row i has it at eta[i * k]
typedef struct ProductsColumn {
    float *eta;
    const float *weight;
    long k;
} ProductsColumn;
static_assert(sizeof(ProductsColumn) == PRODUCTS_COLUMN, "the plan counts its bytes");

extern __shared__ __align__(128) unsigned char products_shared[];

// How many tiles of outputs a block has now; how many chains a batch.
PRODUCTS_INLINE int products_tiles(const GmPlace *place, const ProductsPass &pass)
{
    return place->going[0] <= pass.narrow ? 2 : pass.n_tiles;
}
PRODUCTS_INLINE int products_chains(const GmPlace *place, const ProductsPass &pass, int batch)
{
    const int left = place->going[0] - batch * pass.together;
    return left < pass.together ? left : pass.together;
}

// What a block does: a chunk of rows for a batch of chains. And what is where in shared memory.
struct ProductsBlock {
    int p, stride, tile, batch, first_chain, chains, outputs;
    long chunk, first, last;  // of rows
    const int *chain_of;
    float *tiles, *share;  // share: parts of eta, and then weights
    ProductsColumn *column;
    wide *totals;                   // of 16 rows and a chain, in turn
    int group, hand, hands, steps;  // of a warp

    __device__ __forceinline__ int rows_from(long row) const { return last - row < tile ? (int)(last - row) : tile; }
};

// Rows are taken at a distance, 8 of them 4 / v apart in X B, 4 of them 8 / v apart in X'w, v the power of 2 in the stride: lanes then
// read from different banks. In `share` those that are taken together lie together.
struct ProductsRows {
    int eights, fours, g, q;  // log2 of the distances; of the lane

    __device__ __forceinline__ int eight(int u) const { return (u >> eights << (eights + 3)) + (g << eights) + (u & ((1 << eights) - 1)); }
    __device__ __forceinline__ int four(int u) const { return (u >> fours << (fours + 2)) + (q << fours) + (u & ((1 << fours) - 1)); }
    __device__ __forceinline__ int in_eights(int r) const
    {
        return (r >> (eights + 3) << (eights + 3)) + (r & ((1 << eights) - 1)) * 8 + (r >> eights & 7);
    }
    __device__ __forceinline__ int in_fours(int r) const
    {
        return (r >> (fours + 2) << (fours + 2)) + (r & ((1 << fours) - 1)) * 4 + (r >> fours & 3);
    }
};

// Lanes of a warp beside each other; the others take more rows.
PRODUCTS_INLINE int products_across(int left) { return left > 16 ? 32 : left > 8 ? 16 : 8; }

template <int m, int n> PRODUCTS_INLINE void products_clear(float (&c)[m][n][4])
{
#pragma unroll
    for (int a = 0; a < m; a++)
#pragma unroll
        for (int b = 0; b < n; b++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[a][b][i] = 0;
}

// Where each output has its eta and its weights, totals of 0, and numbers where no copy fills: what lies beyond a row meets zeros.
template <class S>
PRODUCTS_INLINE void products_begin(const ProductsBlock &b, const S *__restrict__ states, const ProductsPass &pass, RowStages *stages)
{
    const int t = threadIdx.x;
    for (int c = t; c < b.outputs; c += PRODUCTS_THREADS) {
        const ProductsOf *of = pass.of;
        int o = c % pass.width;
        for (; o >= of->k; of++) o -= (int)of->k;
        const S *s = states + b.chain_of[c / pass.width];
        b.column[c].eta = products_field<float>(s, of->eta) + o;
        b.column[c].weight = products_field<const float>(s, of->weight) + o;
        b.column[c].k = of->k;
    }
    for (int e = t; e < PRODUCTS_PAIRS / 16 * pass.totals; e += PRODUCTS_THREADS) b.totals[e] = 0;
    if (b.stride > b.p || b.last - b.first < 2 * b.tile)
        for (int e = t; e < 2 * PRODUCTS_STAGE(b.tile, b.stride); e += PRODUCTS_THREADS) b.tiles[e] = 0;
    else if (t < 32) b.tiles[(t / 16 + 1) * PRODUCTS_STAGE(b.tile, b.stride) - 1 - t % 16] = 0;
    stages->tiles = (unsigned char *)b.tiles;
    stages->barriers = row_shared_address(products_shared);
    stages->bytes = 4 * PRODUCTS_STAGE(b.tile, b.stride);
    stages->n = 2;
    stages->stage = 0;
    stages->turn = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    row_stages_begin(stages);
    __syncthreads();
}

// Parts of eta of 32 rows, over every hands-th 8 columns: the lane's are q and q + 4 of them. The upper half of the hands give theirs to
// the lower half.
template <int n_tiles> PRODUCTS_INLINE void products_eta(const ProductsBlock &b, const ProductsRows &at, const int (&row_of)[4],
                                                         const float *x, const float2 *const pieces)
{
    enum { ACROSS = PRODUCTS_ACROSS(n_tiles) };
    const int hand = b.hand, hands = b.hands, steps = b.steps;
    float eta[2][n_tiles][4];
    products_clear(eta);
    const float *a[4];
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = x + row_of[i] * b.stride + at.q;
    float2 ahead[n_tiles];
#pragma unroll
    for (int n = 0; n < n_tiles; n++) ahead[n] = hand < steps ? __ldg(pieces + (hand * n_tiles + n) * 32) : make_float2(0, 0);
    for (int s = hand; s < steps; s += hands) {
        unsigned high[2][4], low[2][4];
        const int next = s + hands < steps ? s + hands : s;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            cores_split(a[i][8 * s], high[i / 2][i % 2], low[i / 2][i % 2]);
            cores_split(a[i][8 * s + 4], high[i / 2][i % 2 + 2], low[i / 2][i % 2 + 2]);
        }
        unsigned c[n_tiles][2], c_low[n_tiles][2];
#pragma unroll
        for (int n = 0; n < n_tiles; n++) {
            cores_split(ahead[n].x, c[n][0], c_low[n][0]);
            cores_split(ahead[n].y, c[n][1], c_low[n][1]);
            ahead[n] = __ldg(pieces + (next * n_tiles + n) * 32);
        }
#pragma unroll
        for (int f = 0; f < 2; f++) products_add(eta[f], high[f], low[f], c, c_low);
    }
    const int half = hands > 1 ? hands / 2 : 1;
    float *const mine = b.share + (hand % half * b.tile + 32 * b.group + at.g) * ACROSS + 2 * at.q;
    const auto give = [&](bool add) {
#pragma unroll
        for (int f = 0; f < 2; f++)
#pragma unroll
            for (int n = 0; n < n_tiles; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float2 *const to = (float2 *)(mine + (16 * f + 8 * i) * ACROSS + 8 * n);
                    const float2 there = add ? *to : make_float2(0, 0);
                    *to = make_float2(eta[f][n][2 * i] + there.x, eta[f][n][2 * i + 1] + there.y);
                }
    };
    if (hands > 1) {
        if (hand >= half) give(false);
        __syncthreads();
        if (hand < half) give(true);
    } else give(false);
}

// The parts added, to the chains' eta.
template <int n_tiles> PRODUCTS_INLINE void products_store_eta(const ProductsBlock &b, const ProductsRows &at, long row, int rows)
{
    enum { ACROSS = PRODUCTS_ACROSS(n_tiles) };
    const int t = threadIdx.x, lane = t & 31;
    for (int from = 0; from < b.outputs; from += 32) {
        const int across = products_across(b.outputs - from), c = from + lane % across, parts = b.hands > 1 ? b.hands / 2 : 1;
        if (c >= b.outputs) continue;
        float *const eta = b.column[c].eta + row * b.column[c].k;
        const int k = (int)b.column[c].k;
#pragma unroll 4
        for (int r = t / across; r < rows; r += PRODUCTS_THREADS / across) {
            const float *const part = b.share + at.in_eights(r) * ACROSS + c;
            float sum = part[0];
            for (int h = 1; h < parts; h++) sum += part[h * b.tile * ACROSS];
            eta[r * k] = sum;
        }
    }
}

// The density of rows, a row of a chain by a lane.
template <class Span, class D, class S> PRODUCTS_INLINE void products_density(const ProductsBlock &b, const D &d,
                                                                              const S *__restrict__ states, GmPlace *place,
                                                                              const ProductsPass &pass, long row, int rows)
{
    for (int from = 0; from < b.chains * b.tile; from += PRODUCTS_THREADS) {
        const int pair = from + (int)threadIdx.x, mine = pair < b.chains * b.tile ? pair / b.tile : b.chains - 1, chain = b.chain_of[mine],
                  r = pair % b.tile;
        GmContext context;
        context.place = place;
        context.chain = chain;
        context.half = 0;
        SpanRow span;
        span.first = row + r;
        span.last = span.first + (pair < b.chains * b.tile && r < rows);
        span.totals = b.totals + pair / 16 * pass.totals;
        const S s = states[chain];
        Span::rows(&context, d, s, gm_sweep_place(place, chain), span);
    }
}

template <int n_tiles> PRODUCTS_INLINE void products_fetch_weights(const ProductsBlock &b, const ProductsRows &at, long row, int rows)
{
    enum { OUTPUTS = 8 * n_tiles, ACROSS = PRODUCTS_ACROSS(n_tiles) };
    const int t = threadIdx.x, lane = t & 31;
    for (int from = 0; from < OUTPUTS; from += 32) {
        const int across = products_across(OUTPUTS - from), c = from + lane % across;
        if (c >= OUTPUTS) continue;
        const bool there = c < b.outputs;
        const float *const weight = there ? b.column[c].weight + row * b.column[c].k : NULL;
        const int k = there ? (int)b.column[c].k : 0;
#pragma unroll 4
        for (int r = t / across; r < b.tile; r += PRODUCTS_THREADS / across)
            b.share[at.in_fours(r) * ACROSS + c] = there && r < rows ? weight[r * k] : 0;
    }
}

// out += X'w, 8 rows at a time.
template <int m_tiles, int n_tiles> PRODUCTS_INLINE void products_out(const ProductsBlock &b, const ProductsRows &at,
                                                                      const ProductsPass &pass, const float *x,
                                                                      float (&out)[m_tiles][n_tiles][4])
{
    enum { ACROSS = PRODUCTS_ACROSS(n_tiles) };
    const int warp = threadIdx.x >> 5, g = at.g, p = b.p, m_first = warp % pass.across;
    for (int k = warp / pass.across; k < b.tile / 8; k += PRODUCTS_WARPS / pass.across) {
        unsigned c[n_tiles][2], c_low[n_tiles][2];
        const float *const w = b.share + (8 * k + at.q) * ACROSS + g, *const a = x + at.four(2 * k) * b.stride + g;
        const int below = (at.four(2 * k + 1) - at.four(2 * k)) * b.stride;
#pragma unroll
        for (int n = 0; n < n_tiles; n++) {
            cores_split(w[8 * n], c[n][0], c_low[n][0]);
            cores_split(w[4 * ACROSS + 8 * n], c[n][1], c_low[n][1]);
        }
#pragma unroll
        for (int m = 0; m < m_tiles; m++) {
            const int j = 16 * (m_first + m * pass.across);
            if (m == m_tiles - 1 && j > p) break;  // some have a tile less than others
            unsigned high[4], low[4];
            float value[4] = {a[j], a[j + 8], a[below + j], a[below + j + 8]};
            if (m == m_tiles - 1) {  // a column of ones stands behind the last
                if (j + g == p) value[0] = value[2] = 1;
                if (j + g + 8 == p) value[1] = value[3] = 1;
            }
#pragma unroll
            for (int i = 0; i < 4; i++) cores_split(value[i], high[i], low[i]);
            products_add(out[m], high, low, c, c_low);
        }
    }
}

// What the block has of X'w and of totals, for gm_products_sums.
template <int m_tiles, int n_tiles> PRODUCTS_INLINE void products_end(const ProductsBlock &b, const ProductsRows &at,
                                                                      const ProductsPass &pass, const float (&out)[m_tiles][n_tiles][4])
{
    const int t = threadIdx.x, warp = t >> 5, p = b.p, m_first = warp % pass.across;
    const int shares = PRODUCTS_WARPS / pass.across, all = pass.together * pass.width;
    float *const part = pass.part + ((b.batch * pass.chunks + b.chunk) * shares + warp / pass.across) * (p + 1) * all;
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
        for (int n = 0; n < n_tiles; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = 16 * (m_first + m * pass.across) + at.g + i / 2 * 8, c = 8 * n + 2 * at.q + i % 2;
                if (j <= p && c < b.outputs) part[(long)j * all + c] = out[m][n][i];
            }
    __syncthreads();
    for (int e = t; e < b.chains * pass.totals; e += PRODUCTS_THREADS) {
        const int chain = e / pass.totals, k = e % pass.totals;
        wide sum = 0;
        for (int r = 0; r < b.tile / 16; r++) sum += b.totals[(chain * (b.tile / 16) + r) * pass.totals + k];
        pass.part_totals[(b.chunk * pass.chains + b.first_chain + chain) * pass.totals + k] = sum;
    }
}

template <int n_tiles> PRODUCTS_INLINE ProductsBlock products_block(const GmPlace *place, const ProductsPass &pass)
{
    const int warp = threadIdx.x >> 5;
    ProductsBlock b;
    b.p = (int)pass.p;
    b.stride = (int)pass.stride;
    b.tile = 32 * pass.groups;
    b.batch = blockIdx.x % pass.batches;
    b.chunk = pass.first_chunk + blockIdx.x / pass.batches;
    const long rows_here = b.chunk < pass.longer ? pass.rows : pass.rows - b.tile;
    b.first = b.chunk * pass.rows - (b.chunk > pass.longer ? (b.chunk - pass.longer) * b.tile : 0);
    b.last = b.first + rows_here < pass.n ? b.first + rows_here : pass.n;
    b.first_chain = b.batch * pass.together;
    b.chains = products_chains(place, pass, b.batch);
    b.outputs = b.chains * pass.width;
    b.chain_of = place->going + 1 + b.first_chain;
    b.tiles = (float *)(products_shared + 128);
    b.share = b.tiles + 2 * PRODUCTS_STAGE(b.tile, b.stride);
    b.column = (ProductsColumn *)(b.share + PRODUCTS_KEPT(pass.groups) * PRODUCTS_ACROSS(n_tiles));
    b.totals = (wide *)(b.column + 8 * n_tiles);
    b.group = warp % pass.groups;
    b.hand = warp / pass.groups;
    b.hands = PRODUCTS_WARPS / pass.groups;
    b.steps = (b.p + 7) / 8;
    return b;
}

template <class Span, int m_tiles, int n_tiles, class D, class S>
PRODUCTS_INLINE void products_pass(const D &d, const S *__restrict__ states, GmPlace *place, const ProductsPass &pass)
{
    const ProductsBlock b = products_block<n_tiles>(place, pass);
    if (b.chains <= 0 || products_tiles(place, pass) != n_tiles) return;
    RowStages stages;
    products_begin(b, states, pass, &stages);
    if (b.first < b.last) products_order(&stages, 0, pass, b.first, b.rows_from(b.first));
    float out[m_tiles][n_tiles][4];
    products_clear(out);
    const int lane = threadIdx.x & 31, v = b.stride % 2 ? 0 : b.stride % 4 ? 1 : 2;
    const ProductsRows at = {2 - v, 3 - v, lane >> 2, lane & 3};
    const int row_of[4] = {at.eight(4 * b.group), at.eight(4 * b.group + 1), at.eight(4 * b.group + 2), at.eight(4 * b.group + 3)};
    const float2 *const pieces = (const float2 *)pass.pieces + (long)b.batch * b.steps * n_tiles * 32 + lane;
    for (long row = b.first; row < b.last; row += b.tile) {
        const int rows = b.rows_from(row);
        const float *const x = b.tiles + stages.stage * PRODUCTS_STAGE(b.tile, b.stride);
        row_arrived<PRODUCTS_WARPS>(&stages);
        __syncthreads();  // nobody reads the tile before, nor its weights
        if (row + b.tile < b.last) products_order(&stages, stages.stage ^ 1, pass, row + b.tile, b.rows_from(row + b.tile));
        products_eta<n_tiles>(b, at, row_of, x, pieces);
        __syncthreads();
        products_store_eta<n_tiles>(b, at, row, rows);
        __syncthreads();
        products_density<Span>(b, d, states, place, pass, row, rows);
        __syncthreads();
        products_fetch_weights<n_tiles>(b, at, row, rows);
        __syncthreads();
        products_out(b, at, pass, x, out);
        row_next(&stages);
    }
    products_end(b, at, pass, out);
}

// ---- the kernels ----

// A program that is compiled once the data are there defines GM_ROWS_WIDTH as their p, see row_pass.h.
#if defined(GM_ROWS_ANY)
static constexpr __host__ __device__ bool products_wanted(int) { return false; }
#elif defined(GM_ROWS_WIDTH)
static constexpr __host__ __device__ bool products_wanted(int m)
{
    return GM_ROWS_WIDTH + 1 <= 128L * m && GM_ROWS_WIDTH + 1 > 128L * (m - 1);
}
#else
static constexpr __host__ __device__ bool products_wanted(int) { return true; }
#endif

#define PRODUCTS_KERNELS(name)                                                                                                             \
    struct name##_of_rows {                                                                                                                \
        static __device__ __forceinline__ void rows(GmContext *context, const Data &d, const State &s, const Sweep at, const SpanRow &row) \
        {                                                                                                                                  \
            name##_span(context, &d, &s, at, row);                                                                                         \
        }                                                                                                                                  \
    };                                                                                                                                     \
    PRODUCTS_SHAPES(PRODUCTS_KERNEL, name)

#define PRODUCTS_KERNEL(name, m, n)                                                                                         \
    extern "C" __global__ void __launch_bounds__(PRODUCTS_THREADS, 1)                                                       \
        name##_products_##m##_##n(const Data d, const State *states, GmPlace *place, const ProductsPass pass)               \
    {                                                                                                                       \
        if constexpr (products_wanted(m) && sizeof(real) == 4) products_pass<name##_of_rows, m, n>(d, states, place, pass); \
    }

// The coefficients of a batch of chains, in the order in which lanes read them: 8 columns of X, 8 outputs, lane 4 g + q with columns q and
// q + 4 for output g.
extern "C" __global__ void gm_products_pieces(const State *states, const GmPlace *place, const ProductsPass pass)
{
    const unsigned e = blockIdx.x * 256 + threadIdx.x, steps = (unsigned)(pass.p + 7) / 8;
    const unsigned n_tiles = (unsigned)products_tiles(place, pass);
    const int batch = (int)(e / (steps * n_tiles * 64));
    if (batch >= pass.batches) return;
    const int lane = (int)(e / 2 % 32), o = (int)(e / 64 % n_tiles) * 8 + lane / 4;
    const long j = e / 64 / n_tiles % steps * 8 + lane % 4 + e % 2 * 4;
    float value = 0;
    if (j < pass.p && o < products_chains(place, pass, batch) * pass.width) {
        const int chain = place->going[1 + batch * pass.together + o / pass.width];
        const ProductsOf *of = pass.of;
        int k = o % pass.width;
        for (; k >= of->k; of++) k -= (int)of->k;
        value = (float)products_field<const wide>(states + chain, of->coefficients)[of->transposed ? k * pass.p + j : j * of->k + k];
    }
    pass.pieces[e] = value;
}

// The sums of chunks: four hands take them in turn, and are added in order. The last blocks: totals, each by a warp.
extern "C" __global__ void gm_products_sums(const State *states, const GmPlace *place, const ProductsPass pass)
{
    __shared__ double hands[4][64];
    const unsigned all = pass.together * pass.width, height = (unsigned)pass.p + 1, elements = pass.batches * height * all,
                   blocks = (elements + 63) / 64;
    if (blockIdx.x >= blocks) {
        const long at = (blockIdx.x - blocks) * 8 + threadIdx.x / 32, chain = at / pass.totals, k = at % pass.totals;
        if (chain >= place->going[0]) return;
        double sum = 0;
        for (long c = threadIdx.x % 32; c < pass.chunks; c += 32) sum += pass.part_totals[(c * pass.chains + chain) * pass.totals + k];
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        if (threadIdx.x % 32 == 0) products_field<wide>(states + place->going[1 + chain], pass.total)[k] = sum;
        return;
    }
    const int column = threadIdx.x % 64, hand = threadIdx.x / 64;
    const unsigned e = blockIdx.x * 64 + column, batch = e / (height * all), j = e / all % height, o = e % all;
    const long slices = pass.chunks * (PRODUCTS_WARPS / pass.across);
    const int at = (int)(batch * pass.together + o / pass.width);
    const bool there = e < elements && at < place->going[0];
    double sum = 0;
    if (there) {
        const float *const part = pass.part + (batch * slices * height + j) * all + o;
        const long step = (long)height * all;
#pragma unroll 8
        for (long c = hand; c < slices; c += 4) sum += part[c * step];
    }
    hands[hand][column] = sum;
    __syncthreads();
    if (hand > 0 || !there) return;
    sum = (hands[0][column] + hands[1][column]) + (hands[2][column] + hands[3][column]);
    const int chain = place->going[1 + at];
    const ProductsOf *of = pass.of;
    long k = o % (unsigned)pass.width;
    for (; k >= of->k; of++) k -= of->k;
    if (j < pass.p) products_field<wide>(states + chain, of->out)[of->transposed ? k * pass.p + j : j * of->k + k] = sum;
    else if (of->sums != PRODUCTS_NO_FIELD) products_field<wide>(states + chain, of->sums)[k] = sum;
}

#endif
#endif
