// law.c -- functions that a distribution brings: its log density and its distribution function, in expressions.
//
//   before   normal_lpdf(y | mu, sigma)          y a vector
//   after    sum(i in 1:N, -((y[i] - mu)/sigma)^2/2 - log(sigma) - log(2*pi)/2)
//
// Needs: names and types checked.     Gives: a scalar, the sum over the elements of a vector.
// They have the values that the statement y ~ normal(mu, sigma) would add: minus infinity outside of the support.
#include <math.h>
#include "elaborate.h"

// Does the sign or the declared support of x say that it lies on this side of the end?
static bool beyond(const Expr *x, const Expr *end, int side)
{
    if (!end || end->kind != EX_NUM || !isfinite(end->number)) return !end || (end->kind == EX_NUM && (side ? end->number > 0 : end->number < 0) && !isfinite(end->number));
    if (side == 0 && end->number <= 0 && ex_positive(x)) return true;
    if (x->kind == EX_NUM) return side ? x->number <= end->number : x->number >= end->number;
    return x->kind == EX_REF && (side ? x->var->upper_number <= end->number : x->var->lower_number >= end->number);
}

static Expr *one(Graph *g, const Distribution *d, LawPart part, Expr **args, Expr *x)
{
    const Env *env = bind_arguments(g, d, d->nparams, args, x);
    Expr *ends[2], *minus = ex_num(-INFINITY);
    support_ends(g, d, d->nparams, args, x, &ends[0], &ends[1]);
    for (int side = 0; side < 2; side++)
        if (d->value_rank || beyond(x, ends[side], side)) ends[side] = NULL;
    const Ast *of = part == LAW_DENSITY ? d->log_density : part == LAW_LOG_CCDF ? d->ccdf : d->cdf;
    Expr *e = elaborate(g, of, env, 0, NULL);
    if (part == LAW_DENSITY)
        return ends[0] || ends[1] ? ex_add2(e, ex_call3("within", x, ends[0] ? ends[0] : minus, ends[1] ? ends[1] : ex_num(INFINITY))) : e;
    const bool above = part == LAW_LOG_CCDF;     // beyond an end nothing is left, or all
    if (ends[1]) e = ex_call3("if_else", ex_call2("<=", ends[1], x), above ? minus : ex_num(0), e);
    if (ends[0]) e = ex_call3("if_else", ex_call2("<", x, ends[0]), above ? ex_num(0) : minus, e);
    return e;
}

Expr *law_of(Graph *g, const Ast *e, const Env *env, const Distribution *d, LawPart part)
{
    const Shape value = shape_of(g, e->kid[0], env);
    const int extra = value.rank - d->value_rank;
    Index *j[MAX_RANK];
    Expr *at[MAX_RANK], **args = NEW_N(g->arena, Expr *, d->nparams + 1);
    for (int k = 0; k < extra; k++) at[k] = ex_index(j[k] = index_new("j", NULL, NULL));
    for (int i = 0; i < d->nparams; i++) args[i] = argument(g, e->kid[i + 1], env, d->params[i]->type.rank, extra, at);
    Expr *sum = one(g, d, part, args, ex_at(elaborate_whole(g, e->kid[0], env), extra, at));
    for (int k = extra - 1; k >= 0; k--) sum = ex_reduce("sum", j[k], ex_num(1), value.dim[k], sum);
    return part == LAW_CDF ? ex_call1("exp", sum) : sum;
}
