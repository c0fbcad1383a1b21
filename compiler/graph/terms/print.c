// print.c -- a graph as text: variables, series, factors. For --emit and --dump, and for messages about a loop.
#include <math.h>
#include "print.h"

void plates_print(FILE *out, const Loops *p)
{
    for (int i = 0; i < p->n; i++) {
        fprintf(out, "%s%s in ", i ? ", " : " over ", p->index[i]->name);
        ex_print(out, p->index[i]->lo);
        fputc(':', out);
        ex_print(out, p->index[i]->hi);
    }
    if (p->guard) {
        fputs(" where ", out);
        ex_print(out, p->guard);
    }
}

static const char *kind_name(VarKind k)
{
    switch (k) {
    case VAR_DATA: return "data";
    case VAR_LET: return "let";
    case VAR_PARAMETER: return "parameter";
    case VAR_LATENT: return "latent";
    case VAR_PART: return "part";
    case VAR_AUXILIARY: return "auxiliary";
    case VAR_DERIVED: return "derived";
    case VAR_SERIES: return "series";
    case VAR_PREDICTED: return "predicted";
    case VAR_SUM: return "sum";
    case VAR_PATTERN: return "pattern";
    case VAR_ELEMENT: return "element";
    }
    return "?";
}

// As a call of its distribution, normal(y[i] | mu, s), or the term of target +=.
void factor_print(FILE *out, const Factor *f)
{
    ex_reserve(f->plates.n, f->plates.index);
    if (f->dist) {
        fprintf(out, "%s(", f->dist->name);
        ex_print(out, f->value);
        for (int i = 0; i < f->nargs; i++) {
            fputs(i ? ", " : " | ", out);
            ex_print(out, f->args[i]);
        }
        for (int i = 0; i < f->ncomponents; i++) {
            const Component *c = &f->component[i];
            fputs(i ? ", " : " | ", out);
            ex_print(out, c->weight);
            fprintf(out, ": %s(", c->dist->name);
            for (int k = 0; k < c->nargs; k++) {
                if (k) fputs(", ", out);
                ex_print(out, c->args[k]);
            }
            fputc(')', out);
        }
        if (f->plate) {
            fprintf(out, " for %s in 1:", f->plate->name);
            ex_print(out, f->plate->hi);
        }
        fputc(')', out);
    } else ex_print(out, f->log_density);
    ex_reserve(0, NULL);
}

void graph_print(FILE *out, const Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind == VAR_SUM || v->kind == VAR_ELEMENT || v->kind == VAR_PATTERN) continue;
        fprintf(out, "%s %s %s", kind_name(v->kind), v->base == BASE_INT ? "int" : "real", v->name);
        for (int k = 0; k < v->rank; k++) {
            fputs(k ? ", " : "[", out);
            ex_print(out, v->dim[k]);
        }
        if (v->rank) fputc(']', out);
        if (isfinite(v->lower_number) || isfinite(v->upper_number)) fprintf(out, " in (%g, %g)", v->lower_number, v->upper_number);
        fputc('\n', out);
    }
    for (const Series *s = g->series; s; s = s->next) {
        fprintf(out, "along %s in %s", s->along->name, s->backward ? "reverse of " : "");
        ex_print(out, s->along->lo);
        fputc(':', out);
        ex_print(out, s->along->hi);
        fputc('\n', out);
        for (const Site *t = s->sites; t; t = t->next) {
            fprintf(out, "    %s[", t->var->name);
            for (int k = 0; k < t->n; k++) {
                if (k) fputs(", ", out);
                ex_print(out, t->subscript[k]);
            }
            if (t->value) {
                fputs(t->adds ? "] += " : "] = ", out);
                ex_reserve(t->plates.n, t->plates.index);
                ex_print(out, t->value);
                ex_reserve(0, NULL);
            } else fprintf(out, "] ~ %s", t->dist->name);
            plates_print(out, &t->plates);
            fputc('\n', out);
        }
    }
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->replaced) continue;
        fprintf(out, f->made ? "sum " : "factor ");
        factor_print(out, f);
        plates_print(out, &f->plates);
        if (f->rule) fprintf(out, "    by %s", f->rule->name);
        if (f->gone) fprintf(out, "    in sum %d", f->gone);
        if (f->made) fprintf(out, "    %d, over the values of %s", f->made, f->sums_out->name);
        fputc('\n', out);
    }
}
