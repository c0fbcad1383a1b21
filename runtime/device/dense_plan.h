// dense_plan.h -- what host and device share about joint normal draws by tiles (dense_tiles.h): the scratch memory and the grid of a
// launch.
//
// Scratch memory of a launch: 64 bytes whose first four count tasks, then for each chain
//
//   inverse[tiles][32][32]   of type solve: the inverses of the factor's tiles on the diagonal
//   w[2][tiles][32]          L^-1 h, and where another vector takes the place of noise, that one too
//   x[tiles][32]             the draw
//   scale                    a double
//   done[tiles]              ints: tiles finished in each row of tiles
//
// Every byte is 255 before the launch: no number that is handed on has these bits, so that who reads one knows whether it is there.
#ifndef GM_DENSE_PLAN_H
#define GM_DENSE_PLAN_H

// DENSE_RESIDENT: blocks that a multiprocessor is to hold
enum { DENSE_TILE = 32, DENSE_THREADS = 256, DENSE_RESIDENT = 2, DENSE_HEAD = 64 };

#define DENSE_TILES(n)              (((n) + DENSE_TILE - 1) / DENSE_TILE)
#define DENSE_VECTORS(tiles)        ((tiles)*DENSE_TILE * (DENSE_TILE + 3))                              // elements of type solve
#define DENSE_CHAIN(tiles, element) ((DENSE_VECTORS(tiles) * (element) + 8 + (tiles)*4 + 63) / 64 * 64)  // bytes of a chain

// Tasks of a chain: the first tile, those below the diagonal, and a column of tiles each for the solve backwards.
#define DENSE_TASKS(tiles) (1 + (tiles) * ((tiles)-1) / 2 + (tiles))

#define DENSE_BYTES(n, chains, element) (DENSE_HEAD + (chains)*DENSE_CHAIN(DENSE_TILES(n), element))

// Few rows (gm_normal_rows of linalg.h): precision diag(D) + rows'rows for rows[n, p], drawn through M = I + rows D^-1 rows', n by n.
//
//   gm_rows_prior      grid p / 256, chains
//   gm_rows_products   grid n + chunks * DENSE_PAIRS(tiles), chains
//   gm_dense_tiles     of M; gm_rows_tiles if solve is single precision
//   gm_rows_place      grid p / 32, chains
//
// Scratch memory of a chain, all doubles: a[p], b[p], left[2][n]; partial[chunks][DENSE_PAIRS(tiles)][32][32], a sum over some columns for
// each tile of M from the diagonal down; and M[n][n] if solve is single precision.
typedef struct DenseRows {
    long n, p;                    // p = 0: no rows, a dense draw
    long chunks, slabs;           // a chunk has `slabs` times 32 columns
    unsigned long D, h, rows, y;  // offsets in State
    unsigned char *scratch;
    long chain;  // bytes of scratch of a chain
} DenseRows;

#define DENSE_PAIRS(tiles) ((tiles) * ((tiles) + 1) / 2)

#if !defined(__CUDACC_RTC__)
// Blocks of a launch. Where there is little work, a tile on the diagonal has a multiprocessor for itself.
static inline long dense_blocks(long n, int chains, long processors)
{
    enum { LITTLE = 4000 };
    const long tiles = DENSE_TILES(n), tasks = chains * DENSE_TASKS(tiles),
               most = (chains * tiles * tiles <= LITTLE ? 1 : DENSE_RESIDENT) * processors;
    return tasks < most ? tasks : most;
}

// Chunks so that products fill a GPU, by n and p alone: sums over chunks are rounded as they are cut.
static inline DenseRows dense_rows(long n, long p, long element)  // element: bytes of type solve
{
    enum { ENOUGH = 600, LEAST = 4 };
    DenseRows r = {0};
    const long pairs = DENSE_PAIRS(DENSE_TILES(n)), all = (p + DENSE_TILE - 1) / DENSE_TILE;
    const long wanted = pairs > 0 ? (ENOUGH + pairs - 1) / pairs : 1, most = all / LEAST > 1 ? all / LEAST : 1;
    r.n = n;
    r.p = p;
    r.chunks = wanted < most ? wanted : most;
    r.slabs = (all + r.chunks - 1) / r.chunks;
    r.chain = (2 * p + 2 * n + r.chunks * pairs * DENSE_TILE * DENSE_TILE + (element == 8 ? 0 : n * n)) * 8;
    return r;
}
#endif

#endif
