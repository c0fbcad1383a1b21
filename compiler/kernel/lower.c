// lower.c -- the schedule as kernels and launches.
//
// Needs: the schedule.     Gives: a Program. Which sums leave the sweep (hoist.c) and in which order loops nest is decided here.
#include <string.h>
#include "lower.h"

// Data and what has an element per observation are of type real, so that a GPU may keep them in single precision; parameters, sums
// and whatever is drawn as a vector or a matrix are wide.
static void choose_types(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        v->narrow = v->solver = false;
        if (v->base == BASE_INT || v->rank == 0 || (v->constraint != CONSTRAINT_NONE && v->kind != VAR_DATA)) continue;
        if (v->kind == VAR_DATA || (v->kind == VAR_LET && v->rank >= 2)) v->narrow = true;
        for (int j = 0; j < g->nvars && (v->kind == VAR_LATENT || v->kind == VAR_AUXILIARY); j++)
            if (g->vars[j]->kind == VAR_DATA && g->vars[j]->response && g->vars[j]->rank && g->vars[j]->dim[0] == v->dim[0]) v->narrow = true;
    }
    for (const Step *s = g->steps; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (s->kind == STEP_GAUSSIAN || (s->conditional && s->conditional->array)) s->block[i]->narrow = false;
}

Program *lower(Graph *g)
{
    Program *p = NEW(g->arena, Program);
    p->g = g;
    Writer *w = &p->w;
    w->g = g;
    w->arena = g->arena;
    w->predicted = predicted;
    w->program = p;
    p->list = &p->sweep;
    choose_types(g);
    ex_settle();
    plan_rows(p);
    begin_comment(p);
    p->series = emit_series(p);
    int n = 0;
    for (const Step *s = g->steps; s; s = s->next) n++;
    p->step_name = NEW_N(g->arena, const char *, n + 1);
    p->launches = NEW_N(g->arena, char *, n + 1);
    n = 0;
    for (const Step *s = g->steps; s; s = s->next, n++) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = text(w, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        p->step = s;
        p->step_name[n] = text(w, "%s%s", s->imputes ? "missing " : "", names);
        switch (s->kind) {
        case STEP_EXACT:
            if (s->conditional->array) step_array(p, s, n);
            else step_exact(p, s, n);
            break;
        case STEP_OWN: step_own(p, s, n); break;
        case STEP_GAUSSIAN: step_gaussian(p, s, n); break;
        case STEP_ENUM: case STEP_SLICE: {
            Constraint k = s->block[0]->constraint;
            if (k == CONSTRAINT_NONE || k == CONSTRAINT_ORDERED || k == CONSTRAINT_POSITIVE_ORDERED) step_density(p, s, n);
            else step_constrained(p, s, n);
            break;
        }
        }
    }
    p->nsteps = n;
    p->step = NULL;
    emit_derive(p);
    emit_log_joint(p);
    // Setup comes first in the program, but knows its sums only now.
    p->list = &p->setup;
    emit_setup(p);
    emit_predictors(p);
    end_comment(p);
    return p;
}
