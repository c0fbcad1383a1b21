// conditions.c -- conditions on indices, as far as the ranges of loops decide them.
//
//   before   2 <= 1 + k && 1 + k <= T     k in 1:T              after   1 + k <= T
//   before   1 == k || 2 <= k             k in 1:T              after   always: the cases cover the range
//   before   3 <= k                       k in 1:2              after   never
//
// A condition is examined within an iteration of its loop: it lies in its range then, and the range is not empty. So what is
// decided holds for every size, also where a run has no iteration at all. Only comparisons of whole numbers are decided, of indices and of
// data that are no response: a real may be no number, and what is missing lies outside of declared bounds. Method: what a condition or its
// opposite says is added to what is known, until a number that must not be negative is seen to be (requirements.c).
#include "conditions.h"
#include "prover.h"

static bool test_varies(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA || v->response;
}

static Look test_unclear(const Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_CALL) return e->kind == EX_REF || ex_is_whole(e) ? SKIP : FOUND;
    switch (e->fn) {
    case FN_AND:
    case FN_OR:
    case FN_NOT:
    case FN_EQ:
    case FN_NE:
    case FN_LT:
    case FN_LE: return LOOK;
    default: return FOUND;
    }
}

static Look add_index(const Expr *e, void *with)
{
    Loops *l = with;
    if (e->kind == EX_INDEX && e->index->lo && l->n < MAX_LOOPS) l->index[l->n++] = e->index;
    return LOOK;
}

static bool never(Expr *c)
{
    Loops l = {.guard = c};
    ex_find(c, add_index, &l);
    return prove_never(&l);
}

enum { MOST_PARTS = 40 };  // what has more, one of hundreds of statements, is left as it is

static bool is_clear(const Expr *c)
{
    return c->kind == EX_CALL && c->size <= MOST_PARTS && !ex_find(c, test_unclear, NULL) && !ex_any_var(c, test_varies, NULL);
}

static bool follows(Expr *a, Expr *b) { return is_clear(a) && is_clear(b) && never(ex_both(b, ex_call1("!", a))); }

static Expr *decided(Expr *c)
{
    if (c->kind != EX_CALL) return c;
    if (c->fn == FN_AND || c->fn == FN_OR) {
        // the one that decides it alone
        Expr *a = decided(c->args[0]), *b = decided(c->args[1]), *settles = ex_num(c->fn == FN_OR);
        if (a == settles || b == settles) return settles;
        if (a->kind == EX_NUM || b->kind == EX_NUM) return a->kind == EX_NUM ? b : a;
        const bool or = c->fn == FN_OR;
        if (follows(a, b)) return or ? a : b;
        if (follows(b, a)) return or ? b : a;
        c = or ? ex_either(a, b) : ex_both(a, b);
    }
    if (!is_clear(c)) return c;
    return never(c) ? ex_num(0) : never(ex_call1("!", c)) ? ex_num(1) : c;
}

Expr *condition_left(Expr *condition)
{
    Expr *left = condition ? decided(condition) : NULL;
    return left && ex_is_num(left, 1) ? NULL : left;
}

bool goes_on(const Expr *condition) { return condition->kind == EX_CALL && (condition->fn == FN_AT_END || condition->fn == FN_IN_TAIL); }
