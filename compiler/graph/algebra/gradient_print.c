// gradient_print.c -- derivatives for readers: what each element of an unknown gets, for --emit=gradient.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gradient_print.h"
#include "../terms/var.h"
#include "../terms/plates.h"
#include "../terms/conditions.h"
#include "../terms/reads.h"
#include "slopes.h"
#include "adjoints.h"
#include "gradient.h"
#include "moving.h"

// The lines of d log p / d v[element], from d log p / d v[subscripts] over loops; terms over the same loops are one line. A subscript that
// is one of the loops' indices, or that and a number, gives this index; any other becomes a condition.
typedef struct Solving {
    const Graph *g;
    int n;
    Expr *from[MAX_LOOPS], *to[MAX_LOOPS];
} Solving;

static Expr *solved(const Solving *s, Expr *e)
{
    for (int k = 0; e && k < s->n; k++) e = ex_replace(e, s->from[k], s->to[k]);
    return e;
}

static int loop_of(const Loops *l, const Expr *e, double *shift)
{
    *shift = 0;
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM) {
        *shift = e->args[0]->number;
        e = e->args[1];
    }
    for (int i = 0; i < l->n && e->kind == EX_INDEX; i++)
        if (l->index[i] == e->index) return i;
    return -1;
}

typedef struct Line {
    const char *loops;
    Expr *value;
    struct Line *next;
} Line;  // sum(loops, value); loops "": the value

static void add_line(const Graph *g, Line **lines, const Derivative *d, Index *const *element)
{
    Solving s = {.g = g};
    bool taken[MAX_LOOPS] = {false};
    Expr *guard = d->loops.guard;
    for (int k = 0; k < d->ref->nargs; k++) {
        double shift;
        Expr *sub = d->ref->args[k], *key = ex_index(element[k]);
        const int at = loop_of(&d->loops, sub, &shift);
        if (at < 0 || taken[at]) {
            guard = ex_both(guard, ex_call2("==", key, sub));
            continue;
        }
        taken[at] = true;
        const Index *i = d->loops.index[at];
        key = ex_add2(key, ex_num(-shift));
        s.from[s.n] = ex_index((Index *)i);
        s.to[s.n++] = key;
        if (i->lo->kind != EX_NUM || i->lo->number > 1 - shift) guard = ex_both(guard, ex_call2("<=", i->lo, key));
        if (i->hi != element[k]->hi || shift != 0) guard = ex_both(guard, ex_call2("<=", key, i->hi));
    }
    Loops loops = {0};
    for (int i = 0; i < d->loops.n; i++) {
        if (taken[i]) continue;
        Index *old = d->loops.index[i], *new = old;
        Expr *lo = solved(&s, old->lo), *hi = solved(&s, old->hi);
        if (lo != old->lo || hi != old->hi) {
            new = index_new(old->name, lo, hi);
            s.from[s.n] = ex_index(old);
            s.to[s.n++] = ex_index(new);
        }
        loops.index[loops.n++] = new;
    }
    loops.guard = condition_left(solved(&s, guard));
    Expr *value = ex_tidy(solved(&s, adjoint_times(d->weight, d->rest)));
    if (loops.n == 0 && loops.guard) value = choice_of(loops.guard, value, ex_num(0));
    const char *over = loops.n ? loops_text(g, &loops) : "";
    while (*lines && strcmp((*lines)->loops, over) != 0) lines = &(*lines)->next;
    if (*lines) (*lines)->value = adjoint_plus((*lines)->value, value);
    else {
        *lines = NEW(g->arena, Line);
        **lines = (Line){over, value, NULL};
    }
}

// The lines that one factor, or one statement of a series, gives to v.
static bool print_terms(FILE *out, const Graph *g, const Factor *f, const Moving *b, const Moving *all, const Var *v, Index *const *element)
{
    Derivative *d;
    Line *lines = NULL;
    derivatives_moving(g, f, b, &d, NULL);
    for (; d; d = d->next)
        if (d->ref->var == v) add_line(g, &lines, d, element);
    for (const Line *l = lines; l; l = l->next) {
        const char *text = ex_text(g->arena, by_factors(all, l->value)),
                   *t = *l->loops ? arena_printf(g->arena, "sum(%s, %s)", l->loops, text) : text;
        const bool minus = *t == '-';
        fprintf(out, "    %c %s    # line %d\n", minus ? '-' : '+', t + minus, span_line(f->span));
    }
    return lines != NULL;
}

static void print_sum(FILE *out, const Graph *g, const Moving *b, const Moving *all, const Var *v, Index *const *element)
{
    bool any = false;
    for (const Factor *f = g->factors; f; f = f->next)
        if (!f->original && ex_mentions(by_factors(b, f->log_density), v)) any |= print_terms(out, g, f, b, all, v, element);
    for (int i = 0; i < b->nseries; i++)
        for (int k = 0; k < b->series[i]->n; k++)
            for (const Site *t = b->series[i]->var[k]->sites; t; t = t->next) {
                if (!ex_mentions(t->value, v)) continue;
                const Factor f = site_factor(t, adjoint_new(g, b->series[i]->var[k]));
                any |= print_terms(out, g, &f, b, all, v, element);
            }
    for (int i = 0; i < b->nfactored; i++) {
        const Factored *of = &b->factored[i];
        Var *adjoint = adjoint_new(g, of->var);
        adjoint->name = intern(arena_printf(g->arena, "adjoint_of_matrix_of_%s", of->var->name));
        const Factor f = matrix_factor(of->call->args[0], adjoint, of->span);
        if (ex_mentions(f.log_density, v)) any |= print_terms(out, g, &f, b, all, v, element);
    }
    if (!any) fprintf(out, "    0\n");
}

static bool is_moved(const Var *v) { return var_unknown(v) && !v->discrete && v->base == BASE_REAL && v->kind != VAR_AUXILIARY; }

void gradient_print(FILE *out, const Graph *g)
{
    Var **all = NEW_N(g->arena, Var *, g->nvars + 1);
    int n = 0;
    for (int i = 0; i < g->nvars; i++)
        if (is_moved(g->vars[i])) all[n++] = g->vars[i];
    const Moving with = block_with_series(g, all, n, 0);
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!is_moved(v)) continue;
        Index *element[MAX_RANK];
        const char *because = NULL;
        int line = 0;
        const Moving b = block_with_series(g, &v, 1, v->summing.sums);
        fprintf(out, "d log p / d %s =", ex_text(g->arena, var_element(g, v, element)));
        for (const Factor *f = g->factors; f && !because; f = f->next) {
            Derivative *d;
            if (f->original || !ex_reads(f->log_density, v)) continue;
            if (!derivatives_moving(g, f, &b, &d, &because)) line = span_line(f->span);
        }
        if (because) fprintf(out, " not known: %s    # line %d\n", because, line);
        else if (!series_differentiable(g, &b, &because)) fprintf(out, " not known: %s\n", because);
        else {
            fputc('\n', out);
            print_sum(out, g, &b, &with, v, element);
        }
    }
    const char *because;
    // what others are made of comes last
    for (int i = with.nseries - 1; i >= 0 && series_differentiable(g, &with, &because); i--)
        for (int k = with.series[i]->n - 1; k >= 0; k--) {
            Var *v = with.series[i]->var[k];
            Index *element[MAX_RANK];
            Expr *at = var_element(g, v, element);
            fprintf(out, "%s =\n", ex_text(g->arena, ex_ref(adjoint_new(g, v), at->nargs, at->args)));
            print_sum(out, g, &with, &with, v, element);
        }
    for (int i = 0; i < with.nfactored; i++) {
        Var *v = with.factored[i].var;
        Index *element[MAX_RANK];
        Expr *at = var_element(g, v, element);
        fprintf(out, "%s = %s\n", v->name, ex_text(g->arena, with.factored[i].call));
        fprintf(out, "%s =\n", ex_text(g->arena, ex_ref(adjoint_new(g, v), at->nargs, at->args)));
        print_sum(out, g, &with, &with, v, element);
    }
}
