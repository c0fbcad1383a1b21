// supports.c -- the ends of what a variable can be, as far as they are known before it is drawn.
#include <math.h>
#include "supports.h"

// The first and the last value, those that a draw of it weighs; NULL: there are none known from data.
Expr *end_of_summed(const Var *v, int side)
{
    Expr *e = side ? v->upper : v->lower ? v->lower : isfinite(v->lower_number) ? ex_num(v->lower_number) : NULL;
    return e && ex_data_only(e) ? e : NULL;
}

// The densities of discrete unknowns are without ends that are data: who moves one minds them.
Expr *end_of_value(const Var *v, int side)
{
    Expr *e = side ? v->upper : v->lower;
    return v->discrete && e && ex_data_only(e) ? e : ex_num(side ? v->upper_number : v->lower_number);
}

double number_of_values(const Var *v)
{
    const Expr *first = end_of_summed(v, 0), *last = end_of_summed(v, 1);
    return first->kind == EX_NUM && last->kind == EX_NUM ? last->number - first->number + 1 : INFINITY;
}

// Does an end of a support imply a declared bound?
bool lies_within(const Expr *bound, const Expr *end, int side)
{
    if (!bound || bound == end) return true;
    return end && bound->kind == EX_NUM && end->kind == EX_NUM && (side ? end->number <= bound->number : end->number >= bound->number);
}
