// explain.c -- --explain as text: a line for each unknown, then the law of each update, the method and why; --explain=full has instead of
// the lines what a sweep costs, what is selected in warm-up, and what runs in parallel.
#include <string.h>
#include "../pages/pages.h"
#include "explain.h"

static void row(FILE *out, const char *head, const char *text)
{
    if (text) fprintf(out, "  %-9s %s\n", head, text);
}

// A discrete unknown that a request could sum out: its elements are independent, or follow each other.
static bool can_be_summed_out(const Graph *g, const Update *s)
{
    const Var *v = s->block[0];
    if (s->kind != UPDATE_ENUM || s->nblock > 1 || ex_unknown(s->enumerate.lower) || ex_unknown(s->enumerate.upper)) return false;
    return !s->imputes && s->when != ON_GPU && s->joint >= 0 && (!v->summing.summed || !g->nsums) && v->kind != VAR_AUXILIARY &&
           !s->conditional->whole && (s->enumerate.by_messages || s->conditional->nbatch == v->rank);
}

static void rewritten(FILE *out, const Graph *g)
{
    for (const Applied *a = g->applied; a; a = a->next)
        fprintf(out, "%s: %s on line %d, new variable %s (%s)\n",
                a->factor->value && a->factor->value->kind == EX_REF ? a->factor->value->var->name : "?", a->rule->name,
                span_line(a->factor->span), a->latent ? a->latent->name : "?", a->rule->reference ? a->rule->reference : "");
    if (g->applied) fputc('\n', out);
    bool centred = false;
    for (int i = 0; i < g->nvars; i++) {
        const Var *z = g->vars[i];
        if (!z->in_place) continue;
        centred = true;
        for (const Site *t = z->sites; t; t = t->next) {
            fprintf(out, "%s is drawn in place of %s   (line %d): the same model, centred; %s = %s", z->in_place->name, z->name,
                    span_line(t->span), ex_text(g->arena, ex_ref((Var *)z, z->rank, t->subscript)), ex_text(g->arena, t->value));
            plates_print(out, &t->plates);
            fputc('\n', out);
        }
    }
    if (centred) fputc('\n', out);
}

static void selections(FILE *out, const Program *p)
{
    const Graph *g = p->g;
    const char *const text =
        "a warm-up of 300 sweeps or more tries both methods and keeps the one with more effective draws for the same work";
    for (const Selection *c = g->selections; c; c = c->next) {
        const SelectionCost cost = cost_of_selection(p, c);
        fprintf(out, "method selection %d: ", c->number);
        for (int i = 0; i < c->n; i++) fprintf(out, "%s%s", i ? ", " : "", c->block[i]->name);
        fprintf(out, c->auxiliaries ? " by Gibbs updates with auxiliaries, or jointly by NUTS with the auxiliaries integrated out"
                                    : " by Gibbs updates, or jointly by NUTS");
        for (int i = 0; i < c->nsummed; i++) fprintf(out, "%s%s", i ? ", " : ", which sees summed out: ", c->summed[i]->name);
        fputc('\n', out);
        row(out, "rule",
            arena_printf(g->arena, "%s; else %s", text, c->coupled ? "NUTS after a warm-up of 100 sweeps or more" : "Gibbs updates"));
        bool joint = false;
        for (const Update *s = g->updates; s; s = s->next) joint |= s->joint > 0 && (!s->selection || s->selection == c);
        row(out, "Gibbs",
            arena_printf(g->arena, "%s multiply-adds a sweep, roughly%s", ex_text(g->arena, cost.steps),
                         joint ? "; and what the joint draw takes (--profile)" : ""));
        row(out, "NUTS",
            arena_printf(g->arena, "%s, and for each gradient evaluation of a trajectory %s", ex_text(g->arena, cost.move),
                         ex_text(g->arena, cost.evaluation)));
        row(out, "on a GPU",
            arena_printf(g->arena, "Gibbs %s; NUTS %s, and %s for each gradient evaluation; and what the lanes share",
                         ex_text(g->arena, cost.on_gpu.steps.alone), ex_text(g->arena, cost.on_gpu.move.alone),
                         ex_text(g->arena, cost.on_gpu.evaluation.alone)));
        fputc('\n', out);
    }
    for (const Alone *c = g->no_selection; c; c = c->next) {
        fprintf(out, "no method selection for ");
        for (int i = 0; i < c->n; i++) fprintf(out, "%s%s", i ? ", " : "", c->block[i]->name);
        fprintf(out, ": %s\n%s", c->because, c->next ? "" : "\n");
    }
}

static void labels(FILE *out, const Graph *g)
{
    for (const Labels *l = g->labels; l; l = l->next) {
        fprintf(out, "labels of %s: 1 to %s\n", l->by->name, ex_text(g->arena, l->count));
        if (l->identified) row(out, "law", arena_printf(g->arena, "the labels are identified: %s", l->identified));
        else
            row(out, "law",
                "permuting them leaves the density as it is: summaries by label need relabelled draws (the program's `relabel`)");
        for (const Alike *a = l->alike; a && !l->identified; a = a->next)
            row(out, "if", arena_printf(g->arena, "the elements of %s are equal along dimension %d", a->var->name, a->dim + 1));
        const char *permuted = NULL, *stays = NULL;
        for (const Labelled *v = l->vars; v; v = v->next) {
            const char **list = v->apart ? &stays : &permuted;
            if (v->dims) *list = *list ? arena_printf(g->arena, "%s, %s", *list, v->var->name) : v->var->name;
        }
        row(out, "permuted", l->not_permuted ? NULL : permuted);
        row(out, "stays", stays);
        fputc('\n', out);
    }
}

static void update(FILE *out, const Program *p, const UpdateCode *code, bool full)
{
    const Graph *g = p->g;
    const Update *s = code->update;
    const Description *d = s->description;
    fprintf(out, "%s%s   (line %d)\n", d->subject, s->imputes ? ", if values are missing" : "", span_line(s->span));
    row(out, "law", d->law);
    for (int i = 0; i < d->n; i++) fprintf(out, "            %s\n", d->line[i]);
    row(out, "method", d->method);
    row(out, "why", d->because);
    if (full) row(out, "draw", d->elements);
    if (full && !(s->selection && s->kind == UPDATE_NUTS)) row(out, "cost", cost_text(p, code));
    for (const Launch *l = full ? code->launches.first : NULL; l; l = l->next)
        if (l->kind == LAUNCH_WHERE) row(out, "if", ex_text(g->arena, l->arg[0].extent));
    if (full && s->selection) row(out, "part of", arena_printf(g->arena, "method selection %d", s->selection->number));
    if (s->collapsed && g->applied && !s->selection) row(out, "note", "auxiliaries are integrated out, and drawn again afterwards");
    if (s->without)
        row(out, "note", arena_printf(g->arena, "%s is integrated out, and drawn afterwards", s->without->plate->block[0]->name));
    if (s->over_sum && (s->selection || g->nsums))
        row(out, "note",
            s->selection ? "unknowns are summed out, and drawn afterwards" : "unknowns are summed out (`marginal`), and drawn afterwards");
    if (s->does == DRAWS && can_be_summed_out(g, s))
        fprintf(out, "  %-9s infer { %s by marginal; } would update others with it summed out\n", "note", s->block[0]->name);
    fputc('\n', out);
}

void explain(FILE *out, const Program *p, bool full, const char *path)
{
    if (!full) {
        unknowns_print(out, pages_new(p, path));
        fputc('\n', out);
    }
    rewritten(out, p->g);
    if (full) selections(out, p);
    labels(out, p->g);
    for (int k = 0; k < p->nupdates; k++) update(out, p, &p->updates[k], full);
}
