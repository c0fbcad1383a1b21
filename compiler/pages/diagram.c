// diagram.c -- the plate diagram: which variable depends on which, and in which plates they stand.
//
//   before   theta[j] ~ normal(mu, tau) over j in 1:J      after   nodes mu, tau; theta in the plate j in 1:J; two edges
//
// Each statement of the model as written gives edges from what its law reads to what it draws. Definitions are substituted, sizes are
// left out. Needs: the graph.     Gives: nodes, plates, edges.     Keeps: the graph.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "layout.h"

typedef struct Drawing {
    Diagram *d;
    Graph *g;
} Drawing;

// In the notation of the language.
static const char *plain(Graph *g, const Expr *e)
{
    char *text;
    size_t size;
    Notation names = notation_new(g);
    FILE *to = open_memstream(&text, &size);
    if (!to) abort();
    formula_plain(to, formula_of(&names, e));
    fclose(to);
    const char *copy = arena_strdup(g->arena, text);
    free(text);
    return copy;
}

static int plate_in(Drawing *w, int parent, const Index *i)
{
    Diagram *d = w->d;
    for (int k = 1; k < d->nplates; k++)
        if (d->plate[k].parent == parent && d->plate[k].lo == i->lo && d->plate[k].hi == i->hi) return k;
    ROOM(d->arena, d->plate, d->nplates, d->plates_size);
    const char *label = arena_printf(d->arena, "%s in %s:%s", i->name, plain(w->g, i->lo), plain(w->g, i->hi));
    d->plate[d->nplates] = (DiagramPlate){.label = label, .lo = i->lo, .hi = i->hi, .parent = parent};
    return d->nplates++;
}

static int plate_for(Drawing *w, const Loops *plates, int n)
{
    int at = 0;
    for (int i = 0; i < n; i++) at = plate_in(w, at, plates->index[i]);
    return at;
}

static bool is_extent(const Var *v) { return v->kind == VAR_DATA && v->base == BASE_INT && v->rank == 0 && !v->response; }

static bool is_drawn(const Var *v)
{
    if (v->lost) return false;
    switch (v->kind) {
    case VAR_PARAMETER:
    case VAR_LATENT: return !v->parts;
    case VAR_PART:
    case VAR_SERIES: return true;
    case VAR_DATA: return !is_extent(v);
    case VAR_LET: return v->decl != NULL;
    default: return false;
    }
}

static int node_of(Drawing *w, const Var *v)
{
    Diagram *d = w->d;
    for (int i = 0; i < d->nnodes; i++)
        if (d->node[i].v == v) return i;
    ROOM(d->arena, d->node, d->nnodes, d->nodes_size);
    const DiagramKind kind = v->response                                 ? NODE_IS_OBSERVED
                             : v->kind == VAR_DATA || v->kind == VAR_LET ? NODE_IS_DATA
                             : v->kind == VAR_SERIES                     ? NODE_IS_COMPUTED
                                                                         : NODE_IS_UNKNOWN;
    d->node[d->nnodes] = (DiagramNode){.v = v, .name = v->name, .index = "", .kind = kind, .plate = -1};
    return d->nnodes++;
}

static void edge(Drawing *w, int from, int to)
{
    Diagram *d = w->d;
    if (from == to) {
        d->node[to].to_itself = true;
        return;
    }
    for (int i = 0; i < d->nedges; i++)
        if (d->edge[i].from == from && d->edge[i].to == to) return;
    ROOM(d->arena, d->edge, d->nedges, d->edges_size);
    d->edge[d->nedges++] = (DiagramEdge){.from = from, .to = to};
}

// The subscripts of an element, as its statement writes them.
static const char *index_text(const Diagram *d, const Expr *ref)
{
    const char *t = "";
    for (int i = 0; i < ref->nargs; i++) t = arena_printf(d->arena, "%s%s%s", t, i ? ", " : "", ex_text(d->arena, ref->args[i]));
    return t;
}

// Where a node stands: in the plates of its statement with most of them.
static void place(Drawing *w, int node, const Loops *plates, int n, const char *index)
{
    DiagramNode *v = &w->d->node[node];
    const int at = plate_for(w, plates, n);
    int depth[2] = {0, 0};
    for (int k = at; k > 0; k = w->d->plate[k].parent) depth[0]++;
    for (int k = v->plate; k > 0; k = w->d->plate[k].parent) depth[1]++;
    if (v->plate >= 0 && depth[0] <= depth[1]) return;
    v->plate = at;
    v->index = index;
}

typedef struct Reader {  // of expressions of a statement
    Drawing *w;
    const Loops *plates;
    int to;
} Reader;

static void read_expr(Reader *r, const Expr *e);

// Of data without a statement: in the outermost plates of who reads them, as far as their subscripts name these.
static void place_data(Reader *r, int node, const Expr *ref)
{
    int n = 0;
    for (bool named = true; n < r->plates->n && named; n += named) {
        named = false;
        for (int i = 0; i < ref->nargs; i++) named |= ref->args[i] == ex_index(r->plates->index[n]);
    }
    const char *index = "";
    for (int i = 0; i < ref->nargs && n; i++)
        if (ref->args[i]->kind == EX_INDEX && ref->args[i]->index->lo)
            index = arena_printf(r->w->d->arena, "%s%s%s", index, *index ? ", " : "", ref->args[i]->index->name);
    place(r->w, node, r->plates, n, index);
}

static void read_ref(Reader *r, const Expr *e)
{
    const Var *v = e->var;
    for (int i = 0; i < e->nargs; i++) read_expr(r, e->args[i]);
    if (v->parts) {
        const bool one = e->nargs == 1 && e->args[0]->kind == EX_NUM;
        const int n = one || v->dim[0]->kind != EX_NUM ? 1 : (int)v->dim[0]->number;
        for (int i = 0; i < n; i++) edge(r->w, node_of(r->w, v->parts[one ? (int)e->args[0]->number - 1 : i]), r->to);
        return;
    }
    if (v->kind == VAR_LET && !v->decl) {  // gmc has made it: what it is made of
        for (const Site *t = v->sites; t; t = t->next)
            if (t->value) read_expr(r, t->value);
        return;
    }
    if (!is_drawn(v)) return;
    const int node = node_of(r->w, v);
    if (r->w->d->node[node].kind == NODE_IS_DATA && r->to != node) place_data(r, node, e);
    edge(r->w, node, r->to);
}

static void read_expr(Reader *r, const Expr *e)
{
    if (e->kind == EX_REF) {
        read_ref(r, e);
        return;
    }
    for (int i = 0; i < e->nargs; i++) read_expr(r, e->args[i]);
}

static const Expr *first_ref(const Expr *e)
{
    if (e->kind == EX_REF) return e;
    const Expr *found = NULL;
    for (int i = 0; i < e->nargs && !found; i++) found = first_ref(e->args[i]);
    return found;
}

static int term_node(Drawing *w)
{
    Diagram *d = w->d;
    ROOM(d->arena, d->node, d->nnodes, d->nodes_size);
    d->node[d->nnodes] = (DiagramNode){.name = "target", .index = "", .kind = NODE_IS_TERM, .plate = -1};
    return d->nnodes++;
}

static void read_factor(Drawing *w, const Factor *f)
{
    const Loops *plates = &f->plates;
    const Expr *ref = f->dist && f->value ? first_ref(f->value) : NULL;
    if (!ref && !f->added) return;  // a constraint
    int to;
    if (ref) {
        const Var *v = ref->var;
        const bool part = v->parts && ref->nargs == 1 && ref->args[0]->kind == EX_NUM;
        if (v->parts && !part) {  // a statement over all parts
            const int n = v->dim[0]->kind == EX_NUM ? (int)v->dim[0]->number : 0;
            for (int k = 0; k < n; k++) {
                Reader r = {w, plates, node_of(w, v->parts[k])};
                place(w, r.to, plates, 0, "");
                for (int i = 0; i < f->nargs; i++) read_expr(&r, f->args[i]);
            }
            return;
        }
        to = node_of(w, part ? v->parts[(int)ref->args[0]->number - 1] : v);
        place(w, to, plates, plates->n, part ? "" : index_text(w->d, ref));
        if (w->d->node[to].kind == NODE_IS_DATA) w->d->node[to].kind = NODE_IS_OBSERVED;  // computed from data
    } else {
        to = term_node(w);
        place(w, to, plates, plates->n, "");
    }
    Reader r = {w, plates, to};
    for (int i = 0; i < f->nargs; i++) read_expr(&r, f->args[i]);
    for (int i = 0; i < f->ncomponents; i++) {
        read_expr(&r, f->component[i].weight);
        for (int k = 0; k < f->component[i].nargs; k++) read_expr(&r, f->component[i].args[k]);
    }
    if (f->lower) read_expr(&r, f->lower);
    if (f->upper) read_expr(&r, f->upper);
    if (!ref) read_expr(&r, f->log_density);
}

static void read_sites(Drawing *w, const Var *v)
{
    const int to = node_of(w, v);
    for (const Site *t = v->sites; t; t = t->next) {
        if (!t->value) continue;
        Reader r = {w, &t->plates, to};
        place(w, to, &t->plates, t->plates.n, "");
        read_expr(&r, t->value);
    }
}

Diagram *diagram_new(Graph *g)
{
    Diagram *d = NEW(g->arena, Diagram);
    Drawing w = {d, g};
    d->arena = g->arena;
    d->plate = NEW_N(g->arena, DiagramPlate, d->plates_size = 4);
    d->nplates = 1;
    for (int i = 0; i < g->nvars; i++)  // unknowns in the order of the model
        if (is_drawn(g->vars[i]) && (var_unknown(g->vars[i]) || g->vars[i]->kind == VAR_PART) && !g->vars[i]->hidden)
            node_of(&w, g->vars[i]);
    for (const Factor *f = g->factors; f; f = f->next)
        if (!f->rule && !f->original && !f->made) read_factor(&w, f);
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->kind == VAR_SERIES && !g->vars[i]->hidden) read_sites(&w, g->vars[i]);
    for (int i = 0; i < d->nnodes; i++)
        if (d->node[i].plate < 0) d->node[i].plate = 0;
    d->laid_out = d->nnodes <= MOST_DRAWN;
    if (d->laid_out) lay_out(d);
    return d;
}
