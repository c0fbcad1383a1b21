// polynomial.c -- expressions taken apart: as polynomials in many unknowns, and by the statistics of one.
//
//   before   -(y[i] - a - sum(j, X[i,j]*b[j]))^2/2          unknowns a, b
//   after    -1/2 * a*a,   -X[i,j] * a*b[j] over j,   -X[i,j]*X[i,k]/2 * b[j]*b[k] over j, k,   y[i] * a, ...
//
// Algebra: docs/conditionals.md
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "polynomial.h"

// ---- polynomials ----

static void push(Arena *a, Terms *t, Term term)
{
    ROOM(a, t->term, t->n, t->size);
    t->term[t->n++] = term;
}

static bool test_one_of(const Var *v, void *with)
{
    const Unknowns *in = with;
    for (int i = 0; i < in->n; i++)
        if (in->var[i] == v) return true;
    return false;
}

static bool mentions(const Expr *e, const Unknowns *in)
{
    if (in->n == 1) return ex_mentions(e, in->var[0]);
    return ex_any_var(e, test_one_of, (void *)in);
}

static bool is_unknown(const Expr *e, const Unknowns *in)
{
    if (in->wrapped) {
        if (e->kind == EX_AT && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_inverse && e->args[0]->args[0]->kind == EX_REF)
            e = e->args[0]->args[0];
        else if (e->kind == EX_CALL && (e->fn == FN_log_determinant || e->fn == FN_log) && e->args[0]->kind == EX_REF) e = e->args[0];
    }
    if (e->kind != EX_REF) return false;
    for (int i = 0; i < in->n; i++)
        if (e->var == in->var[i]) {
            for (int k = 0; k < e->nargs; k++)
                if (mentions(e->args[k], in)) return false;
            return true;
        }
    return false;
}

static Terms fail(Expr *at) { return (Terms){.failed = true, .opaque = at}; }
static Terms fail_long(Expr *at) { return (Terms){.failed = true, .too_long = true, .opaque = at}; }

static int opening;  // how often the factor of a power was opened before: distinguishes its indices, j and j2

static Terms expand(Arena *a, Expr *e, const Unknowns *in, int most);

// A product of sums has terms for all pairs, each as long as both. A square of 600 scalars has 10^6 parts; one of a choice among 1000,
// whose terms hold all conditions before theirs, 10^9.
static const double MOST_MADE = 4e6;
enum { MOST_CHOSEN = 32 };  // terms of a chain of choices, each of which holds the conditions before it

static bool too_long(const Terms *x, const Terms *y)
{
    double parts[2] = {0};
    for (int i = 0; i < x->n; i++) parts[0] += x->term[i].coefficient->size;
    for (int k = 0; k < y->n; k++) parts[1] += y->term[k].coefficient->size;
    return x->n > 1 && y->n > 1 && parts[0] * y->n + parts[1] * x->n > MOST_MADE;
}

static Terms product(Arena *a, Terms x, Terms y, int most, Expr *whole)
{
    Terms out = {0};
    if (too_long(&x, &y)) return fail_long(whole);
    for (int i = 0; i < x.n; i++)
        for (int k = 0; k < y.n; k++) {
            Term t = x.term[i], u = y.term[k];
            if (t.degree + u.degree > most || t.loops.n + u.loops.n > MAX_PLATES) return fail(whole);
            t.coefficient = ex_mul2(t.coefficient, u.coefficient);
            for (int m = 0; m < u.degree; m++) t.ref[t.degree++] = u.ref[m];
            for (int m = 0; m < u.loops.n; m++) t.loops.index[t.loops.n++] = u.loops.index[m];
            push(a, &out, t);
        }
    return out;
}

// What is free of unknowns stays one coefficient: (y - c)^2 is not expanded.
static Terms expand_add(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    Expr **rest = NEW_N(a, Expr *, e->nargs);
    int nrest = 0;
    for (int i = 0; i < e->nargs; i++) {
        if (!mentions(e->args[i], in)) {
            rest[nrest++] = e->args[i];
            continue;
        }
        Terms t = expand(a, e->args[i], in, most);
        if (t.failed) return t;
        for (int k = 0; k < t.n; k++) push(a, &out, t.term[k]);
    }
    if (nrest) push(a, &out, (Term){.coefficient = ex_add(nrest, rest)});
    return out;
}

static Terms expand_mul(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    push(a, &out, (Term){.coefficient = ex_num(1)});
    for (int i = 0; i < e->nargs; i++) {
        Terms t = expand(a, e->args[i], in, most);
        if (t.failed) return t;
        out = product(a, out, t, most, e);
        if (out.failed) return out;
    }
    return out;
}

static Terms expand_pow(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    if (e->number != floor(e->number) || e->number < 1 || e->number > 4) return fail(e);
    const int r = (int)e->number;
    push(a, &out, (Term){.coefficient = ex_num(1)});
    for (int i = 0; i < r; i++) {  // each factor opens its own sums
        opening = i;
        Terms t = expand(a, e->args[0], in, most);
        opening = 0;
        if (t.failed) return t;
        out = product(a, out, t, most, e);
        if (out.failed) return out;
    }
    return out;
}

// A sum stays in the coefficient if no unknown is read at its index; else it is a loop of the term.
static Terms expand_sum(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    if (e->fn != FN_sum || mentions(e->args[0], in) || mentions(e->args[1], in)) return fail(e);
    const char *name = opening ? intern(arena_printf(a, "%s%d", ex_index_called(e), opening + 1)) : ex_index_called(e);
    Index *j = index_new(name, e->args[0], e->args[1]);
    Terms t = expand(a, ex_open(e, j), in, most);
    if (t.failed) return t;
    for (int k = 0; k < t.n; k++) {
        Term s = t.term[k];
        bool in_refs = false;
        for (int m = 0; m < s.degree; m++) in_refs |= ex_mentions_index(s.ref[m], j);
        for (int m = 0; m < s.loops.n; m++)
            in_refs |= ex_mentions_index(s.loops.index[m]->lo, j) || ex_mentions_index(s.loops.index[m]->hi, j);
        if (in_refs) {
            for (int m = s.loops.n++; m > 0; m--) s.loops.index[m] = s.loops.index[m - 1];
            s.loops.index[0] = j;
        } else s.coefficient = ex_reduce("sum", j, j->lo, j->hi, s.coefficient);
        push(a, &out, s);
    }
    return out;
}

static Terms expand_choice(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    if (e->fn != FN_if_else || mentions(e->args[0], in)) return fail(e);
    for (int side = 1; side <= 2; side++) {
        Terms t = expand(a, e->args[side], in, most);
        if (t.failed) return t;
        for (int k = 0; k < t.n; k++) {
            Term s = t.term[k];
            s.coefficient = side == 1 ? ex_call3("if_else", e->args[0], s.coefficient, ex_num(0))
                                      : ex_call3("if_else", e->args[0], ex_num(0), s.coefficient);
            push(a, &out, s);
        }
        if (out.n > MOST_CHOSEN) return fail_long(e);
    }
    return out;
}

static Terms expand(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms out = {0};
    if (!mentions(e, in)) {
        push(a, &out, (Term){.coefficient = e});
        return out;
    }
    if (e->size > MAX_TREE) return fail(e);
    if (is_unknown(e, in)) {
        push(a, &out, (Term){.coefficient = ex_num(1), .degree = 1, .ref = {e}});
        return out;
    }
    switch (e->kind) {
    case EX_ADD: return expand_add(a, e, in, most);
    case EX_MUL: return expand_mul(a, e, in, most);
    case EX_POW: return expand_pow(a, e, in, most);
    case EX_REDUCE: return expand_sum(a, e, in, most);
    case EX_CALL: return expand_choice(a, e, in, most);
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return fail(e);
}

// ---- degrees, without expanding ----

static Degree degree(Expr *e, const Unknowns *in, const Var *apart, int most)
{
    const Degree failed = {.failed = true};
    if (!mentions(e, in)) return (Degree){0};
    if (e->size > MAX_TREE) return failed;
    if (is_unknown(e, in)) return (Degree){.degree = 1, .own = e->var == apart, .other = e->var != apart};
    Degree d = {0};
    switch (e->kind) {
    case EX_ADD:
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++) {
            const Degree t = degree(e->args[i], in, apart, most);
            if (t.failed) return failed;
            d.both |= t.both || (e->kind == EX_MUL && ((d.own && t.other) || (d.other && t.own)));
            d.own |= t.own;
            d.other |= t.other;
            d.degree = e->kind == EX_MUL ? d.degree + t.degree : t.degree > d.degree ? t.degree : d.degree;
            d.loops = e->kind == EX_MUL ? d.loops + t.loops : t.loops > d.loops ? t.loops : d.loops;
            if (d.degree > most || d.loops > MAX_PLATES) return failed;
        }
        return d;
    case EX_POW: {
        if (e->number != floor(e->number) || e->number < 1 || e->number > 4) return failed;
        const int r = (int)e->number;
        d = degree(e->args[0], in, apart, most);
        if (d.failed || r * d.degree > most || r * d.loops > MAX_PLATES) return failed;
        d.degree *= r;
        d.loops *= r;
        d.both |= r > 1 && d.own && d.other;
        return d;
    }
    case EX_REDUCE:
        if (e->fn != FN_sum || mentions(e->args[0], in) || mentions(e->args[1], in)) return failed;
        d = degree(e->args[2], in, apart, most);
        d.loops++;
        return d;
    case EX_CALL:
        if (e->fn != FN_if_else || mentions(e->args[0], in)) return failed;
        for (int side = 1; side <= 2; side++) {
            const Degree t = degree(e->args[side], in, apart, most);
            if (t.failed) return failed;
            d = (Degree){.degree = t.degree > d.degree ? t.degree : d.degree,
                         .loops = t.loops > d.loops ? t.loops : d.loops,
                         .own = d.own || t.own,
                         .other = d.other || t.other,
                         .both = d.both || t.both};
        }
        return d;
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return failed;
}

Degree polynomial_degree(Expr *e, const Unknowns *in, const Var *apart, int most) { return degree(e, in, apart, most); }

// s with its loop indices renamed to those of t, if their loops agree.
static bool rename_loops(Term *s, const Term *t)
{
    if (s->loops.n != t->loops.n || s->degree != t->degree) return false;
    Term r = *s;
    for (int i = 0; i < s->loops.n; i++) {
        Index *from = s->loops.index[i], *to = t->loops.index[i];
        if (from == to) continue;
        if (from->lo != to->lo || from->hi != to->hi) return false;
        r.coefficient = ex_replace_index(r.coefficient, from, ex_index(to));
        for (int m = 0; m < r.degree; m++) r.ref[m] = ex_replace_index(r.ref[m], from, ex_index(to));
    }
    if (r.degree == 2 && r.ref[0] == t->ref[1] && r.ref[1] == t->ref[0]) {
        Expr *x = r.ref[0];
        r.ref[0] = r.ref[1];
        r.ref[1] = x;
    }
    for (int m = 0; m < r.degree; m++)
        if (r.ref[m] != t->ref[m]) return false;
    *s = r;
    return true;
}

// Terms that may be one have the same key: variables, and without loops the references, in any order.
static unsigned key_of(const Term *t)
{
    unsigned key = (unsigned)(t->degree + 8 * t->loops.n);
    for (int m = 0; m < t->degree; m++) {
        const Expr *ref = t->ref[m];
        const int id = !t->loops.n ? ref->id : ref->kind == EX_REF ? ref->var->id : -2;
        key += (unsigned)(id + 2) * 0x9E3779B1u;
    }
    return key ^ key >> 15;
}

const char *terms_because(Arena *a, const Terms *t, const char * not, Span at)
{
    return arena_printf(a, "`%s` (line %d) %s", ex_quote(a, t->opaque), span_line(at),
                        t->too_long ? "would be a sum of too many terms, if it were written out" : not );
}

Terms polynomial(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms t = expand(a, e, in, most), out = {0};
    if (t.failed) return t;
    unsigned size = 16;
    while (size < 2 * (unsigned)t.n) size *= 2;
    int *first = malloc(sizeof *first * size), *last = malloc(sizeof *last * size), *next = malloc(sizeof *next * (size_t)(t.n + 1));
    for (unsigned k = 0; k < size; k++) first[k] = -1;
    for (int i = 0; i < t.n; i++) {
        bool merged = false;
        const unsigned slot = key_of(&t.term[i]) & (size - 1);
        for (int k = first[slot]; k >= 0 && !merged; k = next[k]) {
            Term s = t.term[i];
            if (!rename_loops(&s, &out.term[k])) continue;
            out.term[k].coefficient = ex_add2(out.term[k].coefficient, s.coefficient);
            merged = true;
        }
        if (merged) continue;
        next[out.n] = -1;
        if (first[slot] < 0) first[slot] = out.n;
        else next[last[slot]] = out.n;
        last[slot] = out.n;
        push(a, &out, t.term[i]);
    }
    free(first);
    free(last);
    free(next);
    int n = 0;
    for (int i = 0; i < out.n; i++)
        if (!ex_is_num(out.term[i].coefficient, 0)) out.term[n++] = out.term[i];
    out.n = n;
    return out;
}

// ---- statistics ----

// Products of sums taken apart have coefficients that are longer than what they came from, without end: seven times a = a*a + x[1], one in
// the other, has 10^6 parts.
enum { MOST_PARTS = 20000, TIMES_LONGER = 8 };

static bool too_many;  // of the expression being taken apart: statistics, or parts of a coefficient
static double most_parts;

static void gather(Arena *a, Statistics *s, Expr *statistic, Expr *coefficient)
{
    for (int i = 0; i < s->n; i++)
        if (s->item[i].statistic == statistic) {
            s->item[i].coefficient = ex_add2(s->item[i].coefficient, coefficient);
            too_many |= s->item[i].coefficient->size > most_parts;
            return;
        }
    if (s->n == MAX_STATISTICS || coefficient->size > most_parts) {
        too_many = true;
        return;
    }
    ROOM(a, s->item, s->n, s->size);
    s->item[s->n++] = (Statistic){statistic, coefficient};
}

static Statistics multiply(Arena *a, Statistics x, Statistics y)
{
    Statistics out = {0};
    for (int i = 0; i < x.n; i++)
        for (int k = 0; k < y.n && !too_many; k++)
            gather(a, &out, ex_mul2(x.item[i].statistic, y.item[k].statistic), ex_mul2(x.item[i].coefficient, y.item[k].coefficient));
    return out;
}

static bool contains(const Expr *e, const Expr *u) { return ex_mentions(e, u->var); }

// Whether e is 0 or 1 whatever the state: also 1 - z, and products of such numbers.
static bool is_yes_no(const Expr *e)
{
    switch (e->kind) {
    case EX_REF:
        return e->var->discrete && e->var->base == BASE_INT && e->nargs == e->var->rank && e->var->lower_number >= 0 &&
               e->var->upper_number <= 1;
    case EX_CALL: return function_rows[e->fn].traits & TRAIT_YES_NO;
    case EX_REDUCE: return e->fn == FN_prod && is_yes_no(ex_open(e, index_new(ex_index_called(e), e->args[0], e->args[1])));
    case EX_ADD: {
        const Expr *other = e->nargs == 2 && ex_is_num(e->args[0], 1) ? ex_neg(e->args[1]) : NULL;
        return other && other->kind != EX_ADD && is_yes_no(other);
    }
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (!is_yes_no(e->args[i])) return false;
        return true;
    case EX_NUM:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT:
    case EX_POW: break;
    }
    return false;
}

static Statistics take_apart(Arena *a, Expr *e, Expr *u);

// e of a number z that is 0 or 1. A product over elements among which z is vanishes where its factor of z does: prod(j in 1:(t - 1), 1 -
// z[j]) with z[t - 1] = 1.
typedef struct Answer {
    Expr *z, *is;
} Answer;

static Expr *answer_leaf(Expr *e, void *with)
{
    const Answer *w = with;
    if (e == w->z) return w->is;
    if (e->kind != EX_REDUCE || e->fn != FN_prod || w->z->kind != EX_REF) return NULL;
    Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
    Expr *body = ex_open(e, j);
    for (int k = 0; k < w->z->nargs; k++) {
        // The subscript is j + shift in the product. z exists, so it is 1 at least: the product is from there on, or from before, to z or
        // further.
        for (int shift = -1; shift <= 1; shift++) {
            Expr *at[MAX_RANK], *from = ex_sub(w->z->args[k], ex_num(shift)), *first = ex_add2(e->args[0], ex_num(shift)),
                                *more = ex_sub(e->args[1], from);
            if (first->kind != EX_NUM || first->number > 1 || more->kind != EX_NUM || more->number < 0) continue;
            memcpy(at, w->z->args, sizeof *at * (size_t)w->z->nargs);
            at[k] = ex_add2(ex_index(j), ex_num(shift));
            if (ex_is_num(ex_replace(body, ex_ref(w->z->var, w->z->nargs, at), w->is), 0)) return ex_num(0);
        }
    }
    return NULL;
}

static Expr *answered(Expr *e, Expr *z, double is)
{
    Answer w = {z, ex_num(is)};
    return ex_map(e, answer_leaf, &w);
}

// A factor of a term of the sum e that is 0 or 1, whatever u is; NULL: none.
static Expr *yes_no_in(const Expr *e, const Expr *u)
{
    for (int i = 0; i < e->nargs; i++) {
        Expr *t = e->args[i];
        for (int k = 0; k < (t->kind == EX_MUL ? t->nargs : 1); k++) {
            Expr *f = t->kind == EX_MUL ? t->args[k] : t;
            if (f->kind == EX_REF && !contains(f, u) && is_yes_no(f)) return f;
        }
    }
    return NULL;
}

// log(z p + (1 - z) q) is log p where z is 1 and log q where z is 0, and so is log(1 - ...). Only if nothing but functions of u alone and
// of others alone are left; false: more is.
enum { MOST_ANSWERS = 3 };

static bool by_answers(Arena *a, Expr *e, Expr *u, int deep, Statistics *out)
{
    Expr *z = e->args[0]->kind == EX_ADD && deep < MOST_ANSWERS ? yes_no_in(e->args[0], u) : NULL;
    *out = (Statistics){0};
    if (!z) {
        Statistics s = take_apart(a, e, u);
        for (int k = 0; k < s.n; k++) {
            const Expr *is = s.item[k].statistic;
            if (contains(is, u) && !(is->kind == EX_CALL && is->nargs == 1 && is->args[0] == u)) return false;
        }
        *out = s;
        return true;
    }
    for (int is = 0; is < 2; is++) {
        Expr *there = ex_call1(e->name, answered(e->args[0], z, is)), *yes = ex_call2(is ? "!=" : "==", z, ex_num(0));
        Statistics s = {0};
        if (there->kind != EX_CALL || there->fn != e->fn) s = take_apart(a, there, u);
        else if (!by_answers(a, there, u, deep + 1, &s)) return false;
        for (int k = 0; k < s.n; k++) gather(a, out, s.item[k].statistic, ex_call3("if_else", yes, s.item[k].coefficient, ex_num(0)));
    }
    return true;
}

// c times the statistics of e, in `out`: with a condition that is free of u before each coefficient.
static void gather_where(Arena *a, Statistics *out, Expr *where, Expr *e, Expr *u, bool holds)
{
    const Statistics s = take_apart(a, e, u);
    for (int k = 0; k < s.n; k++)
        gather(a, out, s.item[k].statistic,
               holds ? ex_call3("if_else", where, s.item[k].coefficient, ex_num(0))
                     : ex_call3("if_else", where, ex_num(0), s.item[k].coefficient));
}

// A sum whose statistics are the same in each term: false if they are not.
static bool sum_apart(Arena *a, Expr *e, Expr *u, Statistics *out)
{
    if (e->fn != FN_sum || contains(e->args[0], u) || contains(e->args[1], u)) return false;
    Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
    const Statistics s = take_apart(a, ex_open(e, j), u);
    for (int k = 0; k < s.n; k++)
        if (ex_mentions_index(s.item[k].statistic, j)) return false;
    for (int k = 0; k < s.n; k++) gather(a, out, s.item[k].statistic, ex_reduce("sum", j, j->lo, j->hi, s.item[k].coefficient));
    return true;
}

// log(1 - z p) = log(1 - p) where z = 1, and 0 where z = 0
static bool log1m_apart(Arena *a, const Expr *product, Expr *u, Statistics *out)
{
    Expr *rest = ex_num(1), *where = NULL;
    for (int i = 0; i < product->nargs; i++) {
        Expr *f = product->args[i];
        Expr *yes = !contains(f, u) && is_yes_no(f) ? ex_call2("!=", f, ex_num(0)) : NULL;
        if (yes) where = where ? ex_call2("&&", where, yes) : yes;
        else rest = ex_mul2(rest, f);
    }
    if (where) gather_where(a, out, where, ex_call1("log1m", rest), u, true);
    return where != NULL;
}

// cos(u - m) = cos(u) cos(m) + sin(u) sin(m)
static bool angle_apart(Arena *a, const Expr *e, Expr *u, Statistics *out)
{
    Expr *rest = ex_sub(e->args[0], u), *minus = ex_add2(e->args[0], u);
    const bool cosine = e->name[0] == 'c', plus = !contains(rest, u);
    if (!plus) rest = ex_neg(minus);  // (m - u) = -(u - m)
    if (contains(rest, u)) return false;
    Expr *c = ex_call1("cos", rest), *s = ex_call1("sin", rest), *sign = ex_num(plus ? 1 : -1);
    if (cosine) {
        gather(a, out, ex_call1("cos", u), c);
        gather(a, out, ex_call1("sin", u), ex_neg(s));
    } else {
        gather(a, out, ex_call1("sin", u), ex_mul2(sign, c));
        gather(a, out, ex_call1("cos", u), ex_mul2(sign, s));
    }
    return true;
}

static bool call_apart(Arena *a, Expr *e, Expr *u, Statistics *out)
{
    if (e->fn == FN_if_else && !contains(e->args[0], u)) {
        for (int side = 1; side <= 2; side++) gather_where(a, out, e->args[0], e->args[side], u, side == 1);
        return true;
    }
    const bool sum = e->args[0]->kind == EX_ADD;
    if ((e->fn == FN_log || e->fn == FN_log1m) && sum && yes_no_in(e->args[0], u)) {
        const bool before = too_many;
        if (by_answers(a, e, u, 0, out)) return true;
        too_many = before;
        *out = (Statistics){0};
    }
    if (e->fn == FN_log1m && e->args[0]->kind == EX_MUL) return log1m_apart(a, e->args[0], u, out);
    return (e->fn == FN_cos || e->fn == FN_sin) && sum && angle_apart(a, e, u, out);
}

static Statistics take_apart(Arena *a, Expr *e, Expr *u)
{
    Statistics out = {0};
    if (too_many) return out;
    if (!contains(e, u)) {
        gather(a, &out, ex_num(1), e);
        return out;
    }
    if (e->size > MAX_TREE) {
        gather(a, &out, e, ex_num(1));
        return out;
    }
    switch (e->kind) {
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++) {
            Statistics s = take_apart(a, e->args[i], u);
            for (int k = 0; k < s.n; k++) gather(a, &out, s.item[k].statistic, s.item[k].coefficient);
        }
        return out;
    case EX_MUL:
        gather(a, &out, ex_num(1), ex_num(1));
        for (int i = 0; i < e->nargs; i++) out = multiply(a, out, take_apart(a, e->args[i], u));
        return out;
    case EX_POW:
        if (e->args[0]->kind != EX_REF && e->number == floor(e->number) && e->number >= 2 && e->number <= 4) {
            Statistics base = take_apart(a, e->args[0], u);
            gather(a, &out, ex_num(1), ex_num(1));
            for (int i = 0; i < (int)e->number; i++) out = multiply(a, out, base);
            return out;
        }
        break;
    case EX_REDUCE:
        if (sum_apart(a, e, u, &out)) return out;
        break;
    case EX_CALL:
        if (call_apart(a, e, u, &out)) return out;
        break;
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    gather(a, &out, e, ex_num(1));
    return out;
}

static Statistics begin_apart(Arena *a, Expr *e, Expr *u)
{
    too_many = false;
    most_parts = fmax(MOST_PARTS, TIMES_LONGER * e->size);
    return take_apart(a, e, u);
}

Expr *free_of(Arena *a, Expr *e, Expr *u)
{
    const Statistics s = begin_apart(a, e, u);
    Expr *rest = ex_num(0);
    for (int i = 0; i < s.n && !too_many; i++)
        if (!contains(s.item[i].statistic, u)) rest = ex_add2(rest, ex_mul2(s.item[i].statistic, s.item[i].coefficient));
    return rest;
}

// Statistics times coefficients, and what is free of u, are e. Of too many, e itself is the one statistic.
Statistics statistics(Arena *a, Expr *e, Expr *u)
{
    Statistics s = begin_apart(a, e, u), out = {.many = too_many};
    if (out.many) {
        s = (Statistics){0};
        gather(a, &s, e, ex_num(1));
    }
    for (int i = 0; i < s.n; i++)
        if (!ex_is_num(s.item[i].coefficient, 0) && contains(s.item[i].statistic, u))
            gather(a, &out, s.item[i].statistic, s.item[i].coefficient);
    return out;
}
