// write.c -- expressions as C text.
//
//   before   sum(j in 1:p, X[i,j]*beta[j])
//   after    real sum1 = 0;
//            for (long j = 0; j < d.p; j++) sum1 += d.X[i * d.p + j] * s.beta[j];       and then: sum1
//
// Subscripts count from 1 in expressions and from 0 in C.
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "write.h"

// ---- lines ----

void put(Writer *w, const char *format, ...)
{
    fprintf(w->out, "%*s", 4 * w->indent, "");
    va_list ap;
    va_start(ap, format);
    vfprintf(w->out, format, ap);
    va_end(ap);
    fputc('\n', w->out);
}

void open_brace(Writer *w, const char *format, ...)
{
    fprintf(w->out, "%*s", 4 * w->indent, "");
    va_list ap;
    va_start(ap, format);
    vfprintf(w->out, format, ap);
    va_end(ap);
    fputs(strcmp(format, "%s") != 0 ? " {\n" : "{\n", w->out);
    w->indent++;
}

void release_scratch(Writer *w)
{
    while (w->nscratch > 0 && w->scratch[w->nscratch - 1].indent >= w->indent) {
        w->nscratch--;
        put(w, "%sRELEASE(%s);", w->scratch[w->nscratch].team ? "TEAM_" : "", w->scratch[w->nscratch].name);
    }
}

// A buffer up to the end of the scope. In a team it is one that several lanes read.
static void put_scratch(Writer *w, const char *name, const char *size)
{
    put(w, "wide *%s = %sSCRATCH(%s);", name, w->team ? "TEAM_" : "", size);
    ROOM(w->arena, w->scratch, w->nscratch, w->scratch_size);
    w->scratch[w->nscratch].name = name;
    w->scratch[w->nscratch].indent = w->indent;
    w->scratch[w->nscratch++].team = w->team;
}

void close_brace(Writer *w)
{
    release_scratch(w);
    w->indent--;
    put(w, "}");
}

const char *text(Writer *w, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    char *copy = arena_strdup(w->arena, s);
    free(s);
    return copy;
}

// ---- names ----

const char *c_name(Writer *w, const char *name)
{
    static const char *const reserved[] = {"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "real", "class", "new",
        "delete", "this", "template", "private", "public", "bool", "true", "false", "operator", "namespace", "I", "NULL", "M_PI",
        "INFINITY", "NAN", "linux", "unix", "wide", "solve", "dot", NULL};
    for (int i = 0; reserved[i]; i++)
        if (strcmp(name, reserved[i]) == 0) return text(w, "%s_", name);
    return name;
}

void name_index(Writer *w, const Index *i, const char *c)
{
    ROOM(w->arena, w->named, w->nnamed, w->named_size);
    w->named[w->nnamed++] = (Named){i, c};
}

static const char *index_text(Writer *w, const Index *i)
{
    for (int k = w->nnamed - 1; k >= 0; k--)
        if (w->named[k].index == i) return w->named[k].text;
    return i->name;
}

static bool name_taken(const Writer *w, const char *c)
{
    static const char *const used[] = {"d", "s", "at", "g", "x", "run", "n", "dot", "lower", "upper", "tries", "search", NULL};
    for (int k = 0; used[k]; k++)
        if (strcmp(used[k], c) == 0) return true;
    for (int k = 0; k < w->nnamed; k++)
        if (strcmp(w->named[k].text, c) == 0) return true;
    return false;
}

const char *fresh_index(Writer *w, const Index *i)
{
    const char *c = c_name(w, i->name);
    for (int k = 2; name_taken(w, c); k++) c = text(w, "%s%d", i->name, k);
    name_index(w, i, c);
    return c;
}

void know(Writer *w, const Expr *e, const char *c)
{
    ROOM(w->arena, w->known, w->nknown, w->known_size);
    w->known[w->nknown++] = (Known){e, c};
    ((Expr *)e)->known++;
}

// The name of e in the current C scope, or NULL. Few expressions have one: these are counted.
static const char *known(const Writer *w, const Expr *e)
{
    for (int k = w->nknown - 1; e->known && k >= 0; k--)
        if (w->known[k].e == e) return w->known[k].text;
    return NULL;
}

int mark(Writer *w)
{
    ROOM(w->arena, w->mark, w->nmarks, w->mark_size);
    w->mark[w->nmarks].known = w->nknown;
    w->mark[w->nmarks].named = w->nnamed;
    return w->nmarks++;
}

void forget(Writer *w, int m)
{
    while (w->nknown > w->mark[m].known) ((Expr *)w->known[--w->nknown].e)->known--;
    w->nnamed = w->mark[m].named;
    w->nmarks = m + 1;
}

void forget_all(Writer *w)
{
    while (w->nknown) ((Expr *)w->known[--w->nknown].e)->known--;
    w->nnamed = w->temporaries = w->nscratch = w->nmarks = 0;
}

const char *open_loop(Writer *w, Index *i)
{
    const char *lo = write_subscript(w, i->lo), *hi = write_extent(w, i->hi), *c = fresh_index(w, i);
    open_brace(w, "for (long %s = %s; %s < %s; %s++)", c, lo, c, hi, c);
    return c;
}

const char *var_place(Writer *w, const Var *v)
{
    bool data = v->kind == VAR_DATA && (!v->response || w->as_read);
    return text(w, "%s.%s", data ? "d" : "s", c_name(w, v->name));
}

// ---- expressions ----

enum { ADDITIVE = 1, MULTIPLICATIVE, TIGHT };

static const char *write(Writer *w, Expr *e, int tight);

static Look no_integer(const Expr *e, void *with)
{
    (void)with;
    switch (e->kind) {
    case EX_NUM: return e->number == floor(e->number) && fabs(e->number) < 1e9 ? SKIP : FOUND;
    case EX_INDEX: return SKIP;
    case EX_REF: return e->var->base == BASE_INT ? SKIP : FOUND;
    case EX_ADD: case EX_MUL: return LOOK;
    case EX_POW: case EX_CALL: case EX_REDUCE: case EX_ARRAY: case EX_AT: break;
    }
    return FOUND;
}

static bool is_integer(const Expr *e) { return !ex_find(e, no_integer, NULL); }

const char *write_subscript(Writer *w, Expr *e)
{
    if (w->group && e == w->group) return w->group_name;
    if (e->kind == EX_NUM) return text(w, "%ld", (long)e->number - 1);
    if (e->kind == EX_INDEX) return index_text(w, e->index);
    if (e->kind == EX_ADD && e->args[0]->kind == EX_NUM) {
        Expr *rest = ex_sub(e, e->args[0]);
        long c = (long)e->args[0]->number;
        if (rest->kind == EX_INDEX) {
            const char *i = index_text(w, rest->index);
            return c == 0 ? i : text(w, "%s %c %ld", i, c < 0 ? '-' : '+', labs(c));
        }
    }
    if (!is_integer(e)) return text(w, "(long)(%s) - 1", write(w, e, 0));
    if (e->kind == EX_ADD) {                     // i + k - 1 and such: one is taken off once
        bool indices = false;
        for (int i = 0; i < e->nargs; i++) indices |= e->args[i]->kind == EX_INDEX;
        if (indices) return text(w, "%s - 1", write(w, e, ADDITIVE));
    }
    return text(w, "%s - 1", write(w, e, ADDITIVE));
}

// The largest of a vector of whole data: an extent, written where no loop can stand.
static bool is_greatest(const Expr *e)
{
    if (e->kind != EX_REDUCE || strcmp(e->name, "max") != 0 || !ex_is_num(e->args[0], 1)) return false;
    const Expr *x = e->args[2];
    return x->kind == EX_REF && x->nargs == 1 && x->var->kind == VAR_DATA && x->var->base == BASE_INT && x->var->rank == 1 && x->args[0]->kind == EX_INDEX &&
           x->args[0]->index == e->index && x->var->dim[0] == e->args[1];
}

static bool has_greatest(const Expr *e)
{
    if (is_greatest(e)) return true;
    for (int i = 0; i < e->nargs; i++)
        if (has_greatest(e->args[i])) return true;
    return false;
}

const char *write_extent(Writer *w, Expr *e)
{
    if (is_greatest(e)) return text(w, "greatest(d.%s, %s)", c_name(w, e->args[2]->var->name), write_extent(w, e->args[1]));
    if ((e->kind == EX_ADD || e->kind == EX_MUL) && has_greatest(e)) {
        const char *all = NULL;
        for (int i = 0; i < e->nargs; i++) all = text(w, "%s%s(%s)", all ? all : "", !all ? "" : e->kind == EX_ADD ? " + " : " * ", write_extent(w, e->args[i]));
        return all;
    }
    if (!is_integer(e)) return text(w, "(long)%s", write(w, e, TIGHT));
    return write(w, e, e->kind == EX_MUL ? MULTIPLICATIVE : ADDITIVE);
}

static bool test_wild(const Var *v, void *with) { (void)with; return v->wild; }

// May the subscript lie outside the array here?
static bool may_leave(const Writer *w, const Expr *subscript, const Expr *dim)
{
    if (subscript->kind == EX_INDEX && subscript->index->hi == dim && ex_is_num(subscript->index->lo, 1)) return false;
    if (subscript->kind == EX_NUM && dim->kind == EX_NUM && subscript->number <= dim->number) return false;
    return w->careful || ex_any_var(subscript, test_wild, NULL);
}

const char *write_position(Writer *w, const Var *v, Expr *const *subscript)
{
    const char *p = NULL;
    for (int k = 0; k < v->rank; k++) {
        const char *i = write_subscript(w, subscript[k]);
        const bool checked = may_leave(w, subscript[k], v->dim[k]);
        if (checked) i = text(w, "%s(%s, %s, \"%s\")", w->host ? "gm_inside" : "INSIDE", i, write_extent(w, v->dim[k]), v->name);
        const bool is_int = subscript[k]->kind == EX_REF && !checked && !known(w, subscript[k]);       // positions are longs
        if (!p) p = is_int && v->rank > 1 ? text(w, "(long)%s", i) : i;
        else {
            bool deep = strchr(p, ' ') != NULL;
            const char *extent = write_extent(w, v->dim[k]);
            bool wide = strchr(extent, ' ') != NULL;
            p = text(w, "%s%s%s * %s%s%s + %s", deep ? "(" : "", p, deep ? ")" : "", wide ? "(" : "", extent, wide ? ")" : "", i);
        }
    }
    return p ? p : "0";
}

static const char *number(Writer *w, double v)
{
    if (isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
    if (v == floor(v) && fabs(v) < 1e9) return text(w, "%ld", (long)v);
    char s[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v) break;
    }
    return text(w, "%s", s);
}

static const char *paren(Writer *w, const char *c, bool yes) { return yes ? text(w, "(%s)", c) : c; }

static const char *as_real(Writer *w, Expr *e);

static const char *power(Writer *w, Expr *base, double r)
{
    if (r == 1) return write(w, base, TIGHT);
    if (r == 2) return text(w, "square(%s)", write(w, base, 0));
    if (r == 3) return text(w, "cube(%s)", write(w, base, 0));
    if (r == 0.5) return text(w, "sqrt(%s)", as_real(w, base));
    return text(w, "pow(%s, %s)", as_real(w, base), text(w, r == floor(r) ? "%s.0" : "%s", number(w, r)));
}

// Whether the C expression may be of type real, not wide.
static bool is_narrow(const Expr *e)
{
    if (e->kind == EX_REF) return e->var->narrow;
    if (e->narrow) return e->narrow == 1;
    bool any = false, wide = false;
    for (int i = 0; i < e->nargs; i++) {
        wide |= e->args[i]->kind == EX_REF && e->args[i]->var->base == BASE_REAL && !e->args[i]->var->narrow;
        any |= is_narrow(e->args[i]);
    }
    ((Expr *)e)->narrow = any && !wide ? 1 : 2;
    return any && !wide;
}

static bool is_known(const Writer *w, const Expr *e)
{
    return known(w, e) != NULL;
}

// Whether the C expression is of type int. (Whole numbers that are data and no response are longs: sizes.)
static bool is_short(const Writer *w, const Expr *e)
{
    if (is_known(w, e)) return false;
    if (e->kind == EX_MUL) return e->nargs == 2 && ex_is_num(e->args[0], -1) && is_short(w, e->args[1]);
    return (e->kind == EX_REF && e->var->base == BASE_INT && (e->var->rank || e->var->response || e->var->kind != VAR_DATA)) || (e->kind == EX_NUM && is_integer(e));
}

// Whether C would add or multiply the two as ints. The first is then made a type that holds what they make.
static bool both_short(const Writer *w, const Expr *first, const Expr *second) { return is_short(w, first) && is_short(w, second); }

static const char *lengthened(Writer *w, const Expr *e, const char *c, const char *type)
{
    return e->kind == EX_NUM && e->number >= 0 ? text(w, "%sL", c) : text(w, "(%s)%s", type, c);
}

// The k-th term as written: what is positive comes first.
static Expr *term_of(const Expr *e, int k) { return e->args[(k + (e->args[0]->kind == EX_NUM)) % e->nargs]; }

static const char *sum(Writer *w, Expr *e, const char *type)
{
    const char **term = NEW_N(w->arena, const char *, e->nargs);
    for (int i = 0; i < e->nargs; i++) term[i] = write(w, term_of(e, i), ADDITIVE);
    if (e->nargs > 1 && both_short(w, term_of(e, 0), term_of(e, 1))) term[0] = lengthened(w, term_of(e, 0), term[0], type);
    size_t length = 1;
    for (int i = 0; i < e->nargs; i++) length += strlen(term[i]) + 3;
    char *c = arena_alloc(w->arena, length), *end = c;
    for (int i = 0; i < e->nargs; i++) {
        const bool minus = i > 0 && term[i][0] == '-' && strcmp(term[i], "-INFINITY") != 0;
        end = stpcpy(stpcpy(end, i == 0 ? "" : minus ? " - " : " + "), term[i] + minus);
    }
    return c;
}

// An argument of a function of reals: C++ has others of the same name for whole numbers and for float.
static const char *as_real(Writer *w, Expr *e)
{
    if (is_narrow(e)) return text(w, "(wide)%s", write(w, e, TIGHT));
    if (e->kind == EX_NUM && is_integer(e)) return text(w, "%ld.0", (long)e->number);
    if (e->kind == EX_ADD && is_integer(e) && !is_known(w, e) && both_short(w, term_of(e, 0), term_of(e, 1)) && term_of(e, 0)->kind != EX_NUM) return sum(w, e, "wide");
    const char *c = write(w, e, 0);
    return is_integer(e) ? text(w, "(wide)%s%s%s", strpbrk(c, " -") ? "(" : "", c, strpbrk(c, " -") ? ")" : "") : c;
}

static const char *product(Writer *w, Expr *e, int tight)
{
    const char *c = NULL;
    int nabsorbed = 0;
    bool minus = false;
    bool *absorbed = arena_alloc(w->arena, sizeof *absorbed * (size_t)e->nargs);
    for (int i = 0; i < e->nargs; i++) nabsorbed += absorbed[i] = ex_absorbed(e, i);
    bool *divides = arena_alloc(w->arena, sizeof *divides * (size_t)e->nargs);      // decided once: writing a factor may name another
    for (int i = 0; i < e->nargs; i++) divides[i] = e->args[i]->kind == EX_POW && e->args[i]->number < 0 && !is_known(w, e->args[i]);
    for (int i = 0; i < e->nargs; i++) {
        Expr *f = e->args[i];
        if (divides[i]) continue;
        if (f->kind == EX_NUM && f->number == -1) { minus = true; continue; }
        if (absorbed[i]) continue;
        const char *t = write(w, f, nabsorbed == 0 || e->nargs > 2 ? MULTIPLICATIVE + (f->kind == EX_MUL) : 0);
        if (!c) {
            int k = i + 1;
            while (k < e->nargs && (divides[k] || absorbed[k])) k++;
            c = k < e->nargs && both_short(w, f, e->args[k]) ? lengthened(w, f, t, "long") : t;
        } else c = text(w, "%s * %s", c, t);
    }
    if (!c) c = "1";
    for (int i = 0; i < e->nargs; i++)
        if (absorbed[i]) c = text(w, "times_log(%s, %s)", c, write(w, e->args[i], 0));
    for (int i = 0; i < e->nargs; i++) {
        Expr *f = e->args[i];
        if (!divides[i]) continue;
        const char *t = power(w, f->args[0], -f->number);
        bool integer = is_integer(f->args[0]) && f->number == -1;
        c = text(w, "%s / %s%s", c, integer ? "(wide)" : "", paren(w, t, strpbrk(t, " ") && !strchr(t, '(')));
    }
    if (minus) c = text(w, "-%s", c);
    return paren(w, c, tight > MULTIPLICATIVE || (minus && tight >= MULTIPLICATIVE));
}

// A square matrix given whole, as a pointer: a part of an array in place, or a copy made here.
static const char *whole(Writer *w, Expr *e)
{
    if (e->kind == EX_REF && e->var->base == BASE_REAL && !e->var->narrow) {
        Expr *at[MAX_RANK];
        for (int k = 0; k < e->var->rank; k++) at[k] = k < e->nargs ? e->args[k] : ex_num(1);
        return text(w, "&%s[%s]", var_place(w, e->var), write_position(w, e->var, at));
    }
    int rank = ex_rank(e);
    const char *t = text(w, "array%d", ++w->temporaries), *size = "1";
    Index *i[MAX_RANK];
    Expr *at[MAX_RANK];
    for (int k = 0; k < rank; k++) {
        const char *n = write_extent(w, ex_dim(e, k));
        size = k ? text(w, "%s * (%s)", size, n) : text(w, "(%s)", n);
    }
    put_scratch(w, t, size);
    const bool team = w->team;
    w->team = false;
    int m = mark(w);
    const char *position = "0";
    for (int k = 0; k < rank; k++) {
        at[k] = ex_index(i[k] = index_new(intern(k ? "k" : "j"), ex_num(1), ex_dim(e, k)));
        const char *c;
        if (k == 0 && team) {
            const char *n = write_extent(w, i[k]->hi);
            c = fresh_index(w, i[k]);
            open_brace(w, "TEAM_FILL (%s, %s)", c, n);
        } else c = open_loop(w, i[k]);
        position = k ? text(w, "(%s) * (%s) + %s", position, write_extent(w, ex_dim(e, k)), c) : c;
    }
    put(w, "%s[%s] = %s;", t, position ? position : "0", write_expr(w, ex_at(e, rank, at)));
    for (int k = 0; k < rank; k++) close_brace(w);
    w->team = team;
    forget(w, m);
    return t;
}

// inverse(A), cholesky_decompose(A): computed into a buffer, once in the scope that asks first.
static const char *array_call(Writer *w, Expr *e)
{
    const char *held = known(w, e);
    if (held) return held;
    const char *n = write_extent(w, ex_dim(e->args[0], 0)), *a = whole(w, e->args[0]);
    const char *t = text(w, "matrix%d", ++w->temporaries);
    bool vector = ex_rank(e) == 1;
    put_scratch(w, t, text(w, "(%s)%s", n, vector ? "" : text(w, " * (%s)", n)));
    put(w, "%s%s_into(%s, %s, %s);", w->team ? "TEAM_ONCE " : "", e->name, n, a, t);
    know(w, e, t);
    return t;
}

static const char *reduce(Writer *w, Expr *e)
{
    const char *t = text(w, "%s%d", strcmp(e->name, "log_sum_exp") == 0 ? "lse" : e->name, ++w->temporaries);
    Index *i = index_new(e->index->name, e->args[0], e->args[1]);
    Expr *body = ex_open(e, i);
    Loops inner = {.n = 1, .index = {i}};
    const char *held = w->predicted ? w->predicted(w->program, e) : NULL;
    if (held) {
        put(w, "const %s %s = %s;", w->number, t, held);
        know(w, e, t);
        return t;
    }
    keep_outside(w, body, &inner);
    bool sum = strcmp(e->name, "sum") == 0, max = strcmp(e->name, "max") == 0, lse = strcmp(e->name, "log_sum_exp") == 0;
    const bool team = w->team, shared = team && sum;
    if (lse) {
        put(w, "LogSum %s = log_sum_start();", t);
    } else put(w, "%s %s = %s;", shared ? "wide" : w->number, t, sum ? "0" : strcmp(e->name, "prod") == 0 ? "1" : max ? "-INFINITY" : "INFINITY");
    int m = mark(w);
    if (shared && ex_is_num(i->lo, 1)) {
        const char *n = write_extent(w, i->hi);
        open_brace(w, "%s (%s, %s, &%s)", w->crew ? "SUM_TURNS" : "SUM_ALONG", fresh_index(w, i), n, t);
    } else if (shared) {
        const char *lo = write_subscript(w, i->lo), *hi = write_extent(w, i->hi);
        open_brace(w, "%s_FROM (%s, %s, %s - (%s), &%s)", w->crew ? "SUM_TURNS" : "SUM_ALONG", fresh_index(w, i), lo, hi, lo, t);
    } else open_loop(w, i);
    w->team = team && !shared;
    const char *b = write(w, body, ADDITIVE);
    if (lse) put(w, "log_sum_add(&%s, %s);", t, b);
    else if (sum) put(w, "%s += %s;", t, b);
    else if (strcmp(e->name, "prod") == 0) put(w, "%s *= %s;", t, b);
    else put(w, "%s = %s(%s, %s);", t, max ? "fmax" : "fmin", t, b);
    close_brace(w);
    w->team = team;
    forget(w, m);
    if (lse) {
        const char *r = text(w, "%s_value", t);
        put(w, "const %s %s = log_sum_value(&%s);", w->number, r, t);
        t = r;
    }
    know(w, e, t);
    return t;
}

// What is longer than this is written in parts that have names: an expression that shares its parts may be too long to write out.
enum { LONGEST = 2000 };

static Look statement(const Expr *e, void *with)
{
    (void)with;
    return e->size > LONGEST || e->kind == EX_REDUCE || e->kind == EX_AT || (e->kind == EX_CALL && strcmp(e->name, "log_determinant") == 0) ? FOUND : LOOK;
}

static bool needs_statements(const Expr *e) { return ex_find(e, statement, NULL); }

static const char *write_call(Writer *w, Expr *e)
{
    static const char *const infix[] = {"==", "!=", "<", "<=", "&&", "||", NULL};
    for (int i = 0; infix[i]; i++)
        if (e->nargs == 2 && strcmp(e->name, infix[i]) == 0)
            return text(w, "(%s %s %s)", write(w, e->args[0], ADDITIVE), e->name, write(w, e->args[1], ADDITIVE));
    if (strcmp(e->name, "%") == 0) return text(w, "((long)(%s) %% (long)(%s))", write(w, e->args[0], 0), write(w, e->args[1], 0));
    if (strcmp(e->name, "missing") == 0 && e->args[0]->var->base == BASE_INT) return text(w, "(%s == -2147483648.0)", write(w, e->args[0], ADDITIVE));
    if (strcmp(e->name, "missing") == 0) return text(w, "(%1$s != %1$s)", write(w, e->args[0], ADDITIVE));
    if (strcmp(e->name, "same") == 0) return text(w, "(%s == %s)", write(w, e->args[0], ADDITIVE), write(w, e->args[1], ADDITIVE));
    if (strcmp(e->name, "!") == 0) return text(w, "!%s", write(w, e->args[0], TIGHT));
    if (strcmp(e->name, "if_else") == 0) {
        const char *c = write(w, e->args[0], ADDITIVE);
        if (needs_statements(e->args[1]) || needs_statements(e->args[2])) {
            const char *t = text(w, "choice%d", ++w->temporaries);
            put(w, "%s %s;", w->number, t);
            for (int side = 1; side <= 2; side++) {
                int m = mark(w);
                open_brace(w, side == 1 ? "if (%s)" : "else", c);
                put(w, "%s = %s;", t, write(w, e->args[side], 0));
                close_brace(w);
                forget(w, m);
            }
            know(w, e, t);
            return t;
        }
        return text(w, "(%s ? %s : %s)", c, write(w, e->args[1], ADDITIVE), write(w, e->args[2], ADDITIVE));
    }
    if (strcmp(e->name, "log_determinant") == 0) {
        const char *t = text(w, "log_det%d", ++w->temporaries), *n = write_extent(w, ex_dim(e->args[0], 0)), *a = whole(w, e->args[0]);
        put(w, w->team ? "const wide %s = TEAM_VALUE(log_determinant_of(%s, %s));" : "const wide %s = log_determinant_of(%s, %s);", t, n, a);
        know(w, e, t);
        return t;
    }
    const char *list = "";
    for (int i = 0; i < e->nargs; i++) {
        const char *a = ex_rank(e->args[i]) > 0 ? whole(w, e->args[i]) : as_real(w, e->args[i]);
        list = text(w, "%s%s%s", list, i ? ", " : "", a);
    }
    return text(w, "%s(%s)", e->name, list);
}

static const char *write_out(Writer *w, Expr *e, int tight);

static const char *write(Writer *w, Expr *e, int tight)
{
    const char *held = known(w, e);
    if (held) return held;
    if (e->size <= LONGEST || e->kind == EX_REF || e->kind == EX_REDUCE || ex_rank(e) > 0) return write_out(w, e, tight);
    const char *c = write_out(w, e, 0), *t = known(w, e);
    if (t) return t;
    t = text(w, "part%d", ++w->temporaries);
    put(w, "const %s %s = %s;", is_integer(e) ? "long" : w->number, t, c);
    know(w, e, t);
    return t;
}

static const char *write_out(Writer *w, Expr *e, int tight)
{
    switch (e->kind) {
    case EX_NUM: {
        const char *c = number(w, e->number);
        return paren(w, c, c[0] == '-' && tight >= MULTIPLICATIVE);
    }
    case EX_INDEX: return text(w, "(%s + 1)", index_text(w, e->index));
    case EX_REF: {
        if (e->nargs < e->var->rank) return whole(w, e);
        const char *place = var_place(w, e->var);
        if (e->var->rank == 0) return place[0] == 'd' ? place : text(w, "*%s", place);
        return text(w, "%s[%s]", place, write_position(w, e->var, e->args));
    }
    case EX_ADD: return paren(w, sum(w, e, "long"), tight > ADDITIVE);
    case EX_MUL: return product(w, e, tight);
    case EX_POW:
        if (e->number < 0) {
            const char *t = power(w, e->args[0], -e->number);
            return paren(w, text(w, "1 / %s%s", is_integer(e->args[0]) && e->number == -1 ? "(wide)" : "", t), tight >= MULTIPLICATIVE);
        }
        return power(w, e->args[0], e->number);
    case EX_CALL: return write_call(w, e);
    case EX_REDUCE: return reduce(w, e);
    case EX_ARRAY: return whole(w, e);
    case EX_AT: {
        const char *a = array_call(w, e->args[0]), *p = NULL;
        for (int k = 1; k < e->nargs; k++) {
            const char *i = write_subscript(w, e->args[k]);
            p = p ? text(w, "(%s) * (%s) + %s", p, write_extent(w, ex_dim(e->args[0], k - 1)), i) : i;
        }
        return text(w, "%s[%s]", a, p);
    }
    }
    return "0";
}

const char *write_expr(Writer *w, Expr *e) { return write(w, e, 0); }
const char *write_factor(Writer *w, Expr *e) { return write(w, e, TIGHT); }

// ---- what loops do not change is computed before them ----

static bool inside(const Expr *e, const Loops *inner)
{
    if (e->loose) return true;                   // belongs to a sum further out
    for (int i = 0; i < inner->n; i++)
        if (ex_mentions_index(e, inner->index[i])) return true;
    return false;
}

static bool worth_naming(const Expr *e)
{
    switch (e->kind) {
    case EX_POW: case EX_REDUCE: return true;
    case EX_CALL: return strcmp(e->name, "within") != 0 && e->nargs > 0;
    case EX_ADD: return e->nargs > 1 && ex_unknown(e);
    case EX_NUM: case EX_REF: case EX_INDEX: case EX_MUL: case EX_ARRAY: case EX_AT: break;
    }
    return false;
}

// Whether e reads an element that may exist only where a guard holds: u[g[i]], x[t - 1].
static Look look_up(const Expr *e, void *with)
{
    (void)with;
    for (int i = 0; i < e->nargs && e->kind == EX_REF; i++)
        if (e->args[i]->kind != EX_INDEX && e->args[i]->kind != EX_NUM) return FOUND;
    return LOOK;
}

static bool looks_up(const Expr *e) { return ex_find(e, look_up, NULL); }

static void keep(Writer *w, Expr *e, const Loops *inner, uint64_t walk)
{
    if (is_known(w, e) || e->kept == walk) return;
    e->kept = walk;
    if (e->nargs == 0) return;
    if (e->kind == EX_CALL && strcmp(e->name, "scattered") == 0) {    // a list of values
        for (int i = 0; i < e->nargs; i++) keep(w, e->args[i], inner, walk);
        return;
    }
    if (worth_naming(e) && !(inner->guard && looks_up(e)) && !inside(e, inner) && !(w->moving && ex_mentions(e, w->moving)) && ex_rank(e) == 0) {
        const char *c = write(w, e, 0);
        if (is_known(w, e)) return;
        const char *t = text(w, "c%d", ++w->temporaries);
        put(w, "const %s %s = %s;", is_integer(e) ? "long" : w->number, t, c);
        know(w, e, t);
        return;
    }
    if (e->kind == EX_AT && !(inner->guard && looks_up(e->args[0])) && !inside(e->args[0], inner) && !(w->moving && ex_mentions(e->args[0], w->moving))) {
        array_call(w, e->args[0]);
        return;
    }
    if (e->kind == EX_CALL && (strcmp(e->name, "if_else") == 0 || strcmp(e->name, "&&") == 0 || strcmp(e->name, "||") == 0)) {
        keep(w, e->args[0], inner, walk);      // the rest may not be safe to compute
        return;
    }
    for (int i = 0; i < e->nargs; i++) keep(w, e->args[i], inner, walk);
}

void keep_outside(Writer *w, Expr *e, const Loops *inner) { keep(w, e, inner, ex_walk()); }
