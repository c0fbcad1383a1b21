// gradient.c -- derivatives of a factor's log density by the elements of unknowns, by algebra.
//
//   before   -(y[i] - a - sum(j in 1:p, X[i, j]*b[j]))^2/(2*s^2) over i in 1:N
//   after    a       gets   w                over i             w = (y[i] - a - sum(j in 1:p, X[i, j]*b[j]))/s^2
//            b[j]    gets   w * X[i, j]      over i, j
//
// Reverse accumulation (Griewank and Walther 2008, Evaluating Derivatives, chapter 3): from the density down to its leaves each expression
// gets its adjoint, the derivative of the density by it. That is a sum over the expressions that it is part of: their adjoints times local
// derivatives. Expressions are shared, and parts are older than what they are part of: in the order from the youngest to the oldest
// an adjoint is complete when it is reached, and each is computed once. A sum is opened: its terms get its adjoint, for each value of its
// index; what does not depend on the index is brought out again, as the sum of what the terms gave it. Local derivatives of functions are
// the columns of device/functions.def. Definitions whose elements are computed from each other (series.c) stand in the block beside its
// unknowns, as arrays with an adjoint each: their statements, times the adjoint of the element that they compute, are differentiated like
// factors, which passes adjoints on to what the elements are made of.
//
// Needs: factors.     Gives: the terms of the derivatives, as expressions.     Keeps: the graph.     Algebra: docs/gradients.md
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gradient.h"
#include "../terms/var.h"
#include "../terms/reads.h"
#include "slopes.h"
#include "adjoints.h"

// ---- scopes: the factor's instance, and within it the sums that were opened ----

typedef struct Pending {
    Expr *at, *adjoint;
} Pending;

typedef struct Scope {
    struct Scope *outer;  // NULL: the instance
    Index *index;         // of the sum that was opened
    // the adjoint of what was opened, in the scope around; adjoints within are without it. NULL in the instance
    Expr *entry;
    int n, size;
    Pending *pending;  // expressions that have an adjoint and have not been looked at: seldom more than a few
} Scope;

typedef struct Opened {
    Index *outer, *index;
    Expr *lo, *hi;
    struct Opened *next;
} Opened;
typedef struct Elements {
    Expr *array;
    Index *index[MAX_RANK];
    struct Elements *next;
} Elements;

typedef struct Reverse {
    const Graph *g;
    const Factor *factor;
    Var *const *block;
    int nblock;
    uint64_t vars;       // bits of the variables that count
    Map reads;           // of an expression: whether it reads the block
    Opened *opened;      // one index for all sums over one range in one place, so that their terms can be merged
    Elements *elements;  // and one for all elements of an array
    Derivative *first, **last;
    const char *because;
} Reverse;

static bool in_block(const Reverse *r, const Var *v)
{
    for (int i = 0; i < r->nblock; i++)
        if (r->block[i] == v) return true;
    return false;
}

static bool reads_series(const Reverse *r, const Var *v)
{
    for (int i = 0; i < r->nblock && v->kind == VAR_SERIES; i++)
        if (series_reads(v->series, r->block[i])) return true;
    return false;
}

static bool reads(Reverse *r, const Expr *e)
{
    static char yes, no;
    if (!(e->vars & r->vars)) return false;
    if (e->var && (in_block(r, e->var) || reads_series(r, e->var))) return true;
    const void *known = map_get(&r->reads, e);
    if (known) return known == &yes;
    bool any = false;
    for (int i = 0; i < e->nargs && !any; i++) any = reads(r, e->args[i]);
    map_put(r->g->arena, &r->reads, e, any ? &yes : &no);
    return any;
}

static void give(Reverse *r, Scope *s, Expr *to, Expr *adjoint)
{
    if (ex_is_num(adjoint, 0) || !reads(r, to)) return;
    for (int i = 0; i < s->n; i++)
        if (s->pending[i].at == to) {
            s->pending[i].adjoint = adjoint_plus(s->pending[i].adjoint, adjoint);
            return;
        }
    ROOM(r->g->arena, s->pending, s->n, s->size);
    s->pending[s->n++] = (Pending){to, adjoint};
}

static Pending youngest(Scope *s)
{
    int best = 0;
    for (int i = 1; i < s->n; i++)
        if (s->pending[i].at->id > s->pending[best].at->id) best = i;
    const Pending p = s->pending[best];
    s->pending[best] = s->pending[--s->n];
    return p;
}

static bool name_taken(const Reverse *r, const Scope *s, const char *name)
{
    const Loops *p = &r->factor->plates;
    for (int i = 0; i < p->n; i++)
        if (p->index[i]->name == name) return true;
    for (; s; s = s->outer)
        if (s->index && s->index->name == name) return true;
    return map_get(&r->g->taken, name) != NULL;
}

// A name that nothing around has. Those of var_element are left to the elements that the derivatives are for.
static const char *free_name(const Reverse *r, const Scope *s, const char * not )
{
    static const char *const names[] = {"j", "i", "a", "b", "c", "h"};
    for (int k = 0;; k++) {
        const int round = k / 6;
        const char *name = intern(round ? arena_printf(r->g->arena, "%s%d", names[k % 6], round + 1) : names[k % 6]);
        if (name != not &&!name_taken(r, s, name)) return name;
    }
}

static Index *open_index(Reverse *r, const Scope *s, Expr *lo, Expr *hi)
{
    for (Opened *o = r->opened; o; o = o->next)
        if (o->outer == s->index && o->lo == lo && o->hi == hi) return o->index;
    Opened *o = NEW(r->g->arena, Opened);
    *o = (Opened){s->index, index_new(free_name(r, s, NULL), lo, hi), lo, hi, r->opened};
    r->opened = o;
    return o->index;
}

static Index *const *element_indices(Reverse *r, const Scope *s, Expr *array)
{
    for (Elements *e = r->elements; e; e = e->next)
        if (e->array == array) return e->index;
    Elements *e = NEW(r->g->arena, Elements);
    *e = (Elements){.array = array, .next = r->elements};
    for (int k = 0; k < ex_rank(array); k++)
        e->index[k] = index_new(free_name(r, s, k ? e->index[k - 1]->name : NULL), ex_num(1), ex_dim(array, k));
    r->elements = e;
    return e->index;
}

static void refuse(Reverse *r, const char *because)
{
    if (!r->because) r->because = because;
}

// ---- leaves ----

static Look test_unsafe(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_REF) return SKIP;
    return (e->kind == EX_POW && (e->number < 0 || e->number != floor(e->number))) || e->kind == EX_AT ||
                   (e->kind == EX_CALL && !(function_rows[e->fn].traits & TRAIT_BOUNDED))
               ? FOUND
               : LOOK;
}

static Expr *weight_of(const Scope *s)
{
    while (s->outer && s->outer->entry) s = s->outer;
    return s->entry;
}

// What the sums that were opened between the outermost and s multiply the weight with, before s multiplies it further; of the loops in
// `open` (from the innermost) it holds the indices of those from `*from` on.
static Expr *inner_of(const Scope *s, Index *const *open, int n, int *from)
{
    Expr *e = ex_num(1);
    for (; s->outer && s->outer->entry; s = s->outer) e = adjoint_times(s->entry, e);
    for (*from = 0; *from < n && !ex_mentions_index(e, open[*from]);) ++*from;
    return e;
}

static Expr *with_indices(Expr *e, Index *const *from, Index *const *to, int n)
{
    for (int k = 0; k < n; k++) e = ex_replace_index(e, from[k], ex_index(to[k]));
    return e;
}

// Added to a term of the same element over the same loops with the same weight; false: there is none.
static bool merged(Reverse *r, const Derivative *d)
{
    for (Derivative *q = r->first; q; q = q->next) {
        bool same = q->ref == d->ref && q->weight == d->weight && q->loops.n == d->loops.n;
        for (int i = 0; i < d->loops.n && same; i++) same = q->loops.index[i] == d->loops.index[i];
        if (!same) continue;
        q->rest = adjoint_plus(q->rest, d->rest);
        if (q->inner == d->inner && d->inner) q->last = adjoint_plus(q->last, d->last);
        else q->inner = NULL;
        if (!q->inner) {
            q->last = q->rest;
            q->ninner = 0;
        }
        return true;
    }
    return false;
}

// Terms of one element over the same loops with the same weight become one. A sum whose index the element does not have is a part of
// `rest`.
static void leaf(Reverse *r, Scope *s, Expr *ref, Expr *adjoint)
{
    Derivative d = {.factor = r->factor, .ref = ref, .weight = s->entry ? weight_of(s) : adjoint, .rest = s->entry ? adjoint : ex_num(1)};
    const Loops *p = &r->factor->plates;
    Index *open[MAX_LOOPS];
    int n = 0, kept = 0, from = 0;
    for (Scope *o = s; o; o = o->outer) {
        if (n + p->n == MAX_LOOPS) {
            refuse(r, "there are too many sums within each other");
            return;
        }
        if (o->index) open[n++] = o->index;  // from the innermost
    }
    d.last = d.rest;
    d.inner = s->entry ? inner_of(s, open, n, &from) : ex_num(1);
    d.rest = adjoint_times(d.inner, d.rest);
    Scope chain[MAX_LOOPS + 1] = {{0}};
    bool keep[MAX_LOOPS], all = true;
    for (int i = 0; i < n; i++) {
        keep[i] = ex_mentions_index(ref, open[i]);
        for (int k = 0; k < i; k++)
            keep[i] |= keep[k] && (ex_mentions_index(open[k]->lo, open[i]) || ex_mentions_index(open[k]->hi, open[i]));
        if (!keep[i]) d.rest = ex_reduce("sum", open[i], open[i]->lo, open[i]->hi, d.rest);
        all &= keep[i];
    }
    if (!all || from == n) d.inner = NULL;
    for (int i = n - 1; i >= 0; i--) {  // the others are named as if they had been opened alone
        if (!keep[i]) continue;
        Index *old = open[i], *new = old;
        if (kept < n - 1 - i) {
            Index *from[MAX_LOOPS] = {old}, *to[MAX_LOOPS] = {new = open_index(r, &chain[kept], old->lo, old->hi)};
            int renamed = 1;
            for (int k = i - 1; k >= 0; k--) {  // ranges of loops within hold those around them
                if (!keep[k]) continue;
                Expr *lo = with_indices(open[k]->lo, from, to, renamed), *hi = with_indices(open[k]->hi, from, to, renamed);
                if (lo == open[k]->lo && hi == open[k]->hi) continue;
                from[renamed] = open[k];
                to[renamed++] = open[k] = index_new(open[k]->name, lo, hi);
            }
            d.ref = with_indices(d.ref, from, to, renamed);
            d.rest = with_indices(d.rest, from, to, renamed);
        }
        chain[kept + 1] = (Scope){.outer = &chain[kept], .index = new};
        kept++;
    }
    d.loops.guard = p->guard;
    for (int i = 0; i < p->n; i++) d.loops.index[d.loops.n++] = p->index[i];
    for (int i = 1; i <= kept; i++) d.loops.index[d.loops.n++] = chain[i].index;
    d.ninner = d.inner ? d.loops.n - from : 0;
    if (all_partial(d.weight) && ex_find(d.rest, test_unsafe, NULL)) {
        d.rest = choice_of(when_chosen(d.weight), d.rest, ex_num(0));
        d.inner = NULL;
    }
    if (merged(r, &d)) return;
    if (!d.inner) d.last = d.rest;
    *r->last = arena_copy(r->g->arena, &d, sizeof d);
    r->last = &(*r->last)->next;
}

// ---- one expression: its adjoint times local derivatives goes to its parts ----

static void walk(Reverse *r, Scope *s);

static void product(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    Expr **rest = malloc(sizeof *rest * (size_t)e->nargs);
    for (int k = 0; k < e->nargs; k++) {
        if (!reads(r, e->args[k])) continue;
        int n = 0;
        Expr *zero = NULL;  // 0 log 0 = 0: the derivative of what a zero takes along is 0, too
        const bool pole = ex_has_pole(e->args[k]);
        for (int i = 0; i < e->nargs; i++)
            if (i != k) {
                rest[n++] = e->args[i];
                if (pole && ex_may_vanish(e->args[i])) zero = zero ? ex_mul2(zero, e->args[i]) : e->args[i];
            }
        Expr *others = ex_mul(n, rest);
        give(r, s, e->args[k], adjoint_times(adjoint, zero ? choice_of(ex_call2("==", zero, ex_num(0)), ex_num(0), others) : others));
    }
    free(rest);
}

// Where all terms of a sum are 0, none has a weight: log_sum_exp over -inf, -inf, ...
static Look test_impossible(const Expr *e, void *with)
{
    (void)with;
    return (e->kind == EX_NUM && isinf(e->number)) || (e->kind == EX_REF && e->var->kind == VAR_SERIES) ? FOUND : LOOK;
}

static bool may_be_impossible(const Expr *term) { return ex_has_pole(term) || ex_find(term, test_impossible, NULL); }

static Expr *where_possible(Expr *sum, Expr *term, Expr *slope)
{
    if (!may_be_impossible(term)) return slope;
    return choice_of(ex_call2("<", ex_num(-INFINITY), sum), slope, ex_num(0));
}

// Of x^y the derivative is x^y times y/x, and the coordinate log x takes x back. x^(y - 1) may overflow where x rounded to an end
// and its powers go by its logarithm.
static bool is_positive_unknown(const Expr *x)
{
    if (x->kind != EX_REF || !var_unknown(x->var) || x->var->discrete) return false;
    return x->var->lower_number >= 0 && x->var->constraint == CONSTRAINT_NONE;
}

static void call(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    const Slopes *slopes = r->g->slopes;
    if (e->fn == FN_if_else) {
        give(r, s, e->args[1], adjoint_where(e->args[0], adjoint, true));
        give(r, s, e->args[2], adjoint_where(e->args[0], adjoint, false));
        return;
    }
    if (e->fn == FN_log_determinant) {  // d log|A| = sum over a, b of inverse(A)[b, a] dA[a, b]
        Expr *A = e->args[0];
        Index *const *at = element_indices(r, s, A);
        give(r, s, A, adjoint_times(adjoint, ex_at(ex_call1("inverse", A), 2, (Expr *[]){ex_index(at[1]), ex_index(at[0])})));
        return;
    }
    for (int k = 0; k < e->nargs; k++) {
        if (!reads(r, e->args[k]) || (k < 3 && slopes->none[e->fn][k])) continue;
        if (k >= 3 || !slopes->of[e->fn][k]) {
            refuse(r, arena_printf(r->g->arena,
                                   e->nargs > 1 ? "no derivative of `%s` by its argument %d is known" : "no derivative of `%s` is known",
                                   e->name, k + 1));
            return;
        }
        Expr *slope = slope_at(slopes, slopes->of[e->fn][k], e->args);
        if (e->fn == FN_pow && k == 0 && is_positive_unknown(e->args[0])) slope = ex_mul2(ex_mul2(e->args[1], e), ex_pow(e->args[0], -1));
        if (e->fn == FN_log_sum_exp2 && may_be_impossible(e->args[0]) && may_be_impossible(e->args[1]))
            slope = where_possible(e, ex_add2(e->args[0], e->args[1]), slope);
        give(r, s, e->args[k], adjoint_times(adjoint, slope));
    }
}

static Look test_is(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }

static void reduction(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    if (reads(r, e->args[0]) || reads(r, e->args[1])) {
        refuse(r, "an unknown decides how many terms a sum has");
        return;
    }
    Index *j = open_index(r, s, e->args[0], e->args[1]);
    Expr *term = ex_open(e, j), *slope;
    if (e->fn == FN_sum) slope = ex_num(1);
    else if (e->fn == FN_log_sum_exp) slope = where_possible(e, term, ex_call1("exp", ex_sub(term, e)));
    else if (e->fn == FN_max || e->fn == FN_min) slope = ex_call2("==", term, e);  // of the one that it is
    // the product of the others: by division where no factor can be 0, or the adjoint divides by the product already
    else if (e->fn == FN_prod) {
        Expr *part = adjoint_times(adjoint, e);
        if (!ex_find(part, test_is, e)) {
            adjoint = part;
            slope = ex_pow(term, -1);
        } else if (ex_positive(term) && !ex_may_vanish(term)) slope = ex_div(e, term);
        else {
            Index *l = index_new(intern("l"), e->args[0], e->args[1]);
            slope =
                ex_reduce("prod", l, e->args[0], e->args[1], choice_of(ex_call2("==", ex_index(l), ex_index(j)), ex_num(1), ex_open(e, l)));
        }
    } else {
        refuse(r, arena_printf(r->g->arena, "no derivative of `%s` over many elements is known", e->name));
        return;
    }
    Scope in = {.outer = s, .index = j, .entry = adjoint};
    give(r, &in, term, slope);
    walk(r, &in);
}

// A whole array: its elements, each with the adjoint that is written in their indices.
static void elements(Reverse *r, Scope *s, Expr *array, Expr *adjoint)
{
    const int rank = ex_rank(array);
    Index *const *index = element_indices(r, s, array);
    Expr *at[MAX_RANK], *weight = ex_num(1), *rest = ex_num(1);
    const int n = adjoint->kind == EX_MUL ? adjoint->nargs : 1;
    for (int i = 0; i < n; i++) {
        Expr *factor = adjoint->kind == EX_MUL ? adjoint->args[i] : adjoint;
        bool own = false;
        for (int k = 0; k < rank; k++) own |= ex_mentions_index(factor, index[k]);
        if (own) rest = ex_mul2(rest, factor);
        else weight = ex_mul2(weight, factor);
    }
    Scope in[MAX_RANK];
    for (int k = 0; k < rank; k++) {
        at[k] = ex_index(index[k]);
        in[k] = (Scope){.outer = k ? &in[k - 1] : s, .index = index[k], .entry = k ? ex_num(1) : weight};
    }
    give(r, &in[rank - 1], ex_at(array, rank, at), rest);
    for (int k = rank - 1; k >= 0; k--) walk(r, &in[k]);
}

// An element of the solution of a differential equation: its inputs get the derivatives that the solver has integrated (ode.c).
static void solution(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    const char *why = NULL;
    const Ode *o = ode_of(r->g, e->args[0]);
    if (!o || !ode_differentiable(r->g, o, &why)) {
        refuse(r, why ? why : "no derivative of a solution that is not a definition is known");
        return;
    }
    Expr *at[MAX_RANK], *n = ex_dim(o->call, 1), *column = ex_num(0);
    const int rank = o->site->n + 1, last = rank - 1;
    memcpy(at, o->site->subscript, sizeof *at * (size_t)(rank - 3));
    at[rank - 3] = e->args[1];
    at[rank - 2] = e->args[2];
    for (int i = 0; i < o->ninputs; i++) {
        column = at[last] = ex_add2(column, ex_num(1));
        give(r, s, o->input[i], adjoint_times(adjoint, ex_ref(o->slopes, rank, at)));
    }
    for (int i = 0; i < o->narrays; i++) {
        Expr *whole = ex_ref(o->array[i], 0, NULL), *place = ex_num(0), *size = ex_num(1);
        Index *const *index = element_indices(r, s, whole);
        for (int k = 0; k < o->array[i]->rank; k++) {
            place = ex_add2(ex_mul2(place, o->array[i]->dim[k]), ex_sub(ex_index(index[k]), ex_num(1)));
            size = ex_mul2(size, o->array[i]->dim[k]);
        }
        at[last] = ex_add(3, (Expr *[]){column, place, ex_num(1)});
        give(r, s, whole, adjoint_times(adjoint, ex_ref(o->slopes, rank, at)));
        column = ex_add2(column, size);
    }
    if (!o->start_moves) return;
    for (int k = 1; n->kind == EX_NUM && k <= n->number; k++) {
        at[last] = ex_add2(column, ex_num(k));
        give(r, s, ex_at(o->start, 1, (Expr *[]){ex_num(k)}), adjoint_times(adjoint, ex_ref(o->slopes, rank, at)));
    }
    if (n->kind == EX_NUM) return;
    at[last] = ex_add2(column, ex_index(element_indices(r, s, o->start)[0]));
    give(r, s, o->start, adjoint_times(adjoint, ex_ref(o->slopes, rank, at)));
}

static void element(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    Expr *whole = e->args[0];
    for (int k = 1; k < e->nargs; k++)
        if (reads(r, e->args[k])) {
            refuse(r, "an unknown occurs in a subscript");
            return;
        }
    // d inverse(A)[j, k] = -sum over a, b of inverse(A)[j, a] dA[a, b] inverse(A)[b, k]
    if (whole->kind == EX_CALL && whole->fn == FN_inverse && e->nargs == 3) {
        Index *const *at = element_indices(r, s, whole->args[0]);
        Expr *left = ex_at(whole, 2, (Expr *[]){e->args[1], ex_index(at[0])}),
             *right = ex_at(whole, 2, (Expr *[]){ex_index(at[1]), e->args[2]});
        give(r, s, whole->args[0], adjoint_times(adjoint, ex_neg(ex_mul2(left, right))));
    } else if (whole->kind == EX_CALL && (whole->fn == FN_sort_asc || whole->fn == FN_sort_desc) && e->nargs == 2) {
        // d sort(v)[k] = dv[i], where i is the place of element k in order
        const char *places = whole->fn == FN_sort_asc ? "sort_indices_asc" : "sort_indices_desc";
        Index *const *at = element_indices(r, s, whole->args[0]);
        Expr *place = ex_at(ex_call1(places, whole->args[0]), 1, (Expr *[]){e->args[1]});
        give(r, s, whole->args[0], adjoint_times(adjoint, ex_call2("==", place, ex_index(at[0]))));
    } else if (whole->kind == EX_CALL && (whole->fn == FN_ode_rk45 || whole->fn == FN_ode_bdf) && e->nargs == 3) solution(r, s, e, adjoint);
    else if (whole->kind == EX_CALL && whole->fn == FN_cholesky_decompose && !stands_alone(whole))
        refuse(r, "the derivative of `cholesky_decompose` is known for a matrix that no loop changes, and that is not made of an inverse "
                  "or another factor");
    else refuse(r, arena_printf(r->g->arena, "no derivative of `%s` is known", whole->kind == EX_CALL ? whole->name : "an array"));
}

// x[i]*b, or x[i] times a sum, as a term of a sum in the instance: all terms have the weight of the sum, and x[i] goes to the rest. Not a
// number: -b has the weight of -sum.
static bool linear_term(Reverse *r, Scope *s, Expr *term, Expr *adjoint)
{
    if (term->kind != EX_MUL) return false;
    Expr *unknown = NULL, *others = ex_num(1), *number = ex_num(1);
    for (int i = 0; i < term->nargs; i++) {
        Expr *f = term->args[i];
        if (f->kind == EX_NUM) number = f;
        else if (!reads(r, f)) others = ex_mul2(others, f);
        else if (unknown) return false;
        else unknown = f;
    }
    if (!unknown || ex_is_num(others, 1) || (unknown->kind != EX_REF && (unknown->kind != EX_REDUCE || unknown->fn != FN_sum)) ||
        ex_has_pole(unknown))
        return false;
    Scope in = {.outer = s, .entry = adjoint_times(adjoint, number)};
    give(r, &in, unknown, others);
    walk(r, &in);
    return true;
}

static void visit(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    if (ex_rank(e) > 0) {
        elements(r, s, e, adjoint);
        return;
    }
    switch (e->kind) {
    case EX_REF:
        if (in_block(r, e->var)) leaf(r, s, e, adjoint);
        else if (reads_series(r, e->var))
            refuse(r,
                   arena_printf(r->g->arena, "`%s` is computed from its other elements, and no derivatives of such definitions are known",
                                e->var->name));
        else refuse(r, "an unknown occurs in a subscript");
        return;
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++)
            if (s->entry || adjoint->kind == EX_NUM || !reads(r, e->args[i]) || !linear_term(r, s, e->args[i], adjoint))
                give(r, s, e->args[i], adjoint);
        return;
    case EX_MUL: product(r, s, e, adjoint); return;
    case EX_POW:
        give(r, s, e->args[0], adjoint_times(adjoint_times(adjoint, ex_num(e->number)), ex_pow(e->args[0], e->number - 1)));
        return;
    case EX_CALL: call(r, s, e, adjoint); return;
    case EX_REDUCE: reduction(r, s, e, adjoint); return;
    case EX_AT: element(r, s, e, adjoint); return;
    case EX_NUM:
    case EX_INDEX:
    case EX_ARRAY: return;
    }
}

static void walk(Reverse *r, Scope *s)
{
    while (s->n && !r->because) {
        const Pending p = youngest(s);
        if (!s->index || ex_mentions_index(p.at, s->index)) {
            visit(r, s, p.at, p.adjoint);
            continue;
        }
        give(r, s->outer, p.at, adjoint_times(s->entry, ex_reduce("sum", s->index, s->index->lo, s->index->hi, p.adjoint)));
    }
}

// ---- right sides of differential equations ----

bool ode_derivatives(const Graph *g, const Ode *o, int k, Derivative **terms, const char **because)
{
    Factor *f = NEW(g->arena, Factor);
    *f = (Factor){.span = o->span, .log_density = o->component[k]};
    if (o->each) f->plates = (Loops){.n = 1, .index = {o->each}};
    Var **by = NEW_N(g->arena, Var *, o->narrays + 2);
    by[0] = o->state;
    by[1] = o->inputs;
    for (int i = 0; i < o->narrays; i++) by[2 + i] = o->array[i];
    return derivatives(g, f, by, o->narrays + 2, terms, because);
}

bool ode_differentiable(const Graph *g, const Ode *o, const char **because)
{
    const char *name = o->site->var->name;
    if (!o->slopes) {
        *because = arena_printf(g->arena, "`%s` is defined by several statements, or has too many dimensions", name);
        return false;
    }
    for (int k = 0; k < o->ncomponents; k++) {
        Derivative *terms;
        const char *why = NULL;
        if (ode_derivatives(g, o, k, &terms, &why)) continue;
        *because = arena_printf(g->arena, "in the right side of `%s`, %s", name, why);
        return false;
    }
    return true;
}

// What is nested deeper has derivatives that are far longer than itself: each level is written in those of all levels below it.
enum { MOST_CHOICES = 64, MOST_NESTED = 500 };

typedef struct Depth {
    int choices, all;
} Depth;

static const Depth *depth_of(const Graph *g, Map *known, const Expr *e)
{
    Depth *d = map_get(known, e);
    if (d) return d;
    d = NEW(g->arena, Depth);
    for (int i = 0; i < e->nargs; i++) {
        const Depth *below = depth_of(g, known, e->args[i]);
        if (below->choices > d->choices) d->choices = below->choices;
        if (below->all > d->all) d->all = below->all;
    }
    d->all++;
    d->choices += is_choice(e);
    map_put(g->arena, known, e, d);
    return d;
}

static const char *too_deep(const Graph *g, const Factor *f)
{
    if (f->log_density->size < MOST_CHOICES) return NULL;
    Map known = {0};
    const Depth *d = depth_of(g, &known, f->log_density);
    if (d->choices > MOST_CHOICES)
        return arena_printf(g->arena, "more than %d choices are nested, and derivatives are not written out beyond that", MOST_CHOICES);
    return d->all > MOST_NESTED
               ? arena_printf(g->arena, "more than %d operations are nested, and derivatives are not written out beyond that", MOST_NESTED)
               : NULL;
}

bool derivatives(const Graph *g, const Factor *f, Var *const *block, int nblock, Derivative **out, const char **because)
{
    Reverse r = {.g = g, .factor = f, .block = block, .nblock = nblock};
    r.last = &r.first;
    for (int i = 0; i < nblock; i++) r.vars |= 1ull << (block[i]->id & 63);
    for (int i = 0; i < g->nvars; i++)
        if (reads_series(&r, g->vars[i])) r.vars |= 1ull << (g->vars[i]->id & 63);
    Scope instance = {0};
    r.because = too_deep(g, f);
    if (!r.because) give(&r, &instance, f->log_density, ex_num(1));
    walk(&r, &instance);
    *out = r.because ? NULL : r.first;
    if (because) *because = r.because;
    return !r.because;
}
