// text.c -- expressions as C text. Subscripts count from 1 in expressions and from 0 in C.
//
// An expression is written as it is; what has a name in the scope is written as that. Parentheses are where C needs them.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"

// ---- names ----

const char *var_text(const Out *o, const Var *v)
{
    if (v->kind == VAR_ELEMENT) return v->name;
    const bool as_read = o->as_read || o->g->lesson || (o->launching && v->rank == 0);  // no size is made of a response that may be missing
    return text(o, "%s->%s", v->kind == VAR_DATA && (!v->response || as_read) ? "d" : "s", c_name(o, v->name));
}

const char *scalar_text(const Out *o, const Var *v)
{
    return text(o, o->g->lesson || v->kind == VAR_ELEMENT ? "%s" : "*%s", var_text(o, v));
}

const char *math_text(const Out *o, const Expr *e) { return ex_text(o->arena, e); }
const char *formula_text(const Out *o, const Expr *e) { return ex_formula(o->arena, e); }

const char *source_line(const Out *o, Span s) { return span_place(o->arena, s); }

// ---- expressions ----

static Text tight(const char *c) { return (Text){c, TIGHT, false}; }

// A minus binds like a product.
const char *paren(const Out *o, Text t, Level least)
{
    return t.level < least || (t.minus && least >= MULTIPLICATIVE) ? text(o, "(%s)", t.c) : t.c;
}

const char *expr_c(const Out *o, const Expr *e, Level least) { return paren(o, expr_text(o, e), least); }

// 1 of an index, -1 of one that is taken away, 0 of anything else.
static int signed_index(const Out *o, const Expr *e)
{
    if (scope_find(o->scope, e)) return 0;
    if (e->kind == EX_INDEX) return 1;
    return e->kind == EX_MUL && e->nargs == 2 && ex_is_num(e->args[0], -1) && e->args[1]->kind == EX_INDEX &&
                   !scope_find(o->scope, e->args[1])
               ? -1
               : 0;
}

static Text sum_but(const Out *o, const Expr *e, const Expr *left_out, double less, const char *type);

const char *index_c(const Out *o, const Index *i)
{
    return o->group && o->group->kind == EX_INDEX && o->group->index == i ? o->group_name : index_text(o, i);
}

// A sum, less 1: an index in it is one less already, so that one is left out of the sum and put behind it, before the number.
static Text subscript_of_sum(const Out *o, const Expr *e)
{
    const Expr *number = e->args[0]->kind == EX_NUM ? e->args[0] : NULL, *index = NULL, *other = NULL;
    int nothers = 0;
    for (int i = number != NULL; i < e->nargs; i++) {
        if (!index && e->args[i]->kind == EX_INDEX) index = e->args[i];
        else other = e->args[i], nothers++;
    }
    for (int i = 0; !index && i < e->nargs; i++)
        if (signed_index(o, e->args[i]) < 0) return sum_but(o, e, NULL, 1, "long");
    const long c = (number ? (long)number->number : 0) - (index ? 0 : 1);
    const char *t = index ? index_text(o, index->index) : "";
    if (nothers) {
        const Text rest = nothers == 1        ? expr_text(o, other)
                          : !index && !number ? expr_text(o, e)
                                              : sum_but(o, e, index, number ? number->number : 0, "long");
        t = text(o, index ? "%s + %s" : "%s%s", paren(o, rest, ADDITIVE), t);
    }
    if (c == 0) return (Text){t, nothers ? ADDITIVE : TIGHT, false};
    return (Text){text(o, "%s %c %ld", t, c < 0 ? '-' : '+', labs(c)), ADDITIVE, false};
}

Text subscript_text(const Out *o, const Expr *e)
{
    if (o->group && e == o->group) return tight(o->group_name);
    if (e->kind == EX_NUM) return (Text){text(o, "%ld", (long)e->number - 1), TIGHT, e->number < 1};
    if (e->kind == EX_INDEX) return tight(index_text(o, e->index));
    if (!ex_is_integer(e)) return (Text){text(o, "(long)(%s) - 1", expr_c(o, e, LOOSE)), ADDITIVE, false};
    if (e->kind == EX_ADD) return subscript_of_sum(o, e);
    return (Text){text(o, "%s - 1", expr_c(o, e, ADDITIVE)), ADDITIVE, false};
}

// sum(n), max(n) or min(n) of whole data where no loop can be: a call.
static const char *total_call(const Out *o, const Expr *e)
{
    Slices s;
    if (is_longest_slice(e, &s)) {
        const char *const from = o->launching ? "ON_HOST(run, d->%s)%s" : "d->%s%s";
        const char *const hi = text(o, from, c_name(o, s.hi->name), s.hi_from ? text(o, " + %d", s.hi_from) : ""),
                          *const lo = text(o, from, c_name(o, s.lo->name), s.lo_from ? text(o, " + %d", s.lo_from) : "");
        return text(o, "longest(%s, %s, %ld, %s)", hi, lo, s.more, extent_c(o, s.n, LOOSE));
    }
    const char *routine = e->fn == FN_sum ? "total_of" : e->fn == FN_max ? "greatest" : "smallest";
    const Expr *of = e->args[2];
    while (of->kind == EX_REDUCE) of = of->args[2];
    const Var *v = of->var;
    const char *size = extent_c(o, v->dim[0], v->rank > 1 ? TIGHT : LOOSE);
    for (int k = 1; k < v->rank; k++) size = text(o, "%s * %s", size, extent_c(o, v->dim[k], TIGHT));
    return text(o, o->launching ? "%s(ON_HOST(run, d->%s), %s)" : "%s(d->%s, %s)", routine, c_name(o, v->name), size);
}

static Text data_total(const Out *o, const Expr *e)
{
    const int number = o->host ? 0 : total_number(o->program, e);
    return tight(number ? text(o, "d->%s%d", o->program->total_name, number) : total_call(o, e));
}

// Powers and functions of whole numbers are reals in C.
static bool is_counted_in_reals(const Expr *e)
{
    if (e->kind == EX_POW || (e->kind == EX_CALL && e->fn != FN_MOD)) return true;
    for (int i = 0; i < e->nargs && (e->kind == EX_ADD || e->kind == EX_MUL); i++)
        if (is_counted_in_reals(e->args[i])) return true;
    return false;
}

Text extent_text(const Out *o, const Expr *e)
{
    if (is_data_total(e)) return data_total(o, e);
    if ((e->kind == EX_ADD || e->kind == EX_MUL) && has_data_total(e)) {
        const bool sum = e->kind == EX_ADD;
        const char *all = NULL;
        for (int i = 0; i < e->nargs; i++) {
            const char *c = extent_c(o, e->args[i], sum ? ADDITIVE : TIGHT);
            all = all ? text(o, sum ? "%s + %s" : "%s * %s", all, c) : c;
        }
        return (Text){all, sum ? ADDITIVE : MULTIPLICATIVE, false};
    }
    if (!ex_is_integer(e) || (o->host && is_counted_in_reals(e)))
        return (Text){text(o, o->host ? "gm_whole(%s)" : "(long)%s", expr_c(o, e, o->host ? LOOSE : TIGHT)), TIGHT, false};
    return expr_text(o, e);
}

const char *extent_c(const Out *o, const Expr *e, Level least) { return paren(o, extent_text(o, e), least); }

// Right sides of differential equations are called by the solver, which knows no kernel.
static bool on_host(const Out *o) { return o->host || (o->kernel && o->kernel->ode && o->kernel->of_ode != ODE_SOLUTION); }

// A position in an array so far, row-major.
typedef struct Position {
    Text at;
    bool zero;
} Position;

static Position first_of_all(void) { return (Position){tight("0"), true}; }

// p * n + i
static Position row_major(const Out *o, Position p, const Expr *n, Position i)
{
    const bool one = ex_is_num(n, 1);
    if (p.zero) return i;
    if (i.zero && one) return p;
    const char *rows = one ? p.at.c : text(o, "%s * %s", paren(o, p.at, TIGHT), extent_c(o, n, TIGHT));
    return (Position){i.zero ? (Text){rows, MULTIPLICATIVE, false} : (Text){text(o, "%s + %s", rows, i.at.c), ADDITIVE, false}, false};
}

static Position subscript_position(const Out *o, const Expr *e)
{
    return (Position){subscript_text(o, e), ex_is_num(e, 1) && e != o->group};
}

// May the subscript, NULL for the first, lie outside the array here?
static bool may_leave(const Out *o, const Expr *subscript, const Expr *dim)
{
    if (!subscript) return o->careful && !(dim->kind == EX_NUM && dim->number >= 1);
    if (subscript->kind == EX_INDEX && subscript->index->hi == dim && ex_is_num(subscript->index->lo, 1)) return false;
    if (subscript->kind == EX_NUM && dim->kind == EX_NUM && subscript->number <= dim->number) return false;
    return o->careful || reads_wild(subscript);
}

static Position position_in(const Out *o, const Var *v, int first, int n, Expr *const *at)
{
    Position p = first_of_all();
    for (int k = 0; k < n; k++) {
        Position i = at[k] ? subscript_position(o, at[k]) : first_of_all();
        const Expr *dim = v->dim[first + k];
        const bool checked = may_leave(o, at[k], dim);
        if (checked)
            i = (Position){
                tight(text(o, "%s(%s, %s, \"%s\")", on_host(o) ? "gm_inside" : "INSIDE", i.at.c, extent_c(o, dim, LOOSE), v->name)), false};
        // positions are longs
        const bool is_int = at[k] && at[k]->kind == EX_REF && !checked && at[k] != o->group && !scope_find(o->scope, at[k]);
        if (k == 0 && is_int && n > 1) i.at.c = text(o, "(long)%s", i.at.c);
        p = k ? row_major(o, p, dim, i) : i;
    }
    return p;
}

static Position with_offset(const Out *o, Position p, const Expr *offset)
{
    if (!offset) return p;
    const char *c = expr_c(o, offset, ADDITIVE);
    const size_t n = strlen(p.at.c), tail = strlen(" - 1");
    if (ex_is_num(offset, 1) && n > tail && strcmp(p.at.c + n - tail, " - 1") == 0)  // 1 + d->col[j] - 1
        return (Position){(Text){text(o, "%.*s", (int)(n - tail), p.at.c), ADDITIVE, p.at.minus}, false};
    return (Position){p.zero ? (Text){c, ADDITIVE, false} : (Text){text(o, "%s + %s", c, p.at.c), ADDITIVE, false}, false};
}

Text position_text(const Out *o, const Var *v, int first, int n, Expr *const *at) { return position_in(o, v, first, n, at).at; }

const char *first_position(const Out *o, const Var *v, int n, Expr *const *at)
{
    Expr *all[MAX_RANK] = {0};
    for (int k = 0; k < n; k++) all[k] = at[k];
    return position_text(o, v, 0, v->rank, all).c;
}

// Factors that are 1 are left out; a product of several is one of longs.
const char *count_text(const Out *o, const Count *c)
{
    const char *t = NULL;
    int factors = 0;
    bool is_long = false;
    for (int i = 0; i < c->n; i++) {
        const Expr *e = c->factor[i];
        if (ex_is_num(e, 1)) continue;
        factors++;
        is_long |= e->kind == EX_REF && e->var->kind == VAR_ELEMENT;
    }
    for (int i = 0; i < c->n; i++) {
        const Expr *e = c->factor[i];
        if (ex_is_num(e, 1)) continue;
        const char *n = extent_c(o, e, factors > 1 ? MULTIPLICATIVE : LOOSE);
        if (factors > 1 && !t && !is_long && !(e->kind == EX_MUL || !ex_is_integer(e))) t = text(o, "(long)%s", extent_c(o, e, TIGHT));
        else t = t ? text(o, "%s * %s", t, extent_c(o, e, TIGHT)) : n;
    }
    return t ? t : "1";
}

const char *few_c(const Out *o, const Rows *r)
{
    const char *rows = extent_c(o, r->count, ADDITIVE), *size = extent_c(o, r->size, ADDITIVE);
    return r->listed ? text(o, "FEW_ROWS(%d, %s, %s)", r->listed, rows, size) : text(o, "%s < %s", rows, size);
}

static Position sub_position(const Out *o, const Sub *s)
{
    return s->of ? with_offset(o, position_in(o, s->of, s->first, s->n, s->at), s->offset) : subscript_position(o, s->at[0]);
}

static const char *sub_c(const Out *o, const Sub *s) { return sub_position(o, s).at.c; }

const char *position_c(const Out *o, const Place *at)
{
    if (at->element) return position_text(o, at->element->var, 0, at->element->var->rank, at->element->args).c;
    Position p = first_of_all();
    for (int k = 0; k < at->n; k++) p = k ? row_major(o, p, at->sub[k].extent, sub_position(o, &at->sub[k])) : sub_position(o, &at->sub[k]);
    return p.at.c;
}

const char *element_c(const Out *o, const Var *v, Expr *const *at)
{
    return v->rank ? text(o, "%s[%s]", var_text(o, v), position_text(o, v, 0, v->rank, at).c) : scalar_text(o, v);
}

const char *place_text(const Out *o, const Place *at)
{
    if (at->local) return at->local->name;
    if (at->element) return element_c(o, at->element->var, at->element->args);
    if (at->array->lowered.pattern && at->n == 0) return "";
    if (at->array->lowered.pattern && at->n == 1) return sub_c(o, &at->sub[0]);
    // of a matrix of which there are only some entries
    if (at->array->lowered.pattern) return text(o, "%s, %s", sub_c(o, &at->sub[0]), sub_c(o, &at->sub[1]));
    return text(o, "s->%s[%s]", at->array->name, position_c(o, at));
}

static const double LONG_NUMBER = 1e9;  // whole numbers from here on are written as reals

// Whether the C expression may be of type real, not wide.
static bool is_narrow(const Out *o, const Expr *e)
{
    static char yes, no;
    if (e->kind == EX_REF) return is_real(o->program, e->var);
    const char *known = map_get(o->real, e);
    if (known) return known == &yes;
    bool any = false, wide = false;
    for (int i = 0; i < e->nargs; i++) {
        wide |= e->args[i]->kind == EX_REF && e->args[i]->var->base == BASE_REAL && !is_real(o->program, e->args[i]->var);
        any |= is_narrow(o, e->args[i]);
    }
    map_put(o->arena, o->real, e, any && !wide ? &yes : &no);
    return any && !wide;
}

// Whether the C expression is of type int. (Whole numbers that are data and no response are longs: sizes.)
static bool is_short(const Out *o, const Expr *e)
{
    if (scope_find(o->scope, e)) return false;
    if (e->kind == EX_MUL) return e->nargs == 2 && ex_is_num(e->args[0], -1) && is_short(o, e->args[1]);
    if (e->kind == EX_REF)
        return e->var->base == BASE_INT && e->var->kind != VAR_ELEMENT && (e->var->rank || e->var->response || e->var->kind != VAR_DATA);
    return e->kind == EX_NUM && ex_is_integer(e);
}

// C would add or multiply two ints as ints: the first is made a type that is wide enough for the result.
static const char *lengthened(const Out *o, const Expr *e, const char *c, const char *type)
{
    return !e || (e->kind == EX_NUM && e->number >= 0) ? text(o, "%sL", c) : text(o, "(%s)%s", type, c);
}

static Text sum(const Out *o, const Expr *e, const char *type);

// An argument of a function of reals: C++ has others of the same name for whole numbers and for float.
static const char *as_real(const Out *o, const Expr *e)
{
    if (is_narrow(o, e)) return text(o, "(wide)%s", expr_c(o, e, TIGHT));
    if (e->kind == EX_NUM && ex_is_integer(e))
        return fabs(e->number) < LONG_NUMBER ? text(o, "%ld.0", (long)e->number) : number_c(o, e->number);
    if (e->kind == EX_ADD && ex_is_integer(e) && !scope_find(o->scope, e) && e->args[0]->kind != EX_NUM && is_short(o, e->args[0]) &&
        is_short(o, e->args[1]))
        return sum(o, e, "wide").c;
    return ex_is_integer(e) ? text(o, "(wide)%s", expr_c(o, e, TIGHT)) : expr_c(o, e, LOOSE);
}

static Text turned_sum(const Out *o, const Expr *e);
static bool keeps_sign(const Expr *e, const void *o);

static Text power(const Out *o, const Expr *base, double r)
{
    if (r == 1) return expr_text(o, base);
    const bool turn = ex_backward(base) && !keeps_sign(base, o);
    if (r == 2) return tight(text(o, "square(%s)", turn ? turned_sum(o, base).c : expr_c(o, base, LOOSE)));
    if (r == 3) return tight(text(o, "cube(%s)", expr_c(o, base, LOOSE)));
    if (r == 0.5) return tight(text(o, "sqrt(%s)", as_real(o, base)));
    const char *exponent = text(o, r == floor(r) && fabs(r) < LONG_NUMBER ? "%s.0" : "%s", number_c(o, r));
    return tight(text(o, "pow(%s, %s)", as_real(o, base), exponent));
}

// A text to whose end more is added: a product of hundreds of factors is not copied for each of them.
typedef struct Growing {
    char *text;
    int n, size;
} Growing;

static void append(const Out *o, Growing *g, const char *more)
{
    for (; *more; more++) {
        ROOM(o->arena, g->text, g->n, g->size);
        g->text[g->n++] = *more;
    }
}

static const char *grown(const Out *o, Growing *g)
{
    ROOM(o->arena, g->text, g->n, g->size);
    g->text[g->n] = 0;
    return g->text;
}

static void replace(const Out *o, Growing *g, const char *by)
{
    *g = (Growing){0};
    append(o, g, by);
}

// A sum times -1, term by term; the first of those without a minus comes first.
static Text turned_sum(const Out *o, const Expr *e)
{
    Growing all = {0};
    int first = 0;
    Text *t = NEW_N(o->arena, Text, e->nargs);
    for (int i = 0; i < e->nargs; i++) {
        t[i] = expr_text(o, e->args[i]);
        if (t[i].level < MULTIPLICATIVE) t[i] = tight(text(o, "(%s)", t[i].c));  // an index is a sum, k + 1
        t[i] = t[i].minus ? (Text){t[i].c + 1, MULTIPLICATIVE, false} : (Text){text(o, "-%s", t[i].c), MULTIPLICATIVE, true};
        if (t[first].minus && !t[i].minus) first = i;
    }
    append(o, &all, t[first].c);
    for (int i = 0; i < e->nargs; i++) {
        if (i == first) continue;
        append(o, &all, t[i].minus ? " - " : " + ");
        append(o, &all, t[i].c + t[i].minus);
    }
    return (Text){grown(o, &all), ADDITIVE, false};
}

// What a name stands for keeps its sign, and so does what counts.
static bool keeps_sign(const Expr *e, const void *o) { return scope_find(((const Out *)o)->scope, e) || ex_is_integer(e); }

static Text product(const Out *o, const Expr *e)
{
    const char *first = NULL;
    Growing all = {0};
    const Var *other = scope_find_negative(o->scope, e);
    if (other) return (Text){text(o, "-%s", other->name), MULTIPLICATIVE, true};
    bool *turn = NEW_N(o->arena, bool, e->nargs + 1);
    const bool odd = ex_turned(e, turn, keeps_sign, o) % 2;
    int absorbed = 0, times = 0;
    bool minus = false;
    const Expr *leading = NULL;  // the first factor
    for (int i = 0; i < e->nargs; i++) absorbed += ex_absorbed(e, i);
    for (int i = 0; i < e->nargs; i++) {
        const Expr *f = e->args[i];
        if (ex_absorbed(e, i) || (f->kind == EX_POW && f->number < 0 && !scope_find(o->scope, f))) continue;
        const char *t;
        if (f->kind == EX_NUM) {
            const Text n = number_text(o, f->number);
            minus = n.minus != odd;
            if (fabs(f->number) == 1) continue;
            t = n.c + n.minus;
        } else t = turn[i] ? paren(o, turned_sum(o, f), TIGHT) : expr_c(o, f, MULTIPLICATIVE + (f->kind == EX_MUL));
        if (!first) {
            first = t;
            leading = f;
            continue;
        }
        if (all.n == 0) append(o, &all, is_short(o, leading) && is_short(o, f) ? lengthened(o, leading, first, "long") : first);
        // two sizes make a long, three may not
        if (o->host && ++times > 1 && ex_is_integer(e)) replace(o, &all, text(o, "gm_times(%s, %s)", grown(o, &all), t));
        else {
            append(o, &all, " * ");
            append(o, &all, t);
        }
    }
    if (all.n == 0) append(o, &all, first ? first : "1");
    for (int i = 0; i < e->nargs && absorbed; i++) {
        if (!ex_absorbed(e, i)) continue;
        const char *t = turn[i] ? turned_sum(o, e->args[i]).c : expr_c(o, e->args[i], LOOSE);
        replace(o, &all, text(o, "times_log(%s, %s)", grown(o, &all), t));
    }
    for (int i = 0; i < e->nargs; i++) {
        const Expr *f = e->args[i];
        if (f->kind != EX_POW || f->number >= 0 || ex_absorbed(e, i) || scope_find(o->scope, f)) continue;
        append(o, &all, ex_is_integer(f->args[0]) && f->number == -1 ? " / (wide)" : " / ");
        append(o, &all, paren(o, power(o, f->args[0], -f->number), TIGHT));
    }
    return (Text){minus ? text(o, "-%s", grown(o, &all)) : grown(o, &all), MULTIPLICATIVE, minus};
}

const char *whole_text(const Out *o, const Expr *e)
{
    const Var *known = scope_find(o->scope, e);
    if (known) return known->name;
    if (e->kind != EX_REF) return "NULL";
    return text(o, "&%s[%s]", var_text(o, e->var), first_position(o, e->var, e->nargs, e->args));
}

// ---- comparisons of subscripts ----

static bool holds_index(const Out *o, const Expr *e)
{
    if (scope_find(o->scope, e) || e == o->group) return false;
    if (e->kind == EX_INDEX) return true;
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        if (e->args[i]->kind == EX_INDEX && !scope_find(o->scope, e->args[i])) return true;
    return false;
}

// One less of it reads as well: a number, a size, not an element of an array.
static bool is_plain(const Out *o, const Expr *e)
{
    if (scope_find(o->scope, e) || e == o->group) return false;
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        if (!is_plain(o, e->args[i])) return false;
    return e->kind == EX_ADD || e->kind == EX_NUM || (e->kind == EX_REF && e->nargs == 0);
}

// 2 <= k of the model is k >= 1 here, where k counts from 0, and k <= T is k < T. NULL: no comparison of an index.
static const char *compared(const Out *o, const Expr *e, bool holds)
{
    static const char *const word[2][4] = {{"!=", "==", ">=", ">"}, {"==", "!=", "<", "<="}};
    if (e->fn != FN_EQ && e->fn != FN_NE && e->fn != FN_LT && e->fn != FN_LE) return NULL;
    const Expr *a = e->args[0], *b = e->args[1];
    const bool left = holds_index(o, a), right = holds_index(o, b), ordered = e->fn == FN_LT || e->fn == FN_LE;
    if (!(left || right) || !ex_is_integer(a) || !ex_is_integer(b)) return NULL;
    const int op = e->fn == FN_EQ ? 0 : e->fn == FN_NE ? 1 : e->fn == FN_LT ? 2 : 3;
    if (left && (right || is_plain(o, b)) && e->fn != FN_LE)
        return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][op], paren(o, subscript_text(o, b), ADDITIVE));
    // k + 1 <= T
    if (left && e->fn == FN_LE && !right)
        return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][2], expr_c(o, b, ADDITIVE));
    if (left && e->fn == FN_LE)
        return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][3], paren(o, subscript_text(o, b), ADDITIVE));
    if (left || !is_plain(o, a)) return NULL;
    const char *k = paren(o, subscript_text(o, b), ADDITIVE);
    if (!ordered) return text(o, "%s %s %s", k, word[holds][op], paren(o, subscript_text(o, a), ADDITIVE));
    return text(o, "%s %s %s", k, holds ? ">=" : "<", e->fn == FN_LE ? paren(o, subscript_text(o, a), ADDITIVE) : expr_c(o, a, ADDITIVE));
}

Text negated_text(const Out *o, const Expr *e)
{
    const char *opposite = e->kind == EX_CALL && !scope_find(o->scope, e) ? compared(o, e, false) : NULL;
    return opposite ? (Text){opposite, LOOSE, false} : tight(text(o, "!%s", expr_c(o, e, TIGHT)));
}

// Whether an unknown in a call has its logarithm kept: read where its logarithm is known, if it has a name here.
static bool keeps_logs(const Out *o, const LogForm *f)
{
    bool yes = false;
    for (int i = 0; f && i < f->n && !yes; i++)
        yes = scope_find(o->scope, f->of[i]) ? scope_find(o->scope, f->log[i]) != NULL : f->of[i]->var->lowered.kept_log != NULL;
    return yes;
}

// log(1 + x), log(x + y), where a term may have rounded to an end of its support: of the logarithms of the terms.
static Text log_of_sum(const Out *o, const LogForm *f)
{
    const char *all = NULL;
    for (int i = 0; i < f->nterms; i++) {
        const char *log = expr_c(o, f->term[i], LOOSE);
        all = all ? text(o, "log_sum_exp2(%s, %s)", all, log) : log;
    }
    return tight(all);
}

// A call of log or pow, of logarithms that are kept. c NULL: it is none.
static Text of_kept(const Out *o, const Expr *e)
{
    if (!e->nargs) return (Text){NULL, LOOSE, false};
    const Expr *x = e->args[0];
    const Var *kept = x->kind != EX_REF || e->nargs != 1 || scope_find(o->scope, x) ? NULL
                      : e->fn == FN_log                                             ? x->var->lowered.kept_log
                      : e->fn == FN_log1m                                           ? x->var->lowered.kept_log1m
                                                                                    : NULL;
    if (kept) return tight(text(o, "%s_kept(%s, %s)", e->name, as_real(o, x), element_c(o, kept, x->args)));
    const LogForm *f = e->fn == FN_log || e->fn == FN_pow ? map_get(&o->program->logs, e) : NULL;
    if (!keeps_logs(o, f) || !f->nterms) return (Text){NULL, LOOSE, false};
    if (e->fn == FN_log) return log_of_sum(o, f);
    // of a value that may have rounded to an end
    return tight(
        text(o, "exp(%s * %s)", paren(o, expr_text(o, e->args[1]), MULTIPLICATIVE), paren(o, expr_text(o, f->term[0]), MULTIPLICATIVE)));
}

static const char *arguments_text(const Out *o, const Expr *e)
{
    const char *list = "";
    for (int i = 0; i < e->nargs; i++)
        list = text(o, "%s%s%s", list, i ? ", " : "", ex_rank(e->args[i]) > 0 ? whole_text(o, e->args[i]) : as_real(o, e->args[i]));
    return list;
}

static Text call(const Out *o, const Expr *e)
{
    const char *infix = function_rows[e->fn].infix, *subscripts = compared(o, e, true);
    if (subscripts) return (Text){subscripts, LOOSE, false};
    if (infix) return (Text){text(o, "%s %s %s", expr_c(o, e->args[0], ADDITIVE), infix, expr_c(o, e->args[1], ADDITIVE)), LOOSE, false};
    if (e->fn == FN_MOD)
        return tight(text(o,
                          e->args[1]->kind == EX_NUM && e->args[1]->number != 0 ? "((long)(%s) %% (long)(%s))"
                          : on_host(o) || o->launching                          ? "gm_remainder((long)(%s), (long)(%s))"
                                                                                : "REMAINDER((long)(%s), (long)(%s))",
                          expr_c(o, e->args[0], LOOSE), expr_c(o, e->args[1], LOOSE)));
    if (e->fn == FN_MISSING) {
        const Expr *r = e->args[0];  // data as read from the file: in the state, missing values have been filled in
        Out file = *o;
        file.as_read = true;
        const char *c = r->var->kind != VAR_DATA ? expr_c(&file, r, ADDITIVE)
                        : r->nargs ? text(o, "d->%s[%s]", c_name(o, r->var->name), position_text(&file, r->var, 0, r->nargs, r->args).c)
                                   : text(o, "d->%s", c_name(o, r->var->name));
        return (Text){r->var->base == BASE_INT ? text(o, "IS_MISSING(%s)", c) : text(o, "IS_NAN(%s)", c), TIGHT, false};
    }
    if (e->fn == FN_NOT) return negated_text(o, e->args[0]);
    if (e->fn == FN_if_else)
        return (Text){
            text(o, "%s ? %s : %s", expr_c(o, e->args[0], ADDITIVE), expr_c(o, e->args[1], ADDITIVE), expr_c(o, e->args[2], ADDITIVE)),
            LOOSE, false};
    const Text kept = o->host ? (Text){NULL, LOOSE, false} : of_kept(o, e);
    if (kept.c) return kept;
    const char *list = arguments_text(o, e);
    // forms that have no calls and branches
    const bool positive = (e->fn == FN_lgamma || e->fn == FN_digamma) && ex_positive(e->args[0]);
    return tight(text(o, "%s%s(%s)", e->name, positive ? "_positive" : "", list));
}

static Text sum(const Out *o, const Expr *e, const char *type) { return sum_but(o, e, NULL, 0, type); }

// Less one of its terms, and so much less.
static Text sum_but(const Out *o, const Expr *e, const Expr *left_out, double by, const char *type)
{
    Text *t = NEW_N(o->arena, Text, e->nargs + 1);
    const Expr **from = NEW_N(o->arena, const Expr *, e->nargs + 1);
    const bool begins = e->args[0]->kind == EX_NUM;
    double last = (begins ? e->args[0]->number : 0) - by;  // a number comes last, with what indices are less by in C
    const bool ends = last != 0;
    bool less = false;
    for (int i = 0; i < e->nargs; i++) less |= signed_index(o, e->args[i]) < 0;
    int n = 0;
    for (int i = begins; i < e->nargs; i++) {
        const Expr *term = e->args[i];
        if (term == left_out) continue;
        const int sign = ends || less ? signed_index(o, term) : 0;
        if (sign) {
            from[n] = term;
            t[n++] = sign > 0 ? tight(index_text(o, term->index))
                              : (Text){text(o, "-%s", index_text(o, term->args[1]->index)), MULTIPLICATIVE, true};
            last += sign;
            continue;
        }
        from[n] = term;
        t[n] = expr_text(o, term);
        if (t[n].level < ADDITIVE) t[n] = tight(text(o, "(%s)", t[n].c));
        n++;
    }
    if (last != 0) t[n++] = number_text(o, last);
    if (n == 1) return t[0];
    if (t[0].minus && !t[1].minus) {  // x - y in place of -y + x
        const Text swap = t[0];
        const Expr *swapped = from[0];
        t[0] = t[1];
        t[1] = swap;
        from[0] = from[1];
        from[1] = swapped;
    }
    if ((!from[0] || is_short(o, from[0])) && (!from[1] || is_short(o, from[1])) && ex_is_integer(e))
        t[0].c = lengthened(o, from[0], t[0].c, type);
    size_t length = 1;
    for (int i = 0; i < n; i++) length += strlen(t[i].c) + 3;
    char *c = arena_alloc(o->arena, length), *last_of = c;
    for (int i = 0; i < n; i++) last_of = stpcpy(stpcpy(last_of, i == 0 ? "" : t[i].minus ? " - " : " + "), t[i].c + (i && t[i].minus));
    return (Text){c, ADDITIVE, false};
}

// A number that only decides how many lanes share a launch, or one of the data files. What the device alone knows counts as 1 iteration; a
// definition of data is written out.
static Text size_in_launch(const Out *o, const Expr *e)
{
    const Var *v = e->var;
    const Site *t = v->kind == VAR_LET && v->rank == 0 ? v->sites : NULL;
    if (t && !t->next && t->value && t->plates.n == 0 && !t->plates.guard && ex_is_integer(t->value)) return extent_text(o, t->value);
    if (v->kind != VAR_DATA || v->base != BASE_INT) return tight("1");
    return tight(text(o, "ON_HOST(run, d->%s)[%s]", c_name(o, v->name), position_text(o, v, 0, v->rank, e->args).c));
}

Text expr_text(const Out *o, const Expr *e)
{
    const Var *known = scope_find(o->scope, e);
    if (known) return tight(known->name);
    switch (e->kind) {
    case EX_NUM: return number_text(o, e->number);
    case EX_INDEX: return (Text){text(o, "%s + 1", index_text(o, e->index)), ADDITIVE, false};
    case EX_REF: {
        if (e->nargs < e->var->rank) return tight(whole_text(o, e));
        if (o->launching && (e->var->rank > 0 || e->var->kind != VAR_DATA)) return size_in_launch(o, e);
        const char *place = var_text(o, e->var);
        if (e->var->rank == 0) return tight(place[0] == 'd' ? place : scalar_text(o, e->var));
        return tight(text(o, "%s[%s]", place, position_text(o, e->var, 0, e->var->rank, e->args).c));
    }
    case EX_ADD: return sum(o, e, "long");
    case EX_MUL: return product(o, e);
    case EX_POW:
        if (e->number < 0)
            return (Text){text(o, "1 / %s%s", ex_is_integer(e->args[0]) && e->number == -1 ? "(wide)" : "",
                               paren(o, power(o, e->args[0], -e->number), TIGHT)),
                          MULTIPLICATIVE - 1, false};
        return power(o, e->args[0], e->number);
    case EX_CALL: return call(o, e);
    case EX_REDUCE:
    case EX_ARRAY: return is_data_total(e) && !scope_find(o->scope, e) ? data_total(o, e) : tight(whole_text(o, e));
    case EX_AT: {
        const Expr *array = e->args[0];
        Position p = first_of_all();
        for (int k = 1; k < e->nargs; k++) {
            const Position i = subscript_position(o, e->args[k]);
            p = k == 1 ? i : row_major(o, p, ex_dim((Expr *)array, k - 1), i);
        }
        return tight(text(o, "%s[%s]", whole_text(o, array), p.at.c));
    }
    }
    return tight("0");
}
