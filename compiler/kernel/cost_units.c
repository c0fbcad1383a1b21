// cost_units.c -- units of costs, and their arithmetic.
//
// A cost is six expressions in the sizes of the data; cost.c says what they are. Operations are those of arithmetic, and calls of
// functions, each as one.
//
// Needs: cost.def.     Gives: what cost_body.c and cost.c count with.     Keeps: what it is given.
#include <string.h>
#include "cost_inside.h"

// In multiply-adds: a division; a power.
enum { DIVISION = 4, POWER = 60, POWER_IN_ROW = 25 };
static const Units division = {DIVISION, 1};

Cost cost_none(void) { return (Cost){ex_num(0), ex_num(0), ex_num(0), ex_num(0), ex_num(0), ex_num(0)}; }

void cost_add(Cost *to, Cost more)
{
    to->operations = ex_add2(to->operations, more.operations);
    to->draws = ex_add2(to->draws, more.draws);
    to->bytes = ex_add2(to->bytes, more.bytes);
    to->work = ex_add2(to->work, more.work);
    to->row = ex_add2(to->row, more.row);
    to->lane = ex_add2(to->lane, more.lane);
}

// Of one iteration alone, and of one of several at once.
void cost_spend_in_row(Cost *to, Expr *units, Expr *in_row)
{
    to->work = ex_add2(to->work, units);
    to->row = ex_add2(to->row, in_row);
    to->lane = ex_add2(to->lane, units);
}

void cost_spend(Cost *to, Expr *units) { cost_spend_in_row(to, units, units); }

// n operations, which take `units` each.
void cost_labour_in_row(Cost *to, Expr *n, Units u)
{
    to->operations = ex_add2(to->operations, n);
    cost_spend_in_row(to, ex_mul2(ex_num(u.alone), n), ex_mul2(ex_num(u.in_row), n));
}

void cost_labour(Cost *to, Expr *n, double units) { cost_labour_in_row(to, n, (Units){units, units}); }

void cost_operate(Cost *to, Expr *n) { cost_labour_in_row(to, n, operation); }

Units cost_units(const char *name, double otherwise)
{
    static const struct {
        const char *name;
        Units units;
    } known[] = {
#define COST_OF(name, alone, in_row) {#name, {alone, in_row}},
#include "cost.def"
    };
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].units;
    return (Units){otherwise, otherwise};
}

Units cost_units_of_power(double power)
{
    return power == 2 || power == 3                                      ? operation
           : power == -1 || power == -2 || power == 0.5 || power == -0.5 ? division
                                                                         : (Units){POWER, POWER_IN_ROW};
}

void cost_draw(Cost *to, Expr *n, double units)
{
    to->draws = ex_add2(to->draws, n);
    cost_spend(to, ex_mul2(ex_num(units), n));
}

// Sums are multiplied out, so that equal terms meet.
Expr *cost_expanded(Expr *a, Expr *n)
{
    if (n->kind == EX_ADD && a->kind != EX_NUM) {
        Expr *all = ex_num(0);
        for (int i = 0; i < n->nargs; i++) all = ex_add2(all, cost_expanded(a, n->args[i]));
        return all;
    }
    if (a->kind != EX_ADD) return ex_mul2(a, n);
    Expr *all = ex_num(0);
    for (int i = 0; i < a->nargs; i++) all = ex_add2(all, cost_expanded(a->args[i], n));
    return all;
}

Cost cost_times(Cost c, Expr *n)
{
    return (Cost){cost_expanded(c.operations, n), cost_expanded(c.draws, n), cost_expanded(c.bytes, n),
                  cost_expanded(c.work, n),       cost_expanded(c.row, n),   cost_expanded(c.lane, n)};
}

// Costs are polynomials in sizes: what a range has where it is not empty.
Expr *cost_rows(Expr *lo, Expr *hi) { return ex_add(3, (Expr *[]){hi, ex_neg(lo), ex_num(1)}); }

static Expr *summed(Expr *e, const Index *i, Expr *lo, Expr *hi)
{
    if (!ex_mentions_index(e, i)) return cost_expanded(e, cost_rows(lo, hi));
    Index *j = index_new(i->name, lo, hi);
    return ex_reduce("sum", j, lo, hi, ex_replace_index(e, (Index *)i, ex_index(j)));
}

Cost cost_over(Cost c, const Index *i, Expr *lo, Expr *hi)
{
    return (Cost){summed(c.operations, i, lo, hi), summed(c.draws, i, lo, hi), summed(c.bytes, i, lo, hi),
                  summed(c.work, i, lo, hi),       summed(c.row, i, lo, hi),   summed(c.lane, i, lo, hi)};
}

Expr *cost_cubed(Expr *n, double share) { return ex_mul2(ex_num(share), ex_pow(n, 3)); }
