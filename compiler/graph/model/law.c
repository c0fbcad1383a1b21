// law.c -- functions that a distribution brings: its log density and its distribution function, in expressions.
//
//   before   normal_lpdf(y | mu, sigma)          y a vector
//   after    sum(i in 1:N, -((y[i] - mu)/sigma)^2/2 - log(sigma) - log(2*pi)/2)
//
// Needs: names and types checked.     Gives: a scalar, the sum over the elements of a vector.
// They have the values that the statement y ~ normal(mu, sigma) would add: minus infinity outside of the support.
// Where data make the argument of a distribution function infinite, or an end of the support, nothing is left or all, whatever the
// parameters: a limit that formulas do not give the derivatives of.
#include <math.h>
#include <string.h>
#include "law.h"
#include "../terms/conditions.h"
#include "../terms/ranges.h"
#include "domains.h"

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
    Expr *ends[2], *minus = ex_num(-INFINITY),
                   *e = elaborate(g,
                                  part == LAW_DENSITY ? d->log_density
                                  : above             ? d->ccdf
                                                      : d->cdf,
                                  env, 0, NULL);
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
        if (out) all = ex_call3("if_else", out, side == above ? minus : ex_num(0), all);  // nothing is left, or all
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
    case EX_ADD:
    case EX_MUL: return NULL;
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
    for (int i = 0; i < d->nparams; i++) args[i] = elaborate_argument(g, e->kid[i + 1], env, d->params[i]->type.rank, extra, at);
    Expr *sum = one(g, d, part, args, ex_at(elaborate_whole(g, e->kid[0], env), extra, at));
    for (int k = extra - 1; k >= 0; k--) sum = ex_reduce("sum", j[k], ex_num(1), value.dim[k], sum);
    return part == LAW_CDF ? ex_call1("exp", sum) : sum;
}

const Env *bind_arguments(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value)
{
    const Env *env = NULL;
    for (int i = 0; i < nargs && i < d->nparams; i++) env = env_bind(g, env, d->params[i], args[i]);
    return env_bind(g, env, d->value, value);
}

// The ends of a distribution's support, NULL if open.
void support_ends(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value, Expr **lo, Expr **hi)
{
    const Env *env = bind_arguments(g, d, nargs, args, value);
    const bool unit = d->support == SUPPORT_UNIT;
    *lo = d->lower ? elaborate(g, d->lower, env, 0, NULL) : unit || d->support == SUPPORT_POSITIVE ? ex_num(0) : NULL;
    *hi = d->upper ? elaborate(g, d->upper, env, 0, NULL) : unit ? ex_num(1) : NULL;
}

static Look test_singular(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL || (e->kind == EX_POW && e->number < 0 && !ex_above_zero(e->args[0])) ? FOUND : LOOK;
}
static Look test_infinite(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_NUM && isinf(e->number) ? FOUND : LOOK;
}
static Look test_real(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REF && e->var->base != BASE_INT ? FOUND : LOOK;
}

// The data that can make e infinite on this side, itself or a part of it: the bound of (bound - mu)/sigma. NULL: none can, unknowns being
// finite.
static Expr *data_to_infinity(Expr *e, int side)
{
    const bool mixed = ex_unknown(e) && !ex_find(e, test_infinite, NULL);
    if (mixed && e->kind == EX_ADD) {
        Expr *data = ex_num(0);
        for (int i = 0; i < e->nargs; i++)
            if (!ex_unknown(e->args[i])) data = ex_add2(data, e->args[i]);
        return data_to_infinity(data, side);
    }
    if (mixed && e->kind == EX_MUL) {
        Expr *part = NULL;
        for (int i = 0; i < e->nargs; i++) {
            if (ex_above_zero(e->args[i])) continue;
            if (part) return NULL;
            part = e->args[i];
        }
        return part ? data_to_infinity(part, side) : NULL;
    }
    if (mixed || (!ex_find(e, test_infinite, NULL) && !ex_find(e, test_real, NULL))) return NULL;
    double range[2];
    range_of(e, &range[0], &range[1]);
    return isinf(range[side]) ? e : NULL;
}

Expr *at_infinity(Expr *e, int side)
{
    Expr *data = data_to_infinity(e, side);
    return data ? ex_call2("at end", data, ex_num(side ? INFINITY : -INFINITY)) : NULL;
}

bool serves_at_end(const Expr *e) { return !ex_find(e, test_singular, NULL); }

// ---- names in a law: bound to what they stand for ----

void names_add(Graph *g, Names *t, const char *name, Expr *value)
{
    if (t->n == t->size) {
        t->size = t->size ? 2 * t->size : 16;
        const char **name2 = NEW_N(g->arena, const char *, t->size);
        Expr **value2 = NEW_N(g->arena, Expr *, t->size);
        if (t->n) {
            memcpy(name2, t->name, sizeof *name2 * (size_t)t->n);
            memcpy(value2, t->value, sizeof *value2 * (size_t)t->n);
        }
        t->name = name2;
        t->value = value2;
    }
    t->name[t->n] = name;
    t->value[t->n++] = value;
}

const Env *names_bind(Graph *g, const Env *env, const Ast *e, const Names *t)
{
    if (!e) return env;
    for (int i = t->n - 1; e->kind == AST_NAME && e->decl && i >= 0; i--)
        if (t->name[i] == e->name) {
            env = env_bind(g, env, e->decl, t->value[i]);
            break;
        }
    for (int i = 0; i < e->nkids; i++) env = names_bind(g, env, e->kid[i], t);
    return env;
}
