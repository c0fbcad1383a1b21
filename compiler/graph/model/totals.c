// totals.c -- sums over data alone, which no loop changes, become lets.
//
//   before   normal(y[i] | a + b*(x[i] - sum(j in 1:N, x[j])/N), s) over i in 1:N       the mean is made again by every kernel that needs
//   it after    normal(y[i] | a + b*(x[i] - mean_x), s)                                    mean_x is computed once
//
// Needs: the graph as built.     Gives: lets.     Keeps: subscripts and ranges, where such a sum is a whole number; sums that hold a
// response, whose values may be missing.
#include "totals.h"
#include "../terms/var.h"
#include "../terms/naming.h"
#include "../terms/factor.h"

typedef struct Total {
    Expr *value;
    Var *var;
    struct Total *next;
} Total;

typedef struct Totals {
    Graph *g;
    Span span;
    Total *made;
} Totals;

static Look test_loop(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_INDEX && e->index->height == 0 ? FOUND : LOOK;
}
static bool test_moving(const Var *v, void *with)
{
    (void)with;
    return (v->kind != VAR_DATA && v->kind != VAR_LET) || v->response;
}
static bool test_real(const Var *v, void *with)
{
    (void)with;
    return v->base == BASE_REAL;
}

static bool fixed(const Expr *e) { return e->loose == 0 && !ex_find(e, test_loop, NULL) && !ex_any_var(e, test_moving, NULL); }

static bool is_total(const Expr *e)
{
    return e->kind == EX_REDUCE && ex_rank(e) == 0 && ex_any_var(e->args[2], test_real, NULL) && fixed(e);
}

static Expr *let_of(Totals *t, Expr *value)
{
    for (const Total *m = t->made; m; m = m->next)
        if (m->value == value) return ex_ref(m->var, 0, NULL);
    Graph *g = t->g;
    Total *m = NEW(g->arena, Total);
    Var *v = var_unique(g, total_name(g, value), VAR_LET);
    *m = (Total){value, v, t->made};
    t->made = m;
    if (ex_positive(value)) v->lower_number = 0;
    v->span = t->span;
    v->known.unsure = true;
    v->sites = NEW(g->arena, Site);
    *v->sites = (Site){.span = t->span, .var = v, .value = value};
    return ex_ref(v, 0, NULL);
}

static Expr *total_leaf(Expr *e, void *with)
{
    Totals *t = with;
    if (e->kind == EX_REF) return e;  // subscripts are whole numbers
    if (is_total(e)) return let_of(t, e);
    if (e->kind != EX_MUL) return NULL;
    Expr *sum = NULL, *by = NULL, *rest = ex_num(1);  // sum(x)/n, as one
    for (int i = 0; i < e->nargs; i++) {
        Expr *f = e->args[i];
        if (!sum && is_total(f)) sum = f;
        else if (!by && f->kind == EX_POW && f->number == -1 && f->args[0]->kind == EX_REF && fixed(f)) by = f;
        else rest = ex_mul2(rest, f);
    }
    return sum && by ? ex_mul2(let_of(t, ex_mul2(sum, by)), ex_map(rest, total_leaf, t)) : NULL;
}

static Expr *total_expr(Expr *e, void *with) { return ex_map(e, total_leaf, with); }

bool find_totals(Graph *g)
{
    Totals t = {.g = g};
    const int n = g->nvars;
    for (Factor *f = g->factors; f; f = f->next) {
        t.span = f->span;
        factor_change(f, total_expr, &t);
    }
    for (int i = 0; i < n; i++)
        for (Site *s = g->vars[i]->kind == VAR_LET && g->vars[i]->rank == 0 ? NULL : g->vars[i]->sites; s; s = s->next) {
            t.span = s->span;
            site_change(s, total_expr, &t);
        }
    for (const Series *along = g->series; along; along = along->next)
        for (Site *s = along->sites; s; s = s->next) site_change(s, total_expr, &t);
    return true;
}
