// tied.c -- variables whose elements are constrained together: coordinates of a simplex or a matrix, one value at a time.
//
// They have derivatives by their elements in an array of their own, as if each were free; routines of constrained_line.h make x of q, q of
// x, and d/dq of d/dx.
#include <math.h>
#include "hmc.h"

Tied tied_new(Lower *p, const Var *v)
{
    const int rank = constraint_rank(v);
    if (!rank) return (Tied){0};
    Expr *K = v->dim[v->rank - 1], *half = ex_num(0.5), *dim[MAX_RANK];
    Tied t = {.nbatch = v->rank - rank};
    switch (v->constraint) {
    case CONSTRAINT_SIMPLEX: t.length = ex_sub(K, ex_num(1)); break;
    case CONSTRAINT_SUM_TO_ZERO:
        t.length = K->kind == EX_NUM ? ex_sub(K, ex_num(1)) : ex_call2("fmax", ex_sub(K, ex_num(1)), ex_num(0));
        break;
    case CONSTRAINT_CORRELATION:
    case CONSTRAINT_CHOLESKY_CORR: t.length = ex_mul2(half, ex_sub(ex_pow(K, 2), K)); break;
    case CONSTRAINT_COVARIANCE:
    case CONSTRAINT_CHOLESKY_COV: t.length = ex_mul2(half, ex_add2(ex_pow(K, 2), K)); break;
    case CONSTRAINT_NONE:
    case CONSTRAINT_ORDERED:
    case CONSTRAINT_POSITIVE_ORDERED:
    case CONSTRAINT_UNIT_VECTOR: t.length = K; break;
    }
    for (int k = 0; k < t.nbatch; k++) dim[k] = v->dim[k];
    dim[t.nbatch] = ex_mul2(ex_num(2), ex_pow(K, rank));
    t.slope = work_array(p, ROLE_BLOCK, words(p, "slope_%s", v->name), v->rank, v->dim);
    t.log_slope = work_array(p, ROLE_BLOCK, words(p, "log_slope_%s", v->name), t.nbatch, dim);
    t.work = work_array(p, ROLE_BLOCK, words(p, "work_%s", v->name), t.nbatch + 1, dim);
    return t;
}

// All values of v that exist, as loops. All elements of a value have a statement, or none (coverage.c).
static Loops values_of(const Tied *t, const Var *v)
{
    Loops l = {.n = t->nbatch, .guard = v->exists};
    for (int k = 0; k < t->nbatch; k++) l.index[k] = v->own[k];
    for (int k = t->nbatch; k < v->rank && l.guard; k++) l.guard = ex_replace_index(l.guard, v->own[k], ex_num(1));
    if (l.guard && ex_is_num(l.guard, 1)) l.guard = NULL;
    return l;
}

// The first element of the value that the loops are at.
static Expr *first_element(const Tied *t, const Var *v, Var *array)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < array->rank; k++) at[k] = k < t->nbatch ? ex_index(v->own[k]) : ex_num(1);
    return ex_ref(array, array->rank, at);
}

// Its coordinate c, from 1.
static Expr *coordinate_of_value(const HmcBlock *m, const Var *v, Var *array, Expr *c)
{
    const Tied *t = tied_of(m, v);
    Expr *before = ex_num(0);  // values before it
    for (int k = 0; k < t->nbatch; k++) before = ex_add2(k ? ex_mul2(before, v->dim[k]) : before, ex_sub(ex_index(v->own[k]), ex_num(1)));
    Expr *sub = ex_add(3, (Expr *[]){m->offset[at_block(m, v)], ex_mul2(before, t->length), c});
    return ex_ref(array, 1, &sub);
}

static bool is_bounded(const Var *v)
{
    const bool ordered = v->constraint == CONSTRAINT_ORDERED;
    return (ordered || v->constraint == CONSTRAINT_POSITIVE_ORDERED) &&
           (v->lower_number > (ordered ? -INFINITY : 0) || v->upper_number < INFINITY);
}

void put_transform(HmcBlock *m, Var *v, Transformed part)
{
    const Tied *t = tied_of(m, v);
    const Loops l = values_of(t, v);
    Node *nest = enter_nest(m->p, NODE_NEST, &l, 0, NULL, NULL), *n = put(m->p, NODE_TRANSFORM);
    n->transform.part = part;
    n->transform.var = v;
    n->transform.within = is_bounded(v);
    n->transform.y = coordinate_of_value(m, v, m->position, ex_num(1));
    n->transform.x = first_element(t, v, v);
    if (part != TRANSFORM_FROM) n->transform.work = first_element(t, v, t->work);
    if (part == TRANSFORM_CHAIN) {
        n->transform.slope = first_element(t, v, t->slope);
        n->transform.out = coordinate_of_value(m, v, m->gradient, ex_num(1));
        n->transform.log_slope = first_element(t, v, t->log_slope);
    }
    leave(m->p, nest);
}

// By the chain rule, value by value. Coordinates of values that do not exist are independent and standard normal.
void put_tied_chain(HmcBlock *m, Var *v)
{
    Lower *p = m->p;
    const Tied *t = tied_of(m, v);
    put_transform(m, v, TRANSFORM_CHAIN);
    Loops l = values_of(t, v);
    Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = ASSIGN_ADD;
    put_assign(p, ASSIGN_ADD, place_local(m->lp), first_element(t, v, t->log_slope));
    leave(p, n);
    if (!l.guard) return;
    l.guard = ex_call1("!", l.guard);
    Index *c = l.index[l.n++] = index_new(intern("c"), ex_num(1), t->length);
    Expr *q = coordinate_of_value(m, v, m->position, ex_index(c));
    n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = ASSIGN_ADD;
    put_assign(p, ASSIGN_ADD, place_local(m->lp), ex_mul2(ex_num(-0.5), ex_pow(q, 2)));
    put_assign(p, ASSIGN_SET, place_element(coordinate_of_value(m, v, m->gradient, ex_index(c))), ex_neg(q));
    leave(p, n);
}
