// var.c -- variables of a graph: made, and asked for what their kind and declaration say by themselves.
//
// Needs: nothing; the lowest file of the folder.     Gives: variables with an entry in g->vars, and names that nothing else has.
#include <math.h>
#include "var.h"

Var *var_new(Graph *g, const char *name, VarKind kind)
{
    Var *v = NEW(g->arena, Var);
    *v = (Var){.name = name, .kind = kind, .id = g->nvars, .base = BASE_REAL, .lower_number = -INFINITY, .upper_number = INFINITY};
    ROOM(g->arena, g->vars, g->nvars, g->vars_size);
    g->vars[g->nvars++] = v;
    map_put(g->arena, &g->taken, name, v);
    return v;
}

Var *var_unique(Graph *g, const char *stem, VarKind kind)
{
    const char *name = intern(stem), *first = name;
    int *last = map_get(&g->numbered, first);  // number that a name with this stem was given last
    if (!last) map_put(g->arena, &g->numbered, first, last = NEW(g->arena, int));
    if (*last < 1) *last = 1;
    while (map_get(&g->taken, name)) name = intern(arena_printf(g->arena, "%s_%d", stem, ++*last));
    return var_new(g, name, kind);
}

bool var_unknown(const Var *v) { return v->kind == VAR_PARAMETER || v->kind == VAR_LATENT || v->kind == VAR_AUXILIARY; }

int constraint_rank(const Var *v)
{
    switch (v->constraint) {
    case CONSTRAINT_NONE: return 0;
    case CONSTRAINT_SIMPLEX:
    case CONSTRAINT_ORDERED:
    case CONSTRAINT_POSITIVE_ORDERED:
    case CONSTRAINT_UNIT_VECTOR:
    case CONSTRAINT_SUM_TO_ZERO: return 1;
    case CONSTRAINT_COVARIANCE:
    case CONSTRAINT_CORRELATION:
    case CONSTRAINT_CHOLESKY_COV:
    case CONSTRAINT_CHOLESKY_CORR: return 2;
    }
    return 0;
}

bool has_coordinates(const Var *v, const char **because)
{
    const char *why = v->discrete ? "its values are integers"
                      : constraint_rank(v) == 2 && v->dim[v->rank - 1] != v->dim[v->rank - 2]
                          ? "its rows and its columns have sizes that are written differently"
                          : NULL;
    if (because) *because = why;
    return !why;
}

bool is_real_unknown(const Var *v)
{
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT || v->kind == VAR_AUXILIARY) && v->base == BASE_REAL && !v->discrete &&
           v->constraint == CONSTRAINT_NONE && !v->parts && !v->summing.summed && !v->summing.sums && !v->summing.messages && !v->hidden;
}

bool is_plain_real(const Var *v) { return is_real_unknown(v) && !v->sites && !v->mixed; }

bool have_one_shape(const Var *v, const Var *w)
{
    for (int k = 0; k < v->rank; k++)
        if (v->dim[k] != w->dim[k]) return false;
    return v->rank == w->rank;
}
