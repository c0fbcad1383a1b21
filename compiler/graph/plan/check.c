// check.c -- what holds of a graph after each pass. A broken rule is a fault of the pass that broke it, and is named with it.
//
//   always            a variable's number is its place
//                     an index of a factor is one of its plates
//                     no factor and no recursion of the sweep reads a prediction
//   from `gradient`   derivatives are in the indices of their loops
//   from `augment`    a factor that was replaced has one that was made from it
//   from `schedule`   each unknown has a size that is known when memory is taken, and with a distribution is drawn by one update
//                     an update fills the members of its kind
//                     what a conditional or a block adds up is over loops of its own
//   from `domains`    where elements exist is said of their subscripts alone
//   from `describe`   each update says what it draws
#include <string.h>
#include "check.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/reads.h"
#include "../model/sizes.h"
#include "../algebra/block_terms.h"
#include "../algebra/gradient.h"
#include "../algebra/pairs.h"
#include "../updates/categories.h"
#include "../updates/elliptical.h"

// indices that may stand in an expression
typedef struct BoundIndices {
    const Graph *g;
    const char *what;
    int n;
    Index *const *index;
    int m;
    Index *const *more;
    const char *wrong;
} BoundIndices;

static Look test_index(const Expr *e, void *with)
{
    BoundIndices *b = with;
    if (e->kind != EX_INDEX || e->index->height > 0) return LOOK;
    for (int i = 0; i < b->n; i++)
        if (b->index[i] == e->index) return SKIP;
    for (int i = 0; i < b->m; i++)
        if (b->more[i] == e->index) return SKIP;
    b->wrong = arena_printf(b->g->arena, "%s: `%s` occurs outside a loop over it", b->what, e->index->name);
    return FOUND;
}

static const char *outside(BoundIndices *b, Expr *e)
{
    if (e) ex_find(e, test_index, b);
    return b->wrong;
}

static const char *check_factor(const Graph *g, const Factor *f, bool augmented)
{
    const char *what = arena_printf(g->arena, "the factor of line %d", span_line(f->span));
    BoundIndices b = {.g = g, .what = what, .n = f->plates.n, .index = f->plates.index};
    if (outside(&b, f->log_density) || outside(&b, f->value) || outside(&b, f->plates.guard)) return b.wrong;
    if (!f->replaced || !augmented || f->sums_out) return NULL;
    for (const Factor *made = g->factors; made; made = made->next)
        if (made->original == f) return NULL;
    return arena_printf(g->arena, "%s was replaced by nothing", what);
}

static const char *check_loops(BoundIndices *b, const Loops *l)
{
    b->n = l->n;
    b->index = l->index;
    for (int i = 0; i < l->n; i++)
        if (outside(b, l->index[i]->lo) || outside(b, l->index[i]->hi)) return b->wrong;
    return outside(b, l->guard);
}

static const char *check_parts(const Graph *g, const Conditional *c, const Part *q)
{
    BoundIndices b = {.g = g, .what = arena_printf(g->arena, "the conditional of %s", c->var->name), .m = c->var->rank, .more = c->element};
    for (; q; q = q->next)
        if (check_loops(&b, &q->loops) || outside(&b, q->value)) return b.wrong;
    return NULL;
}

// An update that integrates auxiliaries out leaves them as they no longer fit: each is drawn from its conditional next, not moved from
// where it stands.
static const char *check_collapsed(const Graph *g, const Update *s)
{
    for (const Update *t = g->updates; t && s->collapsed; t = t->next) {
        const Var *kept = t->block[0];
        if ((t->kind != UPDATE_SLICE && t->kind != UPDATE_METROPOLIS) || kept->kind != VAR_AUXILIARY ||
            (s->imputes && s->block[0]->needed_for))
            continue;
        for (const Factor *f = g->factors; f; f = f->next)
            if (f->original && factor_mentions(f->original, s->block[0]) && factor_mentions(f, kept))
                return arena_printf(g->arena, "%s is drawn with %s integrated out, which is not drawn afresh", s->block[0]->name,
                                    kept->name);
    }
    return NULL;
}

// Whether the member of the union that the update's kind has is filled, and agrees with what all kinds have. NULL: it is so.
static const char *wrong_of_kind(const Update *s)
{
    const bool block = s->kind == UPDATE_GAUSSIAN || s->kind == UPDATE_CATEGORIES || s->kind == UPDATE_NUTS;
    if (block == (s->conditional != NULL)) return block ? "has the conditional of one element" : "has no conditional";
    if ((s->does == EXPECTS) != (s->expected != NULL)) return "has arrays of expectations if and only if it finds none";
    switch (s->kind) {
    case UPDATE_EXACT: return s->conditional->family ? NULL : "has no family to draw from";
    case UPDATE_OWN: return s->conditional->own ? NULL : "has no distribution of its own";
    case UPDATE_GAUSSIAN:
        if (s->gaussian.arrow && s->nblock < 2) return "has a diagonal variable and no other";
        if (s->gaussian.diagonal && !s->gaussian.on_plane) return "has a diagonal precision without a sum of 0";
        if (s->gaussian.sparse && s->gaussian.sparse != s->joint) return "has another number than its sparse block";
        if (s->gaussian.proposal && !s->gaussian.scales) return "proposes a block without scales";
        return NULL;
    case UPDATE_CATEGORIES: return all_categories_of(s->categories->draw) == s ? NULL : "draws a category that does not belong to it";
    case UPDATE_ENUM:
        if (!s->enumerate.lower || !s->enumerate.upper) return "has no first or last value";
        if (s->enumerate.by_messages && s->enumerate.at_once) return "draws a chain in two ways";
        if (!s->enumerate.group != !s->enumerate.ngroups) return "has groups without their number";
        return s->enumerate.group && !s->enumerate.predictive ? "has groups of weights that are not integrated out" : NULL;
    case UPDATE_PAIR: return s->pair->indicator == s->conditional ? NULL : "has the indicator of another pair";
    case UPDATE_ELLIPTICAL: return s->ellipse->conditional == s->conditional ? NULL : "has the ellipse of another density";
    case UPDATE_METROPOLIS: return s->slice.white ? "has a vector of white noise" : NULL;
    case UPDATE_SLICE: return s->slice.white && s->slice.width ? "has a first width and a vector of white noise" : NULL;
    case UPDATE_NUTS: return s->nuts.depth > 0 ? NULL : "has no trajectories";
    }
    return NULL;
}

static const char *check_update(const Graph *g, const Update *s)
{
    const Conditional *c = s->conditional;
    const char *wrong = wrong_of_kind(s);
    if (wrong) return arena_printf(g->arena, "the update of %s %s", s->block[0]->name, wrong);
    wrong = check_collapsed(g, s);
    if (c) {
        const Part *const lists[] = {c->density, c->natural, c->bounds};
        for (int i = 0; i < 3 && !wrong; i++) wrong = check_parts(g, c, lists[i]);
        if (s->kind == UPDATE_PAIR && !wrong) wrong = check_parts(g, c, s->pair->part);
        for (const Part *q = c->density; q && !wrong && (s->kind == UPDATE_SLICE || s->kind == UPDATE_METROPOLIS || s->kind == UPDATE_ENUM);
             q = q->next)
            if (q->scatter) wrong = arena_printf(g->arena, "the density of %s is summed over rows of other elements", s->block[0]->name);
        return wrong;
    }
    if (s->kind == UPDATE_NUTS) return NULL;  // its factors were looked at
    if (s->kind == UPDATE_CATEGORIES && s->categories->shift && (wrong = check_update(g, s->categories->shift))) return wrong;
    if (s->kind == UPDATE_CATEGORIES) return check_update(g, s->categories->draw);
    BoundIndices b = {.g = g, .what = arena_printf(g->arena, "the block of %s", s->block[0]->name)};
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        if (check_loops(&b, &t->loops) || outside(&b, t->coefficient)) return b.wrong;
        for (int r = 0; r < t->degree; r++)
            if (outside(&b, t->ref[r])) return b.wrong;
    }
    return NULL;
}

static bool test_prediction(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_PREDICTED;
}

// Predictions are computed after a sweep: none of its densities may read one.
static const char *check_predictions_unread(const Graph *g)
{
    for (const Factor *f = g->factors; f; f = f->next)
        if (ex_any_var(f->log_density, test_prediction, NULL))
            return arena_printf(g->arena, "the factor of line %d reads a prediction", span_line(f->span));
    for (const Series *s = g->series; s; s = s->next)
        for (const Site *t = s->var[0]->kind == VAR_SERIES ? s->sites : NULL; t; t = t->next)
            if (t->value && ex_any_var(t->value, test_prediction, NULL))
                return arena_printf(g->arena, "the recursion of %s reads a prediction", t->var->name);
    return NULL;
}

// How many updates draw v.
static int draws_of(const Graph *g, const Var *v)
{
    int n = 0;
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            n += s->block[i] == v && !s->imputes && !white_of(s) && !proposal_of(s) && s->when != WITH_GRADIENTS && s->when != ON_GPU &&
                 s->joint >= 0 && !(s->joined && s->nblock == 1);
    return n;
}

static bool has_distribution(const Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f; f = f->next)
        if (!f->taken_back && f->value && f->value->kind == EX_REF && f->value->var == v) return true;
    return false;
}

// Weights hold the indices of plates alone; the rest and the element, those of all loops of the term.
static const char *check_derivatives(const Graph *g)
{
    for (int i = 0; i < g->nvars; i++)
        for (const Factor *f = var_unknown(g->vars[i]) && !g->vars[i]->discrete ? g->factors : NULL; f; f = f->next) {
            Derivative *d;
            if (!ex_mentions(f->log_density, g->vars[i]) || !derivatives(g, f, &g->vars[i], 1, &d, NULL)) continue;
            for (; d; d = d->next) {
                BoundIndices b = {.g = g,
                                  .what = arena_printf(g->arena, "the derivative of line %d by %s", span_line(f->span), g->vars[i]->name),
                                  .n = f->plates.n,
                                  .index = f->plates.index};
                if (outside(&b, d->weight) || check_loops(&b, &d->loops) || outside(&b, d->ref) || outside(&b, d->rest)) return b.wrong;
            }
        }
    return NULL;
}

static const char *const before_augmentation[] = {"build",    "choices", "columns",  "totals", "sizes",
                                                  "unknowns", "centred", "gradient", NULL};
static const char *const before_updates[] = {"left_out", "augment", "marginals", NULL};  // and behind these

static bool is_among(const char *pass, const char *const *names)
{
    while (*names && strcmp(*names, pass) != 0) names++;
    return *names;
}

const char *graph_check(const Graph *g, const char *pass)
{
    const bool differentiated = strcmp(pass, "gradient") == 0, built = is_among(pass, before_augmentation),
               scheduled = !built && !is_among(pass, before_updates);
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->id != i) return arena_printf(g->arena, "the variable %s has another one's number", g->vars[i]->name);
    const char *wrong;
    for (const Factor *f = g->factors; f; f = f->next)
        if ((wrong = check_factor(g, f, !built))) return wrong;
    if ((wrong = check_predictions_unread(g))) return wrong;
    if (differentiated && (wrong = check_derivatives(g))) return wrong;
    if (!scheduled) return NULL;
    for (const Update *s = g->updates; s; s = s->next)
        if ((wrong = check_update(g, s))) return wrong;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        const int n = draws_of(g, v);
        if (n > 1 || (n == 0 && var_unknown(v) && has_distribution(g, v))) return arena_printf(g->arena, "%d updates draw %s", n, v->name);
        for (int k = 0; k < v->rank; k++)
            if (!is_size(v->dim[k]))
                return arena_printf(g->arena, "the size %s of %s is not known when memory is taken", ex_text(g->arena, v->dim[k]), v->name);
        BoundIndices b = {.g = g, .what = arena_printf(g->arena, "where elements of %s exist", v->name), .n = v->rank, .index = v->own};
        if (v->exists && outside(&b, v->exists)) return b.wrong;
    }
    for (const Update *s = g->updates; s && strcmp(pass, "describe") == 0; s = s->next)
        if (!s->description || !s->description->law)
            return arena_printf(g->arena, "the update of %s has no description", s->block[0]->name);
    return NULL;
}
