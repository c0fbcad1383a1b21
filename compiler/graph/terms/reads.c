// reads.c -- which factors a variable enters, by itself or through series.
//
// Needs: factors, series.     Gives: for each variable its factors in the order of the model, found once for all; Graph.reading is NULL
// once factors have changed.
#include <stdlib.h>
#include <string.h>
#include "reads.h"
#include "../conditional.h"
#include "factor.h"

// ---- expressions and series ----

typedef struct ReadSearch {
    const Var *v;
    const Series *but;
} ReadSearch;

static bool test_reads(const Var *s, void *with)
{
    const ReadSearch *r = with;
    return s == r->v || (s->kind == VAR_SERIES && s->series && s->series != r->but && series_reads(s->series, r->v));
}

bool series_reads(const Series *s, const Var *v)
{
    if (!s) return false;
    for (const Site *t = s->sites; t; t = t->next)
        if (t->value && ex_any_var(t->value, test_reads, &(ReadSearch){v, s})) return true;
    return false;
}

// What is summed along chains is computed before each update that reads it (put_messages in kernel/lower.c).
bool series_follows(const Series *s, const Var *v) { return s->var[0]->kind == VAR_SERIES && !s->var[0]->hidden && series_reads(s, v); }

bool ex_reads(const Expr *e, const Var *v) { return ex_any_var(e, test_reads, &(ReadSearch){v, NULL}); }

// The series through which v enters a density, or NULL.
typedef struct Through {
    const Var *v, *series;
} Through;

static bool test_through(const Var *s, void *with)
{
    Through *t = with;
    if (s->kind != VAR_SERIES || !series_reads(s->series, t->v)) return false;
    t->series = s;
    return true;
}

const Var *through_series(const Expr *e, const Var *v)
{
    Through t = {v, NULL};
    ex_any_var(e, test_through, &t);
    return t.series;
}

// ---- which factors a variable enters ----

// last: the factor that was found to hold a variable last
typedef struct Entering {
    Graph *g;
    Factor *f;
    int *last;
    Series **series;
    int nseries, size;
} Entering;

static bool test_enters(const Var *v, void *with)
{
    Entering *e = with;
    if (v->id >= e->g->nreading) return false;
    if (e->last[v->id] == e->f->id + 1) return false;
    e->last[v->id] = e->f->id + 1;
    Reading *r = &e->g->reading[v->id];
    ROOM(e->g->arena, r->factor, r->n, r->size);
    r->factor[r->n++] = e->f;
    if (v->kind != VAR_SERIES || !v->series) return false;
    for (int i = 0; i < e->nseries; i++)
        if (e->series[i] == v->series) return false;
    ROOM(e->g->arena, e->series, e->nseries, e->size);
    e->series[e->nseries++] = v->series;
    return false;
}

Reading factors_of(Graph *g, const Var *v)
{
    if (!g->reading) {
        g->nreading = g->nvars;
        g->reading = NEW_N(g->arena, Reading, g->nvars + 1);
        Entering e = {.g = g, .last = NEW_N(g->arena, int, g->nvars + 1)};
        for (Factor *f = g->factors; f; f = f->next) {
            e.f = f;
            e.nseries = 0;
            ex_any_var(f->log_density, test_enters, &e);
            // they count while a missing value is studied
            Expr *const more[] = {f->if_missing, f->plates.guard, f->least, f->most};
            for (int i = 0; i < 4; i++)
                if (more[i]) ex_any_var(more[i], test_enters, &e);
            for (int i = 0; i < e.nseries; i++)  // and what the series that it reads are made of
                for (const Site *t = e.series[i]->sites; t; t = t->next)
                    if (t->value) ex_any_var(t->value, test_enters, &e);
        }
    }
    return v->id < g->nreading ? g->reading[v->id] : (Reading){0};
}

static int by_number(const void *a, const void *b)
{
    const int x = (*(Factor *const *)a)->id, y = (*(Factor *const *)b)->id;
    return (x > y) - (x < y);
}

Reading factors_of_block(Graph *g, Var *const *block, int nblock)
{
    Reading all = {0};
    if (nblock == 1) return factors_of(g, block[0]);
    for (int i = 0; i < nblock; i++) {
        const Reading r = factors_of(g, block[i]);
        for (int q = 0; q < r.n; q++) {
            ROOM(g->arena, all.factor, all.n, all.size);
            all.factor[all.n++] = r.factor[q];
        }
    }
    qsort(all.factor, (size_t)all.n, sizeof *all.factor, by_number);
    int n = 0;
    for (int q = 0; q < all.n; q++)
        if (n == 0 || all.factor[n - 1] != all.factor[q]) all.factor[n++] = all.factor[q];
    all.n = n;
    return all;
}

bool factor_mentions(const Factor *f, const Var *v) { return ex_reads(f->log_density, v) || factor_decided_by(f, v); }

// How many sums over values of others an update of the whole block has behind it.
int block_sums(Var *const *block, int n)
{
    int sums = block[0]->summing.sums;
    for (int i = 1; i < n; i++)
        if (block[i]->summing.sums < sums) sums = block[i]->summing.sums;
    return sums;
}

// ---- what subscripts are called ----

static bool by_loop(const Loops *l, const Expr *at)
{
    for (int i = 0; at->kind == EX_INDEX && at->index->written && i < l->n; i++)
        if (l->index[i] == at->index) return true;
    return false;
}

static void name_by(Var *v, int n, Expr *const *at, const Loops *l)
{
    for (int k = 0; k < n; k++)
        if (!v->called[k] && by_loop(l, at[k])) v->called[k] = at[k]->index->name;
}

static Look test_named(const Expr *e, void *with)
{
    if (e->kind == EX_REF) name_by(e->var, e->nargs, e->args, with);
    return LOOK;
}

// In sum(j in 1:p, beta[j]*Z[i, j]) the subscript of beta is called as that of Z is.
static Look test_shared(const Expr *e, void *with)
{
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        const Expr *sum = with, *at = e->args[k];
        if (!e->var->called[k] && at->kind == EX_INDEX && at->index == sum->index) e->var->called[k] = ex_index_called(sum);
    }
    return LOOK;
}

static Look test_sum(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_REDUCE) ex_find(e->args[2], test_shared, (void *)e);
    return LOOK;
}

// The plate of a vectorised statement, which no loop of the model names.
static void name_plates(Graph *g, Factor *f)
{
    for (int k = 0; f->value && f->value->kind == EX_REF && k < f->value->nargs; k++) {
        const Expr *at = f->value->args[k];
        const char *name = f->value->var->called[k];
        bool free = name && at->kind == EX_INDEX && !at->index->written && !map_get(&g->taken, name), plate = false;
        for (int i = 0; free && i < f->plates.n; i++) {
            if (f->plates.index[i] == at->index) plate = true;
            else free = f->plates.index[i]->name != name;
        }
        if (free && plate) at->index->name = name;
    }
}

// What a statement of its own names is not what another one called it.
static void forget_names(const Expr *value, const Loops *l)
{
    for (int k = 0; value && value->kind == EX_REF && k < value->nargs; k++)
        if (by_loop(l, value->args[k])) value->var->called[k] = NULL;
}

void name_by_sum(Expr *body, Index *i)
{
    Loops l = {.n = 1, .index = {i}};
    ex_find(body, test_named, &l);
}

// Statements of the variable's own before those that read it, each in the order of the model: the first name stays.
void name_subscripts(Graph *g)
{
    for (Factor *f = g->factors; f; f = f->next) forget_names(f->value, &f->plates);
    for (Factor *f = g->factors; f; f = f->next)
        if (f->value && f->value->kind == EX_REF) test_named(f->value, &f->plates);
    for (int i = 0; i < g->nvars; i++)
        for (Site *t = g->vars[i]->sites; t; t = t->next)
            name_by(t->var, t->n, t->subscript, &t->plates);
    for (Factor *f = g->factors; f; f = f->next) ex_find(f->log_density, test_named, &f->plates);
    for (int i = 0; i < g->nvars; i++)
        for (Site *t = g->vars[i]->sites; t; t = t->next)
            if (t->value) ex_find(t->value, test_named, &t->plates);
    for (Factor *f = g->factors; f; f = f->next) ex_find(f->log_density, test_sum, NULL);
    for (Factor *f = g->factors; f; f = f->next) name_plates(g, f);
}

// Whether a reference to an element has the index of a loop of this name, or a number more, where the element is to have the name.
typedef struct Solved {
    const char *name;
    int dim;
    bool met, other;
} Solved;

static void test_solved(Expr *ref, void *with)
{
    Solved *s = with;
    const Expr *at = s->dim < ref->nargs ? ref->args[s->dim] : NULL;
    if (at && at->kind == EX_ADD && at->nargs == 2 && at->args[0]->kind == EX_NUM) at = at->args[1];
    s->met = true;
    s->other |= !at || at->kind != EX_INDEX || strcmp(at->index->name, s->name) != 0;
}

// The name that the model has for the subscript, if it has one meaning to a reader of the factors that mention v: no plate of this name
// is left where an element is solved for.
static const char *own_name(const Graph *g, Var *v, int dim)
{
    const char *name = v->called[dim];
    if (!name) return NULL;
    for (int k = 0; k < dim; k++)
        if (v->called[k] == name) return NULL;
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return NULL;
    for (const Factor *f = g->factors; f; f = f->next)
        for (int i = 0; i < f->plates.n && !(g->offers && f->sums_out); i++) {
            if (strcmp(f->plates.index[i]->name, name) != 0 || !factor_mentions(f, v)) continue;
            Solved s = {.name = name, .dim = dim};
            ex_references(f->log_density, v, test_solved, &s);
            if (!s.met || s.other) return NULL;
        }
    return name;
}

// Whether a reader of the factors that mention v knows the name as an index or as a variable.
static bool means_something(const Graph *g, const Var *v, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    for (const Factor *f = g->factors; f; f = f->next)
        for (int i = 0; i < f->plates.n && !(g->offers && f->sums_out); i++)
            if (strcmp(f->plates.index[i]->name, name) == 0 && factor_mentions(f, v)) return true;
    return false;
}

Expr *var_element(const Graph *g, Var *v, Index **fresh)
{
    static const char *const names[] = {"k",  "l",  "m",  "n",  "q",  "r",  "k2", "l2", "m2",
                                        "n2", "q2", "r2", "k3", "l3", "m3", "n3", "q3", "r3"};
    const int count = (int)(sizeof names / sizeof *names);
    Expr *at[MAX_RANK];
    const char *own[MAX_RANK];
    for (int i = 0; i < v->rank; i++) own[i] = own_name(g, v, i);
    for (int i = 0, next = 0; i < v->rank; i++) {
        const char *name = own[i];
        while (!name) {
            const char *one = intern(names[next]);
            bool taken = next < count - v->rank + i && means_something(g, v, one);
            for (int k = 0; k < v->rank; k++) taken |= own[k] == one;
            if (!taken) name = one;
            next++;
        }
        at[i] = ex_index(fresh[i] = index_new(name, ex_num(1), v->dim[i]));
    }
    return ex_ref(v, v->rank, at);
}

static bool names_element(const Conditional *c, const char *name)
{
    for (int k = 0; k < c->var->rank; k++)
        if (strcmp(c->element[k]->name, name) == 0) return true;
    return false;
}

Index *index_of_values(const Conditional *c, const char *name, Expr *n)
{
    static const char *const other[] = {"h", "q", "r", "h2", "q2", "r2", "h3"};
    const size_t first = (size_t)(*name - 'i') % 3;  // i, j and k get different ones
    for (size_t i = first; names_element(c, name) && i < sizeof other / sizeof *other; i += 3) name = other[i];
    return index_new(intern(name), ex_num(1), n);
}

// ---- sums over the values of unknowns ----

bool reads_sum(Graph *g, Var *const *block, int n)
{
    const Reading of = factors_of_block(g, block, n);
    const int sums = block_sums(block, n);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q]->made && factor_counts_at(of.factor[q], sums, true)) return true;
    return false;
}

// Is it drawn without some unknown that is summed out? Also where the sum says nothing of it: sum over v of P(z = v | m) is 1, and z
// depends on m.
bool drawn_without_summed(Graph *g, Var *const *block, int n)
{
    const Reading of = factors_of_block(g, block, n);
    const int sums = block_sums(block, n);
    for (int q = 0; q < of.n; q++) {
        const Factor *written = factor_written(of.factor[q]);
        if (written->gone && written->gone <= sums) return true;
    }
    return reads_sum(g, block, n);
}
