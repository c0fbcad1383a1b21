// sparse.h -- joint normals whose precision has few entries: x ~ N(J^-1 h, J^-1), J given by its entries.
//
// A kernel of the program goes through all terms of degree 2 of the block and passes its place and what it adds (gm_sparse_add).
// Which places there are depends on sizes and data alone: the kernel is called once for them (gm_pattern_begin, gm_pattern_end), and each
// place gets a slot among the entries of the lower triangle, by columns. In a sweep the same terms come in the same order, so that an entry
// is one addition, and sums do not depend on the number of threads.
//
// J is factored in an order that keeps the factor sparse, which CHOLMOD of SuiteSparse finds once: by CHOLMOD, or by simplicial.h where
// columns are short; or dense by LAPACK where that is less work, and x = P'L'^-1 (L^-1 P h + e) with P J P' = L L' and e standard normal
// (Rue 2001). CHOLMOD is found when the program runs, and only by programs that have such a block.
//
// Linear predictors that name a list of elements for each row, y[i] ~ normal(sum(k in start[i]:end[i], x[k]*b[col[k]]), s), are given row
// by row (gm_sparse_row, gm_sparse_put):
//     J = S + R'R,     S the terms, R the rows
// and the route with the least predicted work is taken:
//   factor     J's pattern has a place for each pair of entries of a row. Of a few long rows, which would fill it (a sum that is nearly 0),
//              there is none: they change the draw by as many directions (draw_apart)
//   gradients  where S is a diagonal: conjugate gradients (conjugate.h), with S or the diagonal of J to precondition, whichever has needed
//              fewer steps so far. They count: a chain whose steps cost more than a factor goes over to it, and a draw for which they do
//              not suffice is made by the factor; where there is none the run stops, and says so.
//   dense      by LAPACK
//   separate   by other updates, among them the one for few rows
//
// Rows that are rows of matrices of data, X * b, may be listed, too, a whole row at a time (gm_sparse_put_row). Of a row that has few
// elements other than 0 (nonzeros.h) these are entries. Any other is read from the matrix, and leaves no route but conjugate gradients.
// Whether such a joint normal is row-listed is decided when the data are read, by what its other routes are predicted to take: dense, and
// by few rows.
#ifndef GM_SPARSE_H
#define GM_SPARSE_H

#include "linalg.h"

typedef struct GmEntries {    // of the matrix that this thread collects
    const int *slot;          // of each term, in their order; NULL: places are noted
    double *value;            // of each slot
    long at, count;           // terms so far, and in all
    double root, *put;        // what the row's entries are multiplied by; entries of rows, in their order
    long put_at, puts;        // so far, and in all
    double *roots, *targets;  // of rows
    long row_at, rows;        // so far, and in all
} GmEntries;

extern __thread GmEntries gm_entries;  // which C++ knows, too

void gm_sparse_note(long i, long j);
void gm_sparse_note_row(void);
void gm_sparse_note_part(long at, const double *x, long p);
void gm_sparse_note_put(long j);

// The next term adds `value` to J[i, j] and J[j, i], or twice to J[i, i].
static inline void gm_sparse_add(long i, long j, double value)
{
    GmEntries *const e = &gm_entries;
    if (!e->slot) gm_sparse_note(i, j);
    else if (e->at < e->count) e->value[e->slot[e->at]] += value;
    e->at++;
}

// J has rr' more, r a row with these entries times `root`: it begins, and gets x at place j, which may come again.
static inline void gm_sparse_row(double root)
{
    GmEntries *const e = &gm_entries;
    e->root = root;
    if (!e->slot) gm_sparse_note_row();
    else if (e->row_at < e->rows) {
        e->roots[e->row_at] = root;
        e->targets[e->row_at] = 0;
    }
    e->row_at++;
}

// The shift has target * r more, r the row that has begun.
static inline void gm_sparse_target(double target)
{
    GmEntries *const e = &gm_entries;
    if (e->slot && e->row_at <= e->rows) e->targets[e->row_at - 1] = target;
}

static inline void gm_sparse_put(long j, double x)
{
    GmEntries *const e = &gm_entries;
    if (!e->slot) gm_sparse_note_put(j);
    else if (e->put_at < e->puts) e->put[e->put_at] = x == 0 ? 0 : e->root * x;
    e->put_at++;
}

// The row gets x[p] at places at .. at + p - 1: a row of a matrix of data.
void gm_sparse_put_row(long at, const double *x, long p);

// Whether the rows of a joint normal are listed. `begin` returns 0 if it has so few elements that none need be; between `begin` and `end`
// the kernel lists them. weighted: if they are not listed, X'WX is computed anew in each sweep.
int gm_list_begin(int number, long n, const char *name);
void gm_list_end(int number, int weighted);
void gm_list_on_gpu(int number, long n, const char *name);
int gm_rows_listed(int number);
int gm_rows_listed_alone(int number);  // and nothing is evaluated that reads what only other routes make
void gm_rows_evaluated(void);          // something is, as in looking for a mode

// Blocks have numbers from 1. Between these two calls, which no other thread makes meanwhile, the kernel says what its terms are; then the
// order is analysed and the route chosen; the environment variable GM_JOINT (sparse, gradients, dense, separate) chooses instead. n: the
// size of the block; most: how many times the work of the updates in its place a joint draw may take, by counts of multiply-adds
// (measured: 4e9 a second within CHOLMOD, 4 ns a term).
void gm_pattern_begin(int number, long n, double most, const char *name);
// on_gpu: it is to be drawn on a GPU, or as there: by tiles (tiles.h), in an order that has few columns that wait for each other.
void gm_pattern_end(int number, int on_gpu);

// GM_JOINT=lesson: separate, and no scale is drawn with a joint normal integrated out. These are the updates of `gmc --lesson`.
int gm_as_in_lesson(void);

// On a GPU, in place of both: the block is drawn by other updates, which its route says.
void gm_pattern_in_turn(int number, long n, const char *name);

// On a GPU: the tiles of the factor, NULL if the block is drawn by other updates; and the slot of each term, with the lower triangle by
// columns.
const struct GmTiles *gm_sparse_tiles(int number);
const int *gm_sparse_slots(int number, const int **first, const int **row);

// Whether block `number` is drawn jointly. If not, other updates draw it.
int gm_sparse_taken(int number);

// Whether these do; for --check also where it is taken, if there is memory for them. They have so many bytes, which is said before the
// pattern.
void gm_sparse_stand_in(int number, double bytes);
void gm_sparse_checked(void);
int gm_sparse_replaced(int number);

// How block `number` is drawn and why, a line of text; NULL: there is no such block. Numbers go up to gm_sparse_blocks().
int gm_sparse_blocks(void);
const char *gm_sparse_route(int number);

// ns that a draw of it is predicted to take, or the steps that stand in for it: for runs that choose between steps and moves along
// gradients.
double gm_sparse_time(int number);

// Whether one of this, gm_sparse_taken and gm_rows_listed was asked since the last call for a joint normal of which nothing is known yet:
// the program has not set up.
int gm_sparse_guessed(void);

// The numbers of the matrix of a chain: `begin` makes them zero, the kernel adds them up.
void gm_sparse_begin(int number, int chain);

// x[n], which stands at the last draw, from what was collected and h[n]. Returns 0; k if the k-th pivot is not positive (k counts elements
// of x from 1) or the k-th element not finite; GM_NOT_SOLVED; h is destroyed.
enum { GM_NOT_SOLVED = -1 };  // conjugate gradients did not come close enough, and there is no factor
long gm_normal_sparse(Stream *g, int number, double *h, double *x, GmScale *scale);

// As gm_marginal_dense, from what was collected. A draw from the same numbers that follows does not factor them again.
double gm_marginal_sparse(int number, double *h, const double *x);
// multiply-adds of a draw; -1: it is drawn by conjugate gradients, which give no determinant, or its rows are listed; 0: they might be, and
// are not
double gm_sparse_work(int number);

// --check, as in linalg.h.
// The lower triangle of the precision that was collected, J[n][n], for n of at most `most`; returns n, or 0: it is too large. h is
// finished.
long gm_sparse_dense(int number, double *h, long most, double *J);
void gm_sparse_before(int number, double *h, const double *x);
double gm_sparse_after(int number, const double *x);
void gm_kept_size(double size);  // of the terms of a ratio that is made elsewhere (linalg_cpu.c)

#endif
