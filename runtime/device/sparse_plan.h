// sparse_plan.h -- what host and device share about joint normal draws whose precision is sparse, by tiles (sparse_tiles.h).
//
// Elements stand in an order that keeps the factor sparse; up to 32 of them are a tile, element[begin[k]] .. element[begin[k + 1] - 1], and
// the rest of it is as in the identity. Of L there are the tiles that are not all 0, `stored` of them, the one on the diagonal of row i
// being number i.
//
//   sum[sums]       a place of the precision or the shift: terms list[first .. first + count - 1] of those that a kernel has listed; where
//                   it is, see SparseSum
//   task[tasks]     in an order in which each needs those before it alone: tile (i, k), which takes update[first .. first + count - 1].
//                   SPARSE_FINISHES: no tile of row i comes later, and (i, i) is factored as well; k < 0: it is the only one of its row.
//                   SPARSE_PIECE, SPARSE_SQUARES: some updates of a tile that has many, of tile (i, k) or of (i, i), are added up in a tile
//                   of their own
//   update          what is to be done with tile `left`, the sum of: SPARSE_PRODUCT, L(i,j) L(k,j)', `right` being the other tile;
//                   SPARSE_SQUARE, L(i,j) L(i,j)' and L(i,j) w(j); SPARSE_ADD_PIECE, SPARSE_ADD_SQUARES, a piece that is there
//   Tiles from number `factor` on are such pieces.
//   back[tiles]     columns, from the last one that is finished; below[first_below[k] ..]: tiles of column k under the diagonal, the first
//                   one in `back` last
//
// Scratch memory: 64 bytes whose first four count tasks; for each chain SPARSE_POISONED bytes, which hold inverse[tiles][32][32],
// w[tiles][32], x[tiles][32], a scale, and ready[stored], ints; every byte of these is 255 before the launch. Then for each chain
// SPARSE_ZERO bytes, 0 before the terms are summed: tiles[stored][32][32], shift[tiles][32], and for each piece L w[32]. All numbers are
// doubles.
#ifndef GM_SPARSE_PLAN_H
#define GM_SPARSE_PLAN_H

#include "dense_plan.h"

enum { SPARSE_PART = 64 };  // terms of a sum that a lane adds up; of more, parts are added up by a warp

// to: 2 * place among the tiles' numbers, + 1 if the sum counts twice; -1 - place in the shift; parts of a longer sum have no place:
// LONG_MAX
typedef struct SparseSum {
    int first, count;
    long to;
} SparseSum;
typedef struct SparseLong {
    int first, count;
    long to;
} SparseLong;  // of sums: which parts
enum { SPARSE_TILE, SPARSE_FINISHES, SPARSE_PIECE, SPARSE_SQUARES };
enum { SPARSE_PRODUCT = 1, SPARSE_SQUARE = 2, SPARSE_ADD_PIECE = 4, SPARSE_ADD_SQUARES = 8 };
typedef struct SparseTask {
    int i, k, tile, kind, first, count;
} SparseTask;
typedef struct SparseUpdate {
    int left, right, j, what;
} SparseUpdate;
typedef struct SparseBelow {
    int tile, i;
} SparseBelow;

typedef struct SparsePlan {
    long n, tiles, factor, stored, sums, parts, longs, tasks, terms;
    const SparseSum *sum;  // parts of long sums come first
    const SparseLong *longer;
    const int *list;
    const SparseTask *task;
    const SparseUpdate *update;
    const int *back, *first_below;
    const SparseBelow *below;
    const int *begin, *element;
    double *value, *part;  // of terms, of parts, chain after chain
    unsigned char *scratch;
} SparsePlan;

#define SPARSE_POISONED(p)     ((((p)->tiles * DENSE_TILE * (DENSE_TILE + 2) + 1) * 8 + (p)->stored * 4 + 63) / 64 * 64)
#define SPARSE_ZERO(p)         (((p)->stored * DENSE_TILE * DENSE_TILE + ((p)->tiles + (p)->stored - (p)->factor) * DENSE_TILE) * 8)
#define SPARSE_HEAD(p, chains) (DENSE_HEAD + (chains)*SPARSE_POISONED(p))  // bytes before those that are 0
#define SPARSE_NOWHERE         0x7fffffffffffffffL

#endif
