// show.c -- the schedule as text, for --emit=schedule and --dump.
#include <string.h>
#include "show.h"
#include "../conditional.h"
#include "../update.h"
#include "../algebra/independence.h"
#include "../algebra/block_terms.h"
#include "../algebra/band.h"
#include "../algebra/few_rows.h"
#include "../algebra/pairs.h"
#include "../updates/updates.h"
#include "../updates/collapsed.h"
#include "../updates/categories.h"
#include "../updates/whiten.h"

static const char *const update_names[] = {
#define UPDATE(id, name, describe, lower, what) [UPDATE_##id] = name,
#include "../updates.def"
};

static void print_loops(FILE *out, const Loops *l)
{
    for (int i = 0; i < l->n; i++) {
        fprintf(out, "%s%s in ", i ? ", " : " over ", l->index[i]->name);
        ex_print(out, l->index[i]->lo);
        fputc(':', out);
        ex_print(out, l->index[i]->hi);
    }
    if (l->guard) {
        fputs(" where ", out);
        ex_print(out, l->guard);
    }
}

static void print_part(FILE *out, const Part *p, int rank)
{
    if (p->scatter) {
        fputs("[", out);
        for (int k = 0; k < MAX_RANK && p->target[k]; k++) {
            if (k) fputs(", ", out);
            ex_print(out, p->target[k]);
        }
        fputs("]", out);
    }
    (void)rank;
    fputs(" += ", out);
    ex_print(out, p->value);
    print_loops(out, &p->loops);
    fputc('\n', out);
}

static void print_rows(FILE *out, const Rows *r)
{
    Loops rows = {.guard = r->factor->plates.guard};
    for (int i = 0; i < r->factor->plates.n; i++) rows.index[rows.n++] = r->factor->plates.index[i];
    fputs("    by rows", out);
    if (r->count) {
        fputs(" if ", out);
        ex_print(out, r->count);
        fputs(" < ", out);
        ex_print(out, r->size);
    }
    fputs(": weight ", out);
    ex_print(out, r->weight);
    fputs(", shift ", out);
    ex_print(out, r->shift);
    print_loops(out, &rows);
    fputc('\n', out);
    for (const BlockTerm *t = r->phi; t; t = t->next) {
        fputs("        ", out);
        ex_print(out, t->ref[0]);
        fputs(": ", out);
        ex_print(out, t->coefficient);
        print_loops(out, &t->loops);
        fputc('\n', out);
    }
}

static void print_update(FILE *out, const Update *s);

static void print_categories(FILE *out, const Update *s)
{
    fputs(", categories ", out);
    ex_print(out, s->categories->lo);
    fputc(':', out);
    ex_print(out, s->categories->hi);
    fprintf(out, " one after the other    (%s)\n", s->reason);
    for (const Softmax *m = s->categories->softmax; m; m = m->next) {
        fprintf(out, "    latent %s: polya_gamma(", m->latent->name);
        ex_print(out, m->count);
        fputs(", ", out);
        ex_print(out, ex_sub(m->own, m->offset));
        fputs(")\n", out);
    }
    fputs("    ", out);
    print_update(out, s->categories->draw);
    if (!s->categories->shift) return;
    fputs("    ", out);
    print_update(out, s->categories->shift);
}

static void print_gaussian(FILE *out, const Update *s)
{
    if (s->gaussian.arrow) fprintf(out, ", arrow");
    if (s->gaussian.band) fprintf(out, ", band of lag %d", s->gaussian.band->lag);
    if (s->gaussian.sparse) fprintf(out, ", sparse");
    if (s->gaussian.scaled) fprintf(out, ", with a scale move of %s", s->gaussian.scaled_latent->var->name);
    if (s->gaussian.nbatch) fprintf(out, ", %d leading dimension%s in parallel", s->gaussian.nbatch, s->gaussian.nbatch > 1 ? "s" : "");
    fprintf(out, "    (%s)\n", s->reason);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        fputs("    ", out);
        ex_print(out, t->ref[0]);
        if (t->degree == 2) {
            fputs(" * ", out);
            ex_print(out, t->ref[1]);
        }
        fputs(": ", out);
        ex_print(out, t->coefficient);
        print_loops(out, &t->loops);
        fputc('\n', out);
    }
    if (s->gaussian.rows) print_rows(out, s->gaussian.rows);
    for (const Rows *r = s->gaussian.sparse ? s->gaussian.listed : NULL; r; r = r->next) print_rows(out, r);
}

static void print_pair(FILE *out, const Update *s)
{
    static const char *const names[] = {"constant", "linear", "square"};
    const Conditional *c = s->conditional;
    fprintf(out, ", %s integrated out, then both%s    (%s)\n", s->pair->coefficient->var->name,
            !c->var->rank               ? ""
            : c->nbatch == c->var->rank ? ", elements in parallel"
                                        : ", element by element",
            s->reason);
    for (const Part *p = s->pair->part; p; p = p->next) {
        if (p->which < 3) fprintf(out, "    %s", names[p->which % 3]);
        else fprintf(out, "    at %d: %s", s->pair->first + p->which / 3 - 1, names[p->which % 3]);
        print_part(out, p, c->var->rank);
    }
}

static void print_nuts(FILE *out, const Update *s)
{
    fprintf(out, "%s    (%s)\n", s->collapsed ? ", auxiliaries integrated out" : "", s->reason);
    for (int i = 0; i < s->nuts.n; i++) {
        fputs("    density += ", out);
        ex_print(out, s->nuts.factor[i]->log_density);
        const Loops over = s->nuts.factor[i]->plates;
        print_loops(out, &over);
        fputc('\n', out);
    }
}

// The parts of a conditional: of natural parameters, of bounds, or of a density without a family.
static void print_parts(FILE *out, const Conditional *c)
{
    const char *names[MAX_NATURAL] = {"", "", "", ""};
    int i = 0;
    if (c->family)
        for (const Natural *n = c->family->natural; n && i < MAX_NATURAL; n = n->next) names[i++] = n->name;
    for (const Part *p = c->natural; p; p = p->next) {
        fprintf(out, "    %s", names[p->which]);
        print_part(out, p, c->var->rank);
    }
    for (const Part *p = c->bounds; p; p = p->next) {
        fprintf(out, "    %s", p->which ? "upper" : "lower");
        print_part(out, p, c->var->rank);
    }
    for (const Part *p = c->family ? NULL : c->density; p; p = p->next) {
        fprintf(out, "    density");
        print_part(out, p, c->var->rank);
    }
}

// An update of elements by a conditional of their own.
static void print_elements(FILE *out, const Update *s)
{
    const Conditional *c = s->conditional;
    if (c->family) {
        fprintf(out, ": %s%s", c->truncated ? "truncated " : "", c->family->name);
        if (c->family->power) fprintf(out, "(%g)", c->power);
    }
    if (s->collapsed) fputs(", auxiliaries integrated out", out);
    if (white_of(s)) fprintf(out, ", with %s", white_of(s)->vector->name);
    if (s->kind == UPDATE_ELLIPTICAL) fputs(c->var->rank > 1 ? ", vector by vector" : ", whole", out);
    else if (c->array || c->nbatch == c->var->rank) fputs(c->var->rank ? ", elements in parallel" : "", out);
    else if (colours_of(c) > 1 && !(s->imputes && c->lattice)) fprintf(out, ", %d colours", colours_of(c));
    else if (by_data_colours(s)) fputs(", colours by data", out);
    else fputs(", element by element", out);
    fprintf(out, "    (%s)\n", s->reason);
    if (s->description && (c->family || c->own)) {
        fprintf(out, "    %s\n", s->description->law);
        for (int k = 0; k < s->description->n; k++) fprintf(out, "    %s\n", s->description->line[k]);
    }
    print_parts(out, c);
}

static void print_update(FILE *out, const Update *s)
{
    fputs(update_names[s->kind], out);
    for (int i = 0; i < s->nblock; i++) fprintf(out, "%s%s", i ? ", " : " ", s->block[i]->name);
    if (s->kind == UPDATE_CATEGORIES) {
        print_categories(out, s);
        return;
    }
    if (s->kind == UPDATE_GAUSSIAN) {
        print_gaussian(out, s);
        return;
    }
    if (s->over_sum) fprintf(out, ", unknowns summed out");
    for (const Predictive *p = predictive_of(s); p; p = p->next)
        fprintf(out, "%s%s%s", p == predictive_of(s) ? ", " : " and ", p->weights->name, p->next ? "" : " integrated out");
    if (s->kind == UPDATE_PAIR) print_pair(out, s);
    else if (s->kind == UPDATE_NUTS) print_nuts(out, s);
    else print_elements(out, s);
}

void schedule_print(FILE *out, const Graph *g)
{
    for (const Update *s = g->updates; s; s = s->next) print_update(out, s);
}
