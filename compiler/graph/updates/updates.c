// updates.c -- making updates, and finding the update of the sweep that draws a variable, for the files that add group moves.
#include <math.h>
#include "updates.h"
#include "../conditional.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/reads.h"
#include "../algebra/block_terms.h"

enum { FEW_VALUES = 8 };

bool is_of_series(const Graph *g, const Var *v)
{
    for (const Series *e = g->series; e; e = e->next)
        if (series_follows(e, v)) return true;
    return false;
}

const Update *step_of_integers(Graph *g, const Var *v)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || v->base != BASE_INT || !v->discrete || v->parts || v->summing.summed ||
        v->summing.sums || v->summing.messages || v->hidden || v->sites || !isfinite(v->lower_number) ||
        is_switched_off(g, v, SETTING_GROUP_MOVE))
        return NULL;
    if (is_of_series(g, v)) return NULL;
    const Update *s = update_that_draws(g, v);
    return s && (s->kind == UPDATE_SLICE || s->kind == UPDATE_ENUM || s->kind == UPDATE_METROPOLIS) && s->nblock == 1 &&
                   s->when == EVERY_SWEEP && !s->over_sum && !s->collapsed && !predictive_of(s) && !update_by_messages(s)
               ? s
               : NULL;
}

const Update *step_of_count(Graph *g, const Var *v)
{
    const Expr *last = end_of_summed(v, 1);
    if (v->upper_number - v->lower_number < FEW_VALUES || (last && last->kind == EX_NUM && last->number - v->lower_number < FEW_VALUES))
        return NULL;
    return step_of_integers(g, v);
}

const Update *update_that_draws(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (s->block[i] == v && !s->imputes && !proposal_of(s) && s->when != WITH_GRADIENTS) return s;
    return NULL;
}

const Update *update_in_sweep(const Graph *g, const Var *v)
{
    const Update *s = update_that_draws(g, v);
    return s && s->kind != UPDATE_NUTS && (s->when == EVERY_SWEEP || s->when == WITHOUT_GRADIENTS) && !s->over_sum ? s : NULL;
}

// Labels: a lane adds up the few rows that name its element. Reals with many rows each are few, and all lanes add up those of one of them.
bool by_data_colours(const Update *s)
{
    return (s->kind == UPDATE_ENUM || s->kind == UPDATE_SLICE) && s->block[0]->discrete && s->conditional->conflicts && !s->imputes &&
           !update_by_messages(s) && !predictive_of(s) && s->does != EXPECTS;
}

// ---- updates are made ----

Update *update_new(Graph *g, UpdateKind kind, Span at)
{
    Update *s = NEW(g->arena, Update);
    s->kind = kind;
    s->span = at;
    return s;
}

void update_append(Update **list, Update *s)
{
    while (*list) list = &(*list)->next;
    *list = s;
}

Update **updates_of_sweep(Graph *g)
{
    Update **last = &g->updates;
    for (Update **at = &g->updates; *at; at = &(*at)->next)
        if ((*at)->when != WITH_GRADIENTS) last = &(*at)->next;
    return last;
}

void update_insert(Update ***at, Update *s)
{
    if (!s) return;
    s->next = **at;
    **at = s;
    *at = &s->next;
}

Update *gaussian_update(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason)
{
    Update *s = update_new(g, UPDATE_GAUSSIAN, block[0]->span);
    s->block = arena_copy(g->arena, block, sizeof *block * (size_t)n);
    s->nblock = n;
    s->gaussian.arrow = arrow;
    s->gaussian.nbatch = nbatch;
    s->reason = reason;
    const char *why;
    block_terms(g, block, n, &s->gaussian.terms, &why);
    return s;
}

Update *single_update(Graph *g, UpdateKind kind, Var *v, Conditional *c, bool collapsed, const char *reason)
{
    Update *s = update_new(g, kind, v->span);
    s->block = arena_copy(g->arena, &v, sizeof v);
    s->nblock = 1;
    s->conditional = c;
    s->collapsed = collapsed;
    s->reason = reason;
    return s;
}
