// factors.c -- the factors that a start may lie outside of, as text for the runtime (runtime/host/factors.c reads it): in the notation of the model,
// with the definitions that they read.
#include <stdlib.h>
#include <string.h>
#include "tables.h"

static const char *quoted(Out *o, const char *c) { return c ? text(o, "\"%s\"", c) : "NULL"; }

static const char *plates_text(Out *o, const Plates *l)
{
    const char *t = "";
    for (int i = 0; i < l->n; i++)
        t = text(o, "%s%s%s in %s:%s", t, i ? ", " : "", l->index[i]->name, math_text(o, l->index[i]->lo), math_text(o, l->index[i]->hi));
    return t;
}

static const char *factor_text(Out *o, const Factor *f)
{
    char *t;
    size_t size;
    FILE *out = open_memstream(&t, &size);
    factor_print(out, f);
    fclose(out);
    const char *copy = arena_strdup(o->arena, t);
    free(t);
    return copy;
}

// Definitions that e reads, and those that these read.
typedef struct Marks { const Graph *g; bool *read; } Marks;

static void mark_read(const Graph *g, const Expr *e, bool *read);

static bool test_mark(const Var *v, void *with)
{
    const Marks *m = with;
    if ((v->kind != VAR_LET && v->kind != VAR_SERIES) || m->read[v->id]) return false;
    m->read[v->id] = true;
    for (const Site *t = v->sites; t; t = t->next) {
        mark_read(m->g, t->value, m->read);
        mark_read(m->g, t->plates.guard, m->read);
    }
    return false;
}

static void mark_read(const Graph *g, const Expr *e, bool *read)
{
    if (e) ex_any_var(e, test_mark, &(Marks){g, read});
}

static void emit_factor(Out *o, const Factor *f, const Plates *l, const Expr *log_density, bool if_missing, bool *read)
{
    const Graph *g = o->g;
    mark_read(g, log_density, read);
    mark_read(g, l->guard, read);
    for (int i = 0; i < l->n; i++) {
        mark_read(g, l->index[i]->lo, read);
        mark_read(g, l->index[i]->hi, read);
    }
    fprintf(o->file, "    {.where = \"%s\", .text = %s, .if_missing = %d, .over = \"%s\", .guard = %s,\n     .log_density = \"%s\"},\n", source_line(o, f->span), quoted(o, factor_text(o, f)), if_missing,
            plates_text(o, l), quoted(o, l->guard ? math_text(o, l->guard) : NULL), math_text(o, log_density));
}

bool emit_factors(Out *o)
{
    FILE *out = o->file;
    const Graph *g = o->g;
    FactorPart *part;
    bool any = false;
    for (const Factor *f = g->factors; f; f = f->next) {
        any |= factor_vanishing(f) != VANISHES_NEVER || factor_confines_missing(f);
        any |= factor_parts(o->arena, f, &part) > 0;
    }
    if (!any) return false;
    bool *read = calloc((size_t)g->nvars + 1, sizeof *read);
    fprintf(out, "// Factors that are 0 for some values of the unknowns: chains start where they are not.\nstatic const GmFactor factors[] = {\n");
    for (const Factor *f = g->factors; f; f = f->next) {
        const Vanishing v = factor_vanishing(f);
        if (v != VANISHES_NEVER) emit_factor(o, f, &f->plates, f->log_density, v == VANISHES_IF_MISSING, read);
        if (factor_confines_missing(f)) emit_factor(o, f, &f->plates, f->if_missing, true, read);
        const int n = factor_parts(o->arena, f, &part);
        for (int i = 0; i < n; i++) emit_factor(o, f, &part[i].plates, part[i].log_density, part[i].if_missing, read);
    }
    fprintf(out, "    {0},\n};\n\nstatic const GmDefinition of_factors[] = {        // the definitions that they read\n");
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (!read[v->id] || v->kind != VAR_LET) continue;
        for (const Site *t = v->sites; t; t = t->next) {
            const char *at = "";
            for (int k = 0; k < t->n; k++) at = text(o, "%s%s%s", at, k ? ", " : "", math_text(o, t->subscript[k]));
            fprintf(out, "    {.name = \"%s\", .at = \"%s\", .over = \"%s\", .guard = %s, .value = %s},\n", v->name, at, plates_text(o, &t->plates),
                    quoted(o, t->plates.guard ? math_text(o, t->plates.guard) : NULL), quoted(o, t->value ? math_text(o, t->value) : NULL));
        }
    }
    fprintf(out, "    {0},\n};\n\n");
    free(read);
    return true;
}
