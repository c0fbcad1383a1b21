// unchanged.c -- what the trials of a sampler leave as it is in each row that they sum over is computed once, in an array that is filled
// before them.
//
//   before   slice b                                                               after   nest i in 1:N: rest[i] = a + c*z[i] + u[g[i]]
//              reduce i in 1:N: lp -= exp(a + c*z[i] + u[g[i]] + x[i]*b)                   slice b
//                                                                                            reduce i in 1:N: lp -= exp(rest[i] + x[i]*b)
//
// A trial for one coefficient of a predictor then costs a product a row, however many terms the predictor has. Terms of a sum, and factors
// of a product, that trials leave alone are one array. What is in a choice stays there: it may not exist elsewhere. An array is worth
// it where it saves more reads than it takes, or a function. Updates share the arrays, which keep nothing from one update to the
// next.
#include <math.h>
#include "lower.h"

typedef struct Trials {
    Lower *p;
    const Conditional *c;
    const Loops *loops;  // of the rows
    Expr *density;       // of a row
} Trials;

// ---- what is saved ----

enum { READ = 1, GATHERED = 2, DIVISION = 2, FUNCTION = 4, ENOUGH = 3 };

typedef struct Saving {
    const Lower *p;
    const Index *row;
    const Expr *elsewhere;
    int sum;
} Saving;

static Look is_it(const Expr *e, void *sought) { return e == sought ? FOUND : LOOK; }
static Look is_reference(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REF ? FOUND : LOOK;
}

static Look add_saving(const Expr *e, void *with)
{
    Saving *s = with;
    if (!ex_mentions_index(e, s->row)) return SKIP;
    switch (e->kind) {
    case EX_REF: {
        if (ex_find(s->elsewhere, is_it, (void *)e)) return SKIP;
        bool gathered = false;
        for (int k = 0; k < e->nargs; k++) gathered |= ex_find(e->args[k], is_reference, NULL);
        s->sum += gathered ? GATHERED : READ;
        return LOOK;
    }
    case EX_REDUCE: {  // the predictor of a matrix is an array already
        Product r;
        Expr *row, *column;
        s->sum += product_of(s->p, e, &r, &row, &column) ? READ : FUNCTION;
        return SKIP;
    }
    case EX_POW: s->sum += e->number == floor(e->number) && fabs(e->number) <= 4 ? (e->number < 0 ? DIVISION : 0) : FUNCTION; return LOOK;
    case EX_CALL: s->sum += FUNCTION; return LOOK;
    case EX_NUM:
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_ARRAY:
    case EX_AT: return LOOK;
    }
    return LOOK;
}

// Of `whole`, part of the density, e is taken out, and `left` is what stays.
static bool is_enough(const Trials *t, const Expr *e, Expr *whole, Expr *left)
{
    Saving s = {t->p, t->loops->index[t->loops->n - 1], ex_replace(t->density, whole, left), 0};
    ex_find(e, add_saving, &s);
    return s.sum >= ENOUGH;
}

// ---- the arrays ----

static bool stays(const Trials *t, const Expr *e)
{
    return t->c->whole ? !ex_reads(e, t->c->var) && !(t->c->carried && ex_reads(e, t->c->carried)) : !ex_mentions(e, t->c->u->var);
}

static bool same_size(const Var *v, const Loops *l)
{
    bool same = v->rank == l->n;
    for (int k = 0; k < v->rank && same; k++) same = v->dim[k] == l->index[k]->hi;
    return same;
}

// An array with an element for each row, which this kernel has not in use.
static Var *array_for(Trials *t)
{
    Lower *p = t->p;
    for (int k = 0; k < p->nrests; k++)
        if (p->rest[k].kernel != p->open && same_size(p->rest[k].array, t->loops)) {
            p->rest[k].kernel = p->open;
            return p->rest[k].array;
        }
    Expr *dim[MAX_RANK];
    for (int k = 0; k < t->loops->n; k++) dim[k] = t->loops->index[k]->hi;
    ROOM(p->g->arena, p->rest, p->nrests, p->rests_size);
    Var *array = work_array(p, ROLE_TOTALS, "rest", t->loops->n, dim);
    array->lowered.filled_within = true;
    p->rest[p->nrests++] = (RestOfRows){array, p->open};
    return array;
}

static Expr *in_array(Trials *t, Expr *e)
{
    Expr **at = NEW_N(t->p->g->arena, Expr *, t->loops->n);
    for (int k = 0; k < t->loops->n; k++) at[k] = ex_index(t->loops->index[k]);
    Expr *element = ex_ref(array_for(t), t->loops->n, at);
    Node *n = enter_nest(t->p, NODE_NEST, t->loops, t->loops->n, at, NULL);
    put_assign(t->p, ASSIGN_SET, place_element(element), e);
    leave(t->p, n);
    return element;
}

static Expr *take(Expr *e, void *with)
{
    Trials *t = with;
    if (!ex_mentions_index(e, t->loops->index[t->loops->n - 1]) || e->loose || needs_array(e)) return e;
    if (stays(t, e)) return is_enough(t, e, e, ex_num(0)) ? in_array(t, e) : e;
    if (e->kind == EX_REF || e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT ||
        (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)))
        return e;
    if (e->kind != EX_ADD && e->kind != EX_MUL) return NULL;
    Expr *rest = ex_num(e->kind == EX_MUL), *moved = rest;
    for (int i = 0; i < e->nargs; i++) {
        Expr **side = stays(t, e->args[i]) ? &rest : &moved, *part = side == &rest ? e->args[i] : ex_map(e->args[i], take, t);
        *side = e->kind == EX_MUL ? ex_mul2(*side, part) : ex_add2(*side, part);
    }
    if (ex_mentions_index(rest, t->loops->index[t->loops->n - 1]) && !needs_array(rest) && is_enough(t, rest, e, moved))
        rest = in_array(t, rest);
    return e->kind == EX_MUL ? ex_mul2(rest, moved) : ex_add2(rest, moved);
}

Expr *without_rest(Lower *p, const Conditional *c, const Loops *l, Expr *density)
{
    if (l->n == 0 || c->recursion || density->size > MAX_TREE) return density;
    for (int k = 0; k < l->n; k++)
        if (!ex_is_num(l->index[k]->lo, 1) || !ex_data_only(l->index[k]->hi) || l->index[k]->hi->indices) return density;
    for (int k = 0; k < c->var->rank && l->guard; k++)
        if (ex_mentions_index(l->guard, c->element[k])) return density;
    Trials t = {p, c, l, density};
    if (l->guard && !stays(&t, l->guard)) return density;
    return ex_map(density, take, &t);
}
