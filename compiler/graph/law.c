// law.c -- functions that a distribution brings: its log density and its distribution function, in expressions.
//
//   before   normal_lpdf(y | mu, sigma)          y a vector
//   after    sum(i in 1:N, -((y[i] - mu)/sigma)^2/2 - log(sigma) - log(2*pi)/2)
//
// Needs: names and types checked.     Gives: a scalar, the sum over the elements of a vector.
// They have the values that the statement y ~ normal(mu, sigma) would add: minus infinity outside of the support.
// Where data make the argument of a distribution function infinite, or an end of the support, nothing is left or all, whatever the parameters: a limit that formulas do not give the derivatives of.
#include <math.h>
#include "elaborate.h"

// Does the sign or the declared support of x say that it lies on this side of the end, or, where that is `closed`, at it?
static bool inside_of(const Expr *x, const Expr *end, int side, bool closed)
{
    if (!end) return true;
    if (end->kind != EX_NUM) return false;
    if (!isfinite(end->number)) return side ? end->number > 0 : end->number < 0;
    if (side == 0 && end->number <= 0 && (closed ? ex_positive(x) : ex_above_zero(x))) return true;
    const double bound = x->kind == EX_NUM ? x->number : x->kind != EX_REF ? NAN : side ? x->var->upper_number : x->var->lower_number;
    return (side ? bound < end->number : bound > end->number) || (closed && bound == end->number);
}

// Whether x is at this end of the support, or beyond it. NULL: it never is, or the formula e serves there.
static Expr *out_of(const Distribution *d, Expr *x, Expr *end, int side, const Expr *e)
{
    if (d->value_rank || inside_of(x, end, side, d->discrete)) end = NULL;
    if (!end) return at_infinity(x, side);
    if (inside_of(x, end, side, true)) return serves_at_end(e) ? NULL : ex_call2("at end", x, end);
    return side ? ex_call2("<=", end, x) : ex_call2(d->discrete ? "<" : "<=", x, end);
}

static Expr *one(Graph *g, const Distribution *d, LawPart part, Expr **args, Expr *x)
{
    const Env *env = bind_arguments(g, d, d->nparams, args, x);
    const bool above = part == LAW_LOG_CCDF;
    Expr *ends[2], *minus = ex_num(-INFINITY), *e = elaborate(g, part == LAW_DENSITY ? d->log_density : above ? d->ccdf : d->cdf, env, 0, NULL);
    support_ends(g, d, d->nparams, args, x, &ends[0], &ends[1]);
    if (part == LAW_DENSITY) {
        for (int side = 0; side < 2; side++)
            if (d->value_rank || inside_of(x, ends[side], side, true)) ends[side] = NULL;
        if (ends[0] || ends[1]) e = ex_add2(e, ex_call3("within", x, ends[0] ? ends[0] : minus, ends[1] ? ends[1] : ex_num(INFINITY)));
    }
    Expr *inside = part == LAW_CDF ? NULL : inside_domains(g, d, d->nparams, args, x);
    if (inside) e = ex_call3("if_else", inside, e, minus);
    if (part == LAW_DENSITY) return e;
    Expr *all = e;
    for (int side = 1; side >= 0; side--) {
        Expr *out = out_of(d, x, ends[side], side, e);
        if (out) all = ex_call3("if_else", out, side == above ? minus : ex_num(0), all);      // nothing is left, or all
    }
    return all;
}

// e where a condition holds, if that is all ends that are numbers, as a sum with terms for them. NULL: it is not.
static Expr *between_ends(Expr *condition, Expr *e)
{
    if (condition->kind != EX_CALL) return NULL;
    Expr *a = condition->args[0], *b = condition->nargs > 1 ? condition->args[1] : NULL;
    if (condition->fn == FN_AND) {
        Expr *one = between_ends(a, e);
        return one ? between_ends(b, one) : NULL;
    }
    if (condition->fn != FN_LE || (a->kind != EX_NUM && b->kind != EX_NUM)) return NULL;
    return ex_add2(e, a->kind == EX_NUM ? ex_call3("within", b, a, ex_num(INFINITY)) : ex_call3("within", a, ex_num(-INFINITY), b));
}

// A term of a density that is minus infinity itself where nothing is left needs no choice for that.
static Expr *bare(Expr *e, void *with)
{
    switch (e->kind) {
    case EX_ADD: case EX_MUL: return NULL;
    case EX_REDUCE: return e->fn == FN_sum ? NULL : e;
    case EX_CALL:
        if (e->fn != FN_if_else) return e;
        if (ex_is_num(e->args[2], -INFINITY) && ex_unknown(e->args[0])) {
            Expr *sum = between_ends(e->args[0], ex_map(e->args[1], bare, with));
            return sum ? sum : e;
        }
        return goes_on(e->args[0]) && ex_is_num(e->args[1], -INFINITY) ? ex_map(e->args[2], bare, with) : NULL;
    default: return e;
    }
}

Expr *added_density(Expr *e) { return ex_map(e, bare, NULL); }

Expr *law_of(Graph *g, const Ast *e, const Env *env, const Distribution *d, LawPart part)
{
    g->laws = true;
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
