// order.c -- definitions that contain themselves, and the order of declarations: data after the data in their sizes and bounds.
//
// Needs: uses.     Gives: Decl.recursive, Model.decls.     Keeps: the tree.
#include <stdlib.h>
#include "resolve.h"

// ---- definitions in a circle ----

// How many definitions deep the names in e go; each is recursion in what follows, so there is a limit.
static int visit_names(Resolve *r, const Ast *e)
{
    if (!e) return 0;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DEFINITION) return resolve_depth(r, e->decl);
    int deepest = 0;
    for (int i = 0; i < e->nkids; i++) {
        int depth = visit_names(r, e->kid[i]);
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

static void too_deep(Resolve *r, Decl *d)
{
    if (!d->poisoned) diag(r->d, d->span, DIAG_E0104, MAX_DEPTH);
    d->poisoned = true;
}

int resolve_depth(Resolve *r, Decl *d)
{
    Facts *f = facts(r->a, d);
    if (f->visited) return f->depth;
    if (f->visiting) {
        int first = r->where.n - 1;
        while (first > 0 && r->where.item[first] != d) first--;
        bool elements = true;  // is all in the circle defined element by element?
        for (int i = first; i < r->where.n; i++)
            for (const Stmt *s = ((Decl *)r->where.item[i])->sites; s; s = s->next_site) elements &= s->lhs->kind == AST_INDEX;
        for (int i = first; i < r->where.n && elements; i++) ((Decl *)r->where.item[i])->recursive = true;
        if (!elements && !d->poisoned) {
            Diag *m = diag(r->d, d->span, DIAG_E0208, d->name);
            diag_help(m, "a definition is replaced by its right side wherever it is used, so it cannot contain itself");
            diag_help(m, "a series is defined element by element: x[1] = ...; for (t in 2:T) x[t] = ... x[t - 1] ...;");
        }
        d->poisoned |= !elements;
        return 0;
    }
    if (r->where.n >= MAX_DEPTH) {
        too_deep(r, d);
        return 0;
    }
    f->visiting = true;
    list_add(r->a, &r->where, d);
    for (const Stmt *s = d->sites; s; s = s->next_site) {
        int right = visit_names(r, s->rhs), left = 0;
        for (int i = 1; i < s->lhs->nkids; i++) left = visit_names(r, s->lhs->kid[i]);
        if (right > f->depth) f->depth = right;
        if (left > f->depth) f->depth = left;
    }
    pop(&r->where);
    if (++f->depth > MAX_DEPTH) {
        too_deep(r, d);
        f->depth = 0;
    }
    f->visiting = false;
    f->visited = true;
    const char *culprit;
    decl_data_only(r->a, d, &culprit);  // now, when all it depends on is known, it takes no deep recursion
    return f->depth;
}

// ---- order ----

static int by_place(const void *x, const void *y)
{
    const Decl *a = *(Decl *const *)x, *b = *(Decl *const *)y;
    return span_before(a->span, b->span) ? -1 : span_before(b->span, a->span);
}

static void place_data(Resolve *r, Model *m, Decl *d);

static void place_names(Resolve *r, Model *m, const Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DATA) place_data(r, m, e->decl);
    for (int i = 0; i < e->nkids; i++) place_names(r, m, e->kid[i]);
}

static void place_data(Resolve *r, Model *m, Decl *d)
{
    Facts *f = facts(r->a, d);
    if (f->visited) return;
    if (r->where.n >= MAX_DEPTH) {
        too_deep(r, d);
        return;
    }
    if (f->visiting) {
        if (!d->poisoned) diag(r->d, d->span, DIAG_E0208, d->name);
        d->poisoned = true;
        return;
    }
    f->visiting = true;
    list_add(r->a, &r->where, d);
    for (int i = 0; i < d->type.rank; i++) place_names(r, m, d->type.dim[i]);
    place_names(r, m, d->lower);
    place_names(r, m, d->upper);
    place_names(r, m, d->init);
    pop(&r->where);
    f->visiting = false;
    f->visited = true;
    d->order = m->ndecls;
    m->decls[m->ndecls++] = d;
}

void resolve_order(Resolve *r, Model *m)
{
    if (r->order.n) qsort(r->order.item, (size_t)r->order.n, sizeof *r->order.item, by_place);
    m->ndecls = 0;
    m->decls = NEW_N(r->a, Decl *, r->order.n);
    for (int i = 0; i < r->order.n; i++) {
        Decl *d = r->order.item[i];
        if (d->kind == DECL_DATA) place_data(r, m, d);
    }
    for (int i = 0; i < r->order.n; i++) {
        Decl *d = r->order.item[i];
        if (d->kind == DECL_DATA) continue;
        d->order = m->ndecls;
        m->decls[m->ndecls++] = d;
    }
}
