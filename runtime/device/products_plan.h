// products_plan.h -- what host and device share about products of rows on a GPU (products_pass.h): arguments, shapes, and how to launch
// them.
//
//   if (products_plan(n, p, width, chains, totals, most_shared, &plan)) {           else: they do not fit
//       fill in X, the fields and the work space of plan.pass
//       launch  gm_products_pieces       grid plan.piece_blocks: the coefficients, as the kernel reads them
//       launch  rows_of_B<plan.kernel>   grid chunks * batches, block PRODUCTS_THREADS, plan.shared bytes of dynamic shared memory
//       launch  gm_products_sums         grid plan.sum_blocks
//
// All three take what GmPlace says of the chains that go on: these stand side by side, in as many blocks as they need. With few of them
// left the kernel for few outputs is the one that works.
//   }
//
// A plan says for n and p alone how rows are cut and in which order they are added; chains and outputs decide only what a block has beside
// them. So no result depends on the GPU, nor on what other chains share the reading; but a matrix that stays in the memory of the host is
// cut into even chunks, so that last digits differ from those of one on the card.
#ifndef GM_PRODUCTS_PLAN_H
#define GM_PRODUCTS_PLAN_H

// of a block on an A100 (163 KB: less fits), H100 or H200
enum {
    PRODUCTS_MOST = 6,
    PRODUCTS_THREADS = 256,
    PRODUCTS_WARPS = PRODUCTS_THREADS / 32,
    PRODUCTS_SHARED = 227 << 10,
    PRODUCTS_PAIRS = 1024
};  // rows of a tile times chains of a block, at most

typedef struct ProductsOf {                 // predictors eta[n, k] = X B of a chain, w their weights, out = X'w. Offsets in State
    unsigned long eta, weight;              // of real *
    unsigned long coefficients, out, sums;  // of wide *: B, what it gets, and 1'w (PRODUCTS_NO_FIELD: not wanted)
    long k;
    int transposed;  // B[k, p], and so is out
} ProductsOf;

#define PRODUCTS_NO_FIELD (~0ul)

typedef struct ProductsPass {  // the last argument of the kernels
    const float *X;            // X[n, p], row by row; only the rows of this launch are read
    long n, p, stride;         // stride: numbers from a row to the next in shared memory
    long rows, chunks;         // rows of a chunk; a chunk is the work of a block
    long longer;               // so many chunks have `rows` rows, those after them a tile less
    long first_chunk;          // of this launch: a matrix may come piece by piece
    // a tile has 16 * groups rows; warps that share the columns in X'w, the others share the rows
    int groups, across;
    // chains of the run, of a block; blocks that read a chunk; outputs of a chain
    int chains, together, batches, width;
    int n_tiles;  // outputs of a block are 8 * n_tiles, the last of them empty
    // up to so many chains that go on the kernel for few outputs (2 tiles) serves, of one block for a chunk; 0: there is none beside this
    // one
    int narrow;
    int totals;           // numbers that rows add up besides
    float *pieces;        // [batches, steps, n_tiles, 32, 2], steps of 8 columns
    float *part;          // [batches, chunks * shares, p + 1, together * width]; row p: 1'w
    double *part_totals;  // [chunks, chains, totals]
    unsigned long total;  // offset in State of a wide * for them
    int count;
    ProductsOf of[PRODUCTS_MOST];
} ProductsPass;

// Shapes: a warp has m tiles of 16 columns by n tiles of 8 outputs in registers; p + 1 <= 128 m. Few outputs (n = 2) have kernels of their
// own.
// clang-format off
#define PRODUCTS_SHAPES(SHAPE, argument) \
    SHAPE(argument, 1, 2) SHAPE(argument, 1, 10) SHAPE(argument, 2, 2) SHAPE(argument, 2, 8) SHAPE(argument, 3, 2) SHAPE(argument, 3, 8) \
    SHAPE(argument, 4, 2) SHAPE(argument, 4, 6) SHAPE(argument, 5, 2) SHAPE(argument, 5, 6) SHAPE(argument, 6, 2) SHAPE(argument, 6, 5) \
    SHAPE(argument, 7, 2) SHAPE(argument, 7, 5)
// clang-format on

// Numbers from a row to the next in shared memory: those of X as it lies, but no multiple of 8, so that rows at some distance meet in no
// bank. Of a tile of outputs: 8 or 24 modulo 32.
#define PRODUCTS_STRIDE(p)           ((p) % 8 == 0 ? (p) + 4 : (p))
#define PRODUCTS_ACROSS(n_tiles)     (8 * ((n_tiles) | 1))
#define PRODUCTS_STAGE(tile, stride) ((tile) * (stride) + 16)              // numbers of a tile; the last are zeros
#define PRODUCTS_KEPT(groups)        ((groups) > 4 ? 32 * (groups) : 128)  // rows of outputs that are kept
#define PRODUCTS_COLUMN              24                                    // bytes that are kept about an output

#if !defined(__CUDACC_RTC__)
#include <stdio.h>

typedef struct ProductsPlan {
    // to be appended to the name of the KERNEL_SPAN; narrow: launched as well where pass.narrow is not 0, and one of the two returns at
    // once
    char kernel[24], narrow[24];
    int shared;                      // bytes
    long pieces, part, part_totals;  // numbers that the work space must hold
    long piece_blocks, sum_blocks;   // of 256 threads
    ProductsPass pass;               // n, p, and what follows of them
} ProductsPlan;

#define PRODUCTS_SHAPE(argument, m, n) {m, n},

// Shared memory of a block: barriers, two tiles, outputs, what is known of them, totals.
static inline long products_bytes(const ProductsPass *pass, long n_tiles, long totals)
{
    return 128 + 8 * PRODUCTS_STAGE(32L * pass->groups, pass->stride) + 4L * PRODUCTS_KEPT(pass->groups) * PRODUCTS_ACROSS(n_tiles) +
           8L * n_tiles * PRODUCTS_COLUMN + PRODUCTS_PAIRS / 16 * 8L * totals;
}

// The launch for `width` outputs each of `chains` chains. 0: p or width do not fit, or a block may not have the shared memory.
static inline int products_plan(long n, long p, long width, int chains, int totals, long most_shared, ProductsPlan *plan)
{
    enum { EVEN = 132, LONGEST = 2048 };  // 132: multiprocessors of an H100 or H200; rows that are added up in single precision
    static const struct {
        int m, n;
    } shapes[] = {PRODUCTS_SHAPES(PRODUCTS_SHAPE, 0)};
    const int count = (int)(sizeof shapes / sizeof *shapes);
    ProductsPass *pass = &plan->pass;
    int k = 0, most = 0;
    while (k < count && p + 1 > 128L * shapes[k].m) k++;
    if (k == count || n < 0 || p < 1 || width < 1 || chains < 1) return 0;
    for (int e = k; e < count && shapes[e].m == shapes[k].m; e++) most = shapes[e].n;
    if (width > 8L * most) return 0;
    pass->n = n;
    pass->p = p;
    pass->stride = PRODUCTS_STRIDE(p);
    for (pass->groups = 8; pass->groups > 0; pass->groups /= 2)
        if (products_bytes(pass, most, totals > 4 ? totals : 4) <= PRODUCTS_SHARED) break;
    if (pass->groups == 0) return 0;
    const long tile = 32L * pass->groups;

    pass->chains = chains;
    pass->width = (int)width;
    long fit = 8L * most / width;
    fit = fit < PRODUCTS_PAIRS / tile ? fit : PRODUCTS_PAIRS / tile;
    pass->batches = (int)((chains + fit - 1) / fit);
    pass->together = (chains + pass->batches - 1) / pass->batches;
    while (8L * shapes[k].n < pass->together * width) k++;
    pass->n_tiles = shapes[k].n;
    plan->shared = (int)products_bytes(pass, pass->n_tiles, totals);
    if (plan->shared > most_shared) return 0;
    snprintf(plan->kernel, sizeof plan->kernel, "_products_%d_%d", shapes[k].m, shapes[k].n);

    snprintf(plan->narrow, sizeof plan->narrow, "_products_%d_2", shapes[k].m);
    pass->narrow = pass->n_tiles > 2 && chains > 1 ? (int)(16 / width) : 0;

    const long m_tiles = (p + 16) / 16;
    for (pass->across = 8; pass->across / 2 >= m_tiles;) pass->across /= 2;
    const long wanted = EVEN * ((n + EVEN * LONGEST - 1) / (EVEN * LONGEST)), rows = wanted > 0 ? (n + wanted - 1) / wanted : 1;
    pass->rows = (rows + tile - 1) / tile * tile;
    // As many chunks as that, where there are tiles enough: blocks of four batches then end together.
    const long all_tiles = (n + tile - 1) / tile;
    pass->chunks = wanted < all_tiles ? wanted : all_tiles;
    pass->longer = pass->chunks > 0 && all_tiles % pass->chunks ? all_tiles % pass->chunks : pass->chunks;
    pass->first_chunk = 0;
    pass->totals = totals;
    pass->count = 0;
    plan->pieces = pass->batches * ((p + 7) / 8) * pass->n_tiles * 64;
    plan->part = pass->batches * pass->chunks * (8 / pass->across) * (p + 1) * pass->together * width;
    plan->part_totals = pass->chunks * chains * totals;
    plan->piece_blocks = (plan->pieces + 255) / 256;
    plan->sum_blocks = (pass->batches * (p + 1) * pass->together * width + 63) / 64 + (chains * totals + 7) / 8;
    return 1;
}

// The same with chunks of `rows` rows each: a matrix that comes piece by piece is cut there.
static inline void products_plan_even(ProductsPlan *plan)
{
    plan->pass.chunks = plan->pass.longer = (plan->pass.n + plan->pass.rows - 1) / plan->pass.rows;
}
#endif

#endif
