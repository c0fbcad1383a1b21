// domains.c -- the condition that arguments lie in the domains that the stdlib declares of parameters, real<lower=0> sigma.
//
//   before   poisson(y[i] | a + b*x[i])
//   after    0 <= a + b*x[i]
//
// Needs: supports of all variables known, for what they imply (ranges.c): a condition that holds in any case is none.     Gives: an end for
// each argument, or a condition for all. Ends are closed: where one is none of the domain, normal(mu, 0), the density is no number or 0
// there by itself.
#include "domains.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "elaborate.h"
#include "law.h"

// What a sweep may change by less than a whole number, or data may lack. Whole numbers that are tried are weighed (arguments_lie_inside),
// and so is what they look up.
static Look test_moves(const Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_REF) return LOOK;
    const Var *v = e->var;
    return (var_unknown(v) && !(v->discrete && v->base == BASE_INT)) || v->kind == VAR_SERIES || v->response ? FOUND : SKIP;
}

bool moves_freely(const Expr *e) { return ex_find(e, test_moves, NULL); }
static Look test_loaded(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REF && (e->var->kind == VAR_DATA || e->var->kind == VAR_LET) ? FOUND : LOOK;
}

// e as a product of what moves and what does not.
static void split(Expr *e, Expr **moving, Expr **rest)
{
    *moving = *rest = ex_num(1);
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        Expr *x = e->kind == EX_MUL ? e->args[i] : e, **part = moves_freely(x) ? moving : rest;
        *part = ex_mul2(*part, x);
    }
}

bool is_factor_of_data(Expr *e, Expr **data)
{
    Expr *moving;
    split(e, &moving, data);
    return moving != e && ex_data_only(*data) && ex_find(*data, test_loaded, NULL) && never_negative(moving);
}

bool end_is_certain(Expr *x, Expr *end, int side)
{
    double range[2];
    range_of(x, &range[0], &range[1]);
    if (end->kind == EX_NUM && (side ? range[1] <= end->number : range[0] >= end->number)) return true;
    return never_negative(side ? ex_sub(end, x) : ex_is_num(end, 0) ? x : ex_sub(x, end));
}

bool end_is_kept(Expr *x, Expr *end, int side)
{
    if (end_is_certain(x, end, side)) return true;
    Expr *moving, *rest;
    split(x, &moving, &rest);
    // the rest decides, which data have or a trial weighs
    return side == 0 && ex_is_num(end, 0) && moving != x && never_negative(moving);
}

static bool in_order(const Expr *c)
{
    if (c->kind == EX_CALL) return c->fn == FN_sort_asc;
    return c->kind == EX_REF && (c->var->constraint == CONSTRAINT_ORDERED || c->var->constraint == CONSTRAINT_POSITIVE_ORDERED);
}

static bool asks_for_order(const Decl *p) { return p->constraint == CONSTRAINT_ORDERED || p->constraint == CONSTRAINT_POSITIVE_ORDERED; }

// The elements of an array of which the parameter asks something, and what.
static void domain_of_elements(Domain *d, const Decl *p, Expr *e)
{
    const bool ordered = asks_for_order(p);
    const bool factor = p->constraint == CONSTRAINT_CHOLESKY_COV || p->constraint == CONSTRAINT_CHOLESKY_CORR;
    Expr *before = NULL;
    d->along = index_new(intern("k"), ex_num(ordered ? 2 : 1), ex_dim(e, 0));
    Expr *k = ex_index(d->along);
    if (p->type.rank == 1 && ordered && !in_order(e)) before = ex_add2(k, ex_num(-1));
    if (p->type.rank == 1 && (p->lower || p->upper || p->constraint == CONSTRAINT_SIMPLEX || before)) d->x = ex_at(e, 1, &k);
    if (p->type.rank == 2 && factor && !(e->kind == EX_CALL && e->fn == FN_cholesky_decompose)) d->x = ex_at(e, 2, (Expr *[]){k, k});
    if (p->constraint == CONSTRAINT_SIMPLEX || factor) d->end[0] = ex_num(0);
    if (before) d->end[0] = ex_at(e, 1, &before);
}

// What the k-th argument must satisfy.
static Domain whole_domain(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value, int k)
{
    const Decl *p = dist->params[k];
    Domain d = {0};
    if (ex_rank(args[k]) != p->type.rank) return d;
    if (p->type.rank == 0) d.x = args[k];
    else domain_of_elements(&d, p, args[k]);
    if (!d.x) return d;
    const Env *env = bind_arguments(g, dist, nargs, args, value);
    if (p->lower) d.end[0] = elaborate(g, p->lower, env, 0, NULL);
    if (p->upper) d.end[1] = elaborate(g, p->upper, env, 0, NULL);
    return d;
}

// Ends that are kept in any case are taken out; whether one is left.
bool domain_in_doubt(Domain *d)
{
    for (int side = 0; side < 2; side++)
        if (d->end[side] && end_is_kept(d->x, d->end[side], side)) d->end[side] = NULL;
    return d->end[0] || d->end[1];
}

// And does not satisfy in any case. x is NULL: nothing.
Domain domain_of_argument(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value, int k)
{
    if (!moves_freely(args[k])) return (Domain){0};
    Domain d = whole_domain(g, dist, nargs, args, value, k);
    if (!d.x || !moves_freely(d.x)) return (Domain){0};
    return domain_in_doubt(&d) ? d : (Domain){0};
}

// ---- conditions ----

static Expr *condition(const Domain *d)
{
    Expr *all = NULL;
    for (int side = 0; side < 2 && d->x; side++) {
        if (!d->end[side]) continue;
        Expr *one = side ? ex_call2("<=", d->x, d->end[1]) : ex_call2("<=", d->end[0], d->x);
        if (d->along) one = ex_reduce("prod", d->along, d->along->lo, d->along->hi, one);
        all = ex_both(all, one);
    }
    return all;
}

Expr *inside_domains(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value)
{
    Expr *all = NULL;
    for (int k = 0; g->supports_known && k < nargs && k < dist->nparams; k++) {
        const Domain d = domain_of_argument(g, dist, nargs, args, value, k);
        Expr *one = condition(&d);
        if (one) all = ex_both(all, one);
    }
    return all;
}

// The two ends of the support that arguments give, as those of uniform, are in order.
static Expr *ends_in_order(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value)
{
    Expr *lo = NULL, *hi = NULL;
    if (dist->discrete || dist->value_rank) return NULL;
    support_ends(g, dist, nargs, args, value, &lo, &hi);
    return lo && hi && !end_is_certain(hi, lo, 0) ? ex_call2("<=", lo, hi) : NULL;
}

// Element k of a simplex, k an index over all of it or a number.
static bool is_element_of_simplex(Expr *x, const Expr *at, const Expr *extent, const Expr *simplex)
{
    return x->kind == EX_REF && x->var->constraint == CONSTRAINT_SIMPLEX && x->nargs == x->var->rank && x->args[x->nargs - 1] == at &&
           x->var->dim[x->nargs - 1] == extent && (!simplex || ex_ref(x->var, x->nargs - 1, x->args) == simplex);
}

static Look test_total(const Expr *e, void *with)
{
    if (e->kind != EX_REDUCE || (e->fn != FN_sum && e->fn != FN_log_sum_exp)) return LOOK;
    *(const Expr **)with = e;
    return FOUND;
}

// Element i of a vector that is divided by its sum, or of softmax.
static bool is_normalised(Expr *x, Expr *i, const Expr *extent)
{
    Expr *total = NULL;
    if (!ex_find(x, test_total, &total) || !ex_is_num(total->args[0], 1) || total->args[1] != extent) return false;
    Expr *part = ex_open(total, (Index *)i->index);
    return total->fn == FN_sum ? ex_mul2(x, total) == part : x->kind == EX_CALL && x->fn == FN_exp && ex_add2(x->args[0], total) == part;
}

enum { MOST_SUMMED = 16 };  // elements that are looked at one by one

// Whether the elements of a vector add up to 1 by what it is, as far as this is seen without data.
static bool adds_up(Expr *e, Expr *extent)
{
    Index *i = index_new(intern("k"), ex_num(1), extent);
    Expr *at = ex_index(i), *sum = ex_num(0);
    Expr *element = ex_at(e, 1, &at);
    if (is_element_of_simplex(element, at, extent, NULL) || is_normalised(element, at, extent)) return true;
    if (extent->kind != EX_NUM || extent->number > MOST_SUMMED) return false;
    const Expr *simplex = NULL;
    bool all = true;
    for (int k = 1; k <= extent->number; k++) {
        at = ex_num(k);
        Expr *x = ex_at(e, 1, &at);
        sum = ex_add2(sum, x);
        all &= is_element_of_simplex(x, at, extent, simplex);
        if (all) simplex = ex_ref(x->var, x->nargs - 1, x->args);
    }
    return all || ex_is_num(sum, 1);
}

// Elements of a simplex add up to 1, but for rounding: as the data of one do (runtime/host/data.c).
static Expr *sum_is_one(const Decl *p, Expr *e)
{
    if (p->constraint != CONSTRAINT_SIMPLEX || ex_rank(e) != 1 || adds_up(e, ex_dim(e, 0))) return NULL;
    Index *i = index_new(intern("k"), ex_num(1), ex_dim(e, 0));
    Expr *at = ex_index(i), *sum = ex_reduce("sum", i, i->lo, i->hi, ex_at(e, 1, &at));
    return ex_call2("<=", ex_call1("abs", ex_plus(sum, -1)), ex_num(1e-8));
}

Expr *whole_domains(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value, bool only_unseen)
{
    Expr *all = only_unseen ? NULL : ends_in_order(g, dist, nargs, args, value);
    for (int k = 0; k < nargs && k < dist->nparams; k++) {
        Expr *whole = sum_is_one(dist->params[k], args[k]);
        if (whole) all = ex_both(all, whole);
        if (only_unseen && !asks_for_order(dist->params[k])) continue;
        Domain d = whole_domain(g, dist, nargs, args, value, k);
        for (int side = 0; side < 2 && d.x && g->supports_known; side++)
            if (d.end[side] && end_is_certain(d.x, d.end[side], side)) d.end[side] = NULL;
        Expr *one = condition(&d);
        if (one) all = ex_both(all, one);
    }
    return all && !ex_is_num(all, 1) ? all : NULL;
}
