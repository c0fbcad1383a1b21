// slopes.c -- derivatives of functions by each argument, from device/functions.def; and the matrices of a model whose Cholesky factors are
// computed.
//
// Needs: factors.     Gives: g->slopes, g->factored.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "slopes.h"
#include "../model/elaborate.h"
#include "../model/law.h"

static Look test_plate(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_INDEX && !e->index->height ? FOUND : LOOK;
}

typedef struct Collecting {
    Graph *g;
    Span span;
} Collecting;

static Look collect_factored(const Expr *e, void *with)
{
    const Collecting *c = with;
    Graph *g = c->g;
    if (e->kind != EX_CALL || e->fn != FN_cholesky_decompose || e->loose || ex_rank(e) != 2 || ex_find(e, test_plate, NULL)) return LOOK;
    Factored **last = &g->factored;
    int n = 1;
    for (; *last; last = &(*last)->next, n++)
        if ((*last)->call == e) return LOOK;
    Factored *f = *last = NEW(g->arena, Factored);
    f->call = (Expr *)e;
    f->span = c->span;
    f->var = NEW(g->arena, Var);
    *f->var = (Var){.name = intern(n > 1 ? arena_printf(g->arena, "factor_%d", n) : "factor"),
                    .id = n,
                    .kind = VAR_LET,
                    .base = BASE_REAL,
                    .rank = 2,
                    .lower_number = -INFINITY,
                    .upper_number = INFINITY};
    for (int k = 0; k < 2; k++) f->var->dim[k] = ex_dim(f->call, 0);
    return LOOK;
}

static Look test_array(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND : LOOK;
}

bool stands_alone(const Expr *call)
{
    return !call->loose && ex_rank(call->args[0]) == 2 && !ex_find(call, test_plate, NULL) && !ex_find(call->args[0], test_array, NULL);
}

// The columns dx, dy, dz of functions.def as expressions in x, y, z. They are read as densities of a small library.
bool read_derivatives(Graph *g)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int fn = 1; fn < NFN; fn++)
        for (int k = 0; k < 3; k++) {
            const char *slope = function_rows[fn].derivative[k];
            if (slope && *slope && *slope != '?')
                fprintf(f, "distribution d%d_%d(real y, real z) { support real; log_density = %s; }\n", fn, k, slope);
        }
    fclose(f);
    Library rows = {0};
    const Source *s = source_from_string(g->arena, "functions.def", text);
    free(text);
    if (!front_parse_library(g->arena, s, g->diags, &rows) || !front_resolve_library(g->arena, &rows, g->diags)) return false;
    g->slopes = NEW(g->arena, Slopes);
    Expr *at[3];
    for (int k = 0; k < 3; k++) {
        Var *v = g->slopes->argument[k] = NEW(g->arena, Var);
        *v = (Var){.name = k == 0   ? "x"
                           : k == 1 ? "y"
                                    : "z",
                   .id = k,
                   .kind = VAR_PATTERN,
                   .base = BASE_REAL,
                   .lower_number = -INFINITY,
                   .upper_number = INFINITY};
        at[k] = ex_ref(v, 0, NULL);
    }
    const Distribution *d = rows.distributions;
    for (int fn = 1; fn < NFN; fn++)
        for (int k = 0; k < 3; k++) {
            const char *slope = function_rows[fn].derivative[k];
            g->slopes->none[fn][k] = slope && !*slope;
            if (!slope || !*slope || *slope == '?') continue;
            g->slopes->of[fn][k] = elaborate(g, d->log_density, bind_arguments(g, d, 2, at + 1, at[0]), 0, NULL);
            d = d->next;
        }
    for (const Factor *f = g->factors; f; f = f->next) ex_find(f->log_density, collect_factored, &(Collecting){g, f->span});
    return true;
}

typedef struct Arguments {
    const Slopes *slopes;
    Expr *const *args;
} Arguments;

static Expr *fill(Expr *e, void *with)
{
    const Arguments *a = with;
    if (e->kind != EX_REF) return NULL;
    for (int k = 0; k < 3; k++)
        if (e->var == a->slopes->argument[k]) return a->args[k];
    return NULL;
}

Expr *slope_at(const Slopes *s, Expr *slope, Expr *const *args) { return ex_map(slope, fill, &(Arguments){s, args}); }
