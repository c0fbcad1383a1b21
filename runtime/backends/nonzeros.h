// nonzeros.h -- matrices of data most of whose elements are 0: what is not 0, by rows.
//
// They are found by the address of the matrix. Passes over rows, X'X and X'WX (linalg.h) and rows of joint normals (sparse.h) look up the
// address that they read. If the matrix has such a list, they go through the listed elements alone. The matrix itself stays as it is for
// whatever else reads it.
#ifndef GM_NONZEROS_H
#define GM_NONZEROS_H

typedef struct GmNonzeros {
    const double *X;  // X[n, p]
    long n, p;
    long *first;  // of row i: first[i] .. first[i + 1] - 1, by columns
    int *column;  // from 0
    double *value;
} GmNonzeros;

// Looks at X[n, p], and keeps what is not 0 if a pass over that is predicted to take less than half the time of one over all: 1.2 ns an
// element and 2 ns a row beside 0.25 ns (tests/bench/nonzeros.py).
void gm_nonzeros_open(const double *X, long n, long p);
void gm_nonzeros_close(const double *X);

// The matrix of p columns whose row *row begins at x; NULL: there is none such.
const GmNonzeros *gm_nonzeros_of(const double *x, long p, long *row);

// Of rows row .. row + n - 1 and k outputs: eta[n, k] = X B and out += X'W as in linalg.h, by B[p, k] or, transposed, B[k, p].
void gm_nonzeros_times(const GmNonzeros *m, long row, long n, long k, const double *B, int transposed, double *eta);
void gm_nonzeros_added(const GmNonzeros *m, long row, long n, long k, const double *W, int transposed, double *out);

// The lower triangle of out[p, p] += X' diag(w) X over the same rows; w NULL: of scale times X'X.
void gm_nonzeros_gram(const GmNonzeros *m, long row, long n, double scale, const double *w, double *out);

#endif
