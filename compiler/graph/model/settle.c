// settle.c -- what unknowns can be, once all statements are there: regions of those without a distribution, the order of ordered vectors,
// the values of discrete ones.
//
//   before   n[i] ~ binomial(M[i], p), m ~ poisson(5) T( , 10)
//   after    n[i] from 0, with within(n[i], -inf, M[i]) in its density; m from 0 to 10
//
// Needs: factors.     Gives: Var.lower, Var.upper and static supports; factors for bounds that are no numbers.
#include <math.h>
#include "settle.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "density.h"
#include "declare.h"

// A declared unknown without a distribution has density 1 where its bounds are kept: bounds that are no numbers are a factor of their own,
// which is part of the conditionals of the unknowns in them, too. What they say of the static support, others see.
static void declare_region(Graph *g, Var *v)
{
    const Decl *d = v->decl;
    Loops p = {.n = v->rank};
    Expr *element = var_element(g, v, p.index), *end[2] = {NULL, NULL}, *both[2] = {NULL, NULL};
    for (int side = 0; side < 2; side++) {
        if (!(side ? d->upper : d->lower)) continue;
        both[side] = end[side] = bound_at(g, v, side, element->args, NULL);
        double range[2];
        range_of(end[side], &range[0], &range[1]);
        if (side == 0 && range[0] > v->lower_number) v->lower_number = range[0];
        if (side == 1 && range[1] < v->upper_number) v->upper_number = range[1];
        if (end[side]->kind == EX_NUM) end[side] = NULL;
        else if (v->discrete && ex_unknown(end[side]) && side) v->upper = isfinite(v->upper_number) ? ex_num(v->upper_number) : NULL;
        else if (v->discrete && ex_unknown(end[side])) v->lower = isfinite(v->lower_number) ? ex_num(v->lower_number) : NULL;
        else if (v->discrete && (side ? v->upper : v->lower)) end[side] = NULL;  // it ends the values to choose from
    }
    const bool numbers = (!both[0] || both[0]->kind == EX_NUM) && (!both[1] || both[1]->kind == EX_NUM);
    if (numbers) return;
    Factor *f = factor_new(g, v->span, p);
    f->region = v;
    if (end[0] || end[1]) f->log_density = ex_within(element, end[0], end[1]);
    factor_ends(f, both[0], both[1]);
}

void declare_regions(Graph *g)
{
    for (int i = 0, n = g->nvars; i < n; i++) {
        Var *v = g->vars[i];
        bool drawn = false;
        for (const Factor *f = g->factors; f && !drawn; f = f->next) drawn = factor_draws(f, v);
        if (v->decl && var_unknown(v) && !drawn && (v->decl->lower || v->decl->upper)) declare_region(g, v);
    }
}

void order_elements(Graph *g, Var *v)
{
    Loops p = {.n = v->rank};
    Expr *at[MAX_RANK], *before[MAX_RANK];
    for (int k = 0; k < v->rank; k++) {
        bool last = k + 1 == v->rank;
        p.index[k] = index_new(intern("k"), ex_num(last ? 2 : 1), v->dim[k]);
        at[k] = ex_index(p.index[k]);
        before[k] = last ? ex_add2(at[k], ex_num(-1)) : at[k];
    }
    Factor *f = factor_new(g, v->span, p);
    f->log_density = ex_within(ex_ref(v, v->rank, at), ex_ref(v, v->rank, before), NULL);
    f->ordered = v;
}

static bool same_for_all(const Factor *f, const Expr *end)
{
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(end, f->plates.index[i])) return false;
    return true;
}

// The end, or one of those that it is the inner of, fmin(M[i], 5): the same for all elements. NULL: there is none.
static Expr *end_for_all(const Factor *f, Expr *end, int side)
{
    if (!end || same_for_all(f, end)) return end;
    if (end->kind != EX_CALL || end->fn != (side ? FN_fmin : FN_fmax)) return NULL;
    Expr *one = end_for_all(f, end->args[0], side);
    return one && !ex_unknown(one) ? one : end_for_all(f, end->args[1], side);
}

static Expr *value_of_definition(Expr *e, void *with)
{
    const Site *t = e->kind == EX_REF && e->var->kind == VAR_LET && e->var->rank == 0 ? e->var->sites : NULL;
    return t && !t->next && t->value && t->plates.n == 0 && !t->plates.guard ? ex_map(t->value, value_of_definition, with) : NULL;
}

Expr *written_out(Expr *e) { return ex_map(e, value_of_definition, NULL); }

static Look test_passes(const Expr *e, void *with)
{
    (void)with;
    const bool computed = e->kind == EX_REF && e->var->kind != VAR_DATA, whole = e->kind == EX_REF && e->nargs < e->var->rank;
    return computed || whole || e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT ? FOUND : LOOK;
}

// Ends of discrete unknowns give sizes, which are known before anything is computed: one that takes a pass over data stands in the
// densities instead.
static void settle_computed_end(Graph *g, Var *v, int side)
{
    Expr **end = side ? &v->upper : &v->lower;
    if (!*end || ex_unknown(*end) || !ex_find(*end, test_passes, NULL)) return;
    Expr *e = written_out(*end), *was = *end;
    *end = ex_find(e, test_passes, NULL) ? NULL : e;
    for (Factor *f = g->factors; f && !*end; f = f->next)
        if (factor_draws(f, v)) factor_add(f, side ? ex_within(f->value, NULL, was) : ex_within(f->value, was, NULL));
}

// One end of the values of a discrete unknown: the outermost of those of the statements that draw it, if each has one that is the same for
// all elements. Statements with another end bring it as a term of their density.
static void settle_end(Graph *g, Var *v, int side)
{
    Expr *outer = NULL;
    bool all = true;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!factor_draws(f, v)) continue;
        Expr *end = end_for_all(f, side ? f->most : f->least, side);
        if (!end) {
            all = false;
            continue;
        }
        outer = !outer || outer == end ? end : ex_inner(outer, end, side == 0);
    }
    if (!all) outer = NULL;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!factor_draws(f, v)) continue;
        Expr *end = side ? f->most : f->least;
        if (end && (end != outer || ex_unknown(end))) factor_add(f, side ? ex_within(f->value, NULL, end) : ex_within(f->value, end, NULL));
        f->least = side ? f->least : NULL;
        f->most = side ? NULL : f->most;
    }
    if (outer && side) v->upper = outer;
    if (outer && !side) v->lower = outer;
    if (outer && outer->kind == EX_NUM && side) v->upper_number = outer->number;
    if (outer && outer->kind == EX_NUM && !side) v->lower_number = outer->number;
}

// The values of discrete unknowns, to be enumerated, or the ends of a slice. Also for the latents that augmentations bring.
void settle_values(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        bool fresh = false;
        for (const Factor *f = g->factors; f; f = f->next) fresh |= factor_draws(f, v) && (f->least || f->most);
        for (int side = 0; side < 2 && fresh && var_unknown(v) && v->discrete; side++) settle_end(g, v, side);
        for (int side = 0; side < 2 && var_unknown(v) && v->discrete; side++) settle_computed_end(g, v, side);
    }
}
