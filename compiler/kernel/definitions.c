// definitions.c -- definitions, element by element, in an order in which each finds what it is made of.
//
// Needs: statements of definitions and predictions.     Gives: nodes in the open kernel.
#include "lower.h"

bool site_needs_array(const Var *v)
{
    for (const Site *t = v->sites; t; t = t->next) {
        if (t->value ? needs_array(t->value) : t->n < v->rank) return true;
        for (int i = 0; i < t->nargs; i++)
            if (needs_array(t->args[i]) || (t->sample && ex_rank(t->args[i]) > 0)) return true;
    }
    return false;
}

// All that v is computed with: itself, or its series.
static void mark_done(const Var *v, bool *done, bool is)
{
    done[v->id] = is;
    for (int k = 0; v->series && k < v->series->n; k++) done[v->series->var[k]->id] = is;
}

void put_sites(Lower *p, const Var *v)
{
    if (!v->series) {
        for (const Site *t = v->sites; t;) t = put_site(p, t);
        return;
    }
    Node *lane = enter(p, NODE_LANE);
    put_series(p, v->series);
    leave(p, lane);
}

// Whether a statement reads what is not computed yet: in its value, its subscripts, its condition or its ranges.
static bool waits(const Site *t, bool (*test)(const Var *, void *), bool *done)
{
    bool yes = (t->value && ex_any_var(t->value, test, done)) || (t->when && ex_any_var(t->when, test, done)) ||
               (t->plates.guard && ex_any_var(t->plates.guard, test, done));
    for (int k = 0; k < t->nargs; k++) yes |= ex_any_var(t->args[k], test, done);
    for (int k = 0; k < t->n; k++) yes |= ex_any_var(t->subscript[k], test, done);
    for (int k = 0; k < t->plates.n; k++)
        yes |= ex_any_var(t->plates.index[k]->lo, test, done) || ex_any_var(t->plates.index[k]->hi, test, done);
    return yes;
}

// Variables of some kinds in an order in which each is computed after what it reads.
void put_in_order(Lower *p, bool (*kind)(const Var *), bool (*test)(const Var *, void *), bool titles, bool holes)
{
    const Graph *g = p->g;
    const int n = g->nvars;
    bool *done = NEW_N(g->arena, bool, n + 1);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < n; i++) {
            Var *v = g->vars[i];
            if (!kind(v) || done[v->id]) continue;
            bool ready = true;
            mark_done(v, done, true);  // it may read itself
            for (int k = 0; k < (v->series ? v->series->n : 1); k++)
                for (const Site *t = (v->series ? v->series->var[k] : v)->sites; t; t = t->next) ready &= !waits(t, test, done);
            if (!ready) {
                mark_done(v, done, false);
                continue;
            }
            if (titles) put(p, NODE_COMMENT)->text.lines = words(p, "%s, %s", v->name, line_of(p, v->span));
            // elements that no statement defines
            if (holes && v->known.holes && !v->series)
                put_fill(p, v, count_dims(v, 0, v->rank), true)->fill.value = v->base == BASE_INT ? "-2147483647 - 1" : "NAN";
            put_sites(p, v);
            progress = true;
        }
    }
}
