// inline.c -- calls of functions, replaced by their right sides.
//
//   before   function real hill(real x, real k) = x / (x + k);      m[i] = hill(dose[i], k50);
//   after    m[i] = dose[i] / (dose[i] + k50);
//
// Arguments are trees whose names have their declarations already: nothing in the function's text captures them. The indices of its sums
// are declared anew for each call, under names that are free there, for readers. Arguments are shared, not copied; since later passes walk
// trees, what the calls of one expression are when written out has a limit, MOST_TERMS.
//
// What is wrong with the text for these arguments is reported at its place in the function, with the calls that led to it (Span.call).
#include <string.h>
#include "../base/map.h"
#include "check.h"

enum { MOST_TERMS = 50000 };  // about 2000 lines of formulas

struct Inliner {
    Arena *a;
    Diags *d;
    Map terms;  // Ast -> Terms, of what has been replaced
};

typedef struct Terms {
    double n;
} Terms;

typedef struct Instance {
    Inliner *in;
    const FunctionDecl *f;
    Ast **args;
    const Span *call;
    Map copies;   // Ast -> Ast, Decl -> Decl of an index
    Map longer;   // Span -> Span: chains of calls
    bool (*taken)(void *, const char *);
    void *closure;
    bool too_deep;
} Instance;

Inliner *inliner_new(Arena *a, Diags *d)
{
    Inliner *in = NEW(a, Inliner);
    in->a = a;
    in->d = d;
    return in;
}

// How many nodes a tree has when it is written out; each shared part is counted once for each place, and looked at once.
static double terms_of(Inliner *in, const Ast *e)
{
    if (!e) return 0;
    if (!e->nkids) return 1;
    const Terms *before = map_get(&in->terms, e);
    if (before) return before->n;
    Terms t = {1};
    for (int i = 0; i < e->nkids; i++) t.n += terms_of(in, e->kid[i]);
    map_put(in->a, &in->terms, e, arena_copy(in->a, &t, sizeof t));
    return t.n;
}

static bool has_name(const Ast *e, const char *name)
{
    if (!e) return false;
    if ((e->kind == AST_NAME && e->name == name) || (e->kind == AST_REDUCE && e->decl->name == name)) return true;
    for (int i = 0; i < e->nkids; i++)
        if (has_name(e->kid[i], name)) return true;
    return false;
}

// A name for an index of the function, which nothing at the call has: i, else i2, i3, ...
static const char *free_name(Instance *at, const char *name)
{
    for (int k = 1;; k++) {
        const char *word = k == 1 ? name : intern(arena_printf(at->in->a, "%s%d", name, k));
        bool used = at->taken(at->closure, word);
        for (int i = 0; i < at->f->nparams && !used; i++) used = has_name(at->args[i], word);
        if (!used) return word;
    }
}

// The calls that led to a place, this one behind them.
static const Span *longer_chain(Instance *at, const Span *chain)
{
    if (!chain) return at->call;
    Span *s = map_get(&at->longer, chain);
    if (s) return s;
    s = arena_copy(at->in->a, chain, sizeof *chain);
    s->call = longer_chain(at, chain->call);
    map_put(at->in->a, &at->longer, chain, s);
    return s;
}

static Ast *instance(Instance *at, Ast *e);

static const Inlined *instance_of_call(Instance *at, const Inlined *c)
{
    Inlined *copy = arena_copy(at->in->a, c, sizeof *c);
    copy->args = NEW_N(at->in->a, Ast *, c->function->nparams + 1);
    for (int i = 0; i < c->function->nparams; i++) copy->args[i] = instance(at, c->args[i]);
    copy->body.call = longer_chain(at, c->body.call);
    if (c->within) copy->within = instance_of_call(at, c->within);
    return copy;
}

static Ast *instance(Instance *at, Ast *e)
{
    if (!e) return NULL;
    for (int i = 0; e->kind == AST_NAME && i < at->f->nparams; i++)
        if (e->decl == at->f->params[i] && !e->inlined) return at->args[i];
    Ast *copy = map_get(&at->copies, e);
    if (copy) return copy;
    copy = arena_copy(at->in->a, e, sizeof *e);
    map_put(at->in->a, &at->copies, e, copy);
    for (int i = 0; e->kind == AST_NAME && i < at->f->nparams; i++)
        if (e->decl == at->f->params[i]) *copy = *at->args[i];  // f(x) = g(x), g(x) = x
    copy->span = e->span;
    copy->span.call = longer_chain(at, e->span.call);
    if (e->inlined) copy->inlined = instance_of_call(at, e->inlined);
    if (e->kind == AST_NAME) {
        Decl *index = map_get(&at->copies, e->decl);
        if (index) {
            copy->decl = index;
            copy->name = index->name;
        }
        return copy;
    }
    copy->kid = NEW_N(at->in->a, Ast *, e->nkids);
    copy->depth = 1;
    for (int i = 0; i < e->nkids; i++) {
        if (e->kind == AST_REDUCE && i == 2) {
            copy->decl = arena_copy(at->in->a, e->decl, sizeof *e->decl);
            copy->decl->lo = copy->kid[0];
            copy->decl->hi = copy->kid[1];
            copy->decl->name = free_name(at, e->decl->name);
            map_put(at->in->a, &at->copies, e->decl, copy->decl);
        }
        copy->kid[i] = instance(at, e->kid[i]);
        if (copy->kid[i] && copy->kid[i]->depth >= copy->depth) copy->depth = copy->kid[i]->depth + 1;
    }
    at->too_deep |= copy->depth > MAX_DEPTH;
    return copy;
}

bool inline_call(Inliner *in, Ast *call, const FunctionDecl *f, bool (*taken)(void *, const char *), void *closure)
{
    Instance at = {.in = in, .f = f, .args = call->kid, .taken = taken, .closure = closure};
    at.call = arena_copy(in->a, &call->span, sizeof call->span);
    Ast *right = instance(&at, f->body);
    const bool many = terms_of(in, right) > MOST_TERMS;
    if (many || at.too_deep) {
        Diag *m = many ? diag(in->d, call->span, DIAG_E0216, MOST_TERMS) : diag(in->d, call->span, DIAG_E0104, MAX_DEPTH);
        diag_help(m, "write a part of it as a definition, z = %s(...);", f->name);
        return false;
    }
    Inlined *c = NEW(in->a, Inlined);
    *c = (Inlined){.function = f, .args = call->kid, .body = f->body->span, .within = right->inlined};
    c->body.call = at.call;
    const Span span = call->span;
    *call = *right;
    call->span = span;
    call->inlined = c;
    return true;
}
