// proposals.c -- scales proposed together with their effects, for likelihoods that are not normal.
//
//   before   x[t] ~ normal(x[t - 1], s)     y[i] ~ poisson(exp(m + x[a[i]])):   s given x, each of x and m given the rest
//   after    also (s, x, m) from the same joint with a quadratic of m + x[a[i]] in place of log p(y[i] | m + x[a[i]]):
//            s with x and m integrated out, then x and m; accepted or rejected
//
// Given x a scale mixes slowly, and so does x given s. Let f[i](e) be the log density of a factor as a function of its predictor e, which
// is linear in the block, and T[i](e) a quadratic. q is the joint with T in place of f, in which the block is jointly normal given s. The
// proposal (s', x') comes from a kernel that is reversible for q (scales.c, device/scales.h). So it is accepted for p = q w with
// probability
//
//   min(1, w(x')/w(x)),   log w(x) = sum over i of f[i](e[i]) - T[i](e[i])
//
// (Hastings 1970; the quadratic of a log density in the predictor: Gamerman 1997; scale and field together: Knorr-Held and Rue 2002). Any T
// is valid. This one has the average slope and second derivative of f[i] over warm-up, about the average predictor, as the normal that is
// closest to p has (Opper and Archambeau 2009). Second derivatives are at most 0. T is fixed after warm-up, so q is one joint.
//
// Needs: the updates of the schedule and its group moves.     Gives: an update for each block, after these updates, which all remain.
// Conditions:
// - The block consists of reals without ends and constraints, drawn in the same sweeps, each by an update of its own or with others. It
//   grows from a slice by the other unknowns of its factors. Each factor is quadratic in the whole block, or depends on it through one
//   predictor only. No unknown of the block is in a sum over a dimension, summed out, or read by a recursion.
// - Log densities have known first and second derivatives by the predictor, and contain no discrete unknowns. Rows are a box of sizes of
//   the data.
// - The positions of the precision's entries are known from data (sets.c), and some scale can be drawn with the block integrated out.
// Unknowns that `infer` names are in no block, and infer { s by gibbs(joint = off); } leaves the scale s out.
#include <math.h>
#include "proposals.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/sizes.h"
#include "../algebra/polynomial.h"
#include "../algebra/block_terms.h"
#include "../algebra/few_rows.h"
#include "../algebra/gradient.h"
#include "group.h"
#include "updates.h"
#include "scales.h"

// variables; of the precision, times the work of going through its terms; joint normals
enum { MOST_OF_BLOCK = 60, MOST_WORK = 1000, MOST_JOINT = 64 };

typedef struct ProposalSearch {
    Graph *g;
    Var *u;  // stands for a predictor
    Selection *selection;
    int n;
    Var *block[MOST_OF_BLOCK + 1];
} ProposalSearch;

// ---- the predictor of a factor ----

static bool mentions_block(const Expr *e, const ProposalSearch *b)
{
    for (int i = 0; i < b->n; i++)
        if (ex_mentions(e, b->block[i])) return true;
    return false;
}

static bool test_block(const Var *v, void *with)
{
    const ProposalSearch *b = with;
    for (int i = 0; i < b->n; i++)
        if (b->block[i] == v) return true;
    return false;
}

static Look test_sum(const Expr *e, void *with)
{
    return (e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT) && ex_any_var(e, test_block, with) ? FOUND : LOOK;
}

static Unknowns unknowns_of(const ProposalSearch *b) { return (Unknowns){b->block, b->n, false}; }

// With e replaced by u, or one of its terms by what u leaves for it, is u all that is left of the block? NULL: it is not.
static Expr *with_predictor(ProposalSearch *b, Expr *density, Expr *e)
{
    Expr *whole = ex_replace(density, e, ex_ref(b->u, 0, NULL));
    if (!mentions_block(whole, b)) return whole;
    const Unknowns in = unknowns_of(b);
    const Terms t = polynomial(b->g->arena, e, &in, 1);
    for (int i = 0; i < t.n && !t.failed; i++) {
        if (t.term[i].degree != 1 || mentions_block(t.term[i].coefficient, b) || t.term[i].loops.n || ex_may_vanish(t.term[i].coefficient))
            continue;
        Expr *ref = t.term[i].ref[0], *term = ex_mul2(t.term[i].coefficient, ref);
        Expr *left = ex_replace(density, ref, ex_div(ex_sub(ex_ref(b->u, 0, NULL), ex_sub(e, term)), t.term[i].coefficient));
        if (!mentions_block(left, b) && ex_mentions(left, b->u)) return left;
    }
    return NULL;
}

typedef struct Looking {
    ProposalSearch *b;
    Expr *density, *predictor, *left;
} Looking;

static Look look_for_predictor(const Expr *e, void *with)
{
    Looking *l = with;
    if (!mentions_block(e, l->b)) return SKIP;
    if (e->kind != EX_REF && e->kind != EX_ADD && e->kind != EX_MUL) return LOOK;
    const Unknowns in = unknowns_of(l->b);
    const Degree d = polynomial_degree((Expr *)e, &in, l->b->block[0], 1);
    if (d.failed) return LOOK;
    Expr *left = with_predictor(l->b, l->density, (Expr *)e);
    if (!left) return LOOK;
    l->predictor = (Expr *)e;
    l->left = left;
    return FOUND;
}

// The terms of a log density that hold the block.
static Expr *terms_of_block(const ProposalSearch *b, Expr *e)
{
    if (e->kind != EX_ADD) return e;
    Expr *sum = ex_num(0);
    for (int i = 0; i < e->nargs; i++)
        if (mentions_block(e->args[i], b)) sum = ex_add2(sum, e->args[i]);
    return sum;
}

// The predictor of the terms `density` of a factor, and these in terms of u alone; NULL: there is none.
static Expr *predictor_of_factor(ProposalSearch *b, Expr *density, Expr **left)
{
    Looking l = {.b = b, .density = density};
    if (ex_find(density, test_sum, b) || !ex_find(density, look_for_predictor, &l)) return NULL;
    *left = l.left;
    return l.predictor;
}

static Expr *derivative(ProposalSearch *b, const Factor *f, Expr *density)
{
    Factor one = *f;
    one.log_density = density;
    Derivative *of;
    const char *because;
    if (!derivatives(b->g, &one, &b->u, 1, &of, &because)) return NULL;
    Expr *sum = ex_num(0);
    for (const Derivative *d = of; d; d = d->next) {
        if (d->loops.n != f->plates.n) return NULL;
        sum = ex_add2(sum, ex_mul2(d->weight, d->rest));
    }
    return sum;
}

// A likelihood that a discrete unknown switches on and off, or changes, has no average slope and second derivative that suit any of its
// values.
static bool test_discrete(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) && (v->discrete || v->base == BASE_INT);
}

static bool is_box(const Loops *p)
{
    for (int i = 0; i < p->n; i++) {
        const Index *k = p->index[i];
        if (k->lo->kind != EX_NUM || k->lo->number < 1 || !is_size(k->hi)) return false;
    }
    return p->n <= MAX_RANK;
}

// ---- the block ----

static bool may_join(const ProposalSearch *b, Var *v)
{
    Graph *g = b->g;
    const bool real = v->base == BASE_REAL && !v->discrete && v->constraint == CONSTRAINT_NONE && !v->parts && !v->part_of &&
                      !v->summing.summed && !v->summing.sums && !v->mixed;
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || !real || isfinite(v->lower_number) || isfinite(v->upper_number) ||
        v->lower || v->upper || request_of(g, v))
        return false;
    for (const Series *e = g->series; e; e = e->next)
        if (series_follows(e, v) || series_reads(e, v)) return false;
    const Update *s = update_in_sweep(g, v);
    return s && (s->kind == UPDATE_EXACT || s->kind == UPDATE_SLICE || s->kind == UPDATE_GAUSSIAN) && s->selection == b->selection &&
           !s->collapsed && !s->group_move;
}

static bool is_quadratic(ProposalSearch *b, Expr *density)
{
    const Unknowns in = unknowns_of(b);
    return !polynomial_degree(density, &in, b->block[0], 2).failed && !polynomial(b->g->arena, density, &in, 2).failed;
}

// Each factor is quadratic in the block, or sees it through one predictor; `found`: those that do.
static bool fits(ProposalSearch *b, Proposal *found)
{
    const Reading enters = factors_of_block(b->g, b->block, b->n);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts_at(f, 0, false) || !mentions_block(f->log_density, b)) continue;
        if ((f->plates.guard && mentions_block(f->plates.guard, b)) || f->sums_out) return false;
        Expr *density = terms_of_block(b, f->log_density), *left;
        if (ex_find(density, test_sum, b)) return false;
        if (is_quadratic(b, density)) continue;
        if (ex_any_var(density, test_discrete, NULL) || (f->plates.guard && ex_any_var(f->plates.guard, test_discrete, NULL))) return false;
        Expr *predictor = is_box(&f->plates) ? predictor_of_factor(b, density, &left) : NULL,
             *first = predictor ? derivative(b, f, left) : NULL, *second = first ? derivative(b, f, first) : NULL;
        if (!second) return false;
        if (!found) continue;
        Expr *u = ex_ref(b->u, 0, NULL);
        found->of[found->n++] = (Tangent){.factor = f,
                                          .density = density,
                                          .predictor = predictor,
                                          .slope = ex_replace(first, u, predictor),
                                          .bend = ex_neg(ex_replace(second, u, predictor))};
    }
    return true;
}

static bool joins(ProposalSearch *b, Var *v)
{
    for (int i = 0; i < b->n; i++)
        if (b->block[i] == v) return false;
    if (b->n == MOST_OF_BLOCK || !may_join(b, v)) return false;
    const Reading enters = factors_of(b->g, v);
    bool near = false;
    for (int q = 0; q < enters.n && !near; q++)
        near = factor_counts_at(enters.factor[q], 0, false) && mentions_block(enters.factor[q]->log_density, b);
    if (!near) return false;
    b->block[b->n++] = v;
    if (fits(b, NULL)) return true;
    b->n--;
    return false;
}

// ---- the update ----

static Var *array_of(Graph *g, const char *what, const Factor *f)
{
    Var *v = var_hidden(g, arena_printf(g->arena, "%s_%s", what, var_drawn(f) ? var_drawn(f)->name : "target"), f->span, 0, NULL);
    for (int i = 0; i < f->plates.n; i++) v->dim[v->rank++] = f->plates.index[i]->hi;
    return v;
}

// The factor with the quadratic in its place.
static Factor *quadratic_factor(Graph *g, Tangent *t)
{
    static const char *const names[] = {"predictor", "slope", "bend"};
    Expr *at[MAX_RANK];
    for (int i = 0; i < t->factor->plates.n; i++) at[i] = ex_index(t->factor->plates.index[i]);
    for (int k = 0; k < 3; k++) t->at[k] = ex_ref(array_of(g, names[k], t->factor), t->factor->plates.n, at);
    Expr *apart = ex_sub(t->predictor, t->at[0]);
    t->value = ex_sub(ex_mul2(t->at[1], apart), ex_mul(3, (Expr *[]){ex_num(0.5), t->at[2], ex_pow(apart, 2)}));
    return factor_with(g, t->factor, t->value);
}

static Update *proposal_update(ProposalSearch *b)
{
    Graph *g = b->g;
    const Reading enters = factors_of_block(g, b->block, b->n);
    Proposal *found = NEW(g->arena, Proposal);
    found->of = NEW_N(g->arena, Tangent, enters.n + 1);
    if (!fits(b, found) || found->n == 0 || g->njoint >= MOST_JOINT) return NULL;
    Reading of = {.factor = NEW_N(g->arena, Factor *, enters.n + 1)};
    for (int q = 0; q < enters.n; q++) {
        int k = 0;
        while (k < found->n && found->of[k].factor != enters.factor[q]) k++;
        of.factor[of.n++] = k < found->n ? quadratic_factor(g, &found->of[k]) : enters.factor[q];
    }
    BlockTerm *terms;
    const char *why;
    Update *s = NEW(g->arena, Update);
    *s = (Update){.kind = UPDATE_GAUSSIAN,
                  .span = b->block[0]->span,
                  .nblock = b->n,
                  .block = arena_copy(g->arena, b->block, sizeof *b->block * (size_t)b->n),
                  .selection = b->selection,
                  .when = b->selection ? WITHOUT_GRADIENTS : EVERY_SWEEP,
                  .joint = g->njoint + 1,
                  .reason = "given the effects a scale mixes slowly, and given the scale the effects do",
                  .gaussian.proposal = found};
    if (block_terms_given(g, b->block, b->n, &of, &terms, &why) && has_pattern(terms)) {
        s->gaussian.terms = terms;
        s->gaussian.most_work = MOST_WORK;
        s->gaussian.no_rows = "it is a proposal";
        s->gaussian.sparse = s->joint;
        s->gaussian.scales = scales_of(g, s);
    }
    if (!s->gaussian.scales) {
        for (int k = 0; k < found->n; k++)
            for (int i = 0; i < 3; i++) found->of[k].at[i]->var->kind = VAR_ELEMENT;
        return NULL;
    }
    g->njoint++;
    found->name = var_hidden(g, arena_printf(g->arena, "proposal_%s", b->block[0]->name), s->span, 0, NULL);
    return s;
}

bool find_proposals(Graph *g)
{
    Update **last = updates_of_sweep(g);
    const int n = g->nvars;
    bool *taken = NEW_N(g->arena, bool, n + 1);
    ProposalSearch b = {.g = g, .u = var_unique(g, "predictor", VAR_ELEMENT)};
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        const Update *own = v->rank && !taken[i] ? update_that_draws(g, v) : NULL;
        if (!own || own->kind != UPDATE_SLICE) continue;
        b.selection = own->selection;
        b.n = 0;
        if (!may_join(&b, v)) continue;
        b.block[b.n++] = v;
        if (!fits(&b, NULL)) continue;
        for (int k = 0; k < n; k++)
            if (!taken[k] && joins(&b, g->vars[k])) k = -1;
        Update *s = proposal_update(&b);
        if (!s) continue;
        for (int k = 0; k < b.n; k++) taken[b.block[k]->id] = true;
        update_insert(&last, s);
    }
    return true;
}
