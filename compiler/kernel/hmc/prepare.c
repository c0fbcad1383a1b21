// prepare.c -- one factor: its terms that depend on the block, as a closed form where their sum over rows leaves the sweep
// (graph/plan/hoist.c), with arrays in the place of what is computed once; and its derivatives.
#include <stdlib.h>
#include <string.h>
#include "hmc.h"

// The terms of a log density that change with the block.
static Expr *moving_terms(const HmcBlock *m, Expr *e)
{
    if (!reads_block(m, e)) return ex_num(0);
    if (e->kind != EX_ADD) return e;
    Expr *keep = ex_num(0);
    for (int i = 0; i < e->nargs; i++) keep = ex_add2(keep, moving_terms(m, e->args[i]));
    return keep;
}

// y f(e) + (1 - y) f(-e) is f((2 y - 1) e) where y is 0 or 1: one of the two is computed.
static bool is_binary(const Expr *e)
{
    return e->kind == EX_REF && e->var->base == BASE_INT && e->var->lower_number == 0 && e->var->upper_number == 1;
}

static Expr *sign_of_binary(const Expr *s, const Expr *t)
{
    if (s->kind != EX_MUL || t->kind != EX_MUL || s->nargs != 2 || t->nargs != 2) return NULL;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            Expr *y = s->args[a], *f = s->args[1 - a];
            const Expr *g = t->args[1 - b];
            if (!is_binary(y) || t->args[b] != ex_sub(ex_num(1), y)) continue;
            if (f->kind != EX_CALL || g->kind != EX_CALL || f->fn != g->fn || f->nargs != 1 || g->nargs != 1 ||
                ex_neg(f->args[0]) != g->args[0])
                continue;
            return ex_replace(f, f->args[0], ex_mul2(ex_sub(ex_mul2(ex_num(2), y), ex_num(1)), f->args[0]));
        }
    return NULL;
}

static Expr *with_one_of_two(Expr *e)
{
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        for (int k = 0; k < e->nargs; k++) {
            Expr *one = sign_of_binary(e->args[i], e->args[k]);
            if (one) return with_one_of_two(ex_add2(ex_sub(ex_sub(e, e->args[i]), e->args[k]), one));
        }
    return e;
}

typedef struct LogOdds {
    const HmcBlock *m;
    Expr **at;
    int n, size;
} LogOdds;

// log_inv_logit(e) and log_inv_logit(-e) in one density differ by e: one of them is computed, and there is one weight by e.
static Look collect_log_odds(const Expr *e, void *with)
{
    LogOdds *c = with;
    if (e->kind == EX_CALL && e->fn == FN_log_inv_logit) {
        ROOM(c->m->p->g->arena, c->at, c->n, c->size);
        c->at[c->n++] = (Expr *)e;
    }
    return LOOK;
}

static Expr *with_one_sign(const HmcBlock *m, Expr *e)
{
    LogOdds c = {.m = m};
    ex_find(e, collect_log_odds, &c);
    for (int i = 0; i < c.n; i++)
        for (int k = 0; k < i; k++)
            if (ex_neg(c.at[i]->args[0]) == c.at[k]->args[0]) {
                Expr *keep = c.at[i]->id < c.at[k]->id ? c.at[i] : c.at[k], *other = keep == c.at[i] ? c.at[k] : c.at[i];
                e = ex_replace(e, other, ex_sub(keep, keep->args[0]));
            }
    return e;
}

static bool differentiate(const HmcBlock *m, Prepared *r)
{
    const char *why;
    int n = m->moving.n;
    Var **block = NEW_N(m->p->g->arena, Var *, n + MOST_PRODUCTS);
    memcpy(block, m->moving.var, sizeof *block * (size_t)n);
    for (int k = 0; r->span && k < r->span->nproducts; k++) block[n++] = r->span->product[k]->eta;
    return derivatives(m->p->g, &r->f, block, n, &r->terms, &why);
}

// An array is among the unknowns, with an adjoint of its own.
static void move_array(HmcBlock *m, Var *v)
{
    Lower *p = m->p;
    if (adjoint_of(m, v)) return;
    Var **var = NEW_N(p->g->arena, Var *, m->moving.n + 1), **adjoint = NEW_N(p->g->arena, Var *, m->moving.n + 1);
    memcpy(var, m->moving.var, sizeof *var * (size_t)m->moving.n);
    memcpy(adjoint, m->adjoint, sizeof *adjoint * (size_t)m->moving.n);
    var[m->moving.n] = v;
    adjoint[m->moving.n] = work_array(p, ROLE_BLOCK, words(p, "adjoint_%s", v->name), v->rank, v->dim);
    m->moving.var = var;
    m->adjoint = adjoint;
    m->moving.n++;
}

static void move_once(HmcBlock *m)
{
    for (const Once *o = m->once; o; o = o->next) move_array(m, o->var);
}

static Inverse *inverse_of(const HmcBlock *m, const Expr *matrix)
{
    Inverse *i = m->inverses;
    while (i && i->of != matrix) i = i->next;
    return i;
}

static Look collect_inverse(const Expr *e, void *with)
{
    HmcBlock *m = with;
    if (e->kind != EX_CALL || (e->fn != FN_inverse && e->fn != FN_log_determinant) || !reads_block(m, e) || !stands_alone(e)) return LOOK;
    Expr *A = e->args[0], *dim[] = {ex_dim(A, 0), ex_dim(A, 0)};
    if (ex_dim(A, 1) != dim[0] || !ex_data_only(dim[0]) || inverse_of(m, A)) return LOOK;
    Inverse **last = &m->inverses;
    while (*last) last = &(*last)->next;
    Inverse *i = *last = NEW(m->p->g->arena, Inverse);
    i->of = A;
    i->matrix = work_array(m->p, ROLE_BLOCK, words(m->p, "matrix_%s", m->stem), 2, dim);
    i->inverse = work_array(m->p, ROLE_BLOCK, words(m->p, "inverse_%s", m->stem), 2, dim);
    i->log_det = work_array(m->p, ROLE_BLOCK, words(m->p, "log_det_%s", m->stem), 1, (Expr *[]){ex_num(1)});
    i->inverse->lowered.computed = ex_call1("inverse", A);
    i->log_det->lowered.computed = ex_call1("log_determinant", A);
    move_array(m, i->inverse);
    move_array(m, i->log_det);
    return LOOK;
}

static Expr *by_inverse(Expr *e, void *with)
{
    const HmcBlock *m = with;
    const bool element = e->kind == EX_AT && e->nargs == 3, whole = element && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_inverse;
    const Inverse *i = whole                                               ? inverse_of(m, e->args[0]->args[0])
                       : e->kind == EX_CALL && e->fn == FN_log_determinant ? inverse_of(m, e->args[0])
                                                                           : NULL;
    return !i ? NULL : whole ? ex_ref(i->inverse, 2, e->args + 1) : ex_ref(i->log_det, 1, (Expr *[]){ex_num(1)});
}

// What routines make of matrices of expressions, as elements of arrays: one factorisation serves all of it.
static Expr *by_arrays(HmcBlock *m, Expr *e)
{
    e = by_factors(&m->moving, e);
    ex_find(e, collect_inverse, m);
    return m->inverses ? ex_map(e, by_inverse, m) : e;
}

static Prepared *prepare(HmcBlock *m, const Factor *f)
{
    Lower *p = m->p;
    Prepared *r = NEW(p->g->arena, Prepared);
    r->f = *f;
    r->f.log_density = with_one_of_two(with_one_sign(m, moving_terms(m, f->log_density)));
    if (ex_is_num(r->f.log_density, 0)) return NULL;
    const Factor rows = r->f;
    const Loops l = f->plates;
    const Keys none = {0};
    Expr *h = hoist_sum(&p->statistics, &none, &l, r->f.log_density);
    if (h) {
        r->f.log_density = by_arrays(m, h);
        r->f.plates = (Loops){0};
        if (differentiate(m, r)) return r;
        r->f = rows;
    }
    r->f.log_density = by_arrays(m, r->f.log_density);
    if (!split_products(m, r)) {  // rows of products are computed after what is computed once
        r->f.log_density = compute_once(p, &m->moving, m->stem, &m->once, r->f.log_density, &r->f.plates);
        move_once(m);
    }
    if (!differentiate(m, r)) abort();  // the schedule has checked
    return r;
}

Prepared *prepare_all(HmcBlock *m)
{
    Prepared *first = NULL, **last = &first;
    for (int i = 0; i < m->update->nuts.n; i++) {
        Prepared *r = prepare(m, m->update->nuts.factor[i]);
        if (!r) continue;
        *last = r;
        last = &r->next;
    }
    // of a model that has been centred: modes are those of the model as written
    for (const Factor *f = m->p->g->written; f; f = f->next) {
        Factor here = *f;
        here.log_density = ex_mul2(local_ref(local_new(m->p->g->arena, "FOR_MODES")), f->log_density);
        bool varies = false;
        for (int i = 0; i < m->update->nblock; i++) varies |= ex_reads(f->log_density, m->update->block[i]);
        Prepared *r = varies ? prepare(m, &here) : NULL;
        if (!r) continue;
        *last = r;
        last = &r->next;
    }
    return first;
}
