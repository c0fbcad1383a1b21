// sizes.c -- sizes, and ends of ranges that no other loop changes, are made of data as they are read.
//
//   fine       1:N      1:2 * K + 1      1:n[3]      1:sum(n)      vector[max(n)] y          n a whole vector of integers, in the data
//              max(j in 1:J, last[j] - first[j] + 1)                                         the longest of slices of data
//   refused    1:max(g), g computed from data; 1:max(n[2:3])
//
// The program needs these before it computes anything: it takes memory by them, and launches kernels over them.
//
// Needs: the graph as built.     Gives: E0511.     Keeps: everything.
#include <math.h>
#include "sizes.h"

// x[i] or x[i + k] of integers of the data, all of which exist as i runs from 1 to n; *first is the element that i = 1 reads.
static bool is_run_of_data(const Expr *e, const Index *i, Expr *n, const Var **x, int *first)
{
    if (e->kind != EX_REF || e->nargs != 1 || e->var->kind != VAR_DATA || e->var->base != BASE_INT || e->var->rank != 1) return false;
    const Expr *from = ex_sub(e->args[0], ex_index((Index *)i)), *rest = ex_sub(e->var->dim[0], n);
    if (from->kind != EX_NUM || rest->kind != EX_NUM || from->number != floor(from->number)) return false;
    if (from->number < 0 || rest->number < from->number || from->number > 1e6) return false;
    *x = e->var;
    *first = (int)from->number;
    return true;
}

bool is_longest_slice(const Expr *e, Slices *s)
{
    if (e->kind != EX_REDUCE || e->fn != FN_max || !ex_is_num(e->args[0], 1) || e->args[2]->kind != EX_ADD) return false;
    const Expr *body = e->args[2];
    *s = (Slices){.n = e->args[1]};
    for (int k = 0; k < body->nargs; k++) {
        const Expr *x = body->args[k];
        if (x->kind == EX_NUM && x->number == floor(x->number)) s->more += (long)x->number;
        else if (!s->hi && is_run_of_data(x, e->index, e->args[1], &s->hi, &s->hi_from)) continue;
        else if (!s->lo && x->kind == EX_MUL && x->nargs == 2 && ex_is_num(x->args[0], -1) &&
                 is_run_of_data(x->args[1], e->index, e->args[1], &s->lo, &s->lo_from))
            continue;
        else return false;
    }
    return s->hi && s->lo;
}

const Var *totalled(const Expr *e)
{
    const Expr *along[MAX_RANK], *x = e;
    int n = 0;
    for (; n < MAX_RANK && x->kind == EX_REDUCE && x->fn == e->fn && ex_is_num(x->args[0], 1); x = x->args[2]) along[n++] = x;
    if (!n || (e->fn != FN_max && e->fn != FN_min && e->fn != FN_sum)) return NULL;
    if (x->kind != EX_REF || x->nargs != n || x->var->kind != VAR_DATA || x->var->base != BASE_INT || x->var->rank != n) return NULL;
    for (int k = 0; k < n; k++) {  // each subscript runs over its dimension, in whatever order
        int at = 0;
        while (at < n && !(x->args[k]->kind == EX_INDEX && x->args[k]->index == along[at]->index)) at++;
        if (at == n || x->var->dim[k] != along[at]->args[1]) return NULL;
    }
    return x->var;
}

bool is_data_total(const Expr *e)
{
    Slices slices;
    return is_longest_slice(e, &slices) || totalled(e);
}

static Look total(const Expr *e, void *with)
{
    (void)with;
    return is_data_total(e) ? FOUND : LOOK;
}

bool has_data_total(const Expr *e) { return ex_find(e, total, NULL); }

static Look test_late(const Expr *e, void *with)
{
    if (is_data_total(e)) return SKIP;
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) return FOUND;
    return *(bool *)with && e->kind == EX_REF && e->var->kind != VAR_DATA ? FOUND : LOOK;
}

bool is_size(const Expr *e) { return !ex_find(e, test_late, &(bool){true}); }

static Look test_loop(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_INDEX && e->index->height == 0 ? FOUND : LOOK;
}

static void say_late(const Graph *g, Span span, const Expr *e)
{
    Diag *m = diag(g->diags, span, DIAG_E0511, ex_quote(g->arena, e));
    diag_help(m, "it is needed before anything is computed; integers of the data, their elements, and sum, max or min of a whole vector of "
                 "them can be sizes: declare it, int<lower=0> n;, and put it into the data file");
}

// A size (memory: made of data alone), or an end of a range (definitions are there when its loop runs, but what loops over others gives has
// no place before it).
static bool check_size(Graph *g, Span span, const Expr *e, bool memory)
{
    if (!e || (!memory && (e->loose || ex_find(e, test_loop, NULL))) || !ex_find(e, test_late, &memory)) return true;
    say_late(g, span, e);
    return false;
}

static Look test_computed(const Expr *e, void *with)
{
    if (e->kind != EX_REF || e->var->kind == VAR_DATA) return LOOK;
    *(const Var **)with = e->var;
    return FOUND;
}

bool check_array_size(const Graph *g, const Expr *e)
{
    const Var *computed = NULL;
    if (is_size(e)) return true;
    ex_find(e, test_computed, &computed);
    if (!diags_errors(g->diags)) say_late(g, computed ? computed->span : (Span){0}, e);
    return false;
}

static bool check_plates(Graph *g, Span span, const Loops *p)
{
    for (int i = 0; i < p->n; i++)
        if (!check_size(g, span, p->index[i]->lo, false) || !check_size(g, span, p->index[i]->hi, false)) return false;
    return true;
}

bool check_sizes(Graph *g)
{
    bool good = true;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        bool fine = true;
        for (int k = 0; k < v->rank && fine; k++) fine = check_size(g, v->span, v->dim[k], true);
        for (const Site *s = v->sites; s && fine; s = s->next) fine = check_plates(g, s->span, &s->plates);
        good &= fine;
    }
    for (const Factor *f = g->factors; f && good; f = f->next) good = check_plates(g, f->span, &f->plates);
    return good;
}
