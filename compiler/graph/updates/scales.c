// scales.c -- scales that are drawn with a joint normal integrated out.
//
//   before   x ~ joint normal given s, q:   x[t] ~ normal(x[t - 1], s)   y[t] ~ normal(x[t], q)       then s given x, q given x
//   after    s, then q, from p(s, q | rest) with x integrated out, then x given both: one draw of (s, q, x) in place of small steps
//
// Given x a scale mixes slowly, and the converse. Let J(s) and h(s) be the precision and the shift of x, from block_terms, and x0 any value
// of x. Then
//
//   log p(s, x | rest) = L(s) + g'(x - x0) - (x - x0)'J (x - x0)/2,   L(s) = log p(s, x0 | rest),   g = h - J x0
//   log p(s | rest) = L(s) + g'J^-1 g/2 - log|J|/2 + constant
//
// x0 is the chain's state, so that no large numbers cancel. L is the log density of all statements that contain s, unchanged: normalisers
// of priors, conditions and missing values need no care. One trial is one factorisation.
//
// Needs: the updates of the schedule.
// Gives: `scales` of joint normals. They are drawn right before the joint normal and form one block with it (van Dyk and Park 2008).
// Conditions: a scale is a real number without a constraint, or a vector of such that a joint normal reads as a whole. It has an update of
// its own in the same sweep. It occurs in a coefficient of the joint normal, but in none with an unknown weight of a row of a matrix. No
// loop or condition of a statement contains it, and no recursion that is not drawn with the joint normal. It may have any prior and any
// ends, and need not be a scale. Of a group move, x is c, x0 is 0, and the scale neither changes nor decides how far others change. If the
// joint normal is one of a series in place of its innovations (innovations.c), the Jacobian does not depend on the scale.
#include <string.h>
#include "scales.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/block_terms.h"
#include "../algebra/innovations.h"
#include "updates.h"

static bool may_be_scale(Graph *g, const Var *v)
{
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) && v->rank <= 1 && is_plain_real(v) && !v->part_of &&
           !is_switched_off(g, v, SETTING_JOINT);
}

// Updates of joint normals that are drawn as such in every sweep, with no more or less summed or integrated out than the model has.
static bool may_have_scales(const Update *s)
{
    if (s->kind != UPDATE_GAUSSIAN || s->imputes || s->over_sum || s->collapsed || s->marginal || s->gaussian.categories || s->joint < 0)
        return false;
    return (s->when == EVERY_SWEEP || s->when == WITHOUT_GRADIENTS) && !s->gaussian.on_plane && !s->gaussian.diagonal &&
           block_sums(s->block, s->nblock) == 0;
}

// Of data, as those of a linear predictor are; a response is none.
static bool test_matrix(const Var *v, void *with)
{
    (void)with;
    return v->rank > 1 && !var_unknown(v) && !v->response;
}

// An element of an unknown array that varies with the loops of a term.
static Look test_weight(const Expr *e, void *with)
{
    const BlockTerm *t = with;
    if (e->kind != EX_REF || !var_unknown(e->var)) return LOOK;
    for (int i = 0; i < t->loops.n; i++)
        for (int k = 0; k < e->nargs; k++)
            if (ex_mentions_index(e->args[k], t->loops.index[i])) return FOUND;
    return LOOK;
}

// Of a vector, whether an instance of a term reads some elements only: those of its group, row or place along a chain. A trial of each
// would go through all of the joint normal.
typedef struct Whole {
    const Update *s;
    const BlockTerm *t;
    bool part;
} Whole;

static void find_part(Expr *ref, void *with)
{
    Whole *of = with;
    for (int i = 0; i < of->t->loops.n; i++) {
        const Index *loop = of->t->loops.index[i];
        bool inner = of->s->gaussian.nbatch > 0;  // of a plate of vectors: the same in each of them
        for (int r = 0; r < of->t->degree; r++)
            for (int k = 0; k < of->s->gaussian.nbatch; k++) inner &= !ex_mentions_index(of->t->ref[r]->args[k], loop);
        for (int k = 0; k < ref->nargs && !inner; k++) of->part |= ex_mentions_index(ref->args[k], loop);
    }
}

// Sums over rows of a dense matrix with weights of the sweep are made on the way by whatever draws these weights (kernel/rows.c), before a
// scale among them moves.
static bool in_coefficients(const Update *s, const Var *v)
{
    bool any = false;
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        if (!ex_mentions(t->coefficient, v)) continue;
        any = true;
        Whole of = {.s = s, .t = t};
        ex_references(t->coefficient, v, find_part, &of);
        if (of.part) return false;
        if (ex_find(t->coefficient, test_weight, (void *)t) && ex_any_var(t->coefficient, test_matrix, NULL)) return false;
    }
    return any;
}

// Other series would have to be computed again.
static bool enters_other_series(const Graph *g, const Update *s, const Var *v)
{
    for (const Series *e = g->series; e; e = e->next)
        if (series_reads(e, v) && !(s->gaussian.innovations && e->var[0] == innovation_series(s->gaussian.innovations))) return true;
    return false;
}

static bool decides(const Loops *p, const Var *v)
{
    for (int i = 0; i < p->n; i++)
        if (ex_mentions(p->index[i]->lo, v) || ex_mentions(p->index[i]->hi, v)) return true;
    return p->guard && ex_mentions(p->guard, v);
}

// What draws a group move has x0 = 0 at the chain's state. Its line is the same for all values of v if v neither moves nor
// says how far others do.
static bool bends_group_move(const Update *s, const Var *v)
{
    for (int i = 0; s->group_move && i < s->group_move->n; i++)
        if (s->group_move->moved[i].var == v || ex_mentions(s->group_move->moved[i].value, v)) return true;
    return false;
}

static bool is_drawn_alone(const Graph *g, const Update *s, Var *v)
{
    const Update *own = update_that_draws(g, v);
    const bool mean = own && own->kind == UPDATE_GAUSSIAN && s->gaussian.nbatch > 0 && own != s;  // of vectors, a vector itself
    return own && own->nblock == 1 && (own->kind == UPDATE_EXACT || own->kind == UPDATE_SLICE || own->kind == UPDATE_METROPOLIS || mean) &&
           own->selection == s->selection && (own->when == EVERY_SWEEP || own->when == WITHOUT_GRADIENTS) && !own->over_sum;
}

static bool holds_any(const Expr *e, const Scales *of)
{
    for (int i = 0; i < of->n; i++)
        if (ex_mentions(e, of->var[i])) return true;
    return false;
}

// L: the factors that hold a scale. false: a condition is not met.
static bool densities(Graph *g, const Update *s, Scales *of)
{
    const Innovations *in = s->gaussian.innovations;
    Var **all = NEW_N(g->arena, Var *, s->nblock + of->n + 1);
    memcpy(all, s->block, sizeof *all * (size_t)s->nblock);
    memcpy(all + s->nblock, of->var, sizeof *all * (size_t)of->n);
    const Reading enters = factors_of_block(g, all, s->nblock + of->n);
    int room = 0;
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q], *list = NULL;
        if (!factor_counts_at(f, 0, false)) continue;
        if (in && !innovation_factors(g, in, f, &list)) return false;
        if (!in) {
            list = arena_copy(g->arena, f, sizeof *f);
            list->next = NULL;
        }
        for (; list; list = list->next) {
            for (int i = 0; i < of->n; i++)
                if (decides(&list->plates, of->var[i])) return false;
            if (!holds_any(list->log_density, of)) continue;
            ROOM(g->arena, of->factor, of->nfactors, room);
            of->factor[of->nfactors++] = list;
        }
    }
    return true;
}

// A factor that a proposal has a quadratic for: J and h have that, and L would have the factor.
static bool in_quadratics(const Update *s, const Var *v)
{
    for (int i = 0; s->gaussian.proposal && i < s->gaussian.proposal->n; i++)
        if (ex_mentions(s->gaussian.proposal->of[i].factor->log_density, v)) return true;
    return false;
}

Scales *scales_of(Graph *g, const Update *s)
{
    if (!may_have_scales(s)) return NULL;
    Scales *of = NEW(g->arena, Scales);
    of->var = NEW_N(g->arena, Var *, g->nvars + 1);
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!may_be_scale(g, v) || !in_coefficients(s, v) || !is_drawn_alone(g, s, v) || enters_other_series(g, s, v) ||
            bends_group_move(s, v) || in_quadratics(s, v))
            continue;
        if (s->gaussian.innovations && innovation_coefficients_mention(s->gaussian.innovations, v)) continue;
        of->var[of->n++] = v;
    }
    return of->n > 0 && densities(g, s, of) ? of : NULL;
}

bool find_scales(Graph *g)
{
    for (Update *s = g->updates; s; s = s->next)
        if (s->kind == UPDATE_GAUSSIAN && !s->gaussian.proposal) s->gaussian.scales = scales_of(g, s);
    return true;
}
