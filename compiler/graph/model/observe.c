// observe.c -- data that are a function of an unknown: what they say of it.
//
//   before   y[i] = z[i] > 0;          y data, z unknown
//   after    within(z[i], y[i] == 1 ? 0 : -inf, y[i] == 1 ? inf : 0)
//
// Needs: the data and the expression.     Gives: a term of the factor's log density, or a message.
#include <math.h>
#include "observe.h"
#include "../terms/var.h"
#include "../terms/factor.h"

static bool is_comparison(const Expr *e) { return e->kind == EX_CALL && (e->fn == FN_LT || e->fn == FN_LE); }

static bool drawn_real(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) && !v->discrete;
}

// Sides that may be equal with a probability above 0: no real unknown is among them.
static bool may_tie(const Expr *e) { return !ex_any_var(e, drawn_real, NULL); }

// c[k] as thresholds: a rule knows that its own increase.
static bool increases(const Factor *f, const Expr *c)
{
    if (c->kind != EX_REF) return f->rule;
    return f->rule || c->var->constraint == CONSTRAINT_ORDERED || c->var->constraint == CONSTRAINT_POSITIVE_ORDERED;
}

// a < b, or a <= b if it is not strict, or the opposite, as y == 1 says. Of whole numbers those beyond an end begin one further on.
static void observe_comparison(Factor *f, Expr *yes, const Expr *e)
{
    Expr *inf = ex_num(INFINITY), *minus = ex_num(-INFINITY), *one = ex_num(1);
    Expr *a = e->args[0], *b = e->args[1];
    // which side lies within ends made of the other
    const bool strict = e->fn == FN_LT, tie = may_tie(e), right = ex_unknown(b) && b->kind == EX_REF;
    Expr *end = right ? a : b, *next = end, *last = end;  // the whole numbers above end, and those below it
    if (tie) {
        next = ex_add2(ex_is_whole(end) ? end : ex_call1("floor", end), one);
        last = ex_sub(ex_is_whole(end) ? end : ex_call1("ceil", end), one);
    }
    if (right)
        factor_add(f, ex_within(b, ex_call3("if_else", yes, strict ? next : a, minus), ex_call3("if_else", yes, inf, strict ? a : last)));
    else factor_add(f, ex_within(a, ex_call3("if_else", yes, minus, strict ? b : next), ex_call3("if_else", yes, strict ? last : b, inf)));
}

// The data y say that e equals y: bounds on the unknown in e. Bounds hold what lies on them, which of real unknowns has probability 0.
// Where equal sides have more and ends are not those of whole numbers, the factor is the condition itself.
void observe_value(Graph *g, Factor *f, Span span, Expr *y, Expr *e)
{
    Expr *inf = ex_num(INFINITY), *minus = ex_num(-INFINITY), *yes = ex_call2("==", y, ex_num(1));
    Expr *itself = ex_call3("if_else", ex_call2("==", e, y), ex_num(0), minus);
    const bool tie = may_tie(e);
    Expr *count = e, *from = ex_num(0);  // from + sum(k in lo:hi, c[k] < z)
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[1]->kind == EX_REDUCE) {
        from = e->args[0];
        count = e->args[1];
    }
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_REDUCE) {
        from = e->args[1];
        count = e->args[0];
    }
    for (int k = 0; k < 2 && e->kind == EX_ADD && e->nargs == 2; k++)  // a single one that is counted: from + (c < z)
        if (is_comparison(e->args[k]) && !ex_unknown(e->args[1 - k])) {
            from = e->args[1 - k];
            count = e->args[k];
            yes = ex_call2("==", ex_sub(y, from), ex_num(1));
        }
    if (is_comparison(count)) {
        const Expr *side = ex_unknown(count->args[1]) && count->args[1]->kind == EX_REF ? count->args[1] : count->args[0];
        if (tie && !ex_is_whole(side)) factor_add(f, itself);
        else observe_comparison(f, yes, count);
    } else if (count->kind == EX_REDUCE && count->fn == FN_sum && count->args[2]->kind == EX_CALL &&
               (count->args[2]->fn == FN_LT || count->args[2]->fn == FN_LE) && !ex_mentions_index(count->args[2]->args[1], count->index)) {
        if (tie || !increases(f, count->args[2]->args[0])) {
            factor_add(f, itself);
            return;
        }
        Expr *z = count->args[2]->args[1], *lo = count->args[0], *hi = count->args[1], *n = ex_sub(y, from);
        Expr *below = ex_replace_index(count->args[2]->args[0], count->index, ex_add(3, (Expr *[]){lo, n, ex_num(-1)}));
        Expr *above = ex_replace_index(count->args[2]->args[0], count->index, ex_add2(lo, n));
        factor_add(f, ex_within(z, ex_call3("if_else", ex_call2("<=", ex_num(1), n), below, minus),
                                ex_call3("if_else", ex_call2("<=", ex_add2(lo, n), hi), above, inf)));
    } else if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin) && tie && ex_unknown(e->args[0]) && ex_unknown(e->args[1])) {
        factor_add(f, itself);
    } else if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin) && !(ex_unknown(e->args[0]) && ex_unknown(e->args[1]))) {
        bool max = e->fn == FN_fmax;
        Expr *z = ex_unknown(e->args[0]) ? e->args[0] : e->args[1], *c = z == e->args[0] ? e->args[1] : e->args[0];
        if (max) factor_add(f, ex_within(z, ex_call3("if_else", ex_call2("<", c, y), y, minus), y));
        else factor_add(f, ex_within(z, y, ex_call3("if_else", ex_call2("<", y, c), y, inf)));
    } else if (e->kind == EX_CALL && (e->fn == FN_floor || e->fn == FN_round) && tie) {
        factor_add(f, itself);
    } else if (e->kind == EX_CALL && e->fn == FN_floor) {
        factor_add(f, ex_within(e->args[0], y, ex_add2(y, ex_num(1))));
    } else if (e->kind == EX_CALL && e->fn == FN_round) {
        factor_add(f, ex_within(e->args[0], ex_add2(y, ex_num(-0.5)), ex_add2(y, ex_num(0.5))));
    } else if (e->kind == EX_REF) {
        factor_add(f, ex_within(e, y, y));
    } else {
        Diag *m = diag(g->diags, span, DIAG_E0504);
        diag_help(m, "data may be an unknown compared with a bound (z > 0), its fmax or fmin with one, its floor, or its round");
        if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin))
            diag_help(m, "both sides are unknown here, and one of them is real: which one was observed is not drawn");
        else if (tie) diag_help(m, "of counts, target += y == ... ? 0 : negative_infinity(); says that y equals the right side");
    }
}
