// chains.c -- joint normals along a chain: blocks whose precision is a band with a border, and innovations of recursive definitions.
//
//   before   x[t] ~ normal(x[t-1], s); y[t] ~ normal(x[t] + b, r)
//   after    gaussian (x, b): a band along t, b its border
//
// Needs: the forms of variables.     Gives: updates.
#include <math.h>
#include <string.h>
#include "chains.h"
#include "../update.h"
#include "../terms/requests.h"
#include "../algebra/block_terms.h"
#include "../algebra/band.h"
#include "../algebra/innovations.h"
#include "updates.h"

// A chain that grows by variables along it, and by others as its border.
typedef struct NormalChain {
    Var **var, **border;
    int n, nborder;
    const Band *band;
} NormalChain;

static Update *chain_update(Graph *g, const NormalChain *c, const char *reason)
{
    Var **block = NEW_N(g->arena, Var *, c->n + c->nborder + 1);
    memcpy(block, c->var, sizeof *block * (size_t)c->n);
    memcpy(block + c->n, c->border, sizeof *block * (size_t)c->nborder);
    Update *s = gaussian_update(g, block, c->n + c->nborder, false, 0, reason);
    s->gaussian.band = c->band;
    return s;
}

// Whether w may join it, along the chain or at its border; then it has.
static bool join_chain(Graph *g, NormalChain *c, Var *w, bool along)
{
    const int n = c->n + c->nborder + 1;
    if (n > MAX_BLOCK) return false;
    Var **block = NEW_N(g->arena, Var *, n);
    int k = 0;
    for (int i = 0; i < c->n; i++) block[k++] = c->var[i];
    if (along) block[k++] = w;
    for (int i = 0; i < c->nborder; i++) block[k++] = c->border[i];
    if (!along) block[k++] = w;
    BlockTerm *terms;
    const char *why;
    const Band *band = block_terms(g, block, n, &terms, &why) ? band_of(g, block, n, c->n + along, terms) : NULL;
    if (!band) return false;
    c->band = band;
    if (along) c->var[c->n++] = w;
    else c->border[c->nborder++] = w;
    return true;
}

// A vector with an element for each of a node, such as the means of its elements.
static bool within_node(const NormalChain *c, const Var *w)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->band->chain[i].ninner; k++)
            if (w->rank == 1 && c->var[i]->dim[c->band->chain[i].inner[k]] == w->dim[0]) return true;
    return false;
}

// A coefficient that a plate of effects beside the chain needs more: it is drawn with these.
static bool belongs_to_effects(Graph *g, Candidate *list, int n, const Growing *chain, const Candidate *w)
{
    bool *inside = NEW_N(g->arena, bool, g->nvars);
    inside[w->var->id] = true;
    for (int i = 0; i < n; i++) {
        Candidate *q = &list[i];
        if (!q->taken && q->form == ELEMENTWISE && q->var->kind == VAR_PARAMETER && !chain->inside[q->var->id] &&
            coupled_with(g, &w->var, 1, inside, q->var))
            return true;
    }
    return false;
}

// All of a block that the model asks for: what is coupled along a chain, and the rest as its border; NULL: it is none.
Update *chain_of(Graph *g, Candidate *list, int n, Var *const *block, int m)
{
    NormalChain c = {.var = NEW_N(g->arena, Var *, m + 1), .border = NEW_N(g->arena, Var *, m + 1)};
    for (int i = 0; i < m; i++)
        if (find_candidate(list, n, block[i]->name)->form == CHAINED) c.var[c.n++] = block[i];
        else c.border[c.nborder++] = block[i];
    Var **all = NEW_N(g->arena, Var *, m + 1);
    memcpy(all, c.var, sizeof *all * (size_t)c.n);
    memcpy(all + c.n, c.border, sizeof *all * (size_t)c.nborder);
    BlockTerm *terms;
    const char *why;
    if (c.n == 0 || !block_terms(g, all, m, &terms, &why) || !(c.band = band_of(g, all, m, c.n, terms))) return NULL;
    return chain_update(g, &c, "the model requests this block");
}

// The chain that begins with c; NULL: its elements are no chain.
Update *grow_chain(Graph *g, Growing *b, Candidate *list, int n, Candidate *first)
{
    BlockTerm *terms;
    const char *why;
    NormalChain c = {.var = NEW_N(g->arena, Var *, MAX_BLOCK), .border = NEW_N(g->arena, Var *, MAX_BLOCK), .n = 1};
    c.var[0] = first->var;
    if (!block_terms(g, c.var, 1, &terms, &why) || !(c.band = band_of(g, c.var, 1, 1, terms))) return NULL;
    first->taken = true;
    grow_from(g, b, first->var);
    // what goes along the chain before what does not: a plate of effects may need a coefficient only until it joins
    for (int border = 0; border < 2; border++)
        for (int k = 0; k < n; k++) {
            Candidate *w = &list[k];
            if (w->taken || w->set != first->set || w->form == NOT_GAUSSIAN || (w->listed && !border) ||
                (w->var->kind != VAR_PARAMETER && w->var->kind != VAR_LATENT) || !b->near[w->var->id] || b->n == MAX_BLOCK)
                continue;
            if (border ? w->var->rank > 1 || (w->form != DENSE && !within_node(&c, w->var)) : w->var->rank == 0) continue;
            if (!coupled_with(g, b->var, b->n, b->inside, w->var)) continue;
            if (border && belongs_to_effects(g, list, n, b, w)) continue;
            if (!join_chain(g, &c, w->var, !border)) continue;
            w->taken = true;
            put_inside(g, b, w->var);
            k = -1;  // a new member may bring others
        }
    return chain_update(g, &c, c.n + c.nborder == 1 ? "its elements follow each other" : "they go along a chain");
}

// The innovations of a series, with what can stand at its border; NULL: they are not drawn so.
Update *innovations_update(Graph *g, Candidate *list, int n, const Series *series)
{
    Innovations *in = find_innovations(g, series);
    BlockTerm *terms, *more;
    int nvars = 0;
    if (!in) return NULL;
    Var *const *vars = innovation_vars(in, &nvars), **all = NEW_N(g->arena, Var *, MAX_BLOCK + 1),
               **block = NEW_N(g->arena, Var *, nvars + MAX_BLOCK);
    for (int i = 0; i < nvars; i++) {
        const Candidate *c = find_candidate(list, n, vars[i]->name);
        if (!c || c->taken) return NULL;
    }
    all[0] = innovation_series(in);
    int nborder = 0;
    const Band *band = innovation_terms(g, in, NULL, 0, &terms) ? band_of(g, all, 1, 1, terms) : NULL;
    if (!band) return NULL;
    for (int i = 0; i < nvars; i++) {
        find_candidate(list, n, vars[i]->name)->taken = true;
        block[i] = vars[i];
    }
    for (int k = 0; k < n; k++) {
        Candidate *w = &list[k];
        const Var *v = w->var;
        if (w->taken || v->rank > 0 || v->discrete || isfinite(v->lower_number) || isfinite(v->upper_number) ||
            v->constraint != CONSTRAINT_NONE || v->kind != VAR_PARAMETER || request_of(g, v))
            continue;
        all[nborder + 1] = w->var;
        bool coupled = false;
        if (nborder + 2 > MAX_BLOCK || !innovation_terms(g, in, all + 1, nborder + 1, &more)) continue;
        for (const BlockTerm *t = more; t; t = t->next) coupled |= t->degree == 2 && (t->ref[0]->var == v) != (t->ref[1]->var == v);
        const Band *wider = coupled ? band_of(g, all, nborder + 2, 1, more) : NULL;
        if (!wider) continue;
        band = wider;
        terms = more;
        block[nvars + nborder++] = w->var;
        w->taken = true;
        k = -1;
    }
    Update *s = update_new(g, UPDATE_GAUSSIAN, vars[0]->span);
    s->block = block;
    s->nblock = nvars + nborder;
    s->gaussian.terms = terms;
    s->gaussian.band = band;
    s->gaussian.innovations = in;
    s->reason = arena_printf(g->arena, "each element of `%s` has an innovation of its own", all[0]->name);
    return s;
}
