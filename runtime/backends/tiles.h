// tiles.h -- a sparse Cholesky factor by tiles of 32 x 32: which tiles there are, and the tasks that make them (device/sparse_plan.h has
// what they mean).
#ifndef GM_TILES_H
#define GM_TILES_H

#include "../device/sparse_plan.h"

typedef struct GmTiles {
    long n, tiles, factor, stored, tasks, updates;  // factor: tiles of the factor, after which come pieces
    int height, longest;                            // columns of tiles that wait for each other; updates of a tile
    int *begin;                                     // begin[tiles + 1]: where each tile begins in the order
    int *place, *element;                           // of an element: 32 times its tile, and which of that it is; elements in the order
    SparseTask *task;
    SparseUpdate *update;
    int *back, *first_below;  // first_below[tiles + 1]
    SparseBelow *below;
    // tiles of column k under the diagonal: rows row[first_row[k] .. first_row[k + 1] - 1], ascending, and their numbers
    int *first_row, *row, *row_tile;
} GmTiles;

// The lower triangle of a matrix n by n, n >= 1, by columns: rows row[first[j] .. first[j + 1] - 1]. order[n]: the element at each place, a
// postorder of the tree of eliminations; NULL: as they are. NULL: there would be more than `most` updates; or no memory.
GmTiles *gm_tiles_open(long n, const int *first, const int *row, const int *order, double most);
void gm_tiles_close(GmTiles *t);

// Where element (i, j) of the matrix, which is there, stands among the numbers of all tiles.
long gm_tiles_at(const GmTiles *t, int i, int j);

// In ns, as predicted, with so many terms.
double gm_tiles_time(const GmTiles *t, long terms);

// Which terms are added up where. Term k, of `terms`, adds to place slot[m] of the lower triangle if it is the m-th with row[k] >= 0, else
// to element column[k] of the shift. list: NULL if there is no memory.
typedef struct GmTileSums {
    SparseSum *sum;
    SparseLong *longer;
    int *list;
    long sums, parts, longs;
} GmTileSums;
GmTileSums gm_tiles_sums(const GmTiles *t, const int *first, const int *rows, const int *slot, long terms, const int *row,
                         const int *column);
void gm_tiles_sums_close(GmTileSums *s);

#endif
