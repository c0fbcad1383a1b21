// angles.c -- angles that a density knows by cosine and sine alone go on beyond their ends: the coordinate is the angle plus whole turns.
#include <math.h>
#include "hmc.h"

// Sums of v's elements, each times a whole number, and of what does not hold v.
static bool counts_turns(const Expr *e, const Var *v)
{
    if (!ex_reads(e, v)) return true;
    if (e->kind == EX_REF) {
        for (int k = 0; k < e->nargs; k++)
            if (ex_reads(e->args[k], v)) return false;
        return e->var == v;
    }
    if (e->kind == EX_MUL)
        return e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[0]->number == floor(e->args[0]->number) &&
               counts_turns(e->args[1], v);
    bool all = e->kind == EX_ADD;
    for (int k = 0; k < e->nargs && all; k++) all = counts_turns(e->args[k], v);
    return all;
}

static Expr *without_waves(Expr *e, void *with)
{
    return e->kind == EX_CALL && (e->fn == FN_cos || e->fn == FN_sin || e->fn == FN_tan) && counts_turns(e->args[0], with) ? ex_num(0)
                                                                                                                           : NULL;
}

// Is v an angle from -pi to pi that the density knows by its cosine and sine alone? Then it is the same a turn farther on, and what reads v
// otherwise tells that it is not.
bool is_angle(const HmcBlock *m, Var *v)
{
    if (tied_of(m, v)->slope || fabs(v->lower_number + M_PI) > 1e-12 || fabs(v->upper_number - M_PI) > 1e-12 || bounds_of(m, v) ||
        m->moving.n > m->update->nblock)
        return false;
    for (int i = 0; i < m->update->nuts.n; i++)
        if (ex_reads(ex_map(m->update->nuts.factor[i]->log_density, without_waves, v), v)) return false;
    return true;
}

Expr *turned_back(Expr *q)
{
    return ex_sub(q, ex_mul2(ex_num(2 * M_PI), ex_call1("floor", ex_mul2(ex_num(0.5 / M_PI), ex_add2(q, ex_num(M_PI))))));
}

// A coordinate stays as it is for some turns, so that a mode near an end is one mode for what warm-up learns, and spread that is none does
// not grow.
Expr *same_turn(Expr *q, Expr *x)
{
    Expr *stays = ex_call2("&&", ex_call2("==", turned_back(q), x), ex_call2("<=", ex_call1("abs", q), ex_num(3 * M_PI)));
    return ex_call3("if_else", stays, q, x);
}
