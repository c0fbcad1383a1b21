// afresh.c -- auxiliaries that are drawn afresh from their whole conditionals: updates before them in the sweep may integrate them out.
//
// Needs: augment done.     Gives: answers about a variable; the graph is not changed.
#include "afresh.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "conditionals.h"

// Is the auxiliary drawn from its whole conditional? Then what comes before it in the sweep may leave it out; an update that starts from
// where it stands (slice, Metropolis) would start from where it no longer fits.
static bool drawn_afresh(Graph *g, Var *v)
{
    const Request *asked = request_of(g, v);
    if (asked && (asked->method == METHOD_SLICE || asked->method == METHOD_METROPOLIS)) return false;
    return v->constraint != CONSTRAINT_NONE || (v->discrete && v->upper) || conditional_element(g, v, false)->family;
}

// An auxiliary of the factor, as written, that is not; NULL: none.
static Var *kept_auxiliary(Graph *g, const Factor *original)
{
    for (const Factor *h = g->factors; h; h = h->next) {
        if (h->original != original) continue;
        for (int i = 0; i < g->nvars; i++)
            if (g->vars[i]->kind == VAR_AUXILIARY && factor_mentions(h, g->vars[i]) && !drawn_afresh(g, g->vars[i])) return g->vars[i];
    }
    return NULL;
}

// May v be updated with auxiliaries integrated out? Only if it meets some, each of them hangs on its own factor alone, and is drawn afresh.
bool can_collapse(Graph *g, const Var *v)
{
    bool any = false;
    if (v->kind == VAR_AUXILIARY || g->method == METHOD_EM) return false;
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++) {
        const Factor *f = enters.factor[q];
        if (!f->replaced || !factor_counts(f, v, true) || !factor_mentions(f, v)) continue;
        any = true;
        for (const Factor *h = g->factors; h; h = h->next)
            if (h->original == f && h->replaced) return false;
        if (kept_auxiliary(g, f)) return false;
    }
    return any;
}

// What is made of the values of a response before sampling, and would not follow those that are drawn; NULL: nothing.
const char *needed_for(Graph *g, const Var *v)
{
    if (v->needed_for) return v->needed_for;
    for (int i = 0; i < g->nvars; i++) {
        const Var *x = g->vars[i];
        for (const Site *t = x->sites; t && x->kind == VAR_LET && !x->known.minds_missing; t = t->next) {
            bool reads = (t->value && ex_mentions(t->value, v)) || (t->plates.guard && ex_mentions(t->plates.guard, v));
            for (int k = 0; k < t->n; k++) reads |= ex_mentions(t->subscript[k], v);
            for (int k = 0; k < t->plates.n; k++) reads |= ex_mentions(t->plates.index[k]->lo, v) || ex_mentions(t->plates.index[k]->hi, v);
            if (reads) return arena_printf(g->arena, "`%s` (line %d) is computed from it before sampling", x->name, span_line(t->span));
        }
        for (int k = 0; k < x->rank && x->kind != VAR_ELEMENT; k++)
            if (ex_mentions(x->dim[k], v)) return arena_printf(g->arena, "the size of `%s` is computed from it before sampling", x->name);
        if (x != v && ((x->lower && x->decl && x->decl->lower && ex_mentions(x->lower, v)) ||
                       (x->upper && x->decl && x->decl->upper && ex_mentions(x->upper, v))))
            return arena_printf(g->arena, "the bounds of `%s` are computed from it before sampling", x->name);
    }
    for (const Factor *f = g->factors; f; f = f->next) {
        for (int k = 0; k < f->plates.n; k++)
            if (ex_mentions(f->plates.index[k]->lo, v) || ex_mentions(f->plates.index[k]->hi, v))
                return arena_printf(g->arena, "the range of `%s` (line %d) is computed from it before sampling", f->plates.index[k]->name,
                                    span_line(f->span));
        if (f->original || !f->plates.guard || !ex_mentions(f->plates.guard, v)) continue;
        if (f->value && f->value->kind == EX_REF && var_unknown(f->value->var))
            return arena_printf(g->arena, "it decides which elements of `%s` (line %d) exist", f->value->var->name, span_line(f->span));
    }
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++) {
        const Factor *f = enters.factor[q];
        const Var *kept = f->replaced && !f->original && factor_mentions(f, v) ? kept_auxiliary(g, f) : NULL;
        if (kept)
            return arena_printf(
                g->arena,
                "`%s`, which is integrated out for it (line %d), is not drawn from its conditional: leave out the request for `%s`",
                kept->name, span_line(f->span), kept->name);
    }
    return NULL;
}
