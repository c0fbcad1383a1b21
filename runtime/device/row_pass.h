// row_pass.h -- a row pass on a GPU: for rows k of X[n, p], for several chains at once, in one reading of X,
//
//   dot = X[k] * beta        w = the emitted ROW, given dot: it draws the row's latent and stores it        out = sum over k of w * X[k]
//   and a total to which each row adds a number of its own
//
// Included by kernels_cuda.h once Data, State, GmPlace, GmContext and RowWeight are known. ROW_PASS_KERNELS(name) makes the kernels
// name_rows_SHAPE_CHAINS around name_row(); row_plan.h says which to launch and how.
//
//   order      A block takes a chunk of rows. Each lane adds up its own columns (narrow: its own rows) in the type of X, over at most 512
//              rows; the sums of chunks are double, and gm_row_pass_sums adds them in a fixed order. Chunks depend on n and p alone: so
//              do all results, whatever the GPU. Nothing is added by atomics.
//   tiles      Rows lie one after the other, so a tile of rows is one piece of memory wherever it begins. One thread orders it into shared
//              memory (the bulk copy of sm_90; before, 16 bytes a thread), two or three tiles ahead of their use: that keeps memory busy
//              while a tile is worked on, and rows need no alignment. Both products read the tile from shared memory.
//   dots       of a tile are reduced together: halving lanes and values at the same time takes as many shuffles as there are values.
//              Then each lane has the dot of one row and chain, and a warp draws them all at once.
//   accuracy   dot: rounding of the type of X, error about 1e-7 sum |X[k,j] beta[j]| in single precision. out: 1e-6 of the sum of sizes.
//   test       tests/gpu/rows.cu
#ifndef GM_ROW_PASS_H
#define GM_ROW_PASS_H

#include "row_plan.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define ROW_INLINE static __device__ __forceinline__

// ---- shared memory: copies that run ahead ----

// Stages 0 .. n-1 take tiles in turn. On sm_90 a barrier for each stage says when its tile is there.
typedef struct RowStages {
    unsigned char *tiles;  // of stage 0, in shared memory
    unsigned barriers;     // of stage 0, as an address in shared memory
    int bytes, n;          // of a stage; stages
    int stage;             // of the tile in use
    unsigned turn;         // how often all stages have been used: its parity distinguishes old from new
} RowStages;

ROW_INLINE unsigned row_shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

template <int warps> ROW_INLINE void row_wait()
{
    if (warps == 1) __syncwarp();
    else __syncthreads();
}

ROW_INLINE void row_stages_begin(const RowStages *s)
{
#if __CUDA_ARCH__ >= 900 && !defined(GM_ROW_OLD_COPY)
    if (threadIdx.x == 0) {
        for (int k = 0; k < s->n; k++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(s->barriers + 8 * k) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
#else
    (void)s;
#endif
}

// Orders `bytes` (a multiple of 16; 0: none) from `from` into `stage`. By all threads, since before sm_90 all copy.
ROW_INLINE void row_order(const RowStages *s, int stage, const unsigned char *from, long bytes)
{
    unsigned char *to = s->tiles + (long)stage * s->bytes;
#if __CUDA_ARCH__ >= 900 && !defined(GM_ROW_OLD_COPY)
    if (threadIdx.x == 0 && bytes > 0) {
        const unsigned barrier = s->barriers + 8 * stage;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"((unsigned)bytes) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(row_shared_address(to)),
            "l"(from), "r"((unsigned)bytes), "r"(barrier)
            : "memory");
    }
#elif __CUDA_ARCH__ >= 800
    for (long e = 16L * threadIdx.x; e < bytes; e += 16L * blockDim.x)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(row_shared_address(to + e)), "l"(from + e) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    for (long e = 16L * threadIdx.x; e < bytes; e += 16L * blockDim.x) *(uint4 *)(to + e) = *(const uint4 *)(from + e);
#endif
}

// Waits until the tile in use is there, for all threads.
template <int warps> ROW_INLINE void row_arrived(const RowStages *s)
{
#if __CUDA_ARCH__ >= 900 && !defined(GM_ROW_OLD_COPY)
    const unsigned barrier = s->barriers + 8 * s->stage, parity = s->turn & 1u;
    unsigned there = 0;
    while (!there)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(there)
                     : "r"(barrier), "r"(parity)
                     : "memory");
#elif __CUDA_ARCH__ >= 800
    if (s->n == 2) asm volatile("cp.async.wait_group 0;" ::: "memory");  // the orders after this tile's are n - 2
    else if (s->n == 3) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 2;" ::: "memory");
    row_wait<warps>();
#else
    row_wait<warps>();
#endif
}

ROW_INLINE void row_next(RowStages *s)
{
    s->stage++;
    if (s->stage == s->n) {
        s->stage = 0;
        s->turn++;
    }
}

// ---- reductions over the lanes of a warp ----

// Step 1 .. 5 of row_transpose_sum. A template for each, since the compiler does not unroll a loop whose length another loop sets.
template <int count, int step> struct RowHalving {
    ROW_INLINE void of(real (&v)[count], int lane)
    {
        enum { MASK = 32 >> step, HALF = count >> step };
        if (HALF == 0) v[0] += __shfl_xor_sync(0xffffffffu, v[0], MASK);
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const real low = v[i], high = v[i + HALF];
            const real mine = lane & MASK ? high : low, theirs = lane & MASK ? low : high;
            v[i] = mine + __shfl_xor_sync(0xffffffffu, theirs, MASK);
        }
        RowHalving<count, step + 1>::of(v, lane);
    }
};
template <int count> struct RowHalving<count, 6> {
    ROW_INLINE void of(real (&)[count], int) {}
};

// v[0 .. count-1] of all lanes are added up, count a power of two up to 32. Lane l gets the sum of v[l / (32 / count)].
template <int count> ROW_INLINE real row_transpose_sum(real (&v)[count])
{
    RowHalving<count, 1>::of(v, threadIdx.x & 31);
    return v[0];
}

// The sum over the lanes of a warp, in all of them.
ROW_INLINE double row_warp_sum(double v)
{
    for (int mask = 16; mask >= 1; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
    return v;
}

// The array of a chain that the field at `offset` of its State points to.
template <class S> ROW_INLINE wide *row_field(const S *states, int chain, unsigned long offset)
{
    return *(wide *const *)((const unsigned char *)(states + chain) + offset);
}

// The k-th of the chains that launches are for (GmPlace), and how many of those of this launch there are.
ROW_INLINE int row_chain(const GmPlace *place, int k) { return place->going[1 + k]; }
ROW_INLINE int row_chains(const GmPlace *place, const RowPass &pass)
{
    const int left = place->going[0] - pass.chain;
    return left < pass.chains ? left : pass.chains;
}

// The emitted row of chain `chain`: its weight, and what it adds to the total.
template <class Row, class D, class S>
ROW_INLINE RowWeight row_draw(GmPlace *place, const D &d, const S &s, const Sweep at, int chain, long k, real dot)
{
    GmContext context;
    context.place = place;
    context.chain = chain;
    context.half = 0;
    return Row::weight(&context, d, s, at, k, dot);
}

// ---- tiled: a row for `warps` warps ----

extern __shared__ __align__(128) unsigned char row_shared[];

// The rows of a block, and the chains that it makes them for.
struct RowBlock {
    int p, places, going, some;  // places: of partial sums, some of which may stay empty
    long chunk, first, last;
};

template <int chains> ROW_INLINE RowBlock row_block(const GmPlace *place, const RowPass &pass)
{
    RowBlock b;
    b.p = (int)pass.p;
    b.chunk = pass.first_chunk + blockIdx.x;
    b.first = b.chunk * pass.rows;
    b.last = b.first + pass.rows < pass.n ? b.first + pass.rows : pass.n;
    b.places = chains == 1 ? 1 : pass.chains;
    b.going = row_chains(place, pass);
    b.some = chains == 1 ? 1 : b.going;
    return b;
}

// Tile k of the chunk, into a stage; behind the last one nothing.
template <int tile> ROW_INLINE void row_order_tile(const RowBlock &b, const RowPass &pass, const RowStages *stages, long k, int stage)
{
    const long row_bytes = pass.p * (long)sizeof(real), tiles = (b.last - b.first + tile - 1) / tile;
    const long from = k < tiles ? (b.first + k * tile) * row_bytes : 0;
    const long to = k < tiles ? (b.first + (k + 1) * tile < b.last ? b.first + (k + 1) * tile : b.last) * row_bytes : 0;
    row_order(stages, stage, (const unsigned char *)pass.X + (from & ~15L), ((to + 15) & ~15L) - (from & ~15L));
}

// The lane's columns t, t + ACROSS, ...: the last column again where there are none left, with beta 0, never written.
template <int across, int columns, int chains, class S>
ROW_INLINE void row_columns(const RowBlock &b, const S *states, const GmPlace *place, const RowPass &pass, int (&column)[columns],
                            real (&beta)[columns][chains], real (&sum)[columns][chains])
{
    const int t = threadIdx.x;
#pragma unroll
    for (int j = 0; j < columns; j++) {
        column[j] = t + j * across < b.p ? t + j * across : b.p - 1;
#pragma unroll
        for (int c = 0; c < chains; c++) {
            beta[j][c] = pass.beta != ROW_NO_FIELD && c < b.some && t + j * across < b.p
                             ? (real)row_field(states, row_chain(place, pass.chain + c), pass.beta)[column[j]]
                             : 0;
            sum[j][c] = 0;
        }
    }
}

// dot += x beta, of the lane's columns.
template <int across, int columns, int tile, int chains> ROW_INLINE void row_dots(int p, const real *x, const int (&column)[columns],
                                                                                  const real (&beta)[columns][chains],
                                                                                  real (&dot)[tile * chains])
{
#pragma unroll
    for (int j = 0; j < columns; j++) {
        if (j > 0 && j * across >= p) break;
        const real *at_column = x + column[j];
#pragma unroll
        for (int r = 0; r < tile; r++) {
            const real value = at_column[r * p];
#pragma unroll
            for (int c = 0; c < chains; c++) dot[r * chains + c] += value * beta[j][c];
        }
    }
}

// sum += weights times x, of the lane's columns.
template <int across, int columns, int tile, int chains>
ROW_INLINE void row_sums(int p, const real *x, const int (&column)[columns], const real *weights, real (&sum)[columns][chains])
{
    real weight[tile * chains];
#pragma unroll
    for (int v = 0; v < tile * chains; v++) weight[v] = weights[v];
#pragma unroll
    for (int j = 0; j < columns; j++) {
        if (j > 0 && j * across >= p) break;
        const real *at_column = x + column[j];
#pragma unroll
        for (int r = 0; r < tile; r++) {
            const real value = at_column[r * p];
#pragma unroll
            for (int c = 0; c < chains; c++) sum[j][c] += weight[r * chains + c] * value;
        }
    }
}

// What the block has, for the sums of chunks. more: of this lane's rows, of chain `mine` of those together.
template <int across, int columns, int chains>
ROW_INLINE void row_store(const RowBlock &b, const RowPass &pass, const real (&sum)[columns][chains], real more, int mine)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int j = 0; j < columns; j++)
#pragma unroll
        for (int c = 0; c < chains; c++)
            if (c < b.some && t + j * across < b.p) pass.partial[(b.chunk * b.places + c) * (b.p + 1) + t + j * across] = sum[j][c];
    if (t >= 32) return;
#pragma unroll
    for (int c = 0; c < chains; c++) {
        const double whole = row_warp_sum(mine % chains == c ? more : 0);
        if (t == 0 && c < b.some) pass.partial[(b.chunk * b.places + c) * (b.p + 1) + b.p] = whole;
    }
}

template <int warps, int tile, int dots> ROW_INLINE RowStages row_tiled_stages(const RowPass &pass)
{
    RowStages stages;
    stages.tiles = row_shared + ROW_TILES_AT(warps, dots, (int)sizeof(real));
    stages.barriers = row_shared_address(row_shared);
    stages.bytes = (int)ROW_STAGE(tile, pass.p * (long)sizeof(real), 1);
    stages.n = pass.stages;
    stages.stage = 0;
    stages.turn = 0;
    row_stages_begin(&stages);
    row_wait<warps>();
    return stages;
}

template <class Row, int warps, int columns, int tile, int chains, class D, class S>
ROW_INLINE void row_pass_tiled(const D &d, const S *__restrict__ states, GmPlace *place, const RowPass &pass)
{
    enum { ACROSS = 32 * warps, DOTS = tile * chains, COPIES = 32 / DOTS };
    const int t = threadIdx.x, lane = t & 31;
    const RowBlock b = row_block<chains>(place, pass);
    const long tiles = (b.last - b.first + tile - 1) / tile, row_bytes = pass.p * (long)sizeof(real);
    if (b.going <= 0) return;
    // dots[warp][row, chain], weights[row, chain]
    real *const dots = (real *)(row_shared + 64), *const weights = dots + warps * DOTS;
    RowStages stages = row_tiled_stages<warps, tile, DOTS>(pass);
    for (int k = 0; k < stages.n - 1; k++) row_order_tile<tile>(b, pass, &stages, k, k);
    int column[columns];
    real beta[columns][chains], sum[columns][chains], more = 0;  // more: of this lane's rows, at most 512 of them
    row_columns<ACROSS>(b, states, place, pass, column, beta, sum);
    // The row and chain of the dot that this lane draws for, in the first warp: always the same chain.
    const int mine = lane / COPIES, draws = mine % chains < b.some, chain = row_chain(place, pass.chain + (draws ? mine % chains : 0));
    const S s = states[chain];
    const Sweep at = gm_sweep_place(place, chain);
    for (long k = 0; k < tiles; k++) {
        const long row = b.first + k * tile;
        const int rows = b.last - row < tile ? (int)(b.last - row) : tile;
        real *const x = (real *)(stages.tiles + (long)stages.stage * stages.bytes + (row * row_bytes & 15));
        row_arrived<warps>(&stages);
        if (rows < tile) {  // the last: what is not there counts as zeros
            for (int e = rows * b.p + t; e < tile * b.p; e += ACROSS) x[e] = 0;
            row_wait<warps>();
        }
        real dot[DOTS];
#pragma unroll
        for (int v = 0; v < DOTS; v++) dot[v] = 0;
        if (pass.beta != ROW_NO_FIELD) row_dots<ACROSS, columns, tile, chains>(b.p, x, column, beta, dot);
        real whole = row_transpose_sum<DOTS>(dot);
        if (warps > 1) {
            if (lane % COPIES == 0) dots[(t >> 5) * DOTS + mine] = whole;
            __syncthreads();  // from here on the tile before is not read any more
        } else __syncwarp();
        row_order_tile<tile>(b, pass, &stages, k + stages.n - 1, stages.stage > 0 ? stages.stage - 1 : stages.n - 1);
        if (t < 32) {
            if (warps > 1) {
                whole = 0;
#pragma unroll
                for (int w = 0; w < warps; w++) whole += dots[w * DOTS + mine];
            }
            if (lane % COPIES == 0) {
                const int r = mine / chains;
                RowWeight w = {0, 0};
                if (r < rows && draws) w = row_draw<Row>(place, d, s, at, chain, row + r, whole);
                weights[mine] = w.shift;
                more += w.more;
            }
        }
        row_wait<warps>();
        if (pass.out != ROW_NO_FIELD) row_sums<ACROSS, columns, tile, chains>(b.p, x, column, weights, sum);
        row_next(&stages);
    }
    if (pass.out != ROW_NO_FIELD) row_store<ACROSS>(b, pass, sum, more, mine);
}

// ---- narrow: a row for each lane ----

// Rows row .. row + 31, as they lie, or the lane's, if rows are full: 16 bytes at a time.
template <int columns> ROW_INLINE void row_read(const RowBlock &b, const RowPass &pass, long row, real (&ahead)[columns])
{
    const real *const X = (const real *)pass.X;
    const int lane = threadIdx.x & 31, p = b.p;
    if (p == columns) {
        enum { PIECE = 16 / (int)sizeof(real) };
        union {
            uint4 bits;
            real x[PIECE];
        } piece;
        const uint4 *const x = (const uint4 *)(X + (row + lane < b.last ? row + lane : b.last - 1) * p);
#pragma unroll
        for (int j = 0; j < columns; j += PIECE) {
            piece.bits = __ldcs(x + j / PIECE);
#pragma unroll
            for (int i = 0; i < PIECE; i++) ahead[j + i] = piece.x[i];
        }
        return;
    }
    const int n = b.last - row < 32 ? (int)(b.last - row) * p : 32 * p;
    const real *const x = X + row * p + lane;
#pragma unroll
    for (int j = 0; j < columns; j++) ahead[j] = 32 * j + lane < n ? __ldcs(x + 32 * j) : 0;
}

// The lane's row of 32 that were read as one piece: element e lies at e + e / 32, so that neither side meets in a bank.
template <int columns> ROW_INLINE void row_turn(int p, const real (&ahead)[columns], real *turned, real (&x)[columns])
{
    const int lane = threadIdx.x & 31;
    if (p == columns) {
#pragma unroll
        for (int j = 0; j < columns; j++) x[j] = ahead[j];
        return;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < columns; j++) turned[33 * j + lane] = ahead[j];
    __syncwarp();
#pragma unroll
    for (int j = 0; j < columns; j++) {  // from j = p on other numbers, which meet beta 0 and are not written
        const int e = lane * p + j;
        x[j] = turned[e + (e >> 5)];
    }
}

// The sums of the warps, the last of each chain being the total, for the sums of chunks.
template <int warps, int columns, int chains>
ROW_INLINE void row_store_narrow(const RowBlock &b, const RowPass &pass, const double (&sums)[warps][chains][columns + 1])
{
    const int p = b.p;
    for (int e = threadIdx.x; e < b.some * (p + 1); e += 32 * warps) {
        const int c = e / (p + 1), j = e % (p + 1) < p ? e % (p + 1) : columns;
        double whole = 0;
        for (int w = 0; w < warps; w++) whole += sums[w][c][j];
        pass.partial[b.chunk * b.places * (p + 1) + e] = whole;
    }
}

template <class Row, int warps, int columns, int chains, class D, class S>
ROW_INLINE void row_pass_narrow(const D &d, const S *__restrict__ states, GmPlace *place, const RowPass &pass)
{
    __shared__ real turned[warps][33 * columns], betas[chains][columns];
    __shared__ double sums[warps][chains][columns + 1];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const RowBlock b = row_block<chains>(place, pass);
    if (b.going <= 0) return;
    for (int e = threadIdx.x; e < chains * columns; e += 32 * warps) {
        const int c = e / columns, j = e % columns;
        betas[c][j] = pass.beta != ROW_NO_FIELD && c < b.some && j < b.p
                          ? (real)row_field(states, row_chain(place, pass.chain + c), pass.beta)[j]
                          : 0;
    }
    __syncthreads();
    real sum[chains][columns], more[chains], ahead[columns];
    S s[chains];
    Sweep at[chains];
    int chain[chains];
#pragma unroll
    for (int c = 0; c < chains; c++) {
        more[c] = 0;
#pragma unroll
        for (int j = 0; j < columns; j++) sum[c][j] = 0;
        chain[c] = row_chain(place, pass.chain + (c < b.some ? c : 0));
        s[c] = states[chain[c]];
        at[c] = gm_sweep_place(place, chain[c]);
    }
    long row = b.first + 32 * warp;
    if (row < b.last) row_read(b, pass, row, ahead);
    for (; row < b.last; row += 32 * warps) {
        real x[columns];
        row_turn(b.p, ahead, turned[warp], x);
        if (row + 32 * warps < b.last) row_read(b, pass, row + 32 * warps, ahead);
#pragma unroll
        for (int c = 0; c < chains; c++) {
            if (c >= b.some) break;
            real dot = 0;
#pragma unroll
            for (int j = 0; j < columns; j++) dot += x[j] * betas[c][j];
            RowWeight w = {0, 0};
            if (row + lane < b.last) w = row_draw<Row>(place, d, s[c], at[c], chain[c], row + lane, dot);
            more[c] += w.more;
            const real weight = w.shift;
#pragma unroll
            for (int j = 0; j < columns; j++) sum[c][j] += weight * x[j];
        }
    }
    if (pass.out == ROW_NO_FIELD) return;
#pragma unroll
    for (int c = 0; c < chains; c++) {
        const real whole = row_transpose_sum<columns>(sum[c]);
        if (lane % (32 / columns) == 0) sums[warp][c][lane / (32 / columns)] = whole;
        const double total = row_warp_sum(more[c]);
        if (lane == 0) sums[warp][c][columns] = total;
    }
    __syncthreads();
    row_store_narrow<warps, columns, chains>(b, pass, sums);
}

// ---- any width: a row for the block, piece by piece; the sums of the chunk are kept in memory ----

template <class Row, int warps, int chains, class D, class S>
ROW_INLINE void row_pass_any(const D &d, const S *__restrict__ states, GmPlace *place, const RowPass &pass)
{
    enum { GROUP = 8 };  // rows at a time
    __shared__ double dots[warps][GROUP];
    __shared__ real weights[GROUP];
    const int t = threadIdx.x, across = 32 * warps;
    const long first = (pass.first_chunk + blockIdx.x) * pass.rows, last = first + pass.rows < pass.n ? first + pass.rows : pass.n;
    double *const partial = pass.partial + (pass.first_chunk + blockIdx.x) * (pass.p + 1), more = 0;
    if (row_chains(place, pass) <= 0) return;
    const int chain = row_chain(place, pass.chain);
    const Sweep at = gm_sweep_place(place, chain);
    for (long row = first; row < last; row += GROUP) {
        const int n = last - row < GROUP ? (int)(last - row) : GROUP;
        const real *const x = (const real *)pass.X + row * pass.p;
        double dot[GROUP];
#pragma unroll
        for (int r = 0; r < GROUP; r++) dot[r] = 0;
        if (pass.beta != ROW_NO_FIELD) {
            const wide *const beta = row_field(states, chain, pass.beta);
            for (long j = t; j < pass.p; j += across) {
                const double b = beta[j];
#pragma unroll
                for (int r = 0; r < GROUP; r++) dot[r] += r < n ? x[r * pass.p + j] * b : 0;
            }
        }
#pragma unroll
        for (int r = 0; r < GROUP; r++) {
            for (int mask = 16; mask >= 1; mask /= 2) dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], mask);
            if ((t & 31) == 0) dots[t >> 5][r] = dot[r];
        }
        __syncthreads();
        if (t < GROUP) {
            double whole = 0;
            for (int w = 0; w < warps; w++) whole += dots[w][t];
            real weight = 0;
            if (t < n) {
                const RowWeight w = row_draw<Row>(place, d, states[chain], at, chain, row + t, (real)whole);
                weight = w.shift;
                more += w.more;
            }
            weights[t] = weight;
        }
        __syncthreads();
        if (pass.out != ROW_NO_FIELD)
            for (long j = t; j < pass.p; j += across) {
                double sum = row == first ? 0 : partial[j];
#pragma unroll
                for (int r = 0; r < GROUP; r++) sum += r < n ? (double)weights[r] * x[r * pass.p + j] : 0;
                partial[j] = sum;
            }
    }
    if (pass.out == ROW_NO_FIELD || t >= 32) return;
    more = row_warp_sum(more);
    if (t == 0) partial[pass.p] = more;
}

// ---- the kernels ----

// A program that is compiled once the data are there may define GM_ROWS_WIDTH as their p: shapes that do not serve it stay empty, which
// saves most of the time of compilation. Each shape is at most four times as wide as what it serves. GM_ROWS_ANY: only the slow kernel for
// any width, for a program that will be compiled again once the data are there.
#if defined(GM_ROWS_ANY)
static constexpr __host__ __device__ bool row_wanted(long) { return false; }
#define ROW_ANY_WANTED true
#elif defined(GM_ROWS_WIDTH)
static constexpr __host__ __device__ bool row_wanted(long widest)
{
    return widest >= GM_ROWS_WIDTH && (widest <= 8 || widest <= 4L * GM_ROWS_WIDTH);
}
#define ROW_ANY_WANTED (GM_ROWS_WIDTH > 8192)
#else
static constexpr __host__ __device__ bool row_wanted(long) { return true; }
#define ROW_ANY_WANTED true
#endif

#define ROW_PASS_KERNELS(name)                                                                                                \
    struct name##_of_row {                                                                                                    \
        static __device__ __forceinline__ RowWeight weight(GmContext *context, const Data &d, const State &s, const Sweep at, \
                                                           const long gm_k, const real dot)                                   \
        {                                                                                                                     \
            return name##_row(context, &d, &s, at, gm_k, dot);                                                                \
        }                                                                                                                     \
    };                                                                                                                        \
    ROW_SHAPES(ROW_NARROW, ROW_TILED, ROW_WIDE, ROW_ANY, name)

#define ROW_KERNEL(name, shape, chains, threads, blocks, wanted, pass_over)                                   \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                             \
        name##_rows_##shape##_##chains(const Data d, const State *states, GmPlace *place, const RowPass pass) \
    {                                                                                                         \
        if constexpr (wanted) pass_over(d, states, place, pass);                                              \
    }
#define ROW_NARROW_OF(name, shape, warps, columns, chains, blocks) \
    ROW_KERNEL(name, shape, chains, 32 * warps, blocks, row_wanted(columns), (row_pass_narrow<name##_of_row, warps, columns, chains>))
#define ROW_TILED_OF(name, shape, warps, columns, tile, chains, blocks)                   \
    ROW_KERNEL(name, shape, chains, 32 * warps, blocks, row_wanted(32 * warps * columns), \
               (row_pass_tiled<name##_of_row, warps, columns, ROW_TILE(tile, chains, (int)sizeof(real)), chains>))

#define ROW_NARROW(name, shape, warps, columns, tile, one, four) \
    ROW_NARROW_OF(name, shape, warps, columns, 1, one) ROW_NARROW_OF(name, shape, warps, columns, 4, four)
#define ROW_TILED(name, shape, warps, columns, tile, one, four) \
    ROW_TILED_OF(name, shape, warps, columns, tile, 1, one) ROW_TILED_OF(name, shape, warps, columns, tile, 4, four)
#define ROW_WIDE(name, shape, warps, columns, tile, one, four) ROW_TILED_OF(name, shape, warps, columns, tile, 1, one)
#define ROW_ANY(name, shape, warps, columns, tile, one, four) \
    ROW_KERNEL(name, shape, 1, 32 * warps, one, ROW_ANY_WANTED, (row_pass_any<name##_of_row, warps, 1>))

// out[chain][j] = the sum of partial[chunk, chain, j] over chunks, and j = p the total: 128 parts, each in order, then the parts in order
// of a tree.
extern "C" __global__ void __launch_bounds__(ROW_SUM_THREADS)
    gm_row_pass_sums(const Data d, const State *states, GmPlace *place, const RowPass pass)
{
    __shared__ double parts[ROW_SUM_PARTS][ROW_SUM_COLUMNS];
    const int column = threadIdx.x % ROW_SUM_COLUMNS, part = threadIdx.x / ROW_SUM_COLUMNS;
    const long e = (long)blockIdx.x * ROW_SUM_COLUMNS + column, width = pass.chains * (pass.p + 1);
    double sum = 0;
    if (e < width) {
#pragma unroll 8
        for (long k = part; k < pass.chunks; k += ROW_SUM_PARTS) sum += pass.partial[k * width + e];
    }
    parts[part][column] = sum;
    for (int half = ROW_SUM_PARTS / 2; half >= 1; half /= 2) {
        __syncthreads();
        if (part < half) parts[part][column] += parts[part + half][column];
    }
    const int of = (int)(e / (pass.p + 1));
    if (part > 0 || e >= width || of >= row_chains(place, pass)) return;
    const int chain = row_chain(place, pass.chain + of);
    const long j = e % (pass.p + 1);
    if (j < pass.p) row_field(states, chain, pass.out)[j] = parts[0][column];
    else if (pass.total != ROW_NO_FIELD) row_field(states, chain, pass.total)[0] = parts[0][column];
    (void)d;
}

#endif
#endif
