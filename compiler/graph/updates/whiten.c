// whiten.c -- what the covariance of a vector is made of, moved with the vector's white noise held in place of the vector.
//
//   before   f ~ multi_normal(mu, K(l))     y[i] ~ poisson_log(f[i])        slice l: given f
//   after    also slice l, given z = inverse(L) (f - mu) where L L' = K(l): the density of l and y at f = mu + L z, without that of f
//
// Given f a length or a scale of its covariance is nearly known, however little the data say of f; given z it is known from the data alone.
// Draws from both conditionals in turn mix where either does (Yu and Meng 2011; Murray and Adams 2010 for Gaussian processes). f -> z has
// the Jacobian |L|, which is what the density of f has beside that of z, so neither stands in what is sliced.
//
// f is moved along ellipses, which go through all that reads it as well: where f is drawn exactly, sums of data may have left the sweep,
// which trials would make again. Its statement is a multivariate normal by covariance, by precision or by the factor of its covariance, and
// its matrix reads l. Where f is v[i, ...], vectors share the matrix. l is a real without a constraint, or a vector of such whose elements
// alternate. Neither enters a recursive definition or is read by a sum over values of another unknown; f and l are drawn in the same
// sweeps. infer { l by slice(group_move = off); } leaves the move out.
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
    return v->kind == VAR_PARAMETER && v->base == BASE_REAL && !v->discrete && v->constraint == CONSTRAINT_NONE && !v->summing.sums &&
           !v->partial && !v->known.holes && !is_of_series(g, v);
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
