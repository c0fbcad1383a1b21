// matrices.c -- matrices of expressions, into arrays, and their Cholesky factors.
#include <math.h>
#include <string.h>
#include "hmc.h"

void factor_in_place(HmcBlock *m, Var *array, Expr *matrix)
{
    const bool unsure = !surely_symmetric(m, matrix);
    put_matrix(m, array, matrix, unsure);
    Node *lane = enter(m->p, NODE_LANE), *n = put(m->p, NODE_FACTOR);
    n->factor.matrix = array;
    n->factor.unsure = unsure;
    leave(m->p, lane);
}

// Of two equal expressions that are written differently one: (x - y)^2 and (y - x)^2, S[j, k] and S[k, j] of a matrix that is declared to
// be symmetric or is an inverse of such an expression.
static Expr *same_either_way(Expr *e, void *with)
{
    if (e->kind == EX_POW && e->args[0]->kind == EX_ADD && fmod(e->number, 2) == 0) {
        Expr *other = ex_neg(e->args[0]);
        return other->id < e->args[0]->id ? ex_pow(other, e->number) : NULL;
    }
    if (e->kind == EX_CALL && (e->fn == FN_fabs || e->fn == FN_abs) && e->args[0]->kind == EX_ADD) {
        Expr *other = ex_neg(e->args[0]);
        return other->id < e->args[0]->id ? ex_call1(e->name, other) : NULL;
    }
    if (e->kind == EX_CALL && (e->fn == FN_EQ || e->fn == FN_NE) && e->args[1]->id < e->args[0]->id)
        return ex_call2(e->name, e->args[1], e->args[0]);
    const bool declared =
        e->kind == EX_REF && e->nargs >= 2 && (e->var->constraint == CONSTRAINT_COVARIANCE || e->var->constraint == CONSTRAINT_CORRELATION);
    if (declared && e->args[e->nargs - 1]->id < e->args[e->nargs - 2]->id) {
        Expr **at = NEW_N(((HmcBlock *)with)->p->g->arena, Expr *, e->nargs);
        memcpy(at, e->args, sizeof *at * (size_t)e->nargs);
        at[e->nargs - 1] = e->args[e->nargs - 2];
        at[e->nargs - 2] = e->args[e->nargs - 1];
        return ex_ref(e->var, e->nargs, at);
    }
    return NULL;
}

// Whether a matrix is symmetric by its expression, whatever the data: then its lower triangle is all there is to know.
bool surely_symmetric(HmcBlock *m, Expr *matrix)
{
    Expr *j = ex_index(index_new(intern("j"), ex_num(1), ex_dim(matrix, 0))),
         *k = ex_index(index_new(intern("k"), ex_num(1), ex_dim(matrix, 0)));
    return ex_map(ex_at(matrix, 2, (Expr *[]){j, k}), same_either_way, m) == ex_map(ex_at(matrix, 2, (Expr *[]){k, j}), same_either_way, m);
}

// A matrix of expressions, into an array: the lower triangle, or all of it where it may not be symmetric.
void put_matrix(HmcBlock *m, Var *into, Expr *matrix, bool whole_matrix)
{
    Lower *p = m->p;
    const Factor f = matrix_factor(matrix, into, m->update->span);
    Loops l = f.plates;
    if (whole_matrix) {
        l = (Loops){.n = 2};
        for (int k = 0; k < 2; k++) l.index[k] = index_new(intern(k ? "k" : "j"), ex_num(1), ex_dim(matrix, 0));
    }
    Expr **at = NEW_N(p->g->arena, Expr *, 2);
    for (int k = 0; k < 2; k++) at[k] = ex_index(l.index[k]);
    put_barrier(p);
    Node *n = enter_nest(p, NODE_NEST, &l, 2, at, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(into, 2, at)), ex_at(matrix, 2, at));
    leave(p, n);
    put_barrier(p);
}
