// left_out.c -- missing values that nothing else reads, left out if the model requests it: `infer { y by marginal; }`.
//
//   before   normal(y[i] | u[g[i]], s) over i in 1:N
//   after    for all unknowns: the same over i in 1:N where observed_y[i]
//            for the missing values alone, drawn last: the statement as written
//            of a censored y[i] ~ normal(u[g[i]], s) C[lo[i], hi[i]] for all unknowns also the probability of the ends, where y[i] is
//            missing
//
// Needs: the graph as built.     Gives: a let of which values the file has, and a factor in place of each statement about the
// variable.     Keeps: the factors as written, marked.
//
// A missing value that enters nothing but its own distribution has the integral 1 in the joint density, whatever the other unknowns are.
// These are then drawn from their posterior given the observed values, and the missing values from their distribution given these: a draw
// of all from their joint posterior (a partially collapsed sampler, van Dyk and Park 2008). Drawn one after the other given each other,
// effects of a group with mostly missing values hardly change: their conditional is as narrow as if the values had been observed.
#include <string.h>
#include "left_out.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/density.h"

static bool test_left_out(const Expr *e, const Var *v) { return e && ex_mentions(e, v); }

// Whether a declared bound cuts nothing off what begins, or ends, there: at the inner one of two ends where the value is censored.
static bool cuts_nothing(const Expr *declared, const Expr *end, int side)
{
    if (lies_within(declared, end, side)) return true;
    bool inner = end && end->kind == EX_CALL && end->name == intern(side ? "fmin" : "fmax"), any = false;
    for (int k = 0; k < (inner ? end->nargs : 0); k++) any |= cuts_nothing(declared, end->args[k], side);
    return any;
}

// Why a factor keeps v in what others see; NULL: it is about one element of v, and reads no other.
static const char *in_factor(Graph *g, const Factor *f, const Var *v)
{
    const char *line = arena_printf(g->arena, "line %d", span_line(f->span));
    const bool about = f->value && f->value->kind == EX_REF && f->value->var == v;
    if (!about) return arena_printf(g->arena, "the statement of %s reads it", line);
    if (f->value->nargs < v->rank)
        return arena_printf(g->arena, "the statement of %s is about vectors, of which some elements may be there", line);
    if (!f->dist || f->ncomponents)
        return arena_printf(g->arena, "the statement of %s has no distribution that is drawn from as a whole", line);
    bool reads = test_left_out(f->lower, v) || test_left_out(f->upper, v) || test_left_out(f->plates.guard, v);
    for (int k = 0; k < f->nargs; k++) reads |= test_left_out(f->args[k], v);
    for (int k = 0; k < f->value->nargs; k++) reads |= test_left_out(f->value->args[k], v);
    if (reads) return arena_printf(g->arena, "the statement of %s reads other elements of it", line);
    const Expr *declared[] = {v->decl && v->decl->lower ? v->lower : NULL, v->decl && v->decl->upper ? v->upper : NULL};
    for (int side = 0; side < 2; side++)
        if (!cuts_nothing(declared[side], side ? f->most : f->least, side))
            return arena_printf(g->arena,
                                "its declared bounds cut the distribution of %s off, and that missing values lie within them "
                                "informs on the unknowns",
                                line);
    if (f->censored && !factor_log_mass(g, (Factor *)f))
        return arena_printf(g->arena, "the library does not know the distribution function that censored values of %s need", line);
    return NULL;
}

static const char *obstacle(Graph *g, const Var *v)
{
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->kind == VAR_SERIES ? g->vars[i]->sites : NULL; t; t = t->next)
            if (test_left_out(t->value, v)) return arena_printf(g->arena, "`%s` is computed from it", g->vars[i]->name);
    for (const Factor *f = g->factors; f; f = f->next) {
        const char *because = factor_mentions(f, v) || test_left_out(f->value, v) ? in_factor(g, f, v) : NULL;
        if (because) return because;
    }
    return NULL;
}

// observed_y[k, ...] = !missing(y[k, ...])
static Var *observed_of(Graph *g, Var *v)
{
    Index *index[MAX_RANK];
    Expr *element = var_element(g, v, index);
    Var *seen = var_unique(g, arena_printf(g->arena, "observed_%s", v->name), VAR_LET);
    seen->base = BASE_INT;
    seen->known.minds_missing = true;
    seen->span = v->span;
    seen->rank = v->rank;
    memcpy(seen->dim, v->dim, sizeof seen->dim);
    Site *t = seen->sites = NEW(g->arena, Site);
    *t = (Site){.span = v->span,
                .var = seen,
                .plates = loops_of_indices(index, v->rank, NULL),
                .n = v->rank,
                .value = ex_call1("!", ex_call1("missing", element))};
    for (int k = 0; k < v->rank; k++) t->subscript[k] = ex_index(index[k]);
    return seen;
}

// A censored value that is left out has the probability of lying between its ends.
static void count_mass(Graph *g, Factor *f, Expr *missing)
{
    Expr *mass = factor_log_mass(g, f);
    if (mass->kind == EX_NUM && mass->number == 0) return;
    Factor *m = factor_new(g, f->span, f->plates);
    m->plates.guard = f->plates.guard ? ex_call2("&&", f->plates.guard, missing) : missing;
    m->added = m->censored = true;
    m->subject = f->value->var;
    factor_add(m, mass);
}

static void leave_out(Graph *g, Var *v)
{
    Var *seen = observed_of(g, v);
    v->left_out = true;
    Factor *last = NULL;
    for (Factor *f = g->factors; f != last && f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v || f->left_out) continue;
        Factor *rest = factor_new(g, f->span, f->plates);
        Factor *const next = rest->next;
        const int id = rest->id;
        *rest = *f;
        rest->next = next;
        rest->id = id;
        rest->original = f;
        Expr *there = ex_ref(seen, f->value->nargs, f->value->args);
        rest->plates.guard = f->plates.guard ? ex_call2("&&", f->plates.guard, there) : there;
        f->replaced = f->left_out = true;
        if (f->censored) count_mass(g, f, ex_call1("!", there));
        if (!last) last = rest;  // those behind are made here
    }
}

bool leave_missing_out(Graph *g)
{
    for (int i = 0, n = g->nvars; i < n; i++) {
        Var *v = g->vars[i];
        if (v->kind != VAR_DATA || !v->response) continue;
        const Request *r = request_of(g, v);
        v->may_be_left_out = !r && v->rank > 0 && !obstacle(g, v);
        if (!r || r->method != METHOD_MARGINAL) continue;
        const char *because = obstacle(g, v);
        if (!because) {
            leave_out(g, v);
            continue;
        }
        Diag *m = diag(g->diags, r->span, DIAG_E0513, v->name);
        diag_because(m, "%s", because);
        diag_help(m, "leave the request out: missing values are then drawn given all that they enter");
    }
    g->reading = NULL;
    return diags_errors(g->diags) == 0;
}
