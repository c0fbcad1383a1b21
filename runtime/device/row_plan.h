// row_plan.h -- what host and device share about a row pass on a GPU (row_pass.h): its arguments, its shapes, and how to launch it.
//
//   for (int chain = 0; chain < chains; chain += plan.pass.chains) {
//       plan = row_plan(n, p, chains - chain, sizeof(real), ...), then fill in X, beta, out, chain and partial of plan.pass
//       launch  draw_z<plan.kernel>   grid plan.pass.chunks, block plan.threads, plan.shared bytes of dynamic shared memory
//       launch  gm_row_pass_sums      grid plan.sum_blocks, block ROW_SUM_THREADS; not if nothing is added up
//   }
//
// Both kernels take (const Data, const State *states, GmPlace *, const RowPass). Above 48 KB shared memory is to be allowed for first
// (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES). A plan depends on n, p and the type; on the GPU only where its
// shared memory cannot hold two tiles. So do the sums, which are the same bits whatever other chains share the reading.
#ifndef GM_ROW_PLAN_H
#define GM_ROW_PLAN_H

#define ROW_NO_FIELD (~0ul)

typedef struct RowPass {  // the last argument of the kernels
    // X[n, p] of type real, row by row; 16-byte aligned and readable up to the next multiple of 16 bytes. Only the rows of this launch are
    // read
    const void *X;
    long n, p;
    unsigned long beta;  // offset in State of wide *beta, beta[p]; ROW_NO_FIELD: dot is 0
    unsigned long out;   // offset in State of wide *out, out[p]; ROW_NO_FIELD: nothing is added up
    // offset in State of a wide * where the sum of what rows add to a total goes, if there is `out`; ROW_NO_FIELD: nowhere
    unsigned long total;
    double *partial;    // [chunks, chains, p + 1], in device memory; the last is for the total
    long rows, chunks;  // rows of a chunk; a chunk is the work of a block
    long first_chunk;   // of this launch, whose grid says how many it takes: a matrix may come piece by piece
    int chain, chains;  // the first chain of this launch, and how many it serves
    int stages;         // tiles of rows in shared memory
} RowPass;

enum { ROW_SUM_COLUMNS = 8, ROW_SUM_PARTS = 128, ROW_SUM_THREADS = ROW_SUM_COLUMNS * ROW_SUM_PARTS };

// How a block takes rows. Narrow: each lane a whole row, up to `columns` wide. Tiled: `warps` warps take a row together, each lane
// `columns` elements of it, from tiles of `tile` rows in shared memory; wide: the same, for one chain. Any: piece by piece, whatever the
// width.
//
//                         name   warps  columns  tile   blocks that a multiprocessor's registers must allow, for 1 and 4 chains
#define ROW_SHAPES(NARROW, TILED, WIDE, ANY, argument) \
    NARROW(argument, n8, 4, 8, 0, 7, 4)                \
    NARROW(argument, n16, 4, 16, 0, 5, 2)              \
    TILED(argument, w1k2, 1, 2, 32, 20, 16)            \
    TILED(argument, w1k4, 1, 4, 16, 20, 16)            \
    TILED(argument, w1k8, 1, 8, 16, 16, 12)            \
    TILED(argument, w4k4, 4, 4, 8, 4, 4)               \
    TILED(argument, w8k4, 8, 4, 8, 3, 2)               \
    TILED(argument, w8k8, 8, 8, 4, 3, 1)               \
    TILED(argument, w8k16, 8, 16, 2, 2, 1)             \
    WIDE(argument, w32k8, 32, 8, 2, 1, 0)              \
    WIDE(argument, w32k16, 32, 16, 1, 1, 0)            \
    ANY(argument, any, 8, 0, 0, 1, 0)

// Rows of a tile: fewer in double, so that the bytes stay; rows * chains is at most 32, a dot for each lane of a warp.
#define ROW_TILE(tile, chains, size) ((ROW_TILE_OF(tile, size)) * (chains) > 32 ? 32 / (chains) : ROW_TILE_OF(tile, size))
#define ROW_TILE_OF(tile, size)      ((size) == 8 && (tile) > 1 ? (tile) / 2 : (tile))

// Bytes of shared memory: barriers, dots of each warp and weights; then the stages. A tile begins at any element, and is copied in 16
// bytes.
#define ROW_TILES_AT(warps, dots, size) ((64 + ((warps) + 1) * (dots) * (size) + 127) / 128 * 128)
#define ROW_STAGE(rows, p, size)        (((rows) * (p) * (size) + 16 + 127) / 128 * 128)

#if !defined(__CUDACC_RTC__)
#include <stdio.h>

typedef struct RowPlan {
    char kernel[24];      // to be appended to the name of the ROW
    int threads, shared;  // of a block
    int stage;            // bytes of a stage, which are part of shared
    long sum_blocks;
    long partial;  // doubles that pass.partial must hold
    RowPass pass;  // n, p, rows, chunks, chains and stages
} RowPlan;

// columns 0: any; tile 0 besides: narrow
typedef struct RowShape {
    const char *name;
    int warps, columns, tile, chains;
} RowShape;
#define ROW_SHAPE(argument, name, warps, columns, tile, one, four) {#name, warps, columns, tile, (four) ? 4 : 1},

// The launch for up to `chains` chains of an n by p matrix whose elements have `size` bytes, 4 or 8, on a GPU where a block may have `most`
// bytes of shared memory (227 KB on an H100 or H200). n >= 0, p >= 0, chains >= 1.
static inline RowPlan row_plan(long n, long p, int chains, int size, long most_shared)
{
    enum { EVEN = 16 * 132 };  // 132: multiprocessors of an H100 or H200
    static const RowShape shapes[] = {ROW_SHAPES(ROW_SHAPE, ROW_SHAPE, ROW_SHAPE, ROW_SHAPE, 0)};
    RowPlan plan;
    RowPass *pass = &plan.pass;
    const RowShape *shape = shapes;
    long head = 0;  // shared memory before the stages
    int lanes = 1;  // chains that the kernel has places for
    for (;; shape++) {
        pass->chains = chains < shape->chains ? chains : shape->chains;
        lanes = pass->chains == 1 ? 1 : 4;
        head = plan.stage = 0;
        if (!shape->columns) break;
        if (!shape->tile && p <= shape->columns && most_shared > 0) break;
        if (!shape->tile || p > 32L * shape->warps * shape->columns) continue;
        const int tile = ROW_TILE(shape->tile, lanes, size);
        plan.stage = (int)ROW_STAGE(tile, p, size);
        head = ROW_TILES_AT(shape->warps, tile * lanes, size);
        if (head + 2L * plan.stage <= most_shared) break;
    }
    const int narrow = shape->columns && !shape->tile;
    // Other blocks work while one waits; where there is room for one only, it looks further ahead.
    pass->stages = !plan.stage ? 0 : shape->warps == 32 && head + 3L * plan.stage <= most_shared ? 3 : 2;
    plan.shared = (int)(head + pass->stages * (long)plan.stage);
    plan.threads = 32 * shape->warps;
    snprintf(plan.kernel, sizeof plan.kernel, "_rows_%s_%d", shape->name, lanes);
    pass->X = 0;
    pass->n = n;
    pass->p = p;
    pass->beta = pass->out = pass->total = ROW_NO_FIELD;
    pass->partial = 0;
    pass->chain = 0;
    pass->first_chunk = 0;

    // Chunks: enough to fill a GPU, in even rounds; not so short that writing their sums costs, nor so long that a sum in single
    // precision loses digits: a lane adds 512 terms at most.
    const long most = narrow ? 512L * plan.threads : 512, least = narrow ? 2L * plan.threads : 32;
    long wanted = n / 128;
    wanted = wanted < EVEN / 4 ? EVEN / 4 : wanted > EVEN ? EVEN : wanted;
    if (narrow || shape->warps == 1) wanted = 2 * EVEN;
    long rows = (n + wanted - 1) / wanted;
    rows = rows < least ? least : rows > most ? most : rows;
    pass->rows = (rows + 31) / 32 * 32;
    pass->chunks = (n + pass->rows - 1) / pass->rows;
    plan.partial = pass->chunks * pass->chains * (p + 1);
    plan.sum_blocks = (pass->chains * (p + 1) + ROW_SUM_COLUMNS - 1) / ROW_SUM_COLUMNS;
    return plan;
}

// The same for a pass that adds nothing up: its chunks may be short, so that few rows fill a GPU too.
static inline void row_plan_without_sums(RowPlan *plan)
{
    enum { BLOCKS = 4 * 132, LEAST = 4 };
    const long rows = (plan->pass.n / BLOCKS + LEAST) / LEAST * LEAST;
    if (plan->threads < 128 || rows >= plan->pass.rows || plan->pass.p <= 16) return;
    plan->pass.rows = rows;
    plan->pass.chunks = (plan->pass.n + rows - 1) / rows;
}
#endif

#endif
