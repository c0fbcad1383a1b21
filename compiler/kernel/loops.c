// loops.c -- loops as lowering needs them: of plates, less the iterations that add 0, and how many iterations a kernel has.
#include <string.h>
#include "lower.h"

// Where e is not 0 because of a choice that multiplies it; NULL: there is none. What a choice leaves out need not have an element to be
// added to.
Expr *chosen_where(Expr *e)
{
    if (e->kind == EX_POW && e->number > 0) return chosen_where(e->args[0]);
    if (e->kind == EX_CALL && e->fn == FN_if_else) {
        if (ex_is_num(e->args[1], 0)) return ex_call1("!", e->args[0]);
        return ex_is_num(e->args[2], 0) ? e->args[0] : NULL;
    }
    Expr *all = NULL;
    for (int i = 0; i < e->nargs && e->kind == EX_MUL; i++) {
        Expr *one = chosen_where(e->args[i]);
        if (one) all = all ? ex_call2("&&", all, one) : one;
    }
    return all;
}

Loops loops_where_chosen(const Loops *l, Expr *value, int n, Expr *const *target)
{
    Loops out = *l;
    bool leaves = false;
    for (int k = 0; k < n; k++) leaves |= target[k]->kind != EX_INDEX;  // a place that data name
    Expr *where = leaves ? chosen_where(value) : NULL;
    if (where) out.guard = out.guard ? ex_call2("&&", out.guard, where) : where;
    return out;
}

static Look test_free(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_INDEX && e->index->height == 0 ? FOUND : e->indices ? LOOK : SKIP;
}

bool free_index(const Expr *e) { return ex_find(e, test_free, NULL); }

// Extents that do not depend on each other: how many iterations a nest has, as far as that is a product.
Count iterations_of_loops(const Loops *l)
{
    Count c = {0};
    for (int i = 0; i < l->n && c.n < 8; i++) {
        Expr *n = l->index[i]->hi;
        if (!free_index(n) && !needs_array(n) && !ex_unknown(n)) c.factor[c.n++] = n;
    }
    return c;
}

void note_count(Lower *p, Kernel *k, Count c)
{
    for (int i = 0; i < k->niterations; i++) {
        bool same = k->iterations[i].n == c.n;
        for (int f = 0; f < c.n && same; f++) same = k->iterations[i].factor[f] == c.factor[f];
        if (same) return;
    }
    Count *all = NEW_N(p->g->arena, Count, k->niterations + 1);
    if (k->niterations) memcpy(all, k->iterations, sizeof *all * (size_t)k->niterations);
    all[k->niterations++] = c;
    k->iterations = all;
}

Expr *instances(const Loops *p)
{
    Expr *n = ex_num(1);
    for (int i = 0; i < p->n; i++) n = ex_mul2(n, p->index[i]->hi);
    return n;
}

// An index in place of a key, which the model calls so; NULL: by no name. Two keys of one name get a number.
Index *index_of_key(Lower *p, const char *called, Expr *extent, Index *const *before, int n)
{
    static const char *const names[] = {"a", "b", "c", "e", "f", "g"};
    const char *base = called ? called : intern(names[n]), *name = base;
    for (int i = 0, number = 2; i < n; i++)
        if (before[i]->name == name) {
            name = intern(arena_printf(p->g->arena, "%s%d", base, number++));
            i = -1;
        }
    return index_new(name, ex_num(1), extent);
}
