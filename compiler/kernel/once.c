// once.c -- what the loops of a density would compute again and again: once, into an array, before them.
//
//   before   sum(m in 1:M, X[n, m]*exp(-l*w[m])*z[m]) over n in 1:N        N*M exponentials
//   after    once[m] = exp(-l*w[m])*z[m] over m in 1:M                     M
//            sum(m in 1:M, X[n, m]*once[m]) over n in 1:N                  a matrix times a vector, which row passes and products are for
//            (rows.c, products.c)
//
// So is what a function within a sum reads, if several unknowns enter it: the derivative by each would need the function of every term
// again, and is linear in the derivative by the term now.
//
//   before   sum(q in 1:Q, w[q]*exp(a + b[i] + c*x[i, q])) over i in 1:N      as many exponentials of each term as unknowns enter it
//   after    once[i, q] = a + b[i] + c*x[i, q] over i, q                      two
//            sum(q in 1:Q, w[q]*exp(once[i, q])) over i in 1:N
//
// So is a sum that ends at the index of another one around it, sum(k in 1:K, exp(sum(j in 1:k, x[n, j]))).
//
// What no loop changes, and what changes with the outer loops alone, is computed outside of the others already (outside.c); here it is what
// changes with an inner loop but not with one around it. Factors of a product, and terms of a sum, that run over the same indices are taken
// together.
//
// Needs: graph/algebra/gradient.c.     Gives: the expression with elements of arrays in it, and the arrays. Their derivatives are those of
// any definition (Moving, graph.h). Keeps: what is within a choice, since it may not exist elsewhere; what may be infinite where a
// factor beside it is 0; elements that are looked up.
#include "lower.h"

typedef struct Taking {
    Lower *p;
    const Moving *moving;
    const char *stem;
    Once **list;
    const Expr *guard;
    bool added;  // terms of a log_sum_exp: nothing that may be 0 multiplies what may be infinite
    bool sums;   // no reduction around it but sums
    int plates, n;
    Index *around[MAX_LOOPS];  // from the outermost: plates, then what is summed over
} Taking;

static Expr *take(Taking *t, Expr *e);

static bool reads(const Taking *t, const Expr *e)
{
    for (int i = 0; i < t->moving->n; i++)
        if (ex_reads(e, t->moving->var[i])) return true;
    return false;
}

// Which of the loops around e it runs over, as bits.
static unsigned runs_over(const Taking *t, const Expr *e)
{
    unsigned over = 0;
    for (int i = 0; i < t->n; i++)
        if (ex_mentions_index(e, t->around[i])) over |= 1u << i;
    return over;
}

// A matrix of data times unknowns is computed by row passes and products, before the kernel that reads it: it cannot be among what is
// computed here.
static bool is_product(const Taking *t, const Expr *e)
{
    Product r;
    Expr *row, *column;
    return product_of(t->p, e, &r, &row, &column);
}

static Look test_product(const Expr *e, void *with) { return is_product(with, e) ? FOUND : LOOK; }

typedef struct Whole {
    const Taking *t;
    unsigned over;
} Whole;

// An element that is not v[i], i over the whole of its dimension.
static Look test_looked_up(const Expr *e, void *with)
{
    const Whole *w = with;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        const Expr *sub = e->args[k];
        for (int i = 0; i < w->t->n; i++)
            if (w->over >> i & 1 && ex_mentions_index(sub, w->t->around[i]) &&
                (sub->kind != EX_INDEX || e->var->dim[k] != w->t->around[i]->hi))
                return FOUND;
    }
    return e->kind == EX_REF ? SKIP : e->kind == EX_AT || e->kind == EX_ARRAY || is_product(w->t, e) ? FOUND : LOOK;
}

// It can be computed for all values of the indices that it runs over.
static bool whole(const Taking *t, const Expr *e, unsigned over)
{
    int rank = 0;
    for (int i = 0; i < t->n; i++) {
        const Index *j = t->around[i];
        if (!(over >> i & 1)) continue;
        if (!ex_is_num(j->lo, 1) || !ex_data_only(j->hi) || j->hi->indices || (t->guard && ex_mentions_index(t->guard, j))) return false;
        rank++;
    }
    return rank <= MAX_RANK && !ex_find(e, test_looked_up, &(Whole){t, over});
}

// And a loop around those that e runs over does not change it.
static bool movable(const Taking *t, const Expr *e, unsigned over)
{
    bool again = false;
    for (int i = 0; i < t->n; i++)
        if (!(over >> i & 1)) again |= over >> i != 0;
    return again && whole(t, e, over) && (t->added || !ex_may_diverge(e));
}

enum { SEVERAL = 3 };  // unknowns

typedef struct Entering {
    const Taking *t;
    const Expr *seen[SEVERAL];
    int n;
} Entering;

static Look count_entering(const Expr *e, void *with)
{
    Entering *c = with;
    if (!reads(c->t, e)) return SKIP;
    if (e->kind == EX_REDUCE) {
        c->n = SEVERAL;
        return FOUND;
    }
    if (e->kind != EX_REF) return LOOK;
    for (int i = 0; i < c->n; i++)
        if (c->seen[i] == e) return SKIP;
    c->seen[c->n++] = e;
    return c->n == SEVERAL ? FOUND : SKIP;
}

// What a function of one number reads, in a sum within the plates, whose terms differ from instance to instance.
static bool entered_by_several(const Taking *t, const Expr *call, unsigned over)
{
    const unsigned outer = (1u << t->plates) - 1;
    const FunctionId f = call->fn;
    if (!t->sums || !(over & outer) || !(over & ~outer)) return false;
    if (f != FN_exp && f != FN_log && f != FN_log1p && f != FN_log1p_exp && f != FN_inv_logit && f != FN_log_inv_logit && f != FN_Phi &&
        f != FN_log_Phi && f != FN_lgamma)
        return false;
    return ex_find(call->args[0], count_entering, &(Entering){.t = t}) && whole(t, call->args[0], over);
}

static Look test_work(const Expr *e, void *with)
{
    if (!reads(with, e)) return SKIP;
    return (e->kind == EX_CALL && e->nargs > 0 && e->fn != FN_WITHIN) || e->kind == EX_REDUCE || (e->kind == EX_POW && e->number != 2)
               ? FOUND
               : LOOK;
}

// More than one multiplication or addition, or the product of two unknowns.
static bool worth(const Taking *t, const Expr *e)
{
    int n = 0;
    for (int i = 0; i < e->nargs && e->kind == EX_MUL; i++) n += reads(t, e->args[i]);
    return n > 1 || ex_find(e, test_work, (void *)t);
}

static Expr *once(Taking *t, Expr *e, unsigned over)
{
    Arena *a = t->p->g->arena;
    Once o = {.plates = {0}};
    Index *from[MAX_RANK];
    Expr *at[MAX_RANK], *dim[MAX_RANK];
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        if (!(over >> i & 1)) continue;
        from[n] = t->around[i];
        at[n] = ex_index(from[n]);
        dim[n] = from[n]->hi;
        n++;
    }
    for (const Once *k = *t->list; k; k = k->next) {  // the same under other names
        Expr *named = e;
        bool same = k->plates.n == n;
        for (int i = 0; i < n && same; i++) same = k->plates.index[i]->hi == dim[i];
        for (int i = 0; i < n && same; i++) named = ex_replace_index(named, from[i], ex_index(k->plates.index[i]));
        if (same && named == k->original) return ex_ref(k->var, n, at);
    }
    o.plates.n = n;
    o.original = e;
    for (int i = 0; i < n; i++) {
        o.plates.index[i] = index_new(from[i]->name, ex_num(1), dim[i]);
        o.original = ex_replace_index(o.original, from[i], ex_index(o.plates.index[i]));
    }
    Taking within = {.p = t->p, .moving = t->moving, .stem = t->stem, .list = t->list, .sums = true, .plates = n, .n = n};
    for (int i = 0; i < n; i++) within.around[i] = o.plates.index[i];
    o.value = take(&within, o.original);
    if (ex_find(o.value, test_product, t)) o.value = o.original;
    o.var = work_array(t->p, ROLE_BLOCK, words(t->p, "once_%s", t->stem), n, dim);
    o.var->lowered.computed = o.original;
    Once **last = t->list;
    while (*last) last = &(*last)->next;
    *last = arena_copy(a, &o, sizeof o);
    return ex_ref(o.var, n, at);
}

// A sum whose end is the index of a reduction around it: of the terms of sum(k in 1:K, exp(sum(j in 1:k, x[n, j]))) each has those of the
// terms before it, and so would each derivative.
static bool is_partial_sum(const Taking *t, const Expr *e, unsigned over)
{
    if (e->fn != FN_sum || !(over & ((1u << t->plates) - 1))) return false;
    for (int i = t->plates; i < t->n; i++)
        if (ex_mentions_index(e->args[1], t->around[i])) return whole(t, e, over);
    return false;
}

static Expr *operate(const Expr *like, int n, Expr *const *args) { return like->kind == EX_ADD ? ex_add(n, args) : ex_mul(n, args); }

// Of a product or a sum: what runs over the same loops, or over fewer of them, together. What multiplies all of e goes along, if there is
// such a part of a product: *scale is NULL then.
static Expr *take_groups(Taking *t, const Expr *e, Expr **scale)
{
    Arena *a = t->p->g->arena;
    Expr **rest = NEW_N(a, Expr *, e->nargs), **group = NEW_N(a, Expr *, e->nargs), **out = NEW_N(a, Expr *, e->nargs + 1);
    int nrest = e->nargs, nout = 0;
    for (int i = 0; i < nrest; i++) rest[i] = e->args[i];
    for (int i = 0; i < nrest; i++) {
        const unsigned over = runs_over(t, rest[i]);
        if (!over || !reads(t, rest[i]) || !movable(t, rest[i], over)) continue;
        int n = 0;
        for (int k = 0; k < nrest; k++) {
            const unsigned of = runs_over(t, rest[k]);
            if (k == i || (rest[k]->kind != EX_NUM && (of & ~over) == 0 && (e->kind == EX_MUL || of == over) &&
                           (of != over || movable(t, rest[k], of)) && (t->added || !ex_may_diverge(rest[k]))))
                group[n++] = rest[k];
        }
        Expr *part = operate(e, n, group);
        if (!worth(t, part) || !movable(t, part, over)) continue;
        int left = 0;
        for (int k = 0; k < nrest; k++) {
            bool in = false;
            for (int q = 0; q < n; q++) in |= group[q] == rest[k];
            if (!in) rest[left++] = rest[k];
        }
        nrest = left;
        if (scale && *scale) {
            part = ex_mul2(part, *scale);
            *scale = NULL;
        }
        out[nout++] = once(t, part, over);
        i = -1;
    }
    t->added = false;
    for (int i = 0; i < nrest; i++) out[nout++] = take(t, rest[i]);
    return operate(e, nout, out);
}

// A sum of products, and what multiplies it: s*sum(m, X[n, m]*exp(-l*w[m])) is a sum over X[n, m]*once[m], once[m] = s*exp(-l*w[m]).
static Expr *take_sum(Taking *t, Expr *e, Expr **scale)
{
    if (t->n == MAX_LOOPS || reads(t, e->args[0]) || reads(t, e->args[1])) return e;
    Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
    t->around[t->n++] = j;
    Expr *body = ex_open(e, j);
    const bool sums = t->sums;
    t->added = e->fn == FN_log_sum_exp && body->kind == EX_ADD;
    t->sums &= e->fn == FN_sum;
    body = scale && body->kind == EX_MUL ? take_groups(t, body, scale) : take(t, body);
    t->added = false;
    t->sums = sums;
    t->n--;
    return ex_reduce(e->name, j, e->args[0], e->args[1], body);
}

static Expr *take_product(Taking *t, const Expr *e)
{
    Expr **rest = NEW_N(t->p->g->arena, Expr *, e->nargs + 1), *scale = NULL, *sum = NULL;
    int n = 0;
    for (int i = 0; i < e->nargs; i++) {
        Expr *f = e->args[i];
        if (!sum && f->kind == EX_REDUCE && f->fn == FN_sum && reads(t, f)) sum = f;
        else if (reads(t, f) && !runs_over(t, f) && !ex_may_diverge(f)) scale = scale ? ex_mul2(scale, f) : f;
        else rest[n++] = f;
    }
    if (!sum || !scale) return take_groups(t, e, NULL);
    Expr *taken = take_sum(t, sum, &scale);
    if (scale) return take_groups(t, e, NULL);
    rest[n++] = taken;
    Expr *product = ex_mul(n, rest);
    return product->kind == EX_MUL ? take_groups(t, product, NULL) : product;
}

static Expr *take(Taking *t, Expr *e)
{
    if (e->nargs == 0 || e->kind == EX_REF || !reads(t, e) || is_product(t, e)) return e;
    const unsigned over = runs_over(t, e);
    if (over && worth(t, e) && movable(t, e, over)) return once(t, e, over);
    switch (e->kind) {
    case EX_ADD: return take_groups(t, e, NULL);
    case EX_MUL: return take_product(t, e);
    case EX_POW: return ex_pow(take(t, e->args[0]), e->number);
    case EX_REDUCE: return is_partial_sum(t, e, over) ? once(t, e, over) : take_sum(t, e, NULL);
    case EX_CALL: {
        if (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR || e->fn == FN_WITHIN) return e;
        if (e->nargs == 1 && ex_rank(e->args[0]) == 0) {
            const unsigned of = runs_over(t, e->args[0]);
            if (entered_by_several(t, e, of)) return ex_call1(e->name, once(t, e->args[0], of));
        }
        Expr **args = NEW_N(t->p->g->arena, Expr *, e->nargs);
        for (int i = 0; i < e->nargs; i++) {
            if (ex_rank(e->args[i]) > 0) return e;
            args[i] = take(t, e->args[i]);
        }
        return ex_call(e->name, e->nargs, args);
    }
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: return e;
    }
    return e;
}

Expr *compute_once(Lower *p, const Moving *moving, const char *stem, Once **list, Expr *e, const Loops *plates)
{
    Taking t = {.p = p, .moving = moving, .stem = stem, .list = list, .guard = plates->guard, .sums = true};
    for (int i = 0; i < plates->n && t.n < MAX_LOOPS; i++) t.around[t.n++] = plates->index[i];
    t.plates = t.n;
    return take(&t, e);
}
