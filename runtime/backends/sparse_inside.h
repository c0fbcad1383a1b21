// sparse_inside.h -- what the files behind sparse.h have in common: the pattern of a block, its numbers, and what conjugate gradients cost.
//
//   cholmod.c          the library, and the order of elements that it finds
//   sparse_pattern.c   which entries there are: terms and rows, noted once
//   sparse_routes.c    how a block is drawn, by predicted times
//   sparse_numbers.c   the numbers of a sweep, factors of these, solutions
//   sparse.c           draws, densities and checks
//
// The types are those of CHOLMOD's header, the library is opened when a program needs it: nothing is linked. Built without that header,
// there is the dense route alone.
#ifndef GM_SPARSE_INSIDE_H
#define GM_SPARSE_INSIDE_H

#include <stdbool.h>
#include "conjugate.h"
#include "simplicial.h"
#include "sparse.h"
#include "tiles.h"

#if defined(__has_include)
#if __has_include(<suitesparse/cholmod.h>)
#include <suitesparse/cholmod.h>
#define HAS_CHOLMOD 1
#elif __has_include(<cholmod.h>)
#include <cholmod.h>
#define HAS_CHOLMOD 1
#endif
#endif

#ifdef HAS_CHOLMOD
#define CHOLMOD(X)                                                                                                                        \
    X(int, cholmod_start, (cholmod_common *))                                                                                             \
    X(int, cholmod_free_factor, (cholmod_factor **, cholmod_common *))                                                                    \
    X(cholmod_factor *, cholmod_analyze, (cholmod_sparse *, cholmod_common *))                                                            \
    X(cholmod_factor *, cholmod_analyze_p, (cholmod_sparse *, int *, int *, size_t, cholmod_common *))                                    \
    X(int, cholmod_finish, (cholmod_common *))                                                                                            \
    X(cholmod_factor *, cholmod_copy_factor, (cholmod_factor *, cholmod_common *))                                                        \
    X(int, cholmod_factorize, (cholmod_sparse *, cholmod_factor *, cholmod_common *))                                                     \
    X(int, cholmod_solve2,                                                                                                                \
      (int, cholmod_factor *, cholmod_dense *, cholmod_sparse *, cholmod_dense **, cholmod_sparse **, cholmod_dense **, cholmod_dense **, \
       cholmod_common *))

typedef struct GmCholmod {
#define X(type, name, args) type(*name) args;
    CHOLMOD(X)
#undef X
} GmCholmod;
extern GmCholmod gm_cholmod;  // after gm_cholmod_open
#else
typedef struct cholmod_factor cholmod_factor;
#endif

enum { MOST_BLOCKS = 256 };  // with one block for each set of variables, more than programs have
enum { MOST_APART = 64 };    // rows that are apart from the factor

typedef struct Pattern {  // of one block: the same for all chains
    long n, terms, entries;
    int *slot;         // of each term
    int *first, *row;  // of the lower triangle, by columns: rows first[j] .. first[j + 1] - 1, the diagonal first
    bool dense, taken;
    double bytes;         // of what stands in
    double most;          // a joint draw that costs more than so many separate ones gives way to these
    double factor, work;  // entries of the factor; multiply-adds of a draw
    // rows that are listed, their entries; pairs of entries that have a place; rows that have none
    long rows, puts, pairs, napart;
    long *first_put;       // of each row
    int *column;           // of each entry
    unsigned char *apart;  // of each row
    GmPart *part;          // rows of matrices
    int parts;
    bool may_be_listed, listed;       // its rows, in place of what the program has besides
    bool weighted;                    // then X'WX would be made in each sweep
    bool diagonal, analysed, direct;  // the terms are a diagonal; there is a factor; that, or a dense one may be made
    bool gradients, only_gradients;
    // in ns, as predicted: an iteration of conjugate gradients, a draw by a factor, by the route that is taken
    double update_time, factor_time, time;
    struct Record *record;
    cholmod_factor *symbolic;
    GmSimplicial *columns;  // where these are short, the factor is made here; NULL: by CHOLMOD
    GmTiles *tiles;         // on a GPU
    int version;
    char *text;
} Pattern;

typedef struct Record {  // of one block, of one chain: what conjugate gradients have cost
    int chain;
    long draws, solved, steps, failed;
    int npushed, pushed[MOST_APART];  // elements whose pivots were lost without the rows that are apart
    double mean[2];  // iterations by either preconditioner, the terms and all of the diagonal; later ones count more; 0: not tried
    struct Record *next;
} Record;

typedef struct Numbers {  // of one block, of one thread
    int version;          // of the pattern that they belong to
    int chain;
    bool complete;  // the values hold the rows that are not apart
    double *value, *dense, *vector, *kept;
    double *put, *solving;            // entries of rows; work space of conjugate gradients
    double *root, *target, *of_rows;  // of each row; work space, a number for each
    double *factored;                 // the values whose factor there is
    double *columns, *work;           // of the factor that is made here; a number for each element
    bool has_factor;
    int factored_chain;  // of this chain
#ifdef HAS_CHOLMOD
    cholmod_common common;
    cholmod_factor *factor;
    cholmod_dense *x, *y, *e;
    bool started;
#endif
    struct Numbers *next;  // so that all can be reached
} Numbers;

void gm_sparse_no_room(void);
void *gm_sparse_room(size_t n);  // of n bytes; there is no return without

// ---- sparse_pattern.c ----

Pattern *gm_sparse_pattern(int number);
double gm_sparse_take_rows(Pattern *q);          // the rows that were listed; gives: how many pairs of entries of them have a place
void gm_sparse_forget_rows(Pattern *q);          // what was noted goes
bool gm_sparse_diagonal(const Pattern *q);       // all terms that were noted are on the diagonal
void gm_sparse_place(Pattern *q, double pairs);  // slots of terms, diagonal, pairs: what was noted is gone then

// ---- cholmod.c ----

const char *gm_cholmod_open(void);  // NULL, or why there is none
// order: the elements as they are to stand; NULL: as CHOLMOD finds best. *work: multiply-adds
bool gm_cholmod_analyse(Pattern *q, double *work, const int *order);
const int *gm_cholmod_order(const Pattern *q);  // of what was analysed
// Tiles in the order of nested dissection, where these take less time: fewer columns wait for each other. CHOLMOD may be built without
// METIS.
void gm_cholmod_dissect(Pattern *q, double most_updates);
#ifdef HAS_CHOLMOD
void gm_cholmod_start(cholmod_common *c);
cholmod_sparse gm_cholmod_matrix(const Pattern *q, double *value);
#endif

// ---- sparse_numbers.c ----

Numbers *gm_sparse_numbers(int number);
Record *gm_sparse_record(Pattern *q, int chain);
GmRows gm_sparse_rows(const Pattern *q, const Numbers *m);
void gm_sparse_collected(const Pattern *q, Numbers *m, double *h);  // all terms are there; h[n] gets what rows have as their targets
void gm_sparse_make_dense(const Pattern *q, Numbers *m);
#ifdef HAS_CHOLMOD
void gm_sparse_complete(const Pattern *q, Numbers *m);  // the rows that are not apart, to the values
double gm_sparse_pivot(const Pattern *q, const Numbers *m, long k, long *super);
long gm_sparse_factor(const Pattern *q, Numbers *m, Record *r);
bool gm_sparse_solve(const Pattern *q, Numbers *m, int what, double *x, long n);
#endif

#endif
