// polynomial.c -- expressions taken apart: as polynomials in many unknowns, and by the statistics of one.
//
//   before   -(y[i] - a - sum(j, X[i,j]*b[j]))^2/2          unknowns a, b
//   after    -1/2 * a*a,   -X[i,j] * a*b[j] over j,   -X[i,j]*X[i,k]/2 * b[j]*b[k] over j, k,   y[i] * a, ...
//
// Algebra: docs/conditionals.md
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "graph.h"

// ---- polynomials ----

static void push(Arena *a, Terms *t, Term term)
{
    if (t->n == t->size) {
        int size = t->size ? 2 * t->size : 8;
        Term *more = NEW_N(a, Term, size);
        if (t->n) memcpy(more, t->term, sizeof *more * (size_t)t->n);
        t->term = more;
        t->size = size;
    }
    t->term[t->n++] = term;
}

static bool mentions(const Expr *e, const Unknowns *in)
{
    for (int i = 0; i < in->n; i++)
        if (ex_mentions(e, in->var[i])) return true;
    return false;
}

static bool is_unknown(const Expr *e, const Unknowns *in)
{
    if (in->wrapped) {
        if (e->kind == EX_AT && e->args[0]->kind == EX_CALL && strcmp(e->args[0]->name, "inverse") == 0 && e->args[0]->args[0]->kind == EX_REF)
            e = e->args[0]->args[0];
        else if (e->kind == EX_CALL && (strcmp(e->name, "log_determinant") == 0 || strcmp(e->name, "log") == 0) && e->args[0]->kind == EX_REF)
            e = e->args[0];
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

static int opening;          // how often the factor of a power was opened before: tells its indices apart, j and j2

static Terms expand(Arena *a, Expr *e, const Unknowns *in, int most);

static Terms product(Arena *a, Terms x, Terms y, int most, Expr *whole)
{
    Terms out = {0};
    for (int i = 0; i < x.n; i++)
        for (int k = 0; k < y.n; k++) {
            Term t = x.term[i], u = y.term[k];
            if (t.degree + u.degree > most || t.loops.n + u.loops.n > 2 * MAX_RANK) return fail(whole);
            t.coefficient = ex_mul2(t.coefficient, u.coefficient);
            for (int m = 0; m < u.degree; m++) t.ref[t.degree++] = u.ref[m];
            for (int m = 0; m < u.loops.n; m++) t.loops.index[t.loops.n++] = u.loops.index[m];
            push(a, &out, t);
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
    if (is_unknown(e, in)) {
        push(a, &out, (Term){.coefficient = ex_num(1), .degree = 1, .ref = {e}});
        return out;
    }
    switch (e->kind) {
    case EX_ADD: {
        Expr *rest = ex_num(0);                  // what is free of unknowns stays one coefficient: (y - c)^2 is not expanded
        for (int i = 0; i < e->nargs; i++) {
            if (!mentions(e->args[i], in)) { rest = ex_add2(rest, e->args[i]); continue; }
            Terms t = expand(a, e->args[i], in, most);
            if (t.failed) return t;
            for (int k = 0; k < t.n; k++) push(a, &out, t.term[k]);
        }
        if (!ex_is_num(rest, 0)) push(a, &out, (Term){.coefficient = rest});
        return out;
    }
    case EX_MUL:
        push(a, &out, (Term){.coefficient = ex_num(1)});
        for (int i = 0; i < e->nargs; i++) {
            Terms t = expand(a, e->args[i], in, most);
            if (t.failed) return t;
            out = product(a, out, t, most, e);
            if (out.failed) return out;
        }
        return out;
    case EX_POW: {
        int r = (int)e->number;
        if (r != e->number || r < 1 || r > 4) return fail(e);
        push(a, &out, (Term){.coefficient = ex_num(1)});
        for (int i = 0; i < r; i++) {            // each factor opens its own sums
            opening = i;
            Terms t = expand(a, e->args[0], in, most);
            opening = 0;
            if (t.failed) return t;
            out = product(a, out, t, most, e);
            if (out.failed) return out;
        }
        return out;
    }
    case EX_REDUCE: {
        if (strcmp(e->name, "sum") != 0 || mentions(e->args[0], in) || mentions(e->args[1], in)) return fail(e);
        const char *name = opening ? intern(arena_printf(a, "%s%d", e->index->name, opening + 1)) : e->index->name;
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
    case EX_CALL:
        if (strcmp(e->name, "if_else") == 0 && !mentions(e->args[0], in)) {
            for (int side = 1; side <= 2; side++) {
                Terms t = expand(a, e->args[side], in, most);
                if (t.failed) return t;
                for (int k = 0; k < t.n; k++) {
                    Term s = t.term[k];
                    s.coefficient = side == 1 ? ex_call3("if_else", e->args[0], s.coefficient, ex_num(0))
                                              : ex_call3("if_else", e->args[0], ex_num(0), s.coefficient);
                    push(a, &out, s);
                }
            }
            return out;
        }
        return fail(e);
    case EX_NUM: case EX_REF: case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    return fail(e);
}

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
    if (r.degree == 2 && r.ref[0] == t->ref[1] && r.ref[1] == t->ref[0]) { Expr *x = r.ref[0]; r.ref[0] = r.ref[1]; r.ref[1] = x; }
    for (int m = 0; m < r.degree; m++)
        if (r.ref[m] != t->ref[m]) return false;
    *s = r;
    return true;
}

Terms polynomial(Arena *a, Expr *e, const Unknowns *in, int most)
{
    Terms t = expand(a, e, in, most), out = {0};
    if (t.failed) return t;
    for (int i = 0; i < t.n; i++) {
        bool merged = false;
        for (int k = 0; k < out.n && !merged; k++) {
            Term s = t.term[i];
            if (!rename_loops(&s, &out.term[k])) continue;
            out.term[k].coefficient = ex_add2(out.term[k].coefficient, s.coefficient);
            merged = true;
        }
        if (!merged) push(a, &out, t.term[i]);
    }
    int n = 0;
    for (int i = 0; i < out.n; i++)
        if (!ex_is_num(out.term[i].coefficient, 0)) out.term[n++] = out.term[i];
    out.n = n;
    return out;
}

// ---- statistics ----

static void gather(Arena *a, Statistics *s, Expr *statistic, Expr *coefficient)
{
    for (int i = 0; i < s->n; i++)
        if (s->item[i].statistic == statistic) {
            s->item[i].coefficient = ex_add2(s->item[i].coefficient, coefficient);
            return;
        }
    if (s->n == s->size) {
        int size = s->size ? 2 * s->size : 8;
        Statistic *more = NEW_N(a, Statistic, size);
        if (s->n) memcpy(more, s->item, sizeof *more * (size_t)s->n);
        s->item = more;
        s->size = size;
    }
    s->item[s->n++] = (Statistic){statistic, coefficient};
}

static Statistics multiply(Arena *a, Statistics x, Statistics y)
{
    Statistics out = {0};
    for (int i = 0; i < x.n; i++)
        for (int k = 0; k < y.n; k++)
            gather(a, &out, ex_mul2(x.item[i].statistic, y.item[k].statistic), ex_mul2(x.item[i].coefficient, y.item[k].coefficient));
    return out;
}

static bool contains(const Expr *e, const Expr *u)
{
    return ex_mentions(e, u->var);
}

static Statistics take_apart(Arena *a, Expr *e, Expr *u)
{
    Statistics out = {0};
    if (!contains(e, u)) { gather(a, &out, ex_num(1), e); return out; }
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
        if (strcmp(e->name, "sum") == 0 && !contains(e->args[0], u) && !contains(e->args[1], u)) {
            Index *j = index_new(e->index->name, e->args[0], e->args[1]);
            Statistics s = take_apart(a, ex_open(e, j), u);
            bool clean = true;
            for (int k = 0; k < s.n; k++) clean &= !ex_mentions_index(s.item[k].statistic, j);
            if (!clean) break;
            for (int k = 0; k < s.n; k++)
                gather(a, &out, s.item[k].statistic, ex_reduce("sum", j, j->lo, j->hi, s.item[k].coefficient));
            return out;
        }
        break;
    case EX_CALL:
        if (strcmp(e->name, "if_else") == 0 && !contains(e->args[0], u)) {
            for (int side = 1; side <= 2; side++) {
                Statistics s = take_apart(a, e->args[side], u);
                for (int k = 0; k < s.n; k++)
                    gather(a, &out, s.item[k].statistic,
                           side == 1 ? ex_call3("if_else", e->args[0], s.item[k].coefficient, ex_num(0))
                                     : ex_call3("if_else", e->args[0], ex_num(0), s.item[k].coefficient));
            }
            return out;
        }
        if ((strcmp(e->name, "cos") == 0 || strcmp(e->name, "sin") == 0) && e->args[0]->kind == EX_ADD) {
            // cos(u - m) = cos(u) cos(m) + sin(u) sin(m)
            Expr *rest = ex_sub(e->args[0], u), *minus = ex_add2(e->args[0], u);
            bool cosine = e->name[0] == 'c', plus = !contains(rest, u);
            if (!plus) rest = ex_neg(minus);      // (m - u) = -(u - m)
            if (!contains(rest, u)) {
                Expr *c = ex_call1("cos", rest), *s = ex_call1("sin", rest), *sign = ex_num(plus ? 1 : -1);
                if (cosine) {
                    gather(a, &out, ex_call1("cos", u), c);
                    gather(a, &out, ex_call1("sin", u), ex_neg(s));
                } else {
                    gather(a, &out, ex_call1("sin", u), ex_mul2(sign, c));
                    gather(a, &out, ex_call1("cos", u), ex_mul2(sign, s));
                }
                return out;
            }
        }
        break;
    case EX_NUM: case EX_REF: case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    gather(a, &out, e, ex_num(1));
    return out;
}

Statistics statistics(Arena *a, Expr *e, Expr *u)
{
    Statistics s = take_apart(a, e, u), out = {0};
    for (int i = 0; i < s.n; i++)
        if (!ex_is_num(s.item[i].coefficient, 0) && contains(s.item[i].statistic, u))
            gather(a, &out, s.item[i].statistic, s.item[i].coefficient);
    return out;
}
