// describe_text.c -- what descriptions are written with: expressions as text, lines, names that the model does not have.
//
// Needs: expressions of the schedule.     Gives: text and statements of describe_parts.h. Sums within text have indices that nothing around
// them has.
#include <math.h>
#include <string.h>
#include "describe.h"
#include "../terms/plates.h"
#include "describe_parts.h"

const char *shown(const Graph *g, const Expr *e) { return ex_text(g->arena, e); }

// Beside `over` these loops: sums within the expression have other indices.
const char *shown_over(const Graph *g, const Expr *e, const Loops *l)
{
    ex_reserve_over(l->n, l->index);
    const char *t = shown(g, e);
    ex_reserve_over(0, NULL);
    return t;
}

// An expression that prints as this text.
Expr *named_expr(Graph *g, const char *name)
{
    Var *v = NEW(g->arena, Var);
    *v = (Var){.name = name, .kind = VAR_PATTERN, .base = BASE_REAL, .lower_number = -INFINITY, .upper_number = INFINITY};
    return ex_ref(v, 0, NULL);
}

static bool mentions_any(const Expr *e, const Loops *l)
{
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e, l->index[i])) return true;
    return false;
}

static Expr *spelled_expr(Graph *g, const char *name, Spelled s)
{
    Expr *e = named_expr(g, name);
    e->var->spelled = arena_copy(g->arena, &s, sizeof s);
    return e;
}

Expr *summed_expr(Graph *g, const char *name, const Loops *l, Expr *value)
{
    return spelled_expr(g, name, (Spelled){.loops = *l, .value = value});
}

Expr *end_expr(Graph *g, const char *name, const Loops *l, Expr *value, int side)
{
    return spelled_expr(g, name, (Spelled){.loops = *l, .value = value, .of = side ? SPELLED_UPPER : SPELLED_LOWER});
}

Expr *total_of_part(Graph *g, const Conditional *c, const Part *p)
{
    Loops l = p->loops;
    Expr *value = ex_tidy(p->value);
    Expr *target[MAX_RANK];
    memcpy(target, p->target, sizeof target);
    for (int k = 0; p->scatter && k < c->var->rank && target[k]; k++) {
        Expr *t = target[k], *key = ex_index(c->element[k]);
        int at = -1;
        for (int i = 0; i < l.n; i++)
            if (t == ex_index(l.index[i]) && ex_is_num(l.index[i]->lo, 1) && l.index[i]->hi == c->var->dim[k]) at = i;
        for (int i = 0; i < l.n && at >= 0; i++)
            if (ex_mentions_index(l.index[i]->hi, l.index[at]) || ex_mentions_index(l.index[i]->lo, l.index[at])) at = -1;
        if (at < 0) {
            Expr *same = ex_call2("==", t, key);
            l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
            continue;
        }
        value = ex_replace(value, t, key);
        if (l.guard) l.guard = ex_replace(l.guard, t, key);
        for (int m = k + 1; m < c->var->rank && target[m]; m++) target[m] = ex_replace(target[m], t, key);  // of a diagonal
        memmove(l.index + at, l.index + at + 1, sizeof *l.index * (size_t)(l.n - 1 - at));
        l.n--;
    }
    if (l.n == 0 && !l.guard) return value;
    bool box = !l.guard && !mentions_any(value, &l);
    for (int i = 0; i < l.n && box; i++) box = ex_is_num(l.index[i]->lo, 1) && !mentions_any(l.index[i]->hi, &l);
    if (box) {
        for (int i = 0; i < l.n; i++) value = ex_mul2(value, l.index[i]->hi);
        return value;
    }
    double number = 1;  // written before the sum
    if (value->kind == EX_MUL && value->args[0]->kind == EX_NUM) number = value->args[0]->number;
    if (value->kind == EX_NUM && value->number < 0) number = value->number;
    value = ex_mul2(ex_num(1 / number), value);
    const char *name = l.n == 0 ? arena_printf(g->arena, "(%s where %s)", shown(g, value), shown(g, l.guard))
                                : arena_printf(g->arena, "sum(%s, %s)", loops_text(g, &l), shown_over(g, value, &l));
    return ex_mul2(ex_num(number), summed_expr(g, name, &l, value));
}

void add_line(Graph *g, Description *d, const char *t, Statement as)
{
    ROOM(g->arena, d->line, d->n, d->lines_size);
    ROOM(g->arena, d->statement, d->n, d->statements_size);
    d->statement[d->n] = as;
    d->line[d->n++] = t;
}

// Of a log density: it grows by this.
Statement statement_adds(const char *words, Expr *value, const Loops *over, const Factor *f)
{
    return (Statement){.words = words, .name = "log density", .relation = "+=", .right = value, .over = *over, .factor = f};
}

Statement statement_is(const char *name, Expr *value) { return (Statement){.name = name, .relation = "=", .right = value}; }

Statement statement_becomes(const char *words, Expr *left, Expr *value)
{
    return (Statement){.words = words, .nleft = 1, .left = {left}, .relation = "=", .right = value};
}

Statement statement_words(const char *words) { return (Statement){.words = words}; }

// ---- names of indices ----

bool names_variable(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    return false;
}

static bool names_loop(const Loops *l, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(l->index[i]->name, name) == 0) return true;
    return false;
}

// A name that neither a variable of the model nor another of the loops has.
static const char *free_name(const Graph *g, const Loops *l)
{
    static const char *const letters[] = {"j", "k", "l", "m", "n"};
    for (int round = 1;; round++)
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
            const char *name = intern(round == 1 ? letters[i] : arena_printf(g->arena, "%s%d", letters[i], round));
            if (!names_loop(l, l->n, name) && !names_variable(g, name)) return name;
        }
}

// One index never names two things: loops whose names others have, or a variable, get names of their own, in the expressions as well.
void name_apart(const Graph *g, Loops *l, Expr **e[], int n)
{
    for (int i = 0; i < l->n; i++) {
        Index *const old = l->index[i];
        if (!names_loop(l, i, old->name) && !names_variable(g, old->name)) continue;
        Expr *const by = ex_index(l->index[i] = index_new(free_name(g, l), old->lo, old->hi));
        for (int k = 0; k < n; k++)
            if (*e[k]) *e[k] = ex_replace_index(*e[k], old, by);
        for (int k = i + 1; k < l->n; k++) {
            Index *const later = l->index[k];
            if (!ex_mentions_index(later->lo, old) && !ex_mentions_index(later->hi, old)) continue;
            l->index[k] = index_new(later->name, ex_replace_index(later->lo, old, by), ex_replace_index(later->hi, old, by));
            for (int q = 0; q < n; q++)
                if (*e[q]) *e[q] = ex_replace_index(*e[q], later, ex_index(l->index[k]));
            if (l->guard) l->guard = ex_replace_index(l->guard, later, ex_index(l->index[k]));
        }
        if (l->guard) l->guard = ex_replace_index(l->guard, old, by);
    }
}

// Behind a term: the loops that it is summed over.
const char *shown_loops(Graph *g, const Loops *l)
{
    return arena_printf(g->arena, "%s%s", l->n ? "   over " : l->guard ? "   " : "", loops_text(g, l));
}

Loops plates_of_factor(const Factor *f)
{
    Loops l = {.guard = f->plates.guard};
    for (int k = 0; k < f->plates.n; k++) l.index[l.n++] = f->plates.index[k];
    return l;
}

void describe_law(Graph *g, Description *d, const char *what, const char *is)
{
    d->what = what;
    d->is = d->brief = is;
    d->law = arena_printf(g->arena, "%s%s%s", what, *is == ':' ? "" : " ", is);
}

const char *shown_element(Graph *g, const Conditional *c)
{
    return c->array ? shown(g, ex_ref(c->var, c->nbatch, c->current->args)) : shown(g, c->current);
}

// The first of these names that the model does not have.
const char *free_letter(const Graph *g, const char *const *letters)
{
    while (letters[1] && names_variable(g, *letters)) letters++;
    return *letters;
}
