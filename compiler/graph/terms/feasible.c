// feasible.c -- which factors a chain may start outside of.
//
//   normal(y[i] | mu, s)                finite wherever mu and s > 0 are: no
//   binomial(y[j, t] | n[j], p)         within(y[j, t], 0, n[j]): yes, if n[j] < y[j, t]
//   categorical(child | P[mother, ])    log(P[mother, child]), P data: yes, where it is 0
//   multi_normal(y[i] | m, [[a, r], [r, b]])    yes, where the matrix is not positive definite; it is asked once for all i
//
// The runtime looks at these factors before the first sweep (runtime/host/feasible.c). What data alone decide is no matter of the start,
// and factors that an augmentation made are not asked: auxiliaries are drawn before anything reads them.
#include <math.h>
#include "feasible.h"
#include "var.h"

static bool test_movable(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->kind == VAR_SERIES || (v->kind == VAR_DATA && v->response);
}

// May change between one start and another: an unknown, or a response, which may be missing.
static bool movable(const Expr *e) { return ex_any_var(e, test_movable, NULL); }

// Greater than 0 for every value in the supports. Data are taken to be what their place asks for, unless an unknown picks the element.
static bool above_zero(const Expr *e)
{
    if (!movable(e)) return true;
    if (e->size > MAX_TREE) return false;
    switch (e->kind) {
    case EX_NUM: return e->number > 0;
    case EX_INDEX: return true;
    case EX_REF:
        // data that an unknown looks up: may be a 0
        if (!var_unknown(e->var) && !e->var->response) return e->var->lower_number > 0;
        return e->var->discrete || e->var->base == BASE_INT ? e->var->lower_number > 0 : e->var->lower_number >= 0;
    case EX_ADD: {
        bool any = false;
        for (int i = 0; i < e->nargs; i++) {
            if (!ex_positive(e->args[i])) return false;
            any |= movable(e->args[i]) ? above_zero(e->args[i]) : e->args[i]->kind == EX_NUM && e->args[i]->number > 0;
        }
        return any;
    }
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (!above_zero(e->args[i])) return false;
        return true;
    case EX_POW: return above_zero(e->args[0]);
    case EX_CALL:
        return sign_positive(function_rows[e->fn].sign) || (e->fn == FN_if_else && above_zero(e->args[1]) && above_zero(e->args[2]));
    case EX_REDUCE: return above_zero(e->args[2]);
    case EX_ARRAY:
    case EX_AT: break;
    }
    return false;
}

// Less than 1, and not negative.
static bool below_one(const Expr *e)
{
    if (!movable(e)) return true;
    if (e->size > MAX_TREE) return false;
    switch (e->kind) {
    case EX_NUM: return e->number < 1;
    case EX_REF: return e->var->base == BASE_REAL && !e->var->discrete && e->var->lower_number >= 0 && e->var->upper_number <= 1;
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (!below_one(e->args[i]) && !(e->args[i]->kind == EX_NUM && e->args[i]->number == 1)) return false;
        return true;
    case EX_POW: {
        const Expr *x = e->args[0];
        const bool even =
            fmod(e->number, 2) == 0 && x->kind == EX_REF && x->var->lower_number >= -1 && x->var->upper_number <= 1 && !x->var->discrete;
        return e->number > 0 && (even || below_one(x));
    }
    case EX_CALL: return function_rows[e->fn].sign == SIGN_UNIT || (e->fn == FN_if_else && below_one(e->args[1]) && below_one(e->args[2]));
    case EX_INDEX:
    case EX_ADD:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return false;
}

static bool inside(const Expr *x, const Expr *lo, const Expr *hi)
{
    if (x->kind != EX_REF || (x->var->kind == VAR_DATA && !var_unknown(x->var))) return false;
    const bool above = lo->kind == EX_NUM && x->var->lower_number >= lo->number,
               below = hi->kind == EX_NUM && x->var->upper_number <= hi->number;
    return (above || ex_is_num(lo, -INFINITY)) && (below || ex_is_num(hi, INFINITY));
}

// Holds infinity(), or the log of 0 that a choice may give.
static Look test_infinity(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_NUM) return isfinite(e->number) ? SKIP : FOUND;
    return e->kind == EX_CALL && e->fn == FN_log && e->args[0]->kind == EX_NUM && e->args[0]->number <= 0 ? FOUND : LOOK;
}

static bool holds_infinity(const Expr *e) { return ex_find(e, test_infinity, NULL); }

// Whether an argument of a function is where this is finite: a letter of functions.def.
static bool in_domain(const Expr *e, char domain)
{
    switch (domain) {
    case 'r': return true;
    case 'p': return above_zero(e);
    case 'n': return ex_positive(e);
    case 'b': return below_one(e);
    case 'u': return above_zero(e) && below_one(e);
    default: return false;
    }
}

// Finite for all values in the supports.
static Look test_infinite(const Expr *e, void *with)
{
    (void)with;
    if (!movable(e)) return holds_infinity(e) ? FOUND : SKIP;
    switch (e->kind) {
    case EX_NUM:
    case EX_INDEX: return SKIP;
    case EX_REF: break;  // and its subscripts
    case EX_ADD:
    case EX_MUL:
    case EX_REDUCE: break;
    case EX_POW:
        if (e->number == floor(e->number) ? e->number < 0 && !above_zero(e->args[0])
                                          : !ex_positive(e->args[0]) || (e->number < 0 && !above_zero(e->args[0])))
            return FOUND;
        break;
    case EX_CALL:
        if (e->fn == FN_WITHIN) return inside(e->args[0], e->args[1], e->args[2]) ? SKIP : FOUND;
        for (int i = 0; i < e->nargs; i++)
            if (!in_domain(e->args[i], function_rows[e->fn].domain ? function_rows[e->fn].domain[i] : '-')) return FOUND;
        break;
    case EX_ARRAY:
    case EX_AT: return FOUND;
    }
    return LOOK;
}

static bool is_finite(const Expr *e) { return !ex_find(e, test_infinite, NULL); }

static Look test_array(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || e->kind == EX_ARRAY || ex_rank(e) > 0 ? FOUND : LOOK;
}
static bool test_unreadable(const Expr *e) { return ex_find(e, test_array, NULL); }

Vanishing factor_vanishing(const Factor *f)
{
    if (f->original || f->made || is_finite(f->log_density) || test_unreadable(f->log_density)) return VANISHES_NEVER;
    return ex_unknown(f->log_density) ? VANISHES : VANISHES_IF_MISSING;
}

// ---- factors with arrays, part by part ----

typedef struct FactorParts {
    Arena *arena;
    FactorPart *part;
    int n, size;
} FactorParts;

static void add_part(FactorParts *p, Expr *e)
{
    for (int i = 0; i < p->n; i++)
        if (p->part[i].log_density == e) return;
    ROOM(p->arena, p->part, p->n, p->size);
    p->part[p->n++] = (FactorPart){.log_density = e};
}

// Matrices that are drawn lie in their support wherever a chain starts, and products with them have a factor as a rule.
static bool test_matrix_drawn(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) && constraint_rank(v) == 2;
}

static bool test_auxiliary(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_AUXILIARY;
}

static bool has_factor(const Expr *e)
{
    return e->fn == FN_inverse || e->fn == FN_inverse_spd || e->fn == FN_log_determinant || e->fn == FN_cholesky_decompose;
}

// The same if rows and columns are exchanged.
static bool symmetric(Expr *matrix)
{
    Expr *i = ex_index(index_new("i", NULL, NULL)), *j = ex_index(index_new("j", NULL, NULL));
    if (ex_at(matrix, 2, (Expr *[]){i, j}) == ex_at(matrix, 2, (Expr *[]){j, i})) return true;
    enum { FEW = 20 };
    const Expr *n = ex_dim(matrix, 0);
    if (n->kind != EX_NUM || n->number > FEW || ex_dim(matrix, 1) != n) return false;
    for (int k = 2; k <= n->number; k++)
        for (int l = 1; l < k; l++)
            if (ex_at(matrix, 2, (Expr *[]){ex_num(k), ex_num(l)}) != ex_at(matrix, 2, (Expr *[]){ex_num(l), ex_num(k)})) return false;
    return true;
}

// Matrices whose factor or inverse e cannot do without, whatever else it reads. It can do without terms of a sum of densities,
// and without what a choice may leave out.
static void find_matrices(FactorParts *p, Expr *e)
{
    if (!movable(e) || e->size > MAX_TREE) return;
    switch (e->kind) {
    case EX_ADD:
    case EX_MUL:
    case EX_POW: break;
    case EX_AT: find_matrices(p, e->args[0]); return;
    case EX_REDUCE:
        if (e->fn == FN_log_sum_exp) return;
        break;
    case EX_CALL:
        if (e->fn == FN_if_else && ex_is_num(e->args[2], -INFINITY)) {
            find_matrices(p, e->args[1]);
            return;
        }
        if (has_factor(e)) {
            Expr *matrix = e->args[0];
            if (matrix->kind != EX_ARRAY || ex_rank(matrix) != 2 || e->loose) return;
            if (ex_any_var(matrix, test_matrix_drawn, NULL) || ex_any_var(matrix, test_auxiliary, NULL)) return;
            add_part(p, symmetric(matrix) ? ex_call1("inverse_spd", matrix) : e);
            return;
        }
        if (e->fn == FN_if_else || e->fn == FN_log_sum_exp || e->fn == FN_log_sum_exp2 || e->fn == FN_WITHIN) return;
        break;
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY: return;
    }
    for (int i = 0; i < e->nargs; i++) find_matrices(p, e->args[i]);
}

// What f runs over, without the indices that e does not read: of these the ranges have to be not empty.
static Loops plates_for(const Loops *l, const Expr *e)
{
    Loops out = {.guard = l->guard};
    bool kept[MAX_LOOPS];
    for (int i = l->n; i-- > 0;) {
        Index *x = l->index[i];
        kept[i] = l->n > MAX_LOOPS || ex_mentions_index(e, x) || (out.guard && ex_mentions_index(out.guard, x));
        for (int k = i + 1; k < l->n && !kept[i]; k++)
            kept[i] = kept[k] && (ex_mentions_index(l->index[k]->lo, x) || ex_mentions_index(l->index[k]->hi, x));
        if (!kept[i]) out.guard = ex_both(ex_call2("<=", x->lo, x->hi), out.guard);
    }
    for (int i = 0; i < l->n; i++)
        if (kept[i]) out.index[out.n++] = l->index[i];
    return out;
}

int factor_parts(Arena *a, const Factor *f, FactorPart **out)
{
    FactorParts p = {.arena = a};
    *out = NULL;
    if (f->replaced || is_finite(f->log_density) || !test_unreadable(f->log_density)) return 0;
    Expr *e = f->log_density;
    const int nterms = e->kind == EX_ADD ? e->nargs : 1;
    for (int i = 0; i < nterms; i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        if (test_unreadable(t)) find_matrices(&p, t);
        else if (!f->original && !f->made && !is_finite(t)) add_part(&p, t);
    }
    for (int i = 0; i < p.n; i++) {
        p.part[i].plates = plates_for(&f->plates, p.part[i].log_density);
        p.part[i].if_missing = !ex_unknown(p.part[i].log_density);
    }
    *out = p.part;
    return p.n;
}

// Within ends that are not those of all values that a missing element may start from.
static bool confines(const Expr *e)
{
    if (e->kind == EX_ADD) {
        for (int i = 0; i < e->nargs; i++)
            if (confines(e->args[i])) return true;
        return false;
    }
    if (e->kind != EX_CALL || e->fn != FN_WITHIN || e->args[0]->kind != EX_REF || !e->args[0]->var->response) return !is_finite(e);
    const Var *y = e->args[0]->var;
    const Expr *lo = e->args[1], *hi = e->args[2];
    return lo->kind != EX_NUM || hi->kind != EX_NUM || lo->number > y->lower_number || hi->number < y->upper_number;
}

bool factor_confines_missing(const Factor *f)
{
    return !f->original && f->observed && !test_unreadable(f->if_missing) && confines(f->if_missing);
}
