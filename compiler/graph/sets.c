// sets.c -- what lets variables be drawn in one joint normal with a sparse precision.
//
//   before   y[i] ~ normal(mu + u[a[i]] + v[b[i]], s):  terms u[a[i]] * v[b[i]] over i
//   after    they have a pattern: which entries there are depends on a and b alone
//
// Needs: block_terms.     Gives: answers about them, for schedule.c. Where the entries lie is found when the program runs (runtime/backends/sparse.c).
#include "graph.h"

static bool test_moves(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->response || v->kind == VAR_SERIES || v->kind == VAR_DERIVED;
}

static bool moves(const Expr *e) { return e && ex_any_var(e, test_moves, NULL); }

bool has_pattern(const BlockTerm *terms)
{
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (moves(t->loops.guard)) return false;
        for (int i = 0; i < t->loops.n; i++)
            if (moves(t->loops.index[i]->lo) || moves(t->loops.index[i]->hi)) return false;
        for (int r = 0; r < t->degree; r++)
            for (int k = 0; k < t->ref[r]->nargs; k++)
                if (moves(t->ref[r]->args[k])) return false;
    }
    return true;
}

// Whether `one` varies with a loop that `other` does not.
static bool varies_alone(const BlockTerm *t, const Expr *one, const Expr *other)
{
    for (int i = 0; i < t->loops.n; i++)
        if (ex_mentions_index(one, t->loops.index[i]) && !ex_mentions_index(other, t->loops.index[i])) return true;
    return false;
}

bool coupled_in_pairs(const BlockTerm *terms)
{
    bool any = false;
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (t->degree != 2 || t->ref[0] == t->ref[1]) continue;
        if (varies_alone(t, t->ref[0], t->ref[1]) && varies_alone(t, t->ref[1], t->ref[0])) return false;
        any |= varies_alone(t, t->ref[0], ex_num(0)) && varies_alone(t, t->ref[1], ex_num(0));
    }
    return any;
}
