// few_rows.c -- joint normals that are rows over a diagonal, so that few rows can be drawn by a small system.
//
//   before   beta[j]*beta[k]: -1/2*X[i,j]*X[i,k]/s^2 over i, j, k      beta[j]*beta[j]: -1/2/t^2 over j
//   after    rows over i in 1:N: weight 1/s^2, shift y[i]/s^2, entries beta[j]: X[i,j] over j;    the second term is the diagonal
//
// The precision is J = D + sum over rows of weight * phi phi', D diagonal and positive, and the rows' shift is sum of shift * phi. With
// fewer rows than coefficients the draw needs a matrix of rows by rows only (Bhattacharya, Chakraborty and Mallick 2016; gm_normal_rows).
// Which of the two is smaller is known when the data are read.
//
// Rows of a matrix of data may also be listed for the runtime as they are, with no matrix of their own. This is done where the matrix has
// few elements that are not 0 or many columns (runtime/backends/sparse.h).
//
// Needs: the terms of an update.     Gives: gaussian.rows of the update, or gaussian.no_rows, the reason why there are none.
#include <string.h>
#include "few_rows.h"
#include "../update.h"
#include "../terms/var.h"
#include "polynomial.h"

static bool test_moves(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->response || v->kind == VAR_SERIES || v->kind == VAR_DERIVED;
}

static bool moves(const Expr *e) { return e && ex_any_var(e, test_moves, NULL); }

bool has_pattern(const BlockTerm *terms)
{
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (moves(t->loops.guard)) return false;
        for (int i = 0; i < t->loops.n; i++)
            if (moves(t->loops.index[i]->lo) || moves(t->loops.index[i]->hi)) return false;
        for (int r = 0; r < t->degree; r++)
            for (int k = 0; k < t->ref[r]->nargs; k++)
                if (moves(t->ref[r]->args[k])) return false;
    }
    return true;
}

static bool in_block(const Expr *e, const Update *s)
{
    for (int i = 0; i < s->nblock; i++)
        if (ex_mentions(e, s->block[i])) return true;
    return false;
}

// The only factor whose quadratic terms couple different elements.
static const Factor *coupling_factor(const Update *s, const char **why)
{
    const Factor *f = NULL;
    *why = "no factor couples its elements";
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        if (t->degree != 2 || t->ref[0] == t->ref[1] || t->factor == f) continue;
        if (f) {
            *why = "two statements couple its elements";
            return NULL;
        }
        f = t->factor;
    }
    return f;
}

// ---- the diagonal ----

typedef struct Range {
    Expr *lo, *hi;
} Range;

// The elements for which a term adds something positive to the diagonal, if they are a box: a range in each dimension.
static bool positive_box(const BlockTerm *t, Range *box)
{
    if (t->degree != 2 || t->ref[0] != t->ref[1] || t->loops.guard || !ex_above_zero(ex_neg(t->coefficient))) return false;
    int used = 0;
    for (int k = 0; k < t->ref[0]->nargs; k++) {
        Expr *at = t->ref[0]->args[k];
        box[k] = (Range){at, at};
        if (at->kind == EX_NUM) continue;
        if (at->kind != EX_INDEX) return false;
        for (int m = 0; m < k; m++)
            if (t->ref[0]->args[m] == at) return false;
        int found = 0;
        for (int m = 0; m < t->loops.n; m++) {
            found += t->loops.index[m] == at->index;
            if (ex_mentions_index(at->index->lo, t->loops.index[m]) || ex_mentions_index(at->index->hi, t->loops.index[m])) return false;
        }
        used += found;
        box[k] = (Range){at->index->lo, at->index->hi};
    }
    return used == t->loops.n;  // a further sum might be empty
}

// Does every element of v have a proper prior of its own? Ranges of a vector may follow each other: 1, then 2:p.
static bool has_diagonal(const Update *s, const BlockTerm *rows, const Var *v)
{
    Expr *next = ex_num(1);
    for (bool more = true; more;) {
        more = false;
        for (const BlockTerm *t = s->gaussian.terms; t && !more; t = t->next) {
            Range box[MAX_RANK];
            if (t->factor == rows->factor || t->ref[0]->var != v || !positive_box(t, box)) continue;
            bool all = true;
            for (int k = 0; k < v->rank; k++) all &= ex_is_num(box[k].lo, 1) && box[k].hi == v->dim[k];
            if (all) return true;
            if (v->rank != 1 || box[0].lo != next) continue;
            if (box[0].hi == v->dim[0]) return true;
            next = ex_add2(box[0].hi, ex_num(1));
            more = !ex_is_num(ex_sub(next, box[0].lo), 0);
        }
    }
    return false;
}

// ---- a row ----

// b by a, if the terms of b are those of a times one number.
static Expr *ratio(const Terms *b, const Terms *a)
{
    Expr *q = NULL;
    int matched = 0;
    for (int k = 0; k < b->n; k++) {
        const Term *t = &b->term[k];
        if (t->degree != 1) continue;
        bool found = false;
        for (int m = 0; m < a->n && !found; m++) {
            const Term *u = &a->term[m];
            if (u->degree != 1 || u->loops.n != t->loops.n) continue;
            Expr *ref = t->ref[0], *c = t->coefficient;
            bool same = true;
            for (int i = 0; i < t->loops.n && same; i++) {
                Index *from = t->loops.index[i], *to = u->loops.index[i];
                same = from->lo == to->lo && from->hi == to->hi;
                ref = ex_replace_index(ref, from, ex_index(to));
                c = ex_replace_index(c, from, ex_index(to));
            }
            if (!same || ref != u->ref[0]) continue;
            Expr *one = ex_div(c, u->coefficient);
            for (int i = 0; i < u->loops.n; i++)
                if (ex_mentions_index(one, u->loops.index[i])) return NULL;
            if (q && q != one) return NULL;
            q = one;
            found = true;
            matched++;
        }
        if (!found) return NULL;
    }
    for (int m = 0; m < a->n; m++) matched -= a->term[m].degree == 1;
    return matched == 0 ? q : NULL;
}

static bool begins_minus(const Expr *e)
{
    if (e->kind == EX_MUL) e = e->args[0];
    return e->kind == EX_NUM && e->number < 0;
}

// Whether e is 0 wherever the weight may be: a row is given as a place, shift/weight, and a weight of 0 gives none.
static bool vanishes_with(Expr *e, Expr *weight)
{
    if (ex_is_num(e, 0)) return true;
    for (int i = 0; i < (weight->kind == EX_MUL ? weight->nargs : 1); i++) {
        Expr *part = weight->kind == EX_MUL ? weight->args[i] : weight;
        if (ex_above_zero(part)) continue;
        if (part->kind == EX_POW) part = part->args[0];
        if (!ex_is_num(ex_replace(e, part, ex_num(0)), 0)) return false;
    }
    return true;
}

// The log density of a row as -weight/2 eta^2 + shift eta + constant, with one linear predictor eta: its squares are of one sum c + eta,
// and what is linear beside them is a multiple of eta.
static const char *take_row(Graph *g, const Update *s, const Factor *f, Rows *r)
{
    Unknowns in = {s->block, s->nblock, false};
    Expr *e = f->log_density, *base = NULL, *quadratic = ex_num(0), *rest = ex_num(0);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e, *square = NULL;
        if (!in_block(t, s)) continue;
        int mention = 0;
        for (int k = 0; k < (t->kind == EX_MUL ? t->nargs : 1); k++) {
            Expr *part = t->kind == EX_MUL ? t->args[k] : t;
            if (!in_block(part, s)) continue;
            mention++;
            if (part->kind == EX_POW && part->number == 2) square = part;
        }
        if (mention != 1 || !square) {
            rest = ex_add2(rest, t);
            continue;
        }
        if (base && base != square->args[0]) return "a row holds two squares";
        base = square->args[0];
        quadratic = ex_add2(quadratic, ex_div(t, square));
    }
    if (!base) return "its quadratic part is not a square";
    Terms eta = polynomial(g->arena, base, &in, 1), more = polynomial(g->arena, rest, &in, 1);
    if (eta.failed || more.failed) return "its quadratic part is not the square of one linear predictor";
    Expr *constant = ex_num(0), *linear = ex_num(0);
    bool beside = false;
    for (int k = 0; k < eta.n; k++)
        if (eta.term[k].degree == 0) constant = ex_add2(constant, eta.term[k].coefficient);
    for (int k = 0; k < more.n; k++) beside |= more.term[k].degree == 1;
    if (beside) linear = ratio(&more, &eta);
    if (!linear) return "a row is linear in something else than its predictor";
    r->weight = ex_mul2(ex_num(-2), quadratic);
    r->shift = ex_sub(linear, ex_mul2(r->weight, constant));
    if (!ex_positive(r->weight)) return "the weight of a row is not known to be positive";
    if (!vanishes_with(linear, r->weight)) return "where the weight of a row is 0, what is linear in it may not be";
    bool flip = false, first = true;
    BlockTerm **last = &r->phi;
    for (int k = 0; k < eta.n; k++) {
        Term *t = &eta.term[k];
        if (t->degree != 1) continue;
        if (first) flip = begins_minus(t->coefficient);
        first = false;
        *last = NEW(g->arena, BlockTerm);
        **last = (BlockTerm){.degree = 1,
                             .ref = {t->ref[0]},
                             .coefficient = flip ? ex_neg(t->coefficient) : t->coefficient,
                             .loops = t->loops,
                             .factor = f,
                             .span = f->span};
        take_chosen(*last);
        last = &(*last)->next;
    }
    if (flip) r->shift = ex_neg(r->shift);
    return NULL;
}

Rows *factor_rows(Graph *g, Var *const *block, int n, const Factor *f)
{
    const Update s = {.block = (Var **)block, .nblock = n};
    Rows *r = NEW(g->arena, Rows);
    *r = (Rows){.name = block[0]->name, .factor = f};
    return take_row(g, &s, f, r) ? NULL : r;
}

// How many rows: the plates are a box of sizes.
static Expr *row_count(const Factor *f)
{
    Expr *n = ex_num(1);
    for (int i = 0; i < f->plates.n; i++) {
        const Index *k = f->plates.index[i];
        if (!ex_is_num(k->lo, 1) || !(k->hi->kind == EX_NUM || (k->hi->kind == EX_REF && k->hi->nargs == 0 && !ex_unknown(k->hi))))
            return NULL;
        n = ex_mul2(n, k->hi);
    }
    return n;
}

const Var *matrix_of_entries(const BlockTerm *t)
{
    const Expr *c = t->coefficient, *ref = t->ref[0];
    if (t->loops.n != 1 || t->loops.guard || c->kind != EX_REF || c->nargs != 2 || c->var->kind != VAR_DATA || c->var->response ||
        c->var->base != BASE_REAL || ref->nargs != 1)
        return NULL;
    const Index *j = t->loops.index[0];
    const bool whole = ref->args[0] == ex_index((Index *)j) && c->args[1] == ref->args[0] && !ex_mentions_index(c->args[0], j) &&
                       ex_is_num(j->lo, 1) && j->hi == c->var->dim[1];
    return whole ? c->var : NULL;
}

// Rows that are long, and given as rows of matrices.
static bool may_be_listed(const Update *s, const Rows *r)
{
    bool any = false;
    if (s->does != DRAWS || !has_pattern(s->gaussian.terms)) return false;
    for (const BlockTerm *t = r->phi; t; t = t->next) {
        if (t->loops.n && !matrix_of_entries(t)) return false;
        any |= t->loops.n > 0;
    }
    return any;
}

void find_rows(Graph *g, Update *s)
{
    if (s->gaussian.nbatch || s->gaussian.arrow) return;
    const Factor *f = coupling_factor(s, &s->gaussian.no_rows);
    if (!f) return;
    Rows *r = NEW(g->arena, Rows);
    *r = (Rows){.name = s->block[0]->name, .factor = f, .count = row_count(f), .size = ex_num(0)};
    for (int i = 0; i < s->nblock; i++) {
        Expr *n = ex_num(1);
        for (int k = 0; k < s->block[i]->rank; k++) n = ex_mul2(n, s->block[i]->dim[k]);
        r->size = ex_add2(r->size, n);
    }
    s->gaussian.no_rows = "its rows are not counted by sizes alone";
    if (!r->count) return;
    s->gaussian.no_rows = arena_printf(g->arena, "its rows run over more than %d indices", MAX_RANK);
    if (f->plates.n > MAX_RANK) return;
    Expr *excess = ex_sub(r->count, r->size);
    s->gaussian.no_rows = "it has never fewer rows than coefficients";
    if (excess->kind == EX_NUM && excess->number >= 0) return;
    s->gaussian.no_rows = "it has few coefficients, however many rows";
    if (r->size->kind == EX_NUM && r->count->kind != EX_NUM && r->size->number < 32) return;
    s->gaussian.no_rows = take_row(g, s, f, r);
    for (int i = 0; i < s->nblock && !s->gaussian.no_rows; i++)
        if (!has_diagonal(s, r->phi, s->block[i]))
            s->gaussian.no_rows = arena_printf(g->arena, "not every element of `%s` has a proper prior of its own", s->block[i]->name);
    if (s->gaussian.no_rows) return;
    s->gaussian.rows = r;
    if (may_be_listed(s, r)) r->listed = ++g->njoint;
}
