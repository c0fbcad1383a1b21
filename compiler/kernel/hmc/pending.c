// pending.c -- derivatives by elements that instances share: sums by group, and X'w by a pass over the rows of X, after the loop that keeps
// the weights.
#include "hmc.h"

// X'w by a pass over the rows of X, after the kernel that fills the weights.
bool row_sums_of(HmcBlock *m, Pending *w)
{
    const Derivative *d = w->d;
    if (w->weight == d->weight || w->weight->nargs != 1 || d->loops.n != 2 || d->loops.guard) return false;
    Var *matrix;
    if (!row_sum_of(m->p, d->ref, d->rest, d->loops.index[0], d->loops.index[1], &matrix, &w->times)) return false;
    w->matrix = matrix;
    // one pass for all that need the same sums: X'w times lambda[j], and times b[j]
    for (const Pending *o = m->pending; o != w; o = o->next)
        if (o->matrix == matrix && o->weight == w->weight) w->sums = o->sums;
    if (w->sums) return true;
    w->sums = work_array(m->p, ROLE_TOTALS, words(m->p, "rows_%s", d->ref->var->name), 1, d->ref->var->dim);
    launch_row_sums(m->p, matrix, w->weight->var, w->sums);
    return true;
}

static bool may_be_outside(const Derivative *d)
{
    bool within = true;
    for (int k = 0; k < d->ref->nargs; k++)
        within &= d->ref->args[k]->kind == EX_INDEX && ex_is_num(d->ref->args[k]->index->lo, 1) &&
                  d->ref->args[k]->index->hi == d->ref->var->dim[k];
    return !within;
}

// Over what the terms of a pending derivative are summed, and its value.
static Expr *value_of_pending(HmcBlock *m, const Pending *w, Loops *l)
{
    const Derivative *d = w->d;
    *l = d->loops;
    // an element that a choice leaves out need not exist
    Expr *where = may_be_outside(d) ? chosen_where(ex_mul2(d->weight, d->rest)) : NULL;
    if (where) l->guard = l->guard ? ex_call2("&&", l->guard, where) : where;
    if (!w->sums) return with_coordinates(m, ex_mul2(w->weight, d->rest));
    *l = (Loops){.n = 1, .index = {d->loops.index[1]}};
    return with_coordinates(m, ex_mul2(w->times, ex_ref(w->sums, 1, d->ref->args)));
}

static bool holds_sum(const Pending *w) { return w->keeps || ex_find(w->weight, test_sum, NULL) || ex_find(w->d->rest, test_sum, NULL); }

// Weights that are sums, those of values that are summed out, are computed once for all elements at the same place of their variables.
static bool put_with(HmcBlock *m, const Pending *w, const Pending *first)
{
    const Derivative *d = w->d, *o = first->d;
    if (d->ref->nargs != o->ref->nargs || !holds_sum(w) || !holds_sum(first)) return false;
    for (int k = 0; k < d->ref->nargs; k++)
        if (d->ref->args[k] != o->ref->args[k] || d->ref->var->dim[k] != o->ref->var->dim[k]) return false;
    Loops a, b;
    value_of_pending(m, w, &a);
    value_of_pending(m, first, &b);
    bool same = a.n == b.n && a.guard == b.guard;
    for (int k = 0; k < a.n && same; k++) same = a.index[k] == b.index[k];
    return same;
}

void put_pending(HmcBlock *m, const Pending *w)
{
    Loops l;
    Expr *value = value_of_pending(m, w, &l);
    Node *n = enter_nest(m->p, NODE_REDUCE, &l, w->d->ref->nargs, w->d->ref->args, w->d->ref->var->dim);
    put_assign(m->p, ASSIGN_ADD, gradient_place(m, w->d->ref), value);
    leave(m->p, n);
}

enum { MOST_TOGETHER = 4 };  // arrays of one sum over rows

void put_all_pending(HmcBlock *m)
{
    put_probabilities(m);
    for (Pending *w = m->pending; w; w = w->next) {
        if (w->put) continue;
        Loops l;
        value_of_pending(m, w, &l);
        Node *n = enter_nest(m->p, NODE_REDUCE, &l, w->d->ref->nargs, w->d->ref->args, w->d->ref->var->dim);
        int together = 0;
        for (Pending *o = w; o && together < MOST_TOGETHER; o = o->next) {
            if (o->put || (o != w && !put_with(m, o, w))) continue;
            put_assign(m->p, ASSIGN_ADD, gradient_place(m, o->d->ref), value_of_pending(m, o, &l));
            o->put = true;
            together++;
        }
        leave(m->p, n);
    }
}
