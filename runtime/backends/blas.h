// blas.h -- what is called of BLAS and LAPACK, which OpenBLAS has. It is opened at the first call: most programs call none of it, and to
// load it takes longer than all else before their first sweep; its threads, one for each processor, would wait by spinning for work that
// they never get.
#ifndef GM_BLAS_H
#define GM_BLAS_H

#include <cblas.h>
#include <stdbool.h>
#include <stddef.h>

// Of LAPACK: the Cholesky factor of a, and the solution of a x = b by it, in their places. Matrices are column-major: the upper triangle
// (uplo "U") of theirs is the lower one of ours. *info: 0, or k if the k-th pivot is not positive. The last argument is the length of uplo,
// as Fortran passes it.
typedef void GmBlasFactor(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
typedef void GmBlasSolution(const char *uplo, const int *n, const int *nrhs, double *a, const int *lda, double *b, const int *ldb,
                            int *info, size_t);

// X(member, type, symbol)
#define BLAS(X)                                    \
    X(dcopy, __typeof__(cblas_dcopy), cblas_dcopy) \
    X(ddot, __typeof__(cblas_ddot), cblas_ddot)    \
    X(dgemm, __typeof__(cblas_dgemm), cblas_dgemm) \
    X(dgemv, __typeof__(cblas_dgemv), cblas_dgemv) \
    X(dscal, __typeof__(cblas_dscal), cblas_dscal) \
    X(dsyrk, __typeof__(cblas_dsyrk), cblas_dsyrk) \
    X(dtrsm, __typeof__(cblas_dtrsm), cblas_dtrsm) \
    X(dtrsv, __typeof__(cblas_dtrsv), cblas_dtrsv) \
    X(dpotrf, GmBlasFactor, dpotrf_)               \
    X(dposv, GmBlasSolution, dposv_)

typedef struct GmBlas {
#define MEMBER(member, type, symbol) type *member;
    BLAS(MEMBER)
#undef MEMBER
} GmBlas;

// Where there is none the program ends with a line that says how to install it.
const GmBlas *gm_blas(void);
bool gm_blas_found(void);

// Before the first call, while there is one thread: the library is to make none of its own.
void gm_blas_alone(void);

#endif
