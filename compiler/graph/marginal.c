// marginal.c -- discrete unknowns that the model asks to be summed out, `infer { c by marginal; }`: all others move with them integrated out.
//
//   before   categorical(c[i] | theta), normal(y[i] | mu[c[i]], s), both over i
//   after    log_sum_exp(k in 1:K, log(theta[k]) + normal(y[i] | mu[k], s)) over i; c[i] is drawn given the rest
//
// Needs: augment done, ranges of discrete unknowns known.     Gives: a factor for each that is summed out, and from which to which number of sums each factor counts.
//
// Unknowns are summed out one after the other, as in the elimination of variables (Zhang and Poole 1994): the sum over the values of one takes in all factors that read it, also sums
// over others. In the sweep, what reads a sum moves first, then those that were summed out are drawn, the last one first, each given those after it with those before it still summed out.
// That is a draw of all of them together from their joint conditional, so the sweep keeps the joint law (partially collapsed Gibbs, van Dyk and Park 2008).
#include <math.h>
#include <string.h>
#include "graph.h"

// ---- which factors count ----

static bool asked_for(const Graph *g, const Var *v, const char *method)
{
    for (const Request *r = g->model->requests; r; r = r->next)
        for (int i = 0; r->block == BLOCK_INFER && i < r->nnames; i++)
            if (r->names[i] == v->name) return strcmp(r->method, method) == 0;
    return false;
}

bool asked_marginal(const Graph *g, const Var *v) { return asked_for(g, v, "marginal"); }

bool factor_counts_at(const Factor *f, int sums, bool collapsed)
{
    const Factor *written = f;
    while (written->original) written = written->original;
    if (sums < written->made || (written->gone && written->gone <= sums)) return false;
    return collapsed ? !f->original : !f->replaced;
}

bool factor_counts(const Factor *f, const Var *v, bool collapsed) { return factor_counts_at(f, v->sums, collapsed); }

// ---- one unknown ----

static const char *line_of(Graph *g, Span at) { return arena_printf(g->arena, "line %d", span_line(at)); }

// The first and the last value, those that a draw of it weighs; NULL: there are none that data tell.
static Expr *end_of_values(const Var *v, int side)
{
    Expr *e = side ? v->upper : v->lower ? v->lower : isfinite(v->lower_number) ? ex_num(v->lower_number) : NULL;
    return e && ex_data_only(e) ? e : NULL;
}

// The sum over the loops of a part of what stands in it.
static Expr *summed(const Loops *l, Expr *e)
{
    if (l->guard) e = ex_call3("if_else", l->guard, e, ex_num(0));
    for (int k = l->n - 1; k >= 0; k--) e = ex_reduce("sum", l->index[k], l->index[k]->lo, l->index[k]->hi, e);
    return e;
}

// log density of one element at a value, a sum over its factors; what does not depend on the value goes to `apart`.
static Expr *at_value(const Conditional *c, Expr **apart)
{
    Expr *all = ex_num(0);
    *apart = ex_num(0);
    for (const Part *q = c->density; q; q = q->next) {
        Expr *e = ends_decide(q->value), *with = ex_num(0), *without = ex_num(0);
        const bool guarded = q->loops.guard && ex_mentions(q->loops.guard, c->u->var);
        for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
            Expr *t = e->kind == EX_ADD ? e->args[i] : e;
            if (guarded || ex_mentions(t, c->u->var)) with = ex_add2(with, t);
            else without = ex_add2(without, t);
        }
        all = ex_add2(all, summed(&q->loops, with));
        *apart = ex_add2(*apart, summed(&q->loops, without));
    }
    return all;
}

enum { MOST_WRITTEN_OUT = 300 };        // nodes of a density that stands twice, once for each of two values

static Expr *over_values(const Conditional *c, Expr *e, Expr *first, Expr *last)
{
    const double lo = first->kind == EX_NUM ? first->number : NAN, hi = last->kind == EX_NUM ? last->number : NAN;
    if (lo == hi) return ex_replace(e, c->u, first);
    if (lo + 1 == hi && e->size < MOST_WRITTEN_OUT) return ex_call2("log_sum_exp2", ex_replace(e, c->u, first), ex_replace(e, c->u, last));
    Index *j = index_new(c->var->name, first, last);
    return ex_reduce("log_sum_exp", j, first, last, ex_replace(e, c->u, ex_index(j)));
}

// Why v cannot be summed out; NULL: it can.
static const char *obstacle(Graph *g, const Var *v, const Conditional *c)
{
    if (!v->discrete || v->base != BASE_INT) return "its values are reals";
    if (!end_of_values(v, 0) || !end_of_values(v, 1))
        return arena_printf(g->arena, "its values do not lie between two ends that are the same for all elements and known from data; bounds say it: int<lower=0, upper=10> %s", v->name);
    if (c->recursion) return arena_printf(g->arena, "it enters the recursion of `%s` (%s)", c->recursion->name, line_of(g, c->recursion->span));
    if (c->whole || c->nbatch < v->rank) {
        const char *where = c->couples ? arena_printf(g->arena, "the statement of %s", line_of(g, c->couples->span)) : "a statement";
        if (c->couples && c->couples->sums_out)
            return arena_printf(g->arena, "the sum over the values of `%s` couples several of its elements", c->couples->sums_out->name);
        return arena_printf(g->arena, "%s couples several of its elements", where);
    }
    return NULL;
}

static const Factor *reading_latents(Graph *g, const Var *v)
{
    const Reading r = factors_of(g, v);
    for (int q = 0; q < r.n; q++)
        if (factor_counts(r.factor[q], v, true) && r.factor[q]->replaced && factor_mentions(r.factor[q], v) && !can_collapse(g, v)) return r.factor[q];
    return NULL;
}

// What a value of another unknown that is still to be summed out makes impossible is said while the statement is known.
static void weigh_others(Graph *g, const Var *v, Expr **keep, bool on)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!factor_counts(f, v, true) || !factor_mentions(f, v)) continue;
        if (!on) { f->log_density = keep[n++]; continue; }
        keep[n++] = f->log_density;
        for (int i = 0; i < g->nvars; i++)
            if (g->vars[i] != v && g->vars[i]->sums == v->sums && g->vars[i]->summed == 0 && asked_marginal(g, g->vars[i]) && factor_mentions(f, g->vars[i]))
                f->log_density = weighed(g, f, g->vars[i])->log_density;
    }
}

// Sums v out, as the number `number`. Returns why it cannot.
static const char *sum_out(Graph *g, Var *v, int number)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) n++;
    Expr **keep = NEW_N(g->arena, Expr *, n + 1);
    v->sums = number - 1;
    weigh_others(g, v, keep, true);
    Conditional *c = conditional_density(g, v, true);
    weigh_others(g, v, keep, false);
    const char *because = obstacle(g, v, c);
    if (because) return because;
    const Factor *latent = reading_latents(g, v);
    if (latent) return arena_printf(g->arena, "the statement of %s has latents that are not drawn from their conditionals", line_of(g, latent->span));
    Plates p = {.n = v->rank, .index = NEW_N(g->arena, Index *, v->rank + 1)};
    for (int k = 0; k < v->rank; k++) p.index[k] = c->element[k];
    Expr *apart, *e = over_values(c, at_value(c, &apart), end_of_values(v, 0), end_of_values(v, 1));
    for (Factor *f = g->factors; f; f = f->next)
        if (!f->original && factor_counts(f, v, true) && factor_mentions(f, v)) f->gone = number;
    Factor *sum = factor_new(g, v->span, p);
    sum->log_density = ex_add2(e, apart);
    sum->sums_out = v;
    sum->made = number;
    v->summed = number;
    g->reading = NULL;                           // it knows of the factors that there were
    return NULL;
}

// ---- all of them ----

static int others_near(Graph *g, const Var *v)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        const Var *w = g->vars[i];
        if (w == v || w->summed || !asked_marginal(g, w)) continue;
        bool near = false;
        for (const Factor *f = g->factors; f && !near; f = f->next) near = factor_counts_at(f, g->nsums, true) && factor_mentions(f, v) && factor_mentions(f, w);
        n += near;
    }
    return n;
}

// Those that depend on few others first, and of these the ones with the most elements.
static int by_need(Graph *g, Var **list)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->summed || !asked_marginal(g, v)) continue;
        v->sums = g->nsums;
        int at = n++;
        const int near = others_near(g, v);
        for (; at > 0; at--) {
            const int before = others_near(g, list[at - 1]);
            if (before < near || (before == near && list[at - 1]->rank >= v->rank)) break;
            list[at] = list[at - 1];
        }
        list[at] = v;
    }
    return n;
}

static Span request_of(const Graph *g, const Var *v)
{
    for (const Request *r = g->model->requests; r; r = r->next)
        for (int i = 0; r->block == BLOCK_INFER && i < r->nnames; i++)
            if (r->names[i] == v->name) return r->span;
    return v->span;
}

bool marginals(Graph *g)
{
    Var **list = NEW_N(g->arena, Var *, g->nvars + 1);
    for (;;) {
        const int n = by_need(g, list);
        const char *because = NULL, *first = NULL;
        bool done = n == 0;
        for (int i = 0; i < n && !done; i++) {
            because = sum_out(g, list[i], g->nsums + 1);
            if (!first) first = because;
            done = !because;
        }
        if (!done) {
            Diag *m = diag(g->diags, request_of(g, list[0]), DIAG_E0513, list[0]->name);
            diag_because(m, "%s", first);
            diag_help(m, "leave the request out: gmc draws it given the rest");
            return false;
        }
        if (n == 0) break;
        g->nsums++;
    }
    for (int i = 0; i < g->nvars && g->nsums; i++) {
        Var *v = g->vars[i];
        if (v->summed) v->sums = v->summed - 1;
        else if (var_unknown(v) && v->kind != VAR_AUXILIARY && !asked_for(g, v, "gibbs")) v->sums = g->nsums;
    }
    return true;
}
