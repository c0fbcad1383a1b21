// arguments.c -- arguments given by name, in the places of their parameters.
//
//   before   y[i] ~ normal(sd = s, mean = m[i]);
//   after    y[i] ~ normal(m[i], s);
//
// Names are those of the declaration in the library, and the synonyms that it lists. Arguments without a name stand first, in order.
//
// Needs: parsed.     Gives: arguments in order, without labels.     Keeps: all else.
#include <string.h>
#include "check.h"

typedef struct Places {
    Arena *a;
    Diags *d;
    const Model *m;
    const Library *lib;
} Places;

typedef struct Callee {  // what arguments are given to
    const char *name;
    Decl *const *params;
    int nparams, first;  // first: arguments before the parameters, as y of normal_lpdf(y | mu, sigma)
    const Synonym *synonyms;
} Callee;

const char *signature(Arena *a, const char *name, Decl *const *params, int n)
{
    const char *list = "";
    for (int i = 0; i < n; i++) list = arena_printf(a, "%s%s%s", list, i ? ", " : "", params[i]->name);
    return arena_printf(a, "%s(%s)", name, list);
}

static const char *called(Places *p, const Callee *c)
{
    const char *list = signature(p->a, c->name, c->params, c->nparams);
    if (!c->first) return list;
    const size_t n = strlen(c->name) + 1;
    return arena_printf(p->a, "%.*sx | %s", (int)n, list, list + n);
}

static int place_of(const Callee *c, const char *label)
{
    for (const Synonym *s = c->synonyms; s; s = s->next)
        if (s->word == label) label = s->of;
    for (int i = 0; i < c->nparams; i++)
        if (c->params[i]->name == label) return c->first + i;
    return -1;
}

static void no_such_argument(Places *p, const Callee *c, const Ast *e)
{
    Diag *m = diag(p->d, e->label_span, DIAG_E0413, c->name, e->label);
    Nearest near = {.wanted = e->label};
    for (int i = 0; i < c->nparams; i++) nearest_try(&near, c->params[i]->name);
    for (const Synonym *s = c->synonyms; s; s = s->next) nearest_try(&near, s->word);
    if (near.best) diag_help(m, "is `%s` meant?", near.best);
    else {
        const char *also = "";
        for (const Synonym *s = c->synonyms; s; s = s->next)
            also = arena_printf(p->a, "%s%s `%s` for `%s`", also, *also ? "," : "; also", s->word, s->of);
        diag_help(m, "%s%s", called(p, c), also);
    }
}

static bool any_label(Ast *const *args, int n)
{
    for (int i = 0; i < n; i++)
        if (args[i]->label) return true;
    return false;
}

static void forget_labels(Ast **args, int n)
{
    for (int i = 0; i < n; i++) args[i]->label = NULL;
}

// The arguments in the places of the parameters; NULL after a message.
static Ast **placed(Places *p, const Callee *c, Span at, Ast **args, int n)
{
    const int all = c->first + c->nparams;
    Ast **place = NEW_N(p->a, Ast *, all + n);
    bool good = true, named = false;
    for (int i = 0; i < n; i++) {
        int k = i;
        if (args[i]->label) {
            named = true;
            k = place_of(c, args[i]->label);
            if (k < 0) no_such_argument(p, c, args[i]);
        } else if (named) {
            Diag *m = diag(p->d, args[i]->span, DIAG_E0416, c->name);
            diag_help(m, "arguments without a name come first: %s", called(p, c));
            k = -1;
        } else if (i >= all) {
            Diag *m = diag(p->d, at, DIAG_E0401, c->name, plural(p->a, all, "argument", "arguments"), n);
            diag_help(m, "%s", called(p, c));
            forget_labels(args, n);
            return NULL;
        }
        if (k >= 0 && place[k]) {
            diag(p->d, args[i]->label_span, DIAG_E0414, k < c->first ? "x" : c->params[k - c->first]->name, c->name);
            k = -1;
        }
        if (k < 0) good = false;
        else place[k] = args[i];
    }
    for (int k = 0; k < all && good; k++) {
        if (place[k]) continue;
        Diag *m = diag(p->d, at, DIAG_E0415, k < c->first ? "x" : c->params[k - c->first]->name, c->name);
        diag_help(m, "%s", called(p, c));
        good = false;
    }
    forget_labels(args, n);
    return good ? place : NULL;
}

static Callee of_distribution(const Distribution *d, const char *name, int first)
{
    return (Callee){.name = name, .params = d->params, .nparams = d->nparams, .first = first, .synonyms = d->synonyms};
}

static void place_in(Places *p, Ast *e)
{
    if (!e) return;
    for (int i = 0; i < e->nkids; i++) place_in(p, e->kid[i]);
    if (e->kind != AST_CALL || !any_label(e->kid, e->nkids)) return;
    LawPart part;
    const Distribution *d = law_function(p->lib, e->name, &part);
    const FunctionDecl *f = d ? NULL : function_named(p->m, p->lib, e->name, e->nkids);
    if (!f && !d) f = function_named(p->m, p->lib, e->name, -1);
    if (d || f) {
        const Callee c = d ? of_distribution(d, e->name, 1) : (Callee){.name = f->name, .params = f->params, .nparams = f->nparams};
        Ast **args = placed(p, &c, e->span, e->kid, e->nkids);
        if (args) {
            e->kid = args;
            e->nkids = c.first + c.nparams;
        } else {  // a message has been given: nothing more is said of it
            e->kind = AST_STRING;
            e->nkids = 0;
        }
        return;
    }
    if (function_exists(e->name)) {
        int i = 0;
        while (!e->kid[i]->label) i++;
        diag(p->d, e->kid[i]->label_span, DIAG_E0417, arena_printf(p->a, "`%s`", e->name));
    }
    forget_labels(e->kid, e->nkids);
}

static void place_in_all(Places *p, Ast **e, int n)
{
    for (int i = 0; i < n; i++) place_in(p, e[i]);
}

static void place_tilde(Places *p, Stmt *s)
{
    place_in_all(p, s->args, s->nargs);
    if (!s->dist || !any_label(s->args, s->nargs)) return;
    const Distribution *d = library_distribution(p->lib, s->dist);
    if (!d) {  // that there is none is said later
        forget_labels(s->args, s->nargs);
        return;
    }
    const Callee c = of_distribution(d, d->name, 0);
    Ast **args = placed(p, &c, s->dist_span, s->args, s->nargs);
    if (args) {
        s->args = args;
        s->nargs = d->nparams;
    } else s->dist = NULL;
}

static void place_in_stmts(Places *p, Stmt *s)
{
    for (; s; s = s->next) {
        place_in(p, s->lhs);
        if (s->kind == STMT_TILDE) place_tilde(p, s);
        for (Stmt *part = s->more; part; part = part->next) place_tilde(p, part);
        place_in(p, s->weights);
        place_in(p, s->lower);
        place_in(p, s->upper);
        place_in(p, s->rhs);
        place_in(p, s->cond);
        if (s->index) {
            place_in(p, s->index->lo);
            place_in(p, s->index->hi);
        }
        if (s->decl) {
            place_in_all(p, s->decl->type.dim, s->decl->type.rank);
            place_in(p, s->decl->lower);
            place_in(p, s->decl->upper);
            place_in(p, s->decl->init);
        }
        place_in_stmts(p, s->body);
    }
}

void front_place_arguments(Arena *a, Model *m, const Library *lib, Diags *d)
{
    Places p = {.a = a, .d = d, .m = m, .lib = lib};
    for (FunctionDecl *f = m->functions; f; f = f->next) place_in(&p, f->body);
    for (Block *b = m->blocks; b; b = b->next) place_in_stmts(&p, b->body);
    for (Request *q = m->requests; q; q = q->next)
        for (int i = 0; i < q->nsettings; i++) place_in(&p, q->setting[i].value);
}
