// neighbours.c -- elements of discrete unknowns along a chain: which one is the previous, which terms contain two of them, and the
// densities of all of them at once.
//
//   before   density of c[t]: categorical(c[t] | P[c[t-1]]), categorical(c[t+1] | P[c[t]])
//   after    local, of c[t] alone; link, of c[t] and the previous element
//
// Needs: conditionals of one element.     Gives: local, link and before of Conditional.
#include "neighbours.h"
#include "../algebra/ends.h"
#include "../algebra/history.h"

// The sum over the loops of a part of what stands in it.
Expr *sum_over(const Loops *l, Expr *e)
{
    if (l->guard) e = ex_call3("if_else", l->guard, e, ex_num(0));
    for (int k = l->n - 1; k >= 0; k--) e = ex_reduce("sum", l->index[k], l->index[k]->lo, l->index[k]->hi, e);
    return e;
}

// Whether it holds what is remembered of elements before.
bool reads_past(const Conditional *c, const Part *q)
{
    bool any = false;
    for (int k = 0; c->past && k < c->past->nsummaries; k++)
        any |= ex_mentions(q->value, c->past->stand[k]) || (q->loops.guard && ex_mentions(q->loops.guard, c->past->stand[k]));
    return any;
}

// log density of one element at a value, a sum over its factors; what does not depend on the value goes to `apart`.
Expr *own_density(const Conditional *c, Expr **apart)
{
    Expr *all = ex_num(0);
    *apart = ex_num(0);
    for (const Part *q = c->density; q; q = q->next) {
        if (ex_mentions(q->value, c->var) || reads_past(c, q)) continue;  // of two neighbours
        Expr *e = ends_decide(q->value), *with = ex_num(0), *without = ex_num(0);
        const bool guarded = q->loops.guard && ex_mentions(q->loops.guard, c->u->var);
        for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
            Expr *t = e->kind == EX_ADD ? e->args[i] : e;
            if (guarded || ex_mentions(t, c->u->var)) with = ex_add2(with, t);
            else without = ex_add2(without, t);
        }
        all = ex_add2(all, sum_over(&q->loops, with));
        *apart = ex_add2(*apart, sum_over(&q->loops, without));
    }
    return all;
}

static void look_at_neighbour(Expr *e, void *with)
{
    Neighbour *n = with;
    if (e->nargs != n->c->var->rank) {
        n->ok = false;
        return;
    }
    for (int k = 0; k < e->nargs; k++) {
        const Expr *apart = ex_sub(e->args[k], n->c->current->args[k]);
        if (apart->kind != EX_NUM || (k != n->along && apart->number != 0)) {
            n->ok = false;
            return;
        }
        if (k == n->along) n->apart = (int)apart->number;
    }
    n->other = true;
}

Neighbour neighbour_of(const Conditional *c, const Part *q)
{
    Neighbour n = {.c = c, .along = c->nbatch, .ok = true};
    ex_references(q->value, c->var, look_at_neighbour, &n);
    for (int i = 0; i < q->loops.n; i++) n.ok &= !ex_mentions(q->loops.index[i]->lo, c->var) && !ex_mentions(q->loops.index[i]->hi, c->var);
    if (q->loops.guard) n.ok &= !ex_mentions(q->loops.guard, c->var);
    n.ok &= !n.other || n.apart == 1 || n.apart == -1;
    return n;
}

bool along_neighbours(const Conditional *c)
{
    if (c->whole || c->colours != 2 || c->var->rank == MAX_RANK) return false;
    for (const Part *q = c->density; q; q = q->next)
        if (!neighbour_of(c, q).ok) return false;
    return true;
}

// The element before or behind.
Expr *element_beside(const Conditional *c, int apart)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < c->var->rank; k++) at[k] = k == c->nbatch ? ex_add2(c->current->args[k], ex_num(apart)) : c->current->args[k];
    return ex_ref(c->var, c->var->rank, at);
}

static bool holds_before(const Conditional *c, const Part *q) { return ex_mentions(q->value, c->var) && neighbour_of(c, q).apart == -1; }

// What holds the element and the one before it, if there is one.
Expr *link_before(const Conditional *c)
{
    Expr *all = ex_num(0), *not_first = ex_call2("<=", ex_num(2), c->current->args[c->nbatch]);
    for (const Part *q = c->density; q; q = q->next)
        if (holds_before(c, q) || (reads_past(c, q) && !ex_mentions(q->value, c->var)))
            all = ex_add2(all, sum_over(&q->loops, ends_decide(q->value)));
    return ex_replace(all, not_first, ex_num(1));
}

void take_at_once(Conditional *c)
{
    Expr *apart;
    const bool chain = c->nbatch < c->var->rank;
    c->local = own_density(c, &apart);
    c->link = chain ? link_before(c) : ex_num(0);
    c->before = chain ? element_beside(c, -1) : NULL;
    Part **last = &c->density;  // each pair once
    for (Part *q = c->density; q; q = q->next)
        if (!ex_mentions(q->value, c->var) || neighbour_of(c, q).apart == -1) {
            *last = q;
            last = &q->next;
        }
    *last = NULL;
    c->var->summing.chain = c->nbatch;
    c->colours = c->lattice = 0;
    c->conflicts = NULL;
    c->because = chain ? "its elements follow each other" : c->because;
}
