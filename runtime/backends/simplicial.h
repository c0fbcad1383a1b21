// simplicial.h -- the Cholesky factor L L' of a sparse matrix whose columns are short, row after row (Davis 2006, Direct Methods for Sparse
// Linear Systems, section 4.7; the pattern by the tree of eliminations, Liu 1990).
//
// The pattern is found once; then a factor takes its multiply-adds and little else, where libraries that work for any matrix take most of
// their time with getting ready, if it is small.
#ifndef GM_SIMPLICIAL_H
#define GM_SIMPLICIAL_H

typedef struct GmSimplicial {
    long n, entries;  // of L
    int *order;       // the element at each place
    long *first;      // column j of L: entries first[j] .. first[j + 1] - 1, by rows, ascending; the diagonal is the first
    int *row;
    long *first_left;  // row i left of the diagonal: columns left[first_left[i] ..], ascending, and where these entries are
    int *left;
    long *at;
    long *first_of;  // row i of the matrix up to the diagonal: columns column[first_of[i] ..], and which of its values
    int *column, *value;
} GmSimplicial;

// The lower triangle of a matrix n by n, n >= 1, by columns: rows row[first[j] .. first[j + 1] - 1]. order[n]: the element at each place.
// NULL: no memory.
GmSimplicial *gm_simplicial_open(long n, const int *first, const int *row, const int *order);
void gm_simplicial_close(GmSimplicial *s);

// L[entries] of the matrix whose lower triangle has these values; work[n] is 0 before and after. 0, or 1 + the place whose pivot is not
// positive: then `work` is not 0 everywhere.
long gm_simplicial_factor(const GmSimplicial *s, const double *value, double *L, double *work);

// L x = b, and L'x = b, in the order of the places; b becomes x.
void gm_simplicial_solve(const GmSimplicial *s, const double *L, double *x);
void gm_simplicial_solve_transposed(const GmSimplicial *s, const double *L, double *x);

#endif
