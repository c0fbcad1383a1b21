// totals.c -- what loops add up beside the log density, and arrays with a place for each of their instances.
#include "hmc.h"

Total *total_of(Total *list, const Expr *ref)
{
    while (list && list->ref != ref) list = list->next;
    return list;
}

// Every element that is named by numbers in some derivative has a local of its own. They are declared before the first loop.
void declare_total(HmcBlock *m, const char *stem, Expr *ref, Expr *start)
{
    Lower *p = m->p;
    if (!is_one_element(ref) || total_of(m->totals, ref)) return;
    const char *name = words(p, "%s_%s", stem, ref->var->name);
    for (int k = 0; k < ref->nargs; k++) name = words(p, "%s_%d", name, (int)ref->args[k]->number);
    name = intern(name);
    for (const Total *o = m->totals; o; o = o->next)  // a[1] and a_1
        if (o->local->name == name) name = intern(words(p, "%s_%d", name, ++m->nnamed));
    Total *t = NEW(p->g->arena, Total);
    *t = (Total){ref, local_named(p->g->arena, name), NULL};
    *m->last_total = t;
    m->last_total = &t->next;
    put_let(p, NULL, t->local, start, "wide")->let.grows = true;
}

// An array with a place for each instance of the plates, if that is a box; else NULL.
Expr *row_place(HmcBlock *m, const Loops *plates, ArrayRole role, const char *name)
{
    if (plates->n == 0 || plates->n > MAX_RANK) return NULL;
    Expr *dim[MAX_RANK], *at[MAX_RANK];
    for (int i = 0; i < plates->n; i++) {
        const Expr *hi = plates->index[i]->hi;
        if (!ex_data_only(hi) || plates->index[i]->least < 1) return NULL;
        for (int k = 0; k < plates->n; k++)
            if (ex_mentions_index(hi, plates->index[k])) return NULL;
        dim[i] = plates->index[i]->hi;
        at[i] = ex_index(plates->index[i]);
    }
    return ex_ref(work_array(m->p, role, name, plates->n, dim), plates->n, at);
}

Expr *weight_place(HmcBlock *m, const Loops *plates)
{
    Expr *place = row_place(m, plates, ROLE_ROW_VALUE, words(m->p, "weight_%s_%d", m->stem, m->nweights + 1));
    m->nweights += place != NULL;
    return place;
}

void add_pending(HmcBlock *m, const Pending *w)
{
    *m->last_pending = arena_copy(m->p->g->arena, w, sizeof *w);
    m->last_pending = &(*m->last_pending)->next;
}
