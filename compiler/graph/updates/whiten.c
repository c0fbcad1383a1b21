// whiten.c -- parameters of the covariance of a vector, drawn given the vector's white noise in place of the vector.
//
//   before   f ~ multi_normal(mu, K(l))     y[i] ~ poisson_log(f[i])        slice l: given f
//   after    also slice l, given z = inverse(L) (f - mu) where L L' = K(l): the density of l and y at f = mu + L z, without that of f
//
// Given f, a length-scale or an amplitude of its covariance is almost determined, even if data identify f weakly; given z, only data
// identify it. Draws from both conditionals, one after the other, mix if one of them does (Yu and Meng 2011; Murray and Adams 2010 for
// Gaussian processes). f -> z has the Jacobian |L|, which is the ratio of the densities of f and of z, so that neither is in the sliced
// density.
//
// f is drawn by elliptical slices, which evaluate all factors that read it. If f were drawn exactly, sums of data might have left the
// sweep, and each trial would have to compute them again. The statement of f is a multivariate normal, by its covariance, its precision or
// the factor of its covariance, and its matrix reads l. If f is v[i, ...], vectors share the matrix. l is a real without a constraint, or a
// vector of such whose elements are drawn one after the other. Neither enters a recursive definition or a sum over values of another
// unknown; f and l are drawn in the same sweeps. infer { l by slice(group_move = off); } leaves the move out.
#include "whiten.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/requests.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../algebra/conditionals.h"
#include "elliptical.h"
#include "updates.h"

Expr *joint_root(Graph *g, const Factor *prior, bool *precision)
{
    const Distribution *d = prior->dist;
    const Ast *root = d->covariance_root ? d->covariance_root : d->precision_root;
    *precision = d->precision_root != NULL;
    return root ? elaborate_rule(g, root, d->nparams, d->params, prior->args) : NULL;
}

static bool is_plain(const Graph *g, const Var *v)
{
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) && v->base == BASE_REAL && !v->discrete &&
           v->constraint == CONSTRAINT_NONE && !v->summing.sums && !v->partial && !v->known.holes && !is_of_series(g, v);
}

// All that reads the vector or v, but for the vector's prior.
static void add_factors(Graph *g, Conditional *c, const White *w)
{
    Part **last = &c->density;
    c->density = NULL;
    for (int side = 0; side < 2; side++) {
        const Conditional *of = conditional_whole(g, side ? w->vector : c->var, false);
        for (Part *q = of->density; q; q = q->next) {
            if (q->factor == w->prior || (side && factor_mentions(q->factor, c->var))) continue;
            *last = arena_copy(g->arena, q, sizeof *q);
            last = &(*last)->next;
            *last = NULL;
        }
    }
}

static Update *white_update(Graph *g, Var *v, Var *f, const Factor *prior)
{
    const Update *of_v = update_that_draws(g, v), *of_f = update_that_draws(g, f);
    if (!of_v || !of_f || (of_v->kind != UPDATE_SLICE && of_v->kind != UPDATE_EXACT) || of_f->kind != UPDATE_ELLIPTICAL || of_v->over_sum ||
        of_f->over_sum)
        return NULL;
    if (of_v->when != of_f->when || of_v->selection != of_f->selection || (of_v->when != EVERY_SWEEP && of_v->when != WITHOUT_GRADIENTS))
        return NULL;
    if (is_switched_off(g, v, SETTING_GROUP_MOVE)) return NULL;
    White *w = NEW(g->arena, White);
    *w = (White){.vector = f, .prior = prior};
    w->root = joint_root(g, prior, &w->precision);
    if (!w->root || !ex_reads(w->root, v)) return NULL;
    for (int k = 0; k < prior->plates.n; k++)
        if (ex_mentions_index(w->root, prior->plates.index[k])) return NULL;
    w->current = var_element(g, f, w->element);
    Expr *mean = elaborate_rule(g, prior->dist->mean, prior->dist->nparams, prior->dist->params, prior->args);
    for (int k = 0; k < prior->value->nargs; k++) mean = ex_replace_index(mean, prior->value->args[k]->index, ex_index(w->element[k]));
    w->mean = ex_at(mean, 1, (Expr *[]){ex_index(w->element[f->rank - 1])});
    Conditional *c = conditional_whole(g, v, false);
    add_factors(g, c, w);
    c->carried = f;
    c->because = "given the vector with this covariance it is almost determined, even where data identify it weakly";
    if (c->recursion) return NULL;
    Update *s = NEW(g->arena, Update);
    *s = (Update){.kind = UPDATE_SLICE,
                  .span = v->span,
                  .nblock = 1,
                  .block = arena_copy(g->arena, &v, sizeof v),
                  .conditional = c,
                  .slice.white = w,
                  .when = of_v->when,
                  .selection = of_v->selection,
                  .reason = c->because};
    return s;
}

bool find_whitened(Graph *g)
{
    Update **last = updates_of_sweep(g);
    const int n = g->nvars;
    for (int k = 0; k < n; k++) {
        Var *f = g->vars[k];
        const Factor *prior = f->rank && is_plain(g, f) ? joint_prior(g, f, false) : NULL;
        for (int i = 0; prior && i < n; i++) {
            Var *v = g->vars[i];
            if (v != f && is_plain(g, v)) update_insert(&last, white_update(g, v, f, prior));
        }
    }
    return true;
}
