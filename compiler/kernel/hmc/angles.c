// angles.c -- angles of which a density reads cosine and sine alone have no ends: the coordinate is the angle plus a multiple of 2 pi.
#include <math.h>
#include "hmc.h"

// Sums of v's elements, each times a whole number, and of what does not depend on v.
static bool is_winding(const Expr *e, const Var *v)
{
    if (!ex_reads(e, v)) return true;
    if (e->kind == EX_REF) {
        for (int k = 0; k < e->nargs; k++)
            if (ex_reads(e->args[k], v)) return false;
        return e->var == v;
    }
    if (e->kind == EX_MUL)
        return e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[0]->number == floor(e->args[0]->number) && is_winding(e->args[1], v);
    bool all = e->kind == EX_ADD;
    for (int k = 0; k < e->nargs && all; k++) all = is_winding(e->args[k], v);
    return all;
}

static Expr *without_waves(Expr *e, void *with)
{
    return e->kind == EX_CALL && (e->fn == FN_cos || e->fn == FN_sin || e->fn == FN_tan) && is_winding(e->args[0], with) ? ex_num(0) : NULL;
}

// Is v an angle from -pi to pi of which the density reads cosine and sine alone? Then the density has period 2 pi.
bool is_angle(const HmcBlock *m, Var *v)
{
    if (tied_of(m, v)->slope || fabs(v->lower_number + M_PI) > 1e-12 || fabs(v->upper_number - M_PI) > 1e-12 || bounds_of(m, v) ||
        m->moving.n > m->update->nblock)
        return false;
    for (int i = 0; i < m->update->nuts.n; i++)
        if (ex_reads(ex_map(m->update->nuts.factor[i]->log_density, without_waves, v), v)) return false;
    return true;
}

Expr *wrapped(Expr *q)
{
    Expr *turn = ex_mul2(ex_num(2), ex_pi());
    return ex_sub(q, ex_mul2(turn, ex_call1("floor", ex_div(ex_add2(q, ex_pi()), turn))));
}

// A coordinate keeps its multiple of 2 pi within 3 pi. So a mode near an end is one mode for warm-up. Beyond that the coordinate is the
// angle again, so that its variance stays finite.
Expr *kept_winding(Expr *q, Expr *x)
{
    Expr *stays = ex_call2("&&", ex_call2("==", wrapped(q), x), ex_call2("<=", ex_call1("abs", q), ex_mul2(ex_num(3), ex_pi())));
    return ex_call3("if_else", stays, q, x);
}
