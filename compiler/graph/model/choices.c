// choices.c -- rows in which data decide whether an element of an unknown is read become factors of their own.
//
//   before   normal(y[t] | m + (t > 1 ? x[-1 + t] : 0), s) over t in 1:T
//   after    normal(y[t] | m + x[-1 + t], s) over t in 1:T where t > 1, and normal(y[t] | m, s) over t in 1:T where !(t > 1)
//
// What follows finds out which rows read which element of an unknown. A choice within a density would be no part of that: rows that read
// none would be thought of as rows of an element that does not exist.
//
// A choice that the condition of the rows and the ranges of indices decide (conditions.c) is made: with t > 1 known, (t > 1 ? a : t == 1 ?
// b : c) is a, and where 1 < t <= 2, (t < 2 ? a : b) is b.
//
// Needs: factors complete, densities as written.     Gives: the same joint density. A choice stays where it is if it depends on unknowns or
// on responses, whose values may be missing, or on an index that a sum binds, or if the elements that it reads are the same in all rows. So
// does one by whether an end of a truncation leaves anything out.
#include <string.h>
#include "choices.h"
#include "../terms/var.h"
#include "../terms/conditions.h"
#include "../terms/factor.h"

typedef struct FoundChoices {
    const Factor *f;
    Expr *choice;
} FoundChoices;

static Look test_element(const Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_REF || !(var_unknown(e->var) || e->var->kind == VAR_SERIES)) return LOOK;
    for (int k = 0; k < e->nargs; k++)
        if (e->args[k]->kind != EX_NUM) return FOUND;
    return LOOK;
}

// What is neither data nor an index of the factor's plates.
static Look test_strange(const Expr *e, void *with)
{
    const Loops *p = with;
    if (e->kind == EX_REF) return e->var->response || !ex_data_only(e) ? FOUND : LOOK;
    if (e->kind != EX_INDEX) return LOOK;
    for (int i = 0; i < p->n; i++)
        if (p->index[i] == e->index) return LOOK;
    return FOUND;
}

static Look test_choice(const Expr *e, void *with)
{
    FoundChoices *found = with;
    if (e->kind != EX_CALL || e->fn != FN_if_else || goes_on(e->args[0]) || ex_find(e->args[0], test_strange, (void *)&found->f->plates))
        return LOOK;
    if (!ex_find(e->args[1], test_element, NULL) && !ex_find(e->args[2], test_element, NULL)) return LOOK;
    found->choice = (Expr *)e;
    return FOUND;
}

// All choices by this condition are made; without one, those that the factor's rows decide.
typedef struct MadeChoice {
    const Loops *rows;
    const Expr *condition;
    int branch;
} MadeChoice;

static bool never_with(const Loops *p, Expr *condition)
{
    Expr *left = condition_left(ex_both(p->guard, condition));
    return left && ex_is_num(left, 0);
}

static Expr *make_choice(Expr *e, void *with)
{
    const MadeChoice *m = with;
    if (e->kind != EX_CALL || e->fn != FN_if_else) return NULL;
    if (m->condition) return e->args[0] == m->condition ? e->args[m->branch] : NULL;
    if (goes_on(e->args[0]) || ex_find(e->args[0], test_strange, (void *)m->rows)) return NULL;
    const int branch = never_with(m->rows, e->args[0]) ? 2 : never_with(m->rows, ex_call1("!", e->args[0])) ? 1 : 0;
    return branch ? ex_map(e->args[branch], make_choice, with) : NULL;
}

static Expr *made(Expr *e, const MadeChoice *m) { return e ? ex_map(e, make_choice, (void *)m) : NULL; }

static Expr **all_made(Graph *g, Expr *const *e, int n, const MadeChoice *m)
{
    Expr **out = NEW_N(g->arena, Expr *, n + 1);
    for (int i = 0; i < n; i++) out[i] = made(e[i], m);
    return out;
}

static void make_choices(Graph *g, Factor *f, const MadeChoice *m)
{
    f->log_density = made(f->log_density, m);
    f->value = made(f->value, m);
    f->args = all_made(g, f->args, f->nargs, m);
    f->weights = made(f->weights, m);
    Component *component = NEW_N(g->arena, Component, f->ncomponents + 1);
    for (int i = 0; i < f->ncomponents; i++) {
        component[i] = f->component[i];
        component[i].args = all_made(g, f->component[i].args, f->component[i].nargs, m);
        component[i].weight = made(f->component[i].weight, m);
    }
    f->component = component;
    f->lower = made(f->lower, m);
    f->upper = made(f->upper, m);
    f->if_missing = made(f->if_missing, m);
    f->least = made(f->least, m);
    f->most = made(f->most, m);
    f->from = made(f->from, m);
    f->to = made(f->to, m);
}

// The rows of a factor in which the condition holds (branch 1), or does not (2).
static void take_branch(Graph *g, Factor *f, Expr *condition, int branch)
{
    f->plates.guard = condition_left(ex_both(f->plates.guard, branch == 1 ? condition : ex_call1("!", condition)));
    make_choices(g, f, &(MadeChoice){&f->plates, condition, branch});
}

static Look test_any_choice(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL && e->fn == FN_if_else ? FOUND : LOOK;
}

bool split_choices(Graph *g)
{
    for (Factor **at = &g->factors; *at;) {
        Factor *f = *at;
        FoundChoices found = {.f = f};
        if (ex_find(f->log_density, test_any_choice, NULL)) make_choices(g, f, &(MadeChoice){.rows = &f->plates});
        if (!ex_find(f->log_density, test_choice, &found)) {
            at = &f->next;
            continue;
        }
        Factor *other = factor_beside(g, f);
        take_branch(g, other, found.choice->args[0], 2);
        take_branch(g, f, found.choice->args[0], 1);
    }
    return true;
}
