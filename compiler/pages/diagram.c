// diagram.c -- the plate diagram: which variable depends on which, and in which plates they stand.
//
//   before   theta[j] ~ normal(mu, tau) over j in 1:J      after   nodes mu, tau; theta in the plate j in 1:J; two edges
//
// Each statement of the model as written gives edges from what its law reads to what it draws. A definition that statements name is a node
// between what it is made of and what reads it; sizes are left out. Densities have definitions substituted: a statement that names one
// is read from the tree, all others from their factors.
// Needs: the graph, the tree.     Gives: nodes, plates, edges.     Keeps: both.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "layout.h"

typedef struct Drawing {
    Diagram *d;
    Graph *g;
    int nstatements, statements_size;
    const Stmt **statement;  // that draw, or add to the target
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
                             : v->kind == VAR_SERIES || v->kind == VAR_DERIVED ? NODE_IS_COMPUTED
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

// ---- statements that name definitions, from the tree ----

static void collect_statements(Drawing *w, const Stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == STMT_TILDE || s->kind == STMT_TARGET) {
            ROOM(w->g->arena, w->statement, w->nstatements, w->statements_size);
            w->statement[w->nstatements++] = s;
        }
        collect_statements(w, s->body);
    }
}

static const Stmt *statement_at(const Drawing *w, Span at)
{
    for (int i = 0; i < w->nstatements; i++) {
        const Span s = w->statement[i]->span;
        if (s.source == at.source && s.from == at.from && s.to == at.to) return w->statement[i];
    }
    return NULL;
}

// A definition that depends on unknowns and whose elements do not depend on each other: such a series is a variable already.
static const Var *defined(const Graph *g, const Ast *e)
{
    const Decl *d = e->kind == AST_NAME ? e->decl : NULL;
    if (!d || d->kind != DECL_DEFINITION || d->user) return NULL;  // of data: a variable
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->decl == d && v->kind == VAR_DERIVED && !v->hidden && !v->lost && v->sites) return v;
    }
    return NULL;
}

static bool names_definition(const Graph *g, const Ast *e)
{
    if (!e) return false;
    if (defined(g, e)) return true;
    for (int i = 0; i < e->nkids; i++)
        if (names_definition(g, e->kid[i])) return true;
    return false;
}

// Each expression that a statement's law reads.
static void each_argument(const Stmt *s, void (*f)(const Ast *e, void *with), void *with)
{
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next)
        for (int i = 0; i < part->nargs; i++) f(part->args[i], with);
    if (s->weights) f(s->weights, with);
    if (s->lower) f(s->lower, with);
    if (s->upper) f(s->upper, with);
    if (s->rhs) f(s->rhs, with);
}

typedef struct Search {
    const Graph *g;
    bool found;
} Search;

static void test_definition(const Ast *e, void *with)
{
    Search *s = with;
    s->found |= names_definition(s->g, e);
}

static bool statement_names_definition(const Graph *g, const Stmt *s)
{
    Search all = {g, false};
    if (s) each_argument(s, test_definition, &all);
    return all.found;
}

// The plate of a subscript, x[i] in the loop over i; of one that is not written, X * beta, that of its size.
static const Expr *subscript_of(const Reader *r, const Var *v, const Ast *e, int k)
{
    const Ast *sub = e->kind == AST_INDEX && k + 1 < e->nkids ? e->kid[k + 1] : NULL;
    const bool all = !sub || sub->kind == AST_ALL;
    for (int i = 0; i < r->plates->n; i++) {
        Index *index = r->plates->index[i];
        const Decl *named = !all && sub->kind == AST_NAME && sub->decl->kind == DECL_INDEX ? sub->decl : NULL;
        if (all ? index->hi == v->dim[k] : named && strcmp(named->name, index->name) == 0) return ex_index(index);
    }
    return NULL;
}

static void read_tree(const Ast *e, void *with);
static void read_definition(Drawing *w, const Var *v);

static void read_name(Reader *r, const Ast *e, const Var *v)
{
    if (v->parts) {
        for (int i = 0; i < (v->dim[0]->kind == EX_NUM ? (int)v->dim[0]->number : 1); i++) edge(r->w, node_of(r->w, v->parts[i]), r->to);
        return;
    }
    if (!is_drawn(v)) return;
    const int node = node_of(r->w, v);
    Expr *at[MAX_RANK], *none = ex_num(0);
    for (int k = 0; k < v->rank; k++) {
        const Expr *sub = subscript_of(r, v, e, k);
        at[k] = sub ? (Expr *)sub : none;
    }
    if (r->w->d->node[node].kind == NODE_IS_DATA && r->to != node) place_data(r, node, ex_ref((Var *)v, v->rank, at));
    edge(r->w, node, r->to);
}

static void read_tree(const Ast *e, void *with)
{
    Reader *r = with;
    if (!e) return;
    const Ast *name = e->kind == AST_INDEX ? e->kid[0] : e;
    if (name->kind == AST_NAME && name->decl) {
        const Decl *d = name->decl;
        const Var *definition = defined(r->w->g, name);
        if (definition) {
            read_definition(r->w, definition);
            edge(r->w, node_of(r->w, definition), r->to);
        } else if ((d->kind == DECL_DATA || d->kind == DECL_VARIABLE || d->kind == DECL_DEFINITION) && d->user) read_name(r, e, d->user);
        for (int i = 1; i < e->nkids && e->kind == AST_INDEX; i++) read_tree(e->kid[i], r);
        return;
    }
    for (int i = 0; i < e->nkids; i++) read_tree(e->kid[i], r);
}

// The subscripts of a left side, as they are written.
static const char *written_index(const Diagram *d, const Ast *lhs)
{
    const char *t = "";
    for (int i = 1; lhs->kind == AST_INDEX && i < lhs->nkids; i++) {
        const Span s = lhs->kid[i]->span;
        t = arena_printf(d->arena, "%s%s%.*s", t, i > 1 ? ", " : "", (int)(s.to - s.from), s.source->text + s.from);
    }
    return t;
}

// What it is made of, the first time that it is met.
static void read_definition(Drawing *w, const Var *v)
{
    for (int i = 0; i < w->d->nnodes; i++)
        if (w->d->node[i].v == v) return;
    const int to = node_of(w, v);
    for (const Stmt *s = v->decl->sites; s; s = s->next_site) {
        const Site *site = v->sites;
        while (site && !(site->span.source == s->span.source && site->span.from == s->span.from)) site = site->next;
        const Loops *plates = site ? &site->plates : &(Loops){0};
        Reader r = {w, plates, to};
        place(w, to, plates, plates->n, written_index(w->d, s->lhs));
        read_tree(s->rhs, &r);
    }
}

// ---- factors ----

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
    const Stmt *statement = statement_at(w, f->span);
    if (statement_names_definition(w->g, statement)) {
        each_argument(statement, read_tree, &r);
        return;
    }
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
    Drawing w = {.d = d, .g = g};
    for (const Block *b = g->model->blocks; b; b = b->next) collect_statements(&w, b->body);
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
