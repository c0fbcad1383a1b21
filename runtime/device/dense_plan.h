// dense_plan.h -- what host and device share about joint normal draws by tiles (dense_tiles.h): the scratch memory and the grid of a launch.
//
// Scratch memory of a launch: 64 bytes whose first four count tasks, then for each chain
//
//   inverse[tiles][32][32]   of type solve: the inverses of the factor's tiles on the diagonal
//   w[tiles][32]             L^-1 h, and beside it the vector that takes the place of noise, L^-1 e
//   x[tiles][32]             the draw
//   scale                    a double
//   done[tiles]              ints: tiles finished in each row of tiles
//
// Every byte is 255 before the launch: no number that is handed on has these bits, so that who reads one knows whether it is there.
#ifndef GM_DENSE_PLAN_H
#define GM_DENSE_PLAN_H

enum { DENSE_TILE = 32, DENSE_THREADS = 256, DENSE_RESIDENT = 2, DENSE_HEAD = 64 };   // DENSE_RESIDENT: blocks that a multiprocessor is to hold

#define DENSE_TILES(n)               (((n) + DENSE_TILE - 1) / DENSE_TILE)
#define DENSE_VECTORS(tiles)         ((tiles) * DENSE_TILE * (DENSE_TILE + 3))                                // elements of type solve
#define DENSE_CHAIN(tiles, element)  ((DENSE_VECTORS(tiles) * (element) + 8 + (tiles) * 4 + 63) / 64 * 64)     // bytes of a chain

// Tasks of a chain: the first tile, those below the diagonal, and a column of tiles each for the solve backwards.
#define DENSE_TASKS(tiles)           (1 + (tiles) * ((tiles) - 1) / 2 + (tiles))

#define DENSE_BYTES(n, chains, element) (DENSE_HEAD + (chains) * DENSE_CHAIN(DENSE_TILES(n), element))

#endif
