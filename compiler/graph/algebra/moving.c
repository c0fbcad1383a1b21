// moving.c -- a block of unknowns with the arrays that are computed from it: series, and Cholesky factors of matrices. Each array has
// adjoints of its own.
//
//   before   h[t] = a + b*h[t-1], y[t] ~ normal(h[t], s)
//   after    derivatives of the factor by h[t]; of adjoint_h[t]*(a + b*h[t-1]) by a, b and h[t-1]
//
// Needs: derivatives of one factor.     Gives: statements in the form of factors.
#include <math.h>
#include <string.h>
#include "moving.h"
#include "../terms/reads.h"

static Expr *element_of_factor(Expr *e, void *with)
{
    const Moving *b = with;
    if (e->kind != EX_AT || e->nargs != 3) return NULL;
    for (int i = 0; i < b->nfactored; i++)
        if (e->args[0] == b->factored[i].call) return ex_ref(b->factored[i].var, 2, e->args + 1);
    return NULL;
}

Expr *by_factors(const Moving *b, Expr *e) { return b->nfactored ? ex_map(e, element_of_factor, (void *)b) : e; }

Factor matrix_factor(Expr *matrix, Var *adjoint, Span at)
{
    static const char *const names[] = {"j", "k"};
    Factor m = {.span = at};
    Expr *sub[2];
    m.plates = (Loops){.n = 2};
    for (int k = 0; k < 2; k++)
        sub[k] = ex_index(m.plates.index[k] = index_new(intern(names[k]), ex_num(1), k ? sub[0] : ex_dim(matrix, 0)));
    m.log_density = ex_mul2(ex_ref(adjoint, 2, sub), ex_at(matrix, 2, sub));
    return m;
}

bool in_series(const Series *s, const Var *v)
{
    for (int i = 0; i < s->n; i++)
        if (s->var[i] == v) return true;
    return false;
}

// Sums along a chain that is offered are there for moves that see it summed out; what they are made of is drawn afresh elsewhere.
static bool is_seen(const Graph *g, const Series *s, int sums)
{
    if (!s->apart) return true;
    for (int i = 0; i < g->nvars && sums > 0; i++) {
        const Var *v = g->vars[i];
        if (v->summing.offered && v->summing.messages &&
            (v->summing.messages->series == s || series_reads(v->summing.messages->series, s->var[0])))
            return true;
    }
    return false;
}

Moving block_with_series(const Graph *g, Var *const *block, int n, int sums)
{
    Moving b = {.n = n, .var = NEW_N(g->arena, Var *, n + g->nvars)};
    for (int i = 0; i < n; i++) b.var[i] = block[i];
    for (const Series *s = g->series; s; s = s->next) b.nseries++;
    b.series = NEW_N(g->arena, const Series *, b.nseries + 1);
    b.nseries = 0;
    for (const Series *s = g->series; s; s = s->next) {
        bool entered = false;
        for (int i = 0; i < n && s->var[0]->kind == VAR_SERIES && is_seen(g, s, sums); i++) entered |= series_reads(s, block[i]);
        if (!entered) continue;
        b.series[b.nseries++] = s;
        for (int i = 0; i < s->n; i++) b.var[b.n++] = s->var[i];
    }
    for (const Factored *f = g->factored; f; f = f->next) b.nfactored++;
    if (!b.nfactored) return b;
    b.factored = NEW_N(g->arena, Factored, b.nfactored);
    Var **all = NEW_N(g->arena, Var *, b.n + b.nfactored);
    b.nfactored = 0;
    memcpy(all, b.var, sizeof *all * (size_t)b.n);
    b.var = all;
    for (const Factored *f = g->factored; f; f = f->next) {
        bool read = false;
        for (int i = 0; i < n; i++) read |= ex_reads(f->call, block[i]);
        if (!read || !stands_alone(f->call)) continue;
        b.factored[b.nfactored++] = *f;
        b.var[b.n++] = f->var;
    }
    return b;
}

Factor site_factor(const Site *t, Var *adjoint)
{
    return (Factor){.span = t->span, .plates = t->plates, .log_density = ex_mul2(ex_ref(adjoint, t->n, t->subscript), t->value)};
}

Var *adjoint_new(const Graph *g, const Var *v)
{
    Var *a = NEW(g->arena, Var);
    *a = (Var){.name = intern(arena_printf(g->arena, "adjoint_%s", v->name)),
               .id = v->id,
               .kind = VAR_LET,
               .base = BASE_REAL,
               .rank = v->rank,
               .lower_number = -INFINITY,
               .upper_number = INFINITY};
    memcpy(a->dim, v->dim, sizeof a->dim);
    return a;
}

bool series_differentiable(const Graph *g, const Moving *b, const char **because)
{
    for (int i = 0; i < b->nseries; i++)
        for (int k = 0; k < b->series[i]->n; k++) {
            const Var *v = b->series[i]->var[k];
            for (const Site *t = v->sites; t; t = t->next) {
                const Factor f = site_factor(t, adjoint_new(g, v));
                Derivative *terms;
                if (derivatives(g, &f, b->var, b->n, &terms, because)) continue;
                *because = arena_printf(g->arena, "of `%s` (line %d), which it enters: %s", v->name, span_line(t->span), *because);
                return false;
            }
        }
    for (int i = 0; i < b->nfactored; i++) {
        const Factored *of = &b->factored[i];
        const Factor f = matrix_factor(of->call->args[0], adjoint_new(g, of->var), of->span);
        Derivative *terms;
        if (derivatives(g, &f, b->var, b->n, &terms, because)) continue;
        *because = arena_printf(g->arena, "of a matrix of which cholesky_decompose is taken: %s", *because);
        return false;
    }
    return true;
}

bool derivatives_moving(const Graph *g, const Factor *f, const Moving *b, Derivative **out, const char **because)
{
    Factor by = *f;
    by.log_density = by_factors(b, f->log_density);
    const bool known = derivatives(g, &by, b->var, b->n, out, because);
    for (Derivative *d = known ? *out : NULL; d; d = d->next) d->factor = f;
    return known;
}
