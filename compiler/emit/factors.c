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

static void emit_factor(Out *o, const StartFactor *f)
{
    const Plates *l = f->plates;
    fprintf(o->file, "    {.where = \"%s\", .text = %s, .if_missing = %d, .over = \"%s\", .guard = %s,\n     .log_density = \"%s\"},\n", source_line(o, f->factor->span), quoted(o, factor_text(o, f->factor)), f->if_missing,
            plates_text(o, l), quoted(o, l->guard ? math_text(o, l->guard) : NULL), math_text(o, f->log_density));
}

bool emit_factors(Out *o)
{
    FILE *out = o->file;
    if (!o->program->starts) return false;
    fprintf(out, "// Factors that are 0 for some values of the unknowns: chains start where they are not.\nstatic const GmFactor factors[] = {\n");
    for (const StartFactor *f = o->program->starts; f; f = f->next) emit_factor(o, f);
    fprintf(out, "    {0},\n};\n\nstatic const GmDefinition of_factors[] = {        // the definitions that they read\n");
    for (const Definition *d = o->program->definitions; d; d = d->next)
        for (const Site *t = d->var->sites; t; t = t->next) {
            const char *at = "";
            for (int k = 0; k < t->n; k++) at = text(o, "%s%s%s", at, k ? ", " : "", math_text(o, t->subscript[k]));
            fprintf(out, "    {.name = \"%s\", .at = \"%s\", .over = \"%s\", .guard = %s, .value = %s},\n", d->var->name, at, plates_text(o, &t->plates),
                    quoted(o, t->plates.guard ? math_text(o, t->plates.guard) : NULL), quoted(o, t->value ? math_text(o, t->value) : NULL));
        }
    fprintf(out, "    {0},\n};\n\n");
    return true;
}
