// adjoints.c -- sums and products of adjoints, which keep choices outermost: what a choice leaves out need not exist.
//
//   before   if_else(c, a, 0) times log(x)
//   after    if_else(c, a*log(x), 0)
#include "adjoints.h"

bool is_choice(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_if_else; }

// A choice with a branch that is 0: what it is multiplied with counts in the other branch alone, and need not exist elsewhere.
bool is_partial(const Expr *e)
{
    return is_choice(e) && (ex_is_num(e->args[1], 0) || ex_is_num(e->args[2], 0) || is_partial(e->args[1]) || is_partial(e->args[2]));
}

bool all_partial(const Expr *e)
{
    if (e->kind != EX_ADD) return is_partial(e);
    for (int i = 0; i < e->nargs; i++)
        if (!is_partial(e->args[i])) return false;
    return true;
}

Expr *choice_of(Expr *c, Expr *a, Expr *b) { return ex_call3("if_else", c, a, b); }

// a + b, where choices by the same condition become one.
static Expr *plus_term(Expr *a, Expr *b)
{
    if (!is_choice(b)) return ex_add2(a, b);
    const int n = a->kind == EX_ADD ? a->nargs : 1;
    Expr *const *term = a->kind == EX_ADD ? a->args : &a;
    for (int i = 0; i < n; i++) {
        if (!is_choice(term[i]) || term[i]->args[0] != b->args[0]) continue;
        Expr *both = choice_of(b->args[0], adjoint_plus(term[i]->args[1], b->args[1]), adjoint_plus(term[i]->args[2], b->args[2]));
        return ex_add(3, (Expr *[]){a, ex_neg(term[i]), both});
    }
    return ex_add2(a, b);
}

Expr *adjoint_plus(Expr *a, Expr *b)
{
    if (b->kind != EX_ADD) return plus_term(a, b);
    for (int i = 0; i < b->nargs; i++) a = plus_term(a, b->args[i]);
    return a;
}

// When a partial choice, or a sum of them, is not 0.
Expr *when_chosen(Expr *e)
{
    if (e->kind == EX_ADD && all_partial(e)) {
        Expr *any = when_chosen(e->args[0]);
        for (int i = 1; i < e->nargs; i++) any = ex_call2("||", any, when_chosen(e->args[i]));
        return any;
    }
    if (!is_partial(e)) return ex_num(!ex_is_num(e, 0));
    Expr *c = e->args[0], *yes = when_chosen(e->args[1]), *no = when_chosen(e->args[2]);
    if (ex_is_num(no, 0)) return ex_is_num(yes, 1) ? c : ex_call2("&&", c, yes);
    if (ex_is_num(yes, 0)) return ex_is_num(no, 1) ? ex_call1("!", c) : ex_call2("&&", ex_call1("!", c), no);
    return choice_of(c, yes, no);
}

enum { FEW_BRANCHES = 3, FEW_NESTED = 32 };

// Branches that are not 0 of a choice, or of a sum of partial ones, until there are more than enough. Those of a long chain of choices are
// many, too: each choice would look through all others.
static int branches_below(const Expr *e, int enough, int nested)
{
    const bool sum = e->kind == EX_ADD && all_partial(e);
    if (!is_choice(e) && !sum) return !ex_is_num(e, 0);
    if (nested == FEW_NESTED) return enough + 1;
    int n = 0;
    for (int i = !sum; i < e->nargs && n <= enough; i++) n += branches_below(e->args[i], enough - n, nested + 1);
    return n;
}

static int branches(const Expr *e, int enough) { return branches_below(e, enough, 0); }

// The product, within the branches of a partial choice: a factor is not evaluated where the choice is 0. Many branches stay together, since
// in a chain of definitions by case they would double with each.
Expr *adjoint_times(Expr *a, Expr *b)
{
    if (ex_is_num(a, 0) || ex_is_num(b, 0)) return ex_num(0);
    if (all_partial(a) && branches(a, FEW_BRANCHES) > FEW_BRANCHES) return choice_of(when_chosen(a), ex_mul2(a, b), ex_num(0));
    if (is_partial(a)) return choice_of(a->args[0], adjoint_times(a->args[1], b), adjoint_times(a->args[2], b));
    if (is_partial(b)) return choice_of(b->args[0], adjoint_times(a, b->args[1]), adjoint_times(a, b->args[2]));
    if (a->kind == EX_ADD && all_partial(a)) {
        Expr *sum = ex_num(0);
        for (int i = 0; i < a->nargs; i++) sum = adjoint_plus(sum, adjoint_times(a->args[i], b));
        return sum;
    }
    return ex_mul2(a, b);
}

// An adjoint where the condition c has the value `yes`: within the branches of a partial choice, so that choices by the same conditions
// meet again.
Expr *adjoint_where(Expr *c, Expr *e, bool yes)
{
    const bool few = branches(e, FEW_BRANCHES) <= FEW_BRANCHES;
    if (few && is_partial(e)) return choice_of(e->args[0], adjoint_where(c, e->args[1], yes), adjoint_where(c, e->args[2], yes));
    if (few && e->kind == EX_ADD && all_partial(e)) {
        Expr *sum = ex_num(0);
        for (int i = 0; i < e->nargs; i++) sum = adjoint_plus(sum, adjoint_where(c, e->args[i], yes));
        return sum;
    }
    return choice_of(c, yes ? e : ex_num(0), yes ? ex_num(0) : e);
}
