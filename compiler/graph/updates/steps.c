// steps.c -- which step of the sweep draws a variable, for moves that are added to a schedule.
//
// Needs: the steps that each variable has by itself.     Gives: one of them, or NULL.
#include <math.h>
#include "steps.h"
#include "../step.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"

enum { FEW_VALUES = 8 };

const Step *step_of_integers(Graph *g, const Var *v)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || v->base != BASE_INT || !v->discrete || v->parts || v->summed || v->sums || v->messages || v->hidden || v->sites || !isfinite(v->lower_number) ||
        is_switched_off(g, v, "orbit")) return NULL;
    for (const Series *e = g->series; e; e = e->next)
        if (series_follows(e, v)) return NULL;
    const Step *s = step_that_draws(g, v);
    return s && (s->kind == STEP_SLICE || s->kind == STEP_ENUM || s->kind == STEP_METROPOLIS) && s->nblock == 1 && s->when == EVERY_SWEEP && !s->over_sum && !s->collapsed && !s->predictive && !s->by_messages ? s : NULL;
}

const Step *step_of_count(Graph *g, const Var *v)
{
    const Expr *last = end_of_summed(v, 1);
    if (v->upper_number - v->lower_number < FEW_VALUES || (last && last->kind == EX_NUM && last->number - v->lower_number < FEW_VALUES)) return NULL;
    return step_of_integers(g, v);
}

const Step *step_that_draws(const Graph *g, const Var *v)
{
    for (const Step *s = g->steps; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (s->block[i] == v && !s->imputes && !s->proposal && s->when != WITH_GRADIENTS) return s;
    return NULL;
}

// Labels: a lane adds up the few rows that name its element. Reals with many rows each are few, and all lanes add up those of one of them.
bool by_data_colours(const Step *s)
{
    return (s->kind == STEP_ENUM || s->kind == STEP_SLICE) && s->block[0]->discrete && s->conditional->conflicts && !s->imputes && !s->by_messages && !s->predictive && !s->expects;
}
