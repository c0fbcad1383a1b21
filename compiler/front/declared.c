// declared.c -- what declares a name: a written type, `~`, or `=`.
//
// Needs: parsed.     Gives: Decl of each name, with its statements.     Keeps: the tree, but for types that loops write.
#include <string.h>
#include "resolve.h"

static void add(Resolve *r, Decl *d)
{
    map_put(r->a, &r->names, d->name, d);
    list_add(r->a, &r->order, d);
}

void declared_twice(Resolve *r, Span at, const Decl *first)
{
    Diag *m = diag(r->d, at, DIAG_E0201, first->name);
    diag_help(m, "the first definition is on line %d", span_line(first->span));
}

// real<lower=0> m[i]; m[i] = ...; in a loop is real<lower=0> m[i] = ...;
static void hand_over(Stmt *s)
{
    for (Stmt *t = s->next; t; t = t->next) {
        if ((t->kind != STMT_TILDE && t->kind != STMT_DEFINE) || t->decl || !t->lhs || t->lhs->kind != AST_INDEX ||
            t->lhs->nkids != s->lhs->nkids)
            continue;
        bool same = true;
        for (int i = 0; i < s->lhs->nkids; i++) same &= ast_same(t->lhs->kid[i], s->lhs->kid[i]);
        if (!same) continue;
        t->decl = s->decl;
        t->decl->in_loop = t->lhs;
        t->decl->outer = 0;
        s->decl = NULL;
        s->kind = STMT_BLOCK;
        return;
    }
}

// real<lower=lo[i]> b[i] ~ ...; in a loop: what follows the name are subscripts, and the loop decides its extents.
static void declare_in_loop(Resolve *r, Stmt *s)
{
    Decl *d = s->decl;
    if (!r->scope.n || !d->outer || d->kind == DECL_DATA) return;
    Ast *name = NEW(r->a, Ast), *place = NEW(r->a, Ast);
    *name = (Ast){.kind = AST_NAME, .span = d->span, .name = d->name, .depth = 1};
    *place = (Ast){.kind = AST_INDEX, .span = d->span, .nkids = d->outer + 1, .depth = 2};
    place->kid = NEW_N(r->a, Ast *, d->outer + 1);
    place->kid[0] = name;
    for (int i = 0; i < d->outer; i++) {
        place->kid[i + 1] = d->type.dim[i];
        if (d->type.dim[i]->depth >= place->depth) place->depth = d->type.dim[i]->depth + 1;
    }
    memmove(d->type.dim, d->type.dim + d->outer, sizeof *d->type.dim * (size_t)(d->type.rank - d->outer));
    d->type.rank -= d->outer;
    d->in_loop = s->lhs = place;
    if (s->kind == STMT_DECLARE) hand_over(s);
}

void declare_typed(Resolve *r, Stmt *s)
{
    if (!s->decl) return;
    declare_in_loop(r, s);
    if (!s->decl) return;  // the next statement's
    Decl *first = map_get(&r->names, s->decl->name);
    if (first) {
        declared_twice(r, s->decl->span, first);
        s->decl = first;
        first->poisoned = true;
        return;
    }
    if (s->kind == STMT_DEFINE) s->decl->kind = DECL_DEFINITION;
    add(r, s->decl);
}

Decl *declare_untyped(Resolve *r, DeclKind kind, const Ast *name, BlockKind block)
{
    Decl *d = NEW(r->a, Decl);
    d->kind = kind;
    d->name = name->name;
    d->span = name->span;
    d->block = block;
    add(r, d);
    return d;
}

// to_vector(e) as e; NULL: it is none.
static Ast *within_to_vector(const Ast *e)
{
    return e->kind == AST_CALL && e->nkids == 1 && e->name == intern("to_vector") ? e->kid[0] : NULL;
}

// to_vector(z) ~ std_normal(); for an unknown z is z ~ std_normal(); arguments that are no numbers are of its shape, or to_vector of such.
static void take_whole(Resolve *r, Stmt *s)
{
    Ast *whole = within_to_vector(s->lhs), *root = whole ? place_root(whole) : NULL;
    const Decl *d = root ? map_get(&r->names, root->name) : NULL;
    const Distribution *dist = s->dist ? library_distribution(r->lib, s->dist) : NULL;
    if (!root || s->more || !dist || dist->value_rank || (d && d->kind != DECL_VARIABLE)) return;
    for (int i = 0; i < s->nargs; i++)
        if (within_to_vector(s->args[i])) s->args[i] = within_to_vector(s->args[i]);
    s->lhs = whole;
}

static void declare_tilde(Resolve *r, Stmt *s)
{
    take_whole(r, s);
    const Ast *root = place_root(s->lhs);
    if (!root) return;  // log(y[i]) ~ ...: seen to when names are resolved
    if (resolve_index(r, root->name)) {
        diag(r->d, root->span, DIAG_E0108, arena_printf(r->a, "the index `%s`", root->name), "~");
        return;
    }
    Decl *d = s->decl ? s->decl : map_get(&r->names, root->name);
    if (!d) d = declare_untyped(r, DECL_VARIABLE, root, s->block);
    if (s->stands_for) d->stands_for = s->stands_for;
    s->decl = d;
    if (d->kind == DECL_DEFINITION) list_add(r->a, &facts(r->a, d)->tildes, s);
    if (d->kind == DECL_VARIABLE) {
        if (!facts(r->a, d)->tildes.n) d->block = s->block;
        list_add(r->a, &facts(r->a, d)->tildes, s);
    }
}

static void declare_definition(Resolve *r, Stmt *s)
{
    const Ast *root = place_root(s->lhs);
    if (resolve_index(r, root->name)) {
        diag(r->d, root->span, DIAG_E0108, arena_printf(r->a, "the index `%s`", root->name), "=");
        return;
    }
    Decl *d = s->decl ? s->decl : map_get(&r->names, root->name);
    if (!d) d = declare_untyped(r, DECL_DEFINITION, root, s->block);
    s->decl = d;
    if (d->kind == DECL_DATA) {  // y[i] = z[i] > 0: a deterministic observation
        if (s->block == BLOCK_LET || s->block == BLOCK_PREDICT) {
            Diag *m = diag(r->d, s->lhs->span, DIAG_E0206, d->name);
            diag_help(m, "`%s` is read from the data file (line %d); give the result another name", d->name, span_line(d->span));
        } else if (s->link) {
            diag(r->d, s->lhs->span, DIAG_E0206, d->name);
        }
        return;
    }
    if (d->kind == DECL_VARIABLE) {
        d->kind = DECL_DEFINITION;  // `real m;` and `m = ...;` apart
        d->block = s->block;
    }
    Facts *f = facts(r->a, d);
    *(f->last_site ? &f->last_site->next_site : &d->sites) = s;
    f->last_site = s;
}

void declare_stmt(Resolve *r, Stmt *s)
{
    if (s->kind == STMT_TILDE) declare_tilde(r, s);
    if (s->kind == STMT_DEFINE) declare_definition(r, s);
}

// A type in a loop, of what no statement is about: density 1 for the elements that the loop names. Otherwise it decides the shape;
// bounds, which may read the loop's indices, need a statement there.
void declare_flat(Resolve *r, Stmt *s)
{
    Decl *d = s->decl;
    if (s->kind != STMT_DECLARE || !d || !d->in_loop) return;
    if ((facts(r->a, d)->tildes.n || d->sites) && !d->lower && !d->upper) return;
    s->kind = STMT_TILDE;
    s->dist = intern("flat");
    s->dist_span = s->span;
    declare_tilde(r, s);
}
