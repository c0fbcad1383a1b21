// collapsed.c -- indicators drawn with their weights integrated out, where the model requests it: counts in place of a Dirichlet vector.
//
//   before   infer { w by collapsed; }     c[i] ~ categorical(w), i in 1:N     w ~ dirichlet(a)
//   after    c[i], one after the other: P(c[i] = k) proportional to (a[k] + #{j != i: c[j] = k}) * (other factors of c[i]); then w given c
//
// Given the other indicators, the counts of w without c[i] determine the law of one more value. For a Dirichlet vector with natural
// parameters a + counts - 1 it is the ratio of the normalisers, (a[k] + n[k]) / sum(a + n) (Liu 1994; Griffiths and Steyvers 2004 for
// topics). So log w[k] in the conditional of c[i] becomes log(a[k] + n[k]) - log(sum of them). n leaves c[i] out, and is kept up to date
// while the elements are drawn one by one. Elements depend on each other through the counts, so they are drawn one after the other: a
// parallel form would be an approximation.
//
// Conditions: w is Dirichlet given everything else, wherever its counts come from. Each element of the indicator adds 1 to one place of w,
// selected by its value, once: then only the law of one value is needed. The weights of an element may be one of several vectors that data
// select, theta[doc[i], ..] (or theta[d, ..] for c[d, n]). Then elements of different vectors share no count: if nothing else couples them,
// vectors are updated in parallel, each element by element, which is as exact and gives the same draws. All discrete unknowns that read w
// are drawn so, and w directly after them, before any other update reads it (van Dyk and Park 2008).
#include <math.h>
#include <string.h>
#include "collapsed.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"

static void refuse(Graph *g, const Var *w, const char *because)
{
    Diag *m = diag(g->diags, asked_collapsed(g, w)->span, DIAG_E0508, w->name, "collapsed");
    diag_because(m, "%s", because);
    diag_help(m, "leave the request out: gmc chooses");
}

// The one log w[..] of a part, counted once; NULL: it holds w otherwise.
static Expr *one_log(Graph *g, const Part *q, Var *w)
{
    const Terms t = polynomial(g->arena, q->value, &(Unknowns){&w, 1, true}, 1);
    Expr *found = NULL;
    if (t.failed) return NULL;
    for (int i = 0; i < t.n; i++) {
        const Term *m = &t.term[i];
        if (m->degree == 0) continue;
        if (found || m->loops.n || m->loops.guard || !ex_is_num(m->coefficient, 1) || m->ref[0]->kind != EX_CALL || m->ref[0]->fn != FN_log)
            return NULL;
        found = m->ref[0]->args[0];
    }
    return found;
}

// How the conditional of an element of v holds w: its subscripts there and the condition; NULL after a message.
static Predictive *find_predictive(Graph *g, Var *v, const Conditional *c, Var *w, Conditional *natural)
{
    Predictive *p = NULL;
    const char *why = NULL;
    for (const Part *q = c->density; q && !why; q = q->next) {
        if (!ex_mentions(q->value, w)) continue;
        Expr *ref = q->loops.n ? NULL : one_log(g, q, w);
        if (p || q->loops.n)
            why = arena_printf(g->arena, "an element of `%s` counts more than once in it (line %d)", v->name, span_line(q->factor->span));
        else if (!ref || ref->nargs != w->rank)
            why = arena_printf(g->arena, "`%s` does not pick a place of it (line %d)", v->name, span_line(q->factor->span));
        else if (q->loops.guard && ex_mentions(q->loops.guard, c->u->var))
            why = arena_printf(g->arena, "`%s` decides whether it counts (line %d)", v->name, span_line(q->factor->span));
        else {
            p = NEW(g->arena, Predictive);
            *p = (Predictive){.weights = w, .natural = natural, .ref = ref, .guard = q->loops.guard};
            for (int k = 0; k < ref->nargs - 1; k++) p->varies |= ex_mentions(ref->args[k], c->u->var);
        }
    }
    if (!why && !p) why = arena_printf(g->arena, "`%s` decides which of its elements exist, or is looked up", v->name);
    if (!why) return p;
    refuse(g, w, why);
    return NULL;
}

static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->response;
}

// By which of its subscripts, before the value's, every one of the weights has the same expression of data, `key`, and over how many
// vectors that goes; NULL: by none.
static Expr *vectors_apart(const Predictive *list, Expr *key)
{
    Expr *extent = NULL;
    for (const Predictive *p = list; p; p = p->next) {
        int at = 0;
        while (at < p->ref->nargs - 1 && p->ref->args[at] != key) at++;
        if (at == p->ref->nargs - 1) return NULL;
        if (!extent) extent = p->weights->dim[at];
        else if (extent != p->weights->dim[at]) return NULL;
    }
    return extent;
}

// Elements that count in different vectors of weights go at once.
static void set_apart(Update *s, Conditional *c)
{
    const Var *v = c->var;
    Expr *first = v->rank ? ex_index(c->element[0]) : NULL;
    if (v->rank == 2 && vectors_apart(s->enumerate.predictive, first)) c->nbatch = 1;
    for (int k = 0; v->rank == 1 && k < s->enumerate.predictive->ref->nargs - 1 && !s->enumerate.ngroups; k++) {
        Expr *key = s->enumerate.predictive->ref->args[k];
        if (ex_mentions_index(key, c->element[0]) && ex_data_only(key) && !ex_any_var(key, test_response, NULL))
            s->enumerate.ngroups = vectors_apart(s->enumerate.predictive, s->enumerate.group = key);
    }
    if (!s->enumerate.ngroups) s->enumerate.group = NULL;
}

Update *collapsed_update(Graph *g, Var *v)
{
    Predictive *list = NULL, **last = &list;
    Conditional *c = NULL;
    if (!v->discrete || v->kind == VAR_AUXILIARY || is_collapsed(g, v)) return NULL;
    const Reading of = factors_of(g, v);
    for (int i = 0; i < g->nvars; i++) {
        Var *w = g->vars[i];
        bool meets = false;
        if (!var_unknown(w) || !is_collapsed(g, w)) continue;
        for (int q = 0; q < of.n; q++) meets |= factor_counts(of.factor[q], v, false) && factor_mentions(of.factor[q], w);
        if (!meets) continue;
        Conditional *natural = w->constraint == CONSTRAINT_SIMPLEX ? conditional_array(g, w) : NULL;
        if (!natural || !natural->family) return NULL;  // collapses_served reports it
        if (!c) c = conditional_density(g, v, false);
        const char *why = c->whole || c->recursion                   ? c->because
                          : v->summing.summed || v->summing.messages ? "it is summed out, or drawn together with others along a chain"
                          : !v->upper || !(v->lower || isfinite(v->lower_number)) ? "its values are not finitely many"
                                                                                  : NULL;
        if (why) {
            refuse(g, w, arena_printf(g->arena, "`%s` cannot be drawn with it integrated out: %s", v->name, why));
            return NULL;
        }
        Predictive *p = find_predictive(g, v, c, w, natural);
        if (!p) return NULL;
        *last = p;
        last = &p->next;
    }
    if (!list) return NULL;
    c = arena_copy(g->arena, c, sizeof *c);
    const bool apart = c->nbatch == v->rank;  // but for counts
    c->conflicts = NULL;
    c->nbatch = c->colours = c->lattice = 0;  // which tie all elements to each other
    const char *names = "";
    for (const Predictive *p = list; p; p = p->next)
        names = arena_printf(g->arena, "%s%s`%s`", names, *names ? ", " : "", p->weights->name);
    c->because = arena_printf(g->arena, "counts replace %s, as the model requests", names);
    Update *s = NEW(g->arena, Update);
    *s = (Update){.kind = UPDATE_ENUM,
                  .span = v->span,
                  .block = arena_copy(g->arena, &v, sizeof v),
                  .nblock = 1,
                  .conditional = c,
                  .reason = c->because,
                  .marginal = true,
                  .enumerate = {.lower = v->lower ? v->lower : ex_num(v->lower_number), .upper = v->upper, .predictive = list}};
    if (apart) set_apart(s, c);
    return s;
}

// Requests that no update can serve are reported.
bool collapses_served(Graph *g, const Update *updates)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *w = g->vars[i];
        if (!var_unknown(w) || !is_collapsed(g, w)) continue;
        bool used = false;
        for (const Update *s = updates; s; s = s->next)
            for (const Predictive *p = predictive_of(s); p; p = p->next) used |= p->weights == w;
        const Conditional *c = w->constraint == CONSTRAINT_SIMPLEX ? conditional_array(g, w) : NULL;
        if (!c) refuse(g, w, "it is no vector of probabilities");
        else if (!c->family) refuse(g, w, c->because);
        else if (!used && !diags_errors(g->diags)) refuse(g, w, "no unknown of finitely many values is drawn from it");
    }
    return diags_errors(g->diags) == 0;
}
