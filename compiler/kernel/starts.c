// starts.c -- which factors chains may not start outside of, for the runtime (runtime/host/factors.c), and the definitions that these read,
// and graphs of data.
//
//   before   y[i] ~ uniform(0, b)          after   y[i] <= b, of which b the runtime finds a start at which no factor is 0
//
// Needs: the factors of the graph (feasible.c there finds which may vanish).     Gives: Program.starts, Program.definitions.     Keeps: all
// else.
#include "lower.h"

typedef struct Found {
    const Graph *g;
    StartFactor **last;
    bool *read;  // definitions that they read, and those that these read, by the number of the variable
} Found;

static void mark_read(Found *t, const Expr *e);

static bool test_mark(const Var *v, void *with)
{
    Found *t = with;
    if ((v->kind != VAR_LET && v->kind != VAR_SERIES) || t->read[v->id]) return false;
    t->read[v->id] = true;
    for (const Site *s = v->sites; s; s = s->next) {
        mark_read(t, s->value);
        mark_read(t, s->plates.guard);
    }
    return false;
}

static void mark_read(Found *t, const Expr *e)
{
    if (e) ex_any_var(e, test_mark, t);
}

static void mark_loops(Found *t, const Loops *l)
{
    mark_read(t, l->guard);
    for (int i = 0; i < l->n; i++) {
        mark_read(t, l->index[i]->lo);
        mark_read(t, l->index[i]->hi);
    }
}

static void read_by_edges(Found *t, const Edges *e)
{
    mark_read(t, e->from);
    mark_read(t, e->to);
    mark_read(t, e->nodes);
    mark_read(t, e->parts);
    mark_loops(t, &e->loops);
}

static void add(Found *t, const Factor *f, const Loops *l, const Expr *log_density, bool if_missing)
{
    StartFactor *one = NEW(t->g->arena, StartFactor);
    *one = (StartFactor){f, l, log_density, if_missing, NULL};
    *t->last = one;
    t->last = &one->next;
    mark_read(t, log_density);
    mark_loops(t, l);
}

void find_starts(Lower *p)
{
    const Graph *g = p->g;
    StartFactor *first = NULL;
    Definition *definitions = NULL, **last = &definitions;
    Found t = {g, &first, NEW_N(g->arena, bool, g->nvars + 1)};
    for (const Factor *f = g->factors; f; f = f->next) {
        const Vanishing v = factor_vanishing(f);
        FactorPart *part;
        if (v != VANISHES_NEVER) add(&t, f, &f->plates, f->log_density, v == VANISHES_IF_MISSING);
        if (factor_confines_missing(f)) add(&t, f, &f->plates, f->if_missing, true);
        const int n = factor_parts(g->arena, f, &part);
        for (int i = 0; i < n; i++) add(&t, f, &part[i].plates, part[i].log_density, part[i].if_missing);
    }
    for (const Edges *e = g->edges; e; e = e->next) read_by_edges(&t, e);
    for (int i = 0; i < g->nvars; i++) {
        if (!t.read[g->vars[i]->id] || g->vars[i]->kind != VAR_LET) continue;
        *last = NEW(g->arena, Definition);
        (*last)->var = g->vars[i];
        last = &(*last)->next;
    }
    p->out->starts = first;
    p->out->definitions = definitions;
}
