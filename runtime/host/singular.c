// singular.c -- matrices that are singular to within rounding.
//
//   lkj_corr(eta), eta = 0.01      most of its correlations lie within 1e-16 of -1 or 1, where no other numbers are
//   wishart(df, S), df = 1.01      the same of matrices of two rows
//
// The density is infinite there, and what is computed of it is rounding. The sign is a square of a diagonal element of the Cholesky factor
// far below the element of the matrix that it is a part of.
#include "chains.h"
#include "fields.h"
#include "messages.h"
#include "../device/gm.h"

#include <stdlib.h>

bool gm_nearly_singular(const double *A, long n, double *L)
{
    const double least = 1e-14;
    for (long i = 0; i < n * n; i++) L[i] = A[i];
    if (chol_factor(L, n)) return true;
    for (long i = 0; i < n; i++)
        if (L[i * n + i] * L[i * n + i] < least * A[i * n + i]) return true;
    return false;
}

char *gm_singular_matrix(const GmModel *model, const GmMemory *m, int chain)
{
    char *words = NULL;
    for (int f = 0; f < model->n_state && !words; f++) {
        const GmField *v = &model->state[f];
        const GmShape *s = &m->shape[f];
        if ((v->role != GM_PARAMETER && v->role != GM_LATENT) || (v->constraint != GM_COVARIANCE && v->constraint != GM_CORRELATION))
            continue;
        const long n = s->dim[s->rank - 1], size = gm_shape_size(s);
        const double *A = gm_state_array(model, m, chain, f);
        double *L = gm_alloc((size_t)(n * n), sizeof *L);
        for (long at = 0; at < size && !words; at += n * n)
            if (gm_nearly_singular(A + at, n, L))
                words = gm_format("%s is a singular matrix to within rounding: its prior has much probability next to singular matrices "
                                  "(a shape near 0, degrees of freedom near the number of rows less 1), where there are no numbers. Keep "
                                  "the prior of that shape, or of these degrees of freedom, away from there",
                                  v->name);
        free(L);
    }
    return words;
}
