// ranges.c -- between which numbers an expression lies, and whether it can be negative, whatever its unknowns are.
//
//   exp(a)*E[i]             E declared from 0: not negative
//   c + (1 - c)*g           c and g between 0 and 1: affine in c, so that its ends are those at c = 0, g, and at c = 1, 1
//   1 - p[k]/sum(j, p[j])   times the sum, which is positive: the other terms of the sum
//
// Declared bounds, and the supports of distributions, are what is known of variables. Interval arithmetic (Moore 1966) takes each
// occurrence of a variable for one of its own; never_negative looks closer.
#include <math.h>
#include "ranges.h"

static double times(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }

// Functions that rise, or fall, wherever they are defined.
static void range_by_slope(const Expr *e, double *lo, double *hi)
{
    double l, h, least = -INFINITY, most = INFINITY;
    range_of(e->args[0], &l, &h);
    switch ((int)e->fn) {
    case FN_exp:
        least = exp(l);
        most = exp(h);
        break;
    case FN_expm1:
        least = expm1(l);
        most = expm1(h);
        break;
    case FN_log:
        if (l > 0) least = log(l);
        if (h > 0) most = log(h);
        break;
    case FN_log1p:
        if (l > -1) least = log1p(l);
        if (h > -1) most = log1p(h);
        break;
    case FN_log1m:
        if (h < 1) least = log1p(-h);
        if (l < 1) most = log1p(-l);
        break;
    default: return;
    }
    if (least > *lo) *lo = least;
    if (most < *hi) *hi = most;
}

static void range_of_call(const Expr *e, double *lo, double *hi)
{
    double l, h;
    const FunctionRow *row = &function_rows[e->fn];
    if (row->sign == SIGN_UNIT || (row->traits & TRAIT_YES_NO)) {
        *lo = 0;
        *hi = 1;
    } else if (row->sign == SIGN_NOT_NEGATIVE) *lo = 0;
    else if (row->sign == SIGN_NOT_POSITIVE) *hi = 0;
    if (e->nargs == 1) range_by_slope(e, lo, hi);
    if (e->fn == FN_if_else || e->fn == FN_fmin || e->fn == FN_fmax) {
        range_of(e->args[e->nargs - 2], lo, hi);
        range_of(e->args[e->nargs - 1], &l, &h);
        *lo = e->fn == FN_fmax ? fmax(*lo, l) : fmin(*lo, l);
        *hi = e->fn == FN_fmin ? fmin(*hi, h) : fmax(*hi, h);
    }
    if (e->fn == FN_pow) {  // a power of what lies between 0 and 1
        range_of(e->args[0], &l, &h);
        double first, last;
        range_of(e->args[1], &first, &last);
        if (l >= 0 && h <= 1 && first >= 0) {
            *lo = 0;
            *hi = 1;
        }
    }
}

// The rest of a product with an element of a simplex, sum(k in 1:K, theta[k]*q[k]): NULL if the sum is not of all of them.
static bool is_average(const Expr *e, const Expr **simplex)
{
    const Expr *body = e->args[2];
    for (int i = 0; i < (body->kind == EX_MUL ? body->nargs : 1); i++) {
        const Expr *r = body->kind == EX_MUL ? body->args[i] : body;
        if (r->kind != EX_REF || r->var->constraint != CONSTRAINT_SIMPLEX || r->nargs != r->var->rank || !ex_is_num(e->args[0], 1) ||
            e->args[1] != r->var->dim[r->nargs - 1])
            continue;
        const Expr *last = r->args[r->nargs - 1];
        if (last->kind == EX_INDEX && last->index == e->index) {
            *simplex = r;
            return true;
        }
    }
    return false;
}

static void range_of_product(const Expr *e, const Expr *but, double *lo, double *hi)
{
    double l, h;
    *lo = *hi = 1;
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        const Expr *x = e->kind == EX_MUL ? e->args[i] : e;
        if (x == but) continue;
        range_of(x, &l, &h);
        const double ends[4] = {times(*lo, l), times(*lo, h), times(*hi, l), times(*hi, h)};
        *lo = fmin(fmin(ends[0], ends[1]), fmin(ends[2], ends[3]));
        *hi = fmax(fmax(ends[0], ends[1]), fmax(ends[2], ends[3]));
    }
}

static void range_of_reduction(const Expr *e, double *lo, double *hi)
{
    double l, h;
    const Expr *simplex = NULL;
    if (e->fn == FN_sum && is_average(e, &simplex)) {
        range_of_product(e->args[2], simplex, lo, hi);
        return;
    }
    range_of(e->args[2], &l, &h);
    if (e->fn == FN_min || e->fn == FN_max) {
        *lo = l;
        *hi = h;
    }
    if (e->fn == FN_prod && l >= 0 && h <= 1) {
        *lo = 0;
        *hi = 1;
    }
    if ((e->fn == FN_sum || e->fn == FN_prod) && l >= 0 && *lo < 0) *lo = 0;
    if (e->fn == FN_sum && h <= 0) *hi = 0;
}

// The diagonal of a covariance matrix, of its inverse, and of a Cholesky factor is positive.
static bool on_diagonal(const Expr *e)
{
    static const Constraint with[] = {CONSTRAINT_COVARIANCE, CONSTRAINT_CORRELATION, CONSTRAINT_CHOLESKY_COV, CONSTRAINT_CHOLESKY_CORR};
    const int rank = e->kind == EX_REF ? e->nargs : e->nargs - 1;
    if (rank < 2 || e->args[e->nargs - 1] != e->args[e->nargs - 2]) return false;
    if (e->kind == EX_AT) {
        const Expr *of = e->args[0];
        return of->kind == EX_CALL &&
               (of->fn == FN_cholesky_decompose || ((of->fn == FN_inverse || of->fn == FN_inverse_spd) && of->args[0]->kind == EX_REF &&
                                                    of->args[0]->var->constraint == CONSTRAINT_COVARIANCE));
    }
    for (int i = 0; i < (int)(sizeof with / sizeof *with); i++)
        if (e->kind == EX_REF && e->nargs == e->var->rank && e->var->constraint == with[i]) return true;
    return false;
}

void range_of(const Expr *e, double *lo, double *hi)
{
    double l, h;
    *lo = ex_positive(e) ? 0 : -INFINITY;
    *hi = INFINITY;
    if (e->size > MAX_TREE) return;
    switch (e->kind) {
    case EX_NUM: *lo = *hi = e->number; break;
    case EX_REF:
        if (e->var->lower_number > *lo) *lo = e->var->lower_number;
        *hi = e->var->upper_number;
        if (*lo < 0 && on_diagonal(e)) *lo = 0;
        break;
    case EX_ADD:
        *lo = *hi = 0;
        for (int i = 0; i < e->nargs; i++) {
            range_of(e->args[i], &l, &h);
            *lo += l;
            *hi += h;
        }
        break;
    case EX_MUL:
        range_of_product(e, NULL, &l, &h);
        if (l > *lo) *lo = l;
        *hi = h;
        break;
    case EX_CALL: range_of_call(e, lo, hi); break;
    case EX_POW:
        range_of(e->args[0], &l, &h);
        if (e->number == floor(e->number) && fmod(e->number, 2) == 0) {
            *lo = 0;
            if (l < 0 && e->number > 0) *hi = pow(fmax(-l, h), e->number);
        }
        if (l < 0) break;
        *lo = e->number > 0 ? pow(l, e->number) : isinf(h) ? 0 : pow(h, e->number);
        *hi = e->number > 0 ? pow(h, e->number) : l == 0 ? INFINITY : pow(l, e->number);
        break;
    case EX_REDUCE: range_of_reduction(e, lo, hi); break;
    case EX_AT:
        if (on_diagonal(e)) *lo = 0;
        break;
    case EX_INDEX:
    case EX_ARRAY: break;
    }
}

// ---- a closer look ----

enum { MOST_PARTS = 300, MOST_ENDS = 4 };  // of an expression that is looked at; of variables at whose ends it is

static bool not_negative(Expr *e, int ends);

static Look test_same(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }
static bool holds(const Expr *e, const Expr *x) { return ex_find(e, test_same, (void *)x); }

static bool affine_in(const Expr *e, const Expr *x)
{
    if (e == x || !holds(e, x)) return true;
    int holding = 0;
    switch (e->kind) {
    case EX_ADD:
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++) {
            holding += holds(e->args[i], x);
            if (!affine_in(e->args[i], x)) return false;
        }
        return e->kind == EX_ADD || holding == 1;
    case EX_CALL: return e->fn == FN_if_else && !holds(e->args[0], x) && affine_in(e->args[1], x) && affine_in(e->args[2], x);
    default: return false;
    }
}

// e is affine in x: least, and largest, at an end of x; where one end is open, it must rise towards it.
static bool not_negative_at_ends(Expr *e, Expr *x, int ends)
{
    double l, h;
    range_of(x, &l, &h);
    if (isinf(l) || !affine_in(e, x)) return false;
    Expr *at = ex_replace(e, x, ex_num(l));
    if (!not_negative(at, ends - 1)) return false;
    return isfinite(h) ? not_negative(ex_replace(e, x, ex_num(h)), ends - 1)
                       : not_negative(ex_sub(ex_replace(e, x, ex_num(l + 1)), at), ends - 1);
}

// What stands in several terms of a sum, and lies above some number.
typedef struct Shared {
    const Expr *sum;
    Expr *found[MOST_ENDS];
    int n;
} Shared;

static Look test_shared(const Expr *e, void *with)
{
    Shared *s = with;
    const bool atom = e->kind == EX_REF || (e->kind == EX_CALL && function_rows[e->fn].sign == SIGN_UNIT);
    if (!atom) return LOOK;
    double l, h;
    range_of(e, &l, &h);
    int terms = 0;
    for (int i = 0; i < s->sum->nargs; i++) terms += holds(s->sum->args[i], e);
    if (terms > 1 && isfinite(l) && !e->loose && s->n < MOST_ENDS) s->found[s->n++] = (Expr *)e;
    return SKIP;
}

// What may stand in for a product of numbers between 0 and 1 that no loop changes: one of them, the first or the last, which the rest of
// the sum reads, too.
typedef struct Bounded {
    Expr *sum, *product, *factor;
} Bounded;

static Look test_factor(const Expr *e, void *with)
{
    Bounded *b = with;
    if (e == b->product) return SKIP;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        if (e->args[k] != b->product->args[0] && e->args[k] != b->product->args[1]) continue;
        Index *fresh = index_new("j", NULL, NULL);
        b->factor = ex_replace_index(ex_open(b->product, fresh), fresh, e->args[k]);
        if (holds(b->factor, e)) return FOUND;
    }
    return LOOK;
}

static Look test_product(const Expr *e, void *with)
{
    Bounded *b = with;
    if (e->kind != EX_REDUCE || e->fn != FN_prod || e->loose) return LOOK;
    double l, h;
    range_of(e->args[2], &l, &h);
    b->product = (Expr *)e;
    return l >= 0 && h <= 1 && affine_in(b->sum, e) && ex_find(b->sum, test_factor, b) ? FOUND : LOOK;
}

// e is affine in such a product, which lies between 0 and its factor.
static bool not_negative_by_factor(Expr *e, int ends)
{
    Bounded b = {.sum = e};
    return ex_find(e, test_product, &b) && not_negative(ex_replace(e, b.product, ex_num(0)), ends - 1) &&
           not_negative(ex_replace(e, b.product, b.factor), ends - 1);
}

static Look test_exponential(const Expr *e, void *with)
{
    Bounded *b = with;
    if (e->kind != EX_CALL || e->fn != FN_exp || e->loose) return LOOK;
    b->product = (Expr *)e;
    return affine_in(b->sum, e) ? FOUND : SKIP;
}

// e is affine in the exponential of what is never positive: softmax(x)[k].
static bool not_negative_by_exponential(Expr *e, int ends)
{
    Bounded b = {.sum = e};
    return ex_find(e, test_exponential, &b) && not_negative(ex_neg(b.product->args[0]), ends - 1) &&
           not_negative(ex_replace(e, b.product, ex_num(0)), ends - 1) && not_negative(ex_replace(e, b.product, ex_num(1)), ends - 1);
}

// x is the body of the reduction for one value of its index, which stands in a subscript of x.
typedef struct Instance {
    const Expr *reduction, *x;
} Instance;

static Look test_instance(const Expr *e, void *with)
{
    const Instance *in = with;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        Index *fresh = index_new("j", NULL, NULL);
        if (ex_replace_index(ex_open(in->reduction, fresh), fresh, e->args[k]) == in->x) return FOUND;
    }
    return LOOK;
}

static bool is_instance(const Expr *x, const Expr *reduction) { return ex_find(x, test_instance, &(Instance){reduction, x}); }

static Expr *without(const Expr *sum, int i, int k)
{
    Expr *rest = ex_num(0);
    for (int t = 0; t < sum->nargs; t++)
        if (t != i && t != k) rest = ex_add2(rest, sum->args[t]);
    return rest;
}

// Two terms whose sum is known: one term of a sum of what is not negative, or all but the last one, taken from the sum; log(exp(a) +
// exp(b)) - a.
static bool not_negative_by_pair(const Expr *e, int ends)
{
    for (int i = 0; i < e->nargs; i++) {
        Expr *r = e->args[i];
        const bool sum = r->kind == EX_REDUCE && r->fn == FN_sum,
                   log_sum = (r->kind == EX_REDUCE && r->fn == FN_log_sum_exp) || (r->kind == EX_CALL && r->fn == FN_log_sum_exp2);
        for (int k = 0; (sum || log_sum) && k < e->nargs; k++) {
            if (k == i) continue;
            Expr *x = ex_neg(e->args[k]);
            bool less = r->kind == EX_CALL ? x == r->args[0] || x == r->args[1] : is_instance(x, r) && (log_sum || ex_positive(r->args[2]));
            const bool longer = sum && x->kind == EX_REDUCE && x->fn == FN_sum && x->args[2] == r->args[2] && x->args[0] == r->args[0];
            if (longer) less = ex_positive(r->args[2]) && ex_positive(ex_sub(r->args[1], x->args[1]));
            if (less && not_negative(without(e, i, k), ends)) return true;
        }
    }
    return false;
}

// The terms times a sum that one of them is divided by.
static bool not_negative_times(const Expr *e, int ends)
{
    for (int i = 0; i < e->nargs; i++)
        for (int k = 0; k < (e->args[i]->kind == EX_MUL ? e->args[i]->nargs : 1); k++) {
            const Expr *p = e->args[i]->kind == EX_MUL ? e->args[i]->args[k] : e->args[i];
            if (p->kind != EX_POW || p->number >= 0 || (p->args[0]->kind != EX_ADD && p->args[0]->kind != EX_REDUCE) ||
                !ex_positive(p->args[0]))
                continue;
            Expr *all = ex_num(0);
            for (int t = 0; t < e->nargs; t++) all = ex_add2(all, ex_mul2(e->args[t], ex_pow(p->args[0], -p->number)));
            if (not_negative(all, ends - 1)) return true;
        }
    return false;
}

static bool not_negative(Expr *e, int ends)
{
    double l, h;
    range_of(e, &l, &h);
    if (l >= 0) return true;
    if (ends <= 0 || e->size > MOST_PARTS) return false;
    if (e->kind == EX_CALL && e->fn == FN_if_else) return not_negative(e->args[1], ends) && not_negative(e->args[2], ends);
    if (e->kind == EX_MUL) {
        for (int i = 0; i < e->nargs; i++)
            if (!not_negative(e->args[i], ends - 1)) return false;
        return true;
    }
    if (e->kind == EX_POW) return not_negative(e->args[0], ends - 1);
    if (e->kind == EX_REDUCE && e->fn == FN_sum) return not_negative(e->args[2], ends - 1);
    if (e->kind != EX_ADD) return false;
    if (not_negative_by_pair(e, ends) || not_negative_times(e, ends) || not_negative_by_factor(e, ends) ||
        not_negative_by_exponential(e, ends))
        return true;
    Shared shared = {.sum = e};
    for (int i = 0; i < e->nargs; i++) ex_find(e->args[i], test_shared, &shared);
    for (int i = 0; i < shared.n; i++)
        if (not_negative_at_ends(e, shared.found[i], ends)) return true;
    return false;
}

bool never_negative(Expr *e) { return not_negative(e, MOST_ENDS); }
