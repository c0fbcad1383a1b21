// zeros.c -- where an argument that unknowns may take out of its domain lies outside, the density is 0.
//
//   before   poisson(y[i] | a + b*x[i]) over i in 1:N
//   after    the same, and beside it the factor within(a + b*x[i], 0, inf) over i in 1:N
//
//   within a mixture, and of a density in an expression:     if_else(0 <= a, log density, -inf)     of this component alone: another one
//   may be what is drawn
//
// Needs: supports of all variables known.     Gives: factors beside their statements, which whatever evaluates the log joint takes as
// bounds. Domains: domains.c. Where supports and declared bounds imply them nothing is added, and what data alone decide is a requirement
// (arguments.c).
#include <math.h>
#include "series.h"
#include "zeros.h"
#include "../terms/ranges.h"
#include "../terms/factor.h"
#include "law.h"
#include "domains.h"
#include "density.h"

// ---- statements ----

// One loop over the same elements as another, under the same condition, with the same term: two statements with one argument, or a
// definition with that bound.
static bool is_there(const Graph *g, const Loops *p, Expr *term)
{
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->dist || f->plates.n != p->n || f->plates.guard != p->guard || f->log_density->kind != EX_CALL ||
            f->log_density->fn != FN_WITHIN)
            continue;
        Expr *e = f->log_density;
        bool same = true;
        for (int i = 0; i < p->n && same; i++) {
            same = f->plates.index[i]->lo == p->index[i]->lo && f->plates.index[i]->hi == p->index[i]->hi;
            if (same) e = ex_replace_index(e, f->plates.index[i], ex_index(p->index[i]));
        }
        if (same && e == term) return true;
    }
    return false;
}

static Expr *inner_end(const Index *i)
{
    if (i->lo->kind == EX_NUM && i->hi->kind == EX_NUM) return ex_num(fmin(i->lo->number, i->hi->number));
    return ex_call2("fmin", i->lo, i->hi);
}

static bool enters(const Loops *p, const Index *i, const Expr *term)
{
    bool does = ex_mentions_index(term, i) || (p->guard && ex_mentions_index(p->guard, i));
    for (int k = 0; k < p->n; k++) does |= ex_mentions_index(p->index[k]->lo, i) || ex_mentions_index(p->index[k]->hi, i);
    return does;
}

// Of a loop that does not change the term one iteration is enough, if there is one.
static Loops once_where_same(const Loops *p, const Expr *term)
{
    Loops once = *p;
    for (int k = 0; k < p->n; k++)
        if (!enters(p, p->index[k], term)) once.index[k] = index_new(p->index[k]->name, p->index[k]->lo, inner_end(p->index[k]));
    return once;
}

static void put_beside(Graph *g, Factor *f, const Loops *loops, Expr *term)
{
    const Loops plates = once_where_same(loops, term), *p = &plates;
    if (is_there(g, p, term)) return;
    Factor *beside = factor_beside(g, f);
    *beside = (Factor){.id = beside->id, .span = f->span, .plates = *p, .log_density = term, .if_missing = ex_num(0), .next = beside->next};
}

static void keep(Graph *g, Factor *f, const Domain *d)
{
    if (!d->x) return;
    Loops p = f->plates;
    Expr *term = ex_within(d->x, d->end[0], d->end[1]);
    if (d->along && p.n == MAX_PLATES) term = ex_reduce("sum", d->along, d->along->lo, d->along->hi, term);
    else if (d->along) {
        p.index[p.n++] = d->along;
    }
    put_beside(g, f, &p, term);
}

// The weights of a mixture are the argument of what draws its component.
static void keep_weights(Graph *g, Factor *f)
{
    const Distribution *pick = library_distribution(g->stdlib, intern(ex_rank(f->weights) ? "categorical" : "bernoulli"));
    Expr *weights = f->weights;
    const Domain d = domain_of_argument(g, pick, 1, &weights, NULL, 0);
    keep(g, f, &d);
}

// ---- functions ----

// Where a function of one number is defined: 0 log(a) is 0 where a is 0, and nothing where a is negative.
static Domain domain_of_function(Expr *e)
{
    Domain d = {.x = e->args[0]};
    switch ((int)e->fn) {
    case FN_log: d.end[0] = ex_num(0); break;
    case FN_log1p: d.end[0] = ex_num(-1); break;
    case FN_log1m: d.end[1] = ex_num(1); break;
    case FN_logit:
    case FN_inv_Phi:
        d.end[0] = ex_num(0);
        d.end[1] = ex_num(1);
        break;
    default: return (Domain){0};
    }
    return d;
}

static bool is_term(const Expr *sum, const Expr *term)
{
    for (int i = 0; sum->kind == EX_ADD && i < sum->nargs; i++)
        if (sum->args[i] == term) return true;
    return false;
}

// Functions in products, of which another factor may be 0: the product is 0 then, and would not show that the function value does not
// exist. Elsewhere the density is not a number. What a choice may leave out need not be defined.
static void keep_functions(Graph *g, Factor *f, const Loops *p, Expr *e, bool in_product)
{
    if (e->size > MAX_TREE || !moves_freely(e)) return;
    if (e->kind == EX_ADD || e->kind == EX_MUL)
        for (int i = 0; i < e->nargs; i++)
            keep_functions(g, f, p, e->args[i], in_product || (e->kind == EX_MUL && !(e->nargs == 2 && e->args[0]->kind == EX_NUM)));
    if (e->kind == EX_REDUCE && e->fn == FN_sum && p->n < MAX_PLATES) {
        Loops more = *p;
        Index *i = index_new(e->index->name, e->args[0], e->args[1]);
        more.index[more.n++] = i;
        keep_functions(g, f, &more, ex_open(e, i), in_product);
    }
    if (!in_product || e->kind != EX_CALL || e->nargs != 1) return;
    Domain d = domain_of_function(e);
    if (!d.x || !moves_freely(d.x) || !domain_in_doubt(&d) || is_term(f->log_density, ex_within(d.x, d.end[0], d.end[1]))) return;
    put_beside(g, f, p, ex_within(d.x, d.end[0], d.end[1]));
}

// ---- draws of the predict block ----

// What of a condition does not hold in any case. NULL: all of it does.
static Expr *in_doubt(Expr *e)
{
    if (e->kind == EX_CALL && e->fn == FN_AND) {
        Expr *a = in_doubt(e->args[0]), *b = in_doubt(e->args[1]);
        return a && b ? ex_both(a, b) : a ? a : b;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_prod) {
        Index *each = index_new(ex_index_called(e), e->args[0], e->args[1]);
        return in_doubt(ex_open(e, each)) ? e : NULL;
    }
    if (e->kind != EX_CALL || e->fn != FN_LE) return ex_is_num(e, 1) ? NULL : e;
    const bool lower = e->args[0]->kind == EX_NUM;
    return end_is_certain(e->args[lower ? 1 : 0], e->args[lower ? 0 : 1], !lower) ? NULL : e;
}

// The condition of a draw, if it is needed: what does not hold for some draw stops the run, where a routine might give a number
// nevertheless.
static void guard_draw(Graph *g, Site *t)
{
    if (!t->guarded) return;
    Expr *left = in_doubt(t->args[t->nargs - 1]);
    t->guarded = left != NULL;
    if (!left) {
        t->nargs--;
        return;
    }
    t->args = arena_copy(g->arena, t->args, sizeof *t->args * (size_t)t->nargs);
    t->args[t->nargs - 1] = left;
}

// ---- what is known of definitions ----

static bool sites_not_negative(const Var *v, bool upper)
{
    for (const Site *t = v->sites; t; t = t->next)
        if (!t->value || (upper && t->adds) || !never_negative(upper ? ex_sub(ex_num(1), t->value) : t->value)) return false;
    return v->sites != NULL;
}

// An end of the support of all statements that draw a response, a number: data are checked to keep to it, and missing values do.
static void supported(const Graph *g, Var *v, bool upper)
{
    double outer = upper ? -INFINITY : INFINITY;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        const Expr *end = upper ? f->most : f->least;
        if (!end || end->kind != EX_NUM) return;
        outer = upper ? fmax(outer, end->number) : fmin(outer, end->number);
    }
    if (!upper && outer > v->lower_number && isfinite(outer)) v->lower_number = outer;
    if (upper && outer < v->upper_number && isfinite(outer)) v->upper_number = outer;
}

// Elements of series and definitions of data that are not negative if those that they read are not: by induction none is. The same then for
// 1 from above.
static void suppose(Graph *g, bool upper)
{
    bool dropped = true;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (v->response) supported(g, v, upper);
        const bool made = v->base == BASE_REAL && v->sites && (v->kind == VAR_SERIES || v->kind == VAR_LET);
        if (made && !upper && isinf(v->lower_number)) v->lower_number = 0;
        if (made && upper && v->lower_number == 0 && isinf(v->upper_number)) v->upper_number = 1;
    }
    while (dropped) {
        dropped = false;
        for (int i = 0; i < g->nvars; i++) {
            Var *v = g->vars[i];
            double *end = upper ? &v->upper_number : &v->lower_number;
            if (v->base != BASE_REAL || !v->sites || (v->kind != VAR_SERIES && v->kind != VAR_LET) || *end != (upper ? 1 : 0) ||
                sites_not_negative(v, upper))
                continue;
            *end = upper ? INFINITY : -INFINITY;
            dropped = true;
        }
    }
}

void keep_domains(Graph *g)
{
    double *known = NEW_N(g->arena, double, 2 * g->nvars + 1);
    for (int i = 0; i < g->nvars; i++) {
        known[2 * i] = g->vars[i]->lower_number;
        known[2 * i + 1] = g->vars[i]->upper_number;
    }
    for (int i = 0; i < 2; i++) suppose(g, i);
    suppose_series(g);
    g->supports_known = true;
    added_in_domains(g);
    for (Factor *f = g->factors, *next; f; f = next) {
        next = f->next;
        if (f->added) keep_functions(g, f, &f->plates, f->log_density, false);
        for (int k = 0; f->dist && k < f->nargs; k++)
            if (ex_rank(f->args[k]) == 0) keep_functions(g, f, &f->plates, f->args[k], false);
        if (!f->dist) continue;
        if (f->ncomponents) {
            keep_weights(g, f);
            mixture_in_domains(g, f);
        } else
            for (int k = f->nargs < f->dist->nparams ? f->nargs - 1 : f->dist->nparams - 1; k >= 0; k--) {
                const Domain d = domain_of_argument(g, f->dist, f->nargs, f->args, f->value, k);
                keep(g, f, &d);
            }
    }
    for (int i = 0; i < g->nvars; i++)
        for (Site *t = g->vars[i]->sites; t; t = t->next) guard_draw(g, t);
    for (Series *s = g->series; s; s = s->next)
        for (Site *t = s->sites; t; t = t->next) guard_draw(g, t);
    for (int i = 0; i < g->nvars; i++) {
        g->vars[i]->lower_number = known[2 * i];
        g->vars[i]->upper_number = known[2 * i + 1];
    }
}
