// sets.c -- when variables can be drawn in one joint normal with a sparse precision.
//
//   before   y[i] ~ normal(mu + u[a[i]] + v[b[i]], s):  terms u[a[i]] * v[b[i]] over i
//   after    they have a pattern: the positions of the nonzero entries depend on a and b alone
//
// Needs: block_terms.     Gives: answers for schedule.c. The positions of the entries are found when the program runs
// (runtime/backends/sparse.c).
#include "sets.h"
#include "../update.h"
#include "../sum.h"

// Whether `one` varies with a loop that `other` does not.
static bool varies_alone(const BlockTerm *t, const Expr *one, const Expr *other)
{
    for (int i = 0; i < t->loops.n; i++)
        if (ex_mentions_index(one, t->loops.index[i]) && !ex_mentions_index(other, t->loops.index[i])) return true;
    return false;
}

// A square of a sum: each element that one reference names with each that the other does.
static bool is_square(const BlockTerm *t)
{
    return t->degree == 2 && t->ref[0] != t->ref[1] && varies_alone(t, t->ref[0], t->ref[1]) && varies_alone(t, t->ref[1], t->ref[0]);
}

// Which elements the loops of `one` alone name depends on the others: col[k] for k in start[i]:end[i], or col[i, k].
static bool names_a_list(const BlockTerm *t, const Expr *one, const Expr *other)
{
    for (int i = 0; i < t->loops.n; i++) {
        const Index *own = t->loops.index[i];
        if (!ex_mentions_index(one, own) || ex_mentions_index(other, own)) continue;
        for (int m = 0; m < t->loops.n; m++) {
            const Index *row = t->loops.index[m];
            if (m == i) continue;
            if (ex_mentions_index(own->lo, row) || ex_mentions_index(own->hi, row)) return true;
            for (int k = 0; k < one->nargs; k++)
                if (ex_mentions_index(one->args[k], own) && ex_mentions_index(one->args[k], row)) return true;
        }
    }
    return false;
}

static bool in_lists(const BlockTerm *t) { return names_a_list(t, t->ref[0], t->ref[1]) && names_a_list(t, t->ref[1], t->ref[0]); }

enum { FEW_ROWS = 64 };  // which couple all elements: a sum that is nearly 0

static bool has_few_rows(const Factor *f)
{
    double n = 1;
    for (int i = 0; i < f->plates.n; i++) {
        const Index *k = f->plates.index[i];
        if (k->lo->kind != EX_NUM || k->hi->kind != EX_NUM) return false;
        n *= k->hi->number - k->lo->number + 1;
    }
    return n <= FEW_ROWS;
}

bool coupled_in_pairs(Graph *g, Var *v, const BlockTerm *terms)
{
    bool any = false;
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (t->degree != 2 || t->ref[0] == t->ref[1]) continue;
        if (!is_square(t)) any |= varies_alone(t, t->ref[0], ex_num(0)) && varies_alone(t, t->ref[1], ex_num(0));
        else if (in_lists(t) || (has_few_rows(t->factor) && factor_rows(g, &v, 1, t->factor))) any = true;
        else return false;
    }
    return any;
}

int stands_in(const Sum *s)
{
    if (s->purpose || s->asked_apart || !s->serves || s->serves->update->joint >= 0) return 0;
    for (const Server *t = s->serves; t; t = t->next)
        if (t->update->joint != s->serves->update->joint) return 0;
    return -s->serves->update->joint;
}

void find_listed(Graph *g, Update *s)
{
    Rows *list = NULL, **last = &list;
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        if (t->absent || !is_square(t) || !(in_lists(t) || has_few_rows(t->factor))) continue;
        bool known = false;
        for (const Rows *r = list; r; r = r->next) known |= r->factor == t->factor;
        Rows *r = known ? NULL : factor_rows(g, s->block, s->nblock, t->factor);
        if (!r) continue;
        *last = r;
        last = &r->next;
    }
    s->gaussian.listed = list;
}

const Rows *listed_in(const Update *s, const Factor *f)
{
    for (const Rows *r = s->gaussian.sparse ? s->gaussian.listed : NULL; r; r = r->next)
        if (r->factor == f) return r;
    return NULL;
}
