// products.c -- predictors of several outputs: a matrix of data times a matrix of unknowns, for all rows at once.
//
//   before   eta = sum(j in 1:p, X[i, j]*B[j, k])     within the density of row i, for each k that it reads
//   after    X_B[i, k], which one product X*B has filled
//
// Whatever the distribution: it is the sum that is recognised, not what reads it. Kernels that only read predictors have the product before
// them (predicted, predictors.c). HMC updates (hmc/outputs.c) also keep the weights W[i, k] = d log p / d X_B[i, k], and X'W is
// what B gets: three passes over a few rows at a time, X*B, the density of the rows, X'W, while they are in the cache
// (launch_rows.h, ROW_PRODUCTS).
#include "lower.h"

bool is_index(const Expr *e, const Index *i) { return e->kind == EX_INDEX && e->index == i; }

bool whole_range(const Index *i, const Expr *extent) { return ex_is_num(i->lo, 1) && i->hi == extent; }

bool is_matrix(const Program *p, const Var *v)
{
    return is_real(p, v) && v->rank == 2 && v->base == BASE_REAL && ((v->kind == VAR_DATA && !v->response) || v->kind == VAR_LET);
}

// What is computed from unknowns before the loops that read it (once.c), by a launch before.
static bool is_work(const Var *v) { return v->kind == VAR_SUM && !v->sum && !v->lowered.filled_within; }

// B[j, column], B[column, j] or b[j], all of j.
static bool coefficients_of(const Lower *p, const Expr *e, const Index *j, Product *out, Expr **column)
{
    Var *v = e->var;
    if (e->kind != EX_REF || e->nargs != v->rank || v->rank < 1 || v->rank > 2 || v->base != BASE_REAL || !(var_unknown(v) || is_work(v)) ||
        is_real(p->out, v))
        return false;
    for (int k = 0; k < v->rank; k++) {
        if (!is_index(e->args[k], j) || !whole_range(j, v->dim[k]) || (v->rank == 2 && ex_mentions_index(e->args[1 - k], j))) continue;
        *column = v->rank == 2 ? e->args[1 - k] : NULL;
        *out = (Product){.coefficients = v, .transposed = k == 1};
        return true;
    }
    return false;
}

bool product_of(const Lower *p, const Expr *e, Product *out, Expr **row, Expr **column)
{
    if (e->kind != EX_REDUCE || e->fn != FN_sum) return false;
    Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
    const Expr *body = ex_open(e, j);
    if (body->kind != EX_MUL || body->nargs != 2) return false;
    for (int k = 0; k < 2; k++) {
        const Expr *m = body->args[k];
        if (m->kind != EX_REF || m->nargs != 2 || !is_matrix(p->out, m->var) || !is_index(m->args[1], j) ||
            !whole_range(j, m->var->dim[1]) || ex_mentions_index(m->args[0], j))
            continue;
        if (!coefficients_of(p, body->args[1 - k], j, out, column)) continue;
        out->matrix = m->var;
        *row = m->args[0];
        return true;
    }
    return false;
}

Expr *outputs_of(const Product *r) { return r->coefficients->rank == 2 ? r->coefficients->dim[!r->transposed] : ex_num(1); }

bool same_product(const Product *a, const Product *b)
{
    return a->matrix == b->matrix && a->coefficients == b->coefficients && a->transposed == b->transposed;
}
