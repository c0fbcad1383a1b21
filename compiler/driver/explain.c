// explain.c -- --explain: for each variable its conditional, the method and why, in text.
#include <math.h>
#include <string.h>
#include "../graph/graph.h"

static void print_loops(FILE *out, const Loops *l)
{
    for (int i = 0; i < l->n; i++) {
        fprintf(out, "%s%s in ", i ? ", " : "   over ", l->index[i]->name);
        ex_print(out, l->index[i]->lo);
        fputc(':', out);
        ex_print(out, l->index[i]->hi);
    }
    if (l->guard) { fputs(" where ", out); ex_print(out, l->guard); }
    fputc('\n', out);
}

static void explain_block(FILE *out, const Step *s)
{
    fprintf(out, "  method    joint normal from its precision J and shift h, because %s\n", s->reason);
    fprintf(out, "  draw      %s\n", s->arrow ? "arrow-shaped: the last variable is integrated out, the others drawn by Cholesky, then the last in parallel"
                                   : s->nbatch ? "one Cholesky for each element of the leading dimensions, in parallel" : "one Cholesky factorisation, no inverse");
    if (s->rows) {
        const Rows *r = s->rows;
        fputs("  size      p = ", out);
        ex_print(out, r->size);
        fputs(" coefficients, n = ", out);
        ex_print(out, r->count);
        fputs(" rows: about p^3/3 operations, and where n < p by an n by n system: n^2 p + n^3/3\n            (Bhattacharya, Chakraborty and Mallick 2016)\n", out);
    } else if (s->no_rows) fprintf(out, "  size      about p^3/3 operations for p coefficients, however few the rows: %s\n", s->no_rows);
    for (const BlockTerm *t = s->terms; t; t = t->next) {
        fputs("  term      ", out);
        ex_print(out, t->ref[0]);
        if (t->degree == 2) { fputs(" * ", out); ex_print(out, t->ref[1]); }
        fputs("   times   ", out);
        ex_print(out, t->coefficient);
        print_loops(out, &t->loops);
    }
}

static void explain_element(FILE *out, const Graph *g, const Step *s)
{
    const Conditional *c = s->conditional;
    switch (s->kind) {
    case STEP_EXACT:
        fprintf(out, "  method    exact draw: %s%s", c->truncated ? "truncated " : "", c->family->name);
        if (c->family->power && c->power != 1) fprintf(out, " of %s^%g", c->var->name, c->power);
        fputc('\n', out);
        break;
    case STEP_OWN: fprintf(out, "  method    exact draw from its own distribution, %s: nothing else depends on it\n", c->own->factor->dist->name); break;
    case STEP_ENUM: fputs("  method    every value is weighed by its density\n", out); break;
    case STEP_SLICE: fputs("  method    slice sampling (Neal 2003)\n", out); break;
    case STEP_GAUSSIAN: break;
    }
    if (s->kind != STEP_EXACT && c->because) fprintf(out, "  why       %s\n", c->because);
    if (s->collapsed && g->applied) fputs("  note      auxiliaries are integrated out, and drawn again afterwards\n", out);
    if (c->var->rank)
        fprintf(out, "  elements  %s\n", c->array || c->nbatch == c->var->rank ? "conditionally independent, in parallel" : "coupled, one after the other");
    int k = 0;
    if (c->family)
        for (const Natural *n = c->family->natural; n; n = n->next, k++)
            for (const Part *p = c->natural; p; p = p->next) {
                if (p->which != k) continue;
                fprintf(out, "  %-9s ", n->name);
                ex_print(out, p->value);
                print_loops(out, &p->loops);
            }
    else
        for (const Part *p = c->density; p; p = p->next) {
            fputs("  density   ", out);
            ex_print(out, p->value);
            print_loops(out, &p->loops);
        }
}

void explain(FILE *out, const Graph *g)
{
    for (const Applied *a = g->applied; a; a = a->next)
        fprintf(out, "%s: %s on line %d, new variable %s (%s)\n", a->factor->value && a->factor->value->kind == EX_REF ? a->factor->value->var->name : "?",
                a->rule->name, span_line(a->factor->span), a->latent ? a->latent->name : "?", a->rule->reference ? a->rule->reference : "");
    if (g->applied) fputc('\n', out);
    for (const Step *s = g->steps; s; s = s->next) {
        for (int i = 0; i < s->nblock; i++) fprintf(out, "%s%s", i ? ", " : "", s->block[i]->name);
        fprintf(out, "%s   (line %d)\n", s->imputes ? ", missing values only" : "", span_line(s->span));
        if (s->kind == STEP_GAUSSIAN) explain_block(out, s);
        else explain_element(out, g, s);
        fputc('\n', out);
    }
}
