// text.c -- expressions as C text. Subscripts count from 1 in expressions and from 0 in C.
//
// An expression is written as it stands; what has a name in the scope is written as that. Parentheses are where C needs them.
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "../base/words.h"
#include "out.h"

// ---- lines ----

static void write_line(Out *o, const char *format, va_list ap, const char *end)
{
    if (!o->follows) fprintf(o->file, "%*s", 4 * o->indent, "");
    o->follows = false;
    vfprintf(o->file, format, ap);
    fputs(end, o->file);
}

void line(Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_line(o, format, ap, "\n");
    va_end(ap);
}

void begin(Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_line(o, format, ap, o->brief ? " " : *format && strcmp(format, "%s") != 0 ? " {\n" : "{\n");
    va_end(ap);
    o->follows = o->brief;
    if (o->brief) return;
    o->indent++;
    o->depth++;
}

void end(Out *o)
{
    while (o->nbuffers > 0 && o->buffer[o->nbuffers - 1].depth >= o->depth) {
        o->nbuffers--;
        line(o, "%sRELEASE(%s);", o->buffer[o->nbuffers].team ? "TEAM_" : "", o->buffer[o->nbuffers].name);
    }
    o->indent--;
    o->depth--;
    line(o, "}");
}

const char *text(Out *o, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    const char *copy = arena_strdup(o->arena, s);
    free(s);
    return copy;
}

// ---- names ----

const char *c_name(Out *o, const char *name) { return word_apart(o->arena, name, word_reserved); }

const char *marked(Out *o, const char *index) { return text(o, "%c%s", INDEX_MARK, index); }

void name_index(Out *o, const Index *i, const char *c)
{
    if (*c != INDEX_MARK) c = marked(o, c);
    if (o->nnamed == o->size) {
        Named *more = NEW_N(o->arena, Named, o->size = 2 * o->size + 16);
        if (o->nnamed) memcpy(more, o->named, sizeof *more * (size_t)o->nnamed);
        o->named = more;
    }
    o->named[o->nnamed++] = (Named){i, c};
}

static const char *index_text(const Out *o, const Index *i)
{
    for (int k = o->nnamed - 1; k >= 0; k--)
        if (o->named[k].index == i) return o->named[k].text;
    return i->name;
}

// Whether a loop around this place is written so, a local variable of the kernel, or what most kernels have. What else it must not meet: names.c.
static bool name_taken(const Out *o, const char *c)
{
    static const char *const used[] = {"d", "s", "at", "g", "x", "run", "n", "dot", "lower", "upper", "tries", "search", NULL};
    for (int k = 0; used[k]; k++)
        if (strcmp(used[k], c) == 0) return true;
    for (int k = 0; k < o->ntaken; k++)
        if (strcmp(o->taken[k], c) == 0) return true;
    for (int k = 0; k < o->nnamed; k++)
        if (strcmp(o->named[k].text + 1, c) == 0) return true;
    return false;
}

const char *fresh_index(Out *o, const Index *i)
{
    const char *c = c_name(o, i->name);
    for (int k = 2; name_taken(o, c); k++) c = text(o, "%s%d", i->name, k);
    c = marked(o, c);
    name_index(o, i, c);
    return c;
}

const char *var_text(Out *o, const Var *v)
{
    if (v->kind == VAR_ELEMENT) return v->name;
    const bool as_read = o->as_read || (o->launching && v->rank == 0);       // no size is made of a response that may be missing
    return text(o, "%s->%s", v->kind == VAR_DATA && (!v->response || as_read) ? "d" : "s", c_name(o, v->name));
}

const char *math_text(Out *o, const Expr *e) { return ex_text(o->arena, e); }

const char *source_line(Out *o, Span s)
{
    return span_place(o->arena, s);
}

// ---- expressions ----

static Text tight(const char *c) { return (Text){c, TIGHT, false}; }

// A minus binds like a product.
const char *paren(Out *o, Text t, Level least)
{
    return t.level < least || (t.minus && least >= MULTIPLICATIVE) ? text(o, "(%s)", t.c) : t.c;
}

const char *expr_c(Out *o, const Expr *e, Level least) { return paren(o, expr_text(o, e), least); }

// 1 of an index, -1 of one that is taken away, 0 of anything else.
static int signed_index(const Out *o, const Expr *e)
{
    if (scope_find(&o->scope, e)) return 0;
    if (e->kind == EX_INDEX) return 1;
    return e->kind == EX_MUL && e->nargs == 2 && ex_is_num(e->args[0], -1) && e->args[1]->kind == EX_INDEX && !scope_find(&o->scope, e->args[1]) ? -1 : 0;
}

static Text sum_but(Out *o, const Expr *e, const Expr *left_out, double less, const char *type);

const char *index_c(Out *o, const Index *i) { return o->group && o->group->kind == EX_INDEX && o->group->index == i ? o->group_name : index_text(o, i); }

// A sum: an index in it is one less already, so that the number in it goes with what is left to take away.
static Text subscript_of_sum(Out *o, const Expr *e)
{
    const Expr *index = NULL, *number = e->args[0]->kind == EX_NUM ? e->args[0] : NULL;
    for (int i = 0; i < e->nargs && !index; i++)
        if (e->args[i]->kind == EX_INDEX) index = e->args[i];
    for (int i = 0; !index && i < e->nargs; i++)
        if (signed_index(o, e->args[i]) < 0) return sum_but(o, e, NULL, 1, "long");
    const long c = (number ? (long)number->number : 0) - (index ? 0 : 1);
    const int nothers = e->nargs - (index != NULL) - (number != NULL);
    const bool alone = nothers == 0;
    const Expr *other = e->args[e->nargs - 1] == index ? e->args[e->nargs - 2] : e->args[e->nargs - 1];
    Text t = alone ? tight(index_text(o, index->index)) : nothers == 1 ? expr_text(o, other) : !index && !number ? expr_text(o, e) : sum_but(o, e, index, number ? number->number : 0, "long");
    if (index && !alone) t.c = text(o, "%s + %s", paren(o, t, ADDITIVE), index_text(o, index->index));
    else t.c = paren(o, t, ADDITIVE);
    if (c == 0) return (Text){t.c, alone ? TIGHT : ADDITIVE, false};
    return (Text){text(o, "%s %c %ld", t.c, c < 0 ? '-' : '+', labs(c)), ADDITIVE, false};
}

Text subscript_text(Out *o, const Expr *e)
{
    if (o->group && e == o->group) return tight(o->group_name);
    if (e->kind == EX_NUM) return (Text){text(o, "%ld", (long)e->number - 1), TIGHT, e->number < 1};
    if (e->kind == EX_INDEX) return tight(index_text(o, e->index));
    if (!ex_is_integer(e)) return (Text){text(o, "(long)(%s) - 1", expr_c(o, e, LOOSE)), ADDITIVE, false};
    if (e->kind == EX_ADD) return subscript_of_sum(o, e);
    return (Text){text(o, "%s - 1", expr_c(o, e, ADDITIVE)), ADDITIVE, false};
}

// sum(n), max(n) or min(n) of whole data where no loop can stand: a call.
static const char *total_call(Out *o, const Expr *e)
{
    Slices s;
    if (is_longest_slice(e, &s)) {
        const char *const from = o->launching ? "ON_HOST(run, d->%s)%s" : "d->%s%s";
        const char *const hi = text(o, from, c_name(o, s.hi->name), s.hi_from ? text(o, " + %d", s.hi_from) : ""), *const lo = text(o, from, c_name(o, s.lo->name), s.lo_from ? text(o, " + %d", s.lo_from) : "");
        return text(o, "longest(%s, %s, %ld, %s)", hi, lo, s.more, extent_c(o, s.n, LOOSE));
    }
    const char *routine = e->fn == FN_sum ? "total_of" : e->fn == FN_max ? "greatest" : "smallest";
    return text(o, o->launching ? "%s(ON_HOST(run, d->%s), %s)" : "%s(d->%s, %s)", routine, c_name(o, e->args[2]->var->name), extent_c(o, e->args[1], LOOSE));
}

static Text data_total(Out *o, const Expr *e)
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

Text extent_text(Out *o, const Expr *e)
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
    if (!ex_is_integer(e) || (o->host && is_counted_in_reals(e))) return (Text){text(o, o->host ? "gm_whole(%s)" : "(long)%s", expr_c(o, e, o->host ? LOOSE : TIGHT)), TIGHT, false};
    return expr_text(o, e);
}

const char *extent_c(Out *o, const Expr *e, Level least) { return paren(o, extent_text(o, e), least); }

// Right sides of differential equations are called by the solver, which knows no kernel.
static bool on_host(const Out *o) { return o->host || (o->kernel && o->kernel->ode && o->kernel->of_ode != ODE_SOLUTION); }

static bool zero(Text t) { return strcmp(t.c, "0") == 0; }

// p * n + i
static Text row_major(Out *o, Text p, const Expr *n, Text i)
{
    if (ex_is_num(n, 1)) return zero(i) ? p : zero(p) ? i : (Text){text(o, "%s + %s", p.c, i.c), ADDITIVE, false};
    if (zero(p)) return i;
    const char *rows = text(o, "%s * %s", paren(o, p, TIGHT), extent_c(o, n, TIGHT));
    return zero(i) ? (Text){rows, MULTIPLICATIVE, false} : (Text){text(o, "%s + %s", rows, i.c), ADDITIVE, false};
}

// May the subscript, NULL for the first, lie outside the array here?
static bool may_leave(const Out *o, const Expr *subscript, const Expr *dim)
{
    if (!subscript) return o->careful && !(dim->kind == EX_NUM && dim->number >= 1);
    if (subscript->kind == EX_INDEX && subscript->index->hi == dim && ex_is_num(subscript->index->lo, 1)) return false;
    if (subscript->kind == EX_NUM && dim->kind == EX_NUM && subscript->number <= dim->number) return false;
    return o->careful || reads_wild(subscript);
}

Text position_text(Out *o, const Var *v, int first, int n, Expr *const *at, const Expr *offset)
{
    Text p = tight("0");
    for (int k = 0; k < n; k++) {
        Text i = at[k] ? subscript_text(o, at[k]) : tight("0");
        const bool checked = may_leave(o, at[k], v->dim[first + k]);
        if (checked) i = tight(text(o, "%s(%s, %s, \"%s\")", on_host(o) ? "gm_inside" : "INSIDE", i.c, extent_c(o, v->dim[first + k], LOOSE), v->name));
        const bool is_int = at[k] && at[k]->kind == EX_REF && !checked && at[k] != o->group && !scope_find(&o->scope, at[k]);      // positions are longs
        if (k == 0 && is_int && n > 1) i.c = text(o, "(long)%s", i.c);
        p = k ? row_major(o, p, v->dim[first + k], i) : i;
    }
    if (!offset) return p;
    const char *c = expr_c(o, offset, ADDITIVE);
    return zero(p) ? (Text){c, ADDITIVE, false} : (Text){text(o, "%s + %s", c, p.c), ADDITIVE, false};
}

const char *first_position(Out *o, const Var *v, int n, Expr *const *at)
{
    Expr *all[MAX_RANK] = {0};
    for (int k = 0; k < n; k++) all[k] = at[k];
    return position_text(o, v, 0, v->rank, all, NULL).c;
}

// Factors that are 1 are left out; a product of several is one of longs.
const char *count_text(Out *o, const Count *c)
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

const char *few_c(Out *o, const Rows *r)
{
    const char *rows = extent_c(o, r->count, ADDITIVE), *size = extent_c(o, r->size, ADDITIVE);
    return r->told ? text(o, "FEW_ROWS(%d, %s, %s)", r->told, rows, size) : text(o, "%s < %s", rows, size);
}

static Text sub_text(Out *o, const Sub *s)
{
    if (s->of) return position_text(o, s->of, s->first, s->n, s->at, s->offset);
    return subscript_text(o, s->at[0]);
}

const char *position_c(Out *o, const Place *at)
{
    if (at->element) return position_text(o, at->element->var, 0, at->element->var->rank, at->element->args, NULL).c;
    Text p = tight("0");
    for (int k = 0; k < at->n; k++) p = k ? row_major(o, p, at->sub[k].extent, sub_text(o, &at->sub[k])) : sub_text(o, &at->sub[k]);
    return p.c;
}

const char *element_c(Out *o, const Var *v, Expr *const *at)
{
    const char *place = var_text(o, v);
    return v->rank ? text(o, "%s[%s]", place, position_text(o, v, 0, v->rank, at, NULL).c) : text(o, "*%s", place);
}

const char *place_text(Out *o, const Place *at)
{
    if (at->local) return at->local->name;
    if (at->element) return element_c(o, at->element->var, at->element->args);
    if (at->array->pattern && at->n == 0) return "";
    if (at->array->pattern && at->n == 1) return sub_text(o, &at->sub[0]).c;
    if (at->array->pattern) return text(o, "%s, %s", sub_text(o, &at->sub[0]).c, sub_text(o, &at->sub[1]).c);       // of a matrix of which there are only some entries
    return text(o, "s->%s[%s]", at->array->name, position_c(o, at));
}

static const double LONG_NUMBER = 1e9;             // whole numbers from here on are written as reals

static Text number(Out *o, double v)
{
    if (isnan(v)) return tight("NAN");
    if (isinf(v)) return (Text){v > 0 ? "INFINITY" : "-INFINITY", TIGHT, v < 0};
    if (v == floor(v) && fabs(v) < LONG_NUMBER) return (Text){text(o, "%ld", (long)v), TIGHT, v < 0};
    char s[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v) break;
    }
    if (!strpbrk(s, ".en")) strcat(s, ".0");
    return (Text){text(o, "%s", s), TIGHT, v < 0};
}

const char *number_c(Out *o, double v) { return number(o, v).c; }

// Whether the C expression may be of type real, not wide.
static bool is_narrow(Out *o, const Expr *e)
{
    static char yes, no;
    if (e->kind == EX_REF) return is_real(o->program, e->var);
    const char *known = map_get(&o->real, e);
    if (known) return known == &yes;
    bool any = false, wide = false;
    for (int i = 0; i < e->nargs; i++) {
        wide |= e->args[i]->kind == EX_REF && e->args[i]->var->base == BASE_REAL && !is_real(o->program, e->args[i]->var);
        any |= is_narrow(o, e->args[i]);
    }
    map_put(o->arena, &o->real, e, any && !wide ? &yes : &no);
    return any && !wide;
}

// Whether the C expression is of type int. (Whole numbers that are data and no response are longs: sizes.)
static bool is_short(const Out *o, const Expr *e)
{
    if (scope_find(&o->scope, e)) return false;
    if (e->kind == EX_MUL) return e->nargs == 2 && ex_is_num(e->args[0], -1) && is_short(o, e->args[1]);
    if (e->kind == EX_REF) return e->var->base == BASE_INT && e->var->kind != VAR_ELEMENT && (e->var->rank || e->var->response || e->var->kind != VAR_DATA);
    return e->kind == EX_NUM && ex_is_integer(e);
}

// C would add or multiply two ints as ints: the first is made a type that holds what they make.
static const char *lengthened(Out *o, const Expr *e, const char *c, const char *type)
{
    return !e || (e->kind == EX_NUM && e->number >= 0) ? text(o, "%sL", c) : text(o, "(%s)%s", type, c);
}

static Text sum(Out *o, const Expr *e, const char *type);

// An argument of a function of reals: C++ has others of the same name for whole numbers and for float.
static const char *as_real(Out *o, const Expr *e)
{
    if (is_narrow(o, e)) return text(o, "(wide)%s", expr_c(o, e, TIGHT));
    if (e->kind == EX_NUM && ex_is_integer(e)) return fabs(e->number) < LONG_NUMBER ? text(o, "%ld.0", (long)e->number) : number_c(o, e->number);
    if (e->kind == EX_ADD && ex_is_integer(e) && !scope_find(&o->scope, e) && e->args[0]->kind != EX_NUM && is_short(o, e->args[0]) && is_short(o, e->args[1])) return sum(o, e, "wide").c;
    return ex_is_integer(e) ? text(o, "(wide)%s", expr_c(o, e, TIGHT)) : expr_c(o, e, LOOSE);
}

static Text power(Out *o, const Expr *base, double r)
{
    if (r == 1) return expr_text(o, base);
    if (r == 2) return tight(text(o, "square(%s)", expr_c(o, base, LOOSE)));
    if (r == 3) return tight(text(o, "cube(%s)", expr_c(o, base, LOOSE)));
    if (r == 0.5) return tight(text(o, "sqrt(%s)", as_real(o, base)));
    return tight(text(o, "pow(%s, %s)", as_real(o, base), text(o, r == floor(r) && fabs(r) < LONG_NUMBER ? "%s.0" : "%s", number(o, r).c)));
}

// A text to whose end more is added: a product of hundreds of factors is not copied for each of them.
typedef struct Growing { char *text; int n, size; } Growing;

static void append(Out *o, Growing *g, const char *more)
{
    for (; *more; more++) {
        ROOM(o->arena, g->text, g->n, g->size);
        g->text[g->n++] = *more;
    }
}

static const char *grown(Out *o, Growing *g)
{
    ROOM(o->arena, g->text, g->n, g->size);
    g->text[g->n] = 0;
    return g->text;
}

static void replace(Out *o, Growing *g, const char *by)
{
    *g = (Growing){0};
    append(o, g, by);
}

static Text product(Out *o, const Expr *e)
{
    const char *first = NULL;
    Growing all = {0};
    int absorbed = 0, times = 0;
    bool minus = false;
    const Expr *leading = NULL;                   // the first factor
    for (int i = 0; i < e->nargs; i++) absorbed += ex_absorbed(e, i);
    for (int i = 0; i < e->nargs; i++) {
        const Expr *f = e->args[i];
        if (ex_absorbed(e, i) || (f->kind == EX_POW && f->number < 0 && !scope_find(&o->scope, f))) continue;
        const char *t;
        if (f->kind == EX_NUM) {
            minus = f->number < 0;
            if (fabs(f->number) == 1) continue;
            t = number(o, fabs(f->number)).c;
        } else t = expr_c(o, f, MULTIPLICATIVE + (f->kind == EX_MUL));
        if (!first) { first = t; leading = f; continue; }
        if (all.n == 0) append(o, &all, is_short(o, leading) && is_short(o, f) ? lengthened(o, leading, first, "long") : first);
        if (o->host && ++times > 1 && ex_is_integer(e)) replace(o, &all, text(o, "gm_times(%s, %s)", grown(o, &all), t));      // two sizes make a long, three may not
        else {
            append(o, &all, " * ");
            append(o, &all, t);
        }
    }
    if (all.n == 0) append(o, &all, first ? first : "1");
    for (int i = 0; i < e->nargs && absorbed; i++) {
        if (!ex_absorbed(e, i)) continue;
        replace(o, &all, text(o, "times_log(%s, %s)", grown(o, &all), expr_c(o, e->args[i], LOOSE)));
    }
    for (int i = 0; i < e->nargs; i++) {
        const Expr *f = e->args[i];
        if (f->kind != EX_POW || f->number >= 0 || ex_absorbed(e, i) || scope_find(&o->scope, f)) continue;
        append(o, &all, ex_is_integer(f->args[0]) && f->number == -1 ? " / (wide)" : " / ");
        append(o, &all, paren(o, power(o, f->args[0], -f->number), TIGHT));
    }
    return (Text){minus ? text(o, "-%s", grown(o, &all)) : grown(o, &all), MULTIPLICATIVE, minus};
}

const char *whole_text(Out *o, const Expr *e)
{
    const Var *known = scope_find(&o->scope, e);
    if (known) return known->name;
    if (e->kind != EX_REF) return "NULL";
    return text(o, "&%s[%s]", var_text(o, e->var), first_position(o, e->var, e->nargs, e->args));
}

// ---- comparisons of subscripts ----

static bool holds_index(const Out *o, const Expr *e)
{
    if (scope_find(&o->scope, e) || e == o->group) return false;
    if (e->kind == EX_INDEX) return true;
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        if (e->args[i]->kind == EX_INDEX && !scope_find(&o->scope, e->args[i])) return true;
    return false;
}

// One less of it reads as well: a number, a size, not what stands in an array.
static bool is_plain(const Out *o, const Expr *e)
{
    if (scope_find(&o->scope, e) || e == o->group) return false;
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        if (!is_plain(o, e->args[i])) return false;
    return e->kind == EX_ADD || e->kind == EX_NUM || (e->kind == EX_REF && e->nargs == 0);
}

// 2 <= k of the model is k >= 1 here, where k counts from 0, and k <= T is k < T. NULL: no comparison of an index.
static const char *compared(Out *o, const Expr *e, bool holds)
{
    static const char *const word[2][4] = {{"!=", "==", ">=", ">"}, {"==", "!=", "<", "<="}};
    if (e->fn != FN_EQ && e->fn != FN_NE && e->fn != FN_LT && e->fn != FN_LE) return NULL;
    const Expr *a = e->args[0], *b = e->args[1];
    const bool left = holds_index(o, a), right = holds_index(o, b), ordered = e->fn == FN_LT || e->fn == FN_LE;
    if (!(left || right) || !ex_is_integer(a) || !ex_is_integer(b)) return NULL;
    const int op = e->fn == FN_EQ ? 0 : e->fn == FN_NE ? 1 : e->fn == FN_LT ? 2 : 3;
    if (left && (right || is_plain(o, b)) && e->fn != FN_LE) return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][op], paren(o, subscript_text(o, b), ADDITIVE));
    if (left && e->fn == FN_LE && !right) return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][2], expr_c(o, b, ADDITIVE));      // k + 1 <= T
    if (left && e->fn == FN_LE) return text(o, "%s %s %s", paren(o, subscript_text(o, a), ADDITIVE), word[holds][3], paren(o, subscript_text(o, b), ADDITIVE));
    if (left || !is_plain(o, a)) return NULL;
    const char *k = paren(o, subscript_text(o, b), ADDITIVE);
    if (!ordered) return text(o, "%s %s %s", k, word[holds][op], paren(o, subscript_text(o, a), ADDITIVE));
    return text(o, "%s %s %s", k, holds ? ">=" : "<", e->fn == FN_LE ? paren(o, subscript_text(o, a), ADDITIVE) : expr_c(o, a, ADDITIVE));
}

Text negated_text(Out *o, const Expr *e)
{
    const char *opposite = e->kind == EX_CALL && !scope_find(&o->scope, e) ? compared(o, e, false) : NULL;
    return opposite ? (Text){opposite, LOOSE, false} : tight(text(o, "!%s", expr_c(o, e, TIGHT)));
}

// Whether an unknown in a call has its logarithm kept: read where its logarithm is known, if it has a name here.
static bool keeps_logs(const Out *o, const LogForm *f)
{
    bool yes = false;
    for (int i = 0; f && i < f->n && !yes; i++) yes = scope_find(&o->scope, f->of[i]) ? scope_find(&o->scope, f->log[i]) != NULL : f->of[i]->var->kept_log != NULL;
    return yes;
}

// log(1 + x), log(x + y), where a term may have rounded to an end of its support: of the logarithms of the terms.
static Text log_of_sum(Out *o, const LogForm *f)
{
    const char *all = NULL;
    for (int i = 0; i < f->nterms; i++) {
        const char *log = expr_c(o, f->term[i], LOOSE);
        all = all ? text(o, "log_sum_exp2(%s, %s)", all, log) : log;
    }
    return tight(all);
}

// A call of log or pow, of logarithms that are kept. c NULL: it is none.
static Text of_kept(Out *o, const Expr *e)
{
    if (!e->nargs) return (Text){NULL, LOOSE, false};
    const Expr *x = e->args[0];
    const Var *kept = x->kind != EX_REF || e->nargs != 1 || scope_find(&o->scope, x) ? NULL : e->fn == FN_log ? x->var->kept_log : e->fn == FN_log1m ? x->var->kept_log1m : NULL;
    if (kept) return tight(text(o, "%s_kept(%s, %s)", e->name, as_real(o, x), element_c(o, kept, x->args)));
    const LogForm *f = e->fn == FN_log || e->fn == FN_pow ? map_get(&o->program->logs, e) : NULL;
    if (!keeps_logs(o, f) || !f->nterms) return (Text){NULL, LOOSE, false};
    if (e->fn == FN_log) return log_of_sum(o, f);
    return tight(text(o, "exp(%s * %s)", paren(o, expr_text(o, e->args[1]), MULTIPLICATIVE), paren(o, expr_text(o, f->term[0]), MULTIPLICATIVE)));      // of a value that may have rounded to an end
}

static Text call(Out *o, const Expr *e)
{
    const char *infix = function_rows[e->fn].infix, *subscripts = compared(o, e, true);
    if (subscripts) return (Text){subscripts, LOOSE, false};
    if (infix) return (Text){text(o, "%s %s %s", expr_c(o, e->args[0], ADDITIVE), infix, expr_c(o, e->args[1], ADDITIVE)), LOOSE, false};
    if (e->fn == FN_MOD) return tight(text(o, e->args[1]->kind == EX_NUM && e->args[1]->number != 0 ? "((long)(%s) %% (long)(%s))" : on_host(o) || o->launching ? "gm_remainder((long)(%s), (long)(%s))" : "REMAINDER((long)(%s), (long)(%s))",
                                               expr_c(o, e->args[0], LOOSE), expr_c(o, e->args[1], LOOSE)));
    if (e->fn == FN_MISSING) {
        const Expr *r = e->args[0];              // data as read from the file: in the state, missing values have been filled in
        const bool as_read = o->as_read;
        o->as_read = true;
        const char *c = r->var->kind != VAR_DATA ? expr_c(o, r, ADDITIVE) : r->nargs ? text(o, "d->%s[%s]", c_name(o, r->var->name), position_text(o, r->var, 0, r->nargs, r->args, NULL).c) : text(o, "d->%s", c_name(o, r->var->name));
        o->as_read = as_read;
        return (Text){r->var->base == BASE_INT ? text(o, "%s == -2147483648.0", c) : text(o, "%s != %s", c, c), LOOSE, false};
    }
    if (e->fn == FN_NOT) return negated_text(o, e->args[0]);
    if (e->fn == FN_if_else)
        return (Text){text(o, "%s ? %s : %s", expr_c(o, e->args[0], ADDITIVE), expr_c(o, e->args[1], ADDITIVE), expr_c(o, e->args[2], ADDITIVE)), LOOSE, false};
    const Text kept = o->host ? (Text){NULL, LOOSE, false} : of_kept(o, e);
    if (kept.c) return kept;
    const char *list = "";
    for (int i = 0; i < e->nargs; i++) list = text(o, "%s%s%s", list, i ? ", " : "", ex_rank(e->args[i]) > 0 ? whole_text(o, e->args[i]) : as_real(o, e->args[i]));
    const bool positive = (e->fn == FN_lgamma || e->fn == FN_digamma) && ex_positive(e->args[0]);        // forms without calls and branches
    return tight(text(o, "%s%s(%s)", e->name, positive ? "_positive" : "", list));
}

static Text sum(Out *o, const Expr *e, const char *type) { return sum_but(o, e, NULL, 0, type); }

// Without one of its terms, and so much less.
static Text sum_but(Out *o, const Expr *e, const Expr *left_out, double by, const char *type)
{
    Text *t = NEW_N(o->arena, Text, e->nargs + 1);
    const Expr **from = NEW_N(o->arena, const Expr *, e->nargs + 1);
    const bool begins = e->args[0]->kind == EX_NUM;
    double last = (begins ? e->args[0]->number : 0) - by;        // a number comes last, with what indices are less by in C
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
            t[n++] = sign > 0 ? tight(index_text(o, term->index)) : (Text){text(o, "-%s", index_text(o, term->args[1]->index)), MULTIPLICATIVE, true};
            last += sign;
            continue;
        }
        from[n] = term;
        t[n] = expr_text(o, term);
        if (t[n].level < ADDITIVE) t[n] = tight(text(o, "(%s)", t[n].c));
        n++;
    }
    if (last != 0) t[n++] = number(o, last);
    if (n == 1) return t[0];
    if (t[0].minus && !t[1].minus) {             // x - y in place of -y + x
        const Text swap = t[0];
        const Expr *swapped = from[0];
        t[0] = t[1];
        t[1] = swap;
        from[0] = from[1];
        from[1] = swapped;
    }
    if ((!from[0] || is_short(o, from[0])) && (!from[1] || is_short(o, from[1])) && ex_is_integer(e)) t[0].c = lengthened(o, from[0], t[0].c, type);
    size_t length = 1;
    for (int i = 0; i < n; i++) length += strlen(t[i].c) + 3;
    char *c = arena_alloc(o->arena, length), *last_of = c;
    for (int i = 0; i < n; i++) last_of = stpcpy(stpcpy(last_of, i == 0 ? "" : t[i].minus ? " - " : " + "), t[i].c + (i && t[i].minus));
    return (Text){c, ADDITIVE, false};
}

// A number that only decides how many lanes share a launch, or one of the data files. What the device alone knows counts as 1 turn; a definition of data
// is written out.
static Text size_in_launch(Out *o, const Expr *e)
{
    const Var *v = e->var;
    const Site *t = v->kind == VAR_LET && v->rank == 0 ? v->sites : NULL;
    if (t && !t->next && t->value && t->plates.n == 0 && !t->plates.guard && ex_is_integer(t->value)) return extent_text(o, t->value);
    if (v->kind != VAR_DATA || v->base != BASE_INT) return tight("1");
    return tight(text(o, "ON_HOST(run, d->%s)[%s]", c_name(o, v->name), position_text(o, v, 0, v->rank, e->args, NULL).c));
}

Text expr_text(Out *o, const Expr *e)
{
    const Var *known = scope_find(&o->scope, e);
    if (known) return tight(known->name);
    switch (e->kind) {
    case EX_NUM: return number(o, e->number);
    case EX_INDEX: return (Text){text(o, "%s + 1", index_text(o, e->index)), ADDITIVE, false};
    case EX_REF: {
        if (e->nargs < e->var->rank) return tight(whole_text(o, e));
        if (o->launching && (e->var->rank > 0 || e->var->kind != VAR_DATA)) return size_in_launch(o, e);
        const char *place = var_text(o, e->var);
        if (e->var->rank == 0) return tight(place[0] == 'd' || e->var->kind == VAR_ELEMENT ? place : text(o, "*%s", place));
        return tight(text(o, "%s[%s]", place, position_text(o, e->var, 0, e->var->rank, e->args, NULL).c));
    }
    case EX_ADD: return sum(o, e, "long");
    case EX_MUL: return product(o, e);
    case EX_POW:
        if (e->number < 0)
            return (Text){text(o, "1 / %s%s", ex_is_integer(e->args[0]) && e->number == -1 ? "(wide)" : "", paren(o, power(o, e->args[0], -e->number), TIGHT)), MULTIPLICATIVE - 1, false};
        return power(o, e->args[0], e->number);
    case EX_CALL: return call(o, e);
    case EX_REDUCE: case EX_ARRAY: return is_data_total(e) && !scope_find(&o->scope, e) ? data_total(o, e) : tight(whole_text(o, e));
    case EX_AT: {
        const Expr *array = e->args[0];
        Text p = tight("0");
        for (int k = 1; k < e->nargs; k++) {
            Text i = subscript_text(o, e->args[k]);
            p = k == 1 ? i : row_major(o, p, ex_dim((Expr *)array, k - 1), i);
        }
        return tight(text(o, "%s[%s]", whole_text(o, array), p.c));
    }
    }
    return tight("0");
}
