// ends.c -- ends of the support within a density: where a term says that a value lies outside, the density is 0 and nothing else is
// computed.
#include <math.h>
#include "ends.h"

static bool is_end(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_WITHIN; }

// Functions that need not be numbers where a value is outside of the support: log(b - a) of the ends a and b of a uniform distribution.
static Look failing(const Expr *e, void *with)
{
    (void)with;
    if (is_end(e)) return SKIP;
    const bool yes = e->kind == EX_CALL ? e->fn == FN_lchoose || (function_rows[e->fn].traits & (TRAIT_LOG_END | TRAIT_POLES))
                                        : e->kind == EX_POW && (e->number < 0 || e->number != floor(e->number));
    return yes ? FOUND : LOOK;
}

bool may_fail(const Expr *e) { return ex_find(e, failing, NULL); }

// Whether a term says where the value lies, and others may fail where it does not.
bool ends_decide_all(const Expr *e)
{
    bool ends = false, fails = false;
    for (int i = 0; i < e->nargs && e->kind == EX_ADD; i++)
        if (is_end(e->args[i])) ends = true;
        else fails |= may_fail(e->args[i]);
    return ends && fails;
}

// A sum of such terms as a choice: outside of the ends the density is 0, and nothing else is computed.
Expr *ends_decide(Expr *e)
{
    if (!ends_decide_all(e)) return e;
    Expr *inside = NULL, *rest = ex_num(0);
    for (int i = 0; i < e->nargs; i++) {
        const Expr *t = e->args[i];
        if (!is_end(t)) {
            rest = ex_add2(rest, e->args[i]);
            continue;
        }
        for (int side = 1; side <= 2; side++) {
            if (t->args[side]->kind == EX_NUM && isinf(t->args[side]->number)) continue;
            Expr *one = side == 1 ? ex_call2("<=", t->args[1], t->args[0]) : ex_call2("<=", t->args[0], t->args[2]);
            inside = inside ? ex_call2("&&", inside, one) : one;
        }
    }
    return inside ? ex_call3("if_else", inside, rest, ex_num(-INFINITY)) : rest;
}
