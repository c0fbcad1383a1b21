// factors.c -- the factors that a start may lie outside of, and graphs of data, as text for the runtime (runtime/host/factors.c reads it):
// in the notation of the model, with the definitions that they read.
#include <stdlib.h>
#include "program.h"

static const char *quoted(const Out *o, const char *c) { return c ? text(o, "\"%s\"", c) : "NULL"; }

static const char *plates_text(const Out *o, const Loops *l)
{
    const char *t = "";
    for (int i = 0; i < l->n; i++)
        t = text(o, "%s%s%s in %s:%s", t, i ? ", " : "", l->index[i]->name, formula_text(o, l->index[i]->lo),
                 formula_text(o, l->index[i]->hi));
    return t;
}

static const char *factor_text(const Out *o, const Factor *f)
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

static const char *guard_text(const Out *o, const Loops *l) { return quoted(o, l->guard ? formula_text(o, l->guard) : NULL); }

static void emit_start_factor(const Out *o, const StartFactor *f)
{
    line(o, "{.where = \"%s\", .text = %s, .if_missing = %d, .over = \"%s\", .guard = %s,", source_line(o, f->factor->span),
         quoted(o, factor_text(o, f->factor)), f->if_missing, plates_text(o, f->plates), guard_text(o, f->plates));
    line(o, " .log_density = \"%s\"},", formula_text(o, f->log_density));
}

static void emit_definition(const Out *o, const Var *v, const Site *t)
{
    const char *at = "";
    for (int k = 0; k < t->n; k++) at = text(o, "%s%s%s", at, k ? ", " : "", formula_text(o, t->subscript[k]));
    line(o, "{.name = \"%s\", .at = \"%s\", .over = \"%s\", .guard = %s, .value = %s},", v->name, at, plates_text(o, &t->plates),
         guard_text(o, &t->plates), quoted(o, t->value ? formula_text(o, t->value) : NULL));
}

static void emit_start_factors(Out *o, const Program *p)
{
    line(o, "// Factors that are 0 for some values of the unknowns: chains start where they are not.");
    ENDING("};", "static const GmFactor factors[] =")
    {
        for (const StartFactor *f = p->starts; f; f = f->next) emit_start_factor(o, f);
        line(o, "{0},");
    }
    blank(o);
}

static void emit_edges(Out *o, const Program *p)
{
    line(o, "// Edges of graphs: each pair of nodes stands once, and there are so many parts without edges between them.");
    ENDING("};", "static const GmEdges edges[] =")
    {
        for (const Edges *e = p->g->edges; e; e = e->next) {
            line(o, "{.where = \"%s\", .law = \"%s\", .over = \"%s\", .guard = %s,", source_line(o, e->span), e->law,
                 plates_text(o, &e->loops), guard_text(o, &e->loops));
            line(o, " .from = \"%s\", .to = \"%s\", .nodes = \"%s\", .parts = %s},", formula_text(o, e->from), formula_text(o, e->to),
                 formula_text(o, e->nodes), quoted(o, e->parts ? formula_text(o, e->parts) : NULL));
        }
        line(o, "{0},");
    }
    blank(o);
}

const char *emit_factors(Out *o, const Program *p)
{
    if (!p->starts && !p->g->edges) return "";
    if (p->starts) emit_start_factors(o, p);
    if (p->g->edges) emit_edges(o, p);
    NOTED ("};", "        // the definitions that they read", "static const GmDefinition of_factors[] =") {
        for (const Definition *d = p->definitions; d; d = d->next)
            for (const Site *t = d->var->sites; t; t = t->next) emit_definition(o, d->var, t);
        line(o, "{0},");
    }
    blank(o);
    return text(o, "%s%s, .definitions = of_factors", p->starts ? ", .factors = factors" : "", p->g->edges ? ", .edges = edges" : "");
}
