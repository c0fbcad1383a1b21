// conjugate.h -- solving (diag(D) + R'R) x = b by conjugate gradients, R given by rows: of few entries, and of rows of matrices.
//
// Nothing n by n is formed: an iteration costs a pass over the rows. Solutions of it with b = h + D^1/2 e1 + R'e2, e1 and e2 standard
// normal, are draws from N(J^-1 h, J^-1) with J = D + R'R, since b has the covariance J (Nishimura and Suchard 2022).
#ifndef GM_CONJUGATE_H
#define GM_CONJUGATE_H

typedef struct GmPart {  // of each row, at elements at .. at + p - 1: a row of a matrix, times `root` of the row
    long at, p;
    const double **x;  // where it begins; NULL: this row has none
} GmPart;

typedef struct GmRows {
    long rows;
    const long *first;  // entries of row i: first[i] .. first[i + 1] - 1
    const int *column;  // from 0; one may come several times
    const double *value;
    const double *root;
    const GmPart *part;
    int parts;
} GmRows;

// t[rows] = R x, and x[n] += R't. Rows of matrices go through linalg.h, some at a time.
void gm_rows_times(const GmRows *R, const double *x, double *t);
void gm_rows_added(const GmRows *R, const double *t, double *x);

// x += c a, a the entries of row i; of rows without parts.
void gm_row_added(const GmRows *R, long i, double c, double *x);

// y[n] = D x + R'R x, and D[n] + the diagonal of R'R.
void gm_rows_product(const GmRows *R, long n, const double *D, const double *x, double *y);
void gm_rows_diagonal(const GmRows *R, long n, const double *D, double *y);

// Of J^-1 b, how far x may be off: no combination a'x by more than this many of its standard deviations (a'J^-1 a)^1/2. The error e has
// e'Je <= r'D^-1 r, r = b - J x being what is left.
#define GM_SOLVED 1e-6

// x[n], from its present value, to a solution as close as GM_SOLVED, D > 0. M: the preconditioner, a diagonal near that of J.
// work[4 n]. Returns the number of iterations; -1: not within `most`, and x is not to be used.
long gm_conjugate_gradients(const GmRows *R, long n, const double *D, const double *M, const double *b, double *x, double *work, long most);

#endif
